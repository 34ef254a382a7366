"""What a test observed: everything that a decision depends on."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass
class Outcome:
    """What was observed in a test: one row per presentation.

    steps : ndarray of int, shape (n,)
        Steps simulated: up to the first spike if the objective stops there.
    input_spikes : ndarray of int, shape (n,)
        Spikes of all inputs in these steps.
    hidden_spikes : ndarray of int, shape (n, n_hidden_layers)
        Spikes of each hidden layer in these steps.
    counts : ndarray of int, shape (n, n_outputs)
        Spikes of each output in these steps.
    potential_sum, potential_last : ndarray of float, shape (n, n_outputs)
        Membrane potential summed over these steps, and in the last of them.
    """

    steps: NDArray[np.int64]
    input_spikes: NDArray[np.int64]
    counts: NDArray[np.int64]
    potential_sum: NDArray[np.float64]
    potential_last: NDArray[np.float64]
    hidden_spikes: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 0), dtype=np.int64))

    @classmethod
    def from_rows(cls, rows: ArrayLike, n_outputs: int, n_hidden_layers: int = 0) -> "Outcome":
        """Split rows of ``[steps, input_spikes, hidden_spikes, counts, sums, lasts]``."""
        n_first = 2 + n_hidden_layers
        table = np.asarray(rows, dtype=float).reshape(-1, n_first + 3 * n_outputs)
        head, counts, sums, lasts = np.split(table, n_first + n_outputs * np.arange(3), axis=1)
        head = head.astype(int)
        return cls(head[:, 0], head[:, 1], counts.astype(int), sums, lasts, head[:, 2:])


@dataclass
class Trace:
    """Everything observed in one presentation, step by step up to its end.

    inputs : ndarray of 0/1, shape (steps, n_inputs)
    outputs : ndarray of 0/1, shape (steps, n_outputs)
    potentials : ndarray of float, shape (steps, n_outputs)
    hidden : list of ndarray of 0/1, shape (steps, n)
        Spikes of each hidden layer, from the input on.
    hidden_potentials : list of ndarray of float, shape (steps, n)
    decided : label of a class, optional
        What `GLMClassifier` decided, -1 for a rejected presentation.
    """

    inputs: np.ndarray
    outputs: np.ndarray
    potentials: np.ndarray
    decided: object | None = None
    hidden: list[np.ndarray] = field(default_factory=list)
    hidden_potentials: list[np.ndarray] = field(default_factory=list)

    def row(self) -> NDArray[np.float64]:
        """Return this presentation as a row for `Outcome.from_rows`."""
        return np.concatenate(
            [
                [len(self.inputs), self.inputs.sum()],
                [spikes.sum() for spikes in self.hidden],
                self.outputs.sum(axis=0),
                self.potentials.sum(axis=0),
                self.potentials[-1],
            ]
        )
