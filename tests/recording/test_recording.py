"""Spike times, binned trains and Brian groups stand for each other."""

import gc
import pickle
import subprocess
import sys

import numpy as np
import pytest
from brian2 import (
    Hz,
    Network,
    PoissonGroup,
    SpikeMonitor,
    defaultclock,
    ms,
    mV,
    run,
    second,
    set_device,
    start_scope,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import glmbrian as glm
from glmbrian.interop import Recording


def steps_of(monitor, dt):
    return sorted(zip(np.round(monitor.t / dt).astype(int).tolist(), monitor.i[:].tolist()))


binary_trains = arrays(
    np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 4)), elements=st.integers(0, 1)
)


def test_steps_begin_at_multiples_of_dt():
    recording = Recording([[0.0, 0.0019], [0.002]], 0 * ms, 3 * ms)
    np.testing.assert_array_equal(recording.trains(1 * ms), [[1, 0], [1, 0], [0, 1]])
    assert recording.names == ["0", "1"] and len(recording) == 2
    assert recording.times[1] == 2 * ms and recording.t_stop == 3 * ms


def test_a_last_step_may_be_partial_and_has_a_spike_at_the_end():
    assert Recording([[2.4] * ms], 0 * ms, 2.5 * ms).trains(1 * ms).ravel().tolist() == [0, 0, 1]
    assert Recording([[2.0] * ms], 0 * ms, 2 * ms).trains(1 * ms).ravel().tolist() == [0, 1]
    assert Recording([[]], 0 * ms, 0.1 * ms).trains(1 * ms).tolist() == [[0]]


@given(
    trains=binary_trains,
    dt=st.floats(1e-5, 0.1),
    start=st.floats(-100, 100),
    noise=st.integers(-3, 3),
)
def test_multiples_of_dt_are_binned_as_meant(trains, dt, start, noise):
    recording = Recording.from_trains(trains, dt, start)
    np.testing.assert_array_equal(recording.trains(dt), trains)
    # As somebody else's arithmetic may have it: some units in the last place beside.
    grid = start + np.arange(len(trains) + 1) * dt
    grid += noise * np.spacing(np.abs(grid))
    times = [grid[:-1][train == 1] for train in trains.T]
    np.testing.assert_array_equal(Recording(times, start, grid[-1]).trains(dt), trains)


@given(
    times=st.lists(st.floats(0, 1), min_size=1, max_size=20),
    dt=st.floats(1e-4, 0.5),
    start=st.floats(-10, 10),
)
def test_each_spike_is_in_the_step_that_it_falls_into(times, dt, start):
    times = start + np.array(times)
    trains = Recording([times], start, start + 1).trains(dt, collisions="clip").ravel()
    assert len(trains) in (np.floor(1 / dt), np.floor(1 / dt) + 1)
    begins = start + np.arange(len(trains)) * dt
    slack = 2e-3 * dt
    for time in times:
        near = (begins - slack <= time) & (time <= begins + dt + slack)
        assert trains[near].any()
    assert trains.sum() <= len(times)


def test_several_spikes_in_a_step():
    recording = Recording(
        [[1] * ms, [1.1, 1.3, 5.2, 5.9, 5.95] * ms, [3, 3.4] * ms], 0 * ms, 10 * ms, ["a", "b", "c"]
    )
    with pytest.raises(
        ValueError, match=r"dt = 1\. ms unit 'b' has several spikes in 2 step.* 1 other.*50\. us"
    ):
        recording.trains(1 * ms)
    with pytest.raises(ValueError, match="unit 'b'"):
        recording.source(1 * ms)
    clipped = recording.trains(1 * ms, collisions="clip")
    assert np.argwhere(clipped).tolist() == [[1, 0], [1, 1], [3, 2], [5, 1]]
    assert recording.trains(0.05 * ms).sum() == 8
    assert recording.source(1 * ms, collisions="clip").spike_time[:].shape == (4,)


@settings(max_examples=10)
@given(trains=binary_trains)
def test_the_source_spikes_in_the_steps_of_the_trains(trains):
    dt = 0.7 * ms
    source = Recording.from_trains(trains, dt, t_start=12.3 * second).source(dt)
    monitor = SpikeMonitor(source)
    Network(source, monitor).run(len(trains) * dt)
    assert steps_of(monitor, dt) == [tuple(step) for step in np.argwhere(trains).tolist()]


def test_the_source_is_on_the_default_clock_unless_it_gets_a_dt():
    defaultclock.dt = 0.5 * ms
    recording = Recording([[1, 3] * ms], 0 * ms, 4 * ms)
    source = recording.source(name="recorded")
    assert source.name == "recorded" and source.clock.name == "defaultclock"
    monitor = SpikeMonitor(source)
    Network(source, monitor).run(4 * ms)
    assert steps_of(monitor, 0.5 * ms) == [(2, 0), (6, 0)]
    assert recording.source(0.25 * ms).clock.dt == 0.25 * ms


def test_a_monitor_and_its_recording_have_the_same_spikes():
    group = PoissonGroup(5, [0, 300, 300, 300, 0] * Hz)
    whole, part = SpikeMonitor(group), SpikeMonitor(group[1:3])
    net = Network(group, whole, part)
    net.run(50 * ms)
    net.run(50 * ms)
    recording = Recording.from_monitor(whole, 0 * ms, net.t, list("abcde"))
    assert whole.num_spikes > 0 and recording.t_stop == 100 * ms
    trains = recording.trains(defaultclock.dt)
    assert trains.shape == (1000, 5) and trains.sum() == whole.num_spikes
    again = SpikeMonitor(source := recording.source())
    Network(source, again).run(100 * ms)
    assert steps_of(again, defaultclock.dt) == steps_of(whole, defaultclock.dt)
    of_part = Recording.from_monitor(part, 0, 0.1)
    np.testing.assert_array_equal(of_part.trains(defaultclock.dt), trains[:, 1:3])


@pytest.mark.compiled
def test_source_and_monitor_in_a_standalone_program(tmp_path):
    trains = np.random.default_rng(0).integers(0, 2, (30, 3))
    set_device("cpp_standalone", directory=str(tmp_path / "program"))
    source = Recording.from_trains(trains, 1 * ms).source(1 * ms)
    monitor = SpikeMonitor(source)
    net = Network(source, monitor)
    net.run(30 * ms)
    np.testing.assert_array_equal(Recording.from_monitor(monitor, 0, 30 * ms).trains(1 * ms), trains)


def test_parts_of_a_recording():
    recording = Recording([[0, 1, 2, 3] * second, [] * second], 0, 3, ["a", "b"])
    first, last = recording.part(0, 1), recording.part(1, 3 * second)
    assert np.array_equal(first.times[0] / second, [0]) and np.array_equal(
        last.times[0] / second, [1, 2, 3]
    )
    assert (last.t_start, last.t_stop, last.names) == (1 * second, 3 * second, ["a", "b"])
    # 3 * 0.1 is above 0.3
    boundary = Recording([[0.3]], 0, 1)
    assert len(boundary.part(0, 3 * 0.1).times[0]) == 0
    assert boundary.part(3 * 0.1, 1).trains(0.1).ravel().tolist() == [1] + 6 * [0]
    with pytest.raises(ValueError, match="within the recording, 0 s to 3 s, got 1 s to 4 s"):
        recording.part(1, 4)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (([], 0, 1), ValueError, "at least one unit"),
        ((3, 0, 1), TypeError, "times must be a sequence of arrays"),
        (([0.1, 0.2], 0, 1), ValueError, r"times\[0\] must have the shape \(n_spikes,\)"),
        (([[0.1] * mV], 0, 1), TypeError, r"times\[0\] must be a time"),
        (([[np.nan]], 0, 1), ValueError, r"times\[0\] must be finite"),
        (([["a"]], 0, 1), TypeError, r"times\[0\] must be an array of numbers"),
        (([[0.5], [1.5]], 0, 1), ValueError, r"times\[1\] must be from t_start to t_stop, 0 s to 1 s"),
        (([[-0.5]], 0, 1), ValueError, r"times\[0\] must be from"),
        (([[0.5]], 1, 1), ValueError, "t_stop must be after t_start"),
        (([[0.5]], 0, 3 * mV), TypeError, "t_stop must be a time"),
        (([[0.5]], 0, [1, 2]), ValueError, "t_stop must have the shape"),
        (([[0.5]], 0, 1, ["a", "b"]), ValueError, "one name for each of the 1 units, got 2"),
        (([[0.5]], 0, 1, "a"), TypeError, "names must be a sequence of strings"),
        (([[0.5]], 0, 1, [3]), TypeError, "names must be a sequence of strings"),
        (([[0.5]], 0, 1, 3 * mV), TypeError, "names must be a sequence of strings"),
        (([[0.5]], 0, 1, None, 1e-3), TypeError, "dt must be one time with a unit"),
    ],
)
def test_bad_recordings(arguments, error, message):
    with pytest.raises(error, match=message):
        Recording(*arguments)


def test_bad_arguments_of_methods():
    recording = Recording([[0.5]], 0, 1)
    for dt in (0, -1 * ms):
        with pytest.raises(ValueError, match="dt must be above 0 s"):
            recording.trains(dt)
    with pytest.raises(TypeError, match="dt must be a time"):
        recording.source(1 * mV)
    with pytest.raises(ValueError, match="collisions must be one of 'error', 'clip'"):
        recording.trains(0.1, collisions="count")
    with pytest.raises(ValueError, match="trains must hold only 0 and 1"):
        Recording.from_trains([[2]], 1 * ms)
    with pytest.raises(ValueError, match="trains must have the shape"):
        Recording.from_trains([1], 1 * ms)


def test_bad_monitors():
    group = PoissonGroup(1, 10 * Hz)
    with pytest.raises(TypeError, match="monitor must be a SpikeMonitor"):
        Recording.from_monitor(group, 0, 1)
    with pytest.raises(ValueError, match="record=True"):
        Recording.from_monitor(SpikeMonitor(group, record=False), 0, 1)


def test_other_unit_packages_are_not_taken_for_seconds():
    pq = pytest.importorskip("quantities", reason="checks its quantities")
    with pytest.raises(TypeError, match="Brian unit"):
        Recording([[1, 2] * pq.ms], 0, 1)


def test_nothing_else_imports_this_part():
    script = """
import sys, glmbrian
print(any("interop" in name for name in sys.modules))
glmbrian.interop.Recording
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False" and "interop" in dir(glm)


def test_a_recording_knows_the_step_that_it_came_in():
    trains = np.random.default_rng(1).integers(0, 2, (20, 2))
    recording = Recording.from_trains(trains, 0.5 * ms)
    assert recording.dt == 0.5 * ms and recording.part(2 * ms, 6 * ms).dt == 0.5 * ms
    np.testing.assert_array_equal(recording.trains(), trains)
    assert recording.trains(0.25 * ms).shape == (40, 2)
    bare = Recording(recording.times, 0 * ms, 10 * ms)
    assert bare.dt is None
    for call in (bare.trains, lambda: Recording.from_trains(trains)):
        with pytest.raises(TypeError, match=r"^dt must be given.*1\*ms"):
            call()


def test_pickles_of_earlier_versions_load():
    """They name the module where the class was."""
    recording = Recording([[1.2, 3] * ms, []], 0 * ms, 4 * ms, ["a", "b"])
    written = pickle.dumps(recording, protocol=2)
    assert written.count(b"glmbrian.recording.recording") == 1
    earlier = written.replace(b"glmbrian.recording.recording", b"glmbrian.interop.recording")
    loaded = pickle.loads(earlier)
    assert type(loaded) is Recording and loaded.names == ["a", "b"]
    np.testing.assert_array_equal(loaded.trains(1 * ms), recording.trains(1 * ms))


def test_too_many_steps_are_refused():
    with pytest.raises(ValueError, match="^dt must be longer: .* 1e[+]13 steps"):
        Recording([[0.5]], 0, 1e4).trains(1e-9)
    with pytest.raises(ValueError, match="^dt must be longer"):
        Recording([[0.5]], 0, 1e300).trains(1e-300)
    with pytest.raises(TypeError, match="^times must be a sequence of arrays, .* not a mapping"):
        Recording({"a": [0.5]}, 0, 1)


def run_for(duration, *more):
    neurons = glm.GLMNeurons(3, glm.IndicatorBasis(1), dt=1 * ms, random_state=1)
    neurons.bias = 0
    monitor = SpikeMonitor(neurons)
    network = Network(neurons, monitor, *[each(neurons) for each in more])
    network.run(duration)
    return monitor, network


def test_time_that_was_not_simulated_is_not_silence():
    monitor, network = run_for(20 * ms)
    assert len(Recording.from_monitor(monitor, 0 * ms, network.t).trains()) == 20
    with pytest.raises(ValueError, match=r"^t_stop must be at most 20\. ms.*network\.t"):
        Recording.from_monitor(monitor, 0 * ms, 21 * ms)
    with pytest.raises(ValueError, match="^t_start must be 0 s or later"):
        Recording.from_monitor(monitor, -1 * ms, 20 * ms)
    network.store()
    network.run(5 * ms)
    assert len(Recording.from_monitor(monitor, 0 * ms, 25 * ms).trains()) == 25
    network.restore()
    with pytest.raises(ValueError, match=r"^t_stop must be at most 20\. ms"):
        Recording.from_monitor(monitor, 0 * ms, 25 * ms)
    with pytest.raises(ValueError, match=r"^t_stop must be at most 0\. s"):
        Recording.from_monitor(SpikeMonitor(monitor.source), 0 * ms, 1 * ms)


def test_runs_that_a_spike_ends():
    monitor, network = run_for(1000 * ms, glm.FirstSpikeStop)
    assert network.t < 100 * ms
    with pytest.raises(ValueError, match="^t_stop must be at most"):
        Recording.from_monitor(monitor, 0 * ms, 1000 * ms)
    trains = Recording.from_monitor(monitor, 0 * ms, network.t).trains()
    assert trains[-1].any() and not trains[:-1].any()


def test_the_clock_of_another_network_does_not_count():
    group = PoissonGroup(1, 500 * Hz)
    monitor = SpikeMonitor(group)
    network = Network(group, monitor)
    network.run(50 * ms)
    Network(PoissonGroup(1, 500 * Hz)).run(10 * ms)
    assert monitor.clock.t < 20 * ms
    assert Recording.from_monitor(monitor, 0 * ms, 50 * ms).t_stop == 50 * ms
    Network(PoissonGroup(1, 500 * Hz)).run(70 * ms)
    with pytest.raises(ValueError, match=r"^t_stop must be at most 50\. ms"):
        Recording.from_monitor(monitor, 0 * ms, 70 * ms)


def test_a_network_that_no_longer_exists():
    monitor = run_for(20 * ms)[0]
    gc.collect()
    assert len(Recording.from_monitor(monitor, 0 * ms, 20 * ms).trains()) == 20
    with pytest.raises(ValueError, match=r"^t_stop must be at most 20\. ms.*keep the monitor's own"):
        Recording.from_monitor(monitor, 0 * ms, 21 * ms)
    with_other = PoissonGroup(1, 0 * Hz, clock=monitor.clock)
    Network(with_other).run(1 * ms)
    with pytest.warns(RuntimeWarning, match="^t_stop is 30. ms, but it is not known"):
        Recording.from_monitor(monitor, 0 * ms, 30 * ms)


def test_magic_networks_know_their_time():
    start_scope()
    group = PoissonGroup(2, 300 * Hz)
    monitor = SpikeMonitor(group)
    run(30 * ms)
    assert Recording.from_monitor(monitor, 0 * ms, 30 * ms).t_stop == 30 * ms
    with pytest.raises(ValueError, match=r"^t_stop must be at most 30\. ms"):
        Recording.from_monitor(monitor, 0 * ms, 31 * ms)
