"""How long a Brian monitor has observed its group."""

import math
from typing import Any

import numpy as np
from brian2 import SpikeMonitor, second

from ..brian.arguments import seconds
from ..brian.internals import time_simulated
from ..support.validation import warn
from ..timed.timeline import STEP_ROUNDING


def require_simulated(monitor: SpikeMonitor, t_start: Any, t_stop: Any) -> None:
    """Raise if a monitor cannot have observed the time from `t_start` to `t_stop`."""
    start, stop = float(seconds(t_start, "t_start")), float(seconds(t_stop, "t_stop"))
    step = float(monitor.clock.dt)
    if start < -STEP_ROUNDING * step:
        raise ValueError(f"t_start must be 0 s or later, when simulations begin, got {start * second}")
    until, is_certain = time_simulated(monitor)
    # A run ends after the step in which its duration ends.
    beyond = math.ceil(until / step - STEP_ROUNDING) * step
    if stop <= beyond + STEP_ROUNDING * step:
        return
    spikes = np.asarray(monitor.t)
    if is_certain or not np.any(spikes >= until):
        by_hand = (
            ""
            if is_certain
            else (
                " (if another network has used its clock since, this time may be wrong: keep the monitor's own "
                "network until you make the Recording)"
            )
        )
        raise ValueError(
            f"t_stop must be at most {until * second}, when the run of the monitor's network ended, got "
            f"{stop * second}: time that was not simulated would count as silence; pass network.t{by_hand}"
        )
    warn(
        f"t_stop is {stop * second}, but it is not known whether the monitor's network, which no longer "
        f"exists, has run until then, since another network has used its clock. The last spike is at "
        f"{spikes.max() * second}; time that was not simulated would count as silence. Keep the network until "
        "you make the Recording",
        RuntimeWarning,
    )
