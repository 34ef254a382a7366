"""Bases of temporal kernels: a kernel is a basis matrix times its weights.

Eq. Ex_GLM_1 of the paper: the synaptic kernel is alpha = A w and the feedback
kernel beta = B v, where the columns of A and B are fixed functions of the lag.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.floating_point import underflow_is_zero
from ..support.validation import check_shape, check_size, finite_array, integer, real

#: Larger values are mistakes: their products with weights could overflow.
_LARGEST_VALUE = 1e30


class Basis:
    """A fixed set of functions of the lag.

    Parameters
    ----------
    matrix : array_like of float, shape (window, n_basis)
        Row ``l - 1`` holds the values at lag ``l``, the weight of the sample
        ``l`` steps earlier; lags run from 1 to `window`.

    Attributes
    ----------
    matrix : ndarray of float, shape (window, n_basis)
        Read only.
    window : int
        Number of lags (the paper's tau_y).
    n_basis : int
        Number of functions (the paper's K).

    Raises
    ------
    TypeError, ValueError
        If `matrix` is not two-dimensional, is empty, is zero everywhere, or holds values
        that are not finite or exceed 1e30.

    See Also
    --------
    RaisedCosineBasis, ExponentialBasis, IndicatorBasis, CustomBasis

    Examples
    --------
    An alpha function that peaks two steps after the spike:

    >>> import numpy as np
    >>> lags = np.arange(1, 9)
    >>> basis = Basis((lags / 2 * np.exp(1 - lags / 2))[:, np.newaxis])
    >>> basis
    <Basis: n_basis=1, window=8>
    >>> int(basis.matrix.argmax()) + 1
    2
    """

    matrix: NDArray[np.float64]

    def __init__(self, matrix: ArrayLike) -> None:
        values = finite_array(matrix, "matrix", ("window", "n_basis")).copy()
        if values.size == 0:
            raise ValueError(
                "matrix must have at least one lag (row) and one function (column), "
                f"got the shape {values.shape}"
            )
        if not values.any():
            raise ValueError("matrix must not be zero at all lags: no spike would have an effect")
        if np.abs(values).max() > _LARGEST_VALUE:
            raise ValueError(
                f"matrix must hold values up to {_LARGEST_VALUE:g}, got {np.abs(values).max():g}; "
                "put the scale into the weights"
            )
        values.flags.writeable = False
        self.matrix = values

    @property
    def window(self) -> int:
        """Number of lags."""
        return self.matrix.shape[0]

    @property
    def n_basis(self) -> int:
        """Number of functions."""
        return self.matrix.shape[1]

    def kernels(self, weights: ArrayLike) -> NDArray[np.float64]:
        """Return the kernels with these `weights` (eq. Ex_GLM_1).

        Parameters
        ----------
        weights : array_like of float, shape (..., n_basis)

        Returns
        -------
        ndarray of float, shape (..., window)

        Raises
        ------
        TypeError, ValueError
            If `weights` are not finite numbers without a unit, or the length of their last
            axis is not `n_basis`.

        Examples
        --------
        Two kernels, the second twice the first:

        >>> RaisedCosineBasis(n_basis=2, window=3).kernels([[1.0, 0.0], [2.0, 0.0]])
        array([[1. , 0.5, 0. ],
               [2. , 1. , 0. ]])
        """
        values = finite_array(weights, "weights")
        if values.ndim == 0 or values.shape[-1] != self.n_basis:
            raise ValueError(f"weights must have the shape (..., {self.n_basis}), got {values.shape}")
        return values @ self.matrix.T

    def __repr__(self):
        return f"<{type(self).__name__}: n_basis={self.n_basis}, window={self.window}>"


class CustomBasis(Basis):
    """A basis given as its matrix.

    Parameters
    ----------
    matrix : array_like of float, shape (window, n_basis)

    Examples
    --------
    >>> CustomBasis([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]).kernels([2.0, 4.0])
    array([2., 3., 4.])
    """


class IndicatorBasis(Basis):
    """One weight per lag: the unstructured GLM.

    Parameters
    ----------
    window : int
        Number of lags, and of functions.

    Examples
    --------
    >>> IndicatorBasis(2).matrix
    array([[1., 0.],
           [0., 1.]])
    """

    def __init__(self, window: int) -> None:
        window = integer(window, "window")
        _check_size(window, window)
        super().__init__(np.eye(window))


class RaisedCosineBasis(Basis):
    """Raised cosines on a logarithmic axis of lags (Pillow et al. 2008).

    Function k is ``(1 + cos(a log(t + c) - phase_k)) / 2`` where the argument of
    the cosine is within [-pi, pi], and 0 elsewhere; the phases are pi/2 apart, so
    neighbours cross at 1/2.  Lag l is sampled at t = (l - 1) dt, and the
    first function peaks at lag 1.

    Parameters
    ----------
    n_basis : int
        Number of functions.
    window : int
        Number of lags, in steps.
    a, c : float
        Slope and offset of the logarithmic axis.  The defaults are those of the
        paper's figure: for lags far below `c` the axis is linear.
    dt : float, optional
        Sample step, in the units of `c`.  The default puts the peaks of the first two
        functions one lag apart: with the default `a` and `c` each function is 1 at its
        own lag, 1/2 at the two neighbours and 0 elsewhere, and ``n_basis == window``
        gives a full basis (up to about 110 lags).

    Raises
    ------
    ValueError
        If a function is 0 over the whole window, where it could not be learned.

    Examples
    --------
    >>> RaisedCosineBasis(2, 3).matrix.round(3)
    array([[1. , 0.5],
           [0.5, 1. ],
           [0. , 0.5]])

    Log-spaced functions over 100 lags, narrow near the spike and wide far from it:

    >>> RaisedCosineBasis(5, 100, a=2.2, c=1.0, dt=0.2).matrix.shape
    (100, 5)
    """

    def __init__(
        self,
        n_basis: int,
        window: int,
        a: float = 7500.0,
        c: float = 1.0,
        dt: float | None = None,
    ) -> None:
        n_basis = integer(n_basis, "n_basis")
        window = integer(window, "window")
        _check_size(window, n_basis)
        a = real(a, "a", 0, strict=True)
        c = real(c, "c", 0, strict=True)
        if dt is None:
            # a log((dt + c) / c) = pi / 2
            dt = c * np.expm1(np.pi / (2 * a))
        dt = real(dt, "dt", 0, strict=True)
        lag_times = np.arange(window) * dt
        axis = a * np.log1p(lag_times / c)
        phase = axis[:, np.newaxis] - np.pi / 2 * np.arange(n_basis)
        # At the edge of the support, 1 + cos(pi) is 0 up to rounding; make it exactly 0.
        matrix = np.where(np.abs(phase) < np.pi, 0.5 * (1 + np.cos(phase)), 0.0)
        matrix[matrix < 1e-6] = 0.0
        empty = np.flatnonzero(~matrix.any(axis=0))
        if empty.size:
            raise ValueError(
                f"n_basis={n_basis} functions do not fit window={window}: function "
                f"{empty[0] + 1} is zero at all lags; use a smaller n_basis, a larger "
                "window, or another a, c or dt"
            )
        super().__init__(matrix)


class ExponentialBasis(Basis):
    """Decaying exponentials, or differences of two, one per time constant.

    With a single function this is the kernel of Gardner and Gruning (2016), the
    paper's K = 1 special case: ``exp(-l / tau)``, or with `tau_rise` the
    difference ``exp(-l / tau) - exp(-l / tau_rise)`` scaled to a peak of 1.

    Parameters
    ----------
    tau : float or array_like of float, shape (n_basis,)
        Decay time constants, in steps.
    window : int
        Number of lags, in steps.
    tau_rise : float, optional
        Rise time constant, in steps; below every `tau`.

    Examples
    --------
    >>> ExponentialBasis([2.0, 10.0], window=20).n_basis
    2
    """

    @underflow_is_zero  # long after the spike
    def __init__(self, tau: ArrayLike, window: int, tau_rise: float | None = None) -> None:
        tau = np.atleast_1d(finite_array(tau, "tau"))
        check_shape(tau, "tau", ("n_basis",))
        if tau.size == 0 or np.any(tau <= 0):
            raise ValueError(f"tau must be above 0 (in steps), got {tau}")
        window = integer(window, "window")
        _check_size(window, tau.size)
        lags = np.arange(1, window + 1)[:, np.newaxis]
        matrix = np.exp(-lags / tau)
        if tau_rise is not None:
            tau_rise = real(tau_rise, "tau_rise", 0, strict=True)
            if np.any(tau_rise >= tau):
                raise ValueError(f"tau_rise must be below every tau, got {tau_rise}")
            matrix = matrix - np.exp(-lags / tau_rise)
        peaks = matrix.max(axis=0)
        if not peaks.all():
            raise ValueError(f"tau={tau} gives a function that is zero at all lags")
        # Long after the spike, products with weights would underflow.
        matrix[np.abs(matrix) < 1e-100 * peaks] = 0.0
        if tau_rise is not None:
            matrix /= peaks
        super().__init__(matrix)


def _check_size(window, n_basis):
    check_size(window * n_basis, "n_basis, window: values of the basis", "take fewer lags or functions")


def as_basis(basis: Any, name: str) -> Basis:
    """Return `basis` if it is a `Basis`, or raise a TypeError naming `name`."""
    if not isinstance(basis, Basis):
        raise TypeError(f"{name} must be a basis such as glmbrian.RaisedCosineBasis, got {basis!r}")
    return basis
