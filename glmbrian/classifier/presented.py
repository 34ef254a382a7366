"""A test's presentations in blocks, with the spikes and random numbers that `predict` sees."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..core.batches import BatchedNetwork
from ..core.layers import Layer
from ..core.objectives import Objective
from ..core.randomness import hidden_key, repeated_key, uniforms
from ..devices.problem import Inputs, Network, Parameters, Testing, as_layers

#: Values of one array that are held at a time: the blocks still fit in a processor's cache.
_BLOCK_VALUES = 2**20


@dataclass(frozen=True)
class Block:
    """Some presentations of a test.

    rows : slice
        Their places in `X`.
    numbers : ndarray of int, shape (n,)
        Their numbers, on which random numbers depend.
    """

    rows: slice
    numbers: NDArray[np.int64]


class PresentedTest:
    """What happens in the presentations of a test, in NumPy.

    Parameters
    ----------
    network : Network
    parameters : Parameters
    inputs : Inputs
    testing : Testing
    n_steps : int, optional
        Steps of a presentation; by default those of the network.
    """

    def __init__(
        self,
        network: Network,
        parameters: Parameters,
        inputs: Inputs,
        testing: Testing,
        n_steps: int | None = None,
    ) -> None:
        self.network = network
        self.inputs = inputs
        self.testing = testing
        self.n_steps = network.n_steps if n_steps is None else n_steps
        self.layers: list[Layer] = as_layers(network, parameters)
        self.batched = BatchedNetwork(self.layers, self.n_steps)

    @property
    def objective(self) -> Objective:
        return self.network.objective

    def blocks(self, values_of_each: int = 0) -> Iterator[Block]:
        """Yield blocks of presentations, each of which holds `values_of_each` values, or more."""
        values = max(values_of_each, self.n_steps * max(self.network.n_inputs, *self._sizes()))
        n, at_a_time = len(self.inputs), max(1, _BLOCK_VALUES // values)
        for first in range(0, n, at_a_time):
            rows = slice(first, min(first + at_a_time, n))
            numbers = self.testing.first_presentation + np.arange(rows.start, rows.stop)
            yield Block(rows, numbers)

    def _sizes(self):
        return [layer.n * layer.basis.shape[1] for layer in self.layers]

    def trains(self, block: Block, encoding: int = 0) -> np.ndarray:
        """Return the input spikes (n, T, N_X); encoding 0 gives those that `predict` sees."""
        testing = self.testing
        key = repeated_key(testing.input_key, encoding)
        return self.inputs.trains(block.rows, key, testing.first_presentation, self.n_steps)

    def hidden_draws(self, numbers: NDArray[np.int64], repetition: int = 0) -> list[np.ndarray]:
        """Return the random numbers (n, T, N) of each hidden layer.

        Repetition 0 gives those that `predict` sees in presentations of these numbers.
        """
        key = repeated_key(self.testing.output_key, repetition)
        return [
            self._uniforms(hidden_key(key, number), numbers, layer.n)
            for number, layer in enumerate(self.layers[:-1])
        ]

    def output_draws(self, numbers: NDArray[np.int64], repetition: int = 0) -> np.ndarray:
        """Return the random numbers (n, T, N_Y) of the outputs (see `hidden_draws`)."""
        key = repeated_key(self.testing.output_key, repetition)
        return self._uniforms(key, numbers, self.layers[-1].n)

    def _uniforms(self, key, numbers, n):
        steps = np.arange(self.n_steps)[:, np.newaxis]
        return uniforms(key, numbers[:, np.newaxis, np.newaxis], steps, np.arange(n))
