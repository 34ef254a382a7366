"""The progress bar of training and testing."""

import contextlib
import sys

from tqdm import tqdm


class Progress:
    """A bar that is told how many presentations are done.

    It shows only for what takes more than a second.

    Parameters
    ----------
    task : str
        What goes on, such as "training".
    total : int
        Number of presentations.
    show : bool
    """

    def __init__(self, task, total, show):
        self._task = task
        self._bar = tqdm(
            total=total,
            desc=task,
            unit=" presentations",
            leave=False,
            disable=not show or sys.stderr is None,  # a service may have closed it
            delay=1,
            file=_Forgiving(sys.stderr),
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._bar.close()

    def compiling(self):
        """Say that a program is being compiled, which takes seconds at once."""
        self._bar.delay = 0
        self._bar.set_description("compiling")

    def __call__(self, done):
        if done == 0:
            # Compiling, if any, is over and does not count into the speed.
            self._bar.reset()
            self._bar.set_description(self._task, refresh=False)
        self._bar.update(done - self._bar.n)


class _Forgiving:
    """A stream that loses what it cannot write, to a full disk or a closed pipe.

    An error must not end a fit, nor even reach tqdm, which would keep its lock: all bars
    of other threads would wait for ever.
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
    """Stands in for `Progress` where nobody looks."""

    def compiling(self):
        pass

    def __call__(self, done):
        pass
