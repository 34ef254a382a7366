"""What a classifier simulates, independent of any device: plain containers.

A device (see `glmbrian.devices`) takes a `Network` and `Parameters` and either
trains them on `Inputs`, or tests them and returns an `Outcome`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.activations import Activation
from ..core.adversarial import Adversarial
from ..core.bases import Basis, CustomBasis
from ..core.credit import CREDITS, Credit, StraightThrough
from ..core.layers import Layer
from ..core.objectives import FirstToSpike, Objective
from ..core.optimisers import SGD, Optimizer
from ..core.outcome import Outcome, Trace  # noqa: F401  (what devices return)
from ..core.rate_code import as_bytes, levels, rate_encode
from ..core.schedules import Constant, Schedule
from ..core.updates import OptimizerState, UpdateRule

#: If parameters or log-likelihoods are larger, training has diverged.
LARGEST = 1e100


@dataclass(frozen=True)
class LayerShape:
    """The sizes and bases of the neurons of one layer."""

    n_inputs: int
    n: int
    basis: Basis
    feedback_basis: Basis | None

    @property
    def n_feedback(self) -> int:
        """Number of feedback weights per neuron."""
        return self.feedback_basis.n_basis if self.feedback_basis else 0


@dataclass(frozen=True)
class HiddenLayers:
    """The hidden layers of a network, which have the same bases.

    sizes : tuple of int
        Numbers of neurons, from the input on; () for a network without hidden layers.
    basis : Basis, optional
        By default that of the outputs.
    """

    sizes: tuple[int, ...] = ()
    basis: Basis | None = None
    feedback_basis: Basis | None = None
    credit: Credit = CREDITS[StraightThrough.name]


@dataclass(frozen=True)
class Network:
    """The network: what has to be compiled.

    Replicas are networks that see the same input spikes and learn independently of
    each other.  Their outputs are consecutive: replica r has the outputs
    ``r * n_classes`` to ``(r + 1) * n_classes - 1``.  `gpu` says whether the GeNN
    device uses a GPU, by default where CUDA is found.  `n_jobs` is the number of
    processes that share the replicas, if the device `is_concurrent`.  `optimizer` matters in
    training only, but one program does both.
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
    hidden: HiddenLayers = field(default_factory=HiddenLayers)
    optimizer: Optimizer = SGD()

    @property
    def n_outputs(self) -> int:
        return self.n_replicas * self.n_classes

    @property
    def credit(self) -> Credit:
        return self.hidden.credit

    @property
    def layers(self) -> list[LayerShape]:
        """The layers from the first hidden one to the outputs."""
        hidden, n_inputs, layers = self.hidden, self.n_inputs, []
        for n in hidden.sizes:
            layers.append(LayerShape(n_inputs, n, hidden.basis or self.basis, hidden.feedback_basis))
            n_inputs = n
        return [*layers, LayerShape(n_inputs, self.n_outputs, self.basis, self.feedback_basis)]

    @property
    def layer_names(self) -> list[str]:
        """The names of the neurons of each layer."""
        return [*(f"glm_hidden_{number}" for number in range(len(self.hidden.sizes))), "glm_outputs"]

    def trim_zero_lags(self) -> "Network":
        """Return an equivalent network with bases that end at their last nonzero lag.

        By default a basis has as many lags as steps, and most of it is zero; generated
        code would spell out each value.
        """
        hidden = replace(
            self.hidden,
            basis=_ended(self.hidden.basis),
            feedback_basis=_ended(self.hidden.feedback_basis),
        )
        return replace(
            self,
            basis=_ended(self.basis),
            feedback_basis=_ended(self.feedback_basis),
            hidden=hidden,
        )

    def shares(self, training: "Training") -> list[slice]:
        """Return the replicas of each process, as slices of equal length.

        With equal lengths all processes run the same program, so the last two slices may
        overlap.
        """
        size = 1 if training.has_own_spikes(self) else -(-self.n_replicas // self.n_jobs)
        ends = range(size, self.n_replicas + size, size)
        return [slice(end - size, end) for end in (min(end, self.n_replicas) for end in ends)]


def _ended(basis):
    if basis is None or basis.matrix[-1].any():
        return basis
    return CustomBasis(basis.matrix[: np.flatnonzero(basis.matrix.any(axis=1))[-1] + 1])


@dataclass
class LayerParameters:
    """What one layer learns.

    weights : ndarray, shape (n_inputs, n, n_basis)
    feedback : ndarray, shape (n, n_feedback); n_feedback may be 0
    bias : ndarray, shape (n,)
    """

    weights: NDArray[np.float64]
    feedback: NDArray[np.float64]
    bias: NDArray[np.float64]

    @property
    def arrays(self) -> tuple[NDArray[np.float64], ...]:
        return self.weights, self.feedback, self.bias


@dataclass
class Parameters(LayerParameters):
    """What is learned: theta of the paper, and the parameters of hidden layers.

    weights : ndarray, shape (n_inputs, n_outputs, n_basis)
        Of the outputs, like `feedback` and `bias`.  `n_inputs` is the size of the last hidden
        layer, if there is one.
    hidden : tuple of LayerParameters
        From the input on; of several replicas, first all of one, then all of the next.
    """

    hidden: tuple[LayerParameters, ...] = ()

    @property
    def layers(self) -> tuple[LayerParameters, ...]:
        """The layers from the first hidden one to the outputs."""
        return *self.hidden, self

    @property
    def arrays_of_all(self) -> list[NDArray[np.float64]]:
        """The arrays of all layers."""
        return [array for layer in self.layers for array in layer.arrays]

    @classmethod
    def of_arrays(cls, arrays: Sequence[NDArray[np.float64]]) -> "Parameters":
        """Return the parameters whose `arrays_of_all` these are."""
        *hidden, output = (arrays[n : n + 3] for n in range(0, len(arrays), 3))
        weights, feedback, bias = output
        return cls(weights, feedback, bias, tuple(LayerParameters(*layer) for layer in hidden))

    def copy(self) -> "Parameters":
        return Parameters.of_arrays([array.copy() for array in self.arrays_of_all])

    def is_bounded(self, history: ArrayLike) -> bool:
        """Whether these parameters and the `history` of their training have not diverged."""
        return all(np.all(np.abs(part) <= LARGEST) for part in (*self.arrays_of_all, history))

    def raise_if_diverged(self, history: ArrayLike, training: "Training") -> None:
        """Raise if the `training` that led to these parameters and this `history` diverged."""
        if self.is_bounded(history):
            return
        weights = training.sample_weights
        weighted = (
            "" if weights is None else f", sample_weight and class_weight up to {weights.max():g}"
        )
        raise ValueError(
            f"training diverged to parameters or log-likelihoods beyond {LARGEST:g}, with learning_rate="
            f"{training.learning_rates.max():g}{weighted}: try a tenth of the one that is too large, or "
            "a smaller bias_init or weight_scale"
        )

    @classmethod
    def joined(cls, replicas: Sequence["Parameters"]) -> "Parameters":
        """Return the parameters of a network made of several `replicas`."""
        return cls(
            np.concatenate([replica.weights for replica in replicas], axis=1),
            np.concatenate([replica.feedback for replica in replicas]),
            np.concatenate([replica.bias for replica in replicas]),
            tuple(layer for replica in replicas for layer in replica.hidden),
        )

    def of_replicas(self, replicas: slice, network: Network) -> "Parameters":
        """Return views of the parameters of a slice of the network's replicas."""
        outputs = slice(replicas.start * network.n_classes, replicas.stop * network.n_classes)
        n_hidden = len(network.hidden.sizes)
        return Parameters(
            self.weights[:, outputs],
            self.feedback[outputs],
            self.bias[outputs],
            self.hidden[replicas.start * n_hidden : replicas.stop * n_hidden],
        )


def state_of_replicas(state: OptimizerState, replicas: slice, network: Network) -> OptimizerState:
    """Return views of what the optimiser remembers for a slice of the network's replicas."""
    slots = [
        Parameters.of_arrays(slot).of_replicas(replicas, network).arrays_of_all for slot in state.slots
    ]
    return OptimizerState(state.optimizer, state.n_updates[replicas], slots)


def as_layers(network: Network, parameters: Parameters) -> list[Layer]:
    """Return the layers of a network with these parameters, from the first hidden one on."""
    return [
        Layer(
            shape.basis.matrix,
            learned.weights,
            learned.bias,
            None if shape.feedback_basis is None else shape.feedback_basis.matrix,
            None if shape.feedback_basis is None else learned.feedback,
            network.activation,
        )
        for shape, learned in zip(network.layers, parameters.layers)
    ]


@dataclass(frozen=True)
class Inputs:
    """The presentations of a data set.

    kind : "bytes", "levels" or "trains"
    data : ndarray
        8-bit intensities (n, n_inputs), levels as float32 (see `glmbrian.core.rate_code`)
        (n, n_inputs), or spike trains of 0 and 1 (n, n_steps, n_inputs).
    """

    kind: str
    data: np.ndarray

    @classmethod
    def of_intensities(cls, intensities: np.ndarray) -> "Inputs":
        """Return checked intensities (see `glmbrian.core.rate_code`), as bytes if all are bytes."""
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

    def levels(self, item: int | np.ndarray | slice) -> np.ndarray:
        return levels(self.data[item]) if self.kind == "bytes" else self.data[item]

    def trains(self, rows: slice, key: int, first_presentation: int, n_steps: int) -> np.ndarray:
        """Return spike trains (n, n_steps, n_inputs): ready-made ones, or encoded under `key`."""
        if self.kind == "trains":
            return self.data[rows]
        numbers = np.arange(*rows.indices(len(self)))
        return rate_encode(self.levels(rows), key, first_presentation + numbers, n_steps)


@dataclass(frozen=True)
class Training:
    """Settings of one training run.

    An update follows the mean gradient of `batch_size` presentations.  Presentations are numbered from `first_presentation`, and their random
    draws depend on this number.  The order of an epoch depends on `order_key` and on how
    many epochs of its size fit into the presentations before it.

    learning_rates : ndarray of float, shape (n_replicas,)
    sample_weights : ndarray of float, shape (n_replicas, n), optional
        The gradient of each presentation is multiplied by its weight.  Presentations
        of weight 0 do not count in the mean.
    output_key : int
        Key of the outputs' random draws, where the objective leaves outputs free; the keys of
        hidden layers are derived from it (see `randomness.hidden_key`).
    schedule : Schedule
        What the learning rate is multiplied by as training proceeds.
    n_planned : int
        Presentations that make up all of training, for the schedule.
    n_averaged : int
        The learned parameters are the mean of those after each of this many epochs, the last
        ones; 0 for those after the last.
    weight_decay, clip_norm : float
        See `UpdateRule`; weights decay after each epoch.
    state : OptimizerState, optional
        What the optimiser remembers of earlier training, which only a single replica may have.
    adversarial : Adversarial, optional
        How presentations are attacked before they are learned.
    """

    learning_rates: NDArray[np.float64]
    n_epochs: int
    batch_size: int
    input_key: int
    order_key: int
    sample_weights: NDArray[np.float64] | None = None
    first_presentation: int = 0
    output_key: int = 0
    schedule: Schedule = Constant()
    n_planned: int = 1
    n_averaged: int = 0
    weight_decay: float = 0.0
    adversarial: Adversarial | None = None
    clip_norm: float | None = None
    state: OptimizerState | None = None

    def rule(self, network: Network) -> UpdateRule:
        """Return how the parameters of a network move."""
        return UpdateRule(network.optimizer, self.schedule, self.weight_decay, self.clip_norm)

    def rate_factor(self, presentation: int) -> float:
        """Return what the learning rate is multiplied by in the presentation with this number."""
        return self.schedule.factor(min(presentation / self.n_planned, 1.0))

    def state_at_start(self, network: Network, parameters: Parameters) -> OptimizerState:
        """Return a new state of the optimiser, from earlier training unless that had another one."""
        if self.state is not None and self.state.optimizer == network.optimizer:
            return self.state.copy()
        return OptimizerState.at_start(
            network.optimizer, len(self.learning_rates), parameters.arrays_of_all
        )

    def has_own_spikes(self, network: Network) -> bool:
        """Whether each replica needs a simulation of its own, as not all see the same spikes.

        What hidden neurons send to the next layer is their own, and so are the changes of an attack.
        """
        return bool(network.hidden.sizes) or self.adversarial is not None

    def epoch(self, number: int, n_items: int) -> "Training":
        """Return the settings of one epoch of `n_items` presentations, without averaging."""
        return replace(
            self,
            n_epochs=1,
            n_averaged=0,
            first_presentation=self.first_presentation + number * n_items,
        )

    def of_replicas(self, replicas: slice) -> "Training":
        """Return the settings of a slice of the replicas."""
        weights = self.sample_weights
        return replace(
            self,
            learning_rates=self.learning_rates[replicas],
            sample_weights=None if weights is None else weights[replicas],
        )


@dataclass(frozen=True)
class Trained:
    """What a training run gives.

    parameters : Parameters
    history : ndarray of float, shape (n_epochs, n_replicas)
        Mean log-likelihoods.
    state : OptimizerState
    timing : Timing
    """

    parameters: Parameters
    history: NDArray[np.float64]
    state: OptimizerState
    timing: "Timing"


@dataclass(frozen=True)
class Testing:
    """Settings of one test run.

    Presentations are numbered from `first_presentation`; their random draws depend on this number.
    """

    __test__ = False  # or pytest would collect this class, because of its name

    input_key: int
    output_key: int
    first_presentation: int = 0


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
