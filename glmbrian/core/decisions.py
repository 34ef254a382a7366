"""Decisions from observed output spikes: rate and first-to-spike decoding."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .randomness import hashes

if TYPE_CHECKING:
    from .objectives import Objective

#: What decides in a tie between outputs, and when no output spiked.
ON_TIE = ("potential", "random")
ON_SILENCE = ("potential", "random", "reject")

#: Index that stands for "no decision".
REJECTED = -1


@dataclass(frozen=True)
class Decisions:
    """What a test decided: one entry per presentation.

    If presentations end at the first spike, ``(decided == label) & (step <= t)`` marks those
    decided correctly by the deadline t.

    label : ndarray, shape (n,)
        The true class labels.
    decided : ndarray, shape (n,)
        The labels chosen, -1 for a rejected presentation.
    step : ndarray of int, shape (n,)
        Step of the decision, from 1; the last step if no output spiked.
    silent : ndarray of bool, shape (n,)
        Whether no output spiked.
    """

    label: np.ndarray
    decided: np.ndarray
    step: np.ndarray
    silent: np.ndarray


def is_silent(outcome: Any) -> NDArray[np.bool_]:
    """Return, for each presentation of an `Outcome`, whether no output spiked."""
    return outcome.counts.sum(axis=1) == 0


def decide(
    outcome: Any,
    objective: "Objective",
    on_tie: str,
    on_silence: str,
    key: int,
    first_presentation: int = 0,
) -> NDArray[np.int_]:
    """Return the index of the output chosen in each presentation.

    Parameters
    ----------
    outcome : glmbrian.core.outcome.Outcome
    objective : glmbrian.core.objectives.Objective
        Says which outputs are best.
    on_tie : {"potential", "random"}
        Among several best outputs: the one with the highest membrane potential (the
        objective says which potential), or a random one.
    on_silence : {"potential", "random", "reject"}
        If no output spikes: the one with the highest potential summed over the
        presentation, a random one, or none (`REJECTED`).
    key : int
        Key of the random choices.
    first_presentation : int
        Number of the first presentation; the random choices depend on it.

    Returns
    -------
    ndarray of int, shape (n,)
    """
    counts = outcome.counts
    n, n_outputs = counts.shape
    presentations = first_presentation + np.arange(n)[:, np.newaxis]
    random = hashes(key, presentations, 0, np.arange(n_outputs)) >> np.uint64(11)
    random = random.astype(float)
    preference = objective.preference(outcome) if on_tie == "potential" else random
    decision = np.argmax(np.where(objective.best(outcome), preference, -np.inf), axis=1)
    silent = is_silent(outcome)
    if on_silence == "reject":
        decision[silent] = REJECTED
    else:
        preference = outcome.potential_sum if on_silence == "potential" else random
        decision[silent] = np.argmax(preference[silent], axis=1)
    return decision


def measures(outcome: Any, hidden_sizes: Sequence[int] = ()) -> dict[str, Any]:
    """Return the cost of decisions, averaged over presentations.

    Parameters
    ----------
    outcome : glmbrian.core.outcome.Outcome
    hidden_sizes : sequence of int
        Numbers of neurons in the hidden layers.

    Returns
    -------
    dict
        ``mean_decision_step`` (from 1), ``silent_fraction``, and
        ``operations_per_class``: spikes that an output integrates up to the decision plus
        its own, the paper's t (N_X s_x + s_y).  With hidden layers also ``hidden_spikes``, the
        spikes of all hidden neurons up to the decision; and ``operations_per_layer``, a list of
        the operations of all neurons of each layer, the outputs last.
    """
    hidden = outcome.hidden_spikes
    arriving = hidden[:, -1] if hidden_sizes else outcome.input_spikes
    own_spikes = outcome.counts.mean(axis=1)
    measured = {
        "mean_decision_step": float(outcome.steps.mean()),
        "silent_fraction": float(is_silent(outcome).mean()),
        "operations_per_class": float((arriving + own_spikes).mean()),
    }
    if not hidden_sizes:
        return measured
    spikes = [outcome.input_spikes.mean(), *hidden.mean(axis=0), outcome.counts.sum(axis=1).mean()]
    sizes = [*hidden_sizes, outcome.counts.shape[1]]
    return {
        **measured,
        "hidden_spikes": float(hidden.sum(axis=1).mean()),
        "operations_per_layer": [
            float(n * below + own) for n, below, own in zip(sizes, spikes, spikes[1:])
        ],
    }
