"""Sweeps: nothing is done twice, whatever happens, and clusters give the same."""

import concurrent.futures
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import joblib
import pytest

import glmbrian
from glmbrian.cli import main
from glmbrian.reproduce import QUICK, TARGETS, dask_workers, local_workers, reproduce
from glmbrian.reproduce import sweep as sweeps
from glmbrian.reproduce.fits import Fit
from glmbrian.reproduce.protocol import Design
from glmbrian.reproduce.sweep import Results, sweep

#: Two architectures, of which both figures are made; 2 (2 * 2 + 2 * 2) fits.
TINY = replace(
    QUICK,
    class_sets=((5, 7),),
    n_steps=2,
    k_grid=(2,),
    t_grid=(2,),
    n_train=100,
    n_test=20,
    n_epochs=20,
    n_seeds=2,
    n_folds=2,
    selection_epochs=20,
)
N_FITS = 16 + 1  # and the ANN

#: ``glmbrian reproduce --quick`` with that protocol.
SCRIPT = f"""
import sys
from glmbrian import cli, reproduce
from glmbrian.reproduce import Protocol
reproduce.QUICK = {TINY!r}
sys.exit(cli.main(sys.argv[1:]))
"""


def run(output, workers):
    return reproduce(TARGETS, TINY, output, workers, verbose=False, say=lambda line: None)


def tables(output):
    paths = [*output.glob("*.csv"), *output.glob("*claims.json")]
    assert len(paths) == 11
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The folder of a sweep that ran in two processes, with a cache of its own."""
    output, cache = tmp_path_factory.mktemp("whole"), tmp_path_factory.mktemp("cache")
    environment = {**os.environ, "GLMBRIAN_CACHE_DIR": str(cache)}
    arguments = ["reproduce", "all", "--quick", "--jobs", "2", "--json", "--output", str(output)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments],
        env={**environment, "PYTHONPATH": _search_path()},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return output, cache, json.loads(done.stdout.splitlines()[-1])


def _search_path():
    parent = str(Path(glmbrian.__file__).resolve().parents[1])
    return os.pathsep.join([parent, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture
def cached(uninterrupted, monkeypatch):
    """The programs of the tiny protocol."""
    monkeypatch.setenv("GLMBRIAN_CACHE_DIR", str(uninterrupted[1]))


# ------------------------------------------------------------------ jobs and results


class Job(Fit):
    """A job that counts how often it runs, here."""

    runs = []

    def run(self):
        self.runs.append(self)
        return {"accuracy": self.learning_rate}


def job(rate):
    return Job("paper", Design("rate", (5, 7), 2, 2), rate, 1, 0, 10, 10)


def test_equal_jobs_run_once_and_finished_ones_not_at_all(tmp_path):
    Job.runs.clear()
    results, seen = Results(tmp_path / "results"), []
    with local_workers(1) as workers:
        sweep([job(0.1), job(0.2), job(0.1)], results, workers, lambda *done: seen.append(done))
        assert sorted(run.learning_rate for run in Job.runs) == [0.1, 0.2]
        assert sorted(result["accuracy"] for _, result in seen) == [0.1, 0.2]
        sweep([job(0.2), job(0.3)], Results(tmp_path / "results"), workers)
    assert [run.learning_rate for run in Job.runs[2:]] == [0.3]
    assert results[job(0.2)] == {"accuracy": 0.2}
    assert job(0.4) not in results
    assert len(list((tmp_path / "results").iterdir())) == 3


def test_a_result_that_cannot_be_written_leaves_nothing(tmp_path):
    results = Results(tmp_path)
    with pytest.raises(TypeError):
        results[job(0.1)] = {"accuracy": object()}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", ["", '{"job": {}, "resu', "[]", "{}", '{"result": {}}'])
def test_a_damaged_result_is_computed_again(tmp_path, content):
    Job.runs.clear()
    results = Results(tmp_path)
    results[job(0.1)] = {"accuracy": 0.5}
    (file,) = tmp_path.iterdir()
    file.write_text(content)
    with local_workers(1) as workers:
        sweep([job(0.1)], results, workers)
    assert len(Job.runs) == 1 and results[job(0.1)] == {"accuracy": 0.1}


def test_a_changed_result_is_computed_again(tmp_path):
    results = Results(tmp_path)
    results[job(0.1)] = {"accuracy": 0.5}
    (file,) = tmp_path.iterdir()
    whole = file.read_text()
    assert job(0.1) in results
    for old, new in [
        ("0.5", "0.6"),
        ("accuracy", "accurate"),
        ('"learning_rate": 0.1', '"learning_rate": 0.2'),
    ]:
        file.write_text(whole.replace(old, new, 1))
        assert file.read_text() != whole
        assert (job(0.1) in results) == (old == '"learning_rate": 0.1')  # which is in the name, too
    # Version 0.1 wrote no checksums.
    kept = json.loads(whole)
    del kept["checksum"]
    file.write_text(json.dumps(kept))
    assert job(0.1) in results


def test_what_a_killed_process_was_writing_is_no_obstacle(tmp_path):
    killed, young, other = (
        tmp_path / name
        for name in (
            ".unfinished-0123456789abcdef",
            ".unfinished-fedcba9876543210",
            ".unfinished-thesis",
        )
    )
    for path in (killed, young, other):
        path.write_text("half")
    for path in (killed, other):
        os.utime(path, (0, 0))
    with open(young) as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        Results(tmp_path)[job(0.1)] = {"accuracy": 0.1}
    assert not killed.exists() and young.exists() and other.exists()
    for path in tmp_path.iterdir():
        path.unlink()
    killed.write_text("")
    os.utime(killed, (0, 0))
    assert run_nothing(tmp_path)["output"] == str(tmp_path)


def run_nothing(output):
    return reproduce([], TINY, output, local_workers(1), verbose=False, say=lambda line: None)


def test_workers_are_checked():
    with pytest.raises(ValueError, match="n_jobs must be an integer of at least 1"):
        with local_workers(0):
            pass


# ------------------------------------------------------------------ whole sweeps


@pytest.mark.compiled
def test_one_build_an_architecture(uninterrupted):
    output, cache, done = uninterrupted
    assert done["architectures"] == 2 and done["fits"] == N_FITS
    assert len(list((cache / "programs").iterdir())) == 2
    assert done["most_seconds_to_find_a_program"] < 1
    assert done["claims_that_hold"] and done["output"] == str(output)
    assert len(list((output / "fits").iterdir())) == N_FITS


def processes_with(variable):
    """Return the processes that have this text in their environment."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # of a process that has just ended, or another user's
            if variable.encode() in path.read_bytes():
                found.append(path.parent.name)
    return found


@pytest.mark.compiled
@pytest.mark.parametrize(
    "how",
    [pytest.param(number, marks=pytest.mark.exhaustive) for number in (signal.SIGKILL, signal.SIGINT)]
    + [signal.SIGTERM],
    ids=lambda how: how.name,
)
def test_stopped_and_started_again(how, uninterrupted, cached, tmp_path):
    fits, temporary, output = (tmp_path / name for name in ("out/fits", "temporary", "out"))
    temporary.mkdir()
    arguments = ["reproduce", "all", "--quick", "--jobs", "2", "--output", str(output)]
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *arguments],
        env={**os.environ, "PYTHONPATH": _search_path(), "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while process.poll() is None and len(list(fits.glob("*.json"))) < 5:
        time.sleep(0.005)
    # A terminal also sends Ctrl-C to the workers.
    (os.killpg if how == signal.SIGINT else os.kill)(process.pid, how)
    # stderr closes when all processes that could write to it, including the workers, have ended:
    # at once, except on a busy machine.
    errors = process.communicate(timeout=30)[1]
    assert processes_with(f"TMPDIR={temporary}") == []
    if how == signal.SIGKILL:
        assert process.returncode == -how, errors
    else:
        assert process.returncode == 128 + how, errors
        ends = {signal.SIGINT: "stopped", signal.SIGTERM: "stopped by SIGTERM"}
        assert errors.splitlines()[-1] == f"glmbrian reproduce: {ends[how]}"
        assert "Traceback" not in errors
        assert list(temporary.iterdir()) == []
    finished = {path: path.stat().st_mtime_ns for path in fits.glob("*.json")}
    assert 5 <= len(finished) < N_FITS

    done = run(output, local_workers(1))
    assert done["fits"] == N_FITS - len(finished)
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert tables(output) == tables(uninterrupted[0])


def test_workers_that_are_stopped_just_after_a_call_is_submitted(monkeypatch):
    """The executor's thread has not seen the call yet, and would fail."""

    class Stopped(Exception):
        pass

    def wait_once(*arguments, **named):
        monkeypatch.setattr(sweeps, "wait", stop)
        return concurrent.futures.wait(*arguments, **named)

    def stop(*arguments, **named):
        raise Stopped

    failed = []
    monkeypatch.setattr("threading.excepthook", failed.append)
    monkeypatch.setattr(sweeps, "wait", wait_once)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1)  # the other thread runs only when this one waits
    try:
        with pytest.raises(Stopped), local_workers(2) as workers:
            list(workers(joblib.delayed(abs)(-1) for _ in range(9)))
    finally:
        sys.setswitchinterval(before)
    assert failed == []


# ------------------------------------------------------------------ clusters


@pytest.fixture(scope="module")
def cluster(uninterrupted):
    """The address of a Dask cluster of two workers on this machine."""
    distributed = pytest.importorskip("distributed")
    environment = {"GLMBRIAN_CACHE_DIR": str(uninterrupted[1]), "PYTHONPATH": _search_path()}
    previous = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)  # for the workers
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        yield cluster.scheduler_address
    for name, value in previous.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_a_cluster_gives_the_same(cluster, uninterrupted, tmp_path, monkeypatch):
    def run_here(fit):
        raise AssertionError("a fit ran in this process")

    monkeypatch.setattr(Fit, "run", run_here)
    assert run(tmp_path, dask_workers(cluster))["fits"] == N_FITS
    assert tables(tmp_path) == tables(uninterrupted[0])


def test_a_cluster_whose_workers_have_several_threads(capsys, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        arguments = ["--dask", cluster.scheduler_address, "--output", str(tmp_path / "new")]
        assert main(["reproduce", "all", *arguments]) == 2
    assert "--nthreads 1" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_no_scheduler(capsys, tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("glmbrian.reproduce.sweep.LONGEST_CONNECTING", 0.5)
    output = str(tmp_path / "new")
    for address in ("tcp://127.0.0.1:1", "nonsense://"):
        assert main(["reproduce", "all", "--dask", address, "--output", output]) == 2
        error = capsys.readouterr().err
        assert f"error: dask: no scheduler answers at '{address}'" in error


def test_dask_is_not_installed(capsys, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "distributed", None)
    arguments = ["--dask", "tcp://127.0.0.1:1", "--output", str(tmp_path / "new")]
    assert main(["reproduce", "all", *arguments]) == 2
    assert "pip install 'glmbrian[cluster]'" in capsys.readouterr().err
