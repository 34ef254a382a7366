"""The learning rate of the paper's settings, by cross-validation.

What scikit-learn's ``GridSearchCV(classifier, {"learning_rate": [...]}, cv=n_folds)``
does, with each of its fits as a job of its own, so that they are spread over all
workers, and one that has finished is never repeated.
"""

import numpy as np

from .fits import Fit


def selection_fits(protocol, design, device):
    """Return the fits of a cross-validation: of each learning rate one a fold."""
    return {
        rate: [
            Fit(
                settings="paper",
                design=design,
                learning_rate=rate,
                n_epochs=protocol.selection_epochs,
                seed=0,
                n_train=protocol.n_train,
                n_test=0,
                fold=fold,
                n_folds=protocol.n_folds,
                device=device,
            )
            for fold in range(protocol.n_folds)
        ]
        for rate in protocol.learning_rates
    }


def mean_accuracies(fits, results):
    """Return the mean accuracy over the folds of each learning rate."""
    return {
        rate: float(np.mean([results[fit]["accuracy"] for fit in folds]))
        for rate, folds in fits.items()
    }


def selected(accuracies):
    """Return the learning rate of the highest accuracy, of equals the first."""
    return max(accuracies, key=accuracies.get)
