"""Training that diverges: how to tell from its log-likelihoods, and what to say.

A learning rate that is too large need not end in infinite parameters.  Weights may jump back and
forth, with log-likelihoods far below those of constant firing rates, or drift away.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Fewer presentations do not suffice to judge: each may be far below the mean by chance.
_FEWEST = 20

#: Constant rates may be perfect, for instance if no spike is desired. Then smaller differences say nothing.
_SMALLEST_MARGIN = math.log(2)


@dataclass(frozen=True)
class Reference:
    """What the log-likelihoods of training are compared with.

    chance : float
        Mean log-likelihood of a presentation at the best constant firing rates (see
        `Objective.chance`); minus infinity if it is not known.
    start : float
        Mean log-likelihood before training; infinity if it is not known.
    """

    chance: float
    start: float

    @property
    def margin(self) -> float:
        """A large difference of log-likelihoods: as far below chance again as chance is below 0."""
        return max(abs(self.chance), _SMALLEST_MARGIN)


def is_far_below_chance(value: float, reference: Reference) -> bool:
    """Whether a mean log-likelihood is far below both chance and where training started.

    Training from large random weights may start far below chance, and rise slowly.
    """
    lowest = min(reference.chance, reference.start)
    return bool(value < lowest - reference.margin)


def what_went_wrong(
    history: NDArray[np.float64], n: int, reference: Reference, epoch: str = "epoch"
) -> str:
    """Return what shows that training diverged, or "" if nothing does.

    Parameters
    ----------
    history : ndarray of float, shape (n_epochs,)
        Mean log-likelihood of the presentations of each epoch, in which they were learned.
    n : int
        Presentations in an epoch.
    reference : Reference
    epoch : str
        What the user would call an epoch.

    Returns
    -------
    str

    Examples
    --------
    >>> reference = Reference(chance=-2.0, start=-3.0)
    >>> what_went_wrong(np.array([-9.0, -30.0, -40.0]), 100, reference)
    'the mean log-likelihood of the last epoch is -40, but constant firing rates reach -2'
    >>> what_went_wrong(np.array([-1.5, -1.0, -0.9]), 100, reference)
    ''
    """
    if len(history) * n < _FEWEST:
        return ""
    if not np.all(np.isfinite(history)):
        return "log-likelihoods are no longer finite"
    # Single epochs of a small data set say little.
    n_last = -(-_FEWEST // n)
    last = float(np.mean(history[-n_last:]))
    if is_far_below_chance(last, reference):
        epochs = epoch if n_last == 1 else f"{n_last} {epoch}s"
        return (
            f"the mean log-likelihood of the last {epochs} is {last:.4g}, but constant firing rates "
            f"reach {reference.chance:.4g}"
        )
    n_compared = max(n_last, len(history) // 3)
    if len(history) < 3 * n_compared:
        return ""
    first, last = (float(np.mean(part)) for part in (history[:n_compared], history[-n_compared:]))
    # What a converged run loses is small, and no more than it changes from epoch to epoch.
    changes = np.diff(history)
    noise = float(np.median(np.abs(changes - np.median(changes))))
    if first - last > 0.2 * reference.margin + 3 * noise:
        return f"the mean log-likelihood fell from {first:.4g} in the first {epoch}s to {last:.4g}"
    return ""


def advice(reason: str, learning_rate: float, whose: str = "") -> str:
    """Return the warning: what was seen, and what to try.

    Parameters
    ----------
    reason : str
        From `what_went_wrong`.
    learning_rate : float
    whose : str
        What diverged, such as "classifiers 2 and 5: ".
    """
    return (
        f"{whose}training seems to diverge: {reason}; learning_rate={learning_rate:g} is probably too "
        f"large, so try a tenth of it, learning_rate={learning_rate / 10:g}"
    )
