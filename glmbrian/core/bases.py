"""Bases of temporal kernels: a kernel is a basis matrix times its weights.

Eq. Ex_GLM_1 of the paper: the synaptic kernel is alpha = A w and the feedback
kernel beta = B v, where the columns of A and B are fixed functions of the lag.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.floating_point import underflow_is_zero
from ..support.validation import check_shape, check_size, finite_array, integer, real
from .lags import check_time_step, has_unit, in_steps, window_in_steps
from .log_spacing import UNIT_SPACED, log_spaced
from .normalisation import normalised

#: Larger values are mistakes: their products with weights could overflow.
_LARGEST_VALUE = 1e30

#: Exponentials end where they are this small a part of their peak: products with weights would underflow.
NEGLIGIBLE = 1e-100


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
    dt : quantity or None
        The time step, if the basis was made from times.  Neurons and fits with another step refuse it.

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

    #: The time step of a basis that was made from times, which is right only in these steps; else None.
    dt: Any = None

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
    window : int or time
        Number of lags, and of functions; a time is rounded up to whole steps.
    dt : time, optional
        Time step, if `window` is a time.

    Examples
    --------
    >>> IndicatorBasis(2).matrix
    array([[1., 0.],
           [0., 1.]])
    >>> from brian2 import ms
    >>> IndicatorBasis(20 * ms, dt=1 * ms)
    <IndicatorBasis: n_basis=20, window=20>
    """

    def __init__(self, window: Any, dt: Any = None) -> None:
        window = window_in_steps(window, dt)
        _check_size(window, window)
        super().__init__(np.eye(window))
        self.dt = dt if has_unit(dt) else None


class RaisedCosineBasis(Basis):
    """Raised cosines on a logarithmic axis of lags (Pillow et al. 2008).

    Give `n_basis`, `window` (how many lags the functions see) and `last_peak` (where the last one
    peaks), or leave out one of the last two.  Function k is ``(1 + cos(phase - k pi/2)) / 2`` where the argument
    of the cosine is within [-pi, pi], and 0 elsewhere, so neighbours cross at 1/2.  The phase
    grows as ``log(1 + (lag - first_peak) / c)``.

    Parameters
    ----------
    n_basis : int
        Number of functions.
    window : int or time, optional
        Number of lags; a time is rounded up to whole steps.  By default it ends with the last function.
    a : float, optional
        Slope of the logarithmic axis, in place of `last_peak`, as in the paper's figure: the
        phase at lag l is ``a log(1 + (l - 1) dt / c)``.
    c : float or time, optional
        Offset of the logarithmic axis: peaks are evenly spaced at lags far below it, and
        log-spaced far beyond.  By default it is the least for which the first two peaks are at least a lag
        apart, distances between peaks at most double from one to the next, and the last peak (without
        `last_peak`, the end of the window) is at most 50 `c` beyond the first.
    dt : time or float, optional
        Time step, if other arguments are times.  A plain number belongs to `a`: it is the sample
        step in the units of `c`.
    last_peak : float or time, optional
        Lag at which the last function peaks.  Without it (and without `a`, `c` and a plain `dt`) the
        last function ends with the window, if the window has more than 32 lags; in shorter
        windows, such as the paper's, peaks are one lag apart: each function is 1 at its own lag,
        1/2 at the two neighbours and 0 elsewhere, and ``n_basis == window`` gives a full basis.
    first_peak : float or time, optional
        Lag at which the first function peaks; by default 1.
    normalise : {"peak", "area", "energy"}, optional
        What to make 1 for each function: its maximum, the sum of its values, or the sum of their
        squares.  By default maxima are 1, up to the position of peaks between lags.

    Raises
    ------
    TypeError, ValueError
        If arguments are missing, contradict each other, or give functions that are 0 in the whole
        window or less than a lag apart.

    Notes
    -----
    In version 0.1 `a` and `c` were 7500 and 1, for which the axis is linear up to about 110 lags.

    Examples
    --------
    >>> RaisedCosineBasis(2, 3).matrix.round(3)
    array([[1. , 0.5],
           [0.5, 1. ],
           [0. , 0.5]])

    Six log-spaced functions over 100 ms, the last with its peak at 80 ms, in steps of 1 ms:

    >>> from brian2 import ms
    >>> basis = RaisedCosineBasis(6, window=100*ms, last_peak=80*ms, dt=1*ms)
    >>> basis.matrix.argmax(axis=0) + 1
    array([ 1,  4,  9, 19, 39, 80])
    """

    def __init__(
        self,
        n_basis: int,
        window: Any = None,
        a: float | None = None,
        c: Any = None,
        dt: Any = None,
        last_peak: Any = None,
        first_peak: Any = None,
        normalise: str | None = None,
    ) -> None:
        n_basis = integer(n_basis, "n_basis")
        if window is not None:
            window = window_in_steps(window, dt)
            _check_size(window, n_basis)
        c, last_peak, first_peak = (
            in_steps(value, name, dt)
            for value, name in [(c, "c"), (last_peak, "last_peak"), (first_peak, "first_peak")]
        )
        step = None
        if has_unit(dt):
            check_time_step(dt)
            step, dt = dt, None if a is None else 1.0  # all is in steps now
        peaks = last_peak is not None or first_peak is not None or window is None
        if peaks and (a is not None or dt is not None):
            raise ValueError(
                "a, and a dt without a unit, cannot be combined with last_peak, first_peak or a window that is left "
                "out, since these determine the slope of the axis: leave out a and dt, or give n_basis, window, a, "
                "c and dt alone"
            )
        if peaks or (a is c is dt is None and n_basis + 1 < window > UNIT_SPACED):
            matrix = log_spaced(n_basis, window, first_peak, last_peak, c)
        else:
            matrix = _on_given_axis(n_basis, window, a, c, dt)
        super().__init__(normalised(matrix, normalise))
        self.dt = step


def _on_given_axis(n_basis, window, a, c, dt):
    """Return raised cosines, given the axis; by default that of the paper's figure."""
    a = 7500.0 if a is None else real(a, "a", 0, strict=True)
    c = 1.0 if c is None else real(c, "c", 0, strict=True)
    if dt is None:
        # a log((dt + c) / c) = pi / 2: the peaks of the first two functions are one lag apart.
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
            "window, or last_peak in place of a, c and dt"
        )
    return matrix


class ExponentialBasis(Basis):
    """Decaying exponentials, or differences of two, one per time constant.

    With a single function this is the kernel of Gardner and Gruning (2016), the
    paper's K = 1 special case: ``exp(-l / tau)``, or with `tau_rise` the
    difference ``exp(-l / tau) - exp(-l / tau_rise)`` scaled to a peak of 1.

    Parameters
    ----------
    tau : float or time, or array_like of them, shape (n_basis,)
        Decay time constants, in steps or as times.
    window : int or time
        Number of lags; a time is rounded up to whole steps.
    tau_rise : float or time, optional
        Rise time constant; below every `tau`.
    dt : time, optional
        Time step, if other arguments are times.
    normalise : {"peak", "area", "energy"}, optional
        What to make 1 for each function: its maximum, the sum of its values, or the sum of their
        squares.

    Examples
    --------
    >>> ExponentialBasis([2.0, 10.0], window=20).n_basis
    2

    Time constants of 10 and 40 ms, in steps of 8 ms:

    >>> from brian2 import ms
    >>> ExponentialBasis([10, 40] * ms, 200 * ms, dt=8 * ms, normalise="area")
    <ExponentialBasis: n_basis=2, window=25>
    """

    @underflow_is_zero  # long after the spike
    def __init__(
        self,
        tau: Any,
        window: Any,
        tau_rise: Any = None,
        dt: Any = None,
        normalise: str | None = None,
    ) -> None:
        tau = np.atleast_1d(finite_array(in_steps(tau, "tau", dt), "tau"))
        check_shape(tau, "tau", ("n_basis",))
        if tau.size == 0 or np.any(tau <= 0):
            raise ValueError(f"tau must be above 0 (in steps), got {tau}")
        window = window_in_steps(window, dt)
        _check_size(window, tau.size)
        lags = np.arange(1, window + 1)[:, np.newaxis]
        matrix = np.exp(-lags / tau)
        if tau_rise is not None:
            tau_rise = real(in_steps(tau_rise, "tau_rise", dt), "tau_rise", 0, strict=True)
            if np.any(tau_rise >= tau):
                raise ValueError(f"tau_rise must be below every tau, got {tau_rise}")
            matrix = matrix - np.exp(-lags / tau_rise)
        peaks = matrix.max(axis=0)
        if not peaks.all():
            raise ValueError(f"tau={tau} gives a function that is zero at all lags")
        matrix[np.abs(matrix) < NEGLIGIBLE * peaks] = 0.0
        if tau_rise is not None:
            matrix /= peaks
        super().__init__(normalised(matrix, normalise))
        self.dt = dt if has_unit(dt) else None


def _check_size(window, n_basis):
    check_size(window * n_basis, "n_basis, window: values of the basis", "take fewer lags or functions")


def plain_basis(basis: Basis) -> Basis:
    """Return a basis with this matrix and nothing else: of no class of the user's, for steps of any length."""
    return Basis(basis.matrix)


def as_basis(basis: Any, name: str) -> Basis:
    """Return `basis` if it is a `Basis`, or raise a TypeError naming `name`."""
    if not isinstance(basis, Basis):
        raise TypeError(f"{name} must be a basis such as glmbrian.RaisedCosineBasis, got {basis!r}")
    return basis
