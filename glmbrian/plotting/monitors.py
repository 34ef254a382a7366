"""What Brian's monitors have recorded, checked."""

from typing import Any

import numpy as np
from brian2 import SpikeMonitor, ms
from brian2.groups.subgroup import Subgroup


def recorded_spikes(monitor: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the times in ms and the neurons of the spikes that a monitor recorded.

    `name` is the name of the argument, for error messages.
    """
    if not isinstance(monitor, SpikeMonitor):
        raise TypeError(f"{name} must be a SpikeMonitor, got {monitor!r}")
    if not monitor.record:
        raise ValueError(f"{name} must be a SpikeMonitor with record=True: this one only counts")
    return np.asarray(monitor.t / ms), np.asarray(monitor.i)


def source_and_range(group: Any) -> tuple[Any, tuple[int, int]]:
    """Return the whole group of a (sub)group, and the range of its neurons in it."""
    if isinstance(group, Subgroup):
        return group.source, (group.start, group.stop)
    return group, (0, len(group))
