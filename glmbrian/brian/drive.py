"""What is added to the potentials besides spikes: the argument `drive` of `GLMNeurons`."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from brian2 import DEFAULT_FUNCTIONS, TimedArray, get_unit, have_same_dimensions
from brian2.utils.stringtools import get_identifiers, word_substitute

from .target import current_target, index_name

#: Another name for the index of a neuron: see `target.add_index_alias`.
NEURON_INDEX = "neuron_index"


@dataclass(frozen=True)
class Drive:
    """A drive as Brian code; without one, all of it is empty.

    Attributes
    ----------
    equation : str
        Of the variable ``drive``.
    namespace : dict of str to object
        What the equation needs.
    names : frozenset of str
        Names that Brian must find when a run begins.
    """

    equation: str = ""
    namespace: Mapping[str, Any] = field(default_factory=dict)
    names: frozenset[str] = frozenset()


def checked_drive(drive: Any, n: int) -> Drive:
    """Check the argument `drive` of `GLMNeurons`, for `n` neurons."""
    if drive is None:
        return Drive()
    index = index_name(NEURON_INDEX)
    if isinstance(drive, TimedArray):
        if not current_target().has_arrays:
            raise NotImplementedError(
                "drive: GeNN does not support TimedArrays; use an expression in t and i, or "
                "another device"
            )
        if not have_same_dimensions(drive.dim, 1):
            raise TypeError(f"drive must be without unit, got a TimedArray in {get_unit(drive.dim)}")
        if drive.values.ndim == 2 and drive.values.shape[1] != n:
            raise ValueError(
                f"drive must have the shape (n_steps,) or (n_steps, {n}), got {drive.values.shape}"
            )
        arguments = "t" if drive.values.ndim == 1 else f"t, {index}"
        return Drive(f"drive = glm_drive({arguments}) : 1\n", {"glm_drive": drive})
    if not isinstance(drive, str):
        raise TypeError(
            "drive must be an expression in t and i such as 'stimulus(t, i)', or a TimedArray, "
            f"got {drive!r}"
        )
    try:
        ast.parse(drive.strip(), mode="eval")
    except SyntaxError as error:
        raise ValueError(
            f"drive must be an expression such as 'stimulus(t, i)', got {drive!r}: {error.msg}"
        ) from None
    if not drive.isascii():  # Brian finds only names in ASCII letters
        raise ValueError(f"drive must be an expression in ASCII letters, got {drive!r}")
    names = get_identifiers(drive)
    if "drive" in names:
        raise ValueError(f"drive must not use the name 'drive' itself, got {drive!r}")
    # Draw random numbers once per step, however often the drive is read.
    random = any(name in names and not f.stateless for name, f in DEFAULT_FUNCTIONS.items())
    flag = "(constant over dt)" if random else ""
    equation = f"drive = {word_substitute(drive, {'i': index})} : 1 {flag}\n"
    return Drive(equation, names=frozenset(names - {"i"}))
