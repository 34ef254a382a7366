"""The step of a fit whose penalty makes blocks of weights 0, by block coordinate descent.

The log-likelihood is replaced by a quadratic function, and the penalised maximum of that is
found block by block, for all neurons at once.
"""

import numpy as np
from numpy.typing import NDArray

from .penalties import BlockPenalty

#: The most sweeps over all blocks.
_MOST_SWEEPS = 300

#: A search for the norm of a block ends at this relative error, or after so many steps.
_NORM_ERROR, _MOST_NORM_STEPS = 1e-14, 40


def block_descent_step(
    information: NDArray[np.float64],
    gradient: NDArray[np.float64],
    parameters: NDArray[np.float64],
    penalty: BlockPenalty,
    accuracy: float,
    smallest: float,
) -> NDArray[np.float64]:
    """Return the step to the penalised maximum of a quadratic function, for each neuron.

    Parameters
    ----------
    information : ndarray of float, shape (n, n_parameters, n_parameters)
        Minus the second derivative, without that of the penalty.
    gradient, parameters : ndarray of float, shape (n, n_parameters)
        The first derivative at these parameters, with that of the squares in the penalty.
    penalty : BlockPenalty
        Of these neurons.
    accuracy, smallest : float
        The squared change of the last sweep, in the norm of `information`, relative to that
        of the whole step, and a change that is always small enough.
    """
    if penalty.square.any():
        information = information + penalty.ridge[:, np.newaxis] * np.eye(gradient.shape[1])
    descent = _Descent(information, gradient, parameters, penalty)
    moving = np.arange(len(gradient))
    every_block = range(len(descent.blocks))
    chosen: list[int] | range = every_block
    for _ in range(_MOST_SWEEPS):
        change, active = np.zeros(len(gradient)), []
        for number in chosen:
            if descent.move(number, moving, change):
                active.append(number)
        still = change[moving] > np.maximum(accuracy * descent.squared_length(moving), smallest)
        if chosen is every_block:
            moving = moving[still]
            if not moving.size:
                break
            chosen = active
        elif not still.any():
            chosen = every_block
    return descent.point - parameters


class _Descent:
    """Where a search is, and the gradient there; it moves a block at a time."""

    def __init__(self, information, gradient, parameters, penalty):
        self.information, self.gradient, self.start = information, gradient, parameters
        self.blocks = [np.flatnonzero(penalty.block_of < 0), *penalty.blocks]
        self.factors = np.column_stack([np.zeros(len(gradient)), penalty.strength * penalty.norm])
        self.solvers = []
        for columns in self.blocks:
            values, axes = np.linalg.eigh(information[:, columns[:, np.newaxis], columns])
            floor = np.maximum(1e-12 * values[:, -1:], np.finfo(float).tiny)
            self.solvers.append((np.maximum(values, floor), axes))
        self.point, self.residual = parameters.copy(), gradient.copy()

    def move(self, number, who, change):
        """Move a block of some neurons to its maximum, and add to `change`; return whether any is not 0."""
        columns = self.blocks[number]
        values, axes = (each[who] for each in self.solvers[number])
        old = self.point[who[:, np.newaxis], columns]
        along = np.einsum("nij,ni->nj", axes, self.residual[who[:, np.newaxis], columns])
        along += values * np.einsum("nij,ni->nj", axes, old)
        new_along = _shrunk(along, values, self.factors[who, number])
        # Where nothing is left there are exact zeros.
        new = np.einsum("nij,nj->ni", axes, new_along)
        step = new - old
        moved = np.flatnonzero(step.any(axis=1))
        if moved.size:
            step, who = step[moved], who[moved]
            self.point[who[:, np.newaxis], columns] = new[moved]
            effect = np.matmul(step[:, np.newaxis], self.information[who[:, np.newaxis], columns])[:, 0]
            self.residual[who] -= effect
            change[who] += np.einsum("ni,ni->n", step, effect[:, columns])
        return new.any()

    def squared_length(self, who):
        """Return the squared lengths of the whole steps of some neurons, in the norm of `information`."""
        step, fall = self.point[who] - self.start[who], self.gradient[who] - self.residual[who]
        return np.einsum("ni,ni->n", step, fall)


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
