"""What a `Trainer` is to do: plain data, which both of its backends read."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..brian.internals import delay_steps
from ..brian.neurons import GLMNeurons, feedback_weight_names
from ..brian.subgroups import whole_group
from ..brian.synapses import GLMSynapses
from ..core.bases import Basis
from ..core.credit import Credit
from ..core.objectives import Objective
from ..core.updates import UpdateRule
from .examples import Examples
from .reward import Reward
from .testing import TestPresentations


@dataclass(frozen=True, eq=False)
class LearnedWeights:
    """Weights that learn: those of a GLMSynapses, or the feedback weights, treated as one
    synapse from each neuron to itself."""

    variables: list  # one Brian variable per basis function
    sources: np.ndarray  # the presynaptic neuron of each synapse, in its whole group
    targets: np.ndarray  # the postsynaptic neuron of each synapse
    basis: Basis
    pathway: Any  # delivers the spikes; None for the feedback
    group: int  # the number of the target among the trainer's groups
    sender: int | None  # the number of the source, if it is hidden

    @classmethod
    def of_synapses(cls, synapses: GLMSynapses, groups: list[GLMNeurons]) -> "LearnedWeights":
        variables, targets = synapses.learned_weights()
        sources = synapses.learned_sources()
        numbers = {group.id: number for number, group in enumerate(groups)}
        sender = numbers.get(whole_group(synapses.source).id) or None  # 0 are the outputs
        group = numbers[whole_group(synapses.target).id]
        return cls(variables, sources, targets, synapses.basis, synapses.pre, group, sender)

    @classmethod
    def of_feedback(cls, neurons: GLMNeurons, basis: Basis, group: int) -> "LearnedWeights":
        variables = [neurons.variables[name] for name in feedback_weight_names(basis)]
        all_neurons = np.arange(len(neurons))
        return cls(variables, all_neurons, all_neurons, basis, None, group, group or None)

    def delays(self) -> np.ndarray:
        """Return the delay of each synapse in steps, or one for all."""
        return np.zeros(1, dtype=int) if self.pathway is None else delay_steps(self.pathway)


@dataclass(frozen=True, eq=False)
class Plan:
    """What learns, from what, and how.

    Attributes
    ----------
    groups : list of GLMNeurons
        The outputs, then the hidden groups.
    synapses : list of GLMSynapses
        Those that learn.
    rule : UpdateRule
        How the gradient of a batch changes parameters.
    average : float
        The fraction of the updates, the last ones, over which parameters are averaged.
    weights : tuple of LearnedWeights
        The sets of weights that learn: see `with_weights`.
    """

    groups: list[GLMNeurons]
    synapses: list[GLMSynapses]
    examples: Examples
    n_steps: int
    batch_size: int
    objective: Objective
    credit: Credit
    reward: Reward | None
    learn_bias: bool
    learn_feedback: bool
    rule: UpdateRule
    average: float
    weights: tuple[LearnedWeights, ...] = ()

    def with_weights(self) -> "Plan":
        """Return the same plan with `weights`, from which point on the synapses are fixed."""
        if not self.learns:
            return self
        weights = [LearnedWeights.of_synapses(each, self.groups) for each in self.synapses]
        for number, group in enumerate(self.groups):
            is_used = number > 0 or self.objective.learns_feedback or self.reward is not None
            if is_used and self.learn_feedback and group.feedback_basis is not None:
                weights.append(LearnedWeights.of_feedback(group, group.feedback_basis, number))
        return replace(self, weights=tuple(weights))

    @property
    def outputs(self) -> GLMNeurons:
        return self.groups[0]

    @property
    def is_training(self) -> np.ndarray:
        """Which presentations are learned."""
        return self.examples.is_training

    @property
    def n_presentations(self) -> int:
        return len(self.is_training)

    @cached_property
    def learns(self) -> bool:
        """Whether any presentation is learned."""
        return bool(self.is_training.any())

    @cached_property
    def last_learning(self) -> int:
        """Number of the last presentation that is learned."""
        return int(np.flatnonzero(self.is_training)[-1])

    @cached_property
    def done_in_updates(self) -> np.ndarray:
        """The fraction of training that is done in each update, before the last presentation of its batch."""
        n = int(self.is_training.sum())
        ends = np.append(np.arange(self.batch_size, n, self.batch_size), n)
        return (ends - 1) / n

    @property
    def n_averaged(self) -> int:
        """How many updates, the last ones, count in the mean of the parameters."""
        # Rounded, lest 0.1 * 30 be above 3.
        return math.ceil(round(self.average * len(self.done_in_updates), 6))

    @property
    def changes_at_once(self) -> bool:
        """Whether each presentation changes weights synapse by synapse, without a gradient of the batch."""
        return self.batch_size == 1 and self.rule.adds_gradients

    @property
    def biases(self) -> list[Any]:
        """The Brian variables of biases that learn."""
        return [group.variables["bias"] for group in self.groups] if self.learn_bias else []

    @cached_property
    def clamps_outputs(self) -> bool:
        """Whether outputs are clamped to the desired spikes in presentations that are learned."""
        return self.learns and self.objective.clamps_outputs and self.reward is None

    @cached_property
    def uses_credit(self) -> bool:
        """Whether any neurons learn by `credit`: hidden ones and, with a reward, the outputs."""
        return len(self.groups) > 1 or self.reward is not None

    @cached_property
    def tests(self) -> TestPresentations:
        return TestPresentations(self.is_training, len(self.outputs), self.objective)

    def examples_learned(self, most: int) -> tuple:
        """Return what is learned; see `Trainer.examples_learned`."""
        return self.examples.learned(self.objective, self.n_steps, len(self.outputs), most)

    def feedback_of(self, group: int) -> list[int]:
        """Return the numbers of the feedback weights of a group, among `weights`."""
        return [
            number
            for number, weights in enumerate(self.weights)
            if weights.pathway is None and weights.group == group
        ]

    def changes(self) -> dict[tuple[int, Basis], int]:
        """Return numbers for the pairs of a group and a basis, in the order of the weights."""
        pairs = dict.fromkeys((weights.group, weights.basis) for weights in self.weights)
        return {pair: number for number, pair in enumerate(pairs)}
