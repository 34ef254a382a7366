"""The options that describe a classifier: the parameters of `GLMClassifier`."""

import argparse
from collections.abc import Callable
from typing import Any

from ..classifier.classifier import PAPER_SETTINGS, GLMClassifier
from ..core.activations import BUILT_IN_ACTIVATIONS
from ..core.adversarial import get_adversarial
from ..core.decisions import ON_SILENCE, ON_TIE
from ..core.objectives import OBJECTIVES
from ..core.schedules import SCHEDULES


def add_classifier_options(command: argparse.ArgumentParser) -> None:
    """Add the parameters of `GLMClassifier`, under the same names."""
    options: dict[str, dict[str, Any]] = {
        "decoding": dict(choices=tuple(OBJECTIVES), help="training rule, and rule of decision"),
        "n_steps": dict(type=int, metavar="T", help="steps per presentation"),
        "n_basis": dict(type=int, metavar="K", help="basis functions per kernel"),
        "window": dict(type=int, metavar="LAGS", help="lags per kernel"),
        "learning_rate": dict(type=float, metavar="RATE", help="step size of training"),
        "n_epochs": dict(type=int, metavar="N", help="passes through the training images"),
        "batch_size": dict(type=int, metavar="N", help="images per update"),
        "weight_scale": dict(type=float, metavar="SCALE",
                             help="initial weights are uniform within +-SCALE"),
        "bias_init": dict(type=_number_or("auto", "uniform"), metavar="BIAS",
                          help="initial biases: a number, 'auto' or 'uniform'"),
        "activation": dict(choices=BUILT_IN_ACTIVATIONS, help="spike probability as a function of the potential"),
        "target_period": dict(type=int, metavar="N", help="period of the desired spike train (rate)"),
        "target_start": dict(type=int, metavar="STEP", help="step of the first desired spike (rate)"),
        "on_silence": dict(choices=ON_SILENCE, help="decision without any output spike"),
        "on_tie": dict(choices=ON_TIE, help="decision between equal outputs"),
        "hidden": dict(type=int, nargs="*", metavar="N", help="sizes of hidden layers, from the inputs on"),
        "learning_rate_schedule": dict(choices=tuple(SCHEDULES), help="how the learning rate changes"),
        "average": dict(type=_number_or("auto"), metavar="FRACTION",
                        help="fraction of the epochs, the last ones, over which parameters are averaged, "
                        "or 'auto': 0.3, or 0 with --early-stopping"),
        "weight_decay": dict(type=float, metavar="RATE", help="how fast weights decay to 0"),
        "early_stopping": dict(action=argparse.BooleanOptionalAction, default=None,
                               help="hold out images, and stop when they are decided no better"),
        "validation_fraction": dict(type=float, metavar="FRACTION", help="fraction of images to hold out"),
        "adversarial": dict(type=_adversarial, metavar="BUDGET[:KIND[:FRACTION]]",
                            help="train after the worst spikes of a fraction of the images have been "
                            "changed (add, remove or flip), at most BUDGET in each"),
        "random_state": dict(type=int, metavar="SEED", help="seed"),
    }  # fmt: skip
    defaults = {
        **GLMClassifier().get_params(),
        "window": "the larger of T and K",
        "hidden": "none",
        "adversarial": "none",
        "target_start": "the target period",
        "random_state": 0,
    }
    command.add_argument("--paper-settings", action="store_true",
                         help="the paper's learning rate, epochs and initialization, without averaging, unless given")  # fmt: skip
    for name, settings in options.items():
        settings["help"] += f" (default: {defaults[name]})"
        names = ["--schedule"] if name == "learning_rate_schedule" else []
        command.add_argument(*names, "--" + name.replace("_", "-"), dest=name, **settings)


def chosen_classifier(options: argparse.Namespace, device: str) -> GLMClassifier:
    """Return the classifier that the options describe."""
    names = GLMClassifier().get_params()
    settings: dict[str, Any] = {
        "random_state": 0,
        **(PAPER_SETTINGS if options.paper_settings else {}),
        **{name: value for name, value in vars(options).items() if name in names and value is not None},
        "device": device,
        "verbose": not options.quiet,
    }
    return GLMClassifier(**settings)


def _number_or(*words: str) -> Callable[[str], str | float]:
    def convert(text):
        try:
            return text if text in words else float(text)
        except ValueError:
            raise argparse.ArgumentTypeError(
                f"must be a number or {words[-1]!r}, got {text!r}"
            ) from None

    return convert


def _adversarial(text):
    budget, *rest = text.split(":", 2)
    try:
        settings = {"budget": int(budget), **dict(zip(("kind", "fraction"), rest))}
        if "fraction" in settings:
            settings["fraction"] = float(settings["fraction"])
        get_adversarial(settings)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"must be BUDGET[:KIND[:FRACTION]], such as 5 or 5:flip:0.5, got {text!r} ({error})"
        ) from None
    return settings
