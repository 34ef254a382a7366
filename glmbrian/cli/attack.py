"""``glmbrian attack``."""

import argparse
import time
from typing import Any

from .devices import add_device_options
from .digits import listed
from .models import add_model_options, load_model


def add(commands: Any) -> argparse.ArgumentParser:
    command = commands.add_parser(
        "attack", help="change the input spikes that hurt a trained model most"
    )
    add_model_options(command)
    command.add_argument(
        "--budget", type=int, default=10, metavar="N",
        help="the most spikes to change in each presentation (default: %(default)s)",
    )  # fmt: skip
    # The names are checked by `robustness.attack`, whose import takes seconds.
    command.add_argument("--kind", default="flip", help="add, remove or flip (default: %(default)s)")
    command.add_argument("--method", default="greedy", help="greedy or iterated (default: %(default)s)")
    command.add_argument(
        "--loss", default="likelihood", help="likelihood or margin (default: %(default)s)"
    )
    command.add_argument(
        "--certify", action="store_true", help="also print the accuracy that no change can undo"
    )
    add_device_options(command, "where to test; as for evaluate")
    return command


def run(options: argparse.Namespace) -> dict[str, Any]:
    from ..robustness import attack, certified_accuracy, random_change

    classifier, data = load_model(options)
    if options.certify and classifier.hidden_layers_:
        sizes = listed(len(layer.bias) for layer in classifier.hidden_layers_)
        raise ValueError(
            "--certify needs a model without hidden layers, since bounds are known only for such "
            f"networks, but this one has hidden layers of {sizes} neurons; leave out --certify"
        )
    X, y = data.X_test, data.y_test
    started = time.perf_counter()
    attacked = attack(
        classifier, X, y, options.budget, options.kind, method=options.method, loss=options.loss
    )
    seconds = time.perf_counter() - started
    at_random = random_change(classifier, X, options.budget, options.kind, random_state=0)
    found = {
        "accuracy": classifier.score(X, y),
        "attacked_accuracy": classifier.score(attacked, y),
        "random_accuracy": classifier.score(at_random, y),
    }
    if options.certify:
        found["certified_accuracy"] = certified_accuracy(classifier, X, y, options.budget, options.kind)
    return {
        **found,
        "budget": options.budget,
        "kind": options.kind,
        "presentations": len(y),
        "attack_seconds": seconds,
        "model": str(options.model),
    }
