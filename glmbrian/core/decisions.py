"""Decisions from observed output spikes: rate and first-to-spike decoding."""

from dataclasses import dataclass

import numpy as np

from .randomness import hashes

#: What decides between outputs that are level, and if no output spiked at all.
ON_TIE = ("potential", "random")
ON_SILENCE = ("potential", "random", "reject")

#: Index that stands for "no decision".
REJECTED = -1


@dataclass(frozen=True)
class Decisions:
    """What a test decided: one entry a presentation.

    If presentations end at the first spike, ``(decided == label) & (step <= t)`` holds for what has
    been decided rightly by the deadline t.

    label : ndarray, shape (n,)
        The true class labels.
    decided : ndarray, shape (n,)
        The labels decided for, -1 for a rejected presentation.
    step : ndarray of int, shape (n,)
        Step of the decision, from 1; without any output spike the last one.
    silent : ndarray of bool, shape (n,)
        Whether no output spiked.
    """

    label: np.ndarray
    decided: np.ndarray
    step: np.ndarray
    silent: np.ndarray


def is_silent(outcome):
    """Return whether no output spiked in each presentation of an `Outcome`."""
    return outcome.counts.sum(axis=1) == 0


def decide(outcome, objective, on_tie, on_silence, key, first_presentation=0):
    """Return the index of the output that each presentation decides for.

    Parameters
    ----------
    outcome : glmbrian.devices.problem.Outcome
    objective : glmbrian.core.objectives.Objective
        Says which outputs are best.
    on_tie : {"potential", "random"}
        Among several best outputs: the one with the highest membrane potential (which of
        them, the objective says), or any.
    on_silence : {"potential", "random", "reject"}
        If no output spikes: the one with the highest potential summed over the
        presentation, any, or none (`REJECTED`).
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


def measures(outcome):
    """Return what decisions cost, averaged over presentations.

    Returns
    -------
    dict
        ``mean_decision_step`` (from 1), ``silent_fraction``, and
        ``operations_per_class``: input spikes integrated up to the decision plus
        the neuron's own, the paper's t (N_X s_x + s_y).
    """
    own_spikes = outcome.counts.mean(axis=1)
    return {
        "mean_decision_step": float(outcome.steps.mean()),
        "silent_fraction": float(is_silent(outcome).mean()),
        "operations_per_class": float((outcome.input_spikes + own_spikes).mean()),
    }
