"""Recordings: when each of several units spiked, and when it was observed.

This is the intermediate form: Neo, NWB and Brian's monitors give recordings, and a
recording gives the binned trains that GLMs are fitted to, or a Brian group that spikes
as the units did.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from brian2 import Quantity, SpikeGeneratorGroup, SpikeMonitor, defaultclock, second
from numpy.typing import ArrayLike

from ..brian.arguments import positive_seconds, seconds
from ..brian.time_steps import time_step
from ..timed.binning import spike_steps
from ..timed.data import Events, EventSeries, Observed, register_reader
from .monitors import require_simulated
from .periods import TIME_ROUNDING, spikes_between
from .trains import read_trains


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
                start - TIME_ROUNDING <= of_unit[0] and of_unit[-1] <= stop + TIME_ROUNDING
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
        require_simulated(monitor, t_start, t_stop)
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
        times, start, stop, step = read_trains(trains, dt, t_start)
        return cls(times, start, stop, names, step)

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
        if start < own_start - TIME_ROUNDING or stop > own_stop + TIME_ROUNDING:
            raise ValueError(
                f"t_start and t_stop must be within the recording, {own_start:g} s to {own_stop:g} s, "
                f"got {start:g} s to {stop:g} s"
            )
        at_end = stop >= own_stop - TIME_ROUNDING
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
