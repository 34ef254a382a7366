"""Recorded data in blocks of steps, so that what is computed from them needs little memory."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..brian.time_steps import in_steps
from ..core.bases import Basis
from ..core.likelihoods import filtered_in_chunks, potential_of_inputs, potential_of_outputs
from ..support.validation import binary_array, check_shape, finite_array, plain_array
from .data import by_kernel, checked_mask, require_steps

if TYPE_CHECKING:
    from .population import GLMPopulation

#: Number of steps in a block.
BLOCK = 2**13


@dataclass(frozen=True)
class Block:
    """Some steps of recorded data, and those before them that kernels still see.

    start : first step of the block
    counted : which of its steps count, as an index of rows
    n_before : number of rows of `inputs` and `outputs` before the first step
    inputs : by kernel, shape (n_before + steps, n_source)
    outputs : shape (n_before + steps, n)
    """

    start: int
    counted: slice | NDArray[np.bool_]
    n_before: int
    inputs: dict[str, NDArray[np.float64]]
    outputs: NDArray[np.uint8]

    @property
    def spikes(self) -> NDArray[np.uint8]:
        """The outputs in the steps that count."""
        return self.outputs[self.n_before :][self.counted]

    @property
    def steps(self) -> NDArray[np.int_]:
        """The numbers of the steps that count."""
        return self.start + np.arange(len(self.outputs) - self.n_before)[self.counted]

    def potential(self, population: "GLMPopulation") -> NDArray[np.float64]:
        """Return the membrane potentials in the steps that count, shape (steps, n)."""
        u = population.bias + self.potential_of(population, population.kernels)
        if population.feedback_basis is not None:
            v: Any = population.feedback_weights  # not None, since there is a basis
            fed_back = potential_of_outputs(self.outputs, population.feedback_basis.matrix, v)
            u += fed_back[self.n_before :][self.counted]
        return u

    def potential_of(self, population: "GLMPopulation", names: Iterable[str]) -> NDArray[np.float64]:
        """Return what some kernels add to the potentials in the steps that count."""
        n_targets = population.n
        u = np.zeros((len(self.outputs), n_targets))
        with np.errstate(over="ignore", invalid="ignore"):
            for name in names:
                basis, weights = population.kernels[name], population.weights[name]
                u += potential_of_inputs(self.inputs[name], basis.matrix, weights, np.zeros(n_targets))
        if not np.all(np.isfinite(u)):
            raise ValueError("inputs are too large: some potentials are not finite; use smaller inputs")
        return u[self.n_before :][self.counted]

    def columns(self, population: "GLMPopulation", names: Iterable[str]) -> NDArray[np.float64]:
        """Return what the bias and the weights of some kernels are multiplied by.

        A one, then for each kernel, source and basis function the input filtered by it.
        """
        kernels = [self.filtered(self.inputs[name], population.kernels[name]) for name in names]
        return np.hstack([np.ones((len(self.steps), 1)), *kernels])

    def own_columns(self, population: "GLMPopulation", neuron: int) -> NDArray[np.float64]:
        """Return what the feedback weights of a neuron are multiplied by."""
        if population.feedback_basis is None:
            return np.empty((len(self.steps), 0))
        return self.filtered(self.outputs[:, [neuron]], population.feedback_basis)

    def filtered(self, series: np.ndarray, basis: Basis) -> NDArray[np.float64]:
        """Return each column of a series of this block filtered by each function of a basis.

        Shape (steps that count, N * n_basis), from (n_before + steps, N).
        """
        columns = [
            filtered_in_chunks(series, lambda part: part[np.newaxis], basis.matrix[:, [k]])
            for k in range(basis.n_basis)
        ]
        stacked = np.stack(columns, axis=2)[self.n_before :][self.counted]
        return stacked.reshape(len(stacked), -1)


@dataclass(frozen=True)
class Recorded:
    """Checked data of a population: arrays with a row per step, and the steps that count."""

    inputs: Mapping[str, np.ndarray]
    outputs: np.ndarray
    rows: slice | NDArray[np.bool_]
    longest: int

    @property
    def n_counted(self) -> int:
        """Number of steps that count."""
        return len(self.outputs) if isinstance(self.rows, slice) else int(self.rows.sum())

    def blocks(self) -> Iterator[Block]:
        """Yield the data by blocks; blocks of which no step counts are left out."""
        for start in range(0, len(self.outputs), BLOCK):
            counted = self.rows if isinstance(self.rows, slice) else self.rows[start : start + BLOCK]
            if not isinstance(counted, slice) and not counted.any():
                continue
            first = max(0, start - self.longest)
            part = slice(first, start + BLOCK)
            yield Block(
                start,
                counted,
                start - first,
                {name: np.asarray(x[part], dtype=float) for name, x in self.inputs.items()},
                np.asarray(self.outputs[part]).astype(np.uint8),
            )


def recorded(
    population: "GLMPopulation", outputs: Any, inputs: Any = None, mask: ArrayLike | None = None
) -> Recorded:
    """Return data for a population, after the checks of `GLMPopulation.log_likelihood`."""
    if outputs is None:
        raise TypeError(f"outputs must be an array of the shape (T, {population.n}), got None")
    inputs = by_kernel(inputs, "inputs", population.kernels)
    labels = {name: f"inputs[{name!r}]" for name in population.kernels}
    series = {labels[name]: inputs[name] for name in labels} | {"outputs": outputs}
    arrays, _ = in_steps(series, population.dt, mask is not None)
    n_steps: Any = "T"
    checked = {}
    for name, label in labels.items():
        shape = (n_steps, len(population.weights[name]))
        checked[name] = _checked(arrays[label], label, shape, finite_array)
        n_steps = len(checked[name])
    trains = _checked(arrays["outputs"], "outputs", (n_steps, population.n), binary_array)
    bases = [*population.kernels.values(), population.feedback_basis]
    longest = max((basis.window for basis in bases if basis is not None), default=0)
    return Recorded(checked, trains, checked_mask(mask, len(trains)), longest)


def _checked(value, name, shape, check):
    """Return `value` as an array whose blocks pass a check, without converting all of it."""
    array = plain_array(value, name)
    check_shape(array, name, shape)
    require_steps(array, name)
    for start in range(0, len(array), BLOCK):
        check(array[start : start + BLOCK], name)
    return array
