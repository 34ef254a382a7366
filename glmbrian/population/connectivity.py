"""Effective coupling between neurons, and which pairs are coupled by more than chance.

A likelihood ratio says by how much the log-likelihood falls without a pair, from the fit with all of them.  Without
it, the other parameters of its target have another maximum, which the Fisher information of the fit predicts well.
From there all pairs are searched together, as if each were a neuron of its own whose weights from one source are held
at 0, until next to nothing can be gained.  Usually one pass over the data is enough, instead of the dozen of a new fit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..support.validation import real
from ..support.workers import Workers
from .design import design_of
from .information import solve
from .maximiser import maximise
from .objective import Problem, evaluate
from .parameters import PopulationParameters
from .recorded import RecordedData
from .standard_errors import MOST_VALUES

#: What a significant pair means, wherever one is shown.
MEANING = (
    "a significant pair is a correlated one: coupled, or driven by a common input that the model lacks"
)

#: A kernel changes sign if its values on either side of 0 exceed this part of the largest.
_BOTH_SIGNS = 0.25

#: The squared distance to the maximum at which a search ends.  Half of it could still be gained, in nats, and
#: is added as a prediction.
_GAIN = 0.01

_MOST_STEPS = 200

#: The most pairs whose potentials are computed together.
_MOST_PAIRS = 512


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
    population: PopulationParameters,
    kernel: str,
    measure: str,
    test: str,
    statistic: NDArray[np.float64] | None,
    unbounded: NDArray[np.bool_] | None,
) -> Connectivity:
    """Return the coupling by one kernel, given a test statistic; see `GLMPopulation.connectivity`."""
    basis = population.kernels[kernel]
    kernels = basis.kernels(population.weights[kernel])
    low, high = np.maximum(-kernels.min(axis=-1), 0.0), np.maximum(kernels.max(axis=-1), 0.0)
    p_value = None
    if statistic is not None:
        from scipy.stats import chi2

        p_value = chi2.sf(statistic, basis.n_basis)
    return Connectivity(
        MEASURES[measure].of(kernels),
        statistic,
        p_value,
        None if statistic is None else test,
        np.asarray(np.minimum(low, high) > _BOTH_SIGNS * np.maximum(low, high)),
        None if unbounded is None else np.asarray(unbounded.any(axis=-1)),
    )


def wald_statistics(
    weights: NDArray[np.float64], covariance: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return w' C^-1 w for each pair (n_source, n), from weights (n_source, n, n_basis) and their covariances."""
    known = np.isfinite(covariance).all(axis=(2, 3))
    statistic = np.full(known.shape, np.nan)
    for pair in zip(*np.nonzero(known)):
        w = weights[pair]
        statistic[pair] = w @ np.linalg.lstsq(covariance[pair], w, rcond=None)[0]
    return statistic


def likelihood_ratios(
    population: PopulationParameters, data: RecordedData, kernel: str
) -> NDArray[np.float64]:
    """Return twice the log-likelihood that each pair of a kernel is worth.

    Parameters
    ----------
    population : PopulationParameters
        At the maximum of the likelihood of the data.
    data : RecordedData
    kernel : str

    Returns
    -------
    ndarray of float, shape (n_source, n)
        NaN for pairs without weights.
    """
    design, present = design_of(population, data), population.connections()
    free, parameters = design.free(present), design.parameters_of(population)
    statistic = np.full(present[kernel].shape, np.nan)
    sources, targets = np.nonzero(present[kernel])
    order = np.argsort(targets, kind="stable")
    n_together = max(1, min(MOST_VALUES // design.n_parameters**2 // 2, _MOST_PAIRS))
    with Workers() as workers:
        for first in range(0, order.size, n_together):
            chosen = order[first : first + n_together]
            own = sources[chosen], targets[chosen]
            removed = design.columns[kernel][:, own[0]].T
            problem = Problem.plain(design, population.observations, own[1], free[own[1]])
            statistic[own] = _of_pairs(problem, parameters, removed, workers)
    return statistic


def _of_pairs(problem, parameters, removed, workers):
    """Return the statistics of neurons, one for each pair, without the `removed` columns (n_pairs, n_basis)."""
    neurons, first, number = np.unique(problem.neurons, return_index=True, return_inverse=True)
    fitted = evaluate(problem.of(first), parameters[neurons], workers, every=1)
    held, information = problem.free.copy(), fitted.information[number]
    held[np.arange(len(held))[:, np.newaxis], removed] = False
    start = np.where(held, parameters[problem.neurons], 0.0)

    def move(pair):
        """Go to the maximum of the quadratic function that the information describes."""
        rest = np.flatnonzero(held[pair])
        gone = np.flatnonzero(problem.free[pair] & ~held[pair])
        matrix = information[pair]
        effect = matrix[np.ix_(rest, gone)] @ parameters[problem.neurons[pair], gone]
        start[pair, rest] += solve(matrix[np.ix_(rest, rest)], effect)

    for _ in workers.map(move, range(len(held))):
        pass
    outcome = maximise(
        replace(problem, free=held), start, np.sqrt(_GAIN), _MOST_STEPS, workers, information
    )
    if "interrupted" in outcome.status:
        raise KeyboardInterrupt
    constrained = outcome.log_likelihood + 0.5 * np.clip(outcome.gain, 0.0, _GAIN)
    return 2 * np.maximum(fitted.log_likelihood[number] - constrained, 0.0)
