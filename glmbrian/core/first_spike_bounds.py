"""Bounds on the probability of spiking first, for all potentials in a range."""

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .tie_rules import SILENCE_AGAINST, others

#: By how much a probability must exceed another to be larger in spite of rounding errors.
BOUND_MARGIN = 1e-9


def first_spike_is_certain(
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    labels: NDArray[np.int64],
    activation: Activation,
    on_silence: str,
) -> NDArray[np.bool_]:
    """Return where the right output has the highest probability, for all potentials in a range.

    The probability that the right output spikes alone, before any other, grows with its own
    potentials, and falls with those of the others.  The same holds for the probability that a
    wrong output is among those that spike first.  So the first is compared, at the least
    favourable potentials, with the second for each wrong output, at the most favourable ones for
    this output.  If silence can be decided for the wrong output, its greatest probability is added.
    This holds for each `on_tie`.

    Parameters
    ----------
    lowest, highest : ndarray of float, shape (n, T, N_Y)
    labels : ndarray of int, shape (n,)
    activation : Activation
    on_silence : str

    Returns
    -------
    ndarray of bool, shape (n,)

    Examples
    --------
    >>> import glmbrian as glm
    >>> sigmoid = glm.get_activation("sigmoid")
    >>> u = np.array([[[5.0, -5.0]], [[1.0, 0.0]]])
    >>> first_spike_is_certain(u - 1, u + 1, np.array([0, 0]), sigmoid, "reject")
    array([ True, False])
    """
    spike_low, silence_low = activation.log_spike(lowest), activation.log_silence(lowest)
    spike_high, silence_high = activation.log_spike(highest), activation.log_silence(highest)
    # For each output: alone at its lowest and the others' highest potentials, and the reverse
    alone = _first(spike_low, silence_low, others(silence_high), is_alone=True)
    among = _first(spike_high, silence_high, others(silence_low), is_alone=False)
    silent = np.exp(silence_low.sum(axis=(1, 2))) * SILENCE_AGAINST[on_silence]
    rows = np.arange(len(labels))
    right = alone[rows, labels]
    among[rows, labels] = 0.0
    return right > among.max(axis=1) + silent + BOUND_MARGIN


def _first(log_spike, log_wait, log_others, is_alone):
    """Return the probability that each output spikes first: alone, or with others."""
    reached = np.zeros_like(log_wait)
    reached[:, 1:] = np.cumsum(log_wait + log_others, axis=1)[:, :-1]
    return np.exp(reached + log_spike + (log_others if is_alone else 0.0)).sum(axis=1)
