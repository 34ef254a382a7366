"""Spike trains from and to Neo, which reads the files of many recording systems."""

import numpy as np
from brian2 import second

from ..validation import seconds
from .recording import Recording, check_recording, is_same_time, spikes_between


def from_neo(spikes, t_start=None, t_stop=None):
    """Return spike trains of Neo as a `Recording`.

    Parameters
    ----------
    spikes : neo.SpikeTrain, sequence of them, neo.Segment or neo.Block
        One train a unit.  To take some units only, choose among
        ``segment.spiketrains`` (by their annotations, say) and give the list.
    t_start, t_stop : time, optional
        When the observation begins and ends; spikes before and after are left out.
        By default as the trains say, which must agree.

    Returns
    -------
    Recording, or list of Recording for a Block
        Of a Block one recording for each segment (a trial, usually) in its order.
        Units have the names of the trains; those without one are numbered.

    Raises
    ------
    ImportError
        If Neo is not installed.
    TypeError, ValueError
        If `spikes` is something else (a proxy of lazy reading must be loaded first),
        holds no train, or the trains do not begin and end together and `t_start` or
        `t_stop` is not given.

    Examples
    --------
    >>> import glmbrian as glm
    >>> import neo                                                # doctest: +SKIP
    >>> train = neo.SpikeTrain([3, 8], t_stop=10, units="ms")     # doctest: +SKIP
    >>> glm.interop.from_neo(train)                               # doctest: +SKIP
    <Recording: 1 units, 2 spikes, 0. s to 10. ms>
    """
    neo = _neo()
    if isinstance(spikes, neo.Block):
        return [from_neo(segment, t_start, t_stop) for segment in spikes.segments]
    if isinstance(spikes, neo.Segment):
        spikes = spikes.spiketrains
    elif isinstance(spikes, neo.SpikeTrain):
        spikes = [spikes]
    try:
        trains = list(spikes)
    except TypeError:
        trains = [spikes]
    for train in trains:
        if not isinstance(train, neo.SpikeTrain):
            raise TypeError(
                "spikes must be a neo.SpikeTrain, a sequence of them, a Segment or a Block (a "
                f"SpikeTrainProxy must be loaded first, by its method load), got {train!r}"
            )
    if not trains:
        raise ValueError("spikes must hold at least one SpikeTrain")
    times = [_seconds(train.times) for train in trains]
    start = _common([_seconds(train.t_start) for train in trains], "t_start", t_start)
    stop = _common([_seconds(train.t_stop) for train in trains], "t_stop", t_stop)
    if t_start is not None:
        times = spikes_between(times, start, np.inf)
    if t_stop is not None:
        times = spikes_between(times, -np.inf, stop)
    names = [train.name or str(unit) for unit, train in enumerate(trains)]
    return Recording(times, start, stop, names)


def to_neo(recording):
    """Return a recording as spike trains of Neo.

    Parameters
    ----------
    recording : Recording

    Returns
    -------
    list of neo.SpikeTrain
        One a unit, in seconds, with the unit's name.

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
    neo = _neo()
    check_recording(recording)
    start, stop = float(recording.t_start), float(recording.t_stop)
    return [
        neo.SpikeTrain(np.asarray(times), units="s", t_start=start, t_stop=stop, name=name)
        for name, times in zip(recording.names, recording.times)
    ]


def _neo():
    try:
        import neo
    except ImportError as error:
        raise ImportError(f"Neo is not installed ({error}): pip install '.[interop]'") from error
    return neo


def _seconds(quantity):
    """The numbers of a quantity of the package quantities, in seconds."""
    return quantity.rescale("s").magnitude


def _common(own, name, given):
    """Return the time `given`, or the one that all trains have as their `own`."""
    if given is not None:
        return float(seconds(given, name))
    own = [float(time) for time in own]
    if not all(is_same_time(time, own[0]) for time in own):
        raise ValueError(
            f"the trains must have the same {name}, got {min(own) * second} to {max(own) * second}; "
            f"give {name} as an argument"
        )
    return own[0]
