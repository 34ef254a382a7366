"""The design matrix of a recording, in blocks of steps.

It has a row for each step, with a 1 for the bias and, for each function of each kernel and each
source, the series of the source filtered by the function.  For an hour of a hundred neurons it would
take tens of gigabytes, so no more than a few blocks of rows exist at a time.  All neurons share
these columns.  A neuron's own columns, its train filtered by the feedback basis, are kept apart.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.typing import NDArray

from ..core.bases import Basis
from .parameters import PopulationParameters
from .recorded import RecordedData
from .series import Series

#: About how many values a block of rows has: a few blocks fit in the caches.
_VALUES_IN_BLOCK = 2**19

#: Up to this many values, the matrix of a stretch fits in a core's own cache.  A larger one pays off only
#: with more than a few sources, which share each read.
_VALUES_IN_CACHE, _FEW_SOURCES = 2**18, 16

#: The cost of an elementary function for each potential, in additions and multiplications.
_FUNCTION_COST = 400

#: The least and most rows of a block.
_FEWEST_ROWS, _MOST_ROWS = 2**9, 2**14


@dataclass(frozen=True)
class Rows:
    """A block of rows of the design matrix, for some of the neurons.

    Attributes
    ----------
    common : ndarray of float, shape (n_rows, n_common)
        The columns that all neurons share; the first is 1.
    own : ndarray of float, shape (n_rows, n_own, n_neurons), or None
        The columns that belong to one neuron each.
    spikes : ndarray of bool, or of counts, shape (n_rows, n_neurons)
        The recorded trains.
    """

    common: NDArray[np.float64]
    own: NDArray[np.float64] | None
    spikes: NDArray[Any]


class Filter:
    """Filters series by the functions of a basis.

    Parameters
    ----------
    basis : Basis
    """

    def __init__(self, basis: Basis) -> None:
        self.window, self.n_basis = basis.matrix.shape
        # Rows are the steps of a window, in the order of time.
        self._functions = np.ascontiguousarray(basis.matrix[::-1])
        self._are_single_lags = bool((np.count_nonzero(basis.matrix, axis=0) == 1).all())
        # Short stretches need fewer multiplications, long ones fewer matrix products.
        self._stretch = int(np.clip(self.window // 4, 8, 64))

    def __call__(
        self, series: Series, first: int, start: int, stop: int, units: Any = slice(None)
    ) -> NDArray[np.float64]:
        """Return some units of a series filtered, from `start` up to `stop`, shape (n_steps, n_basis, n_units).

        Nothing before the step `first` has an effect.
        """
        n_steps, before = stop - start, min(self.window, start - first)
        if series.n_units == 0 or np.size(units) == 0:
            return np.zeros((n_steps, self.n_basis, 0))
        seen = series.read(start - before, stop - 1)[:, units]
        n = seen.shape[1]
        n_stretches = -(-n_steps // self._stretch)
        padded = np.zeros((n_stretches * self._stretch + self.window - 1, n))
        padded[self.window - before : self.window - before + len(seen)] = seen
        if self._are_single_lags:
            return self._by_copies(padded, n_steps)
        n_values = self._stretch * self.n_basis * (self._stretch + self.window - 1)
        if n <= _FEW_SOURCES and n_values > _VALUES_IN_CACHE:
            return self._by_windows(padded, n_steps)
        return self._by_stretches(padded, n_stretches)[:n_steps]

    def _by_copies(self, padded, n_steps):
        """Filter by functions that are 0 at all lags but one, as those of an `IndicatorBasis`."""
        filtered = np.empty((n_steps, self.n_basis, padded.shape[1]))
        for function, row in enumerate((self._functions != 0).argmax(axis=0)):
            value = self._functions[row, function]
            np.multiply(padded[row : row + n_steps], value, out=filtered[:, function])
        return filtered

    def _by_windows(self, padded, n_steps):
        """Multiply the window before each step by the functions, one source at a time."""
        filtered = np.empty((n_steps, self.n_basis, padded.shape[1]))
        for source, values in enumerate(np.ascontiguousarray(padded.T)):
            windows = sliding_window_view(values, self.window)[:n_steps]
            filtered[:, :, source] = np.ascontiguousarray(windows) @ self._functions
        return filtered

    def _by_stretches(self, padded, n_stretches):
        """Multiply stretches of steps, and the window before each, by one matrix."""
        n, length = padded.shape[1], self._stretch + self.window - 1
        row, column = padded.strides
        stretches = as_strided(
            padded, (n_stretches, length, n), (row * self._stretch, row, column), writeable=False
        )
        filtered = np.matmul(self._matrix_of_stretch, stretches)
        return filtered.reshape(n_stretches * self._stretch, self.n_basis, n)

    @cached_property
    def _matrix_of_stretch(self):
        matrix = np.zeros((self._stretch, self.n_basis, self._stretch + self.window - 1))
        for step in range(self._stretch):
            matrix[step, :, step : step + self.window] = self._functions.T
        return matrix.reshape(self._stretch * self.n_basis, -1)


class Design:
    """The design matrix of all neurons of a population, never held as a whole.

    Parameters
    ----------
    data : RecordedData
    kernels : dict of str to Basis
    feedback_basis : Basis or None
        Filters each neuron's own train into columns of its own.
    dtype : type
        Of the recorded trains.
    is_centred : bool
        Whether what constant inputs of the size of their `offsets` would contribute is subtracted from the
        columns, which changes only the meaning of the bias.
    """

    def __init__(
        self,
        data: RecordedData,
        kernels: Mapping[str, Basis],
        feedback_basis: Basis | None,
        dtype: type = bool,
        is_centred: bool = False,
    ) -> None:
        self.data, self.kernels, self.feedback_basis = data, dict(kernels), feedback_basis
        self.dtype, self.is_centred = dtype, is_centred
        self.n, self.n_rows = data.n, data.n_counted
        self._filters = {name: Filter(basis) for name, basis in kernels.items()}
        self._own_filter = None if feedback_basis is None else Filter(feedback_basis)
        self.n_own = 0 if feedback_basis is None else feedback_basis.n_basis
        #: For each kernel, where its columns are: shape (n_basis, n_source).
        self.columns: dict[str, NDArray[np.int64]] = {}
        self.n_common = 1
        for name, basis in kernels.items():
            shape = basis.n_basis, data.inputs[name].n_units
            self.columns[name] = self.n_common + np.arange(np.prod(shape)).reshape(shape)
            self.n_common += self.columns[name].size
        self.n_parameters = self.n_common + self.n_own
        self.centre = np.zeros(self.n_common)
        #: A bound on the absolute values of each column, shape (n_parameters,).
        self.largest = np.ones(self.n_parameters)
        for name, basis in kernels.items():
            columns = self.columns[name]
            if is_centred:
                self.centre[columns] = np.outer(basis.matrix.sum(axis=0), data.offsets[name])
            self.largest[columns] += np.abs(self.centre[columns])
            self.largest[columns] += np.outer(np.abs(basis.matrix).sum(axis=0), data.largest[name])
        if feedback_basis is not None:
            self.largest[self.n_common :] += np.abs(feedback_basis.matrix).sum(axis=0) * data.most
        self.blocks = list(self._split())

    def _split(self) -> Iterable[tuple[tuple[int, int, int], ...]]:
        """Yield blocks: for each segment the first step of its epoch, its start and its stop."""
        width = self.n_common + self.n_own * self.n
        length = int(np.clip(_VALUES_IN_BLOCK // width, _FEWEST_ROWS, _MOST_ROWS))
        block: list[tuple[int, int, int]] = []
        n_rows = 0
        for first, end in self.data.epochs:
            start = first
            while start < end:
                stop = min(end, start + length - n_rows)
                if self.data.mask is None or self.data.mask[start:stop].any():
                    block.append((first, start, stop))
                    n_rows += stop - start
                start = stop
                if n_rows == length:
                    yield tuple(block)
                    block, n_rows = [], 0
        if block:
            yield tuple(block)

    def cost_of_pass(self, n_neurons: int) -> float:
        """Return about how many operations a step of the log-likelihood of some neurons and its gradient takes."""
        windows = [basis.window for basis in self.kernels.values()]
        columns = self.n_common + n_neurons * self.n_own
        filtering = 2 * columns * (max(windows, default=8) + 16)
        return filtering + 4 * n_neurons * self.n_parameters + _FUNCTION_COST * n_neurons

    def rows(self, block: Iterable[tuple[int, int, int]], neurons: NDArray[np.int64]) -> Rows:
        """Return the rows of one of the `blocks` for some neurons."""
        block = tuple(block)
        n_rows = sum(stop - start for _, start, stop in block)
        common = np.empty((n_rows, self.n_common))
        common[:, 0] = 1.0
        own = None if self._own_filter is None else np.empty((n_rows, self.n_own, len(neurons)))
        spikes: NDArray[Any] = np.empty((n_rows, len(neurons)), dtype=self.dtype)
        row = 0
        for first, start, stop in block:
            rows = slice(row, row + stop - start)
            for name, basis_filter in self._filters.items():
                columns = self.columns[name]
                if columns.size:
                    place = slice(columns[0, 0], columns[-1, -1] + 1)
                    filtered = basis_filter(self.data.inputs[name], first, start, stop)
                    common[rows, place] = filtered.reshape(stop - start, -1)
            spikes[rows] = self.data.outputs.read(start, stop)[:, neurons]
            if own is not None:
                own[rows] = self._own_filter(self.data.outputs, first, start, stop, neurons)  # type: ignore[misc]
            row = rows.stop
        if self.centre.any():
            common -= self.centre
        if self.data.mask is not None:
            counted = np.concatenate([self.data.mask[start:stop] for _, start, stop in block])
            if not counted.all():
                common, spikes = common[counted], spikes[counted]
                own = None if own is None else own[counted]
        return Rows(common, own, spikes)

    def potential(self, rows: Rows, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the potential (n_rows, n_neurons) for parameters (n_neurons, n_parameters)."""
        u = rows.common @ parameters[:, : self.n_common].T
        if rows.own is not None:
            u += np.einsum("tkn,nk->tn", rows.own, parameters[:, self.n_common :])
        return u

    def gradient(self, rows: Rows, grad_u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient (n_neurons, n_parameters), given the one in the potential."""
        grad = np.empty((grad_u.shape[1], self.n_parameters))
        grad[:, : self.n_common] = (rows.common.T @ grad_u).T
        if rows.own is not None:
            grad[:, self.n_common :] = np.einsum("tkn,tn->nk", rows.own, grad_u)
        return grad

    def uncentred(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return parameters (n_neurons, n_parameters) for columns that are not centred."""
        parameters = parameters.copy()
        parameters[:, 0] -= parameters[:, : self.n_common] @ self.centre
        return parameters

    def parameters_of(self, population: PopulationParameters) -> NDArray[np.float64]:
        """Return the parameters (n, n_parameters) of a population, for columns that are not centred."""
        parameters = np.empty((self.n, self.n_parameters))
        parameters[:, 0] = population.bias
        for name, columns in self.columns.items():
            parameters[:, columns] = population.weights[name].transpose(1, 2, 0)
        if population.feedback_weights is not None:
            parameters[:, self.n_common :] = population.feedback_weights
        return parameters

    def by_name(
        self, parameters: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]], NDArray[np.float64] | None]:
        """Return parameters (n, n_parameters) as a population has them: bias, weights, feedback weights."""
        weights = {
            name: parameters[:, columns].transpose(2, 0, 1) for name, columns in self.columns.items()
        }
        return parameters[:, 0], weights, parameters[:, self.n_common :] if self.n_own else None

    def free(self, connected: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """Return which parameters (n, n_parameters) may differ from 0, given which pairs are connected.

        Kernels that are not in `connected` have no pairs.
        """
        free = np.zeros((self.n, self.n_parameters), dtype=bool)
        free[:, 0] = free[:, self.n_common :] = True
        for name, pairs in connected.items():
            free[:, self.columns[name]] = pairs.T[:, np.newaxis, :]
        return free

    def steps(self, block: Iterable[tuple[int, int, int]]) -> NDArray[np.int64]:
        """Return the step of each of the `rows` of a block."""
        steps = np.concatenate([np.arange(start, stop) for _, start, stop in block])
        return steps if self.data.mask is None else steps[self.data.mask[steps]]

    def counts(self) -> NDArray[Any]:
        """Return the number of spikes of each neuron in the rows."""
        counts: Any = np.zeros(self.n, dtype=np.int64)
        for block in self.blocks:
            for _, start, stop in block:
                spikes: NDArray[Any] = self.data.outputs.read(start, stop).astype(self.dtype)
                if self.data.mask is not None:
                    spikes = spikes[self.data.mask[start:stop]]
                counts = counts + spikes.sum(axis=0)
        return counts

    def with_mask(self, mask: NDArray[np.bool_]) -> "Design":
        """Return the same design with another mask of the steps that count."""
        data = replace(self.data, mask=mask)
        return Design(data, self.kernels, self.feedback_basis, self.dtype, self.is_centred)


def design_of(population: PopulationParameters, data: RecordedData) -> Design:
    """Return the design matrix for the parameters of a population; raise if these would overflow."""
    design = Design(data, population.kernels, population.feedback_basis, population.observations.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        bounds = np.abs(design.parameters_of(population)) @ design.largest
    if not np.all(np.isfinite(bounds)):
        raise ValueError("inputs are too large: some potentials are not finite; use smaller inputs")
    return design
