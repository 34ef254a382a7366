"""The kernels of a group of neurons by name, and the variables that belong to them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.bases import Basis, as_basis

#: Forbidden kernel names, since a kernel's channels are named after it.
_RESERVED = ("feedback", "pending", "bias", "key", "clamp", "presentation", "w")


def channel_names(kernel: str, basis: Basis) -> list[str]:
    """Return the names of the variables that receive a kernel's spikes."""
    return [f"{kernel}_{k}" for k in range(basis.n_basis)]


def feedback_weight_names(feedback_basis: Basis) -> list[str]:
    """Return the names of the variables that hold the feedback weights."""
    return [f"feedback_weight_{k}" for k in range(feedback_basis.n_basis)]


def named_kernels(kernels: Any) -> dict[str, Basis]:
    """Check the argument `kernels` of `GLMNeurons` and return it as a dict."""
    if isinstance(kernels, Basis):
        return {"stimulus": kernels}
    if not isinstance(kernels, dict) or not kernels:
        raise TypeError(
            "kernels must be a basis, or a dict of names to bases with at least one "
            f"entry, got {kernels!r}"
        )
    for key, basis in kernels.items():
        if not isinstance(key, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", key):
            raise ValueError(
                f"kernels: a name must consist of letters, digits and underscores, got {key!r}"
            )
        if key.split("_")[0] in _RESERVED:
            raise ValueError(f"kernels: the name {key!r} is taken by the model")
        as_basis(basis, f"kernels[{key!r}]")
    return dict(kernels)


def stacked(matrices: Sequence[np.ndarray]) -> np.ndarray:
    """Put basis matrices side by side, padding short windows with zeros."""
    window = max(matrix.shape[0] for matrix in matrices)
    return np.hstack([np.pad(matrix, ((0, window - matrix.shape[0]), (0, 0))) for matrix in matrices])


def with_feedback(kernels: Mapping[str, Basis], feedback_basis: Basis | None) -> dict[str, Basis]:
    """Return the bases of all kernels that neurons filter by, the feedback kernel last."""
    return dict(kernels) if feedback_basis is None else {**kernels, "feedback": feedback_basis}
