"""``glmbrian evaluate``."""

import argparse
from typing import Any

from .devices import add_device_options
from .models import add_model_options, load_model


def add(commands: Any) -> argparse.ArgumentParser:
    command = commands.add_parser("evaluate", help="test a trained model")
    add_model_options(command)
    add_device_options(command, "as for train; may differ from the device of training")
    return command


def run(options: argparse.Namespace) -> dict[str, Any]:
    classifier, data = load_model(options)
    tested = classifier.evaluate(data.X_test, data.y_test)
    timing = classifier.timing_
    return {
        **tested,
        "presentations_per_second": timing["presentations"] / timing["run_seconds"],
        "build_seconds": timing["build_seconds"],
        "run_seconds": timing["run_seconds"],
        "n_steps": classifier.n_steps,
        "device": classifier.device,
        "model": str(options.model),
    }
