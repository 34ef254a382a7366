"""Recorded series, read a block of steps at a time, wherever they are kept."""

from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.validation import check_shape, plain_array
from ..timed.data import EventSeries
from ..timed.sparse import is_sparse, steps_of_sparse
from .observations import Observations

#: Number of values that are checked at a time.
_CHECKED_AT_ONCE = 2**20

#: Between these, squares of sums neither overflow nor vanish, with room for basis functions.
_SMALLEST_INPUT, _LARGEST_INPUT = 1e-100, 1e100

#: The largest ratio of an input's mean to its standard deviation.  The information matrix contains
#: the square of this ratio, so beyond it rounding makes the input look constant.
_LARGEST_OFFSET = 1e6


class ArraySeries:
    """An array, or anything that is sliced like one: a memory map, or a data set in a file.

    Parameters
    ----------
    array : array of shape (T, n)
        With a shape and a dtype.  It is never copied as a whole.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        self.n_steps, self.n_units = array.shape
        #: Whether values are integers or Booleans, which are finite and never too large or small.
        self.is_whole = array.dtype.kind in "bui"

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the steps from `start` up to `stop`, shape (stop - start, n)."""
        return np.asarray(self.array[start:stop])


Series = ArraySeries | EventSeries


def as_series(values: Any, name: str, n_steps: int | str, n_units: int | str) -> Series:
    """Return data as a series, shapes checked; `check_inputs` or `check_outputs` check its values.

    Parameters
    ----------
    values : array_like, EventSeries, or anything sliced like an array
    name : str
        For error messages.
    n_steps, n_units : int or str
        The sizes that it must have, or the name of a size that is free.
    """
    if is_sparse(values):
        values = steps_of_sparse(values, name)
    if isinstance(values, EventSeries):
        shape = (values.n_steps, values.n_units)
        if shape != tuple(
            own if isinstance(want, str) else want for own, want in zip(shape, (n_steps, n_units))
        ):
            raise ValueError(f"{name} must have the shape ({n_steps}, {n_units}), got {shape}")
        require_steps(range(values.n_steps), name)
        return values
    # `plain_array` would read data sets of h5py, zarr and Dask as a whole.
    array = values if _is_in_chunks(values) else plain_array(values, name)
    if array.dtype.kind == "O":
        try:
            array = array.astype(float)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"{name} must be an array of numbers: {error}") from None
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must be an array of numbers: got dtype {array.dtype}")
    check_shape(array, name, (n_steps, n_units))
    require_steps(array, name)
    return ArraySeries(array)


def _is_in_chunks(values):
    return all(hasattr(values, name) for name in ("shape", "dtype", "chunks", "__getitem__"))


def _parts(series):
    length = max(1, _CHECKED_AT_ONCE // max(series.n_units, 1))
    return ((start, min(start + length, series.n_steps)) for start in range(0, series.n_steps, length))


def require_steps(array: Sized, name: str) -> None:
    """Raise if `array` has no rows."""
    if len(array) == 0:
        raise ValueError(f"{name} must have at least one step")


def check_outputs(series: Series, observations: Observations) -> float:
    """Return the largest value; raise a ValueError unless a series holds only what can be observed."""
    largest = 1.0
    for start, stop in () if isinstance(series, EventSeries) else _parts(series):
        part = series.read(start, stop)
        if not np.all(observations.is_possible(part)):
            raise ValueError(f"outputs must hold {observations.allowed}")
        if observations.largest > 1:
            largest = max(largest, float(part.max(initial=0)))
    return largest


def check_inputs(
    series: Series, name: str, counted: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Raise unless double precision can hold a series and its squares; return offsets and sizes.

    Parameters
    ----------
    series : Series
    name : str
        For error messages.
    counted : ndarray of bool, shape (T,)
        The steps that count.

    Returns
    -------
    offsets : ndarray of float, shape (n,)
        The mean of each unit whose mean exceeds its standard deviation in size; else 0.
    largest : ndarray of float, shape (n,)
        The largest absolute values.
    """
    if series.is_whole:
        return np.zeros(series.n_units), largest_values(series, name)
    n, total = 0, np.zeros((2, series.n_units))
    mean, squares = total
    largest, low, high = (np.full(series.n_units, value) for value in (0.0, np.inf, -np.inf))
    for start, stop in _parts(series):
        part = series.read(start, stop).astype(float, copy=False)
        _require_finite(part, name)
        np.maximum(largest, np.abs(part).max(axis=0, initial=0.0), out=largest)
        if not counted[start:stop].all():
            part = part[counted[start:stop]]
        if len(part) == 0:
            continue
        np.minimum(low, part.min(axis=0), out=low)
        np.maximum(high, part.max(axis=0), out=high)
        # Sums of squares around the mean of each part do not cancel.
        with np.errstate(over="ignore", invalid="ignore"):
            part_mean = part.mean(axis=0)
            squares += np.square(part - part_mean).sum(axis=0)
            squares += np.square(part_mean - mean) * (n * len(part) / (n + len(part)))
            mean += (part_mean - mean) * (len(part) / (n + len(part)))
        n += len(part)
    for source in np.flatnonzero(
        (largest > 0) & ((largest < _SMALLEST_INPUT) | (largest > _LARGEST_INPUT))
    ):
        raise ValueError(
            f"{name} must be on a scale from {_SMALLEST_INPUT:g} to {_LARGEST_INPUT:g}, but source "
            f"{source} goes up to {largest[source]:g}; divide it by its standard deviation"
        )
    spread, deviation = high - low, np.sqrt(squares / max(n, 1))
    for source in np.flatnonzero((spread > 0) & (np.abs(mean) > _LARGEST_OFFSET * deviation)):
        raise ValueError(
            f"{name}: source {source} varies by only {spread[source]:g} around a mean of "
            f"{mean[source]:g}, so rounding would hide the variation; subtract the mean, which the "
            "bias replaces"
        )
    return np.where((spread > 0) & (np.abs(mean) > deviation), mean, 0.0), largest


def largest_values(series: Series, name: str) -> NDArray[np.float64]:
    """Return the largest absolute value of each unit, at least 1 for whole numbers; raise unless finite."""
    largest = np.full(series.n_units, float(series.is_whole))
    if isinstance(series, ArraySeries) and series.array.dtype != bool:
        for start, stop in _parts(series):
            part = series.read(start, stop)
            for extreme in (part.min(axis=0), part.max(axis=0)):  # NaN if any value is
                size = np.abs(extreme.astype(float))
                _require_finite(size, name)
                np.maximum(largest, size, out=largest)
    return largest


def _require_finite(values, name):
    if not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite, but holds NaN or infinity")


def fingerprints(series: Series) -> NDArray[np.float64]:
    """Return a number for each unit that tells trains of 0 and 1 apart.

    It sums random integers over the spikes.  The sums are exact, so equal trains have equal numbers;
    different trains almost surely differ.
    """
    total = np.zeros(series.n_units)
    for start, stop in _parts(series):
        part = series.read(start, stop).astype(float, copy=False)
        total += _random_numbers(start, stop) @ part
    return total


#: Random numbers are drawn in runs of this length, so that they do not depend on the blocks read.
_RUN = 2**16


def _random_numbers(start, stop):
    runs = range(start // _RUN, (stop - 1) // _RUN + 1)
    numbers = np.concatenate(
        [np.random.default_rng([1, run]).integers(1, 2**22, _RUN, dtype=np.int64) for run in runs]
    )
    return numbers[start - runs[0] * _RUN :][: stop - start].astype(float)
