"""The stop condition: a presentation is over at the first output spike."""

from brian2 import CodeRunner, get_device
from brian2.core.magic import stop

from .brian_internals import (
    CPP_PROGRAM_CAN_STOP,
    CPP_STOP_RUN,
    on_genn,
    require_spikes,
    spike_array,
)
from .operations import new_operation


class FirstSpikeStop(CodeRunner):
    """Ends the run at the end of the step in which one of the neurons first spikes.

    With one run a presentation, no steps are simulated after a decision: on the
    runtime device ``run`` returns, and a generated C++ program goes on with the
    next ``run``.  (`GLMClassifier` compiles all presentations into one run, in
    which a decision likewise ends the presentation and starts the next.)

    Parameters
    ----------
    neurons : NeuronGroup or Subgroup
        The neurons to be watched.
    name : str, optional

    Raises
    ------
    TypeError
        If `neurons` do not spike.
    NotImplementedError
        On the GeNN device, and in C++ standalone with a Brian before 2.6.

    Notes
    -----
    On the C++ standalone device this needs Brian 2.6 or newer: before, a
    generated program could not end a run.  There the time ``t`` (not the number of
    the step) is wrong in the first step after a stop: Brian's generated code sets
    it as if the run had gone to its end.

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

    def __init__(self, neurons, name="firstspikestop*"):
        require_spikes(neurons, "neurons")
        if on_genn():
            raise NotImplementedError(
                "FirstSpikeStop: GeNN cannot end a run at a spike; use another device, or "
                "GLMClassifier(device='genn'), which decides at the first spike all the same"
            )
        group = getattr(neurons, "source", neurons)
        first, last = getattr(neurons, "start", 0), getattr(neurons, "stop", len(group))
        function = f"glm_stop_{first}_{last}"
        group.namespace[function] = _stop_function(function, first, last)
        super().__init__(
            group,
            "stateupdate",
            code=f"_stopped = {function}(N)",
            clock=group.clock,
            when="end",
            name=name,
        )


def _stop_function(name, first, last):
    """Return the Brian function that stops if a neuron from [first, last) spiked."""

    def numpy_code(owner):
        spikespace = spike_array(owner).get_value()

        def stop_at_spike(n):
            spikes = spikespace[: spikespace[-1]]
            if ((spikes >= first) & (spikes < last)).any():
                stop()
            return 0

        return stop_at_spike

    def cython_code(owner):
        return f"""
cdef int {name}(int n):
    global _namespace{name}_spikes
    cdef int index
    for index in range(_namespace{name}_spikes[n]):
        if {first} <= _namespace{name}_spikes[index] < {last}:
            from brian2.core.magic import stop
            stop()
            break
    return 0
"""

    def cpp_code(owner):
        if not CPP_PROGRAM_CAN_STOP:
            raise NotImplementedError(
                "FirstSpikeStop on the C++ standalone device needs Brian 2.6 or newer; "
                "use the runtime device, or GLMClassifier"
            )
        device = get_device()
        spikes = device.get_array_name(spike_array(owner))
        return f"""
static inline int {name}(int n)
{{
    for (int index = 0; index < brian::{spikes}[n]; index++)
    {{
        const int neuron = brian::{spikes}[index];
        if (neuron >= {first} && neuron < {last}) {{ {CPP_STOP_RUN} }}
    }}
    return 0;
}}
"""

    function = new_operation()
    add = function.implementations.add_dynamic_implementation
    add("numpy", numpy_code)
    add("cpp", cpp_code, lambda owner: None)
    add("cython", cython_code, lambda owner: {f"{name}_spikes": spike_array(owner).get_value()})
    return function
