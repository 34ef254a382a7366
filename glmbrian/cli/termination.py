"""How a command ends that is interrupted."""

import contextlib
import gc
import signal
import sys
import threading
from collections.abc import Iterator


class Terminated(BaseException):
    """SIGTERM was received. Not a KeyboardInterrupt, which some code in between catches."""


@contextlib.contextmanager
def termination() -> Iterator[None]:
    """Make SIGTERM end a command like Ctrl-C, so no files or processes are left behind."""

    def terminate(*arguments):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second signal ends the process at once
        raise Terminated

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def stopped(text: str, number: int) -> int:
    """Say what has stopped a command, and return the exit code for the signal `number`."""
    print(text, file=sys.stderr)
    # Otherwise the interpreter would collect garbage for a second or more before it exits.
    gc.freeze()
    return 128 + number
