"""Any order of a step gives kernels their lags, or is refused; so is what would be lost.

Right values are those of the equations: entry l - 1 of a kernel acts l steps after a spike.
"""

import numpy as np
import pytest
from brian2 import (
    Hz,
    Network,
    NetworkOperation,
    NeuronGroup,
    PoissonInput,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    Synapses,
    defaultclock,
    device,
    linked_var,
    ms,
    prefs,
    set_device,
)
from brian2.core.base import BrianObjectException

import glmbrian as glm
from glmbrian.brian.filters import LONGEST_SHIFT_REGISTER
from glmbrian.brian.internals import SCHEDULE

KERNEL = [1.0, 2.0, 3.0]
GENN = ["start", "synapses", "groups", "thresholds", "resets", "end"]


@pytest.fixture(autouse=True)
def on_numpy():
    prefs.codegen.target = "numpy"
    defaultclock.dt = 1 * ms


def network_of(delay=None, feedback=False, plain=False):
    """Return a network in which one spike, in step 0, reaches a neuron, and what records u.

    With `plain`, Brian's own synapses write to the channels of the kernel.
    """
    source = SpikeGeneratorGroup(1, [0], [0] * ms)
    basis = glm.IndicatorBasis(3)
    neurons = glm.GLMNeurons(1, basis, feedback_basis=basis if feedback else None, random_state=1)
    neurons.bias = -100 if feedback else 0
    if plain:
        synapses = Synapses(
            source, neurons, on_pre="; ".join(f"stimulus_{k}_post += {w}" for k, w in enumerate(KERNEL))
        )
        synapses.connect()
    else:
        synapses = glm.GLMSynapses(source, neurons, delay=delay)
        synapses.w = KERNEL
    u = StateMonitor(neurons, "u", record=True, when="end")
    return Network(source, neurons, synapses, u), neurons, synapses, u


def refused(network, message):
    """Check that a run raises a ValueError with this message before it begins."""
    with pytest.raises(BrianObjectException) as raised:
        network.run(3 * ms)
    assert isinstance(raised.value.__cause__, ValueError)
    assert message in str(raised.value.__cause__)
    assert network.t == 0 * ms


ORDERS = [
    (SCHEDULE, True),
    (GENN, True),
    (["start", "groups", "thresholds", "resets", "synapses", "end"], True),
    (["start", "groups", "thresholds", "synapses", "end", "resets"], True),
    (["start", "groups", "synapses", "thresholds", "resets", "end"], False),
    (["start", "thresholds", "groups", "synapses", "resets", "end"], False),
    (["start", "thresholds", "synapses", "groups", "resets", "end"], False),
    (["start", "synapses", "thresholds", "groups", "resets", "end"], False),
]


@pytest.mark.parametrize("schedule, is_right", ORDERS)
@pytest.mark.parametrize("made", [{}, dict(delay=1 * ms), dict(plain=True)], ids=str)
def test_kernels_keep_their_lags_or_the_order_is_refused(schedule, is_right, made):
    network, _, _, u = network_of(**made)
    network.schedule = schedule
    if not is_right:
        refused(network, "GLM neurons need Brian's own order")
        assert not len(u.t)  # not a step was made
        return
    network.run(7 * ms)
    lag = 2 if "delay" in made else 1
    np.testing.assert_array_equal(u.u[0], np.concatenate([np.zeros(lag), KERNEL, np.zeros(4 - lag)]))


def test_the_order_is_that_of_the_default_schedule_and_of_parts_as_well():
    prefs.core.network.default_schedule = ORDERS[4][0]
    refused(network_of()[0], "would act l + 1 steps after a spike, not l: each step runs")
    prefs.core.network.default_schedule = SCHEDULE
    network, neurons, synapses, u = network_of()
    synapses.pre.when = "before_groups"  # synapses first, as on GeNN
    network.run(5 * ms)
    np.testing.assert_array_equal(u.u[0], [0, *KERNEL, 0])
    network, neurons, synapses, _ = network_of()
    synapses.pre.when, synapses.pre.order = "thresholds", -5
    refused(network, "would act l + 1 steps after a spike")
    network, neurons, _, _ = network_of()
    neurons.thresholder["spike"].when = "before_groups"
    refused(network, "which must be the other way round")
    network, neurons, synapses, _ = network_of()
    synapses.active = False
    synapses.pre.active = False  # nothing arrives
    network.schedule = ORDERS[4][0]
    network.run(1 * ms)


def test_feedback_keeps_its_lags_or_the_order_is_refused():
    for schedule in (SCHEDULE, GENN, ["start", "resets", "groups", "thresholds", "synapses", "end"]):
        network, neurons, _, u = network_of(feedback=True)
        neurons.feedback_weights = [4.0, 5.0, 6.0]
        neurons.run_regularly("clamp = -1 + 2 * int(t < 0.5*ms)")
        network.schedule = schedule
        network.run(5 * ms)
        np.testing.assert_array_equal(u.u[0], [-100, -95, -93, -91, -100])
    with pytest.raises(BrianObjectException) as raised:
        network.run(1 * ms)  # resets first
    assert "spikes in the last step of the previous run would be lost" in str(raised.value.__cause__)
    network = network_of(feedback=True)[0]
    network.schedule = ["start", "thresholds", "resets", "groups", "synapses", "end"]
    refused(network, "GLM neurons need Brian's own order")
    network, neurons, _, _ = network_of(feedback=True)
    neurons.resetter["spike"].when = "before_thresholds"
    refused(network, "would act l + 1 steps after a spike")


def test_encoders_trainers_and_stops_refuse_orders_that_shift_them():
    network = Network(glm.RateEncoder([1.0], random_state=1))
    network.schedule = ["start", "thresholds", "groups", "synapses", "resets", "end"]
    refused(network, "which must be the other way round")
    group = NeuronGroup(1, "v : 1", threshold="v > 1", reset="")
    network = Network(group, glm.FirstSpikeStop(group))
    network.schedule = ["end", *SCHEDULE[:-1]]
    refused(network, "which must be the other way round")
    # The order of GeNN is right for neurons, but their trainer needs arrivals after state updates.
    for schedule in (GENN, ["end", *SCHEDULE[:-1]], [*SCHEDULE[1:-1], "start", "end"]):
        network, neurons, synapses, _ = network_of()
        network.add(glm.Trainer(neurons, synapses, n_steps=3, labels=[0]))
        network.schedule = schedule
        refused(network, "which must be the other way round")


# ------------------------------------------------------------------ input to the potential


def spikes_into(neurons, statements):
    source = SpikeGeneratorGroup(1, [0], [0] * ms)
    synapses = Synapses(source, neurons, on_pre=statements)
    synapses.connect()
    return source, synapses


def backwards_into(neurons):
    target = SpikeGeneratorGroup(1, [0], [0] * ms)
    synapses = Synapses(neurons, target, on_post="u_pre += 8")
    synapses.connect()
    return target, synapses


def linked_to(neurons):
    other = NeuronGroup(2, "v : 1 (linked)", threshold="True", reset="v = 8")
    other.v = linked_var(neurons, "u")
    return (other,)


#: Ordinary objects that write to u where it would be lost.
WRITERS = {
    "synapses": lambda neurons: spikes_into(neurons, "u_post += 8"),
    "without a suffix": lambda neurons: spikes_into(neurons, "u += 8"),
    "into a subgroup": lambda neurons: spikes_into(neurons[:1], "bias_post = 1; u_post = 8"),
    "backwards": backwards_into,
    "linked": linked_to,
    "Poisson": lambda neurons: (PoissonInput(neurons, "u", 100, 500 * Hz, weight=1),),
    "Poisson into a subgroup": lambda neurons: (PoissonInput(neurons[1:], "u", 9, 50 * Hz, weight=1),),
    "regularly": lambda neurons: neurons.run_regularly("u = 8") and (),
    "regularly at the end": lambda neurons: neurons.run_regularly("u += 8", when="end") and (),
    "regularly in a subgroup": lambda neurons: neurons[1:].run_regularly("u += 8") and (),
}


@pytest.mark.parametrize("name", WRITERS)
def test_what_would_be_lost_is_refused(name):
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(3), random_state=1)
    refused(Network(neurons, *WRITERS[name](neurons)), "write to input_0 in place of u")


def test_between_state_update_and_threshold_the_potential_may_change():
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(3), random_state=1)
    neurons.run_regularly("u += 8", when="after_groups")

    def halve():
        neurons.u /= 2

    u = StateMonitor(neurons, "u", record=True)
    Network(neurons, NetworkOperation(halve, when="before_thresholds"), u).run(3 * ms)
    np.testing.assert_array_equal(u.u[0], [0, 4, 4])


def test_assignments_to_the_potential_are_refused():
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(3), random_state=1)
    network = Network(neurons)
    network.run(1 * ms)

    def assign(of, value):
        of.u = value

    def assign_items(of, value):
        of.u[:1] = value

    def add(of, value):
        of.u += value

    for write in (assign, assign_items, add):
        for of in (neurons, neurons[:1]):
            with pytest.raises(TypeError, match="write to input_0 in place of u"):
                write(of, 8)
    with pytest.raises(TypeError, match="write to input_0 in place of u"):
        neurons.u = "rand()"
    # In a run, they are lost in the same way.
    network.add(NetworkOperation(lambda: assign(neurons, 8), when="start"))
    with pytest.raises(Exception) as raised:
        network.run(1 * ms)
    assert isinstance(raised.value.__cause__ or raised.value, TypeError)
    neurons.clear()
    neurons.set_states(neurons.get_states(read_only_variables=False))
    np.testing.assert_array_equal(neurons.u[:], [0, 0])


def test_a_drive_of_random_numbers_is_not_overwritten():
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(3), random_state=1, drive="randn()")
    neurons.run_regularly("drive = 8", when="end")
    refused(Network(neurons), "drive is computed anew in each step")
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(3), random_state=1, drive="randn()")
    neurons.run_regularly("drive = 8")
    Network(neurons).run(1 * ms)
    np.testing.assert_array_equal(neurons.u[:], [8])


def test_a_clamp_that_a_trainer_sets_is_refused_until_training_is_over():
    network, neurons, synapses, _ = network_of()
    network.add(glm.Trainer(neurons, synapses, n_steps=3, labels=[0]))
    neurons.run_regularly("clamp = 1", when="end")
    refused(network, "a trainer sets it in each step to the desired spikes")
    network, neurons, synapses, _ = network_of()
    network.add(glm.Trainer(neurons, synapses, n_steps=3, labels=[0]))
    network.run(4 * ms)
    neurons.run_regularly("clamp = 1")
    spikes = SpikeMonitor(neurons)
    network.add(spikes)
    network.run(3 * ms)
    assert spikes.num_spikes == 3


TARGETS = [
    "numpy",
    pytest.param("cpp_standalone", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
]


@pytest.mark.parametrize("target", TARGETS)
def test_a_kernel_of_one_lag_takes_input_and_a_current_decays(target):
    """What the error recommends, for each kind of writer and of filter."""
    if target == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    network, monitors = Network(), []
    for window in (3, LONGEST_SHIFT_REGISTER + 5):
        neurons = glm.GLMNeurons(
            4,
            {"stimulus": glm.IndicatorBasis(window), "input": glm.IndicatorBasis(1)},
            equations="dI/dt = -I / (2*ms) : 1",
            drive="I",
        )
        source = SpikeGeneratorGroup(1, [0, 0], [1, 3] * ms)
        writers = [
            Synapses(source, neurons[:1], on_pre="input_0_post += 8"),
            Synapses(source, neurons[1:2], on_pre="I_post += 8"),
        ]
        for synapses in writers:
            synapses.connect()
        always = PoissonInput(neurons[2:3], "input_0", 1, 1 / defaultclock.dt, weight=8)
        neurons[3:].run_regularly("input_0 = 8")
        monitors.append(StateMonitor(neurons, "u", record=True, when="end"))
        network.add(source, neurons, *writers, always, monitors[-1])
    network.run(6 * ms)
    if target == "cpp_standalone":
        device.build(directory=None, with_output=False)
    left = 8 * np.exp(-np.arange(4) / 2)
    for monitor in monitors:
        np.testing.assert_array_equal(monitor.u[0], [0, 0, 8, 0, 8, 0])
        expected = np.concatenate([[0, 0], left]) + np.concatenate([np.zeros(4), left[:2]])
        np.testing.assert_allclose(monitor.u[1], expected, rtol=1e-12)
        np.testing.assert_array_equal(monitor.u[2], [0, 8, 8, 8, 8, 8])
        np.testing.assert_array_equal(monitor.u[3], [8, 8, 8, 8, 8, 8])
