"""The package and scikit-learn fit the same model in benchmarks/population_fit.py."""

import numpy as np
import population_fit
import pytest


def test_both_reach_the_same_log_likelihood():
    y = (np.random.default_rng(1).random((4000, 3)) < 0.1).astype(np.uint8)
    got, want = population_fit.by_package(y), population_fit.by_scikit_learn(y)
    assert got == pytest.approx(want, abs=1e-6 * y.sum())
    assert got >= want - 1e-9 * abs(want)


def test_population_has_the_edges_that_it_says():
    population, edges = population_fit.coupled(30)
    np.testing.assert_array_equal(population.weights["coupling"].any(axis=2), edges)
    assert 0.05 < edges.mean() < 0.15 and not edges.diagonal().any()
