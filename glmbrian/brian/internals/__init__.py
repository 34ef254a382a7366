"""Everything the package uses from Brian 2 beyond its documented interface, by topic.

Each function says why; `tests/brian/test_brian_internals.py` checks each of them with the installed
Brian version.  The names below are those that other folders need.
"""

# ruff: noqa: F401
from .arrays import cpp_data, forget_values
from .code_objects import share_code_of_runs, use_numpy
from .devices import (
    complete_standard_streams,
    private_genn_device,
    private_standalone_device,
    runtime_device,
)
from .events import cpp_arriving_synapses, delay_steps, delayed_arrivals, finds_events, spike_array
from .functions import signature, without_python
from .messages import time_steps_may_differ
from .networks import SCHEDULE, networks_with, planned_steps, time_simulated
from .preferences import cpp_preferences, genn_preference, set_cpp_preferences
from .programs import CPP_PROGRAM_CAN_STOP, cpp_run_until
