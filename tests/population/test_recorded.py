"""Whatever judges a fit reads the same data as the fit: of any kind, in epochs, in blocks of steps."""

import tracemalloc
import warnings

import numpy as np
import pytest
from brian2 import ms
from scipy import stats

import glmbrian as glm
from glmbrian.interop import Recording

BASIS = glm.RaisedCosineBasis(3, 9)
OTHER = glm.CustomBasis(np.ones((12, 1)))
KERNELS, APART = {"coupling": BASIS}, {"coupling": "i != j"}


def bursts(n_steps, n=2, rate=0.02, seed=0):
    """Trains with bursts, whose fits run away."""
    y = np.random.default_rng(seed).random((n_steps, n)) < rate
    for start in range(50, n_steps, 2000):
        y[start : start + 40 : 2] = True
    return y


@pytest.fixture(scope="module")
def models():
    """A model without coupling, and a larger one that is not stable, at a step of 2 ms."""
    y = bursts(6000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        smaller = glm.fit_population(y, feedback_basis=OTHER, dt=2 * ms)
        larger = glm.fit_population(y, {"coupling": y}, KERNELS, OTHER, connect=APART, dt=2 * ms)
    assert not larger.is_stable()
    return smaller, larger


def parameters(population):
    parts = [population.bias, population.feedback_weights, *population.weights.values()]
    return np.concatenate([part.ravel() for part in parts])


def all_results(models, outputs, inputs, **data):
    """Everything that depends on recorded data, by the name of what computes it."""
    smaller, larger = models
    given = outputs, {"coupling": inputs}
    errors = larger.standard_errors(*given, **data)
    comparison = glm.compare({"smaller": smaller, "larger": larger}, *given, **data)
    ratio = glm.likelihood_ratio_test(smaller, smaller, *given, **data)
    times = larger.rescaled_times(*given, random_state=1, **data)
    ax = glm.plotting.ks_plot(times)
    drawn = [line.get_ydata() for line in ax.lines]
    ax.figure.clear()
    return {
        "log_likelihood": larger.log_likelihood(*given, **data),
        "log_likelihoods": larger.log_likelihoods(*given, **data),
        "score": larger.score(*given, **data),
        "rescaled_times": np.concatenate(times),
        "ks_test": larger.ks_test(*given, random_state=1, **data).statistic,
        "ks_plot": np.concatenate(drawn),
        "standard_errors": parameters(errors),
        "covariances": errors.covariances["coupling"],
        "compare": comparison.log_likelihood,
        "n_steps": comparison.n_steps,
        "likelihood_ratio_test": ratio.p_value,
        "stabilised": parameters(larger.stabilised(*given, **data)),
    }


def assert_same(got, want, **tolerance):
    for name, value in want.items():
        np.testing.assert_allclose(got[name], value, err_msg=name, **tolerance)


def test_data_may_be_of_any_kind(models, tmp_path):
    y = bursts(1500)
    epochs = [(0, 700), (750, 1500)]
    want = all_results(models, y, y, epochs=epochs)
    path = tmp_path / "y.npy"
    np.save(path, y.astype(np.uint8))
    mapped = np.load(path, mmap_mode="r")
    for form in mapped, y.astype(np.float32), y.tolist():
        assert_same(all_results(models, form, form, epochs=epochs), want, rtol=1e-12)
    recording = Recording.from_trains(y, 2 * ms, t_start=100 * ms)
    assert_same(all_results(models, recording, mapped, epochs=epochs), want, rtol=1e-12)
    times = [(100 * ms + 2 * start * ms, 100 * ms + 2 * stop * ms) for start, stop in epochs]
    assert_same(all_results(models, recording, recording, epochs=times), want, rtol=1e-12)
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    with h5py.File(tmp_path / "y.h5", "w") as file:
        stored = file.create_dataset("y", data=y.astype(np.uint8), chunks=(500, 2))
        assert_same(all_results(models, stored, stored, epochs=epochs), want, rtol=1e-12)


def test_epochs_are_as_trials_with_zeros_between_them(models):
    parts = [bursts(n_steps, seed=seed) for seed, n_steps in enumerate((700, 90, 1300))]
    gap = np.ones((5, 2), dtype=bool)  # what happened between the epochs has no effect
    whole = np.concatenate([piece for part in parts for piece in (part, gap)])
    epochs = [(0, 700), (705, 795), (800, 2100)]
    silence = np.zeros((12, 2), dtype=bool)
    padded = np.concatenate([piece for part in parts for piece in (silence, part)])
    mask = np.concatenate([np.repeat([False, True], [len(silence), len(part)]) for part in parts])
    want, got = (
        all_results(models, padded, padded, mask=mask),
        all_results(models, whole, whole, epochs=epochs[::-1]),
    )
    for drawn in "rescaled_times", "ks_test", "ks_plot":  # other draws in steps with other numbers
        del want[drawn]
    assert_same(got, want, rtol=1e-9, atol=1e-9)
    late = np.arange(len(whole)) >= 100  # a mask within epochs
    got = all_results(models, whole, whole, epochs=epochs, mask=late)
    mask[12:112] = False
    want = all_results(models, padded, padded, mask=mask)
    assert got["n_steps"] == want["n_steps"] == 1990
    np.testing.assert_allclose(got["log_likelihoods"], want["log_likelihoods"])


def test_true_models_pass_in_many_short_epochs():
    """Intervals that end with the epoch are long ones; without them, a true model would look false."""
    rng = np.random.default_rng(0)
    n_epochs, length, n = 150, 40, 60
    true = glm.GLMPopulation([-2.5] * n, {}, {}, glm.IndicatorBasis(2), [[-3.0, -1.0]] * n)
    y = np.zeros((n_epochs, length + 2, n), dtype=bool)
    for t in range(2, length + 2):
        u = -2.5 - 3.0 * y[:, t - 1] - y[:, t - 2]
        y[:, t] = rng.random((n_epochs, n)) < 1 / (1 + np.exp(-u))
    y = y[:, 2:].reshape(-1, n)
    epochs = [(start, start + length) for start in range(0, len(y), length)]
    times = true.rescaled_times(y, epochs=epochs, random_state=0)
    assert [own.size for own in times] == y.sum(axis=0).tolist()
    rejected = true.ks_test(y, epochs=epochs, random_state=0).rejected.sum()
    # Three expected; 11 or more have a probability of 2e-4.
    assert rejected < 11
    # What is left if each epoch begins anew is rejected nearly always.
    anew = [
        np.concatenate(parts)
        for parts in zip(*[true.rescaled_times(y[a:b], random_state=a) for a, b in epochs])
    ]
    assert np.mean([stats.kstest(own, "uniform").pvalue < 0.05 for own in anew]) > 0.5


def test_fits_in_epochs_have_standard_errors_and_can_be_stable():
    y = bursts(3000)
    y[1000:1100] = True  # not in the epochs
    given = (y, {"coupling": y}, KERNELS, OTHER)
    data = {"connect": APART, "epochs": [(0, 1000), (1100, 3000)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = glm.fit_population(*given, **data)
        stable = glm.fit_population(*given, **data, stable=True)
    want = fit.standard_errors(y, {"coupling": y}, epochs=data["epochs"])
    fit.known_standard_errors = None
    np.testing.assert_array_equal(parameters(fit.standard_errors_), parameters(want))
    counted = np.delete(y, slice(1000, 1100), axis=0)
    assert not fit.is_stable() and stable.is_stable().gain <= 0.7
    np.testing.assert_allclose(stable.fitted_rates, counted.mean(axis=0))
    np.testing.assert_allclose(fit.fitted_rates, counted.mean(axis=0))
    other = fit.stabilised(y, {"coupling": y}, epochs=data["epochs"])
    np.testing.assert_allclose(parameters(stable), parameters(other))


def test_memory_does_not_grow_with_the_recording(models, tmp_path):
    """Of a memory-mapped file, a small part is in memory; rescaled times are a number a spike."""
    smaller, larger = models
    basis = glm.RaisedCosineBasis(5, 12)
    history = glm.GLMPopulation([-4.0], {}, {}, basis, [[1.5] * 5])
    assert not history.is_stable()
    results = {
        "score": lambda y: larger.score(y, {"coupling": y}, epochs=[(5, len(y))]),
        "ks_test": lambda y: larger.ks_test(y, {"coupling": y}),
        "standard_errors": lambda y: larger.standard_errors(y, {"coupling": y}),
        "compare": lambda y: glm.compare({"a": smaller, "b": larger}, y, {"coupling": y}),
        "ratio": lambda y: glm.likelihood_ratio_test(smaller, smaller, y),
        "stabilised": lambda y: history.stabilised(y[:, :1]),
    }
    used = {name: [] for name in results}
    for n_steps in (20_000, 200_000):
        path = tmp_path / f"{n_steps}.npy"
        np.save(path, bursts(n_steps).astype(np.uint8))
        y = np.load(path, mmap_mode="r")
        for name, compute in results.items():
            tracemalloc.start()
            compute(y)
            used[name].append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    for name, (short, long) in used.items():
        assert long < 2.5 * short, name


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(epochs=[]), "epochs must be one or more pairs"),
        (dict(epochs=[(0, 4), (3, 9)]), r"epochs must not overlap, but epochs\[0\] ends"),
        (dict(epochs=[(0, 11)]), r"epochs\[0\] must begin at step 0 or later"),
        (dict(epochs=[(1 * ms, 4 * ms)]), r"epochs\[0\] has times, so dt must be given"),
        (
            dict(epochs=[(0, 5)], mask=np.arange(10) > 5),
            "mask must leave at least one step of the epochs",
        ),
    ],
)
def test_bad_epochs_are_named(change, says):
    y = np.tile([[0], [1]], (5, 1))
    model = glm.GLMPopulation([0.0], {}, {})
    for method in (
        model.log_likelihood,
        model.log_likelihoods,
        model.score,
        model.rescaled_times,
        model.ks_test,
        model.standard_errors,
        model.stabilised,
        lambda y, **data: glm.compare({"a": model}, y, **data),
        lambda y, **data: glm.likelihood_ratio_test(model, model, y, **data),
    ):
        with pytest.raises(ValueError, match=f"^{says}"):
            method(y, **change)
