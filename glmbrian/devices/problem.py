"""What a classifier simulates, independent of any device: plain containers.

A device (see `glmbrian.devices`) takes a `Network` and `Parameters` and either
trains them on `Inputs`, or tests them and returns an `Outcome`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.activations import Activation
from ..core.bases import Basis, CustomBasis
from ..core.objectives import FirstToSpike, Objective
from ..core.rate_code import as_bytes, levels

#: If parameters or log-likelihoods are larger, training has diverged.
LARGEST = 1e100


@dataclass(frozen=True)
class Network:
    """The two-layer network: what has to be compiled.

    Replicas are networks that see the same input spikes and learn independently of
    each other.  Their outputs are consecutive: replica r has the outputs
    ``r * n_classes`` to ``(r + 1) * n_classes - 1``.  `gpu` says whether the GeNN
    device uses a GPU, by default where CUDA is found.  `n_jobs` is the number of
    processes that share the replicas, if the device `is_concurrent`.
    """

    n_inputs: int
    n_classes: int
    n_steps: int
    basis: Basis
    feedback_basis: Basis | None
    activation: Activation
    objective: Objective = FirstToSpike()
    n_replicas: int = 1
    gpu: bool | None = None
    n_jobs: int = 1

    @property
    def n_outputs(self) -> int:
        return self.n_replicas * self.n_classes

    def without_silent_lags(self) -> "Network":
        """Return an equivalent network with bases that end at their last nonzero lag.

        By default a basis has as many lags as steps, and most of it is zero; generated
        code would spell out each value.
        """
        return replace(self, basis=_ended(self.basis), feedback_basis=_ended(self.feedback_basis))

    def shares(self) -> list[slice]:
        """Return the replicas of each process, as slices of equal length.

        With equal lengths all processes run the same program, so the last two slices may
        overlap.
        """
        size = -(-self.n_replicas // self.n_jobs)
        ends = range(size, self.n_replicas + size, size)
        return [slice(end - size, end) for end in (min(end, self.n_replicas) for end in ends)]


def _ended(basis):
    if basis is None or basis.matrix[-1].any():
        return basis
    return CustomBasis(basis.matrix[: np.flatnonzero(basis.matrix.any(axis=1))[-1] + 1])


@dataclass
class Parameters:
    """What is learned: theta of the paper.

    weights : ndarray, shape (n_inputs, n_outputs, n_basis)
    feedback : ndarray, shape (n_outputs, n_feedback); n_feedback may be 0
    bias : ndarray, shape (n_outputs,)
    """

    weights: NDArray[np.float64]
    feedback: NDArray[np.float64]
    bias: NDArray[np.float64]

    def copy(self) -> "Parameters":
        return replace(
            self, weights=self.weights.copy(), feedback=self.feedback.copy(), bias=self.bias.copy()
        )

    def check_moderate(self, history: NDArray[np.float64], training: "Training") -> None:
        """Raise if the `training` that led to these parameters and this `history` diverged."""
        if all(np.all(np.abs(part) <= LARGEST) for part in (*vars(self).values(), history)):
            return
        weights = training.sample_weights
        weighted = (
            "" if weights is None else f", sample_weight and class_weight up to {weights.max():g}"
        )
        raise ValueError(
            f"training ended in parameters or log-likelihoods beyond {LARGEST:g}, with learning_rate="
            f"{training.learning_rates.max():g}{weighted}; reduce the one that is too large, or "
            "bias_init or weight_scale"
        )

    @classmethod
    def joined(cls, replicas: Sequence["Parameters"]) -> "Parameters":
        """Return the parameters of a network made of several `replicas`."""
        return cls(
            np.concatenate([replica.weights for replica in replicas], axis=1),
            np.concatenate([replica.feedback for replica in replicas]),
            np.concatenate([replica.bias for replica in replicas]),
        )

    def of_replicas(self, replicas: slice, network: Network) -> "Parameters":
        """Return views of the parameters of a slice of the network's replicas."""
        outputs = slice(replicas.start * network.n_classes, replicas.stop * network.n_classes)
        return Parameters(self.weights[:, outputs], self.feedback[outputs], self.bias[outputs])


@dataclass(frozen=True)
class Inputs:
    """The presentations of a data set.

    kind : "bytes", "levels" or "trains"
    data : ndarray
        8-bit intensities (n, n_inputs), levels as float32 (see `glmbrian.brian.encoder`)
        (n, n_inputs), or spike trains of 0 and 1 (n, n_steps, n_inputs).
    """

    kind: str
    data: np.ndarray

    @classmethod
    def of_intensities(cls, intensities: np.ndarray) -> "Inputs":
        """Return checked intensities (see `glmbrian.brian.encoder`), as bytes if all are bytes."""
        if intensities.dtype != np.uint8:
            nearest, are_bytes = as_bytes(intensities)
            if not are_bytes.all():
                return cls("levels", levels(intensities))
            intensities = nearest
        return cls("bytes", intensities)

    def __len__(self) -> int:
        return len(self.data)

    @property
    def n_inputs(self) -> int:
        return self.data.shape[-1]

    def levels(self, item: int | np.ndarray) -> np.ndarray:
        return levels(self.data[item]) if self.kind == "bytes" else self.data[item]


@dataclass(frozen=True)
class Training:
    """Settings of one training run.

    An update is the learning rate times the mean gradient of `batch_size`
    presentations.  Presentations are numbered from `first_presentation`, and their random
    draws depend on this number.  The order of an epoch depends on `order_key` and on how
    many epochs of its size fit into the presentations before it.

    learning_rates : ndarray of float, shape (n_replicas,)
    sample_weights : ndarray of float, shape (n_replicas, n), optional
        The gradient of each presentation is multiplied by its weight.  Presentations
        of weight 0 do not count in the mean.
    output_key : int
        Key of the outputs' random draws, where the objective leaves outputs free.
    """

    learning_rates: NDArray[np.float64]
    n_epochs: int
    batch_size: int
    input_key: int
    order_key: int
    sample_weights: NDArray[np.float64] | None = None
    first_presentation: int = 0
    output_key: int = 0

    def of_replicas(self, replicas: slice) -> "Training":
        """Return the settings of a slice of the replicas."""
        weights = self.sample_weights
        return replace(
            self,
            learning_rates=self.learning_rates[replicas],
            sample_weights=None if weights is None else weights[replicas],
        )


@dataclass(frozen=True)
class Testing:
    """Settings of one test run.

    Presentations are numbered from `first_presentation`; their random draws depend on this number.
    """

    input_key: int
    output_key: int
    first_presentation: int = 0


@dataclass
class Outcome:
    """What was observed in a test: one row per presentation.

    steps : ndarray of int, shape (n,)
        Steps simulated: up to the first spike if the objective stops there.
    input_spikes : ndarray of int, shape (n,)
        Spikes of all inputs in these steps.
    counts : ndarray of int, shape (n, n_outputs)
        Spikes of each output in these steps.
    potential_sum, potential_last : ndarray of float, shape (n, n_outputs)
        Membrane potential summed over these steps, and in the last of them.
    """

    steps: NDArray[np.int64]
    input_spikes: NDArray[np.int64]
    counts: NDArray[np.int64]
    potential_sum: NDArray[np.float64]
    potential_last: NDArray[np.float64]

    @classmethod
    def from_rows(cls, rows: ArrayLike, n_outputs: int) -> "Outcome":
        """Split rows of ``[steps, input_spikes, counts, sums, lasts]``."""
        table = np.asarray(rows, dtype=float).reshape(-1, 2 + 3 * n_outputs)
        head, counts, sums, lasts = np.split(table, 2 + n_outputs * np.arange(3), axis=1)
        return cls(head[:, 0].astype(int), head[:, 1].astype(int), counts.astype(int), sums, lasts)


@dataclass
class Trace:
    """Everything observed in one presentation, step by step up to its end.

    inputs : ndarray of 0/1, shape (steps, n_inputs)
    outputs : ndarray of 0/1, shape (steps, n_outputs)
    potentials : ndarray of float, shape (steps, n_outputs)
    decided : label of a class, optional
        What `GLMClassifier` decided, -1 for a rejected presentation.
    """

    inputs: np.ndarray
    outputs: np.ndarray
    potentials: np.ndarray
    decided: object | None = None

    def row(self) -> NDArray[np.float64]:
        """Return this presentation as a row for `Outcome.from_rows`."""
        return np.concatenate(
            [
                [len(self.inputs), self.inputs.sum()],
                self.outputs.sum(axis=0),
                self.potentials.sum(axis=0),
                self.potentials[-1],
            ]
        )


@dataclass
class Timing:
    """Seconds spent building and running, and the work done.

    `peak_memory` is the peak memory of a compiled program, in bytes.
    """

    build_seconds: float
    run_seconds: float
    presentations: int
    steps: int
    peak_memory: int | None = None
