"""How the cost of training grows along each axis, and how far that is from linear."""

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from . import workload as workloads
from .interleaved import spread, take_turns
from .package import Package

#: Values of each axis; those of a quick run are every other one.
AXES = {
    "inputs": (64, 256, 784, 2500, 10_000),
    "classes": (2, 5, 10, 20, 50, 100),
    "steps": (2, 4, 8, 16, 32),
    "images": (1000, 4000, 16_000, 60_000),
    "spike fraction": (0.01, 0.02, 0.05, 0.1, 0.2),
    "batch": (1, 4, 16, 64, 256),
    "replicas": (1, 2, 5, 10, 20),
}

_PER_PRESENTATION = "microseconds per presentation"

#: What is measured for each axis.  The rest of the workload is N_Y = 2, T = K = 8, 784
#: inputs that spike in 5% of the steps, and 1,000 images.
MEASURES = {
    **{axis: _PER_PRESENTATION for axis in AXES},
    "images": "seconds per epoch",
    "replicas": "microseconds per presentation of all replicas",
    "threads": "presentations per second",
}


def _contender(axis, value):
    if axis == "batch":
        return Package(workloads.random_images(), batch_size=value)
    if axis == "replicas":
        return Package(workloads.random_images(), n_replicas=value)
    argument = {
        "inputs": "n_inputs",
        "classes": "n_classes",
        "steps": "n_steps",
        "images": "n_images",
        "spike fraction": "spike_fraction",
    }[axis]
    return Package(workloads.random_images(**{argument: value}))


def growth(quick, n_rounds, seconds, progress):
    """Measure every axis.

    Returns
    -------
    list of dict
        One per axis: ``axis``, ``measure``, ``values``, ``costs`` (a `spread` each), and
        ``exponents``, the slope of log cost over log value between neighbours and, last,
        over the whole axis; 1 is linear.
    """
    rows = []
    for axis, values in AXES.items():
        values = values[::2] if quick else values
        progress(f"growth with {axis}: compiling")
        contenders = {value: _contender(axis, value) for value in values}
        times = take_turns(contenders, n_rounds, seconds, progress, f"growth with {axis}, ")
        factor = {
            "images": lambda value: 1e-6 * value,
            "replicas": lambda value: value,
        }.get(axis, lambda value: 1)
        costs = [spread([factor(value) * micros for micros in times[value]]) for value in values]
        rows.append(_row(axis, values, costs))
    rows.append(_threads(n_rounds, seconds, progress))
    return rows


def _row(axis, values, costs):
    medians = [cost["median"] for cost in costs]
    pairs = [*zip(range(len(values) - 1), range(1, len(values))), (0, len(values) - 1)]
    exponents = [
        math.log(medians[j] / medians[i]) / math.log(values[j] / values[i]) for i, j in pairs if i != j
    ]
    return {
        "axis": axis,
        "measure": MEASURES[axis],
        "values": list(values),
        "costs": costs,
        "exponents": exponents,
    }


def _threads(n_rounds, seconds, progress):
    """Fit in several threads at once, each with its own program."""
    values = [n for n in (1, 2, 4, 8, 16, 32) if n <= (os.cpu_count() or 1)]
    workload = workloads.random_images()
    contenders = [Package(workload) for _ in range(values[-1])]
    n_presentations = 1000 * max(1, round(seconds / 0.005))
    rates = {value: [] for value in values}
    for n in range(n_rounds):
        for value in values:
            progress(f"growth with threads, round {n + 1} of {n_rounds}: {value}")
            with ThreadPoolExecutor(value) as pool:
                began = time.perf_counter()
                train = partial(Package.train, n_presentations=n_presentations, seed=n)
                list(pool.map(train, contenders[:value]))
            done = sum(one.n_presentations for one in contenders[:value])
            rates[value].append(done / (time.perf_counter() - began))
    return _row("threads", values, [spread(rates[value]) for value in values])
