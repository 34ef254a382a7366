"""What the package needs from inside Brian 2 is there in this version."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from brian2 import (
    Clock,
    Function,
    Network,
    NetworkOperation,
    NeuronGroup,
    NumpyCodeObject,
    Synapses,
    defaultclock,
    get_device,
    ms,
    prefs,
    set_device,
)
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice
from brian2.devices.device import RuntimeDevice, all_devices, reset_device
from brian2.utils.logger import catch_logs

from glmbrian.brian import internals as brian_internals


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


def test_networks_of_an_object():
    group = NeuronGroup(1, "v : 1", threshold="v > 0", reset="")
    networks = [Network(group), Network(NeuronGroup(1, "v : 1")), Network(group)]
    # As another thread leaves one that it has not built yet, before and after its objects are set.
    half_built = [Network.__new__(Network), Network.__new__(Network)]
    half_built[1].objects = set()
    for part in (group, group.thresholder["spike"]):
        found = brian_internals.networks_with(part)
        assert {id(network) for network in found} == {id(networks[0]), id(networks[2])}


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


def test_a_private_device_leaves_the_users_alone():
    set_device("cpp_standalone", build_on_run=False)
    users, before = get_device(), dict(all_devices)
    with brian_internals.private_standalone_device() as device:
        assert get_device() is device
        assert isinstance(device, CPPStandaloneDevice) and device is not users
        defaultclock.dt = 1 * ms
    assert get_device() is users and all_devices == before
    assert defaultclock.dt == 0.1 * ms
    with pytest.raises(RuntimeError), brian_internals.private_standalone_device():
        raise RuntimeError
    assert get_device() is users


def test_the_runtime_device_is_active_while_a_network_is_described_for_another():
    set_device("cpp_standalone", build_on_run=False)
    users = get_device()
    defaultclock.dt = 0.2 * ms
    described = list(users.main_queue)
    with brian_internals.runtime_device():
        group = NeuronGroup(1, "steps : integer", dt=1 * ms)
        group.run_regularly("steps += 1", dt=1 * ms)
        Network(group).run(3 * ms)
        assert list(group.steps) == [3]
    assert get_device() is users and users.main_queue == described
    assert defaultclock.dt == 0.2 * ms
    reset_device()
    assert isinstance(get_device(), RuntimeDevice)


def test_a_device_that_another_thread_chooses_meanwhile_stays():
    with brian_internals.private_standalone_device():
        set_device("runtime")
    assert isinstance(get_device(), RuntimeDevice)


def test_an_error_ends_a_run():
    def fail():
        raise ValueError

    with pytest.raises(ValueError), brian_internals.runtime_device():
        Network(NetworkOperation(fail)).run(1 * ms)
    # Otherwise Brian takes the next Ctrl-C for a request to stop this run.
    assert not Network._globally_running


def test_a_forked_process_need_not_wait_for_other_threads():
    """A thread that was simulating does not exist in the forked process."""
    users = get_device()
    inside, over = threading.Event(), threading.Event()

    def simulate():
        with brian_internals.private_standalone_device():
            inside.set()
            over.wait()

    thread = threading.Thread(target=simulate)
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        with brian_internals.runtime_device() as device:
            os._exit(0 if device is users else 1)
    deadline = time.monotonic() + 20
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
        time.sleep(0.01)
    over.set()
    thread.join()
    if ended == (0, 0):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert ended == (child, 0)
    assert get_device() is users


def test_a_group_runs_on_numpy_whatever_the_preference():
    prefs.codegen.target = "cython"
    group = NeuronGroup(1, "dv/dt = -v / ms : 1", threshold="v > 1", reset="v = 0", method="euler")
    brian_internals.use_numpy(group)
    Network(group).run(0.1 * ms)
    for part in group.contained_objects:
        assert all(isinstance(code, NumpyCodeObject) for code in part.code_objects)
        assert part.code_objects


def test_preferences_for_cpp_code_are_found_and_set():
    prefs.codegen.cpp.extra_compile_args_gcc = ["-O1"]
    prefs.core.default_float_dtype = np.float32
    chosen = brian_internals.cpp_preferences()
    assert chosen["codegen.cpp.extra_compile_args_gcc"] == ["-O1"]
    assert "devices.cpp_standalone.openmp_threads" in chosen
    brian_internals.set_cpp_preferences({**chosen, "codegen.cpp.extra_link_args": ["-lm"]})
    assert prefs.codegen.cpp.extra_compile_args_gcc == ["-O1"]
    assert prefs.codegen.cpp.extra_link_args == ["-lm"]
    # Preferences that are not about C++ have Brian's defaults.
    assert prefs.core.default_float_dtype == np.float64


def test_preferences_of_brian2genn_are_found_before_it_is_imported():
    # In a process of its own: another test may have imported it here.
    script = """
from brian2 import prefs
from glmbrian.brian import internals
prefs.prefs_unvalidated["devices.genn.path"] = "/genn"
assert internals.cpp_preferences()["devices.genn.path"] == "/genn"
assert internals.genn_preference("path") == "/genn"
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_function_without_its_python_code_is_sent_anywhere():
    inner, outer = (
        Function(lambda x: x, arg_units=[1], return_unit=1, arg_types=["float"], return_type="float")
        for _ in range(2)
    )
    for function, used in ((inner, {}), (outer, {"inner": inner})):
        function.implementations.add_implementation("cpp", "code", dependencies=used, name="c")
        function.implementations.add_implementation("numpy", lambda x: x)
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(outer)
    plain = pickle.loads(pickle.dumps(brian_internals.without_python(outer)))
    assert list(plain.implementations) == ["cpp"] and set(outer.implementations) == {"cpp", "numpy"}
    made = plain.implementations["cpp"]
    assert made.get_code(None) == "code"
    assert list(made.dependencies["inner"].implementations) == ["cpp"]
    assert brian_internals.without_python(1.5) == 1.5


def test_the_signature_of_a_function_holds_its_types():
    signatures = {
        brian_internals.signature(
            Function(None, arg_units=[1], return_unit=1, arg_types=[kind], return_type=result)
        )
        for kind in ("integer", "float")
        for result in ("integer", "float")
    }
    assert len(signatures) == 4


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
        assert "--param=vect-max-version" in (tmp_path / "makefile").read_text()


def test_brian_can_redirect_streams_that_were_closed(tmp_path):
    script = """if True:
        from brian2.utils.logger import std_silent
        from glmbrian.brian.internals import complete_standard_streams
        complete_standard_streams()
        with std_silent():
            print("redirected")
        open("done", "w").close()
    """
    shell = '"$@" <&- >&- 2>&-'
    subprocess.run(["sh", "-c", shell, "sh", sys.executable, "-c", script], cwd=tmp_path, check=True)
    assert (tmp_path / "done").exists()


@pytest.mark.parametrize(
    "line, is_brians",
    [
        ("glm.RateEncoder([2.0])", False),
        ("brian2.NeuronGroup(-1, '')", True),
        ("raise ValueError('of the user')", True),
        ("glm.GLMNeurons(2, glm.IndicatorBasis(2)).undefined = 1", True),
        # What is wrong when a run begins: the order of slots is, and then the user's equations are.
        (
            "net = brian2.Network(glm.GLMNeurons(2, glm.IndicatorBasis(2))); "
            "net.schedule = ['start', 'thresholds', 'groups', 'synapses', 'resets', 'end']; net.run(brian2.ms)",
            False,
        ),
        (
            "net = brian2.Network(brian2.NeuronGroup(1, 'dv/dt = x / second : 1')); net.run(brian2.ms)",
            True,
        ),
    ],
)
def test_brian_asks_for_reports_of_errors_that_are_not_about_our_arguments(line, is_brians):
    program = f"import brian2, glmbrian as glm\n{line}"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" in ended.stderr
    assert ("unexpected error" in ended.stderr) == is_brians


def test_until_when_an_object_has_been_simulated():
    group = NeuronGroup(1, "v : 1", dt=1 * ms)
    assert brian_internals.time_simulated(group) == (0.0, True)
    network = Network(group)
    network.run(3 * ms)
    assert brian_internals.time_simulated(group) == (0.003, True)
    Network(NeuronGroup(1, "v : 1", clock=group.clock)).run(1 * ms)
    assert brian_internals.time_simulated(group) == (0.003, True)  # not that of the clock
