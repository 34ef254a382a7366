"""What devices that compile programs have in common.

A program reads its task and its data from a folder ``job`` in its working folder (see
`native/job.hpp`), and writes its results there.
"""

import contextlib
import errno
import hashlib
import os
import platform
import tempfile
import time
import uuid
import weakref
import zlib
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import brian2
import numpy as np
from numpy.typing import NDArray

from ..brian.headers import native_header
from ..brian.internals import cpp_preferences, signature, without_python
from ..core.adversarial import to_job
from ..core.bases import plain_basis
from ..support.cache import content_key, find_or_build
from ..support.processes import how_it_ended, lines_of, watched
from ..support.progress import Progress, Silent
from ..support.scratch import is_full, scratch_folder
from ..support.validation import finite_array
from .base import Device
from .problem import Inputs, Network, Outcome, Parameters, Testing, Timing, Training
from .replicas import repeat_last

#: The headers that every program includes.
HEADERS = ("schedule.hpp", "gradients.hpp", "encoder.hpp", "job.hpp", "hash.hpp")


class CompiledDevice(Device):
    """A device that compiles a network to a program, and keeps the program for later use."""

    can_export = True

    @abstractmethod
    def build(self, network: Network, folder: Path) -> None:
        """Write and compile the program of `network` into `folder`."""

    @abstractmethod
    def command(
        self, folder: Path, network: Network, n_phases: int
    ) -> tuple[list[str], dict[str, str] | None]:
        """Return the arguments and the environment that start the program in `folder`.

        `n_phases` counts stretches of `n_steps` steps.
        """

    @abstractmethod
    def setting(self, network: Network) -> list[Any]:
        """Return what the code depends on besides the network, as a list that JSON can hold."""

    def compiled_replicas(self, network: Network, training: Training, n_items: int) -> int:
        """Return for how many replicas to compile the program that trains those of `network`."""
        return network.n_replicas

    def check(self, network, training=None, inputs=None):
        parts = {"activation": network.activation, "objective": network.objective}
        if network.hidden.sizes and training is not None:
            parts["credit"] = network.credit
        for kind, part in parts.items():
            if not part.cpp:
                raise ValueError(
                    f"{kind} {part.name!r} has no C++ form ({kind.title()}.cpp), so device must be "
                    "'runtime'"
                )
        adversarial = training and training.adversarial
        if adversarial and not adversarial.kind.values:
            raise ValueError(
                f"the kind {adversarial.kind.name!r} of adversarial training has no C++ form "
                "(Kind.values), so device must be 'runtime'"
            )

    def train(self, network, parameters, inputs, labels, training, progress):
        self.check(network, training, inputs)
        network = network.without_silent_lags()
        shares = network.shares(training)
        part = replace(network, n_replicas=shares[0].stop)
        compiled = self.compiled_replicas(part, training, len(inputs))
        program = replace(part, n_replicas=compiled)

        def job_writer(share):
            def write_job(job):
                own, settings = parameters.of_replicas(share, network), training.of_replicas(share)
                own, settings = repeat_last(compiled, part, own, settings)
                write_training(job, program, own, inputs, labels, settings)

            return write_job

        learned = parameters.copy()
        history = np.empty((training.n_epochs, network.n_replicas))
        n_phases = 2 * training.n_epochs * len(inputs)
        writers = [job_writer(share) for share in shares]
        with self.finished_runs(program, writers, n_phases, progress) as (jobs, timing):
            for job, share in zip(jobs, shares):
                read = read_parameters(job, program).of_replicas(slice(0, part.n_replicas), part)
                own = learned.of_replicas(share, network)
                for array, values in zip(own.arrays_of_all, read.arrays_of_all):
                    array[:] = values
                history[:, share] = read_history(job, program)[:, : part.n_replicas]
        return learned, history, timing

    def test(self, network, parameters, inputs, testing, progress):
        self.check(network, inputs=inputs)
        network = network.without_silent_lags()

        def write_job(job):
            write_testing(job, network, parameters, inputs, testing)

        with self.finished_runs(network, [write_job], len(inputs), progress) as ([job], timing):
            rows = np.fromfile(job / "outcome.bin")
            return Outcome.from_rows(rows, network.n_classes, len(network.hidden.sizes)), timing

    def read_exported(self, network, folder, has_checksums):
        return read_exported(network, folder, has_checksums)

    @contextmanager
    def finished_runs(
        self,
        network: Network,
        job_writers: Sequence[Callable[[Path], None]],
        n_phases: int,
        progress: Progress | Silent,
    ) -> Iterator[tuple[list[Path], Timing]]:
        """Build a program and run it once per job, all jobs at once.

        Yields the job folders and the `Timing`.
        """

        def build(folder):
            progress.compiling()
            self.build(network, folder)

        started = time.perf_counter()
        with contextlib.ExitStack() as stack:
            program = stack.enter_context(find_or_build(self.key(network), build))
            built = time.perf_counter()
            progress(0)
            with _room_for_temporary_files():
                folder = stack.enter_context(scratch_folder("glmbrian-run", tempfile.gettempdir()))
                folders = [folder / str(number) for number in range(len(job_writers))]
                for own, write_job in zip(folders, job_writers):
                    own.mkdir()
                    write_job(own / "job")
                    (own / "results").mkdir()
                arguments, environment = self.command(program, network, n_phases)
                n_presentations = _execute(arguments, environment, folders, progress)
            jobs = [own / "job" for own in folders]
            runs = [
                dict(line.split() for line in (job / "run.txt").read_text().splitlines())
                for job in jobs
            ]
            yield (
                jobs,
                Timing(
                    build_seconds=built - started,
                    run_seconds=time.perf_counter() - built,
                    presentations=n_presentations,
                    steps=int(runs[0]["steps"]),
                    peak_memory=sum(int(run["peak_memory"]) for run in runs),
                ),
            )

    def key(self, network: Network) -> str:
        """Return a hash of everything that the program's code depends on."""
        activation = network.activation
        return content_key(
            {
                "network": constants(network),
                "activation": [activation.expression, activation.cpp],
                "namespace": {name: _code_of(used) for name, used in activation.namespace.items()},
                "objective": [network.objective.name, network.objective.cpp],
                "hidden": hidden_constants(network),
                "source": _sources(),
                "brian2": brian2.__version__,
                "preferences": {name: repr(value) for name, value in cpp_preferences().items()},
                "environment": {name: os.environ.get(name) for name in _READ_BY_COMPILERS},
                "processor": _processor(),
                "device": self.setting(network),
            }
        )


#: Environment variables that change what make and the compilers do.
_READ_BY_COMPILERS = (
    *("CXX", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"),
    *("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"),
)


def _sources():
    """Return the package's files that may determine the generated code."""
    package = Path(str(resources.files("glmbrian")))
    return {
        file.relative_to(package).as_posix(): file.read_text()
        for folder in ("brian", "core", "devices", "native", "support", "training")
        for file in (package / folder).rglob("*.*")
        if file.suffix in (".py", ".hpp")
    }


def _processor():
    """Return what the compiler may use of the processor; machines may share their cache."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return line.split(":", 1)[1].split()
    return platform.machine()


def _code_of(value):
    """Return, as text, what a value in a Brian namespace adds to a program's code."""
    if isinstance(value, np.ndarray):
        return [repr(value.dtype), value.shape, hashlib.sha256(value.tobytes()).hexdigest()]
    if not isinstance(value, brian2.Function):
        return repr(value)
    parts = [signature(value)]
    for target in ("cpp", "genn"):
        if target not in value.implementations:
            continue
        made = value.implementations[target]
        # Code that is generated for each use is not known here, but its generator is.
        code, names = _token(value), {}
        if not made.dynamic:
            code, names = made.get_code(None), made.get_namespace(None) or {}
        used = {**names, **(made.dependencies or {})}
        used = {name: _code_of(other) for name, other in used.items()}
        parts.append([target, made.name, code, made.compiler_kwds, used])
    return repr(parts)


#: Tokens for Brian functions of unknown code, so that each differs from all others.
_TOKENS: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()


def _token(function):
    """Return a text unique to this object; its ``id`` might be reused once it is gone."""
    return _TOKENS.setdefault(function, uuid.uuid4().hex)


def code_only(network: Network) -> Network:
    """Return the network with only those parts that end up in C++ code.

    These can be sent to another process, even if the network was made with the user's own
    classes and functions.
    """

    activation = network.activation
    return replace(
        network,
        basis=plain_basis(network.basis),
        feedback_basis=network.feedback_basis and plain_basis(network.feedback_basis),
        objective=SimpleNamespace(  # type: ignore[arg-type]
            name=network.objective.name, cpp=network.objective.cpp
        ),
        hidden=replace(
            network.hidden,
            basis=network.hidden.basis and plain_basis(network.hidden.basis),
            feedback_basis=network.hidden.feedback_basis and plain_basis(network.hidden.feedback_basis),
            credit=SimpleNamespace(name=network.credit.name, cpp=network.credit.cpp),  # type: ignore[arg-type]
        ),
        activation=replace(
            activation,
            **dict.fromkeys(("probability", "log_spike", "log_silence")),  # type: ignore[arg-type]
            **dict.fromkeys(("log_spike_slope", "log_silence_slope")),  # type: ignore[arg-type]
            namespace={name: without_python(used) for name, used in activation.namespace.items()},
        ),
    )


#: The beginning of the lines that report how many presentations are done.
_PROGRESS = "glmbrian progress "


def _execute(arguments, environment, folders, progress):
    """Run a program in all `folders` at once; return how many presentations each simulated.

    All have the same amount of work.
    """
    done = 0
    with contextlib.ExitStack() as stack:
        # The last other lines of each.
        output = {
            stack.enter_context(watched(arguments, folder, environment)): deque(maxlen=20)
            for folder in folders
        }
        for process, line in lines_of(output):
            if line is None:
                if process.wait() != 0:
                    raise RuntimeError(
                        f"the compiled simulation {how_it_ended(process.returncode)}: "
                        + "\n".join(output[process])
                    )
            elif line.startswith(_PROGRESS):
                done = max(done, int(line.split()[2]))
                progress(done)
            else:
                output[process].append(line)
    return done


@contextmanager
def _room_for_temporary_files():
    """Name the folder that is full if writing or running a job fails for lack of space."""
    folder = tempfile.gettempdir()
    try:
        yield
    except (OSError, RuntimeError) as error:
        is_about_files = isinstance(error, OSError) or "cannot write" in str(error)
        if not is_about_files or not is_full(folder, error):
            raise
        raise OSError(
            errno.ENOSPC,
            f"the disk of the folder for temporary files is full ({error}); free some space, or set "
            "the environment variable TMPDIR to another folder",
            folder,
        ) from None


# ------------------------------------------------------------------ the job folder


#: The largest integer that programs can hold.
_MOST = 2**63 - 1


def write_training(
    job: Path,
    network: Network,
    parameters: Parameters,
    inputs: Inputs,
    labels: NDArray[np.int64],
    training: Training,
) -> None:
    """Write into the folder `job` what a program needs for training."""
    _write_job(
        job,
        parameters,
        inputs,
        mode="train",
        decoding=network.objective.name,
        n_epochs=training.n_epochs,
        learning_rate=",".join(map(repr, training.learning_rates.tolist())),
        batch_size=min(training.batch_size, _MOST),
        target_period=min(network.objective.period, _MOST),
        target_start=network.objective.start or 0,
        first_presentation=training.first_presentation,
        weighted=int(training.sample_weights is not None),
        n_averaged=training.n_averaged,
        rate_schedule=int(training.rate_factors is not None),
        weight_decay=repr(training.weight_decay),
        **to_job(training.adversarial),
        input_key=training.input_key,
        output_key=training.output_key,
        order_key=training.order_key,
    )
    _write_array(job / "labels.bin", labels, np.int32)
    if training.sample_weights is not None:
        _write_array(job / "sample_weights.bin", training.sample_weights, float)
    if training.rate_factors is not None:
        _write_array(job / "rate_factors.bin", training.rate_factors, float)


def write_testing(
    job: Path, network: Network, parameters: Parameters, inputs: Inputs, testing: Testing
) -> None:
    """Write into the folder `job` what a program needs for a test."""
    _write_job(
        job,
        parameters,
        inputs,
        mode="test",
        decoding=network.objective.name,
        n_epochs=1,
        learning_rate=1,
        batch_size=1,
        target_period=1,
        target_start=0,
        first_presentation=testing.first_presentation,
        weighted=0,
        n_averaged=0,
        rate_schedule=0,
        weight_decay=0,
        **to_job(None),
        input_key=testing.input_key,
        output_key=testing.output_key,
        order_key=0,
    )


def _write_job(job, parameters, inputs, **settings):
    job.mkdir(exist_ok=True)
    _write_array(job / "data.bin", inputs.data)
    theta = [np.ravel(array) for array in parameters.arrays_of_all]
    _write_array(job / "parameters.bin", np.concatenate(theta))
    settings.update(data=inputs.kind, n_items=len(inputs))
    lines = [f"{name} {value}\n" for name, value in settings.items()]
    (job / "settings.txt").write_text("".join(lines))


def _write_array(path, values, dtype=None):
    # numpy.ndarray.tofile would not say why it fails.
    with open(path, "wb") as file:
        file.write(np.ascontiguousarray(values, dtype))


def read_parameters(job: Path, network: Network) -> Parameters:
    """Read the `Parameters` written by a program."""
    values = np.fromfile(job / "trained.bin")
    shapes = [
        shape
        for layer in network.layers
        for shape in (
            (layer.n_inputs, layer.n, layer.basis.n_basis),
            (layer.n, layer.n_feedback),
            (layer.n,),
        )
    ]
    ends = np.cumsum([np.prod(shape, dtype=int) for shape in shapes])
    if values.size != ends[-1]:
        raise ValueError(f"{job} does not belong to this network: it has {values.size} values")
    parts = np.split(values, ends[:-1])
    return Parameters.of_arrays([part.reshape(shape) for part, shape in zip(parts, shapes)])


def read_history(job: Path, network: Network) -> NDArray[np.float64]:
    """Read the mean log-likelihoods, shape (n_epochs, n_replicas)."""
    return np.fromfile(job / "history.bin").reshape(-1, network.n_replicas)


def read_exported(
    network: Network, folder: Path, has_checksums: bool
) -> tuple[Parameters, NDArray[np.float64], dict[str, str]]:
    """Return what an exported program has learned.

    Parameters
    ----------
    network : glmbrian.devices.problem.Network
    folder : Path
    has_checksums : bool
        Whether the program writes checksums; programs of version 0.1 do not.

    Returns
    -------
    parameters : glmbrian.devices.problem.Parameters
    history : ndarray, shape (n_epochs, 1)
    run : dict of str
        The settings that the program used; empty without checksums.

    Raises
    ------
    FileNotFoundError
        If the program has not finished.
    ValueError
        If its results have changed since, or belong to another network.
    """
    job = folder / "job"
    names = ("trained.bin", "history.bin", "run.txt")
    if not all((job / name).is_file() for name in names):
        raise FileNotFoundError(
            "its program has not run yet, or has not finished; run `make run` in it"
        )
    run = _checked_run(job) if has_checksums else {}
    parameters, history = read_parameters(job, network), read_history(job, network)
    names = ("weights", "feedback", "bias")
    for number, layer in enumerate(parameters.layers):
        place = f" of hidden layer {number}" if number < len(parameters.hidden) else ""
        for name, values in zip(names, layer.arrays):
            finite_array(values, f"{name}{place} (what the program has learned)")
    finite_array(history, "history (what the program has learned)")
    return parameters, history, run


def _checked_run(job):
    """Return what run.txt says about a training run, after checking it and the files it lists."""
    report, _, checksum = (job / "run.txt").read_bytes().rpartition(b"checksum ")
    if checksum != b"%d\n" % zlib.crc32(report):
        raise ValueError("job/run.txt has changed since the program ended; run `make run` again")
    run = dict(line.split() for line in report.decode().splitlines())
    if run.get("mode") != "train":
        raise ValueError(
            "its program did not train: set mode to train in job/settings.txt, and run `make run`"
        )
    for name in ("trained.bin", "history.bin"):
        data = (job / name).read_bytes()
        if (str(len(data)), str(zlib.crc32(data))) != (run[f"{name}_size"], run[f"{name}_checksum"]):
            raise ValueError(f"job/{name} has changed since the program ended; run `make run` again")
    return run


# ------------------------------------------------------------------ the headers


def constants(network: Network) -> dict[str, Any]:
    """Return sizes and matrices of the network, by their names in C++."""
    feedback = network.feedback_basis
    return {
        "N_INPUTS": network.n_inputs,
        "N_CLASSES": network.n_classes,
        "N_REPLICAS": network.n_replicas,
        "N_STEPS": network.n_steps,
        "N_HIDDEN": len(network.hidden.sizes),
        "N_BASIS": network.basis.n_basis,
        "N_FEEDBACK": feedback.n_basis if feedback else 0,
        "BASIS": network.basis.matrix.tolist(),
        # An array in C++ has at least one element.
        "FEEDBACK_BASIS": feedback.matrix.tolist() if feedback else [[0.0]],
    }


def hidden_constants(network: Network) -> list[Any]:
    """Return what the code of hidden layers depends on, as a list that JSON can hold."""
    hidden = [
        [
            layer.n,
            layer.basis.matrix.tolist(),
            layer.feedback_basis and layer.feedback_basis.matrix.tolist(),
        ]
        for layer in network.layers[:-1]
    ]
    return [*hidden, network.credit.name, network.credit.cpp] if hidden else []


def write_headers(
    network: Network, folder: Path, own_headers: Sequence[str], lines: Sequence[str]
) -> None:
    """Write the headers of a program, including glmbrian_model.hpp.

    The latter holds the `constants`, the activation and the `lines`, which give access
    to Brian's variables (see `pointer` and `pointers`).
    """
    text = ["// Written by glmbrian.", "#pragma once", "#include <algorithm>", "#include <cmath>"]
    text += [
        "#include <cstdint>",
        '#include "objects.h"',
        '#include "gradients.hpp"',
        "",
        "namespace glmbrian_model {",
        "",
    ]
    for name, value in constants(network).items():
        if isinstance(value, int):
            text.append(f"constexpr int {name} = {value};")
        else:
            text.append(f"constexpr double {name}[{len(value)}][{len(value[0])}] = {_braces(value)};")
    text.append(network.activation.cpp_struct("Activation"))
    text.append(f"struct Objective {{{network.objective.cpp}}};")
    text.append(f'constexpr const char* OBJECTIVE = "{network.objective.name}";')
    text += [*lines, "", "}  // namespace glmbrian_model", ""]
    (folder / "glmbrian_model.hpp").write_text("\n".join(text))
    for header in (*own_headers, *HEADERS):
        (folder / header).write_text(native_header(header))


def pointer(name: str, array: str, c_type: str) -> str:
    """Return a C++ function `name` that returns the Brian array called `array`."""
    return f"static inline {c_type}* {name}() {{ return brian::{array}; }}"


def matrix(name: str, rows: Sequence[Sequence[float]]) -> str:
    """Return a C++ function `name` that returns a constant matrix."""
    return (
        f"static inline const double (&{name}())[{len(rows)}][{len(rows[0])}]\n{{\n"
        f"    static constexpr double values[{len(rows)}][{len(rows[0])}] = {_braces(rows)};\n"
        "    return values;\n}"
    )


def _braces(rows):
    return "{\n" + ",\n".join("    {" + ", ".join(map(repr, row)) + "}" for row in rows) + "\n}"


def pointers(name: str, arrays: Sequence[str]) -> str:
    """Return a C++ function `name` of k that returns the k-th of the Brian `arrays`."""
    if not arrays:
        return f"static inline double* {name}(int k) {{ return nullptr; }}"
    listed = ", ".join(f"brian::{array}" for array in arrays)
    return (
        f"static inline double* {name}(int k)\n{{\n"
        f"    double* const all[] = {{{listed}}};\n    return all[k];\n}}"
    )
