"""Lags and windows in steps, given as numbers of steps or as times.

A time is a quantity with a unit, such as Brian's: divided by the time step, it is a number of steps.
"""

import math
from typing import Any

import numpy as np

from ..support.validation import integer

#: A time this close to a whole number of steps, relative to it, is one: times are rounded.
_ROUNDING = 1e-9


def has_unit(value: Any) -> bool:
    """Return whether `value` is a quantity, such as ``5 * ms``, and not a plain number."""
    return getattr(value, "is_dimensionless", True) is not True


def in_steps(value: Any, name: str, dt: Any) -> Any:
    """Return a time, or an array or list of times, in steps of `dt`; anything else as it is, to be checked.

    Examples
    --------
    >>> from brian2 import ms
    >>> in_steps([2, 4] * ms, "tau", dt=0.5 * ms), in_steps(7, "tau", dt=None)
    (array([4., 8.]), 7)
    >>> [float(steps) for steps in in_steps([2 * ms, 4 * ms], "tau", dt=0.5 * ms)]
    [4.0, 8.0]
    """
    if isinstance(value, (list, tuple)):
        return [in_steps(one, name, dt) for one in value]
    if not has_unit(value):
        return value
    if not has_unit(dt):
        raise TypeError(
            f"{name} is a time, {value!r}, so dt must be the time step, such as dt=1*ms, got {dt!r}; "
            f"or give {name} in steps, as a plain number"
        )
    check_time_step(dt)
    try:
        ratio = value / dt
    except Exception:  # units of two packages
        ratio = value
    if has_unit(ratio):
        raise TypeError(f"{name} must be a time or a number of steps, got {value!r} with dt={dt!r}")
    return np.asarray(ratio, dtype=float)[()]


def check_time_step(dt: Any) -> None:
    """Raise unless `dt`, which has a unit, is one quantity above 0."""
    values = np.asarray(dt, dtype=float)
    if values.ndim or not 0 < values < np.inf:
        raise ValueError(f"dt must be one time above 0, got {dt!r}")


def window_in_steps(window: Any, dt: Any) -> int:
    """Return a window as a number of lags; a time is rounded up to whole steps.

    Examples
    --------
    >>> from brian2 import ms
    >>> window_in_steps(20 * ms, dt=8 * ms), window_in_steps(7, dt=None)
    (3, 7)
    """
    lags = in_steps(window, "window", dt)
    if has_unit(window):
        if np.ndim(lags) or not 0 < lags < np.inf:
            raise ValueError(f"window must be one time above 0, got {window!r}")
        lags = max(1, math.ceil(lags * (1 - _ROUNDING)))
    return integer(lags, "window")
