"""Whether the rates of a population that runs freely stay bounded, or run away.

A rate map says at which rate a neuron fires, given the rates of its own past and of the others.  It is the
quasi-renewal approximation (Naud and Gerstner, 2012; Gerhard, Deger and Truccolo, 2017; for
networks Todorov and Truccolo, 2019), in discrete time: the effect of a neuron's last spike is kept
as it is, and all earlier spikes, and those of other neurons, are averaged over.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from ..core.activations import Activation
from ..support.validation import broadcast_array, choice, finite_array
from .parameters import PopulationParameters

#: Name of the kernel between neurons, unless the user names others.
COUPLING = "coupling"

#: Number of rates, from the largest allowed to 1, at which the gain is computed.
_N_RATES = 48

#: By default a neuron may reach this many times its rate, or the square root of its rate if less.
_FACTOR = 10.0

#: Effects of single spikes on the potential beyond it are averaged as if they were this large:
#: the neuron is silent, or fires, for certain.
_LARGEST = 10.0

#: Averages over a normal distribution, as sums at these nodes.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

#: Neurons whose kernels sum up to more than a few times it excite, or inhibit if that is negative.
_WIDTH = 0.1

_TINY = 1e-12


@dataclass(frozen=True, eq=False)
class Stability:
    """Whether a population is stable, as a truth value, and the gain that says so.

    Parameters
    ----------
    gain : float
        The largest of `gains`; the population is stable if it is below 1.
    gains : ndarray of float, shape (n,)
        For each neuron, the largest ratio F(r) / r for r from `max_rate` up; F(r) is the rate at
        which it fires while its own past, and all neurons that excite it, fire at r.
    rates : ndarray of float, shape (n,)
        Rates at rest, in spikes per step.
    max_rate : ndarray of float, shape (n,)
        The rates above which a neuron counts as having run away.

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.population import Stability
    >>> bool(Stability(1.2, np.array([0.4, 1.2]), np.full(2, 0.01), np.full(2, 0.1)))
    False
    """

    gain: float
    gains: NDArray[np.float64]
    rates: NDArray[np.float64]
    max_rate: NDArray[np.float64]

    def __bool__(self):
        return self.gain < 1

    def __repr__(self):
        says = "stable" if self else f"neuron {int(self.gains.argmax())} may run away"
        return f"<Stability: {says}, gain {self.gain:.3g}>"


@dataclass(frozen=True)
class Setting:
    """What determines the stability of each neuron, apart from its parameters.

    recurrent : names of the kernels between the neurons
    drive, drive_variance : what other inputs add to the potentials, shape (n,)
    rates, max_rate : shape (n,)
    """

    recurrent: tuple[str, ...]
    drive: NDArray[np.float64]
    drive_variance: NDArray[np.float64]
    rates: NDArray[np.float64]
    max_rate: NDArray[np.float64]

    def path(self) -> NDArray[np.float64]:
        """Return rates that rise together from `max_rate` to 1, shape (steps, n)."""
        part = np.linspace(1.0, 0.0, _N_RATES)[:, np.newaxis]
        return self.max_rate**part


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
    ) -> tuple[NDArray[np.float64], Slopes]:
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


def _sums_beyond(values):
    return np.cumsum(values[::-1])[::-1] - values


def _sums_before(values):
    return np.cumsum(values, axis=1) - values


def stability(population: PopulationParameters, setting: Setting) -> Stability:
    """Return the gains of all neurons; see `GLMPopulation.is_stable`."""
    gains = np.exp([log_gains(population, setting, i)[0].max() for i in range(population.n)])
    return Stability(float(gains.max()), gains, setting.rates, setting.max_rate)


def log_gains(
    population: PopulationParameters, setting: Setting, neuron: int
) -> tuple[NDArray[np.float64], Slopes]:
    """Return log F(r) / r of one neuron along the path of rates, shape (steps,), and the slopes."""
    path = setting.path()
    # Inhibiting neurons stay at rest: those that run away need not be the ones that inhibit.
    found = rate_map(population, setting, neuron)
    log_rates, slopes = found.log_rates(path[:, neuron], path, setting.rates)
    return log_rates - np.log(path[:, neuron]), slopes


def rate_map(population: PopulationParameters, setting: Setting, neuron: int) -> RateMap:
    """Return how the rate of one neuron depends on the rates of all."""
    kernels = [
        population.kernels[name].kernels(population.weights[name][:, neuron])
        for name in setting.recurrent
    ]
    window = max((kernel.shape[1] for kernel in kernels), default=1)
    coupling = np.zeros((population.n, window))
    for kernel in kernels:
        coupling[:, : kernel.shape[1]] += kernel
    own = coupling[neuron].copy()
    coupling[neuron] = 0.0
    if population.feedback_basis is not None:
        v: Any = population.feedback_weights  # not None, since there is a basis
        feedback = population.feedback_basis.kernels(v[neuron])
        own = np.pad(own, (0, max(0, feedback.size - own.size)))
        own[: feedback.size] += feedback
    bias = float(population.bias[neuron] + setting.drive[neuron])
    return RateMap(bias, float(setting.drive_variance[neuron]), own, coupling, population.activation)


def checked_setting(
    population: PopulationParameters,
    rates: ArrayLike | None,
    max_rate: ArrayLike | None,
    recurrent: str | Sequence[str] | None,
    drive: ArrayLike | None,
) -> Setting:
    """Return the arguments of `GLMPopulation.is_stable`, checked and with their defaults."""
    n = population.n
    if recurrent is None:
        names = tuple(name for name in (COUPLING,) if name in population.kernels)
    else:
        listed = [recurrent] if isinstance(recurrent, str) else list(recurrent)
        names = tuple(choice(name, "recurrent", tuple(population.kernels)) for name in listed)
    for name in names:
        if len(population.weights[name]) != n:
            raise ValueError(
                f"recurrent must name kernels between the {n} neurons, but {name!r} has "
                f"{len(population.weights[name])} sources"
            )
    offset, variance = np.zeros(n), np.zeros(n)
    if drive is not None:
        values = finite_array(drive, "drive")
        if values.ndim == 2 and len(values):
            variance = broadcast_array(values.var(axis=0), "drive", (n,))
            values = values.mean(axis=0)
        offset = broadcast_array(values, "drive", (n,))
    if rates is None:
        resting = population.activation.probability(population.bias + offset)
    else:
        resting = np.array(broadcast_array(rates, "rates", (n,)))
    resting = _between(resting, "rates")
    if max_rate is None:
        largest = np.minimum(_FACTOR * resting, np.sqrt(resting))
    else:
        largest = _between(np.array(broadcast_array(max_rate, "max_rate", (n,))), "max_rate")
    return Setting(names, offset, variance, resting, largest)


def _between(values, name):
    if np.any((values <= 0) | (values >= 1)):
        raise ValueError(
            f"{name} must be probabilities of a spike in a step, above 0 and below 1, got {values}"
        )
    return values
