"""Equations and statements that users add to neurons and synapses."""

import numpy as np
import pytest
from brian2 import (
    Equations,
    Network,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    defaultclock,
    device,
    ms,
    prefs,
    set_device,
)

import glmbrian as glm

BASIS = glm.RaisedCosineBasis(2, 5)
N_STEPS = 40
TARGETS = [
    "numpy",
    pytest.param("cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
    pytest.param("cpp_standalone", marks=pytest.mark.compiled),
]


def choose(target):
    if target == "cpp_standalone":
        set_device("cpp_standalone", build_on_run=False)
    else:
        prefs.codegen.target = target
    defaultclock.dt = 1 * ms


def finish(target):
    if target == "cpp_standalone":
        device.build(directory=None, with_output=False)


def trains(monitor, n):
    spikes = np.zeros((N_STEPS, n), dtype=int)
    spikes[np.round(monitor.t / ms).astype(int), monitor.i] = 1
    return spikes


@pytest.mark.parametrize("window", [3, 60], ids=["shift register", "ring buffer"])
@pytest.mark.parametrize("target", TARGETS)
def test_an_adaptation_current(target, window):
    """Each spike raises a current, which the drive subtracts from the potential."""
    choose(target)
    neurons = glm.GLMNeurons(
        3,
        glm.IndicatorBasis(window),
        drive="-strength * a",
        equations="""
            da/dt = -a / tau : 1
            tau : second
            strength = 2 * int(i < 2) : 1
            n_spikes : integer
        """,
        reset="a += 1; n_spikes += 1",
        random_state=1,
    )
    neurons.bias, neurons.tau = [1.0, 0.0, 1.0], [5, 20, 5] * ms
    monitor, state = SpikeMonitor(neurons), StateMonitor(neurons, ["u", "a"], record=True)
    network = Network(neurons, monitor, state)
    network.run(N_STEPS * ms)
    finish(target)
    spikes, decay = trains(monitor, 3), np.exp(-1 / np.array([5, 20, 5]))
    a, expected_a, expected_u = np.zeros(3), [], []
    for step in range(N_STEPS):
        expected_u.append(np.array([1.0, 0.0, 1.0]) - [2, 2, 0] * a)  # before a decays
        a = a * decay
        expected_a.append(a)
        a = a + spikes[step]
    np.testing.assert_allclose(state.u.T[1:], np.array(expected_u)[:-1], atol=1e-12)
    np.testing.assert_allclose(state.a.T[1:], (np.array(expected_a) + spikes)[:-1], atol=1e-12)
    np.testing.assert_array_equal(neurons.n_spikes[:], spikes.sum(axis=0))
    assert spikes.sum() > 20


def test_own_code_changes_no_spikes():
    defaultclock.dt = 1 * ms
    found = []
    for own in ({}, dict(equations="dx/dt = -x / (3*ms) : 1", reset="x += 1")):
        neurons = glm.GLMNeurons(4, BASIS, BASIS, random_state=2, **own)
        neurons.bias, neurons.feedback_weights = 0.3, -1.0
        monitor = SpikeMonitor(neurons)
        Network(neurons, monitor).run(N_STEPS * ms)
        found.append(trains(monitor, 4))
    np.testing.assert_array_equal(*found)
    assert 0 < found[0].sum() < found[0].size


@pytest.mark.parametrize("target", TARGETS)
def test_a_rule_of_spike_timing(target):
    """Input spikes lower the weights to neurons that spiked before; output spikes raise weights."""
    choose(target)
    random = np.random.default_rng(0)
    inputs = random.random((N_STEPS, 5)) < 0.2
    step, index = np.nonzero(inputs)
    source = SpikeGeneratorGroup(5, index, step * ms)
    neurons = glm.GLMNeurons(2, {"stimulus": BASIS}, random_state=3)
    synapses = glm.GLMSynapses(
        source,
        neurons,
        model="""
            dx/dt = -x / (8*ms) : 1 (clock-driven)
            dy/dt = -y / (8*ms) : 1 (clock-driven)
        """,
        on_pre="x += 1; w_0 -= 0.01 * y",
        on_post="y += 1; w_0 += 0.02 * x",
    )
    synapses.w = start = random.normal(size=(5, 2, 2))
    neurons.bias = -0.5
    monitor = SpikeMonitor(neurons)
    Network(source, neurons, synapses, monitor).run(N_STEPS * ms)
    finish(target)
    outputs, decay = trains(monitor, 2), np.exp(-1 / 8)
    w, x, y = start.copy(), np.zeros((5, 2)), np.zeros((5, 2))
    for before, after in zip(inputs, outputs):
        x, y = x * decay, y * decay
        x += before[:, np.newaxis]
        w[:, :, 0] -= 0.01 * y * before[:, np.newaxis]
        y += after
        w[:, :, 0] += 0.02 * x * after
    np.testing.assert_allclose(synapses.w, w, atol=1e-12)
    assert np.abs(synapses.w - start).max() > 0.02


def test_the_neurons_see_weights_that_own_code_has_changed():
    defaultclock.dt = 1 * ms
    source = SpikeGeneratorGroup(1, [0, 0], [0, 5] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1), random_state=1)
    synapses = glm.GLMSynapses(source, neurons, on_pre="w_0 *= 10")
    synapses.w = 1
    state = StateMonitor(neurons, "u", record=True)
    Network(source, neurons, synapses, state).run(8 * ms)
    assert state.u[0].tolist() == [0, 0, 1, 0, 0, 0, 0, 10]


def test_equations_as_an_object():
    defaultclock.dt = 1 * ms
    own = Equations("dx/dt = 1 / tau : 1", tau=2 * ms)
    neurons = glm.GLMNeurons(1, BASIS, equations=own, method="euler")
    Network(neurons).run(4 * ms)
    assert neurons.x[0] == pytest.approx(2)


@pytest.mark.parametrize(
    "own, error, message",
    [
        (dict(equations=3), TypeError, "equations must be Brian equations"),
        (dict(equations="dx/dt ="), ValueError, "equations must be Brian equations: "),
        (dict(equations="u : 1"), ValueError, "equations: the name 'u' is taken by the model"),
        (dict(equations="pending_1 : 1"), ValueError, "equations: the name 'pending_1' is taken"),
        (dict(reset=3), TypeError, "reset must be a string of statements"),
        (dict(reset="x = 1; u = 0"), ValueError, "reset must not change 'u'"),
        (dict(reset="presentation += 1"), ValueError, "reset must not change 'presentation'"),
        (dict(reset="\tu\t= 5"), ValueError, "reset must not change 'u'"),
        (dict(reset="bias = 0; u %= 2"), ValueError, "reset must not change 'u'"),
        *(
            (dict(equations=f"{name} : 1"), ValueError, f"the name '{name}' is taken")
            for name in (
                "kernels",
                "ring",
                "source",
                "start",
                "feedback_weights",
                "feedback",
                "run_args",
                "glm_uniform",
            )
        ),
        (dict(equations="dx/dt = 1/ms : 1", method="gsl_rk4"), ValueError, "method must be one of"),
        (dict(method="exact"), ValueError, "method is for differential equations"),
        (dict(equations="dx/dt = 1/ms : 1", method="magic"), ValueError, "method must be one of"),
        (dict(equations="dx/dt = 1/ms : 1", method=1), TypeError, "method must be one of"),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_bad_code(own, error, message):
    with pytest.raises(error, match=message):
        glm.GLMNeurons(2, BASIS, **own)


@pytest.mark.parametrize(
    "own, message",
    [
        *(
            (dict(on_pre=f"{target} += 1"), f"on_pre must not change '{target}'")
            for target in ("stimulus_0", "stimulus_0_post", "pending_1_post", "u_post", "clamp")
        ),
        *(
            (dict(model=f"{name} : 1"), f"model: the name '{name}' is taken")
            for name in (
                "w",
                "w_0",
                "basis",
                "kernels",
                "j",
                "delay",
                "connect",
                "source",
                "N_incoming",
            )
        ),
        *(
            (dict(on_post=f"{target} += 1"), f"on_post must not change '{target}'")
            for target in ("stimulus_0_post", "pending_1", "u_post", "u_pre", "clamp_pre", "i")
        ),
        (dict(on_post={"one": "w_0 = 1", "two": "\tj = 0"}), "on_post must not change 'j'"),
        (dict(on_pre="w_0 = 1; stimulus_0_pre = 0"), "on_pre must not change 'stimulus_0_pre'"),
    ],
)
def test_bad_code_of_synapses(own, message):
    neurons = glm.GLMNeurons(2, BASIS)
    with pytest.raises(ValueError, match=message):
        glm.GLMSynapses(neurons, neurons, **own)


def test_what_statements_may_change():
    defaultclock.dt = 1 * ms
    source = glm.GLMNeurons(2, BASIS, equations="n_sent : 1")
    neurons = glm.GLMNeurons(1, BASIS, equations="n_received : 1")
    synapses = glm.GLMSynapses(
        source,
        neurons,
        model="count : 1",
        on_pre="n_received_post += 1; bias_post += 0.5; count += 1",
        on_post={"one": "w_0 += 1", "two": "w_1 += 2; n_sent_pre += 1; bias_pre -= 0.5"},
    )
    source.clamp, neurons.clamp = 1, 1
    Network(source, neurons, synapses).run(2 * ms)
    assert synapses.w.tolist() == [[[2, 4]]] * 2 and synapses.count[:].tolist() == [2, 2]
    assert (neurons.n_received[0], neurons.bias[0]) == (4, 2)
    assert (source.n_sent[:].tolist(), source.bias[:].tolist()) == ([2, 2], [-1, -1])


def test_comments_and_nothing():
    neurons = glm.GLMNeurons(1, BASIS, equations="", reset="# nothing\n")
    synapses = glm.GLMSynapses(neurons, neurons, model="", on_pre="w_0 += 1 # more; u = 3")
    Network(neurons, synapses).run(1 * ms)


def test_subexpressions_that_are_constant_over_a_step():
    defaultclock.dt = 1 * ms
    equations = """
        dx/dt = (y - x) / ms : 1
        y = rand() : 1 (constant over dt)
        dz/dt = (v - z) / ms : 1
        v = u : 1 (constant over dt)
    """
    neurons = glm.GLMNeurons(3, BASIS, equations=equations, method="euler")
    neurons.bias = 3
    network = Network(neurons)
    network.run(1 * ms)
    np.testing.assert_array_equal(neurons.x[:], neurons.y[:])
    assert neurons.z[:].tolist() == [0, 0, 0]  # of before the step
    network.run(1 * ms)
    assert neurons.z[:].tolist() == [3, 3, 3]


@pytest.mark.parametrize("target", TARGETS)
def test_own_code_of_synapses_is_in_double_precision(target):
    prefs.core.default_float_dtype = np.float32
    choose(target)
    source = SpikeGeneratorGroup(1, [0, 0], [0, 3] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1))
    model = "dx/dt = -x / (5*ms) : 1 (event-driven)"
    synapses = glm.GLMSynapses(source, neurons, model=model, on_pre="x += 1; w_0 += 0.1 * x")
    Network(source, neurons, synapses).run(5 * ms)
    finish(target)
    x = 1 + np.exp(-3 / 5)
    assert synapses.x[0] == pytest.approx(x, abs=1e-14)
    assert synapses.w[0, 0, 0] == pytest.approx(0.1 + 0.1 * x, abs=1e-14)
