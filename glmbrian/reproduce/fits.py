"""One fit: everything its result depends on, and the measurements of it.

Fits are plain values, so they can be sent to another process or machine and named by
their content.  Each loads the digits itself.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier

from ..classifier.classifier import GLMClassifier
from ..core.decisions import decide, measures
from ..datasets import load_mnist
from .complexity import ann_operations, operations
from .protocol import SETTINGS, Design
from .redrawn import redraw

#: Values of scikit-learn's C to try for the ANN.
_SHRINKAGES = (1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True)
class Fit:
    """Training and test of a `GLMClassifier`.

    Parameters
    ----------
    settings : str
        One of `protocol.SETTINGS`.
    design : Design
    learning_rate : float
    n_epochs : int
    seed : int
        The `random_state`.
    n_train, n_test : int
        Images per class.
    fold, n_folds : int, optional
        Train without this fold of the training images and test on it; by default
        train on all training images and test on the test images.
    device : str
    """

    settings: str
    design: Design
    learning_rate: float
    n_epochs: int
    seed: int
    n_train: int
    n_test: int
    fold: int | None = None
    n_folds: int | None = None
    device: str = "cpp_standalone"

    @property
    def n_presentations(self) -> int:
        """Number of presentations in training."""
        n_images = self.n_train * len(self.design.classes)
        if self.fold is not None:
            assert self.n_folds is not None
            n_images -= n_images // self.n_folds
        return self.n_epochs * n_images

    @property
    def size(self) -> int:
        """Roughly proportional to the time it takes."""
        return self.n_presentations * self.design.n_steps

    def classifier(self) -> GLMClassifier:
        """Return the unfitted classifier."""
        own = dict(
            decoding=self.design.decoding,
            n_steps=self.design.n_steps,
            n_basis=self.design.n_basis,
            learning_rate=self.learning_rate,
            n_epochs=self.n_epochs,
            random_state=self.seed,
            device=self.device,
            verbose=False,
        )
        return GLMClassifier(**{**SETTINGS[self.settings], **own})

    def run(self) -> dict[str, Any]:
        """Train, test, and return the measurements as JSON-compatible values."""
        digits = _digits(self.design.classes, self.n_train, self.n_test)
        classifier = self.classifier()
        X, y = digits.X_train, digits.y_train
        if self.fold is not None:
            train, test = list(StratifiedKFold(self.n_folds).split(X, y))[self.fold]
            classifier.fit(X[train], y[train])
            return {"timing": classifier.timing_, "accuracy": classifier.score(X[test], y[test])}
        classifier.fit(X, y)
        timing = classifier.timing_
        tested = classifier.evaluate(digits.X_test, digits.y_test)
        return {"timing": timing, **tested, **_details(classifier, digits.X_test, digits.y_test)}


@dataclass(frozen=True)
class AnnFit:
    """The two-layer ANN with one logistic neuron per class, on pixel intensities.

    scikit-learn trains it to the optimum, so no other seeds are needed;
    cross-validation selects how strongly the weights are regularized.
    """

    classes: tuple
    n_train: int
    n_test: int
    n_folds: int

    n_presentations = 0
    size = 0

    def run(self) -> dict[str, Any]:
        """Train, test, and return the measurements as JSON-compatible values."""
        digits = _digits(self.classes, self.n_train, self.n_test)
        # One fit at a time: the sweep itself runs several at once.
        search = GridSearchCV(
            OneVsRestClassifier(LogisticRegression(max_iter=1000)),
            {"estimator__C": _SHRINKAGES},
            cv=self.n_folds,
            n_jobs=1,
        )
        search.fit(digits.X_train / 255, digits.y_train)
        counts = ann_operations(digits.X_train.shape[1], len(self.classes))
        total = sum(sum(layer.values()) for layer in counts.values())
        return {
            "accuracy": search.score(digits.X_test / 255, digits.y_test),
            "operations_per_class": total / len(self.classes),
            "operations": counts,
        }


@dataclass(frozen=True)
class Build:
    """Compiles the program of a design, which all its fits share."""

    design: Design
    device: str = "cpp_standalone"

    n_presentations = 0
    size = 0

    def run(self) -> dict[str, Any]:
        """Train as little as possible, and return the `timing`."""
        one_each = Fit("paper", self.design, 1.0, 1, 0, n_train=1, n_test=1, device=self.device)
        digits = _digits(self.design.classes, 1, 1)
        return {"timing": one_each.classifier().fit(digits.X_train, digits.y_train).timing_}


@lru_cache(maxsize=4)
def _digits(classes, n_train, n_test):
    return load_mnist(classes, n_train, n_test)


def _details(classifier, X, y):
    """Return what the spikes of the test show beyond `GLMClassifier.evaluate`."""
    redrawn, objective = redraw(classifier, X), classifier.objective
    whole = redrawn.outcome(objective)
    n_steps = classifier.n_steps
    spiked = whole.steps[whole.counts.any(axis=1)]

    def accuracy(outcome, rule):
        decided = decide(outcome, objective, rule, rule, classifier.streams_.choices)
        return float((classifier.classes_[decided] == y).mean())

    outcomes = [redrawn.outcome(objective, deadline) for deadline in range(1, n_steps + 1)]
    network = classifier.prepare_test(X[:1]).network
    return {
        "recounted_operations_per_class": measures(whole)["operations_per_class"],
        "accuracy_by_spikes": accuracy(whole, "random"),
        # Fractions of the presentations decided by a spike at step 1, 2, ...
        "decision_steps": (np.bincount(spiked, minlength=n_steps + 1)[1:] / len(y)).tolist(),
        "deadlines": {
            "accuracy": [accuracy(outcome, "potential") for outcome in outcomes],
            "accuracy_by_spikes": [accuracy(outcome, "random") for outcome in outcomes],
            "silent_fraction": [measures(outcome)["silent_fraction"] for outcome in outcomes],
            "operations_per_class": [measures(outcome)["operations_per_class"] for outcome in outcomes],
        },
        "operations": operations(network, whole),
    }
