"""The argument ``model`` of commands that test a trained model."""

import argparse
from pathlib import Path
from typing import Any

from ..classifier.classifier import GLMClassifier
from .devices import chosen_device
from .digits import add_digit_options, check_counts, digits_of, listed, load_digits


def add_model_options(command: argparse.ArgumentParser) -> None:
    """Add the model and the options that choose what it is tested on."""
    command.add_argument("model", type=Path, help="model.npz, or an exported folder that has run")
    add_digit_options(command, classes=None, sizes=("n_test",))


def load_model(options: argparse.Namespace) -> tuple[GLMClassifier, Any]:
    """Return the classifier that the options name, and the images to test it on."""
    check_counts(options, "n_test")
    try:
        classifier = GLMClassifier.load(options.model)
    except OSError as error:
        raise ValueError(f"model: {error}") from None
    except ValueError as error:
        raise ValueError(f"model: {error} (`glmbrian train` writes a model.npz)") from None
    known = classifier.classes_.tolist()
    if not set(known) <= set(range(10)):
        raise _not_for_digits(options, f"its classes must be digits from 0 to 9, but are {known}")
    known = [int(label) for label in known]
    digits = known if options.classes is None else digits_of(options.classes)
    if not set(digits) <= set(known):
        raise ValueError(
            f"--classes must be among the classes of the model, {listed(known)}, got {listed(digits)}"
        )
    classifier.set_params(device=chosen_device(options.device), verbose=not options.quiet)
    if options.gpu is not None:
        classifier.gpu = options.gpu
    data = load_digits(options, digits, 0, options.n_test)
    n_pixels = data.X_test.shape[1]
    if classifier.n_features_in_ != n_pixels:
        raise _not_for_digits(
            options,
            f"it must have an input for each of the {n_pixels} pixels of a digit, but has "
            f"{classifier.n_features_in_} inputs",
        )
    return classifier, data


def _not_for_digits(options, text):
    return ValueError(
        f"model: {text}, since `glmbrian {options.command}` tests on MNIST digits; to test on data of "
        f"your own, write in Python: glmbrian.GLMClassifier.load({str(options.model)!r}).evaluate(X, y)"
    )
