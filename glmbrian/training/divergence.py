"""A warning if what a `Trainer` trained diverged."""

import numpy as np
from numpy.typing import NDArray

from ..core.divergence import Reference, advice, what_went_wrong
from ..support.validation import warn
from .plan import Plan

#: A run is judged in parts, as if these were epochs: at most this many, of at least so many presentations.
_MOST_PARTS, _SMALLEST_PART = 10, 20

#: At most about so many presentations give the chance level if their desired spikes are given one by one.
_MOST_EXAMPLES = 64


def warn_of_divergence(
    plan: Plan, learning_rate: float, name: str, log_likelihoods: NDArray[np.float64]
) -> None:
    """Warn if a training that is over has diverged.

    Parameters
    ----------
    plan : Plan
    learning_rate : float
    name : str
        Of the trainer.
    log_likelihoods : ndarray of float, shape (n_presentations,)
    """
    values = log_likelihoods[plan.is_training]
    n_parts = min(_MOST_PARTS, len(values) // _SMALLEST_PART)
    if plan.reward is not None or not plan.objective.clamps_outputs or not n_parts:
        return
    history = np.array([part.mean() for part in np.array_split(values, n_parts)])
    # A batch is learned after its last presentation.
    start = values[:5].max() if plan.batch_size < 5 else values[: plan.batch_size].mean()
    reference = Reference(_chance(plan), float(start))
    reason = what_went_wrong(history, len(values) // n_parts, reference, "part")
    if reason:
        warn(advice(reason, learning_rate, f"{name}: "), RuntimeWarning)


def _chance(plan):
    """Return the mean log-likelihood of the best constant firing rate."""
    desired, labels, counts = plan.examples_learned(_MOST_EXAMPLES)
    return plan.objective.chance(desired, labels, counts / counts.sum(), plan.outputs.activation)
