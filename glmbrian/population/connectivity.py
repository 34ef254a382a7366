"""Effective coupling between neurons, and which pairs are coupled by more than chance."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice, real
from .standard_errors import StandardErrors

if TYPE_CHECKING:
    from .population import GLMPopulation

#: Measures that sum up a kernel in one number, as functions of kernels (..., window).
MEASURES = {
    "sum": lambda kernels: kernels.sum(axis=-1),
    "norm": lambda kernels: np.sign(kernels.sum(axis=-1)) * np.linalg.norm(kernels, axis=-1),
}


@dataclass(frozen=True, eq=False)
class Connectivity:
    """Effective coupling of each pair of neurons, and its significance.

    Parameters
    ----------
    strength : ndarray of float, shape (n_source, n)
    statistic : ndarray of float, shape (n_source, n), or None
        Wald statistics w' C^-1 w of each pair's weights w with covariance C; NaN where there is
        no connection, or the data do not determine one.  None if no standard errors are known.
    p_value : ndarray of float, shape (n_source, n), or None
        Probability of a statistic at least as large if there is no coupling, from the chi-squared
        distribution with as many degrees of freedom as the pair has weights.

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.population import Connectivity
    >>> p_value = np.array([[1e-6, 0.2], [0.03, 0.6]])
    >>> Connectivity(np.ones((2, 2)), None, p_value).significant(0.05)
    array([[ True, False],
           [False, False]])
    """

    strength: NDArray[np.float64]
    statistic: NDArray[np.float64] | None
    p_value: NDArray[np.float64] | None

    def significant(self, level: float = 0.05) -> NDArray[np.bool_]:
        """Return which pairs are coupled, at a false discovery rate.

        Parameters
        ----------
        level : float
            The largest expected fraction of false pairs among those found (Benjamini and Hochberg).

        Returns
        -------
        ndarray of bool, shape (n_source, n)

        Raises
        ------
        ValueError, TypeError
            If `level` is not between 0 and 1, or no standard errors are known.

        Examples
        --------
        >>> import numpy as np
        >>> from glmbrian.population import Connectivity
        >>> Connectivity(np.ones((1, 2)), None, np.array([[0.01, 0.2]])).significant()
        array([[ True, False]])
        """
        level = real(level, "level", 0, 1)
        if self.p_value is None:
            raise ValueError(
                "significance needs standard errors: look at population.standard_errors_ first, or call "
                "population.standard_errors(outputs, inputs)"
            )
        known = np.isfinite(self.p_value)
        ordered = np.sort(self.p_value[known])
        passed = np.flatnonzero(
            ordered <= level * np.arange(1, ordered.size + 1) / max(ordered.size, 1)
        )
        if passed.size == 0:
            return np.zeros(self.p_value.shape, dtype=bool)
        return known & (self.p_value <= ordered[passed[-1]])


def connectivity(
    population: "GLMPopulation", kernel: str, measure: str, errors: StandardErrors | None
) -> Connectivity:
    """Return the coupling by one kernel; see `GLMPopulation.connectivity`."""
    choice(kernel, "kernel", tuple(population.kernels))
    strength = MEASURES[choice(measure, "measure", tuple(MEASURES))](population.kernel(kernel))
    if errors is None:
        return Connectivity(strength, None, None)
    from scipy.stats import chi2

    weights, covariance = population.weights[kernel], errors.covariances[kernel]
    known = np.isfinite(covariance).all(axis=(2, 3))
    statistic = np.full(known.shape, np.nan)
    for pair in zip(*np.nonzero(known)):
        w = weights[pair]
        statistic[pair] = w @ np.linalg.lstsq(covariance[pair], w, rcond=None)[0]
    return Connectivity(strength, statistic, chi2.sf(statistic, weights.shape[2]))
