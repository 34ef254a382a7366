"""Bounds on the probability of the most spikes, for all potentials in a range.

Given the inputs, outputs are independent of each other, so what is needed is the least and the
greatest probability that each output has at least so many spikes.
"""

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .count_probabilities import MOST_LISTED_STEPS, after_each_train
from .first_spike_bounds import BOUND_MARGIN
from .tie_rules import SILENCE_AGAINST, others

#: Values that are held at a time.
_MOST_VALUES = 2**20

#: Whether potentials can decide a tie, for each value of `on_tie`.
_TIE_BY_POTENTIAL = {"potential": True, "random": False}


def most_spikes_is_certain(
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    labels: NDArray[np.int64],
    activation: Activation,
    kernels: NDArray[np.float64] | None,
    on_tie: str,
    on_silence: str,
) -> NDArray[np.bool_]:
    """Return where the right output has the highest probability, for all potentials in a range.

    An output with feedback need not spike more if its potential rises, since spikes may inhibit
    later ones.  So the bounds on its number of spikes let the potential in each step depend on all
    earlier spikes, at whichever end of its range is worse.  The probability that the right output
    wins grows with its own number of spikes, and falls with those of the others; the opposite holds
    for each wrong output.  So the two are compared at the least favourable numbers.  If potentials
    decide ties, the right output wins those with outputs whose summed potential is surely lower.
    All other ties count for the wrong output.  The same holds for silence.

    Parameters
    ----------
    lowest, highest : ndarray of float, shape (n, T, N_Y)
        Bounds on potentials without feedback.
    labels : ndarray of int, shape (n,)
    activation : Activation
    kernels : ndarray of float, shape (lags, N_Y), or None
        Feedback kernels.
    on_tie, on_silence : str

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> import glmbrian as glm
    >>> sigmoid = glm.get_activation("sigmoid")
    >>> u = np.array([[[5.0, -5.0]], [[1.0, 0.0]]])
    >>> most_spikes_is_certain(u - 1, u + 1, np.array([0, 0]), sigmoid, None, "random", "reject")
    array([ True, False])
    """
    n, _, n_outputs = lowest.shape
    if kernels is None:
        kernels = np.zeros((0, n_outputs))
    least, greatest = count_tails(lowest, highest, activation, kernels)
    right = np.arange(n), slice(None), labels
    is_higher = _is_higher(lowest, highest, labels, kernels)
    wins_tie = is_higher[:, 1:] & _TIE_BY_POTENTIAL[on_tie]

    # All others have fewer spikes than the right output, or as many and lose the tie.
    behind = 1 - np.where(wins_tie, greatest[:, 1:], greatest[:, :-1])
    behind[right] = 1.0
    own = least[right]
    wins = (_exactly(own) * behind.prod(axis=2)).sum(axis=1)
    # All others have fewer spikes than a wrong output, or as many and do not surely win the tie.
    right_behind = 1 - np.where(wins_tie, own[:, :-1, np.newaxis], own[:, 1:, np.newaxis])
    at_most = 1 - least[:, 1:]
    at_most[right] = 1.0
    with np.errstate(divide="ignore"):
        behind = right_behind * np.exp(others(np.log(np.clip(at_most, 0.0, 1.0))))
    against = (_exactly(greatest) * behind).sum(axis=1)
    # While nothing spikes, there is no feedback.
    silent, surely_silent = (
        np.exp(activation.log_silence(end).sum(axis=(1, 2))) * SILENCE_AGAINST[on_silence]
        for end in (lowest, highest)
    )
    wins += np.where(is_higher[:, 0].sum(axis=1) == n_outputs - 1, surely_silent, 0.0)
    against += np.where(is_higher[:, 0], 0.0, silent[:, np.newaxis])
    against[np.arange(n), labels] = 0.0
    return wins > against.max(axis=1) + BOUND_MARGIN


def _exactly(tail):
    """Return the probabilities of 1 to T spikes, given those of at least 1 to T + 1."""
    return tail[:, :-1] - tail[:, 1:]


def _is_higher(lowest, highest, labels, kernels):
    """Return where the right output surely has a higher summed potential than each other one.

    Of shape (n, T + 1, N_Y), for 0 to T spikes of both.
    """
    n_steps, n_outputs = lowest.shape[1:]
    # What a spike adds to the sum, if one, two, ... steps follow it up to the last
    n_lags = min(len(kernels), n_steps - 1)
    added = np.zeros((n_steps, n_outputs))
    added[1 : n_lags + 1] = kernels[:n_lags]
    fed_back = _sums_of_extremes(added.cumsum(axis=0))
    least, most = (
        end.sum(axis=1)[:, np.newaxis] + fed for end, fed in zip((lowest, highest), fed_back)
    )
    own = least[np.arange(len(labels)), :, labels][:, :, np.newaxis]
    return own > most + BOUND_MARGIN * (1 + np.abs(most))


def count_tails(
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    activation: Activation,
    kernels: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return bounds on the probability that each output has at least 1, ..., T + 1 spikes.

    From the last step back, for each state that earlier spikes can lead to: the spike train so far,
    if there are feedback kernels and at most 10 steps, or else the number of spikes so far.

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
    >>> least, greatest = count_tails(u, u, glm.get_activation("sigmoid"), np.zeros((0, 1)))
    >>> least[0, :, 0], bool(np.all(least == greatest))
    (array([0.75, 0.25, 0.  ]), True)
    """
    n, n_steps, n_outputs = lowest.shape
    feedback, counts = _states(kernels, n_steps)
    at_a_time = max(1, _MOST_VALUES // (len(counts) * n_steps * n_outputs))
    parts = [slice(first, first + at_a_time) for first in range(0, max(n, 1), at_a_time)]
    tails = [_tails(lowest[part], highest[part], activation, feedback, counts) for part in parts]
    least, greatest = (np.concatenate(each) for each in zip(*tails))
    return least, greatest


def _tails(lowest, highest, activation, feedback, counts):
    enough = counts[:, np.newaxis] >= np.arange(1, lowest.shape[1] + 2)
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


def _states(kernels, n_steps):
    """Return the least and the greatest feedback before each step, in each state, and final counts."""
    if len(kernels) and n_steps <= MOST_LISTED_STEPS:
        feedback, counts = after_each_train(kernels, n_steps)
        return [(fed_back, fed_back) for fed_back in feedback], counts
    return _after_each_count(kernels, n_steps)


def _after_each_count(kernels, n_steps):
    """Return bounds on the feedback if each number of spikes is a state, and the final numbers.

    Of all ways to place so many spikes, those with the lowest and the highest kernel values count.
    """
    feedback = []
    for step in range(n_steps):
        values = np.zeros((step, kernels.shape[1]))
        n_lags = min(len(kernels), step)
        values[:n_lags] = kernels[:n_lags]
        feedback.append(_sums_of_extremes(values))
    return feedback, np.arange(n_steps + 1)


def _sums_of_extremes(values):
    """Return the sums of the 0, 1, ... lowest entries along the first axis, and of the highest."""
    ordered, none = np.sort(values, axis=0), np.zeros((1, values.shape[1]))
    return tuple(np.concatenate([none, np.cumsum(one, axis=0)]) for one in (ordered, ordered[::-1]))
