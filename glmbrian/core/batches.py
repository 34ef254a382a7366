"""Many presentations at once: potentials, hidden spikes, and gradients in the input spikes.

`layers` computes the same for one presentation.  Here arrays have one more axis in front, and a
change of one input spike changes the potentials without computing them again.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .layers import Layer
from .objectives import Objective


class BatchedLayer:
    """A layer's potentials for a batch of presentations, and their derivatives.

    Parameters
    ----------
    layer : glmbrian.learning.Layer
    n_steps : int
    """

    def __init__(self, layer: Layer, n_steps: int) -> None:
        self.layer = layer
        n_lags, n_basis = layer.basis.shape
        lags = np.arange(n_steps)[:, np.newaxis] - np.arange(n_steps)
        seen = (lags >= 1) & (lags <= n_lags)
        # What arrives in step s acts on step t by response[t, s, k].
        self.response = np.where(seen[..., np.newaxis], layer.basis[np.where(seen, lags, 1) - 1], 0.0)
        self.by_channel = np.ascontiguousarray(layer.weights.reshape(layer.n_in, layer.n * n_basis))
        self.kernels = np.zeros((layer.n_in, 2 * n_steps - 1, layer.n))
        n_seen = min(n_lags, n_steps - 1)
        # Half of the steps are before the spike, so that `effect` can slice.
        self.kernels[:, n_steps : n_steps + n_seen] = np.einsum(
            "lk,jik->jli", layer.basis[:n_seen], layer.weights
        )

    def drive(self, inputs: np.ndarray) -> NDArray[np.float64]:
        """Return the potentials (n, T, N) without feedback, for inputs (n, T, n_in)."""
        n, n_steps, n_in = inputs.shape
        n_basis = self.layer.basis.shape[1]
        channels = inputs.reshape(n * n_steps, n_in).astype(float) @ self.by_channel
        channels = channels.reshape(n, n_steps, self.layer.n, n_basis)
        filtered = np.tensordot(channels, self.response, axes=([1, 3], [1, 2]))
        return filtered.transpose(0, 2, 1) + self.layer.bias

    def in_inputs(self, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return derivatives (n, T, n_in) with respect to inputs, given those of potentials."""
        n, n_steps, n_neurons = slopes.shape
        arriving = np.tensordot(slopes, self.response, axes=([1], [0])).transpose(0, 2, 1, 3)
        flat = arriving.reshape(n * n_steps, -1)
        return (flat @ self.by_channel.T).reshape(n, n_steps, self.layer.n_in)

    def effect(self, steps: np.ndarray, inputs: np.ndarray) -> NDArray[np.float64]:
        """Return what one spike adds to the potentials, shape (..., T, N).

        Parameters
        ----------
        steps, inputs : ndarray of int, shape (...)
            The step (from 0) and the input of the spike.
        """
        n_steps = len(self.response)
        rows = n_steps - 1 + np.arange(n_steps) - np.asarray(steps)[..., np.newaxis]
        return self.kernels[np.asarray(inputs)[..., np.newaxis], rows]

    def simulate(
        self, drive: NDArray[np.float64], draws: NDArray[np.float64]
    ) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
        """Return spikes and potentials, both (n, T, N), for uniform random numbers `draws`."""
        probability, kernels = self.layer.activation.probability, self.layer.feedback_kernels
        if kernels is None:
            return (draws < probability(drive)).astype(np.uint8), drive
        potentials = drive.copy()
        spikes = np.zeros(drive.shape, dtype=np.uint8)
        for step in range(drive.shape[1]):
            spikes[:, step] = draws[:, step] < probability(potentials[:, step])
            n_later = min(len(kernels), drive.shape[1] - step - 1)
            later = spikes[:, step, np.newaxis] * kernels[:n_later]
            potentials[:, step + 1 : step + 1 + n_later] += later
        return spikes, potentials

    def through_feedback(
        self, potentials: NDArray[np.float64], in_spikes: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return derivatives for the potentials as if each spike were its probability.

        They include the path through the neurons' own feedback kernels.
        """
        slope, kernels = self.layer.probability_slope(potentials), self.layer.feedback_kernels
        result = slope * in_spikes
        if kernels is None:
            return result
        for step in reversed(range(result.shape[1])):
            later = result[:, step + 1 : step + 1 + len(kernels)]
            own = np.sum(kernels[: later.shape[1]] * later, axis=1)
            result[:, step] = slope[:, step] * (in_spikes[:, step] + own)
        return result


class BatchedNetwork:
    """A network of layers; the last one holds the outputs.

    Parameters
    ----------
    layers : list of glmbrian.learning.Layer
    n_steps : int
    """

    def __init__(self, layers: Sequence[Layer], n_steps: int) -> None:
        self.n_steps = n_steps
        self.layers = [BatchedLayer(layer, n_steps) for layer in layers]
        self.first, self.outputs = self.layers[0], self.layers[-1].layer

    def hidden_spikes(
        self, drive: NDArray[np.float64], draws: Sequence[NDArray[np.float64]]
    ) -> tuple[list[NDArray[np.uint8]], list[NDArray[np.float64]]]:
        """Simulate the hidden layers.

        Parameters
        ----------
        drive : ndarray of float, shape (n, T, N)
            What the inputs add to the potentials of the first layer, and its bias.
        draws : list of ndarray of float, shape (n, T, N)
            Uniform random numbers of each hidden layer.

        Returns
        -------
        spikes : list of ndarray of uint8, shape (n, T, N)
            Of each hidden layer.
        potentials : list of ndarray of float, shape (n, T, N)
            Of each layer; those of the outputs without feedback.
        """
        spikes: list[NDArray[np.uint8]] = []
        potentials: list[NDArray[np.float64]] = []
        for layer, above, own_draws in zip(self.layers, self.layers[1:], draws):
            own, own_potentials = layer.simulate(drive, own_draws)
            spikes.append(own)
            potentials.append(own_potentials)
            drive = above.drive(own)
        return spikes, [*potentials, drive]

    def output_potentials(
        self, drive: NDArray[np.float64], draws: Sequence[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return the potentials (n, T, N_Y) of the outputs without feedback."""
        return self.hidden_spikes(drive, draws)[1][-1]


class BatchedLikelihood:
    """The log-likelihood of the right outputs, and its gradient in the input spikes.

    With hidden layers it is the mean of the log-likelihoods given each of several draws of the
    hidden spikes, and its gradient is by straight-through credit.

    Parameters
    ----------
    network : BatchedNetwork
    objective : Objective
        Must clamp the outputs.
    """

    def __init__(self, network: BatchedNetwork, objective: Objective) -> None:
        self.network, self.objective = network, objective
        n_outputs, n_steps = network.outputs.n, network.n_steps
        labels = range(n_outputs)
        self._desired = np.stack([objective.desired(label, n_steps, n_outputs) for label in labels])
        fed_back = np.zeros((n_outputs, n_steps, n_outputs))
        if (kernels := network.outputs.feedback_kernels) is not None:
            for lag in range(1, min(len(kernels), n_steps - 1) + 1):
                fed_back[:, lag:] += self._desired[:, :-lag] * kernels[lag - 1]
        self._fed_back = fed_back

    def output_values(self, u: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the log-likelihoods (n,), given the potentials (n, T, N_Y) without feedback."""
        activation = self.network.outputs.activation
        u = u + self._fed_back[labels]
        return self.objective.values(u, self._desired[labels], labels, activation)

    def output_gradients(
        self, u: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log-likelihoods (n,) and their gradients (n, T, N_Y) in the potentials."""
        activation = self.network.outputs.activation
        u = u + self._fed_back[labels]
        return self.objective.gradients(u, self._desired[labels], labels, activation)

    def values(
        self,
        drive: NDArray[np.float64],
        labels: NDArray[np.int64],
        draws: Sequence[Sequence[NDArray[np.float64]]],
    ) -> NDArray[np.float64]:
        """Return the log-likelihoods, shape (n,).

        Parameters
        ----------
        drive : ndarray of float, shape (n, T, N)
            As for `BatchedNetwork.hidden_spikes`.
        labels : ndarray of int, shape (n,)
        draws : list of lists of ndarray
            For each draw of the hidden spikes, the random numbers of each hidden layer; one empty
            list without hidden layers.
        """
        total = np.zeros(len(drive))
        for own_draws in draws:
            total += self.output_values(self.network.output_potentials(drive, own_draws), labels)
        return total / len(draws)

    def gradients(
        self,
        drive: NDArray[np.float64],
        labels: NDArray[np.int64],
        draws: Sequence[Sequence[NDArray[np.float64]]],
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the log-likelihoods (n,), and their gradients (n, T, N_X) in the input spikes."""
        total, slopes = np.zeros(len(drive)), np.zeros(drive.shape)
        for own_draws in draws:
            value, slope = self._first_slopes(drive, labels, own_draws)
            total += value
            slopes += slope
        return total / len(draws), self.network.first.in_inputs(slopes / len(draws))

    def _first_slopes(self, drive, labels, draws):
        """Return log-likelihoods, and their derivatives for the potentials of the first layer."""
        layers = self.network.layers
        _, potentials = self.network.hidden_spikes(drive, draws)
        values, slope = self.output_gradients(potentials[-1], labels)
        for layer, above, own_potentials in zip(layers[-2::-1], layers[:0:-1], potentials[-2::-1]):
            slope = layer.through_feedback(own_potentials, above.in_inputs(slope))
        return values, slope


class BatchedMargin(BatchedLikelihood):
    """The log-likelihood of the right output minus that of one wrong output, its rival.

    Labels have the shape (n, 2): the right output and its rival.
    """

    def output_values(self, u, labels):
        right, rival = labels.T
        return super().output_values(u, right) - super().output_values(u, rival)

    def output_gradients(self, u, labels):
        (value, slope), (less, down) = (
            super(BatchedMargin, self).output_gradients(u, own) for own in labels.T
        )
        return value - less, slope - down
