"""The log-likelihood of many neurons at once, its gradient and its Fisher information; and bits per spike."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.validation import finite_array
from ..support.workers import Workers
from .design import Design, design_of
from .observations import Bernoulli, Observations
from .parameters import PopulationParameters
from .penalties import BlockPenalty
from .recorded import RecordedData

#: Number of potentials whose likelihood is computed at a time: they stay in the cache.
_POTENTIALS_AT_ONCE = 2**14

#: Number of sampled rows that are collected before their products are added.
_SAMPLED_AT_ONCE = 2**13


@dataclass(frozen=True, eq=False)
class Problem:
    """What is maximised: the penalised log-likelihood of some neurons.

    Attributes
    ----------
    design : Design
    observations : Observations
    neurons : ndarray of int
    free : ndarray of bool, shape (n_neurons, n_parameters)
        The parameters that may differ from 0.
    penalty : BlockPenalty
        Of these neurons.
    """

    design: Design
    observations: Observations
    neurons: NDArray[np.int64]
    free: NDArray[np.bool_]
    penalty: BlockPenalty

    @classmethod
    def plain(
        cls,
        design: Design,
        observations: Observations,
        neurons: NDArray[np.int64],
        free: NDArray[np.bool_],
    ) -> "Problem":
        """Return the problem without a penalty."""
        return cls(design, observations, neurons, free, BlockPenalty.none(*free.shape))

    def of(self, who: NDArray[np.int64]) -> "Problem":
        """Return the problem of some of its neurons."""
        penalty = self.penalty.of(who)
        return replace(self, neurons=self.neurons[who], free=self.free[who], penalty=penalty)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The log-likelihood at some parameters.

    Attributes
    ----------
    objective, log_likelihood : ndarray of float, shape (n_neurons,)
        With and without the penalty.
    gradient : ndarray of float, shape (n_neurons, n_parameters)
        Of the part of the objective that is smooth; 0 for parameters that are held at 0.
    smallest_residual : ndarray of float, shape (n_neurons,)
        The smallest size of the slope of the log-likelihood in a potential, over all steps.
    information : ndarray of float, shape (n_neurons, n_parameters, n_parameters)
        The Fisher information, perhaps from a sample of the steps; 0 if it was not asked for.
    """

    objective: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    gradient: NDArray[np.float64]
    smallest_residual: NDArray[np.float64]
    information: NDArray[np.float64]


def likelihood(
    u: NDArray[np.float64], spikes: NDArray[Any], observations: Observations, with_weights: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """Return log-likelihoods (n,), their slopes in `u` (T, n), and the Fisher weights (T, n) or None."""
    value = np.zeros(u.shape[1])
    slope = np.empty_like(u)
    weights = np.empty_like(u) if with_weights else None
    length = max(1, _POTENTIALS_AT_ONCE // max(u.shape[1], 1))
    with np.errstate(over="ignore"):
        for start in range(0, len(u), length):
            rows = slice(start, start + length)
            part = np.ascontiguousarray(u[rows])
            terms, slope[rows], own = observations.terms(part, spikes[rows], with_weights)
            if weights is not None:
                weights[rows] = own
            value += terms.sum(axis=0)
    return value, slope, weights


def evaluate(
    problem: Problem,
    parameters: NDArray[np.float64],
    workers: Workers,
    every: int = 0,
    advance: Callable[[int], None] | None = None,
) -> Evaluation:
    """Return the log-likelihood of some neurons and its gradient, in one pass over the data.

    Parameters
    ----------
    problem : Problem
    parameters : ndarray of float, shape (n_neurons, n_parameters)
    workers : Workers
    every : int
        If above 0, also the Fisher information, from every so many-th row, with the
        diagonal of all rows.
    advance : callable, optional
        Called with the number of each finished block.
    """
    design, free, penalty = problem.design, problem.free, problem.penalty
    value, gradient, diagonal = np.zeros(len(parameters)), *np.zeros((2, *parameters.shape))
    smallest = np.full(len(parameters), np.inf)
    information = np.zeros((*parameters.shape, parameters.shape[1] if every else 0))
    samples: list[Any] = []
    for done, (part, part_gradient, residual, part_diagonal, sample) in enumerate(
        workers.map(lambda block: _of_block(problem, parameters, every, block), design.blocks)
    ):
        value += part
        gradient += part_gradient
        np.minimum(smallest, residual, out=smallest)
        if every:
            diagonal += part_diagonal
            samples.append(sample)
            if sum(len(each[0]) for each in samples) >= _SAMPLED_AT_ONCE:
                _add_information(information, samples, free, workers)
                samples = []
        if advance is not None:
            advance(done)
    if samples:
        _add_information(information, samples, free, workers)
    if every:
        _set_diagonal(information, diagonal)
    objective = value if penalty.strength == 0 else value - penalty.value(parameters)
    gradient = np.where(free, gradient - penalty.ridge * parameters, 0.0)
    return Evaluation(objective, value, gradient, smallest, information)


def _of_block(problem, parameters, every, block):
    """Return the parts of an evaluation that come from one block, and its sampled rows."""
    design = problem.design
    rows = design.rows(block, problem.neurons)
    u = design.potential(rows, parameters)
    value, slope, weights = likelihood(u, rows.spikes, problem.observations, every > 0)
    gradient = design.gradient(rows, slope)
    residual = _lowest(np.abs(slope, out=slope))
    if not every:
        return value, gradient, residual, None, None
    diagonal = np.empty_like(gradient)
    diagonal[:, : design.n_common] = weights.T @ np.square(rows.common)
    if rows.own is not None:
        diagonal[:, design.n_common :] = np.einsum("tkn,tn->nk", np.square(rows.own), weights)
    own = None if rows.own is None else rows.own[::every]
    sample = rows.common[::every].copy(), own, weights[::every].copy()
    return value, gradient, residual, diagonal, sample


def _lowest(values):
    """Return the smallest of each column, (n,): by halves, many times as fast as row by row."""
    while len(values) > 1:
        half = -(-len(values) // 2)
        values = np.minimum(values[:half], values[-half:])
    return values[0]


def _add_information(information, samples, free, workers):
    """Add the products of sampled rows to the information of each neuron."""
    common = np.concatenate([sample[0] for sample in samples])
    weights = np.sqrt(np.concatenate([sample[2] for sample in samples]))
    own = None
    if samples[0][1] is not None:
        own = np.concatenate([sample[1] for sample in samples])
    n_common = common.shape[1]

    def of_neuron(index):
        columns = np.flatnonzero(free[index])
        shared = columns[columns < n_common]
        rows = common if len(shared) == n_common else common[:, shared]
        weighted = rows * weights[:, [index]]
        if own is not None:
            held = columns[len(shared) :] - n_common
            weighted = np.hstack([weighted, own[:, held, index] * weights[:, [index]]])
        product = weighted.T @ weighted
        if len(columns) == information.shape[1]:
            information[index] += product
        else:
            information[index][np.ix_(columns, columns)] += product

    for _ in workers.map(of_neuron, range(len(information))):
        pass


def _set_diagonal(information, diagonal):
    """Scale matrices from samples of rows so that they have the diagonal of all rows."""
    for matrix, wanted in zip(information, diagonal):
        own = np.diag(matrix)
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.where(own > 0, np.sqrt(wanted / own), 0.0)
        matrix *= scale
        matrix *= scale[:, np.newaxis]
        np.fill_diagonal(matrix, wanted)


def gram(
    design: Design, workers: Workers, every: int, advance: Callable[[int], None] | None = None
) -> NDArray[np.float64]:
    """Return the products of the common columns with each other, scaled to all rows."""
    nobody = np.empty(0, dtype=np.int64)

    def of_block(block):
        common = design.rows(block, nobody).common[::every].copy()
        return len(common), common.T @ common

    total, n_rows = np.zeros((design.n_common, design.n_common)), 0
    for done, (size, part) in enumerate(workers.map(of_block, design.blocks)):
        total += part
        n_rows += size
        if advance is not None:
            advance(done)
    return total * (design.n_rows / n_rows)


def largest_effects(
    design: Design, neurons: NDArray[np.int64], change: NDArray[np.float64], workers: Workers
) -> NDArray[np.float64]:
    """Return by how much a change of the parameters changes each neuron's potential at most."""

    def of_block(block):
        u = design.potential(design.rows(block, neurons), change)
        return np.abs(u).max(axis=0, initial=0.0)

    largest = np.zeros(len(neurons))
    for part in workers.map(of_block, design.blocks):
        np.maximum(largest, part, out=largest)
    return largest


def total(parts: Iterable[Any]) -> Any:
    """Return the sum of what comes from blocks: numbers, arrays and lists, or tuples and dicts of them."""
    return reduce(_added, parts)


def _added(first, second):
    if isinstance(first, dict):
        return {name: _added(first[name], second[name]) for name in first}
    if isinstance(first, tuple):
        return tuple(map(_added, first, second))
    return None if first is None else first + second


def membrane_potentials(population: PopulationParameters, data: RecordedData) -> NDArray[np.float64]:
    """Return the membrane potentials in the steps that count, shape (n_counted, n)."""
    design = design_of(population, data)
    everyone, parameters = np.arange(design.n), design.parameters_of(population)
    return np.concatenate(
        [design.potential(design.rows(block, everyone), parameters) for block in design.blocks]
    )


def log_likelihoods(population: PopulationParameters, data: RecordedData) -> NDArray[np.float64]:
    """Return the log-likelihood of each neuron's train, in nats, shape (n,)."""
    design = design_of(population, data)
    return log_likelihoods_at(design, design.parameters_of(population), population.observations)


def log_likelihoods_at(
    design: Design, parameters: NDArray[np.float64], observations: Observations
) -> NDArray[np.float64]:
    """Return the log-likelihood of each neuron, for parameters (n, n_parameters)."""
    everyone = np.arange(design.n)

    def of_block(block):
        rows = design.rows(block, everyone)
        return likelihood(design.potential(rows, parameters), rows.spikes, observations, False)[0]

    with Workers() as workers:
        return np.sum(list(workers.map(of_block, design.blocks)), axis=0)


def bits_per_spike(
    population: PopulationParameters, data: RecordedData, baseline: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the log-likelihood above that of a constant rate; see `GLMPopulation.score`."""
    design = design_of(population, data)
    counts, n_steps = design.counts(), design.n_rows
    if baseline is None:
        rates = counts / n_steps
    else:
        rates = finite_array(baseline, "baseline", (population.n,))
        impossible = ((rates <= 0) & (counts > 0)) | ((rates >= 1) & (counts < n_steps))
        if np.any((rates < 0) | (rates > 1) | impossible):
            raise ValueError(
                "baseline must hold the probability of a spike in a step for each neuron, between 0 and 1, "
                f"and make the trains in outputs possible, got {rates}"
            )
    observations = Bernoulli(population.activation)
    value = log_likelihoods_at(design, design.parameters_of(population), observations)
    with np.errstate(divide="ignore", invalid="ignore"):
        # 0 log 0 is 0
        constant = np.where(counts > 0, counts * np.log(rates), 0.0)
        constant += np.where(counts < n_steps, (n_steps - counts) * np.log1p(-rates), 0.0)
        gain = (value - constant) / (counts * np.log(2))
    return np.where(counts > 0, gain, np.nan)
