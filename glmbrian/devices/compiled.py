"""The part that devices which compile programs have in common.

A program is compiled once, kept, and run once per job.
"""

import contextlib
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..brian.internals import without_python
from ..core.bases import plain_basis
from ..support.cache import find_or_build
from ..support.progress import Progress, Silent
from ..support.scratch import scratch_folder
from .base import Device
from .fingerprint import program_key
from .job import (
    read_exported,
    read_history,
    read_parameters,
    read_state,
    write_testing,
    write_training,
)
from .problem import Network, Outcome, Timing, Trained, Training, state_of_replicas
from .replicas import repeat_last
from .running import execute, room_for_temporary_files


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
        if training is not None:
            parts["optimizer"] = network.optimizer
            if network.hidden.sizes:
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
        network = network.trim_zero_lags()
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

        learned, state = parameters.copy(), training.state_at_start(network, parameters)
        history = np.empty((training.n_epochs, network.n_replicas))
        n_phases = 2 * training.n_epochs * len(inputs)
        writers = [job_writer(share) for share in shares]
        with self.finished_runs(program, writers, n_phases, progress) as (jobs, timing):
            for job, share in zip(jobs, shares):
                found, wanted = read_parameters(job, program), slice(0, part.n_replicas)
                own = learned.of_replicas(share, network)
                _copy(found.of_replicas(wanted, part).arrays_of_all, own.arrays_of_all)
                found_state = state_of_replicas(read_state(job, program, found), wanted, part)
                own_state = state_of_replicas(state, share, network)
                own_state.n_updates[:] = found_state.n_updates
                for slot, into in zip(found_state.slots, own_state.slots):
                    _copy(slot, into)
                history[:, share] = read_history(job, program)[:, wanted]
        return Trained(learned, history, state, timing)

    def test(self, network, parameters, inputs, testing, progress):
        self.check(network, inputs=inputs)
        network = network.trim_zero_lags()

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
            with room_for_temporary_files():
                folder = stack.enter_context(scratch_folder("glmbrian-run", tempfile.gettempdir()))
                folders = [folder / str(number) for number in range(len(job_writers))]
                for own, write_job in zip(folders, job_writers):
                    own.mkdir()
                    write_job(own / "job")
                    (own / "results").mkdir()
                arguments, environment = self.command(program, network, n_phases)
                n_presentations = execute(arguments, environment, folders, progress)
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
        return program_key(network, self.setting(network))


class _OptimizerCode:
    """What C++ code knows of an optimiser."""

    def __init__(self, optimizer):
        self.name, self.cpp, self.settings = optimizer.name, optimizer.cpp, optimizer.settings
        self.struct = optimizer.cpp_struct()

    def cpp_struct(self):
        return self.struct


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
        optimizer=_OptimizerCode(network.optimizer),  # type: ignore[arg-type]
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


def _copy(arrays, into):
    """Copy the values of arrays into others."""
    for values, array in zip(arrays, into):
        array[...] = values
