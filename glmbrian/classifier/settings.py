"""The parameters of a classifier: checks, and the network that they describe."""

import numbers
from typing import TYPE_CHECKING

import numpy as np

from ..core.activations import get_activation
from ..core.bases import Basis, RaisedCosineBasis, as_basis
from ..core.decisions import ON_SILENCE, ON_TIE, REJECTED
from ..core.objectives import check_objective
from ..core.randomness import check_random_state
from ..devices import DEVICES
from ..devices.problem import LARGEST, Network, Parameters
from ..support.validation import check_size, choice, flag, integer, real
from .labels import check_class_weight

if TYPE_CHECKING:
    from .classifier import GLMClassifier

#: The largest 32-bit integer: Brian's integers and the sizes in C++ cannot be larger.
_MOST = 2**31 - 1


def check_settings(classifier: "GLMClassifier") -> None:
    """Raise a TypeError or a ValueError unless all parameters of a `GLMClassifier` are valid."""
    check_objective(classifier.decoding, "decoding")
    for name in ("n_steps", "n_epochs", "batch_size", "target_period"):
        _count(getattr(classifier, name), name)
    if classifier.basis is not None:
        as_basis(classifier.basis, "basis")
    else:
        _count(classifier.n_basis, "n_basis")
        if classifier.window is not None:
            _count(classifier.window, "window")
    real(classifier.learning_rate, "learning_rate", 0, strict=True)
    real(classifier.weight_scale, "weight_scale", 0, LARGEST)
    if not _is_uniform(classifier.bias_init):
        real(classifier.bias_init, "bias_init (unless it is 'uniform')", -LARGEST, LARGEST)
    get_activation(classifier.activation)
    choice(classifier.device, "device", DEVICES)
    if classifier.gpu is not None:
        flag(classifier.gpu, "gpu", "None, True or False")
    choice(classifier.on_silence, "on_silence", ON_SILENCE)
    choice(classifier.on_tie, "on_tie", ON_TIE)
    flag(classifier.scale_inputs, "scale_inputs")
    if not isinstance(classifier.verbose, (numbers.Integral, np.bool_)):
        raise TypeError(f"verbose must be True or False, got {classifier.verbose!r}")
    check_random_state(classifier.random_state)
    check_random_state(classifier.start_state, "start_state")
    check_class_weight(classifier.class_weight)


def _count(value, name):
    """Raise unless `value` is a positive integer that fits the types used in C++."""
    integer(integer(value, name), name, 1, _MOST)


def _is_uniform(bias_init):
    return isinstance(bias_init, str) and bias_init == "uniform"


def check_rejection(classifier: "GLMClassifier", classes: np.ndarray) -> None:
    """Raise if a class label could be mistaken for a rejection."""
    if classifier.on_silence == "reject" and (
        classes.dtype.kind not in "iuf"
        or REJECTED in classes.tolist()
        or (classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max)
    ):
        raise ValueError(
            "on_silence='reject' marks rejected presentations by the label -1, so class labels "
            f"must be numbers other than -1 and below 2**63, got {classes.tolist()}"
        )


def make_basis(classifier: "GLMClassifier") -> Basis:
    """Return the basis of the kernels."""
    if classifier.basis is not None:
        return classifier.basis
    if classifier.window is None:
        window = max(int(classifier.n_basis), int(classifier.n_steps))
        n_values = int(classifier.n_basis) * window
        check_size(n_values, "n_steps, n_basis: values of the basis", "set a window")
        return RaisedCosineBasis(classifier.n_basis, window)
    return RaisedCosineBasis(classifier.n_basis, classifier.window)


def make_network(classifier: "GLMClassifier", n_inputs: int, n_classes: int, basis: Basis) -> Network:
    """Return the `Network` of one replica."""
    n_weights = n_inputs * n_classes * basis.n_basis
    check_size(n_weights, "X, y, n_basis: weights", "take fewer inputs, classes or functions")
    n_potentials = int(classifier.n_steps) * n_classes
    check_size(n_potentials, "n_steps, y: potentials of a presentation", "take fewer steps")
    return Network(
        n_inputs=n_inputs,
        n_classes=n_classes,
        n_steps=int(classifier.n_steps),
        basis=basis,
        feedback_basis=basis if classifier.objective.learns_feedback else None,
        activation=get_activation(classifier.activation),
        objective=classifier.objective,
        gpu=classifier.gpu,
    )


def make_start(classifier: "GLMClassifier", network: Network, key: int) -> Parameters:
    """Return the `Parameters` before training, drawn with the `key`."""
    random = np.random.default_rng(key)
    scale, n_outputs = float(classifier.weight_scale), network.n_classes
    n_feedback = network.feedback_basis.n_basis if network.feedback_basis else 0
    weights = random.uniform(-scale, scale, (network.n_inputs, n_outputs, network.basis.n_basis))
    feedback = random.uniform(-scale, scale, (n_outputs, n_feedback))
    if _is_uniform(classifier.bias_init):
        bias = random.uniform(-1.0, 1.0, n_outputs)
    else:
        bias = np.full(n_outputs, float(classifier.bias_init))
    return Parameters(weights, feedback, bias)
