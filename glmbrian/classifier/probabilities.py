"""How probable each decision of a classifier is, before the outputs are drawn."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.objectives import check_decides_as_defined
from ..support.validation import integer
from .presented import Block, PresentedTest
from .testing import TestRun

#: The smallest positive number of full precision: logarithms of probabilities stay finite.
_TINY = np.finfo(float).tiny


def class_probabilities(
    run: TestRun,
    deadline: int | None = None,
    n_encodings: int = 1,
    n_hidden: int = 10,
    n_simulated: int = 256,
) -> NDArray[np.float64]:
    """Return what `GLMClassifier.predict_proba` returns."""
    test = _presented_until(run, deadline)
    n_encodings = integer(n_encodings, "n_encodings")
    if n_encodings > 1 and test.inputs.kind == "trains":
        raise ValueError(f"n_encodings must be 1 for spike trains, which are ready, got {n_encodings}")
    n_hidden = integer(n_hidden, "n_hidden") if len(test.layers) > 1 else 1
    n_simulated = integer(n_simulated, "n_simulated")
    found = np.zeros((len(test.inputs), len(run.classes)))
    for block in test.blocks():
        for encoding in range(n_encodings):
            for u in output_potentials(test, block, test.trains(block, encoding), n_hidden, encoding):
                found[block.rows] += decision_probabilities(
                    test, block, u, run.on_tie, run.on_silence, n_simulated
                )
    return found / (n_encodings * n_hidden)


def _presented_until(run: TestRun, deadline: int | None) -> PresentedTest:
    """Return the test as if presentations ended with the step `deadline`."""
    check_decides_as_defined(run.network.objective, "probabilities")
    n_steps = run.network.n_steps
    if deadline is not None:
        if run.inputs.kind == "trains":
            # Later input spikes come too late.
            deadline = integer(deadline, "deadline", 1, n_steps)
            inputs = replace(run.inputs, data=run.inputs.data[:, :deadline])
            run = replace(run, inputs=inputs)
        n_steps = integer(deadline, "deadline", 1, n_steps)
    return run.presented(n_steps)


def output_potentials(
    test: PresentedTest, block: Block, trains: np.ndarray, n_hidden: int = 1, first: int = 0
) -> Iterator[NDArray[np.float64]]:
    """Yield the potentials (n, T, N_Y) of the outputs for each draw of the hidden spikes.

    Draw 0 of `first` 0 is that of `predict`.
    """
    drive = test.batched.first.drive(trains)
    for number in range(n_hidden):
        draws = test.hidden_draws(block.numbers, first * n_hidden + number)
        yield test.batched.output_potentials(drive, draws)


def decision_probabilities(
    test: PresentedTest,
    block: Block,
    u: NDArray[np.float64],
    on_tie: str,
    on_silence: str,
    n_simulated: int,
) -> NDArray[np.float64]:
    """Return the probability of each decision, given the potentials without feedback."""
    return test.objective.probabilities(
        u,
        test.layers[-1].activation,
        test.layers[-1].feedback_kernels,
        on_tie,
        on_silence,
        lambda repetition: test.output_draws(block.numbers, repetition)[:, : u.shape[1]],
        n_simulated,
    )


def log_odds(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities (n, n_classes) as scikit-learn's decision functions do.

    Log-odds of the second class, shape (n,), if there are two; else log-probabilities.
    """
    logarithms = np.log(np.maximum(probabilities, _TINY))
    return logarithms[:, 1] - logarithms[:, 0] if logarithms.shape[1] == 2 else logarithms


def calibration(
    classes: np.ndarray, y: np.ndarray, probabilities: NDArray[np.float64], n_bins: int = 10
) -> dict[str, Any]:
    """Measure how well `probabilities` (n, n_classes) agree with the classes `y`.

    Returns
    -------
    dict
        ``expected_calibration_error``: presentations are sorted into `n_bins` of equal width by
        the probability of the most probable class.  It is the mean distance, weighted by
        presentations, between this probability and the fraction that are of this class.
        ``log_loss``: the mean negative log-probability of the right class.
    """
    confidence = probabilities.max(axis=1)
    right = classes[probabilities.argmax(axis=1)] == y
    bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    gaps = np.bincount(bins, confidence - right, n_bins)
    of_right = np.where(classes == y[:, np.newaxis], probabilities, 0.0).sum(axis=1)
    return {
        "expected_calibration_error": float(np.abs(gaps).sum() / len(y)),
        "log_loss": float(-np.log(np.maximum(of_right, _TINY)).mean()),
    }
