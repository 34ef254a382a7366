"""Binned trains as spike times: an array, a sparse matrix, or a series that has times."""

import math
from typing import Any

import numpy as np
from brian2 import Quantity, second

from ..brian.arguments import positive_seconds, seconds
from ..support.validation import binary_array
from ..timed.data import EventSeries, Samples, aligned, source_of
from ..timed.sparse import is_sparse, steps_of_sparse
from ..timed.timeline import STEP_ROUNDING, Timeline


def read_trains(
    trains: Any, dt: Quantity | float | None, t_start: Quantity | float | None
) -> tuple[list[np.ndarray], float, float, Quantity]:
    """Return spike times and the beginning and end of the trains, all in seconds, and the step.

    For the arguments and errors see `Recording.from_trains`.
    """
    dt = None if dt is None else positive_seconds(dt, "dt") * second
    source = source_of(trains, "trains")
    together = aligned({"trains": trains}, dt)
    values, dt = together.values["trains"], together.dt
    if is_sparse(values):
        values = steps_of_sparse(values, "trains")
    if isinstance(values, EventSeries):
        steps, n_steps = values.steps, values.n_steps
    else:
        binned = binary_array(values, "trains", ("n_steps", "n_units"))
        steps, n_steps = [np.flatnonzero(train) for train in binned.T], len(binned)
    if dt is None:
        raise TypeError("dt must be given: the duration of a step, such as 1*ms")
    if not steps:
        raise ValueError(f"trains must hold at least one unit, got shape ({n_steps}, 0)")
    given = None if t_start is None else float(seconds(t_start, "t_start"))
    duration, start = float(dt), given or 0.0
    if "trains" in together.timelines:
        observed = source.observed_from if isinstance(source, Samples) else None
        start = _start_of(together.timelines["trains"], duration, given, observed)
    stop = start + n_steps * duration
    if not math.isfinite(stop):
        raise ValueError(f"dt must be shorter: {n_steps} steps of {duration:g} s have no finite end")
    return [start + of_unit * duration for of_unit in steps], start, stop, dt


def _start_of(timeline: Timeline, dt: float, given: float | None, observed: float | None) -> float:
    """Return when the first step of trains with times begins."""
    if timeline.clock.is_calendar:
        raise ValueError(
            "trains must have times counted from a start, since a Recording has no dates: write "
            "trains.set_axis(trains.index - trains.index[0])"
        )
    if timeline.breaks.size:
        gap = int(timeline.breaks[0])
        raise ValueError(
            "trains must be in equal steps, without gaps, since a Recording is observed all the time, but "
            f"there is a gap between {timeline.time(gap - 1) * second} and {timeline.time(gap) * second}: "
            "make a Recording of each part"
        )
    first = float(timeline.time(0))
    half = dt / 2
    rounding = STEP_ROUNDING + 4 * np.spacing(abs(first)) / dt
    if timeline.samples is None:
        begins = [first]
    elif given is not None:
        within = -rounding <= (first - given) / dt < 1 - rounding
        begins = [given] if within else [first - half, first]
    elif observed is not None and abs(first - half - observed) <= rounding * dt:
        begins = [observed]
    else:
        phase = first / dt % 1.0
        if abs(phase - 0.5) <= rounding:
            begins = [round(first / dt - 0.5) * dt]
        elif min(phase, 1 - phase) <= rounding:
            begins = [first]
        else:
            begins = [first - half, first]
    if len(begins) > 1:
        raise ValueError(
            f"t_start must be the beginning of the first step. The first time in trains is {first * second}: give "
            f"{begins[0] * second} if that is the middle of the step, or {begins[1] * second} if it is its "
            f"beginning" + ("" if given is None else f", got {given * second}")
        )
    if given is not None and abs(begins[0] - given) > rounding * dt:
        raise ValueError(
            f"t_start must be when trains begins, {begins[0] * second}, or be left out, got {given * second}"
        )
    return begins[0]
