"""The time step of recorded series, and of the neurons that are fitted to them.

A model in discrete time says what happens from one step to the next, and not how long a
step is: run with another one it is another model.  So the step goes along with the data.
"""

import math

import numpy as np
from brian2 import defaultclock, ms, second

from .validation import check_brian_arguments

#: Brian's own time step, which stands until somebody sets another.
_BRIANS_OWN = 0.1 * ms

#: Relative difference up to which two steps are one.
_ROUNDING = 1e-6


def time_step(dt):
    """Return a checked time step, such as ``1*ms``, as a Quantity, or None for None."""
    check_brian_arguments(dt=dt)
    return None if dt is None else float(dt) * second


def is_same_step(one, other):
    return math.isclose(float(one), float(other), rel_tol=_ROUNDING)


def in_steps(series, dt, has_mask=False):
    """Return series of data as arrays with one row a step, and the time step.

    Parameters
    ----------
    series : dict of str to array_like, Recording, Tsd or TsdFrame
        By the names that error messages use.
    dt : Quantity or None
        The step that recordings are binned in, and that all must have.  By default the
        one that the data themselves know.
    has_mask : bool
        Whether a mask of steps is given, and so may take care of gaps in the data.

    Returns
    -------
    arrays : dict of str to array_like
    dt : Quantity or None
        None if it is not given and the data do not know it.

    Raises
    ------
    TypeError, ValueError
        If `dt` is no time, data do not have this step or not the same one, a recording
        does not say what to bin it in, or recordings are not of the same time.
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
                f"{'is' if first_name == 'dt' else 'in steps of'} {first}; bin all in the same steps"
                + ("" if dt is not None else ", or give dt to bin recordings in")
            )
    dt = next(iter(known.values()), None)
    if recordings and dt is None:
        raise ValueError(
            f"dt must be given: {next(iter(recordings))} is a Recording, which is to be binned"
        )
    _check_same_time(recordings)
    return {
        name: value.trains(dt) if name in recordings else value for name, value in series.items()
    }, dt


def neuron_clock(dt, given):
    """Return ``dt=...`` for neurons whose model was fitted to steps of `dt`, if it is needed.

    Parameters
    ----------
    dt : Quantity or None
        The step of the model; None if it is unknown.
    given : dict
        What the user has said: ``dt`` or ``clock``, perhaps.

    Raises
    ------
    TypeError, ValueError
        If the neurons would have another step, or if nobody has said which.
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
                "population.neurons(dt=1*ms) if its steps are 1 ms; or fit_population(..., dt=1*ms), "
                "population.dt = 1*ms or defaultclock.dt = 1*ms before"
            )
        return {}
    else:
        return {} if is_same_step(defaultclock.dt, dt) else {"dt": dt}
    if dt is not None and not is_same_step(step, dt):
        raise ValueError(
            f"dt must be {dt}, the time step that this population was fitted at, got {step}; leave "
            "dt out, fit it to data in other steps, or set population.dt if its own is not right"
        )
    return {}


def require_step(group, dt, name):
    """Raise unless a Brian group has the time step `dt`, or `dt` is unknown."""
    if dt is not None and not is_same_step(group.clock.dt, dt):
        raise ValueError(
            f"{name} must have the time step {dt} that the population was fitted at, and "
            f"{group.name} is at {group.clock.dt}: create it with dt={dt}, or set "
            f"defaultclock.dt = {dt} and leave it there"
        )


def _is_recording(value):
    return callable(getattr(value, "trains", None)) and hasattr(value, "dt")


def _step_between_rows(value, name, has_mask):
    """Return the time step of a series that knows the time of each row, as pynapple's do."""
    times = getattr(value, "t", None)
    is_series = hasattr(value, "time_support") and hasattr(value, "values")
    if not is_series or np.ndim(times) != 1:
        return None
    intervals = np.diff(np.asarray(times, dtype=float))
    if intervals.size == 0:
        return None
    step = float(np.median(intervals))
    # Binned times are sums of steps, with all their rounding.
    if not has_mask and np.abs(intervals - step).max() > 1e-3 * step:
        raise ValueError(
            f"{name} must be in equal steps, but of its {intervals.size} steps some are of "
            f"{intervals.min() * second} and some of {intervals.max() * second}: fit one epoch, or "
            "give a mask that leaves out, after each gap, as many steps as the longest window"
        )
    return float(f"{step:.9g}") * second


def _check_same_time(recordings):
    spans = {name: (value.t_start, value.t_stop) for name, value in recordings.items()}
    for name, span in spans.items():
        first_name, first = next(iter(spans.items()))
        if any(abs(float(a) - float(b)) > 1e-9 for a, b in zip(span, first)):
            raise ValueError(
                f"{name} must be of the same time as {first_name}, {first[0]} to {first[1]}, got "
                f"{span[0]} to {span[1]}: take the part of both with recording.part(t_start, t_stop)"
            )
