"""Commands that end with Python, and the messages of those that fail."""

import contextlib
import errno
import os
import signal
import stat
import subprocess
import sys
import time

import pytest

from glmbrian.devices.compiled import CompiledDevice
from glmbrian.support.processes import how_it_ended, lines_of, run_watched, watched


def test_a_command_runs_to_its_end(tmp_path):
    script = "pwd; echo $WORD; cat; echo error >&2; exit 3"
    code, output = run_watched(["sh", "-c", script], tmp_path, {**os.environ, "WORD": "a b"})
    assert code == 3 and output.splitlines() == [str(tmp_path), "a b", "error"]
    assert run_watched(["no such command"])[0] == 127


@pytest.mark.parametrize(
    "script, words",
    [
        ("exit 3", "ended with code 3"),
        ("kill -SEGV $$", "was ended by SIGSEGV (Segmentation fault)"),
        ("kill -KILL $$", "was ended by SIGKILL (Killed), perhaps because the memory was full"),
    ],
)
def test_how_a_command_ended(script, words):
    code = run_watched(["sh", "-c", f"ulimit -c 0; {script}"])[0]
    assert how_it_ended(code).replace(": 11", "").replace(": 9", "") == words


def test_lines_of_several_commands(tmp_path):
    texts = ["a\nb\n", "c\n\nd", ""]
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(watched(["printf", text])) for text in texts]
        seen = {process: [] for process in running}
        for process, line in lines_of(running):
            seen[process].append(line)
    assert list(seen.values()) == [["a", "b", None], ["c", "", "d", None], [None]]


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A zombie, whose parent has not waited for it yet, has ended, too.
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip()[:1] not in ("", "Z")


def gone(pids):
    """Whether these processes end soon: within two seconds, or more on a busy machine."""
    for _ in range(1000):
        if not any(map(alive, pids)):
            return True
        time.sleep(0.01)
    return False


#: Two processes that tell who they are, as make and a compiler that it has started.
SLEEPY = "sleep 1000 & echo $$ $!; wait"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("fork", [False, True], ids=["", "while a copy goes on"])
def test_commands_end_with_python(how, fork):
    script = f"""if True:
        import os, time
        from glmbrian.support.processes import watched
        with watched(["sh", "-c", {SLEEPY!r}]) as process:
            print(process.stdout.readline().decode(), end="", flush=True)
            if {fork} and os.fork() == 0:
                print(os.getpid(), flush=True)
            time.sleep(1000)
    """
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as python:
        pids = [int(word) for word in python.stdout.readline().split()]
        copy = int(python.stdout.readline()) if fork else None
        assert all(map(alive, pids))
        python.send_signal(how)
        try:
            assert gone(pids)
        finally:
            if copy:
                os.kill(copy, signal.SIGKILL)


def test_an_error_ends_what_runs():
    with pytest.raises(ZeroDivisionError), watched(["sh", "-c", SLEEPY]) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        1 / 0
    assert gone(pids)


# ------------------------------------------------------------------ compiled programs


class Network:
    def shares(self):
        return [slice(0, 1)]


class Progress:
    def __init__(self):
        self.seen = []

    def compiling(self):
        pass

    def __call__(self, done):
        self.seen.append(done)


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run a shell script in place of a compiled program."""
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path / "cache"))

    class Shell(CompiledDevice):
        name = "shell"

        def key(self, network):
            return "0" * 24

        def build(self, network, folder):
            program = folder / "main"
            program.write_text("#!/bin/sh\n. job/script\n")
            program.chmod(program.stat().st_mode | stat.S_IXUSR)

        def command(self, folder, network, n_phases):
            return [folder / "main"], None

        def setting(self, network):
            return []

    def run(*scripts, progress=None):
        def write_job(script):
            def write(job):
                job.mkdir()
                (job / "script").write_text(script)
                (job / "run.txt").write_text("steps 1\npeak_memory 1\n")

            return write

        jobs = [write_job(script) for script in scripts]
        with Shell().finished_runs(None, jobs, 1, progress or Progress()) as (_, timing):
            return timing

    return run


def test_progress_of_several_programs(run):
    progress = Progress()
    said = "printf 'glmbrian progress %d 9\\n' 1 2; echo else; echo glmbrian progress 9 9"
    assert run(said, said, progress=progress).presentations == 9
    assert progress.seen[0] == 0 and progress.seen[-1] == 9
    assert progress.seen == sorted(progress.seen)


def test_a_program_that_fails_ends_the_others_and_says_why(run, tmp_path):
    started = time.monotonic()
    with pytest.raises(RuntimeError, match="ended with code 3: glmbrian: cannot read x"):
        run("sleep 1000", "echo 'glmbrian: cannot read x' >&2; exit 3")
    with pytest.raises(
        RuntimeError, match=r"SIGKILL \(Killed.*\), perhaps because the memory was full"
    ):
        run("kill -KILL $$")
    assert time.monotonic() - started < 100


@pytest.mark.parametrize(
    "said, least_room",
    [("cannot write job/outcome.bin: No space left on device", 0), ("cannot write x", float("inf"))],
)
def test_a_full_folder_for_temporary_files_is_named(said, least_room, run, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("glmbrian.support.scratch.LEAST_ROOM", least_room)
    with pytest.raises(OSError, match=f"temporary files is full.*{said}.*TMPDIR") as error:
        run(f"echo 'glmbrian: {said}' >&2; exit 3")
    assert str(tmp_path) in str(error.value)
    with pytest.raises(RuntimeError, match="labels"):
        run("echo 'glmbrian: bad labels'; exit 3")


def test_a_job_that_does_not_fit_on_the_disk(run, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(
        "glmbrian.devices.compiled.find_or_build",
        lambda *arguments: contextlib.nullcontext(tmp_path),
    )
    with pytest.raises(OSError, match="folder for temporary files is full"):
        run("exit 0")
