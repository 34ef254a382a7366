"""The learning rate of the paper's settings, by cross-validation.

This does what scikit-learn's ``GridSearchCV(classifier, {"learning_rate": [...]},
cv=n_folds)`` does, but with each fit as a separate job: fits are spread over all workers,
and a finished fit is never repeated.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from .fits import Fit
from .protocol import Design, Protocol


def selection_fits(protocol: Protocol, design: Design, device: str) -> dict[float, list[Fit]]:
    """Return the fits of a cross-validation: one per learning rate and fold."""
    sizes = dict(n_epochs=protocol.selection_epochs, n_train=protocol.n_train, n_test=0)
    folds = range(protocol.n_folds)
    return {
        rate: [
            Fit("paper", design, rate, seed=0, fold=k, n_folds=len(folds), device=device, **sizes)
            for k in folds
        ]
        for rate in protocol.learning_rates
    }


def mean_accuracies(fits: Mapping[float, list[Fit]], results: Any) -> dict[float, float]:
    """Return the mean accuracy over the folds of each learning rate."""
    return {
        rate: float(np.mean([results[fit]["accuracy"] for fit in folds]))
        for rate, folds in fits.items()
    }


def selected(accuracies: dict[float, float]) -> float:
    """Return the learning rate of the highest accuracy, the first one in a tie."""
    return max(accuracies, key=accuracies.__getitem__)
