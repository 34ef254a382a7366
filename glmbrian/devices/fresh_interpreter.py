"""Calls in a separate Python process, whose global state does not matter to the user.

Brian 2 has one active device, one set of preferences and one set of names for all threads
of a process.  Generating C++ code changes all of them, so it happens in another process, where
no user code can notice.
"""

import contextlib
import io
import logging
import os
import pickle
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..support.processes import run_watched
from ..support.scratch import scratch_folder

#: The script of the new interpreter.  Brian 2 imports the unneeded packages if they are
#: installed, which would take half of the startup time.
_START = """
import sys
sys.path[:] = sys.argv[1:]
unneeded = ("Cython", "pylab", "pytest")
sys.modules.update(dict.fromkeys(unneeded))
import brian2
for name in unneeded:
    del sys.modules[name]
from glmbrian.devices.fresh_interpreter import answer
answer()
"""

#: Brian reads this as a file in its working folder.  Otherwise it would leave its log behind
#: when killed, and search everything that its Cython target has compiled.
_BRIAN_PREFERENCES = "logging.file_log = False\ncodegen.max_cache_dir_size = 0\n"

#: Files in the new interpreter's working folder.
_REQUEST, _ANSWER = "request", "answer"


class _NoAnswer(Exception):
    """Another interpreter cannot make the call, or did not answer."""


class _Elsewhere(Exception):
    """The cause of an error: shows where in the other interpreter it was raised."""


def call_apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``, called in a fresh interpreter.

    The interpreter gets this process's preferences for C++ code, and does not run `__main__`
    again.  Warnings that Brian logs there are logged here.  The call is made in this process
    instead if it involves objects that cannot be sent, or if no interpreter can be started.

    Parameters
    ----------
    function : callable
        A function in a module of this package.
    *arguments
        Its arguments, which are copied.

    Returns
    -------
    object

    Raises
    ------
    Exception
        Whatever `function` raises, caused by an exception that shows where.
    """
    from ..brian.internals import cpp_preferences

    try:
        request = pickle.dumps((cpp_preferences(), _pickled(function, arguments)))
        value, error, where, messages = _ask(request)
    except _NoAnswer:
        return function(*arguments)
    for name, level, message in messages:
        logging.getLogger(name).log(level, message)
    if error is not None:
        raise pickle.loads(error) from _Elsewhere(where)
    return value


class _Pickler(pickle.Pickler):
    def reducer_override(self, value):
        # Pickle would send only its name, but the new interpreter has another `__main__`.
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
    """Start an interpreter that answers the `request`, and return its answer."""
    # A frozen program would start itself instead of an interpreter.
    if not sys.executable or getattr(sys, "frozen", False):
        raise _NoAnswer
    try:
        with scratch_folder("glmbrian-generate", tempfile.gettempdir()) as folder:
            (folder / "brian_preferences").write_text(_BRIAN_PREFERENCES)
            (folder / _REQUEST).write_bytes(request)
            run_watched([sys.executable, "-W", "ignore", "-c", _START, *_import_path()], folder)
            return pickle.loads((folder / _ANSWER).read_bytes())
    except Exception as error:
        raise _NoAnswer from error


def _import_path():
    # Absolute, since the new interpreter runs in another folder.
    return [os.path.abspath(path) for path in sys.path if isinstance(path, str)]


def answer() -> None:
    """Carry out the request in the working folder, and write the answer."""
    log = logging.getLogger("brian2")
    log.handlers = [messages := _Messages()]
    preferences, called = pickle.loads(Path(_REQUEST).read_bytes())
    function, arguments = pickle.loads(called)
    value = error = where = None
    try:
        from ..brian.internals import set_cpp_preferences

        set_cpp_preferences(preferences)
        value = function(*arguments)
    except Exception as raised:
        error, where = _pickled_error(raised), traceback.format_exc()
    Path(_ANSWER).write_bytes(pickle.dumps((value, error, where, messages.texts)))


class _Messages(logging.Handler):
    """Keeps messages that are logged as warnings or worse."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append((record.name, record.levelno, record.getMessage()))


def _pickled_error(error):
    """Pickle an exception, or else the most similar one that can be pickled."""
    for form in (error, _Parts(error), RuntimeError(f"{type(error).__name__}: {error}")):
        with contextlib.suppress(Exception):
            pickled = pickle.dumps(form)
            pickle.loads(pickled)
            break
    return pickled


class _Parts:
    """Pickles an exception whose ``args`` differ from its constructor's, such as Brian's."""

    def __init__(self, error):
        self.error = error

    def __reduce__(self):
        # Brian 2.5 keeps the object that the error is about in `args`.
        arguments = tuple(value if _is_plain(value) else str(value) for value in self.error.args)
        return _rebuilt, (type(self.error), arguments, vars(self.error))


def _is_plain(value):
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def _rebuilt(kind, arguments, attributes):
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error
