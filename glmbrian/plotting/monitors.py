"""What Brian's monitors have recorded, checked."""

import numpy as np
from brian2 import SpikeMonitor, ms
from brian2.groups.subgroup import Subgroup


def recorded_spikes(monitor, name):
    """Return the times in ms and the neurons of the spikes that a monitor recorded.

    `name` is that of the argument, for messages.
    """
    if not isinstance(monitor, SpikeMonitor):
        raise TypeError(f"{name} must be a SpikeMonitor, got {monitor!r}")
    if not monitor.record:
        raise ValueError(f"{name} must be a SpikeMonitor with record=True: this one only counts")
    return np.asarray(monitor.t / ms), np.asarray(monitor.i)


def place(group):
    """Return the whole group that a group is from, and where in it its neurons are."""
    if isinstance(group, Subgroup):
        return group.source, (group.start, group.stop)
    return group, (0, len(group))
