"""Bounds on the probability of the most spikes, for all potentials in a range.

Given the inputs, outputs are independent of each other, so what is needed is the least and the
greatest probability that each output has at least so many spikes.
"""

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .count_probabilities import MOST_LISTED_STEPS
from .first_spike_bounds import BOUND_MARGIN
from .tie_rules import SILENCE_AGAINST, others

#: Values that are held at a time.
_MOST_VALUES = 2**20


def most_spikes_is_certain(
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    labels: NDArray[np.int64],
    activation: Activation,
    kernels: NDArray[np.float64] | None,
    on_silence: str,
) -> NDArray[np.bool_]:
    """Return where the right output has the highest probability, for all potentials in a range.

    An output with feedback need not spike more if its potential rises, since spikes may inhibit
    later ones.  So the bounds on its number of spikes let the potential in each step depend on all
    earlier spikes, at whichever end of its range is worse.  The probability that the right output
    has more spikes than all others grows with its own number, and falls with those of the others.
    The same holds for the probability that a wrong output is among those with the most spikes.
    These are compared as in `first_spike_bounds.first_spike_is_certain`, for each `on_tie`.

    Parameters
    ----------
    lowest, highest : ndarray of float, shape (n, T, N_Y)
        Bounds on potentials without feedback.
    labels : ndarray of int, shape (n,)
    activation : Activation
    kernels : ndarray of float, shape (lags, N_Y), or None
        Feedback kernels.
    on_silence : str

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> import glmbrian as glm
    >>> sigmoid = glm.get_activation("sigmoid")
    >>> u = np.array([[[5.0, -5.0]], [[1.0, 0.0]]])
    >>> most_spikes_is_certain(u - 1, u + 1, np.array([0, 0]), sigmoid, None, "reject")
    array([ True, False])
    """
    n, n_steps, n_outputs = lowest.shape
    n_states = 2**n_steps if _lists_trains(kernels, n_steps) else n_steps + 1
    at_a_time = max(1, _MOST_VALUES // (n_states * n_steps * n_outputs))
    parts = [slice(first, first + at_a_time) for first in range(0, n, at_a_time)]
    tails = [count_tails(lowest[part], highest[part], activation, kernels) for part in parts]
    least, greatest = (np.concatenate(each) for each in zip(*tails))
    alone = _wins(least, others_below=1 - greatest[:, :-1])
    among = _wins(greatest, others_below=1 - least[:, 1:])
    # While nothing spikes, there is no feedback.
    silent = np.exp(activation.log_silence(lowest).sum(axis=(1, 2))) * SILENCE_AGAINST[on_silence]
    rows = np.arange(n)
    right = alone[rows, labels]
    among[rows, labels] = 0.0
    return right > among.max(axis=1) + silent + BOUND_MARGIN


def _wins(tail, others_below):
    """Return the probability that each output has a number of spikes, and all others are below.

    `tail` holds the probabilities of at least 1 to T + 1 spikes, and `others_below` those of the
    others' being low enough for each output with 1 to T spikes.
    """
    exactly = tail[:, :-1] - tail[:, 1:]
    with np.errstate(divide="ignore"):
        log_below = np.log(np.clip(others_below, 0.0, 1.0))
    return (exactly * np.exp(others(log_below))).sum(axis=1)


def _lists_trains(kernels, n_steps):
    return kernels is not None and n_steps <= MOST_LISTED_STEPS


def count_tails(
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    activation: Activation,
    kernels: NDArray[np.float64] | None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds on the probability that each output has at least 1, ..., T + 1 spikes.

    From the last step back, for each state that earlier spikes can lead to: the spike train so far,
    if there are at most 10 steps and feedback kernels, or else the number of spikes so far.

    Parameters
    ----------
    lowest, highest, activation, kernels
        As for `most_spikes_is_certain`.

    Returns
    -------
    least, greatest : ndarray of float, shape (n, T + 1, N_Y)

    Examples
    --------
    Potentials that are known:

    >>> import glmbrian as glm
    >>> u = np.zeros((1, 2, 1))
    >>> least, greatest = count_tails(u, u, glm.get_activation("sigmoid"), None)
    >>> least[0, :, 0], bool(np.all(least == greatest))
    (array([0.75, 0.25, 0.  ]), True)
    """
    n_steps, n_outputs = lowest.shape[1:]
    if _lists_trains(kernels, n_steps):
        feedback, counts = _after_each_train(kernels, n_steps)
    else:
        none = np.zeros((0, n_outputs))
        feedback, counts = _after_each_count(none if kernels is None else kernels, n_steps)
    enough = counts[:, np.newaxis] >= np.arange(1, n_steps + 2)
    least = greatest = enough[np.newaxis, :, :, np.newaxis].astype(float)
    # The states after a step begin with those reached without a spike in it, and end with those
    # reached with one.
    for step, (least_fed, most_fed) in reversed(list(enumerate(feedback))):
        low = activation.probability(lowest[:, step, np.newaxis] + least_fed)[:, :, np.newaxis]
        high = activation.probability(highest[:, step, np.newaxis] + most_fed)[:, :, np.newaxis]
        n_states = len(least_fed)
        silent, gain = least[:, :n_states], least[:, -n_states:] - least[:, :n_states]
        least = silent + np.minimum(low * gain, high * gain)
        silent, gain = greatest[:, :n_states], greatest[:, -n_states:] - greatest[:, :n_states]
        greatest = silent + np.maximum(low * gain, high * gain)
    return least[:, 0], greatest[:, 0]


def _after_each_train(kernels, n_steps):
    """Return the feedback if each spike train is a state, and the final number of spikes of each."""
    trains, feedback = np.zeros((1, 0)), []
    for step in range(n_steps):
        n_lags = min(len(kernels), step)
        # From the latest step back
        fed_back = trains[:, ::-1][:, :n_lags] @ kernels[:n_lags]
        feedback.append((fed_back, fed_back))
        spikes = np.repeat([0.0, 1.0], len(trains))[:, np.newaxis]
        trains = np.hstack([np.vstack([trains, trains]), spikes])
    return feedback, trains.sum(axis=1)


def _after_each_count(kernels, n_steps):
    """Return bounds on the feedback if each number of spikes is a state, and the final numbers.

    Of all ways to place so many spikes, those with the lowest and the highest kernel values count.
    """
    n_outputs, feedback = kernels.shape[1], []
    for step in range(n_steps):
        values = np.zeros((step, n_outputs))
        n_lags = min(len(kernels), step)
        values[:n_lags] = kernels[:n_lags]
        values.sort(axis=0)
        ends = [np.cumsum(one, axis=0) for one in (values, values[::-1])]
        none = np.zeros((1, n_outputs))
        feedback.append(tuple(np.concatenate([none, end]) for end in ends))
    return feedback, np.arange(n_steps + 1)
