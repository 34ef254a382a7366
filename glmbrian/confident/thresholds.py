"""Thresholds that keep the error below a bound, tested on held-out data."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

#: Log-odds to test, the strictest first: probabilities from 0.999999 to 0.62.
THRESHOLDS = tuple(np.arange(14.0, 0.0, -0.5).tolist())


@dataclass(frozen=True)
class Tested:
    """One threshold on the calibration data.

    threshold : float
        Log-odds.
    n_decided, n_wrong : int
    p_value : float
        The largest probability of at most this many wrong decisions if the error exceeded the bound.
    level : float
        The largest p-value at which the threshold is accepted.
    accepted : bool
    """

    threshold: float
    n_decided: int
    n_wrong: int
    p_value: float
    level: float
    accepted: bool


def first_above(log_odds: NDArray[np.float64], threshold: float) -> NDArray[np.int64]:
    """Return the first step (from 0) with log-odds of at least `threshold`, or -1."""
    reached = log_odds >= threshold
    return np.where(reached.any(axis=1), reached.argmax(axis=1), -1)


def checked_thresholds(
    log_odds: NDArray[np.float64],
    right: NDArray[np.bool_],
    error: float,
    confidence: float,
    thresholds: Sequence[float] = THRESHOLDS,
) -> list[Tested]:
    """Test for each threshold whether the error among decided presentations is at most `error`.

    Each threshold is tested as a complete rule, with its own decision steps.  Given how many
    presentations it decides, the number of wrong ones is binomial.  The levels of the tests follow
    the fallback procedure: each of m thresholds has the level (1 - confidence) / m, plus the whole
    level of the previous threshold if that one was accepted.  So the probability of accepting any
    threshold with a larger error is at most 1 - confidence, whatever the dependence between tests.

    Parameters
    ----------
    log_odds : ndarray of float, shape (n, T)
        How sure the most probable class is in each step.
    right : ndarray of bool, shape (n, T)
        Whether it is the right one.
    error, confidence : float
    thresholds : sequence of float
        Fixed before the data are seen, the strictest first.

    Returns
    -------
    list of Tested

    Examples
    --------
    >>> sure = np.full((300, 1), 8.0)
    >>> tested = checked_thresholds(sure, sure > 0, error=0.05, confidence=0.95, thresholds=[9, 8, 7])
    >>> [(one.n_decided, one.accepted) for one in tested]
    [(0, False), (300, True), (300, True)]
    """
    share, passed_on, tested = (1 - confidence) / len(thresholds), 0.0, []
    rows = np.arange(len(log_odds))
    for threshold in thresholds:
        steps = first_above(log_odds, threshold)
        decided = steps >= 0
        n_decided = int(decided.sum())
        n_wrong = int(np.sum(~right[rows, steps][decided]))
        p_value = float(binom.cdf(n_wrong, n_decided, error)) if n_decided else 1.0
        level = share + passed_on
        accepted = p_value <= level
        passed_on = level if accepted else 0.0
        tested.append(Tested(float(threshold), n_decided, n_wrong, p_value, level, accepted))
    return tested
