"""Updates: how the gradients of a batch change parameters, in NumPy.

`native/updates.hpp` and `native/trainer.hpp` do the same in compiled programs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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
    schedule: Schedule = Constant()
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
        For each slot of the optimiser, an array for each array of parameters.
    """

    optimizer: Optimizer
    n_updates: NDArray[np.int64]
    slots: list[list[NDArray[np.float64]]]

    @classmethod
    def at_start(
        cls, optimizer: Optimizer, n_replicas: int, parameters: Sequence[NDArray[np.float64]]
    ) -> "OptimizerState":
        """Return the state before the first update of these arrays."""
        slots = [[np.zeros(np.shape(array)) for array in parameters] for _ in range(optimizer.n_slots)]
        return cls(optimizer, np.zeros(n_replicas, dtype=np.int64), slots)

    @classmethod
    def from_vector(
        cls,
        vector: NDArray[np.float64],
        optimizer: Optimizer,
        n_replicas: int,
        parameters: Sequence[NDArray[np.float64]],
    ) -> "OptimizerState":
        """Return the state for which `to_vector` gave `vector`; raise a ValueError if its size is wrong."""
        state = cls.at_start(optimizer, n_replicas, parameters)
        arrays = [array for slot in state.slots for array in slot]
        ends = n_replicas + np.cumsum([0, *(array.size for array in arrays)])
        if vector.shape != (ends[-1],):
            raise ValueError(
                f"the state of optimizer={optimizer!r} must have {ends[-1]} values, got {vector.size}"
            )
        for array, start, end in zip(arrays, ends, ends[1:]):
            array[...] = vector[start:end].reshape(array.shape)
        state.n_updates[:] = vector[:n_replicas]
        return state

    def to_vector(self) -> NDArray[np.float64]:
        """Return the numbers of updates, and all values of the slots, as files hold them."""
        arrays = [array.ravel() for slot in self.slots for array in slot]
        return np.concatenate([self.n_updates, *arrays]).astype(float)

    def copy(self) -> "OptimizerState":
        slots = [[array.copy() for array in slot] for slot in self.slots]
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
        counts = np.maximum(n_learned, 1)
        clip = self._clip(gradients, counts)
        if rule.optimizer.is_gradient:
            rates = learning_rates / counts * clip
            for array, gradient in zip(values, gradients):
                array += spread(rates, array) * gradient
            return
        for number, (array, gradient) in enumerate(zip(values, gradients)):
            slots = [slot[number] for slot in state.slots]
            before = None if learns.all() else [slot.copy() for slot in slots]
            n = spread(np.maximum(state.n_updates, 1), array)
            direction = rule.optimizer.direction(spread(clip / counts, array) * gradient, slots, n)
            array += spread(learning_rates * learns, array) * direction
            for slot, old in zip(slots, before or ()):
                slot[...] = np.where(spread(learns, array), slot, old)

    def _clip(self, gradients, counts):
        """Return what shortens the gradient of each replica."""
        limit = self.rule.clip_norm
        if limit is None:
            return np.ones(len(counts))
        squares = np.zeros(len(counts))
        for gradient in gradients:
            # Per neuron, and then per replica.
            neurons_last = gradient if gradient.ndim == 1 else np.moveaxis(gradient, -2, -1)
            of_neurons = np.square(neurons_last).reshape(-1, neurons_last.shape[-1]).sum(axis=0)
            squares += [part.sum() for part in np.split(of_neurons, len(counts))]
        norms = np.sqrt(squares) / counts
        return limit / np.maximum(norms, limit)

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
