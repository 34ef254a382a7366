"""Test presentations of a `Trainer`: what it keeps of each, and how it decides from that."""

import numpy as np
from numpy.typing import NDArray

from ..core.decisions import decide
from ..core.objectives import Objective
from ..core.outcome import Outcome, Trace


class TestPresentations:
    """Which presentations are tests, and how they decide.

    Parameters
    ----------
    is_training : ndarray of bool, shape (n_presentations,)
    n_outputs : int
    objective : Objective

    Attributes
    ----------
    n : int
        Number of tests.
    numbers : ndarray of int32, shape (n_presentations,)
        The index of each presentation among the tests, -1 for one that learns.
    n_values : int
        Number of values kept of a test: the length of a row for `Outcome.from_rows`.
    """

    __test__ = False  # or pytest would collect this class because of its name

    def __init__(self, is_training: NDArray[np.bool_], n_outputs: int, objective: Objective) -> None:
        self.n = int(np.sum(~is_training))
        self.numbers = np.where(is_training, -1, np.cumsum(~is_training) - 1).astype(np.int32)
        self.n_values = 2 + 3 * n_outputs
        self._n_outputs, self._objective = n_outputs, objective

    def row(self, potentials: np.ndarray, spikes: np.ndarray) -> NDArray[np.float64]:
        """Return what to keep of a test, shape (n_values,).

        Potentials and spikes have the shape (n_steps, n_outputs).
        """
        n_steps = len(spikes)
        if self._objective.stops_at_first_spike and spikes.any():
            n_steps = int(np.argmax(spikes.any(axis=1))) + 1
        no_inputs = np.zeros((n_steps, 0))
        return Trace(no_inputs, spikes[:n_steps], potentials[:n_steps]).row()

    def decided(self, rows: np.ndarray) -> tuple[NDArray[np.int_], NDArray[np.int_]]:
        """Return the decision of each presentation, and its step, from the rows of all tests.

        The rows, shape (n, n_values), hold zeros for tests to come.  Decision and step are -1 and 0
        for these, and for presentations that learn.
        """
        outcome = Outcome.from_rows(rows, self._n_outputs)
        decisions = np.full(len(self.numbers), -1)
        steps = np.zeros(len(self.numbers), dtype=int)
        are_tests = self.numbers >= 0
        decisions[are_tests] = decide(outcome, self._objective, "potential", "reject", key=0)
        steps[are_tests] = outcome.steps
        return decisions, steps
