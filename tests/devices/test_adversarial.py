"""Adversarial training equals the plain maths, on every device."""

from dataclasses import replace

import numpy as np
import pytest
from brian2 import prefs
from by_hand import as_layers, hidden_draws, make_start
from conftest import in_numpy_and_compiled

import glmbrian as glm
from glmbrian.core.adversarial import Adversarial
from glmbrian.core.changes import KINDS
from glmbrian.core.layers import Presentation
from glmbrian.core.objectives import get_objective
from glmbrian.core.randomness import adversarial_key, shuffled, uniforms
from glmbrian.core.rate_code import rate_encode
from glmbrian.devices import get_device
from glmbrian.devices.problem import (
    HiddenLayers,
    Inputs,
    Network,
    Training,
)
from glmbrian.support.progress import Silent

N, N_INPUTS, N_CLASSES, N_STEPS, N_EPOCHS = 40, 12, 3, 6, 5  # 200 presentations
RANDOM = np.random.default_rng(1)
IMAGES = RANDOM.integers(0, 256, (N, N_INPUTS)).astype(np.uint8)
IMAGES[:, ::4] = 0  # inputs that spike only if an attack makes them
TRAINS = (RANDOM.random((N, N_STEPS, N_INPUTS)) < 0.3).astype(np.uint8)
INPUTS = {"bytes": Inputs("bytes", IMAGES), "trains": Inputs("trains", TRAINS)}
LABELS = RANDOM.integers(0, N_CLASSES, N)


class FirstTwo(glm.robustness.Kind):
    name = "first two"

    def allowed(self, trains):
        return np.broadcast_to(np.arange(trains.shape[-1]) < 2, trains.shape)


def make_network(rule="first-to-spike", sizes=(), n_steps=N_STEPS, n_inputs=N_INPUTS):
    random = np.random.default_rng(0)
    basis = glm.CustomBasis(random.normal(size=(min(5, n_steps), 3)))
    hidden_bases = [glm.CustomBasis(random.normal(size=(lags, 2))) for lags in (4, 3)]
    return Network(
        n_inputs,
        N_CLASSES,
        n_steps,
        basis=basis,
        feedback_basis=basis if rule == "rate" else None,
        activation=glm.get_activation("sigmoid"),
        objective=get_objective(rule, 3),
        hidden=HiddenLayers(sizes, *hidden_bases) if sizes else HiddenLayers(),
    )


def make_training(kind, **changes):
    adversarial = Adversarial(4, KINDS[kind], 0.5)
    training = Training(np.array([0.2]), N_EPOCHS, 1, input_key=4, order_key=5, output_key=6)
    return replace(training, **{"adversarial": adversarial, **changes})


def in_spikes(layers, x, hidden, label, objective):
    """The derivative of the log-likelihood with respect to each input spike.

    What a spike adds to the potentials of the first layer, times the gradient in these.
    """
    presentation = Presentation.with_spikes(layers, x, hidden, label, objective)
    slopes = [*presentation.straight_through_slopes(), presentation.output_slope][0]
    derivatives, silent = np.zeros(x.shape), np.zeros((len(x), layers[0].n))
    for place in np.ndindex(x.shape):
        one = np.zeros(x.shape)
        one[place] = 1
        derivatives[place] = np.sum((layers[0].potentials(one, silent) - layers[0].bias) * slopes)
    return derivatives


def learn_by_hand(network, start, inputs, training):
    """Attack and learn, presentation by presentation."""
    learned, history, n_done, n_attacked = start.copy(), [], 0, 0
    adversarial, n_steps = training.adversarial, network.n_steps
    for epoch in range(training.n_epochs):
        values, batch = [], []
        for item in shuffled(training.order_key, epoch, N):
            layers = as_layers(network, learned)
            if inputs.kind == "trains":
                x = inputs.data[item]
            else:
                x = rate_encode(inputs.levels([item]), training.input_key, [n_done], n_steps)[0]
            draws = hidden_draws(network, training.output_key, n_done)
            if uniforms(adversarial_key(training.output_key), n_done, 0, 0) < adversarial.fraction:
                _, _, hidden = glm.learning.layered_gradient(
                    x, LABELS[item], layers, draws, network.objective
                )
                x = worst_by_hand(
                    x, in_spikes(layers, x, hidden, LABELS[item], network.objective), adversarial
                )
                n_attacked += 1
            value, gradients, _ = glm.learning.layered_gradient(
                x, LABELS[item], layers, draws, network.objective
            )
            values.append(value)
            batch.append(gradients)
            n_done += 1
            if len(batch) == training.batch_size or len(values) == N:
                rate = training.learning_rates[0] / len(batch)
                for gradients in batch:
                    for layer, gradient in zip(learned.layers, gradients):
                        layer.weights += rate * gradient.weights
                        layer.bias += rate * gradient.bias
                        if gradient.feedback is not None:
                            layer.feedback += rate * gradient.feedback
                batch = []
        history.append(np.mean(values))
    assert adversarial.fraction == 1 or 0.3 < n_attacked / n_done < 0.7
    return learned, np.array(history)


def worst_by_hand(x, derivatives, adversarial):
    """Make the changes one by one, the worst first."""
    effects = {}
    for step, source in np.ndindex(x.shape):
        adds = x[step, source] == 0
        if adversarial.kind.name in ("flip", "add" if adds else "remove"):
            effect = derivatives[step, source] if adds else -derivatives[step, source]
            if effect < 0:
                effects[step, source] = effect
    changed = x.copy()
    for place in sorted(effects, key=effects.get)[: adversarial.budget]:
        changed[place] = 1 - changed[place]
    return changed


def learn(place, network, start, inputs, training):
    if place != "cpp_standalone":
        prefs.codegen.target, place = place, "runtime"
    device = get_device(place)
    trained = device.train(network, start, inputs, LABELS, training, Silent())
    learned, history = trained.parameters, trained.history
    return learned, history[:, 0]


CASES = {
    "flip": (make_network(), "bytes", make_training("flip")),
    "add": (make_network(), "bytes", make_training("add", batch_size=8)),
    "remove": (make_network(), "trains", make_training("remove")),
    "flip, trains": (make_network(), "trains", make_training("flip", batch_size=8)),
    "rate, flip": (make_network("rate"), "bytes", make_training("flip", batch_size=8)),
    "rate, add": (make_network("rate"), "trains", make_training("add")),
    "rate, remove": (make_network("rate"), "bytes", make_training("remove")),
    "hidden, flip": (make_network(sizes=(6,)), "bytes", make_training("flip")),
    "hidden, add": (make_network(sizes=(6,)), "trains", make_training("add", batch_size=8)),
    "two hidden, rate": (make_network("rate", (5, 4)), "bytes", make_training("remove", batch_size=8)),
    "all entries": (
        make_network(),
        "bytes",
        make_training("flip", adversarial=Adversarial(1000, KINDS["flip"])),
    ),
    "wide": (make_network(sizes=(37,)), "bytes", make_training("flip")),
}


USUAL = ["flip", "hidden, add", "two hidden, rate"]


@pytest.mark.parametrize("case, place", in_numpy_and_compiled(CASES, USUAL))
def test_two_hundred_presentations_equal_the_maths(case, place):
    network, kind, training = CASES[case]
    start, inputs = make_start(network, 0.5), INPUTS[kind]
    learned, history = learn(place, network, start, inputs, training)
    expected, log_likelihoods = learn_by_hand(network, start, inputs, training)
    for array, want in zip(learned.arrays_of_all, expected.arrays_of_all):
        np.testing.assert_allclose(array, want, rtol=0, atol=1e-9)
    np.testing.assert_allclose(history, log_likelihoods, rtol=0, atol=1e-9)
    plain, _ = learn("numpy", network, start, inputs, replace(training, adversarial=None))
    assert np.abs(plain.layers[0].weights - learned.layers[0].weights).max() > 1e-3


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_two_hundred_presentations_in_cython():
    test_two_hundred_presentations_equal_the_maths("rate, flip", "cython")


@pytest.mark.compiled
@pytest.mark.parametrize(
    "n_steps",
    [1, pytest.param(2, marks=pytest.mark.exhaustive), pytest.param(9, marks=pytest.mark.exhaustive)],
)
def test_presentations_of_other_lengths(n_steps):
    """The last step is alone in its group of four, or there is nothing to change."""
    network, training = make_network(n_steps=n_steps), make_training("flip")
    start = make_start(network, 0.5)
    one, other = (
        learn(place, network, start, INPUTS["bytes"], training) for place in ("numpy", "cpp_standalone")
    )
    np.testing.assert_allclose(one[0].weights, other[0].weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(one[1], other[1], rtol=0, atol=1e-9)


#: Settings, how many presentations to learn, and how wide the network is.  Compiled programs copy the
#: weights now and then, and a copy must not be trusted for longer than its error is known.
MANY_INPUTS = {
    "old copies": ({}, 1, ()),
    "weight decay": ({"weight_decay": 0.02}, 1, ()),
    "batches": ({"weight_decay": 0.02, "batch_size": 7}, 1, ()),
    "large budget": ({"adversarial": Adversarial(150, KINDS["flip"])}, 1, ()),
    "large weights": ({}, 1e30, ()),
    "small weights": ({}, 1e-30, ()),
    "hidden": ({}, 1, (21,)),
    "late steps": (
        {"adversarial": Adversarial(8, KINDS["add"]), "learning_rates": np.array([0.001])},
        1,
        (),
    ),
}


@pytest.mark.compiled
@pytest.mark.parametrize("case", MANY_INPUTS)
def test_many_inputs(case):
    changes, scale, sizes = MANY_INPUTS[case]
    rule = "rate" if case == "late steps" else "first-to-spike"
    network = make_network(rule, n_steps=11, n_inputs=203, sizes=sizes)
    # Its late functions have no effect in the last steps.
    network = replace(network, basis=glm.RaisedCosineBasis(10, 10))
    start, random = make_start(network, 0.5), np.random.default_rng(5)
    if case == "late steps":
        # Spikes can only be added in the last two steps with effects, for some inputs only in the last.
        trains = np.ones((N, 11, 203), np.uint8)
        trains[:, 8:10] = random.random((N, 2, 203)) < 0.3
        trains[:, 8, np.arange(203) % 20 > 0] = 1
        inputs = Inputs("trains", trains)
    else:
        images = random.integers(0, 256, (N, 203)).astype(np.uint8)
        images[:, ::3] = 0
        inputs = Inputs("bytes", images)
    first = start.layers[0].weights
    first[::5] = 0
    first *= 0.1 * scale
    training = make_training("flip", **{"n_epochs": 6, "learning_rates": np.array([0.02]), **changes})
    one, other = (
        learn(place, network, start, inputs, training) for place in ("numpy", "cpp_standalone")
    )
    for array, want in zip(one[0].arrays_of_all, other[0].arrays_of_all):
        np.testing.assert_allclose(array, want, rtol=1e-9, atol=1e-9)


@pytest.mark.compiled
def test_equal_effects_are_changed_in_order():
    """With equal weights, rounding must not decide."""
    network, training = make_network(), make_training("add")
    start = make_start(network, 0.5)
    start.weights[:] = start.weights[0]
    one, other = (
        learn(place, network, start, INPUTS["bytes"], training) for place in ("numpy", "cpp_standalone")
    )
    np.testing.assert_allclose(one[0].weights, other[0].weights, rtol=0, atol=1e-9)


def test_a_kind_of_your_own():
    training = make_training("flip", adversarial=Adversarial(3, FirstTwo()))
    network = make_network()
    start = make_start(network, 0.5)
    with pytest.raises(ValueError, match="kind 'first two' of adversarial .* device must be 'runtime'"):
        learn("cpp_standalone", network, start, INPUTS["bytes"], training)
    learned, _ = learn("numpy", network, start, INPUTS["bytes"], training)
    plain, _ = learn("numpy", network, start, INPUTS["bytes"], replace(training, adversarial=None))
    assert not np.allclose(learned.weights, plain.weights)
