"""Spike trains of Neo and Elephant: where a series is wanted, what to write instead."""

from typing import Any

from .data import Source, is_instance_of, register_reader


@register_reader
def refuse_neo(value: Any, name: str) -> Source | None:
    """Refuse Neo's objects."""
    each = value[0] if isinstance(value, (list, tuple)) and value else value
    if is_instance_of(each, "neo", "SpikeTrain", "Segment", "Block") or is_instance_of(
        value, "neo.core.spiketrainlist", "SpikeTrainList"
    ):
        raise TypeError(
            f"{name} must be an array or a recording, got Neo's {type(each).__name__}: read it with "
            "glmbrian.interop.from_neo(...)"
        )
    return None


@register_reader
def refuse_binned(value: Any, name: str) -> Source | None:
    """Refuse Elephant's binned trains, which have a row for each unit."""
    if is_instance_of(value, "elephant.conversion", "BinnedSpikeTrain"):
        raise TypeError(
            f"{name} must have a row for each step, but a BinnedSpikeTrain has one for each unit: pass "
            "glmbrian.interop.Recording.from_trains(binned.to_bool_array().T, dt, t_start), with "
            "Brian times"
        )
    return None
