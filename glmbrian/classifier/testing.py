"""Tests of a fitted classifier: what to simulate, and which labels to decide for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import NotFittedError

from ..core.decisions import REJECTED, decide
from ..devices.problem import Inputs, Network, Outcome, Parameters, Testing
from ..support.validation import integer
from .inputs import check_inputs
from .settings import check_rejection, check_settings
from .training import fitted_network, learned_parameters

if TYPE_CHECKING:
    from .classifier import GLMClassifier


def is_fitted(classifier: "GLMClassifier") -> bool:
    return hasattr(classifier, "weights_")


def check_fitted(classifier: "GLMClassifier") -> None:
    if not is_fitted(classifier):
        raise NotFittedError("this GLMClassifier is not fitted yet; call fit, or GLMClassifier.load")


@dataclass(frozen=True)
class TestRun:
    """Everything a device needs to test a classifier, after all checks."""

    __test__ = False  # or pytest would collect this class, because of its name

    network: Network
    parameters: Parameters
    inputs: Inputs
    testing: Testing


def prepare_test(classifier: "GLMClassifier", X: ArrayLike, first_presentation: int = 0) -> TestRun:
    """Check the arguments of `GLMClassifier.predict`, and return the `TestRun`."""
    check_fitted(classifier)
    check_settings(classifier)
    check_rejection(classifier, classifier.classes_)
    inputs = check_inputs(classifier, X)
    return prepared_test(classifier, inputs, first_presentation)


def prepared_test(classifier: "GLMClassifier", inputs: Inputs, first_presentation: int = 0) -> TestRun:
    """Return the `TestRun` for checked `inputs`."""
    most = 2**63 - 1 - len(inputs)
    testing = Testing(
        input_key=classifier.streams_.test_inputs,
        output_key=classifier.streams_.test_outputs,
        first_presentation=integer(first_presentation, "first_presentation", 0, most),
    )
    return TestRun(fitted_network(classifier), learned_parameters(classifier), inputs, testing)


def decided_labels(
    classifier: "GLMClassifier", outcome: Outcome, first_presentation: int = 0
) -> np.ndarray:
    """Return the class label decided for each presentation of an `Outcome`."""
    decision = decide(
        outcome,
        classifier.objective,
        classifier.on_tie,
        classifier.on_silence,
        classifier.streams_.choices,
        first_presentation,
    )
    labels = classifier.classes_[decision]
    rejected = decision == REJECTED
    if rejected.any():
        if labels.dtype.kind == "u":
            labels = labels.astype(np.int64)
        labels[rejected] = REJECTED
    return labels
