"""The options that say where to simulate."""

import argparse
import sys
from collections.abc import Sequence

from brian2 import prefs

from ..devices import DEVICES, cpp_standalone


def add_device_options(
    command: argparse.ArgumentParser,
    help: str,
    choices: Sequence[str] = ("auto", *DEVICES),
    default: str = "auto",
) -> None:
    """Add ``--device``, explained by `help`, and what goes with it."""
    command.add_argument(
        "--device", choices=choices, default=default, help=f"{help} (default: %(default)s)"
    )
    command.add_argument(
        "--gpu",
        action=argparse.BooleanOptionalAction,
        help="with --device genn: use a GPU (default: if CUDA is found)",
    )
    command.add_argument("--quiet", action="store_true", help="no progress bar")


def chosen_device(name: str) -> str:
    """Return the device that ``--device`` names; "auto" is the fastest there is."""
    if name != "auto":
        return name
    if cpp_standalone.find_compiler() is not None:
        return "cpp_standalone"
    print(
        "glmbrian: no C++ compiler was found, so the simulation runs in NumPy, which takes "
        "about a hundred times as long",
        file=sys.stderr,
    )
    prefs.codegen.target = "numpy"  # Brian's default may need a compiler, too
    return "runtime"
