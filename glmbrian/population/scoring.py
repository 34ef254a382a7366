"""How well a population predicts spikes: log-likelihoods and bits a spike, neuron by neuron."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.activations import Activation
from ..support.validation import finite_array
from .blocks import Recorded
from .data import rates_within_bounds

if TYPE_CHECKING:
    from .population import GLMPopulation


def log_likelihoods(population: "GLMPopulation", data: Recorded) -> NDArray[np.float64]:
    """Return the log-likelihood of each neuron's train, in nats, shape (n,)."""
    total = np.zeros(population.n)
    for block in data.blocks():
        total += of_trains(block.potential(population), block.spikes, population.activation)
    return total


def of_trains(
    u: NDArray[np.float64], spikes: NDArray[np.uint8], activation: Activation
) -> NDArray[np.float64]:
    """Return the log-probabilities of trains (T, n) under potentials (T, n), summed over steps."""
    return np.where(spikes, activation.log_spike(u), activation.log_silence(u)).sum(axis=0)


def spike_counts(data: Recorded) -> NDArray[np.float64]:
    """Return the number of spikes of each neuron in the steps that count, shape (n,)."""
    counts = np.zeros(data.outputs.shape[1])
    for block in data.blocks():
        counts += block.spikes.sum(axis=0)
    return counts


def rates_at_rest(data: Recorded) -> NDArray[np.float64]:
    """Return the rates of the neurons in spikes a step, shape (n,), above 0 and below 1."""
    return rates_within_bounds(spike_counts(data), data.n_counted)


def bits_per_spike(
    population: "GLMPopulation", data: Recorded, baseline: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Return the log-likelihood above that of a constant rate; see `GLMPopulation.score`."""
    counts, n_steps = spike_counts(data), data.n_counted
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
        gain = (log_likelihoods(population, data) - constant) / (counts * np.log(2))
    return np.where(counts > 0, gain, np.nan)
