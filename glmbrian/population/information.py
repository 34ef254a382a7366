"""The Fisher information of parameters whose scales differ, taken apart without being misled by rounding."""

import numpy as np
from numpy.typing import NDArray


def to_one_scale(
    matrix: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Scale the parameters of an information matrix (n, n) such that its diagonal is 1.

    Returns
    -------
    scaled : ndarray of float, shape (n, n)
    scale : ndarray of float, shape (n,)
        ``scaled * scale * scale[:, np.newaxis]`` is the matrix.
    absent : ndarray of bool, shape (n,)
        Parameters without information; their scale is 1.
    """
    scale = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    absent = scale == 0
    scale[absent] = 1.0
    return matrix / scale / scale[:, np.newaxis], scale, absent


def axes_of(
    scaled: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return eigenvalues, eigenvectors, and which of them have information, of a scaled matrix.

    With all parameters on one scale, the small eigenvalues come from rounding.
    """
    values, axes = np.linalg.eigh(scaled)
    return values, axes, values > values.size * np.finfo(float).eps * values[-1]
