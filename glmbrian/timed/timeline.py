"""When the steps of a series are, and whether two series are of the same steps."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from brian2 import second
from numpy.typing import NDArray

#: How far times may be from where they should be, in steps.  A spike this close to the end of its step
#: belongs to the next one, since it was meant to be a multiple of the step: as in Brian.
STEP_ROUNDING = 1e-3

#: Number of times that are looked at together.
_AT_ONCE = 2**20


@dataclass(frozen=True)
class Clock:
    """What times are counted in.

    Attributes
    ----------
    name : str
        For error messages.
    per_second : float
        How many units there are in a second.
    is_calendar : bool
        Whether times are dates, in whole units, and not differences from a start.
    """

    name: str
    per_second: float = 1.0
    is_calendar: bool = False

    def text(self, time: Any) -> str:
        """Return a time for a message."""
        return str(np.datetime64(int(time), "ns")) if self.is_calendar else str(float(time) * second)


#: Times in seconds, as in Brian, and dates in nanoseconds, which double precision could not hold.
SECONDS = Clock("times from a start")
DATES = Clock("dates", 1e9, True)
DATES_IN_ZONE = Clock("dates with a time zone", 1e9, True)


@dataclass(frozen=True, eq=False)
class Timeline:
    """When each step of a series is.

    There are two kinds.  Where spike times are binned, it is known where each step begins and ends.
    Samples have one time each, which is anywhere in their step: pynapple has its middle, others
    its beginning.

    Attributes
    ----------
    clock : Clock
    n_steps : int
    dt : float or None
        Duration of a step in seconds; None for a single sample.
    firsts : ndarray of int
        The first step of each piece: of steps that follow each other without a gap.
    starts : ndarray
        The time of each of these.
    samples : ndarray, shape (n_steps,), or None
        The times of samples; None if it is known where steps begin and end.
    resolution : float
        To what the times of samples are rounded, in seconds; 0 if to double precision.
    """

    clock: Clock
    n_steps: int
    dt: Any
    firsts: NDArray[np.int64]
    starts: NDArray[Any]
    samples: NDArray[Any] | None = None
    resolution: float = 0.0

    @classmethod
    def of_samples(cls, times: Any, clock: Clock, name: str, resolution: float = 0.0) -> "Timeline":
        """Return the timeline of samples; `name` is that of the series, for error messages."""
        times = np.asarray(times, dtype=np.int64 if clock.is_calendar else float)
        if times.ndim != 1 or times.size == 0:
            raise ValueError(f"{name} must have at least one step, and a time for each")
        if not clock.is_calendar and not np.all(np.isfinite(times)):
            raise ValueError(f"{name} must have finite times, but some are NaN or infinite")
        intervals = [np.diff(times[a : a + _AT_ONCE + 1]) for a in range(0, times.size - 1, _AT_ONCE)]
        if not intervals:
            return cls(clock, 1, None, np.array([0]), times, times, resolution)
        for number, part in enumerate(intervals):
            if part.min() <= 0:
                row = number * _AT_ONCE + int(np.argmax(part <= 0)) + 1
                raise ValueError(
                    f"{name} must have times that increase from row to row, but row {row} is at "
                    f"{clock.text(times[row])}, and the row before at {clock.text(times[row - 1])}"
                )
        typical = float(_middle(np.array([_middle(part) for part in intervals])))
        rounding = _rounding(times, typical)
        total, count, firsts = 0.0, 0, [np.array([0])]
        for number, part in enumerate(intervals):
            short = part < typical - rounding
            if short.any():
                row = number * _AT_ONCE + int(np.argmax(short)) + 1
                raise ValueError(
                    f"{name} must be in equal steps, but row {row} is "
                    f"{(times[row] - times[row - 1]) / clock.per_second * second} after the row "
                    f"before, while most rows are {typical / clock.per_second * second} apart: bring it to "
                    "equal steps first (pynapple: interpolate or bin_average; pandas: resample)"
                )
            is_step = part <= typical + rounding
            total, count = total + float(part[is_step].sum()), count + int(np.count_nonzero(is_step))
            firsts.append(number * _AT_ONCE + np.flatnonzero(~is_step) + 1)
        starting = np.concatenate(firsts)
        # The mean of many steps is more exact than one of them, of which both ends are rounded.
        dt = float(f"{total / count / clock.per_second:.9g}")
        return cls(clock, times.size, dt, starting, times[starting], times, resolution)

    @classmethod
    def of_bins(cls, starts: Any, lengths: Any, dt: float) -> "Timeline":
        """Return the timeline of pieces of so many steps, which begin at these times, in seconds."""
        ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
        firsts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
        return cls(SECONDS, int(ends[-1]), dt, firsts, np.asarray(starts, dtype=float))

    @property
    def breaks(self) -> NDArray[np.int64]:
        """The steps before which there is a gap."""
        return self.firsts[1:]

    def between(self, start: int, stop: int) -> NDArray[Any]:
        """Return the times of the steps from `start` up to `stop`: of samples, or when steps begin."""
        if self.samples is not None:
            return self.samples[start:stop]
        rows = np.arange(start, stop)
        piece = np.searchsorted(self.firsts, rows, side="right") - 1
        return self.starts[piece] + (rows - self.firsts[piece]) * self.dt

    def time(self, row: int) -> Any:
        """Return the time of a step."""
        return self.between(row, row + 1)[0]

    def span(self) -> tuple[Any, Any]:
        """Return the first time and the last: of samples, or when the steps begin and end."""
        last = self.time(self.n_steps - 1)
        return self.time(0), last if self.samples is not None else last + self.dt

    def described(self) -> str:
        """Return from when to when the series is, for a message."""
        return " to ".join(map(self.clock.text, self.span()))

    def row(self, time: Any, after: bool = False, exact: bool = False) -> int | None:
        """Return the first step at `time` or later.

        Parameters
        ----------
        time : int or float
            On the same clock.
        after : bool
            Later only.
        exact : bool
            Do not take times for equal that differ by rounding.

        Returns
        -------
        int or None
            The number of steps if there is none; None if `time` is outside the series, or is known
            to be inside a step or a gap.
        """
        ticks = self.clock.per_second
        if self.samples is not None:
            step = 0.0 if self.dt is None else self.dt * ticks
            rounding = _rounding(self.samples, step)
            # Where their steps begin and end is not known, only that it is less than a step away.
            if not self.samples[0] - step - rounding <= time <= self.samples[-1] + step + rounding:
                return None
            if exact:
                rounding = self.resolution * ticks
            shift: Any = rounding if after else -rounding
            if self.clock.is_calendar:
                shift = int(shift)
            return int(np.searchsorted(self.samples, time + shift, side="right" if after else "left"))
        if exact:
            return self._row_by_middle(time, after)
        lengths = np.diff(np.append(self.firsts, self.n_steps))
        for first, begin, length in zip(self.firsts, self.starts, lengths):
            step = (time - begin) / self.dt
            if -STEP_ROUNDING <= step <= length + STEP_ROUNDING:
                at = round(step)
                return int(first) + at + after if abs(step - at) <= STEP_ROUNDING else None
        return None

    def _row_by_middle(self, time, after):
        """Return the first step whose middle is at `time` or later."""
        start, end = self.span()
        if not start - self.dt <= time <= end + self.dt:
            return None
        piece = max(int(np.searchsorted(self.starts, time, side="right")) - 1, 0)
        length = np.append(self.firsts, self.n_steps)[piece + 1] - self.firsts[piece]
        position = (time - self.starts[piece]) / self.dt - 0.5
        # As pynapple does, count what is within a nanosecond as equal.
        rounding = min(1e-9 / self.dt, STEP_ROUNDING)
        number = np.floor(position + rounding) + 1 if after else np.ceil(position - rounding)
        return int(self.firsts[piece] + np.clip(number, 0, length))


def _middle(values):
    """Return the median, or of two in the middle the lower one, which is a value."""
    place = (values.size - 1) // 2
    return np.partition(values, place)[place]


def _rounding(times, step):
    """Return by how much rounding may change times, as a number of their units."""
    if times.dtype.kind == "i":
        return STEP_ROUNDING * step
    return STEP_ROUNDING * step + 4 * np.spacing(max(abs(times[0]), abs(times[-1])))


def first_difference(one: Timeline, other: Timeline, dt: float) -> tuple[int, float] | None:
    """Return the first step in which two timelines of one clock differ, and by how many steps.

    Where only one of them knows when steps begin and end, the times of the other must be within them.

    Parameters
    ----------
    one, other : Timeline
        Of as many steps.
    dt : float
        Duration of a step in seconds.

    Returns
    -------
    (int, float) or None
        None if they agree.
    """
    if one.samples is not None and one.samples is other.samples:
        return None
    step = dt * one.clock.per_second
    low = high = STEP_ROUNDING
    if (one.samples is None) != (other.samples is None):
        if other.samples is None:
            low, high = 1.0 - STEP_ROUNDING, STEP_ROUNDING
        else:
            high = 1.0 - STEP_ROUNDING
    for start in range(0, one.n_steps, _AT_ONCE):
        stop = min(start + _AT_ONCE, one.n_steps)
        mine, its = one.between(start, stop), other.between(start, stop)
        apart = (its - mine) / step
        slack = 0.0
        if mine.dtype.kind == "f" and mine.size:
            slack = 8 * np.spacing(np.abs(mine).max()) / step
        differs = (apart < -low - slack) | (apart > high + slack)
        if differs.any():
            row = int(np.argmax(differs))
            return start + row, float(apart[row])
    return None
