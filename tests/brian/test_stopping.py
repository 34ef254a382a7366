"""A run ends at the first output spike, on every target."""

import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    StateMonitor,
    defaultclock,
    device,
    ms,
    prefs,
    run,
    set_device,
)

import glmbrian as glm
from glmbrian.brian.internals import CPP_PROGRAM_CAN_STOP


def simulate(stop_on):
    """Neuron 0 spikes in steps 3, 6, ... and neuron 1 in steps 5, 10, ...

    Three runs can be stopped; others, and another network with the same clock, cannot.
    """
    neurons = NeuronGroup(
        2, "period : integer", threshold="t_in_timesteps % period == 0 and t_in_timesteps > 0", reset=""
    )
    neurons.period = [3, 5]
    fine = NeuronGroup(1, "now = t : second", dt=0.25 * ms)
    stop = glm.FirstSpikeStop(neurons if stop_on == "all" else neurons[1:])
    spikes, times = SpikeMonitor(neurons), StateMonitor(fine, "now", record=True, when="end")
    network = Network(neurons, fine, stop, spikes, times)
    network.run(100 * ms, namespace={})
    network.run(100 * ms, namespace={})
    other = NeuronGroup(1, "now = t : second")
    other_times = StateMonitor(other, "now", record=True, when="end")
    other_network = Network(other, other_times)
    other_network.run(2 * ms, namespace={})
    network.run(100 * ms, namespace={})
    stop.active = False
    network.run(4 * ms, namespace={})
    return spikes, times, network, other_times, other_network


def results(spikes, times, network, other_times, other_network):
    return [
        np.asarray(values).tolist()
        for values in (
            spikes.i,
            spikes.t,
            times.t,
            times.now[0],
            network.t,
            other_times.now[0],
            other_network.t,
        )
    ]


STOPS = {"all": [3, 5, 6], "subgroup": [5, 10, 15]}


@pytest.mark.parametrize(
    "target, stop_on",
    [
        ("numpy", "all"),
        ("numpy", "subgroup"),
        pytest.param("cython", "subgroup", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
    ],
)
def test_runtime(target, stop_on):
    stops = STOPS[stop_on]
    prefs.codegen.target = target
    defaultclock.dt = 1 * ms
    spikes, times, network, *_ = simulate(stop_on)
    # A stop ends the run at the step of the fast clock that would come next.
    end = stops[-1] + 0.25 + 4
    assert network.t == end * ms
    np.testing.assert_allclose(times.t / ms, np.arange(4 * end) / 4)
    spiked = sorted({round(float(t / ms)) for t in spikes.t})
    assert spiked == [step for step in range(1, stops[-1] + 5) if step % 3 == 0 or step % 5 == 0]


@pytest.mark.compiled
def test_cpp_standalone():
    set_device("cpp_standalone", directory=None, build_on_run=False)
    defaultclock.dt = 1 * ms
    if not CPP_PROGRAM_CAN_STOP:
        with pytest.raises(Exception) as raised:
            simulate("all")
        assert "needs Brian 2.6 or newer" in str(raised.getrepr(style="short", chain=True))
        return
    simulated = simulate("all")
    device.build(directory=None, with_output=False)
    found = results(*simulated)
    set_device("runtime")
    defaultclock.dt = 1 * ms
    for got, expected in zip(found, results(*simulate("all"))):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_a_magic_network_includes_the_stop():
    defaultclock.dt = 1 * ms
    neurons = NeuronGroup(1, "", threshold="t_in_timesteps == 3", reset="")
    stop = glm.FirstSpikeStop(neurons)
    run(100 * ms)
    assert defaultclock.t == 4 * ms
    assert f"1 neurons of {neurons.name!r}" in repr(stop) and "neurons of" in stop._repr_html_()


def test_bad_neurons():
    with pytest.raises(TypeError, match="neurons must be a group that spikes"):
        glm.FirstSpikeStop(3)
    with pytest.raises(ValueError, match="name must be"):
        glm.FirstSpikeStop(NeuronGroup(1, "", threshold="i > 0", reset=""), name="a b")
    with pytest.raises(TypeError, match="needs a threshold"):
        glm.FirstSpikeStop(NeuronGroup(1, "v : 1"))
