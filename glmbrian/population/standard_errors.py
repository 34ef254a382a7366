"""How sure fitted parameters are: standard errors from the Fisher information."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.bases import Basis
from ..support.validation import choice
from ..support.workers import Workers
from .design import design_of
from .information import inverse
from .objective import Problem, evaluate
from .parameters import PopulationParameters
from .recorded import RecordedData

#: The most values in the information matrices that are summed in one pass (512 MiB).
MOST_VALUES = 2**26


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Standard errors of the parameters of a population, under the names of the parameters.

    They are infinite where the data do not determine a parameter (the weights of a source that
    never spiked), and NaN where there is none (a connection whose weights are all 0).

    Parameters
    ----------
    bias : ndarray of float, shape (n,)
    weights : dict of str to ndarray of float, shape (n_source, n, n_basis)
    feedback_weights : ndarray of float, shape (n, n_basis), or None
    covariances : dict of str to ndarray of float, shape (n_source, n, n_basis, n_basis)
        Covariances of the weights of one kernel.
    feedback_covariance : ndarray of float, shape (n, n_basis, n_basis), or None
    kernels : dict of str to Basis
    feedback_basis : Basis or None

    See Also
    --------
    GLMPopulation.standard_errors : computes them.

    Examples
    --------
    >>> import numpy as np
    >>> import glmbrian as glm
    >>> outputs = np.random.default_rng(0).random((1000, 1)) < 0.2
    >>> population = glm.fit_population(outputs, feedback_basis=glm.IndicatorBasis(2))
    >>> errors = population.standard_errors(outputs)
    >>> errors.bias.round(1), errors.feedback_weights.round(1)
    (array([0.1]), array([[0.2, 0.2]]))
    """

    bias: NDArray[np.float64]
    weights: dict[str, NDArray[np.float64]]
    feedback_weights: NDArray[np.float64] | None
    covariances: dict[str, NDArray[np.float64]]
    feedback_covariance: NDArray[np.float64] | None
    kernels: dict[str, Basis]
    feedback_basis: Basis | None

    def kernel(self, name: str = "stimulus") -> NDArray[np.float64]:
        """Return the standard errors of the values of the kernels with this name.

        Parameters
        ----------
        name : str

        Returns
        -------
        ndarray of float, shape (n_source, n, window)

        Raises
        ------
        ValueError
            If there is no such kernel.

        Examples
        --------
        >>> import numpy as np
        >>> import glmbrian as glm
        >>> x, y = np.random.default_rng(0).random((2, 1000, 1)) < 0.2
        >>> population = glm.fit_population(y, x, glm.CustomBasis([[1.0], [0.5]]))
        >>> errors = population.standard_errors(y, x)
        >>> (errors.kernel("stimulus") / errors.weights["stimulus"]).round(3)
        array([[[1. , 0.5]]])
        """
        choice(name, "name", tuple(self.kernels))
        return _of_kernels(self.covariances[name], self.kernels[name])

    def feedback_kernels(self) -> NDArray[np.float64]:
        """Return the standard errors of the values of the feedback kernels.

        Returns
        -------
        ndarray of float, shape (n, window)

        Raises
        ------
        AttributeError
            If the population has no feedback kernel.

        Examples
        --------
        >>> import numpy as np
        >>> import glmbrian as glm
        >>> y = np.random.default_rng(0).random((1000, 1)) < 0.2
        >>> population = glm.fit_population(y, feedback_basis=glm.IndicatorBasis(1))
        >>> population.standard_errors(y).feedback_kernels().round(1)
        array([[0.2]])
        """
        if self.feedback_covariance is None or self.feedback_basis is None:
            raise AttributeError("these standard errors are of a population without a feedback kernel")
        return _of_kernels(self.feedback_covariance, self.feedback_basis)


def fisher_standard_errors(population: PopulationParameters, data: RecordedData) -> StandardErrors:
    """Return the standard errors of a population at the maximum of the likelihood of its data."""
    design = design_of(population, data)
    n, size = design.n, design.n_parameters
    parameters, free = design.parameters_of(population), design.free(population.connections())
    variances = np.full((n, size), np.nan)
    covariances: dict[str, list[np.ndarray]] = {name: [] for name in design.columns}
    own = []
    at_once = max(1, MOST_VALUES // size**2)
    for first in range(0, n, at_once):
        chosen = np.arange(first, min(n, first + at_once))
        problem = Problem.plain(design, population.observations, chosen, free[chosen])
        with Workers() as workers:
            information = evaluate(problem, parameters[chosen], workers, every=1).information
        for i, of_neuron in zip(chosen, information):
            there = np.ix_(free[i], free[i])
            covariance = np.full((size, size), np.nan)
            covariance[there] = inverse(of_neuron[there])
            variances[i] = np.diag(covariance)
            for name, columns in design.columns.items():
                weights = columns.T  # of each source
                covariances[name].append(
                    covariance[weights[:, :, np.newaxis], weights[:, np.newaxis, :]]
                )
            own.append(covariance[design.n_common :, design.n_common :])
    bias, errors, feedback = design.by_name(np.sqrt(variances))
    return StandardErrors(
        bias,
        errors,
        feedback,
        {name: np.stack(of_neurons, axis=1) for name, of_neurons in covariances.items()},
        np.stack(own) if design.n_own else None,
        dict(population.kernels),
        population.feedback_basis,
    )


def _of_kernels(covariance, basis):
    """Return the standard errors (..., window) of kernels whose weights have these covariances."""
    variances = np.diagonal(covariance, axis1=-2, axis2=-1)
    known = np.isfinite(variances).all(axis=-1)
    safe = np.where(known[..., np.newaxis, np.newaxis], covariance, 0.0)
    squares = np.einsum("lk,...km,lm->...l", basis.matrix, safe, basis.matrix, optimize=True)
    errors = np.sqrt(np.maximum(squares, 0.0))
    open_ = np.where(np.isnan(variances).any(axis=-1), np.nan, np.inf)
    return np.where(known[..., np.newaxis], errors, open_[..., np.newaxis])
