"""Spike times in steps."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from brian2 import second
from numpy.typing import NDArray

from ..support.validation import choice
from .timeline import STEP_ROUNDING

_COLLISIONS = ("error", "clip")

#: The most steps in a recording; more would exhaust the memory.
MOST_STEPS = 2**31


def spike_steps(
    times: Sequence[Any],
    start: float,
    stop: float,
    dt: float,
    names: Sequence[str],
    collisions: str = "error",
) -> tuple[list[NDArray[np.int64]], int]:
    """Return the steps in which each unit spikes, and the number of steps.

    Parameters
    ----------
    times : sequence of array of float
        Sorted spike times of each unit in seconds.
    start, stop : float
        When the observation begins and ends.
    dt : float
        Duration of a step.
    names : sequence of str
        Of the units, for messages.
    collisions : {"error", "clip"}
        What to do if a unit spikes more than once in a step.
    """
    choice(collisions, "collisions", _COLLISIONS)
    whole = (stop - start) / dt - STEP_ROUNDING
    if not whole < MOST_STEPS:
        raise ValueError(
            f"dt must be longer: from {start * second} to {stop * second} there are {whole:.3g} "
            f"steps of {dt * second}, but at most {MOST_STEPS} are allowed"
        )
    n_steps = max(1, math.ceil(whole))
    steps, colliding = [], {}
    for name, own in zip(names, times):
        of_unit = np.floor((np.asarray(own) - start) / dt + STEP_ROUNDING)
        of_unit, counts = np.unique(
            np.minimum(of_unit, n_steps - 1).astype(np.int64), return_counts=True
        )
        steps.append(of_unit)
        if np.any(counts > 1):
            colliding[name] = np.count_nonzero(counts > 1)
    if colliding and collisions == "error":
        name, n_steps_shared = next(iter(colliding.items()))
        interval = min(np.diff(own).min() for own in map(np.asarray, times) if len(own) > 1)
        smaller = f"use a smaller dt (the shortest interval between spikes is {interval * second}), or "
        others = f", and so do {len(colliding) - 1} other unit(s)" if len(colliding) > 1 else ""
        raise ValueError(
            f"a GLM neuron spikes at most once per step, but with dt = {dt * second} unit {name!r} "
            f"has several spikes in {n_steps_shared} step(s){others}: "
            f"{smaller if interval > 0 else ''}keep one spike per step, Recording.trains(dt, collisions='clip')"
        )
    return steps, n_steps
