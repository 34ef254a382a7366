"""Penalised fits reach the objective of other solvers, and strengths are chosen over time."""

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import glmbrian as glm
from glmbrian.core.likelihoods import filtered_in_chunks
from glmbrian.population import Penalty, fitting, maximiser

BASIS = glm.RaisedCosineBasis(3, 6)
N_SOURCE, N = 5, 2


def columns(x, basis):
    """The design matrix of one kernel by hand: sources by functions."""
    by_function = [
        filtered_in_chunks(x, lambda part: part[np.newaxis], basis.matrix[:, [k]])
        for k in range(basis.n_basis)
    ]
    return np.stack(by_function, axis=2).reshape(len(x), -1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    x = (rng.random((1500, N_SOURCE)) < 0.2).astype(float)
    weights = np.zeros((N_SOURCE, N, 3))
    weights[0, 0], weights[1, 1], weights[2, 1] = [1, 0.5, 0], [-2, -1, 0], [0, 1, 0.5]
    u = -1.5 + columns(x, BASIS) @ weights.transpose(0, 2, 1).reshape(-1, N)
    return x, rng.random(u.shape) < 1 / (1 + np.exp(-u))


def objective(penalty, strength, bias, weights, X, y):
    """What a fit maximises, by its definition; weights (n_source, n_basis) of one neuron."""
    u = bias + X @ weights.ravel()
    value = np.where(y, -np.logaddexp(0, -u), -np.logaddexp(0, u)).sum()
    size = {
        "ridge": 0.5 * np.square(weights).sum(),
        "lasso": np.abs(weights).sum(),
        "group": np.sqrt(weights.shape[1]) * np.linalg.norm(weights, axis=1).sum(),
    }
    return value - strength * size[penalty]


@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_path_reaches_the_objective_of_scikit_learn(data, penalty):
    x, y = data
    X = columns(x, BASIS)
    for strength in (30.0, 10.0, 3.0, 0.5):
        fitted = glm.fit_population(y, x, BASIS, penalty=penalty, strength=strength)
        assert fitted.fit_.status == ["converged"] * N
        for i in range(N):
            l1 = {"l1_ratio": 1.0, "solver": "saga"} if penalty == "lasso" else {"solver": "newton-cg"}
            other = LogisticRegression(C=1 / strength, tol=1e-10, max_iter=20_000, **l1)
            other.fit(X, y[:, i])
            want = objective(
                penalty, strength, other.intercept_, other.coef_.reshape(-1, 3), X, y[:, i]
            )
            got = objective(
                penalty, strength, fitted.bias[i], fitted.weights["stimulus"][:, i], X, y[:, i]
            )
            assert got == pytest.approx(float(want), rel=1e-6)
            assert got >= want - 1e-6


@pytest.mark.exhaustive  # Numba compiles for ten seconds
def test_path_of_groups_reaches_the_objective_of_skglm(data):
    """The bias has a group of its own there, with a weight of 0."""
    pytest.importorskip("skglm", reason="skglm is not installed")
    from skglm.datafits import LogisticGroup
    from skglm.penalties import WeightedGroupL2
    from skglm.solvers import GroupProxNewton
    from skglm.utils.data import grp_converter

    x, y = data
    X = columns(x, BASIS)
    whole = np.hstack([X, np.ones((len(X), 1))])
    indices, pointers = grp_converter([3] * N_SOURCE + [1], 3 * N_SOURCE + 1)
    weights = np.append(np.full(N_SOURCE, np.sqrt(3)), 0.0)
    chosen = []
    for strength in (60.0, 10.0, 2.0):
        fitted = glm.fit_population(y, x, BASIS, penalty="group", strength=strength)
        chosen.append(fitted.weights["stimulus"].any(axis=2).sum())
        for i in range(N):
            solver = GroupProxNewton(fit_intercept=False, tol=1e-10, warm_start=False)
            signs = 2.0 * y[:, i] - 1
            other = solver.solve(
                np.asfortranarray(whole),
                signs,
                LogisticGroup(pointers, indices),
                WeightedGroupL2(strength / len(X), weights, pointers, indices),
            )[0]
            want = objective("group", strength, other[-1], other[:-1].reshape(-1, 3), X, y[:, i])
            got = objective(
                "group", strength, fitted.bias[i], fitted.weights["stimulus"][:, i], X, y[:, i]
            )
            assert got == pytest.approx(want, rel=1e-6)
            assert got >= want - 1e-6
    assert 0 < chosen[0] < chosen[1] <= chosen[2]


def test_groups_meet_the_conditions_of_the_maximum(data):
    """Where a group is 0 the norm of its gradient is below its factor, and elsewhere it is that."""
    x, y = data
    X = columns(x, BASIS)
    chosen = []
    for strength in (60.0, 10.0, 2.0):
        fitted = glm.fit_population(y, x, BASIS, penalty="group", strength=strength)
        weights = fitted.weights["stimulus"].swapaxes(0, 1)
        u = fitted.bias + X @ weights.reshape(N, -1).T
        error = y - 1 / (1 + np.exp(-u))
        assert np.abs(error.sum(axis=0)).max() < 1e-5
        gradient = (error.T @ X).reshape(weights.shape)
        norm, factor = np.linalg.norm(weights, axis=2, keepdims=True), strength * np.sqrt(3)
        is_zero = norm[:, :, 0] == 0
        assert np.all(np.linalg.norm(gradient[is_zero], axis=1) <= factor)
        rest = gradient[~is_zero] - factor * (weights / np.where(norm > 0, norm, 1))[~is_zero]
        assert np.abs(rest).max() < 1e-5
        chosen.append(np.count_nonzero(~is_zero))
    assert 0 < chosen[0] < chosen[1] < chosen[2]


@pytest.mark.parametrize("penalty", ["lasso", "group"])
@pytest.mark.parametrize("activation", ["probit", "cloglog"])
def test_nothing_nearby_is_better(data, penalty, activation):
    """With two kernels, coupling and feedback, for the other activations."""
    x, y = data
    inputs, kernels = {"stimulus": x, "coupling": y}, {"stimulus": BASIS, "coupling": BASIS}
    fitted = glm.fit_population(y, inputs, kernels, BASIS, activation, penalty=penalty, strength=4.0)
    assert fitted.fit_.status == ["converged"] * N
    assert fitted.fit_.gradient.max() < 1e-5

    def value(population):
        size = 0.0
        parts = [population.weights[name].swapaxes(0, 1) for name in kernels]
        for weights in (*parts, population.feedback_weights[:, np.newaxis]):
            norms = np.linalg.norm(weights, axis=2) * np.sqrt(3)
            size += (norms if penalty == "group" else np.abs(weights)).sum()
        return population.log_likelihood(y, inputs) - 4.0 * size

    best = value(fitted)
    rng = np.random.default_rng(2)
    for scale in (1e-1, 1e-3):
        for _ in range(20):
            other = glm.GLMPopulation(
                fitted.bias + scale * rng.normal(size=N),
                kernels,
                {
                    name: w + scale * rng.normal(size=w.shape) * (rng.random(w.shape) < 0.3)
                    for name, w in fitted.weights.items()
                },
                BASIS,
                fitted.feedback_weights * (1 + scale * rng.normal(size=(N, 3))),
                activation,
            )
            assert value(other) < best + 1e-9


def test_groups_of_sources_and_feedback_that_is_not_penalised(data):
    x, y = data
    labels = ["a", "b", "b", "c", "c"]
    fitted = glm.fit_population(
        y, x, BASIS, BASIS, penalty="group", strength=15.0, groups={"stimulus": labels}
    )
    found = fitted.weights["stimulus"].any(axis=2)
    np.testing.assert_array_equal(found[1], found[2])
    np.testing.assert_array_equal(found[3], found[4])
    assert found.any() and not found.all()
    # A feedback kernel is no part of the group of its train.
    inputs = {"coupling": np.hstack([y, x])}
    fitted = glm.fit_population(
        y, inputs, {"coupling": BASIS}, BASIS, penalty="group", strength=1e3,
        groups={"coupling": np.zeros(N + N_SOURCE, dtype=int)}, penalise_feedback=False,
    )  # fmt: skip
    assert fitted.feedback_weights.all() and not fitted.weights["coupling"].any()
    history = dict(feedback_basis=BASIS, penalty="lasso", strength=1e3)
    both = glm.fit_population(y, x, BASIS, **history)
    assert not both.weights["stimulus"].any() and not both.feedback_weights.any()
    kept = glm.fit_population(y, x, BASIS, **history, penalise_feedback=False)
    assert not kept.weights["stimulus"].any()
    alone = glm.fit_population(y, feedback_basis=BASIS)
    np.testing.assert_allclose(kept.feedback_weights, alone.feedback_weights, atol=1e-7)
    # As columns of a coupling kernel with the same basis
    inputs, kernels = {"coupling": y}, {"coupling": BASIS}
    kept = glm.fit_population(y, inputs, kernels, **history, penalise_feedback=False)
    assert not kept.weights["coupling"].any()
    np.testing.assert_allclose(kept.feedback_weights, alone.feedback_weights, atol=1e-7)


def test_a_number_is_the_strength_of_a_ridge(data):
    x, y = data
    number = glm.fit_population(y, x, BASIS, penalty=2.0)
    name = glm.fit_population(y, x, BASIS, penalty="ridge", strength=2.0)
    np.testing.assert_array_equal(number.weights["stimulus"], name.weights["stimulus"])
    assert (number.fit_.penalty, number.fit_.strength) == ("ridge", 2.0)


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(penalty="lasso"), "strength must be given"),
        (dict(strength=1.0), "strength goes with the name"),
        (dict(penalty="lasso", strength=-1.0), "strength must be"),
        (dict(penalty="lasso", strength=np.nan), "strength must be"),
        (dict(penalty="elastic", strength=1.0), "penalty must be one of"),
        (dict(groups={"other": [1]}), "groups must be a dict with keys"),
        (dict(groups={"stimulus": [1, 2]}), r"groups\['stimulus'\] must have"),
        (dict(penalise_feedback="no"), "penalise_feedback must be"),
        (dict(n_jobs=0), "n_jobs must be"),
        (dict(verbose=2), "verbose must be"),
        (dict(epochs=[]), "epochs must be one or more pairs"),
        (dict(epochs=[(0, 3, 4)]), "epochs must be one or more pairs"),
        (dict(epochs=[(0, 4), (3, 9)]), r"epochs must not overlap, but epochs\[0\] ends"),
        (dict(epochs=[(4, 4)]), r"epochs\[0\] must begin"),
        (dict(epochs=[(5, 2)]), r"epochs\[0\] must begin"),
        (dict(epochs=[(0, 3), (5, 11)]), r"epochs\[1\] must begin"),
        (dict(epochs=[(-1, 3)]), r"epochs\[0\] must begin"),
        (dict(epochs=[(0.5, 3)]), r"epochs\[0\]: start and stop must be"),
        (
            dict(epochs=[(0, 3)], mask=np.arange(10) > 5),
            "mask must leave at least one step of the epochs",
        ),
    ],
)
def test_bad_argument_is_named(change, says):
    good = dict(outputs=np.tile([[0], [1]], (5, 1)), inputs=np.ones((10, 1)), kernels=BASIS)
    with pytest.raises((TypeError, ValueError), match=f"^{says}"):
        glm.fit_population(**{**good, **change})


# A penalty of the user's own


class ElasticNet(Penalty):
    """A part of the lasso, and the rest a ridge."""

    name = "elastic net"

    def __init__(self, l1_ratio):
        self.l1_ratio = l1_ratio

    def of_norm(self, sizes):
        return np.full(sizes.shape, self.l1_ratio)

    def of_square(self, sizes):
        return np.full(sizes.shape, 1 - self.l1_ratio)


def test_elastic_net_reaches_the_optimum_of_scikit_learn(data):
    x, y = data
    X = columns(x, BASIS)
    zeros = []
    for strength, ratio in [(20.0, 0.7), (5.0, 0.3), (5.0, 1.0), (5.0, 0.0)]:
        fitted = glm.fit_population(y, x, BASIS, penalty=ElasticNet(ratio), strength=strength)
        assert fitted.fit_.status == ["converged"] * N and fitted.fit_.penalty == "elastic net"
        assert fitted.fit_.gradient.max() < 1e-4
        zeros.append(np.count_nonzero(fitted.weights["stimulus"] == 0))
        for i in range(N):
            other = LogisticRegression(
                C=1 / strength, l1_ratio=ratio, penalty="elasticnet", solver="saga", tol=1e-12,
                max_iter=100_000,
            )  # fmt: skip
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of scikit-learn, which renames arguments
                other.fit(X, y[:, i])
            np.testing.assert_allclose(
                fitted.weights["stimulus"][:, i].ravel(), other.coef_[0], atol=2e-5
            )
            assert fitted.bias[i] == pytest.approx(other.intercept_[0], abs=2e-5)
    assert zeros[0] > zeros[1] > zeros[3] == 0
    ridge = glm.fit_population(y, x, BASIS, penalty="ridge", strength=5.0)
    np.testing.assert_array_equal(fitted.weights["stimulus"], ridge.weights["stimulus"])


def test_strength_of_a_penalty_of_ones_own_is_chosen_and_its_factors_are_checked(data):
    x, y = data
    selection = glm.select_strength(y, x, BASIS, penalty=ElasticNet(0.5), n_folds=3)
    strongest = selection.strengths[0]
    fits = [
        glm.fit_population(y, x, BASIS, penalty=ElasticNet(0.5), strength=factor * strongest)
        for factor in (1.001, 0.98)
    ]
    assert [fit.weights["stimulus"].any() for fit in fits] == [False, True]
    assert selection.population.fit_.penalty == "elastic net"
    assert selection.population.moved_by == f"a penalty (elastic net, strength {selection.best:g})"
    for bad in -0.5, np.nan:
        with pytest.raises(ValueError, match="^penalty: of_norm must return numbers of at least 0"):
            glm.fit_population(y, x, BASIS, penalty=ElasticNet(bad), strength=1.0)
    with pytest.raises(TypeError, match="^strength must be given"):
        glm.fit_population(y, x, BASIS, penalty=ElasticNet(0.5))


# The strength


def test_strength_that_predicts_best(data):
    x, y = data
    strengths = [0.1, 3.0, 10.0, 300.0]
    selection = glm.select_strength(
        y, x, BASIS, penalty="group", strengths=strengths, n_folds=3, tol=1e-8
    )
    np.testing.assert_array_equal(selection.strengths, strengths[::-1])
    assert selection.scores.shape == (4, 3) and 3.0 <= selection.best <= 10.0
    np.testing.assert_allclose(selection.mean, selection.scores.mean(axis=1))
    deviation = selection.scores.std(axis=1, ddof=1)
    np.testing.assert_allclose(selection.standard_error, deviation / np.sqrt(3))
    again = glm.fit_population(y, x, BASIS, penalty="group", strength=selection.best)
    np.testing.assert_allclose(
        selection.population.weights["stimulus"], again.weights["stimulus"], atol=1e-7
    )
    # A fold by hand: its steps are held out, and predicted with the inputs before them.
    fold = np.zeros(len(y), dtype=bool)
    fold[500:1000] = True
    for row, strength in enumerate(selection.strengths):
        rest = glm.fit_population(y, x, BASIS, penalty="group", strength=strength, mask=~fold)
        want = rest.log_likelihood(y, x, fold) / y[fold].sum()
        assert selection.scores[row, 1] == pytest.approx(want, rel=1e-8)
    # With strong penalties only the rate is left.
    assert (
        not glm.fit_population(y, x, BASIS, penalty="group", strength=300.0).weights["stimulus"].any()
    )


@pytest.mark.parametrize("penalty", ["group", "lasso", "ridge"])
def test_default_strengths_begin_where_no_weight_is_left(data, penalty):
    x, y = data[0][:700, :3], data[1][:700]
    selection = glm.select_strength(
        y, x, BASIS, BASIS, penalty=penalty, n_folds=2, penalise_feedback=False
    )
    strongest = selection.strengths[0]
    np.testing.assert_allclose(selection.strengths, strongest * np.logspace(0, -3, 10))
    given = dict(feedback_basis=BASIS, penalty=penalty, penalise_feedback=False)
    fits = [
        glm.fit_population(y, x, BASIS, strength=factor * strongest, **given)
        for factor in (1.001, 0.98)
    ]
    if penalty == "ridge":  # halves the best determined weight, nearly
        free = glm.fit_population(y, x, BASIS, BASIS)
        ratio = np.abs(fits[0].weights["stimulus"] / free.weights["stimulus"])[0, 0].max()
        assert 0.2 < ratio < 0.8
    else:
        assert [fit.weights["stimulus"].any() for fit in fits] == [False, True]
    with pytest.raises(ValueError, match="^strengths must be given, since no penalised weight"):
        glm.select_strength(y, feedback_basis=BASIS, penalty=penalty, penalise_feedback=False)


def test_a_best_strength_at_the_edge_is_told(data):
    x, y = data
    for strengths, says in [
        ([300.0, 100.0], None),  # all weights are 0
        ([100.0, 10.0, 0.1], None),
        ([1e-3, 1e-4], "is the strongest of those compared"),
        ([100.0, 30.0], "is the weakest of those compared"),
        ([100.0, 0.0], None),  # nothing is weaker
        ([1.0], None),
    ]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            glm.select_strength(y, x, BASIS, penalty="group", strengths=strengths, n_folds=3)
        said = [str(one.message) for one in caught if "strengths: the best" in str(one.message)]
        assert len(said) == (says is not None) and (says is None or says in said[0]), strengths


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(penalty=1.0), "penalty must be the name"),
        (dict(strengths=[]), "strengths must be one or more"),
        (dict(strengths=[1.0, -1.0]), "strengths must be one or more"),
        (dict(strengths=2.0), "strengths must have the shape"),
        (dict(n_folds=1), "n_folds must be"),
        (dict(n_folds=11), "n_folds must be at most the 10 steps"),
        (dict(n_folds=10), "n_folds=10 is too many: there is no spike in fold 0"),
    ],
)
def test_bad_selection_is_named(change, says):
    good = dict(
        outputs=np.tile([[0], [1]], (5, 1)), inputs=np.ones((10, 1)), kernels=BASIS, strengths=[1.0]
    )
    with pytest.raises((TypeError, ValueError), match=f"^{says}"):
        glm.select_strength(**{**good, **change})


@pytest.fixture
def interrupted_after(monkeypatch):
    """Let the user press Ctrl-C in the first pass over the data after so many fits on a path."""

    def arrange(n_fits):
        real_maximise, real_evaluate, fits = fitting.maximise, maximiser.evaluate, []

        def maximise(*args):
            fits.append(args)
            return real_maximise(*args)

        def evaluate(*args, **kwds):
            if len(fits) > n_fits:
                raise KeyboardInterrupt
            return real_evaluate(*args, **kwds)

        monkeypatch.setattr(fitting, "maximise", maximise)
        monkeypatch.setattr(maximiser, "evaluate", evaluate)

    return arrange


@pytest.mark.parametrize(
    "n_fits, says", [(1, "after 0 of 3 folds, so there are no scores"), (5, "after 2 of 3 folds")]
)
def test_interrupted_cross_validation_says_what_it_has_found(data, interrupted_after, n_fits, says):
    x, y = data
    given = dict(penalty="group", strengths=[3.0, 300.0], n_folds=3)
    whole = glm.select_strength(y, x, BASIS, **given)
    interrupted_after(n_fits)
    with pytest.raises(KeyboardInterrupt, match=f"^select_strength was interrupted {says}") as stopped:
        glm.select_strength(y, x, BASIS, **given)
    if n_fits == 5:
        mean = whole.scores[:, :2].mean(axis=1).round(4)
        assert f"{{300.0: {mean[0]}, 3.0: {mean[1]}}}" in str(stopped.value)
        assert "fit_population(..., penalty='group', strength=3.0)" in str(stopped.value)


def test_interrupted_last_fit_gives_back_the_selection(data, interrupted_after):
    x, y = data
    given = dict(penalty="group", strengths=[3.0, 300.0], n_folds=3)
    whole = glm.select_strength(y, x, BASIS, **given)
    strong = glm.fit_population(y, x, BASIS, penalty="group", strength=300.0)
    interrupted_after(7)  # after the first of two fits to all steps
    with pytest.warns(RuntimeWarning, match=r"^the fit was interrupted: the neurons \[0, 1\]"):
        stopped = glm.select_strength(y, x, BASIS, **given)
    np.testing.assert_array_equal(stopped.scores, whole.scores)
    assert stopped.best == whole.best == 3.0
    assert stopped.population.fit_.status == ["interrupted"] * 2
    # It began where the strongest penalty led.
    np.testing.assert_allclose(stopped.population.bias, strong.bias, rtol=1e-3)
