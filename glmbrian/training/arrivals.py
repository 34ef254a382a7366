"""Where spikes arrive in each step, on the runtime device."""

from collections.abc import Callable
from typing import Any

import numpy as np
from brian2 import NetworkOperation

from ..brian.internals import delay_steps, delayed_arrivals, spike_array
from ..brian.subgroups import whole_group


class Recorder(NetworkOperation):
    """Calls `record` with the synapses where spikes arrive, in each step of their source."""

    def __init__(self, pathway: Any, record: Callable[[np.ndarray], None], name: str) -> None:
        self.pathway = pathway
        super().__init__(
            lambda: record(self._arriving()),
            clock=pathway.clock,
            when=pathway.when,
            # before the pathway handles the spikes of this step
            order=pathway.order - 1,
            name=name,
        )

    def before_run(self, run_namespace: Any) -> None:
        # Delays may have changed since the last run.
        super().before_run(run_namespace)
        source = whole_group(self.pathway.source)
        self.spikes = spike_array(source, self.pathway.event).get_value()
        sources = self.pathway.synapse_sources.get_value()
        at_once = np.flatnonzero(np.broadcast_to(delay_steps(self.pathway), sources.shape) == 0)
        order = np.argsort(sources[at_once], kind="stable")
        # those from neuron j are at_once[first[j] : first[j + 1]]
        self.at_once = at_once[order]
        self.first = np.searchsorted(sources[self.at_once], np.arange(len(source) + 1))

    def _arriving(self):
        delayed = delayed_arrivals(self.pathway)
        spikes = self.spikes[: self.spikes[-1]]
        begin, count = self.first[spikes], np.diff(self.first)[spikes]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return np.concatenate([delayed, self.at_once[np.repeat(begin, count) + within]])
