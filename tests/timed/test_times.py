"""What knows its times is matched by them, epoch by epoch, or refused with advice that works."""

import numpy as np
import pytest
import scipy.sparse
from brian2 import ms, second

import glmbrian as glm
from glmbrian.interop import Recording
from glmbrian.timed.requests import steps_of_epochs
from glmbrian.timed.timeline import DATES, SECONDS, Timeline

nap = pytest.importorskip("pynapple", reason="pynapple is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

RNG = np.random.default_rng(0)
N = 400
X = (RNG.random((N, 1)) < 0.2) * 1.0
Y = (RNG.random((N, 1)) < 0.05 + 0.6 * np.vstack([[[0]], X[:-1]])) * 1.0
T = (np.arange(N) + 0.5) * 0.01
BASIS = glm.IndicatorBasis(2)
MODEL = glm.GLMPopulation.from_kernels([-2.0], [[[3.0, 0.5]]])
RECORDING = Recording.from_trains(Y, 10 * ms)


def frame(values, times, **known):
    return nap.TsdFrame(t=times, d=values, **known)


def score(outputs, inputs, dt=None, **known):
    model = glm.GLMPopulation.from_kernels([-2.0], [[[3.0, 0.5]]], dt=dt)
    return model.log_likelihoods(outputs, inputs, **known).item()


@pytest.mark.parametrize(
    "outputs, inputs",
    [
        (frame(Y, T).get(0, 3), frame(X, T).get(1, 4)),
        (RECORDING.part(0 * second, 3 * second), frame(X, T).get(1, 4)),
        (frame(Y, T).get(0, 3), RECORDING.part(1 * second, 4 * second)),
        (RECORDING.part(0 * second, 3 * second), RECORDING.part(1 * second, 4 * second)),
        (
            pd.DataFrame(Y, index=pd.to_timedelta(T, "s"))[:300],
            pd.DataFrame(X, index=pd.to_timedelta(T, "s"))[100:],
        ),
        (
            pd.DataFrame(Y, index=pd.Timestamp("2024-05-01") + pd.to_timedelta(T, "s"))[:300],
            pd.DataFrame(X, index=pd.Timestamp("2024-05-01") + pd.to_timedelta(T, "s"))[100:],
        ),
        (
            pd.DataFrame(Y, index=pd.Timestamp("2024-05-01", tz="UTC") + pd.to_timedelta(T, "s"))[:300],
            pd.DataFrame(X, index=pd.Timestamp("2024-05-01", tz="UTC") + pd.to_timedelta(T, "s"))[100:],
        ),
    ],
)
def test_the_advice_cuts_out_the_common_part(outputs, inputs):
    """The code in the message gives the same as the arrays from 1 s to 3 s."""
    with pytest.raises(
        ValueError, match="must cover the same time as .*Take the common part of all data: "
    ) as caught:
        score(outputs, inputs, 10 * ms)
    known = {"inputs": {"stimulus": inputs}, "outputs": outputs, "nap": nap, "pd": pd, "second": second}
    cut = {}
    for code in str(caught.value).split("Take the common part of all data: ")[1].split(" and "):
        code, _, name = code.partition(" for ")
        name = name or code[: code.index("]") + 1 if code.startswith("inputs") else code.index(".")]
        cut[name] = eval(code, known | {"recording": eval(name, known)})
    data = X if isinstance(inputs, (nap.TsdFrame, pd.DataFrame)) else Y
    want = score(Y[100:300], data[100:300])
    assert score(cut["outputs"], cut["inputs['stimulus']"], 10 * ms) == pytest.approx(want, abs=1e-9)


def test_shifted_steps_are_ambiguous_between_samples():
    with pytest.raises(ValueError, match=r"shifted .* by 0\.5 of a step.*interpolate"):
        score(frame(Y, T), frame(X, T + 0.005))
    # A recording knows where steps begin and end, so both times are in them.
    want = score(Y, X)
    for shift in (-0.005, 0.0, 0.004):
        assert score(RECORDING, frame(X, T + shift), 10 * ms) == pytest.approx(want, abs=1e-9)
    with pytest.raises(ValueError, match="must cover the same time"):
        score(RECORDING, frame(X, T + 0.005), 10 * ms)  # the ends of steps


@pytest.mark.parametrize("kind", ["mask", "epochs and mask"])
def test_a_mask_leaves_out_the_window_after_a_gap(kind):
    apart = nap.IntervalSet([0, 2], [0.999, 3.999])
    inputs, outputs = (frame(values, T).restrict(apart) for values in (X, Y))
    more = {} if kind == "mask" else {"epochs": [(0, 300)]}
    for left_out in (0, 1, 2):  # of a window of 2 steps
        mask = nap.Tsd(t=outputs.t, d=~np.isin(np.arange(300), np.arange(100, 100 + left_out)))
        if left_out < 2:
            with pytest.raises(
                ValueError, match=r"^mask must leave out the 2 steps .*mask\[100:102\] = False"
            ):
                score(outputs, inputs, mask=mask, **more)
            continue
        late = np.r_[[False] * 2, [True] * 198]
        want = score(Y[:100], X[:100]) + score(Y[200:], X[200:], mask=late)
        assert score(outputs, inputs, mask=mask, **more) == pytest.approx(want, abs=1e-9)
    with pytest.raises(ValueError, match="^mask must cover the same time"):
        score(outputs, inputs, mask=nap.Tsd(t=outputs.t + 1, d=mask.d), **more)


def test_clocks_do_not_mix():
    dates = pd.DataFrame(X, index=pd.Timestamp("2024-05-01") + pd.to_timedelta(T, "s"))
    zone = dates.tz_localize("Europe/Paris")
    for other, own in (dates, frame(Y, T)), (zone, dates.tz_localize(None)):
        with pytest.raises(ValueError, match="must have the same kind of times as"):
            score(own, other)
    with pytest.raises(ValueError, match=r"^epochs\[0\] must have the same kind of times as the data"):
        score(Y, dates, epochs=[(0 * second, 1 * second)])
    late = [(pd.Timestamp("2024-05-01 00:00:01"), pd.Timestamp("2024-05-01 00:00:02"))]
    for epochs in late, pd.IntervalIndex.from_tuples(late, closed="left"):
        want = score(Y, X, epochs=[(100, 200)])
        assert score(Y, dates, epochs=epochs) == pytest.approx(want, abs=1e-9)


def test_dates_keep_their_nanoseconds():
    """In double precision, times of today in nanoseconds are 256 ns apart."""
    start, step = 1_700_000_000_000_000_001, 100
    line = Timeline.of_samples(start + step * np.arange(1000), DATES, "x")
    assert line.row(start + 500 * step) == 500 and line.row(start + 500 * step, after=True) == 501
    assert line.dt == pytest.approx(1e-7, rel=1e-12)


@pytest.mark.parametrize("dt", [0.001, 1 / 30000, 0.1])
@pytest.mark.parametrize("start", [0.0, 12.3457, 1e5])
def test_interval_sets_select_what_restrict_selects(dt, start):
    rng = np.random.default_rng(int(start))
    t = start + (np.arange(300) + 0.5) * dt
    series = frame(np.zeros((300, 1)), t)
    line = Timeline.of_samples(t, SECONDS, "x")
    for _ in range(30):
        edges = np.sort(rng.choice(t, 2, replace=False)) + rng.choice([0, 0.3, -0.3]) * dt
        chosen = nap.IntervalSet(*edges)
        ((first, stop),) = steps_of_epochs(chosen, 300, dt * second, [line])
        np.testing.assert_array_equal(t[first:stop], series.restrict(chosen).t)


def test_groups_are_binned_as_pynapple_does():
    support = nap.IntervalSet([0, 2], [1, 4])
    times = {k: nap.Ts(np.sort(RNG.choice(4000, 900, replace=False)) / 1e3 + 5e-4) for k in (3, 5)}
    group = nap.TsGroup(times, time_support=support)
    counts = group.count(0.001)
    model = glm.GLMPopulation.from_kernels([-1.0, 0.0], [[[1.0], [2.0]]] * 2, [[-1.0]] * 2, dt=1 * ms)
    np.testing.assert_allclose(
        model.membrane_potential(group, group), model.membrane_potential(counts, counts.values)
    )
    with pytest.raises(ValueError, match="^outputs must be in equal steps, but there is a gap between"):
        glm.fit_population(group, dt=1 * ms)
    fit = glm.fit_population(group, feedback_basis=BASIS, dt=1 * ms, epochs=support)
    want = glm.fit_population(counts.values, feedback_basis=BASIS, epochs=[(0, 1000), (1000, 3000)])
    np.testing.assert_allclose(fit.feedback_kernels(), want.feedback_kernels(), atol=1e-9)
    with pytest.raises(ValueError, match="^t_start must be given.*pass the group itself"):
        glm.interop.from_pynapple(group)


def test_where_steps_of_recordings_begin():
    counts = nap.TsGroup({0: nap.Ts([12.5])}, time_support=nap.IntervalSet(12.3457, 13.3457)).count(
        0.01
    )
    assert Recording.from_trains(counts).t_start == 12.3457 * second  # as its time_support says
    with pytest.raises(ValueError, match=r"^t_start must be the beginning .* 12\.4457 s .* 12\.4507 s"):
        Recording.from_trains(counts.get(12.444, 13))
    part = Recording.from_trains(counts.get(12.444, 13), t_start=12.4457 * second)
    assert part.trains().sum() == 1
    late = frame(Y, 10 + T)
    for series in late, frame(Y, 9.995 + T):
        assert Recording.from_trains(series).t_start == 10 * second
    with pytest.raises(ValueError, match="^t_start must be"):
        Recording.from_trains(late, t_start=0 * second)
    with pytest.raises(ValueError, match="^trains must be in equal steps, without gaps"):
        Recording.from_trains(late.restrict(nap.IntervalSet([10, 12], [11, 13])))


def test_one_column():
    want = score(Y, X)
    for series in nap.Tsd(t=T, d=X[:, 0]), pd.Series(X[:, 0], index=pd.to_timedelta(T, "s")):
        assert score(Y, series) == pytest.approx(want, abs=1e-9)
    np.testing.assert_allclose(MODEL.drive(nap.Tsd(t=T, d=X[:, 0])), MODEL.drive(X))


@pytest.mark.parametrize(
    "times, says",
    [
        (np.r_[T[:100], T[99:-1]], "increase from row to row, but row 100"),
        (T[::-1], None),
        (np.r_[T[:50], T[50:] - 0.002], "equal steps, but row 50 is 8. ms after"),
        (np.r_[T[:-1], np.inf], "finite times"),
    ],
)
def test_times_that_make_no_sense(times, says):
    index = pd.to_timedelta(times, "s") if np.isfinite(times).all() else None
    if index is None:
        with pytest.raises(ValueError, match=says):
            Timeline.of_samples(times, SECONDS, "x")
        return
    with pytest.raises(ValueError, match=says or "increase"):
        MODEL.membrane_potential(pd.DataFrame(X, index=index))


@pytest.mark.parametrize(
    "epochs, error, says",
    [
        ([("2024-01-01", 1 * second)], TypeError, r"epochs\[0\].*pandas.Timestamp\('2024-01-01'\)"),
        ([(0.0, 1.0)], TypeError, r"epochs\[0\]: start and stop must be steps.*IntervalSet itself"),
        (
            nap.IntervalSet(-3, 2),
            ValueError,
            r"epochs\[0\] must lie within the data .the data cover 5. ms",
        ),
        ([(1 * second, 9 * second)], ValueError, r"epochs\[0\] must lie within the data"),
        ([(1.001 * second, 1.002 * second)], ValueError, r"epochs\[0\] must have at least one step"),
        ([(2 * second, 1 * second)], ValueError, r"epochs\[0\] must have at least one step"),
        ([(pd.NaT.to_datetime64(), 1 * second)], ValueError, r"epochs\[0\] must not be NaT"),
        (nap.IntervalSet([0, 0.995], [0.9, 2]), None, None),
    ],
)
def test_epochs_as_times(epochs, error, says):
    if error is None:
        want = score(Y, X, epochs=[(0, 90), (99, 200)])
        assert score(frame(Y, T), X, epochs=epochs) == pytest.approx(want, abs=1e-9)
        return
    with pytest.raises(error, match=f"^{says}"):
        score(frame(Y, T), X, epochs=epochs)


def test_more_neurons_than_steps():
    wide = np.tile([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], 3)
    with pytest.raises(ValueError, match=r"^outputs must have the shape \(T, n\).*outputs\.T"):
        glm.fit_population(wide)
    assert glm.fit_population(Recording.from_trains(wide, 1 * ms), penalty=1.0).n == 6
    with pytest.warns(RuntimeWarning, match=r"inputs\['stimulus'\] has the shape \(40, 50\)"):
        glm.fit_population(Y[:40], np.zeros((40, 50)), BASIS, penalty=1.0)


def test_sparse_trains():
    trains = np.asarray(Y, dtype=int)
    want = score(Y, Y)
    for kind in scipy.sparse.csr_array, scipy.sparse.coo_matrix, scipy.sparse.lil_matrix:
        assert score(kind(trains), kind(trains)) == pytest.approx(want, abs=1e-9)
    stored = scipy.sparse.csr_array((np.array([1, 0, 1]), ([2, 3, 7], [0, 1, 1])), (9, 2))
    np.testing.assert_array_equal(Recording.from_trains(stored, 1 * ms).trains(), stored.toarray())
    assert stored.nnz == 3  # unchanged
    with pytest.raises(ValueError, match="^outputs must hold only 0 and 1 if it is sparse.*toarray"):
        score(scipy.sparse.csr_array(2 * trains), X)
    with pytest.raises(ValueError, match="^outputs must have the shape"):
        score(scipy.sparse.csr_array(trains[1:]), X)


def test_objects_that_belong_elsewhere():
    neo = pytest.importorskip("neo", reason="neo is not installed")
    train = neo.SpikeTrain([3, 8], t_stop=10, units="ms")
    for given in train, [train, train]:
        with pytest.raises(TypeError, match=r"^outputs .*from_neo"):
            glm.fit_population(given)
