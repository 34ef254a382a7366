"""The GeNN device: training or testing on a GPU, or in GeNN's CPU code.

A presentation runs in kernels that brian2genn and GeNN generate; between
presentations the host turns potentials into errors (`native/exchange.hpp`).
Training takes two phases of `n_steps` steps.  In the first the outputs respond and
keep their potentials.  In the second the inputs repeat their spikes, which costs no
memory since a hash draws them, and each spike adds the error of its target,
correlated with the basis, to its weights.  So weights never leave the device.
"""

import contextlib
import io
import os
import shutil
from pathlib import Path

import numpy as np
from brian2 import Function, NeuronGroup, Synapses, defaultclock, ms
from brian2 import Network as BrianNetwork

from ..brian.filters import StateUpdater, pending_names, shift_register
from ..brian.functions import glm_bernoulli, glm_uniform, namespace_of
from ..brian.internals import private_genn_device
from ..brian.neurons import channel_names, feedback_weight_names, stacked
from ..core.objectives import OBJECTIVES
from .fresh_interpreter import call_apart
from .genn_environment import check_environment, find_cuda, find_genn
from .problem import Network
from .program import CompiledDevice, code_only, pointer, pointers, write_headers, write_training

__all__ = ["GeNN", "generate_project", "use_gpu"]

_HEADER = "exchange.hpp"

_MOST_STEPS = 2**31 - 1


class GeNN(CompiledDevice):
    """Compiles with Brian2GeNN, for a GPU or one core."""

    name = "genn"

    def check(self, network, training=None, inputs=None):
        super().check(network, training, inputs)
        if network.hidden.sizes:
            raise ValueError(
                "hidden layers are not available on device='genn'; use device='cpp_standalone', or "
                "'runtime'"
            )
        for name, value in (
            {}
            if training is None
            else dict(average=training.n_averaged, weight_decay=training.weight_decay).items()
        ):
            if value:
                raise ValueError(
                    f"{name} must be 0 on device='genn', where weights never leave the device during "
                    "training; use device='cpp_standalone'"
                )
        if network.objective.name not in OBJECTIVES:
            raise ValueError(
                f"the objective {network.objective.name!r} is not available on device='genn'; use "
                "device='cpp_standalone'"
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
        _generate(network, folder, compile_program=True)
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
        network = network.without_silent_lags()
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
    _generate(network, folder, compile_program=False)
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


def _generate(network, folder, compile_program):
    folder = Path(folder).absolute()
    options = dict(
        directory=str(folder),
        compile=compile_program,
        run=False,
        use_GPU=use_gpu(network),
        with_output=False,
    )
    call_apart(_write_project, code_only(network), folder, find_genn(), find_cuda(), options)


def _write_project(network, folder, genn, cuda, options):
    quiet = contextlib.redirect_stdout(io.StringIO())
    with private_genn_device(genn, cuda, f'"{_HEADER}"', **options) as device, quiet:
        defaultclock.dt = _STEP * 1000 * ms
        inputs = _make_inputs(network)
        outputs = _make_outputs(network)
        synapses = [_make_synapses(network, k, inputs, outputs) for k in range(network.basis.n_basis)]
        # GeNN's code generator runs the same lines, but has no synapses.
        first_weights = device.get_array_name(synapses[0].variables["w"], access_data=False)
        device.insert_code("main", f"if (!brian::{first_weights}.empty()) glmbrian::exchange().load();")
        device.insert_code("before_end", "glmbrian::exchange().finish();")
        write_headers(network, folder, (_HEADER,), _brian_arrays(network, outputs, synapses, device))
        # An argument of the program sets how long it really runs.
        BrianNetwork(inputs, outputs, synapses, name="glm_network").run(defaultclock.dt, namespace={})


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
    _exchange(inputs, network.n_steps, new_values, [], order=1)
    return inputs


def _make_outputs(network):
    """Outputs that respond, keep their potentials, and later replay their errors."""
    channels = channel_names("stimulus", network.basis)
    matrix = network.basis.matrix
    feedback_weights = []
    if network.feedback_basis is not None:
        channels += channel_names("feedback", network.feedback_basis)
        matrix = stacked([matrix, network.feedback_basis.matrix])
        feedback_weights = feedback_weight_names(network.feedback_basis)
    pending = pending_names(matrix.shape[0])
    records = [f"record_{t}" for t in range(network.n_steps)]
    gradients = [f"gradient_{k}" for k in range(network.basis.n_basis)]
    lines = ["step = step + 1"]
    # Nothing carries over from one phase to the next.
    lines += [f"{name} = {name} * int(step > 0)" for name in channels + pending]
    lines += shift_register(matrix, channels).splitlines()
    # Shift the record: potentials enter, and errors of later steps move closer.
    lines += [f"{name} = {after}" for name, after in zip(records, records[1:])]
    lines += [f"{records[-1]} = u * int(rate == 0)"]
    for name, column in zip(gradients, network.basis.matrix.T):
        # Lag l meets the error of l steps later, which is record_(l - 1) now.
        terms = [f"{value!r}*{later}" for value, later in zip(column.tolist(), records) if value]
        lines.append(f"{name} = rate * ({' + '.join(terms) or '0'})")

    parameters = ["bias", "rate", *channels, *pending, *records, *gradients, *feedback_weights]
    outputs = NeuronGroup(
        network.n_outputs,
        "du/dt = -u / dt : 1\n"
        + "".join(f"{name} : 1\n" for name in parameters)
        + f"""
        firing_probability = {network.activation.expression} : 1
        clamp : integer
        period : integer
        step : integer
        presentation : integer
        spike_count : integer
        first_spike : integer
        key_low : integer
        key_high : integer
        """,
        method=StateUpdater("\n".join(lines) + "\n"),
        threshold="(clamp > 0 and (step + 1) % period == 0) or (clamp == 0 and "
        "glm_uniform(key_low, key_high, presentation, step, i) < firing_probability)",
        reset="\n".join(
            [
                "spike_count += 1",
                "first_spike = first_spike * int(first_spike >= 0) + step * int(first_spike < 0)",
                *(f"feedback_{k} += {weight}" for k, weight in enumerate(feedback_weights)),
            ]
        ),
        namespace={"glm_uniform": glm_uniform, **namespace_of(network.activation)},
        dtype={"presentation": np.int64},
        name="glm_outputs",
    )
    new_values = {
        **{name: f"record({t}, i)" for t, name in enumerate(records)},
        "spike_count": "0",
        "first_spike": "-1",
        "rate": "rate(i)",
        "bias": "bias(i)",
        **{name: f"feedback({k}, i)" for k, name in enumerate(feedback_weights)},
        "clamp": "clamp(i)",
        "period": "period()",
        "presentation": "presentation()",
        "step": "-1",
        "key_low": "output_key_low()",
        "key_high": "output_key_high()",
    }
    response = [*records, "spike_count", "first_spike"]
    _exchange(outputs, network.n_steps, new_values, response, order=0, turn="outputs_turn")
    return outputs


def _make_synapses(network, k, inputs, outputs):
    """Synapses with the weights of one basis function, which learn on the device."""
    synapses = Synapses(
        inputs,
        outputs,
        "w : 1",
        # GeNN allows one target variable per Synapses object.
        on_pre=f"w += gradient_{k}_post\nstimulus_{k}_post += w",
        name=f"glm_synapses_{k}",
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


def _brian_arrays(network, outputs, synapses, device):
    """Return the C++ functions that return Brian's variables."""

    def array(name):
        return device.get_array_name(outputs.variables[name])

    weights = [device.get_array_name(s.variables["w"], access_data=False) for s in synapses]
    return [
        pointers("recorded", [array(f"record_{t}") for t in range(network.n_steps)]),
        pointer("spike_count", array("spike_count"), "int32_t"),
        pointer("first_spike", array("first_spike"), "int32_t"),
        pointers("weight", [f"{name}.data()" for name in weights]),
    ]
