"""What the package needs from inside Brian 2 is there in this version."""

import numpy as np
import pytest
from brian2 import (
    Clock,
    Network,
    NetworkOperation,
    NeuronGroup,
    Synapses,
    get_device,
    ms,
    prefs,
    set_device,
)
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice
from brian2.utils.logger import catch_logs

from glmbrian import brian_internals


def test_spike_array_ends_with_the_number_of_spikes():
    group = NeuronGroup(4, "v : 1", threshold="v > 0", reset="")
    group.v = [0, 1, 0, 1]
    seen = []
    look = NetworkOperation(lambda: seen.append(spikes.copy()), when="end")
    spikes = brian_internals.spike_array(group).get_value()
    Network(group, look).run(0.1 * ms)
    (spikes,) = seen
    np.testing.assert_array_equal(spikes[: spikes[-1]], [1, 3])
    assert spikes[-1] == 2 and len(spikes) == 5


def test_different_time_steps_are_warned_of_unless_they_may_differ():
    source = NeuronGroup(1, "v : 1", threshold="v > 0", reset="", dt=0.1 * ms)
    target = NeuronGroup(1, "v : 1", dt=1 * ms)
    warned, known = (Synapses(source, target, on_pre="v += 1", name=name) for name in ("one", "other"))
    for synapses in (warned, known):
        synapses.connect()
    brian_internals.time_steps_may_differ(known)
    with catch_logs() as messages:
        Network(source, target, warned, known).run(1 * ms)
    (message,) = [text for _, _, text in messages if "pathway" in text]
    assert "'one_pre'" in message


def test_what_arrives_after_a_delay():
    group = NeuronGroup(3, "v : 1", threshold="i == t_in_timesteps", reset="", dt=1 * ms)
    synapses = Synapses(group, group, on_pre="v_post += 1")
    synapses.connect(j="i")
    synapses.delay = [0, 2, 0.6] * ms
    seen = []
    order = synapses.pre.order - 1
    look = NetworkOperation(
        lambda: seen.append(list(brian_internals.delayed_arrivals(synapses.pre))),
        when=synapses.pre.when,
        order=order,
        dt=1 * ms,
    )
    Network(group, synapses, look).run(5 * ms)
    assert seen == [[], [], [], [1, 2], []]
    np.testing.assert_array_equal(brian_internals.delay_steps(synapses.pre), [0, 2, 1])


def test_private_device_leaves_the_users_alone():
    set_device("cpp_standalone", build_on_run=False)
    users = get_device()
    with brian_internals.private_standalone_device() as device:
        assert get_device() is device
        assert isinstance(device, CPPStandaloneDevice) and device is not users
    assert get_device() is users
    with pytest.raises(RuntimeError), brian_internals.private_standalone_device():
        raise RuntimeError
    assert get_device() is users


def test_compiler_setting_follows_the_preferences():
    before = brian_internals.compiler_setting()
    prefs.codegen.cpp.extra_compile_args_gcc = ["-O1"]
    assert brian_internals.compiler_setting() != before


@pytest.mark.compiled
def test_program_runs_until_a_condition_holds(tmp_path):
    with brian_internals.private_standalone_device() as device:
        clock = Clock(dt=1 * ms, name="some_clock")
        group = NeuronGroup(1, "steps : integer", clock=clock)
        group.run_regularly("steps += 1", clock=clock)
        network = Network(group)
        network.run(0 * ms)
        steps = device.get_array_name(group.variables["steps"])
        device.insert_code("main", brian_internals.cpp_run_until(f"{steps}[0] == 7", network, clock))
        device.build(directory=str(tmp_path), with_output=False)
        assert list(group.steps) == [7]
