"""Everything the package uses from Brian 2 beyond its documented interface.

Each function says why; `tests/brian/test_brian_internals.py` checks each of them with the
installed Brian version.
"""

import logging
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cache
from importlib import import_module
from typing import Any

import brian2
import numpy as np
from brian2 import Function, Network, NumpyCodeObject, magic_network, prefs
from brian2.codegen.codeobject import create_runner_codeobj
from brian2.core.base import BrianObjectException
from brian2.core.functions import FunctionImplementationContainer
from brian2.core.spikesource import SpikeSource
from brian2.core.variables import (
    ArrayVariable,
    Constant,
    DynamicArrayVariable,
    Variables,
    VariableView,
)
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice
from brian2.devices.device import all_devices, get_device
from brian2.groups.group import CodeRunner
from brian2.groups.neurongroup import Resetter
from brian2.synapses.synapses import SynapticPathway
from brian2.utils.logger import catch_logs
from joblib import cpu_count

from ..support.validation import warn
from .subgroups import whole_group
from .target import current_target, runs_at_once

_BRIAN_VERSION = tuple(int(part) for part in brian2.__version__.split(".")[:2])

#: Before Brian 2.6, a generated C++ program could not end a run.
CPP_PROGRAM_CAN_STOP = _BRIAN_VERSION >= (2, 6)


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


def finds_events(group: Any, event: str) -> Any:
    """Return the operation that finds in which neurons of `group` an event occurs."""
    whole = whole_group(group)
    return getattr(whole, "thresholder", {}).get(event, whole)


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


def cpp_data(variable: Any) -> str:
    """Return the C++ expression for the first element of a Brian array."""
    name = get_device().get_array_name(variable, access_data=False)
    return f"brian::{name}.data()" if isinstance(variable, DynamicArrayVariable) else f"brian::{name}"


def forget_values(variables: Iterable[Any]) -> None:
    """Make the standalone device read these variables after the run.

    It assumes that a variable is unchanged if none of its own code writes to it.
    """
    for variable in variables:
        get_device().array_cache[variable] = None


def changed_by_operations(variables: Iterable[Any]) -> None:
    """Say that functions which a run calls change these variables, though its code does not name them.

    On the runtime device there is nothing to do.
    """
    if not runs_at_once(get_device()):
        forget_values(variables)


def private_arrays(owner: Any, **values: np.ndarray) -> list[Any]:
    """Return constant Brian arrays with these values, for native code.

    They belong to `owner`, whose own variables, which users see and set, do not include them.
    """
    variables = Variables(owner)
    for name, array in values.items():
        variables.add_array(
            name,
            size=array.size,
            values=array,
            dtype=array.dtype,
            constant=True,
            read_only=True,
            index="0",
        )
    return [variables[name] for name in values]


def replace_pathway_code(pathway: Any, choose: Callable[[], tuple[Any, str] | None]) -> None:
    """Let the method `choose` say, before each run, what a synaptic pathway does in place of its own code.

    It returns a group and a statement that Brian then runs for that group, once in each step in which
    the pathway would run; or None for Brian's own code and queue.
    """
    pathway.__class__ = _with_replaced_code(type(pathway))  # type: ignore[arg-type]
    pathway.add_attribute("choose")
    pathway.choose = weakref.WeakMethod(choose)  # Brian simulates objects for as long as they live


@cache
def _with_replaced_code(pathway_class):
    class Pathway(pathway_class):
        def create_code_objects(self, run_namespace):
            choose = self.choose()
            replacement = choose and choose()
            if replacement is None:
                super().create_code_objects(run_namespace)
                return
            group, code = replacement
            self.codeobj = create_runner_codeobj(
                group,
                code,
                "stateupdate",
                run_namespace={},
                name=f"{self.name}_codeobject*",
                check_units=False,
                codeobj_class=self.codeobj_class,
            )
            self.code_objects[:] = [weakref.proxy(self.codeobj)]

    Pathway.__name__ = pathway_class.__name__
    return Pathway


def remember_values(variable: Any, values: Any) -> None:
    """Tell a standalone device the contents of an array until a run may change it.

    The device remembers values written to fixed arrays, but not to arrays that grow, such as
    the variables of synapses.
    """
    if not runs_at_once(get_device()):
        get_device().array_cache[variable] = np.array(values, dtype=variable.dtype)


def run_args(values: Mapping[tuple[Any, str], Any]) -> dict[Any, np.ndarray]:
    """Return a dict for ``device.run(run_args=...)`` from (group, variable name): value."""
    if _BRIAN_VERSION < (2, 6):
        raise NotImplementedError(
            "run_args need Brian 2.6 or newer; set the values and build again instead"
        )
    # Brian hashes the array's memory, so it must be contiguous.
    return {
        getattr(group, name): np.ascontiguousarray(value) for (group, name), value in values.items()
    }


class _KnownTimeSteps(logging.Filter):
    """Drops Brian's warning about different time steps for some synaptic pathways."""

    def __init__(self):
        super().__init__()
        self.quoted_names = set()

    def filter(self, record):
        message = record.getMessage()
        return not any(name in message for name in self.quoted_names)


_known_time_steps = _KnownTimeSteps()
logging.getLogger("brian2.synapses.synapses.synapses_dt_mismatch").addFilter(_known_time_steps)


def time_steps_may_differ(synapses: Any) -> None:
    """Suppress Brian's warning that source and target of `synapses` have different time steps.

    The result is well defined, and a readout with its own time step would cause the warning in
    every run.  Brian can suppress it only for all synapses, including the user's.
    """
    _known_time_steps.quoted_names.update(f"pathway '{pathway.name}'" for pathway in synapses._pathways)


class _UsersMistakes(logging.Filter):
    """Replaces Brian's request for a bug report if an uncaught error is about an argument of this package.

    Brian's hook for uncaught errors logs them with this request, and the log shows the traceback.
    Its preference `logging.display_brian_error_message` would hide the request for all errors.
    """

    def filter(self, record):
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, BrianObjectException):
            error = error.__cause__  # what went wrong when a run began
        if "unexpected error" in str(record.msg) and type(error) in (TypeError, ValueError):
            traceback = error.__traceback__
            while traceback is not None and traceback.tb_next is not None:
                traceback = traceback.tb_next
            raised_in = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
            if raised_in.partition(".")[0] == __name__.partition(".")[0]:
                record.msg, record.args = "The program ended with an error:", ()
        return True


logging.getLogger("brian2").addFilter(_UsersMistakes())


#: A C++ statement that ends the run of a generated program.
CPP_STOP_RUN = "Network::_globally_stopped = true;"


def keep_time_after_stops(network: Network) -> None:
    """Give the clocks of a generated program the correct time in runs that follow a stop.

    Before each run Brian sets the clocks as if the previous run had reached its planned
    end; the program's network and step count hold the actual time.  Call this after a run
    has been described.
    """
    device, name = get_device(), network.name
    # Only the network that is about to run has objects, since each run clears its network.
    code = f"""
for (auto& object : {name}.objects) {{
    object.first->set_interval({name}.t, {name}.t);
    if (auto clock = dynamic_cast<Clock*>(object.first)) clock->t[0] = clock->timestep[0] * clock->dt[0];
}}
"""
    if code not in device.code_lines["before_network_run"]:
        device.insert_code("before_network_run", code)
        device.insert_code("after_network_run", f"{name}.clear();")
        device.insert_code("main", f"{name}.clear();")


def read_time_after_program(network: Network, group: Any, variable: str) -> None:
    """Make a generated program store the time when `network` ended in a `variable` of `group`.

    Brian's device reads the clocks' time, but assumes that the network ended as planned.
    """
    device = get_device()
    code = f"{cpp_data(group.variables[variable])}[0] = brian::{network.name}.t;"
    if code not in device.code_lines["before_end"]:
        device.insert_code("before_end", code)
        forget_values([group.variables[variable]])


def cpp_run_until(condition: str, network: Network, clock: Any) -> str:
    """Return C++ code that continues a network's time steps until `condition` holds.

    Put it into the main function after a run of that network, which tells Brian what the
    steps consist of; all objects share `clock`.  Up to Brian 2.11, Brian's own loop reads
    the processor time in every step: a system call that takes a fifth of the time of a
    small network.
    """
    return f"""
while (!({condition})) {{
    for (const auto& object : {network.name}.objects)
        if (object.second) object.second();
    {clock.name}.tick();
}}
"""


#: The order of operations in a time step that the model requires.  brian2genn changes
#: Brian's default for the whole process.
SCHEDULE = ["start", "groups", "thresholds", "synapses", "resets", "end"]


def complete_standard_streams() -> None:
    """Open the standard streams that this process lacks, on the null device.

    When Brian calls a compiler, it redirects both output streams by file descriptor, which
    fails in a process that was started without them.
    """
    while True:
        number = os.open(os.devnull, os.O_RDWR)
        if number > 2:
            os.close(number)
            break
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for as long as Python runs)


#: The module `brian2.devices.device`, hidden by the proxy of the same name.
_devices = import_module("brian2.devices.device")


class _Turns:
    """Lets one thread at a time replace the active device, which all threads share."""

    def __init__(self):
        self._lock = threading.RLock()
        self._users_device = None
        self._depth = 0
        # A forked child has a copy of the lock but not the thread that would release it.
        os.register_at_fork(after_in_child=self._renew)

    @contextmanager
    def device(self, device):
        """Make `device` active, and restore the previous device afterwards.

        Brian's own `set_device` and `reset_device` would copy the time step from one default
        clock to the other, and write it to the user's standalone project.
        """
        with self._lock:
            before = _devices.active_device
            if self._depth == 0:
                self._users_device = before
            self._depth += 1
            try:
                _devices.active_device = device
                yield device
            finally:
                self._depth -= 1
                # One of the user's threads may have set another device meanwhile.
                if _devices.active_device is device:
                    _devices.active_device = before

    def _renew(self):
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
            self._lock.release()
            return
        self._lock = threading.RLock()
        self._depth = 0
        _devices.active_device = self._users_device


_turns = _Turns()


@contextmanager
def runtime_device() -> Iterator[Any]:
    """Simulate in this process, even while the user is describing a standalone network.

    Only one thread at a time can be in this context.
    """
    users = get_device()
    own = users if runs_at_once(users) else all_devices["runtime"]
    with _turns.device(own) as device:
        try:
            yield device
        except BaseException:
            # Brian does not reset this after an error, and would treat the next Ctrl-C as a
            # request to stop this run.
            Network._globally_running = False
            raise


def use_numpy(group: Any) -> None:
    """Run a group on Brian's NumPy target, whatever the preferences.

    For groups without an argument `codeobj_class`.
    """
    for part in (group, *group.contained_objects):
        part.codeobj_class = NumpyCodeObject


@contextmanager
def double_precision() -> Iterator[None]:
    """Create Brian objects in double precision, whatever the user's preference."""
    before = prefs.core.default_float_dtype
    prefs.core.default_float_dtype = np.float64
    try:
        yield
    finally:
        prefs.core.default_float_dtype = before


def share_code_of_runs(group: Any) -> None:
    """Make the runs of a standalone program share the code of a group's own operations.

    For each run Brian generates a C++ file for each operation, so that a program of hundreds of runs
    has thousands of files to compile, nearly all of them equal.
    """
    if not current_target().takes_several_runs:
        return
    for runner in group.contained_objects:
        if isinstance(runner, CodeRunner):
            runner.__class__ = _sharing_code(type(runner))  # type: ignore[assignment, arg-type]


@cache
def _sharing_code(runner_class):
    class Runner(runner_class):
        def create_code_objects(self, run_namespace):
            super().create_code_objects(run_namespace)
            if runs_at_once(get_device()):
                return
            for number, new in enumerate(self.code_objects):
                old = _equal_code_object(new.name)
                if self.codeobj is not None and self.codeobj.name == new.name:
                    self.codeobj = old
                self.code_objects[number] = weakref.proxy(old)

    Runner.__name__ = runner_class.__name__
    return Runner


def _equal_code_object(name):
    """Return an earlier code object that does the same as the one called `name`, or this one itself.

    An earlier one takes its place in the program.
    """
    device = get_device()
    new = device.code_objects[name]
    for old in device.code_objects.values():
        if old is new:
            break
        if old.template_name == new.template_name and _program_text(old) == _program_text(new):
            del device.code_objects[name]
            if name in device.profiled_codeobjects:
                device.profiled_codeobjects.remove(name)
            return old
    return new


def _program_text(code_object):
    """Return all that a code object contributes to the files of a program, without its name."""
    code = code_object.code
    texts = code.values() if isinstance(code, Mapping) else [code]
    files = [str(text).replace(code_object.name, "") for text in texts]
    constants = {
        name: variable.value if isinstance(variable, Constant) else variable
        for name, variable in code_object.variables.items()
        if isinstance(variable, (Constant, ArrayVariable))
    }
    return files, constants


#: From this many C++ files on, a compiler for each at once needs too much memory.
_MANY_FILES = 100

_warned_of_compilers: weakref.WeakSet = weakref.WeakSet()


def warn_of_many_compilers(brian_object: Any) -> None:
    """Warn, once a network, if building its standalone program would start very many compilers.

    With Brian's own preference, make starts a compiler for every file at once.
    """
    device = get_device()
    if runs_at_once(device) or prefs.devices.cpp_standalone.extra_make_args_unix != ["-j"]:
        return
    n_files = len(device.code_objects)
    if n_files < _MANY_FILES or any(net in _warned_of_compilers for net in networks_with(brian_object)):
        return
    _warned_of_compilers.update(networks_with(brian_object))
    warn(
        f"this program consists of {n_files} C++ files so far, and Brian's preference for make starts a "
        "compiler for each of them at once, which can exhaust the memory. Before you build it, bound "
        "them, for example by prefs.devices.cpp_standalone.extra_make_args_unix = "
        f"['-j{cpu_count()}']"
    )


def generate_in_double_precision(group: Any) -> None:
    """Make Brian generate a group's code without rounding its constants.

    If single precision is preferred, Brian rounds the numbers in expressions even where all
    variables are double, and potentials would differ in the eighth digit.
    """
    for runner in group.contained_objects:
        runner.__class__ = _in_double_precision(type(runner))  # type: ignore[arg-type]


@cache
def _in_double_precision(runner_class):
    class Runner(runner_class):
        def before_run(self, run_namespace):
            with double_precision():
                super().before_run(run_namespace)

    Runner.__name__ = runner_class.__name__
    return Runner


class UnknownName(KeyError, ValueError):
    """An unknown name: a KeyError, as in Brian, with a message that says what to write."""

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


def explain_unknown_variables(group: Any, explanations: dict[str, str]) -> None:
    """Make a group explain names that look like its state variables but are not.

    Monitors look names up in ``group.variables``, whose error message is just the name.
    `explanations` maps names to texts.
    """
    group.variables.__class__ = _ExplainedVariables
    group.variables.explanations = explanations


class _ComputedView(VariableView):
    def set_item(self, item, value, level=0, namespace=None):
        if not self.variable.takes_values:
            raise TypeError(self.variable.advice)
        super().set_item(item, value, level=level + 1, namespace=namespace)


class _ComputedVariable(ArrayVariable):
    takes_values = False

    def get_addressable_value(self, name, group):
        return _ComputedView(name, self, group, dimensions=None)

    def get_addressable_value_with_unit(self, name, group):
        return _ComputedView(name, self, group, dimensions=self.dim)


def refuse_values(group: Any, name: str, advice: str) -> None:
    """Make assignments to a variable of `group` raise a TypeError that gives `advice`.

    Brian's own flag for this would also change which values a standalone device remembers, and
    what ``get_states`` returns.
    """
    group.variables[name].__class__ = _ComputedVariable
    group.variables[name].advice = advice


def take_values(group: Any, name: str, taken: bool) -> None:
    """Say whether assignments to a variable that `refuse_values` has been called for are allowed."""
    group.variables[name].takes_values = taken


@contextmanager
def values_taken(group: Any, name: str) -> Iterator[None]:
    """Allow assignments to a variable that `refuse_values` has been called for."""
    variable = group.variables[name]
    before, variable.takes_values = variable.takes_values, True
    try:
        yield
    finally:
        variable.takes_values = before


@contextmanager
def private_standalone_device() -> Iterator[CPPStandaloneDevice]:
    """Return a context in which a new C++ standalone device is active.

    ``set_device("cpp_standalone")`` would switch to the shared instance, for which the user
    may be describing a network.
    """
    complete_standard_streams()
    with _turns.device(CPPStandaloneDevice()) as device, double_precision():
        device.activate(build_on_run=False)
        # GCC vectorises a loop over many arrays only if it may check that many for overlap.
        device.extra_compile_args.append("--param=vect-max-version-for-alias-checks=100")
        yield device


@contextmanager
def private_genn_device(
    genn: str | None, cuda: str | None, header: str, **options: Any
) -> Iterator[Any]:
    """Return a context in which a new GeNN device is active.

    The device builds with these `options` when the network runs, since brian2genn cannot
    build later.

    Parameters
    ----------
    genn, cuda : str or None
        The folders of GeNN and CUDA.
    header : str
        A C++ header for all generated files.
    **options
        Options of brian2genn's `build`.
    """
    from brian2genn.device import GeNNDevice

    chosen = {
        "devices.genn.path": genn,
        "devices.genn.cuda_backend.cuda_path": cuda,
        # GeNN 4.9 fails with dense connectivity.
        "devices.genn.connectivity": "SPARSE",
        "codegen.cpp.headers": [*prefs["codegen.cpp.headers"], header],
    }
    complete_standard_streams()
    with _turns.device(GeNNDevice()) as device, double_precision(), _same_preferences():
        for name, value in chosen.items():
            prefs[name] = value
        # brian2genn would tell the user to restore preferences that are restored here.
        with catch_logs(log_level=logging.INFO):
            device.activate(build_on_run=True, **options)
            yield device


@contextmanager
def _same_preferences():
    """Restore all preferences afterwards, including those that brian2genn changes."""
    before, backup = dict(prefs), dict(prefs.backup_prefs)
    try:
        yield
    finally:
        for name, value in before.items():
            if prefs[name] is not value:
                prefs[name] = value
        prefs.backup_prefs = backup


#: Prefixes of the preferences that control how C++ code is generated and compiled.
_CPP_PREFERENCES = ("codegen.cpp.", "devices.cpp_standalone.", "devices.genn.")


def cpp_preferences() -> dict[str, Any]:
    """Return the preferences that affect C++ programs.

    They include those that a preference file sets for brian2genn before it is imported.
    """
    every = {**prefs.prefs_unvalidated, **prefs}
    return {name: value for name, value in every.items() if name.startswith(_CPP_PREFERENCES)}


def set_cpp_preferences(preferences: Mapping[str, Any]) -> None:
    """Set all preferences to Brian's defaults, except those that `cpp_preferences` returned."""
    if any(name.startswith("devices.genn.") for name in preferences):
        import brian2genn  # noqa: F401  (registers the preferences)
    prefs.reset_to_defaults()
    for name, value in preferences.items():
        prefs[name] = value


def genn_preference(name: str) -> Any:
    """Return a preference of brian2genn, or None, without importing brian2genn.

    The import would register a device and preferences.
    """
    return cpp_preferences().get(f"devices.genn.{name}")


def signature(function: Function) -> str:
    """Return a text that identifies the types of a Brian function in generated code."""
    return repr([function._arg_types, function._return_type, function.stateless])


class _Uncalled:
    """Stands for the Python form of a Brian function where only its C++ code is needed."""

    def __init__(self, name):
        self.__name__ = name


def without_python(value: Any) -> Any:
    """Return a namespace value for use in C++ code only.

    Functions are copied without their Python and Cython code, which may refer to arbitrary user
    objects and may not be available in another process.
    """
    if type(value) is not Function:
        return value
    plain = copy(value)
    plain.pyfunc = _Uncalled(getattr(value.pyfunc, "__name__", "function"))
    plain.implementations = FunctionImplementationContainer(plain)
    for target, made in value.implementations._implementations.items():
        if getattr(target, "class_name", target) not in ("numpy", "cython"):
            made = copy(made)
            used = (made.dependencies or {}).items()
            made.dependencies = {name: without_python(function) for name, function in used}
            plain.implementations._implementations[target] = made
    return plain
