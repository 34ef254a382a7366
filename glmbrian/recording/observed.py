"""The period in which all units of other packages' data were observed, as a recording."""

import math
from collections.abc import Iterable

import numpy as np
from brian2 import Quantity, second

from ..brian.arguments import seconds
from .periods import TIME_ROUNDING, spikes_between
from .recording import Recording


def observed_part(
    times: list[np.ndarray],
    intervals: list[np.ndarray],
    names: list[str],
    t_start: Quantity | float | None = None,
    t_stop: Quantity | float | None = None,
) -> Recording:
    """Return the recording of a period in which all units were observed.

    Parameters
    ----------
    times : list of array of float
        Spike times of each unit in seconds.
    intervals : list of array, shape (n, 2)
        When each unit was observed, in seconds; no interval means unknown.
    names : list of str
    t_start, t_stop : time, optional
        Spikes before and after are left out.  By default the times that all units share.

    Raises
    ------
    ValueError
        If a time is not finite, the beginning or the end is unknown, or a unit was not
        observed the whole time, and would look silent.
    """
    for name, of_unit in zip(names, times):
        if not np.all(np.isfinite(of_unit)):
            raise ValueError(
                f"the unit {name!r} has {np.count_nonzero(~np.isfinite(of_unit))} spike time(s) that "
                "are NaN or infinite; remove them from the data, or leave the unit out"
            )
    start = _observed_edge(0, "t_start", t_start, intervals, times)
    stop = _observed_edge(1, "t_stop", t_stop, intervals, times)
    for name, of_unit in zip(names, intervals):
        if len(of_unit) and not _is_observed(of_unit, start, stop):
            raise ValueError(
                f"the unit {name!r} has not been observed all the time from {start:g} s to {stop:g} s, "
                f"but from {_listed_intervals(of_unit)}, so it would look silent: choose t_start "
                "and t_stop within that time, leave the unit out, or correct the data"
            )
    if t_start is not None:
        times = spikes_between(times, start, math.inf)
    if t_stop is not None:
        times = spikes_between(times, -math.inf, stop)
    return Recording(times, start, stop, names)


def _observed_edge(edge, name, given, intervals, times):
    """Return the time `given`, or when the observation of all units begins (0) or ends (1)."""
    if given is not None:
        return float(seconds(given, name))
    if any(len(of_unit) != 1 for of_unit in intervals):
        spikes = np.concatenate(times)
        found = ""
        if spikes.size:
            found = f"; there are spikes from {spikes.min():g} s to {spikes.max():g} s"
        raise ValueError(
            f"{name} must be given: for some units the data do not say when they were observed, or list "
            f"several intervals{found}"
        )
    edges = [float(of_unit[0][edge]) for of_unit in intervals]
    if not all(abs(time - edges[0]) <= TIME_ROUNDING for time in edges):
        begins, ends = (np.stack([of_unit[0] for of_unit in intervals])[:, k] for k in (0, 1))
        within = f", within the time they share, {begins.max():g} s to {ends.min():g} s"
        raise ValueError(
            f"the units must have the same {name}, got {min(edges) * second} to "
            f"{max(edges) * second}; pass {name}{within if begins.max() < ends.min() else ''}"
        )
    return edges[0]


def _listed_intervals(intervals):
    return " and ".join(f"{begin:g} s to {end:g} s" for begin, end in intervals)


def _is_observed(intervals: Iterable, start: float, stop: float) -> bool:
    """Whether `intervals`, shape (n, 2), cover the time from `start` to `stop`."""
    reached = start
    for begin, end in sorted(map(tuple, intervals)):
        if begin <= reached + TIME_ROUNDING:
            reached = max(reached, end)
    return reached >= stop - TIME_ROUNDING
