"""Tests of glmbrian.learning against the paper's equations in 120 digits.

The reference below is written from the equations alone: loops, probabilities
rather than logarithms, and derivatives by central differences.
"""

import itertools
import warnings
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glmbrian import learning
from glmbrian.core.activations import get_activation
from glmbrian.core.objectives import Rate

ACTIVATIONS = {
    # name: (g, 1 - g)
    "sigmoid": (lambda u: 1 / (1 + mp.exp(-u)), lambda u: 1 / (1 + mp.exp(u))),
    "probit": (lambda u: mp.erfc(-u / mp.sqrt(2)) / 2, lambda u: mp.erfc(u / mp.sqrt(2)) / 2),
    "cloglog": (lambda u: 1 - mp.exp(-mp.exp(u)), lambda u: mp.exp(-mp.exp(u))),
}
#: The largest potentials that must not overflow.
EXTREME = {"sigmoid": 1000.0, "probit": 1000.0, "cloglog": 300.0}
DIGITS = 120
STEP = mp.mpf("1e-20")
#: Below this the differences of the reference hold noise, and training nothing.
NOTHING = 1e-60

every_activation = pytest.mark.parametrize("activation", ACTIVATIONS)


def quick(max_examples):
    return settings(max_examples=max_examples, derandomize=True, deadline=None)


# The reference


def exact_array(array):
    return np.vectorize(mp.mpf, otypes=[object])(array)


def exact_potential(spikes, basis, weights, bias, outputs=None, feedback_basis=None, feedback=None):
    """Eqs. membrane_potential_GLM and Ex_GLM_1, as a list of steps of neurons."""
    n_steps, n_inputs = spikes.shape
    u = [list(bias) for _ in range(n_steps)]
    for i in range(len(bias)):
        for j in range(n_inputs):
            alpha = basis @ weights[j, i]
            for t, lag in itertools.product(range(n_steps), range(1, len(alpha) + 1)):
                if t - lag >= 0 and spikes[t - lag, j]:
                    u[t][i] += alpha[lag - 1]
        if outputs is not None:
            beta = feedback_basis @ feedback[i]
            for t, lag in itertools.product(range(n_steps), range(1, len(beta) + 1)):
                if t - lag >= 0 and outputs[t - lag, i]:
                    u[t][i] += beta[lag - 1]
    return u


def exact_first_to_spike(u, label, g, g_bar):
    """Eqs. first_spk_method_2 and first_spk_method_3."""
    n_steps, n_outputs = len(u), len(u[0])
    total = mp.mpf(0)
    for t in range(n_steps):
        p = g(u[t][label])
        for i in range(n_outputs):
            for earlier in range(t if i == label else t + 1):
                p *= g_bar(u[earlier][i])
        total += p
    return mp.log(total)


def exact_rate(u, targets, g, g_bar):
    """Eqs. loglikelihood_BGLM and LL_conv."""
    return mp.fsum(
        mp.log(g(u[t][i]) if spike else g_bar(u[t][i])) for (t, i), spike in np.ndenumerate(targets)
    )


def memoised(function):
    known = {}
    return lambda u: known[u] if u in known else known.setdefault(u, function(u))


def exact_objective(rule, activation, p):
    """Return the log-likelihood of problem `p` as a function of the parameters."""
    g, g_bar = map(memoised, ACTIVATIONS[activation])
    basis, feedback_basis = exact_array(p.basis), exact_array(p.feedback_basis)

    def first_to_spike(weights, bias):
        u = exact_potential(p.spikes, basis, weights, bias)
        return exact_first_to_spike(u, p.label, g, g_bar)

    def rate(weights, feedback, bias):
        u = exact_potential(p.spikes, basis, weights, bias, p.targets, feedback_basis, feedback)
        return exact_rate(u, p.targets, g, g_bar)

    return {"first-to-spike": first_to_spike, "rate": rate}[rule]


def exact_slope(objective, parameters, direction):
    up, down = (
        objective(*(x + sign * STEP * d for x, d in zip(parameters, direction))) for sign in (1, -1)
    )
    return (up - down) / (2 * STEP)


def directions(parameters, seed):
    """One component of each parameter at a time, and one direction through all."""
    rng = np.random.default_rng(seed)
    for chosen in range(len(parameters)):
        direction = [np.zeros(x.shape) for x in parameters]
        direction[chosen].flat[rng.integers(parameters[chosen].size)] = 1.0
        yield direction
    yield [rng.standard_normal(x.shape) for x in parameters]


def assert_close(got, want):
    assert abs(got - want) <= 1e-6 * abs(want) + NOTHING, (float(got), float(want))


# Problems


def loose_potential(p):
    return np.array(
        exact_potential(p.spikes, p.basis, p.weights, p.bias, p.targets, p.feedback_basis, p.feedback)
    )


@st.composite
def problems(draw):
    """A random presentation whose largest potential is `largest` in size."""
    n_inputs, n_outputs = draw(st.integers(1, 30)), draw(st.integers(1, 5))
    n_steps = draw(st.integers(1, 12))
    window, window_fb = draw(st.integers(1, 16)), draw(st.integers(1, 16))
    n_basis, n_basis_fb = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    largest = draw(st.sampled_from([0.5, 5.0, 20.0, 50.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    p = SimpleNamespace(
        spikes=(rng.random((n_steps, n_inputs)) < 0.3).astype(int),
        targets=(rng.random((n_steps, n_outputs)) < 0.3).astype(int),
        label=int(rng.integers(n_outputs)),
        basis=rng.standard_normal((window, n_basis)),
        feedback_basis=rng.standard_normal((window_fb, n_basis_fb)),
        weights=rng.standard_normal((n_inputs, n_outputs, n_basis)),
        feedback=rng.standard_normal((n_outputs, n_basis_fb)),
        bias=rng.standard_normal(n_outputs),
    )
    scale = largest / np.abs(loose_potential(p)).max()
    p.weights, p.feedback, p.bias = scale * p.weights, scale * p.feedback, scale * p.bias
    return p


def problem_of_potentials(u):
    """A presentation whose potentials are exactly `u`: one input a step, one lag."""
    n_steps, n_outputs = u.shape
    weights = np.zeros((n_steps, n_outputs, 1))
    weights[:-1, :, 0] = u[1:] - u[0]
    return SimpleNamespace(spikes=np.eye(n_steps), basis=[[1.0]], weights=weights, bias=u[0])


# Gradients


@every_activation
@quick(60)
@given(p=problems())
@mp.workdps(DIGITS)
def test_first_to_spike_gradient(activation, p):
    log_likelihood, *gradient = learning.first_to_spike_log_likelihood(
        p.spikes, p.label, p.basis, p.weights, p.bias, activation
    )
    objective = exact_objective("first-to-spike", activation, p)
    parameters = exact_array(p.weights), exact_array(p.bias)
    assert_close(log_likelihood, objective(*parameters))
    assert [x.shape for x in gradient] == [x.shape for x in parameters]
    for direction in directions(parameters, seed=1):
        got = sum(np.sum(x * d) for x, d in zip(gradient, direction))
        assert_close(got, exact_slope(objective, parameters, direction))


@every_activation
@quick(50)
@given(p=problems())
@mp.workdps(DIGITS)
def test_rate_gradient(activation, p):
    log_likelihood, *gradient = learning.rate_log_likelihood(
        p.spikes, p.targets, p.basis, p.feedback_basis, p.weights, p.feedback, p.bias, activation
    )
    objective = exact_objective("rate", activation, p)
    parameters = exact_array(p.weights), exact_array(p.feedback), exact_array(p.bias)
    assert_close(log_likelihood, objective(*parameters))
    assert [x.shape for x in gradient] == [x.shape for x in parameters]
    for direction in directions(parameters, seed=2):
        got = sum(np.sum(x * d) for x, d in zip(gradient, direction))
        assert_close(got, exact_slope(objective, parameters, direction))


@every_activation
@quick(40)
@given(seed=st.integers(0, 2**32), n_steps=st.integers(1, 5), n_outputs=st.integers(1, 3))
@mp.workdps(DIGITS)
def test_first_to_spike_gradient_between_saturated_potentials(activation, seed, n_steps, n_outputs):
    """Where each term of the gradient is certain or impossible, it must not cancel to noise."""
    rng = np.random.default_rng(seed)
    u = rng.choice([-50.0, -20.0, 0.0, 3.0, 20.0, 50.0], (n_steps, n_outputs))
    g, g_bar = ACTIVATIONS[activation]
    exact_u = exact_array(u)
    log_likelihood, grad_u = learning.first_to_spike_gradient(u, 0, get_activation(activation))
    assert_close(log_likelihood, exact_first_to_spike(exact_u, 0, g, g_bar))
    t, i = rng.integers(n_steps), rng.integers(n_outputs)
    bump = np.zeros(u.shape)
    bump[t, i] = 1.0
    slope = exact_slope(lambda x: exact_first_to_spike(x, 0, g, g_bar), [exact_u], [bump])
    assert_close(grad_u[t, i], slope)


@every_activation
def test_first_to_spike_gradient_is_the_papers_formula(activation):
    """Eqs. first_spk_method_w to first_spk_method_q, literally."""
    u = np.random.default_rng(3).normal(-1, 1, (6, 3))
    f, c = get_activation(activation), 1
    g = f.probability(u)
    g_bar = 1 - g
    rho = (f.log_spike_slope(u) * g) / (g * g_bar)
    p = np.array(
        [
            np.prod([g_bar[: t + 1, i].prod() for i in (0, 2)]) * g[t, c] * g_bar[:t, c].prod()
            for t in range(6)
        ]
    )
    q = p / p.sum()
    h = np.array([q[t:].sum() for t in range(6)])
    want = -rho * h[:, np.newaxis] * g
    want[:, c] = -rho[:, c] * (h * g[:, c] - q)
    log_likelihood, grad_u = learning.first_to_spike_gradient(u, c, f)
    np.testing.assert_allclose(grad_u, want, rtol=1e-12)
    assert log_likelihood == pytest.approx(np.log(p.sum()), rel=1e-12)


def test_one_step_and_one_neuron_in_closed_form():
    """log sigma(b): the slope is 1 - sigma(b), and the weights have not acted yet."""
    log_likelihood, grad_weights, grad_bias = learning.first_to_spike_log_likelihood(
        [[1]], 0, [[1.0]], [[[5.0]]], [0.4]
    )
    assert log_likelihood == pytest.approx(-np.log1p(np.exp(-0.4)), rel=1e-14)
    assert grad_bias == pytest.approx([1 / (1 + np.exp(0.4))], rel=1e-14)
    assert grad_weights == [[[0.0]]]


def test_an_activation_may_be_given_as_an_object():
    arguments = [[1], [0]], 0, [[1.0]], [[[0.3]]], [0.4]
    by_name = learning.first_to_spike_log_likelihood(*arguments, "probit")
    as_object = learning.first_to_spike_log_likelihood(*arguments, get_activation("probit"))
    assert by_name == as_object


# Potentials


@pytest.mark.parametrize("with_feedback", [False, True])
@quick(50)
@given(p=problems())
def test_membrane_potential(with_feedback, p):
    extra = (p.targets, p.feedback_basis, p.feedback) if with_feedback else ()
    got = learning.membrane_potential(p.spikes, p.basis, p.weights, p.bias, *extra)
    want = np.array(exact_potential(p.spikes, p.basis, p.weights, p.bias, *extra))
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-11)


def test_potential_starts_at_the_bias():
    u = learning.membrane_potential(np.ones((3, 2)), np.ones((4, 1)), np.ones((2, 2, 1)), [0.1, -7])
    assert u[0].tolist() == [0.1, -7.0]


@pytest.mark.parametrize("step", range(5))
def test_input_moves_the_next_step_first(step):
    spikes = np.zeros((5, 1))
    spikes[step] = 1
    u = learning.membrane_potential(spikes, np.ones((5, 1)), [[[1.0]]], [0.0])
    assert u[:, 0].tolist() == [float(t > step) for t in range(5)]


@pytest.mark.parametrize("step", range(5))
def test_output_moves_its_own_neuron_from_the_next_step(step):
    outputs = np.zeros((5, 2))
    outputs[step, 1] = 1
    inputs = np.zeros((5, 1)), [[1.0]], np.ones((1, 2, 1)), [0.0, 0.0]
    u = learning.membrane_potential(*inputs, outputs, [[-1.0], [-1.0]], [[2.0], [3.0]])
    assert u[:, 0].tolist() == [0.0] * 5
    assert u[:, 1].tolist() == [-3.0 * (step < t <= step + 2) for t in range(5)]


# Probabilities


@every_activation
def test_first_to_spike_sums_over_all_output_trains(activation):
    """Feedback acts after the first spike only, so it leaves the decision alone."""
    rng = np.random.default_rng(4)
    spikes, basis, weights = rng.integers(0, 2, (3, 4)), rng.random((2, 2)), rng.random((4, 2, 2))
    bias, feedback_basis, feedback = -rng.random(2), rng.random((3, 2)), rng.normal(0, 5, (2, 2))
    first = {(): 0.0, (0,): 0.0, (1,): 0.0, (0, 1): 0.0}
    for bits in itertools.product([0, 1], repeat=6):
        outputs = np.reshape(bits, (3, 2))
        log_p = learning.rate_log_likelihood(
            spikes, outputs, basis, feedback_basis, weights, feedback, bias, activation
        )[0]
        steps = outputs.any(axis=1)
        winners = np.flatnonzero(outputs[steps.argmax()]) if steps.any() else ()
        first[tuple(winners)] += np.exp(log_p)
    assert sum(first.values()) == pytest.approx(1, rel=1e-12)
    for label in (0, 1):
        log_p = learning.first_to_spike_log_likelihood(spikes, label, basis, weights, bias, activation)[
            0
        ]
        assert np.exp(log_p) == pytest.approx(first[label,], rel=1e-12)


# Extremes


@every_activation
def test_extreme_potentials_stay_finite(activation):
    levels = EXTREME[activation] * np.array([-1.0, 0.0, 1.0])
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise", divide="raise"):
        warnings.simplefilter("error")
        for potentials in itertools.product(levels, repeat=6):
            u = np.reshape(potentials, (3, 2))
            p = problem_of_potentials(u)
            results = learning.first_to_spike_log_likelihood(
                p.spikes, 0, p.basis, p.weights, p.bias, activation
            ) + learning.rate_log_likelihood(
                p.spikes, u > 0, p.basis, [[1.0]], p.weights, [[0.0]] * 2, p.bias, activation
            )
            assert all(np.isfinite(result).all() for result in results)
            assert results[0] <= 0 and results[3] <= 0


# The desired train


@pytest.mark.parametrize(
    "n_steps, period, want",
    [(8, 4, [0, 0, 0, 1, 0, 0, 0, 1]), (5, 2, [0, 1, 0, 1, 0]), (2, 1, [1, 1]), (3, 4, [0, 0, 0])],
)
def test_desired_train(n_steps, period, want):
    assert learning.desired_train(n_steps, period).tolist() == want


@pytest.mark.parametrize(
    "start, want",
    [(1, [1, 0, 0, 1, 0, 0, 1]), (2, [0, 1, 0, 0, 1, 0, 0]), (5, [0, 0, 0, 0, 1, 0, 0]), (8, [0] * 7)],
)
def test_desired_train_from_a_step_on(start, want):
    assert learning.desired_train(7, 3, start).tolist() == want
    assert Rate(3, start).desired(1, 7, 2).T.tolist() == [[0] * 7, want]


# What is refused


GOOD = dict(
    spikes=np.ones((3, 2)),
    label=0,
    targets=np.ones((3, 4)),
    outputs=np.ones((3, 4)),
    basis=np.ones((5, 6)),
    feedback_basis=np.ones((7, 2)),
    weights=np.ones((2, 4, 6)),
    feedback_weights=np.ones((4, 2)),
    bias=np.ones(4),
    activation="sigmoid",
)
NAMES = {
    learning.membrane_potential: "spikes basis weights bias outputs feedback_basis feedback_weights",
    learning.first_to_spike_log_likelihood: "spikes label basis weights bias activation",
    learning.rate_log_likelihood: (
        "spikes targets basis feedback_basis weights feedback_weights bias activation"
    ),
}
BINARY = [0.5, np.nan, -1, 2, "x", None]
TRAINS = [np.ones(3), np.ones((3, 9)), np.ones((2, 4)), [[1], [1, 0]]]
TRAINS += [[[bad] * 4] * 3 for bad in BINARY]
BAD = dict(
    spikes=[np.ones(3), np.ones((0, 2)), np.ones((3, 0)), [[1], []], None]
    + [[[bad, 1]] * 3 for bad in BINARY],
    label=[-1, 4, 0.0, True, None, "0"],
    targets=TRAINS + [None],
    outputs=TRAINS,
    basis=[np.ones(6), np.ones((0, 6)), np.full((5, 6), np.inf), [["x"] * 6] * 5, None],
    feedback_basis=[np.ones(2), np.full((7, 2), np.nan), "x"],
    weights=[np.ones((3, 4, 6)), np.ones((2, 3, 6)), np.ones((2, 4, 5)), np.ones((2, 4))]
    + [np.full((2, 4, 6), np.nan)],
    feedback_weights=[np.ones((4, 3)), np.ones((3, 2)), np.full((4, 2), np.inf)],
    bias=[np.ones((4, 1)), 1.0, [np.nan] * 4, [1j] * 4],
    activation=["softmax", None, 1],
)


@pytest.mark.parametrize(
    "function, name, value",
    [
        pytest.param(function, name, value, id=f"{function.__name__}-{name}-{number}")
        for function, names in NAMES.items()
        for name in names.split()
        for number, value in enumerate(BAD[name])
    ],
)
def test_bad_argument_is_named(function, name, value):
    arguments = {key: GOOD[key] for key in NAMES[function].split()}
    function(**arguments)
    with pytest.raises((ValueError, TypeError), match=rf"^{name} must"):
        function(**{**arguments, name: value})


@pytest.mark.parametrize("missing", ["outputs", "feedback_basis", "feedback_weights"])
def test_feedback_needs_all_its_parts(missing):
    arguments = {key: GOOD[key] for key in NAMES[learning.membrane_potential].split()}
    with pytest.raises(ValueError, match="given together"):
        learning.membrane_potential(**{**arguments, missing: None})


def test_no_neuron_at_all_is_refused():
    with pytest.raises(ValueError, match="^bias must"):
        learning.membrane_potential([[1]], [[1.0]], np.ones((1, 0, 1)), [])


@pytest.mark.parametrize("name", ["n_steps", "period"])
@pytest.mark.parametrize("value", [0, -1, 2.5, None])
def test_bad_desired_train_is_refused(name, value):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must"):
        learning.desired_train(**{"n_steps": 8, "period": 4, name: value})
    with pytest.raises((ValueError, TypeError), match="^start must"):
        learning.desired_train(8, 4, start=value if value is not None else "1")
