"""The rate at which a neuron fires, given the rates of its own past and of the others.

The quasi-renewal approximation (Naud and Gerstner, 2012; Gerhard, Deger and Truccolo, 2017; for
networks Todorov and Truccolo, 2019), in discrete time: the effect of a neuron's last spike is kept
as it is, and all earlier spikes, and those of other neurons, are averaged over.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..core.activations import Activation

#: Effects of single spikes on the potential beyond it are averaged as if they were this large:
#: the neuron is silent, or fires, for certain.
_LARGEST = 10.0

#: Averages over a normal distribution, as sums at these nodes.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

#: Neurons whose kernels sum up to more than a few times it excite, or inhibit if that is negative.
_WIDTH = 0.1

_TINY = 1e-12


@dataclass(frozen=True)
class RateMap:
    """The rate F of one neuron as a function of rates.

    bias : potential without spikes
    variance : variance of the potential without spikes
    own : effect of the neuron's own spikes, shape (window,)
    coupling : effect of other neurons' spikes, shape (n, window), 0 for itself
    """

    bias: float
    variance: float
    own: NDArray[np.float64]
    coupling: NDArray[np.float64]
    activation: Activation

    def log_rates(
        self, own_rate: NDArray[np.float64], others: NDArray[np.float64], resting: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], "Slopes"]:
        """Return log F and its slopes, at S points.

        Spikes before a neuron's last, and those of other neurons, are independent and many, so
        that their sum is normal.

        Parameters
        ----------
        own_rate : ndarray of float, shape (S,)
            Rate of the neuron's own spikes before its last.
        others : ndarray of float, shape (S, n)
            Rates of the other neurons that excite this one.
        resting : ndarray of float, shape (n,)
            Rates of those that inhibit it.
        """
        r = own_rate[:, np.newaxis]
        own, coupling = (np.clip(kernel, -_LARGEST, _LARGEST) for kernel in (self.own, self.coupling))
        # From one rate to the other without a jump, so that slopes are of use.
        effect, squares = coupling.sum(axis=1), (coupling**2).sum(axis=1)
        excites = expit(effect / _WIDTH)
        rates = resting + (others - resting) * excites
        rates_by_effect = (others - resting) * excites * (1 - excites) / _WIDTH
        coupled = self.bias + rates @ effect
        coupled_variance = self.variance + (rates * (1 - rates)) @ squares
        # Before the last spike, which was k steps ago: lags beyond k.
        mean, variance = _sums_beyond(own), _sums_beyond(own**2)
        p, p_by_mean, p_by_variance = self._averaged(
            self.own + r * mean + coupled[:, np.newaxis],
            r * (1 - r) * variance + coupled_variance[:, np.newaxis],
        )
        late, late_by_mean, late_by_variance = self._averaged(coupled, coupled_variance)

        silent = np.maximum(1 - p, _TINY)
        survival = np.cumprod(silent, axis=1)
        after = survival[:, -1] / late
        # The mean interval is the sum over k from 0 of the probability of no spike in k steps.
        tail = np.concatenate([survival[:, :-1], after[:, np.newaxis]], axis=1)
        remaining = np.cumsum(tail[:, ::-1], axis=1)[:, ::-1]
        interval = 1 + remaining[:, 0]

        by_p = remaining / silent / interval[:, np.newaxis]
        by_late = after / late / interval
        by_mean, by_variance = by_p * p_by_mean, by_p * p_by_variance
        total = by_mean.sum(axis=1) + by_late * late_by_mean
        total_variance = by_variance.sum(axis=1) + by_late * late_by_variance
        counts = np.abs(self.own) < _LARGEST
        averaged = r * _sums_before(by_mean) + 2 * r * (1 - r) * own * _sums_before(by_variance)
        by_effect = (rates + rates_by_effect * effect) * total[:, np.newaxis]
        by_effect += (1 - 2 * rates) * rates_by_effect * squares * total_variance[:, np.newaxis]
        by_value = 2 * rates * (1 - rates) * total_variance[:, np.newaxis]
        by_coupling = by_effect[:, :, np.newaxis] + by_value[:, :, np.newaxis] * coupling
        by_coupling *= np.abs(self.coupling) < _LARGEST
        return -np.log(interval), Slopes(total, by_mean + counts * averaged, by_coupling)

    def _averaged(self, mean, variance):
        """Return the mean of g over normal potentials, and its slopes by mean and variance."""
        deviation = np.sqrt(np.maximum(variance, _TINY))[..., np.newaxis]
        u = mean[..., np.newaxis] + deviation * _NODES
        slope = self.activation.probability_slope(u)
        p = np.maximum(self.activation.probability(u) @ _WEIGHTS, 1e-300)
        return p, slope @ _WEIGHTS, (slope * _NODES / (2 * deviation)) @ _WEIGHTS


@dataclass(frozen=True)
class Slopes:
    """Derivatives of log F at S points.

    bias : shape (S,)
    own : by each value of the neuron's own kernel, shape (S, window)
    coupling : shape (S, n, window)
    """

    bias: NDArray[np.float64]
    own: NDArray[np.float64]
    coupling: NDArray[np.float64]


def _sums_beyond(values):
    return np.cumsum(values[::-1])[::-1] - values


def _sums_before(values):
    return np.cumsum(values, axis=1) - values
