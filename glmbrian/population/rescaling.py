"""Time rescaling: whether intervals between spikes are as random as the model says.

Haslinger, Pipa and Brown (2010), Discrete time rescaling theorem, Neural Computation 22.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.randomness import RandomState, derive_keys, uniforms
from .design import design_of
from .parameters import PopulationParameters
from .recorded import RecordedData

#: Probability with which a true model stays within the bands.
CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class KSTest:
    """Kolmogorov-Smirnov tests of rescaled times against the uniform distribution.

    Parameters
    ----------
    statistic : ndarray of float, shape (n,)
        Largest distance between the distribution of a neuron's rescaled times and the uniform
        one; NaN for neurons without a spike.
    band : ndarray of float, shape (n,)
        Half the width of the 95% band: a true model exceeds it in 5% of recordings.
    p_value : ndarray of float, shape (n,)
        Probability of a distance at least as large if the model is true.
    n_intervals : ndarray of int, shape (n,)
        Number of rescaled times.

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.population import KSTest
    >>> test = KSTest(np.array([0.05, 0.3]), np.array([0.1, 0.1]), np.array([0.8, 0.0]), np.full(2, 180))
    >>> test.rejected
    array([False,  True])
    """

    statistic: NDArray[np.float64]
    band: NDArray[np.float64]
    p_value: NDArray[np.float64]
    n_intervals: NDArray[np.int_]

    @property
    def rejected(self) -> NDArray[np.bool_]:
        """Whether each neuron's times leave the band, shape (n,)."""
        return self.statistic > self.band


def rescaled_times(
    population: PopulationParameters, data: RecordedData, random_state: RandomState = None
) -> list[NDArray[np.float64]]:
    """Return the rescaled times of each neuron; see `GLMPopulation.rescaled_times`."""
    design, activation = design_of(population, data), population.activation
    (key,) = derive_keys(random_state, 0, stream="time rescaling")
    n, everyone, parameters = design.n, np.arange(design.n), design.parameters_of(population)
    parts: list[list[np.ndarray]] = [[] for _ in range(n)]
    open_interval = np.zeros(n)  # what has passed since the last spike
    for block in design.blocks:
        rows, steps = design.rows(block, everyone), design.steps(block)
        u = design.potential(rows, parameters)
        passed = np.where(rows.spikes, 0.0, -activation.log_silence(u))
        # One more row, so that an interval may begin after the last step.
        passed = np.concatenate([passed, np.zeros((1, n))])
        for i in range(n):
            at = np.flatnonzero(rows.spikes[:, i])
            whole = np.add.reduceat(passed[:, i], np.append(0, at + 1))
            whole[0] += open_interval[i]
            open_interval[i] = whole[-1]
            # Where in its step the spike fell is drawn from what the model says about it.
            drawn = uniforms(key, 0, steps[at], i)
            within = -np.log1p(-drawn * activation.probability(u[at, i]))
            parts[i].append(-np.expm1(-(whole[:-1] + within)))
    return [np.concatenate(part) for part in parts]


def ks_test(times: Sequence[NDArray[np.float64]]) -> KSTest:
    """Compare each neuron's rescaled times with the uniform distribution."""
    # SciPy's statistics take long to import.
    from scipy.stats import kstest, kstwo

    n = len(times)
    statistic, band, p_value = np.full((3, n), np.nan)
    for i, own in enumerate(times):
        if own.size:
            result = kstest(own, "uniform")
            statistic[i], p_value[i] = result.statistic, result.pvalue
            band[i] = kstwo.ppf(CONFIDENCE, own.size)
    return KSTest(statistic, band, p_value, np.array([own.size for own in times]))
