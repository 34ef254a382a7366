"""The log-likelihoods of one presentation, and their gradients, in plain NumPy.

This is the reference for every device.  Nothing here simulates.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.floating_point import underflow_is_zero
from ..support.renamed import renamed
from ..support.validation import binary_array, check_size, finite_array, integer
from .activations import Activation, get_activation

__all__ = [
    "desired_train",
    "feedback_gradient",
    "first_to_spike_gradient",
    "first_to_spike_log_likelihood",
    "membrane_potential",
    "rate_gradient",
    "rate_log_likelihood",
    "weight_gradient",
]


@renamed(feedback="feedback_weights")
@underflow_is_zero
def membrane_potential(
    spikes: ArrayLike,
    basis: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    outputs: ArrayLike | None = None,
    feedback_basis: ArrayLike | None = None,
    feedback_weights: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Return the membrane potentials for given spike trains.

    Eq. membrane_potential_GLM: at step t (from 1) the potential depends on inputs and
    outputs up to step t - 1, so at t = 1 it is the bias alone.

    Parameters
    ----------
    spikes : array_like of 0/1, shape (T, N_X)
        Input spike trains.
    basis : array_like of float, shape (window, K)
        Basis of the synaptic kernels, e.g. ``RaisedCosineBasis(...).matrix``.
    weights : array_like of float, shape (N_X, N_Y, K)
    bias : array_like of float, shape (N_Y,)
    outputs : array_like of 0/1, shape (T, N_Y), optional
        Output spike trains, for the feedback; none by default.
    feedback_basis : array_like of float, shape (window_fb, K_fb), optional
    feedback_weights : array_like of float, shape (N_Y, K_fb), optional
        Weights of the feedback kernels.  Give all of the last three or none.

    Returns
    -------
    u : ndarray of float, shape (T, N_Y)

    Raises
    ------
    ValueError, TypeError
        If shapes do not match, or values are not finite, or not 0 and 1.

    Examples
    --------
    >>> membrane_potential([[1], [0], [0]], [[1.0], [0.5]], [[[2.0]]], [-1.0]).ravel()
    array([-1.,  1.,  0.])
    """
    spikes, basis, weights, bias = _checked_inputs(spikes, basis, weights, bias)
    u = potential_of_inputs(spikes, basis, weights, bias)
    given = [value is not None for value in (outputs, feedback_basis, feedback_weights)]
    if any(given):
        if not all(given):
            raise ValueError("outputs, feedback_basis and feedback_weights must be given together")
        emitted = binary_array(outputs, "outputs", u.shape)
        feedback_basis, feedback_weights = _checked_feedback(
            feedback_basis, feedback_weights, bias.size
        )
        u += potential_of_outputs(emitted, feedback_basis, feedback_weights)
    return u


@underflow_is_zero
def first_to_spike_log_likelihood(
    spikes: ArrayLike,
    label: int,
    basis: ArrayLike,
    weights: ArrayLike,
    bias: ArrayLike,
    activation: str | Activation = "sigmoid",
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Log-probability that the right neuron spikes first, and its gradient.

    Eqs. first_spk_method_2 to first_spk_method_q.  Outputs are held silent, so
    feedback plays no part.

    Parameters
    ----------
    spikes : array_like of 0/1, shape (T, N_X)
        Input spike trains.
    label : int
        Index of the right neuron, from 0 to N_Y - 1.
    basis : array_like of float, shape (window, K)
    weights : array_like of float, shape (N_X, N_Y, K)
    bias : array_like of float, shape (N_Y,)
    activation : str or Activation
        See `glmbrian.get_activation`.

    Returns
    -------
    log_likelihood : float
    grad_weights : ndarray of float, shape (N_X, N_Y, K)
    grad_bias : ndarray of float, shape (N_Y,)

    Raises
    ------
    ValueError, TypeError
        If shapes do not match, `label` is out of range, or values are not
        finite, or not 0 and 1.

    Examples
    --------
    Two neurons fire with probability 1/2 in each of two steps, and no inputs reach
    them: neuron 0 is first with probability 1/4 + 1/16.

    >>> import numpy as np
    >>> value, grad_weights, grad_bias = first_to_spike_log_likelihood(
    ...     [[1], [0]], 0, basis=[[1.0]], weights=np.zeros((1, 2, 1)), bias=[0.0, 0.0]
    ... )
    >>> round(float(np.exp(value)), 12)
    0.3125
    >>> grad_bias.round(12)
    array([ 0.4, -0.6])

    The input in step 1 affects the potentials in step 2:

    >>> grad_weights[0, :, 0].round(12)
    array([ 0.1, -0.1])
    """
    spikes, basis, weights, bias = _checked_inputs(spikes, basis, weights, bias)
    label = integer(label, "label", 0, bias.size - 1)
    u = potential_of_inputs(spikes, basis, weights, bias)
    log_likelihood, grad_u = first_to_spike_gradient(u, label, get_activation(activation))
    return log_likelihood, weight_gradient(spikes, grad_u, basis), grad_u.sum(axis=0)


@renamed(feedback="feedback_weights")
@underflow_is_zero
def rate_log_likelihood(
    spikes: ArrayLike,
    targets: ArrayLike,
    basis: ArrayLike,
    feedback_basis: ArrayLike,
    weights: ArrayLike,
    feedback_weights: ArrayLike,
    bias: ArrayLike,
    activation: str | Activation = "sigmoid",
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Log-probability of desired output trains, and its gradient.

    Eqs. LL_conv and w_update_g to rho_def.  The desired trains are fed back.

    Parameters
    ----------
    spikes : array_like of 0/1, shape (T, N_X)
        Input spike trains.
    targets : array_like of 0/1, shape (T, N_Y)
        Desired output trains.
    basis : array_like of float, shape (window, K)
    feedback_basis : array_like of float, shape (window_fb, K_fb)
    weights : array_like of float, shape (N_X, N_Y, K)
    feedback_weights : array_like of float, shape (N_Y, K_fb)
    bias : array_like of float, shape (N_Y,)
    activation : str or Activation
        See `glmbrian.get_activation`.

    Returns
    -------
    log_likelihood : float
    grad_weights : ndarray of float, shape (N_X, N_Y, K)
    grad_feedback : ndarray of float, shape (N_Y, K_fb)
    grad_bias : ndarray of float, shape (N_Y,)

    Raises
    ------
    ValueError, TypeError
        If shapes do not match, or values are not finite, or not 0 and 1.

    Examples
    --------
    One neuron with a firing probability of 1/2 in each of three steps, which should
    spike in the last two:

    >>> import numpy as np
    >>> value, grad_weights, grad_feedback, grad_bias = rate_log_likelihood(
    ...     [[1], [0], [0]], [[0], [1], [1]], basis=[[1.0]], feedback_basis=[[1.0]],
    ...     weights=np.zeros((1, 1, 1)), feedback_weights=np.zeros((1, 1)), bias=[0.0],
    ... )
    >>> round(float(np.exp(value)), 12)
    0.125
    >>> grad_bias, grad_weights.ravel(), grad_feedback.ravel()
    (array([0.5]), array([0.5]), array([0.5]))
    """
    spikes, basis, weights, bias = _checked_inputs(spikes, basis, weights, bias)
    desired = binary_array(targets, "targets", (spikes.shape[0], bias.size))
    feedback_basis, feedback_weights = _checked_feedback(feedback_basis, feedback_weights, bias.size)
    u = potential_of_inputs(spikes, basis, weights, bias)
    u += potential_of_outputs(desired, feedback_basis, feedback_weights)
    log_likelihood, grad_u = rate_gradient(u, desired, get_activation(activation))
    grad_feedback = feedback_gradient(desired, grad_u, feedback_basis)
    return (
        log_likelihood,
        weight_gradient(spikes, grad_u, basis),
        grad_feedback,
        grad_u.sum(axis=0),
    )


@underflow_is_zero
def first_to_spike_gradient(
    u: NDArray[np.float64], label: int, activation: Activation
) -> tuple[float, NDArray[np.float64]]:
    """Return the first-to-spike log-likelihood and its gradient with respect to the potentials.

    Parameters
    ----------
    u : ndarray of float, shape (T, N_Y)
        Membrane potentials while all outputs are silent.
    label : int
        Index of the right neuron.
    activation : Activation

    Returns
    -------
    log_likelihood : float
    grad_u : ndarray of float, shape (T, N_Y)

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> value, grad_u = first_to_spike_gradient(np.zeros((2, 2)), 0, glm.get_activation("sigmoid"))
    >>> round(float(np.exp(value)), 12)
    0.3125
    >>> grad_u.round(12)
    array([[ 0.3, -0.5],
           [ 0.1, -0.1]])
    """
    u_right = u[:, label]
    log_spike = activation.log_spike(u_right)
    log_silence = activation.log_silence(u)
    log_wait = log_silence[:, label]
    log_others = np.delete(log_silence, label, axis=1).sum(axis=1)
    # The paper shifts each log p_t by their minimum and normalises.  That
    # overflows, and if all share a factor of exp(-1e21) their ratios are lost.
    # So go backwards instead: let w_t be the probability that the right neuron
    # spikes first given that none spiked before t, and
    # s_t = g(u_c,t) + (1 - g(u_c,t)) w_t+1; then w_t = s_t prod_i!=c (1 - g(u_i,t)).
    stop = np.empty_like(u_right)  # q_t / h_t
    go_on = np.empty_like(u_right)  # h_t+1 / h_t
    loss = np.empty_like(u_right)  # 1 - w_t+1
    log_win, loss_now = -math.inf, 1.0
    for t in reversed(range(len(u))):
        loss[t] = loss_now
        log_s = _log_mixture(log_spike[t], log_wait[t], log_win, loss_now)
        stop[t] = log_spike[t] - log_s
        go_on[t] = log_wait[t] + log_win - log_s
        log_win = log_others[t] + log_s
        loss_now = -math.expm1(log_win)
    h = np.exp(np.append(0.0, np.cumsum(go_on[:-1])))
    grad_u = h[:, np.newaxis] * activation.log_silence_slope(u)
    # rho (q - h g) with q - h g = h g (1 - g) (1 - w_t+1) / s: nothing cancels
    grad_u[:, label] = h * np.exp(stop) * loss * activation.log_spike_slope(u_right)
    return float(log_win), grad_u


def _log_mixture(log_g, log_rest, log_w, loss):
    """Return log(g + (1 - g) w), given both logarithms and ``loss = 1 - w``."""
    missing = math.exp(log_rest) * loss
    if missing < 0.5:
        return math.log1p(-missing)
    a, b = log_g, log_rest + log_w
    largest = max(a, b)
    return largest + math.log(math.exp(a - largest) + math.exp(b - largest))


@underflow_is_zero
def rate_gradient(
    u: NDArray[np.float64], targets: np.ndarray, activation: Activation
) -> tuple[float, NDArray[np.float64]]:
    """Return the log-likelihood of desired trains and its gradient with respect to the potentials.

    Parameters
    ----------
    u : ndarray of float, shape (T, N_Y)
        Membrane potentials under the desired trains.
    targets : ndarray of 0/1, shape (T, N_Y)
    activation : Activation

    Returns
    -------
    log_likelihood : float
    grad_u : ndarray of float, shape (T, N_Y)

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> targets = np.array([[0], [1]])
    >>> value, grad_u = rate_gradient(np.zeros((2, 1)), targets, glm.get_activation("sigmoid"))
    >>> round(float(np.exp(value)), 12), grad_u.ravel()
    (0.25, array([-0.5,  0.5]))
    """
    spikes = targets.astype(bool)
    log_likelihood = np.where(spikes, activation.log_spike(u), activation.log_silence(u))
    return float(log_likelihood.sum()), activation.log_probability_slope(u, spikes)


def desired_train(n_steps: int, period: int, start: int | None = None) -> NDArray[np.uint8]:
    """Return the desired train of the right neuron in rate training.

    One spike after every ``period - 1`` zeros; with `start`, the first one in that step.

    Parameters
    ----------
    n_steps : int
    period : int
    start : int, optional
        Step of the first spike, from 1; by default `period`.  If it exceeds `n_steps` there is no spike.

    Returns
    -------
    ndarray of uint8, shape (n_steps,)

    Raises
    ------
    TypeError, ValueError
        If an argument is not an integer of at least 1.

    Examples
    --------
    >>> desired_train(8, 4)
    array([0, 0, 0, 1, 0, 0, 0, 1], dtype=uint8)
    >>> desired_train(8, 2, start=5)
    array([0, 0, 0, 0, 1, 0, 1, 0], dtype=uint8)
    """
    n_steps = integer(n_steps, "n_steps")
    period = integer(period, "period")
    start = period if start is None else integer(start, "start")
    check_size(n_steps, "n_steps", "use fewer steps")
    train = np.zeros(n_steps, dtype=np.uint8)
    train[start - 1 :: period] = 1
    return train


def potential_of_inputs(
    inputs: np.ndarray,
    basis: NDArray[np.float64],
    weights: NDArray[np.float64],
    bias: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the potential (T, N_Y) due to real-valued `inputs` (T, N_X) and the bias."""
    by_function = weights.transpose(2, 0, 1)
    return bias + filtered_in_chunks(inputs, lambda part: part @ by_function, basis)


def potential_of_outputs(
    outputs: np.ndarray,
    feedback_basis: NDArray[np.float64],
    feedback_weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the potential (T, N_Y) due to the feedback of `outputs` (T, N_Y)."""
    by_function = feedback_weights.T[:, np.newaxis, :]
    return filtered_in_chunks(outputs, lambda part: part * by_function, feedback_basis)


#: Number of steps of a long recording to hold in memory at a time.
CHUNK = 2**15


def filtered_in_chunks(
    series: np.ndarray, channels: Callable[[np.ndarray], np.ndarray], basis: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return ``_filtered(channels(series), basis)``, for `series` of any length."""
    window = basis.shape[0]
    parts = []
    for start in range(0, len(series), CHUNK):
        first = max(0, start - window)
        part = channels(series[first : start + CHUNK])
        parts.append(_filtered(part, basis)[start - first :])
    return np.concatenate(parts)


def _filtered(channels, basis):
    """Filter channels (K, T, N) by the basis functions and sum over K: (T, N)."""
    n_basis, n_steps, n_targets = channels.shape
    window = max(1, min(basis.shape[0], n_steps - 1))
    # A block of `window` steps depends only on itself and the block before it, through
    # matrices that are the same for all blocks: this takes two large matrix products.
    n_blocks = -(-n_steps // window)
    padded = np.zeros((n_basis, (n_blocks + 1) * window, n_targets))
    padded[:, window : window + n_steps] = channels
    blocks = padded.reshape(n_basis, n_blocks + 1, window, n_targets)
    lags = np.arange(window) - np.arange(-window, window)[:, np.newaxis]
    seen = (lags >= 1) & (lags <= window)
    weights = np.where(seen, basis.T[:, np.where(seen, lags, 1) - 1], 0.0)
    before, same = weights[:, :window], weights[:, window:]
    potential = np.tensordot(blocks[:, :-1], before, axes=([0, 2], [0, 1]))
    potential += np.tensordot(blocks[:, 1:], same, axes=([0, 2], [0, 1]))
    return potential.transpose(0, 2, 1).reshape(n_blocks * window, n_targets)[:n_steps]


def correlated(grad_u: NDArray[np.float64], basis: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the gradient in the arriving weights (K, T, N), given the gradient in `u` (T, N).

    A spike that arrives in step t changes `u` in the steps after t, by the basis.
    """
    n_steps = grad_u.shape[0]
    channels = np.zeros((basis.shape[1],) + grad_u.shape)
    for lag in range(1, min(basis.shape[0], n_steps - 1) + 1):
        channels[:, : n_steps - lag] += np.multiply.outer(basis[lag - 1], grad_u[lag:])
    return channels


@underflow_is_zero
def weight_gradient(
    spikes: np.ndarray, grad_u: NDArray[np.float64], basis: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the gradient in the weights, given the gradient in the potentials.

    Parameters
    ----------
    spikes : ndarray of 0/1, shape (T, N_X)
        Input spike trains.
    grad_u : ndarray of float, shape (T, N_Y)
        See `first_to_spike_gradient` and `rate_gradient`.
    basis : ndarray of float, shape (window, K)

    Returns
    -------
    ndarray of float, shape (N_X, N_Y, K)

    Examples
    --------
    A spike in step 1 changes the potential in step 2, and half as much in step 3:

    >>> import numpy as np
    >>> grad_u = np.array([[5.0], [1.0], [-4.0]])
    >>> weight_gradient(np.array([[1], [0], [0]]), grad_u, np.array([[1.0], [0.5]])).ravel()
    array([-1.])
    """
    return np.einsum("tj,kti->jik", spikes, correlated(grad_u, basis), optimize=True)


@underflow_is_zero
def input_gradient(
    grad_u: NDArray[np.float64], basis: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the gradient in the input spikes, given the gradient in the potentials.

    Parameters
    ----------
    grad_u : ndarray of float, shape (T, N_Y)
    basis : ndarray of float, shape (window, K)
    weights : ndarray of float, shape (N_X, N_Y, K)

    Returns
    -------
    ndarray of float, shape (T, N_X)
        As if spikes were real numbers.  Spikes of the last step have no effect.

    Examples
    --------
    >>> import numpy as np
    >>> grad_u = np.array([[5.0], [1.0], [-4.0]])
    >>> input_gradient(grad_u, np.array([[1.0], [0.5]]), np.array([[[2.0]]])).ravel()
    array([-2., -8.,  0.])
    """
    return np.einsum("kti,jik->tj", correlated(grad_u, basis), weights, optimize=True)


@underflow_is_zero
def feedback_gradient(
    outputs: np.ndarray, grad_u: NDArray[np.float64], basis: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the gradient in the feedback weights, given the gradient in the potentials.

    Parameters
    ----------
    outputs : ndarray of 0/1, shape (T, N_Y)
        Output spike trains that were fed back.
    grad_u : ndarray of float, shape (T, N_Y)
        See `rate_gradient`.
    basis : ndarray of float, shape (window, K)

    Returns
    -------
    ndarray of float, shape (N_Y, K)

    Examples
    --------
    Each neuron sees only its own spikes:

    >>> import numpy as np
    >>> outputs, grad_u = np.array([[1, 0], [0, 0]]), np.array([[0.0, 0.0], [3.0, 5.0]])
    >>> feedback_gradient(outputs, grad_u, np.array([[1.0]])).ravel()
    array([3., 0.])
    """
    return np.einsum("ti,kti->ik", outputs, correlated(grad_u, basis))


def _checked_inputs(
    spikes: Any, basis: Any, weights: Any, bias: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    spikes = binary_array(spikes, "spikes", ("T", "N_X"))
    if 0 in spikes.shape:
        raise ValueError(f"spikes must have at least one step and one input, got {spikes.shape}")
    basis = finite_array(basis, "basis", ("window", "K"))
    if 0 in basis.shape:
        raise ValueError(f"basis must have at least one lag and one function, got {basis.shape}")
    bias = finite_array(bias, "bias", ("N_Y",))
    if bias.size == 0:
        raise ValueError("bias must have at least one entry")
    weights = finite_array(weights, "weights", (spikes.shape[1], bias.size, basis.shape[1]))
    return spikes, basis, weights, bias


def _checked_feedback(
    feedback_basis: Any, feedback_weights: Any, n_outputs: int
) -> tuple[np.ndarray, np.ndarray]:
    feedback_basis = finite_array(feedback_basis, "feedback_basis", ("window_fb", "K_fb"))
    if 0 in feedback_basis.shape:
        raise ValueError(
            f"feedback_basis must have at least one lag and one function, got {feedback_basis.shape}"
        )
    shape = (n_outputs, feedback_basis.shape[1])
    return feedback_basis, finite_array(feedback_weights, "feedback_weights", shape)
