"""Data that know their times, and how they are brought together.

Packages have their own objects for series with times and for events.  For each kind there is a
*reader*, which returns what is read here: `Samples` with a time for each row, or `Events`, which
still have to be binned.  Each package has a module here that registers its readers, and `recording.recording`
registers that of `Recording`; what no reader takes is an array, which does not know its times.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from brian2 import Quantity, second
from numpy.typing import NDArray

from ..brian.time_steps import is_same_step, time_step
from .binning import spike_steps
from .timeline import STEP_ROUNDING, Timeline, first_difference

#: The shortest time that pandas and pynapple tell apart, in seconds.
_RESOLUTION = 1e-9


@dataclass(frozen=True, eq=False)
class EventSeries:
    """Spike trains given by the steps with spikes, in the place of an array.

    Attributes
    ----------
    steps : list of ndarray of int
        For each unit, the sorted steps in which it spikes.
    n_steps : int
    """

    steps: list[NDArray[np.int64]]
    n_steps: int

    #: Whether values are integers or Booleans, which are finite and never too large or small.
    is_whole = True

    @property
    def n_units(self) -> int:
        """Number of units."""
        return len(self.steps)

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[np.uint8]:
        """Return the steps from `start` up to `stop`, all by default, shape (stop - start, n)."""
        stop = self.n_steps if stop is None else stop
        trains = np.zeros((stop - start, self.n_units), dtype=np.uint8)
        for unit, of_unit in enumerate(self.steps):
            first, beyond = np.searchsorted(of_unit, (start, stop))
            trains[of_unit[first:beyond] - start, unit] = 1
        return trains


@dataclass(frozen=True, eq=False)
class Samples:
    """A series with a time for each row.

    Attributes
    ----------
    values : array_like, shape (T,) or (T, n)
    timeline : Timeline
    cut : str
        How its owner cuts out a part, with {name}, {start} and {stop}.
    observed_from : float or None
        When the observation began, if known, in seconds.
    """

    values: Any
    timeline: Timeline
    cut: str
    observed_from: float | None = None

    @property
    def dt(self) -> Quantity | None:
        """The time between rows."""
        return None if self.timeline.dt is None else self.timeline.dt * second

    @property
    def step_rounding(self) -> float:
        """By how many seconds `dt` may be wrong if times are rounded, as these packages do."""
        return 2 * _RESOLUTION / max(self.timeline.n_steps - 1, 1)

    def in_steps(self, dt: Quantity | None) -> tuple[Any, Timeline]:
        """Return the values, and when the rows are."""
        return self.values, self.timeline


@dataclass(frozen=True, eq=False)
class Observed:
    """Spike times of several units in an interval in which they were observed.

    Attributes
    ----------
    times : sequence of array of float
        Sorted, in seconds.
    start, stop : float
    """

    times: Sequence[Any]
    start: float
    stop: float


@dataclass(frozen=True, eq=False)
class Events:
    """Spike times that were observed in one or more intervals, and are still to be binned.

    Attributes
    ----------
    pieces : sequence of Observed
        In the order of time.
    names : sequence of str
        Of the units.
    dt : Quantity or None
        The step that the data were in before; None if unknown.
    kind : str
        For error messages.
    cut : str
        As for `Samples`.
    """

    pieces: Sequence[Observed]
    names: Sequence[str]
    dt: Quantity | None
    kind: str
    cut: str

    def in_steps(self, dt: Quantity) -> tuple[EventSeries, Timeline]:
        """Return the steps with spikes, those of all pieces one after the other, and when they are."""
        step = float(dt)
        binned = [
            spike_steps(piece.times, piece.start, piece.stop, step, self.names) for piece in self.pieces
        ]
        lengths = [n_steps for _, n_steps in binned]
        ends = np.cumsum([0, *lengths])
        steps = [
            np.concatenate([of_unit + begin for of_unit, begin in zip(of_pieces, ends)])
            for of_pieces in zip(*[of_units for of_units, _ in binned])
        ]
        starts = [piece.start for piece in self.pieces]
        return EventSeries(steps, int(ends[-1])), Timeline.of_bins(starts, lengths, step)


Source = Samples | Events

#: Functions of a value and its name that return a `Source`, or None for what is not theirs.
_READERS: list[Callable[[Any, str], Source | None]] = []


def register_reader(reader: Callable[[Any, str], Source | None]) -> Callable:
    """Add a reader: a function of a value and its name, for messages."""
    _READERS.append(reader)
    return reader


def source_of(value: Any, name: str) -> Source | None:
    """Return a value that knows its times as its reader reads it; None for an array."""
    if value is None or type(value) is np.ndarray:
        return None
    return next((found for reader in _READERS if (found := reader(value, name)) is not None), None)


def is_instance_of(value: Any, module: str, *names: str) -> bool:
    """Return whether a value is of one of the classes of a package, without importing the package.

    Parameters
    ----------
    value : object
    module : str
        If it has not been imported, no value can be of its classes.
    *names : str
    """
    loaded = sys.modules.get(module)
    classes = tuple(found for name in names if isinstance(found := getattr(loaded, name, None), type))
    return isinstance(value, classes)


@dataclass(frozen=True, eq=False)
class Aligned:
    """Series whose rows are the same steps.

    Attributes
    ----------
    values : dict of str to array_like or EventSeries
        By the names of the series.
    dt : Quantity or None
        None if it is neither given nor known to the data.
    timelines : dict of str to Timeline
        Of the series that know their times.
    """

    values: dict[str, Any]
    dt: Quantity | None
    timelines: dict[str, Timeline]

    @property
    def breaks(self) -> dict[int, str]:
        """The rows before which there is a gap in the times, and the name of a series that says so."""
        found: dict[int, str] = {}
        for name, timeline in self.timelines.items():
            for row in timeline.breaks.tolist():
                found.setdefault(row, name)
        return dict(sorted(found.items()))


def aligned(
    series: Mapping[str, Any], dt: Quantity | None, marks: Mapping[str, Any] | None = None
) -> Aligned:
    """Return series with one row per step, which must be the same steps in all that know their times.

    Parameters
    ----------
    series : dict of str to array_like, Recording, or series of pynapple and pandas
        By their names in error messages.
    dt : Quantity or None
        The step for binning spike times, which all other data must have.  By default the step that
        the data specify.
    marks : dict of str to array_like, optional
        More of them that have one value for each step, as a mask has.  Other series with times that have
        one value for each step become series of one column.

    Raises
    ------
    TypeError, ValueError
        If `dt` is not a time; if the data have different steps, or a step other than `dt`; if
        there is no step for binning spike times; or if the rows of two series are at different times.
    """
    dt = time_step(dt)
    values, timelines = {**series, **(marks or {})}, {}
    sources = {name: found for name, value in values.items() if (found := source_of(value, name))}
    dt = _common_step(sources, dt)
    for name, source in sources.items():
        if isinstance(source, Events) and dt is None:
            raise ValueError(
                f"dt must be given: {name} is a {source.kind}, which needs a step for binning"
            )
        own, timelines[name] = source.in_steps(dt)
        values[name] = _in_columns(own) if name in series else own
    _require_same_times(sources, timelines, dt)
    return Aligned(values, dt, timelines)


def _in_columns(values):
    if isinstance(values, EventSeries) or len(np.shape(values)) != 1:
        return values
    return values.to_frame() if hasattr(values, "to_frame") else np.asarray(values)[:, np.newaxis]


def dense_series(value: Any, name: str, dt: Quantity | None) -> tuple[Any, list[int]]:
    """Return one series as an array_like, and the rows before which there is a gap in its times."""
    together = aligned({name: value}, dt)
    found = together.values[name]
    return found.read() if isinstance(found, EventSeries) else found, list(together.breaks)


def _common_step(sources, dt):
    known = {} if dt is None else {"dt": dt}
    for name, source in sources.items():
        # Spike times can be binned in any step.
        if source.dt is not None and not (dt is not None and isinstance(source, Events)):
            known[name] = source.dt
    for name, step in known.items():
        first_name, first = next(iter(known.items()))
        rounding = sum(
            source.step_rounding
            for each in (name, first_name)
            if isinstance(source := sources.get(each), Samples)
        )
        if not is_same_step(step, first) and abs(float(step - first)) > rounding:
            raise ValueError(
                f"{name} is in steps of {step}, and {first_name} "
                f"{'is' if first_name == 'dt' else 'in steps of'} {first}; bring all data to the same steps: bin "
                f"spikes in them, and take samples at their times (in pynapple, stimulus.interpolate(counts))"
                + ("" if dt is not None else ", or give dt to bin recordings in")
            )
    return next(iter(known.values()), None)


def _require_same_times(sources, timelines, dt):
    """Raise unless the rows of all series are at the same times."""
    if len(timelines) < 2:
        return
    # Those that know where steps begin and end decide between samples.
    order = sorted(timelines, key=lambda name: timelines[name].samples is not None)
    first, *others = order
    for name in others:
        _require_same_pair(sources, timelines, first, name, dt)


def _require_same_pair(sources, timelines, first, name, dt):
    one, other = timelines[first], timelines[name]
    if one.clock != other.clock:
        raise ValueError(
            f"{name} must have the same kind of times as {first}: {name} has {other.clock.name}, {first} has "
            f"{one.clock.name}; convert one of them, for example with index - index[0] for times from a start"
        )
    step = 1.0 if dt is None else float(dt)
    found = None
    if one.n_steps == other.n_steps:
        found = first_difference(one, other, step)
        if found is None:
            return
    by = "" if found is None else f": row {found[0]} is at {other.clock.text(other.time(found[0]))}"
    by += "" if found is None else f", and at {one.clock.text(one.time(found[0]))} in {first}"
    raise ValueError(
        f"{name} must cover the same time as {first}, {one.described()} in {one.n_steps} steps, got "
        f"{other.described()} in {other.n_steps} steps{by}. "
        + _advice(sources, timelines, first, name, step)
    )


def _advice(sources, timelines, first, name, dt):
    """Return how to bring two series together."""
    one, other = timelines[first], timelines[name]
    step = dt * one.clock.per_second
    low, high = (chosen(ends) for chosen, ends in zip((max, min), zip(one.span(), other.span())))
    if low >= high:
        return "They have no time in common: are both counted from the same start?"
    shift = (other.time(0) - one.time(0)) / step % 1.0
    both_are_samples = one.samples is not None and other.samples is not None
    if one.breaks.size != other.breaks.size:
        gappy, whole = (first, name) if one.breaks.size > other.breaks.size else (name, first)
        return (
            f"{gappy} has gaps that {whole} does not have: cut all data to the same pieces (in pynapple, "
            f"{whole}.restrict({gappy}.time_support))"
        )
    if both_are_samples and min(shift, 1.0 - shift) > STEP_ROUNDING:
        return (
            f"Their steps are shifted against each other by {shift:.3g} of a step: bin both in the same "
            f"steps, or bring one to the times of the other (in pynapple, {name}.interpolate({first}) or "
            "spikes.count(dt, ep))"
        )
    if both_are_samples:
        low, high = low - step / 2, high + step / 2
        if one.clock.is_calendar:
            low, high = int(low), int(high)
    else:
        begin = one.starts[0]
        low = begin + np.floor((low - begin) / step + STEP_ROUNDING) * step
        high = begin + np.ceil((high - begin) / step - STEP_ROUNDING) * step
    cuts = [
        sources[each].cut.format(
            name=each, start=_as_code(low, one.clock), stop=_as_code(high, one.clock)
        )
        for each in (first, name)
    ]
    return f"Take the common part of all data: {' and '.join(cuts)}"


def _as_code(time, clock):
    return repr(clock.text(time)) if clock.is_calendar else f"{time:.9g}"
