"""Training that stops when presentations held out for validation are decided no better."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import StratifiedShuffleSplit

from ..devices import get_device
from ..support.progress import Silent
from .divergence import warn_of_divergence
from .labels import check_sum, check_weights
from .testing import decided_labels, prepared_test
from .training import Prepared, learned_parameters, prepare, train

if TYPE_CHECKING:
    from .classifier import GLMClassifier


def fit_until_no_better(
    classifier: "GLMClassifier", X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> None:
    """Train, and keep the parameters of the epoch with the best validation accuracy.

    As in scikit-learn's ``MLPClassifier``, training stops once the accuracy has failed to exceed
    the best by `tol` in more than `n_iter_no_change` epochs in a row.

    Parameters
    ----------
    classifier : GLMClassifier
    X, y, sample_weight
        See `GLMClassifier.fit`.
    """
    prepared = prepare([classifier], X, y, sample_weight)
    train_rows, kept = _split(classifier, prepared)
    held_out = replace(prepared.inputs, data=prepared.inputs.data[kept])
    weights = check_weights(sample_weight, (len(prepared.labels),))
    if weights is not None:
        weights = weights[kept]
        check_sum(weights, "sample_weight of what early_stopping=True holds out")
    labels = prepared.classes[prepared.labels[kept]]
    prepared = at_start = _part(classifier, prepared, train_rows)
    training = prepared.training
    history: list[float] = []
    scores: list[float] = []
    best, best_score, n_no_change = {}, -np.inf, 0
    for epoch in range(training.n_epochs):
        one_epoch = training.epoch(epoch, len(train_rows))
        train([classifier], replace(prepared, training=one_epoch))
        training = replace(training, state=classifier.optimizer_state_)
        prepared = replace(prepared, starts=[learned_parameters(classifier)])
        history.append(float(classifier.history_[0]))
        scores.append(_accuracy(classifier, held_out, labels, weights))
        n_no_change = n_no_change + 1 if scores[-1] < best_score + classifier.tol else 0
        if scores[-1] > best_score:
            # A shallow copy is enough: learned arrays are replaced, never changed in place.
            best, best_score = dict(vars(classifier)), scores[-1]
        if n_no_change > classifier.n_iter_no_change:
            break
    n_presentations = classifier.n_presentations_
    classifier.__dict__.update(best)
    classifier.n_presentations_ = n_presentations
    classifier.history_ = np.array(history)
    classifier.validation_scores_ = np.array(scores)
    warn_of_divergence([classifier], at_start)


def _split(classifier, prepared):
    """Return the rows to train on, and those to keep for validation."""
    splitter = StratifiedShuffleSplit(
        n_splits=1,
        test_size=float(classifier.validation_fraction),
        random_state=prepared.streams[0].order % 2**32,
    )
    try:
        ((train_rows, kept),) = splitter.split(prepared.labels, prepared.labels)
    except ValueError as error:
        raise ValueError(
            "X, y: there are too few presentations of each class to hold out "
            f"validation_fraction={classifier.validation_fraction} for early_stopping=True: {error}"
        ) from None
    return train_rows, kept


def _part(classifier, prepared: Prepared, rows: np.ndarray) -> Prepared:
    """Return what is needed to train on some of the presentations."""
    training, n = prepared.training, len(rows)
    weights = training.sample_weights
    if weights is not None:
        weights = weights[:, rows]
        check_sum(
            weights,
            "sample_weight (times class_weight), without what early_stopping=True holds out,",
        )
    return replace(
        prepared,
        inputs=replace(prepared.inputs, data=prepared.inputs.data[rows]),
        labels=prepared.labels[rows],
        training=replace(
            training,
            sample_weights=weights,
            n_planned=training.n_epochs * n,
        ),
    )


def _accuracy(classifier, inputs, labels, weights):
    run = prepared_test(classifier, inputs)
    outcome, _ = get_device(classifier.device).test(
        run.network, run.parameters, run.inputs, run.testing, Silent()
    )
    return float(np.average(decided_labels(classifier, outcome) == labels, weights=weights))
