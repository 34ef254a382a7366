"""The log-likelihood of many neurons at once, its gradient and its Fisher information."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.activations import Activation
from ..support.workers import Workers
from .design import Design

#: Number of potentials whose likelihood is computed at a time: they stay in the cache.
_POTENTIALS_AT_ONCE = 2**14

#: Number of sampled rows that are collected before their products are added.
_SAMPLED_AT_ONCE = 2**13


@dataclass
class Evaluation:
    """The log-likelihood at some parameters.

    Attributes
    ----------
    value : ndarray of float, shape (n_neurons,)
    gradient : ndarray of float, shape (n_neurons, n_parameters)
    information : ndarray of float, shape (n_neurons, n_parameters, n_parameters), or None
        The Fisher information, perhaps from a sample of the steps.
    smallest_residual : ndarray of float, shape (n_neurons,)
        The smallest size of the slope of the log-likelihood in a potential, over all steps.
    """

    value: NDArray[np.float64]
    gradient: NDArray[np.float64]
    smallest_residual: NDArray[np.float64]
    information: NDArray[np.float64] | None = None


def likelihood(
    u: NDArray[np.float64], spikes: NDArray[np.bool_], activation: Activation, with_weights: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
    """Return log-likelihoods (n,), their slopes in `u` (T, n), and the Fisher weights (T, n)."""
    value = np.zeros(u.shape[1])
    slope = np.empty_like(u)
    weights = np.empty_like(u) if with_weights else None
    length = max(1, _POTENTIALS_AT_ONCE // max(u.shape[1], 1))
    with np.errstate(over="ignore"):
        for start in range(0, len(u), length):
            rows = slice(start, start + length)
            part = np.ascontiguousarray(u[rows])
            log_likelihood, down, up = activation.silence_terms(part)
            if weights is not None:
                weights[rows] = -down * up
            # Spikes are rare, so the terms of silence are corrected where there are any.
            events = np.flatnonzero(spikes[rows])
            if events.size:
                log_likelihood, down = np.ascontiguousarray(log_likelihood), np.ascontiguousarray(down)
                log_likelihood.ravel()[events] = activation.log_spike(part.ravel()[events])
                down.ravel()[events] = up.ravel()[events]
            slope[rows] = down
            value += log_likelihood.sum(axis=0)
    return value, slope, weights


def evaluate(
    design: Design,
    neurons: NDArray[np.int64],
    parameters: NDArray[np.float64],
    activation: Activation,
    workers: Workers,
    free: NDArray[np.bool_] | None = None,
    every: int = 0,
    advance: Callable[[int], None] | None = None,
) -> Evaluation:
    """Return the log-likelihood of some neurons and its gradient, in one pass over the data.

    Parameters
    ----------
    design : Design
    neurons : ndarray of int
    parameters : ndarray of float, shape (n_neurons, n_parameters)
    activation : Activation
    workers : Workers
    free : ndarray of bool, shape (n_neurons, n_parameters), optional
        The parameters whose information is needed.
    every : int
        If above 0, also the Fisher information, from every so many-th row, with the
        diagonal of all rows.
    advance : callable, optional
        Called with the number of each finished block.
    """

    def of_block(block):
        rows = design.rows(block, neurons)
        u = design.potential(rows, parameters)
        value, slope, weights = likelihood(u, rows.spikes, activation, every > 0)
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

    value, gradient = np.zeros(len(neurons)), np.zeros(parameters.shape)
    diagonal, smallest = np.zeros(parameters.shape), np.full(len(neurons), np.inf)
    information = None
    if every:
        information = np.zeros((*parameters.shape, parameters.shape[1]))
    samples, n_sampled = [], 0
    for done, (part, part_gradient, residual, part_diagonal, sample) in enumerate(
        workers.map(of_block, design.blocks)
    ):
        value += part
        gradient += part_gradient
        np.minimum(smallest, residual, out=smallest)
        if sample is not None:
            diagonal += part_diagonal
            samples.append(sample)
            n_sampled += len(sample[0])
            if n_sampled >= _SAMPLED_AT_ONCE:
                _add_information(information, samples, free, workers)
                samples, n_sampled = [], 0
        if advance is not None:
            advance(done)
    if samples:
        _add_information(information, samples, free, workers)
    if information is not None:
        _set_diagonal(information, diagonal)
    return Evaluation(value, gradient, smallest, information)


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
    design: Design,
    workers: Workers,
    every: int,
    advance: Callable[[int], None] | None = None,
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


def log_likelihood(
    design: Design, parameters: NDArray[np.float64], activation: Activation
) -> NDArray[np.float64]:
    """Return the log-likelihood of each neuron, for parameters (n, n_parameters)."""
    everyone = np.arange(design.n)

    def of_block(block):
        rows = design.rows(block, everyone)
        return likelihood(design.potential(rows, parameters), rows.spikes, activation, False)[0]

    with Workers() as workers:
        return np.sum(list(workers.map(of_block, design.blocks)), axis=0)
