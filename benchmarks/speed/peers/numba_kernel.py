"""A kernel written by hand and compiled with Numba."""

from time import perf_counter

import numpy as np

from .base import Peer, lags_within


class NumbaKernel(Peer):
    """Event-driven loops over contiguous rows of weights, compiled by Numba.

    Spikes come from Numba's own generator, for each step and each pixel that is not 0.
    """

    name = "Numba"
    requires = ("numba",)

    def __init__(self, workload):
        super().__init__(workload)
        image, pixel = np.nonzero(workload.images)
        first = np.searchsorted(image, np.arange(len(workload.images) + 1))
        self._data = (
            first,
            pixel.astype(np.int32),
            workload.images[image, pixel] / 510,
            np.asarray(workload.labels, dtype=np.int64),
        )
        basis = lags_within(workload.basis, workload.n_steps)
        self._train, self._learn = _compile(basis, *self.weights.shape)
        self.train(1, seed=0)

    def train(self, n_presentations, seed):
        self._restart()
        rows = self.weights.reshape(len(self.weights), -1)
        rate = self.workload.learning_rate
        began = perf_counter()
        self._train(*self._data, rows, self.bias, rate, n_presentations, seed)
        return perf_counter() - began

    def gradient(self, spikes, label, weights, bias):
        # An update at a learning rate of 1 is the gradient.
        new_weights, new_bias = np.array(weights, dtype=float), np.array(bias, dtype=float)
        n_inputs = spikes.shape[1]
        indices = np.zeros((len(spikes) - 1, n_inputs), dtype=np.int32)
        counts = np.count_nonzero(spikes[:-1], axis=1)
        for t, count in enumerate(counts):
            indices[t, :count] = np.flatnonzero(spikes[t])
        log_likelihood = self._learn(
            indices, counts, label, new_weights.reshape(n_inputs, -1), new_bias, 1.0
        )
        return log_likelihood, new_weights - weights, new_bias - bias


def _compile(basis, n_inputs, n_classes, n_basis):
    """Return the compiled loop of training, and its update for given spikes."""
    from numba import njit

    # Numba treats variables from the enclosing scope as constants.
    n_lags = len(basis)
    n_steps, n_row = n_lags + 1, n_classes * n_basis

    @njit(fastmath=True)
    def learn(indices, counts, label, weights, bias, learning_rate):
        channels = np.zeros((n_lags, n_row))
        for t in range(n_lags):
            for s in range(counts[t]):
                row = weights[indices[t, s]]
                for r in range(n_row):
                    channels[t, r] += row[r]

        u = np.empty((n_steps, n_classes))
        for t in range(n_steps):
            for i in range(n_classes):
                total = bias[i]
                for s in range(t):
                    for k in range(n_basis):
                        total += basis[t - s - 1, k] * channels[s, i * n_basis + k]
                u[t, i] = total

        log_likelihood, error = differentiate(u, label)

        for s in range(n_lags):
            for i in range(n_classes):
                for k in range(n_basis):
                    channels[s, i * n_basis + k] = 0.0
                for t in range(s + 1, n_steps):
                    scaled = learning_rate * error[t, i]
                    for k in range(n_basis):
                        channels[s, i * n_basis + k] += scaled * basis[t - s - 1, k]
        for t in range(n_lags):
            for s in range(counts[t]):
                row = weights[indices[t, s]]
                for r in range(n_row):
                    row[r] += channels[t, r]
        for t in range(n_steps):
            for i in range(n_classes):
                bias[i] += learning_rate * error[t, i]
        return log_likelihood

    @njit(fastmath=True)
    def differentiate(u, label):
        spike, silence = np.empty_like(u), np.empty_like(u)
        for t in range(n_steps):
            for i in range(n_classes):
                odds = np.exp(-u[t, i])
                spike[t, i] = 1.0 / (1.0 + odds)
                silence[t, i] = odds / (1.0 + odds)
        # `win`: the probability that the correct neuron is first, if none spiked before step t
        stop, go_on = np.empty(n_steps), np.empty(n_steps)
        win = 0.0
        for t in range(n_steps - 1, -1, -1):
            wait = silence[t, label] * win
            here = spike[t, label] + wait
            go_on[t] = wait / here
            stop[t] = spike[t, label] * silence[t, label] * (1.0 - win) / here
            win = here
            for i in range(n_classes):
                if i != label:
                    win *= silence[t, i]
        error = np.empty_like(u)
        reached = 1.0
        for t in range(n_steps):
            for i in range(n_classes):
                error[t, i] = -reached * spike[t, i]
            error[t, label] = reached * stop[t]
            reached *= go_on[t]
        return np.log(win), error

    @njit(fastmath=True)
    def train(first, pixel, probability, labels, weights, bias, learning_rate, n, seed):
        np.random.seed(seed)
        # Every index is written, and kept only if the count increases.  This saves an
        # unpredictable branch, but needs one more element than there are inputs.
        indices = np.empty((n_lags, n_inputs + 1), dtype=np.int32)
        counts = np.empty(n_lags, dtype=np.int64)
        order = np.arange(len(labels))
        for presentation in range(n):
            if presentation % len(labels) == 0:
                np.random.shuffle(order)
            image = order[presentation % len(labels)]
            for t in range(n_lags):
                count = 0
                for a in range(first[image], first[image + 1]):
                    indices[t, count] = pixel[a]
                    count += np.random.random() < probability[a]
                counts[t] = count
            learn(indices, counts, labels[image], weights, bias, learning_rate)

    return train, learn
