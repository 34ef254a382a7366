"""Training that diverges warns once, and names learning_rate; training that learns does not."""

import warnings
from functools import partial

import numpy as np
import pytest
from brian2 import Network, ms

import glmbrian as glm
from glmbrian.core.divergence import Reference, what_went_wrong

RANDOM = np.random.default_rng(0)
Y = np.repeat([0, 1], 20)
X = np.clip(RANDOM.random((40, 8)) * 0.4 + np.repeat(np.eye(2), 4, axis=1)[Y] * 0.6, 0, 1)


def classifier(**settings):
    defaults = dict(
        decoding="rate",
        n_steps=6,
        n_basis=2,
        n_epochs=6,
        device="runtime",
        random_state=0,
        verbose=False,
    )
    return glm.GLMClassifier(**{**defaults, **settings})


def warnings_of(train):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train()
    return [str(one.message) for one in caught if issubclass(one.category, RuntimeWarning)]


def assert_one_warning(train, *words):
    (message,) = warnings_of(train)
    for word in ("training seems to diverge", "learning_rate=5 ", "learning_rate=0.5", *words):
        assert word in message


TRAININGS = {
    "fit": lambda clf: clf.fit(X, Y),
    "partial_fit": lambda clf: clf.partial_fit(X, Y, classes=[0, 1]),
    "early_stopping": lambda clf: clf.set_params(early_stopping=True).fit(X, Y),
}


@pytest.mark.parametrize("how", TRAININGS)
def test_divergence_warns_once(how):
    assert_one_warning(lambda: TRAININGS[how](classifier(learning_rate=5.0)), "constant firing rates")
    assert warnings_of(lambda: TRAININGS[how](classifier())) == []


@pytest.mark.compiled
def test_divergence_in_a_compiled_program():
    runtime, compiled = (
        warnings_of(partial(classifier(learning_rate=5.0, device=device).fit, X, Y))
        for device in ("runtime", "cpp_standalone")
    )
    assert runtime == compiled and len(compiled) == 1


def test_the_members_of_an_ensemble():
    members = [classifier(learning_rate=rate) for rate in (0.1, 5.0, 0.05)]
    assert_one_warning(lambda: glm.fit_ensemble(members, X, Y), "of the classifiers, number 1 ")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        dict(decoding="first-to-spike"),
        dict(n_epochs=1),
        dict(n_epochs=1, learning_rate=1e-4),
        dict(hidden=(5,), decoding="first-to-spike"),
        dict(n_basis=1, n_steps=1),
        dict(
            n_steps=3, learning_rate=1e-6, random_state=1
        ),  # no spike is desired, so chance is perfect
        dict(adversarial={"budget": 2}),
        dict(weight_scale=3.0, bias_init="uniform", learning_rate=1e-3),  # starts far below chance
        dict(decoding="first-to-spike", weight_scale=3.0, bias_init="uniform", learning_rate=1e-3),
    ],
)
def test_training_that_learns_does_not_warn(settings):
    assert warnings_of(lambda: classifier(**settings).fit(X, Y)) == []


def test_weights_of_presentations():
    weights = np.where(Y, 1.0, 1e-3)
    assert warnings_of(lambda: classifier().fit(X, Y, weights)) == []


class Own(glm.Objective):
    """Without logarithms: minus the squared distance from the desired spikes."""

    name = "own"

    def desired(self, label, n_steps, n_outputs):
        spikes = super().desired(label, n_steps, n_outputs)
        spikes[-1, label] = 1
        return spikes

    def gradient(self, potentials, outputs, label, activation):
        p = activation.probability(potentials)
        error = outputs - p
        return -np.sum(error**2), 2 * error * activation.probability_slope(potentials)


def test_the_chance_level_of_an_objective():
    """Of the best constant rates, by its own gradient; the built-in ones as computed by hand."""
    sigmoid, labels, even = glm.get_activation("sigmoid"), np.arange(2), np.full(2, 0.5)

    def chance(objective, n_steps):
        desired = np.stack([objective.desired(label, n_steps, 2) for label in labels])
        return objective.chance(desired, labels, even, sigmoid)

    # A rate of 1/12: one spike in six steps at one of two neurons
    p = 1 / 12
    exact = 12 * (p * np.log(p) + (1 - p) * np.log(1 - p))
    assert np.isclose(chance(glm.core.objectives.Rate(period=6), 6), exact)
    p = np.linspace(0, 1, 10001)[1:-1]
    first = p * (1 - p) * sum((1 - p) ** (2 * t) for t in range(6))
    assert np.isclose(chance(glm.core.objectives.FirstToSpike(), 6), np.log(first.max()), atol=0.02)
    squares = 12 * ((1 / 12) * (11 / 12))
    assert np.isclose(chance(Own(), 6), -squares, atol=0.01)


def test_objectives_of_the_users_own():
    assert warnings_of(lambda: classifier(decoding=Own(), learning_rate=0.05).fit(X, Y)) == []


def test_free_outputs_have_no_chance_level():
    class Free(Own):
        clamps_outputs = False

    assert Free().chance(np.zeros((1, 2, 2)), np.zeros(1, int), np.ones(1), None) == -np.inf
    assert warnings_of(lambda: classifier(decoding=Free(), learning_rate=5.0).fit(X, Y)) == []


REFERENCE = Reference(chance=-2.0, start=-3.0)


@pytest.mark.parametrize(
    "history, message",
    [
        ([-2.5, -1.5, -1.0, -0.8, -0.7, -0.7], ""),
        ([-60.0, -30.0, -20.0, -1.0, -0.7, -0.7], ""),  # only the end counts
        ([-2.5, -1.5, -1.0, -1.5, -9.0, -30.0], "last epoch is -30"),
        ([-0.5, -0.6, -0.9, -1.1, -1.4, -1.8], "fell from -0.55 in the first epochs to -1.6"),
        ([-0.10, -0.08, -0.09, -0.11, -0.10, -0.11], ""),  # converged
        ([-0.2, -0.9, -0.1, -0.8, -0.3, -1.0], ""),  # noise
        ([-4.5], ""),  # little has been learned yet
        ([np.nan], "no longer finite"),
    ],
)
def test_histories(history, message):
    found = what_went_wrong(np.array(history), 100, REFERENCE)
    assert message in found if message else found == ""


def test_few_presentations_say_little():
    assert what_went_wrong(np.array([-100.0] * 4), 4, REFERENCE) == ""
    assert "last 5 epochs is -100" in what_went_wrong(np.array([-100.0] * 6), 4, REFERENCE)


def trained(rate, **settings):
    labels = np.tile([0, 1], 50)
    images = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])[labels]
    encoder = glm.RateEncoder(images, n_steps=5, random_state=1, dt=1 * ms)
    neurons = glm.GLMNeurons(2, glm.RaisedCosineBasis(2, 4), dt=1 * ms)
    neurons.bias = -2
    synapses = glm.GLMSynapses(encoder, neurons)
    examples = {} if "targets" in settings else {"labels": labels}
    trainer = glm.Trainer(neurons, synapses, n_steps=5, learning_rate=rate, **examples, **settings)
    return trainer, Network(encoder, neurons, synapses, trainer)


@pytest.mark.parametrize(
    "settings",
    [{}, dict(rule="rate"), dict(rule="rate", targets=RANDOM.random((100, 5, 2)) < 0.2)],
)
def test_trainers(settings):
    def train(rate):
        trainer, network = trained(rate, **settings)
        network.run(trainer.duration)
        network.run(5 * ms)
        trainer.log_likelihoods  # noqa: B018

    (message,) = warnings_of(lambda: train(200.0))
    assert "learning_rate=200 " in message and "learning_rate=20" in message
    assert warnings_of(lambda: train(0.05)) == []
