"""All that the package needs from Brian 2 beyond its documented interface.

Each function says why; `tests/test_brian_internals.py` checks each of them on the
Brian version at hand.
"""

import logging
from contextlib import contextmanager
from functools import lru_cache

import brian2
import numpy as np
from brian2 import prefs
from brian2.core.spikesource import SpikeSource
from brian2.core.variables import DynamicArrayVariable, Variables
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice
from brian2.devices.device import (
    RuntimeDevice,
    all_devices,
    get_device,
    reset_device,
    set_device,
)
from brian2.utils.logger import catch_logs

_BRIAN_VERSION = tuple(int(part) for part in brian2.__version__.split(".")[:2])

#: Before 2.6 nothing inside a generated C++ program could end a run.
CPP_PROGRAM_CAN_STOP = _BRIAN_VERSION >= (2, 6)


def on_genn():
    """Whether the active device is GeNN's, which cannot do all that others can."""
    return type(get_device()).__name__ == "GeNNDevice"


def step_and_index(alias):
    """Return how a threshold names the time step, and the neuron's index.

    The index gets an `alias` (see `add_index_alias`), since Brian would warn of every
    `i` in a user's notebook.  GeNN's code knows no aliases and no time steps, only
    the time.
    """
    return ("glm_step(t, dt)", "i") if on_genn() else ("t_in_timesteps", alias)


def shared_flag():
    """Return the flag of variables that are one for the group, if the device has them.

    In brian2genn's code shared variables keep the value that they had at first.
    """
    return "" if on_genn() else "(shared)"


def add_index_alias(group, alias):
    """Make `alias` another name of the index ``i`` in `group`, except on GeNN."""
    if not on_genn():
        group.variables.add_reference(alias, group, "i")


def spike_array(group):
    """Return the variable in which a group keeps the spikes of this step.

    Entries are indices of neurons, the last entry is their number.  Needed by
    operations that look at spikes as a whole; Brian offers them per synapse only.
    """
    return group.variables["_spikespace"]


def require_spikes(group, name):
    """Raise a TypeError naming the argument `name` unless `group` can spike."""
    whole = getattr(group, "source", group)
    if not isinstance(group, SpikeSource) or "_spikespace" not in getattr(whole, "variables", ()):
        raise TypeError(
            f"{name} must be a group that spikes (a NeuronGroup needs a threshold), got {group!r}"
        )


def delayed_arrivals(pathway):
    """Return the synapses at which spikes sent in earlier steps arrive in this step.

    To be called on the runtime device, before the pathway takes the spikes of this
    step: they are not among those returned.  Brian tells no one what arrives when.
    """
    return pathway.queue.peek().copy()


def delay_steps(pathway):
    """Return the delay of each synapse in steps of its source, rounded as Brian does.

    The array has a single entry if all synapses have one delay.
    """
    delays = pathway.variables["delay"].get_value()
    return np.floor(delays / pathway.source.clock.dt_ + 0.5).astype(int)


def cpp_arriving_synapses(pathway, statement):
    """Return C++ code that runs `statement` for each `synapse` at which a spike arrives.

    To be run after the pathway has taken the spikes of this step.
    """
    queues = f"brian::{pathway.name}.queue"  # one a thread
    return f"for (auto* queue : {queues}) for (const int synapse : *queue->peek()) {statement}"


def cpp_data(variable):
    """Return the C++ expression for the first element of a Brian array."""
    name = get_device().get_array_name(variable, access_data=False)
    return f"brian::{name}.data()" if isinstance(variable, DynamicArrayVariable) else f"brian::{name}"


def forget_values(variables):
    """Make the standalone device read these variables after the run.

    It takes those for unchanged that no code of its own making writes to.
    """
    for variable in variables:
        get_device().array_cache[variable] = None


def remember_values(variable, values):
    """Tell a standalone device what an array holds, until a run may change it.

    It remembers what was written to other arrays, but not to those that grow, such as
    the variables of synapses.
    """
    if not isinstance(get_device(), RuntimeDevice):
        get_device().array_cache[variable] = np.array(values, dtype=variable.dtype)


class _KnownTimeSteps(logging.Filter):
    """Drops Brian's warning of different time steps, for some synaptic pathways."""

    def __init__(self):
        super().__init__()
        self.quoted_names = set()

    def filter(self, record):
        message = record.getMessage()
        return not any(name in message for name in self.quoted_names)


_known_time_steps = _KnownTimeSteps()
logging.getLogger("brian2.synapses.synapses.synapses_dt_mismatch").addFilter(_known_time_steps)


def time_steps_may_differ(synapses):
    """Let Brian not warn that source and target of `synapses` have different time steps.

    What comes of it is defined, and for a readout with steps of its own it would warn in
    every run.  Brian can suppress the warning only for all synapses, the user's included.
    """
    _known_time_steps.quoted_names.update(f"pathway '{pathway.name}'" for pathway in synapses._pathways)


#: A C++ statement that ends the run of a generated program.
CPP_STOP_RUN = "Network::_globally_stopped = true;"


def cpp_run_until(condition, network, clock):
    """Return C++ code that goes on with a network's time steps until `condition` holds.

    It belongs in the main function after a run of that network, which tells Brian
    what its steps consist of; `clock` is the one clock of all.  Brian's own loop, until
    2.11, asks for the processor time in every step: a system call that takes a fifth
    of the time of a small network.
    """
    return f"""
while (!({condition})) {{
    for (const auto& object : {network.name}.objects)
        if (object.second) object.second();
    {clock.name}.tick();
}}
"""


#: The order of operations in a time step that the model is written for.  brian2genn
#: changes Brian's default for a whole process.
SCHEDULE = ["start", "groups", "thresholds", "synapses", "resets", "end"]


@contextmanager
def double_precision():
    """Let Brian objects hold double precision, whatever the user's preference."""
    before = prefs.core.default_float_dtype
    prefs.core.default_float_dtype = np.float64
    try:
        yield
    finally:
        prefs.core.default_float_dtype = before


def generate_in_double_precision(group):
    """Let Brian generate the code of a group with constants that are not rounded.

    With the preference of single precision it rounds the numbers in expressions, to
    potentials that differ in the eighth digit, even where all variables are double.
    """
    for runner in group.contained_objects:
        runner.__class__ = _in_double_precision(type(runner))


@lru_cache(maxsize=None)
def _in_double_precision(runner_class):
    class Runner(runner_class):
        def before_run(self, run_namespace):
            with double_precision():
                super().before_run(run_namespace)

    Runner.__name__ = runner_class.__name__
    return Runner


class UnknownName(KeyError, ValueError):
    """That a name stands for nothing: a KeyError, as Brian raises, that says more."""

    def __str__(self):
        return self.args[0]


class _ExplainedVariables(Variables):
    def __getitem__(self, item):
        try:
            return super().__getitem__(item)
        except KeyError:
            if item not in self.explanations:
                raise
            raise UnknownName(f"there is no variable {item!r}: {self.explanations[item]}") from None


def explain_unknown_variables(group, explanations):
    """Let a group say what to write in place of names that look like its state variables.

    Monitors ask ``group.variables``, whose error is the bare name.  `explanations` is a
    dict of names to texts.
    """
    group.variables.__class__ = _ExplainedVariables
    group.variables.explanations = explanations


@contextmanager
def _private_device(device, **options):
    """Make `device` active, and the former one afterwards.

    ``set_device("cpp_standalone")`` would switch to the one instance that the user
    may be in the middle of describing a network for.
    """
    name = "_glmbrian_private"
    all_devices[name] = device
    set_device(name, **options)
    try:
        with double_precision():
            yield device
    finally:
        reset_device()
        del all_devices[name]


def private_standalone_device():
    """Return a context in which a fresh C++ standalone device is active."""
    return _private_device(CPPStandaloneDevice(), build_on_run=False)


def private_genn_device(**options):
    """Return a context in which a fresh GeNN device is active.

    The device builds with its `options` when the network is run; brian2genn does
    not build afterwards.
    """
    from brian2genn.device import GeNNDevice

    return _private_device(GeNNDevice(), build_on_run=True, **options)


@contextmanager
def genn_preferences(path, header):
    """Set what brian2genn reads from Brian's preferences, and set it back.

    So are those that brian2genn changes by itself when its device gets active.
    `path` is the folder of GeNN, `header` a C++ header for all generated files.
    """
    chosen = {
        "devices.genn.path": path,
        # With dense connectivity GeNN 4.9 stops.
        "devices.genn.connectivity": "SPARSE",
        "codegen.cpp.headers": [*prefs["codegen.cpp.headers"], header],
    }
    import brian2genn  # noqa: F401  (which registers the preferences)

    changed = ["codegen.loop_invariant_optimisations", "core.network.default_schedule"]
    before = {name: prefs[name] for name in [*chosen, *changed]}
    try:
        for name, value in chosen.items():
            prefs[name] = value
        # It would tell the user to set back what is set back here.
        with catch_logs(log_level=logging.INFO):
            yield
    finally:
        for name, value in before.items():
            prefs[name] = value


def compiler_setting():
    """Return the C++ compiler preferences, on which a compiled program depends."""
    names = (
        "compiler",
        "extra_compile_args",
        "extra_compile_args_gcc",
        "define_macros",
        "headers",
        "include_dirs",
        "libraries",
        "library_dirs",
        "extra_link_args",
    )
    chosen = {name: prefs[f"codegen.cpp.{name}"] for name in names}
    return {**chosen, "openmp_threads": prefs["devices.cpp_standalone.openmp_threads"]}
