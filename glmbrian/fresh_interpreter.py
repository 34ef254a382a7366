"""Calls in a Python process of its own, where nothing global belongs to the user.

Brian 2 has one active device, one set of preferences and one set of names for all threads
of a process.  What generates C++ code changes them all, so it is called where nobody else
sees that.
"""

import io
import logging
import os
import pickle
import sys
import tempfile
import traceback
from pathlib import Path

from .processes import run_watched
from .scratch import scratch_folder

#: Run by the new interpreter.  Brian 2 imports these packages if they are there; code is
#: generated without them, and half of the time to start is theirs.
_START = """
import sys
sys.path[:] = sys.argv[1:]
unneeded = ("Cython", "pylab", "pytest")
sys.modules.update(dict.fromkeys(unneeded))
import brian2
for name in unneeded:
    del sys.modules[name]
from glmbrian.fresh_interpreter import answer
answer()
"""

#: Brian reads this file in its working folder.  It would leave its log behind if it were
#: killed, and look through all that its Cython target has compiled.
_BRIAN_PREFERENCES = "logging.file_log = False\ncodegen.max_cache_dir_size = 0\n"


_REQUEST, _ANSWER = "request.pickle", "answer.pickle"


class _NoAnswer(Exception):
    """There is no other interpreter, or it does not understand."""


class _Elsewhere(Exception):
    """Shows where in the other interpreter an error was raised."""


def call_apart(function, *arguments):
    """Return ``function(*arguments)``, called in a fresh interpreter.

    It has the preferences for C++ code of this one.  Warnings that Brian logs there are
    logged here.  Nothing of `__main__` is run again.  The call is made in this process
    instead if it holds what cannot be sent, or if there is no interpreter to be started.

    Parameters
    ----------
    function : callable
        A function of a module of this package.
    *arguments
        What it takes; they are copied.

    Returns
    -------
    object

    Raises
    ------
    Exception
        Whatever `function` raises, caused by an exception that shows where.
    """
    from .brian_internals import cpp_preferences

    try:
        request = pickle.dumps((cpp_preferences(), _pickled(function, arguments)))
        outcome = _ask(request)
    except _NoAnswer:
        return function(*arguments)
    value, error, where, messages = outcome
    for name, level, message in messages:
        logging.getLogger(name).log(level, message)
    if error is not None:
        raise _rebuilt(*error) from _Elsewhere(where)
    return value


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        # It would be sent by its name, and the new interpreter has a `__main__` of its own.
        if getattr(value, "__module__", None) == "__main__":
            raise _NoAnswer
        return NotImplemented


def _pickled(function, arguments):
    request = io.BytesIO()
    try:
        _Pickler(request).dump((function, arguments))
    except Exception as error:
        raise _NoAnswer from error
    return request.getvalue()


def _ask(request):
    """Send the `request` to a new interpreter and return what it answers."""
    # A program that was frozen into one file would start itself anew.
    if not sys.executable or getattr(sys, "frozen", False):
        raise _NoAnswer
    with scratch_folder("glmbrian-generate", tempfile.gettempdir()) as folder:
        (folder / "brian_preferences").write_text(_BRIAN_PREFERENCES)
        (folder / _REQUEST).write_bytes(request)
        command = [sys.executable, "-W", "ignore", "-c", _START, *_import_path()]
        try:
            run_watched(command, cwd=folder)
            return pickle.loads((folder / _ANSWER).read_bytes())
        except Exception as error:
            raise _NoAnswer from error


def _import_path():
    # The new interpreter runs in another folder.
    return [os.path.abspath(path) for path in sys.path if isinstance(path, str)]


def answer():
    """Read a request in the working folder, and write what came of it there."""
    folder = Path.cwd()
    log = logging.getLogger("brian2")
    log.handlers = [messages := _Messages()]
    preferences, called = pickle.loads((folder / _REQUEST).read_bytes())
    function, arguments = pickle.loads(called)
    value = error = where = None
    try:
        from .brian_internals import set_cpp_preferences

        set_cpp_preferences(preferences)
        value = function(*arguments)
    except Exception as raised:
        error, where = _parts(raised), traceback.format_exc()
    (folder / _ANSWER).write_bytes(pickle.dumps((value, error, where, messages.texts)))


class _Messages(logging.Handler):
    """Keeps what is logged as a warning or worse."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append((record.name, record.levelno, record.getMessage()))


def _parts(error):
    """Return what an exception is made of.

    Some of Brian's take other arguments than those that they keep, and so cannot be pickled.
    """
    try:
        parts = type(error), error.args, vars(error)
        pickle.loads(pickle.dumps(parts))
        return parts
    except Exception:
        return RuntimeError, (f"{type(error).__name__}: {error}",), {}


def _rebuilt(kind, arguments, attributes):
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error
