"""Directions of kernels about which the recorded inputs say nothing, or next to nothing.

A stimulus that varies slowly cannot tell kernels apart that differ only in fast oscillations.  Chance then
sets these in the fit, which predicts badly where the stimulus is faster.  A direction is called undetermined if
the inputs vary along it by far less than white noise of the same variance would, and by so little that
chance would move the potentials by one or more if the input were that noise.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.workers import Workers
from .design import Design
from .objective import total

#: The inputs vary along an undetermined direction by less than this fraction of what white noise would,
#: and the information about it is less than that of the second number of steps of Fisher weight 1.
_LEAST_VARIATION, _LEAST_INFORMATION = 1e-3, 1.0

#: Every so many-th block is looked at first.
_FIRST = 16

#: Eigenvalues of a basis below this fraction of the largest one are rounding.
_FLAT = 1e-10

#: A source whose variance is below this fraction of its mean square is constant.
_CONSTANT = 1e-13

#: A source belongs to a direction if it has this part of it.
_PART = 0.05


@dataclass(frozen=True)
class Undetermined:
    """Combinations of basis functions that the data of a fit do not determine.

    Attributes
    ----------
    sources : list of (str, int)
        The kernel and the source; several if their kernels can replace each other.
    neurons : list of int
        The neurons whose kernels these are.
    n_combinations : int
        Number of independent combinations of functions without information.
    n_functions : int
        Number of functions of these kernels, all together.
    is_silent : bool
        Whether the source is always 0.  Its weights are then 0.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> y = np.random.default_rng(0).random((500, 1)) < 0.3
    >>> fit = glm.fit_population(y, np.zeros((500, 1)), glm.IndicatorBasis(2))
    >>> fit.fit_.undetermined
    [Undetermined(sources=[('stimulus', 0)], neurons=[0], n_combinations=2, n_functions=2, is_silent=True)]
    """

    sources: list[tuple[str, int]]
    neurons: list[int]
    n_combinations: int
    n_functions: int
    is_silent: bool

    def __str__(self) -> str:
        names = " and ".join(f"kernel {name!r} from source {source}" for name, source in self.sources)
        return (
            f"of the {self.n_functions} functions of {names}, {self.n_combinations} "
            f"{'combination has' if self.n_combinations == 1 else 'combinations have'} next to no "
            f"information ({'neuron' if len(self.neurons) == 1 else 'neurons'} "
            f"{listed(self.neurons, 6, ', ', ' and')})"
        )


def listed(items: Sequence[Any], most: int, between: str, last: str) -> str:
    """Return the first items as text, and how many more there are."""
    shown = between.join(map(str, items[:most]))
    return f"{shown}{last} {len(items) - most} more" if len(items) > most else shown


def undetermined_directions(
    design: Design,
    weights: NDArray[np.float64],
    used: NDArray[np.bool_],
    all_together: bool,
    workers: Workers,
) -> tuple[list[Undetermined], NDArray[np.float64]]:
    """Return directions of the common columns without information, and how far each parameter is in them.

    Parameters
    ----------
    design : Design
    weights : ndarray of float, shape (n,)
        The sum of the Fisher weights of all steps, for each neuron.
    used : ndarray of bool, shape (n, n_parameters)
        The parameters that are neither held at 0 nor penalised.
    all_together : bool
        Whether to search also for kernels that can replace each other.
    workers : Workers

    Returns
    -------
    found : list of Undetermined
    axes : ndarray of float, shape (n, n_parameters, n_axes)
        Orthogonal to each other in the space of kernels; padded with zeros.
    """
    sums = _sums(design, workers)
    limits = np.minimum(_LEAST_VARIATION, _LEAST_INFORMATION / np.maximum(weights, _LEAST_INFORMATION))
    # What varies enough in some of the blocks does so in all of them: sums of squares only grow.
    for blocks in design.blocks[::_FIRST], design.blocks:
        products, by_source = _moments(design, blocks, all_together, workers)
        sources = list(_sources(design, by_source, sums))
        smallest = _smallest_together(design, sources, products)
        lowest = min([smallest, *(source.values[0] for source in sources)])
        if lowest >= limits.max(initial=0.0):
            return [], np.zeros((design.n, design.n_parameters, 0))
    merged: dict[tuple, list[int]] = {}
    axes: list[list[NDArray[np.float64]]] = []
    for neuron, limit in enumerate(limits.tolist()):
        axes.append([])
        for *what, own in _of_neuron(design, products, sources, used[neuron], limit, smallest < limit):
            merged.setdefault(tuple(what), []).append(neuron)
            axes[-1].append(own)
    found = [
        Undetermined(list(names), neurons, size, n_functions, is_silent)
        for (names, size, n_functions, is_silent), neurons in merged.items()
    ]
    n_axes = max((sum(part.shape[1] for part in own) for own in axes), default=0)
    padded = np.zeros((design.n, design.n_parameters, n_axes))
    for neuron, own in enumerate(axes):
        if own:
            whole = np.hstack(own)
            padded[neuron, :, : whole.shape[1]] = whole
    return found, padded


def _sums(design, workers):
    """Return for each kernel the variances and the mean squares of its sources, shape (2, n_source)."""

    def of_block(block):
        sums = {}
        for name, series in design.data.inputs.items():
            x = np.concatenate([series.read(start, stop) for _, start, stop in block]).astype(float)
            if design.data.mask is not None:
                x = x[np.concatenate([design.data.mask[start:stop] for _, start, stop in block])]
            sums[name] = np.stack([np.ones(len(x)) @ x, np.einsum("tn,tn->n", x, x)])
        return sums

    sums = total(workers.map(of_block, design.blocks))
    means = {name: own / design.n_rows for name, own in sums.items()}
    return {name: np.stack([own[1] - np.square(own[0]), own[1]]) for name, own in means.items()}


def _moments(design, blocks, all_together, workers):
    """Return products of all columns, or None, and by kernel those of each source.

    They come from some of the steps, but are divided by the number of all.
    """
    nobody = np.empty(0, dtype=np.int64)

    def of_block(block):
        common = design.rows(block, nobody).common
        products, by_source = None, {}
        if all_together:
            products = common.T @ common
        else:
            for name, columns in design.columns.items():
                parts = common[:, columns.T].transpose(1, 2, 0)
                by_source[name] = parts @ parts.swapaxes(1, 2)
        return len(common), common.sum(axis=0), products, by_source

    n_rows, whole, products, by_source = total(workers.map(of_block, blocks))
    mean, n = whole / n_rows, design.n_rows
    if products is not None:
        products = (products - np.outer(mean, whole)) / n
    for name, columns in design.columns.items():
        own = columns.T
        if products is not None:
            by_source[name] = products[own[:, :, np.newaxis], own[:, np.newaxis, :]]
        else:
            outer = mean[own][:, :, np.newaxis] * whole[own][:, np.newaxis, :]
            by_source[name] = (by_source[name] - outer) / n
    return products, by_source


@dataclass(frozen=True)
class _Source:
    """One source of one kernel, apart from the others.

    Attributes
    ----------
    name : (str, int)
    columns : ndarray of int, shape (n_basis,)
    axes : ndarray of float, shape (n_basis, m)
        Combinations of functions along which white noise of the source's variance varies by 1.
    values : ndarray of float, shape (m,)
        The variance of the data along them, in increasing order.
    is_silent : bool
        Whether it is always 0.
    """

    name: tuple[str, int]
    columns: NDArray[np.int64]
    axes: NDArray[np.float64]
    values: NDArray[np.float64]
    is_silent: bool

    def among(self, n_columns: int) -> NDArray[np.float64]:
        """Return the axes among so many columns, shape (n_columns, m)."""
        axes = np.zeros((n_columns, self.axes.shape[1]))
        axes[self.columns] = self.axes
        return axes


def _sources(design, by_source, sums):
    for name, columns in design.columns.items():
        basis = design.kernels[name].matrix
        values, vectors = np.linalg.eigh(basis.T @ basis)
        kept = values > _FLAT * values[-1]
        whitened = vectors[:, kept] / np.sqrt(values[kept])
        for source, (variance, square) in enumerate(sums[name].T):
            axes, found = np.eye(len(columns)), np.zeros(len(columns))
            if variance > _CONSTANT * square:
                axes = whitened / np.sqrt(variance)
                found, turned = np.linalg.eigh(axes.T @ by_source[name][source] @ axes)
                axes = axes @ turned
            yield _Source((name, source), columns[:, source], axes, found, bool(square == 0))


def _of_neuron(design, products, sources, used, limit, may_replace) -> Iterator[tuple]:
    """Yield sources, numbers of combinations and of functions, silence, and axes (n_parameters, m)."""
    left = []
    for source in sources:
        if not used[source.columns].all():
            continue
        axes = source.among(design.n_parameters)
        n_found = int(np.count_nonzero(source.values < limit))
        if n_found:
            yield (source.name,), n_found, len(source.columns), source.is_silent, axes[:, :n_found]
        left.append((source, axes[:, n_found:]))
    if not may_replace or not left:
        return
    # Kernels of several sources that can replace each other
    axes = np.hstack([own for _, own in left])
    common = axes[: design.n_common]
    values, turned = np.linalg.eigh(common.T @ products @ common)
    turned = turned[:, values < limit]
    if not turned.shape[1]:
        return
    ends = np.cumsum([own.shape[1] for _, own in left])[:-1]
    shares = np.array([np.square(part).sum() for part in np.split(turned, ends)])
    there = [source for (source, _), share in zip(left, shares) if share > _PART * shares.max()]
    n_functions = sum(len(source.columns) for source in there)
    names = tuple(source.name for source in there)
    yield names, turned.shape[1], n_functions, False, axes @ turned


def _smallest_together(design, sources, products):
    """Return the smallest variance along any combination of kernels that vary on their own."""
    varying = [source for source in sources if source.values[-1] > 0]
    if products is None or not varying:
        return np.inf
    axes = np.hstack([source.among(design.n_common) for source in varying])
    return np.linalg.eigvalsh(axes.T @ products @ axes)[0]
