"""Who wins a tie between outputs, and who without any output spike: as probabilities.

`decisions.decide` draws decisions with these probabilities, by code of its own.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def ranked(potentials: NDArray[np.float64]) -> NDArray[np.int_]:
    """Return the outputs along the last axis, from the one that wins all ties to the last."""
    # Among equal potentials the first output wins.
    return np.argsort(-potentials, axis=-1, kind="stable")


def ahead_by_potential(
    log_best: NDArray[np.float64],
    log_below: NDArray[np.float64],
    potentials: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the log-probability that an output wins, given that it is among the best.

    Parameters
    ----------
    log_best, log_below : ndarray of float, shape (..., N_Y)
        Log-probabilities that each output reaches a certain mark, and that it stays below.  None
        is above: the two probabilities of an output need not sum to 1.
    potentials : ndarray of float, shape (..., N_Y)
        The highest wins.
    """
    order = ranked(potentials)
    below = np.take_along_axis(log_below, order, axis=-1)
    at_most = np.take_along_axis(np.logaddexp(log_best, log_below), order, axis=-1)
    result = np.zeros_like(below)
    result[..., 1:] += np.cumsum(below[..., :-1], axis=-1)
    result[..., :-1] += np.cumsum(at_most[..., :0:-1], axis=-1)[..., ::-1]
    back = np.empty_like(result)
    np.put_along_axis(back, order, result, axis=-1)
    return back


def ahead_by_chance(
    log_best: NDArray[np.float64],
    log_below: NDArray[np.float64],
    potentials: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what `ahead_by_potential` does, if each of the best is equally likely to win.

    With B others among the best, that is the mean of 1 / (1 + B): the integral over x from 0 to
    1 of the product of (below + best x), which Gauss-Legendre quadrature gives exactly.
    """
    nodes, weights = np.polynomial.legendre.leggauss(log_best.shape[-1] // 2 + 1)
    total = np.full(log_best.shape, -np.inf)
    for node, weight in zip((nodes + 1) / 2, weights / 2):
        factor = np.logaddexp(log_below, log_best + np.log(node))
        total = np.logaddexp(total, np.log(weight) + others(factor))
    return total


def others(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum over all other entries of the last axis."""
    # Not the total minus the own entry, which cancels.
    result = np.zeros_like(logarithms)
    result[..., 1:] += np.cumsum(logarithms[..., :-1], axis=-1)
    result[..., :-1] += np.cumsum(logarithms[..., :0:-1], axis=-1)[..., ::-1]
    return result


def highest_potential(potential_sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return, without any spike, 1 for the output with the highest summed potential."""
    share = np.zeros(potential_sums.shape)
    np.put_along_axis(share, potential_sums.argmax(axis=-1)[..., np.newaxis], 1.0, axis=-1)
    return share


def equal_shares(potential_sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.full(potential_sums.shape, 1.0 / potential_sums.shape[-1])


def nobody(potential_sums: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.zeros(potential_sums.shape)


Ahead = Callable[[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
Share = Callable[[NDArray[np.float64]], NDArray[np.float64]]

#: The probabilities for each value of `on_tie` (see `ahead_by_potential`).
WINS_TIE: dict[str, Ahead] = {"potential": ahead_by_potential, "random": ahead_by_chance}

#: The probabilities of the outputs if none spikes, for each value of `on_silence`.
WINS_SILENCE: dict[str, Share] = {
    "potential": highest_potential,
    "random": equal_shares,
    "reject": nobody,
}

#: By how much the probability of silence may favour a wrong output over the right one, for each
#: value of `on_silence`: a random output is wrong as often as right.
SILENCE_AGAINST = {"potential": 1.0, "random": 0.0, "reject": 0.0}
