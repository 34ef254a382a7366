"""Attacks: gradients against complex steps, and searches against all changes of small networks."""

import _thread
import copy
import functools
import threading
import time
from itertools import combinations, product

import numpy as np
import pytest
from conftest import EXHAUSTIVE

import glmbrian as glm
from glmbrian.core.batches import BatchedLikelihood
from glmbrian.core.objectives import FirstToSpike
from glmbrian.robustness import (
    KINDS,
    LOSSES,
    METHODS,
    Method,
    attack,
    attack_intensities,
    input_gradient,
    random_change,
)
from glmbrian.robustness.methods import Iterated
from glmbrian.support.workers import Workers

N_STEPS, N_IN, N_OUT = 4, 3, 3
N_NETWORKS = 10_000 if EXHAUSTIVE else 45
DIGITS = glm.datasets.load_mnist((5, 7), 60, 50)


def network(seed=0, scale=1.0, n_in=N_IN, **parameters):
    """Return a fitted classifier with random parameters, and a random generator."""
    settings = dict(n_steps=N_STEPS, n_basis=2, n_epochs=1, device="runtime",
                    random_state=1, verbose=False)  # fmt: skip
    X = np.random.default_rng(0).random((N_OUT, n_in))
    classifier = glm.GLMClassifier(**{**settings, **parameters}).fit(X, np.arange(N_OUT))
    return classifier, redrawn(classifier, seed, scale)


def redrawn(classifier, seed, scale=1.0):
    random = np.random.default_rng(seed)
    classifier.weights_ = random.normal(scale=scale, size=classifier.weights_.shape)
    classifier.bias_ = random.normal(size=N_OUT) - 1
    classifier.feedback_ = random.normal(size=classifier.feedback_.shape)
    for layer in classifier.hidden_layers_:
        layer.weights[:] = random.normal(scale=scale, size=layer.weights.shape)
        layer.feedback[:] = random.normal(size=layer.feedback.shape)
    return random


# ------------------------------------------------------------------ gradients


def probability(activation, u):
    """g for complex potentials."""
    if activation == "sigmoid":
        return 1 / (1 + np.exp(-u))
    assert activation == "cloglog"
    return 1 - np.exp(-np.exp(u))


def filtered(inputs, kernels, bias):
    """Potentials (T, N) of complex inputs (T, n_in), for kernels (n_in, N, lags)."""
    u = np.zeros((len(inputs), kernels.shape[1]), complex) + bias
    for t in range(len(inputs)):
        for lag in range(1, min(kernels.shape[2], t) + 1):
            u[t] += inputs[t - lag] @ kernels[:, :, lag - 1]
    return u


def log_likelihood(classifier, train, label, draws):
    """The log-likelihood for complex inputs, if a hidden spike changes like its probability."""
    own = train
    for layer, layer_draws in zip(classifier.hidden_layers_, draws):
        v = filtered(own, layer.kernels(), layer.bias)
        spikes = np.zeros_like(v)
        for t in range(len(v)):
            g = probability(classifier.activation, v[t])
            spikes[t] = (layer_draws[t] < g.real) + (g - g.real)
            if layer.feedback_basis is not None:
                kernels = layer.feedback_kernels()
                for lag in range(1, min(kernels.shape[1], len(v) - t - 1) + 1):
                    v[t + lag] += spikes[t] * kernels[:, lag - 1]
        own = spikes
    u = filtered(own, classifier.basis_.kernels(classifier.weights_), classifier.bias_)
    objective = classifier.objective
    desired = objective.desired(label, N_STEPS, N_OUT)
    if objective.learns_feedback:
        kernels = classifier.basis_.kernels(classifier.feedback_)
        for lag in range(1, min(kernels.shape[1], N_STEPS - 1) + 1):
            u[lag:] += desired[:-lag] * kernels[:, lag - 1]
    g = probability(classifier.activation, u)
    if isinstance(objective, FirstToSpike):
        alone = g[:, label] * np.prod(np.delete(1 - g, label, axis=1), axis=1)
        none_before = np.cumprod(np.append(1, np.prod(1 - g, axis=1)[:-1]))
        return np.log(np.sum(alone * none_before))
    return np.sum(np.log(np.where(desired, g, 1 - g)))


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
@pytest.mark.parametrize("activation", ["sigmoid", "cloglog"])
@pytest.mark.parametrize(
    "hidden, feedback", [((), None), ((4,), None), ((4, 3), glm.IndicatorBasis(2))]
)
def test_gradient_equals_complex_steps(decoding, activation, hidden, feedback):

    classifier, random = network(
        1, decoding=decoding, activation=activation, hidden=hidden, hidden_feedback=feedback
    )
    trains, labels = random.integers(0, 2, (3, N_STEPS, N_IN)), np.array([0, 2, 1])
    values, gradients = input_gradient(classifier, trains, labels, n_hidden=2)
    test = classifier.prepare_test(trains).presented()
    draws = [test.hidden_draws(np.arange(3), repetition) for repetition in (1, 2)]
    for item, (train, label) in enumerate(zip(trains, labels)):
        own = [[layer[item] for layer in each] for each in draws]
        expected = np.mean([log_likelihood(classifier, train, label, each) for each in own])
        assert values[item] == pytest.approx(expected.real, abs=1e-12)
        for t, j in np.ndindex(N_STEPS, N_IN):
            moved = train.astype(complex)
            moved[t, j] += 1e-30j
            slopes = [log_likelihood(classifier, moved, label, each).imag / 1e-30 for each in own]
            assert gradients[item, t, j] == pytest.approx(np.mean(slopes), abs=1e-9)


# ------------------------------------------------------------------ searches


def all_changes(kind, train, size):
    """Return the train after each set of `size` allowed changes."""
    places = np.flatnonzero(KINDS[kind].allowed(train[np.newaxis])[0])
    changed = np.repeat(train.reshape(1, -1), max(1, len(list(combinations(places, size)))), axis=0)
    for row, chosen in zip(changed, combinations(places, size)):
        row[list(chosen)] ^= 1
    return changed.reshape(-1, *train.shape)


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
def test_greedy_finds_the_worst_single_change(decoding):
    classifier, _ = network(decoding=decoding)
    for seed in range(N_NETWORKS):
        random = redrawn(classifier, seed, scale=2.0)
        train, label = random.integers(0, 2, (N_STEPS, N_IN)).astype(np.uint8), seed % N_OUT
        kind = sorted(KINDS)[seed % 3]
        tried = np.concatenate([train[np.newaxis], all_changes(kind, train, 1)])
        values, _ = input_gradient(classifier, tried, np.full(len(tried), label))
        found = attack(classifier, train[np.newaxis], [label], 1, kind)
        reached, _ = input_gradient(classifier, found, [label])
        assert reached[0] == pytest.approx(values.min(), rel=1e-12, abs=1e-12)
        assert np.sum(found[0] != train) <= 1


@pytest.mark.parametrize("method", ["greedy", "iterated", Iterated(3)])
@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("parameters", [dict(), dict(decoding="rate"), dict(hidden=(6,))])
def test_changes_are_allowed_and_help(method, kind, parameters):
    classifier, random = network(3, scale=2.0, **parameters)
    least = 0.001 if parameters.get("hidden") else 0.1  # hidden spikes arrive late
    trains = (random.random((40, N_STEPS, N_IN)) < 0.4).astype(np.uint8)
    labels = random.integers(0, N_OUT, 40)
    found = attack(classifier, trains, labels, 3, kind, method=method)
    assert found.dtype == np.uint8
    changes = found.astype(int) - trains
    assert np.abs(changes).sum(axis=(1, 2)).max() == 3
    assert set(np.unique(changes)) - {0} == {"add": {1}, "remove": {-1}, "flip": {-1, 1}}[kind]
    before, after = (input_gradient(classifier, part, labels)[0] for part in (trains, found))
    assert np.all(after <= before + 1e-12) and np.mean(after) < np.mean(before) - least


def test_greedy_is_close_to_the_worst_pair():
    classifier, random = network(4, scale=2.0)
    gaps = []
    for label in range(20):
        train, label = random.integers(0, 2, (N_STEPS, N_IN)).astype(np.uint8), label % N_OUT
        tried = np.concatenate([all_changes("flip", train, size) for size in (1, 2)])
        values, _ = input_gradient(classifier, tried, np.full(len(tried), label))
        found = attack(classifier, train[np.newaxis], [label], 2)
        start = input_gradient(classifier, train[np.newaxis], [label])[0][0]
        if values.min() < start:
            gained = start - input_gradient(classifier, found, [label])[0][0]
            gaps.append(gained / (start - values.min()))
    assert len(gaps) > 10 and max(gaps) < 1 + 1e-9 and np.mean(gaps) > 0.95


def test_few_candidates_find_almost_as_much():
    classifier = trained()
    X, y = DIGITS.X_test, DIGITS.y_test
    reached = [
        input_gradient(classifier, attack(classifier, X, y, 4, n_candidates=n), y)[0].mean()
        for n in (1, 8, 100)
    ]
    start = input_gradient(classifier, X, y)[0].mean()
    assert reached[0] < start - 0.1 and reached[1] - reached[2] < 0.05 * (start - reached[2])


def trained(**parameters):
    return copy.deepcopy(trained_once(tuple(parameters.items())))


@functools.lru_cache
def trained_once(parameters):
    settings = dict(n_steps=4, n_basis=2, n_epochs=5, device="runtime", random_state=1, verbose=False)
    classifier = glm.GLMClassifier(**{**settings, **dict(parameters)})
    return classifier.fit(DIGITS.X_train, DIGITS.y_train)


@pytest.mark.parametrize("parameters", [dict(), dict(decoding="rate", n_steps=6)])
def test_attacks_hurt_more_than_random_changes(parameters):
    classifier = trained(**parameters)
    X, y = DIGITS.X_test, DIGITS.y_test
    at_random = classifier.score(random_change(classifier, X, 12, random_state=0), y)
    for method, loss in product(sorted(METHODS), sorted(LOSSES)):
        attacked = attack(classifier, X, y, 12, method=method, loss=loss)
        assert classifier.score(attacked, y) < at_random - 0.03, (method, loss)


def test_without_budget_trains_are_those_of_predict():
    classifier = trained()
    trains = attack(classifier, DIGITS.X_test, DIGITS.y_test, 0, first_presentation=5)
    np.testing.assert_array_equal(
        classifier.predict(trains, first_presentation=5),
        classifier.predict(DIGITS.X_test, first_presentation=5),
    )


def test_random_changes_have_the_size_and_depend_on_the_seed():
    classifier = trained()
    start = random_change(classifier, DIGITS.X_test, 0)
    for kind, sign in (("add", 1), ("remove", -1)):
        changes = random_change(classifier, DIGITS.X_test, 9, kind, random_state=1).astype(int) - start
        assert np.all(sign * changes.sum(axis=(1, 2)) == 9) and np.all(sign * changes >= 0)
    first, again, other = (
        random_change(classifier, DIGITS.X_test, 9, random_state=n) for n in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.any(first != other)
    few = np.zeros((1, 4, 784), int)
    few[0, 0, :2] = 1
    assert random_change(classifier, few, 5, "remove").sum() == 0


def test_attack_on_intensities_stays_in_the_ball():
    classifier = trained()
    X, y = DIGITS.X_test, DIGITS.y_test
    attacked = attack_intensities(classifier, X, y, 0.1)
    assert np.abs(attacked - X / 255).max() <= 0.1 + 1e-12
    assert attacked.min() >= 0 and attacked.max() <= 1
    noise = np.clip(X / 255 + 0.1 * np.random.default_rng(0).choice([-1, 1], X.shape), 0, 1)
    assert classifier.score(attacked, y) < classifier.score(noise, y) - 0.1
    np.testing.assert_allclose(attack_intensities(classifier, X, y, 0.0), X / 255, atol=1e-15)


def test_threads_share_the_blocks(monkeypatch):
    classifier = trained(hidden=(4,))
    X, y = np.tile(DIGITS.X_test, (8, 1)), np.tile(DIGITS.y_test, 8)
    few, found = slice(0, 40), []
    for most in (1, 3):
        monkeypatch.setattr(Workers, "most", most)
        trains = attack(classifier, X[few], y[few], 2, n_candidates=1000)
        found.append((trains, attack_intensities(classifier, X, y, 0.1, n_iterations=2)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])


@pytest.mark.parametrize(
    "found, error, said",
    [
        (None, TypeError, "of the shape (3, 12), one entry .* got a NoneType"),
        (np.ones((3, 12)), TypeError, "got an array of float64 of the shape (3, 12)"),
        (np.ones((3, 11), bool), TypeError, "got an array of bool of the shape (3, 11)"),
        (np.ones((3, 12), bool), ValueError, "must change at most 2 entries of a presentation, got 12"),
    ],
)
def test_what_a_method_finds_is_checked(found, error, said):
    class Own(Method):
        name = "own"

        def search(self, search, budget, n_candidates):
            return found

    classifier, random = network()
    said = "method 'own': search " + ".*" + said.replace("(", "[(]").replace(")", "[)]")
    with pytest.raises(error, match=said):
        attack(classifier, random.random((3, N_IN)), [0, 1, 2], 2, method=Own())


def test_an_interrupted_attack_ends_soon(monkeypatch):
    """A search with a large budget would take minutes."""
    classifier, began, values = trained(), time.perf_counter(), BatchedLikelihood.values

    def interrupted(self, *arguments):
        if threading.current_thread() is not threading.main_thread():
            _thread.interrupt_main()
        return values(self, *arguments)

    monkeypatch.setattr(Workers, "most", 2)
    monkeypatch.setattr(BatchedLikelihood, "values", interrupted)
    with pytest.raises(KeyboardInterrupt):
        attack(classifier, DIGITS.X_test, DIGITS.y_test, 3000, n_candidates=8)
    assert time.perf_counter() - began < 20


def test_nothing_of_the_classifier_changes():
    classifier = trained(hidden=(4,))
    before = {name: np.copy(getattr(classifier, name)) for name in ("weights_", "bias_")}
    hidden, names = classifier.hidden_layers_[0].weights.copy(), set(vars(classifier))
    state = np.random.get_state()[1].copy()
    attack(classifier, DIGITS.X_test, DIGITS.y_test, 2)
    random_change(classifier, DIGITS.X_test, 2, random_state=0)
    attack_intensities(classifier, DIGITS.X_test, DIGITS.y_test, 0.1, n_iterations=2)
    assert set(vars(classifier)) == names
    np.testing.assert_array_equal(classifier.hidden_layers_[0].weights, hidden)
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(classifier, name), value)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


@pytest.mark.parametrize(
    "arguments, error, match",
    [
        (dict(budget=-1), ValueError, "budget"),
        (dict(budget=1.5), TypeError, "budget"),
        (dict(budget=1, kind="shift"), ValueError, "kind must be one of 'add', 'remove', 'flip'"),
        (dict(budget=1, method="best"), ValueError, "method must be one of"),
        (dict(budget=1, n_candidates=0), ValueError, "n_candidates"),
        (dict(budget=1, y=[9] * 100), ValueError, "y must hold only labels known"),
        (dict(budget=1, clf="model.npz"), TypeError, "clf must be a fitted GLMClassifier"),
    ],
)
def test_bad_arguments(arguments, error, match):
    arguments = {"clf": trained(), "X": DIGITS.X_test, "y": DIGITS.y_test, **arguments}
    with pytest.raises(error, match=match):
        attack(**arguments)


def test_intensities_are_needed():
    classifier, trains = trained(), np.zeros((1, 4, 784), int)
    with pytest.raises(ValueError, match="use attack"):
        attack_intensities(classifier, trains, [5], 0.1)
    with pytest.raises(ValueError, match="epsilon"):
        attack_intensities(classifier, DIGITS.X_test, DIGITS.y_test, -0.1)
    scaling = trained(scale_inputs=True)
    with pytest.raises(ValueError, match="scale_inputs"):
        attack_intensities(scaling, DIGITS.X_test, DIGITS.y_test, 0.1)
