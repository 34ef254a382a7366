"""What devices that compile programs have in common.

A program reads what to do, and on which data, from a folder ``job`` in its working
folder (see `native/job.hpp`), and leaves its results there.
"""

import contextlib
import os
import platform
import subprocess
import tempfile
import time
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path

import brian2
import numpy as np

from ..brian_internals import compiler_setting
from ..cache import content_key, find_or_build
from ..model import Outcome, Parameters, Timing

#: The headers that every program includes.
HEADERS = ("schedule.hpp", "gradients.hpp", "encoder.hpp", "job.hpp")

#: The files that decide what code is generated, on any device.
_SOURCES = (
    *(f"native/{header}" for header in HEADERS),
    "brian_internals.py",
    "devices/program.py",
    "filters.py",
    "randomness.py",
)


class Program:
    """How a device makes and calls its programs.

    Parameters
    ----------
    build : callable
        ``build(network, folder)`` writes and compiles the program into `folder`.
    command : callable
        ``command(folder, network, n_phases)`` returns the arguments and the
        environment that start it; `n_phases` counts stretches of `n_steps` steps.
    sources : tuple of str
        The files of the package that decide what code the device generates.
    setting : callable
        ``setting(network)`` returns what else the code depends on.
    """

    def __init__(self, build, command, sources, setting):
        self.build = build
        self.command = command
        self.sources = sources
        self.setting = setting

    def train(self, network, parameters, inputs, labels, training, progress):
        """See `glmbrian.devices`."""
        shares = network.shares()
        part = replace(network, n_replicas=shares[0].stop)

        def job_writer(share):
            def write_job(job):
                own, settings = parameters.of(share, network), training.of(share)
                write_training(job, part, own, inputs, labels, settings)

            return write_job

        learned = parameters.copy()
        history = np.empty((training.n_epochs, network.n_replicas))
        n_phases = 2 * training.n_epochs * len(inputs)
        writers = [job_writer(share) for share in shares]
        with self._finished_runs(part, writers, n_phases, progress) as (jobs, timing):
            for job, share in zip(jobs, shares):
                read, own = read_parameters(job, part), learned.of(share, network)
                own.weights[:], own.feedback[:], own.bias[:] = read.weights, read.feedback, read.bias
                history[:, share] = read_history(job, part)
        return learned, history, timing

    def test(self, network, parameters, inputs, testing, progress):
        """See `glmbrian.devices`."""

        def write_job(job):
            write_testing(job, network, parameters, inputs, testing)

        with self._finished_runs(network, [write_job], len(inputs), progress) as ([job], timing):
            rows = np.fromfile(job / "outcome.bin")
            return Outcome.from_rows(rows, network.n_classes), timing

    @contextmanager
    def _finished_runs(self, network, job_writers, n_phases, progress):
        """Build a program and run it once a job, all at once.

        Yields the job folders and the `Timing`.
        """

        def build(folder):
            progress.compiling()
            self.build(network, folder)

        started = time.perf_counter()
        program = find_or_build(self._key(network), build)
        built = time.perf_counter()
        progress(0)
        with tempfile.TemporaryDirectory(prefix="glmbrian-run-") as folder:
            folders = [Path(folder) / str(number) for number in range(len(job_writers))]
            for own, write_job in zip(folders, job_writers):
                own.mkdir()
                write_job(own / "job")
                (own / "results").mkdir()
            arguments, environment = self.command(program, network, n_phases)
            n_presentations = _execute(arguments, environment, folders, progress)
            jobs = [own / "job" for own in folders]
            runs = [
                dict(line.split() for line in (job / "run.txt").read_text().splitlines()) for job in jobs
            ]
            yield jobs, Timing(
                build_seconds=built - started,
                run_seconds=time.perf_counter() - built,
                presentations=n_presentations,
                steps=int(runs[0]["steps"]),
                peak_memory=sum(int(run["peak_memory"]) for run in runs),
            )

    def _key(self, network):
        """Everything that the program's code depends on."""
        package = resources.files("glmbrian")
        activation = network.activation
        return content_key(
            {
                "network": constants(network),
                "activation": [activation.expression, activation.cpp],
                "namespace": {name: _code_of(used) for name, used in activation.namespace.items()},
                "source": [package.joinpath(path).read_text() for path in _SOURCES + self.sources],
                "brian2": brian2.__version__,
                "compiler": compiler_setting(),
                "processor": _processor(),
                "device": self.setting(network),
            }
        )


def _processor():
    """Return what the compiler may make use of; machines may share their cache."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line.split(":", 1)[1].split()
    return platform.machine()


def _code_of(value):
    """Return, as text, what a value in a Brian namespace adds to a program's code."""
    if not isinstance(value, brian2.Function):
        return repr(value)
    parts = []
    for target in ("cpp", "genn"):
        if target not in value.implementations:
            continue
        made = value.implementations[target]
        # Code that is made for each use is not known here; its maker is.
        code = repr(value) if made.dynamic else made.get_code(None)
        used = {name: _code_of(function) for name, function in (made.dependencies or {}).items()}
        parts.append([target, made.name, code, used])
    return repr(parts)


def _execute(arguments, environment, folders, progress):
    """Run a program in each of `folders` at once; return how many presentations each made.

    All have equally much to do, and tell how far they are through one pipe: should this
    process be killed, the next line that they write ends them.
    """
    done = 0
    reading, writing = os.pipe()
    with contextlib.ExitStack() as stack:
        lines = stack.enter_context(open(reading))
        running = []
        try:
            with open(writing, "w") as output:
                for folder in folders:
                    errors = stack.enter_context(open(folder / "errors.txt", "w+"))
                    process = stack.enter_context(
                        subprocess.Popen(
                            arguments, env=environment, cwd=folder, stdout=output, stderr=errors
                        )
                    )
                    running.append((process, errors))
            for line in lines:
                if line.startswith("glmbrian progress "):
                    done = max(done, int(line.split()[2]))
                    progress(done)
            for process, errors in running:
                if process.wait() != 0:
                    errors.seek(0)
                    raise RuntimeError(
                        f"the compiled simulation ended with code {process.returncode}: {errors.read()}"
                    )
        except BaseException:
            for process, _ in running:
                process.kill()
            raise
    return done


# ------------------------------------------------------------------ the job folder


def write_training(job, network, parameters, inputs, labels, training):
    """Write into the folder `job` what a program needs for training."""
    _write_job(
        job,
        parameters,
        inputs,
        training.desired(network.n_steps),
        mode="train",
        decoding=training.decoding,
        n_epochs=training.n_epochs,
        batch_size=training.batch_size,
        target_period=training.target_period,
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


def write_testing(job, network, parameters, inputs, testing):
    """Write into the folder `job` what a program needs for a test."""
    _write_job(
        job,
        parameters,
        inputs,
        np.zeros(network.n_steps, dtype=np.uint8),
        mode="test",
        decoding=testing.decoding,
        n_epochs=1,
        batch_size=1,
        target_period=1,
        first_presentation=testing.first_presentation,
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


def read_parameters(job, network):
    """Read the `Parameters` that a program has written."""
    values = np.fromfile(job / "trained.bin")
    n_feedback = network.feedback_basis.n_basis if network.feedback_basis else 0
    shapes = [
        (network.n_inputs, network.n_outputs, network.basis.n_basis),
        (network.n_outputs, n_feedback),
        (network.n_outputs,),
    ]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    if values.size != ends[-1]:
        raise ValueError(f"{job} does not belong to this network: it has {values.size} values")
    parts = np.split(values, ends[:-1])
    return Parameters(*(part.reshape(shape) for part, shape in zip(parts, shapes)))


def read_history(job, network):
    """Read the mean log-likelihoods, shape (n_epochs, n_replicas)."""
    return np.fromfile(job / "history.bin").reshape(-1, network.n_replicas)


def read_exported(network, folder):
    """Return the `Parameters` and the history that an exported program has learned."""
    job = folder / "job"
    if not (job / "trained.bin").is_file():
        raise FileNotFoundError(
            f"path: the program in {folder} has not run yet; run `make run` in that folder"
        )
    return read_parameters(job, network), read_history(job, network)


# ------------------------------------------------------------------ the headers


def constants(network):
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


def write_headers(network, folder, own_headers, lines):
    """Write the headers of a program, among them glmbrian_model.hpp.

    The latter holds the `constants`, the activation and the `lines`, which tell
    where Brian keeps its variables (see `pointer` and `pointers`).
    """
    if not network.activation.cpp:
        raise ValueError(
            f"activation {network.activation.name!r} has no C++ form (Activation.cpp), "
            "so device must be 'runtime'"
        )
    text = ["// Written by glmbrian.", "#pragma once", "#include <algorithm>", "#include <cmath>"]
    text += ["#include <cstdint>", '#include "objects.h"', "", "namespace glmbrian_model {", ""]
    for name, value in constants(network).items():
        if isinstance(value, int):
            text.append(f"constexpr int {name} = {value};")
        else:
            rows = ",\n".join("    {" + ", ".join(map(repr, row)) + "}" for row in value)
            text.append(f"constexpr double {name}[{len(value)}][{len(value[0])}] = {{\n{rows}\n}};")
    text.append(f"struct Activation {{{network.activation.cpp}}};")
    text += [*lines, "", "}  // namespace glmbrian_model", ""]
    (folder / "glmbrian_model.hpp").write_text("\n".join(text))
    for header in (*own_headers, *HEADERS):
        source = resources.files("glmbrian").joinpath("native", header)
        (folder / header).write_text(source.read_text())


def pointer(name, array, c_type):
    """Return a C++ function `name` that gives the Brian array called `array`."""
    return f"inline {c_type}* {name}() {{ return brian::{array}; }}"


def pointers(name, arrays):
    """Return a C++ function `name` of k that gives the k-th of some Brian arrays."""
    if not arrays:
        return f"inline double* {name}(int k) {{ return nullptr; }}"
    listed = ", ".join(f"brian::{array}" for array in arrays)
    return (
        f"inline double* {name}(int k)\n{{\n"
        f"    double* const all[] = {{{listed}}};\n    return all[k];\n}}"
    )
