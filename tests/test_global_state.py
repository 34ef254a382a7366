"""Every call leaves the global state of the process, which belongs to the user, as it was."""

import dataclasses
import gc
import logging
import os
import random
import signal
import subprocess
import sys

import numpy as np
import pytest
from brian2 import NeuronGroup, defaultclock, get_device, ms, prefs, run, set_device
from brian2.core.base import BrianObject
from brian2.core.names import find_name
from brian2.devices.device import all_devices, previous_devices

import glmbrian as glm
import glmbrian.brian.internals  # noqa: F401 - the first import adds a filter to one of Brian's loggers
from glmbrian.core.activations import SIGMOID
from glmbrian.devices.genn_environment import GeNNNotFound, check_environment, check_packages
from glmbrian.reproduce.fits import Fit
from glmbrian.reproduce.protocol import Design
from glmbrian.support.progress import Progress

X, Y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 2, 3, axis=1), [0, 1, 0, 1]


def needed(check, *arguments):
    try:
        check(*arguments)
        return ""
    except GeNNNotFound as error:
        return str(error)


needs_brian2genn = pytest.mark.skipif(
    bool(why := needed(check_packages)), reason=why or "brian2genn is there"
)
needs_genn = [
    pytest.mark.skipif(bool(why := needed(check_environment, False)), reason=why or "GeNN is there"),
    pytest.mark.compiled,
    pytest.mark.long,
]


def global_state():
    """Return everything that a call must not change."""
    names = ("neurongroup", "synapses", "clock", "network", "networkoperation", "glmneurons")
    umask = os.umask(0)
    os.umask(umask)
    loggers = {"": logging.getLogger(), **logging.root.manager.loggerDict}
    return {
        "device": get_device(),
        "former devices": list(previous_devices),
        "devices": dict(all_devices),
        "options": [(device.build_on_run, device.build_options) for device in all_devices.values()],
        "preferences": dict(prefs),
        "preferences read": dict(prefs.prefs_unvalidated),
        "preferences kept": dict(prefs.backup_prefs),
        "project": [list(getattr(device, "main_queue", [])) for device in all_devices.values()],
        "time step": float(defaultclock.dt),
        "time": all_devices["runtime"].defaultclock.variables["t"].get_value().item(),
        # Before garbage is collected, since the user may not collect it either.
        "next names": [find_name(f"{name}*") for name in names],
        "objects": (gc.collect(), {ref().name for ref in BrianObject.__instances__()})[1],
        "NumPy's seed": [np.asarray(part).tolist() for part in np.random.get_state()],
        "Python's seed": random.getstate(),
        # Without loggers that nobody has configured: Brian creates them as it logs messages.
        "logging": {
            name: settings
            for name, logger in loggers.items()
            if isinstance(logger, logging.Logger)
            and name.partition(".")[0] in ("", "brian2")
            and (
                settings := (logger.level, logger.disabled, list(logger.handlers), list(logger.filters))
            )
            != (0, False, [], [])
        },
        "folder": os.getcwd(),
        "umask": umask,
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "environment": {**os.environ, "PYTEST_CURRENT_TEST": None},
        "floating point": np.geterr(),
        "brian2genn": "brian2genn" in sys.modules,
        "exempt from garbage collection": gc.get_freeze_count() > 0,
    }


def assert_same(before):
    after = global_state()
    changed = {name: (value, after[name]) for name, value in before.items() if after[name] != value}
    assert not changed


@pytest.fixture(params=["a fresh process", "another device"])
def users_state(request):
    """The state before a call.  On another device, nothing has Brian's default."""
    if request.param == "a fresh process":
        gc.unfreeze()  # what the tests have exempted
    gc.collect()  # what other tests have left
    group = NeuronGroup(2, "v : 1")
    if request.param == "another device":
        set_device("cpp_standalone", build_on_run=False, directory="chosen")
        defaultclock.dt = 0.3 * ms
        prefs.core.default_float_dtype = np.float32
        group = NeuronGroup(2, "v : 1", threshold="v > 1", reset="v = 0")
        group.v = 2
        run(1 * ms)
    np.random.seed(7)
    state = global_state()
    yield state
    gc.freeze()
    assert group.N == 2  # it lived until now


def classifier(device="runtime", **settings):
    common = dict(n_steps=3, n_basis=2, n_epochs=2, random_state=1, verbose=False, gpu=False)
    return glm.GLMClassifier(device=device, **{**common, **settings})


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(X, Y)


def interop(fitted, folder):
    trains = np.eye(4, dtype=int)
    recording = glm.interop.Recording.from_trains(trains, 1 * ms)
    np.testing.assert_array_equal(recording.trains(1 * ms), trains)


def population(fitted, folder):
    population = glm.fit_population(np.eye(8, 2), np.eye(8, 1), glm.IndicatorBasis(1), penalty=1.0)
    population.save(folder / "population.npz")
    glm.GLMPopulation.load(folder / "population.npz")


CALLS = {
    "fit": lambda fitted, folder: classifier().fit(X, Y),
    "partial_fit": lambda fitted, folder: classifier().partial_fit(X, Y, classes=[0, 1]),
    "predict": lambda fitted, folder: fitted.predict(X),
    "score": lambda fitted, folder: fitted.score(X, Y),
    "evaluate": lambda fitted, folder: fitted.evaluate(X, Y),
    "record": lambda fitted, folder: fitted.record(X),
    "save and load": lambda fitted, folder: (
        fitted.save(folder / "it.npz"), glm.GLMClassifier.load(folder / "it.npz")
    ),
    "fit_ensemble": lambda fitted, folder: glm.fit_ensemble([classifier(), classifier()], X, Y),
    "training_report": lambda fitted, folder: glm.plotting.training_report(fitted, X, Y),
    "export": lambda fitted, folder: classifier("cpp_standalone").export(X, Y, folder),
    "fit_population": population,
    "interop": interop,
    "reproduce": lambda fitted, folder: Fit(
        "package", Design("rate", (5, 7), 2, 2), 0.01, 1, 0, 1, 1, device="runtime"
    ).run(),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
def test_a_call_changes_nothing(call, fitted, users_state, tmp_path):
    call(fitted, tmp_path)
    assert_same(users_state)


@pytest.mark.parametrize("users_state", ["another device"], indirect=True)
@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
@pytest.mark.parametrize("name", ["fit", "predict", "fit_ensemble"])
def test_an_error_in_the_middle_changes_nothing(
    name, problem, fitted, users_state, tmp_path, monkeypatch
):
    def fail(self, done):
        if done:
            raise problem

    monkeypatch.setattr(Progress, "__call__", fail)
    with pytest.raises(problem):
        CALLS[name](fitted, tmp_path)
    assert_same(users_state)


@pytest.fixture
def heeds_ctrl_c():
    """Give SIGINT its usual effect, as processes that a shell starts in the background ignore it."""
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("users_state", ["a fresh process"], indirect=True)
def test_ctrl_c_ends_a_simulation(heeds_ctrl_c, users_state, monkeypatch):
    """Brian takes Ctrl-C for a request to stop, and its runs then return as if complete."""

    def interrupt(self, done):
        if done == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Progress, "__call__", interrupt)
    trained = classifier()
    with pytest.raises(KeyboardInterrupt):
        trained.fit(X, Y)
    assert not hasattr(trained, "weights_")
    assert_same(users_state)


def with_expression(expression):
    return dataclasses.replace(SIGMOID, name="own", expression=expression)


def on_device(name):
    marks = {"cpp_standalone": [], "genn": [needs_brian2genn]}
    return pytest.param(name, marks=marks[name])


@pytest.mark.parametrize("users_state", ["another device"], indirect=True)
@pytest.mark.parametrize("device", [on_device("cpp_standalone"), on_device("genn")])
def test_an_error_in_generating_code_changes_nothing(device, users_state, monkeypatch):
    # GeNN itself is needed only for compiling.
    monkeypatch.setattr("glmbrian.devices.genn.check_environment", lambda gpu: None)
    wrong = classifier(device, activation=with_expression("unheard_of(u)"))
    with pytest.raises(Exception, match="unheard_of|An error occurred when preparing an object"):
        wrong.fit(X, Y)
    assert_same(users_state)


@needs_brian2genn
def test_an_export_for_genn_changes_nothing(users_state, tmp_path, monkeypatch):
    monkeypatch.setattr("glmbrian.devices.genn.check_environment", lambda gpu: None)
    classifier("genn").export(X, Y, tmp_path / "project")
    assert_same(users_state)


class TestCompiled:
    pytestmark = pytest.mark.compiled

    @pytest.mark.parametrize("device", ["cpp_standalone", pytest.param("genn", marks=needs_genn)])
    @pytest.mark.parametrize("users_state", ["another device"], indirect=True)
    def test_programs_change_nothing(self, device, users_state, monkeypatch):
        state = global_state()
        for _ in range(2):  # with a cold and with a warm cache
            trained = classifier(device).fit(X, Y)
            assert trained.score(X, Y) == 1
        if device == "cpp_standalone":
            glm.fit_ensemble([classifier(device), classifier(device)], X, Y, n_jobs=2)
        assert_same(state)
        self.check_interrupted(device, monkeypatch)
        assert_same(state)

    @staticmethod
    def check_interrupted(device, monkeypatch):
        def interrupt(self, done):
            raise KeyboardInterrupt

        monkeypatch.setattr(Progress, "__call__", interrupt)
        with pytest.raises(KeyboardInterrupt):
            classifier(device).fit(X, Y)

    @pytest.mark.parametrize("users_state", ["another device"], indirect=True)
    def test_a_compile_error_changes_nothing(self, users_state):
        prefs.devices.cpp_standalone.make_cmd_unix = "false"
        state = global_state()
        with pytest.raises(RuntimeError, match="ended with code 1"):
            classifier("cpp_standalone", n_steps=2).fit(X, Y)
        assert_same(state)


def n_objects():
    gc.collect()
    return len(gc.get_objects())


@pytest.fixture
def nothing_exempt():
    """Count all objects: tests exempt old ones from garbage collection."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_a_process_does_not_grow(fitted, nothing_exempt):
    def use(n_times):
        for _ in range(n_times):
            classifier("runtime").fit(X, Y)
            fitted.predict(X)

    use(3)  # objects that the first calls keep for good
    before = n_objects()
    use(8)
    # Once it was two hundred objects per fit: keys of caches were new objects each time.
    assert n_objects() - before < 8


def test_objects_that_the_user_exempted_from_garbage_collection(fitted):
    gc.freeze()
    n_exempt = gc.get_freeze_count()
    fitted.predict(X)
    assert gc.get_freeze_count() > 0.99 * n_exempt


#: Fits, and prints how many objects there were, how many were searched, and how many are exempt.
SHORT_FIT = """
import gc
import sklearn.model_selection
import glmbrian as glm

searched = []
classifier = glm.GLMClassifier(n_steps=2, n_basis=1, n_epochs=1, device="runtime", verbose=False)
n_objects = len(gc.get_objects())
gc.callbacks.append(lambda phase, info: searched.append(len(gc.get_objects()) if info["generation"] == 2 else 0))
classifier.fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
print(n_objects, max(searched), gc.get_freeze_count())
"""


def test_a_fit_does_not_search_old_objects_for_garbage():
    """With scikit-learn imported, this took longer than everything else in a short fit."""
    done = subprocess.run([sys.executable, "-c", SHORT_FIT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    n_objects, n_searched, n_exempt = map(int, done.stdout.split())
    assert 0 < n_searched < n_objects / 4
    assert n_exempt == 0
