"""Effective coupling between neurons, and which pairs are coupled by more than chance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice, real
from .likelihood_ratios import likelihood_ratios
from .maximum import data_of_fit
from .recorded import read

if TYPE_CHECKING:
    from .population import GLMPopulation

#: What a significant pair means, wherever one is shown.
MEANING = (
    "a significant pair is a correlated one: coupled, or driven by a common input that the model lacks"
)

#: A kernel changes sign if its values on either side of 0 exceed this part of the largest.
_BOTH_SIGNS = 0.25


@dataclass(frozen=True)
class Measure:
    """A number that sums up a kernel: its `label` in pictures, and a function of kernels (..., window)."""

    label: str
    of: Callable[[NDArray[np.float64]], NDArray[np.float64]]


def _peak(kernels):
    lag = np.abs(kernels).argmax(axis=-1)
    return np.take_along_axis(kernels, lag[..., np.newaxis], axis=-1)[..., 0]


#: The measures by their names.
MEASURES = {
    "sum": Measure("sum over lags", lambda kernels: kernels.sum(axis=-1)),
    "norm": Measure(
        "signed norm", lambda kernels: np.sign(kernels.sum(axis=-1)) * np.linalg.norm(kernels, axis=-1)
    ),
    "peak": Measure("peak", _peak),
}


@dataclass(frozen=True, eq=False, repr=False)
class Connectivity:
    """Effective coupling of each pair of neurons, and its significance.

    A significant pair is a correlated one, given all other inputs of the model.  It may be connected.  But an
    input that both neurons share and the model lacks, such as slow drift, the state of the network or a
    neuron that was not recorded, makes pairs significant that are not connected.

    Parameters
    ----------
    strength : ndarray of float, shape (n_source, n)
    statistic : ndarray of float, shape (n_source, n), or None
        Of the `test`, for each pair; NaN where there is no connection, or the data do not determine one.
        None if nothing was tested.
    p_value : ndarray of float, shape (n_source, n), or None
        Probability of a statistic at least as large if there is no coupling, from the chi-squared
        distribution with as many degrees of freedom as the pair has weights.
    test : {"likelihood-ratio", "wald"}, optional
        Where the statistic comes from: twice the difference of the log-likelihoods with and without
        the pair, both at their maximum; or w' C^-1 w of its weights w with covariance C.
    changes_sign : ndarray of bool, shape (n_source, n), optional
        Kernels with values on both sides of 0, the smaller at least a quarter of the larger.  Their sum
        may vanish.
    unbounded : ndarray of bool, shape (n_source, n), optional
        Kernels that grow without bound, whose strength means plus or minus infinity.

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
    test: str | None = None
    changes_sign: NDArray[np.bool_] | None = None
    unbounded: NDArray[np.bool_] | None = None

    def significant(self, level: float = 0.05) -> NDArray[np.bool_]:
        """Return which pairs are coupled, or share an input, at a false discovery rate.

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
            If `level` is not between 0 and 1, or nothing was tested.

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
                "significance needs standard errors or likelihood ratios, but these pairs were not tested: with the "
                "data of a fit without a penalty, call population.test_connections(outputs, inputs); or for "
                "Wald's test population.standard_errors(outputs, inputs), and connectivity again"
            )
        known = np.isfinite(self.p_value)
        ordered = np.sort(self.p_value[known])
        passed = np.flatnonzero(
            ordered <= level * np.arange(1, ordered.size + 1) / max(ordered.size, 1)
        )
        if passed.size == 0:
            return np.zeros(self.p_value.shape, dtype=bool)
        return known & (self.p_value <= ordered[passed[-1]])

    def __repr__(self):
        n_source, n = self.strength.shape
        if self.p_value is None:
            return f"<Connectivity: {n_source} sources, {n} neurons, not tested>"
        tested = np.count_nonzero(np.isfinite(self.p_value))
        how = "" if self.test is None else f" ({self.test} test)"
        return (
            f"<Connectivity: {np.count_nonzero(self.significant())} of {tested} pairs significant at a false "
            f"discovery rate of 0.05{how}; {MEANING}>"
        )


def connectivity(
    population: "GLMPopulation", kernel: str, measure: str, test: str | None
) -> Connectivity:
    """Return the coupling by one kernel; see `GLMPopulation.connectivity`."""
    choice(kernel, "kernel", tuple(population.kernels))
    measured = MEASURES[choice(measure, "measure", tuple(MEASURES))]
    if test is None:
        test = _known_test(population, kernel)
    statistic = TESTS[choice(test, "test", tuple(TESTS))](population, kernel)
    kernels = population.kernel(kernel)
    low, high = np.maximum(-kernels.min(axis=-1), 0.0), np.maximum(kernels.max(axis=-1), 0.0)
    open_lags = getattr(population.fit_, "unbounded", {}).get(kernel)
    p_value = None
    if statistic is not None:
        from scipy.stats import chi2

        p_value = chi2.sf(statistic, population.kernels[kernel].n_basis)
    return Connectivity(
        measured.of(kernels),
        statistic,
        p_value,
        None if statistic is None else test,
        np.minimum(low, high) > _BOTH_SIGNS * np.maximum(low, high),
        None if open_lags is None else open_lags.any(axis=-1),
    )


def _known_test(population, kernel):
    """Return the best test of which the data are known."""
    if kernel in population.known_likelihood_ratios or population.fitted_to is not None:
        return "likelihood-ratio"
    return "none" if population.known_standard_errors is None else "wald"


def _likelihood_ratio(population, kernel):
    known = population.known_likelihood_ratios
    if kernel not in known:
        call = f"test_connections(outputs, inputs, kernel={kernel!r})"
        data = data_of_fit(population, "likelihood ratios", call)
        keep_likelihood_ratios(population, kernel, *data)
    return population.known_likelihood_ratios[kernel]


def keep_likelihood_ratios(population: "GLMPopulation", kernel: str, *data: Any) -> None:
    """Compute the likelihood ratios of one kernel from outputs, inputs, mask and epochs, and keep them."""
    ratios = likelihood_ratios(population, read(population, *data), kernel)
    # Populations share the empty dict until they have ratios.
    population.known_likelihood_ratios = {**population.known_likelihood_ratios, kernel: ratios}


def _wald(population, kernel):
    errors = population.standard_errors_
    weights, covariance = population.weights[kernel], errors.covariances[kernel]
    known = np.isfinite(covariance).all(axis=(2, 3))
    statistic = np.full(known.shape, np.nan)
    for pair in zip(*np.nonzero(known)):
        w = weights[pair]
        statistic[pair] = w @ np.linalg.lstsq(covariance[pair], w, rcond=None)[0]
    return statistic


#: Tests of pairs by their names, as functions of a population and a kernel that return the statistics.
TESTS = {
    "likelihood-ratio": _likelihood_ratio,
    "wald": _wald,
    "none": lambda population, kernel: None,
}
