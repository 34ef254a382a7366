"""The stop condition: a presentation ends at the first output spike."""

from typing import Any

import numpy as np
from brian2 import NeuronGroup, get_device
from brian2.core.base import BrianObject
from brian2.core.magic import stop
from brian2.core.variables import Variables
from brian2.groups.group import Group
from brian2.groups.subgroup import Subgroup

from ..support.display import Described
from .arguments import check_brian_arguments
from .internals.code_objects import share_code_of_runs
from .internals.events import finds_events, require_events, spike_array
from .internals.networks import network_of
from .internals.programs import (
    CPP_PROGRAM_CAN_STOP,
    CPP_STOP_RUN,
    keep_time_after_stops,
    read_time_after_program,
)
from .operations import new_operation
from .step_order import step_orders
from .subgroups import span, whole_group
from .target import current_target


class FirstSpikeStop(Described, Group):
    """Ends the run at the end of the step in which one of the neurons first spikes.

    With one run per presentation, no steps are simulated after a decision: on the
    runtime device ``run`` returns, and a generated C++ program continues with the
    next ``run``.  (`GLMClassifier` compiles all presentations into one run, where
    a decision also ends the presentation and starts the next.)

    Parameters
    ----------
    neurons : NeuronGroup or Subgroup
        The neurons to watch.
    name : str, optional

    Raises
    ------
    TypeError
        If `neurons` do not spike.
    NotImplementedError
        On the GeNN device, and in C++ standalone with Brian before 2.6.

    Notes
    -----
    The C++ standalone device needs Brian 2.6 or newer: with older versions a generated
    program cannot end a run.  On this device ``network.t`` is correct after the program
    has run; before that, it is the time at which all runs would end without a stop.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import Network, ms
    >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2), dt=1 * ms)
    >>> neurons.clamp = [-1, 1]
    >>> network = Network(neurons, glm.FirstSpikeStop(neurons))
    >>> network.run(100 * ms)
    >>> network.t
    1. * msecond
    """

    add_to_magic_network = True

    def __init__(self, neurons: NeuronGroup | Subgroup, name: str = "firstspikestop*") -> None:
        require_events(neurons, "neurons")
        if not current_target().can_stop:
            raise NotImplementedError(
                "FirstSpikeStop: GeNN cannot end a run at a spike; use another device, or "
                "GLMClassifier(device='genn'), which still decides at the first spike"
            )
        check_brian_arguments(name=name)
        group, place = whole_group(neurons), span(neurons)
        first, last = place.start, place.stop
        BrianObject.__init__(self, clock=group.clock, name=name)
        self.neurons = neurons
        self.add_dependency(group)
        self.variables = Variables(self)
        self.variables.add_constant("N", 1)
        self.variables.add_array("done", size=1, dtype=np.int32)
        self.variables.add_array("network_time", size=1, dtype=np.float64)
        self._enable_group_attributes()
        function = f"glm_stop_{first}_{last}"
        self.namespace[function] = _stop_function(function, group, first, last)
        self.run_regularly(
            f"done = {function}(done)", clock=group.clock, when="end", name=f"{self.name}_operation"
        )
        share_code_of_runs(self)

    def before_run(self, run_namespace: Any) -> None:
        super().before_run(run_namespace)
        for order in step_orders(self):
            order.require(finds_events(self.neurons, "spike"), *self.contained_objects)

    def after_run(self) -> None:
        super().after_run()
        if not current_target().runs_at_once:
            network = network_of(self)
            keep_time_after_stops(network)
            read_time_after_program(network, self, "network_time")

    def _check_for_invalid_states(self):
        # Brian calls this after a program has run.
        super()._check_for_invalid_states()
        if not current_target().runs_at_once:
            network_of(self).t_ = self.variables["network_time"].get_value().item()

    def _title(self):
        return f"{type(self).__name__} {self.name!r}"

    def _description(self):
        return {"watches": f"the {len(self.neurons)} neurons of {self.neurons.name!r}"}


def _stop_function(name, group, first, last):
    """Return a Brian function that stops the run if a neuron in [first, last) spiked."""

    def numpy_code(owner):
        spikespace = spike_array(group).get_value()

        def stop_at_spike(done):
            spikes = spikespace[: spikespace[-1]]
            if ((spikes >= first) & (spikes < last)).any():
                stop()
            return done

        return stop_at_spike

    def cython_code(owner):
        return f"""
cdef int {name}(int done):
    global _namespace{name}_spikes
    cdef int index
    for index in range(_namespace{name}_spikes[{len(group)}]):
        if {first} <= _namespace{name}_spikes[index] < {last}:
            from brian2.core.magic import stop
            stop()
            break
    return done
"""

    def cpp_code(owner):
        if not CPP_PROGRAM_CAN_STOP:
            raise NotImplementedError(
                "FirstSpikeStop on the C++ standalone device needs Brian 2.6 or newer; "
                "use the runtime device, or GLMClassifier"
            )
        device = get_device()
        spikes = device.get_array_name(spike_array(group))
        return f"""
static inline int {name}(int done)
{{
    for (int index = 0; index < brian::{spikes}[{len(group)}]; index++)
    {{
        const int neuron = brian::{spikes}[index];
        if (neuron >= {first} && neuron < {last}) {{ {CPP_STOP_RUN} }}
    }}
    return done;
}}
"""

    function = new_operation()
    add = function.implementations.add_dynamic_implementation
    add("numpy", numpy_code)
    add("cpp", cpp_code, lambda owner: None)
    add("cython", cython_code, lambda owner: {f"{name}_spikes": spike_array(group).get_value()})
    return function
