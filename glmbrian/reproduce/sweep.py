"""Many fits in parallel, here or on a cluster, each done only once.

A job is a dataclass with a method `run`, such as `fits.Fit`.  Its result is kept in a
file named by a hash of the job's content and written atomically: a sweep that was killed
finds its finished jobs when it is started again.
"""

import contextlib
import functools
import itertools
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import asdict
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor
from tqdm import tqdm

from ..support.cache import content_key
from ..support.scratch import scratch_folder
from ..support.storage import write_text
from ..support.validation import integer

#: Environment variables that set the number of threads of libraries for linear algebra.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

#: Seconds to wait for the scheduler of a cluster.
LONGEST_CONNECTING = 10


class Results:
    """The results of finished jobs, one file each.

    Parameters
    ----------
    folder : Path
        Created with the first result.
    """

    def __init__(self, folder: Path):
        self._folder = Path(folder)

    def __contains__(self, job: Any) -> bool:
        # A crash of the machine may have left a file without its content.
        try:
            kept = json.loads(self._file(job).read_text())
        except (OSError, ValueError):
            return False
        if not isinstance(kept, dict) or not kept.get("result"):
            return False
        checksum = _checksum(job, kept["result"])
        return kept.get("checksum", checksum) == checksum  # version 0.1 wrote none

    def __getitem__(self, job: Any) -> dict[str, Any]:
        return json.loads(self._file(job).read_text())["result"]

    def __setitem__(self, job: Any, result: dict[str, Any]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = {"job": asdict(job), "result": result, "checksum": _checksum(job, result)}
        write_text(self._file(job), json.dumps(kept, indent=1), "output")

    def _file(self, job):
        return self._folder / f"{content_key([type(job).__name__, asdict(job)])}.json"


def _checksum(job, result):
    return content_key([asdict(job), result])


def sweep(
    jobs: Iterable,
    results: Results | dict,
    workers: Callable[[Iterable], Iterable],
    finished: Callable[[Any, dict], Any] = lambda job, result: None,
) -> None:
    """Run the jobs that have no result yet, and keep their results.

    Parameters
    ----------
    jobs : iterable
        Equal jobs are run once.
    results : Results or dict
    workers : callable
        See `local_workers` and `dask_workers`.
    finished : callable
        ``finished(job, result)`` is called after each job.
    """
    missing = [job for job in dict.fromkeys(jobs) if job not in results]
    # The largest first, so that no worker is left with a large job at the end.
    missing.sort(key=lambda job: job.size, reverse=True)
    for job, result in workers(joblib.delayed(_run)(job) for job in missing):
        results[job] = result
        finished(job, result)


def _run(job):
    return job, job.run()


@contextlib.contextmanager
def local_workers(n_jobs: int) -> Iterator[Callable[[Iterable], Iterable]]:
    """Yield a function that runs joblib's delayed calls in `n_jobs` processes.

    They end with this process, and leave nothing behind.
    """
    n_jobs = integer(n_jobs, "n_jobs")
    if n_jobs == 1:
        yield _run_here
        return
    with scratch_folder("glmbrian-workers", tempfile.gettempdir()) as folder:
        # Each worker gets its share of the cores as threads.
        environment = dict.fromkeys(_THREADS, str(max(1, joblib.cpu_count() // n_jobs)))
        # joblib's own workers do not notice the end of their parent, and wait for minutes.
        executor = ProcessPoolExecutor(
            n_jobs,
            initializer=_start_worker,
            initargs=(os.getpid(),),
            env={**environment, "TMPDIR": str(folder)},  # to remove what killed workers leave
        )
        submitted: set[Future] = set()
        try:
            # With more calls at a time, the executor's thread would fail at shutdown.
            yield functools.partial(_run_in, executor, 2 * n_jobs, submitted)
        finally:
            _wait_until_taken(submitted)
            with _executor_thread_may_fail():
                executor.shutdown(wait=True, kill_workers=True)


def _run_here(calls):
    return (function(*arguments, **named) for function, arguments, named in calls)


def _run_in(executor, most, submitted, calls):
    """Yield the results of calls, with at most `most` of them in the set `submitted` at a time."""
    calls = iter(calls)
    while True:
        # Ctrl-C in a terminal also reaches the workers, which would print tracebacks.
        with _blocked(signal.SIGINT):
            for function, arguments, named in itertools.islice(calls, most - len(submitted)):
                submitted.add(executor.submit(function, *arguments, **named))
        if not submitted:
            return
        finished, _ = wait(submitted, return_when=FIRST_COMPLETED)
        submitted -= finished
        for future in finished:
            yield future.result()


def _wait_until_taken(submitted):
    """Wait until the executor's thread has taken all calls that were submitted, at most a second.

    Otherwise it would fail at shutdown.
    """
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and not all(
        future.running() or future.done() for future in submitted
    ):
        time.sleep(0.001)


@contextlib.contextmanager
def _executor_thread_may_fail():
    """Print no traceback if the executor's thread fails: on a busy machine a second was too short."""
    before = threading.excepthook

    def show(failure):
        if failure.thread is None or failure.thread.name != "ExecutorManagerThread":
            before(failure)

    threading.excepthook = show
    try:
        yield
    finally:
        threading.excepthook = before


@contextlib.contextmanager
def _blocked(number):
    """Delay a signal, and block it permanently in processes started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(parent):
    """Prepare a process that ends soon after its parent, whatever it is doing."""
    # tqdm's default lock is a semaphore, which a killed worker leaves behind.
    tqdm.set_lock(threading.RLock())

    def watch():
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def dask_workers(address: str) -> Iterator[Callable[[Iterable], Iterable]]:
    """Yield a function that runs joblib's delayed calls on a Dask cluster.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as "tcp://127.0.0.1:8786".

    Raises
    ------
    RuntimeError
        If Dask is not installed.
    OSError
        If there is no scheduler at the address.
    ValueError
        If there are no workers, or some have several threads.
    """
    try:
        from distributed import Client
    except ModuleNotFoundError:
        raise RuntimeError(
            "dask: a cluster needs Dask; install it with: pip install 'glmbrian[cluster]'"
        ) from None
    try:
        client = Client(address, timeout=LONGEST_CONNECTING, set_as_default=True)
    except (OSError, ValueError) as error:
        raise OSError(f"dask: no scheduler answers at {address!r}: {error}") from None
    with client:
        threads = list(client.nthreads().values())
        if not threads or max(threads) > 1:
            found = f"they have {threads} threads" if threads else "there are none"
            raise ValueError(
                "dask: a cluster needs workers with one thread each, since Brian 2 is not "
                f"thread-safe, but {found}; start them with: dask worker {address} --nthreads 1"
            )
        with joblib.parallel_config(backend="dask"):
            # Jobs are long enough to submit one by one.
            yield joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
