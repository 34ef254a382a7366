"""Learning and testing in simulation equal the plain maths, on every device."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from brian2 import prefs
from conftest import in_numpy_and_compiled, levels_above_draws

import glmbrian as glm
from glmbrian.core.decisions import decide, measures
from glmbrian.core.objectives import get_objective
from glmbrian.core.randomness import shuffled, uniforms
from glmbrian.core.rate_code import rate_encode
from glmbrian.devices import get_device, runtime
from glmbrian.devices.problem import Inputs, Network, Outcome, Parameters, Testing, Training
from glmbrian.support.progress import Silent

N, N_INPUTS, N_OUTPUTS, N_STEPS = 25, 30, 3, 6
INPUT_KEY, ORDER_KEY, OUTPUT_KEY = 12345678901234567890, 987654321, 55555
RULES = ["first-to-spike", "rate"]
PLACES = ["numpy", pytest.param("cpp_standalone", marks=pytest.mark.compiled)]


def get_place(name):
    """A device; for the runtime device `name` is one of Brian's targets."""
    if name == "cpp_standalone":
        return get_device(name)
    prefs.codegen.target = name
    return get_device("runtime")


def make_network(rule, activation="sigmoid"):
    random = np.random.default_rng(0)
    return Network(
        N_INPUTS,
        N_OUTPUTS,
        N_STEPS,
        basis=glm.CustomBasis(random.normal(size=(8, 3))),
        feedback_basis=glm.CustomBasis(random.normal(size=(4, 2))) if rule == "rate" else None,
        activation=glm.get_activation(activation),
        objective=get_objective(rule, 3, start=2),
    )


def make_start(network, seed=1):
    random = np.random.default_rng(seed)
    n_feedback = network.feedback_basis.n_basis if network.feedback_basis else 0
    return Parameters(
        random.normal(size=(N_INPUTS, N_OUTPUTS, 3)) * 0.1,
        random.normal(size=(N_OUTPUTS, n_feedback)) * 0.1,
        random.normal(size=N_OUTPUTS) - 1,
    )


def make_inputs(kind):
    random = np.random.default_rng(2)
    if kind == "bytes":
        return Inputs("bytes", random.integers(0, 256, (N, N_INPUTS)).astype(np.uint8))
    if kind == "levels":
        return Inputs("levels", make_levels(random))
    return Inputs("trains", (random.random((N, N_STEPS, N_INPUTS)) < 0.3).astype(np.uint8))


def make_levels(random):
    # Half of the items are for a test, half for the first epoch of `CASES`.
    place = np.argsort(shuffled(ORDER_KEY, 3, N))
    presentations = np.where(np.arange(N) % 2, np.arange(N), 3 * N + place)
    levels = levels_above_draws(random, INPUT_KEY, presentations, N_STEPS - 1, N_INPUTS)
    return np.where(random.random(levels.shape) < 0.2, np.float32(0), levels)


LABELS = np.random.default_rng(3).integers(0, N_OUTPUTS, N)


def trains_of(inputs, presentations, items):
    """The spike trains of some presentations, straight from the encoder's rule."""
    if inputs.kind == "trains":
        return inputs.data[items]
    return rate_encode(inputs.levels(items), INPUT_KEY, presentations, N_STEPS)


def test_second_draws_decide_in_what_follows():
    inputs = make_inputs("levels")
    items = np.arange(N)
    in_training = shuffled(ORDER_KEY, 3, N)
    for presentations, order in [(items, items), (3 * N + items, in_training)]:
        exact = trains_of(inputs, presentations, order)
        whole = [rate_encode(round_(inputs.levels(order)), INPUT_KEY, presentations, N_STEPS)
                 for round_ in (np.floor, np.ceil)]  # fmt: skip
        assert min((exact != other).sum() for other in whole) > 20


def learn_by_hand(network, start, inputs, training):
    """Apply the functions of `glmbrian.learning` presentation by presentation."""
    w, v, b = start.weights.copy(), start.feedback.copy(), start.bias.copy()
    history, presentation = [], training.first_presentation
    for _ in range(training.n_epochs):
        order = shuffled(training.order_key, presentation // N, N)
        log_likelihoods = []
        for first in range(0, N, training.batch_size):
            batch = order[first : first + training.batch_size]
            sums = [0.0, 0.0, 0.0]
            for item in batch:
                x = trains_of(inputs, [presentation], [item])[0]
                if network.objective.name == "rate":
                    targets = np.zeros((N_STEPS, N_OUTPUTS))
                    targets[1::3, LABELS[item]] = 1
                    ll, gw, gv, gb = glm.learning.rate_log_likelihood(
                        x, targets, network.basis.matrix, network.feedback_basis.matrix,
                        w, v, b, network.activation,
                    )  # fmt: skip
                else:
                    ll, gw, gb = glm.learning.first_to_spike_log_likelihood(
                        x, LABELS[item], network.basis.matrix, w, b, network.activation
                    )
                    gv = 0.0
                sums = [total + part for total, part in zip(sums, (gw, gv, gb))]
                log_likelihoods.append(ll)
                presentation += 1
            rate = training.learning_rates[0] / len(batch)
            w, v, b = (old + rate * total for old, total in zip((w, v, b), sums))
        history.append(np.mean(log_likelihoods))
    return Parameters(w, v, b), np.array(history)


CASES = [
    ("sigmoid", "bytes", 1, 0),
    ("sigmoid", "levels", 4, 3 * N),
    ("sigmoid", "trains", 1, 0),
    ("sigmoid", "bytes", 1, 2**40),
    ("probit", "bytes", 1, 0),
    ("cloglog", "bytes", 1, 0),
]


#: Each activation with each rule is a program of its own.
USUAL = [(rule, case) for rule in RULES for case in CASES if case[0] == "sigmoid"] + [
    ("first-to-spike", CASES[4]),
    ("rate", CASES[5]),
]


@pytest.mark.parametrize("case, place", in_numpy_and_compiled(product(RULES, CASES), USUAL), ids=str)
def test_fifty_updates_equal_the_maths(case, place):
    rule, settings = case
    check_fifty_updates(place, rule, *settings)


@pytest.mark.parametrize("place", PLACES)
def test_presentations_beyond_32_bits(place):
    check_fifty_updates(place, "first-to-spike", "sigmoid", "bytes", 1, N * 2**36)


@pytest.mark.compiled
@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", RULES)
def test_fifty_updates_equal_the_maths_in_cython(rule):
    # Brian compiles each operation of its Cython target by itself, in seconds.
    check_fifty_updates("cython", rule, *CASES[0])


@pytest.mark.parametrize(
    "n_inputs, n_outputs, n_steps, n_presentations, target",
    [
        (784, 2, 8, 15_000, "numpy"),
        (784, 2, 8, 16_000, "auto"),
        (784, 200, 8, 500, "numpy"),
        (784, 200, 8, 1000, "auto"),  # as in an ensemble
        (5000, 10, 200, 50, "numpy"),
        (5000, 10, 200, 200, "auto"),
    ],
)
def test_few_steps_are_not_worth_compiling(n_inputs, n_outputs, n_steps, n_presentations, target):
    network = replace(make_network("rate"), n_inputs=n_inputs, n_classes=n_outputs, n_steps=n_steps)
    prefs.codegen.target = "auto"
    assert runtime.numpy_is_faster(network, n_presentations) == (target == "numpy")
    prefs.codegen.target = "cython"  # which somebody chose
    assert not runtime.numpy_is_faster(network, 1)


def test_threads_take_turns():
    network, inputs = make_network("rate"), make_inputs("bytes")
    testing = Testing(INPUT_KEY, OUTPUT_KEY)

    def test(_):
        return (
            runtime.Runtime()
            .test(network, make_start(network), inputs, testing, Silent())[0]
            .potential_sum
        )

    prefs.codegen.target = "auto"
    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(test, range(8))
    assert prefs.codegen.target == "auto"
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_few_presentations_compile_nothing(tmp_path):
    prefs.codegen.target = "auto"
    prefs.codegen.runtime.cython.cache_dir = str(tmp_path)
    check_fifty_updates("auto", "rate", *CASES[0])
    assert list(tmp_path.iterdir()) == [] and prefs.codegen.target == "auto"


def check_fifty_updates(place, rule, activation, kind, batch_size, first):
    place = get_place(place)
    network = make_network(rule, activation)
    start, inputs = make_start(network), make_inputs(kind)
    training = Training(
        np.array([0.02]),
        2 * batch_size,
        batch_size,
        INPUT_KEY,
        ORDER_KEY,
        first_presentation=first,
    )
    trained = place.train(network, start, inputs, LABELS, training, Silent())
    learned, history, timing = trained.parameters, trained.history, trained.timing
    expected, expected_history = learn_by_hand(network, start, inputs, training)
    assert np.abs(expected.weights - start.weights).max() > 1e-3
    np.testing.assert_allclose(learned.weights, expected.weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learned.feedback, expected.feedback, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learned.bias, expected.bias, rtol=0, atol=1e-9)
    np.testing.assert_allclose(history[:, 0], expected_history, rtol=0, atol=1e-9)
    assert timing.presentations == 2 * batch_size * N
    assert timing.steps == timing.presentations * N_STEPS


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("kind, first", [("bytes", 0), ("levels", 0), ("trains", 0), ("bytes", 2**40)])
@pytest.mark.parametrize("place", PLACES)
def test_test_runs_equal_the_maths(place, rule, kind, first):
    place = get_place(place)
    network = make_network(rule)
    parameters, inputs = make_start(network), make_inputs(kind)
    testing = Testing(INPUT_KEY, OUTPUT_KEY, first_presentation=first)
    outcome, timing = place.test(network, parameters, inputs, testing, Silent())
    expected = observe_by_hand(network, parameters, inputs, rule, first)
    for name in ("steps", "input_spikes", "counts"):
        np.testing.assert_array_equal(getattr(outcome, name), getattr(expected, name), name)
    for name in ("potential_sum", "potential_last"):
        np.testing.assert_allclose(getattr(outcome, name), getattr(expected, name), atol=1e-9)
    assert timing.presentations == N
    assert timing.steps == outcome.steps.sum()
    assert rule == "first-to-spike" or set(outcome.steps) == {N_STEPS}


def observe_by_hand(network, parameters, inputs, rule, first):
    rows = []
    for item in range(N):
        x = trains_of(inputs, [first + item], [item])[0]
        y = np.zeros((N_STEPS, N_OUTPUTS), dtype=int)
        for step in range(N_STEPS):
            # outputs of this step depend on earlier ones
            feedback = network.feedback_basis
            u = glm.learning.membrane_potential(
                x, network.basis.matrix, parameters.weights, parameters.bias,
                *((y, feedback.matrix, parameters.feedback) if feedback else ()),
            )  # fmt: skip
            draws = uniforms(OUTPUT_KEY, first + item, step, np.arange(N_OUTPUTS))
            y[step] = draws < network.activation.probability(u[step])
            if rule == "first-to-spike" and y[step].any():
                break
        seen = slice(0, step + 1)
        rows.append(np.concatenate([[step + 1, x[seen].sum()], y.sum(0), u[seen].sum(0), u[step]]))
    return Outcome.from_rows(rows, N_OUTPUTS)


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_presentations_of_many_steps():
    """So many steps that arrays over them would not fit on the stack."""
    n_steps = 400_000
    # lags at which a basis is zero cost nothing
    basis = glm.CustomBasis(np.vstack([[[1.0], [0.5]], np.zeros((n_steps - 2, 1))]))
    network = Network(2, 2, n_steps, basis, None, glm.get_activation("sigmoid"))
    start = Parameters(np.full((2, 2, 1), 0.01), np.zeros((2, 0)), np.full(2, -13.0))
    inputs = Inputs.of_intensities(np.array([[1e-4, 0.3], [0.2, 1e-5]]))
    training = Training(np.array([0.05]), 1, 1, INPUT_KEY, ORDER_KEY)
    trained = get_device("cpp_standalone").train(network, start, inputs, [0, 1], training, Silent())
    learned, timing = trained.parameters, trained.timing
    weights, bias = start.weights, start.bias
    for presentation, item in enumerate(shuffled(ORDER_KEY, 0, 2)):
        x = rate_encode(inputs.levels([item]), INPUT_KEY, [presentation], n_steps)[0]
        _, of_weights, of_bias = glm.learning.first_to_spike_log_likelihood(
            x, item, basis.matrix[:2], weights, bias, network.activation
        )
        weights, bias = weights + 0.05 * of_weights, bias + 0.05 * of_bias
    assert timing.steps == 2 * n_steps and np.abs(weights - start.weights).max() > 1e-3
    np.testing.assert_allclose(learned.weights, weights, rtol=0, atol=1e-9)
    np.testing.assert_allclose(learned.bias, bias, rtol=0, atol=1e-9)


OUTCOME = Outcome(
    steps=np.array([2, 3, 4, 1]),
    input_spikes=np.array([10, 20, 30, 40]),
    counts=np.array([[0, 1, 0], [1, 0, 1], [0, 0, 0], [2, 3, 3]]),
    potential_sum=np.array([[0.0, 0, 0], [1, 9, 0], [0, 0, 3], [9, 0, 1]]),
    potential_last=np.array([[9.0, 0, 0], [0, 5, 1], [7, 0, 0], [0, 2, 1]]),
)


@pytest.mark.parametrize(
    "rule, on_tie, on_silence, expected",
    [
        ("first-to-spike", "potential", "potential", [1, 2, 2, 1]),
        ("first-to-spike", "potential", "reject", [1, 2, -1, 1]),
        ("rate", "potential", "potential", [1, 0, 2, 2]),
        ("rate", "potential", "reject", [1, 0, -1, 2]),
    ],
)
def test_decisions(rule, on_tie, on_silence, expected):
    decision = decide(OUTCOME, get_objective(rule, 4), on_tie, on_silence, key=1)
    np.testing.assert_array_equal(decision, expected)


def test_random_choices_are_among_those_that_are_level():
    many = Outcome(*(np.tile(part.T, 500).T for part in vars(OUTCOME).values()))
    decision = decide(many, get_objective("rate", 4), "random", "random", key=1).reshape(500, 4)
    assert set(decision[:, 0]) == {1}
    assert set(decision[:, 1]) == {0, 2}
    assert set(decision[:, 2]) == {0, 1, 2}
    assert 180 < (decision[:, 3] == 1).sum() < 320 and set(decision[:, 3]) == {1, 2}


def test_measures():
    assert measures(OUTCOME) == pytest.approx(
        {
            "mean_decision_step": 2.5,
            "silent_fraction": 0.25,
            "operations_per_class": (100 + (1 + 2 + 0 + 8) / 3) / 4,
        }
    )
