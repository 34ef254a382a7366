"""How well a population predicts spikes: log-likelihoods and bits a spike, neuron by neuron."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.validation import finite_array
from .design import Design
from .objective import log_likelihood

if TYPE_CHECKING:
    from .population import GLMPopulation


def log_likelihoods(population: "GLMPopulation", design: Design) -> NDArray[np.float64]:
    """Return the log-likelihood of each neuron's train, in nats, shape (n,)."""
    return log_likelihood(design, design.parameters_of(population), population.activation)


def bits_per_spike(
    population: "GLMPopulation", design: Design, baseline: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the log-likelihood above that of a constant rate; see `GLMPopulation.score`."""
    counts, n_steps = design.counts(), design.n_rows
    if baseline is None:
        rates = counts / n_steps
    else:
        rates = finite_array(baseline, "baseline", (population.n,))
        impossible = ((rates <= 0) & (counts > 0)) | ((rates >= 1) & (counts < n_steps))
        if np.any((rates < 0) | (rates > 1) | impossible):
            raise ValueError(
                "baseline must hold the probability of a spike in a step for each neuron, between 0 and 1, "
                f"and make the trains in outputs possible, got {rates}"
            )
    with np.errstate(divide="ignore", invalid="ignore"):
        # 0 log 0 is 0
        constant = np.where(counts > 0, counts * np.log(rates), 0.0)
        constant += np.where(counts < n_steps, (n_steps - counts) * np.log1p(-rates), 0.0)
        gain = (log_likelihoods(population, design) - constant) / (counts * np.log(2))
    return np.where(counts > 0, gain, np.nan)
