"""Small checks that fits and populations share."""

from collections.abc import Mapping, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..brian.neurons import named_kernels
from ..core.bases import Basis


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


def inputs_of(inputs: Any, kernels: Mapping[str, Basis]) -> dict[str, Any]:
    """Return the input of each of the `kernels`; a dict may hold the inputs of other models, too."""
    if isinstance(inputs, dict) and set(inputs) > set(kernels):
        return {name: inputs[name] for name in kernels}
    if inputs is not None and not isinstance(inputs, dict) and not kernels:
        raise ValueError(
            "inputs must be left out, or be a dict by name of kernel, if there are no kernels: write "
            'inputs={"stimulus": x} to give the same inputs to models with and without this kernel'
        )
    return by_kernel(inputs, "inputs", kernels)


def require_steps(array: Sized, name: str) -> None:
    """Raise if `array` has no rows."""
    if len(array) == 0:
        raise ValueError(f"{name} must have at least one step")


def rates_within_bounds(counts: NDArray[Any], n_steps: int) -> NDArray[np.float64]:
    """Return rates in spikes a step from the numbers of spikes, above 0 and below 1.

    A neuron without spikes counts as if it had half a spike, one without silence as if it had
    half a silent step.
    """
    return np.clip(counts, 0.5, n_steps - 0.5) / n_steps
