"""The probability that each output spikes most often.

Given the inputs, outputs are independent of each other, so what is needed is the distribution of
each output's *result*: its number of spikes, and its summed potential, which decides ties.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .tie_rules import WINS_SILENCE, ahead_by_chance

#: With at most this many steps, all spike trains of an output are listed: 1024.
MOST_LISTED_STEPS = 10

#: Values that are held at a time.
_MOST_VALUES = 2**22


@dataclass(frozen=True)
class Results:
    """The possible results of each output, and their probabilities.

    counts : ndarray of int, shape (n, m, N_Y)
    sums : ndarray of float, shape (n, m, N_Y)
        Potentials summed over the presentation.
    weights : ndarray of float, shape (n, m, N_Y)
        Probabilities, which sum to 1 over axis 1.
    """

    counts: NDArray[np.int64]
    sums: NDArray[np.float64]
    weights: NDArray[np.float64]

    @classmethod
    def broadcast(cls, counts, sums, weights):
        return cls(*np.broadcast_arrays(counts, sums, weights))


#: Returns uniform random numbers (n, T, N_Y), given the number of a repetition.
Draw = Callable[[int], NDArray[np.floating]]


def without_feedback(u: NDArray[np.float64], activation: Activation) -> Results:
    """Return the results of outputs without feedback kernels, by dynamic programming."""
    n, n_steps, n_outputs = u.shape
    counts = np.arange(n_steps + 1)
    weights = np.zeros((n, n_steps + 1, n_outputs))
    weights[:, 0] = 1.0
    spike, silence = np.exp(activation.log_spike(u)), np.exp(activation.log_silence(u))
    for step in range(n_steps):
        spiked = weights[:, :-1] * spike[:, step, np.newaxis]
        weights = weights * silence[:, step, np.newaxis]
        weights[:, 1:] += spiked
    return Results.broadcast(counts[np.newaxis, :, np.newaxis], u.sum(axis=1, keepdims=True), weights)


def after_each_train(
    kernels: NDArray[np.float64], n_steps: int
) -> tuple[list[NDArray[np.float64]], NDArray[np.int64]]:
    """Return the feedback before each step, after each spike train, and the final numbers of spikes.

    Parameters
    ----------
    kernels : ndarray of float, shape (lags, N_Y)
    n_steps : int

    Returns
    -------
    feedback : list of ndarray of float, shape (2**step, N_Y)
        After a step, first the trains without a spike in it, then those with one.
    counts : ndarray of int, shape (2**n_steps,)

    Examples
    --------
    >>> feedback, counts = after_each_train(np.array([[3.0], [1.0]]), 3)
    >>> feedback[2].T, counts
    (array([[0., 1., 3., 4.]]), array([0, 1, 1, 2, 1, 2, 2, 3]))
    """
    trains, feedback = np.zeros((1, 0)), []
    for step in range(n_steps):
        n_lags = min(len(kernels), step)
        # From the latest step back
        feedback.append(trains[:, ::-1][:, :n_lags] @ kernels[:n_lags])
        spikes = np.repeat([0.0, 1.0], len(trains))[:, np.newaxis]
        trains = np.hstack([np.vstack([trains, trains]), spikes])
    return feedback, trains.sum(axis=1).astype(np.int64)


def with_all_trains(
    u: NDArray[np.float64], activation: Activation, kernels: NDArray[np.float64]
) -> Results:
    """Return the results of outputs with feedback kernels (lags, N_Y): one per spike train."""
    n, n_steps, n_outputs = u.shape
    feedback, counts = after_each_train(kernels, n_steps)
    log_weights, sums = np.zeros((n, 1, n_outputs)), np.zeros((n, 1, n_outputs))
    for step, fed_back in enumerate(feedback):
        now = u[:, step, np.newaxis] + fed_back
        log_weights = np.concatenate(
            [log_weights + activation.log_silence(now), log_weights + activation.log_spike(now)], axis=1
        )
        sums = np.concatenate([sums + now] * 2, axis=1)
    return Results.broadcast(counts[np.newaxis, :, np.newaxis], sums, np.exp(log_weights))


def simulated(
    u: NDArray[np.float64],
    activation: Activation,
    kernels: NDArray[np.float64],
    draw: Draw,
    n_simulated: int,
) -> Results:
    """Return the results of `n_simulated` simulations, all equally probable."""
    n, n_steps, n_outputs = u.shape
    counts = np.zeros((n, n_simulated, n_outputs), dtype=np.int64)
    sums = np.zeros((n, n_simulated, n_outputs))
    for number in range(n_simulated):
        draws, now = draw(number), u.copy()
        for step in range(n_steps):
            spikes = draws[:, step] < activation.probability(now[:, step])
            n_lags = min(len(kernels), n_steps - step - 1)
            now[:, step + 1 : step + 1 + n_lags] += spikes[:, np.newaxis] * kernels[:n_lags]
            counts[:, number] += spikes
        sums[:, number] = now.sum(axis=1)
    return Results.broadcast(counts, sums, np.float64(1 / n_simulated))


def most_spikes_probabilities(
    u: NDArray[np.float64],
    activation: Activation,
    kernels: NDArray[np.float64] | None,
    on_tie: str,
    on_silence: str,
    draw: Draw,
    n_simulated: int,
) -> NDArray[np.float64]:
    """Return the probability that a test decides for each output, if the most spikes win.

    Parameters
    ----------
    u : ndarray of float, shape (n, T, N_Y)
        Membrane potentials without feedback.
    activation : Activation
    kernels : ndarray of float, shape (lags, N_Y), or None
        Feedback kernels.
    on_tie, on_silence : str
        See `glmbrian.core.decisions.decide`.
    draw : callable
        Returns uniform random numbers, shape (n, T, N_Y), given the number of a repetition.
    n_simulated : int

    Returns
    -------
    ndarray of float, shape (n, N_Y)
        Exact without feedback kernels, and with at most 10 steps; else the outputs are simulated
        `n_simulated` times, and all combinations of these simulations are compared.

    Examples
    --------
    Two outputs fire with probability 1/2 in the only step:

    >>> import glmbrian as glm
    >>> sigmoid = glm.get_activation("sigmoid")
    >>> most_spikes_probabilities(np.zeros((1, 1, 2)), sigmoid, None, "potential", "reject", None, 1)
    array([[0.5 , 0.25]])
    """
    n, n_steps, n_outputs = u.shape
    if kernels is None:
        results = without_feedback(u, activation)
    elif n_steps <= MOST_LISTED_STEPS:
        results = with_all_trains(u, activation, kernels)
    else:
        results = simulated(u, activation, kernels, draw, n_simulated)
    n_results = results.counts.shape[1]
    at_a_time = max(1, _MOST_VALUES // (n_results * n_outputs**2))
    found = np.concatenate(
        [
            _MOST[on_tie](
                results.counts[first : first + at_a_time],
                results.sums[first : first + at_a_time],
                results.weights[first : first + at_a_time],
            )
            for first in range(0, n, at_a_time)
        ]
    )
    silent = np.exp(activation.log_silence(u).sum(axis=(1, 2)))[:, np.newaxis]
    # While nothing spikes, there is no feedback.
    return found + silent * WINS_SILENCE[on_silence](u.sum(axis=1))


def _most_by_potential(counts, sums, weights):
    """Return the probability that each output has spikes, and the best result of all.

    More spikes are better, then a higher potential, then a lower index.  All results are sorted
    from the worst to the best; each then wins with the probability that the other outputs have
    one of those before.
    """
    n, n_results, n_outputs = counts.shape

    def pooled(values):
        return values[:, :, ::-1].transpose(0, 2, 1).reshape(n, n_outputs * n_results)

    order = np.lexsort((pooled(sums), pooled(counts)), axis=-1)  # stable: lower indices last
    owner = (n_outputs - 1 - order // n_results)[:, :, np.newaxis]
    own = owner == np.arange(n_outputs)
    weight = np.take_along_axis(pooled(weights), order, axis=1)
    spikes = np.take_along_axis(pooled(counts), order, axis=1) > 0
    before = np.cumsum(np.where(own, weight[:, :, np.newaxis], 0.0), axis=1)
    others_before = np.where(own, 1.0, before).prod(axis=2)
    return np.where(own, (weight * spikes * others_before)[:, :, np.newaxis], 0.0).sum(axis=1)


def _most_by_chance(counts, sums, weights):
    """Return the probability that each output has spikes and wins, if chance decides ties."""
    most = counts.max()
    of_count = [np.where(counts == c, weights, 0.0).sum(axis=1) for c in range(most + 1)]
    found, below = np.zeros(of_count[0].shape), of_count[0].copy()
    with np.errstate(divide="ignore"):
        for probability in of_count[1:]:
            log_best, log_below = np.log(probability), np.log(below)
            found += np.exp(log_best + ahead_by_chance(log_best, log_below, sums[:, 0]))
            below = below + probability
    return found


_MOST = {"potential": _most_by_potential, "random": _most_by_chance}
