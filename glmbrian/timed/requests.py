"""Epochs as people write them, and the steps that they mean."""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from brian2 import Quantity, second

from ..brian.arguments import seconds
from ..support.validation import integer
from .timeline import DATES, DATES_IN_ZONE, SECONDS, Clock, Timeline


@dataclass(frozen=True)
class Requested:
    """An epoch from one time up to another.

    Attributes
    ----------
    start, stop : int or float
    clock : Clock
        What they are counted in.
    starts_after, ends_after : bool
        Whether a step at `start` does not belong to the epoch, and one at `stop` does.
    exact : bool
        Whether times that differ by rounding are different.
    """

    start: Any
    stop: Any
    clock: Clock
    starts_after: bool = False
    ends_after: bool = False
    exact: bool = False


#: Functions that return the epochs in an object of a package, or None.
_READERS: list[Callable[[Any], list[Requested] | None]] = []


def register_request(reader: Callable[[Any], list[Requested] | None]) -> Callable:
    """Add a reader of epochs."""
    _READERS.append(reader)
    return reader


def steps_of_epochs(
    epochs: Any, n_steps: int, dt: Quantity | None, timelines: Sequence[Timeline] = ()
) -> list[tuple[int, int]]:
    """Return epochs as pairs of steps, sorted, each the first step and the step after the last.

    Parameters
    ----------
    epochs : sequence of (start, stop), IntervalSet, IntervalIndex, or None
        In steps; or in times if the data have times, or else from 0 if the step `dt` is known.  None
        for all steps.
    n_steps : int
    dt : Quantity or None
    timelines : sequence of Timeline
        Of the data that know their times.
    """
    if epochs is None:
        return [(0, n_steps)]
    if not timelines and dt is not None:
        timelines = [Timeline.of_bins([0.0], [n_steps], float(dt))]
    requested = next((found for read in _READERS if (found := read(epochs)) is not None), None)
    steps = []
    if requested is not None:
        if not requested:
            raise ValueError(f"epochs must be one or more intervals, got {epochs!r}")
        for number, each in enumerate(requested):
            steps.append(_steps_of(each, f"epochs[{number}]", n_steps, timelines))
    else:
        for number, pair in enumerate(_pairs(epochs)):
            name = f"epochs[{number}]"
            start, stop = (_step_at(value, name, timelines) for value in pair)
            _require_order(name, pair, start, stop, n_steps, timelines)
            steps.append((start, stop))
    order = sorted(range(len(steps)), key=steps.__getitem__)
    for earlier, later in zip(order[:-1], order[1:]):
        if steps[later][0] < steps[earlier][1]:
            raise ValueError(
                f"epochs must not overlap, but epochs[{earlier}] ends at step {steps[earlier][1]} and "
                f"epochs[{later}] begins at step {steps[later][0]}"
            )
    return [steps[number] for number in order]


def _pairs(epochs):
    try:
        pairs = [tuple(pair) for pair in epochs]
    except TypeError:
        pairs = []
    if isinstance(epochs, str) or any(len(pair) != 2 for pair in pairs):
        pairs = []
    if not pairs:
        raise ValueError(f"epochs must be one or more pairs (start, stop), got {epochs!r}")
    return pairs


def _require_order(name, pair, start, stop, n_steps, timelines):
    if 0 <= start < stop <= n_steps:
        return
    if all(clock_time(value, name) is not None for value in pair):
        text = " to ".join(map(str, pair))
        raise ValueError(
            f"{name} must have at least one step of the data{_span(timelines)}, got {text}"
        )
    raise ValueError(
        f"{name} must begin at step 0 or later, and end after its beginning, by step {n_steps} "
        f"(the end of the data); got {start} to {stop}"
    )


def _steps_of(requested, name, n_steps, timelines):
    """Return the steps of an epoch whose ends may or may not belong to it."""
    timeline = _timeline_for(requested.clock, name, timelines, requested.exact)
    start = timeline.row(requested.start, requested.starts_after, requested.exact)
    stop = timeline.row(requested.stop, requested.ends_after, requested.exact)
    for at, time in (start, requested.start), (stop, requested.stop):
        if at is None:
            _refuse_time(name, requested.clock.text(time), timeline, timelines)
    if not 0 <= start < stop <= n_steps:
        raise ValueError(
            f"{name} must have at least one step of the data{_span(timelines)}, got "
            f"{requested.clock.text(requested.start)} to {requested.clock.text(requested.stop)}"
        )
    return start, stop


def _step_at(value, name, timelines):
    """Return the step that a number is, or the first at a time or later."""
    found = clock_time(value, name)
    if found is None:
        if isinstance(value, (float, np.floating)):
            raise TypeError(
                f"{name}: start and stop must be steps, as whole numbers, or times with a unit, such as "
                f"{value} * second, got {value!r}; of pynapple, pass the IntervalSet itself and not its values"
            )
        if isinstance(value, str):
            raise TypeError(
                f"{name}: start and stop must be steps, as whole numbers, times with a unit, or dates, such as "
                f"pandas.Timestamp({value!r}) with the time zone of the data, got the string {value!r}"
            )
        return integer(value, f"{name}: start and stop", -(2**62))
    time, clock = found
    timeline = _timeline_for(clock, name, timelines)
    step = timeline.row(time)
    if step is None:
        _refuse_time(name, value, timeline, timelines)
    return step


def _timeline_for(clock, name, timelines, exact=False):
    """Return the timeline that decides which steps a time means."""
    if not timelines:
        raise ValueError(f"{name} has times, so dt must be given: the duration of a step, such as 1*ms")
    if timelines[0].clock != clock:
        raise ValueError(
            f"{name} must have the same kind of times as the data, which have {timelines[0].clock.name}"
            f"{_span(timelines)}; got {clock.name}"
        )
    # Those of samples carry the times that pynapple would select by; bins have edges.
    wanted = [each for each in timelines if (each.samples is not None) == exact]
    return (wanted or list(timelines))[0]


def _refuse_time(name, value, timeline, timelines):
    if timeline.samples is None:
        begin = timeline.clock.text(timeline.starts[0])
        raise ValueError(
            f"{name} must begin and end with a step of {timeline.dt * second}, counted from {begin}"
            f"{_span(timelines)}, got {value}"
        )
    raise ValueError(f"{name} must lie within the data{_span(timelines)}, got {value}")


def _span(timelines):
    return f" (the data cover {timelines[0].described()})" if timelines else ""


def clock_time(value: Any, name: str) -> tuple[Any, Clock] | None:
    """Return a time, and what it is counted in; None if `value` is not a time.

    Parameters
    ----------
    value : object
        A Brian time, or a date or a duration of Python, NumPy or pandas.
    name : str
        For error messages.
    """
    if isinstance(value, Quantity):
        return float(seconds(value, name)), SECONDS
    if isinstance(value, (datetime.timedelta, np.timedelta64)):
        exact = value.to_timedelta64() if hasattr(value, "to_timedelta64") else np.timedelta64(value)
        return _in_nanoseconds(exact, "timedelta64[ns]", name) / 1e9, SECONDS
    if isinstance(value, (datetime.datetime, np.datetime64)):
        clock, date = DATES, value
        if isinstance(date, datetime.datetime) and date.tzinfo is not None:
            date, clock = date.astimezone(datetime.timezone.utc).replace(tzinfo=None), DATES_IN_ZONE
        exact = date.to_datetime64() if hasattr(date, "to_datetime64") else np.datetime64(date)
        return _in_nanoseconds(exact, "datetime64[ns]", name), clock
    return None


def _in_nanoseconds(exact, kind, name):
    if np.isnat(exact):
        raise ValueError(f"{name} must not be NaT")
    try:
        return int(exact.astype(kind).astype(np.int64))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be a time in nanoseconds: {error}") from None
