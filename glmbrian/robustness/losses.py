"""What an attack lowers."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.batches import BatchedLikelihood, BatchedMargin
from ..support.validation import choice


class Loss(ABC):
    """What an attack lowers, for a block of presentations.

    Attributes
    ----------
    name : str

    Examples
    --------
    Make the first class more likely relative to the right one:

    >>> import numpy as np
    >>> from glmbrian.core.batches import BatchedMargin
    >>> from glmbrian.robustness import Loss
    >>> class TowardsFirst(Loss):
    ...     name = "towards first"
    ...     def goal(self, likelihood, labels, drive, draws):
    ...         goal = BatchedMargin(likelihood.network, likelihood.objective)
    ...         return goal, np.stack([labels, np.zeros_like(labels)], axis=1)
    """

    name: ClassVar[str]

    @abstractmethod
    def goal(
        self,
        likelihood: BatchedLikelihood,
        labels: NDArray[np.int64],
        drive: NDArray[np.float64],
        draws: list[list[np.ndarray]],
    ) -> tuple[BatchedLikelihood, NDArray[np.int64]]:
        """Return the function to lower, and the labels that its methods take.

        Parameters
        ----------
        likelihood : glmbrian.core.batches.BatchedLikelihood
        labels : ndarray of int, shape (n,)
            Indices of the right outputs.
        drive, draws
            As for `BatchedLikelihood.values`, before the attack.

        Returns
        -------
        goal : glmbrian.core.batches.BatchedLikelihood
        labels : ndarray of int

        Examples
        --------
        >>> from glmbrian.robustness import LOSSES
        >>> sorted(LOSSES)
        ['likelihood', 'margin']
        """


class Likelihood(Loss):
    """The log-likelihood of the right label, which training raises."""

    name = "likelihood"

    def goal(self, likelihood, labels, drive, draws):
        return likelihood, labels


class Margin(Loss):
    """The log-likelihood of the right label minus that of the most likely wrong one."""

    name = "margin"

    def goal(self, likelihood, labels, drive, draws):
        n_outputs = likelihood.network.outputs.n
        of_all = np.stack(
            [
                likelihood.values(drive, np.full(len(labels), label), draws)
                for label in range(n_outputs)
            ],
            axis=1,
        )
        of_all[np.arange(len(labels)), labels] = -np.inf
        pairs = np.stack([labels, of_all.argmax(axis=1)], axis=1)
        return BatchedMargin(likelihood.network, likelihood.objective), pairs


#: Every loss, by name.
LOSSES: dict[str, Loss] = {loss.name: loss for loss in (Likelihood(), Margin())}


def get_loss(loss: str | Loss) -> Loss:
    """Return the `Loss` with this name, or `loss` itself if it already is one."""
    return loss if isinstance(loss, Loss) else LOSSES[choice(loss, "loss", LOSSES)]
