"""Pictures of how good and how sure a fit is."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from brian2 import ms
from scipy import stats

import glmbrian as glm
from glmbrian import plotting


@pytest.fixture(autouse=True)
def quiet_pyplot(restore_brian):
    plt.close("all")
    yield
    plt.close("all")


def lines(ax):
    return [line for line in ax.lines if not line.get_label().startswith("_")]


def largest_distance(values):
    return stats.kstest(values, "uniform").statistic


def test_ks_plot_of_one_neuron_leaves_the_band_where_the_test_rejects():
    rng = np.random.default_rng(0)
    for values in rng.random(80), rng.random(80) ** 2:
        ax = plotting.ks_plot(values)
        (line,) = lines(ax)
        x, y = line.get_data()
        assert np.abs(y - x).max() == pytest.approx(largest_distance(values))
        offsets = sorted(own.get_ydata()[0] for own in ax.lines if own.get_label() == "_band")
        band = stats.kstwo.ppf(0.95, 80)
        assert offsets == pytest.approx([-band, band])
        plotting.ks_plot(values.tolist(), ax=ax)


def test_ks_plot_of_several_neurons_is_in_units_of_their_bands():
    rng = np.random.default_rng(0)
    times = [rng.random(50), np.empty(0), rng.random(500) ** 1.3]
    ax = plotting.ks_plot(times)
    assert [line.get_label() for line in lines(ax)] == ["0", "2"]
    for line, values in zip(lines(ax), (times[0], times[2])):
        want = largest_distance(values) / stats.kstwo.ppf(0.95, values.size)
        assert np.abs(line.get_ydata()).max() == pytest.approx(want)
    assert ax.get_legend().get_title().get_text() == "neuron"


def test_ks_plot_refuses_what_are_no_rescaled_times():
    for times, message in [
        ([1.5], r"times\[0\] must hold numbers from 0 to 1"),
        ([], "at least one neuron"),
        ([np.empty(0)], "at least one neuron"),
        ([np.array([np.nan])], "must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            plotting.ks_plot(times)
    with pytest.raises(TypeError, match="times must be what rescaled_times returns"):
        plotting.ks_plot(3)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    y = rng.random((2000, 3)) < 0.3
    y[1:, 1] |= y[:-1, 0] & (rng.random(1999) < 0.6)
    basis = glm.RaisedCosineBasis(2, 5)
    fit = glm.fit_population(y, {"coupling": y}, {"coupling": basis}, basis)
    return fit, y


def bands(ax):
    """The lower and upper edges of each band, at each lag."""
    found = []
    for band in ax.collections:
        x, y = band.get_paths()[0].vertices.T
        found.append([[y[x == lag].min(), y[x == lag].max()] for lag in np.unique(x)])
    return np.array(found)


def test_kernels_have_bands_once_standard_errors_are_known(fitted):
    fit, y = fitted
    plain = glm.GLMPopulation(
        fit.bias, fit.kernels, fit.weights, fit.feedback_basis, fit.feedback_weights
    )
    assert not plotting.plot_kernels(plain, 1).collections
    errors = plain.standard_errors(y, {"coupling": y})
    # No band for the neuron itself, whose coupling with itself is left to the feedback.
    order = [0, 2]
    got = bands(plotting.plot_kernels(plain, 1))
    values, size = plain.kernel("coupling")[order, 1], 1.96 * errors.kernel("coupling")[order, 1]
    np.testing.assert_allclose(got, np.stack([values - size, values + size], axis=2))
    got = bands(plotting.plot_feedback_kernels(plain))
    values, size = plain.feedback_kernels(), 1.96 * errors.feedback_kernels()
    np.testing.assert_allclose(got, np.stack([values - size, values + size], axis=2))


def test_connectivity_is_an_image_with_dots_on_what_is_significant(fitted):
    fit, y = fitted
    fresh = glm.GLMPopulation(
        fit.bias, fit.kernels, fit.weights, fit.feedback_basis, fit.feedback_weights
    )
    ax = plotting.plot_connectivity(fresh)
    assert not ax.lines
    np.testing.assert_array_equal(ax.images[0].get_array(), fresh.kernel("coupling").sum(axis=2))
    fresh.standard_errors(y, {"coupling": y})
    ax = plotting.plot_connectivity(fresh, measure="norm", level=1e-4, limit=2.0)
    targets, sources = ax.lines[0].get_data()
    assert (list(sources), list(targets)) == ([0], [1])
    assert ax.images[0].get_clim() == (-2.0, 2.0)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("target neuron", "source neuron")


def test_connectivity_of_other_things(fitted):
    fit, _ = fitted
    with pytest.raises(TypeError, match="population must be a GLMPopulation"):
        plotting.plot_connectivity(np.ones((2, 2)))
    for options, message in [
        ({"kernel": "x"}, "kernel must be one of 'coupling'"),
        ({"measure": "x"}, "measure must be one of 'sum', 'norm'"),
        ({"level": 2.0}, "level must be"),
        ({"limit": 0.0}, "limit must be"),
    ]:
        with pytest.raises(ValueError, match=message):
            plotting.plot_connectivity(fit, **options)


# What the data leave open


def refractory():
    rng, y, last = np.random.default_rng(0), np.zeros((6000, 2)), -99
    for t in range(len(y)):
        if t - last > 5 and rng.random() < 0.1:
            y[t, 0], last = 1, t
    y[:, 1] = rng.random(len(y)) < 0.1
    return y


def test_lags_without_bound_do_not_set_the_scale_and_are_named():
    y = refractory()
    with pytest.warns(RuntimeWarning, match="feedback of neuron 0"):
        fit = glm.fit_population(y, feedback_basis=glm.RaisedCosineBasis(6, 30), dt=0.5 * ms)
    lags = fit.fit_.unbounded["feedback"]
    assert lags[0, :3].all() and not lags[0, 10:].any() and not lags[1].any()
    kernels = fit.feedback_kernels()
    assert np.abs(kernels).max() > 20
    ax = plotting.plot_feedback_kernels(fit)
    low, high = ax.get_ylim()
    kept = kernels[~lags]
    assert low < kept.min() and kept.max() < high and high - low < 3 * np.ptp(np.append(kept, 0.0))
    (text,) = ax.texts
    assert text.get_text() == f"0: first {0.5 * lags[0].sum():g} ms unbounded"
    # A kernel that is unbounded everywhere
    with pytest.warns(RuntimeWarning, match="grow without bound"):
        fit = glm.fit_population(y, feedback_basis=glm.IndicatorBasis(4))
    one = glm.GLMPopulation(fit.bias[:1], {}, {}, fit.feedback_basis, fit.feedback_weights[:1])
    plain = plotting.plot_feedback_kernels(one)
    assert plain.get_ylim()[0] < fit.feedback_kernels()[0].min() and not plain.texts
    ax = plotting.plot_feedback_kernels(fit)
    assert ax.texts[0].get_text() == "0: all 4 steps unbounded" and ax.get_ylim()[0] > -5


def test_kernels_that_the_stimulus_leaves_open_are_named():
    rng = np.random.default_rng(0)
    x = np.convolve(rng.normal(size=5000), np.hanning(15), "same")[:, np.newaxis]
    y = rng.random((5000, 1)) < 0.2
    with pytest.warns(RuntimeWarning, match="do not determine all weights"):
        fit = glm.fit_population(y, x, glm.RaisedCosineBasis(5, 10))
    ax = plotting.plot_kernels(fit)
    assert "not determined by the data" in ax.texts[0].get_text()
    assert ax.get_title() == "neuron 0, stimulus"
    assert ax.get_legend().get_title().get_text() == "stimulus"


def test_one_runaway_pair_does_not_set_the_scale():
    rng = np.random.default_rng(0)
    kernels = 0.1 * rng.normal(size=(8, 8, 4))
    kernels[range(8), range(8)] = 0
    kernels[1, 2], kernels[3, 4], kernels[5, 6] = 0.5, -800.0, [1.5, 1.5, -1.5, -1.5]
    population = glm.GLMPopulation.from_kernels(np.zeros(8), {"coupling": kernels})
    ax = plotting.plot_connectivity(population)
    assert ax.images[0].get_clim() == (-2.0, 2.0)
    absent = ax.images[1].get_array()
    np.testing.assert_array_equal(~np.ma.getmaskarray(absent), np.eye(8, dtype=bool))
    (signs,) = ax.collections
    assert signs.get_label() == "excites and inhibits" and len(signs.get_offsets()) == 1
    np.testing.assert_allclose(signs.get_offsets()[0], [6, 5], atol=0.4)
    assert plotting.plot_connectivity(population, measure="peak").images[0].get_array()[5, 6] == 1.5


def test_connectivity_says_what_a_pair_means_and_marks_what_is_unbounded():
    rng = np.random.default_rng(0)
    y = rng.random((4000, 2)) < 0.08
    y[1:, 1] &= ~y[:-1, 0]
    with pytest.warns(RuntimeWarning, match="from source 0 to neuron 1"):
        fit = glm.fit_population(
            y, {"coupling": y}, {"coupling": glm.IndicatorBasis(2)}, connect={"coupling": "i != j"}
        )
    ax = plotting.plot_connectivity(fit)
    said = " ".join(text.get_text() for text in ax.get_legend().get_texts())
    assert "common input" in said and "likelihood-ratio" in said and "grows without bound" in said
    targets, sources = ax.lines[0].get_data()
    assert (list(sources), list(targets)) == ([0], [1])
    assert ax.images[0].get_clim()[1] < 2
    assert not plotting.plot_connectivity(fit, test="none").lines


def test_rasters_of_recordings_and_trains():
    y = (np.random.default_rng(0).random((60, 3)) < 0.2).astype(int)
    steps, units = np.nonzero(y)
    recording = glm.interop.Recording.from_trains(y, 2 * ms, t_start=10 * ms)
    for ax, times, label in [
        (plotting.plot_raster(recording), 10 + 2.0 * steps, "time [ms]"),
        (plotting.plot_raster(y, dt=2 * ms), 2.0 * steps, "time [ms]"),
        (plotting.plot_raster(y.tolist()), steps + 1.0, "time [steps]"),
        (plotting.plot_raster(y, n_steps=20), steps + 1.0, "time [steps]"),
    ]:
        got = sorted(zip(*ax.lines[0].get_data()))
        np.testing.assert_allclose(np.array(got), sorted(zip(times, units)), atol=2)
        assert ax.get_xlabel() == label and ax.get_ylabel() == "unit"
    assert len(ax.patches) == 1
    for spikes, options, error, says in [
        (recording, {"n_steps": 3}, TypeError, "n_steps is for"),
        (recording, {"dt": 1 * ms}, TypeError, "dt is for trains"),
        (2 * y, {}, ValueError, "spikes must hold only 0 and 1"),
        (y[0], {}, TypeError, "spikes must be a Trace"),
    ]:
        with pytest.raises(error, match=f"^{says}"):
            plotting.plot_raster(spikes, **options)
