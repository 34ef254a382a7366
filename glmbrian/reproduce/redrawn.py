"""The spikes of a test run, drawn again rather than recorded.

Every random number is a hash of its purpose (see `glmbrian.core.randomness`).  So the
spikes of a compiled program can be drawn again in NumPy, to count them and to find the
decision at an earlier deadline.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..classifier.classifier import GLMClassifier
from ..core.objectives import Objective
from ..devices.problem import Outcome


@dataclass(frozen=True)
class Redrawn:
    """What happens in the presentations of a test if each runs to its last step.

    input_spikes : ndarray of int, shape (n, T)
        Number of spikes of all inputs in each step.
    outputs : ndarray of bool, shape (n, T, N_Y)
    potentials : ndarray of float, shape (n, T, N_Y)
    """

    input_spikes: np.ndarray
    outputs: np.ndarray
    potentials: np.ndarray

    def outcome(self, objective: Objective, deadline: int | None = None) -> Outcome:
        """Return the `Outcome` of decisions by an `Objective` made by step `deadline`.

        By default this is the last step, and the outcome equals the test's.
        """
        n, n_steps, _ = self.outputs.shape
        steps = np.full(n, n_steps if deadline is None else deadline)
        if objective.stops_at_first_spike:
            spiking = np.asarray(self.outputs.any(axis=2))
            first = np.where(spiking.any(axis=1), spiking.argmax(axis=1) + 1, n_steps)
            steps = np.minimum(steps, first)
        seen = np.arange(n_steps) < steps[:, np.newaxis]
        return Outcome(
            steps=steps,
            input_spikes=np.where(seen, self.input_spikes, 0).sum(axis=1),
            counts=(self.outputs & seen[:, :, np.newaxis]).sum(axis=1),
            potential_sum=np.where(seen[:, :, np.newaxis], self.potentials, 0).sum(axis=1),
            potential_last=self.potentials[np.arange(n), steps - 1],
        )


def redraw(classifier: GLMClassifier, X: ArrayLike) -> Redrawn:
    """Return the spikes of ``classifier.predict(X)``.

    Parameters
    ----------
    classifier : GLMClassifier
        A fitted classifier.
    X : array_like, shape (n, n_inputs)
        Intensities, as for `GLMClassifier.fit`.
    """
    test = classifier.prepare_test(X).presented()
    (layer,) = test.batched.layers
    parts = []
    for block in test.blocks():
        trains = test.trains(block)
        outputs, potentials = layer.simulate(layer.drive(trains), test.output_draws(block.numbers))
        parts.append((trains.sum(axis=2, dtype=int), outputs.astype(bool), potentials))
    return Redrawn(*map(np.concatenate, zip(*parts)))
