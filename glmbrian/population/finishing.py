"""What a fit does last: it remembers its data for standard errors, and makes itself stable."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from .population import GLMPopulation


def finished(
    population: "GLMPopulation",
    rates: NDArray[np.float64],
    outputs: Any,
    inputs: Any,
    mask: ArrayLike | None,
    epochs: Sequence[tuple[Any, Any]] | None,
    moved_by: str | None,
    stable: bool = False,
    max_rate: ArrayLike | None = None,
) -> "GLMPopulation":
    """Return a fitted population as `fit_population` hands it out.

    Parameters
    ----------
    population : GLMPopulation
    rates : ndarray of float, shape (n,)
        Of the neurons in the data, in spikes a step.
    outputs, inputs, mask, epochs
        The data of the fit.
    moved_by : str or None
        The penalty that has moved its parameters, as for `GLMPopulation`.
    stable, max_rate
        As for `fit_population`.
    """
    population.moved_by = moved_by
    if stable:
        return population.stabilised(outputs, inputs, mask, max_rate, epochs=epochs)
    population.fitted_rates = rates
    if moved_by is None:
        population.fitted_to = outputs, inputs, mask, epochs
    return population
