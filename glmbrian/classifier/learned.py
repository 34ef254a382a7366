"""What a classifier has learned: everything that affects decisions apart from its settings."""

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from ..core.bases import Basis
from ..core.updates import OptimizerState
from ..devices.problem import Parameters, Timing
from .input_range import InputRange
from .streams import Streams


@dataclass(frozen=True)
class HiddenLayer:
    """A hidden layer of a fitted classifier.

    weights : ndarray of float, shape (n_in, n, n_basis)
    bias : ndarray of float, shape (n,)
    feedback : ndarray of float, shape (n, n_feedback)
        Weights of the neurons' own feedback kernels; n_feedback is 0 without them.
    basis : Basis
        Of the kernels into the layer.
    feedback_basis : Basis or None
    """

    weights: np.ndarray
    bias: np.ndarray
    feedback: np.ndarray
    basis: Basis
    feedback_basis: Basis | None

    def kernels(self) -> np.ndarray:
        """Return the kernels from the layer below, shape (n_in, n, window)."""
        return self.basis.kernels(self.weights)

    def feedback_kernels(self) -> np.ndarray:
        """Return the neurons' own feedback kernels, shape (n, window)."""
        if self.feedback_basis is None:
            raise ValueError("these hidden neurons have no feedback kernels (see hidden_feedback)")
        return self.feedback_basis.kernels(self.feedback)


@dataclass(frozen=True)
class Learned:
    """The state of a fitted classifier (see `GLMClassifier.adopt`).

    parameters : Parameters
        If there are no feedback weights, the array has the shape (n_classes, 0).
    basis : Basis
    classes : ndarray, shape (n_classes,)
    streams : Streams
    n_presentations : int
        Number of presentations so far in training.
    history : ndarray of float, shape (n_epochs,)
    timing : Timing, optional
    scaler : MinMaxScaler, optional
    inputs_seen : InputRange, optional
    feature_names : ndarray of str, shape (n_inputs,), optional
    validation_scores : ndarray of float, shape (n_epochs,), optional
    hidden_basis, hidden_feedback : Basis, optional
        Bases of the hidden layers' kernels, and of their feedback kernels.
    optimizer_state : OptimizerState, optional
        From which `partial_fit` continues.
    """

    parameters: Parameters
    basis: Basis
    classes: np.ndarray
    streams: Streams
    n_presentations: int
    history: np.ndarray
    timing: Timing | None = None
    scaler: MinMaxScaler | None = None
    inputs_seen: InputRange | None = None
    feature_names: np.ndarray | None = None
    hidden_basis: Basis | None = None
    hidden_feedback: Basis | None = None
    validation_scores: np.ndarray | None = None
    optimizer_state: OptimizerState | None = None

    @property
    def hidden_layers(self) -> list[HiddenLayer]:
        """The hidden layers from the input on."""
        basis = self.hidden_basis or self.basis
        return [
            HiddenLayer(layer.weights, layer.bias, layer.feedback, basis, self.hidden_feedback)
            for layer in self.parameters.hidden
        ]
