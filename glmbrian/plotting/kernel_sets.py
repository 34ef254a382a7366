"""The kernels to draw, from classifiers, synapses, populations or plain arrays."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..classifier.classifier import GLMClassifier
from ..classifier.fitted_state import HiddenLayer
from ..core.bases import Basis
from ..population.population import GLMPopulation
from ..population.stability import COUPLING
from ..support.validation import choice, finite_array, integer
from .style import milliseconds, plain

if TYPE_CHECKING:
    from brian2 import Quantity


_INPUT, _NEURON = "input", "source neuron"


@dataclass(frozen=True)
class KernelSet:
    """Kernels, and the names of their axes.

    values : ndarray of float, shape (n_sources, n_targets, window)
    step : duration of a lag in ms, or None for lags in steps
    classes : labels of the targets, or None for targets identified by their index
    name : name of the kernel in a population, or None
    source : what a source is called
    errors : standard errors of the values, or None if they are not known
    left_out : masks of the values that the scale ignores, by the reason
    """

    values: np.ndarray
    step: float | None
    classes: list | None = None
    name: str | None = None
    source: str = _NEURON
    errors: np.ndarray | None = None
    left_out: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def target(self) -> str:
        if self.classes is not None:
            return "class"
        return "target neuron" if self.source == _NEURON else "neuron"

    def index(self, output: Any) -> int:
        """Return the index of a target, by default the first."""
        if output is None:
            return 0
        if self.classes is None:
            return integer(output, "output", 0, self.values.shape[1] - 1)
        if output not in self.classes:
            raise ValueError(f"output must be one of the classes {self.classes}, got {output!r}")
        return self.classes.index(output)

    def title(self, index: int) -> str:
        named = "" if self.name is None else f", {self.name}"
        return plain(f"{self.target} {index if self.classes is None else self.classes[index]}{named}")

    def image_shape(self, shape: tuple[int, ...] | None) -> tuple[int, ...] | None:
        """Return (rows, columns), or None if the sources do not form an image."""
        n_sources = len(self.values)
        if shape is None:
            # The inputs of a classifier are often an image; other sources are neurons.
            return square(n_sources) if self.source == _INPUT else None
        try:
            sizes = tuple(integer(size, "shape") for size in shape)
        except (TypeError, ValueError):
            sizes = ()
        if len(sizes) not in (1, 2) or math.prod(sizes) != n_sources:
            raise ValueError(
                f"shape must be (rows, columns) with {n_sources} inputs in all, or ({n_sources},) "
                f"for inputs that do not form an image, got {shape!r}"
            )
        return sizes if len(sizes) == 2 else None

    def at(self, lag: int | None) -> tuple[np.ndarray, str]:
        """Return the kernels at one lag or summed over all, shape (n_sources, n_targets),
        and a label for them."""
        if lag is None:
            return self.values.sum(axis=-1), "kernel, summed over lags"
        lag = integer(lag, "lag", 1, self.values.shape[-1])
        when = f"{lag} [steps]" if self.step is None else f"{lag * self.step:g} ms"
        return self.values[..., lag - 1], f"kernel at lag {when}"


def square(n_sources: int) -> tuple[int, int] | None:
    """Return the shape of a square image with so many pixels, or None if there is none."""
    side = math.isqrt(n_sources)
    return (side, side) if side**2 == n_sources and side > 1 else None


def kernel_set(model: Any, dt: "Quantity | None", kernel: str | None = None) -> KernelSet:
    """Return the `KernelSet` of a fitted classifier, of an object with kernels, or of an array.

    Of a population it is the kernel named `kernel`, by default the first.
    """
    step = milliseconds(dt)
    if isinstance(model, GLMPopulation):
        if not model.kernels:
            raise ValueError("model: this population has no kernels from inputs")
        name = next(iter(model.kernels)) if kernel is None else kernel
        choice(name, "kernel", tuple(model.kernels))
        values = _not_empty(model.kernel(name))
        known = getattr(model, "known_standard_errors", None)
        errors = None if known is None else known.kernel(name)
        # Only coupling comes from neurons; other inputs go by the name of their kernel.
        source = _NEURON if name == COUPLING else name
        step = step or milliseconds(model.dt)
        return KernelSet(values, step, None, name, source, errors, left_out(model, name))
    if kernel is not None:
        raise ValueError(
            "kernel must be left out unless model is a GLMPopulation, whose kernels have names"
        )
    if isinstance(model, GLMClassifier):
        check_is_fitted(model, "weights_")
        values = model.basis_.kernels(model.weights_)
        source = "hidden neuron" if model.hidden_layers_ else _INPUT
        return KernelSet(values, step, model.classes_.tolist(), source=source)
    values = model
    if callable(getattr(model, "kernels", None)) and not isinstance(model, Basis):
        values, step = model.kernels(), step or clock_step(getattr(model, "target", model))
    if not isinstance(values, np.ndarray):
        raise TypeError(
            "model must be a fitted GLMClassifier, GLMSynapses, a GLMPopulation, one of a classifier's "
            f"hidden_layers_, or an array of kernels of shape (n_source, n_target, window), got {model!r}"
        )
    values = finite_array(values, "model (an array of kernels)", ("n_source", "n_target", "window"))
    return KernelSet(_not_empty(values), step)


def feedback_kernels(
    model: Any, dt: "Quantity | None"
) -> tuple[np.ndarray, float | None, str, Sequence]:
    """Return kernels of shape (n, window), the duration of a lag in ms or None, what a row is,
    and the names of the rows."""
    step = milliseconds(dt)
    if isinstance(model, GLMClassifier):
        check_is_fitted(model, "weights_")
        return model.basis_.kernels(model.feedback_), step, "class", model.classes_.tolist()
    values = model
    if callable(getattr(model, "feedback_kernels", None)):
        if getattr(model, "feedback_basis", model) is None:
            how = "create it with feedback_basis=basis"
            if isinstance(model, HiddenLayer):
                how = "train the classifier with hidden_feedback=basis"
            raise ValueError(f"model has no feedback kernels: {how}")
        values, step = model.feedback_kernels(), step or clock_step(model)
    if not isinstance(values, np.ndarray):
        raise TypeError(
            "model must be a fitted GLMClassifier, GLMNeurons, a GLMPopulation, or an array of "
            f"feedback kernels of shape (n, window), got {model!r}"
        )
    values = finite_array(values, "model (an array of feedback kernels)", ("n", "window"))
    return _not_empty(values), step, "neuron", range(len(values))


def feedback_errors(model: Any) -> np.ndarray | None:
    """Return the standard errors of a model's feedback kernels, or None if they are not known."""
    known = getattr(model, "known_standard_errors", None)
    return None if known is None else known.feedback_kernels()


def left_out(model: Any, name: str) -> dict[str, np.ndarray]:
    """Return masks of the values of a fitted kernel, or of the "feedback", that mean little, by the reason."""
    report = getattr(model, "fit_", None)
    reasons = {"unbounded": "unbounded", "undetermined_lags": "not determined by the data"}
    masks = {why: getattr(report, kind, {}).get(name) for kind, why in reasons.items()}
    return {why: mask for why, mask in masks.items() if mask is not None and mask.any()}


def clock_step(group: Any) -> float | None:
    """Return the time step in ms of a group or a population, or None if it has none."""
    clock = getattr(group, "clock", group)
    return milliseconds(getattr(clock, "dt", None))


def _not_empty(values):
    if values.size == 0:
        raise ValueError(f"model must hold at least one kernel, got shape {values.shape}")
    return values
