"""Activation functions: the probability g(u) of a spike given the potential u.

Training needs g only through four functions of u that stay finite where g itself
rounds to 0 or 1: log g, log(1 - g), and their slopes.  The paper's
rho = g' / (g (1 - g)) is the difference of the two slopes, and rho * g is minus
the slope of log(1 - g) (eq. first_spk_method_rho).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..support.floating_point import underflow_is_zero
from ..support.validation import choice


@dataclass(frozen=True)
class Activation:
    """A firing-probability function g of the membrane potential u.

    Parameters
    ----------
    name : str
    expression : str
        g(u) as a Brian expression in ``u``, for the threshold of `GLMNeurons`.
        It may use Brian's functions, ``logistic``, ``normal_cdf``, ``gumbel_cdf`` (1 - exp(-exp(u))),
        and those in `namespace`.
    probability : callable
        g(u) for arrays; likewise the four that follow.
    log_spike, log_silence : callable
        log g(u) and log(1 - g(u)).
    log_spike_slope, log_silence_slope : callable
        Their derivatives with respect to u.
    cpp : str, optional
        A C++ struct body with static functions ``log_spike``, ``log_silence``,
        ``log_spike_slope`` and ``log_silence_slope`` of a double.  ``probability`` and
        ``probability_slope`` are optional; by default they are ``exp(log_spike(u))``, and that
        times ``log_spike_slope(u)``.  Without `cpp`, training runs on the runtime device only.
    namespace : dict, optional
        Brian functions that `expression` uses.
    terms : callable, optional
        ``log_silence(u), log_silence_slope(u), log_spike_slope(u)`` at once, where that is
        faster; fits to long recordings use it.

    See Also
    --------
    get_activation : the three built-in activations.

    Examples
    --------
    The Cauchy distribution function, for neurons that still spike occasionally at
    potentials where the built-in activations keep them silent:

    >>> import numpy as np, glmbrian as glm
    >>> from brian2 import Network, ms
    >>> def cauchy(u):
    ...     return 0.5 + np.arctan(u) / np.pi
    >>> def density(u):
    ...     return 1 / (np.pi * (1 + np.square(u)))
    >>> activation = glm.Activation(
    ...     name="cauchy",
    ...     expression="0.5 + arctan(u) / pi",
    ...     probability=cauchy,
    ...     log_spike=lambda u: np.log(cauchy(u)),
    ...     log_silence=lambda u: np.log(cauchy(-u)),
    ...     log_spike_slope=lambda u: density(u) / cauchy(u),
    ...     log_silence_slope=lambda u: -density(u) / cauchy(-u),
    ... )
    >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(3), activation=activation, dt=1 * ms)
    >>> neurons.bias = [-1, 1]
    >>> Network(neurons).run(1 * ms)
    >>> neurons.firing_probability[:]
    array([0.25, 0.75])
    """

    name: str
    expression: str
    probability: Callable[[Any], Any]
    log_spike: Callable[[Any], Any]
    log_silence: Callable[[Any], Any]
    log_spike_slope: Callable[[Any], Any]
    log_silence_slope: Callable[[Any], Any]
    cpp: str = ""
    namespace: dict[str, Any] = field(default_factory=dict)
    terms: Callable[[Any], tuple[Any, Any, Any]] | None = None

    def silence_terms(self, u: Any) -> tuple[Any, Any, Any]:
        """Return log(1 - g), its slope, and the slope of log g.

        Parameters
        ----------
        u : ndarray of float

        Returns
        -------
        log_silence, log_silence_slope, log_spike_slope : ndarray of float, of the same shape

        Examples
        --------
        >>> import numpy as np
        >>> [value.item() for value in SIGMOID.silence_terms(np.zeros(1))[1:]]
        [-0.5, 0.5]
        """
        if self.terms is not None:
            return self.terms(u)
        return self.log_silence(u), self.log_silence_slope(u), self.log_spike_slope(u)

    @underflow_is_zero
    def probability_slope(self, u: Any) -> Any:
        """Return the derivative of g(u).

        Parameters
        ----------
        u : ndarray of float

        Returns
        -------
        ndarray of float, of the same shape

        Examples
        --------
        >>> import numpy as np
        >>> float(SIGMOID.probability_slope(np.zeros(1))[0])
        0.25
        """
        return self.log_spike_slope(u) * self.probability(u)

    @underflow_is_zero
    def log_probability_slope(self, u: Any, spikes: np.ndarray) -> Any:
        """Return the derivative of the log-probability of `spikes` with respect to `u`.

        Parameters
        ----------
        u : ndarray of float
        spikes : ndarray of 0/1, of the same shape

        Returns
        -------
        ndarray of float, of the same shape

        Examples
        --------
        >>> import numpy as np
        >>> SIGMOID.log_probability_slope(np.zeros(2), np.array([1, 0])).tolist()
        [0.5, -0.5]
        """
        return np.where(spikes, self.log_spike_slope(u), self.log_silence_slope(u))

    def cpp_struct(self, name: str) -> str:
        """Return the C++ struct that native/gradients.hpp expects.

        Parameters
        ----------
        name : str
            Name of the struct.

        Returns
        -------
        str

        Examples
        --------
        >>> SIGMOID.cpp_struct("Activation").splitlines()[0]
        'struct Activation : glmbrian::ActivationBase<Activation> {'
        """
        return f"struct {name} : glmbrian::ActivationBase<{name}> {{{self.cpp}}};"

    def __reduce_ex__(self, protocol):
        # A copied or unpickled built-in activation is the same object.
        if _BY_NAME.get(self.name) is self:
            return get_activation, (self.name,)
        return super().__reduce_ex__(protocol)


@underflow_is_zero
def _log_logistic(u):
    return -np.logaddexp(0.0, -u)


@underflow_is_zero
def _logistic(u):
    # np.clip takes several times as long for few neurons.
    return 1.0 / (1.0 + np.exp(np.minimum(np.maximum(np.negative(u, dtype=float), -700.0), 700.0)))


@underflow_is_zero
def _logistic_terms(u):
    # One exponential serves all three.
    tail = np.exp(-np.abs(u))
    log_silence = np.minimum(-u, 0.0)
    log_silence -= np.log1p(tail)
    spike = np.where(u > 0.0, 1.0, tail)
    silence = np.where(u > 0.0, tail, 1.0)
    tail += 1.0
    spike /= -tail
    silence /= tail
    return log_silence, spike, silence


SIGMOID = Activation(
    name="sigmoid",
    expression="logistic(u)",
    probability=_logistic,
    log_spike=_log_logistic,
    log_silence=lambda u: _log_logistic(-u),
    log_spike_slope=underflow_is_zero(lambda u: np.exp(_log_logistic(-u))),
    log_silence_slope=underflow_is_zero(lambda u: -np.exp(_log_logistic(u))),
    cpp="""
    static double tail(double u) { return std::exp(-std::fabs(u)); }
    static double log_spike(double u) { return std::fmin(u, 0.0) - std::log1p(tail(u)); }
    static double log_silence(double u) { return std::fmin(-u, 0.0) - std::log1p(tail(u)); }
    static double log_spike_slope(double u) { return (u > 0.0 ? tail(u) : 1.0) / (1.0 + tail(u)); }
    static double log_silence_slope(double u) { return -(u > 0.0 ? 1.0 : tail(u)) / (1.0 + tail(u)); }
    static double probability(double u) { return 1.0 / (1.0 + glmbrian::exp_of_many(-u)); }
    static double probability_slope(double u)
    {
        const double t = glmbrian::exp_of_many(-std::fabs(u));
        return t / ((1.0 + t) * (1.0 + t));
    }
""",
    terms=_logistic_terms,
)


# The normal distribution comes from SciPy.  It is imported on first use because it is slow
# to load and only the probit needs it.
@underflow_is_zero
def _normal_cdf(u):
    from scipy.special import ndtr

    return ndtr(u)


@underflow_is_zero
def _log_normal_cdf(u):
    from scipy.special import log_ndtr

    return log_ndtr(u)


@underflow_is_zero
def _inverse_mills(u):
    """Return the slope of log Phi(u), which is phi(u) / Phi(u)."""
    from scipy.special import erfcx

    return np.sqrt(2.0 / np.pi) / erfcx(-np.sqrt(0.5) * np.asarray(u, dtype=float))


PROBIT = Activation(
    name="probit",
    expression="normal_cdf(u)",
    probability=_normal_cdf,
    log_spike=_log_normal_cdf,
    log_silence=lambda u: _log_normal_cdf(-u),
    log_spike_slope=_inverse_mills,
    log_silence_slope=lambda u: -_inverse_mills(-u),
    cpp="""
    static double log_spike(double u)
    {
        if (u > 0.0)
            return std::log1p(-0.5 * std::erfc(u * 0.70710678118654752440));
        if (u > -36.0)
            return std::log(0.5 * std::erfc(-u * 0.70710678118654752440));
        // erfc underflows
        return -0.5 * u * u - std::log(-u) - 0.91893853320467274178 + std::log1p(-tail(u));
    }
    // Phi(u) = phi(u) / -u * (1 - tail(u)), the asymptotic series for u << 0
    static double tail(double u)
    {
        const double s = 1.0 / (u * u);
        return s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s))));
    }
    static double log_silence(double u) { return log_spike(-u); }
    static double log_spike_slope(double u)
    {
        if (u < -36.0)
            return -u / (1.0 - tail(u));
        return std::exp(-0.5 * u * u) * 0.79788456080286535588
               / std::erfc(-u * 0.70710678118654752440);
    }
    static double log_silence_slope(double u) { return -log_spike_slope(-u); }
""",
)


@underflow_is_zero
def _cloglog_rate(u):
    return np.exp(np.clip(u, -700.0, 700.0))


@underflow_is_zero
def _cloglog_log_spike(u):
    u = np.asarray(u, dtype=float)
    rate = _cloglog_rate(u)
    # log(1 - exp(-rate)), in the form that keeps precision
    for_small = np.log(-np.expm1(-rate))
    for_large = np.log1p(-np.exp(-np.maximum(rate, 0.5)))
    # Below -37, g(u) = exp(u) to the last bit.
    return np.where(u < -37.0, u, np.where(rate < 0.5, for_small, for_large))


@underflow_is_zero
def _cloglog_log_spike_slope(u):
    # exp(u) / (exp(exp(u)) - 1), in a form that goes to 0 without overflowing
    rate = _cloglog_rate(u)
    return rate * np.exp(-rate) / -np.expm1(-rate)


CLOGLOG = Activation(
    name="cloglog",
    expression="gumbel_cdf(u)",
    probability=underflow_is_zero(lambda u: -np.expm1(-_cloglog_rate(u))),
    log_spike=_cloglog_log_spike,
    log_silence=lambda u: -_cloglog_rate(u),
    log_spike_slope=_cloglog_log_spike_slope,
    log_silence_slope=lambda u: -_cloglog_rate(u),
    cpp="""
    static double rate(double u)
    {
        return std::exp(u < -700.0 ? -700.0 : u > 700.0 ? 700.0 : u);
    }
    static double log_spike(double u)
    {
        if (u < -37.0)
            return u;
        const double r = rate(u);
        return r < 0.5 ? std::log(-std::expm1(-r)) : std::log1p(-std::exp(-r));
    }
    static double log_silence(double u) { return -rate(u); }
    static double log_spike_slope(double u)
    {
        const double r = rate(u);
        return r * std::exp(-r) / -std::expm1(-r);
    }
    static double log_silence_slope(double u) { return -rate(u); }
""",
)

_BY_NAME = {activation.name: activation for activation in (SIGMOID, PROBIT, CLOGLOG)}

#: Names of the built-in activations.
BUILT_IN_ACTIVATIONS = tuple(_BY_NAME)


def get_activation(activation: str | Activation) -> Activation:
    """Return the `Activation` with this name; an `Activation` is returned unchanged.

    Parameters
    ----------
    activation : {"sigmoid", "probit", "cloglog"} or Activation
        g(u) = 1 / (1 + exp(-u)), the normal distribution function, or
        1 - exp(-exp(u)).

    Returns
    -------
    Activation

    Raises
    ------
    ValueError
        If no activation has this name.

    Examples
    --------
    >>> sigmoid = get_activation("sigmoid")
    >>> sigmoid.probability([-1.0, 0.0, 1.0]).round(3)
    array([0.269, 0.5  , 0.731])

    Where g rounds to 1, log(1 - g) still tells potentials apart:

    >>> float(sigmoid.log_silence(800.0))
    -800.0
    """
    if isinstance(activation, Activation):
        return activation
    return _BY_NAME[choice(activation, "activation", BUILT_IN_ACTIVATIONS)]


def name_to_save(activation: str | Activation) -> str:
    """Return the name under which an activation is saved.

    Raises a `ValueError` for a custom activation: functions cannot be saved.
    """
    activation = get_activation(activation)
    if _BY_NAME.get(activation.name) is not activation:
        raise ValueError(
            f"activation must be one of {', '.join(BUILT_IN_ACTIVATIONS)} to be saved, got a custom one"
        )
    return activation.name
