"""The first import of Brian 2, which may happen in any thread."""

import signal
import sys
import threading

_importing = threading.Lock()


def import_brian() -> None:
    """Import Brian 2, whichever thread needs it first.

    Brian 2 sets a handler for Ctrl-C on import, which only the main thread may do.
    Each subpackage that needs Brian calls this before its modules are imported.
    """
    if "brian2" in sys.modules:
        return
    here = threading.current_thread()
    if here is threading.main_thread():
        import brian2  # noqa: F401

        return

    def ignored_here(*arguments):
        return None if threading.current_thread() is here else set_handler(*arguments)

    with _importing:
        set_handler, signal.signal = signal.signal, ignored_here
        try:
            import brian2  # noqa: F401
        finally:
            signal.signal = set_handler
