"""Many fits at once, here or on a cluster, of which none is done twice.

A job is a dataclass with a method `run`, such as `fits.Fit`.  Its result is kept in a
file that is named by a hash of the job's content, and written in one piece: a sweep
that was killed finds what had finished when it is started again.
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
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import asdict
from pathlib import Path

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
_LONGEST_CONNECTING = 10


class Results:
    """The results of finished jobs, a file each.

    Parameters
    ----------
    folder : Path
        Made with the first result.
    """

    def __init__(self, folder):
        self._folder = Path(folder)

    def __contains__(self, job):
        # A machine that stopped may have left a file without its content.
        try:
            kept = json.loads(self._file(job).read_text())
        except (OSError, ValueError):
            return False
        if not isinstance(kept, dict) or not kept.get("result"):
            return False
        checksum = _checksum(job, kept["result"])
        return kept.get("checksum", checksum) == checksum  # version 0.1 wrote none

    def __getitem__(self, job):
        return json.loads(self._file(job).read_text())["result"]

    def __setitem__(self, job, result):
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = {"job": asdict(job), "result": result, "checksum": _checksum(job, result)}
        write_text(self._file(job), json.dumps(kept, indent=1), "output")

    def _file(self, job):
        return self._folder / f"{content_key([type(job).__name__, asdict(job)])}.json"


def _checksum(job, result):
    return content_key([asdict(job), result])


def sweep(jobs, results, workers, finished=lambda job, result: None):
    """Run those of the jobs whose result is not there yet, and keep their results.

    Parameters
    ----------
    jobs : iterable
        Any two that are equal are run once.
    results : Results or dict
    workers : callable
        See `local_workers` and `dask_workers`.
    finished : callable
        ``finished(job, result)`` is called after each.
    """
    missing = [job for job in dict.fromkeys(jobs) if job not in results]
    # The largest first, so that no worker is left with one when all else is done.
    missing.sort(key=lambda job: job.size, reverse=True)
    for job, result in workers(joblib.delayed(_run)(job) for job in missing):
        results[job] = result
        finished(job, result)


def _run(job):
    return job, job.run()


@contextlib.contextmanager
def local_workers(n_jobs):
    """Yield a function that runs joblib's delayed calls in `n_jobs` processes.

    They end with this process, and leave nothing behind.
    """
    n_jobs = integer(n_jobs, "n_jobs")
    if n_jobs == 1:
        yield _run_here
        return
    with scratch_folder("glmbrian-workers", tempfile.gettempdir()) as folder:
        # Each worker gets as many threads as it has cores for itself.
        environment = dict.fromkeys(_THREADS, str(max(1, joblib.cpu_count() // n_jobs)))
        # joblib's own workers do not notice that their parent has ended, and wait for minutes.
        executor = ProcessPoolExecutor(
            n_jobs,
            initializer=_start_worker,
            initargs=(os.getpid(),),
            env={**environment, "TMPDIR": str(folder)},  # so that what killed ones leave is removed
        )
        try:
            # With more calls at a time, the executor's thread would fail at shutdown.
            yield functools.partial(_run_in, executor, 2 * n_jobs)
        finally:
            executor.shutdown(wait=True, kill_workers=True)


def _run_here(calls):
    return (function(*arguments, **named) for function, arguments, named in calls)


def _run_in(executor, most, calls):
    """Yield the results of calls; at most `most` of them are submitted at a time."""
    calls, running = iter(calls), set()
    while True:
        # Ctrl-C in a terminal also reaches the workers, which would print tracebacks.
        with _blocked(signal.SIGINT):
            for function, arguments, named in itertools.islice(calls, most - len(running)):
                running.add(executor.submit(function, *arguments, **named))
        if not running:
            return
        finished, running = wait(running, return_when=FIRST_COMPLETED)
        for future in finished:
            yield future.result()


@contextlib.contextmanager
def _blocked(number):
    """Delay a signal, and block it for good in processes that are started meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start_worker(parent):
    """Prepare a process that ends soon after its parent, whatever it is doing."""
    # tqdm's own lock is a semaphore, which a worker that is stopped leaves behind.
    tqdm.set_lock(threading.RLock())

    def watch():
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def dask_workers(address):
    """Yield a function that runs joblib's delayed calls on a Dask cluster.

    Parameters
    ----------
    address : str
        Of the scheduler, such as "tcp://127.0.0.1:8786".

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
        client = Client(address, timeout=_LONGEST_CONNECTING, set_as_default=True)
    except (OSError, ValueError) as error:
        raise OSError(f"dask: no scheduler answers at {address!r}: {error}") from None
    with client:
        threads = list(client.nthreads().values())
        if not threads or max(threads) > 1:
            found = f"they have {threads} threads" if threads else "there are none"
            raise ValueError(
                "dask: a cluster needs workers with one thread each, since Brian 2 is not made "
                f"for several, but {found}; start them with: dask worker {address} --nthreads 1"
            )
        with joblib.parallel_config(backend="dask"):
            # Each job takes long enough to be submitted by itself.
            yield joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
