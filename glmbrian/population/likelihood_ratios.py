"""By how much the log-likelihood falls without each pair of a kernel, from the fit with all of them.

Without a pair, the other parameters of its target have another maximum, which the Fisher information of the fit
predicts well.  From there all pairs are searched together, as if each were a neuron of its own whose weights from
one source are held at 0, until next to nothing can be gained.  Usually one pass over the data is enough, instead
of the dozen of a new fit.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..support.workers import Workers
from .design import Design
from .maximiser import maximise, solve
from .objective import evaluate
from .penalties import Ridge
from .standard_errors import MOST_VALUES, connections

if TYPE_CHECKING:
    from .population import GLMPopulation

#: The squared distance to the maximum at which a search ends.  Half of it could still be gained, in nats, and
#: is added as a prediction.
_GAIN = 0.01

_MOST_STEPS = 200

#: The most pairs whose potentials are computed together.
_MOST_PAIRS = 512


def likelihood_ratios(population: "GLMPopulation", design: Design, kernel: str) -> NDArray[np.float64]:
    """Return twice the log-likelihood that each pair of a kernel is worth.

    Parameters
    ----------
    population : GLMPopulation
        At the maximum of the likelihood of the data.
    design : Design
        Of the data.
    kernel : str

    Returns
    -------
    ndarray of float, shape (n_source, n)
        NaN for pairs without weights.
    """
    present = connections(population)
    free, parameters = design.free(present), design.parameters_of(population)
    statistic = np.full(present[kernel].shape, np.nan)
    sources, targets = np.nonzero(present[kernel])
    order = np.argsort(targets, kind="stable")
    n_together = max(1, min(MOST_VALUES // design.n_parameters**2 // 2, _MOST_PAIRS))
    with Workers() as workers:
        for first in range(0, order.size, n_together):
            chosen = order[first : first + n_together]
            own = sources[chosen], targets[chosen]
            statistic[own] = _of_pairs(population, design, kernel, *own, parameters, free, workers)
    return statistic


def _of_pairs(population, design, kernel, sources, targets, parameters, free, workers):
    neurons, number = np.unique(targets, return_inverse=True)
    fitted: Any = evaluate(
        design, neurons, parameters[neurons], population.activation, workers, free[neurons], every=1
    )
    held, information = free[targets], fitted.information[number]
    held[np.arange(len(targets))[:, np.newaxis], design.columns[kernel][:, sources].T] = False
    start = np.where(held, parameters[targets], 0.0)

    def move(pair):
        """Go to the maximum of the quadratic function that the information describes."""
        rest = np.flatnonzero(held[pair])
        removed = np.flatnonzero(free[targets[pair]] & ~held[pair])
        matrix = information[pair]
        effect = matrix[np.ix_(rest, removed)] @ parameters[targets[pair], removed]
        start[pair, rest] += solve(matrix[np.ix_(rest, rest)], effect)

    for _ in workers.map(move, range(len(targets))):
        pass
    outcome = maximise(
        design,
        targets,
        population.activation,
        held,
        Ridge([], np.zeros((len(targets), 0)), design.n_parameters),
        0.0,
        start,
        np.sqrt(_GAIN),
        _MOST_STEPS,
        workers,
        information,
    )
    if "interrupted" in outcome.status:
        raise KeyboardInterrupt
    constrained = outcome.log_likelihood + 0.5 * np.clip(outcome.gain, 0.0, _GAIN)
    return 2 * np.maximum(fitted.value[number] - constrained, 0.0)
