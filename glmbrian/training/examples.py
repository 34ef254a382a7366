"""What the presentations of a `Trainer` show, and which of them are learned."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.objectives import Objective
from ..support.validation import binary_array, finite_array, plain_array


@dataclass(frozen=True, eq=False)
class Examples:
    """Labels or desired spikes of all presentations; neither if there is nothing to learn them from.

    Attributes
    ----------
    is_training : ndarray of bool, shape (n_presentations,)
        Which presentations are learned; the others are tests.
    labels : ndarray of int32, shape (n_presentations,), or None
    targets : ndarray of bool, shape (n_presentations, n_steps, n), or None
    """

    is_training: NDArray[np.bool_]
    labels: NDArray[np.int32] | None = None
    targets: NDArray[np.bool_] | None = None

    def learned(self, objective: Objective, n_steps: int, n: int, most: int) -> tuple:
        """Return desired spikes that are learned, their labels, and how often each occurs.

        Of `targets`, these are about `most`; see `Trainer.examples_learned`.
        """
        if self.labels is not None:
            labels, counts = np.unique(self.labels[self.is_training], return_counts=True)
            desired = [objective.desired(int(label), n_steps, n) for label in labels]
            return np.stack(desired), labels, counts
        assert self.targets is not None
        targets = self.targets[self.is_training]
        some = targets[:: -(-len(targets) // most)]
        return some, None, np.ones(len(some), dtype=int)


def checked_examples(
    labels: ArrayLike | None,
    targets: ArrayLike | None,
    is_training: ArrayLike | None,
    objective: Objective,
    n_steps: int,
    n: int,
    has_reward: bool,
) -> Examples:
    """Return the `Examples` that the arguments of a `Trainer` of `n` neurons describe.

    Raises
    ------
    TypeError, ValueError
        If they are not valid, or do not fit each other.
    """
    mask = _checked_mask(is_training)
    if mask is not None and labels is targets is None and (has_reward or not mask.any()):
        return Examples(mask)
    _check_which_are_given(labels, targets, objective)
    given = "targets" if labels is None else "labels"
    if labels is not None:
        examples = _checked_labels(labels, n)
    else:
        examples = _checked_targets(targets, n_steps, n)
    n_presentations = len(examples)
    if mask is None:
        mask = np.ones(n_presentations, dtype=bool)
    if len(mask) != n_presentations:
        raise ValueError(
            f"is_training must hold one truth value for each of the {n_presentations} presentations in "
            f"{given}, got {len(mask)}; to learn the first 100 and test the others, write "
            f"np.arange({n_presentations}) < 100"
        )
    return Examples(mask, **{given: examples})


def _checked_mask(is_training):
    if is_training is None:
        return None
    mask = binary_array(is_training, "is_training", ("n_presentations",)).astype(bool)
    if mask.size == 0:
        raise ValueError("is_training must hold one truth value for each presentation, but is empty")
    return mask


def _check_which_are_given(labels, targets, objective):
    needs_labels, name = objective.needs_labels, objective.name
    if needs_labels and targets is not None:
        raise ValueError(f"targets go with rule='rate'; rule={name!r} takes labels")
    if (labels is None) == (targets is None):
        allowed = "labels" if needs_labels else "either labels or targets"
        raise ValueError(
            f"{allowed} must be given with rule={name!r}, unless all presentations are tests "
            "(is_training=np.zeros(n_presentations, bool))"
        )


def _checked_labels(labels, n):
    if plain_array(labels, "labels").dtype == bool:
        raise TypeError("labels must be indices of neurons, got truth values")
    array = finite_array(labels, "labels", ("n_presentations",))
    if array.size == 0 or np.any((array != np.round(array)) | (array < 0) | (array >= n)):
        raise ValueError(
            f"labels must be at least one integer, each from 0 to {n - 1} (the index of "
            f"a neuron), got {labels!r}"
        )
    return array.astype(np.int32)


def _checked_targets(targets, n_steps, n):
    array = binary_array(targets, "targets")
    if array.ndim == 2 and array.shape[0] % n_steps == 0:
        array = array.reshape(-1, n_steps, array.shape[1])
    if array.ndim != 3 or array.shape[1:] != (n_steps, n) or array.size == 0:
        raise ValueError(
            f"targets must have the shape (n_presentations, n_steps, n) or "
            f"(n_presentations * n_steps, n) with n_steps={n_steps} and n={n} neurons, got "
            f"{np.shape(targets)}"
        )
    return array.astype(bool)
