"""Raised cosines with log-spaced peaks, from their number, the window and the last peak."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.validation import MOST_VALUES, check_size, real

#: In windows of up to this many lags (the paper's), raised cosines without `last_peak` are one lag apart.
UNIT_SPACED = 32

#: The default axis: it spans at most this many times its offset, and the distances between peaks
#: grow at most by this factor from one to the next.
_MOST_OFFSETS, _MOST_GROWTH = 50, 2

#: For larger offsets, in lags, the axis is linear up to rounding.
_LARGEST_OFFSET = 1e12


def log_spaced(n_basis: int, window: int | None, first: Any, last: Any, c: Any) -> NDArray[np.float64]:
    """Return raised cosines whose phase is proportional to ``log(1 + (lag - first) / c)``.

    Parameters
    ----------
    n_basis : int
    window : int or None
        None ends it with the last function.
    first, last : float or None
        Lags of the first and the last peak; by default lag 1, and such that the last function ends
        with the window.
    c : float or None

    Returns
    -------
    ndarray of float, shape (window, n_basis)
    """
    longest = MOST_VALUES if window is None else window
    first_name = "first_peak"
    if first is None:
        first, first_name = (1.0, first_name) if n_basis > 1 or last is None else (last, "last_peak")
    first = real(first, first_name, 1, longest)
    if n_basis > 1 and last is not None:
        # Peaks are equal intervals apart on the axis.
        span, n_intervals = real(last, "last_peak", first, longest, strict=True) - first, n_basis - 1
    elif window is not None:
        # A function ends two intervals after its peak; here at the first lag beyond the window.
        span, n_intervals = window + 1 - first, n_basis + 1
    else:
        raise ValueError(
            "window must be given, or last_peak (for more than one function): then the window ends with the last one"
        )
    if n_basis == 1 and last is not None and real(last, "last_peak") != first:
        raise ValueError(f"last_peak must be first_peak={first:g} for n_basis=1, got {last!r}")
    if span < n_intervals:
        raise ValueError(
            f"n_basis={n_basis} functions do not fit: their peaks would be less than a lag apart; use a "
            f"smaller n_basis, or {'a window' if last is None else 'last_peak'} that is larger by "
            f"{n_intervals - span:g}"
        )
    offset = _offset(n_intervals, span) if c is None else real(c, "c", 0, _LARGEST_OFFSET, strict=True)
    per_interval = math.log1p(span / offset) / n_intervals
    if window is None:
        with np.errstate(over="ignore"):
            end = first + offset * np.expm1((n_basis + 1) * per_interval)
        check_size(min(n_basis * end, 1e18), "last_peak, n_basis: values of the basis", "set a window")
        window = math.ceil(end) - 1
    # Lags that are below the first peak by more than the offset are off the axis.
    relative = np.maximum((np.arange(1, window + 1) - first) / offset, -1)
    with np.errstate(divide="ignore"):
        position = np.log1p(relative) / per_interval
    phase = np.pi / 2 * (position[:, np.newaxis] - np.arange(n_basis))
    matrix = 0.5 * (1 + np.cos(np.clip(phase, -np.pi, np.pi)))
    matrix[matrix < 1e-15] = 0.0  # rounding at the ends of the functions
    empty = np.flatnonzero(~matrix.any(axis=0))
    if empty.size:
        raise ValueError(
            f"c={c!r} gives a function that is zero at all lags: use a larger c, or leave it out"
        )
    return matrix


def _offset(n_intervals, span):
    """Return the default offset of the axis, with which the first two peaks are at least a lag apart."""
    default = span / min(_MOST_OFFSETS, _MOST_GROWTH ** min(n_intervals, 10) - 1)
    if n_intervals == 1:
        return default
    # Peaks whose distances grow by a factor 1 + 1/c, from 1 lag on, span ((1 + 1/c)**n - 1) c lags.
    low, high = 1 / _LARGEST_OFFSET, max(span ** (1 / (n_intervals - 1)) - 1, 2 / _LARGEST_OFFSET)
    for _ in range(200):
        middle = (low + high) / 2
        if math.expm1(n_intervals * math.log1p(middle)) / middle < span:
            low = middle
        else:
            high = middle
    return max(default, 1 / high)
