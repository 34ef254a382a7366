"""The folder ``job`` in a program's working folder: its task, its data and its results.

`native/job.hpp` is the program's side of it.
"""

import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.adversarial import to_job
from ..core.updates import OptimizerState
from ..support.validation import finite_array
from .problem import Inputs, Network, Parameters, Testing, Training

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
        learning_rate_schedule=training.schedule.name if training.schedule.cpp else _FUNCTION,
        n_planned=min(training.n_planned, _MOST),
        weight_decay=repr(training.weight_decay),
        clip_norm=repr(training.clip_norm or 0.0),
        **_optimizer_settings(network),
        continues=int(training.state is not None),
        **to_job(training.adversarial),
        input_key=training.input_key,
        output_key=training.output_key,
        order_key=training.order_key,
    )
    _write_array(job / "labels.bin", labels, np.int32)
    if training.sample_weights is not None:
        _write_array(job / "sample_weights.bin", training.sample_weights, float)
    if not training.schedule.cpp:
        _write_array(job / "rate_factors.bin", _rate_factors(training, len(inputs)), float)
    if training.state is not None:
        state = training.state_at_start(network, parameters)
        _write_array(job / "optimizer.bin", state.to_vector(), float)


#: What the settings of a program call a schedule that only `rate_factors.bin` tells.
_FUNCTION = "function"


def _rate_factors(training, n_items):
    """Return the factor of the learning rate in each update."""
    last_of_batch = np.minimum(
        np.arange(training.batch_size, n_items + training.batch_size, training.batch_size), n_items
    )
    first = training.first_presentation - 1
    return [
        training.rate_factor(int(first + epoch * n_items + last))
        for epoch in range(training.n_epochs)
        for last in last_of_batch
    ]


def _optimizer_settings(network):
    """Return the lines about the optimiser; a line cannot be empty."""
    values = network.optimizer.settings.values()
    return {
        "optimizer": network.optimizer.name,
        "optimizer_settings": ",".join(map(repr, values)) or "0",
    }


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
        learning_rate_schedule="constant",
        n_planned=1,
        weight_decay=0,
        clip_norm=0,
        **_optimizer_settings(network),
        continues=0,
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


def read_state(job: Path, network: Network, parameters: Parameters) -> OptimizerState:
    """Read what the optimiser remembers, given the `Parameters` that a program has learned."""
    arrays, n = parameters.arrays_of_all, network.n_replicas
    if not network.optimizer.n_slots:
        return OptimizerState.at_start(network.optimizer, n, arrays)
    vector = np.fromfile(job / "trained_optimizer.bin")
    return OptimizerState.from_vector(vector, network.optimizer, n, arrays)


def read_history(job: Path, network: Network) -> NDArray[np.float64]:
    """Read the mean log-likelihoods, shape (n_epochs, n_replicas)."""
    return np.fromfile(job / "history.bin").reshape(-1, network.n_replicas)


def read_exported(
    network: Network, folder: Path, has_checksums: bool
) -> tuple[Parameters, NDArray[np.float64], OptimizerState, dict[str, str]]:
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
    state : OptimizerState
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
    names = ("trained.bin", "history.bin", "run.txt", *_state_file(network))
    if not all((job / name).is_file() for name in names):
        raise FileNotFoundError(
            "its program has not run yet, or has not finished; run `make run` in it"
        )
    run = _checked_run(job, network) if has_checksums else {}
    parameters, history = read_parameters(job, network), read_history(job, network)
    state = read_state(job, network, parameters)
    names = ("weights", "feedback", "bias")
    for number, layer in enumerate(parameters.layers):
        place = f" of hidden layer {number}" if number < len(parameters.hidden) else ""
        for name, values in zip(names, layer.arrays):
            finite_array(values, f"{name}{place} (what the program has learned)")
    finite_array(history, "history (what the program has learned)")
    return parameters, history, state, run


def _state_file(network):
    return ("trained_optimizer.bin",) if network.optimizer.n_slots else ()


def _checked_run(job, network):
    """Return what run.txt says about a training run, after checking it and the files it lists."""
    report, _, checksum = (job / "run.txt").read_bytes().rpartition(b"checksum ")
    if checksum != b"%d\n" % zlib.crc32(report):
        raise ValueError("job/run.txt has changed since the program ended; run `make run` again")
    run = dict(line.split() for line in report.decode().splitlines())
    if run.get("mode") != "train":
        raise ValueError(
            "its program did not train: set mode to train in job/settings.txt, and run `make run`"
        )
    for name in ("trained.bin", "history.bin", *_state_file(network)):
        data = (job / name).read_bytes()
        if (str(len(data)), str(zlib.crc32(data))) != (run[f"{name}_size"], run[f"{name}_checksum"]):
            raise ValueError(f"job/{name} has changed since the program ended; run `make run` again")
    return run
