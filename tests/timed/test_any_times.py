"""Series of any kinds are matched by their times, or refused: never another answer.

Each example has a ground truth: a table of values on a grid of times.  Series are parts of it, in the
forms that users have.  What is right follows from the numbers of the grid alone, without looking at any
series: which rows belong together, and what the arrays are that one would cut by hand.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from brian2 import second
from conftest import EXHAUSTIVE
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

import glmbrian as glm
from glmbrian.interop import Recording

nap = pytest.importorskip("pynapple", reason="pynapple is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

EXAMPLES = 5000 if EXHAUSTIVE else 200
WINDOW = 3
#: The first date, a prime number of nanoseconds after the epoch, so that double precision would round it.
MIDNIGHT = 1_700_000_000_123_456_789
RNG = np.random.default_rng(0)
TRUTH = {
    "x": RNG.normal(size=(100, 2)).round(3),
    "events": (RNG.random((100, 2)) < 0.3) * 1.0,
    "y": (RNG.random((100, 2)) < 0.3) * 1.0,
}
KERNEL = RNG.normal(size=(2, 2, WINDOW))
FEEDBACK = RNG.normal(size=(2, 2))
BIAS = np.array([-1.0, -0.5])


@dataclass(frozen=True)
class Grid:
    """Step k of the table is from (origin + k) dt up to (origin + k + 1) dt."""

    dt: float
    origin: int

    def time(self, tick, fraction=0.0):
        return (self.origin + tick + fraction) * self.dt

    def nanoseconds(self, tick, fraction=0.0):
        return round((self.origin + tick + fraction) * self.dt * 1e9)


@dataclass(frozen=True)
class Part:
    """Rows of the table in some form; without ticks if the form does not know times."""

    value: object
    length: int
    ticks: tuple | None = None
    fraction: float | None = None  # of a step after its beginning, for samples
    clock: str = "seconds"
    step: int = 1


def pieces_of(ticks):
    """Split ticks where some are missing."""
    ticks = np.asarray(ticks)
    return np.split(ticks, np.flatnonzero(np.diff(ticks) > 1) + 1)


def in_form(form, values, ticks, grid, fraction, step=1):
    """Return rows of a table as users would have them."""
    rows = values[list(ticks)]
    if form == "array":
        return Part(rows, len(ticks))
    if form in ("Recording", "TsGroup"):
        pieces = pieces_of(ticks)
        if form == "Recording" and len(pieces) > 1:
            form = "TsGroup"
        begins = [grid.time(piece[0]) for piece in pieces]
        ends = [grid.time(piece[-1] + 1) for piece in pieces]
        units = [[grid.time(k, 0.25) for k in ticks if values[k, unit]] for unit in (0, 1)]
        if form == "Recording":
            value = Recording([own * second for own in map(np.array, units)], begins[0], ends[0])
        else:
            support = nap.IntervalSet(begins, ends)
            times = {unit: nap.Ts(np.array(own)) for unit, own in enumerate(units)}
            value = nap.TsGroup(times, time_support=support)
        return Part(value, len(ticks), tuple(ticks))
    known = dict(length=len(ticks), ticks=tuple(ticks), fraction=fraction, step=step)
    if form == "TsdFrame":
        return Part(nap.TsdFrame(t=[grid.time(k, fraction) for k in ticks], d=rows), **known)
    at = np.array([grid.nanoseconds(k, fraction) for k in ticks])
    if form == "timedeltas":
        return Part(pd.DataFrame(rows, index=pd.TimedeltaIndex(at.astype("timedelta64[ns]"))), **known)
    index = pd.DatetimeIndex((at + MIDNIGHT).astype("datetime64[ns]"))
    return Part(pd.DataFrame(rows, index=index), clock="dates", **known)


@st.composite
def ticks_near(draw, base):
    """Return the same ticks, or others."""
    change = draw(st.sampled_from(["same"] * 5 + ["later", "shorter", "gap"]))
    if change == "later":
        later = draw(st.integers(1, 3))
        return tuple(k + later for k in base)
    if change == "shorter":
        return base[: len(base) - draw(st.integers(1, 3))]
    if change == "gap":
        start = draw(st.integers(1, len(base) - 2))
        moved = draw(st.integers(1, 4))
        return base[:start] + tuple(k + moved for k in base[start:])
    return base


@st.composite
def situations(draw):
    grid = Grid(
        draw(st.sampled_from([0.001, 0.01, 1 / 30000])), draw(st.sampled_from([0, 0, 7, 123456]))
    )
    length = draw(st.integers(12, 40))
    base = tuple(range(length))
    if draw(st.sampled_from([False, False, True])):
        start = draw(st.integers(4, length - 4))
        base = base[:start] + tuple(range(start + draw(st.integers(1, 9)), length + 12))
    fractions = st.sampled_from([0.5, 0.5, 0.5, 0.0])
    steps = st.sampled_from([1] * 12 + [2])
    relative = ["array", "Recording", "TsGroup", "TsdFrame", "TsdFrame", "timedeltas", "timedeltas"]
    forms = draw(
        st.sampled_from([relative, relative, [*relative, "dates"], ["dates", "dates", "array"]])
    )
    parts = {}
    for name in "outputs", "inputs":
        form = draw(st.sampled_from(forms))
        table = "y" if name == "outputs" else "events" if form in ("Recording", "TsGroup") else "x"
        ticks, step = draw(ticks_near(base)), draw(steps)
        if form in ("Recording", "TsGroup", "array"):
            step = 1
        parts[name] = table, in_form(form, TRUTH[table], ticks[::step], grid, draw(fractions), step)
    mask, masked = None, None
    if draw(st.booleans()):
        masked = draw(ticks_near(base))
        marks = np.array(draw(st.lists(st.booleans(), min_size=100, max_size=100)))
        marks |= draw(st.booleans())
        left_out = draw(st.sampled_from([0, WINDOW - 1, WINDOW, WINDOW]))
        for piece in pieces_of(masked)[1:]:
            marks[piece[0] : piece[0] + left_out] = False
        form = draw(st.sampled_from([each for each in forms if each not in ("Recording", "TsGroup")]))
        whole = in_form(form, marks[:, np.newaxis], masked, grid, draw(fractions))
        value = whole.value
        if form == "array":
            value = value[:, 0]
        elif form == "TsdFrame":
            value = nap.Tsd(t=value.t, d=value.values[:, 0])
        else:
            value = value[0]
        mask = Part(value, whole.length, whole.ticks, whole.fraction, whole.clock)
        masked = marks
    epochs = draw(st.sampled_from([None, None, "rows", "times", "IntervalSet", "pandas"]))
    cuts = sorted(draw(st.lists(st.integers(0, base[-1] + 3), min_size=2, max_size=4, unique=True)))
    pairs = [(a, b) for a, b in zip(cuts[::2], cuts[1::2])]
    shift = draw(st.sampled_from([0.0, 0.25, 0.5]))
    return grid, parts, mask, masked, epochs, pairs, shift


class Refused(Exception):
    """There is no right answer."""


class Unclear(Exception):
    """An error is right, and so is the answer of the arrays cut by hand."""


def rows_of(parts):
    """Return the ticks of the rows that all parts share; None if none knows times."""
    timed = [part for part in parts if part.ticks is not None]
    if any(part.step != 1 for part in timed) or len({part.clock for part in timed}) > 1:
        raise Refused
    if len({part.ticks for part in timed}) > 1 or len({part.length for part in parts}) > 1:
        raise Refused
    fractions = {part.fraction for part in timed}
    if None not in fractions and len(fractions) > 1:
        raise Refused
    return timed[0].ticks if timed else None


def epoch_rows(kind, pairs, shift, grid, parts, ticks, length):
    """Return the first row of each epoch and the row after its last."""
    if kind == "rows":
        if pairs[-1][1] > length:
            raise Refused
        return pairs
    timed = [part for part in parts if part.ticks is not None]
    clock = timed[0].clock if timed else "seconds"
    if not timed:  # counted from 0
        ticks = tuple(k - grid.origin for k in range(length))
    if clock != ("dates" if kind == "dates" else "seconds"):
        raise Refused
    samples = [part for part in timed if part.fraction is not None]
    bins = len(samples) < len(timed) or not timed
    found, unclear = [], False
    edges = {k for k in ticks} | {k + 1 for k in ticks}
    for a, b in pairs:
        if kind == "IntervalSet":
            fraction = samples[0].fraction if samples else 0.5
            begin, end = grid.time(a, shift), grid.time(b, shift)
            # Both ends belong to it: exactly in pynapple, to a nanosecond in pandas.
            is_exact = samples and isinstance(samples[0].value, (nap.TsdFrame, nap.Tsd))
            slack = 0.0 if is_exact else 1e-9
            inside = [begin - slack <= grid.time(k, fraction) <= end + slack for k in ticks]
            unclear |= shift == fraction and not samples
        else:
            inside = [a <= k < b for k in ticks]
            if bins and not {a, b} <= edges:
                raise Refused
        if not any(inside):
            raise Refused
        if a < ticks[0] - 2 or b > ticks[-1] + 3:
            raise Refused
        unclear |= a < ticks[0] or b > ticks[-1] + 1
        first = inside.index(True)
        found.append((first, first + sum(inside)))
    for (_, stop), (start, _) in itertools.pairwise(found):
        if start < stop:
            raise Refused
    if unclear:
        raise Unclear(found)
    return found


def potentials(x, y):
    """Return the membrane potentials of arrays, by the equation."""
    u = np.tile(BIAS, (len(x), 1))
    for t in range(len(x)):
        for lag in range(1, WINDOW + 1):
            if t >= lag:
                u[t] += x[t - lag] @ KERNEL[:, :, lag - 1]
        for lag in range(1, FEEDBACK.shape[1] + 1):
            if t >= lag:
                u[t] += y[t - lag] * FEEDBACK[:, lag - 1]
    return u


def gaps_in(ticks):
    return [] if ticks is None else (np.flatnonzero(np.diff(ticks) > 1) + 1).tolist()


def split(start, stop, gaps):
    edges = [start, *(gap for gap in gaps if start < gap < stop), stop]
    return list(itertools.pairwise(edges))


POPULATION = dict(
    kernels={"stimulus": glm.IndicatorBasis(WINDOW)}, feedback_basis=glm.IndicatorBasis(2)
)


def population(grid):
    return glm.GLMPopulation(
        BIAS,
        POPULATION["kernels"],
        {"stimulus": KERNEL},
        POPULATION["feedback_basis"],
        FEEDBACK,
        dt=grid.dt * second,
    )


def arrays(parts, ticks):
    """Return the arrays that one would cut by hand."""
    found = {}
    for name, (table, part) in parts.items():
        own = part.value if part.ticks is None else TRUTH[table][list(part.ticks)]
        found[name] = np.asarray(own)
    return found["inputs"], found["outputs"]


def check(right, call, compare):
    """Compare a call with what is right."""
    try:
        want = right()
    except Refused:
        event("refused")
        with pytest.raises((ValueError, TypeError)) as caught:
            call()
        assert str(caught.value).split("[")[0].split(":")[0].split(" ")[0] in (
            "outputs", "inputs", "mask", "epochs", "dt", "trains", "t_start", "stimulus",
        ), caught.value  # fmt: skip
        return
    except Unclear as unclear:
        want = unclear.args[0]
        event("unclear")
        try:
            got = call()
        except ValueError:
            return
    else:
        event("answered")
        got = call()
    compare(got, want)


def close(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)


def any_times(test):
    suppress = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    test = pytest.mark.filterwarnings("ignore:outputs. the neurons .* (never|always) spike")(test)
    return settings(max_examples=EXAMPLES // 5, suppress_health_check=suppress)(
        given(situations())(test)
    )


@any_times
def test_potentials(situation):
    grid, parts, *_ = situation

    def right():
        ticks = rows_of([part for _, part in parts.values()])
        x, y = arrays(parts, ticks)
        return np.concatenate([potentials(x[a:b], y[a:b]) for a, b in split(0, len(x), gaps_in(ticks))])

    model = population(grid)
    outputs, inputs = parts["outputs"][1].value, parts["inputs"][1].value
    check(right, lambda: model.membrane_potential(inputs, outputs), close)


@any_times
def test_drive(situation):
    grid, parts, *_ = situation
    table, part = parts["inputs"]

    def right():
        ticks = rows_of([part])
        x = part.value if ticks is None else TRUTH[table][list(ticks)]
        pieces = [x[a:b] for a, b in split(0, len(x), gaps_in(ticks))]
        return np.concatenate([potentials(each, np.zeros((len(each), 2))) - BIAS for each in pieces])

    check(right, lambda: population(grid).drive(part.value), close)


def selected(situation):
    """Return the pieces of rows that epochs and mask select, and which rows count; or raise."""
    grid, parts, mask, marks, epochs, pairs, shift = situation
    listed = [parts["outputs"][1], parts["inputs"][1], *([] if mask is None else [mask])]
    ticks = rows_of(listed)
    length = listed[0].length
    counted = np.ones(length, dtype=bool)
    if mask is not None:
        counted = np.asarray(mask.value) if mask.ticks is None else marks[list(mask.ticks)]
    unclear = False
    spans = [(0, length)]
    if epochs is not None:
        kind = epochs
        if epochs == "pandas":
            kind = "dates" if "dates" in {part.clock for part in listed} else "times"
        try:
            spans = epoch_rows(kind, pairs, shift, grid, listed, ticks, length)
        except Unclear as error:
            spans, unclear = error.args[0], True
    for start, stop in spans:
        for gap in gaps_in(ticks):
            if start < gap < stop and (mask is None or counted[gap : gap + WINDOW].any()):
                raise Refused
    if not any(counted[a:b].any() for a, b in spans):
        raise Refused
    pieces = [piece for span in spans for piece in split(*span, gaps_in(ticks))]
    return pieces, counted, ticks, unclear


def given_data(situation):
    """Return the arguments of a call."""
    _, parts, mask, *_ = situation
    return dict(
        outputs=parts["outputs"][1].value,
        inputs=parts["inputs"][1].value,
        mask=None if mask is None else mask.value,
        epochs=given_epochs(situation),
    )


def given_epochs(situation):
    """Return epochs as users write them."""
    grid, parts, mask, _, epochs, pairs, shift = situation
    if epochs == "rows":
        return pairs
    if epochs == "times":
        return [(grid.time(a) * second, grid.time(b) * second) for a, b in pairs]
    if epochs == "IntervalSet":
        return nap.IntervalSet(
            [grid.time(a, shift) for a, _ in pairs], [grid.time(b, shift) for _, b in pairs]
        )
    if epochs == "pandas":
        clocks = {part.clock for part in (parts["outputs"][1], parts["inputs"][1], mask) if part}
        if "dates" in clocks:
            return [tuple(pd.Timestamp(MIDNIGHT + grid.nanoseconds(k)) for k in pair) for pair in pairs]
        return [tuple(pd.Timedelta(grid.nanoseconds(k), "ns") for k in pair) for pair in pairs]
    return None


@any_times
def test_log_likelihoods(situation):
    grid, parts, mask, *_ = situation

    def right():
        pieces, counted, ticks, unclear = selected(situation)
        x, y = arrays(parts, ticks)
        total = np.zeros(2)
        for a, b in pieces:
            u = potentials(x[a:b], y[a:b])
            each = y[a:b] * u - np.log1p(np.exp(u))
            total += each[counted[a:b]].sum(axis=0)
        if unclear:
            raise Unclear(total)
        return total

    check(right, lambda: population(grid).log_likelihoods(**given_data(situation)), close)


@any_times
def test_fits(situation):
    grid, parts, mask, *_ = situation
    known = dict(**POPULATION, penalty=1.0)

    def right():
        pieces, counted, ticks, unclear = selected(situation)
        x, y = arrays(parts, ticks)
        apart = np.zeros((WINDOW, 2))  # longer than any kernel, and not counted
        padded = [
            np.concatenate([each for a, b in pieces for each in (apart, own[a:b])]) for own in (y, x)
        ]
        counts = np.concatenate([np.r_[[False] * WINDOW, counted[a:b]] for a, b in pieces])
        fit = glm.fit_population(padded[0], padded[1], mask=counts, **known)
        if unclear:
            raise Unclear(fit)
        return fit

    def compare(got, want):
        close(got.bias, want.bias)
        close(got.kernel("stimulus"), want.kernel("stimulus"))
        close(got.feedback_kernels(), want.feedback_kernels())
        assert abs(float(got.dt) / grid.dt - 1) < 1e-6

    data = given_data(situation)
    check(right, lambda: glm.fit_population(**data, **known, dt=grid.dt * second), compare)


@any_times
def test_recordings_of_trains(situation):
    grid, parts, *_ = situation
    _, part = parts["outputs"]

    def right():
        ticks = rows_of([part])
        if gaps_in(ticks) or part.clock == "dates":
            raise Refused
        return (part.value if ticks is None else TRUTH["y"][list(ticks)]), ticks

    def compare(got, want):
        trains, ticks = want
        np.testing.assert_array_equal(got.trains(), trains)
        start = 0.0 if ticks is None else grid.time(ticks[0])
        np.testing.assert_allclose(float(got.t_start), start, rtol=1e-9, atol=1e-9)

    check(right, lambda: Recording.from_trains(part.value, grid.dt * second), compare)
