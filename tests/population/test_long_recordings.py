"""Recordings are read in blocks, from where they are; the fit is the same in every form."""

import sys
import threading
import time
import tracemalloc
import warnings

import joblib
import numpy as np
import pytest
from brian2 import ms

import glmbrian as glm
from glmbrian.interop import Recording
from glmbrian.population import maximiser
from glmbrian.population.design import Design
from glmbrian.population.recorded import RecordedData
from glmbrian.population.series import ArraySeries
from glmbrian.support.workers import Workers

BASIS = glm.RaisedCosineBasis(3, 9)
OTHER = glm.RaisedCosineBasis(2, 5)


def trains(n_steps, n, seed=0, rate=0.1):
    rng = np.random.default_rng(seed)
    y = rng.random((n_steps, n)) < rate
    y[1:, 0] |= y[:-1, -1] & (rng.random(n_steps - 1) < 0.3)
    return y


def weights_of(population):
    parts = [population.bias, population.feedback_weights, *population.weights.values()]
    return np.concatenate([part.ravel() for part in parts if part is not None])


def fit_quietly(y, *args, **kwds):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return glm.fit_population(y, *args, **kwds)


fit = fit_quietly


@pytest.mark.parametrize("window", [1, 2, 7, 40, 300])
def test_columns_are_filtered_inputs(window):
    """Blocks, epochs and a mask, against sums over lags."""
    rng = np.random.default_rng(window)
    basis, feedback = glm.CustomBasis(rng.normal(size=(window, 2))), glm.CustomBasis([[1.0], [2.0]])
    x, y = rng.normal(size=(40_000, 3)), rng.random((40_000, 2)) < 0.3
    epochs, mask = [(3, 700), (700, 712), (1000, 40_000)], rng.random(40_000) < 0.6
    ones = {"x": np.ones(3)}
    data = RecordedData({"x": ArraySeries(x)}, ArraySeries(y), epochs, mask, largest=ones, offsets=ones)
    design = Design(data, {"x": basis}, feedback, is_centred=True)
    expected, own = np.zeros((40_000, 2, 3)), np.zeros((40_000, 1, 2))
    for start, stop in epochs:
        for lag in range(1, min(window, stop - start - 1) + 1):
            past = x[start : stop - lag, np.newaxis, :]
            expected[start + lag : stop] += basis.matrix[lag - 1][:, np.newaxis] * past
        for lag in (1, 2):
            own[start + lag : stop, 0] += lag * y[start : stop - lag]
    expected -= basis.matrix.sum(axis=0)[:, np.newaxis]
    counted = np.concatenate([np.arange(*epoch) for epoch in epochs])
    counted = counted[mask[counted]]
    rows = [design.rows(block, np.array([1])) for block in design.blocks]
    assert design.n_rows == len(counted) and len(rows) > 1
    common = np.concatenate([part.common for part in rows])
    np.testing.assert_array_equal(common[:, 0], 1)
    want = expected[counted].reshape(len(counted), -1)
    np.testing.assert_allclose(common[:, design.columns["x"].ravel()], want, atol=1e-12)
    np.testing.assert_allclose(
        np.concatenate([part.own for part in rows]), own[counted][:, :, [1]], atol=1e-12
    )
    np.testing.assert_array_equal(np.concatenate([part.spikes for part in rows]), y[counted][:, [1]])


def test_epochs_are_as_trials_with_zeros_between_them():
    parts = [trains(n_steps, 2, seed) for seed, n_steps in enumerate((700, 40, 300))]
    gap = np.ones((5, 2), dtype=bool)  # what happened between the epochs has no effect
    whole = np.concatenate([piece for part in parts for piece in (part, gap)])
    epochs = [(0, 700), (705, 745), (750, 1050)]
    silence = np.zeros((BASIS.window, 2), dtype=bool)
    padded = np.concatenate([piece for part in parts for piece in (silence, part)])
    mask = np.concatenate([np.repeat([False, True], [len(silence), len(part)]) for part in parts])
    kernels = {"coupling": BASIS}

    def fit(y, *args, **kwds):
        return fit_quietly(y, *args, connect={"coupling": "i != j"}, **kwds)

    want = fit(padded, {"coupling": padded}, kernels, OTHER, mask=mask)
    got = fit(whole, {"coupling": whole}, kernels, OTHER, epochs=epochs[::-1])
    np.testing.assert_allclose(weights_of(got), weights_of(want), atol=1e-8)
    # A mask within epochs, and times
    late = np.arange(len(whole)) >= 100
    got = fit(whole, {"coupling": whole}, kernels, OTHER, epochs=epochs, mask=late)
    mask[BASIS.window : BASIS.window + 100] = False
    want = fit(padded, {"coupling": padded}, kernels, OTHER, mask=mask)
    np.testing.assert_allclose(weights_of(got), weights_of(want), atol=1e-8)
    recording = Recording.from_trains(whole, 2 * ms, t_start=100 * ms)
    times = [(100 * ms + 2 * start * ms, 100 * ms + 2 * stop * ms) for start, stop in epochs]
    got = fit(recording, {"coupling": recording}, kernels, OTHER, epochs=times, mask=late)
    np.testing.assert_allclose(weights_of(got), weights_of(want), atol=1e-8)
    with pytest.raises(ValueError, match=r"^epochs\[0\] must begin and end with a step of 2\. ms"):
        fit(recording, {"coupling": recording}, kernels, epochs=[(101 * ms, 200 * ms)])
    with pytest.raises(ValueError, match=r"^epochs\[0\] has times, so dt must be given"):
        fit(whole, {"coupling": whole}, kernels, epochs=[(1 * ms, 2 * ms)])


def test_data_may_be_of_any_kind(tmp_path):
    """Types, memory-mapped arrays, data sets in files, and times of events."""
    y = trains(3000, 3)
    kernels = {"coupling": BASIS}
    want = fit(y, {"coupling": y}, kernels, BASIS)
    path = tmp_path / "y.npy"
    np.save(path, y.astype(np.uint8))
    mapped = np.load(path, mmap_mode="r")
    recording = Recording.from_trains(y, 1 * ms)
    forms = [mapped, y.astype(np.int64), y.astype(np.float32), np.asfortranarray(y), recording]
    for form in forms:
        got = fit(form, {"coupling": form}, kernels, BASIS)
        np.testing.assert_array_equal(weights_of(got), weights_of(want))
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "y.h5", "w") as file:
        stored = file.create_dataset("y", data=y.astype(np.uint8), chunks=(500, 3))
        got = fit(stored, {"coupling": stored}, kernels, BASIS)
    np.testing.assert_array_equal(weights_of(got), weights_of(want))


def test_memory_does_not_grow_with_the_recording(tmp_path):
    """Of a memory-mapped file, a small part is in memory."""
    used = []
    for n_steps in (100_000, 400_000):
        path = tmp_path / f"{n_steps}.npy"
        np.save(path, trains(n_steps, 4).astype(np.uint8))
        y = np.load(path, mmap_mode="r")
        tracemalloc.start()
        fit(y, {"coupling": y}, {"coupling": BASIS}, tol=1e-3)
        used.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert used[1] < 1.3 * used[0] < 8 * 13 * 400_000


@pytest.mark.exhaustive
def test_more_than_two_thousand_parameters_reach_the_maximum():
    """The gradient by sums over lags, at the end of the fit."""
    rng = np.random.default_rng(0)
    n_steps, n_source = 40_000, 700
    x = rng.random((n_steps, n_source)) < 0.05
    true = glm.GLMPopulation([-2.0], BASIS, 0.3 * rng.normal(size=(n_source, 1, 3)))
    y = rng.random((n_steps, 1)) < true.firing_probability(x)
    fitted = fit(y, x, BASIS)
    residual = (y - fitted.firing_probability(x))[:, 0]
    by_lag = [x[:-lag].T @ residual[lag:] for lag in range(1, BASIS.window + 1)]
    gradient = np.append(np.stack(by_lag, axis=1) @ BASIS.matrix, residual.sum())
    assert gradient.size == 2101 and fitted.fit_.status == ["converged"]
    # Within 1e-8 standard errors of the maximum, no entry is above 1e-8 times the root of its
    # information, which is at most a quarter of the squared column.
    largest = max(1.0, BASIS.matrix.sum(axis=0).max())
    bound = 1e-8 * largest * np.sqrt(n_steps / 4)
    assert np.abs(gradient).max() <= bound and fitted.fit_.gradient[0] <= bound


def test_threads_do_not_change_the_result(monkeypatch):
    y = trains(30_000, 3)
    want = weights_of(fit(y, {"coupling": y}, {"coupling": BASIS}, BASIS))
    for n in (1, 3):
        monkeypatch.setattr(Workers, "most", n)
        got = weights_of(fit(y, {"coupling": y}, {"coupling": BASIS}, BASIS))
        np.testing.assert_array_equal(got, want)


def test_a_sample_for_the_steps_leads_to_the_same_maximum(monkeypatch):
    """As for recordings so long that the information comes from a part of them."""
    y = trains(20_000, 3, rate=0.05)
    for penalty in (dict(), dict(penalty="group", strength=5.0), dict(penalty="ridge", strength=5.0)):
        given = (y, {"coupling": y}, {"coupling": BASIS}, OTHER)
        penalty["connect"] = {"coupling": "i != j"}
        want = fit(*given, **penalty)
        with monkeypatch.context() as patch:
            patch.setattr(maximiser, "MOST_EXACT_COST", 0.0)
            patch.setattr(maximiser, "SAMPLE_COST", 1e-3)
            got = fit(*given, **penalty)
        assert got.fit_.status == want.fit_.status == ["converged"] * 3
        np.testing.assert_allclose(weights_of(got), weights_of(want), atol=1e-6)
        np.testing.assert_allclose(got.fit_.log_likelihood, want.fit_.log_likelihood, rtol=1e-10)
        assert got.fit_.distance.max() < 1e-8


def test_sources_that_the_sample_misses():
    """A source with three spikes, and one that is always silent."""
    y = trains(40_000, 8, rate=0.02)
    y[:, 5] = y[:, 6] = False
    y[[100, 20_000, 30_001], 5] = True
    y[::4001, 6] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the effects of three spikes may be endless
        fitted = glm.fit_population(y, {"coupling": y}, {"coupling": BASIS}, penalty=1e-2)
    assert set(fitted.fit_.status) == {"converged"}
    assert np.abs(weights_of(fitted)).max() < 30


@pytest.mark.exhaustive
def test_processes_share_the_neurons():
    y = trains(2000, 5)
    want = weights_of(fit(y, {"coupling": y}, {"coupling": BASIS}, BASIS))
    got = fit(y, {"coupling": y}, {"coupling": BASIS}, BASIS, n_jobs=2)
    np.testing.assert_allclose(weights_of(got), want, atol=1e-8)
    assert got.fit_.status == ["converged"] * 5
    chosen = [
        glm.select_strength(
            y, y, BASIS, penalty="ridge", strengths=[1.0, 10.0], n_folds=2, n_jobs=n_jobs
        ).scores
        for n_jobs in (1, 2)
    ]
    np.testing.assert_allclose(*chosen, rtol=1e-9)


def test_a_cluster_shares_the_neurons():
    distributed = pytest.importorskip("distributed", reason="Dask's distributed is not installed")
    y = trains(2000, 4)
    want = weights_of(fit(y, {"coupling": y}, {"coupling": BASIS}))
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    )
    with cluster, distributed.Client(cluster) as client, joblib.parallel_config(backend="dask"):
        got = fit(y, {"coupling": y}, {"coupling": BASIS})
        worked = client.run(lambda: "glmbrian.population.maximiser" in sys.modules)
    assert list(worked.values()) == [True, True]
    np.testing.assert_allclose(weights_of(got), want, atol=1e-8)


def test_interrupt_gives_back_the_best_so_far(monkeypatch):
    y = trains(30_000, 3)
    given = (y, {"coupling": y}, {"coupling": BASIS}, BASIS)
    best = glm.fit_population(*given)
    real_read, passes = ArraySeries.read, []

    def read(self, start, stop):
        passes.append(start)
        if passes.count(0) > 9 and threading.current_thread() is threading.main_thread():
            raise KeyboardInterrupt
        return real_read(self, start, stop)

    monkeypatch.setattr(Workers, "most", 1)
    monkeypatch.setattr(ArraySeries, "read", read)
    with pytest.warns(RuntimeWarning, match=r"^the fit was interrupted: the neurons \[0, 1, 2\]"):
        stopped = glm.fit_population(*given)
    monkeypatch.undo()
    assert stopped.fit_.status == ["interrupted"] * 3
    rate = y.mean(axis=0)
    constant = (y * np.log(rate) + (1 - y) * np.log(1 - rate)).sum()
    got = stopped.log_likelihood(y, given[1])
    assert constant + 1 < got < best.log_likelihood(y, given[1])


def test_progress_has_the_remaining_time(capsys, monkeypatch):
    y = trains(3000, 2)
    real_read = ArraySeries.read

    def slow_read(self, start, stop):
        time.sleep(0.15)  # a fit of less than a second shows nothing
        return real_read(self, start, stop)

    monkeypatch.setattr(ArraySeries, "read", slow_read)
    glm.fit_population(y, {"coupling": y}, {"coupling": BASIS}, BASIS)
    assert capsys.readouterr().err == ""
    glm.fit_population(y, {"coupling": y}, {"coupling": BASIS}, BASIS, verbose=True)
    shown = capsys.readouterr().err
    assert "fitting" in shown and "%" in shown and "<" in shown


def test_own_train_through_another_basis_than_the_coupling():
    """Feedback columns of their own, against the same columns as an input of each neuron."""
    y = trains(3000, 3)
    inputs, kernels, apart = {"coupling": y}, {"coupling": BASIS}, {"coupling": "i != j"}
    fitted = fit(y, inputs, kernels, OTHER, connect=apart)
    for i in range(3):
        alone = fit(
            y[:, [i]],
            {"coupling": np.delete(y, i, axis=1), "own": y[:, [i]]},
            {"coupling": BASIS, "own": OTHER},
        )
        np.testing.assert_allclose(fitted.feedback_weights[i], alone.weights["own"][0, 0], atol=1e-7)
        others = np.delete(fitted.weights["coupling"][:, i], i, axis=0)
        np.testing.assert_allclose(others, alone.weights["coupling"][:, 0], atol=1e-7)
