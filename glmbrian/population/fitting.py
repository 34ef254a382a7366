"""Maximum-likelihood fits of a population to recorded spike trains.

The rate rule of `glmbrian.learning`, with all data as one batch, run to convergence.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..brian.connectivity import find_pairs
from ..brian.neurons import stacked
from ..core.activations import Activation, get_activation
from ..core.bases import Basis, as_basis
from ..core.likelihoods import filtered_in_chunks, rate_gradient
from ..support.renamed import renamed
from ..support.validation import integer, real, warn
from .data import checked_data, checked_mask, kernels_by_name
from .finishing import finished
from .population import GLMPopulation

#: Number of rows of the design matrix to weight at a time.
_CHUNK = 2**13

#: How often a step that does not lead uphill is halved at most.
_MOST_HALVINGS = 60

#: Between these values the squares of all sums are finite and not 0, with room for basis functions.
_SMALLEST_INPUT, _LARGEST_INPUT = 1e-100, 1e100

#: The largest ratio of an input's mean to its standard deviation.  Beyond it the input looks
#: constant, since the information matrix contains the square of this ratio.
_LARGEST_OFFSET = 1e6


@renamed(feedback="feedback_basis")
def fit_population(
    outputs: Any,
    inputs: Any = None,
    kernels: Basis | Mapping[str, Basis] | None = None,
    feedback_basis: Basis | None = None,
    activation: str | Activation = "sigmoid",
    penalty: float = 0.0,
    mask: ArrayLike | None = None,
    connect: Mapping[str, Any] | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    dt: Quantity | None = None,
    stable: bool = False,
    max_rate: ArrayLike | None = None,
) -> GLMPopulation:
    """Fit the kernels and biases of a population to recorded spike trains.

    The fit maximises the log-likelihood of the recorded trains (eq. LL_conv), with these
    trains fed back.  For the sigmoid, the probit and the cloglog it is concave, so there
    is no other maximum.  Each neuron is fitted separately, by Fisher scoring: the gradient
    is that of `glmbrian.learning.rate_log_likelihood`, and each step is its product with
    the inverse of the Fisher information.

    Parameters
    ----------
    outputs : array_like of 0/1, shape (T, n), or Recording
        Recorded trains of the population.
    inputs : array_like of float or dict of str to array_like, optional
        The input of each kernel, shape (T, n_source): spikes, counts or any continuous
        stimulus.  Give an array if there is one kernel, and leave it out if there is none.
        Coupling is a kernel whose input is the outputs:
        ``inputs={"stimulus": x, "coupling": outputs}``.  Recordings are binned.
    kernels : Basis or dict of str to Basis, optional
        As for `GLMPopulation`.  Without kernels the neurons have only a bias and, if given,
        a feedback kernel.
    feedback_basis : Basis, optional
        Basis of the feedback kernel.
    activation : {"sigmoid", "probit", "cloglog"} or Activation
    penalty : float
        Strength of a ridge penalty: ``penalty / 2`` times the sum of all squared weights,
        but not biases, is subtracted from the log-likelihood (in nats, summed over steps).
    mask : array_like of bool, shape (T,), optional
        The steps that count; all by default.  Kernels still see the other steps.  Use it
        to leave out the first steps of a recording, before which no input is known.  To
        separate consecutive trials in the arrays, leave out as many steps as the longest
        window at the beginning of each trial, or at the beginning of zeros put between
        the trials.
    connect : dict of str to (bool, str or pair of arrays), optional
        For each kernel, the pairs (source, neuron) that have weights, as in
        `GLMSynapses`.  By default all pairs, except a neuron's coupling with itself if the
        feedback basis can form the same kernels: the split between the two would be
        arbitrary, so the coupling's weights are then 0.
    tol : float
        Largest distance to the maximum, in standard errors of the parameters.
    max_iter : int
        Largest number of steps.
    dt : Quantity of time, optional
        Duration of a step of the data, such as ``1*ms``.  By default the step stored in the
        data: in a `Recording` made from bins or a monitor, or in a Tsd or TsdFrame of
        pynapple.  The population keeps it, so that its neurons run at this step.
    stable : bool
        Keep the gain of the population below its bound, so that it does not run away when it is
        simulated: the fit then ends with `GLMPopulation.stabilised`.
    max_rate : array_like of float, shape (n,) or a number, optional
        With `stable`, the rates that a simulation must not exceed for long; see
        `GLMPopulation.is_stable`.

    Returns
    -------
    GLMPopulation
        If the data leave weights undetermined (a source that is always silent, or
        kernels that can replace each other) it is one of the maxima.

    Raises
    ------
    ValueError, TypeError
        If shapes do not match, values are not finite, or a neuron never spikes or always
        spikes in the steps that count: its bias would be infinite.  If the data have
        different steps, or steps other than `dt`.  If an input is too large or too small to
        be squared, or its mean is so far from 0 that rounding would hide its variation.

    Warns
    -----
    RuntimeWarning
        If the maximum is at infinity for some neurons: a linear combination of their
        inputs predicts perfectly when there is no spike, or when there is one, for example
        after a neuron's own spike if it has a refractory period.  The fit ends when at most
        1e-8 nats can be gained; some weights are then large, and their exact values mean
        little.  A `penalty` keeps them finite.  Also if `max_iter` steps were not enough,
        and if a feedback kernel can form part of a neuron's coupling with itself, so that
        the split between the two is arbitrary.

    Notes
    -----
    The design matrix takes most of the memory: twice 8 bytes for each step and parameter of
    a neuron.

    Examples
    --------
    An input spikes in every second step; a spike follows one in four of its spikes, and
    one in eight of its silences.

    >>> import numpy as np
    >>> import glmbrian as glm
    >>> x, y = np.zeros((2, 401, 1))
    >>> x[::2] = y[1::8] = y[2::16] = 1
    >>> population = glm.fit_population(y, x, glm.IndicatorBasis(1), mask=np.arange(401) > 0)
    >>> population.firing_probability([[1], [0], [1]])[1:].round(3)
    array([[0.25 ],
           [0.125]])
    """
    kernels = kernels_by_name({} if kernels is None and inputs is None else kernels)
    if outputs is None:
        raise TypeError("outputs must be an array of the shape (T, n), got None")
    inputs, outputs, n_steps, dt = checked_data(
        inputs, outputs, kernels, dict.fromkeys(kernels, "n_source"), "n", dt, mask is not None
    )
    n = outputs.shape[1]
    if n == 0:
        raise ValueError("outputs must have at least one neuron")
    if feedback_basis is not None:
        feedback_basis = as_basis(feedback_basis, "feedback_basis")
    activation = get_activation(activation)
    penalty = real(penalty, "penalty", 0)
    tol = real(tol, "tol", 0, strict=True)
    max_iter = integer(max_iter, "max_iter")
    rows = checked_mask(mask, n_steps)
    for name, x in inputs.items():
        _check_scale(x, x[rows], f"inputs[{name!r}]")
    connected = _connected(connect, {name: x.shape[1] for name, x in inputs.items()}, n)
    if feedback_basis is not None:
        _leave_to_feedback(connected, connect or {}, inputs, outputs, kernels, feedback_basis, penalty)
    targets = outputs[rows]
    silences = 1 - targets
    for events, problem in (targets, "never spikes"), (silences, "always spikes"):
        missing = np.flatnonzero(~events.any(axis=0))
        if missing.size:
            raise ValueError(
                f"outputs: neuron {missing[0]} {problem} in the steps that count, "
                "so its best bias would be infinite; leave it out"
            )

    common = (design_matrix(inputs, kernels) if kernels else np.ones((n_steps, 1)))[rows]
    parameters = np.zeros((n, common.shape[1]))
    feedback_weights = None if feedback_basis is None else np.zeros((n, feedback_basis.n_basis))
    endless, unfinished = [], []
    for i in range(n):
        free = np.concatenate(
            [[True], *(np.repeat(connected[key][:, i], kernels[key].n_basis) for key in kernels)]
        )
        design = common[:, free]
        if feedback_basis is not None:
            design = np.hstack([design, filtered_by_each(outputs[:, [i]], feedback_basis)[rows]])
        best, outcome = _maximise(design, targets[:, i], activation, penalty, tol, max_iter)
        parameters[i, free] = best[: free.sum()]
        if feedback_basis is not None:
            feedback_weights[i] = best[free.sum() :]  # type: ignore[index]
        if outcome == "endless":
            endless.append(i)
        elif outcome == "unfinished":
            unfinished.append(i)
    if endless:
        warn(
            f"the likelihood of the neurons {endless} has no finite maximum: their inputs predict "
            "some steps without a spike, or with one, perfectly, and some weights grew until the "
            "fit stopped; a penalty above 0 keeps them finite",
            RuntimeWarning,
        )
    if unfinished:
        warn(
            f"the fit of the neurons {unfinished} did not reach the maximum in "
            f"max_iter={max_iter} steps",
            RuntimeWarning,
        )
    bias, weights = split_parameters(parameters, inputs, kernels)
    population = GLMPopulation(bias, kernels, weights, feedback_basis, feedback_weights, activation, dt)
    return finished(population, outputs, inputs, mask, penalty > 0, stable, max_rate)


def design_matrix(
    inputs: Mapping[str, NDArray[np.float64]], kernels: Mapping[str, Basis]
) -> NDArray[np.float64]:
    """Return what the bias and each weight are multiplied by, step by step.

    Parameters
    ----------
    inputs : dict of str to ndarray of float, shape (T, n_source)
    kernels : dict of str to Basis
        At least one.

    Returns
    -------
    ndarray of float, shape (T, 1 + sum of n_source * n_basis)
        A one for the bias, then for each kernel, each source and each basis function
        the input filtered by it.
    """
    columns = [filtered_by_each(inputs[name], basis) for name, basis in kernels.items()]
    return np.hstack([np.ones((len(columns[0]), 1)), *columns])


def filtered_by_each(series: NDArray[np.float64], basis: Basis) -> NDArray[np.float64]:
    """Filter each column by each basis function: (T, N) to (T, N * n_basis)."""
    by_function = [
        filtered_in_chunks(series, lambda part: part[np.newaxis], basis.matrix[:, [k]])
        for k in range(basis.n_basis)
    ]
    return np.stack(by_function, axis=2).reshape(len(series), series.shape[1] * len(by_function))


def split_parameters(
    parameters: NDArray[np.float64],
    inputs: Mapping[str, NDArray[np.float64]],
    kernels: Mapping[str, Basis],
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """Return bias and weights from parameters (n, n_columns of `design_matrix`)."""
    n_weights = [inputs[name].shape[1] * basis.n_basis for name, basis in kernels.items()]
    bias, *parts = np.split(parameters, np.cumsum([1, *n_weights])[:-1], axis=1)
    weights = {
        name: part.reshape(len(parameters), inputs[name].shape[1], basis.n_basis).swapaxes(0, 1)
        for part, (name, basis) in zip(parts, kernels.items())
    }
    return bias[:, 0], weights


def penalised_log_likelihood(
    parameters: NDArray[np.float64],
    design: NDArray[np.float64],
    spikes: np.ndarray,
    activation: Activation,
    penalty: float,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Return the objective of one neuron, its gradient, and the potential.

    `parameters` are the bias and the weights, `design` (T, n_parameters) holds what they
    are multiplied by, and `spikes` (T,) is the recorded train.
    """
    u = design @ parameters
    value, grad_u = rate_gradient(u, spikes, activation)
    weights = np.append(0.0, parameters[1:])
    return value - penalty / 2 * weights @ weights, design.T @ grad_u - penalty * weights, u


def _maximise(design, spikes, activation, penalty, tol, max_iter):
    """Return the parameters of one neuron with the largest penalised log-likelihood.

    Also return how the search ended: "converged", "endless" or "unfinished".
    """
    parameters = np.zeros(design.shape[1])
    if parameters.size > 1:
        # Fitting the bias first makes half of the steps one-dimensional.
        parameters[:1] = _maximise(design[:, :1], spikes, activation, penalty, tol, max_iter)[0]
    ridge = penalty * np.diag(np.arange(parameters.size) > 0)

    def objective(parameters):
        # A step that is too long may reach a log-likelihood of -inf.
        with np.errstate(over="ignore"):
            return penalised_log_likelihood(parameters, design, spikes, activation, penalty)

    value, gradient, u = objective(parameters)
    for _ in range(max_iter):
        # The Fisher information is positive for any activation, unlike the second
        # derivative, and needs only the slopes.
        weights = -activation.log_spike_slope(u) * activation.log_silence_slope(u)
        step = _solve(_gram(design, weights) + ridge, gradient)
        # If the objective were quadratic: the squared distance to the maximum in standard
        # errors, and twice the possible gain.
        gain = gradient @ step
        if gain <= tol * tol:
            return parameters + step, "converged"
        if gain < 1e-8 and np.abs(design @ step).max() > 0.01:
            return parameters, "endless"
        for _ in range(_MOST_HALVINGS):
            new_value, new_gradient, new_u = objective(parameters + step)
            if new_value >= value - 1e-12 * abs(value):
                break
            step /= 2
        parameters = parameters + step
        value, gradient, u = new_value, new_gradient, new_u
    return parameters, "unfinished"


def _gram(design, weights):
    """Return ``design.T @ diag(weights) @ design``, without copying all of `design`."""
    total = 0.0
    for start in range(0, len(design), _CHUNK):
        rows = slice(start, start + _CHUNK)
        part = np.sqrt(weights[rows])[:, np.newaxis] * design[rows]
        total = total + part.T @ part
    return total


def _solve(matrix, vector):
    """Solve for a positive semidefinite matrix; the solution is 0 along its null space."""
    # With all parameters on one scale, small eigenvalues come from rounding.
    scale = np.sqrt(np.diag(matrix))
    absent = scale == 0
    scale[absent] = 1.0
    values, axes = np.linalg.eigh(matrix / np.outer(scale, scale))
    kept = values > values.size * np.finfo(float).eps * values[-1]
    axes = axes[:, kept]
    axes[absent] = 0.0
    return axes @ (axes.T @ (vector / scale) / values[kept]) / scale


def _connected(connect, n_sources, n):
    """Return for each kernel which pairs have weights, shape (n_source, n)."""
    connect = {} if connect is None else connect
    if not isinstance(connect, dict) or not set(connect) <= set(n_sources):
        raise ValueError(f"connect must be a dict with keys among {list(n_sources)}, got {connect!r}")
    connected = {}
    for name, n_source in n_sources.items():
        connected[name] = np.zeros((n_source, n), dtype=bool)
        connected[name][find_pairs(connect.get(name, True), n_source, n)] = True
    return connected


def _leave_to_feedback(connected, connect, inputs, outputs, kernels, feedback_basis, penalty):
    """Remove each neuron's own train from `connected` if the feedback kernel already covers it.

    Only if the user has not set the connections, and no kernel is lost.
    """
    arbitrary = []
    own_trains = [train.tobytes() for train in outputs.T.astype(float)]
    for name, x in inputs.items():
        own = np.array(
            [[column == train for train in own_trains] for column in (c.tobytes() for c in x.T)]
        ).reshape(connected[name].shape)
        if not np.any(own & connected[name]):
            continue
        own_rank, both_rank = _ranks(feedback_basis.matrix, kernels[name].matrix)
        if both_rank == own_rank and name not in connect:
            connected[name] &= ~own
        elif both_rank < own_rank + np.linalg.matrix_rank(kernels[name].matrix):
            arbitrary.append(name)
    # A penalty would determine the split.
    if arbitrary and penalty == 0:
        warn(
            f"the kernels {arbitrary} couple neurons with themselves, and the feedback kernel can form "
            "part of the same: the fit has split the two arbitrarily. Pass connect="
            f"{{{arbitrary[0]!r}: 'i != j'}} to leave a neuron's effect on itself to the feedback, "
            "or leave feedback_basis out",
            RuntimeWarning,
        )


def _ranks(first, second):
    """Return the ranks of the first basis, and of both together."""
    both = stacked([first, second])
    both = both / np.maximum(np.abs(both).max(axis=0), np.finfo(float).tiny)
    return np.linalg.matrix_rank(both[:, : first.shape[1]]), np.linalg.matrix_rank(both)


def _check_scale(x, counted, name):
    """Raise if double precision cannot hold an input, shape (T, n_source), and its squares."""
    largest = np.abs(x).max(axis=0, initial=0.0)
    for source in np.flatnonzero(
        (largest > 0) & ((largest < _SMALLEST_INPUT) | (largest > _LARGEST_INPUT))
    ):
        raise ValueError(
            f"{name} must be on a scale from {_SMALLEST_INPUT:g} to {_LARGEST_INPUT:g}, but source "
            f"{source} goes up to {largest[source]:g}; divide it by its standard deviation"
        )
    spread, mean = np.ptp(counted, axis=0), np.abs(counted.mean(axis=0))
    for source in np.flatnonzero((spread > 0) & (mean > _LARGEST_OFFSET * counted.std(axis=0))):
        raise ValueError(
            f"{name}: source {source} varies by only {spread[source]:g} around a mean of "
            f"{mean[source]:g}, so rounding would hide the variation; subtract the mean, which the "
            "bias replaces"
        )
