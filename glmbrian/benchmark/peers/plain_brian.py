"""Plain Brian 2 on the runtime device, as one would write it without this package."""

from time import perf_counter

import numpy as np
from brian2 import Network, NetworkOperation, NeuronGroup
from brian2 import seed as seed_brian

from .base import Peer, presentation_order, step_filters


class PlainBrian(Peer):
    """Brian draws the input spikes; a network operation learns from them in NumPy.

    Training holds the outputs silent, so that they need no neurons: their potentials
    follow from the spikes of a whole presentation by matrix products.  Code is generated
    for the target that Brian's preference names.
    """

    name = "plain Brian 2"
    description = "Brian 2 runtime, with a network operation in NumPy"
    requires = ("brian2",)

    def __init__(self, workload):
        super().__init__(workload)
        self._filters = step_filters(workload.basis, workload.n_steps)
        self._probability = workload.images / 510
        n_inputs = len(self.weights)
        self._spikes = np.zeros((workload.n_steps - 1, n_inputs))
        self._inputs = NeuronGroup(n_inputs, "p : 1", threshold="rand() < p", reset="")
        self._network = Network(
            self._inputs,
            NetworkOperation(self._begin_step, when="start"),
            NetworkOperation(self._end_step, when="end"),
        )
        self.train(1, seed=0)

    def train(self, n_presentations, seed):
        self._restart()
        rng = np.random.default_rng(seed)
        seed_brian(seed)
        self._order = presentation_order(len(self._probability), n_presentations, rng)
        self._presentation, self._step = 0, 0
        duration = n_presentations * self.workload.n_steps * self._inputs.clock.dt
        self._network.run(duration, namespace={})
        # From the first step, since what Brian does before a run it may compile.
        return perf_counter() - self._began

    def gradient(self, spikes, label, weights, bias):
        log_p, grad_channels, grad_u = self._errors(
            spikes[:-1], label, weights.reshape(len(weights), -1), bias
        )
        grad_weights = (spikes[:-1].T @ grad_channels).reshape(weights.shape)
        return float(np.logaddexp.reduce(log_p)), grad_weights, grad_u.sum(axis=1)

    def _begin_step(self):
        if self._step:
            return
        if self._presentation == 0:
            self._began = perf_counter()
        self._spikes[:] = 0
        self._inputs.p = self._probability[self._order[self._presentation]]

    def _end_step(self):
        if self._step < len(self._spikes):
            self._spikes[self._step, self._inputs.spikes] = 1
            self._step += 1
            return
        # In the last step: its spikes move nothing.
        self._learn(self._order[self._presentation])
        self._presentation += 1
        self._step = 0

    def _learn(self, image):
        lit = np.flatnonzero(self._probability[image])
        spikes = self._spikes[:, lit]
        rows = self.weights.reshape(len(self.weights), -1)
        label = self.workload.labels[image]
        _, grad_channels, grad_u = self._errors(spikes, label, rows[lit], self.bias)
        rate = self.workload.learning_rate
        rows[lit] += spikes.T @ (rate * grad_channels)
        self.bias += rate * grad_u.sum(axis=1)

    def _errors(self, spikes, label, weights, bias):
        """Return log p_t, and gradients in what arrives and in the potentials.

        p_t, of shape (T,), is the probability that the right neuron spikes first, and in
        step t.  `spikes` has the shape (T - 1, inputs) and `weights` (inputs, N_Y K); the
        gradients have (T - 1, N_Y K) and (N_Y, T).
        """
        n_drawn, n_classes = len(spikes), len(bias)
        channels = (spikes @ weights).reshape(n_drawn, n_classes, -1)
        channels = channels.transpose(1, 0, 2).reshape(n_classes, -1)
        u = channels @ self._filters + bias[:, np.newaxis]

        # log g(u) - log(1 - g(u)) = u, so that log p_t is the potential of the right
        # neuron plus the log-probability that all are silent up to and including step t.
        log_silence = -np.logaddexp(0, u)
        log_p = u[label] + log_silence.sum(axis=0).cumsum()
        q = np.exp(log_p - log_p.max())
        q /= q.sum()
        h = 1 + q - q.cumsum()  # of not having spiked before step t
        grad_u = -h * np.exp(u + log_silence)
        grad_u[label] += q

        grad_channels = (grad_u @ self._filters.T).reshape(n_classes, n_drawn, -1)
        return log_p, grad_channels.transpose(1, 0, 2).reshape(n_drawn, -1), grad_u
