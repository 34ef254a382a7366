"""Whether the rates of a population that runs freely stay bounded, or run away."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.validation import broadcast_array, choice, finite_array
from .rate_map import RateMap, Slopes

if TYPE_CHECKING:
    from .population import GLMPopulation

#: Name of the kernel between neurons, unless the user names others.
COUPLING = "coupling"

#: Number of rates, from the largest allowed to 1, at which the gain is computed.
_N_RATES = 48

#: By default a neuron may reach this many times its rate, or the square root of its rate if less.
_FACTOR = 10.0


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


def stability(population: "GLMPopulation", setting: Setting) -> Stability:
    """Return the gains of all neurons; see `GLMPopulation.is_stable`."""
    gains = np.exp([log_gains(population, setting, i)[0].max() for i in range(population.n)])
    return Stability(float(gains.max()), gains, setting.rates, setting.max_rate)


def log_gains(
    population: "GLMPopulation", setting: Setting, neuron: int
) -> tuple[NDArray[np.float64], Slopes]:
    """Return log F(r) / r of one neuron along the path of rates, shape (steps,), and the slopes."""
    path = setting.path()
    # Inhibiting neurons stay at rest: those that run away need not be the ones that inhibit.
    found = rate_map(population, setting, neuron)
    log_rates, slopes = found.log_rates(path[:, neuron], path, setting.rates)
    return log_rates - np.log(path[:, neuron]), slopes


def rate_map(population: "GLMPopulation", setting: Setting, neuron: int) -> RateMap:
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
    population: "GLMPopulation",
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
