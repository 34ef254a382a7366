"""The spikes of a test run, drawn again rather than recorded.

Every random number is a hash of its purpose (see `glmbrian.core.randomness`).  So the
spikes of a compiled program can be drawn again in NumPy, to count them and to find the
decision at an earlier deadline.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..classifier.classifier import GLMClassifier
from ..core.objectives import Objective
from ..core.randomness import uniforms
from ..core.rate_code import rate_encode
from ..devices.problem import Outcome

#: The most input spikes, of 8 bytes each, to hold at a time.
_MOST_HELD = 4_000_000


@dataclass(frozen=True)
class Recording:
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


def redraw(classifier: GLMClassifier, X: ArrayLike) -> Recording:
    """Return the `Recording` of ``classifier.predict(X)``.

    Parameters
    ----------
    classifier : GLMClassifier
        A fitted classifier.
    X : array_like, shape (n, n_inputs)
        Intensities, as for `GLMClassifier.fit`.
    """
    run = classifier.prepare_test(X)
    network, theta, inputs, testing = run.network, run.parameters, run.inputs, run.testing
    n_at_once = max(1, _MOST_HELD // (network.n_steps * network.n_inputs))
    parts = []
    for first in range(0, len(inputs), n_at_once):
        numbers: Any = np.arange(first, min(first + n_at_once, len(inputs)))
        spikes = rate_encode(inputs.levels(numbers), testing.input_key, numbers, network.n_steps)
        potentials = _input_potentials(network, theta, spikes)
        outputs = _spike(network, theta, testing, numbers, potentials)
        parts.append((spikes.sum(axis=2, dtype=int), outputs, potentials))
    return Recording(*map(np.concatenate, zip(*parts)))


def _input_potentials(network, theta, spikes):
    """Return the potentials without feedback, shape (n, T, N_Y)."""
    n, n_steps, n_inputs = spikes.shape
    shape = (n, n_steps, network.n_outputs, network.basis.n_basis)
    channels = spikes.reshape(-1, n_inputs).astype(float) @ theta.weights.reshape(n_inputs, -1)
    filters = _lagged(network.basis, n_steps)
    potentials = np.tensordot(channels.reshape(shape), filters, axes=([1, 3], [1, 2]))
    return theta.bias + potentials.transpose(0, 2, 1)


def _spike(network, theta, testing, numbers, potentials):
    """Draw the output spikes, shape (n, T, N_Y); add their feedback to `potentials`."""
    n_steps = network.n_steps
    draws = uniforms(
        testing.output_key,
        numbers[:, np.newaxis, np.newaxis],
        np.arange(n_steps)[:, np.newaxis],
        np.arange(network.n_outputs),
    )
    probability = network.activation.probability
    if network.feedback_basis is None:
        return draws < probability(potentials)
    kernels = _lagged(network.feedback_basis, n_steps) @ theta.feedback.T
    outputs = np.zeros(potentials.shape, dtype=bool)
    for step in range(n_steps):
        potentials[:, step] += np.einsum("si,nsi->ni", kernels[step], outputs)
        outputs[:, step] = draws[:, step] < probability(potentials[:, step])
    return outputs


def _lagged(basis, n_steps):
    """Return what a spike at step s adds at step t, [t, s, function]; 0 if s >= t."""
    filters = np.zeros((n_steps, n_steps, basis.n_basis))
    for lag in range(1, min(basis.window, n_steps - 1) + 1):
        later = np.arange(lag, n_steps)
        filters[later, later - lag] = basis.matrix[lag - 1]
    return filters
