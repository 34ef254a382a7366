"""How sure a network is of a class in each step."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..classifier.classifier import GLMClassifier
from ..classifier.probabilities import decision_probabilities, output_potentials
from ..core.objectives import check_decides_as_defined
from ..support.progress import Progress

#: How many times outputs are simulated where their probabilities have no closed form.
_N_SIMULATED = 256


@dataclass(frozen=True)
class Scores:
    """The most probable class in each step, and how sure it is.

    best : ndarray of int, shape (n, T)
        Indices of classes.
    log_odds : ndarray of float, shape (n, T)
        Of the most probable class, given the inputs so far; minus infinity while no output can
        spike.
    input_spikes : ndarray of int, shape (n, T)
        Spikes of all inputs up to each step.
    """

    best: NDArray[np.int64]
    log_odds: NDArray[np.float64]
    input_spikes: NDArray[np.int64]


def check_classifier(clf: Any) -> GLMClassifier:
    if not isinstance(clf, GLMClassifier):
        raise TypeError(f"clf must be a fitted GLMClassifier, got {clf!r}")
    return clf


def step_scores(clf: GLMClassifier, X: ArrayLike, first_presentation: int = 0) -> Scores:
    """Return the `Scores` of presentations, with the input and hidden spikes that `predict` sees."""
    run = clf.prepare_test(X, first_presentation)
    test = run.presented()
    check_decides_as_defined(test.objective, "probabilities")
    shape = (len(test.inputs), test.n_steps)
    best, log_odds = np.zeros(shape, dtype=np.int64), np.zeros(shape)
    input_spikes = np.zeros(shape, dtype=np.int64)
    with Progress("scoring", len(test.inputs), clf.verbose) as progress:
        for block in test.blocks():
            trains = test.trains(block)
            input_spikes[block.rows] = trains.sum(axis=2, dtype=np.int64).cumsum(axis=1)
            (u,) = output_potentials(test, block, trains)
            for step in range(test.n_steps):
                probabilities = decision_probabilities(
                    test, block, u[:, : step + 1], run.on_tie, "reject", _N_SIMULATED
                )
                best[block.rows, step], log_odds[block.rows, step] = _surest(probabilities)
            progress(block.rows.stop)
    return Scores(best, log_odds, input_spikes)


def _surest(probabilities):
    """Return the most probable class, and its log-odds given that some class is decided."""
    best = probabilities.argmax(axis=1)
    highest = probabilities.max(axis=1)
    # Not 1 - highest, which would round to 0
    rest = np.where(np.arange(probabilities.shape[1]) == best[:, np.newaxis], 0.0, probabilities)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_odds = np.log(highest) - np.log(rest.sum(axis=1))
    return best, np.where(highest > 0, log_odds, -np.inf)
