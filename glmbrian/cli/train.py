"""``glmbrian train``."""

import argparse
from pathlib import Path
from typing import Any

from .classifiers import add_classifier_options, chosen_classifier
from .devices import add_device_options, chosen_device
from .digits import add_digit_options, check_counts, digits_of, load_digits
from .output import require_writable


def add(commands: Any) -> argparse.ArgumentParser:
    command = commands.add_parser("train", help="train and test a classifier, and draw pictures")
    add_digit_options(command)
    add_classifier_options(command)
    add_device_options(command, "auto: cpp_standalone if there is a C++ compiler, else runtime")
    command.add_argument(
        "--output",
        type=Path,
        default=Path("glmbrian-output"),
        metavar="DIR",
        help="folder for model.npz and training.png (default: %(default)s)",
    )
    return command


def run(options: argparse.Namespace) -> dict[str, Any]:
    check_counts(options, "n_train", "n_test")
    digits = digits_of(options.classes, least=2)
    data = load_digits(options, digits, options.n_train, options.n_test)
    classifier = chosen_classifier(options, chosen_device(options.device))
    model, figure = options.output / "model.npz", options.output / "training.png"
    require_writable(options.output, model, figure)
    classifier.fit(data.X_train, data.y_train)
    training = classifier.timing_
    options.output.mkdir(parents=True, exist_ok=True)
    classifier.save(model)
    tested = classifier.evaluate(data.X_test, data.y_test)
    # Matplotlib takes a second to import.
    from ..plotting import training_report

    training_report(classifier, data.X_test, data.y_test, figure)
    return {
        **tested,
        "presentations_per_second": training["presentations"] / training["run_seconds"],
        "build_seconds": training["build_seconds"],
        "run_seconds": training["run_seconds"],
        "peak_memory": training["peak_memory"],
        "n_steps": classifier.n_steps,
        "device": classifier.device,
        "model": str(model),
        "figure": str(figure),
    }
