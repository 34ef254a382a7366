"""Networks with hidden layers of GLM neurons, in NumPy: spikes, log-likelihood, gradients.

Hidden neurons spike at random, so training maximizes the mean, over hidden spikes, of the
log-likelihood of the outputs.  A `Credit` estimates how each hidden neuron contributes to it
(see `glmbrian.core.credit`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.floating_point import underflow_is_zero
from ..support.validation import binary_array, finite_array, integer
from .activations import Activation, get_activation
from .likelihoods import (
    feedback_gradient,
    input_gradient,
    potential_of_inputs,
    potential_of_outputs,
    weight_gradient,
)
from .objectives import Objective, get_objective


class Layer:
    """GLM neurons that receive the same inputs.

    Parameters
    ----------
    basis : array_like of float, shape (window, K)
        Basis of the synaptic kernels.
    weights : array_like of float, shape (n_in, n, K)
    bias : array_like of float, shape (n,)
    feedback_basis : array_like of float, shape (window_fb, K_fb), optional
    feedback : array_like of float, shape (n, K_fb), optional
        Weights of the feedback kernels.  Give both `feedback_basis` and `feedback`, or neither.
    activation : str or Activation

    Raises
    ------
    TypeError, ValueError
        If shapes do not match, or values are not finite.

    Examples
    --------
    >>> import numpy as np
    >>> layer = Layer(basis=[[1.0], [0.5]], weights=np.ones((3, 2, 1)), bias=[-1.0, 0.0])
    >>> layer.n_in, layer.n
    (3, 2)
    """

    def __init__(
        self,
        basis: ArrayLike,
        weights: ArrayLike,
        bias: ArrayLike,
        feedback_basis: ArrayLike | None = None,
        feedback: ArrayLike | None = None,
        activation: str | Activation = "sigmoid",
    ) -> None:
        self.basis = _basis(basis, "basis")
        self.bias = finite_array(bias, "bias", ("n",)).copy()
        n, n_basis = self.bias.size, self.basis.shape[1]
        self.weights = finite_array(weights, "weights", ("n_in", n, n_basis)).copy()
        if 0 in self.weights.shape:
            raise ValueError(
                "weights must have at least one input and one neuron, "
                f"got the shape {self.weights.shape}"
            )
        if (feedback_basis is None) != (feedback is None):
            raise ValueError("feedback_basis and feedback must be given together")
        self.feedback_basis = self.feedback = None
        if feedback_basis is not None:
            self.feedback_basis = _basis(feedback_basis, "feedback_basis")
            shape = (n, self.feedback_basis.shape[1])
            self.feedback = finite_array(feedback, "feedback", shape).copy()
        self.activation = get_activation(activation)

    @property
    def n_in(self) -> int:
        """Number of inputs."""
        return self.weights.shape[0]

    @property
    def n(self) -> int:
        """Number of neurons."""
        return self.weights.shape[1]

    @property
    def feedback_kernels(self) -> NDArray[np.float64] | None:
        """Kernels beta = B v, shape (window_fb, n); None without feedback."""
        if self.feedback_basis is None or self.feedback is None:
            return None
        return self.feedback_basis @ self.feedback.T

    @underflow_is_zero
    def potentials(self, inputs: np.ndarray, spikes: np.ndarray) -> NDArray[np.float64]:
        """Return the membrane potentials.

        Parameters
        ----------
        inputs : ndarray of 0/1, shape (T, n_in)
        spikes : ndarray of 0/1, shape (T, n)
            The neurons' own spikes, which the feedback kernels filter.

        Returns
        -------
        ndarray of float, shape (T, n)

        Examples
        --------
        >>> import numpy as np
        >>> layer = Layer([[1.0]], [[[2.0]]], [-1.0], [[1.0]], [[-5.0]])
        >>> layer.potentials(np.array([[1], [0], [0]]), np.array([[0], [1], [0]])).ravel()
        array([-1.,  1., -6.])
        """
        u = potential_of_inputs(inputs, self.basis, self.weights, self.bias)
        if self.feedback_basis is not None and self.feedback is not None:
            u += potential_of_outputs(spikes, self.feedback_basis, self.feedback)
        return u

    @underflow_is_zero
    def simulate(
        self,
        inputs: np.ndarray,
        draws: NDArray[np.float64],
        forced: tuple[int, int, int] | None = None,
    ) -> NDArray[np.uint8]:
        """Return the spikes: a neuron spikes when its draw is below its firing probability.

        Parameters
        ----------
        inputs : ndarray of 0/1, shape (T, n_in)
        draws : ndarray of float, shape (T, n)
            Random numbers from 0 to 1.
        forced : tuple of int, optional
            A step, a neuron, and 1 or 0: whether this neuron spikes in this step, regardless of
            its draw.

        Returns
        -------
        ndarray of uint8, shape (T, n)

        Examples
        --------
        >>> import numpy as np
        >>> layer = Layer([[1.0]], [[[2.0]]], [0.0])
        >>> inputs, draws = np.array([[1], [0], [0]]), np.full((3, 1), 0.6)
        >>> layer.simulate(inputs, draws).ravel()
        array([0, 1, 0], dtype=uint8)
        >>> layer.simulate(inputs, draws, forced=(2, 0, 1)).ravel()
        array([0, 1, 1], dtype=uint8)
        """
        u = potential_of_inputs(inputs, self.basis, self.weights, self.bias)
        probability, kernels = self.activation.probability, self.feedback_kernels
        spikes = np.zeros(u.shape, dtype=np.uint8)
        for step in range(len(u)):
            spikes[step] = draws[step] < probability(u[step])
            if forced is not None and forced[0] == step:
                spikes[step, forced[1]] = forced[2]
            if kernels is not None:
                later = slice(step + 1, step + 1 + len(kernels))
                u[later] += spikes[step] * kernels[: len(u[later])]
        return spikes

    @underflow_is_zero
    def probability_slope(self, potentials: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative of the firing probability with respect to the potential.

        Parameters
        ----------
        potentials : ndarray of float

        Returns
        -------
        ndarray of float, of the same shape

        Examples
        --------
        >>> import numpy as np
        >>> float(Layer([[1.0]], [[[2.0]]], [0.0]).probability_slope(np.zeros(1))[0])
        0.25
        """
        return self.activation.probability_slope(potentials)

    @underflow_is_zero
    def log_probability_slope(
        self, potentials: NDArray[np.float64], spikes: np.ndarray
    ) -> NDArray[np.float64]:
        """Return the derivative of the log-probability of spikes with respect to the potentials.

        Parameters
        ----------
        potentials : ndarray of float, shape (T, n)
        spikes : ndarray of 0/1, shape (T, n)

        Returns
        -------
        ndarray of float, shape (T, n)

        Examples
        --------
        >>> import numpy as np
        >>> layer = Layer([[1.0]], [[[2.0]]], [0.0])
        >>> layer.log_probability_slope(np.zeros((2, 1)), np.array([[1], [0]])).ravel()
        array([ 0.5, -0.5])
        """
        return self.activation.log_probability_slope(potentials, spikes)


@dataclass(frozen=True)
class Gradient:
    """The gradient for the parameters of a `Layer`; `feedback` is None if the layer has none."""

    weights: NDArray[np.float64]
    feedback: NDArray[np.float64] | None
    bias: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Presentation:
    """One presentation to a network: spikes and potentials from the first hidden layer on.

    layers : list of Layer
    trains : list of ndarray of 0/1
        Input spikes (T, n_in), then the spikes (T, n) of each layer: drawn spikes for hidden
        layers, desired spikes for the outputs.
    potentials : list of ndarray of float, shape (T, n)
    value : float
        The log-likelihood of the outputs.
    output_slope : ndarray of float, shape (T, N_Y)
        Derivative of `value` with respect to the potentials of the outputs.
    """

    layers: list[Layer]
    trains: list[np.ndarray]
    potentials: list[NDArray[np.float64]]
    value: float
    output_slope: NDArray[np.float64]

    @classmethod
    def with_spikes(cls, layers, spikes, hidden_spikes, label, objective):
        """Return the presentation with these input and hidden spikes."""
        output = layers[-1]
        desired = objective.desired(label, len(spikes), output.n)
        trains = [spikes, *hidden_spikes, desired]
        potentials = [
            layer.potentials(inputs, own) for layer, inputs, own in zip(layers, trains, trains[1:])
        ]
        value, slope = objective.gradient(potentials[-1], desired, label, output.activation)
        return cls(layers, trains, potentials, float(value), slope)

    def gradients(self, hidden_slopes: list[NDArray[np.float64]]) -> list[Gradient]:
        """Return the gradients, given derivatives (T, n) for the potentials of each hidden layer."""
        return [
            Gradient(
                weight_gradient(inputs, slope, layer.basis),
                None
                if layer.feedback_basis is None
                else feedback_gradient(own, slope, layer.feedback_basis),
                slope.sum(axis=0),
            )
            for layer, inputs, own, slope in zip(
                self.layers, self.trains, self.trains[1:], [*hidden_slopes, self.output_slope]
            )
        ]

    def straight_through_slopes(self) -> list[NDArray[np.float64]]:
        """Return derivatives for hidden potentials, as if each spike were its probability.

        Let v be the potential, and D the derivative with respect to the spike, along all paths
        through later potentials.  Then the derivative with respect to v is g'(v) D.  Lags start
        at 1, so one sweep from the last step to the first is enough.
        """
        slopes, above = [], self.output_slope
        for layer, target, potential in zip(
            self.layers[-2::-1], self.layers[:0:-1], self.potentials[-2::-1]
        ):
            in_spikes = input_gradient(above, target.basis, target.weights)
            above = _through_feedback(
                layer.probability_slope(potential), in_spikes, layer.feedback_kernels
            )
            slopes.append(above)
        return slopes[::-1]


def _through_feedback(slope, in_spikes, kernels):
    """Return g'(v) D, where D includes the path through the neurons' own feedback kernels."""
    if kernels is None:
        return slope * in_spikes
    result = np.zeros_like(slope)
    for step in reversed(range(len(slope))):
        later = result[step + 1 : step + 1 + len(kernels)]
        own = np.sum(kernels[: len(later)] * later, axis=0)
        result[step] = slope[step] * (in_spikes[step] + own)
    return result


@underflow_is_zero
def layered_log_likelihood(
    spikes: ArrayLike,
    label: int,
    layers: Sequence[Layer],
    hidden_spikes: Sequence[ArrayLike],
    rule: str | Objective = "first-to-spike",
    target_period: int = 4,
    target_start: int | None = None,
) -> tuple[float, list[Gradient]]:
    """Return the log-likelihood of the outputs given the hidden spikes, and its gradients.

    The gradients for hidden layers use straight-through credit: derivatives are taken as if
    each hidden spike were its probability.

    Parameters
    ----------
    spikes : array_like of 0/1, shape (T, N_X)
    label : int
        Index of the right output.
    layers : list of Layer
        From the first hidden layer to the outputs.
    hidden_spikes : list of array_like of 0/1, shape (T, n)
        One per hidden layer.
    rule : {"first-to-spike", "rate"} or Objective
    target_period, target_start : int
        Period of the desired train, and the step of its first spike (by default `target_period`), for
        the rate rule.

    Returns
    -------
    log_likelihood : float
    gradients : list of Gradient
        One per layer.

    Raises
    ------
    TypeError, ValueError
        If sizes do not match, parameters are not finite, or spikes are not 0 or 1.

    See Also
    --------
    layered_gradient : Draws hidden spikes, and offers other kinds of credit.

    Examples
    --------
    A hidden spike in step 1 raises the potential of output 0 in step 2:

    >>> import numpy as np
    >>> hidden = Layer([[1.0]], np.zeros((1, 1, 1)), [0.0])
    >>> output = Layer([[1.0]], [[[2.0], [0.0]]], [0.0, 0.0])
    >>> value, gradients = layered_log_likelihood(
    ...     [[1], [0], [0]], 0, [hidden, output], [[[1], [0], [0]]]
    ... )
    >>> round(value, 4)
    -1.0111
    >>> gradients[0].weights.shape, gradients[1].weights.shape
    ((1, 1, 1), (1, 2, 1))
    """
    objective = _objective(rule, target_period, target_start)
    layers, inputs, label = _checked(spikes, label, layers)
    hidden = _one_per_hidden_layer(hidden_spikes, "hidden_spikes", layers, len(inputs), binary_array)
    presentation = Presentation.with_spikes(layers, inputs, hidden, label, objective)
    return presentation.value, presentation.gradients(presentation.straight_through_slopes())


def check_network(spikes, label, layers, draws, rule, target_period, target_start):
    """Check the arguments of `credit.layered_gradient`, and return them converted."""
    objective = _objective(rule, target_period, target_start)
    layers, spikes, label = _checked(spikes, label, layers)
    draws = _one_per_hidden_layer(draws, "draws", layers, len(spikes), finite_array)
    if any(np.any((array < 0) | (array > 1)) for array in draws):
        raise ValueError("draws must be from 0 to 1")
    return layers, spikes, label, objective, draws


def _basis(basis, name):
    basis = finite_array(getattr(basis, "matrix", basis), name, ("window", "K"))
    if 0 in basis.shape:
        raise ValueError(
            f"{name} must have at least one lag and one function, got the shape {basis.shape}"
        )
    return basis.copy()


def _objective(rule, target_period, target_start):
    period = integer(target_period, "target_period")
    start = None if target_start is None else integer(target_start, "target_start")
    objective = get_objective(rule, period, "rule", start)
    if not objective.clamps_outputs:
        raise ValueError(
            "rule must be an objective that clamps the outputs, since others have no log-likelihood "
            f"here, got {objective.name!r}"
        )
    return objective


def _checked(trains, label, layers):
    spikes = binary_array(trains, "spikes", ("T", "N_X"))
    if 0 in spikes.shape:
        raise ValueError(
            f"spikes must have at least one step and one input, got the shape {spikes.shape}"
        )
    layers = list(layers) if isinstance(layers, Sequence) else []
    if not layers or not all(isinstance(layer, Layer) for layer in layers):
        raise TypeError("layers must be a list of at least one glmbrian.learning.Layer")
    sizes = [spikes.shape[1], *(layer.n for layer in layers)]
    for number, (layer, n_in) in enumerate(zip(layers, sizes)):
        if layer.n_in != n_in:
            source = "trains in spikes" if number == 0 else f"neurons in layers[{number - 1}]"
            raise ValueError(
                f"layers[{number}] must have weights for {n_in} inputs, the number of {source}, "
                f"got {layer.n_in}"
            )
    return layers, spikes, integer(label, "label", 0, layers[-1].n - 1)


def _one_per_hidden_layer(arrays, name, layers, n_steps, check):
    is_number = isinstance(arrays, np.ndarray) and arrays.ndim == 0
    if is_number or not isinstance(arrays, (Sequence, np.ndarray)):
        raise TypeError(f"{name} must be a list of one array per hidden layer, got {arrays!r}")
    if len(arrays) != len(layers) - 1:
        raise ValueError(
            f"{name} must hold one array per hidden layer ({len(layers) - 1}), got {len(arrays)}"
        )
    return [
        check(array, f"{name}[{number}]", (n_steps, layer.n))
        for number, (array, layer) in enumerate(zip(arrays, layers))
    ]
