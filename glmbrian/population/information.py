"""The Fisher information of parameters whose scales differ: solved and inverted without being misled by rounding."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

#: Up to this many parameters, directions along which the likelihood is flat are left alone exactly.
_MOST_EXACT = 128

#: What is added to the diagonal of larger matrices on one scale, against rounding.
_ROUNDING_RIDGE = 1e-10

#: Parameters that change a direction without information by less than this part are determined.
_NEGLIGIBLE = 1e-6


def solve(matrix: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve for a positive semidefinite matrix; the solution is 0 along its null space.

    Parameters
    ----------
    matrix : ndarray of float, shape (n, n)
    vector : ndarray of float, shape (n,)
    """
    scaled, scale, absent = _to_one_scale(matrix)
    if len(vector) > _MOST_EXACT:
        diagonal = np.arange(len(vector))
        scaled[diagonal, diagonal] += np.where(absent, 1.0, _ROUNDING_RIDGE)
        try:
            factor = cho_factor(scaled, overwrite_a=False, check_finite=False)
            result = cho_solve(factor, vector / scale, check_finite=False)
            result[absent] = 0.0
            return result / scale
        except LinAlgError:
            scaled[diagonal, diagonal] -= np.where(absent, 1.0, _ROUNDING_RIDGE)
    values, axes, kept = _axes_of(scaled)
    axes = axes[:, kept]
    axes[absent] = 0.0
    return axes @ (axes.T @ (vector / scale) / values[kept]) / scale


def inverse(information: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the covariance of parameters from their information matrix.

    The variance of a parameter that the data leave undetermined is infinite.
    """
    scaled, scale, absent = _to_one_scale(information)
    values, axes, kept = _axes_of(scaled)
    covariance = (axes[:, kept] / values[kept]) @ axes[:, kept].T / np.outer(scale, scale)
    open_ = absent | (np.abs(axes[:, ~kept]) > _NEGLIGIBLE).any(axis=1)
    covariance[open_, :] = covariance[:, open_] = np.nan
    covariance[open_, open_] = np.inf
    return covariance


def _to_one_scale(
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


def _axes_of(
    scaled: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return eigenvalues, eigenvectors, and which of them have information, of a scaled matrix.

    With all parameters on one scale, the small eigenvalues come from rounding.
    """
    values, axes = np.linalg.eigh(scaled)
    return values, axes, values > values.size * np.finfo(float).eps * values[-1]
