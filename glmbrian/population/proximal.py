"""The step of a fit whose penalty makes blocks of weights 0.

The log-likelihood is replaced by a quadratic function, and the penalised maximum of that is
found block by block, for all neurons at once.
"""

import numpy as np
from numpy.typing import NDArray

from .penalties import Penalty

#: The most sweeps over all blocks.
_MOST_SWEEPS = 300

#: A search for the norm of a block ends at this relative error, or after so many steps.
_NORM_ERROR, _MOST_NORM_STEPS = 1e-14, 40


def proximal_step(
    information: NDArray[np.float64],
    gradient: NDArray[np.float64],
    parameters: NDArray[np.float64],
    penalty: Penalty,
    strength: float,
    accuracy: float,
    smallest: float,
) -> NDArray[np.float64]:
    """Return the step to the penalised maximum of a quadratic function, for each neuron.

    Parameters
    ----------
    information : ndarray of float, shape (n, n_parameters, n_parameters)
        Minus the second derivative.
    gradient, parameters : ndarray of float, shape (n, n_parameters)
        The first derivative at these parameters.
    penalty : Penalty
        Of these neurons.
    strength : float
    accuracy, smallest : float
        The squared change of the last sweep, in the norm of `information`, relative to that
        of the whole step, and a change that is always small enough.
    """
    n = len(gradient)
    rest = np.flatnonzero(penalty.block_of < 0)
    blocks = [rest, *penalty.blocks]
    factors = np.column_stack([np.zeros(n), strength * penalty.factors])
    solvers = []
    for columns in blocks:
        values, axes = np.linalg.eigh(information[:, columns[:, np.newaxis], columns])
        floor = np.maximum(1e-12 * values[:, -1:], np.finfo(float).tiny)
        solvers.append((np.maximum(values, floor), axes))
    point, residual = parameters.copy(), gradient.copy()
    moving = np.arange(n)
    every_block = range(len(blocks))
    chosen: list[int] | range = every_block
    for _ in range(_MOST_SWEEPS):
        change = np.zeros(n)
        active = []
        for number in chosen:
            columns = blocks[number]
            values, axes = solvers[number]
            values, axes = values[moving], axes[moving]
            old = point[moving[:, np.newaxis], columns]
            along = np.einsum("nij,ni->nj", axes, residual[moving[:, np.newaxis], columns])
            along += values * np.einsum("nij,ni->nj", axes, old)
            new_along = _shrunk(along, values, factors[moving, number])
            new = np.einsum("nij,nj->ni", axes, new_along)
            # Where nothing is left there are exact zeros.
            step = new - old
            if new.any():
                active.append(number)
            moved = np.flatnonzero(step.any(axis=1))
            if not moved.size:
                continue
            step, who = step[moved], moving[moved]
            point[who[:, np.newaxis], columns] = new[moved]
            effect = np.matmul(step[:, np.newaxis], information[who[:, np.newaxis], columns])[:, 0]
            residual[who] -= effect
            change[who] += np.einsum("ni,ni->n", step, effect[:, columns])
        total = np.einsum(
            "ni,ni->n", point[moving] - parameters[moving], gradient[moving] - residual[moving]
        )
        still = change[moving] > np.maximum(accuracy * total, smallest)
        if chosen is every_block:
            moving = moving[still]
            if not moving.size:
                break
            chosen = active
        elif not still.any():
            chosen = every_block
    return point - parameters


def _shrunk(along, values, factors):
    """Return the maximisers of ``along z - values z^2 / 2 - factors |z|``, one vector a row."""
    norms = np.sqrt(np.einsum("ni,ni->n", along, along))
    result = np.zeros_like(along)
    plain = factors == 0
    if plain.any():
        result[plain] = along[plain] / values[plain]
    left = np.flatnonzero(~plain & (norms > factors))
    if not left.size:
        return result
    along, values, factors = along[left], values[left], factors[left, np.newaxis]
    # The norm of the maximiser is where the norm of along / (values norm + factors) is 1.
    size = (norms[left, np.newaxis] - factors) / values[:, -1:]
    for _ in range(_MOST_NORM_STEPS):
        scaled = along / (values * size + factors)
        squares = np.square(scaled)
        now = np.sqrt(squares.sum(axis=1, keepdims=True))
        slope = (squares * values / (values * size + factors)).sum(axis=1, keepdims=True) / now
        step = now * (now - 1.0) / slope
        size = size + step
        if np.all(np.abs(step) <= _NORM_ERROR * size):
            break
    result[left] = along * size / (values * size + factors)
    return result
