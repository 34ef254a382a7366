"""What pynapple's objects say about times."""

from typing import Any

import numpy as np

from .data import Events, Observed, Samples, Source, is_instance_of, register_reader
from .requests import Requested, register_request
from .timeline import SECONDS, Timeline

_PACKAGE = "pynapple"


@register_reader
def read_series(value: Any, name: str) -> Source | None:
    """Read a Tsd, TsdFrame or TsdTensor, which have a time for each row."""
    if not is_instance_of(value, _PACKAGE, "Tsd", "TsdFrame", "TsdTensor"):
        return None
    timeline = Timeline.of_samples(value.t, SECONDS, name)
    begin = float(np.asarray(value.time_support.values).flat[0])
    return Samples(value.values, timeline, "{name}.get({start}, {stop})", begin)


@register_reader
def read_events(value: Any, name: str) -> Source | None:
    """Read a TsGroup, or the Ts of one unit: spike times in the intervals of their time_support."""
    if is_instance_of(value, _PACKAGE, "TsGroup"):
        units = dict(value.items())
    elif is_instance_of(value, _PACKAGE, "Ts"):
        units = {0: value}
    else:
        return None
    if not units:
        raise ValueError(f"{name} must hold at least one unit")
    intervals = np.asarray(value.time_support.values, dtype=float).reshape(-1, 2)
    if len(intervals) == 0 or not np.all(intervals[:, 0] < intervals[:, 1]):
        raise ValueError(
            f"{name} must have a time_support, the intervals in which its units were observed, got "
            f"{intervals.tolist()}: TsGroup(..., time_support=IntervalSet(start, end))"
        )
    times = [np.asarray(unit.t, dtype=float) for unit in units.values()]
    pieces = [
        Observed([own[(own >= begin) & (own <= end)] for own in times], begin, end)
        for begin, end in intervals.tolist()
    ]
    return Events(
        pieces,
        [str(key) for key in units],
        None,
        type(value).__name__,
        "{name}.restrict(nap.IntervalSet({start}, {stop}))",
    )


@register_request
def read_epochs(epochs: Any) -> list[Requested] | None:
    """Read an IntervalSet: times, of which both ends belong to the epoch, exactly."""
    if not is_instance_of(epochs, _PACKAGE, "IntervalSet"):
        return None
    return [
        Requested(begin, end, SECONDS, ends_after=True, exact=True)
        for begin, end in np.asarray(epochs.values, dtype=float).tolist()
    ]
