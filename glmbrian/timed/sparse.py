"""Sparse matrices of spike trains."""

from typing import Any

import numpy as np

from .data import EventSeries, is_instance_of


def is_sparse(value: Any) -> bool:
    """Return whether `value` is a sparse matrix or array of SciPy."""
    return is_instance_of(value, "scipy.sparse", "spmatrix", "sparray")


def steps_of_sparse(value: Any, name: str) -> EventSeries:
    """Return sparse trains of 0 and 1, shape (T, n), as the steps with spikes.

    Parameters
    ----------
    value : sparse matrix or array of SciPy
    name : str
        For error messages.
    """
    if value.ndim != 2:
        raise ValueError(f"{name} must have the shape (T, n), got {value.shape}")
    columns = value.tocsc(copy=True)
    columns.sum_duplicates()
    columns.eliminate_zeros()
    if not np.all(columns.data == 1):
        raise ValueError(
            f"{name} must hold only 0 and 1 if it is sparse; pass other numbers as an array, "
            f"{name}.toarray()"
        )
    columns.sort_indices()
    steps = np.split(columns.indices.astype(np.int64), columns.indptr[1:-1])
    n_steps, n_units = columns.shape
    return EventSeries(steps if n_units else [], n_steps)
