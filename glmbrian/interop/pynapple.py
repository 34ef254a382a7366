"""Spike times from pynapple, whose recordings NeMoS uses."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..recording.observed import observed_part
from ..recording.recording import Recording
from .packages import imported

if TYPE_CHECKING:
    from brian2 import Quantity


def from_pynapple(
    spikes: Any,
    t_start: "Quantity | float | None" = None,
    t_stop: "Quantity | float | None" = None,
) -> Recording:
    """Return pynapple spike times as a `Recording`.

    Parameters
    ----------
    spikes : pynapple.TsGroup, Ts or Tsd
        A group of units, or one unit.  Pass binned counts (TsdFrame) to
        `Recording.from_trains`.  `fit_population`, and all that judges a fit, take both as they
        are, and also groups that were observed in several intervals.
    t_start, t_stop : time, optional
        When the observation begins and ends; spikes before and after are left out.
        By default the interval of ``time_support``, if there is one.

    Returns
    -------
    Recording
        Units are named by the keys of the group.

    Raises
    ------
    ImportError
        If pynapple is not installed.
    TypeError, ValueError
        If `spikes` is something else or holds no unit, or ``time_support`` says that the
        units were not observed the whole time from `t_start` to `t_stop`.

    Notes
    -----
    If a group is created without a ``time_support``, pynapple sets it to the time from the
    first to the last spike.  State when the units were observed:
    ``TsGroup(..., time_support=IntervalSet(0, 60))``.

    Examples
    --------
    >>> import glmbrian as glm
    >>> import pynapple as nap                                    # doctest: +SKIP
    >>> observed = nap.IntervalSet(0, 0.01)                       # doctest: +SKIP
    >>> spikes = nap.TsGroup(                                     # doctest: +SKIP
    ...     {3: nap.Ts([0.001, 0.004]), 8: nap.Ts([0.002])}, time_support=observed)
    >>> glm.interop.from_pynapple(spikes)                         # doctest: +SKIP
    <Recording: 2 units, 3 spikes, 0. s to 10. ms>
    """
    nap = imported("pynapple", "pynapple", "pynapple")
    if isinstance(spikes, (nap.Ts, nap.Tsd)):
        units = {"0": spikes}
    elif isinstance(spikes, nap.TsGroup):
        units = dict(spikes.items())
    else:
        raise TypeError(
            "spikes must be a TsGroup, Ts or Tsd of pynapple (pass a TsdFrame of counts to "
            f"Recording.from_trains), got {spikes!r}"
        )
    if not units:
        raise ValueError("spikes must hold at least one unit")
    observed = np.asarray(spikes.time_support.values, dtype=float).reshape(-1, 2)
    if len(observed) > 1 and (t_start is None or t_stop is None):
        raise ValueError(
            f"t_start must be given, and t_stop: time_support has several intervals, {observed.tolist()}, but "
            "a Recording covers only one. To fit all of them, pass the group itself to "
            "fit_population(spikes, dt=...), which keeps them apart"
        )
    return observed_part(
        [np.asarray(times.t, dtype=float) for times in units.values()],
        [observed] * len(units),
        [str(key) for key in units],
        t_start,
        t_stop,
    )
