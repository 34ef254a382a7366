"""Calls in a separate Python process, which generate C++ code."""

import dataclasses
import importlib
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from brian2 import BrianObjectException, Function, prefs
from brian2.utils.logger import catch_logs

import glmbrian as glm
from glmbrian.brian.internals import cpp_preferences
from glmbrian.classifier.training import prepare
from glmbrian.core.activations import SIGMOID
from glmbrian.devices import cpp_standalone
from glmbrian.devices.fresh_interpreter import call_apart

A_MODULE = """
import logging, os, pathlib, time
from brian2 import BrianObjectException, NeuronGroup
from glmbrian.brian.internals import cpp_preferences

def tell(*arguments):
    print("printed")
    logging.getLogger("brian2.there").warning("a %s", "warning")
    return os.getpid(), os.getcwd(), cpp_preferences(), arguments

def fail():
    raise BrianObjectException("no good", NeuronGroup(1, "v : 1", name="there"))

def sleep(folder):
    pathlib.Path(folder, "started").touch()
    time.sleep(100)
    pathlib.Path(folder, "over").touch()
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module of the user's on this process's import path."""
    (tmp_path / "of_the_user.py").write_text(A_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("of_the_user")
    del sys.modules["of_the_user"]


def test_it_has_these_preferences_and_what_is_logged_is_logged_here(module, capfd):
    prefs.codegen.cpp.extra_link_args = ["-lm"]
    with catch_logs() as logged:
        process, folder, preferences, arguments = call_apart(module.tell, np.arange(3), "text")
    assert process != os.getpid() and not os.path.exists(folder)
    assert preferences == cpp_preferences()
    np.testing.assert_array_equal(arguments[0], [0, 1, 2])
    assert arguments[1] == "text"
    assert ("WARNING", "brian2.there", "a warning") in logged
    assert "printed" not in capfd.readouterr().out


def test_an_error_is_raised_here(module):
    with pytest.raises(BrianObjectException) as error:
        call_apart(module.fail)
    try:
        module.fail()
    except BrianObjectException as here:
        assert str(error.value).splitlines()[0] == str(here).splitlines()[0]
    assert "in fail" in str(error.value.__cause__)


def test_ctrl_c_ends_it(module, tmp_path):
    def interrupt():
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = threading.Thread(target=interrupt)
        thread.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            call_apart(module.sleep, str(tmp_path))
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 90 and not (tmp_path / "over").exists()


def no_interpreter(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")


def frozen(monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)


def another_program(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/true")


def no_such_program(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")


@pytest.mark.parametrize("problem", [no_interpreter, frozen, another_program, no_such_program])
def test_without_an_interpreter_the_call_is_made_here(problem, monkeypatch):
    problem(monkeypatch)
    assert call_apart(os.getpid) == os.getpid()


def test_what_cannot_be_sent_is_called_here(monkeypatch):
    assert call_apart(lambda: os.getpid()) == os.getpid()
    in_main = type("InMain", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "InMain", in_main, raising=False)
    # Pickle would accept it, by its name.
    assert type(call_apart(vars, in_main())) is dict


def own_activation(code):
    """An activation with a function of the user's whose C++ code is `code`."""
    function = Function(
        lambda u: 1 / (1 + np.exp(-u)), arg_units=[1], return_unit=1, arg_types=["float"],
        return_type="float",
    )  # fmt: skip
    if callable(code):
        function.implementations.add_dynamic_implementation("cpp", code, lambda owner: None)
    else:
        function.implementations.add_implementation("cpp", code, name="own")
    expression = "own(u)"
    return dataclasses.replace(SIGMOID, name="own", expression=expression, namespace={"own": function})


CODE = "static inline double own(double u) { return 1 / (1 + exp(-u)); }"


@pytest.mark.parametrize("code", [CODE, lambda owner: CODE], ids=["text", "made for each use"])
def test_a_project_is_the_same_wherever_it_is_generated(code, tmp_path, monkeypatch):
    classifier = glm.GLMClassifier(n_steps=3, n_basis=2, activation=own_activation(code))
    network = prepare([classifier.settings], [[0.0], [1.0]], [0, 1]).network
    written = []
    for name in ("elsewhere", "here"):
        if name == "here":
            monkeypatch.setattr(sys, "executable", "")
        (tmp_path / name).mkdir()
        cpp_standalone._generate(network, tmp_path / name)
        written.append(files(tmp_path / name))
    elsewhere, here = written
    assert elsewhere == here and "main.cpp" in here


def files(folder):
    def numbered_alike(text):
        # Brian numbers objects with the same name, such as those of other tests, and sorts by it.
        return re.sub(r"_codeobject_\d+", "_codeobject", text)

    return {
        numbered_alike(str(path.relative_to(folder))): sorted(
            numbered_alike(path.read_text()).splitlines()
        )
        for path in folder.rglob("*")
        if path.suffix in (".cpp", ".h", ".hpp")
    }


def test_this_process_generates_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(cpp_standalone, "private_standalone_device", None)
    glm.GLMClassifier(n_steps=3, n_basis=2).export([[0.0], [1.0]], [0, 1], tmp_path / "project")
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(TypeError):
        glm.GLMClassifier(n_steps=3, n_basis=2).export([[0.0], [1.0]], [0, 1], tmp_path / "other")


def test_a_script_is_not_run_again(tmp_path):
    """A script without ``if __name__ == "__main__"``, with standard input and output closed."""
    script = tmp_path / "script.py"
    script.write_text(
        "open('runs', 'a').write('.')\n"
        "import glmbrian as glm\n"
        "glm.GLMClassifier(n_steps=3, n_basis=2).export([[0.0], [1.0]], [0, 1], 'project')\n"
    )
    command = f"exec {sys.executable} {script} <&- >&- 2>&-"
    subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, check=True)
    assert (tmp_path / "runs").read_text() == "."
    assert (tmp_path / "project" / "main.cpp").is_file()
