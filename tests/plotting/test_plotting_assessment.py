"""Pictures of how good and how sure a fit is."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
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
