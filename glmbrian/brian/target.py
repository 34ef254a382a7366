"""What Brian's current device can do, for code that must differ between devices.

Brian exposes only the device's class, and this is the only module that looks at it.
"""

from dataclasses import dataclass
from typing import Any

from brian2.devices.device import get_device


@dataclass(frozen=True)
class Target:
    """Abilities of a device.

    Attributes
    ----------
    name : str
        The name for `brian2.set_device`.
    runs_at_once : bool
        Whether a run is over when ``run`` returns.  Otherwise it is only described, and the
        values of variables are unknown until the program has run.
    can_stop : bool
        Whether a spike can end a run.
    can_train : bool
        Whether a `glmbrian.Trainer` can change weights between presentations.
    counts_steps : bool
        Whether groups can count their steps.  A program with a single run from time 0 does
        not need this.
    has_index_aliases : bool
        Whether generated code knows other names for a neuron's index ``i``.
    has_shared_variables : bool
        Whether a variable can belong to a whole group and change.
    has_arrays : bool
        Whether code can reach arrays other than variables of single neurons: ring buffers,
        and TimedArrays used as drive.
    takes_own_code : bool
        Whether users may add equations and statements of their own to those of the package.
    takes_several_runs : bool
        Whether a program may consist of several runs.
    targets_a_pathway : int or None
        How many variables of a neuron one `brian2.Synapses` can change; None for any number.
    """

    name: str
    runs_at_once: bool = False
    can_stop: bool = True
    can_train: bool = True
    counts_steps: bool = True
    has_index_aliases: bool = True
    has_shared_variables: bool = True
    has_arrays: bool = True
    takes_own_code: bool = True
    takes_several_runs: bool = True
    targets_a_pathway: int | None = None


#: By class name of Brian's devices.  A subclass counts as a different device.
_TARGETS = {
    "RuntimeDevice": Target("runtime", runs_at_once=True),
    "CPPStandaloneDevice": Target("cpp_standalone"),
    "GeNNDevice": Target(
        "genn",
        can_stop=False,
        can_train=False,
        counts_steps=False,
        has_index_aliases=False,
        has_shared_variables=False,
        has_arrays=False,
        takes_own_code=False,
        takes_several_runs=False,
        targets_a_pathway=1,
    ),
}


def current_target() -> Target:
    """Return the `Target` for Brian's current device.

    Raises
    ------
    NotImplementedError
        If the package does not know the device.
    """
    name = type(get_device()).__name__
    if name not in _TARGETS:
        known = ", ".join(repr(target.name) for target in _TARGETS.values())
        raise NotImplementedError(
            f"GLM neurons are not tested on Brian's device {name}, and could be simulated wrongly there; "
            f"use one of {known}"
        )
    return _TARGETS[name]


def runs_at_once(device: Any) -> bool:
    """Return whether a device, known or unknown, is Brian's runtime device."""
    target = _TARGETS.get(type(device).__name__)
    return target is not None and target.runs_at_once


def index_name(alias: str) -> str:
    """Return the name of the neuron's index in code.

    This is an `alias` (see `add_index_alias`), since Brian would warn about every `i` in a
    user's notebook, or "i" on devices whose code has no aliases.
    """
    return alias if current_target().has_index_aliases else "i"


def add_index_alias(group: Any, alias: str) -> None:
    """Make `alias` another name for the index ``i`` in `group`, if the device has aliases."""
    if current_target().has_index_aliases:
        group.variables.add_reference(alias, group, "i")


def shared_flag() -> str:
    """Return the flag for variables shared by a group, if the device has them."""
    return "(shared)" if current_target().has_shared_variables else ""
