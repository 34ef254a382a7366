"""C++ programs that Brian generates: how their runs end, and how they are compiled.

Brian's interface can insert code, but has no names for what the code needs.
"""

import weakref
from typing import Any

from brian2 import Network, prefs
from brian2.devices.device import get_device
from joblib import cpu_count

from ...support.validation import warn
from ..target import runs_at_once
from .arrays import BRIAN_VERSION, cpp_data, forget_values
from .networks import networks_with

#: Before Brian 2.6, a generated C++ program could not end a run.
CPP_PROGRAM_CAN_STOP = BRIAN_VERSION >= (2, 6)

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
