"""The parameters of a classifier: checks, and the network that they describe."""

import math
import numbers
from typing import TYPE_CHECKING

import numpy as np

from ..core.activations import get_activation
from ..core.adversarial import get_adversarial
from ..core.bases import Basis, RaisedCosineBasis, as_basis
from ..core.credit import get_credit
from ..core.decisions import ON_SILENCE, ON_TIE, REJECTED
from ..core.log_spacing import UNIT_SPACED
from ..core.objectives import check_objective, check_start
from ..core.optimisers import get_optimizer
from ..core.randomness import check_random_state
from ..core.schedules import get_schedule
from ..devices import DEVICES
from ..devices.problem import LARGEST, HiddenLayers, LayerParameters, Network, Parameters
from ..support.validation import LARGEST_INTEGER, check_size, choice, flag, integer, real
from .labels import check_class_weight

if TYPE_CHECKING:
    from .classifier import GLMClassifier

#: Parameters that models of version 0.1 lack, and what these models were trained with in place of
#: today's defaults.
EARLIER_DEFAULTS = {"average": 0.0}

#: What `average="auto"` is if training runs to its planned end.
_AUTOMATIC_AVERAGE = 0.3


def check_settings(classifier: "GLMClassifier") -> None:
    """Raise a TypeError or a ValueError unless all parameters of a `GLMClassifier` are valid."""
    check_objective(classifier.decoding, "decoding")
    for name in ("n_steps", "n_epochs", "batch_size", "target_period"):
        _count(getattr(classifier, name), name)
    if classifier.target_start is not None:
        _count(classifier.target_start, "target_start")
        check_start(classifier.objective, int(classifier.n_steps))
    if classifier.basis is not None:
        as_basis(classifier.basis, "basis")
    else:
        _count(classifier.n_basis, "n_basis")
        if classifier.window is not None:
            _count(classifier.window, "window")
    real(classifier.learning_rate, "learning_rate", 0, strict=True)
    real(classifier.weight_scale, "weight_scale", 0, LARGEST)
    if not _is_named(classifier.bias_init):
        real(classifier.bias_init, "bias_init (unless it is 'auto' or 'uniform')", -LARGEST, LARGEST)
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
    _check_hidden(classifier)
    get_schedule(classifier.learning_rate_schedule)
    get_optimizer(classifier.optimizer)
    if classifier.clip_norm is not None:
        real(classifier.clip_norm, "clip_norm (unless it is None)", 0, strict=True)
    _check_average(classifier.average)
    real(classifier.weight_decay, "weight_decay", 0)
    _check_adversarial(classifier)
    _check_early_stopping(classifier)


def _check_adversarial(classifier):
    if get_adversarial(classifier.adversarial) is None:
        return
    if not classifier.objective.clamps_outputs:
        raise ValueError(
            "adversarial needs an objective that clamps the outputs, since others have no "
            f"log-likelihood to attack, but decoding={classifier.decoding!r} leaves them free; "
            "use adversarial=None"
        )
    if classifier.hidden and get_credit(classifier.credit).takes_reward:
        raise ValueError(
            f"adversarial needs a gradient in the spikes, but credit={classifier.credit!r} learns from "
            "a reward; use credit='straight-through', or adversarial=None"
        )


def _check_average(average):
    if not (isinstance(average, str) and average == "auto"):
        real(average, "average (unless it is 'auto')", 0, 1)


def _check_early_stopping(classifier):
    stops = stops_early(classifier)
    real(classifier.validation_fraction, "validation_fraction", 0, strict=True, below=1)
    _count(classifier.n_iter_no_change, "n_iter_no_change")
    real(classifier.tol, "tol", 0)
    if stops and classifier.average not in ("auto", 0):
        raise ValueError(
            "average must be 'auto' or 0 with early_stopping=True, which keeps the parameters of the best "
            f"epoch, got {classifier.average}"
        )


def n_averaged_epochs(classifier: "GLMClassifier") -> int:
    """Return the number of last epochs over which `fit` averages the parameters; `average` must be valid."""
    average = classifier.average
    if isinstance(average, str):  # "auto"
        average = 0.0 if stops_early(classifier) else _AUTOMATIC_AVERAGE
    # Rounded up; but a product may be just above an integer: 0.28 * 25 is 7.000000000000001.
    return math.ceil(round(float(average) * int(classifier.n_epochs), 6))


def stops_early(classifier: "GLMClassifier") -> bool:
    """Return whether a classifier stops early, after a check."""
    return flag(classifier.early_stopping, "early_stopping")


def refuse_early_stopping(classifier: "GLMClassifier", caller: str) -> None:
    """Raise if a classifier stops early, for a `caller` that cannot."""
    if stops_early(classifier):
        raise ValueError(f"early_stopping must be False for {caller}; use fit")


def _check_hidden(classifier):
    sizes = classifier.hidden
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(
            "hidden must be the sizes of the hidden layers, such as (100,) or (200, 100), or () for "
            f"none, got {sizes!r}"
        )
    for number, size in enumerate(sizes):
        _count(size, f"hidden[{number}]")
    for name in ("hidden_basis", "hidden_feedback"):
        if getattr(classifier, name) is not None:
            as_basis(getattr(classifier, name), name)
    if sizes:
        _check_windows(classifier)
    credit = get_credit(classifier.credit)
    if sizes and credit.simulates and not classifier.objective.clamps_outputs:
        raise ValueError(
            f"credit={classifier.credit!r} needs an objective that clamps the outputs, but decoding="
            f"{classifier.decoding!r} leaves them free; use another credit"
        )


def _check_windows(classifier):
    """Raise if a basis of hidden neurons has lags that no presentation reaches."""
    bases = {"hidden_basis": classifier.hidden_basis, "hidden_feedback": classifier.hidden_feedback}
    n_steps, remedies = classifier.n_steps, {}
    if classifier.hidden_basis is None:
        name = "hidden_basis (by default the basis of the outputs)"
        bases[name] = make_basis(classifier)
        if classifier.basis is None:
            cause = "n_basis" if classifier.window is None else "window"
            remedies[name] = f"use {cause} of at most {n_steps}"
    for name, basis in bases.items():
        if basis is not None and basis.window > n_steps:
            remedy = remedies.get(name, f"use a basis of at most {n_steps} lags")
            raise ValueError(
                f"{name} has {basis.window} lags, but presentations have n_steps={n_steps}, so the later "
                f"lags have no effect; {remedy}, or longer presentations"
            )


def _count(value, name):
    """Raise unless `value` is a positive integer that fits the types used in C++."""
    integer(integer(value, name), name, 1, LARGEST_INTEGER)


def _is_named(bias_init):
    return isinstance(bias_init, str) and bias_init in ("auto", "uniform")


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
    n_basis, window = default_basis_size(classifier)
    if classifier.window is None:
        check_size(n_basis * window, "n_steps, n_basis: values of the basis", "set a window")
    # Functions of long windows are of very different lengths: see docs/howto/long_presentations.md.
    return RaisedCosineBasis(n_basis, window, normalise="energy" if window > UNIT_SPACED else None)


def default_basis_size(classifier: "GLMClassifier") -> tuple[int, int]:
    """Return the number of functions and lags of the default basis."""
    n_basis, window = int(classifier.n_basis), classifier.window
    return n_basis, max(n_basis, int(classifier.n_steps)) if window is None else int(window)


def make_hidden(classifier: "GLMClassifier") -> HiddenLayers:
    """Return the `HiddenLayers` that the parameters of a classifier describe."""
    return HiddenLayers(
        tuple(int(size) for size in classifier.hidden),
        classifier.hidden_basis if classifier.hidden else None,
        classifier.hidden_feedback if classifier.hidden else None,
        get_credit(classifier.credit),
    )


def make_network(
    classifier: "GLMClassifier",
    n_inputs: int,
    n_classes: int,
    basis: Basis,
    hidden: HiddenLayers | None = None,
) -> Network:
    """Return the `Network` of one replica."""
    hidden = hidden or HiddenLayers()
    sizes = [n_inputs, *hidden.sizes, n_classes]
    n_functions = max(basis.n_basis, hidden.basis.n_basis if hidden.basis else 0)
    n_weights = max(below * n for below, n in zip(sizes, sizes[1:])) * n_functions
    check_size(
        n_weights, "X, y, hidden, n_basis: weights", "take fewer inputs, classes, neurons or functions"
    )
    n_potentials = int(classifier.n_steps) * max(sizes[1:])
    check_size(n_potentials, "n_steps, y, hidden: potentials of a presentation", "take fewer steps")
    return Network(
        n_inputs=n_inputs,
        n_classes=n_classes,
        n_steps=int(classifier.n_steps),
        basis=basis,
        feedback_basis=basis if classifier.objective.learns_feedback else None,
        activation=get_activation(classifier.activation),
        objective=classifier.objective,
        gpu=classifier.gpu,
        hidden=hidden,
        optimizer=get_optimizer(classifier.optimizer),
    )


def make_start(classifier: "GLMClassifier", network: Network, key: int) -> Parameters:
    """Return the `Parameters` before training, drawn with the `key`."""
    random = np.random.default_rng(key)
    scale = float(classifier.weight_scale)
    *hidden, output = network.layers
    weights = random.uniform(-scale, scale, (output.n_inputs, output.n, output.basis.n_basis))
    feedback = random.uniform(-scale, scale, (output.n, output.n_feedback))
    if classifier.bias_init == "uniform":
        bias = random.uniform(-1.0, 1.0, output.n)
    else:
        bias = np.full(output.n, _bias_init(classifier))
    return Parameters(weights, feedback, bias, tuple(_hidden_start(layer, random) for layer in hidden))


#: Where outputs start in presentations of up to so many steps.  In longer ones they begin with as many
#: spikes by chance as in presentations of 8 steps: see docs/howto/long_presentations.md.
_BIAS, _SHORT, _AS_SILENT_AS = -5.0, 32, 8


def _bias_init(classifier):
    if classifier.bias_init != "auto":
        return float(classifier.bias_init)
    n_steps = int(classifier.n_steps)
    return _BIAS if n_steps <= _SHORT else _BIAS - math.log(n_steps / _AS_SILENT_AS)


#: Where hidden neurons start: measured in docs/design.md.
HIDDEN_BIAS, HIDDEN_SCALE = -1.0, 1.4


def _hidden_start(layer, random):
    """Draw the parameters of a hidden layer before training.

    The more inputs, the smaller the weights, so that potentials vary alike in all layers.
    """
    scale = HIDDEN_SCALE / np.sqrt(layer.n_inputs)
    return LayerParameters(
        random.normal(scale=scale, size=(layer.n_inputs, layer.n, layer.basis.n_basis)),
        np.zeros((layer.n, layer.n_feedback)),
        np.full(layer.n, HIDDEN_BIAS),
    )
