"""Threads that share the work on blocks of data."""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import threadpool_info, threadpool_limits

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class _OneThread:
    """Limits linear algebra to one thread while anybody needs it.

    The limit holds for the whole process, so whoever ends first must not lift it for others.
    """

    def __init__(self):
        self._lock, self._n, self._limits = threading.Lock(), 0, None

    def acquire(self) -> int:
        """Begin the limit; return the number of threads without it."""
        with self._lock:
            if self._n == 0:
                self._threads = _blas_threads()
                self._limits = threadpool_limits(limits=1, user_api="blas")
            self._n += 1
            return self._threads

    def release(self) -> None:
        with self._lock:
            self._n -= 1
            if self._n == 0:
                self._limits.restore_original_limits()


def _blas_threads():
    """Return the number of threads that linear algebra uses."""
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    return max(1, min([os.cpu_count() or 1, *blas]))


_one_thread = _OneThread()


class Workers:
    """As many threads as linear algebra would use, each with linear algebra in one thread.

    Blocks of data are small, so threads within each product cost more than they gain,
    and the other half of the work is not linear algebra.  Results come in the order of the
    items, so sums do not depend on the number of threads.
    """

    #: The most threads; None for as many as linear algebra has.
    most: int | None = None

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._is_over = False

    def __enter__(self) -> "Workers":
        self.n = _one_thread.acquire()
        if self.most is not None:
            self.n = self.most
        if self.n > 1:
            self._pool = ThreadPoolExecutor(self.n)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._is_over = True
        try:
            if self._pool is not None:
                self._pool.shutdown(wait=True, cancel_futures=True)
        finally:  # a second Ctrl-C ends the waiting
            _one_thread.release()

    def go_on(self) -> None:
        """Call this in long work on an item: it raises an exception if nobody needs the result any more."""
        if self._is_over:
            raise CancelledError

    def map(self, function: Callable[[_Item], _Result], items: Iterable[_Item]) -> Iterator[_Result]:
        """Yield the function of each item, in order.  Few results are waiting at any time."""
        if self._pool is None:
            yield from map(function, items)
            return
        waiting: deque[Future[_Result]] = deque()
        for item in items:
            waiting.append(self._pool.submit(function, item))
            if len(waiting) > 2 * self.n:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
