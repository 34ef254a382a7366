"""Fits take any observation model: Poisson counts, written here, reach the optimum of scikit-learn."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.special import gammaln
from sklearn.linear_model import PoissonRegressor

import glmbrian as glm
from glmbrian.population import Bernoulli, Observations

BASIS = glm.RaisedCosineBasis(3, 6)


class Poisson(Observations):
    """Counts whose mean is the exponential of the potential."""

    name, dtype = "poisson", np.int64

    def terms(self, u, y, with_weights=True):
        rate = np.exp(u)
        return y * u - rate - gammaln(y + 1), y - rate, rate

    def expected(self, u):
        return np.exp(u)


def filtered(series, basis):
    """Sums over lags, shape (T, n_source * n_basis)."""
    past = np.concatenate([np.zeros((basis.window, series.shape[1])), series])
    lagged = [past[basis.window - lag :][: len(series)] for lag in range(1, basis.window + 1)]
    return np.einsum("ltn,lk->tnk", np.stack(lagged), basis.matrix).reshape(len(series), -1)


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 2))
    weights = np.array([[0.3, 0.1, -0.2, 0.2, 0.0, 0.1], [-0.2, 0.2, 0.1, 0.1, 0.3, 0.0]])
    y = rng.poisson(np.exp(-0.5 + filtered(x, BASIS) @ weights.T))
    return x, y


def test_poisson_counts_reach_the_optimum_of_scikit_learn(counts):
    x, y = counts
    mask = np.arange(len(y)) >= 6
    columns = filtered(x, BASIS)[mask]
    for given, alpha in ({}, 0.0), (dict(penalty=30.0), 30.0 / mask.sum()):
        fit = glm.fit_population(y, x, BASIS, mask=mask, observations=Poisson(), **given)
        assert fit.fit_.status == ["converged"] * 2
        for i in range(2):
            other = PoissonRegressor(alpha=alpha, solver="newton-cholesky", tol=1e-12, max_iter=1000)
            other.fit(columns, y[mask, i])
            np.testing.assert_allclose(
                fit.weights["stimulus"][:, i].ravel(), other.coef_, rtol=1e-6, atol=1e-8
            )
            assert fit.bias[i] == pytest.approx(other.intercept_, rel=1e-6)


def test_what_judges_a_fit_knows_its_observations(counts):
    x, y = counts
    history = dict(feedback_basis=glm.CustomBasis([[0.1], [0.05]]), observations=Poisson())
    fit = glm.fit_population(y, x, BASIS, **history)
    u = fit.membrane_potential(x, y)
    want = (y * u - np.exp(u) - gammaln(y + 1)).sum(axis=0)
    np.testing.assert_allclose(fit.log_likelihoods(y, x), want)
    np.testing.assert_allclose(fit.fit_.log_likelihood, want)
    design = np.hstack(
        [np.ones((len(y), 1)), filtered(x, BASIS), filtered(y[:, :1], history["feedback_basis"])]
    )
    information = (design * np.exp(u[:, :1])).T @ design
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    assert fit.standard_errors_.bias[0] == pytest.approx(errors[0])
    assert fit.standard_errors_.feedback_weights[0, 0] == pytest.approx(errors[-1])
    smaller = glm.fit_population(y, **history)
    test = glm.likelihood_ratio_test(smaller, fit, y, {"stimulus": x})
    assert test.degrees_of_freedom.tolist() == [6, 6] and test.p_value.max() < 1e-6
    again = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(again.log_likelihoods(y, x), fit.log_likelihoods(y, x))
    assert "activation='poisson'" in repr(again) and "poisson" in again._repr_html_()
    for use in (
        lambda: fit.neurons(),
        lambda: fit.firing_probability(x, y),
        lambda: fit.score(y, x),
        lambda: fit.rescaled_times(y, x),
        lambda: fit.is_stable(),
        lambda: fit.save("fit.npz"),
    ):
        with pytest.raises(
            ValueError, match="^this population has no firing probability, since it was fitted to 'poi"
        ):
            use()


def test_counts_that_are_separable_are_found(counts):
    """No count follows the input, and other counts do not depend on it."""
    x = np.zeros((600, 1))
    x[::5] = 1
    y = np.random.default_rng(1).poisson(0.5, size=(600, 1))
    y[1:][x[:-1, 0] > 0] = 0
    with pytest.warns(RuntimeWarning, match="no finite maximum"):
        fit = glm.fit_population(y, x, glm.IndicatorBasis(1), observations=Poisson())
    assert fit.fit_.status == ["separated"] and fit.fit_.unbounded["stimulus"].all()
    y[1] = 1  # after an input
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = glm.fit_population(y, x, glm.IndicatorBasis(1), observations=Poisson())
    assert fit.fit_.status == ["converged"]


def test_strengths_are_chosen_for_counts_and_neurons_without_any_are_told(counts):
    x, y = counts
    selection = glm.select_strength(
        y, x, BASIS, penalty="lasso", strengths=[300.0, 30.0, 1.0], n_folds=2, observations=Poisson()
    )
    assert selection.population.weights["stimulus"].any() and selection.best < 300
    with pytest.warns(RuntimeWarning, match="never spike"):
        fit = glm.fit_population(np.hstack([y, 0 * y[:, :1]]), observations=Poisson())
    np.testing.assert_allclose(np.exp(fit.bias), [*y.mean(axis=0), 0.5 / len(y)])


@pytest.mark.parametrize("y", [[[-1.0]], [[0.5]], [[np.nan]], [[np.inf]]])
def test_values_that_are_no_counts_are_refused(y):
    with pytest.raises(ValueError, match="^outputs must hold whole numbers of at least 0"):
        glm.fit_population(np.tile(y, (9, 1)), observations=Poisson())


def test_names_and_others_are_told():
    y = np.tile([[0], [1]], (9, 1))
    with pytest.raises(ValueError, match="^observations must be one of 'bernoulli'"):
        glm.fit_population(y, observations="gauss")
    with pytest.raises(ValueError, match="^outputs must hold only 0 and 1"):
        glm.fit_population(2 * y, observations="bernoulli")
    own = glm.fit_population(y, observations=Bernoulli(glm.get_activation("probit")))
    want = glm.fit_population(y, activation="probit")
    assert own.activation is want.activation
    np.testing.assert_array_equal(own.bias, want.bias)
