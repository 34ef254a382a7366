"""What the indices of pandas say about times, also those of xarray."""

from typing import Any

import numpy as np

from .data import Samples, Source, is_instance_of, register_reader
from .requests import Requested, clock_time, register_request
from .timeline import DATES, DATES_IN_ZONE, SECONDS, Timeline

_CUT = "{name}.loc[{start}:{stop}]"
_CUT_TIMEDELTA = "{name}.loc[pd.Timedelta({start}, 's'):pd.Timedelta({stop}, 's')]"
_CUT_IN_ZONE = "{name}.loc[pd.Timestamp({start}, tz='UTC'):pd.Timestamp({stop}, tz='UTC')]"


@register_reader
def read_frame(value: Any, name: str) -> Source | None:
    """Read a Series or DataFrame with times or dates as its index; other indices are no times."""
    if is_instance_of(value, "pandas", "Series", "DataFrame"):
        return _read(value, value.index, name)
    if is_instance_of(value, "xarray", "DataArray") and value.ndim:
        index = value.indexes.get(value.dims[0])
        return None if index is None else _read(value.values, index, name)
    return None


def _read(values, index, name):
    if is_instance_of(index, "pandas", "PeriodIndex"):
        index = index.to_timestamp()
    if is_instance_of(index, "pandas", "TimedeltaIndex"):
        times = _nanoseconds(index, "timedelta64[ns]", name) / 1e9
        return Samples(values, Timeline.of_samples(times, SECONDS, name, 1e-9), _CUT_TIMEDELTA)
    if is_instance_of(index, "pandas", "DatetimeIndex"):
        clock, cut = DATES, _CUT
        if index.tz is not None:
            index, clock, cut = index.tz_convert(None), DATES_IN_ZONE, _CUT_IN_ZONE
        times = _nanoseconds(index, "datetime64[ns]", name)
        return Samples(values, Timeline.of_samples(times, clock, name, 1e-9), cut)
    return None


def _nanoseconds(index, kind, name):
    if index.hasnans:
        raise ValueError(
            f"{name} must have a time for each row, but its index has NaT: leave out these rows"
        )
    own = index.to_numpy()
    times = own.astype(kind)
    if not np.array_equal(times.astype(own.dtype), own):
        raise ValueError(
            f"{name} must have times in whole nanoseconds, at most 292 years from 1970 or from their start"
        )
    return times.astype(np.int64)


@register_request
def read_intervals(epochs: Any) -> list[Requested] | None:
    """Read an IntervalIndex of times or dates, or a list of Intervals."""
    if not is_instance_of(epochs, "pandas", "IntervalIndex"):
        if not isinstance(epochs, (list, tuple)) or not epochs:
            return None
        if not all(is_instance_of(each, "pandas", "Interval") for each in epochs):
            return None
    found = []
    for number, interval in enumerate(epochs):
        name = f"epochs[{number}]"
        ends = [clock_time(end, name) for end in (interval.left, interval.right)]
        left, right = ends
        if left is None or right is None or left[1] != right[1]:
            raise TypeError(
                f"{name} must be an interval between two times or two dates, got {interval!r}"
            )
        (start, clock), (stop, _) = left, right
        found.append(
            Requested(start, stop, clock, not interval.closed_left, ends_after=interval.closed_right)
        )
    return found
