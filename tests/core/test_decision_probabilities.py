"""The probability of each decision, against all output trains of small networks."""

from itertools import product

import numpy as np
import pytest

import glmbrian as glm
from glmbrian.core import count_probabilities
from glmbrian.core.count_probabilities import most_spikes_probabilities, simulated
from glmbrian.core.decisions import ON_SILENCE, ON_TIE
from glmbrian.core.first_spike_probabilities import first_spike_probabilities
from glmbrian.core.likelihood_batches import first_to_spike_gradients, first_to_spike_values
from glmbrian.core.likelihoods import first_to_spike_gradient
from glmbrian.core.objectives import FirstToSpike, Rate
from glmbrian.core.outcome import Outcome

SIGMOID = glm.get_activation("sigmoid")
N_STEPS, N_OUTPUTS = 3, 3


def potentials(seed, scale=1.5, n=2, n_steps=N_STEPS):
    return np.random.default_rng(seed).normal(scale=scale, size=(n, n_steps, N_OUTPUTS))


def by_listing(u, kernels, objective, on_tie, on_silence, activation=SIGMOID):
    """Return the probabilities (N_Y,) for one presentation, from all output trains."""
    found = np.zeros(N_OUTPUTS)
    for pattern in product((0, 1), repeat=u.size):
        spikes = np.reshape(pattern, u.shape)
        now = u.copy()
        if kernels is not None:
            for lag in range(1, min(len(kernels), len(u) - 1) + 1):
                now[lag:] += spikes[:-lag] * kernels[lag - 1]
        g = activation.probability(now)
        p = np.prod(np.where(spikes, g, 1 - g))
        first = np.flatnonzero(spikes.any(axis=1))
        end = first[0] + 1 if objective.stops_at_first_spike and len(first) else len(u)
        seen, counts = now[:end], spikes[:end].sum(axis=0)
        row = [end, 0, *counts, *seen.sum(axis=0), *seen[-1]]
        outcome = Outcome.from_rows([row], N_OUTPUTS)
        if counts.any():
            best, rule = objective.best(outcome)[0], on_tie
            preference = objective.preference(outcome)[0]
        else:
            best, rule, preference = np.ones(N_OUTPUTS, bool), on_silence, outcome.potential_sum[0]
        if rule == "random":
            found += p * best / best.sum()
        elif rule == "potential":
            found[np.argmax(np.where(best, preference, -np.inf))] += p
    return found


@pytest.mark.parametrize("on_tie", ON_TIE)
@pytest.mark.parametrize("on_silence", ON_SILENCE)
@pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])
def test_first_spike(on_tie, on_silence, activation):
    u, activation = potentials(1), glm.get_activation(activation)
    expected = [by_listing(one, None, FirstToSpike(), on_tie, on_silence, activation) for one in u]
    got = first_spike_probabilities(u, activation, on_tie, on_silence)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("on_tie", ON_TIE)
@pytest.mark.parametrize("on_silence", ON_SILENCE)
@pytest.mark.parametrize("lags", [None, 1, 2, 5])
def test_most_spikes(on_tie, on_silence, lags):
    u = potentials(2)
    kernels = None if lags is None else potentials(3, 2.0, 1, lags)[0]
    expected = [by_listing(one, kernels, Rate(), on_tie, on_silence) for one in u]
    got = most_spikes_probabilities(u, SIGMOID, kernels, on_tie, on_silence, None, 1)
    np.testing.assert_allclose(got, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("on_tie", ON_TIE)
@pytest.mark.parametrize("on_silence", ON_SILENCE)
def test_equal_outputs_tie(on_tie, on_silence):
    u = np.zeros((1, N_STEPS, N_OUTPUTS))
    for objective in (FirstToSpike(), Rate()):
        expected = by_listing(u[0], None, objective, on_tie, on_silence)
        got = objective.probabilities(u, SIGMOID, None, on_tie, on_silence, None, 1)
        np.testing.assert_allclose(got[0], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("on_tie", ON_TIE)
def test_simulated_outputs_agree_with_listed_ones(on_tie, monkeypatch):
    u, kernels = potentials(4, n=1), potentials(5, 2.0, 1)[0]
    exact = most_spikes_probabilities(u, SIGMOID, kernels, on_tie, "random", None, 1)
    monkeypatch.setattr(count_probabilities, "MOST_LISTED_STEPS", 0)
    random = np.random.default_rng(6)
    estimates = [
        most_spikes_probabilities(
            u, SIGMOID, kernels, on_tie, "random", lambda number: random.random(u.shape), 64
        )[0]
        for _ in range(200)
    ]
    error = np.std(estimates, axis=0) / np.sqrt(200)
    assert np.all(np.abs(np.mean(estimates, axis=0) - exact[0]) < 4 * error)
    assert np.all(error < 0.01)


def test_simulated_sums_include_feedback():
    u, kernels = np.zeros((1, 2, 1)), np.array([[3.0]])
    results = simulated(u, SIGMOID, kernels, lambda number: np.full((1, 2, 1), 0.4), 1)
    assert results.counts.ravel().tolist() == [2] and results.sums.ravel().tolist() == [3.0]


@pytest.mark.parametrize("scale", [1.0, 50.0, 1000.0])
def test_extreme_potentials_give_probabilities(scale):
    u = potentials(7, scale, n=50, n_steps=6)
    for objective in (FirstToSpike(), Rate()):
        for on_tie in ON_TIE:
            got = objective.probabilities(u, SIGMOID, None, on_tie, "random", None, 1)
            np.testing.assert_allclose(got.sum(axis=1), 1.0, rtol=0, atol=1e-12)
            assert got.min() >= 0


@pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_batches_give_the_gradients_of_single_presentations(activation, scale):
    activation, u, labels = glm.get_activation(activation), potentials(8, scale, 20), np.arange(20) % 3
    values, slopes = first_to_spike_gradients(u, labels, activation)
    singles = [first_to_spike_gradient(one, label, activation) for one, label in zip(u, labels)]
    np.testing.assert_allclose(values, [value for value, _ in singles], rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(slopes, [slope for _, slope in singles], rtol=1e-11, atol=1e-300)
    np.testing.assert_array_equal(first_to_spike_values(u, labels, activation), values)


def test_batches_of_rate_training_give_the_gradients_of_single_presentations():
    u, labels, objective = potentials(9), np.array([2, 0]), Rate(2)
    desired = np.stack([objective.desired(label, N_STEPS, N_OUTPUTS) for label in labels])
    values, slopes = objective.gradients(u, desired, labels, SIGMOID)
    for one, train, label, value, slope in zip(u, desired, labels, values, slopes):
        expected, gradient = objective.gradient(one, train, label, SIGMOID)
        assert value == pytest.approx(expected, rel=1e-13)
        np.testing.assert_array_equal(slope, gradient)
