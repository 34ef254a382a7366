"""What is recorded in each step, given the membrane potential u: the observation model of a fit.

An observation model is one object, which holds the log-likelihood of a step, its slope in u, and the Fisher
weight.  `Bernoulli` is that of spikes, with any inverse link; a class derived from `Observations` fits other data.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.activations import Activation, get_activation
from ..support.validation import choice


class Observations:
    """The distribution of what is recorded in a step, given the membrane potential u.

    Derive a class from it to fit other data than spikes: pass an instance to
    ``fit_population(..., observations=...)``.  It must define `terms` and `expected`.

    Attributes
    ----------
    name : str
        For error messages and reports.
    dtype : type
        Of the recorded values, as `terms` gets them.
    largest : float
        The largest value in a step; infinite for counts.
    allowed : str
        What recorded values must be, for error messages.

    See Also
    --------
    fit_population : fits them.

    Examples
    --------
    Counts with a Poisson distribution, whose mean is the exponential of the potential:

    >>> import numpy as np, glmbrian as glm
    >>> from glmbrian.population import Observations
    >>> class Poisson(Observations):
    ...     name, dtype = "poisson", np.int64
    ...     def terms(self, u, y, with_weights=True):
    ...         rate = np.exp(u)
    ...         return y * u - rate, y - rate, rate
    ...     def expected(self, u):
    ...         return np.exp(u)
    >>> counts = np.tile([[0], [2], [1], [5]], (50, 1))
    >>> fit = glm.fit_population(counts, observations=Poisson())
    >>> fit.bias.round(6) == np.log(2).round(6)
    array([ True])
    """

    name = ""
    dtype: type = float
    largest = np.inf
    allowed = "whole numbers of at least 0"

    def __eq__(self, other):
        return type(self) is type(other) and vars(self) == vars(other)

    def __str__(self):
        return self.name

    def terms(
        self, u: NDArray[np.float64], y: NDArray[Any], with_weights: bool = True
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the log-likelihoods of values `y`, their slopes in `u`, and Fisher weights, all of the shape of `u`.

        Parameters
        ----------
        u : ndarray of float
        y : ndarray, of the same shape
        with_weights : bool
            Whether the Fisher weights are needed, which are minus the expected second derivatives in `u`.

        Returns
        -------
        log_likelihood, slope : ndarray of float
            Without the terms in which `u` does not occur, if you like.
        weights : ndarray of float, or None
        """
        raise NotImplementedError

    def expected(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean of what is recorded at potentials `u`, which must rise with `u`."""
        raise NotImplementedError

    def is_possible(self, values: NDArray[Any]) -> NDArray[np.bool_]:
        """Return which values can be recorded; by default whole numbers of at least 0."""
        return (values >= 0) & (values == np.floor(values)) & np.isfinite(values)

    def signs(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return where the log-likelihood rises for ever with the potential (1), or as it falls (-1), else 0.

        By default -1 where nothing is recorded, and 0 elsewhere.
        """
        return np.where(y == 0, -1.0, 0.0)

    def weights(self, u: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the Fisher weights at potentials `u`."""
        weights: Any = self.terms(u, np.zeros(u.shape, self.dtype))[2]
        return weights

    def rates(self, totals: NDArray[Any], n_steps: int) -> NDArray[np.float64]:
        """Return means per step from sums over steps, which a finite potential can explain.

        A neuron without spikes counts as if it had half a spike, one without silence as if it had
        half a silent step.
        """
        return np.clip(totals, 0.5, self.largest * n_steps - 0.5) / n_steps

    def potential(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the potentials at which these means are expected, shape (n,), to the last bit."""
        low, high = np.full(rates.shape, -1.0), np.full(rates.shape, 1.0)
        with np.errstate(over="ignore"):
            for bound, is_beyond in (low, np.greater), (high, np.less):
                for _ in range(60):
                    beyond = is_beyond(self.expected(bound), rates)
                    if not beyond.any():
                        break
                    bound[beyond] *= 2
            while True:
                middle = (low + high) / 2
                if np.all((middle == low) | (middle == high)) or math.isnan(middle.sum()):
                    return middle
                below = self.expected(middle) < rates
                low, high = np.where(below, middle, low), np.where(below, high, middle)


class Bernoulli(Observations):
    """Spikes: 1 with the probability g(u), and else 0.

    Parameters
    ----------
    activation : Activation
        The inverse link g.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> from glmbrian.population import Bernoulli
    >>> spikes = Bernoulli(glm.get_activation("sigmoid"))
    >>> value, slope, weights = spikes.terms(np.zeros((2, 1)), np.array([[True], [False]]))
    >>> slope.ravel(), weights.ravel()
    (array([ 0.5, -0.5]), array([0.25, 0.25]))
    """

    name, dtype, largest = "bernoulli", bool, 1
    allowed = "only 0 and 1: use shorter steps, or np.minimum(outputs, 1) if these are counts"

    def __init__(self, activation: Activation) -> None:
        self.activation = activation

    def __str__(self):
        return self.activation.name

    def terms(self, u, y, with_weights=True):
        value, slope, up = self.activation.silence_terms(u)
        weights = -slope * up if with_weights else None
        # Spikes are rare, so the terms of silence are corrected where there are any.
        events = np.flatnonzero(y)
        if events.size:
            value, slope = np.ascontiguousarray(value), np.ascontiguousarray(slope)
            value.ravel()[events] = self.activation.log_spike(u.ravel()[events])
            slope.ravel()[events] = up.ravel()[events]
        return value, slope, weights

    def expected(self, u):
        return self.activation.probability(u)

    def is_possible(self, values):
        return (values == 0) | (values == 1)

    def signs(self, y):
        return np.where(y, 1.0, -1.0)


#: What makes an observation model from an activation function, by its name.
OBSERVATIONS: dict[str, Callable[[Activation], Observations]] = {Bernoulli.name: Bernoulli}


def observations_of(observations: str | Observations, activation: str | Activation) -> Observations:
    """Return an observation model, given by its name and the activation function, or itself."""
    activation = get_activation(activation)
    if isinstance(observations, Observations):
        return observations
    return OBSERVATIONS[choice(observations, "observations", tuple(OBSERVATIONS))](activation)
