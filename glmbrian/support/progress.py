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
        )

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        with _write_errors_ignored():
            self._bar.close()

    def compiling(self):
        """Say that a program is being compiled, which takes seconds at once."""
        with _write_errors_ignored():
            self._bar.delay = 0
            self._bar.set_description("compiling")

    def __call__(self, done):
        with _write_errors_ignored():
            if done == 0:
                # Compiling, if any, is over and does not count into the speed.
                self._bar.reset()
                self._bar.set_description(self._task, refresh=False)
            self._bar.update(done - self._bar.n)


def _write_errors_ignored():
    """A bar that cannot be written, to a full disk or a closed pipe, must not end a fit."""
    return contextlib.suppress(OSError)


class Silent:
    """Stands in for `Progress` where nobody looks."""

    def compiling(self):
        pass

    def __call__(self, done):
        pass
