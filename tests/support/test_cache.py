"""Compiled programs: found again, whole, and built without getting in the way."""

import ast
import dataclasses
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from importlib import resources
from pathlib import Path

import brian2
import joblib
import numpy as np
import pytest
from brian2 import prefs

import glmbrian as glm
from glmbrian.core.activations import PROBIT
from glmbrian.devices import cpp_standalone
from glmbrian.devices.compiled import CompiledDevice
from glmbrian.devices.fingerprint import without_documentation
from glmbrian.devices.problem import Network
from glmbrian.support import cache, scratch


@pytest.fixture
def programs(tmp_path, monkeypatch):
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "programs"


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))  # for other processes
    cache.temporary_programs.cache_clear()
    yield folder
    cache.temporary_programs.cache_clear()


#: Of a program that `Builder` makes, in bytes, its folders and list of files included.
SIZE = 4096 + 300

A, B, C = map(cache.content_key, "abc")


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


NETWORK = Network(3, 2, 3, glm.RaisedCosineBasis(2, 3), None, PROBIT)


def find(key, build):
    """Return where a program is, without holding it."""
    with cache.find_or_build(key, build) as program:
        assert (program / "main").read_text() == "program"
        return program


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_programs_are_built_once_and_only_whole(programs, build, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 2.5 * SIZE)

    def fail(folder):
        (folder / "main").write_text("half")
        raise RuntimeError("compiler error")

    with pytest.raises(RuntimeError, match="compiler error"):
        find(A, fail)
    assert names(programs) == []
    for key in (A, A, B, C, B):
        assert find(key, build) == programs / key
    assert build.n_built == 3
    assert names(programs) == sorted([B, C])
    assert cache.kept_programs()[0] == 2


def test_a_program_larger_than_the_limit_is_kept_while_it_is_the_newest(programs, build, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    for key in (A, B):
        find(key, build)
    assert names(programs) == [B]


# ------------------------------------------------------------------ what is not the cache's own


def of_another(folder):
    """An old folder of the user's that might be mistaken for a program or an unfinished build."""
    folder.mkdir(parents=True)
    (folder / "files.json").write_text("{}")
    (folder / "source.c").write_text("years of work")
    os.utime(folder, (0, 0))


def marked(folder):
    of_another(folder)
    scratch.mark(folder)


def linked(folder):
    marked(folder.parents[2] / "elsewhere")
    folder.symlink_to(folder.parents[2] / "elsewhere", target_is_directory=True)


@pytest.mark.parametrize(
    "name, make",
    [
        ("my_app", of_another),
        ("my_app", marked),  # a copy of a program
        (C, of_another),
        (C, linked),
        ("building-killed", of_another),
        ("building-12345678", of_another),
        ("building-notes", marked),
        ("building-12345678", linked),
    ],
)
def test_folders_of_others_stay(name, make, programs, build, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    programs.mkdir(parents=True)
    make(programs / name)
    find(A, build)
    find(B, build)  # the limit then removes the other one
    assert names(programs) == sorted([B, name])
    assert cache.kept_programs()[0] == 1
    assert cache.clear()[0] == 1
    assert names(programs) == [name]
    assert (programs / name / "source.c").read_text() == "years of work"


def test_a_linked_folder_is_not_used(programs, build, tmp_path):
    find(A, build)
    programs.rename(tmp_path / "target")
    programs.symlink_to(tmp_path / "target", target_is_directory=True)
    with pytest.warns(UserWarning, match="is a link"):
        find(A, build)
    for ask in (cache.clear, cache.kept_programs):
        with pytest.raises(OSError, match="is a link"):
            ask()
    assert (tmp_path / "target" / A / "main").exists()


@pytest.mark.parametrize("make", [of_another, lambda path: path.write_text("")], ids=["folder", "file"])
def test_a_place_that_is_taken(make, programs, build):
    programs.mkdir(parents=True)
    make(programs / A)
    with pytest.warns(UserWarning, match=f"{A} was not made by this package"):
        assert programs not in find(A, build).parents
    assert (programs / A).exists()


# ------------------------------------------------------------------ damage and distrust


@pytest.mark.parametrize(
    "damage",
    [
        lambda program: (program / "main").unlink(),
        lambda program: (program / "main").write_text(""),
        lambda program: (program / "main").write_text("progra\0"),
        lambda program: (program / "main").chmod(0o644),
        lambda program: (program / "code" / "library").unlink(),
        lambda program: (program / "code" / "more").write_text(""),
        *(
            lambda program, text=text: (program / cache.FILE_LIST).write_text(text)
            for text in ('{"main": ', "[]", "null", "{}", "[" * 100_000, '{"/etc/passwd": [true, ""]}')
        ),
        lambda program: replace_by_pipe(program / "main"),
        lambda program: replace_by_pipe(program / cache.FILE_LIST),
        lambda program: replace_by_link(program / "main"),
        lambda program: (program / scratch.MARKER).write_text("anything"),
    ],
    ids=[
        "missing",
        "empty",
        "changed",
        "not-executable",
        "no-library",
        "more",
        "list-cut-short",
        "list",
        "null",
        "mapping",
        "deep",
        "absolute",
        "pipe",
        "list-is-pipe",
        "link",
        "mark",
    ],
)
def test_a_damaged_program_is_built_anew(programs, build, damage):
    damage(find(A, build))
    for _ in range(2):
        assert os.access(find(A, build) / "main", os.X_OK)
    assert build.n_built == (1 if (programs / A / scratch.MARKER).read_text() else 2)
    assert names(programs) == [A]


def replace_by_pipe(path):
    path.unlink()
    os.mkfifo(path)


def replace_by_link(path):
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def give_away(path):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, 12345, -1)


@pytest.mark.parametrize("part", ["..", ".", "main", "code", "code/library", cache.FILE_LIST])
@pytest.mark.parametrize(
    "expose, message",
    [(lambda path: path.chmod(0o777), "other users could"), (give_away, "belongs to another user")],
    ids=["writable", "of another"],
)
def test_programs_that_others_could_have_written_are_not_run(part, expose, message, programs, build):
    expose(find(A, build) / part)
    with pytest.warns(UserWarning, match=message):
        assert programs not in find(A, build).parents
    assert build.n_built == 2


def test_programs_are_safe_whatever_the_umask(programs, build):
    before = os.umask(0o002)
    try:
        find(A, build)
        find(A, build)
    finally:
        os.umask(before)
    assert build.n_built == 1


# ------------------------------------------------------------------ at the same time


def test_two_processes_may_build_the_same(programs, build):
    def build_slowly(folder):
        find(A, build)  # the other process
        (folder / "main").write_text("as good")

    assert find(A, build_slowly) == programs / A
    assert names(programs) == [A]


def test_a_program_in_use_is_not_removed(programs, build, monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    with cache.find_or_build(A, build) as program:
        find(B, build)
        assert cache.clear() == (1, pytest.approx(SIZE, rel=1), [f"{A}: it is in use"])
        assert (program / "main").read_text() == "program"
    assert cache.clear()[0] == 1
    assert names(programs) == []


def test_a_damaged_program_in_use_is_left_to_its_user(programs, build):
    with cache.find_or_build(A, build) as program:
        (program / "code" / "library").unlink()
        with cache.find_or_build(A, build) as other:
            assert other != program and (other / "code" / "library").exists()
        assert (program / "main").exists()
    assert find(A, build) == programs / A
    assert build.n_built == 3


def test_removing_and_building_at_once(programs, build):
    over = threading.Event()

    def remove():
        while not over.is_set():
            cache.clear()

    removing = threading.Thread(target=remove)
    removing.start()
    try:
        for _ in range(100):
            with cache.find_or_build(A, build) as program:
                assert (program / "code" / "library").read_text() == "code"
    finally:
        over.set()
        removing.join()
    cache.clear()
    assert names(programs) == []


#: Holds a program that it builds, and what else it may have in a folder of its own.
BEGIN = """
import sys, time
from glmbrian.support import cache
from glmbrian.support import scratch

def build(folder):
    with scratch.scratch_folder("glmbrian-run", sys.argv[2]):
        print("begun", flush=True)
        time.sleep(100)

with cache.find_or_build(sys.argv[1], build):
    pass
"""


def test_what_killed_processes_have_left_is_removed(programs, build, temporary):
    command = [sys.executable, "-c", BEGIN, A, str(temporary)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        left = [*programs.iterdir(), *temporary.iterdir()]
        assert len(left) == 2
        find(B, build)  # does not disturb the build that is going on
        with scratch.scratch_folder("glmbrian-run", temporary):
            pass
        assert all(path.exists() for path in left)
        process.kill()
    assert all(path.exists() for path in left)
    find(C, build)
    with scratch.scratch_folder("glmbrian-run", temporary):
        assert not any(path.exists() for path in left)
    assert names(temporary) == []


def test_a_folder_of_a_process_killed_at_once_is_removed_when_it_is_old(temporary):
    young, old, used = (temporary / f"glmbrian-run-1234567{n}" for n in range(3))
    for folder in (young, old, used):
        folder.mkdir()
    (used / "file").touch()
    for folder in (old, used):
        os.utime(folder, (0, 0))
    with scratch.scratch_folder("glmbrian-run", temporary):
        assert young.exists() and used.exists() and not old.exists()


# ------------------------------------------------------------------ where nothing can be kept


def test_a_read_only_cache_serves_what_it_has(programs, build, monkeypatch):
    find(A, build)

    def refuse(*arguments, **settings):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("utime", "rename", "mkdir", "chmod"):
        monkeypatch.setattr(os, name, refuse)
    assert find(A, build) == programs / A
    assert build.n_built == 1
    assert cache.clear() == (0, 0, [f"{A}: Read-only file system"])


def no_home():
    raise RuntimeError("Could not determine home directory.")


@pytest.mark.parametrize("problem", ["not a folder", "no home folder"])
def test_without_a_cache_programs_last_as_long_as_the_process(
    problem, tmp_path, temporary, build, monkeypatch
):
    if problem == "not a folder":
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path / "file" / "cache"))
    else:
        for name in ("GLMBRIAN_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setattr(Path, "home", no_home)
    with pytest.warns(UserWarning, match="(?i)(not a|home) directory.*GLMBRIAN_CACHE_DIR") as seen:
        program = find(A, build)
        assert find(A, build) == program
    assert program.parents[1] == temporary
    assert len(seen) == build.n_built == 1


def test_temporary_programs_go_with_the_process(tmp_path, temporary):
    script = """if True:
        import os
        from glmbrian.support import cache
        from glmbrian.support import scratch
        with cache.find_or_build("a", lambda folder: None) as program:
            print(program)
        if os.fork() == 0:
            raise SystemExit  # a forked copy does not remove them
        os.wait()
        print(program.exists())
    """
    (tmp_path / "file").write_text("")
    environment = {**os.environ, "GLMBRIAN_CACHE_DIR": str(tmp_path / "file")}
    done = subprocess.run(
        [sys.executable, "-u", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "GLMBRIAN_CACHE_DIR" in done.stderr
    program, stayed = done.stdout.split()
    assert Path(program).parents[1] == temporary and stayed == "True"
    assert names(temporary) == []


def full(folder):
    (folder / "main").write_text("half")
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def full_for_make(folder):
    make_by(f"echo main.cpp: {os.strerror(errno.ENOSPC)}; exit 2;")
    cpp_standalone.make(folder, NETWORK)


@pytest.mark.parametrize("full", [full, full_for_make])
def test_a_full_disk_is_named_and_another_one_tried(full, programs, build, temporary):
    def build_elsewhere(folder):
        (full if programs in folder.parents else build)(folder)

    with pytest.warns(UserWarning, match=f"the disk of {programs} is full"):
        assert temporary in find(A, build_elsewhere).parents
    assert names(programs) == []


def test_no_room_anywhere(programs, temporary):
    with pytest.raises(OSError, match=f"disk of {programs} is full.*space in {temporary}.*TMPDIR"):
        find(A, full)
    assert names(programs) == [] and all(
        names(folder) == [".glmbrian"] for folder in temporary.iterdir()
    )


@pytest.mark.parametrize("chosen", ["here", "~/here"])
def test_the_cache_folder_is_the_same_from_everywhere(chosen, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", chosen)
    assert cache.cache_folder() == tmp_path.resolve() / "here"


# ------------------------------------------------------------------ what a key holds


def probit_with(text):
    function = brian2.Function(
        PROBIT.probability, arg_units=[1], return_unit=1, arg_types=["float"], return_type="float"
    )
    function.implementations.add_implementation("cpp", text, name="normal_cdf")
    return dataclasses.replace(PROBIT, namespace={"normal_cdf": function})


class AnyDevice(CompiledDevice):
    name = "any"

    def build(self, network, folder):
        raise NotImplementedError

    def command(self, folder, network, n_phases):
        raise NotImplementedError

    def setting(self, network):
        return []


def test_a_key_depends_on_the_functions_of_the_activation():
    program = AnyDevice()

    def key(activation):
        basis = glm.RaisedCosineBasis(2, 3)
        return program.key(Network(3, 2, 3, basis, None, activation))

    assert key(probit_with("a")) == key(probit_with("a"))
    assert len({key(PROBIT), key(probit_with("a")), key(probit_with("b"))}) == 3


def test_a_key_depends_on_all_that_a_function_holds():
    program = AnyDevice()

    def key(**settings):
        activation = probit_with("a")
        settings = {"name": "normal_cdf", "code": "a", **settings}
        activation.namespace["normal_cdf"].implementations.add_implementation("cpp", **settings)
        network = Network(3, 2, 3, glm.RaisedCosineBasis(2, 3), None, activation)
        return program.key(network), program.key(network)

    settings = [{}, {"name": "other"}, {"namespace": {"x": np.arange(2000)}}]
    settings += [{"namespace": {"x": np.arange(2000) + (np.arange(2000) == 1000)}}]
    keys = [key(**chosen) for chosen in settings]
    assert all(first == again for first, again in keys) and len(set(keys)) == len(settings)


def test_a_key_tells_functions_apart_whose_code_is_not_known():
    program = AnyDevice()

    def key(activation):
        return program.key(Network(3, 2, 3, glm.RaisedCosineBasis(2, 3), None, activation))

    def made_for_each_use():
        activation = probit_with("a")
        implementations = activation.namespace["normal_cdf"].implementations
        implementations.add_dynamic_implementation("cpp", lambda owner: "a")
        return activation

    one = made_for_each_use()
    assert key(one) == key(one) != key(made_for_each_use())


CODE_FOLDERS = ("brian", "core", "devices", "native", "support", "training")


@pytest.fixture
def copied_package(tmp_path, monkeypatch):
    """A copy of the files that decide a program's code, in place of the package's own."""
    package = resources.files("glmbrian")
    for folder in CODE_FOLDERS:
        for path in (Path(str(package)) / folder).rglob("*.*p*"):
            copied = tmp_path / path.relative_to(str(package))
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copied)
    monkeypatch.setattr("glmbrian.devices.fingerprint.resources.files", lambda name: tmp_path)
    return tmp_path


def key_with(path, text):
    """Return the key of a program after writing a file of the package."""
    path.write_text(text)
    return AnyDevice().key(Network(3, 2, 3, glm.RaisedCosineBasis(2, 3), None, PROBIT))


@pytest.mark.parametrize(
    "name",
    [
        "brian/operations.py",
        "brian/neurons.py",
        "brian/internals/functions.py",
        "core/activations.py",
        "devices/genn.py",
        "native/gradients.hpp",
    ],
)
def test_a_key_depends_on_every_file_that_may_decide_code(name, copied_package):
    path = copied_package / name
    text = path.read_text()
    before = key_with(path, text)
    assert key_with(path, text) == before
    assert key_with(path, text + "added = 0;\n") != before


MODULE = '''"""What it holds."""

def name(value):  # a comment
    """Return a name."""
    return "# " + value
'''
HEADER = """// What it holds.
/* One
   more. */
const char* name = "//";  // a comment
"""


@pytest.mark.parametrize(
    "name, text, old, new",
    [
        ("core/bases.py", MODULE, "What it holds.", "More.\n\nAnd 'more'."),
        ("core/bases.py", MODULE, "Return a name.", 'Return a "name".\n\n    # And more.\n    '),
        ("core/bases.py", MODULE, "a comment", "it's another"),
        ("core/bases.py", MODULE, "  # a comment", ""),
        ("core/bases.py", MODULE, "    return", "\n    # Why.\n    return"),
        ("native/hash.hpp", HEADER, "What it holds", "It's more"),
        ("native/hash.hpp", HEADER, "One\n", "Two\n\n"),
        ("native/hash.hpp", HEADER, "  // a comment", ""),
        ("native/hash.hpp", HEADER, "const", "\nconst"),
    ],
)
def test_a_key_does_not_depend_on_documentation(name, text, old, new, copied_package):
    path = copied_package / name
    assert old in text
    assert key_with(path, text.replace(old, new)) == key_with(path, text)


@pytest.mark.parametrize(
    "name, text, old, new",
    [
        ("core/bases.py", MODULE, '"# "', '"# # "'),
        ("core/bases.py", MODULE, "# a comment", "\\\n  # a comment"),
        ("core/bases.py", MODULE, "name(value)", "name(value, other)"),
        ("core/bases.py", MODULE, "    return", "        return"),
        ("native/hash.hpp", HEADER, '"//"', '"///"'),
        ("native/hash.hpp", HEADER, "const char", "char"),
        ("native/hash.hpp", HEADER, "*/\nconst", "\nconst"),
    ],
)
def test_a_key_depends_on_each_line_of_code(name, text, old, new, copied_package):
    path = copied_package / name
    assert old in text
    assert key_with(path, text.replace(old, new)) != key_with(path, text)


def documented(tree):
    """Yield the modules, classes and functions that begin with a docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if ast.get_docstring(node) is not None:
                yield node


def with_bodies(text):
    """Return a module in which no docstring is all there is."""
    lines = text.splitlines()
    for node in documented(ast.parse(text)):
        if len(node.body) == 1:
            lines[node.body[0].end_lineno - 1] += f"\n{' ' * node.body[0].col_offset}pass"
    return "\n".join([*lines, ""])


@pytest.mark.parametrize("folder", CODE_FOLDERS)
def test_only_docstrings_are_left_out_of_code(folder):
    for path in Path(str(resources.files("glmbrian")), folder).rglob("*.py"):
        text = with_bodies(path.read_text())
        expected, code = ast.parse(text), ast.parse(without_documentation(text, ".py"))
        for node in documented(expected):
            del node.body[0]
        assert ast.dump(code) == ast.dump(expected), path


@pytest.mark.parametrize("preference", ["codegen.cpp.extra_link_args", "codegen.cpp.headers"])
def test_a_key_depends_on_the_preferences_for_cpp_code(preference):
    program = AnyDevice()
    network = Network(3, 2, 3, glm.RaisedCosineBasis(2, 3), None, PROBIT)
    before = program.key(network)
    prefs[preference] = ["other"]
    assert program.key(network) != before


# ------------------------------------------------------------------ make


@pytest.mark.parametrize(
    "chosen",
    [
        '"{launcher}" g++',
        "g++ -std=c++17",
        "'{launcher}' g++ -O1",
        "  g++  ",
        "LAUNCHED=1 g++",
        "",
        None,
    ],
)
def test_the_compiler_is_found_as_a_shell_finds_it(chosen, tmp_path, monkeypatch):
    launcher = tmp_path / "a launcher" / "ccache"
    launcher.parent.mkdir()
    launcher.write_text('#!/bin/sh\nexec "$@"\n')
    launcher.chmod(0o755)
    gxx = tmp_path / "g++"
    gxx.write_text("#!/bin/sh\n")
    gxx.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if chosen is None:
        monkeypatch.delenv("CXX", raising=False)
    else:
        monkeypatch.setenv("CXX", chosen.format(launcher=launcher))
    uses_launcher = chosen is not None and "launcher" in chosen
    assert cpp_standalone.find_compiler() == str(launcher if uses_launcher else gxx)


@pytest.mark.parametrize("chosen", ["'g++", "no-such-compiler -O3", "LAUNCHED=1"])
def test_a_missing_compiler_is_named(chosen, programs, monkeypatch):
    monkeypatch.setenv("CXX", chosen)
    assert cpp_standalone.find_compiler() is None
    with pytest.raises(cpp_standalone.CompilerNotFound, match=f"{chosen}.*CXX"):
        glm.GLMClassifier(n_steps=3, n_basis=2, verbose=False).fit([[0.0], [1.0]], [0, 1])


def test_make_gets_no_empty_compiler(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", " ")
    make_by("echo ${CXX-none} > chosen;")
    cpp_standalone.make(tmp_path, NETWORK)
    assert (tmp_path / "chosen").read_text() == "none\n"


@pytest.mark.parametrize("arguments, used", [(["-j"], f"-j{joblib.cpu_count()}"), (["-j7"], "-j7")])
def test_make_starts_no_more_compilers_than_there_are_cores(arguments, used, tmp_path):
    make_by("echo > used", arguments)
    cpp_standalone.make(tmp_path, NETWORK)
    assert (tmp_path / "used").read_text() == f"{used}\n"


def make_by(command, arguments=()):
    """Let the shell run this in place of make."""
    prefs.devices.cpp_standalone.make_cmd_unix = command
    prefs.devices.cpp_standalone.extra_make_args_unix = list(arguments)


def test_make_runs_in_the_folder_as_the_preferences_say(tmp_path, capfd):
    make_by("echo it ran >", ["log", "2>&1"])
    cpp_standalone.make(tmp_path, NETWORK)
    assert (tmp_path / "log").read_text() == "it ran\n"
    assert capfd.readouterr() == ("", "")


def test_an_error_shows_the_end_of_the_output(tmp_path, capfd):
    make_by("seq 100; echo wrong >&2; exit 3")
    with pytest.raises(RuntimeError, match="ended with code 3") as error:
        cpp_standalone.make(tmp_path, NETWORK)
    lines = str(error.value).splitlines()
    assert lines[1:] == [*map(str, range(96, 101)), "wrong"]
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
            find(A, lambda folder: cpp_standalone.make(folder, NETWORK))
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
