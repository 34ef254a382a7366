"""What a classifier has learned: everything that affects decisions apart from its settings."""

from dataclasses import dataclass, replace

import numpy as np

from ..core.bases import Basis
from ..core.updates import OptimizerState
from ..devices.problem import HiddenLayers, LayerParameters, Network, Parameters, Timing
from .inputs import InputSpec
from .settings import Architecture
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

    @property
    def parameters(self) -> LayerParameters:
        return LayerParameters(self.weights, self.feedback, self.bias)

    def kernels(self) -> np.ndarray:
        """Return the kernels from the layer below, shape (n_in, n, window)."""
        return self.basis.kernels(self.weights)

    def feedback_kernels(self) -> np.ndarray:
        """Return the neurons' own feedback kernels, shape (n, window)."""
        if self.feedback_basis is None:
            raise ValueError("these hidden neurons have no feedback kernels (see hidden_feedback)")
        return self.feedback_basis.kernels(self.feedback)


@dataclass(frozen=True)
class FittedState:
    """The state of a fitted classifier (see `GLMClassifier.restore`).

    parameters : Parameters
        If there are no feedback weights, the array has the shape (n_classes, 0).
    basis : Basis
    classes : ndarray, shape (n_classes,)
    streams : Streams
    n_presentations : int
        Number of presentations so far in training.
    history : ndarray of float, shape (n_epochs,)
    inputs : InputSpec, optional
        By default only their number is known.
    hidden_basis, hidden_feedback : Basis, optional
        Bases of the hidden layers' kernels, and of their feedback kernels.
    timing : Timing, optional
    validation_scores : ndarray of float, shape (n_epochs,), optional
    optimizer_state : OptimizerState, optional
        From which `partial_fit` continues.
    """

    parameters: Parameters
    basis: Basis
    classes: np.ndarray
    streams: Streams
    n_presentations: int
    history: np.ndarray
    inputs: InputSpec | None = None
    hidden_basis: Basis | None = None
    hidden_feedback: Basis | None = None
    timing: Timing | None = None
    validation_scores: np.ndarray | None = None
    optimizer_state: OptimizerState | None = None

    @property
    def input_spec(self) -> InputSpec:
        """What is known of the inputs."""
        return self.inputs or InputSpec(len(self.parameters.layers[0].weights))

    @property
    def hidden_layers(self) -> list[HiddenLayer]:
        """The hidden layers from the input on."""
        basis = self.hidden_basis or self.basis
        return [
            HiddenLayer(layer.weights, layer.bias, layer.feedback, basis, self.hidden_feedback)
            for layer in self.parameters.hidden
        ]

    def network(self, architecture: Architecture) -> Network:
        """Return the `Network` that was fitted; today's settings say the rest."""
        hidden = HiddenLayers(
            tuple(len(layer.bias) for layer in self.parameters.hidden),
            self.hidden_basis,
            self.hidden_feedback,
            architecture.hidden.credit,
        )
        n_inputs, n_classes = self.input_spec.n_inputs, len(self.classes)
        return architecture.network(n_inputs, n_classes, self.basis, hidden)

    def parameters_for(self, architecture: Architecture) -> Parameters:
        """Return the `Parameters` of `network`: feedback weights only if the objective uses them."""
        if architecture.objective.learns_feedback:
            return self.parameters
        return replace(self.parameters, feedback=self.parameters.feedback[:, :0])
