"""The progress bar of training and testing."""

import contextlib
import sys
from typing import Any

from tqdm import tqdm


class Progress:
    """A progress bar; call it with the number of presentations done.

    It appears only if the task takes more than a second.

    Parameters
    ----------
    task : str
        Name of the task, such as "training".
    total : int
        Number of presentations.
    show : bool
    unit : str
        What is counted.
    """

    def __init__(self, task: str, total: int, show: bool, unit: str = " presentations") -> None:
        self._task = task
        self._is_compiling = False
        self._bar = tqdm(
            total=total,
            desc=task,
            unit=unit,
            leave=False,
            disable=not show or sys.stderr is None,  # a service may have closed it
            delay=1,
            file=_Forgiving(sys.stderr),
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: Any) -> None:
        self._bar.close()

    def compiling(self) -> None:
        """Show at once that a program is being compiled, which takes seconds."""
        self._is_compiling = True
        self._bar.delay = 0
        self._bar.set_description("compiling")

    def __call__(self, done: int) -> None:
        if self._is_compiling:
            # That is over, and does not count in the speed.
            self._is_compiling = False
            self._bar.reset()
            self._bar.set_description(self._task, refresh=False)
        self._bar.update(done - self._bar.n)


class _Forgiving:
    """A stream that drops what it cannot write, for example to a full disk or a closed pipe.

    An error must not end a fit.  It must not even reach tqdm, which would keep its lock, and
    all bars of other threads would wait forever.
    """

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, text):
        with contextlib.suppress(OSError):
            self._stream.write(text)

    def flush(self):
        with contextlib.suppress(OSError):
            self._stream.flush()


class Silent:
    """Replaces `Progress` where nothing is shown."""

    def compiling(self) -> None:
        pass

    def __call__(self, done: int) -> None:
        pass
