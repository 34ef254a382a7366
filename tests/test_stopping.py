"""A run ends at the first output spike, on every target."""

import numpy as np
import pytest
from brian2 import Network, NeuronGroup, SpikeMonitor, defaultclock, device, ms, prefs, set_device
from conftest import quick_compilation

import glmbrian as glm
from glmbrian.brian_internals import CPP_PROGRAM_CAN_STOP


def two_runs(stop_on):
    """Neuron 0 spikes in steps 3, 6, ... and neuron 1 in steps 5, 10, ..."""
    neurons = NeuronGroup(
        2, "period : integer", threshold="t_in_timesteps % period == 0 and t_in_timesteps > 0", reset=""
    )
    neurons.period = [3, 5]
    monitor = SpikeMonitor(neurons)
    stop = glm.FirstSpikeStop(neurons if stop_on == "all" else neurons[1:])
    network = Network(neurons, stop, monitor)
    network.run(100 * ms, namespace={})
    network.run(100 * ms, namespace={})
    return monitor


@pytest.mark.parametrize("target", ["numpy", pytest.param("cython", marks=pytest.mark.compiled)])
@pytest.mark.parametrize("stop_on, last", [("all", 5), ("subgroup", 10)])
def test_runtime(target, stop_on, last):
    prefs.codegen.target = target
    defaultclock.dt = 1 * ms
    with quick_compilation():
        monitor = two_runs(stop_on)
    assert np.round(monitor.t[-1] / ms) == last


@pytest.mark.compiled
def test_cpp_standalone():
    set_device("cpp_standalone", directory=None, build_on_run=False)
    defaultclock.dt = 1 * ms
    if not CPP_PROGRAM_CAN_STOP:
        with pytest.raises(Exception) as raised:
            two_runs("all")
        assert "needs Brian 2.6 or newer" in str(raised.getrepr(style="short", chain=True))
        return
    with quick_compilation():
        monitor = two_runs("all")
        device.build(directory=None, with_output=False)
    assert np.round(monitor.t[-1] / ms) == 5


def test_bad_neurons():
    with pytest.raises(TypeError, match="neurons must be a group that spikes"):
        glm.FirstSpikeStop(3)
    with pytest.raises(TypeError, match="needs a threshold"):
        glm.FirstSpikeStop(NeuronGroup(1, "v : 1"))
