"""Kernels without bound, and directions that the data leave open, are found at any tolerance and named."""

import pickle
import warnings

import numpy as np
import pytest
from conftest import EXHAUSTIVE
from scipy.optimize import linprog

import glmbrian as glm


def columns(x, basis):
    """The columns of one kernel by hand, source by source."""
    past = np.concatenate([np.zeros((basis.window, x.shape[1])), x])
    lagged = [past[basis.window - lag :][: len(x)] for lag in range(1, basis.window + 1)]
    return np.einsum("lts,lk->tsk", np.array(lagged), basis.matrix).reshape(len(x), -1)


def is_separated(X, spikes):
    """Whether some direction moves no step the wrong way and some the right way: a linear program."""
    rows = np.unique((np.where(spikes, 1.0, -1.0)[:, np.newaxis] * X).round(12), axis=0)
    bounds = [(-1e4, 1e4)] * X.shape[1]
    limits = np.concatenate([np.zeros(len(rows)), np.ones(len(rows))])
    result = linprog(-rows.sum(axis=0), np.vstack([-rows, rows]), limits, bounds=bounds)
    return -result.fun > 1e-4


def fit_with_warnings(*args, **kwds):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        return glm.fit_population(*args, **kwds), [str(one.message) for one in caught]


N_FITS = 120 if EXHAUSTIVE else 30


@pytest.mark.parametrize("tol", [1e-8, 1e-4, 1e-2])
@pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])
def test_separation_is_what_a_linear_program_over_all_steps_finds(tol, activation):
    """810 small fits (nightly 3,240), from data without a maximum to ordinary ones."""
    rng = np.random.default_rng(3)
    found = []
    for rate, is_continuous in (0.02, False), (0.3, False), (0.1, True):
        x = rng.normal(size=(300, 2)) if is_continuous else (rng.random((300, 2)) < 0.1).astype(float)
        y = rng.random((300, N_FITS)) < rate * np.linspace(0.2, 1, N_FITS)
        y[0] = True
        y[1:, ::3] &= ~(x[:-1, :1] > 0.5)
        basis = glm.RaisedCosineBasis(2, 5)
        fit, said = fit_with_warnings(y, x, basis, activation=activation, tol=tol)
        X = np.column_stack([np.ones(300), columns(x, basis)])
        want = [is_separated(X, y[:, i]) for i in range(N_FITS)]
        assert [status == "separated" for status in fit.fit_.status] == want
        assert any("no finite maximum" in text for text in said) == any(want)
        found += want
    assert 0.2 < np.mean(found) < 0.8


@pytest.mark.parametrize("tol", [1e-8, 1e-4])
def test_lags_without_bound_are_those_without_a_coincidence(tol):
    """More parameters than are searched together, so each pair is searched on its own."""
    rng = np.random.default_rng(0)
    y = rng.random((3000, 14)) < 0.04
    basis = glm.IndicatorBasis(3)
    fit, said = fit_with_warnings(
        y, {"coupling": y}, {"coupling": basis}, connect={"coupling": "i != j"}, tol=tol
    )
    lagged = np.array([y[3 - lag : len(y) - lag].T.astype(float) @ y[3:] for lag in (1, 2, 3)])
    want = (lagged == 0).transpose(1, 2, 0) & ~np.eye(14, dtype=bool)[:, :, np.newaxis]
    assert 5 < want.any(axis=2).sum() < 60
    np.testing.assert_array_equal(fit.fit_.unbounded["coupling"], want)
    source, neuron = np.argwhere(want.any(axis=2))[0]
    assert f"'coupling' from source {source} to neuron {neuron}" in said[0]
    assert {i for i in range(14) if fit.fit_.status[i] == "separated"} == set(
        np.flatnonzero(want.any(axis=(0, 2)))
    )


def test_a_direction_may_need_several_kernels_and_the_bias():
    """A spike comes exactly when the difference of two inputs exceeds 1, in most steps."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(500, 2))
    y = np.roll(x[:, :1] - x[:, 1:] > 1, 1, axis=0)
    fit, said = fit_with_warnings(y, x, glm.IndicatorBasis(1), mask=np.arange(500) > 0, tol=1e-4)
    assert fit.fit_.status == ["separated"] and fit.fit_.unbounded["stimulus"].all()
    y[10] = ~y[10]  # is enough
    fit, said = fit_with_warnings(y, x, glm.IndicatorBasis(1), mask=np.arange(500) > 0, tol=1e-4)
    assert fit.fit_.status == ["converged"] and not fit.fit_.unbounded and not said


def refractory(n_steps=8000):
    rng, y, last = np.random.default_rng(0), np.zeros((n_steps, 1)), -99
    for t in range(n_steps):
        if t - last > 4 and rng.random() < 0.1:
            y[t], last = 1, t
    return y


def test_a_penalty_bounds_what_it_penalises_and_the_advice_keeps_the_refractory_period():
    y = refractory()
    basis = glm.IndicatorBasis(8)
    fit, said = fit_with_warnings(y, feedback_basis=basis)
    assert fit.fit_.unbounded["feedback"].tolist() == [[True] * 4 + [False] * 4]
    assert "the feedback of neuron 0" in said[0] and "penalise_feedback=False" in said[0]
    fit, said = fit_with_warnings(y, feedback_basis=basis, penalty=1.0)
    assert fit.fit_.status == ["converged"] and not said
    x = np.random.default_rng(1).random((len(y), 1)) < 0.1
    for kernels in {"stimulus": basis}, {"coupling": basis}:
        inputs = {"stimulus": x, "coupling": np.hstack([y, x])}
        fit, _ = fit_with_warnings(y, inputs, kernels, basis, penalty=1.0, penalise_feedback=False)
        assert fit.fit_.status == ["separated"]
        assert fit.fit_.unbounded["feedback"].tolist() == [[True] * 4 + [False] * 4]
        assert not any(fit.fit_.unbounded[name].any() for name in kernels)
    again = pickle.loads(pickle.dumps(fit))
    assert again.fit_.unbounded["feedback"].any()


# Directions without information


def slow(x, highest):
    """Noise without frequencies above a fraction of half the sampling rate."""
    spectrum = np.fft.rfft(x, axis=0)
    spectrum[int(highest * len(spectrum)) :] = 0
    filtered = np.fft.irfft(spectrum, len(x), axis=0)
    return filtered / filtered.std()


def test_combinations_that_a_slow_stimulus_leaves_open_are_named():
    """A fit to it is 10 bits a spike and more below a constant rate for a fast one."""
    rng = np.random.default_rng(0)
    basis = glm.RaisedCosineBasis(6, 12)
    true = glm.GLMPopulation([-2.0], basis, 0.4 * rng.normal(size=(1, 1, 6)))
    x = rng.normal(size=(20_000, 1))
    slowly, fast = slow(x, 0.1), slow(x, 0.8)
    fit, said = fit_with_warnings(rng.random(x.shape) < true.firing_probability(slowly), slowly, basis)
    (open_,) = fit.fit_.undetermined
    assert open_.sources == [("stimulus", 0)] and open_.neurons == [0] and not open_.is_silent
    assert 0 < open_.n_combinations < open_.n_functions == 6
    text = f"of the 6 functions of kernel 'stimulus' from source 0, {open_.n_combinations} combination"
    assert len(said) == 1 and text in said[0]
    assert fit.fit_.undetermined_lags["stimulus"].any()
    y = rng.random(x.shape) < true.firing_probability(fast)
    assert fit.score(y, fast)[0] < -10 < 0 < true.score(y, fast)[0]
    fit, said = fit_with_warnings(y, fast, basis)
    assert not fit.fit_.undetermined and not said
    held, said = fit_with_warnings(y, slowly, basis, penalty=1.0)
    assert not held.fit_.undetermined and not said


def test_kernels_that_can_replace_each_other_and_constant_inputs():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(2000, 2))
    y = rng.random((2000, 1)) < 0.2
    inputs = {"a": x, "b": np.hstack([x[:, :1], np.ones((2000, 1))])}
    basis = glm.IndicatorBasis(2)
    mask = np.arange(2000) > 1
    fit, said = fit_with_warnings(y, inputs, {"a": basis, "b": basis}, mask=mask)
    constant, both = fit.fit_.undetermined
    assert constant.sources == [("b", 1)] and constant.n_combinations == 2
    assert both.sources == [("a", 0), ("b", 0)] and both.n_combinations == 2
    assert "kernel 'a' from source 0 and kernel 'b' from source 0" in said[0]
    # A source that is silent has weights of 0, which do no harm.
    fit, said = fit_with_warnings(y, x * [1, 0], basis, mask=mask)
    assert [(each.sources, each.is_silent) for each in fit.fit_.undetermined] == [
        ([("stimulus", 1)], True)
    ]
    assert not said


def test_what_varies_in_a_few_late_steps_is_determined_and_what_varies_nowhere_is_not():
    """Long recordings are looked at in some of their blocks first."""
    rng = np.random.default_rng(5)
    x = np.repeat(rng.standard_normal(15_000), 20)[:, np.newaxis]  # fast only from one step to the next
    still = np.sin(np.arange(300_000) / 3e4)[:, np.newaxis]
    late = still.copy()
    late[280_000:] += rng.standard_normal((20_000, 1))
    y = (rng.random((300_000, 1)) < 0.1).astype(np.uint8)
    for stimulus, is_named in (x, False), (late, False), (still, True):
        fit, said = fit_with_warnings(y, stimulus, glm.IndicatorBasis(2), tol=1e-4)
        assert bool(fit.fit_.undetermined) == is_named == any("do not determine" in one for one in said)
