"""Recorded data, checked: what fits read, and what judges them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import Quantity, second
from numpy.typing import ArrayLike, NDArray

from ..brian.arguments import seconds
from ..brian.time_steps import in_steps
from ..core.bases import Basis
from ..support.validation import integer, plain_array
from .data import inputs_of
from .design import Design
from .series import EventSeries, Series, as_series, check_trains, largest_values

if TYPE_CHECKING:
    from .population import GLMPopulation

#: How far a time may be from a multiple of the step, in steps.
_STEP_ROUNDING = 1e-3


@dataclass(frozen=True)
class Recorded:
    """Recorded data of matching shapes, wherever they are kept; their values are not checked yet.

    Attributes
    ----------
    inputs : dict of str to Series
    outputs : Series
    dt : Quantity or None
    epochs : list of (int, int)
        Sorted; the first step of each and the step after its last one.
    mask : ndarray of bool, shape (T,), or None
        The steps that count within the epochs; all if None.
    """

    inputs: dict[str, Series]
    outputs: Series
    dt: Quantity | None
    epochs: list[tuple[int, int]]
    mask: NDArray[np.bool_] | None

    @property
    def n_steps(self) -> int:
        """Number of steps, T."""
        return self.outputs.n_steps

    def counted(self) -> NDArray[np.bool_] | None:
        """Return which steps count, shape (T,); None if all do."""
        if self.epochs == [(0, self.n_steps)]:
            return self.mask
        counted = np.zeros(self.n_steps, dtype=bool)
        for start, stop in self.epochs:
            counted[start:stop] = True if self.mask is None else self.mask[start:stop]
        return counted


def recorded(
    outputs: Any,
    inputs: Any,
    kernels: Mapping[str, Basis],
    dt: Quantity | None,
    mask: ArrayLike | None = None,
    epochs: Sequence[tuple[Any, Any]] | None = None,
    n: int | str = "n",
    n_sources: Mapping[str, int] | None = None,
    may_have_gaps: bool = False,
) -> Recorded:
    """Return recorded data as series of one length.

    Parameters
    ----------
    outputs, inputs, kernels, dt, mask, epochs
        As for `fit_population`.  Outputs may be None if there are inputs and `n` is a number; then
        no neuron spikes.
    n : int or str
        The number of neurons, or its name if any number is allowed.
    n_sources : dict of str to int, optional
        The number of sources of each kernel; any by default.
    may_have_gaps : bool
        Whether data with times may have rows in unequal steps; with `mask` or `epochs` they always
        may.
    """
    given = inputs_of(inputs, kernels)
    labels = {name: f"inputs[{name!r}]" for name in kernels}
    data = {labels[name]: given[name] for name in kernels}
    if outputs is not None:
        data["outputs"] = outputs
    elif not kernels:
        raise ValueError("outputs are needed if there are no inputs, to know the number of steps")
    may_have_gaps = may_have_gaps or mask is not None or epochs is not None
    arrays, dt = in_steps(data, dt, may_have_gaps, as_events=True)
    n_steps: Any = "T"
    series: dict[str, Series] = {}
    for name, label in labels.items():
        n_source = "n_source" if n_sources is None else n_sources[name]
        series[name] = as_series(arrays[label], label, n_steps, n_source)
        n_steps = series[name].n_steps
    if outputs is None:
        trains: Series = EventSeries([np.empty(0, dtype=np.int64)] * int(n), n_steps)
    else:
        trains = as_series(arrays["outputs"], "outputs", n_steps, n)
    starts = [float(value.t_start) for value in data.values() if hasattr(value, "t_start")]
    counted = checked_mask(mask, trains.n_steps)
    parts = checked_epochs(epochs, trains.n_steps, dt, starts[0] if starts else 0.0)
    if counted is not None and not any(counted[start:stop].any() for start, stop in parts):
        raise ValueError("mask must leave at least one step of the epochs")
    return Recorded(series, trains, dt, parts, counted)


def read(
    population: "GLMPopulation",
    outputs: Any,
    inputs: Any = None,
    mask: ArrayLike | None = None,
    epochs: Sequence[tuple[Any, Any]] | None = None,
) -> Design:
    """Return the design matrix of recorded data for the parameters of a population.

    Parameters
    ----------
    population : GLMPopulation
    outputs, inputs, mask, epochs
        As for `fit_population`.
    """
    if outputs is None:
        raise TypeError(f"outputs must be an array of the shape (T, {population.n}), got None")
    sizes = {name: len(weights) for name, weights in population.weights.items()}
    return design_of(
        population,
        recorded(outputs, inputs, population.kernels, population.dt, mask, epochs, population.n, sizes),
    )


def design_of(population: "GLMPopulation", data: Recorded) -> Design:
    """Return the design matrix for the parameters of a population, and check the values of the data."""
    largest = {name: largest_values(x, f"inputs[{name!r}]") for name, x in data.inputs.items()}
    check_trains(data.outputs, "outputs")
    design = Design(
        data.inputs,
        population.kernels,
        data.outputs,
        population.feedback_basis,
        data.epochs,
        data.mask,
        largest=largest,
    )
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = np.abs(design.parameters_of(population)) @ design.largest
    if not np.all(np.isfinite(bounds)):
        raise ValueError("inputs are too large: some potentials are not finite; use smaller inputs")
    return design


def checked_mask(mask: ArrayLike | None, n_steps: int) -> NDArray[np.bool_] | None:
    """Return a mask of steps as an array, or None for all steps."""
    if mask is None:
        return None
    counted = plain_array(mask, "mask", "bool")
    if counted.dtype != bool or counted.shape != (n_steps,):
        raise ValueError(
            f"mask must be an array of bool of the shape ({n_steps},), got {counted.dtype} of "
            f"{counted.shape}"
        )
    if not counted.any():
        raise ValueError("mask must leave at least one step")
    return counted


def checked_epochs(
    epochs: Sequence[tuple[Any, Any]] | None, n_steps: int, dt: Quantity | None, t_start: float = 0.0
) -> list[tuple[int, int]]:
    """Return epochs as sorted pairs of steps.

    Parameters
    ----------
    epochs : sequence of (start, stop), or None
        In steps, or times if the step `dt` is known; None for all steps.
    n_steps : int
    dt : Quantity or None
    t_start : float
        The time of the first step, in seconds.
    """
    if epochs is None:
        return [(0, n_steps)]
    try:
        pairs = [tuple(pair) for pair in epochs]
    except TypeError:
        pairs = []
    if isinstance(epochs, str) or any(len(pair) != 2 for pair in pairs):
        pairs = []
    if not pairs:
        raise ValueError(f"epochs must be one or more pairs (start, stop), got {epochs!r}")
    steps = []
    for number, pair in enumerate(pairs):
        name = f"epochs[{number}]"
        start, stop = (_as_step(value, name, dt, t_start) for value in pair)
        if not 0 <= start < stop <= n_steps:
            raise ValueError(
                f"{name} must begin at step 0 or later, and end after its beginning, by step {n_steps} "
                f"(the end of the data); got {start} to {stop}"
            )
        steps.append((start, stop, number))
    steps.sort()
    for (_, stop, earlier), (start, _, later) in zip(steps[:-1], steps[1:]):
        if start < stop:
            raise ValueError(
                f"epochs must not overlap, but epochs[{earlier}] ends at step {stop} and "
                f"epochs[{later}] begins at step {start}"
            )
    return [(start, stop) for start, stop, _ in steps]


def _as_step(value, name, dt, t_start):
    if not isinstance(value, Quantity):
        return integer(value, f"{name}: start and stop", -(2**62))
    if dt is None:
        raise ValueError(f"{name} has times, so dt must be given: the duration of a step, such as 1*ms")
    step = (float(seconds(value, name)) - t_start) / float(dt)
    if abs(step - round(step)) > _STEP_ROUNDING:
        raise ValueError(
            f"{name} must begin and end with a step of {dt}, counted from {t_start * second}, got {value}"
        )
    return round(step)
