"""What the code of a compiled program depends on, as a short hash.

A program that was compiled before is used again if this has not changed since.
"""

import contextlib
import functools
import hashlib
import os
import platform
import re
import uuid
import weakref
from importlib import resources
from pathlib import Path
from typing import Any

import brian2
import numpy as np

from ..brian.internals import cpp_preferences, signature
from ..support.cache import content_key
from .headers import constants, hidden_constants, update_rules
from .problem import Network

#: Environment variables that change what make and the compilers do.
_READ_BY_COMPILERS = (
    *("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
)


def program_key(network: Network, setting: list[Any]) -> str:
    """Return a hash of everything that the code of a program depends on.

    Parameters
    ----------
    network : glmbrian.devices.problem.Network
    setting : list
        What the code depends on besides the network, as a list that JSON can hold.
    """
    activation = network.activation
    return content_key(
        {
            "network": constants(network),
            "activation": [activation.expression, activation.cpp],
            "namespace": {name: _code_of(used) for name, used in activation.namespace.items()},
            "objective": [network.objective.name, network.objective.cpp],
            "hidden": hidden_constants(network),
            "optimizer": update_rules(network.optimizer),
            "source": _sources(),
            "brian2": brian2.__version__,
            "preferences": {name: repr(value) for name, value in cpp_preferences().items()},
            "environment": {name: os.environ.get(name) for name in _READ_BY_COMPILERS},
            "processor": _processor(),
            "device": setting,
        }
    )


#: A string of one line, as in Python and in C++.
_STRING = r'"(?:[^"\\\n]|\\.)*"|' r"'(?:[^'\\\n]|\\.)*'"

_LONG_STRING = r'"""(?:[^"\\]|\\[\s\S]|"(?!""))*"""'

#: What is left out of files, by their ending: docstrings, comments, blank lines. Groups are what stays:
#: strings, which may hold what looks like any of these, and the colon before a docstring.
_NOT_CODE = {
    ".py": re.compile(
        rf"(?:(:)(?:\s*#.*)*\n\s*|\A)r?{_LONG_STRING}(?=\n)|({_LONG_STRING}|{_STRING})"
        r"|\n\s*(?:#.*|(?=\n|\Z))| *#.*"
    ),
    ".hpp": re.compile(rf"({_STRING})|\s*//.*|\s*/\*[\s\S]*?\*/|\n\s*(?=\n|\Z)"),
}


@functools.cache
def without_documentation(text: str, ending: str) -> str:
    """Return the text of a file without docstrings, comments and blank lines.

    Python's own parser would take ten times as long, a quarter of a second for the whole package.

    Parameters
    ----------
    text : str
        What the file holds.
    ending : {".py", ".hpp"}

    Examples
    --------
    >>> without_documentation("# A cat.\\ncat = 'Minou'  # my cat\\n", ".py")
    "cat = 'Minou'"
    """
    kept = _NOT_CODE[ending].sub(lambda found: found[found.lastindex] if found.lastindex else "", text)
    return kept.strip()


def _sources():
    """Return the code of the package's files that may determine the generated code."""
    package = Path(str(resources.files("glmbrian")))
    return {
        file.relative_to(package).as_posix(): without_documentation(file.read_text(), file.suffix)
        for folder in ("brian", "core", "devices", "native", "support", "training")
        for file in (package / folder).rglob("*.*")
        if file.suffix in (".py", ".hpp")
    }


def _processor():
    """Return what the compiler may use of the processor; machines may share their cache."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line.split(":", 1)[1].split()
    return platform.machine()


def _code_of(value):
    """Return, as text, what a value in a Brian namespace adds to a program's code."""
    if isinstance(value, np.ndarray):
        return [repr(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if not isinstance(value, brian2.Function):
        return repr(value)
    parts = [signature(value)]
    for target in ("cpp", "genn"):
        if target not in value.implementations:
            continue
        made = value.implementations[target]
        # Code that is generated for each use is not known here, but its generator is.
        code, names = _token(value), {}
        if not made.dynamic:
            code, names = made.get_code(None), made.get_namespace(None) or {}
        used = {**names, **(made.dependencies or {})}
        used = {name: _code_of(other) for name, other in used.items()}
        parts.append([target, made.name, code, made.compiler_kwds, used])
    return repr(parts)


#: Tokens for Brian functions of unknown code, so that each differs from all others.
_TOKENS: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def _token(function):
    """Return a text unique to this object; its ``id`` might be reused once it is gone."""
    return _TOKENS.setdefault(function, uuid.uuid4().hex)
