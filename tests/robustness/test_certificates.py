"""The certified bound: never violated by any change in small networks."""

from itertools import combinations

import numpy as np
import pytest
from conftest import EXHAUSTIVE

import glmbrian as glm
from glmbrian.core import most_spikes_bounds
from glmbrian.core.decisions import ON_SILENCE, ON_TIE
from glmbrian.core.objectives import Objective, Rate, get_objective
from glmbrian.robustness import KINDS, attack, certified, certified_accuracy

N_STEPS, N_IN, N_OUT = 3, 3, 3
N_NETWORKS = 10_000 if EXHAUSTIVE else 300
SETTINGS = dict(n_steps=N_STEPS, n_basis=2, n_epochs=1, device="runtime", random_state=1, verbose=False)


def changed(train, kind, budget):
    """Return all trains after at most `budget` changes."""
    places = np.flatnonzero(KINDS[kind].allowed(train[np.newaxis])[0])
    chosen = [one for size in range(budget + 1) for one in combinations(places, min(size, len(places)))]
    trains = np.repeat(train.reshape(1, -1), len(chosen), axis=0)
    for row, flips in zip(trains, chosen):
        row[list(flips)] ^= 1
    return trains.reshape(-1, *train.shape)


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate", "rate, many steps"])
def test_no_change_violates_the_bound(decoding, monkeypatch):
    if decoding == "rate, many steps":
        # As if there were too many to list all trains of an output
        monkeypatch.setattr(most_spikes_bounds, "MOST_LISTED_STEPS", 0)
        decoding = "rate"
    X = np.random.default_rng(0).random((N_OUT, N_IN))
    classifier = glm.GLMClassifier(decoding, **SETTINGS).fit(X, np.arange(N_OUT))
    n_certified, n_tight = 0, 0
    for seed in range(N_NETWORKS):
        random = np.random.default_rng(seed)
        classifier.set_params(
            on_tie=random.choice(ON_TIE).item(),
            on_silence=random.choice(ON_SILENCE).item(),
            activation=random.choice(["sigmoid", "probit", "cloglog"]).item(),
        )
        classifier.weights_ = random.normal(
            scale=random.choice([0.05, 0.2, 1.0]), size=classifier.weights_.shape
        )
        classifier.bias_ = random.normal(scale=2.0, size=N_OUT)
        classifier.feedback_ = random.normal(scale=1.0, size=classifier.feedback_.shape)
        train = random.integers(0, 2, (N_STEPS, N_IN)).astype(np.uint8)
        kind, budget = random.choice(sorted(KINDS)).item(), int(random.integers(0, 3))
        trains = changed(train, kind, budget)
        probabilities = classifier.predict_proba(trains)
        label = int(probabilities[0].argmax())
        is_held = bool(np.all(probabilities.argmax(axis=1) == label))
        is_certified = bool(certified(classifier, train[np.newaxis], [label], budget, kind)[0])
        assert is_held or not is_certified, seed
        n_certified += is_certified
        n_tight += is_held
    # The bound says something.
    assert n_certified > 0.2 * n_tight


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
def test_silence_may_be_decided_for_a_wrong_output(decoding):
    u = np.array([[[-0.2, -2.0], [-20.0, -2.0]]])
    sigmoid, objective = glm.get_activation("sigmoid"), get_objective(decoding, 4)
    for on_silence, best in [("reject", 0), ("potential", 1)]:
        settings = (sigmoid, None, "potential", on_silence, None, 1)
        assert objective.probabilities(u, *settings).argmax() == best
        found = objective.is_certain(u, u, np.array([0]), sigmoid, None, "potential", on_silence)
        assert found.tolist() == [best == 0]


def test_wrong_ones_are_not_certified():
    digits = glm.datasets.load_mnist((5, 7), 50, 50)
    classifier = glm.GLMClassifier(**SETTINGS).fit(digits.X_train, digits.y_train)
    held = certified(classifier, digits.X_test, digits.y_test, 0)
    probabilities = classifier.predict_proba(digits.X_test)
    right = classifier.classes_[probabilities.argmax(axis=1)] == digits.y_test
    assert not np.any(held & ~right)


def test_larger_budgets_certify_less_and_attacks_stay_above():
    digits = glm.datasets.load_mnist((5, 7), 100, 100)
    classifier = glm.GLMClassifier(**{**SETTINGS, "n_steps": 4, "n_epochs": 5})
    classifier.fit(digits.X_train, digits.y_train)
    X, y = digits.X_test, digits.y_test
    accuracies = [certified_accuracy(classifier, X, y, budget) for budget in (0, 1, 3, 2000)]
    assert accuracies[0] > accuracies[1] > accuracies[2] >= accuracies[3] == 0
    held = certified(classifier, X, y, 1)
    probabilities = classifier.predict_proba(attack(classifier, X, y, 1))
    assert np.all((classifier.classes_[probabilities.argmax(axis=1)] == y)[held])


class Other(Objective):
    name = "other"

    def gradient(self, potentials, outputs, label, activation):
        return get_objective("rate", 4).gradient(potentials, outputs, label, activation)


class Reversed(Rate):
    name = "reversed"

    def probabilities(self, *arguments):
        return super().probabilities(*arguments)[:, ::-1]


class Fewest(Objective):
    def best(self, outcome):
        return outcome.counts == outcome.counts.min(axis=1, keepdims=True)


class Mixed(Rate, Fewest):
    name = "mixed"


def bump(u):
    return 0.02 + 0.96 * np.exp(-np.square(u))


BUMP = glm.Activation(
    name="bump",
    expression="0.02 + 0.96 * exp(-u**2)",
    probability=bump,
    log_spike=lambda u: np.log(bump(u)),
    log_silence=lambda u: np.log1p(-bump(u)),
    log_spike_slope=lambda u: -2 * u * (bump(u) - 0.02) / bump(u),
    log_silence_slope=lambda u: 2 * u * (bump(u) - 0.02) / (1 - bump(u)),
)


def test_networks_without_a_bound():
    digits = glm.datasets.load_mnist((5, 7), 10, 10)
    for parameters, match in (
        (dict(hidden=(3,)), "hidden layers"),
        (dict(decoding=Other()), "no bound"),
        (dict(decoding=Reversed()), "its own 'probabilities'.* inherited 'is_certain'"),
        (dict(decoding=Mixed()), "its own 'best'.* inherited 'is_certain'"),
        (
            dict(activation=BUMP, bias_init=0),
            "activation that rises .* got 'bump', which falls near",
        ),
    ):
        classifier = glm.GLMClassifier(**SETTINGS, **parameters).fit(digits.X_train, digits.y_train)
        with pytest.raises(ValueError, match=match):
            certified(classifier, digits.X_test, digits.y_test, 1)
