"""A warning if the training of classifiers diverged."""

from collections.abc import Sequence

import numpy as np

from ..core.batches import BatchedLikelihood
from ..core.divergence import Reference, advice, what_went_wrong
from ..devices.problem import Testing
from ..support.validation import warn
from .fitted_state import FittedState
from .presented import PresentedTest
from .training import Prepared

#: Presentations that tell the log-likelihood before training.
_N_AT_START = 50


def warn_of_divergence(states: Sequence[FittedState], prepared: Prepared) -> None:
    """Warn once if training has diverged, and name the members of an ensemble in which it has.

    Parameters
    ----------
    states : list of FittedState
        With the history of this training only.
    prepared : Prepared
        What they were trained with.
    """
    if not prepared.network.objective.clamps_outputs:
        return
    reasons = {}
    for number, state in enumerate(states):
        history, chance = state.history, _chance(prepared, number)
        reason = what_went_wrong(history, len(prepared.inputs), Reference(chance, np.inf))
        # The log-likelihood before training takes longer to compute.
        if reason:
            start = _before_training(prepared, number)
            reason = what_went_wrong(history, len(prepared.inputs), Reference(chance, start))
        if reason:
            reasons[number] = reason
    if not reasons:
        return
    worst = next(iter(reasons))
    whose = ""
    if len(states) > 1:
        numbers = ", ".join(map(str, reasons))
        whose = f"of the classifiers, number {numbers} (the following is about {worst}): "
    warn(advice(reasons[worst], float(prepared.training.learning_rates[worst]), whose), RuntimeWarning)


def _chance(prepared, number):
    """Return the mean log-likelihood of the best constant firing rate."""
    network, weights = prepared.network, prepared.training.sample_weights
    own = None if weights is None else weights[number]
    present, which = np.unique(prepared.labels, return_inverse=True)
    shares = np.bincount(which, own, len(present))
    desired = [
        network.objective.desired(int(label), network.n_steps, network.n_classes) for label in present
    ]
    return network.objective.chance(
        np.stack(desired), present, shares / shares.sum(), network.activation
    )


def _before_training(prepared, number):
    """Return the mean log-likelihood of some presentations at the parameters before training."""
    rows = np.linspace(0, len(prepared.inputs) - 1, _N_AT_START).astype(int)
    rows = np.unique(rows)
    inputs = type(prepared.inputs)(prepared.inputs.kind, prepared.inputs.data[rows])
    keys = Testing(prepared.training.input_key, prepared.training.output_key)
    test = PresentedTest(prepared.network, prepared.starts[number], inputs, keys)
    likelihood = BatchedLikelihood(test.batched, prepared.network.objective)
    values = [
        likelihood.values(
            test.batched.first.drive(test.trains(block)),
            prepared.labels[rows][block.rows],
            [test.hidden_draws(block.numbers)],
        )
        for block in test.blocks()
    ]
    return float(np.mean(np.concatenate(values)))
