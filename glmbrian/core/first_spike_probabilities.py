"""The probability that each output spikes first."""

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .tie_rules import WINS_SILENCE, WINS_TIE


def first_spike_probabilities(
    u: NDArray[np.float64], activation: Activation, on_tie: str, on_silence: str
) -> NDArray[np.float64]:
    """Return the probability that a first-to-spike test decides for each output.

    Parameters
    ----------
    u : ndarray of float, shape (n, T, N_Y)
        Membrane potentials while all outputs are silent.
    activation : Activation
    on_tie, on_silence : str
        See `glmbrian.core.decisions.decide`.

    Returns
    -------
    ndarray of float, shape (n, N_Y)
        Rows sum to 1; with ``on_silence="reject"`` to 1 minus the probability that no output
        spikes.

    Examples
    --------
    Two outputs fire with probability 1/2 in each of two steps:

    >>> import glmbrian as glm
    >>> sigmoid = glm.get_activation("sigmoid")
    >>> first_spike_probabilities(np.zeros((1, 2, 2)), sigmoid, "random", "reject").round(12)
    array([[0.46875, 0.46875]])
    """
    log_spike, log_silence = activation.log_spike(u), activation.log_silence(u)
    none_yet = np.cumsum(log_silence.sum(axis=2), axis=1)
    reached = np.zeros_like(none_yet)
    reached[:, 1:] = none_yet[:, :-1]
    wins = log_spike + WINS_TIE[on_tie](log_spike, log_silence, u)
    found = np.exp(reached[:, :, np.newaxis] + wins).sum(axis=1)
    silent = np.exp(none_yet[:, -1])[:, np.newaxis]
    return found + silent * WINS_SILENCE[on_silence](u.sum(axis=1))
