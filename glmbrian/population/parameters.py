"""The parameters of a population, as plain data."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..brian.neurons import named_kernels
from ..brian.time_steps import time_step
from ..core.activations import Activation, get_activation
from ..core.bases import Basis, IndicatorBasis, as_basis
from ..support.validation import finite_array
from .observations import Bernoulli, Observations

#: What the constraint of stability is called in `moved_by`.
STABILITY = "the constraint of stability"


@dataclass(frozen=True, eq=False)
class PopulationParameters:
    """What a `GLMPopulation` consists of: functions go from it, and from data, to results.

    Attributes
    ----------
    bias : ndarray of float, shape (n,)
    kernels : dict of str to Basis
    weights : dict of str to ndarray of float, shape (n_source, n, n_basis)
    feedback_basis : Basis or None
    feedback_weights : ndarray of float, shape (n, n_basis), or None
    observations : Observations
        What is recorded, given the membrane potential.
    dt : Quantity or None
        Duration of a step; None if it is unknown.
    moved_by : str or None
        What keeps the parameters of a fit away from the maximum of the likelihood.
    """

    bias: NDArray[np.float64]
    kernels: dict[str, Basis]
    weights: dict[str, NDArray[np.float64]]
    feedback_basis: Basis | None
    feedback_weights: NDArray[np.float64] | None
    observations: Observations
    dt: Quantity | None
    moved_by: str | None = None

    @property
    def n(self) -> int:
        """Number of neurons."""
        return self.bias.size

    @property
    def activation(self) -> Activation:
        """The firing probability; raises a ValueError if what is recorded are not spikes."""
        if not isinstance(self.observations, Bernoulli):
            raise ValueError(
                f"this population has no firing probability, since it was fitted to {self.observations.name!r} "
                "observations and not to spikes"
            )
        return self.observations.activation

    def copy(self) -> "PopulationParameters":
        """Return the same with copies of all arrays."""
        own = self.feedback_weights
        return replace(
            self,
            bias=self.bias.copy(),
            weights={name: weights.copy() for name, weights in self.weights.items()},
            feedback_weights=None if own is None else own.copy(),
        )

    def require_maximum(
        self, what: str, name: str = "this population", error: type[Exception] = ValueError
    ) -> None:
        """Raise an error if the parameters are not at the maximum of the likelihood, as `what` takes for granted."""
        if self.moved_by is not None:
            raise error(
                f"{name} has no {what}, since it was fitted with {self.moved_by}, which moves parameters away from "
                "the maximum of the likelihood. Fit again without it (with connect= to keep only the pairs that it "
                "has found), or compare by score on steps that the fit has not seen"
            )

    def connections(self) -> dict[str, NDArray[np.bool_]]:
        """Return by kernel which pairs have weights other than 0, shape (n_source, n)."""
        return {name: (weights != 0).any(axis=2) for name, weights in self.weights.items()}

    def n_parameters(self) -> NDArray[np.int_]:
        """Return the number of parameters of each neuron, shape (n,)."""
        counts = np.ones(self.n, dtype=int)
        for name, connected in self.connections().items():
            counts += self.kernels[name].n_basis * connected.sum(axis=0)
        return counts + (0 if self.feedback_basis is None else self.feedback_basis.n_basis)


def checked_parameters(
    bias: ArrayLike,
    kernels: Basis | Mapping[str, Basis],
    weights: ArrayLike | Mapping[str, ArrayLike],
    feedback_basis: Basis | None,
    feedback_weights: ArrayLike | None,
    activation: str | Activation,
    dt: Quantity | None,
) -> PopulationParameters:
    """Return copies of the arguments of `GLMPopulation`, checked."""
    bias = finite_array(bias, "bias", ("n",)).copy()
    if bias.size == 0:
        raise ValueError("bias must have at least one entry")
    kernels = kernels_by_name(kernels)
    given = by_kernel(weights, "weights", kernels)
    checked = {
        name: finite_array(
            given[name], f"weights[{name!r}]", ("n_source", bias.size, basis.n_basis)
        ).copy()
        for name, basis in kernels.items()
    }
    if (feedback_basis is None) != (feedback_weights is None):
        raise ValueError("feedback_basis and feedback_weights must be given together")
    own = None
    if feedback_basis is not None:
        as_basis(feedback_basis, "feedback_basis")
        shape = (bias.size, feedback_basis.n_basis)
        own = finite_array(feedback_weights, "feedback_weights", shape).copy()
    observations = Bernoulli(get_activation(activation))
    return PopulationParameters(
        bias, kernels, checked, feedback_basis, own, observations, time_step(dt)
    )


def of_kernels(
    bias: ArrayLike,
    kernels: Any,
    feedback: ArrayLike | None,
    activation: str | Activation,
    dt: Quantity | None,
) -> PopulationParameters:
    """Return the parameters of a population with kernels given by their values; see `GLMPopulation.from_kernels`."""
    n = len(finite_array(bias, "bias", ("n",)))

    def checked(values, name, shape):
        values = finite_array(values, name, shape)
        if values.shape[-1] == 0:
            raise ValueError(f"{name} must have at least one lag, got the shape {values.shape}")
        return values

    by_name = kernels if isinstance(kernels, dict) else {"stimulus": kernels}
    weights = {
        name: checked(values, f"kernels[{name!r}]", ("n_source", n, "window"))
        for name, values in by_name.items()
    }
    bases = {name: IndicatorBasis(values.shape[2]) for name, values in weights.items()}
    own = None if feedback is None else checked(feedback, "feedback", (n, "window"))
    own_basis = None if own is None else IndicatorBasis(own.shape[1])
    return checked_parameters(bias, bases, weights, own_basis, own, activation, dt)


def kernels_by_name(kernels: Any) -> dict[str, Basis]:
    """Return kernels as a dict, which may be empty."""
    return {} if isinstance(kernels, dict) and not kernels else named_kernels(kernels)


def by_kernel(values: Any, name: str, kernels: Mapping[str, Basis]) -> dict[str, Any]:
    """Return `values` as a dict with an entry for each of the `kernels`.

    If there is one kernel, they may be given without its name.
    """
    if values is None and not kernels:
        return {}
    if not isinstance(values, dict):
        if not kernels:
            raise ValueError(f"{name} must be left out, or be {{}}, if there are no kernels")
        if len(kernels) > 1:
            raise TypeError(f"{name} must be a dict with the keys {list(kernels)}")
        return {next(iter(kernels)): values}
    if set(values) != set(kernels):
        raise ValueError(f"{name} must have the keys {list(kernels)}, got {list(values)}")
    return values
