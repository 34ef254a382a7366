"""The GeNN device: training or testing on a GPU, or in GeNN's CPU code.

A presentation runs in kernels that brian2genn and GeNN generate; between
presentations the host turns potentials into errors (`native/exchange.hpp`).
Training takes two phases of `n_steps` steps.  In the first the outputs respond and
keep their potentials.  In the second the inputs repeat their spikes, which costs no
memory since a hash draws them, and each spike adds the error of its target,
correlated with the basis, to its weights.  So weights never leave the device.
The mean over the last epochs is kept beside them on the device: each change is added to
it, times the fraction of these epochs that end after the change.

A test takes one phase.  Hidden layers only respond, and record their spikes.
"""

import contextlib
import io
import os
import shutil
from pathlib import Path

import numpy as np
from brian2 import Function, NeuronGroup, Synapses, defaultclock, ms, prefs
from brian2 import Network as BrianNetwork

from ..brian.filters import StateUpdater, pending_names, shift_register
from ..brian.functions import glm_bernoulli, glm_uniform, namespace_of
from ..brian.internals import private_genn_device
from ..brian.neurons import channel_names, feedback_weight_names, stacked
from .compiled import CompiledDevice, code_only
from .compiling import compile_project
from .fresh_interpreter import call_apart
from .genn_environment import check_environment, find_cuda, find_genn
from .headers import pointer, pointers, write_headers
from .job import write_training
from .problem import Network

__all__ = ["GeNN", "generate_project", "use_gpu"]

_HEADER = "exchange.hpp"

_MOST_STEPS = 2**31 - 1


class GeNN(CompiledDevice):
    """Compiles with Brian2GeNN, for a GPU or one core."""

    name = "genn"

    def check(self, network, training=None, inputs=None):
        super().check(network, training, inputs)
        if training is not None and network.hidden.sizes:
            raise ValueError(
                "hidden layers cannot be trained on device='genn', only tested; train on "
                "device='cpp_standalone' or 'runtime', then call set_params(device='genn')"
            )
        if training is not None and not training.rule(network).adds_gradients:
            raise ValueError(
                "optimizer must be 'sgd' and clip_norm None on device='genn', whose synapses add gradients to their "
                f"weights at once, got optimizer={network.optimizer!r}, clip_norm={training.clip_norm}; train on "
                "device='cpp_standalone' or 'runtime', then test on any device"
            )
        if training is not None and training.weight_decay:
            raise ValueError(
                "weight_decay must be 0 on device='genn', where weights never leave the device during "
                "training; use device='cpp_standalone'"
            )
        if training is not None and not network.objective.clamps_outputs:
            raise ValueError(
                f"objective {network.objective.name!r} leaves the outputs free in training "
                "(clamps_outputs = False), so device='genn' cannot train it; train on "
                "device='cpp_standalone' or 'runtime', then test on any device"
            )
        if training is not None and training.adversarial is not None:
            raise ValueError(
                "adversarial must be None on device='genn', which cannot change spikes between "
                "presentations; train on device='cpp_standalone' or 'runtime', then test on any device"
            )
        if training is not None and training.batch_size != 1:
            raise ValueError(
                f"batch_size must be 1 on device='genn', got {training.batch_size}; use "
                "device='cpp_standalone' for larger batches"
            )
        if inputs is not None and inputs.kind == "trains":
            raise ValueError(
                "X must hold intensities of the shape (n, n_inputs) on device='genn', which draws "
                "spikes itself; use device='cpp_standalone' for ready-made spike trains"
            )
        if training is not None:
            n_steps = 2 * training.n_epochs * len(inputs) * network.n_steps
            if n_steps > _MOST_STEPS:
                raise ValueError(
                    f"n_epochs must be smaller on device='genn': {n_steps} time steps are more than "
                    f"the {_MOST_STEPS} that Brian2GeNN counts"
                )
        check_environment(use_gpu(network))

    def build(self, network, folder):
        generate_project(network, folder)
        environment = {**os.environ, "GENN_PATH": find_genn()}
        if use_gpu(network):
            environment["CUDA_PATH"] = find_cuda()
        link_options = prefs.codegen.cpp.extra_link_args
        if link_options:  # GeNN reads them there
            environment["LDFLAGS"] = " ".join(link_options)
        compile_project("make all", folder, environment, network, self.name)
        shutil.rmtree(folder / "code_objects")
        for leftover in (folder / "magicnetwork_model_CODE").glob("*.o"):
            leftover.unlink()

    def command(self, folder, network, n_phases):
        environment = dict(os.environ)
        # The program looks for its library relative to its working folder.
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(
            [str(folder / "magicnetwork_model_CODE"), environment.get("LD_LIBRARY_PATH", "")]
        )
        return [str(folder / "main"), "test", duration(network, n_phases)], environment

    def setting(self, network):
        return [find_genn(), use_gpu(network) and find_cuda()]

    def export(self, network, parameters, inputs, labels, training, folder):
        self.check(network, training, inputs)
        network = network.trim_zero_lags()
        generate_project(network, folder)
        write_training(folder / "job", network, parameters, inputs, labels, training)
        # The duration depends on settings that users may change.
        with open(folder / "Makefile", "a") as makefile:
            makefile.write(
                '\nrun: all\n\t./main test $$(awk \'{ setting[$$1] = $$2 } END { printf "%.3f", '
                f'setting["n_epochs"] * setting["n_items"] * {duration(network, 2)} }}\' '
                "job/settings.txt)\n"
            )


def use_gpu(network: Network) -> bool:
    """Whether `network` runs on a GPU: by default where CUDA is found."""
    return find_cuda() is not None if network.gpu is None else network.gpu


def generate_project(network: Network, folder: Path) -> None:
    """Write a GeNN project that ``make all`` builds.  This needs no GPU."""
    folder = Path(folder).absolute()
    options = dict(
        directory=str(folder), compile=False, run=False, use_GPU=use_gpu(network), with_output=False
    )
    call_apart(_write_project, code_only(network), folder, find_genn(), find_cuda(), options)
    # Brian2GeNN's makefile builds the simulator, once GeNN has generated its code.
    (folder / "Makefile").rename(folder / "simulator.mk")
    cpu_only = "" if use_gpu(network) else " -c"
    (folder / "Makefile").write_text(
        f"""# Needs GENN_PATH, the folder of GeNN 4{"" if cpu_only else ", and CUDA_PATH, that of CUDA"}.
all: main

main: magicnetwork_model.cpp
\t$(GENN_PATH)/bin/genn-buildmodel.sh{cpu_only} -i $(CURDIR):$(CURDIR)/brianlib/randomkit \\
\t\tmagicnetwork_model.cpp
\t$(MAKE) -f simulator.mk

clean:
\trm -rf main magicnetwork_model_CODE test_output

.PHONY: all run clean
"""
    )


def duration(network: Network, n_phases: int) -> str:
    """Return how long a program simulates, in seconds, as its command-line argument.

    Training takes two phases per presentation, a test one.
    """
    return repr(n_phases * network.n_steps * _STEP)


#: Duration of a time step, in seconds.
_STEP = 0.001


def _write_project(network, folder, genn, cuda, options):
    quiet = contextlib.redirect_stdout(io.StringIO())
    with private_genn_device(genn, cuda, f'"{_HEADER}"', **options) as device, quiet:
        defaultclock.dt = _STEP * 1000 * ms
        inputs = _make_inputs(network)
        hidden = [_make_hidden(network, number) for number in range(len(network.hidden.sizes))]
        layers = [*hidden, _make_outputs(network)]
        synapses = [
            [_make_synapses(k, source, target) for k in range(shape.basis.n_basis)]
            for shape, source, target in zip(network.layers, [inputs, *layers], layers)
        ]
        # GeNN's code generator runs the same lines, but has no synapses.
        weights = device.get_array_name(synapses[0][0].variables["w"], access_data=False)
        device.insert_code("main", f"if (!brian::{weights}.empty()) glmbrian::exchange().load();")
        device.insert_code("before_end", "glmbrian::exchange().finish();")
        write_headers(network, folder, (_HEADER,), _brian_arrays(network, layers, synapses, device))
        # An argument of the program sets how long it really runs.
        BrianNetwork(inputs, layers, synapses, name="glm_network").run(defaultclock.dt, namespace={})


# ------------------------------------------------------------------ the network


def _make_inputs(network):
    """Inputs that draw the spikes of step 0, 1, ... of a presentation.

    The last step has no spikes, since they could affect only potentials of the next phase.
    """
    inputs = NeuronGroup(
        network.n_inputs,
        """
        dunused/dt = -unused / dt : 1
        level : 1
        step : integer
        presentation : integer
        key_low : integer
        key_high : integer
        """,
        method=StateUpdater("step = step + 1\n"),
        threshold=f"step < {network.n_steps - 1} and "
        "glm_bernoulli(key_low, key_high, presentation, step, i, level)",
        reset="",
        namespace={"glm_bernoulli": glm_bernoulli},
        dtype={"presentation": np.int64},
        name="glm_inputs",
    )
    new_values = {
        "level": "level(i)",
        "step": "-1",
        "presentation": "presentation()",
        "key_low": "input_key_low()",
        "key_high": "input_key_high()",
    }
    _exchange(inputs, network.n_steps, new_values, [], order=2)
    return inputs


def _make_hidden(network, number):
    """Return hidden neurons that respond, and record their spikes."""
    records = _record_names(network)
    neurons, new_values = _make_neurons(network, number, kept="0", reset=[f"{records[-1]} = 1"])
    # It changes nothing, but copies the records from the device before the outputs' turn needs them.
    neurons.run_regularly(
        "\n".join(f"{name} = {name}" for name in records),
        dt=network.n_steps * defaultclock.dt,
        when="start",
        order=0,
    )
    _exchange(neurons, network.n_steps, new_values, [], order=2)
    return neurons


def _make_outputs(network):
    """Outputs that respond, keep their potentials, and later replay their errors."""
    records = _record_names(network)
    gradients, lines = [f"gradient_{k}" for k in range(network.basis.n_basis)], []
    for name, column in zip(gradients, network.basis.matrix.T):
        # Lag l meets the error of l steps later, which is record_(l - 1) now.
        terms = [f"{value!r}*{later}" for value, later in zip(column.tolist(), records) if value]
        lines.append(f"{name} = rate * ({' + '.join(terms) or '0'})")
    outputs, new_values = _make_neurons(
        network,
        len(network.hidden.sizes),
        kept="u * int(rate == 0)",
        lines=lines,
        variables=["rate", "share", *gradients],
        integers=["clamp", "spike_count", "first_spike"],
        # The record begins as the desired spikes, which move closer as it fills.  A spike in the last
        # step has no effect.
        threshold=f"(clamp > 0 and step < {network.n_steps - 1} and {records[0]} > 0.5) or "
        f"(clamp == 0 and {_SPIKES})",
        reset=[
            "spike_count += 1",
            "first_spike = first_spike * int(first_spike >= 0) + step * int(first_spike < 0)",
        ],
    )
    new_values = {
        **{name: f"record({t}, i)" for t, name in enumerate(records)},
        "spike_count": "0",
        "first_spike": "-1",
        "rate": "rate(i)",
        "share": "share(i)",
        "clamp": "clamp(i)",
        **new_values,
    }
    response = [*records, "spike_count", "first_spike"]
    _exchange(outputs, network.n_steps, new_values, response, order=1, turn="outputs_turn")
    return outputs


#: Whether a neuron that is not clamped spikes.
_SPIKES = "glm_uniform(key_low, key_high, presentation, step, i) < firing_probability"


def _make_neurons(
    network, number, kept, lines=(), variables=(), integers=(), threshold=_SPIKES, reset=()
):
    """Return neurons of a layer that respond, and keep one value of each step.

    Parameters
    ----------
    network : glmbrian.devices.problem.Network
    number : int
        Number of the layer, from the input on.
    kept : str
        The value to keep of each step, as a Brian expression.
    lines, reset : sequence of str
        More statements, for each step and for a spike.
    variables, integers : sequence of str
        Names of more variables: numbers and integers.
    threshold : str

    Returns
    -------
    neurons : NeuronGroup
    new_values : dict of str
        What the variables of these neurons get at the start of a phase; see `_exchange`.
    """
    shape, name = network.layers[number], network.layer_names[number]
    channels = channel_names("stimulus", shape.basis)
    matrix = shape.basis.matrix
    feedback_weights = []
    if shape.feedback_basis is not None:
        channels += channel_names("feedback", shape.feedback_basis)
        matrix = stacked([matrix, shape.feedback_basis.matrix])
        feedback_weights = feedback_weight_names(shape.feedback_basis)
    pending = pending_names(matrix.shape[0])
    records = _record_names(network)
    update = [
        "step = step + 1",
        # Nothing carries over from one phase to the next.
        *(f"{name} = {name} * int(step > 0)" for name in channels + pending),
        *shift_register(matrix, channels).splitlines(),
        # Shift the record: potentials enter, and errors of later steps move closer.
        *(f"{name} = {after}" for name, after in zip(records, records[1:])),
        f"{records[-1]} = {kept}",
        *lines,
    ]
    floats = ["bias", *channels, *pending, *records, *feedback_weights, *variables]
    integers = ["step", "presentation", "key_low", "key_high", *integers]
    neurons = NeuronGroup(
        shape.n,
        "\n".join(
            [
                "du/dt = -u / dt : 1",
                f"firing_probability = {network.activation.expression} : 1",
                *(f"{name} : 1" for name in floats),
                *(f"{name} : integer" for name in integers),
            ]
        ),
        method=StateUpdater("\n".join(update) + "\n"),
        threshold=threshold,
        reset="\n".join(
            [*reset, *(f"feedback_{k} += {weight}" for k, weight in enumerate(feedback_weights))]
        ),
        namespace={"glm_uniform": glm_uniform, **namespace_of(network.activation)},
        dtype={"presentation": np.int64},
        name=name,
    )
    new_values = {
        "bias": f"bias({number}, i)",
        **{name: f"feedback({number}, {k}, i)" for k, name in enumerate(feedback_weights)},
        "presentation": "presentation()",
        "step": "-1",
        "key_low": f"key_low({number})",
        "key_high": f"key_high({number})",
    }
    return neurons, new_values


def _record_names(network):
    """Return the variables that hold what a neuron keeps of each step of a phase."""
    return [f"record_{t}" for t in range(network.n_steps)]


def _make_synapses(k, source, target):
    """Synapses with the weights of one basis function; those of outputs learn on the device."""
    learn, variables = "", "w : 1"
    if f"gradient_{k}" in target.variables:
        learn = f"w += gradient_{k}_post\nmean += share_post * gradient_{k}_post\n"
        variables += "\nmean : 1"
    synapses = Synapses(
        source,
        target,
        variables,
        # GeNN allows one target variable per Synapses object.
        on_pre=f"{learn}stimulus_{k}_post += w",
        name=f"{target.name}_synapses_{k}",
    )
    synapses.connect()
    return synapses


def _exchange(group, n_steps, new_values, read, order, turn=None):
    """Set variables from the host at the beginning of each phase.

    Parameters
    ----------
    group : NeuronGroup
    n_steps : int
        Steps of a phase.
    new_values : dict of str
        For each variable, a call of `Exchange` in C++.
    read : list of str
        Variables to copy from the device beforehand.
    order : int
        1 for the outputs, 2 for all others: the outputs' turn needs the records of the hidden
        layers, which are copied with order 0, and sets the values that the others get.
    turn : str, optional
        A method of `Exchange` to call first.
    """
    lines = []
    for name, call in new_values.items():
        is_integer = np.issubdtype(group.variables[name].dtype, np.integer)
        c_type = f"{np.dtype(group.variables[name].dtype)}_t" if is_integer else "double"
        function = f"{group.name}_{name}"
        first = f"if (i == 0) glmbrian::exchange().{turn}();" if turn and not lines else ""
        value = call if call.lstrip("-").isdigit() else f"glmbrian::exchange().{call}"
        lines.append(f"{name} = {function}(i, {name if name in read else 0})")
        group.namespace[function] = _host_function(
            f"static inline {c_type} {function}(int i, double old) {{ {first} return {value}; }}",
            "integer" if is_integer else "float",
        )
    group.run_regularly("\n".join(lines), dt=n_steps * defaultclock.dt, when="start", order=order)


def _host_function(cpp, return_type):
    function = Function(
        lambda i, old: None,
        arg_types=["integer", "any"],
        return_type=return_type,
        arg_units=[1, 1],
        return_unit=1,
        stateless=False,
    )
    function.implementations.add_implementation("cpp", cpp)
    return function


def _brian_arrays(network, layers, synapses, device):
    """Return C++ code with the sizes of each layer, and its Brian variables."""
    lines, table = [], []
    for shape, neurons, incoming in zip(network.layers, layers, synapses):
        records = [neurons.variables[name] for name in _record_names(network)]
        functions = [f"{neurons.name}_weight", f"{neurons.name}_recorded"]
        lines += [
            pointers(functions[0], _weights(incoming, device)),
            pointers(functions[1], [device.get_array_name(record) for record in records]),
        ]
        sizes = [shape.n_inputs, shape.n, shape.basis.n_basis, shape.n_feedback]
        table.append("{" + ", ".join(map(str, sizes + functions)) + "}")
    outputs = layers[-1].variables
    return [
        *lines,
        pointers("mean_weight", _weights(synapses[-1], device, "mean")),
        "struct Layer {\n    int n_sources, n_neurons, n_basis, n_feedback;\n"
        "    double* (*weight)(int k);\n    double* (*recorded)(int t);\n};",
        f"constexpr Layer LAYERS[] = {{{', '.join(table)}}};",
        *(
            pointer(name, device.get_array_name(outputs[name]), "int32_t")
            for name in ("spike_count", "first_spike")
        ),
    ]


def _weights(synapses, device, name="w"):
    """Return C++ expressions for the weights of each basis function, or for their mean."""
    return [
        f"{device.get_array_name(one.variables[name], access_data=False)}.data()" for one in synapses
    ]
