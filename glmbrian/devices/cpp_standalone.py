"""The C++ standalone device: training or testing as one compiled program.

Brian generates the network's code; `native/presentations.hpp` holds what happens
between its time steps.  The program reads what to do, and on which data, from a
folder ``job`` when it starts, so that one program serves every data set, seed,
learning rate and number of epochs.  It needs no Python to run.
"""

import os
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import brian2
import numpy as np
from brian2 import Clock, Function, NeuronGroup, ms
from brian2 import Network as BrianNetwork

from ..brian_internals import (
    compiler_setting,
    cpp_stop_run,
    private_standalone_device,
    spike_array,
)
from ..cache import content_key, find_or_build
from ..encoding import RateEncoder
from ..model import Outcome, Parameters, Timing
from ..neurons import GLMNeurons, channel_names

#: Steps of the one run in the program, which stops itself before.
_ENDLESS = 10**12

_HEADER = "presentations.hpp"
_HEADERS = (_HEADER, "schedule.hpp", "gradients.hpp", "encoder.hpp", "job.hpp")

#: The files that decide what code is generated.
_SOURCES = (
    "devices/cpp_standalone.py",
    *(f"native/{header}" for header in _HEADERS),
    "brian_internals.py",
    "encoding.py",
    "filters.py",
    "neurons.py",
    "randomness.py",
)


class CompilerNotFound(RuntimeError):
    """There is no C++ compiler on this machine."""


def train(network, parameters, inputs, labels, training, progress):
    """See `glmbrian.devices`."""

    def write_job(job):
        write_training(job, parameters, inputs, labels, training)

    with _finished_run(network, write_job, progress) as (job, timing):
        learned = read_parameters(job / "trained.bin", network)
        return learned, read_history(job, network), timing


def test(network, parameters, inputs, testing, progress):
    """See `glmbrian.devices`."""

    def write_job(job):
        write_testing(job, parameters, inputs, testing, network.n_steps)

    with _finished_run(network, write_job, progress) as (job, timing):
        rows = np.fromfile(job / "outcome.bin")
        return Outcome.from_rows(rows, network.n_outputs), timing


def export(network, parameters, inputs, labels, training, folder):
    """Write a project into the empty `folder` that trains by itself, with make."""
    generate(network, folder, compile_program=False)
    write_training(folder / "job", parameters, inputs, labels, training)
    _complete_makefile(folder)


def read_exported(network, folder):
    """Return the `Parameters` and the history that an exported program has learned."""
    learned = folder / "job" / "trained.bin"
    if not learned.is_file():
        raise FileNotFoundError(
            f"path: the program in {folder} has not run yet; run `make run` in that folder"
        )
    return read_parameters(learned, network), read_history(folder / "job", network)


def find_compiler():
    """Return the path of the C++ compiler that the makefile calls, or None."""
    if shutil.which("make") is None:
        return None
    return shutil.which(os.environ.get("CXX", "g++"))


# ------------------------------------------------------------------ the job folder


def write_training(job, parameters, inputs, labels, training):
    """Write into the folder `job` what a program needs for training."""
    _write_job(
        job,
        parameters,
        inputs,
        training.desired,
        mode="train",
        decoding=training.decoding,
        n_epochs=training.n_epochs,
        batch_size=training.batch_size,
        first_presentation=training.first_presentation,
        weighted=int(training.sample_weights is not None),
        input_key=training.input_key,
        output_key=0,
        order_key=training.order_key,
    )
    np.asarray(labels, dtype=np.int32).tofile(job / "labels.bin")
    np.asarray(training.learning_rates, dtype=float).tofile(job / "learning_rates.bin")
    if training.sample_weights is not None:
        np.asarray(training.sample_weights, dtype=float).tofile(job / "sample_weights.bin")


def write_testing(job, parameters, inputs, testing, n_steps):
    """Write into the folder `job` what a program needs for a test."""
    _write_job(
        job,
        parameters,
        inputs,
        np.zeros(n_steps, dtype=np.uint8),
        mode="test",
        decoding=testing.decoding,
        n_epochs=1,
        batch_size=1,
        first_presentation=0,
        weighted=0,
        input_key=testing.input_key,
        output_key=testing.output_key,
        order_key=0,
    )


def _write_job(job, parameters, inputs, desired, **settings):
    job.mkdir(exist_ok=True)
    np.ascontiguousarray(inputs.data).tofile(job / "data.bin")
    desired.tofile(job / "desired.bin")
    theta = (parameters.weights, parameters.feedback, parameters.bias)
    np.concatenate([np.ravel(part) for part in theta]).tofile(job / "parameters.bin")
    settings.update(data=inputs.kind, n_items=len(inputs))
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (job / "settings.txt").write_text("".join(lines))


def read_parameters(path, network):
    """Read the `Parameters` that a program has written."""
    values = np.fromfile(path)
    n_feedback = network.feedback_basis.n_basis if network.feedback_basis else 0
    shapes = [
        (network.n_inputs, network.n_outputs, network.basis.n_basis),
        (network.n_outputs, n_feedback),
        (network.n_outputs,),
    ]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    if values.size != ends[-1]:
        raise ValueError(f"{path} does not belong to this network: it has {values.size} values")
    parts = np.split(values, ends[:-1])
    return Parameters(*(part.reshape(shape) for part, shape in zip(parts, shapes)))


def read_history(job, network):
    """Read the mean log-likelihoods, shape (n_epochs, n_replicas)."""
    return np.fromfile(job / "history.bin").reshape(-1, network.n_replicas)


# ------------------------------------------------------------------ building and running


@contextmanager
def _finished_run(network, write_job, progress):
    """Build and run a program; yield its job folder and the `Timing`."""

    def build(folder):
        progress.compiling()
        _build(network, folder)

    started = time.perf_counter()
    program = find_or_build(_program_key(network), build)
    built = time.perf_counter()
    progress(0)
    with tempfile.TemporaryDirectory(prefix="glmbrian-run-") as folder:
        job = Path(folder) / "job"
        write_job(job)
        (Path(folder) / "results").mkdir()
        n_presentations = _execute(program / "main", folder, progress)
        run = dict(line.split() for line in (job / "run.txt").read_text().splitlines())
        yield job, Timing(
            build_seconds=built - started,
            run_seconds=time.perf_counter() - built,
            presentations=n_presentations,
            steps=int(run["steps"]),
            peak_memory=int(run["peak_memory"]),
        )


def _execute(program, folder, progress):
    """Run `program` in `folder`; return how many presentations it made."""
    done = 0
    with open(Path(folder) / "errors.txt", "w+") as errors, subprocess.Popen(
        [str(program)], cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True
    ) as process:
        try:
            for line in process.stdout:
                if line.startswith("glmbrian progress "):
                    done = int(line.split()[2])
                    progress(done)
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            errors.seek(0)
            raise RuntimeError(
                f"the compiled simulation ended with code {process.returncode}: {errors.read()}"
            )
    return done


def _program_key(network):
    """Everything that the program's code depends on."""
    return content_key(
        {
            "network": _constants(network),
            "activation": [network.activation.expression, network.activation.cpp],
            "source": [resources.files("glmbrian").joinpath(path).read_text() for path in _SOURCES],
            "brian2": brian2.__version__,
            "compiler": [find_compiler(), compiler_setting()],
        }
    )


def _build(network, folder):
    generate(network, folder, compile_program=True)
    shutil.rmtree(folder / "code_objects")
    for leftover in [*folder.rglob("*.o"), folder / "make.deps"]:
        leftover.unlink(missing_ok=True)


def generate(network, folder, compile_program):
    """Write the C++ project of `network` into `folder`, and compile it if asked to."""
    if not network.activation.cpp:
        raise ValueError(
            f"activation {network.activation.name!r} has no C++ form (Activation.cpp), "
            "so device must be 'runtime'"
        )
    if compile_program and find_compiler() is None:
        raise CompilerNotFound(
            "device='cpp_standalone' needs a C++ compiler and make, and none was found: "
            "install them (such as the packages g++ and make) or use device='runtime'"
        )
    with private_standalone_device() as device:
        clock = Clock(dt=1 * ms, name="glm_clock")
        encoder = RateEncoder(
            np.zeros(network.n_inputs, dtype=np.uint8), clock=clock, name="glm_inputs", random_state=0
        )
        # The program draws the spikes of a presentation faster than the generated
        # threshold, which asks every input in every step.
        encoder.thresholder["spike"].active = False
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
        brian = BrianNetwork(encoder, neurons, presentations)
        brian.run(_ENDLESS * clock.dt, namespace={})
        folder = Path(folder)
        (folder / "glmbrian_model.hpp").write_text(
            _model_header(network, encoder, neurons, clock, device.get_array_name)
        )
        for header in _HEADERS:
            text = resources.files("glmbrian").joinpath("native", header).read_text()
            (folder / header).write_text(text)
        device.build(directory=str(folder), compile=compile_program, run=False, with_output=False)


def _complete_makefile(folder):
    """Give Brian's makefile a target that runs, and the name that people look for."""
    text = (folder / "makefile").read_text().replace(" makefile", " Makefile")
    # Where file names do not tell cases apart, these two are one file.
    (folder / "makefile").unlink()
    (folder / "Makefile").write_text(text + "\nrun: all\n\t./$(PROGRAM)\n\n.PHONY: run\n")


#: The operations of native/presentations.hpp and the slots in which they are called.
_OPERATIONS = {
    "begin_step": "start",
    "emit": "thresholds",
    "propagate": "synapses",
    "end_step": "end",
}


def _operation(name):
    function = Function(
        lambda done: None,
        arg_types=["integer"],
        return_type="integer",
        arg_units=[1],
        return_unit=1,
        stateless=False,
    )
    function.implementations.add_implementation(
        "cpp",
        f"static inline int {name}(int done) {{ glmbrian::presentations().{name}(); return 1; }}",
        compiler_kwds={"headers": [f'"{_HEADER}"']},
    )
    return function


def _constants(network):
    """Sizes and matrices of the network, by their names in C++."""
    feedback = network.feedback_basis
    return {
        "N_INPUTS": network.n_inputs,
        "N_CLASSES": network.n_classes,
        "N_REPLICAS": network.n_replicas,
        "N_STEPS": network.n_steps,
        "N_BASIS": network.basis.n_basis,
        "N_FEEDBACK": feedback.n_basis if feedback else 0,
        "BASIS": network.basis.matrix.tolist(),
        # An array in C++ has at least one element.
        "FEEDBACK_BASIS": feedback.matrix.tolist() if feedback else [[0.0]],
    }


def _model_header(network, encoder, neurons, clock, array_name):
    """Write the constants of the network, and where Brian keeps its variables."""

    def pointer(name, variable, c_type):
        return f"inline {c_type}* {name}() {{ return brian::{array_name(variable)}; }}"

    def pointers(name, variables):
        if not variables:
            return f"inline double* {name}(int k) {{ return nullptr; }}"
        arrays = ", ".join(f"brian::{array_name(variable)}" for variable in variables)
        return (
            f"inline double* {name}(int k)\n{{\n"
            f"    double* const all[] = {{{arrays}}};\n    return all[k];\n}}"
        )

    lines = ["// Written by glmbrian.", "#pragma once", "#include <cmath>", "#include <cstdint>"]
    lines += ["#include <algorithm>", '#include "objects.h"', "", "namespace glmbrian_model {", ""]
    for name, value in _constants(network).items():
        if isinstance(value, int):
            lines.append(f"constexpr int {name} = {value};")
        else:
            rows = ",\n".join("    {" + ", ".join(map(repr, row)) + "}" for row in value)
            lines.append(f"constexpr double {name}[{len(value)}][{len(value[0])}] = {{\n{rows}\n}};")
    lines.append(f"struct Activation {{{network.activation.cpp}}};")
    variables = neurons.variables
    n_feedback = network.feedback_basis.n_basis if network.feedback_basis else 0
    lines += [
        pointer("input_spikes", spike_array(encoder), "int32_t"),
        pointer("output_spikes", spike_array(neurons), "int32_t"),
        pointer("potential", variables["u"], "double"),
        pointer("bias", variables["bias"], "double"),
        pointer("clamp", variables["clamp"], "int32_t"),
        pointer("neuron_key_low", variables["key_low"], "int32_t"),
        pointer("neuron_key_high", variables["key_high"], "int32_t"),
        pointer("neuron_presentation", variables["presentation"], "int32_t"),
        pointer("neuron_first_step", variables["first_step"], "int32_t"),
        pointers("channel", [variables[name] for name in channel_names("stimulus", network.basis)]),
        pointers("feedback_weight", [variables[f"feedback_weight_{k}"] for k in range(n_feedback)]),
        "inline void clear_filters()\n{",
        *(
            f"    std::fill_n(brian::{array_name(variables[name])}, {variables[name].size}, 0.0);"
            for name in neurons.filter_state
        ),
        "}",
        "inline int64_t timestep()"
        f" {{ return brian::{array_name(clock.variables['timestep'])}[0]; }}",
        "inline void stop_run()"
        f" {{ {cpp_stop_run(array_name(clock.variables['timestep']))} }}",
        "",
        "}  // namespace glmbrian_model",
        "",
    ]
    return "\n".join(lines)
