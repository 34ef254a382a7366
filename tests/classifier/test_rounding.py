"""Differences of the size of rounding errors stay small at the default learning rate."""

import numpy as np
import pytest

import glmbrian as glm


@pytest.mark.compiled
def test_training_hardly_amplifies_rounding():
    """At a rate of 0.02, the difference is above 1e-10; `benchmarks/rounding.py` trains for longer."""
    digits = glm.datasets.load_mnist("all")
    fits = [
        glm.GLMClassifier(n_epochs=5, weight_scale=scale, random_state=0, verbose=False).fit(
            digits.X_train, digits.y_train
        )
        for scale in (0.01, 0.01 * (1 + 1e-13))
    ]
    assert 0 < np.abs(fits[0].weights_ - fits[1].weights_).max() < 1e-12
