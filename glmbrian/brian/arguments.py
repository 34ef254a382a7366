"""Checks of Brian-related arguments: times, clocks, names."""

import math
import numbers
import re
from typing import Any

import numpy as np
from brian2 import Clock, Quantity, defaultclock, have_same_dimensions, second

from ..support.validation import finite_array


def seconds(value: Any, name: str, shape: tuple | None = ()) -> np.ndarray:
    """Return times as ``float64`` in seconds.

    `value` is a time (or an array of times) with a Brian unit, or plain numbers in
    seconds; for `shape` see `finite_array`.
    """
    if isinstance(value, Quantity):
        if not have_same_dimensions(value, second):
            raise TypeError(f"{name} must be a time, got {value!r}")
        value = np.asarray(value)
    elif hasattr(value, "dimensionality"):  # from the packages quantities and pint
        raise TypeError(f"{name} must have a Brian unit or be plain numbers in seconds, got {value!r}")
    return finite_array(value, name, shape)


def positive_seconds(value: Any, name: str) -> float:
    """Return a checked time in seconds, which must be above 0."""
    duration = float(seconds(value, name))
    if duration <= 0:
        raise ValueError(f"{name} must be above 0 s, got {duration:g} s")
    return duration


def check_brian_arguments(
    dt: Any = None, clock: Any = None, order: Any = 0, name: Any = "object*"
) -> None:
    """Raise unless Brian accepts these arguments for a new object.

    Brian itself would raise less clear errors while it creates the object, and warn that the
    unfinished object was never part of a network.

    Parameters
    ----------
    dt : Quantity or None
        Time step; only if `clock` is None.
    clock : Clock or None
    order : int
    name : str
        May end in ``*``, which Brian replaces with a number if the name is taken.

    Raises
    ------
    TypeError, ValueError
        Naming the argument.
    """
    if dt is not None:
        if not isinstance(dt, Quantity) or not have_same_dimensions(dt, second) or dt.ndim:
            raise TypeError(f"dt must be one time with a unit, such as 1*ms, got {dt!r}")
        if not 0 < float(dt) < math.inf:
            raise ValueError(f"dt must be above 0 and finite, got {dt!r}")
    # Brian's default clock is a proxy for the device's clock.
    if clock is not None and clock is not defaultclock and not isinstance(clock, Clock):
        raise TypeError(f"clock must be a brian2.Clock such as Clock(dt=1*ms), got {clock!r}")
    if dt is not None and clock is not None:
        raise ValueError("dt and clock must not be given together: a clock has its own dt")
    if isinstance(order, (bool, np.bool_)) or not isinstance(order, numbers.Integral):
        raise TypeError(f"order must be an integer, got {order!r}")
    if not isinstance(name, str):
        raise TypeError(f"name must be a string such as 'output', got {name!r}")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*\*?", name):
        raise ValueError(
            "name must be letters, digits and underscores, must not begin with a digit, and may "
            f"end in '*', got {name!r}"
        )
