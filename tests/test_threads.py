"""Several threads at once, and processes that they fork."""

import multiprocessing
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from brian2 import Network, NeuronGroup, defaultclock, get_device, ms, prefs
from brian2.devices.device import RuntimeDevice
from conftest import EXHAUSTIVE

import glmbrian as glm

X, Y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 3, 3, axis=1), [0, 1] * 3

#: Settings that need a program each, and how often all are compiled.
ARCHITECTURES = [(3, 1), (3, 2), (4, 1), (4, 2)] if EXHAUSTIVE else [(3, 1), (3, 2)]
N_ROUNDS = 20 if EXHAUSTIVE else 1


def fitted(n_steps, n_basis, device, rule="rate"):
    """Return the parameters of a network whose architecture the arguments choose."""
    one = glm.GLMClassifier(
        rule, n_steps, n_basis, n_epochs=2, device=device, random_state=n_basis, verbose=False
    ).fit(X, Y)
    return np.concatenate([one.weights_.ravel(), one.feedback_.ravel(), one.bias_, one.history_])


@pytest.fixture(scope="module")
def alone():
    """The parameters that each architecture learns in a single thread."""
    return {chosen: fitted(*chosen, "runtime") for chosen in ARCHITECTURES}


def assert_equal(parameters, expected):
    np.testing.assert_allclose(parameters, expected, rtol=0, atol=1e-9)


class UsersNetwork:
    """A network of the user's that another thread simulates again and again."""

    def __enter__(self):
        self.over, self.n_runs = threading.Event(), 0
        self.pool = ThreadPoolExecutor(1)
        self.result = self.pool.submit(self.simulate)
        return self

    def simulate(self):
        while not self.over.is_set() or self.n_runs < 2:
            group = NeuronGroup(
                2, "dv/dt = 1 / ms : 1", threshold="v > 5", method="euler", name="users"
            )
            Network(group).run(1 * ms, namespace={})
            np.testing.assert_allclose(group.v, 1)
            assert isinstance(get_device(), RuntimeDevice)
            self.n_runs += 1

    def __exit__(self, *error):
        self.over.set()
        self.pool.shutdown()
        self.result.result()


@pytest.fixture
def users_network():
    prefs.codegen.target = "numpy"
    with UsersNetwork() as network:
        yield network
    assert isinstance(get_device(), RuntimeDevice) and defaultclock.dt == 0.1 * ms
    assert prefs.codegen.target == "numpy"


def fit_in_threads(n_threads, jobs, expected):
    """Fit all `jobs`, pairs of an architecture and a device, at once."""
    with ThreadPoolExecutor(n_threads) as pool:
        futures = [(chosen, pool.submit(fitted, *chosen, device)) for chosen, device in jobs]
        for chosen, future in futures:
            assert_equal(future.result(), expected[chosen])


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_threads_compile_side_by_side(alone, users_network, tmp_path, monkeypatch):
    """Some need a program that another thread is building."""
    for number in range(N_ROUNDS):
        monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path / str(number)))
        jobs = [(chosen, "cpp_standalone") for chosen in ARCHITECTURES]
        fit_in_threads(4, (jobs * 2)[:4], alone)
    # With a warm cache, and with simulations in this process.
    jobs += [(chosen, "runtime") for chosen in ARCHITECTURES]
    fit_in_threads(7, jobs * (7 if EXHAUSTIVE else 1), alone)


@pytest.mark.exhaustive
def test_joblibs_threads_simulate_in_turn(alone, users_network):
    chosen = ARCHITECTURES * 2
    found = joblib.Parallel(4, backend="threading")(
        joblib.delayed(fitted)(*architecture, "runtime") for architecture in chosen
    )
    for architecture, parameters in zip(chosen, found):
        assert_equal(parameters, alone[architecture])


def test_a_simulation_within_another_does_not_block(alone, monkeypatch):
    found = []

    def fit_another(self, done):
        if done == 1 and not found:
            found.append(None)
            found.append(fitted(*ARCHITECTURES[1], "runtime"))

    monkeypatch.setattr("glmbrian.support.progress.Progress.__call__", fit_another)
    assert_equal(fitted(*ARCHITECTURES[0], "runtime"), alone[ARCHITECTURES[0]])
    assert_equal(found[1], alone[ARCHITECTURES[1]])


def test_a_forked_process_simulates_too(alone, monkeypatch):
    """It has a copy of the lock that the simulating thread of its parent holds."""
    inside, over = threading.Event(), threading.Event()

    def wait(self, done):
        if done == 1 and threading.current_thread() is not threading.main_thread():
            inside.set()
            over.wait()

    monkeypatch.setattr("glmbrian.support.progress.Progress.__call__", wait)
    with ThreadPoolExecutor(1) as pool:
        simulated = pool.submit(fitted, *ARCHITECTURES[0], "runtime")
        inside.wait()
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=lambda: queue.put(fitted(*ARCHITECTURES[1], "runtime")))
        child.start()
        child.join(60)
        hangs = child.is_alive()
        child.kill()
        over.set()
        assert not hangs
        assert_equal(queue.get(), alone[ARCHITECTURES[1]])
        assert_equal(simulated.result(), alone[ARCHITECTURES[0]])


def test_the_first_use_may_be_in_a_thread():
    """It imports Brian 2, which sets a handler for Ctrl-C that only the main thread may set."""
    script = """
import signal
from concurrent.futures import ThreadPoolExecutor
import glmbrian as glm
before = signal.signal
with ThreadPoolExecutor(2) as pool:
    made = list(pool.map(lambda k: glm.GLMClassifier(n_basis=k), (1, 2)))
assert [one.n_basis for one in made] == [1, 2] and signal.signal is before
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.exhaustive
def test_any_module_may_be_the_first_in_a_thread():
    script = """
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
with ThreadPoolExecutor(1) as pool:
    pool.submit(import_module, sys.argv[1]).result()
"""
    modules = [
        "brian.neurons",
        "classifier.classifier",
        "devices.cpp_standalone",
        "recording.recording",
    ]
    modules += ["plotting.rasters", "population.fitting", "reproduce.fits", "training.trainer"]
    started = [subprocess.Popen([sys.executable, "-c", script, f"glmbrian.{name}"]) for name in modules]
    assert [process.wait() for process in started] == [0] * len(modules)


def test_names_that_the_package_does_not_have():
    # "__main__" would run the command line, and end this process.
    for name in ("__main__", "__wrapped__", "nothing", "learning.nothing"):
        assert not hasattr(glm, name)
    assert glm.learning is sys.modules["glmbrian.learning"]
