"""Recorded data and kernels by name: the checks that fits and populations share."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..brian.neurons import named_kernels
from ..brian.time_steps import in_steps
from ..core.bases import Basis
from ..support.validation import binary_array, finite_array, plain_array


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


def checked_data(
    inputs: Any,
    outputs: Any,
    kernels: Mapping[str, Basis],
    n_sources: Mapping[str, int | str],
    n: int | str,
    dt: Quantity | None,
    has_mask: bool,
) -> tuple[dict[str, NDArray[np.float64]], Any, int, Quantity | None]:
    """Return recorded data as arrays: inputs by name, outputs or None, T, and their step.

    `n_sources` gives the number of sources of each kernel, and `n` the number of neurons; or
    the names of these sizes, if any size is allowed.  For `dt` and `has_mask` see `in_steps`.
    """
    inputs = by_kernel(inputs, "inputs", kernels)
    labels = {name: f"inputs[{name!r}]" for name in kernels}
    series = {labels[name]: inputs[name] for name in kernels}
    if outputs is not None:
        series["outputs"] = outputs
    elif not kernels:
        raise ValueError("outputs are needed if there are no inputs, to know the number of steps")
    arrays, dt = in_steps(series, dt, has_mask)
    n_steps: Any = "T"
    checked = {}
    for name, label in labels.items():
        checked[name] = finite_array(arrays[label], label, (n_steps, n_sources[name]))
        n_steps = len(checked[name])
        require_steps(checked[name], label)
    if outputs is not None:
        outputs = binary_array(arrays["outputs"], "outputs", (n_steps, n))
        n_steps = len(outputs)
        require_steps(outputs, "outputs")
    return checked, outputs, n_steps, dt


def checked_mask(mask: ArrayLike | None, n_steps: int) -> slice | NDArray[np.bool_]:
    """Return a mask of steps as an index of rows."""
    if mask is None:
        return slice(None)
    counted = plain_array(mask, "mask", "bool")
    if counted.dtype != bool or counted.shape != (n_steps,):
        raise ValueError(
            f"mask must be an array of bool of the shape ({n_steps},), got {counted.dtype} of "
            f"{counted.shape}"
        )
    if not counted.any():
        raise ValueError("mask must leave at least one step")
    return counted


def require_steps(array: np.ndarray, name: str) -> None:
    """Raise if `array` has no rows."""
    if len(array) == 0:
        raise ValueError(f"{name} must have at least one step")


def rates_within_bounds(counts: NDArray[Any], n_steps: int) -> NDArray[np.float64]:
    """Return rates in spikes a step from the numbers of spikes, above 0 and below 1.

    A neuron without spikes counts as if it had half a spike, one without silence as if it had
    half a silent step.
    """
    return np.clip(counts, 0.5, n_steps - 0.5) / n_steps
