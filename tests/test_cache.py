"""Compiled programs: found again, whole, and built without getting in the way."""

import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import brian2
import pytest
from brian2 import prefs

import glmbrian as glm
from glmbrian import cache
from glmbrian.activations import PROBIT
from glmbrian.devices import cpp_standalone
from glmbrian.devices.program import Program
from glmbrian.model import Network


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "programs"


#: Of a program that `Builder` makes, in bytes, its folders and list of files included.
SIZE = 4096 + 300


class Builder:
    """Builds a program of one file, and counts how often."""

    def __init__(self):
        self.n_built = 0

    def __call__(self, folder):
        self.n_built += 1
        (folder / "main").write_text("program")
        (folder / "main").chmod(0o755)
        (folder / "code").mkdir()
        (folder / "code" / "library").write_text("code")


@pytest.fixture
def build():
    return Builder()


def test_programs_are_built_once_and_only_whole(programs, build, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 2.5 * SIZE)

    def fail(folder):
        (folder / "main").write_text("half")
        raise RuntimeError("compiler error")

    with pytest.raises(RuntimeError, match="compiler error"):
        cache.find_or_build("a", fail)
    assert list(programs.iterdir()) == []
    for key in "aabcb":
        assert (cache.find_or_build(key, build) / "main").read_text() == "program"
    assert build.n_built == 3
    assert sorted(path.name for path in programs.iterdir()) == ["b", "c"]
    assert cache.kept_programs()[0] == 2


def test_a_program_larger_than_the_limit_is_kept_while_it_is_the_newest(programs, build, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    for key in "ab":
        assert (cache.find_or_build(key, build) / "main").exists()
    assert [path.name for path in programs.iterdir()] == ["b"]


def test_the_limit_leaves_the_folders_of_others_alone(programs, build, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    thesis = programs / "thesis"
    thesis.mkdir(parents=True)
    (thesis / "chapter").write_text("long")
    os.utime(thesis, (0, 0))
    for key in "ab":
        cache.find_or_build(key, build)
    assert sorted(path.name for path in programs.iterdir()) == ["b", "thesis"]


def test_clearing_removes_programs_and_nothing_else(programs, build):
    assert cache.kept_programs() == (0, 0)
    cache.find_or_build("a", build)
    mine = programs / "mine" / "notes"
    mine.parent.mkdir()
    mine.write_text("not a program")
    n_programs, size = cache.kept_programs()
    assert n_programs == 1 and size > len("program") + len("code")
    cache.clear()
    assert [path.name for path in programs.iterdir()] == ["mine"] and mine.exists()
    cache.find_or_build("a", build)
    assert build.n_built == 2


def make_a_file(program):
    shutil.rmtree(program)
    program.write_text("")


@pytest.mark.parametrize(
    "damage",
    [
        lambda program: (program / "main").unlink(),
        lambda program: (program / "main").write_text(""),
        lambda program: (program / "main").write_text("progra\0"),
        lambda program: (program / "main").chmod(0o644),
        lambda program: (program / "code" / "library").unlink(),
        lambda program: (program / cache._FILE_LIST).write_text('{"main": '),
        make_a_file,
    ],
    ids=["missing", "empty", "changed", "not executable", "no library", "list cut short", "a file"],
)
def test_a_damaged_program_is_built_anew(programs, build, damage):
    damage(cache.find_or_build("a", build))
    for _ in range(2):
        program = cache.find_or_build("a", build)
        assert (program / "main").read_text() == "program"
        assert os.access(program / "main", os.X_OK)
    assert build.n_built == 2
    assert [path.name for path in programs.iterdir()] == ["a"]


def test_two_processes_may_build_the_same(programs, build):
    def build_slowly(folder):
        cache.find_or_build("a", build)  # the other process
        (folder / "main").write_text("as good")

    assert (cache.find_or_build("a", build_slowly) / "main").read_text() == "program"
    assert [path.name for path in programs.iterdir()] == ["a"]


def test_a_read_only_cache_serves_what_it_has(programs, build, monkeypatch):
    cache.find_or_build("a", build)

    def utime(path):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "utime", utime)
    assert cache.find_or_build("a", build) == programs / "a"
    assert build.n_built == 1


def no_home():
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("problem", ["not a folder", "no home folder"])
def test_without_a_cache_programs_last_as_long_as_the_process(
    problem, tmp_path, build, monkeypatch
):
    if problem == "not a folder":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    else:
        for name in ("GLMBRIAN_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setattr(cache, "_temporary_programs", lambda: tmp_path / "temporary")
    with pytest.warns(UserWarning, match="(?i)(not a|home) directory.*GLMBRIAN_CACHE_DIR") as seen:
        program = cache.find_or_build("a", build)
        assert cache.find_or_build("a", build) == program == tmp_path / "temporary" / "a"
    assert len(seen) == build.n_built == 1


def test_temporary_programs_go_with_the_process(tmp_path):
    script = "from glmbrian import cache; print(cache.find_or_build('a', lambda folder: None))"
    (tmp_path / "file").write_text("")
    environment = {**os.environ, "GLMBRIAN_CACHE_DIR": str(tmp_path / "file")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert "GLMBRIAN_CACHE_DIR" in done.stderr
    program = Path(done.stdout.strip())
    assert program.name == "a" and not program.parent.exists()


@pytest.mark.parametrize("chosen", ["here", "~/here"])
def test_the_cache_folder_is_the_same_from_everywhere(chosen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", chosen)
    assert cache.cache_folder() == tmp_path.resolve() / "here"


def test_what_killed_builds_have_left_is_removed(programs, build):
    for name, age in (("building-killed", 2), ("building-running", 0.5)):
        (programs / name / "program").mkdir(parents=True)
        then = time.time() - age * 24 * 3600
        os.utime(programs / name, (then, then))
    cache.find_or_build("a", build)
    assert sorted(path.name for path in programs.iterdir()) == ["a", "building-running"]


# ------------------------------------------------------------------ what a key holds


def probit_with(text):
    function = brian2.Function(
        PROBIT.probability, arg_units=[1], return_unit=1, arg_types=["float"], return_type="float"
    )
    function.implementations.add_implementation("cpp", text, name="normal_cdf")
    return dataclasses.replace(PROBIT, namespace={"normal_cdf": function})


def test_a_key_depends_on_the_functions_of_the_activation():
    program = Program(None, None, sources=(), setting=lambda network: None)

    def key(activation):
        basis = glm.RaisedCosineBasis(2, 3)
        return program._key(Network(3, 2, 3, basis, None, activation))

    assert key(probit_with("a")) == key(probit_with("a"))
    assert len({key(PROBIT), key(probit_with("a")), key(probit_with("b"))}) == 3


# ------------------------------------------------------------------ make


def make_by(command, arguments=()):
    """Let the shell run this in place of make."""
    prefs.devices.cpp_standalone.make_cmd_unix = command
    prefs.devices.cpp_standalone.extra_make_args_unix = list(arguments)


def test_make_runs_in_the_folder_as_the_preferences_say(tmp_path, capfd):
    make_by("echo it ran >", ["log", "2>&1"])
    cpp_standalone._make(tmp_path)
    assert (tmp_path / "log").read_text() == "it ran\n"
    assert capfd.readouterr() == ("", "")


def test_an_error_shows_the_end_of_the_output(tmp_path, capfd):
    make_by("seq 100; echo wrong >&2; exit 3")
    with pytest.raises(RuntimeError, match="ended with code 3") as error:
        cpp_standalone._make(tmp_path)
    lines = str(error.value).splitlines()
    assert lines[1:] == [*map(str, range(82, 101)), "wrong"]
    assert capfd.readouterr() == ("", "")


def test_ctrl_c_stops_all_compilers(programs, monkeypatch):
    """A signal to Python alone; to the terminal's group is the same, as make has its own."""
    make_by("sleep 100 & touch started; sleep 100;")

    def interrupt():
        for _ in range(1000):
            if list(programs.glob("*/program/started")):
                break
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    # Python that is started in the background of a script ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    started = time.monotonic()
    try:
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            cache.find_or_build("a", cpp_standalone._make)
        thread.join()
    finally:
        signal.signal(signal.SIGINT, before)
    # It waits until nobody can write any more, so the sleeping ones were killed.
    assert time.monotonic() - started < 50
    assert list(programs.iterdir()) == []


@pytest.mark.compiled
def test_a_compile_error_is_told_and_leaves_nothing(programs, capfd):
    prefs.codegen.cpp.headers = ['"no_such_header.h"']
    with pytest.raises(RuntimeError, match="(?s)ended with code 2.*no_such_header"):
        glm.GLMClassifier(n_steps=3, n_basis=2, n_epochs=1, device="cpp_standalone").fit(
            [[0.0], [1.0]], [0, 1]
        )
    assert list(programs.iterdir()) == []
    assert "no_such_header" not in "".join(capfd.readouterr())
