"""Building a generated project, and saying why it failed."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.activations import name_to_save
from ..core.credit import credit_to_save
from ..core.objectives import objective_to_save
from ..support.processes import how_it_ended, run_watched
from .problem import Network

#: How many lines of what make and the compiler wrote an error message holds.
_MOST_LINES = 6

#: What compilers, linkers and make write where something failed.
_IS_ERROR = re.compile(
    r"\b(?:error|Error)\b ?:|undefined |cannot find|No such file|No space left|Killed"
)


def compile_project(
    command: str, folder: Path, environment: Mapping[str, str], network: Network, device: str
) -> None:
    """Run the shell `command` that builds the program of `network` in `folder`.

    Brian itself would run it in a way that ignores Ctrl-C, and print the compiler's output to the
    terminal.

    Raises
    ------
    RuntimeError
        With the first errors, and what to check.
    """
    # Compilers then report errors in English, like the rest of the message.
    settings = {**environment, "LC_ALL": "C"}
    returncode, log = run_watched(["/bin/sh", "-c", command], folder, settings)
    if returncode == 0:
        return
    own = " and ".join(_own_code(network))
    advice = (
        f"The program contains your own {own}: check the C++ code first."
        if own
        else "None of its C++ code is your own: check the compiler (environment variable CXX) and Brian's "
        f"preferences codegen.cpp and devices.{device}."
    )
    raise RuntimeError(
        f"compiling for device={device!r} failed: {command!r} {how_it_ended(returncode)}. {advice} "
        f"The first errors:\n{first_errors(log)}"
    )


def first_errors(log: str) -> str:
    """Return the first lines about errors of what a build wrote, or else its last lines.

    Examples
    --------
    >>> print(first_errors('''g++ -c main.cpp
    ... main.cpp:3:1: warning: unused
    ... main.cpp:4:2: error: 'x' was not declared
    ...     4 | x = 1;
    ... make: *** [makefile:30: main.o] Error 1'''))
    main.cpp:4:2: error: 'x' was not declared
    """
    lines = log.splitlines()
    errors = list(dict.fromkeys(filter(_IS_ERROR.search, lines)))
    return "\n".join(errors[:_MOST_LINES] or lines[-_MOST_LINES:])


def _own_code(network: Network) -> Iterator[str]:
    """Yield which parts of the network have code that is not the package's."""
    parts: dict[str, tuple[Any, Callable[[Any], str]]] = {
        "activation": (network.activation, name_to_save),
        "objective": (network.objective, objective_to_save),
        "credit": (network.credit, credit_to_save),
    }
    for kind, (part, name_of) in parts.items():
        try:
            name_of(part)
        except ValueError:
            yield f"{kind} {part.name!r}"
