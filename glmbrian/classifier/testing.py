"""Tests of a fitted classifier: what to simulate, and which labels to decide for."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..core.decisions import REJECTED, decide
from ..devices.problem import Inputs, Network, Outcome, Parameters, Testing
from ..support.validation import integer
from .fitted_state import FittedState
from .presented import PresentedTest
from .settings import Settings


@dataclass(frozen=True)
class TestRun:
    """Everything a device needs to test a classifier, after all checks, and what decides.

    network : Network
    parameters : Parameters
    inputs : Inputs
    testing : Testing
    classes : ndarray, shape (n_classes,)
    on_tie, on_silence : str
    choices : int
        Key of random decisions.
    """

    __test__ = False  # or pytest would collect this class, because of its name

    network: Network
    parameters: Parameters
    inputs: Inputs
    testing: Testing
    classes: np.ndarray
    on_tie: str
    on_silence: str
    choices: int

    def presented(self, n_steps: int | None = None) -> PresentedTest:
        """Return what happens in the presentations, in NumPy; by default to their last step."""
        return PresentedTest(self.network, self.parameters, self.inputs, self.testing, n_steps)

    def decided_labels(self, outcome: Outcome) -> np.ndarray:
        """Return the class label decided for each presentation of an `Outcome`."""
        decision = decide(
            outcome,
            self.network.objective,
            self.on_tie,
            self.on_silence,
            self.choices,
            self.testing.first_presentation,
        )
        labels = self.classes[decision]
        rejected = decision == REJECTED
        if rejected.any():
            if labels.dtype.kind == "u":
                labels = labels.astype(np.int64)
            labels[rejected] = REJECTED
        return labels


def prepare_test(
    settings: Settings, state: FittedState, X: ArrayLike, first_presentation: int = 0
) -> TestRun:
    """Check the arguments of `GLMClassifier.predict`, and return the `TestRun`."""
    settings.check_rejection(state.classes)
    _, inputs = state.input_spec.transform(X, settings)
    return prepared_test(settings, state, inputs, first_presentation)


def prepared_test(
    settings: Settings, state: FittedState, inputs: Inputs, first_presentation: int = 0
) -> TestRun:
    """Return the `TestRun` for checked `inputs`."""
    most = 2**63 - 1 - len(inputs)
    testing = Testing(
        input_key=state.streams.test_inputs,
        output_key=state.streams.test_outputs,
        first_presentation=integer(first_presentation, "first_presentation", 0, most),
    )
    return TestRun(
        state.network(settings.architecture),
        state.parameters_for(settings.architecture),
        inputs,
        testing,
        state.classes,
        settings.on_tie,
        settings.on_silence,
        state.streams.choices,
    )
