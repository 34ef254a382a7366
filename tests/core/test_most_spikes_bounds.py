"""Bounds on numbers of spikes, beside all ways to choose potentials from a range."""

from itertools import product

import numpy as np
import pytest

import glmbrian as glm
from glmbrian.core import most_spikes_bounds
from glmbrian.core.count_probabilities import most_spikes_probabilities
from glmbrian.core.decisions import ON_SILENCE, ON_TIE
from glmbrian.core.most_spikes_bounds import count_tails, most_spikes_is_certain

N_STEPS, N_OUT = 3, 2


def random_case(activation, seed, n_steps=N_STEPS, lags=2):
    random = np.random.default_rng(seed)
    lowest = random.normal(1.5, 1.5, size=(4, n_steps, N_OUT))
    highest = lowest + 3 * random.exponential(size=lowest.shape)
    return lowest, highest, glm.get_activation(activation), random.normal(-5, 2, size=(lags, N_OUT))


def tails_of(choose, lowest, highest, activation, kernels):
    """P(at least 1, ..., T + 1 spikes), where `choose` says which end, given the earlier spikes."""
    n, n_steps, n_outputs = lowest.shape
    found = np.zeros((n, n_steps + 1, n_outputs))
    for train in product([0, 1], repeat=n_steps):
        probability = np.ones((n, n_outputs))
        for step in range(n_steps):
            u = (highest if choose[train[:step]] else lowest)[:, step].copy()
            for lag, kernel in enumerate(kernels):
                if lag < step:
                    u += train[step - 1 - lag] * kernel
            spike = activation.probability(u)
            probability = probability * (spike if train[step] else 1 - spike)
        found[:, : sum(train)] += probability[:, np.newaxis]
    return found


@pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])
def test_the_worst_of_all_choices(activation):
    case = random_case(activation, 1)
    pasts = [past for step in range(N_STEPS) for past in product([0, 1], repeat=step)]
    every = [tails_of(dict(zip(pasts, ends)), *case) for ends in product([0, 1], repeat=len(pasts))]
    least, greatest = count_tails(*case)
    np.testing.assert_allclose(least, np.min(every, axis=0), rtol=0, atol=1e-12)
    np.testing.assert_allclose(greatest, np.max(every, axis=0), rtol=0, atol=1e-12)
    # The worst choice depends on earlier spikes.
    assert np.any(least < np.min([every[0], every[-1]], axis=0) - 1e-3)
    assert np.any(greatest > np.max([every[0], every[-1]], axis=0) + 1e-3)


def test_counts_bound_trains(monkeypatch):
    case = random_case("sigmoid", 2, n_steps=6, lags=4)
    least, greatest = count_tails(*case)
    monkeypatch.setattr(most_spikes_bounds, "MOST_LISTED_STEPS", 0)
    lower, higher = count_tails(*case)
    assert np.all(lower <= least + 1e-12) and np.all(higher >= greatest - 1e-12)
    assert np.any(lower < least - 1e-3) and np.any(higher > greatest + 1e-3)


def test_counts_are_enough_if_all_spikes_have_the_same_effect(monkeypatch):
    lowest, highest, activation, kernels = random_case("probit", 3, n_steps=5)
    case = lowest, highest, activation, np.repeat(kernels[:1], 4, axis=0)
    of_trains = count_tails(*case)
    monkeypatch.setattr(most_spikes_bounds, "MOST_LISTED_STEPS", 0)
    np.testing.assert_allclose(count_tails(*case), of_trains, rtol=0, atol=1e-12)


def test_without_feedback():
    lowest, highest, activation, _ = random_case("cloglog", 4, n_steps=5)
    of_trains, of_counts = (
        count_tails(lowest, highest, activation, np.zeros((lags, N_OUT))) for lags in (4, 0)
    )
    np.testing.assert_allclose(of_trains, of_counts, rtol=0, atol=1e-12)


@pytest.mark.parametrize("place, kernel", [(0, [5.0, 0.0]), (1, [0.0, 5.0])])
def test_feedback_arrives_from_each_lag(place, kernel, monkeypatch):
    # A spike in the first step makes one `place` + 1 steps later certain.
    u = np.full((1, 3, 1), -40.0)
    u[0, 0] = 40.0
    kernels = 20 * np.array(kernel)[:, np.newaxis]
    for most_listed in (10, 0):
        monkeypatch.setattr(most_spikes_bounds, "MOST_LISTED_STEPS", most_listed)
        _, greatest = count_tails(u, u, glm.get_activation("sigmoid"), kernels)
        assert greatest[0, 1, 0] == pytest.approx(1, abs=1e-12), place


@pytest.mark.parametrize("on_silence", ON_SILENCE)
@pytest.mark.parametrize("on_tie", ON_TIE)
def test_certain_decisions_stay(on_tie, on_silence):
    n, n_certain, n_kept, sigmoid = 4000, 0, 0, glm.get_activation("sigmoid")
    for seed in range(6):
        random = np.random.default_rng(seed)
        kernels = random.normal(0, 2, size=(seed % 4, 3))
        lowest = random.normal(-1, 1.5, size=(n, 3, 3)) + random.normal(0, 1, size=(n, 1, 3))
        highest = lowest + random.choice([0, 0.1, 0.5], size=(n, 1, 1))

        settings = (sigmoid, kernels if len(kernels) else None, on_tie, on_silence, None, 1)
        label = most_spikes_probabilities(lowest, *settings).argmax(axis=1)
        certain = most_spikes_is_certain(lowest, highest, label, sigmoid, kernels, on_tie, on_silence)
        at_ends = [np.where(random.random(lowest.shape) < 0.5, lowest, highest) for _ in range(8)]
        found = [most_spikes_probabilities(u, *settings) for u in [*at_ends, highest]]
        kept = np.all([one.argmax(axis=1) == label for one in found], axis=0)
        assert not np.any(certain & ~kept)
        n_certain, n_kept = n_certain + certain.sum(), n_kept + kept.sum()
    assert n_certain > 0.3 * n_kept


def test_exact_for_known_potentials_of_two_outputs_without_feedback():
    u, sigmoid = (
        np.random.default_rng(1).normal(-1, 1, size=(5000, 4, 2)),
        glm.get_activation("sigmoid"),
    )
    labels = np.zeros(len(u), dtype=int)
    for kernels in (None, np.zeros((3, 2))):
        exact = most_spikes_probabilities(u, sigmoid, kernels, "potential", "potential", None, 1)
        certain = most_spikes_is_certain(u, u, labels, sigmoid, kernels, "potential", "potential")
        np.testing.assert_array_equal(certain, exact[:, 0] > exact[:, 1] + 1e-9)
