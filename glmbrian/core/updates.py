"""Updates: how the gradients of a batch change parameters, in NumPy.

`native/updates.hpp` and `native/trainer.hpp` do the same in compiled programs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .optimisers import SGD, Optimizer
from .schedules import Constant, Schedule


@dataclass(frozen=True)
class UpdateRule:
    """How parameters move, whatever the network.

    Parameters
    ----------
    optimizer : Optimizer
    schedule : Schedule
        What the learning rate is multiplied by as training proceeds.
    weight_decay : float
        Synaptic and feedback weights, but not biases, are multiplied by ``exp(-weight_decay * total)``, where
        `total` is the sum of the learning rates of the updates since the last decay.
    clip_norm : float, optional
        The largest norm of an update's mean gradient, over all parameters of a network; longer ones are shortened
        to it.
    """

    optimizer: Optimizer = SGD()
    schedule: Schedule = field(default_factory=Constant)
    weight_decay: float = 0.0
    clip_norm: float | None = None

    @property
    def adds_gradients(self) -> bool:
        """Whether an update adds the gradient times one number, so that its order of additions is free."""
        return self.optimizer.is_gradient and self.clip_norm is None


@dataclass(frozen=True)
class OptimizerState:
    """What an optimiser remembers between updates.

    optimizer : Optimizer
    n_updates : ndarray of int, shape (n_replicas,)
        Updates so far.
    slots : list of list of ndarray
        For each array of parameters, those of the optimiser.
    """

    optimizer: Optimizer
    n_updates: NDArray[np.int64]
    slots: list[list[NDArray[np.float64]]]

    @classmethod
    def at_start(
        cls, optimizer: Optimizer, n_replicas: int, parameters: Sequence[NDArray[np.float64]]
    ) -> "OptimizerState":
        """Return the state before the first update of these arrays."""
        slots = [
            [np.zeros(np.shape(array)) for _ in range(optimizer.n_slots)] for array in parameters
        ]
        return cls(optimizer, np.zeros(n_replicas, dtype=np.int64), slots)

    def copy(self) -> "OptimizerState":
        slots = [[slot.copy() for slot in of_array] for of_array in self.slots]
        return OptimizerState(self.optimizer, self.n_updates.copy(), slots)


class Updater:
    """Updates arrays in place.

    If there are several replicas, they are slices along the axis of neurons: the last axis of biases (which have
    one), and the last but one of weights.

    Parameters
    ----------
    rule : UpdateRule
    state : OptimizerState
        It is brought up to date in each update.
    """

    def __init__(self, rule: UpdateRule, state: OptimizerState) -> None:
        self.rule = rule
        self.state = state
        self._total_rates = np.zeros(len(state.n_updates))  # since the last decay

    def update(
        self,
        values: Sequence[NDArray[np.float64]],
        gradients: Sequence[NDArray[np.float64]],
        n_learned: NDArray[np.int64],
        learning_rates: NDArray[np.float64],
    ) -> None:
        """Change `values` as the rule says.

        Parameters
        ----------
        values : list of ndarray of float
        gradients : list of ndarray of float
            Of each of these arrays, the sum over the presentations of the batch.
        n_learned : ndarray of int, shape (n_replicas,)
            From how many presentations each replica learns; without any, it stays as it is.
        learning_rates : ndarray of float, shape (n_replicas,)
        """
        rule, state = self.rule, self.state
        self._total_rates += learning_rates
        learns = n_learned > 0
        state.n_updates[learns] += 1
        scales = self._clipped(gradients, 1.0 / np.maximum(n_learned, 1))
        if rule.optimizer.is_gradient:
            rates = learning_rates / np.maximum(n_learned, 1)
            if rule.clip_norm is not None:
                rates = learning_rates * scales
            for array, gradient in zip(values, gradients):
                array += spread(rates, array) * gradient
            return
        for array, gradient, slots in zip(values, gradients, state.slots):
            before = None if learns.all() else [slot.copy() for slot in slots]
            n = spread(np.maximum(state.n_updates, 1), array)
            direction = rule.optimizer.direction(spread(scales, array) * gradient, slots, n)
            array += spread(learning_rates * learns, array) * direction
            for slot, old in zip(slots, before or ()):
                slot[...] = np.where(spread(learns, array), slot, old)

    def _clipped(self, gradients, scales):
        """Return what sums of gradients are multiplied by, given what makes them means."""
        limit = self.rule.clip_norm
        if limit is None:
            return scales
        squares = np.zeros(len(scales))
        for gradient in gradients:
            neurons_last = gradient if gradient.ndim == 1 else np.moveaxis(gradient, -2, -1)
            of_neurons = np.square(neurons_last).reshape(-1, neurons_last.shape[-1]).sum(axis=0)
            squares += of_neurons.reshape(len(scales), -1).sum(axis=1) if len(scales) > 1 else of_neurons.sum()
        norms = np.sqrt(squares) * scales
        return scales * np.minimum(1.0, limit / np.where(norms > 0, norms, limit))

    def decay(self, weights: Sequence[NDArray[np.float64]]) -> None:
        """Let weights decay, in place, by what is due since the last call."""
        factors = np.exp(-self.rule.weight_decay * self._total_rates)
        for array in weights:
            array *= spread(factors, array)
        self._total_rates[:] = 0.0


def spread(per_replica: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Return one number per replica in a shape that broadcasts against an array with all replicas."""
    if len(per_replica) == 1:
        return per_replica
    n = array.shape[0] if array.ndim == 1 else array.shape[-2]
    per_neuron = np.repeat(per_replica, n // len(per_replica))
    return per_neuron if array.ndim == 1 else per_neuron[:, np.newaxis]
