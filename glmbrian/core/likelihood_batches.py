"""First-to-spike log-likelihoods and gradients of many presentations at once."""

import numpy as np
from numpy.typing import NDArray

from .activations import Activation


def first_to_spike_values(
    u: NDArray[np.float64], labels: NDArray[np.int64], activation: Activation
) -> NDArray[np.float64]:
    """Return the log-probability that the right neuron spikes first, shape (n,).

    Parameters
    ----------
    u : ndarray of float, shape (n, T, N_Y)
        Membrane potentials while all outputs are silent.
    labels : ndarray of int, shape (n,)
        Indices of the right neurons.
    activation : Activation
    """
    return _sweep(u, labels, activation)[0]


def first_to_spike_gradients(
    u: NDArray[np.float64], labels: NDArray[np.int64], activation: Activation
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `first_to_spike_values` and their gradients with respect to `u`.

    `glmbrian.learning.first_to_spike_gradient` explains the equations.
    """
    values, u_right, stop, go_on, loss = _sweep(u, labels, activation)
    reached = np.zeros_like(stop)
    reached[:, 1:] = np.cumsum(go_on[:, :-1], axis=1)
    h = np.exp(reached)
    slopes = h[:, :, np.newaxis] * activation.log_silence_slope(u)
    right = h * np.exp(stop) * loss * activation.log_spike_slope(u_right)
    slopes[np.arange(len(u)), :, labels] = right
    return values, slopes


def _sweep(u, labels, activation):
    rows = np.arange(len(u))
    u_right = u[rows, :, labels]
    log_silence = activation.log_silence(u)
    log_spike, log_wait = activation.log_spike(u_right), log_silence[rows, :, labels]
    log_silence[rows, :, labels] = 0.0
    log_others = log_silence.sum(axis=2)
    stop, go_on, loss = (np.empty(u_right.shape) for _ in range(3))
    log_win, loss_now = np.full(len(u), -np.inf), np.ones(len(u))
    for t in reversed(range(u.shape[1])):
        loss[:, t] = loss_now
        log_s = _log_mixture(log_spike[:, t], log_wait[:, t], log_win, loss_now)
        stop[:, t] = log_spike[:, t] - log_s
        go_on[:, t] = log_wait[:, t] + log_win - log_s
        log_win = log_others[:, t] + log_s
        loss_now = -np.expm1(log_win)
    return log_win, u_right, stop, go_on, loss


def _log_mixture(log_g, log_rest, log_w, loss):
    """Return log(g + (1 - g) w), given both logarithms and ``loss = 1 - w``."""
    missing = np.exp(log_rest) * loss
    near_one = np.log1p(-np.minimum(missing, 0.5))
    return np.where(missing < 0.5, near_one, np.logaddexp(log_g, log_rest + log_w))
