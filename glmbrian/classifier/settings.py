"""The parameters of a classifier as plain data, after checks."""

import math
import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core.activations import Activation, get_activation
from ..core.adversarial import Adversarial, get_adversarial
from ..core.bases import Basis, RaisedCosineBasis, as_basis
from ..core.credit import get_credit
from ..core.decisions import ON_SILENCE, ON_TIE, REJECTED
from ..core.log_spacing import UNIT_SPACED
from ..core.objectives import Objective, check_start, get_objective
from ..core.optimisers import Optimizer, get_optimizer
from ..core.randomness import check_random_state
from ..core.schedules import Schedule, get_schedule
from ..devices import DEVICES
from ..devices.problem import LARGEST, HiddenLayers, Network
from ..support.validation import LARGEST_INTEGER, check_size, choice, flag, integer, real
from .labels import check_class_weight

#: Parameters that models of version 0.1 lack, and what these models were trained with in place of
#: today's defaults.
EARLIER_DEFAULTS = {"average": 0.0}

#: What `average="auto"` is if training runs to its planned end.
_AUTOMATIC_AVERAGE = 0.3


@dataclass(frozen=True)
class Architecture:
    """What a network is made of, apart from the numbers of its inputs and outputs.

    n_steps : int
    basis : Basis, optional
        Instead of the default one, of `n_basis` functions over `window` lags.
    n_basis : int
    window : int, optional
    hidden : HiddenLayers
    activation : Activation
    objective : Objective
    optimizer : Optimizer
    gpu : bool, optional
    """

    n_steps: int
    basis: Basis | None
    n_basis: int
    window: int | None
    hidden: HiddenLayers
    activation: Activation
    objective: Objective
    optimizer: Optimizer
    gpu: bool | None

    @property
    def default_size(self) -> tuple[int, int]:
        """Number of functions and lags of the default basis."""
        window = max(self.n_basis, self.n_steps) if self.window is None else self.window
        return self.n_basis, window

    def make_basis(self) -> Basis:
        """Return the basis of the kernels."""
        if self.basis is not None:
            return self.basis
        n_basis, window = self.default_size
        if self.window is None:
            check_size(n_basis * window, "n_steps, n_basis: values of the basis", "set a window")
        # Functions of long windows are of very different lengths: see docs/howto/long_presentations.md.
        return RaisedCosineBasis(n_basis, window, normalise="energy" if window > UNIT_SPACED else None)

    def network(
        self, n_inputs: int, n_classes: int, basis: Basis, hidden: HiddenLayers | None = None
    ) -> Network:
        """Return the `Network` of one replica; `basis` and `hidden` may be those of a fit."""
        hidden = self.hidden if hidden is None else hidden
        sizes = [n_inputs, *hidden.sizes, n_classes]
        n_functions = max(basis.n_basis, hidden.basis.n_basis if hidden.basis else 0)
        n_weights = max(below * n for below, n in zip(sizes, sizes[1:])) * n_functions
        check_size(
            n_weights,
            "X, y, hidden, n_basis: weights",
            "take fewer inputs, classes, neurons or functions",
        )
        n_potentials = self.n_steps * max(sizes[1:])
        check_size(n_potentials, "n_steps, y, hidden: potentials of a presentation", "take fewer steps")
        return Network(
            n_inputs=n_inputs,
            n_classes=n_classes,
            n_steps=self.n_steps,
            basis=basis,
            feedback_basis=basis if self.objective.learns_feedback else None,
            activation=self.activation,
            objective=self.objective,
            gpu=self.gpu,
            hidden=hidden,
            optimizer=self.optimizer,
        )


@dataclass(frozen=True)
class TrainingConfig:
    """How a classifier is trained; see `GLMClassifier`.

    n_averaged : int
        The last epochs over which `fit` averages the parameters.
    early_stopping : bool
    """

    learning_rate: float
    n_epochs: int
    batch_size: int
    schedule: Schedule
    n_averaged: int
    weight_decay: float
    clip_norm: float | None
    adversarial: Adversarial | None
    class_weight: str | Mapping[Any, float] | None
    weight_scale: float
    bias_init: float | str
    random_state: Any
    start_state: Any
    early_stopping: bool
    validation_fraction: float
    n_iter_no_change: int
    tol: float


@dataclass(frozen=True)
class Settings:
    """All parameters of a classifier, after checks.

    architecture : Architecture
    training : TrainingConfig
    on_silence, on_tie : str
    scale_inputs, verbose : bool
    device : str
    """

    architecture: Architecture
    training: TrainingConfig
    on_silence: str
    on_tie: str
    scale_inputs: bool
    verbose: bool
    device: str

    @property
    def objective(self) -> Objective:
        return self.architecture.objective

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "Settings":
        """Return the settings for parameters of a `GLMClassifier`.

        Raises
        ------
        TypeError, ValueError
            Unless all are valid.
        """
        given = SimpleNamespace(**parameters)
        objective = _checked_objective(given)
        architecture = _checked_architecture(given, objective)
        training = _checked_training(given, objective)
        return cls(
            architecture=architecture,
            training=training,
            on_silence=choice(given.on_silence, "on_silence", ON_SILENCE),
            on_tie=choice(given.on_tie, "on_tie", ON_TIE),
            scale_inputs=flag(given.scale_inputs, "scale_inputs"),
            verbose=_checked_verbose(given.verbose),
            device=choice(given.device, "device", DEVICES),
        )

    def check_rejection(self, classes: np.ndarray) -> None:
        """Raise if a class label could be mistaken for a rejection."""
        if self.on_silence == "reject" and (
            classes.dtype.kind not in "iuf"
            or REJECTED in classes.tolist()
            or (classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max)
        ):
            raise ValueError(
                "on_silence='reject' marks rejected presentations by the label -1, so class labels "
                f"must be numbers other than -1 and below 2**63, got {classes.tolist()}"
            )

    def refuse_early_stopping(self, caller: str) -> None:
        """Raise if the classifier stops early, for a `caller` that cannot."""
        if self.training.early_stopping:
            raise ValueError(f"early_stopping must be False for {caller}; use fit")


def _checked_verbose(verbose):
    if not isinstance(verbose, (numbers.Integral, np.bool_)):
        raise TypeError(f"verbose must be True or False, got {verbose!r}")
    return bool(verbose)


def _checked_objective(given):
    start = None if given.target_start is None else _count(given.target_start, "target_start")
    period = _count(given.target_period, "target_period")
    objective = get_objective(given.decoding, period, "decoding", start)
    if start is not None:
        check_start(objective, _count(given.n_steps, "n_steps"))
    return objective


def _checked_architecture(given, objective):
    architecture = Architecture(
        n_steps=_count(given.n_steps, "n_steps"),
        basis=None if given.basis is None else as_basis(given.basis, "basis"),
        # With a basis of one's own these do nothing.
        n_basis=_count(given.n_basis, "n_basis") if given.basis is None else 1,
        window=None
        if given.basis is not None or given.window is None
        else _count(given.window, "window"),
        hidden=_checked_hidden(given),
        activation=get_activation(given.activation),
        objective=objective,
        optimizer=get_optimizer(given.optimizer),
        gpu=None if given.gpu is None else flag(given.gpu, "gpu", "None, True or False"),
    )
    if architecture.hidden.sizes:
        _check_windows(given, architecture)
        if architecture.hidden.credit.simulates and not objective.clamps_outputs:
            raise ValueError(
                f"credit={given.credit!r} needs an objective that clamps the outputs, but decoding="
                f"{given.decoding!r} leaves them free; use another credit"
            )
    return architecture


def _checked_hidden(given):
    sizes = given.hidden
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(
            "hidden must be the sizes of the hidden layers, such as (100,) or (200, 100), or () for "
            f"none, got {sizes!r}"
        )
    sizes = tuple(_count(size, f"hidden[{number}]") for number, size in enumerate(sizes))
    bases = [
        None if getattr(given, name) is None else as_basis(getattr(given, name), name)
        for name in ("hidden_basis", "hidden_feedback")
    ]
    return HiddenLayers(sizes, *(bases if sizes else (None, None)), get_credit(given.credit))


def _check_windows(given, architecture):
    """Raise if a basis of hidden neurons has lags that no presentation reaches."""
    bases = {"hidden_basis": given.hidden_basis, "hidden_feedback": given.hidden_feedback}
    n_steps, remedies = architecture.n_steps, {}
    if given.hidden_basis is None:
        name = "hidden_basis (by default the basis of the outputs)"
        bases[name] = architecture.make_basis()
        if given.basis is None:
            cause = "n_basis" if given.window is None else "window"
            remedies[name] = f"use {cause} of at most {n_steps}"
    for name, basis in bases.items():
        if basis is not None and basis.window > n_steps:
            remedy = remedies.get(name, f"use a basis of at most {n_steps} lags")
            raise ValueError(
                f"{name} has {basis.window} lags, but presentations have n_steps={n_steps}, so the later "
                f"lags have no effect; {remedy}, or longer presentations"
            )


def _checked_training(given, objective):
    check_random_state(given.random_state)
    check_random_state(given.start_state, "start_state")
    check_class_weight(given.class_weight)
    n_epochs = _count(given.n_epochs, "n_epochs")
    stops = flag(given.early_stopping, "early_stopping")
    return TrainingConfig(
        learning_rate=real(given.learning_rate, "learning_rate", 0, strict=True),
        n_epochs=n_epochs,
        batch_size=_count(given.batch_size, "batch_size"),
        schedule=get_schedule(given.learning_rate_schedule),
        n_averaged=_n_averaged(given.average, n_epochs, stops),
        weight_decay=real(given.weight_decay, "weight_decay", 0),
        clip_norm=None
        if given.clip_norm is None
        else real(given.clip_norm, "clip_norm (unless it is None)", 0, strict=True),
        adversarial=_checked_adversarial(given, objective),
        class_weight=given.class_weight,
        weight_scale=real(given.weight_scale, "weight_scale", 0, LARGEST),
        bias_init=_checked_bias_init(given.bias_init),
        random_state=given.random_state,
        start_state=given.start_state,
        early_stopping=stops,
        validation_fraction=real(
            given.validation_fraction, "validation_fraction", 0, strict=True, below=1
        ),
        n_iter_no_change=_count(given.n_iter_no_change, "n_iter_no_change"),
        tol=real(given.tol, "tol", 0),
    )


def _checked_bias_init(bias_init):
    if isinstance(bias_init, str) and bias_init in ("auto", "uniform"):
        return bias_init
    return real(bias_init, "bias_init (unless it is 'auto' or 'uniform')", -LARGEST, LARGEST)


def _checked_adversarial(given, objective):
    adversarial = get_adversarial(given.adversarial)
    if adversarial is None:
        return None
    if not objective.clamps_outputs:
        raise ValueError(
            "adversarial needs an objective that clamps the outputs, since others have no "
            f"log-likelihood to attack, but decoding={given.decoding!r} leaves them free; "
            "use adversarial=None"
        )
    if given.hidden and get_credit(given.credit).takes_reward:
        raise ValueError(
            f"adversarial needs a gradient in the spikes, but credit={given.credit!r} learns from "
            "a reward; use credit='straight-through', or adversarial=None"
        )
    return adversarial


def _n_averaged(average, n_epochs, stops):
    """Return the number of last epochs over which `fit` averages the parameters."""
    if isinstance(average, str) and average == "auto":
        fraction = 0.0 if stops else _AUTOMATIC_AVERAGE
    else:
        fraction = real(average, "average (unless it is 'auto')", 0, 1)
        if stops and fraction:
            raise ValueError(
                "average must be 'auto' or 0 with early_stopping=True, which keeps the parameters of the "
                f"best epoch, got {average}"
            )
    # Rounded up; but a product may be just above an integer: 0.28 * 25 is 7.000000000000001.
    return math.ceil(round(fraction * n_epochs, 6))


def _count(value, name):
    """Return a positive integer that fits the types used in C++, or raise."""
    return integer(integer(value, name), name, 1, LARGEST_INTEGER)
