"""Recordings: when each of several units spiked, and when it was observed.

This is the intermediate form: Neo, NWB and Brian's monitors give recordings, and a
recording gives the binned trains that GLMs are fitted to, or a Brian group that spikes
as the units did.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from brian2 import Quantity, SpikeGeneratorGroup, SpikeMonitor, defaultclock, second
from numpy.typing import ArrayLike

from ..brian.arguments import seconds
from ..brian.internals import time_simulated
from ..brian.time_steps import time_step
from ..support.validation import binary_array, warn
from ..timed.binning import spike_steps
from ..timed.data import (
    Events,
    EventSeries,
    Observed,
    Samples,
    aligned,
    register_reader,
    source_of,
)
from ..timed.sparse import is_sparse, steps_of_sparse
from ..timed.timeline import STEP_ROUNDING, Timeline

#: How far rounding may put a time beyond the start or the end, in seconds.
_TIME_ROUNDING = 1e-9


class Recording:
    """Spike times of several units that were observed from `t_start` to `t_stop`.

    Parameters
    ----------
    times : sequence of array_like of time, one per unit
        Spike times, in any order, with a Brian unit or in seconds.  A unit without
        spikes has an empty array.
    t_start, t_stop : time
        When the observation begins and ends.  A model also learns from silence, so
        these are not guessed from the spikes.
    names : sequence of str, optional
        Names of the units; by default "0", "1", ...
    dt : Quantity of time, optional
        The time step of the data, if they were in steps.

    Attributes
    ----------
    times : list of Quantity, each of shape (n_spikes,)
        Sorted.
    t_start, t_stop : Quantity
    names : list of str
    dt : Quantity or None

    Raises
    ------
    TypeError, ValueError
        If an argument has the wrong type or physical unit, there are no units, a time is
        not finite, or a spike is outside `t_start` to `t_stop`.

    Notes
    -----
    Step k of size dt begins at ``t_start + k * dt``, inclusive.  A time within a
    thousandth of dt of a multiple of dt counts as that multiple, as in Brian.  The last
    step may extend beyond `t_stop`, and includes a spike at `t_stop` itself.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import ms
    >>> recording = glm.interop.Recording([[1.2, 3] * ms, [0] * ms], 0 * ms, 4 * ms)
    >>> recording.trains(1 * ms)
    array([[0, 1],
           [1, 0],
           [0, 0],
           [1, 0]], dtype=uint8)

    As the input of a Brian network:

    >>> recording.source(1 * ms)
    SpikeGeneratorGroup(2, indices=<length 3 array>, times=<length 3 array>)
    """

    times: list[Quantity]
    t_start: Quantity
    t_stop: Quantity
    names: list[str]
    dt: Quantity | None

    def __init__(
        self,
        times: Sequence[ArrayLike],
        t_start: Quantity | float,
        t_stop: Quantity | float,
        names: Sequence[str] | None = None,
        dt: Quantity | None = None,
    ):
        start, stop = float(seconds(t_start, "t_start")), float(seconds(t_stop, "t_stop"))
        if not start < stop:
            raise ValueError(f"t_stop must be after t_start, got {start:g} s to {stop:g} s")
        if isinstance(times, Mapping):
            raise TypeError(
                "times must be a sequence of arrays, one per unit, not a mapping: pass "
                "list(times.values()), or read a TsGroup of pynapple with glmbrian.interop.from_pynapple"
            )
        try:
            times = list(times)
        except TypeError:
            raise TypeError(
                f"times must be a sequence of arrays, one per unit, got {times!r}"
            ) from None
        if not times:
            raise ValueError("times must hold at least one unit")
        self.times = []
        for unit, of_unit in enumerate(times):
            of_unit = np.sort(seconds(of_unit, f"times[{unit}]", ("n_spikes",)))
            if of_unit.size and not (
                start - _TIME_ROUNDING <= of_unit[0] and of_unit[-1] <= stop + _TIME_ROUNDING
            ):
                raise ValueError(
                    f"times[{unit}] must be from t_start to t_stop, {start:g} s to {stop:g} s, got "
                    f"spikes from {of_unit[0]:g} s to {of_unit[-1]:g} s"
                )
            self.times.append(of_unit.clip(start, stop) * second)
        self.t_start, self.t_stop = start * second, stop * second
        self.names = _check_names(names, len(times))
        self.dt = time_step(dt)

    @classmethod
    def from_monitor(
        cls,
        monitor: SpikeMonitor,
        t_start: Quantity | float,
        t_stop: Quantity | float,
        names: Sequence[str] | None = None,
    ) -> "Recording":
        """Return what a Brian monitor has recorded.

        Parameters
        ----------
        monitor : brian2.SpikeMonitor
            It must record times (``record=True``).
        t_start, t_stop : time
            The network's time when it began to run with the monitor, and its time now:
            ``0 * second, network.t``.  (The monitor itself does not know when it began.)
        names : sequence of str, optional
            As for `Recording`.

        Returns
        -------
        Recording
            All neurons of the monitored group, including silent ones, with the time step of
            its clock.

        Raises
        ------
        TypeError, ValueError
            If `monitor` is something else or only counted spikes; if the times are not within the
            time that its network has simulated, which may have ended early; or as for `Recording`.

        Warns
        -----
        RuntimeWarning
            If it is not known whether the network, which no longer exists, has reached `t_stop`.

        Examples
        --------
        The second of two neurons stays silent:

        >>> import glmbrian as glm
        >>> from brian2 import Network, SpikeMonitor, ms, prefs
        >>> prefs.codegen.target = "numpy"
        >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1), dt=1 * ms)
        >>> neurons.clamp = [1, -1]
        >>> monitor = SpikeMonitor(neurons)
        >>> network = Network(neurons, monitor)
        >>> network.run(5 * ms)
        >>> recording = glm.interop.Recording.from_monitor(monitor, 0 * ms, network.t)
        >>> [len(times) for times in recording.times]
        [5, 0]
        """
        if not isinstance(monitor, SpikeMonitor):
            raise TypeError(f"monitor must be a SpikeMonitor, got {monitor!r}")
        if not monitor.record:
            raise ValueError("monitor has only counted spikes; create it with record=True")
        trains = monitor.spike_trains()
        times = [trains[unit] for unit in range(len(monitor.source))]
        _require_simulated(monitor, t_start, t_stop)
        return cls(times, t_start, t_stop, names, monitor.clock.dt)

    @classmethod
    def from_trains(
        cls,
        trains: Any,
        dt: Quantity | float | None = None,
        t_start: Quantity | float | None = None,
        names: Sequence[str] | None = None,
    ) -> "Recording":
        """Return binned trains as a recording.

        Parameters
        ----------
        trains : array_like of 0 and 1, shape (n_steps, n_units)
            Or a sparse matrix, or a series of pynapple or pandas, which has times.
        dt : time
            Duration of a step; a spike is placed at the beginning of its step.  Not needed for
            series with times, which have their own.
        t_start : time, optional
            When the first step begins; by default 0, or when series with times say: times in the
            middle of steps (at odd multiples of half a step, or as pynapple's ``count`` has them) count
            as such, and multiples of a step as its beginning.
        names : sequence of str, optional
            As for `Recording`.

        Returns
        -------
        Recording

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong type, unit or shape, or is out of range; or if times have
            gaps, are dates, or do not say when steps begin.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import ms
        >>> recording = glm.interop.Recording.from_trains([[0, 1], [1, 1], [0, 0]], 2 * ms)
        >>> [(times / ms).tolist() for times in recording.times]
        [[2.0], [0.0, 2.0]]
        >>> float(recording.t_stop / ms)
        6.0
        """
        dt = None if dt is None else positive_seconds(dt, "dt") * second
        source = source_of(trains, "trains")
        together = aligned({"trains": trains}, dt)
        values, dt = together.values["trains"], together.dt
        if is_sparse(values):
            values = steps_of_sparse(values, "trains")
        if isinstance(values, EventSeries):
            steps, n_steps = values.steps, values.n_steps
        else:
            binned = binary_array(values, "trains", ("n_steps", "n_units"))
            steps, n_steps = [np.flatnonzero(train) for train in binned.T], len(binned)
        if dt is None:
            raise TypeError("dt must be given: the duration of a step, such as 1*ms")
        if not steps:
            raise ValueError(f"trains must hold at least one unit, got shape ({n_steps}, 0)")
        given = None if t_start is None else float(seconds(t_start, "t_start"))
        duration, start = float(dt), given or 0.0
        if "trains" in together.timelines:
            observed = source.observed_from if isinstance(source, Samples) else None
            start = _start_of(together.timelines["trains"], duration, given, observed)
        if not math.isfinite(start + n_steps * duration):
            raise ValueError(
                f"dt must be shorter: {n_steps} steps of {duration:g} s have no finite end"
            )
        return cls(
            [start + of_unit * duration for of_unit in steps],
            start,
            start + n_steps * duration,
            names,
            dt,
        )

    def part(self, t_start: Quantity | float, t_stop: Quantity | float) -> "Recording":
        """Return the part of the recording from `t_start` up to `t_stop`.

        Parameters
        ----------
        t_start, t_stop : time
            Within the recording.  A spike at `t_stop` is left out, unless the recording
            itself ends there.

        Returns
        -------
        Recording

        Raises
        ------
        TypeError, ValueError
            If a time has the wrong type or unit or is not within the recording, or `t_stop`
            is not after `t_start`.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import ms
        >>> recording = glm.interop.Recording([[1, 3, 8] * ms, [5] * ms], 0 * ms, 10 * ms)
        >>> recording.part(3 * ms, 8 * ms)
        <Recording: 2 units, 2 spikes, 3. ms to 8. ms>
        """
        start, stop = float(seconds(t_start, "t_start")), float(seconds(t_stop, "t_stop"))
        own_start, own_stop = float(self.t_start), float(self.t_stop)
        if start < own_start - _TIME_ROUNDING or stop > own_stop + _TIME_ROUNDING:
            raise ValueError(
                f"t_start and t_stop must be within the recording, {own_start:g} s to {own_stop:g} s, "
                f"got {start:g} s to {stop:g} s"
            )
        at_end = stop >= own_stop - _TIME_ROUNDING
        times = self.times if at_end else spikes_between(self.times, -math.inf, stop)
        return Recording(spikes_between(times, start, math.inf), start, stop, self.names, self.dt)

    def trains(self, dt: Quantity | float | None = None, collisions: str = "error") -> np.ndarray:
        """Return binned trains, the form that GLMs are fitted to.

        Parameters
        ----------
        dt : time, optional
            Duration of a step; by default the `dt` of the recording.
        collisions : {"error", "clip"}
            A GLM neuron spikes at most once per step.  If a unit spikes more often, raise an
            error or keep one spike.

        Returns
        -------
        ndarray of uint8, shape (n_steps, n_units)
            0 and 1.

        Raises
        ------
        TypeError, ValueError
            If an argument is of the wrong type or out of range, or units spike more than
            once in a step and `collisions` is "error".

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import ms
        >>> recording = glm.interop.Recording([[0, 1, 5] * ms], 0 * ms, 6 * ms)
        >>> recording.trains(1 * ms)[:, 0]
        array([1, 1, 0, 0, 0, 1], dtype=uint8)

        Steps of 2 ms join the first two spikes:

        >>> recording.trains(2 * ms, collisions="clip")[:, 0]
        array([1, 0, 1], dtype=uint8)
        """
        return EventSeries(*self.steps(dt, collisions)).read()

    def steps(
        self, dt: Quantity | float | None = None, collisions: str = "error"
    ) -> tuple[list[np.ndarray], int]:
        """Return the steps in which each unit spikes: as `trains`, without the zeros.

        Parameters
        ----------
        dt, collisions
            As for `trains`.

        Returns
        -------
        steps : list of ndarray of int
            Sorted, one array per unit.
        n_steps : int
            Number of steps of the recording.

        Raises
        ------
        TypeError, ValueError
            As for `trains`.

        Examples
        --------
        >>> import glmbrian as glm
        >>> from brian2 import ms
        >>> recording = glm.interop.Recording([[0, 1, 5] * ms], 0 * ms, 6 * ms)
        >>> steps, n_steps = recording.steps(1 * ms)
        >>> steps[0].tolist(), n_steps
        ([0, 1, 5], 6)
        """
        if dt is None and self.dt is None:
            raise TypeError(
                "dt must be given, such as 1*ms: this recording does not know its time step"
            )
        return self._binned(self.dt if dt is None else dt, collisions)

    def source(
        self, dt: Quantity | float | None = None, collisions: str = "error", **kwds: Any
    ) -> SpikeGeneratorGroup:
        """Return a Brian group that spikes as the units did.

        Parameters
        ----------
        dt : time, optional
            Time step of the group, by default the time step of Brian's default clock, which
            must then be set beforehand.
        collisions
            As for `trains`.
        **kwds
            Passed to `brian2.SpikeGeneratorGroup`, such as ``name``.

        Returns
        -------
        brian2.SpikeGeneratorGroup
            With one neuron per unit.  Its time 0 is the recording's `t_start`, and it spikes
            in exactly the steps in which `trains` has ones.

        Raises
        ------
        TypeError, ValueError
            As for `trains`.

        Examples
        --------
        Recorded spikes as the input of a GLM neuron:

        >>> import glmbrian as glm
        >>> from brian2 import Network, StateMonitor, ms, prefs
        >>> prefs.codegen.target = "numpy"
        >>> recording = glm.interop.Recording([[0, 3] * ms], 0 * ms, 5 * ms)
        >>> source = recording.source(1 * ms)
        >>> neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1), dt=1 * ms)
        >>> synapses = glm.GLMSynapses(source, neurons)
        >>> synapses.w = 2
        >>> monitor = StateMonitor(neurons, "u", record=True, when="end")
        >>> Network(source, neurons, synapses, monitor).run(5 * ms)
        >>> monitor.u[0]
        array([0., 2., 0., 0., 2.])
        """
        step = defaultclock.dt if dt is None else positive_seconds(dt, "dt") * second
        steps, _ = self._binned(step, collisions)
        units = np.repeat(np.arange(len(self)), [len(of_unit) for of_unit in steps])
        if dt is not None:
            kwds["dt"] = step
        return SpikeGeneratorGroup(len(self), units, np.concatenate(steps) * step, **kwds)

    def _binned(self, dt, collisions):
        """Return the steps in which each unit spikes, and the number of steps."""
        dt = positive_seconds(dt, "dt")
        times = [np.asarray(of_unit) for of_unit in self.times]
        return spike_steps(times, float(self.t_start), float(self.t_stop), dt, self.names, collisions)

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self):
        n_spikes = sum(map(len, self.times))
        return f"<Recording: {len(self)} units, {n_spikes} spikes, {self.t_start} to {self.t_stop}>"


@register_reader
def read_recording(value: Any, name: str) -> Events | None:
    """Read a `Recording` where data with times are taken."""
    if not isinstance(value, Recording):
        return None
    times = [np.asarray(of_unit) for of_unit in value.times]
    return Events(
        [Observed(times, float(value.t_start), float(value.t_stop))],
        value.names,
        value.dt,
        "Recording",
        "recording.part({start}*second, {stop}*second) for {name}",
    )


def check_recording(recording: Any) -> None:
    if not isinstance(recording, Recording):
        raise TypeError(
            "recording must be a Recording (for a SpikeMonitor: Recording.from_monitor), got "
            f"{recording!r}"
        )


def _require_simulated(monitor: SpikeMonitor, t_start: Any, t_stop: Any) -> None:
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


def _start_of(timeline: Timeline, dt: float, given: float | None, observed: float | None) -> float:
    """Return when the first step of trains with times begins."""
    if timeline.clock.is_calendar:
        raise ValueError(
            "trains must have times counted from a start, since a Recording has no dates: write "
            "trains.set_axis(trains.index - trains.index[0])"
        )
    if timeline.breaks.size:
        gap = int(timeline.breaks[0])
        raise ValueError(
            "trains must be in equal steps, without gaps, since a Recording is observed all the time, but "
            f"there is a gap between {timeline.time(gap - 1) * second} and {timeline.time(gap) * second}: "
            "make a Recording of each part"
        )
    first = float(timeline.time(0))
    half = dt / 2
    rounding = STEP_ROUNDING + 4 * np.spacing(abs(first)) / dt
    if timeline.samples is None:
        begins = [first]
    elif given is not None:
        within = -rounding <= (first - given) / dt < 1 - rounding
        begins = [given] if within else [first - half, first]
    elif observed is not None and abs(first - half - observed) <= rounding * dt:
        begins = [observed]
    else:
        phase = first / dt % 1.0
        if abs(phase - 0.5) <= rounding:
            begins = [round(first / dt - 0.5) * dt]
        elif min(phase, 1 - phase) <= rounding:
            begins = [first]
        else:
            begins = [first - half, first]
    if len(begins) > 1:
        raise ValueError(
            f"t_start must be the beginning of the first step. The first time in trains is {first * second}: give "
            f"{begins[0] * second} if that is the middle of the step, or {begins[1] * second} if it is its "
            f"beginning" + ("" if given is None else f", got {given * second}")
        )
    if given is not None and abs(begins[0] - given) > rounding * dt:
        raise ValueError(
            f"t_start must be when trains begins, {begins[0] * second}, or be left out, got {given * second}"
        )
    return begins[0]


def spikes_between(times: Sequence, start: float, stop: float) -> list[np.ndarray]:
    """Return the spike times of each unit from `start` up to `stop`, in seconds."""
    first, beyond = start - _TIME_ROUNDING, stop - _TIME_ROUNDING
    return [of_unit[(of_unit >= first) & (of_unit < beyond)] for of_unit in map(np.asarray, times)]


def observed_part(
    times: list[np.ndarray],
    intervals: list[np.ndarray],
    names: list[str],
    t_start: Quantity | float | None = None,
    t_stop: Quantity | float | None = None,
) -> Recording:
    """Return the recording of a period in which all units were observed.

    Parameters
    ----------
    times : list of array of float
        Spike times of each unit in seconds.
    intervals : list of array, shape (n, 2)
        When each unit was observed, in seconds; no interval means unknown.
    names : list of str
    t_start, t_stop : time, optional
        Spikes before and after are left out.  By default the times that all units share.

    Raises
    ------
    ValueError
        If a time is not finite, the beginning or the end is unknown, or a unit was not
        observed the whole time, and would look silent.
    """
    for name, of_unit in zip(names, times):
        if not np.all(np.isfinite(of_unit)):
            raise ValueError(
                f"the unit {name!r} has {np.count_nonzero(~np.isfinite(of_unit))} spike time(s) that "
                "are NaN or infinite; remove them from the data, or leave the unit out"
            )
    start = _observed_edge(0, "t_start", t_start, intervals, times)
    stop = _observed_edge(1, "t_stop", t_stop, intervals, times)
    for name, of_unit in zip(names, intervals):
        if len(of_unit) and not is_observed(of_unit, start, stop):
            raise ValueError(
                f"the unit {name!r} has not been observed all the time from {start:g} s to {stop:g} s, "
                f"but from {_listed_intervals(of_unit)}, so it would look silent: choose t_start "
                "and t_stop within that time, leave the unit out, or correct the data"
            )
    if t_start is not None:
        times = spikes_between(times, start, math.inf)
    if t_stop is not None:
        times = spikes_between(times, -math.inf, stop)
    return Recording(times, start, stop, names)


def _observed_edge(edge, name, given, intervals, times):
    """Return the time `given`, or when the observation of all units begins (0) or ends (1)."""
    if given is not None:
        return float(seconds(given, name))
    if any(len(of_unit) != 1 for of_unit in intervals):
        spikes = np.concatenate(times)
        found = ""
        if spikes.size:
            found = f"; there are spikes from {spikes.min():g} s to {spikes.max():g} s"
        raise ValueError(
            f"{name} must be given: for some units the data do not say when they were observed, or list "
            f"several intervals{found}"
        )
    edges = [float(of_unit[0][edge]) for of_unit in intervals]
    if not all(is_same_time(time, edges[0]) for time in edges):
        begins, ends = (np.stack([of_unit[0] for of_unit in intervals])[:, k] for k in (0, 1))
        within = f", within the time they share, {begins.max():g} s to {ends.min():g} s"
        raise ValueError(
            f"the units must have the same {name}, got {min(edges) * second} to "
            f"{max(edges) * second}; pass {name}{within if begins.max() < ends.min() else ''}"
        )
    return edges[0]


def _listed_intervals(intervals):
    return " and ".join(f"{begin:g} s to {end:g} s" for begin, end in intervals)


def is_observed(intervals: Iterable, start: float, stop: float) -> bool:
    """Whether `intervals`, shape (n, 2), cover the time from `start` to `stop`."""
    reached = start
    for begin, end in sorted(map(tuple, intervals)):
        if begin <= reached + _TIME_ROUNDING:
            reached = max(reached, end)
    return reached >= stop - _TIME_ROUNDING


def is_same_time(first: float, other: float) -> bool:
    return abs(first - other) <= _TIME_ROUNDING


def positive_seconds(value: Any, name: str) -> float:
    """Return a checked time in seconds, which must be above 0."""
    duration = float(seconds(value, name))
    if duration <= 0:
        raise ValueError(f"{name} must be above 0 s, got {duration:g} s")
    return duration


def _check_names(names, n):
    if names is None:
        return [str(unit) for unit in range(n)]
    try:
        listed = [] if isinstance(names, str) else list(names)
    except TypeError:
        listed = []
    if not listed or not all(isinstance(name, str) for name in listed):
        raise TypeError(f"names must be a sequence of strings, got {names!r}")
    if len(listed) != n:
        raise ValueError(f"names must have one name for each of the {n} units, got {len(listed)}")
    return [str(name) for name in listed]
