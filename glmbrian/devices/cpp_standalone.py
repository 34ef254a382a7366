"""The C++ standalone device: training or testing as one compiled program.

Brian generates the network's code; `native/presentations.hpp` does what happens
between its time steps.  The program runs without Python.
"""

import itertools
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
from brian2 import Clock, NeuronGroup, ms, prefs
from brian2 import Network as BrianNetwork
from joblib import cpu_count

from ..brian.internals import SCHEDULE, cpp_run_until, private_standalone_device, spike_array
from ..brian.neurons import GLMNeurons, channel_names
from ..brian.operations import new_operation
from .compiled import CompiledDevice, code_only
from .compiling import compile_project
from .fresh_interpreter import call_apart
from .headers import matrix, pointer, pointers, write_headers
from .job import write_training
from .problem import Network
from .replicas import compiled_replicas

__all__ = ["CompilerNotFound", "CppStandalone", "find_compiler"]

_HEADERS = (
    "operations.hpp",
    "presentations.hpp",
    "adversary.hpp",
    "layers.hpp",
    "synapses.hpp",
    "rows.hpp",
)

#: The operations of native/presentations.hpp and the slots in which they are called.
_OPERATIONS = {
    "begin_step": "start",
    "propagate": "synapses",
    "end_step": "end",
}


#: Takes the place of Brian's threshold, which would draw the spikes of many hidden neurons one by
#: one: compilers can vectorise the loops here.
_HIDDEN_OPERATIONS = {"draw_hidden_spikes": "thresholds"}


class CompilerNotFound(RuntimeError):
    """There is no C++ compiler on this machine."""


class CppStandalone(CompiledDevice):
    """Compiles with Brian's C++ standalone device."""

    name = "cpp_standalone"
    is_concurrent = True

    def build(self, network, folder):
        if find_compiler() is None:
            raise CompilerNotFound(
                f"device='cpp_standalone' needs make and a C++ compiler ({_chosen_compiler()}; the "
                "environment variable CXX chooses another), which were not found: install them (for "
                "example the packages g++ and make) or use device='runtime'"
            )
        _generate(network, folder)
        make(folder, network)
        shutil.rmtree(folder / "code_objects")
        for leftover in [*folder.rglob("*.o"), folder / "make.deps"]:
            leftover.unlink(missing_ok=True)

    def command(self, folder, network, n_phases):
        return [str(folder / "main")], None

    def compiled_replicas(self, network, training, n_items):
        return compiled_replicas(network, training, n_items)

    def setting(self, network):
        return [_chosen_compiler(), find_compiler()]

    def export(self, network, parameters, inputs, labels, training, folder):
        self.check(network, training, inputs)
        network = network.trim_zero_lags()
        _generate(network, folder)
        write_training(folder / "job", network, parameters, inputs, labels, training)
        # Brian's makefile gets a target that runs, and the usual name.
        # Where file names ignore case, the two names are the same file.
        text = (folder / "makefile").read_text().replace(" makefile", " Makefile")
        # Brian's default preferences name folders of this Python environment, before Brian 2.6 without quotes.
        text = re.sub(rf' \S*"?{re.escape(sys.prefix)}/(include|lib)"?(?=\s)', "", text)
        (folder / "makefile").unlink()
        (folder / "Makefile").write_text(text + "\nrun: all\n\t./$(PROGRAM)\n\n.PHONY: run\n")


def find_compiler() -> str | None:
    """Return the path of the C++ compiler that the makefile calls, or None.

    It is the first word of the environment variable ``CXX`` as a shell reads it: the compiler,
    or a launcher such as ccache.  Options may follow.
    """
    if shutil.which("make") is None:
        return None
    try:
        words = shlex.split(_chosen_compiler())
    except ValueError:  # an unclosed quotation mark
        return None
    # To a shell, leading words such as CCACHE_DIR=/tmp are assignments.
    programs = itertools.dropwhile(re.compile(r"[A-Za-z_]\w*=").match, words)
    return shutil.which(next(programs, ""))


def _chosen_compiler():
    return _environment().get("CXX", "g++")


def _environment():
    """Return the environment for make, without an empty ``CXX``, which make would not ignore."""
    return {name: value for name, value in os.environ.items() if name != "CXX" or value.strip()}


def make(folder: Path, network: Network) -> None:
    """Compile the generated project of a network in `folder`, as Brian's preferences say."""
    settings = prefs.devices.cpp_standalone
    arguments = settings.extra_make_args_unix
    if arguments == ["-j"]:  # Brian's own choice: any number of compilers at once
        arguments = [f"-j{cpu_count()}"]
    command = " ".join([settings.make_cmd_unix, *arguments])
    compile_project(command, folder, _environment(), network, CppStandalone.name)


def _generate(network, folder):
    """Write the C++ project of `network` into `folder`."""
    call_apart(_write_project, code_only(network), Path(folder).absolute())


def _write_project(network, folder):
    class Neurons(GLMNeurons):
        presentation_steps = network.n_steps

    hidden_names = network.layer_names[:-1]
    operations = _OPERATIONS | (_HIDDEN_OPERATIONS if hidden_names else {})
    with private_standalone_device() as device:
        clock = Clock(dt=1 * ms, name="glm_clock")
        layers = [
            Neurons(
                layer.n,
                layer.basis,
                feedback_basis=layer.feedback_basis,
                activation=network.activation,
                clock=clock,
                name=name,
                random_state=0,
                stream=name,
            )
            for name, layer in zip(network.layer_names, network.layers)
        ]
        for hidden in layers[:-1]:
            hidden.events["spike"] = "False"
        presentations = NeuronGroup(1, "done : integer (shared)", clock=clock, name="glm_presentations")
        for operation, when in operations.items():
            presentations.namespace[operation] = _operation(operation)
            presentations.run_regularly(
                f"done = {operation}(done)", when=when, order=1, clock=clock, name=operation
            )
        brian = BrianNetwork(layers, presentations, name="glm_network")
        brian.schedule = SCHEDULE
        # A run of no steps, since only the program knows how many steps it will run.
        brian.run(0 * ms, namespace={})
        done = device.get_array_name(presentations.variables["done"])
        device.insert_code("main", cpp_run_until(f"{done}[0]", brian, clock))
        lines = _brian_arrays(network, layers, clock, device.get_array_name)
        write_headers(network, folder, _HEADERS, lines)
        device.build(directory=str(folder), compile=False, run=False, with_output=False)


def _operation(name):
    # Brian compiles each operation separately. Only one of them includes the code that does the
    # work, since compiling it takes longer than everything else.
    header = "presentations.hpp" if name == next(iter(_OPERATIONS)) else "operations.hpp"
    function = new_operation()
    function.implementations.add_implementation(
        "cpp",
        f"static inline int {name}(int done) {{ return glmbrian::{name}(); }}",
        compiler_kwds={"headers": [f'"{header}"']},
    )
    return function


def _brian_arrays(network, layers, clock, array_name):
    """Return C++ types for the layers, which hold their sizes and return Brian's variables."""
    timestep = array_name(clock.variables["timestep"])
    lines = [
        line
        for shape, neurons in zip(network.layers, layers)
        for line in _neurons_type(shape, neurons, array_name)
    ]
    listed = ", ".join(neurons.name for neurons in layers)
    sizes = [shape.n_inputs * shape.n * shape.basis.n_basis for shape in network.layers]
    sizes += [shape.n * (shape.n_feedback + 1) for shape in network.layers]
    return [
        *lines,
        "template <class... Neurons>\nstruct List {};",
        f"typedef List<{listed}> AllNeurons;",
        f"constexpr size_t N_PARAMETERS = {sum(sizes)};",
        f"struct Credit {{{network.credit.cpp}}};",
        f"inline int64_t timestep() {{ return brian::{timestep}[0]; }}",
    ]


def _neurons_type(shape, neurons, array_name):
    """Return the C++ type of one layer, for native/layers.hpp."""
    variables = neurons.variables
    channels = channel_names("stimulus", shape.basis)
    feedback_weights = [f"feedback_weight_{k}" for k in range(shape.n_feedback)]
    feedback_basis = [[0.0]] if shape.feedback_basis is None else shape.feedback_basis.matrix.tolist()

    def c_type(name):
        kind = np.dtype(variables[name].dtype).name
        return "double" if kind == "float64" else f"{kind}_t"

    names = ("u", "bias", "clamp", "key_low", "key_high", "presentation", "first_step")
    return [
        f"struct {neurons.name} {{",
        f"static constexpr int N_NEURONS = {shape.n}, N_BASIS = {shape.basis.n_basis};",
        f"static constexpr int N_FEEDBACK = {shape.n_feedback}, FEEDBACK_WINDOW = {len(feedback_basis)};",
        matrix("basis", shape.basis.matrix.tolist()),
        matrix("feedback_basis", feedback_basis),
        pointer("spikes", array_name(spike_array(neurons)), "int32_t"),
        *(pointer(name, array_name(variables[name]), c_type(name)) for name in names),
        pointers("channel", [array_name(variables[name]) for name in channels]),
        pointers("feedback_weight", [array_name(variables[name]) for name in feedback_weights]),
        "static void clear_filters()\n{",
        *(
            f"    std::fill_n(brian::{array_name(variables[name])}, {variables[name].size}, 0.0);"
            for name in neurons.filter_state
        ),
        "}",
        "};",
    ]
