"""How good and how sure a fit is: scores, rescaled times, standard errors, comparisons."""

import pickle
import warnings

import numpy as np
import pytest
from brian2 import ms
from scipy import stats
from sklearn.metrics import log_loss

import glmbrian as glm
from glmbrian.interop import Recording
from glmbrian.population import standard_errors
from glmbrian.population.design import design_of
from glmbrian.population.recorded import read

every_activation = pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])

BASIS = glm.RaisedCosineBasis(3, 8)
SHORT = glm.RaisedCosineBasis(2, 4)


def draw(population, x, seed):
    """Draw trains with the kernels "stimulus" and "coupling" and feedback, step by step."""
    rng = np.random.default_rng(seed)
    coupling = population.kernel("coupling")[:, :, ::-1]
    feedback = population.feedback_kernels()[:, ::-1]
    window, own = coupling.shape[2], feedback.shape[1]
    longest = max(window, own)
    fixed = population.bias + population.drive(x)
    y = np.zeros((longest + len(x), population.n))
    for t, u in enumerate(fixed):
        end = longest + t
        u = u + np.einsum("jl,jil->i", y[end - window : end].T, coupling)
        u = u + np.einsum("il,il->i", y[end - own : end].T, feedback)
        y[end] = rng.random(population.n) < population.activation.probability(u)
    return y[longest:].astype(np.uint8)


def make(activation="sigmoid", n_steps=20_000, seed=0):
    rng = np.random.default_rng(seed)
    coupling = 0.4 * rng.normal(size=(2, 2, 2))
    coupling[[0, 1], [0, 1]] = 0
    population = glm.GLMPopulation(
        [-1.0, -1.3],
        {"stimulus": BASIS, "coupling": SHORT},
        {"stimulus": 0.4 * rng.normal(size=(1, 2, 3)), "coupling": coupling},
        BASIS,
        np.array([[-2.0, -0.5, 0.2], [-1.0, 0.3, 0.0]]),
        activation,
    )
    x = rng.normal(size=(n_steps, 1))
    return population, x, draw(population, x, seed + 1)


@pytest.fixture(scope="module", params=["sigmoid", "probit", "cloglog"])
def recorded(request):
    return make(request.param)


@pytest.fixture(scope="module")
def fitted():
    """A fit, and its data; longer than a block."""
    population, x, y = make()
    inputs = {"stimulus": x, "coupling": y}
    fit = glm.fit_population(y, inputs, population.kernels, BASIS, connect={"coupling": "i != j"})
    return fit, inputs, y


def test_data_are_longer_than_a_block(recorded):
    population, x, y = recorded
    data = read([population.parameters], y, {"stimulus": x, "coupling": y})
    assert len(design_of(population.parameters, data).blocks) > 1


def test_log_likelihoods_and_score_are_those_of_the_firing_probabilities(recorded):
    population, x, y = recorded
    inputs = {"stimulus": x, "coupling": y}
    p = population.firing_probability(inputs, y)
    mask = np.random.default_rng(3).random(len(y)) < 0.4
    want = [-log_loss(y[mask, i], p[mask, i], normalize=False) for i in range(2)]
    np.testing.assert_allclose(population.log_likelihoods(y, inputs, mask), want, rtol=1e-9)
    assert population.log_likelihood(y, inputs, mask) == pytest.approx(sum(want), rel=1e-9)
    rate = np.array([0.2, 0.3])
    for baseline, used in (None, y[mask].mean(axis=0)), (rate, rate):
        constant = [
            -log_loss(y[mask, i], np.full(mask.sum(), used[i]), normalize=False) for i in range(2)
        ]
        bits = (np.array(want) - constant) / np.log(2) / y[mask].sum(axis=0)
        np.testing.assert_allclose(population.score(y, inputs, mask, baseline), bits, rtol=1e-9)


def test_score_of_trains_without_a_spike_or_without_silence():
    population = glm.GLMPopulation([0.0, 0.0], {}, {})
    score = population.score(np.array([[0, 1]] * 8))
    assert np.isnan(score[0])
    assert score[1] == pytest.approx(-1.0)  # one bit for each spike of probability 1/2
    with pytest.raises(ValueError, match="baseline"):
        population.score(np.array([[0, 1], [1, 1]]), baseline=[0.0, 1.0])
    with pytest.raises(ValueError, match=r"baseline must have the shape \(2,\)"):
        population.score(np.array([[0, 1], [1, 1]]), baseline=0.5)


def test_data_may_be_recordings_memory_maps_and_any_numbers(tmp_path):
    population = glm.GLMPopulation.from_kernels([-1.0], {"coupling": [[[0.5]]]}, dt=1 * ms)
    y = np.random.default_rng(0).random((3000, 1)) < 0.3
    want = population.score(y, y)
    mapped = np.memmap(tmp_path / "y", dtype=np.uint8, mode="w+", shape=y.shape)
    mapped[:] = y
    recording = Recording.from_trains(y, 1 * ms)
    for same in mapped, y.astype(np.float32), recording:
        np.testing.assert_allclose(population.score(same, same), want)


def test_wrong_data_are_found_in_any_block():
    population = glm.GLMPopulation.from_kernels([-1.0], {"coupling": [[[0.5]]]})
    y = np.zeros((100_000, 1))
    y[5] = 1
    x = y.copy()
    x[-1] = np.nan
    methods = (
        population.score,
        population.ks_test,
        population.standard_errors,
        population.rescaled_times,
    )
    for method in methods:
        with pytest.raises(ValueError, match=r"inputs\['coupling'\] must be finite"):
            method(y, x)
        with pytest.raises(ValueError, match="outputs must hold only 0 and 1"):
            method(2 * y, y)
        with pytest.raises(ValueError, match="outputs must have the shape"):
            method(y[1:], y)
        with pytest.raises(TypeError, match="outputs must be an array"):
            method(None, y)


# ---------------------------------------------------------------------- rescaled times


def rescaled_by_definition(p, y, r):
    """One neuron: `r` has the draw for each spike."""
    times, total, spikes = [], 0.0, 0
    for probability, spike in zip(p, y):
        if spike:
            times.append(1 - np.exp(-total) * (1 - r[spikes] * probability))
            total, spikes = 0.0, spikes + 1
        else:
            total -= np.log(1 - probability)
    return np.array(times)


def test_rescaled_times_are_those_of_the_definition(recorded):
    population, x, y = recorded
    inputs = {"stimulus": x, "coupling": y}
    p = population.firing_probability(inputs, y)
    mask = np.random.default_rng(4).random(len(y)) < 0.7
    got = population.rescaled_times(y, inputs, mask, random_state=5)
    for i in range(2):
        counted = y[mask, i]
        lowest, highest = (
            rescaled_by_definition(p[mask, i], counted, np.full(counted.sum(), r)) for r in (0.0, 1.0)
        )
        assert got[i].shape == lowest.shape
        # The draws cannot be seen, but must be uniform in between.
        drawn = (got[i] - lowest) / (highest - lowest)
        assert drawn.min() >= -1e-9 and drawn.max() <= 1 + 1e-9
        assert stats.kstest(drawn, "uniform").pvalue > 1e-3
    again = population.rescaled_times(y, inputs, mask, random_state=5)
    other = population.rescaled_times(y, inputs, mask, random_state=6)
    assert all(np.array_equal(a, b) for a, b in zip(got, again))
    assert not np.array_equal(got[0], other[0])


def test_rescaled_times_leave_the_global_generator_alone():
    y = np.ones((5, 1))
    np.random.seed(1)
    glm.GLMPopulation([0.0], {}, {}).ks_test(y, random_state=3)
    after = np.random.random()
    np.random.seed(1)
    assert after == np.random.random()


def test_ks_test_is_scipys_and_its_band_holds_95_percent():
    population = glm.GLMPopulation([-1.0, -50.0], {}, {})
    y = np.zeros((500, 2))
    y[:, 0] = np.random.default_rng(0).random(500) < population.firing_probability(None, y)[:, 0]
    times = population.rescaled_times(y, random_state=1)
    test = population.ks_test(y, random_state=1)
    want = stats.kstest(times[0], "uniform")
    assert test.statistic[0] == want.statistic and test.p_value[0] == want.pvalue
    assert test.band[0] == pytest.approx(1.358 / np.sqrt(times[0].size), rel=0.03)
    assert stats.kstwo.sf(test.band[0], times[0].size) == pytest.approx(0.05)
    assert test.n_intervals.tolist() == [times[0].size, 0]
    assert np.isnan([test.statistic[1], test.band[1], test.p_value[1]]).all()
    assert test.rejected.tolist() == [want.pvalue < 0.05, False]


def test_true_models_pass_and_models_without_history_do_not():
    """Steps so long that without the draws within steps all would be rejected."""
    population = glm.GLMPopulation([0.3], {}, {}, glm.IndicatorBasis(2), [[-2.0, -1.0]])
    rejected = {"true": 0, "without history": 0, "without draws": 0}
    n = 120
    rng = np.random.default_rng(0)
    trains = np.zeros((602, n))
    for t in range(2, 602):
        u = 0.3 - 2 * trains[t - 1] - trains[t - 2]
        trains[t] = rng.random(n) < 1 / (1 + np.exp(-u))
    for seed in range(n):
        y = trains[2:, [seed]]
        rejected["true"] += population.ks_test(y, random_state=seed).rejected[0]
        best = glm.GLMPopulation([np.log(y.mean() / (1 - y.mean()))], {}, {})
        rejected["without history"] += best.ks_test(y, random_state=seed).rejected[0]
        p = population.firing_probability(None, y)[:, 0]
        undrawn = rescaled_by_definition(p, y[:, 0], np.ones(int(y.sum())))
        rejected["without draws"] += stats.kstest(undrawn, "uniform").pvalue < 0.05
    # Six expected; 17 or more have a probability of 1e-4.
    assert rejected["true"] < 17
    assert rejected["without history"] > 0.8 * n and rejected["without draws"] > 0.8 * n


# ---------------------------------------------------------------------- standard errors


def information_of(u, design, activation):
    """Fisher information from derivatives of g, not from those of its logarithms."""
    g = activation.probability
    slope = (g(u + 1e-4) - g(u - 1e-4)) / 2e-4
    return (design * (slope**2 / (g(u) * (1 - g(u))))[:, np.newaxis]).T @ design


@every_activation
def test_standard_errors_are_those_of_the_information(activation):
    population, x, y = make(activation, n_steps=9000)
    inputs = {"stimulus": x, "coupling": y}
    mask = np.arange(len(y)) >= 8
    errors = population.standard_errors(y, inputs, mask)
    assert population.standard_errors_ is errors
    u = population.membrane_potential(inputs, y)

    def filtered(series, basis):
        past = np.concatenate([np.zeros(basis.window), series])
        lagged = [past[basis.window - lag :][: len(series)] for lag in range(1, basis.window + 1)]
        return np.stack(lagged, axis=1) @ basis.matrix

    for i in range(2):
        other = 1 - i
        parts = [
            np.ones((len(y), 1)),
            filtered(x[:, 0], BASIS),
            filtered(y[:, other], SHORT),
            filtered(y[:, i], BASIS),
        ]
        design = np.hstack(parts)[mask]
        covariance = np.linalg.inv(information_of(u[mask, i], design, population.activation))
        want = np.sqrt(np.diag(covariance))
        assert errors.bias[i] == pytest.approx(want[0], rel=1e-5)
        np.testing.assert_allclose(errors.weights["stimulus"][0, i], want[1:4], rtol=1e-5)
        np.testing.assert_allclose(errors.weights["coupling"][other, i], want[4:6], rtol=1e-5)
        np.testing.assert_allclose(errors.feedback_weights[i], want[6:], rtol=1e-5)
        assert np.isnan(errors.weights["coupling"][i, i]).all()
        kernel = np.sqrt(np.diag(BASIS.matrix @ covariance[1:4, 1:4] @ BASIS.matrix.T))
        np.testing.assert_allclose(errors.kernel("stimulus")[0, i], kernel, rtol=1e-5)
        kernel = np.sqrt(np.diag(BASIS.matrix @ covariance[6:, 6:] @ BASIS.matrix.T))
        np.testing.assert_allclose(errors.feedback_kernels()[i], kernel, rtol=1e-5)


def test_standard_errors_of_a_few_neurons_at_a_time_are_the_same(fitted, monkeypatch):
    fit, inputs, y = fitted
    together = fit.standard_errors(y, inputs)
    monkeypatch.setattr(standard_errors, "MOST_VALUES", 1)
    alone = fit.standard_errors(y, inputs)
    np.testing.assert_allclose(alone.bias, together.bias)
    np.testing.assert_allclose(alone.covariances["coupling"], together.covariances["coupling"])
    fit.known_standard_errors = None


def test_standard_errors_of_what_the_data_leave_open():
    rng = np.random.default_rng(0)
    y = rng.random((800, 1)) < 0.3
    x = np.hstack([rng.random((800, 1)) < 0.5, np.zeros((800, 1))])  # the second is silent
    population = glm.GLMPopulation([-1.0], glm.IndicatorBasis(1), [[[0.5]], [[0.5]]])
    errors = population.standard_errors(y, x)
    weights = errors.weights["stimulus"][:, 0, 0]
    assert np.isfinite(weights[0]) and np.isfinite(errors.bias[0]) and weights[1] == np.inf
    assert errors.kernel("stimulus")[1, 0] == np.inf
    # Two sources that are always the same: only their sum is determined.
    twice = population.standard_errors(y, np.hstack([x[:, :1], x[:, :1]]))
    assert np.isfinite(twice.bias[0]) and np.all(np.isinf(twice.weights["stimulus"]))
    with pytest.raises(AttributeError, match="without a feedback kernel"):
        errors.feedback_kernels()


def test_standard_errors_of_fits_are_computed_from_their_data():
    population, x, y = make(n_steps=3000)
    inputs, mask = {"stimulus": x, "coupling": y}, np.arange(3000) > 20
    fit = glm.fit_population(
        y, inputs, population.kernels, BASIS, connect={"coupling": "i != j"}, mask=mask
    )
    assert fit.known_standard_errors is None
    errors = fit.standard_errors_
    assert fit.standard_errors_ is errors is fit.known_standard_errors
    want = fit.standard_errors(y, inputs, mask)
    np.testing.assert_array_equal(errors.bias, want.bias)
    np.testing.assert_array_equal(errors.feedback_weights, want.feedback_weights)
    # Without the data, but with what was computed from them.
    again = pickle.loads(pickle.dumps(fit))
    assert again.fitted_to is None
    np.testing.assert_array_equal(again.standard_errors_.bias, errors.bias)


def test_standard_errors_that_are_not_known():
    y = np.random.default_rng(0).random((500, 1)) < 0.2
    penalised = glm.fit_population(y, feedback_basis=SHORT, penalty=1.0)
    for population, reason in [
        (glm.GLMPopulation([-1.0], {}, {}), "not made by fit_population"),
        (penalised, "with a penalty"),
    ]:
        with pytest.raises(AttributeError, match=reason):
            population.standard_errors_
        assert population.known_standard_errors is None
    with pytest.raises(ValueError, match="no kernels"):
        penalised.connectivity("coupling")


def test_intervals_hold_the_true_weights():
    """120 fits with 4 parameters each; see benchmarks/goodness_of_fit.py for 1,000."""
    basis = glm.IndicatorBasis(1)
    rng = np.random.default_rng(1)
    n, n_steps = 120, 1000
    x = rng.random((n_steps, n)) < 0.3
    trains = np.zeros((n_steps, n))
    for t in range(1, n_steps):
        u = -1.5 + 1.0 * x[t - 1] - 0.8 * trains[t - 1]
        trains[t] = rng.random(n) < 1 / (1 + np.exp(-u))
    held = np.zeros(3)
    for i in range(n):
        y, own = trains[:, [i]], x[:, [i]]
        fit = glm.fit_population(y, own, basis, basis)
        errors = fit.standard_errors(y, own)
        got = np.array([fit.bias[0], fit.weights["stimulus"][0, 0, 0], fit.feedback_weights[0, 0]])
        size = [errors.bias[0], errors.weights["stimulus"][0, 0, 0], errors.feedback_weights[0, 0]]
        held += np.abs(got - [-1.5, 1.0, -0.8]) < 1.96 * np.array(size)
    # 114 of 120 expected; below 104 or 120 have probabilities of 1e-4 and 2e-3.
    assert np.all(held >= 104) and held.min() < 120


# ---------------------------------------------------------------------- comparisons


def test_criteria_count_parameters_of_connections(fitted):
    fit, inputs, y = fitted
    bias = glm.fit_population(y)
    both = glm.compare({"bias": bias, "all": fit}, y, inputs)
    assert both.n_parameters.tolist() == [[1, 1], [1 + 3 + 2 + 3] * 2]
    np.testing.assert_allclose(both.log_likelihood[1], fit.log_likelihoods(y, inputs))
    np.testing.assert_allclose(both.aic, 2 * both.n_parameters - 2 * both.log_likelihood)
    want = np.log(len(y)) * both.n_parameters - 2 * both.log_likelihood
    np.testing.assert_allclose(both.bic, want)
    assert both.best("aic") == both.best("bic") == ["all", "all"]
    assert "AIC" in repr(both) and "<table>" in both._repr_html_()
    masked = glm.compare({"bias": bias}, y, mask=np.arange(len(y)) < 100)
    assert masked.n_steps == 100


def test_comparisons_on_other_steps_than_those_of_the_fit_warn(recorded):
    population, x, y = recorded
    y, inputs = y[:2000], {"stimulus": x[:2000], "coupling": y[:2000]}
    mask, epochs = np.arange(2000) >= 20, [(0, 900), (1000, 2000)]
    bias = glm.fit_population(y, mask=mask, epochs=epochs)
    fit = glm.fit_population(y, inputs, population.kernels, mask=mask, epochs=epochs)
    everything = [(0, 1000), (1000, 2000)]
    for given, others in [
        (dict(mask=mask, epochs=epochs), False),
        (dict(mask=mask & ~((np.arange(2000) >= 900) & (np.arange(2000) < 1000))), False),
        (dict(mask=mask), True),
        (dict(epochs=epochs), True),
        (dict(epochs=everything), True),
    ]:
        for judge in (
            lambda **data: glm.compare({"bias": bias, "all": fit}, y, inputs, **data),
            lambda **data: glm.likelihood_ratio_test(bias, fit, y, inputs, **data),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                judge(**given)
            said = [str(one.message) for one in caught]
            assert len(said) == 2 * others and all(
                "was fitted to other steps than these" in one for one in said
            )
    whole = glm.fit_population(y)
    copied = pickle.loads(pickle.dumps(bias))  # does not remember its data
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        glm.compare({"whole": whole, "copy": copied}, y, epochs=everything)


def test_models_are_compared_on_data_that_fit_all(fitted):
    fit, inputs, y = fitted
    kernel = {"stimulus": glm.IndicatorBasis(1)}
    two = glm.GLMPopulation([-1.0] * 2, kernel, np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match=r"^inputs\['stimulus'\] cannot be for all models"):
        glm.compare({"one": fit, "two": two}, y, inputs)
    slow, fast = (glm.GLMPopulation([-1.0] * 2, {}, {}, dt=dt) for dt in (2 * ms, 1 * ms))
    with pytest.raises(ValueError, match="^models must have the same step"):
        glm.compare({"slow": slow, "fast": fast}, y)


def test_likelihood_ratios_of_true_smaller_models_are_chi_squared():
    rng = np.random.default_rng(2)
    basis = glm.IndicatorBasis(2)
    y, x = rng.random((600, 40)) < 0.3, rng.random((600, 1)) < 0.5
    smaller, larger = glm.fit_population(y), glm.fit_population(y, x, basis)
    test = glm.likelihood_ratio_test(smaller, larger, y, {"stimulus": x})
    assert test.degrees_of_freedom.tolist() == [2] * 40
    np.testing.assert_allclose(test.p_value, stats.chi2.sf(test.statistic, 2))
    assert stats.kstest(test.p_value, "uniform").pvalue > 1e-3
    y[1:] |= x[:-1] & (rng.random((599, 40)) < 0.5)
    smaller, larger = glm.fit_population(y), glm.fit_population(y, x, basis)
    assert glm.likelihood_ratio_test(smaller, larger, y, {"stimulus": x}).p_value.max() < 1e-4


def test_models_that_cannot_be_compared(fitted):
    fit, inputs, y = fitted
    bias = glm.fit_population(y)
    assert glm.likelihood_ratio_test(bias, bias, y).p_value.tolist() == [1, 1]
    for smaller, larger, message in [
        (fit, bias, "larger must have a kernel 'stimulus'"),
        (glm.fit_population(y, feedback_basis=SHORT), bias, "larger must have a feedback_basis"),
        (glm.fit_population(y, activation="probit"), bias, "activation of larger, 'sigmoid'"),
        (glm.fit_population(y[:, :1]), bias, "smaller must have the 2 neurons"),
        (bias, glm.GLMPopulation([3.0, 3.0], {}, {}), "larger must be fitted to these data"),
        (
            glm.GLMPopulation.from_kernels([0.0], {"coupling": [[[1.0]]]}),
            glm.GLMPopulation.from_kernels([0.0], {"coupling": [[[0.0]]]}),
            "larger must have all connections 'coupling'",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            glm.likelihood_ratio_test(smaller, larger, y, inputs)
    with pytest.raises(TypeError, match=r"models\['x'\] must be a GLMPopulation"):
        glm.compare({"x": 3}, y)
    with pytest.raises(TypeError, match="models must be a dict"):
        glm.compare([bias], y)
    with pytest.raises(TypeError, match="larger must be a GLMPopulation"):
        glm.likelihood_ratio_test(bias, None, y)
    with pytest.raises(ValueError, match="same number of neurons"):
        glm.compare({"a": bias, "b": glm.fit_population(y[:, :1])}, y)


# ---------------------------------------------------------------------- connectivity


def test_connectivity_is_walds_test(fitted):
    fit, inputs, y = fitted
    assert fit.connectivity("coupling", test="none").p_value is None
    errors = fit.standard_errors(y, inputs)
    found = fit.connectivity("coupling", test="wald")
    kernels = fit.kernel("coupling")
    np.testing.assert_allclose(found.strength, kernels.sum(axis=2))
    norm = fit.connectivity("coupling", "norm", "none").strength
    np.testing.assert_allclose(np.abs(norm), np.sqrt((kernels**2).sum(axis=2)))
    assert np.array_equal(np.sign(norm), np.sign(kernels.sum(axis=2)))
    for j, i in (0, 1), (1, 0):
        w, c = fit.weights["coupling"][j, i], errors.covariances["coupling"][j, i]
        assert found.statistic[j, i] == pytest.approx(w @ np.linalg.inv(c) @ w)
        assert found.p_value[j, i] == pytest.approx(stats.chi2.sf(found.statistic[j, i], 2))
    assert np.isnan(np.diag(found.p_value)).all() and not np.diag(found.significant()).any()
    # Without these connections the likelihood falls by half of that, nearly.
    without = glm.fit_population(y, {"stimulus": inputs["stimulus"]}, {"stimulus": BASIS}, BASIS)
    test = glm.likelihood_ratio_test(without, fit, y, inputs)
    np.testing.assert_allclose(test.statistic, found.statistic[[1, 0], [0, 1]], rtol=0.1)
    ratios = fit.connectivity("coupling").statistic
    np.testing.assert_allclose(test.statistic, ratios[[1, 0], [0, 1]], rtol=1e-4)


def test_false_discoveries_are_few():
    """Benjamini and Hochberg's example: four hypotheses of fifteen are rejected at 0.05."""
    p_value = np.array(
        [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719]
        + [0.6528, 0.7590, 1.0000]
    )
    found = glm.population.Connectivity(np.ones((3, 5)), None, p_value[::-1].reshape(3, 5))
    assert found.significant(0.05).ravel()[::-1].tolist() == [True] * 4 + [False] * 11
    assert not found.significant(0.0).any()
    with pytest.raises(ValueError, match="level"):
        found.significant(2.0)
    with pytest.raises(ValueError, match="needs standard errors"):
        glm.population.Connectivity(np.ones((3, 5)), None, None).significant()
