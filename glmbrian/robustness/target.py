"""What an attack aims at: the likelihood of the right labels in a classifier's presentations."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..classifier.classifier import GLMClassifier
from ..classifier.labels import check_known, indices
from ..classifier.presented import Block, PresentedTest
from ..core.batches import BatchedLikelihood
from .losses import Loss


@dataclass
class Target:
    """Presentations of a fitted classifier, and their right labels.

    test : PresentedTest
    labels : ndarray of int, shape (n,)
        Indices of the right outputs.
    likelihood : BatchedLikelihood
    """

    test: PresentedTest
    labels: NDArray[np.int64]
    likelihood: BatchedLikelihood

    def hidden_draws(self, block: Block, n_hidden: int, first: int = 1) -> list[list[np.ndarray]]:
        """Return random numbers for the hidden layers, from repetition number `first` on.

        Not those of `predict`, repetition 0: an attacker knows the network, but not its noise.
        """
        return [
            self.test.hidden_draws(block.numbers, first + repetition) for repetition in range(n_hidden)
        ]

    def goal(self, block: Block, loss: Loss, drive, draws) -> tuple[BatchedLikelihood, np.ndarray]:
        """Return what an attack lowers, and the labels that it takes (see `Loss`)."""
        return loss.goal(self.likelihood, self.labels[block.rows], drive, draws)

    @property
    def n_hidden_layers(self) -> int:
        return len(self.test.layers) - 1


def check_classifier(clf: Any) -> GLMClassifier:
    if not isinstance(clf, GLMClassifier):
        raise TypeError(f"clf must be a fitted GLMClassifier, got {clf!r}")
    return clf


def prepare_target(clf: Any, X: ArrayLike, y: ArrayLike, first_presentation: int = 0) -> Target:
    """Check the arguments of an attack, and return the `Target`."""
    run = check_classifier(clf).prepare_test(X, first_presentation)
    objective = run.network.objective
    if not objective.clamps_outputs:
        raise ValueError(
            "clf must have a decoding that clamps the outputs in training, since others have no "
            f"log-likelihood to attack, got {objective.name!r}"
        )
    labels = check_known(y, len(run.inputs), clf.classes_, "classes_")
    test = run.presented()
    return Target(test, indices(labels, clf.classes_), BatchedLikelihood(test.batched, objective))
