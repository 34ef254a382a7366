"""Tests of pairs by their likelihood ratios, and fits that a penalty has moved."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import stats

import glmbrian as glm

pytestmark = pytest.mark.filterwarnings(
    "ignore:the likelihood of the neurons:RuntimeWarning",
    "ignore:the inputs do not determine:RuntimeWarning",
)

SHORT = glm.RaisedCosineBasis(2, 5)


def coupled(n=4, n_steps=6000, rate=0.06, seed=1):
    """Trains in which neuron 0 silences neuron 1 for two steps, and excites neuron 2."""
    rng = np.random.default_rng(seed)
    y = rng.random((n_steps, n)) < rate
    for lag in (1, 2):
        y[lag:, 1] &= ~y[:-lag, 0]
    y[1:, 2] |= y[:-1, 0] & (rng.random(n_steps - 1) < 0.3)
    return y.astype(np.uint8)


def refitted(fit, y, inputs, kernels, feedback_basis, **kwds):
    """Twice what each pair is worth, from a new fit without each source."""
    n = fit.n
    want = np.full((n, n), np.nan)
    for j in range(n):
        kept = ~np.eye(n, dtype=bool)
        kept[j] = False
        other = glm.fit_population(
            y, inputs, kernels, feedback_basis, connect={"coupling": kept.nonzero()}, **kwds
        )
        want[j] = 2 * (fit.log_likelihoods(y, inputs) - other.log_likelihoods(y, inputs))
        want[j, j] = np.nan
    return want


@pytest.mark.parametrize(
    "activation, basis", [("sigmoid", glm.IndicatorBasis(3)), ("cloglog", SHORT), ("probit", SHORT)]
)
def test_likelihood_ratios_are_those_of_new_fits(activation, basis):
    """With a stimulus, feedback, and with the indicators a pair that grows without bound."""
    y = coupled()
    inputs = {"stimulus": np.random.default_rng(2).normal(size=(len(y), 1)), "coupling": y}
    kernels = {"stimulus": SHORT, "coupling": basis}
    fit = glm.fit_population(y, inputs, kernels, basis, activation, tol=1e-4)
    found = fit.connectivity()
    want = refitted(fit, y, inputs, kernels, basis, activation=activation)
    np.testing.assert_allclose(found.statistic, want, atol=0.01, rtol=1e-4)
    np.testing.assert_allclose(found.p_value, stats.chi2.sf(want, basis.n_basis), rtol=0.01)
    assert found.test == "likelihood-ratio" and found.significant()[0].tolist() == [
        False,
        True,
        True,
        False,
    ]
    if basis.n_basis == 3:
        assert found.unbounded.sum() == 1 and found.unbounded[0, 1]
        # Wald's test does not see it.
        assert fit.connectivity(test="wald").p_value[0, 1] > 0.9 > 1e-6 > found.p_value[0, 1]


def test_many_parameters_take_their_information_from_a_sample():
    y = coupled(n=13, n_steps=4000)
    inputs, kernels, basis = {"coupling": y}, {"coupling": glm.RaisedCosineBasis(4, 8)}, SHORT
    mask = np.arange(len(y)) >= 8
    kept = ~np.eye(13, dtype=bool)
    fit = glm.fit_population(
        y, inputs, kernels, basis, tol=1e-4, mask=mask, connect={"coupling": kept.nonzero()}
    )
    found = fit.connectivity()
    kept[0] = False
    other = glm.fit_population(
        y, inputs, kernels, basis, mask=mask, connect={"coupling": kept.nonzero()}
    )
    want = fit.log_likelihoods(y, inputs, mask) - other.log_likelihoods(y, inputs, mask)
    np.testing.assert_allclose(found.statistic[0, 1:], 2 * want[1:], atol=0.01)
    given = pickle.loads(pickle.dumps(fit))
    np.testing.assert_array_equal(given.connectivity().statistic, found.statistic)
    given.known_likelihood_ratios = {}
    assert given.connectivity().p_value is None
    with pytest.raises(
        AttributeError, match=r"call population.test_connections\(outputs, inputs, kernel='coupling'\)"
    ):
        given.connectivity(test="likelihood-ratio")
    again = given.test_connections(y, inputs, mask)
    np.testing.assert_allclose(again.statistic, found.statistic, atol=0.01)
    assert given.connectivity().test == "likelihood-ratio"


def test_p_values_of_pairs_that_are_not_coupled_are_uniform():
    y = np.random.default_rng(5).random((3000, 12)) < 0.1
    fit = glm.fit_population(y, {"coupling": y}, {"coupling": SHORT}, SHORT)
    p_value = fit.connectivity().p_value
    assert stats.kstest(p_value[np.isfinite(p_value)], "uniform").pvalue > 1e-3


def test_what_a_pair_means_is_said_where_it_is_read():
    y = coupled()
    fit = glm.fit_population(y, {"coupling": y}, {"coupling": SHORT})
    assert "not tested" in repr(fit.connectivity(test="none"))
    said = repr(fit.connectivity())
    assert "of 16 pairs significant" in said and "likelihood-ratio test" in said
    assert "common input" in said and "common input" in fit.connectivity.__doc__
    with pytest.raises(ValueError, match="test must be one of 'likelihood-ratio', 'wald', 'none'"):
        fit.connectivity(test="score")
    peak = glm.GLMPopulation.from_kernels([0.0], {"coupling": [[[1.0, -3.0, 2.0]]]}).connectivity(
        "coupling", "peak"
    )
    assert peak.strength == [[-3.0]] and peak.changes_sign == [[True]]


# Penalties move parameters


@pytest.fixture(scope="module")
def moved():
    y = coupled(n_steps=800)
    x = y[:, :1]
    basis = SHORT
    plain = glm.fit_population(y, x, basis)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selected = glm.select_strength(y, x, basis, penalty="lasso", strengths=[3.0, 1.0], n_folds=2)
        fits = {
            "ridge": glm.fit_population(y, x, basis, penalty=2.0),
            "selected": selected.population,
            "stable": glm.fit_population(y, x, basis, SHORT, stable=True),
            "both": glm.fit_population(y, x, basis, SHORT, penalty=2.0, stable=True),
        }
    return y, x, plain, fits


@pytest.mark.parametrize("name", ["ridge", "selected", "stable", "both"])
def test_what_takes_the_maximum_for_granted_refuses_fits_that_were_moved(moved, tmp_path, name):
    y, x, plain, fits = moved
    fit = fits[name]
    fit.save(tmp_path / "fit.npz")
    by = {
        "ridge": "a penalty .ridge, strength 2.",
        "selected": "a penalty .lasso",
        "stable": "the constr",
    }
    says = by.get(name, "a penalty .ridge, strength 2. and the constraint of stability")
    for copy in fit, pickle.loads(pickle.dumps(fit)), glm.GLMPopulation.load(tmp_path / "fit.npz"):
        for function, *arguments in [
            (glm.compare, {"plain": plain, "moved": copy}, y, {"stimulus": x}),
            (glm.likelihood_ratio_test, copy, plain, y, {"stimulus": x}),
            (glm.likelihood_ratio_test, plain, copy, y, {"stimulus": x}),
            (copy.standard_errors, y, x),
            (getattr, copy, "standard_errors_"),
            (copy.test_connections, y, x, None, "stimulus"),
            (copy.connectivity, "stimulus", "sum", "wald"),
            (copy.connectivity, "stimulus", "sum", "likelihood-ratio"),
        ]:
            with pytest.raises((ValueError, AttributeError), match=f"{says}.*Fit again without it"):
                function(*arguments)
        assert copy.connectivity("stimulus").p_value is None
    assert np.isfinite(fit.score(y, x)).all()


def test_strength_of_zero_is_no_penalty_and_plain_files_are_as_before(moved, tmp_path):
    y, x, plain, _ = moved
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        free = glm.select_strength(y, x, SHORT, penalty="ridge", strengths=[0.0], n_folds=2).population
    assert free.moved_by is None
    np.testing.assert_allclose(free.standard_errors_.bias, plain.standard_errors_.bias, rtol=1e-3)
    plain.save(tmp_path / "plain.npz")
    with np.load(tmp_path / "plain.npz") as file:
        assert "moved_by" not in file
    # As earlier versions pickled it
    state = {
        **plain.__getstate__(),
        "why_no_standard_errors": "it was fitted with a penalty, which moves parameters",
    }
    former = object.__new__(glm.GLMPopulation)
    former.__setstate__({name: value for name, value in state.items() if name != "moved_by"})
    assert former.moved_by == "a penalty"


# Nested models


def test_nested_models_take_their_inputs_from_one_dict(moved):
    y, x, plain, _ = moved
    data = {"stimulus": x, "coupling": y}
    alone = glm.fit_population(y, data, {}, SHORT)
    same = glm.fit_population(y, feedback_basis=SHORT)
    np.testing.assert_array_equal(alone.bias, same.bias)
    part = glm.fit_population(y, data, {"stimulus": SHORT}, SHORT)
    np.testing.assert_array_equal(part.bias, glm.fit_population(y, x, SHORT, SHORT).bias)
    both = glm.fit_population(y, data, {"stimulus": SHORT, "coupling": SHORT}, SHORT)
    np.testing.assert_array_equal(part.score(y, data), part.score(y, x))
    np.testing.assert_array_equal(part.membrane_potential(data, y), part.membrane_potential(x, y))
    assert len(part.rescaled_times(y, data, random_state=0)) == 4
    for smaller in alone, part:
        assert (glm.likelihood_ratio_test(smaller, both, y, data).statistic >= 0).all()
    for function, *kernels in (glm.fit_population, {"stimulus": SHORT}), (part.score,):
        with pytest.raises(ValueError, match=r"^inputs must have the keys \['stimulus'\]"):
            function(y, {"coupling": y}, *kernels)
    with pytest.raises(ValueError, match="^inputs must be left out, or be a dict by name"):
        glm.likelihood_ratio_test(alone, part, y, x)


def test_a_copy_without_its_data_says_which_call_computes_the_ratios(moved):
    y, x, plain, _ = moved
    copied = pickle.loads(pickle.dumps(plain))
    with pytest.raises(AttributeError, match=r"test_connections\(outputs, inputs, kernel='stimulus'\)"):
        copied.connectivity("stimulus", test="likelihood-ratio")
    # Its data have the same ratios.
    found = copied.test_connections(y, x, kernel="stimulus")
    np.testing.assert_allclose(found.statistic, plain.connectivity("stimulus").statistic, atol=1e-6)
