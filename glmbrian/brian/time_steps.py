"""The time step of recorded series, and of neurons fitted to them.

A discrete-time model says what happens from one step to the next, not how long a step is:
a different step means a different model.  So data and models keep their step.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from brian2 import Quantity, defaultclock, ms, second

from .arguments import check_brian_arguments

#: Brian's default time step, until the user sets another.
_BRIANS_OWN = 0.1 * ms

#: Relative difference up to which two steps count as the same.
_ROUNDING = 1e-6


def time_step(dt: Any) -> Quantity | None:
    """Return a checked time step, such as ``1*ms``, as a Quantity, or None for None."""
    check_brian_arguments(dt=dt)
    return None if dt is None else float(dt) * second


def is_same_step(one: Any, other: Any) -> bool:
    """Return whether two time steps are equal up to rounding."""
    return math.isclose(float(one), float(other), rel_tol=_ROUNDING)


def in_steps(
    series: Mapping[str, Any],
    dt: Quantity | None,
    has_mask: bool = False,
    as_events: bool = False,
) -> tuple[dict[str, Any], Quantity | None]:
    """Return data series as arrays with one row per step, and the time step.

    Parameters
    ----------
    series : dict of str to array_like, Recording, Tsd or TsdFrame
        Keyed by their names for error messages.
    dt : Quantity or None
        The step for binning recordings, which all other data must have.  By default the
        step that the data specify.
    has_mask : bool
        Whether the user has given a mask of steps, which can exclude gaps in the data.
    as_events : bool
        Whether to return recordings as a tuple, the steps in which each unit spikes and the number of
        steps, and not as arrays.

    Returns
    -------
    arrays : dict of str to array_like
    dt : Quantity or None
        None if it is neither given nor specified by the data.

    Raises
    ------
    TypeError, ValueError
        If `dt` is not a time; if the data have different steps, or a step other than `dt`; if
        there is no step for binning a recording; or if recordings do not cover the same time.
    """
    dt = time_step(dt)
    recordings = {name: value for name, value in series.items() if _is_recording(value)}
    known = {} if dt is None else {"dt": dt}
    for name, value in series.items():
        own = _step_between_rows(value, name, has_mask)
        if own is None and dt is None and name in recordings:
            own = value.dt
        if own is not None:
            known[name] = own
    for name, step in known.items():
        first_name, first = next(iter(known.items()))
        if not is_same_step(step, first):
            raise ValueError(
                f"{name} is in steps of {step}, and {first_name} "
                f"{'is' if first_name == 'dt' else 'in steps of'} {first}; bin all data in the same steps"
                + ("" if dt is not None else ", or give dt to bin recordings in")
            )
    dt = next(iter(known.values()), None)
    if recordings and dt is None:
        raise ValueError(
            f"dt must be given: {next(iter(recordings))} is a Recording, which needs a step for binning"
        )
    _check_same_time(recordings)

    def binned(recording):
        return recording.steps(dt) if as_events else recording.trains(dt)

    return {name: binned(value) if name in recordings else value for name, value in series.items()}, dt


def neuron_clock(dt: Quantity | None, given: Mapping[str, Any]) -> dict[str, Quantity]:
    """Return ``dt=...`` for neurons whose model was fitted with step `dt`, if needed.

    Parameters
    ----------
    dt : Quantity or None
        The model's step; None if unknown.
    given : dict
        The user's keywords, perhaps with ``dt`` or ``clock``.

    Raises
    ------
    TypeError, ValueError
        If the neurons would have a different step, or if the step is unknown.
    """
    check_brian_arguments(given.get("dt"), given.get("clock"))
    if given.get("dt") is not None:
        step = given["dt"]
    elif given.get("clock") is not None:
        step = given["clock"].dt
    elif dt is None:
        if is_same_step(defaultclock.dt, _BRIANS_OWN):
            raise ValueError(
                "dt must be given: this population does not know the time step that it was fitted "
                "at, and Brian's default clock still has its own 0.1 ms. Write "
                "population.neurons(dt=1*ms) if its steps are 1 ms; or, before this, "
                "fit_population(..., dt=1*ms), population.dt = 1*ms or defaultclock.dt = 1*ms"
            )
        return {}
    else:
        return {} if is_same_step(defaultclock.dt, dt) else {"dt": dt}
    if dt is not None and not is_same_step(step, dt):
        raise ValueError(
            f"dt must be {dt}, the time step that this population was fitted at, got {step}; leave "
            "dt out, fit to data in other steps, or correct population.dt"
        )
    return {}


def require_step(group: Any, dt: Quantity | None, name: str) -> None:
    """Raise unless a Brian group has the time step `dt`, or `dt` is unknown."""
    if dt is not None and not is_same_step(group.clock.dt, dt):
        raise ValueError(
            f"{name} must have the time step {dt} that the population was fitted at, but "
            f"{group.name} has {group.clock.dt}: create it with dt={dt}, or set "
            f"defaultclock.dt = {dt} and do not change it afterwards"
        )


def _is_recording(value):
    return callable(getattr(value, "trains", None)) and hasattr(value, "dt")


def _step_between_rows(value, name, has_mask):
    """Return the time step of a series with a time for each row, such as pynapple's."""
    times = getattr(value, "t", None)
    is_series = hasattr(value, "time_support") and hasattr(value, "values")
    if not is_series or np.ndim(times) != 1:
        return None
    intervals = np.diff(np.asarray(times, dtype=float))
    if intervals.size == 0:
        return None
    step = float(np.median(intervals))
    # Times of bins are sums of steps, with accumulated rounding errors.
    if not has_mask and np.abs(intervals - step).max() > 1e-3 * step:
        raise ValueError(
            f"{name} must be in equal steps, but its {intervals.size} steps are from "
            f"{intervals.min() * second} to {intervals.max() * second} long: fit one epoch, or "
            "give a mask that leaves out, after each gap, as many steps as the longest window"
        )
    return float(f"{step:.9g}") * second


def _check_same_time(recordings):
    spans = {name: (value.t_start, value.t_stop) for name, value in recordings.items()}
    for name, span in spans.items():
        first_name, first = next(iter(spans.items()))
        if any(abs(float(a) - float(b)) > 1e-9 for a, b in zip(span, first)):
            raise ValueError(
                f"{name} must cover the same time as {first_name}, {first[0]} to {first[1]}, got "
                f"{span[0]} to {span[1]}: take the common part with recording.part(t_start, t_stop)"
            )
