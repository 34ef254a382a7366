"""``glmbrian export``."""

import argparse
import shlex
from pathlib import Path
from typing import Any

from ..devices import exporting_devices
from .classifiers import add_classifier_options, chosen_classifier
from .devices import add_device_options
from .digits import add_digit_options, check_counts, digits_of, load_digits


def add(commands: Any) -> argparse.ArgumentParser:
    command = commands.add_parser("export", help="write a stand-alone project that trains")
    command.add_argument("directory", type=Path, metavar="DIR", help="a new or empty folder")
    add_digit_options(command, sizes=("n_train",))
    add_classifier_options(command)
    add_device_options(
        command, "the device that the project is for", exporting_devices(), "cpp_standalone"
    )
    return command


def run(options: argparse.Namespace) -> dict[str, Any]:
    check_counts(options, "n_train")
    data = load_digits(options, digits_of(options.classes, least=2), options.n_train, 0)
    classifier = chosen_classifier(options, options.device)
    classifier.export(data.X_train, data.y_train, options.directory)
    folder = shlex.quote(str(options.directory))
    return {
        "directory": str(options.directory),
        "build and run": f"make -C {folder} run",
        "then test": f"glmbrian evaluate {folder}",
    }
