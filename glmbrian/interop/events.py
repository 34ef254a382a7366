"""Event data sets, from event cameras and silicon cochleas for example, in the format of Tonic.

A sample is ``(events, label)``.  The events are a structured array with one row per event: its
pixel (or frequency channel) ``x``, ``y``, its time ``t`` (usually in microseconds) and its polarity
``p``.  The format is plain NumPy, so Tonic itself is not needed.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from brian2 import Quantity, us

from ..brian.arguments import positive_seconds, seconds
from ..support.validation import check_shape, integer

#: A time this close to the end of its step, in steps, belongs to the next one.  Integer times are
#: exact, so only the step is rounded; real times, perhaps in single precision, are rounded too.
_STEP_ROUNDING = {"i": 1e-9, "u": 1e-9, "f": 1e-3}


def from_tonic(
    dataset: Iterable[tuple[np.ndarray, Any]],
    n_steps: int,
    dt: Quantity,
    sensor_size: tuple[int, int, int] | None = None,
    pool: int = 1,
    t_start: Quantity | None = None,
    unit: Quantity | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return an event data set as spike trains for `GLMClassifier`.

    Parameters
    ----------
    dataset : iterable of (events, label)
        A Tonic data set (without a transform that makes frames), a list or a
        generator.  Events are structured arrays with the fields ``x`` and ``t`` and,
        where the sensor has rows or polarities, ``y`` and ``p``.  There may be any number
        of events, in any order.  Labels are numbers or strings.
    n_steps : int
        Steps per presentation.
    dt : time
        Duration of a step, with a Brian unit.  Events after ``n_steps * dt`` are left out;
        a shorter sample ends in silence.
    sensor_size : (int, int, int), optional
        Width W, height H and number of polarities P (``x`` is below W, ``y`` below H,
        ``p`` below P); by default the data set's own ``sensor_size``.  With P = 1 the
        value of ``p`` does not matter, but must be the same within a sample.
    pool : int
        Pixels are pooled in squares with this side; the squares at the right and lower
        edges may be cut off.
    t_start : time, optional
        When the first step begins, with a Brian unit; earlier events are left out.  By
        default it begins at the first event of each sample.
    unit : time, optional
        The unit of the times ``t``, such as ``1*us`` or ``1*second``.  Integers are in
        microseconds by default, as in Tonic; for real numbers the unit must be given.

    Returns
    -------
    X : ndarray of uint8, shape (n, n_steps, n_inputs)
        0 and 1; several events in a step give one spike.  With pooled sizes
        ``H = ceil(H / pool)`` and ``W = ceil(W / pool)`` and pooled coordinates, the input
        of an event is ``(p * H + y) * W + x``.  So ``X.reshape(n, n_steps, P, H, W)`` holds
        images, laid out as by Tonic's ``ToFrame(time_window=dt)``.
    y : ndarray, shape (n,)
        The labels.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range, or a sample is not as
        described above.  The message names the sample.

    Notes
    -----
    `X` takes one byte per element, and the whole data set is read.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> from brian2 import ms
    >>> events = np.array([(0, 1, 0, 1), (1, 0, 1500, 0)],
    ...                   dtype=[("x", int), ("y", int), ("t", int), ("p", bool)])
    >>> X, y = glm.interop.from_tonic([(events, "left")], 2, 1 * ms, sensor_size=(2, 2, 2))
    >>> X
    array([[[0, 0, 0, 0, 0, 0, 1, 0],
            [0, 1, 0, 0, 0, 0, 0, 0]]], dtype=uint8)
    """
    n_steps, pool = integer(n_steps, "n_steps"), integer(pool, "pool")
    # A plain number, meant in the microseconds of the events, would be read as seconds.
    for name, value in (("dt", dt), ("t_start", t_start), ("unit", unit)):
        if value is not None and not isinstance(value, Quantity):
            raise TypeError(f"{name} must be a time with a Brian unit, such as 10 * ms, got {value!r}")
    per_second = 1 / positive_seconds(us if unit is None else unit, "unit")
    step = positive_seconds(dt, "dt") * per_second
    start = None if t_start is None else float(seconds(t_start, "t_start")) * per_second
    width, height, n_polarities = _check_sensor_size(dataset, sensor_size)
    pool = min(pool, max(width, height))
    samples = _as_sequence(dataset)
    if len(samples) == 0:
        raise ValueError("dataset must hold at least one sample")

    shape = (len(samples), n_steps, n_polarities, -(-height // pool), -(-width // pool))
    try:
        X = np.zeros(shape, dtype=np.uint8)
    except (MemoryError, ValueError, OverflowError):
        raise ValueError(
            f"n_steps={n_steps}, sensor_size and {len(samples)} samples make {math.prod(shape):.3g} "
            "numbers, which do not fit in memory; use fewer steps or samples, or a larger pool"
        ) from None
    labels = []
    for index, image_series in enumerate(X):
        name = f"dataset[{index}]"
        events, label = _check_sample(samples[index], name)
        labels.append(_check_label(label, name))
        if len(events) == 0:
            continue
        t = _times(events, name)
        x = _field(events, "x", width, name)
        y = _field(events, "y", height, name)
        p = _polarities(events, n_polarities, name)
        kind = events["t"].dtype.kind
        if unit is None and kind == "f":
            raise TypeError(
                f"{name}: t holds real numbers, up to {t.max():g}, which may be seconds or "
                "microseconds; say which with unit=1*second or unit=1*us"
            )
        begin = t.min() if start is None else start
        steps = np.floor((t - begin) / step + _STEP_ROUNDING[kind])
        shown = (steps >= 0) & (steps < n_steps)
        image_series[steps[shown].astype(int), p[shown], y[shown] // pool, x[shown] // pool] = 1
    if len({isinstance(label, str) for label in labels}) > 1:
        raise TypeError("labels must be all numbers or all strings")
    return X.reshape(len(X), n_steps, -1), np.array(labels)


def _as_sequence(dataset):
    """Return a data set as an object with ``len`` and indexing."""
    if isinstance(dataset, Mapping):
        raise TypeError(f"dataset must be a sequence of pairs (events, label), got {dataset!r}")
    try:
        if hasattr(dataset, "__getitem__"):
            len(dataset)
            return dataset
        return list(dataset)
    except TypeError:
        raise TypeError(
            f"dataset must be a sequence of pairs (events, label), got {dataset!r}"
        ) from None


def _check_sensor_size(dataset, sensor_size):
    if sensor_size is None:
        sensor_size = getattr(dataset, "sensor_size", None)
        if sensor_size is None:
            raise ValueError("sensor_size must be given as (W, H, P), since the data set has none")
    try:
        width, height, n_polarities = sensor_size
    except (TypeError, ValueError):
        raise ValueError(f"sensor_size must be three integers (W, H, P), got {sensor_size!r}") from None
    return (
        integer(width, "sensor_size[0]"),
        integer(height, "sensor_size[1]"),
        integer(n_polarities, "sensor_size[2]"),
    )


def _check_sample(sample, name):
    if not isinstance(sample, (tuple, list)) or len(sample) != 2:
        raise TypeError(f"{name} must be a pair (events, label), got {type(sample).__name__}")
    events, label = sample
    if not isinstance(events, np.ndarray) or events.dtype.names is None:
        raise TypeError(
            f"{name}: events must be a structured array with the fields x, y, t and p, got "
            f"{type(events).__name__}; use the data set without a transform that makes frames"
        )
    if isinstance(events, np.ma.MaskedArray):
        raise TypeError(f"{name}: events must not be masked; leave out the masked events")
    check_shape(events, f"{name}: events", ("n_events",))
    return events, label


def _check_label(label, name):
    array = np.asarray(label)
    if array.ndim or array.dtype.kind not in "biufU":
        raise TypeError(f"{name}: a label must be one number or string, got {label!r}")
    return array.item()


def _times(events, name):
    if "t" not in events.dtype.names:
        raise ValueError(f"{name}: events have no field t; they have {events.dtype.names}")
    times = events["t"]
    if times.dtype.kind not in "iuf" or not np.all(np.isfinite(times)):
        raise TypeError(f"{name}: t must be finite numbers, got dtype {times.dtype}")
    return times.astype(float)


def _field(events, field, size, name):
    """Return one coordinate of the events, from 0 to `size` - 1."""
    if field not in events.dtype.names:
        if size > 1:
            raise ValueError(
                f"{name}: events have no field {field}, although sensor_size is {size} there; they "
                f"have {events.dtype.names}"
            )
        return np.zeros(len(events), dtype=int)
    values = events[field]
    if values.dtype.kind not in "biu":
        raise TypeError(f"{name}: {field} must be integers, got dtype {values.dtype}")
    if values.min() < 0 or values.max() >= size:
        raise ValueError(
            f"{name}: {field} must be from 0 to {size - 1}, since sensor_size is {size} there, got "
            f"{values.min()} to {values.max()}"
        )
    return values.astype(int)


def _polarities(events, n_polarities, name):
    if n_polarities > 1:
        return _field(events, "p", n_polarities, name)
    # Data with a single polarity may call it 0 or 1.
    if "p" in events.dtype.names and np.any(events["p"] != events["p"][0]):
        raise ValueError(
            f"{name}: sensor_size says one polarity, but the field p has several values; set "
            "sensor_size[2] to 2, or make all p equal to merge the polarities"
        )
    return np.zeros(len(events), dtype=int)
