"""What all tests share: a clean Brian 2 for each, and nothing written outside."""

import gc
import os
import shlex
import shutil
import subprocess
import tempfile

os.environ["MPLBACKEND"] = "Agg"  # before anything imports matplotlib

# GeNN is where GENN_PATH says, or in the home folder, or its programs are not run.
_HOME_GENN = os.path.expanduser("~/genn")
if not os.environ.get("GENN_PATH") and os.path.isdir(_HOME_GENN):
    os.environ["GENN_PATH"] = _HOME_GENN

import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

settings.register_profile("glmbrian", derandomize=True, deadline=None)
settings.load_profile("glmbrian")

CACHE_VARIABLE = "GLMBRIAN_CACHE_DIR"

#: Whether tests try all cases, also those that take long: `make test-exhaustive` sets the variable.
EXHAUSTIVE = os.environ.get("GLMBRIAN_EXHAUSTIVE") == "1"


class BrianState:
    """A plugin, not a fixture of this file, so that it is for doctests as well."""

    file = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        """Exempt what exists when a file begins from garbage collection.

        Brian collects garbage in every run.  To search all modules, and what the tests of other files
        have left in caches, would take half of the time of the whole suite.
        """
        if item.path != self.file:
            self.file = item.path
            gc.collect()
            gc.freeze()

    @pytest.fixture(autouse=True)
    def restore_brian(self):
        """Leave Brian's device, preferences and default clock as they were.

        Standalone devices are emptied too: read what a simulation gave before the
        test, or the fixture that ran it for several tests, is over.
        """
        from brian2 import defaultclock, ms, prefs
        from brian2.devices.device import (
            all_devices,
            previous_devices,
            reset_device,
            runtime_device,
        )

        preferences = dict(prefs)
        yield
        for device in all_devices.values():
            if device is not runtime_device:
                device.reinit()
        previous_devices.clear()
        reset_device()  # to runtime, as there is no previous device
        for name, value in preferences.items():
            if prefs[name] != value:
                prefs[name] = value
        # Brian's own: a fixture of several tests may have changed it before the first.
        defaultclock.dt = 0.1 * ms


_QUICK_COMPILER = shlex.quote(os.path.join(os.path.dirname(os.path.abspath(__file__)), "quick_g++"))


def _has_gcc():
    try:
        answer = subprocess.run(["g++", "--version"], capture_output=True, text=True)
    except FileNotFoundError:
        return False
    return "Free Software Foundation" in answer.stdout


@pytest.fixture(scope="module")
def optimised():
    """Compile code that is run for long with Brian's own options."""
    from brian2 import prefs

    before = prefs.codegen.cpp.extra_compile_args
    prefs.codegen.cpp.extra_compile_args = None
    yield
    prefs.codegen.cpp.extra_compile_args = before


@pytest.fixture
def users_compiler(optimised, monkeypatch):
    """Compile as for users: not even with `quick_g++`."""
    if os.environ.get("CXX") == _QUICK_COMPILER:
        monkeypatch.delenv("CXX")


def pytest_configure(config):
    config.pluginmanager.register(BrianState(), "glmbrian-brian-state")
    # Programs are compiled once a session. Already set, it is somebody's choice.
    if CACHE_VARIABLE not in os.environ:
        folder = tempfile.mkdtemp(prefix="glmbrian-tests-")
        os.environ[CACHE_VARIABLE] = folder
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        config.add_cleanup(lambda: os.environ.pop(CACHE_VARIABLE, None))
    # Inherited by all that tests start. Already set, it is somebody's choice.
    if "CXX" not in os.environ and _has_gcc():
        os.environ["CXX"] = _QUICK_COMPILER
        config.add_cleanup(lambda: os.environ.pop("CXX", None))
    from brian2 import prefs

    prefs.codegen.runtime.cython.cache_dir = cython_folder()
    # Optimising takes longer than the runs of most tests.
    flags = prefs.codegen.cpp.extra_compile_args_gcc
    prefs.codegen.cpp.extra_compile_args = [flag.replace("-O3", "-O0") for flag in flags]
    # Cython compiles every operation by itself: the tests that are about it ask for it.
    prefs.codegen.target = "numpy"
    # The whole suite with the other preference that Brian's users have.
    if os.environ.get("GLMBRIAN_TEST_PRECISION") == "single":
        import numpy

        prefs.core.default_float_dtype = numpy.float32
    # The workers of xdist keep all cores busy: several compilers at once are slower. Without a
    # bound, Brian starts one for every file.
    n_compilers = 1 if "PYTEST_XDIST_WORKER" in os.environ else os.cpu_count()
    prefs.devices.cpp_standalone.extra_make_args_unix = [f"-j{n_compilers}"]


def cython_folder():
    """Return where Brian's Cython target keeps what it compiled: not the user's folder."""
    return os.path.join(os.environ[CACHE_VARIABLE], "cython")


def levels_above_draws(random, key, presentations, n_steps, n_inputs):
    """Return levels that a second draw decides about in one step each, half of them.

    Shape (n, n_inputs), as float32; none beyond that of intensity 1.
    """
    import numpy as np

    from glmbrian.core.randomness import draws16

    shape = (len(presentations), n_inputs)
    step = random.integers(0, n_steps, shape)
    draws = draws16(key, np.asarray(presentations)[:, np.newaxis], step, np.arange(n_inputs))
    levels = np.where(draws < 32768, draws + random.random(shape), random.integers(0, 32769, shape))
    return levels.astype(np.float32)


def in_numpy_and_compiled(cases, usual):
    """Return the arguments of a test of all `cases` in NumPy and in C++.

    Compiling takes long, so only the `usual` ones are compiled in every run.
    """
    cases = list(cases)
    marks = {case: [] if case in usual else [pytest.mark.exhaustive] for case in cases}
    return [pytest.param(case, "numpy") for case in cases] + [
        pytest.param(case, "cpp_standalone", marks=[pytest.mark.compiled, *marks[case]])
        for case in cases
    ]


def has_compiler():
    chosen = shlex.split(os.environ.get("CXX", ""))[:1]
    return any(map(shutil.which, [*chosen, "g++", "clang++"]))


def pytest_collection_modifyitems(items):
    if not EXHAUSTIVE:
        for item in items:
            if item.get_closest_marker("exhaustive"):
                item.add_marker(pytest.mark.skip(reason="takes long, so only in make test-exhaustive"))
    if not has_compiler():
        for item in items:
            if item.get_closest_marker("compiled"):
                item.add_marker(pytest.mark.skip(reason="no C++ compiler"))
