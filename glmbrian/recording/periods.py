"""Periods of a recording, whose edges may be off by rounding."""

from collections.abc import Sequence

import numpy as np

#: How far rounding may put a time beyond the start or the end, in seconds.
TIME_ROUNDING = 1e-9


def spikes_between(times: Sequence, start: float, stop: float) -> list[np.ndarray]:
    """Return the spike times of each unit from `start` up to `stop`, in seconds."""
    first, beyond = start - TIME_ROUNDING, stop - TIME_ROUNDING
    return [of_unit[(of_unit >= first) & (of_unit < beyond)] for of_unit in map(np.asarray, times)]
