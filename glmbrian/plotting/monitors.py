"""What Brian's monitors have recorded, checked."""

from typing import Any

import numpy as np
from brian2 import SpikeMonitor, ms


def recorded_spikes(monitor: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the times in ms and the neurons of the spikes that a monitor recorded.

    `name` is the name of the argument, for error messages.
    """
    if not isinstance(monitor, SpikeMonitor):
        raise TypeError(f"{name} must be a SpikeMonitor, got {monitor!r}")
    if not monitor.record:
        raise ValueError(f"{name} must be a SpikeMonitor with record=True: this one only counts")
    return np.asarray(monitor.t / ms), np.asarray(monitor.i)
