"""Plain Brian 2 on the runtime device, as written without this package."""

from time import perf_counter

import numpy as np
from brian2 import Network, NetworkOperation, NeuronGroup
from brian2 import seed as seed_brian

from .base import Peer, lags_within, presentation_order


class PlainBrian(Peer):
    """Brian draws the spikes; a network operation filters them and learns, in NumPy.

    In each step the operation sums the weights of the inputs that spiked, filters the
    input so far, and sets the potentials of the output neurons; after the last step of a
    presentation it updates the weights.  Code is generated for the target in Brian's
    preferences.
    """

    name = "plain Brian 2"
    requires = ("brian2",)

    def __init__(self, workload):
        super().__init__(workload)
        self._lags = lags_within(workload.basis, workload.n_steps)
        self._probability = workload.images / 510
        self._inputs = NeuronGroup(len(self.weights), "p : 1", threshold="rand() < p", reset="")
        self._outputs = NeuronGroup(
            workload.n_classes,
            """u : 1
            silent : boolean (shared)""",
            threshold="not silent and rand() < 1 / (1 + exp(-u))",
            reset="",
        )
        self._outputs.silent = True  # training clamps the outputs
        self._network = Network(
            self._inputs,
            self._outputs,
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
        # From the first step, since Brian may compile code before it.
        return perf_counter() - self._began

    def gradient(self, spikes, label, weights, bias):
        self._clear()
        for in_step in spikes:
            self._respond(np.flatnonzero(in_step), weights, bias)
        log_likelihood, grad_u = self._errors(label)
        grad_weights = np.zeros_like(weights)
        for spiking, row in zip(self._spiking, self._rows(grad_u)):
            grad_weights[spiking] += row
        return log_likelihood, grad_weights, grad_u.sum(axis=0)

    def _begin_step(self):
        if self._step == 0:
            if self._presentation == 0:
                self._began = perf_counter()
            self._clear()
            self._inputs.p = self._probability[self._order[self._presentation]]

    def _end_step(self):
        self._outputs.u = self._respond(self._inputs.spikes, self.weights, self.bias)
        self._step += 1
        if self._step == self.workload.n_steps:
            self._learn(self.workload.labels[self._order[self._presentation]])
            self._presentation += 1
            self._step = 0

    def _clear(self):
        self._spiking = []  # the inputs that spiked, of each step
        self._arrived = []  # the sums of their weights, (N_Y, K)
        self._u = []  # (N_Y,)

    def _respond(self, spiking, weights, bias):
        """Return the potentials of this step, and store its spikes."""
        n_lags = len(self._arrived)
        # The latest step comes first, like the shortest lag.
        recent = np.array(self._arrived[::-1]).reshape(n_lags, *weights.shape[1:])
        u = bias + np.einsum("lk,lik->i", self._lags[:n_lags], recent)
        self._u.append(u)
        self._spiking.append(np.array(spiking))
        self._arrived.append(weights[spiking].sum(axis=0))
        return u

    def _learn(self, label):
        _, grad_u = self._errors(label)
        rate = self.workload.learning_rate
        for spiking, row in zip(self._spiking, self._rows(grad_u)):
            self.weights[spiking] += rate * row
        self.bias += rate * grad_u.sum(axis=0)

    def _errors(self, label):
        """Return the log-likelihood, and its gradient with respect to the potentials, (T, N_Y)."""
        u = np.array(self._u)
        # log g(u) - log(1 - g(u)) = u, so log p_t is the potential of the correct
        # neuron plus the log-probability that all are silent up to and including step t.
        log_silence = -np.logaddexp(0, u)
        log_p = u[:, label] + log_silence.sum(axis=1).cumsum()
        log_likelihood = np.logaddexp.reduce(log_p)
        q = np.exp(log_p - log_likelihood)
        h = 1 + q - q.cumsum()  # of not having spiked before step t
        grad_u = -h[:, np.newaxis] * np.exp(u + log_silence)
        grad_u[:, label] += q
        return float(log_likelihood), grad_u

    def _rows(self, grad_u):
        """Yield the gradient with respect to the input of each step, (N_Y, K)."""
        for t in range(len(grad_u) - 1):
            later = grad_u[t + 1 :]
            yield np.einsum("li,lk->ik", later, self._lags[: len(later)])
