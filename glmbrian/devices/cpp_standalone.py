"""The C++ standalone device: training or testing as one compiled program.

Brian generates the network's code; `native/presentations.hpp` holds what happens
between its time steps.  The program needs no Python to run.
"""

import errno
import os
import shutil
from pathlib import Path

from brian2 import Clock, NeuronGroup, ms, prefs
from brian2 import Network as BrianNetwork

from ..brian_internals import SCHEDULE, cpp_run_until, private_standalone_device, spike_array
from ..neurons import GLMNeurons, channel_names
from ..operations import new_operation
from ..processes import how_it_ended, run_watched
from .program import Program, pointer, pointers, read_exported, write_headers, write_training

__all__ = ["CompilerNotFound", "export", "find_compiler", "read_exported", "test", "train"]

_HEADERS = ("presentations.hpp", "rows.hpp")

#: The operations of native/presentations.hpp and the slots in which they are called.
_OPERATIONS = {
    "begin_step": "start",
    "propagate": "synapses",
    "end_step": "end",
}


class CompilerNotFound(RuntimeError):
    """There is no C++ compiler on this machine."""


def export(network, parameters, inputs, labels, training, folder):
    """Write a project into the empty `folder` that trains by itself, with make."""
    _generate(network, folder)
    write_training(folder / "job", network, parameters, inputs, labels, training)
    # Brian's makefile gets a target that runs, and the name that people look for.
    # Where file names do not tell cases apart, these two are one file.
    text = (folder / "makefile").read_text().replace(" makefile", " Makefile")
    (folder / "makefile").unlink()
    (folder / "Makefile").write_text(text + "\nrun: all\n\t./$(PROGRAM)\n\n.PHONY: run\n")


def find_compiler():
    """Return the path of the C++ compiler that the makefile calls, or None."""
    if shutil.which("make") is None:
        return None
    return shutil.which(os.environ.get("CXX", "g++"))


def _command(folder, network, n_phases):
    return [str(folder / "main")], None


def _build(network, folder):
    if find_compiler() is None:
        raise CompilerNotFound(
            "device='cpp_standalone' needs a C++ compiler and make, and none was found: "
            "install them (such as the packages g++ and make) or use device='runtime'"
        )
    _generate(network, folder)
    _make(folder)
    shutil.rmtree(folder / "code_objects")
    for leftover in [*folder.rglob("*.o"), folder / "make.deps"]:
        leftover.unlink(missing_ok=True)


def _make(folder):
    """Compile the project in `folder` with Brian's make command.

    Brian itself would run it in a way that ignores Ctrl-C and leaves what the
    compiler says on the terminal.
    """
    settings = prefs.devices.cpp_standalone
    command = " ".join([settings.make_cmd_unix, *settings.extra_make_args_unix])
    # In English, so that it is known what a compiler complains of.
    environment = {**os.environ, "LC_ALL": "C"}
    returncode, log = run_watched(["/bin/sh", "-c", command], folder, environment)
    if returncode == 0:
        return
    for number in (errno.ENOSPC, errno.EDQUOT):
        if os.strerror(number) in log:
            raise OSError(number, os.strerror(number), str(folder))
    end = "\n".join(log.splitlines()[-20:])
    raise RuntimeError(
        f"compiling for device='cpp_standalone' failed: {command!r} {how_it_ended(returncode)}. "
        "See the activation's C++ code and Brian's preferences codegen.cpp and "
        f"devices.cpp_standalone. The end of its output:\n{end}"
    )


def _generate(network, folder):
    """Write the C++ project of `network` into `folder`."""
    folder = Path(folder)
    with private_standalone_device() as device:
        clock = Clock(dt=1 * ms, name="glm_clock")
        neurons = GLMNeurons(
            network.n_outputs,
            network.basis,
            feedback=network.feedback_basis,
            activation=network.activation,
            clock=clock,
            name="glm_outputs",
            random_state=0,
        )
        presentations = NeuronGroup(1, "done : integer (shared)", clock=clock, name="glm_presentations")
        for operation, when in _OPERATIONS.items():
            presentations.namespace[operation] = _operation(operation)
            presentations.run_regularly(
                f"done = {operation}(done)", when=when, order=1, clock=clock, name=operation
            )
        brian = BrianNetwork(neurons, presentations)
        brian.schedule = SCHEDULE
        # A run of no steps, since only the program knows how many there will be.
        brian.run(0 * ms, namespace={})
        done = device.get_array_name(presentations.variables["done"])
        device.insert_code("main", cpp_run_until(f"{done}[0]", brian, clock))
        lines = _brian_arrays(network, neurons, clock, device.get_array_name)
        write_headers(network, folder, _HEADERS, lines)
        device.build(directory=str(folder), compile=False, run=False, with_output=False)


def _operation(name):
    function = new_operation()
    function.implementations.add_implementation(
        "cpp",
        f"static inline int {name}(int done) {{ return glmbrian::presentations().{name}(); }}",
        compiler_kwds={"headers": [f'"{_HEADERS[0]}"']},
    )
    return function


def _brian_arrays(network, neurons, clock, array_name):
    """Return the C++ functions that tell where Brian keeps its variables."""
    variables = neurons.variables
    timestep = array_name(clock.variables["timestep"])
    n_feedback = network.feedback_basis.n_basis if network.feedback_basis else 0
    channels = channel_names("stimulus", network.basis)
    feedback_weights = [f"feedback_weight_{k}" for k in range(n_feedback)]
    return [
        pointer("output_spikes", array_name(spike_array(neurons)), "int32_t"),
        pointer("potential", array_name(variables["u"]), "double"),
        pointer("bias", array_name(variables["bias"]), "double"),
        pointer("clamp", array_name(variables["clamp"]), "int32_t"),
        pointer("neuron_key_low", array_name(variables["key_low"]), "int32_t"),
        pointer("neuron_key_high", array_name(variables["key_high"]), "int32_t"),
        pointer("neuron_presentation", array_name(variables["presentation"]), "int32_t"),
        pointer("neuron_first_step", array_name(variables["first_step"]), "int32_t"),
        pointers("channel", [array_name(variables[name]) for name in channels]),
        pointers("feedback_weight", [array_name(variables[name]) for name in feedback_weights]),
        "inline void clear_filters()\n{",
        *(
            f"    std::fill_n(brian::{array_name(variables[name])}, {variables[name].size}, 0.0);"
            for name in neurons.filter_state
        ),
        "}",
        f"inline int64_t timestep() {{ return brian::{timestep}[0]; }}",
    ]


_PROGRAM = Program(
    build=_build,
    command=_command,
    sources=("devices/cpp_standalone.py", *(f"native/{header}" for header in _HEADERS), "neurons.py"),
    setting=lambda network: find_compiler(),
)
train, test = _PROGRAM.train, _PROGRAM.test
