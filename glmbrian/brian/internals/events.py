"""Which neurons spike in the current step, and at which synapses spikes arrive.

Brian's interface offers spikes to statements of single synapses only, and its queue to nobody.
"""

from typing import Any

import numpy as np
from brian2.core.spikesource import SpikeSource

from ..subgroups import whole_group


def spike_array(group: Any, event: str = "spike") -> Any:
    """Return the variable that holds a group's spikes, or other events, in the current step.

    Entries are indices of neurons; the last entry is their number.  Operations that use all
    spikes at once need it; Brian's interface offers spikes only per synapse.
    """
    return group.variables[f"_{event}space"]


def require_events(group: Any, name: str, event: str = "spike") -> None:
    """Raise a TypeError naming the argument `name` unless `group` can spike, or has another `event`."""
    whole = whole_group(group)
    if not isinstance(group, SpikeSource) or f"_{event}space" not in getattr(whole, "variables", ()):
        needs = (
            "that spikes (a NeuronGroup needs a threshold)"
            if event == "spike"
            else f"with the event {event!r}, as in NeuronGroup(..., events={{{event!r}: 'v > 1'}})"
        )
        raise TypeError(f"{name} must be a group {needs}, got {group!r}")


def finds_events(group: Any, event: str) -> Any:
    """Return the operation that finds in which neurons of `group` an event occurs."""
    whole = whole_group(group)
    return getattr(whole, "thresholder", {}).get(event, whole)


def delayed_arrivals(pathway: Any) -> np.ndarray:
    """Return the synapses where spikes sent in earlier steps arrive in this step.

    Call it on the runtime device, before the pathway handles the spikes of this step, which
    are therefore not included.  Brian's interface does not tell what arrives when.
    """
    return pathway.queue.peek().copy()


def delay_steps(pathway: Any) -> np.ndarray:
    """Return the delay of each synapse in steps of its source, rounded as Brian does.

    The array has one entry if all synapses share one delay.
    """
    delays = pathway.variables["delay"].get_value()
    return np.floor(delays / pathway.source.clock.dt_ + 0.5).astype(int)


def cpp_arriving_synapses(pathway: Any, statement: str) -> str:
    """Return C++ code that runs `statement` for each `synapse` where a spike arrives.

    Run it after the pathway has handled the spikes of this step.
    """
    queues = f"brian::{pathway.name}.queue"  # one per thread
    return f"for (auto* queue : {queues}) for (const int synapse : *queue->peek()) {statement}"
