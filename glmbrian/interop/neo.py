"""Spike trains from and to Neo, which reads the files of many recording systems."""

import os
from typing import Any

import numpy as np

from ..recording.observed import observed_part
from ..recording.recording import Recording, check_recording
from .packages import imported


def from_neo(spikes: Any, t_start: Any = None, t_stop: Any = None) -> Recording | list[Recording]:
    """Return Neo spike trains as a `Recording`.

    Parameters
    ----------
    spikes : neo.SpikeTrain, sequence of them, neo.Segment, neo.Block or list of the last two
        One train per unit.  To select units, pass a list of some of
        ``segment.spiketrains`` (chosen by their annotations, say).
    t_start, t_stop : time, optional
        When the observation begins and ends, with a Brian unit, in seconds, or as a Neo
        time; spikes before and after are left out.  By default the times of the trains, which
        must agree.

    Returns
    -------
    Recording, or list of Recording for a Block or several
        For a Block, one recording per segment (usually a trial), in order; for a list,
        such as the result of ``reader.read()``, the recordings of all its blocks in order.
        Units have the names of the trains; trains without a name are numbered.

    Raises
    ------
    ImportError
        If Neo is not installed.
    TypeError, ValueError
        If `spikes` is something else (load proxies from lazy reading first), or one of its
        segments holds no train; if the trains do not begin and end together and `t_start` or
        `t_stop` is not given; if a train does not cover the whole time from `t_start` to
        `t_stop`, so its unit would look silent; or if a time is not finite.

    Examples
    --------
    >>> import glmbrian as glm
    >>> import neo                                                # doctest: +SKIP
    >>> train = neo.SpikeTrain([3, 8], t_stop=10, units="ms")     # doctest: +SKIP
    >>> glm.interop.from_neo(train)                               # doctest: +SKIP
    <Recording: 1 units, 2 spikes, 0. s to 10. ms>
    """
    neo = imported("neo", "Neo")
    t_start, t_stop = _in_seconds(t_start), _in_seconds(t_stop)
    if isinstance(spikes, neo.Block):
        spikes = [spikes]
    if isinstance(spikes, (list, tuple)) and any(
        isinstance(each, (neo.Block, neo.Segment)) for each in spikes
    ):
        segments = [segment for each in spikes for segment in _segments(each, neo)]
        return [_recording(segment, t_start, t_stop, neo) for segment in segments]
    return _recording(spikes, t_start, t_stop, neo)


def to_neo(recording: Recording) -> list:
    """Return a recording as Neo spike trains.

    Parameters
    ----------
    recording : Recording

    Returns
    -------
    list of neo.SpikeTrain
        One per unit, in seconds, with the unit's name.

    Raises
    ------
    ImportError
        If Neo is not installed.
    TypeError
        If `recording` is something else.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import ms
    >>> recording = glm.interop.Recording([[1, 3] * ms, [] * ms], 0 * ms, 4 * ms, ["a", "b"])
    >>> trains = glm.interop.to_neo(recording)                    # doctest: +SKIP
    >>> [(train.name, train.magnitude.tolist()) for train in trains]  # doctest: +SKIP
    [('a', [0.001, 0.003]), ('b', [])]
    """
    neo = imported("neo", "Neo")
    check_recording(recording)
    start, stop = float(recording.t_start), float(recording.t_stop)
    return [
        neo.SpikeTrain(np.asarray(times), units="s", t_start=start, t_stop=stop, name=name)
        for name, times in zip(recording.names, recording.times)
    ]


def _recording(spikes, t_start, t_stop, neo):
    """Return the recording of a segment, a train, or a sequence of trains."""
    if isinstance(spikes, neo.Segment):
        if not len(spikes.spiketrains):
            named = "" if spikes.name is None else f" {spikes.name!r}"
            raise ValueError(
                f"spikes: the segment{named} must hold at least one SpikeTrain; leave it out with "
                "[from_neo(segment) for segment in block.segments if len(segment.spiketrains)]"
            )
        spikes = spikes.spiketrains
    elif isinstance(spikes, neo.SpikeTrain):
        spikes = [spikes]
    if isinstance(spikes, (str, os.PathLike)):
        raise TypeError(
            f"spikes must be what Neo has read, not a path: neo.get_io({str(spikes)!r}).read()"
        )
    try:
        trains = list(spikes)
    except TypeError:
        trains = [spikes]
    for train in trains:
        if not isinstance(train, neo.SpikeTrain):
            raise TypeError(
                "spikes must be a neo.SpikeTrain, a sequence of them, a Segment or a Block (load a "
                f"SpikeTrainProxy first, with its method load), got {train!r}"
            )
    if not trains:
        raise ValueError("spikes must hold at least one SpikeTrain")
    return observed_part(
        [_seconds(train.times) for train in trains],
        [
            np.array([[_seconds(train.t_start), _seconds(train.t_stop)]], dtype=float)
            for train in trains
        ],
        [str(unit if train.name in (None, "") else train.name) for unit, train in enumerate(trains)],
        t_start,
        t_stop,
    )


def _seconds(quantity):
    """Return the value in seconds of a quantity from the package quantities."""
    return quantity.rescale("s").magnitude


def _in_seconds(time):
    """Return a time unchanged, or in seconds if it is from the package quantities."""
    return float(_seconds(time)) if hasattr(time, "rescale") and np.ndim(time) == 0 else time


def _segments(part, neo):
    """Return the segments of a block; a segment itself in a list."""
    if isinstance(part, neo.Segment):
        return [part]
    if not isinstance(part, neo.Block):
        raise TypeError(f"spikes must be blocks and segments only, or trains only, got {part!r}")
    if not part.segments:
        raise ValueError("spikes: a Block must hold at least one Segment")
    return part.segments
