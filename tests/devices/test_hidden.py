"""Learning in networks with hidden layers equals the plain maths, on every device."""

from dataclasses import replace

import numpy as np
import pytest
from brian2 import prefs
from by_hand import learn_by_hand, make_start
from conftest import in_numpy_and_compiled

import glmbrian as glm
from glmbrian.core.credit import get_credit
from glmbrian.core.objectives import get_objective
from glmbrian.core.optimisers import get_optimizer
from glmbrian.core.schedules import get_schedule
from glmbrian.devices import get_device
from glmbrian.devices.problem import (
    HiddenLayers,
    Inputs,
    Network,
    Testing,
    Training,
)
from glmbrian.support.progress import Silent

N, N_INPUTS, N_CLASSES, N_STEPS, N_EPOCHS = 40, 12, 3, 6, 5  # 200 presentations
INPUTS = Inputs("bytes", np.random.default_rng(1).integers(0, 256, (N, N_INPUTS)).astype(np.uint8))
LABELS = np.random.default_rng(2).integers(0, N_CLASSES, N)
TESTING = Testing(input_key=7, output_key=8)


def get_place(name):
    """A device; for the runtime device `name` is one of Brian's targets."""
    if name == "cpp_standalone":
        return get_device(name)
    prefs.codegen.target = name
    return get_device("runtime")


def make_network(
    sizes, rule="first-to-spike", feedback=True, credit="straight-through", exponential=False,
    optimizer="sgd",
):  # fmt: skip
    random = np.random.default_rng(0)
    bases = [glm.CustomBasis(random.normal(size=(lags, k))) for lags, k in ((7, 2), (4, 3), (3, 2))]
    if exponential:
        bases = [glm.ExponentialBasis(taus, 7) for taus in ([1.0, 3.0], [0.5, 2.0, 4.0], [2.0, 3.0])]
    return Network(
        N_INPUTS,
        N_CLASSES,
        N_STEPS,
        basis=bases[0],
        feedback_basis=bases[0] if rule == "rate" else None,
        activation=glm.get_activation("sigmoid"),
        objective=get_objective(rule, 3),
        hidden=HiddenLayers(sizes, bases[1], bases[2] if feedback else None, get_credit(credit)),
        optimizer=get_optimizer(optimizer),
    )


def make_training(**changes):
    training = Training(np.array([0.5]), N_EPOCHS, 1, input_key=4, order_key=5, output_key=6)
    return replace(training, **changes)


CASES = {
    "one": (make_network((6,)), make_training()),
    "one, rate": (make_network((6,), "rate"), make_training()),
    "two": (make_network((5, 4)), make_training(batch_size=8)),
    "two, rate": (make_network((5, 4), "rate"), make_training()),
    "three-factor": (make_network((5, 4), credit="three-factor"), make_training()),
    "weighted": (
        make_network((6,)),
        make_training(
            batch_size=8,
            sample_weights=np.random.default_rng(9).choice([0.0, 0.5, 2.0], (1, N)),
            schedule=get_schedule("linear"),
            n_planned=N * N_EPOCHS,
            n_averaged=3,
            weight_decay=0.01,
        ),
    ),
    "exponential kernels": (
        make_network((5, 4), "rate", exponential=True),
        make_training(batch_size=3, weight_decay=0.02),
    ),
    "wide, no feedback": (make_network((70,), feedback=False), make_training(weight_decay=0.01)),
    "Adam": (make_network((5,), optimizer="adam"), make_training(learning_rates=np.array([0.02]))),
    "Adam, all": (
        make_network((5,), optimizer="adam"),
        make_training(
            learning_rates=np.array([0.02]),
            batch_size=8,
            sample_weights=np.random.default_rng(9).choice([0.0, 0.5, 2.0], (1, N), p=[0.8, 0.1, 0.1]),
            schedule=get_schedule(lambda done: (1 - done) ** 2),
            n_planned=N * N_EPOCHS,
            n_averaged=2,
            weight_decay=0.1,
            clip_norm=0.8,
        ),
    ),
    "Adam, rate, no hidden": (
        make_network((), "rate", optimizer=glm.Adam(0.8, 0.95, 1e-3)),
        make_training(learning_rates=np.array([0.02]), batch_size=8),
    ),
    "momentum": (
        make_network((5,), optimizer="momentum"),
        make_training(learning_rates=np.array([0.05])),
    ),
    "momentum, no hidden": (
        make_network((), optimizer=glm.SGD(0.5)),
        make_training(batch_size=8, clip_norm=0.3),
    ),
    "clipped": (make_network((6,)), make_training(clip_norm=0.9)),
}


USUAL = ["two", "weighted", "exponential kernels", "Adam", "Adam, all"]


@pytest.mark.parametrize("case, place", in_numpy_and_compiled(CASES, USUAL))
def test_two_hundred_presentations_equal_the_maths(case, place):
    network, training = CASES[case]
    start = make_start(network)
    before = start.copy()
    trained = get_place(place).train(network, start, INPUTS, LABELS, training, Silent())
    learned, history = trained.parameters, trained.history
    expected, log_likelihoods = learn_by_hand(network, start, INPUTS, LABELS, training)
    for array, want in zip(learned.arrays_of_all, expected.arrays_of_all):
        np.testing.assert_allclose(array, want, rtol=0, atol=1e-9)
    np.testing.assert_allclose(history[:, 0], log_likelihoods, rtol=0, atol=1e-9)
    for array, unchanged, moved in zip(
        start.arrays_of_all, before.arrays_of_all, learned.arrays_of_all
    ):
        np.testing.assert_array_equal(array, unchanged)
        assert array.size == 0 or np.abs(moved - array).max() > 1e-5


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_two_hundred_presentations_in_cython():
    # Brian compiles each operation of its Cython target by itself, in seconds.
    test_two_hundred_presentations_equal_the_maths("one, rate", "cython")


def test_flips_equal_the_maths():
    network, training = make_network((4, 3), credit="flip"), make_training(n_epochs=1)
    start = make_start(network)
    trained = get_place("numpy").train(network, start, INPUTS, LABELS, training, Silent())
    learned = trained.parameters
    expected, _ = learn_by_hand(network, start, INPUTS, LABELS, training)
    for array, want in zip(learned.arrays_of_all, expected.arrays_of_all):
        np.testing.assert_allclose(array, want, rtol=0, atol=1e-9)
    with pytest.raises(ValueError, match="credit 'flip' has no C.. form.*device must be 'runtime'"):
        get_device("cpp_standalone").train(network, start, INPUTS, LABELS, training, Silent())


@pytest.mark.compiled
@pytest.mark.parametrize(
    "case", [pytest.param("one", marks=pytest.mark.exhaustive), "exponential kernels"]
)
def test_tests_are_alike(case):
    """A test ends with its decision, hidden layers included."""
    network, _ = CASES[case]
    start = make_start(network)
    outcomes = [
        get_place(place).test(network, start, INPUTS, TESTING, Silent())[0]
        for place in ("numpy", "cpp_standalone")
    ]
    for name, values in vars(outcomes[0]).items():
        np.testing.assert_allclose(values, vars(outcomes[1])[name], rtol=0, atol=1e-9, err_msg=name)
    traces = get_place("numpy").record(network, start, INPUTS, TESTING)
    for n, trace in enumerate(traces):
        assert len(trace.outputs) == outcomes[0].steps[n]
        assert [spikes.sum() for spikes in trace.hidden] == outcomes[0].hidden_spikes[n].tolist()
        check_potentials(network, start, trace)
    if network.objective.stops_at_first_spike:
        assert outcomes[0].steps.min() < N_STEPS
    assert outcomes[0].hidden_spikes.min(axis=0).max() < outcomes[0].hidden_spikes.max()


def check_potentials(network, parameters, trace):
    """Each layer's potentials follow from the spikes below it and its own."""
    trains = [trace.inputs, *trace.hidden, trace.outputs]
    potentials = [*trace.hidden_potentials, trace.potentials]
    for shape, layer, below, own, u in zip(
        network.layers, parameters.layers, trains, trains[1:], potentials
    ):
        feedback = None if shape.feedback_basis is None else layer.feedback
        expected = glm.learning.Layer(
            shape.basis, layer.weights, layer.bias, shape.feedback_basis, feedback
        ).potentials(below, own)
        np.testing.assert_allclose(u, expected, rtol=0, atol=1e-9)
