"""Training that stops when validation accuracy stalls."""

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import StratifiedShuffleSplit

from ..devices import get_device
from ..support.progress import Silent
from .fitted_state import FittedState
from .labels import check_sum, check_weights
from .settings import Settings
from .testing import prepared_test
from .training import Prepared, train


def fit_with_early_stopping(
    settings: Settings, prepared: Prepared, sample_weight: ArrayLike | None
) -> tuple[FittedState, Prepared]:
    """Train, and return the state of the epoch with the best validation accuracy.

    As in scikit-learn's ``MLPClassifier``, training stops once the accuracy has failed to exceed
    the best by `tol` in more than `n_iter_no_change` epochs in a row.

    Parameters
    ----------
    settings : Settings
    prepared : Prepared
        With all presentations, also those to hold out.
    sample_weight
        See `GLMClassifier.fit`.

    Returns
    -------
    state : FittedState
    prepared : Prepared
        What it was trained with.
    """
    config = settings.training
    train_rows, kept = _split(config.validation_fraction, prepared)
    held_out = replace(prepared.inputs, data=prepared.inputs.data[kept])
    weights = check_weights(sample_weight, (len(prepared.labels),))
    if weights is not None:
        weights = weights[kept]
        check_sum(weights, "sample_weight of what early_stopping=True holds out")
    labels = prepared.classes[prepared.labels[kept]]
    prepared = at_start = _part(prepared, train_rows)
    training, history, scores = prepared.training, [], []
    best, best_score, n_no_change = None, -np.inf, 0
    for epoch in range(training.n_epochs):
        one_epoch = training.epoch(epoch, len(train_rows))
        (state,) = train(replace(prepared, training=one_epoch))
        training = replace(training, state=state.optimizer_state)
        prepared = replace(prepared, starts=[state.parameters])
        history.append(float(state.history[0]))
        scores.append(_accuracy(settings, state, held_out, labels, weights))
        n_no_change = n_no_change + 1 if scores[-1] < best_score + config.tol else 0
        if scores[-1] > best_score:
            best, best_score = state, scores[-1]
        if n_no_change > config.n_iter_no_change:
            break
    assert best is not None
    return replace(
        best,
        n_presentations=state.n_presentations,
        history=np.array(history),
        validation_scores=np.array(scores),
    ), at_start


def _split(validation_fraction, prepared):
    """Return the rows to train on, and those to keep for validation."""
    splitter = StratifiedShuffleSplit(
        n_splits=1,
        test_size=validation_fraction,
        random_state=prepared.streams[0].order % 2**32,
    )
    try:
        ((train_rows, kept),) = splitter.split(prepared.labels, prepared.labels)
    except ValueError as error:
        raise ValueError(
            "X, y: there are too few presentations of each class to hold out "
            f"validation_fraction={validation_fraction} for early_stopping=True: {error}"
        ) from None
    return train_rows, kept


def _part(prepared: Prepared, rows: np.ndarray) -> Prepared:
    """Return what is needed to train on some of the presentations."""
    training = prepared.training
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
        training=replace(training, sample_weights=weights, n_planned=training.n_epochs * len(rows)),
    )


def _accuracy(settings, state, inputs, labels, weights):
    run = prepared_test(settings, state, inputs)
    outcome, _ = get_device(settings.device).test(
        run.network, run.parameters, run.inputs, run.testing, Silent()
    )
    return float(np.average(run.decided_labels(outcome) == labels, weights=weights))
