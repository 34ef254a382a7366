"""Which network runs an object, when, and in which order.

An object keeps only the number of the network that ran it last, and a network sorts its objects and reads
their statements when it begins to run.
"""

from collections.abc import Mapping
from typing import Any

from brian2 import Network, magic_network
from brian2.devices.device import get_device
from brian2.groups.group import CodeRunner
from brian2.groups.neurongroup import Resetter
from brian2.synapses.synapses import SynapticPathway

#: The order of operations in a time step that the model requires.  brian2genn changes
#: Brian's default for the whole process.
SCHEDULE = ["start", "groups", "thresholds", "synapses", "resets", "end"]


def networks_with(brian_object: Any) -> list[Network]:
    """Return the networks that contain `brian_object`.

    Brian tells an object which network runs it only after its first run.
    """
    # Copy the lists, since another thread may be creating or changing networks. An incomplete
    # network may lack `objects`.
    networks = [reference() for reference in list(Network.__instances__())]
    return [
        network
        for network in networks
        if network is not None and _contains(getattr(network, "objects", ()), brian_object)
    ]


def _contains(objects, wanted):
    return any(part is wanted or _contains(part.contained_objects, wanted) for part in list(objects))


def networks_to_run(brian_object: Any) -> list[Network]:
    """Return the networks that may be about to run `brian_object`: after its first run, only one."""
    networks = networks_with(brian_object)
    known = [network for network in networks if network.id == brian_object._network]
    return known or networks


def network_of(brian_object: Any) -> Network:
    """Return the network that has run `brian_object`."""
    return next(net for net in networks_with(brian_object) if net.id == brian_object._network)


def time_simulated(brian_object: Any) -> tuple[float, bool]:
    """Return until when an object has been simulated, in seconds, and whether this is certain.

    Networks share clocks, which show the time of the network that used them last, and an object does not
    keep the network that ran it.  So the time is certain only while that network exists.
    """
    own = brian_object._network
    if own is None:
        return 0.0, True
    # Brian gives its magic network a new number when it begins anew, without the objects from before.
    for network in (magic_network, *networks_with(brian_object)):
        if network.id == own:
            return float(network.t), True
    return float(brian_object.clock.variables["t"].get_value().item()), False


def planned_steps(clock: Any) -> int:
    """Return the number of steps in the run that is being prepared, or was just described.

    A standalone program has not run yet, so the values of its variables are unknown.
    """
    return int(clock._i_end - clock.variables["timestep"].get_value().item())


def operations_of(network: Network) -> list[Any]:
    """Return the parts of a network in the order in which the current device runs them in each step."""
    fixed, chosen = get_device().network_schedule, network._schedule
    try:
        if fixed is not None:
            network._schedule = list(fixed)
        return network.sorted_objects
    finally:
        network._schedule = chosen


def code_of(operation: Any) -> tuple[str, Mapping[str, Any]]:
    """Return the statements of an operation, and the variables that they may name.

    For parts of a network that have no statements, the text is empty.
    """
    if isinstance(operation, SynapticPathway):
        return operation.code, operation.synapses.variables
    if isinstance(operation, Resetter):
        return operation.group.event_codes[operation.event], operation.group.variables
    if isinstance(operation, CodeRunner):
        return operation.abstract_code or "", operation.group.variables
    return "", {}


def is_pathway(operation: Any) -> bool:
    """Return whether an operation of a network delivers spikes."""
    return isinstance(operation, SynapticPathway)
