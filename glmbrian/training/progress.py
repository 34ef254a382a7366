"""How far training has come on the runtime device: what ``Network.store`` keeps, besides variables."""

from dataclasses import dataclass, field

import numpy as np

from ..core.credit import Baseline
from ..core.updates import OptimizerState
from .plan import Plan


@dataclass
class GroupState:
    """What is known about a group of neurons."""

    # of this presentation, shape (n_steps, n)
    potentials: np.ndarray
    spikes: np.ndarray  # desired or emitted
    # of the batch
    bias_gradient: np.ndarray

    @classmethod
    def at_start(cls, n: int, n_steps: int) -> "GroupState":
        shape = n_steps, n
        return cls(np.zeros(shape), np.zeros(shape, dtype=np.uint8), np.zeros(n))


@dataclass
class Progress:
    """How far training has come."""

    groups: list[GroupState]  # the outputs, then hidden neurons
    # of the batch
    gradients: list  # one array (K, n_synapses) each; no rows if weights change at once
    # of this presentation: (step, synapses) for each set of weights that learns
    arrivals: list
    # of the optimiser and of the mean, in the order of the weights and then the biases
    n_updates: np.ndarray  # shape (1,)
    slots: list
    sums: list
    n_summed: int = 0
    baseline: Baseline = field(default_factory=Baseline)
    presentation: int = 0
    step: int = -1  # below 0 between presentations and after the last
    in_batch: int = 0
    is_over: bool = False

    @classmethod
    def at_start(cls, plan: Plan) -> "Progress":
        sizes = [weights.targets.size for weights in plan.weights for _ in weights.variables]
        parameters = [np.zeros(size) for size in (*sizes, *(bias.size for bias in plan.biases))]
        optimizer = OptimizerState.at_start(plan.rule.optimizer, 1, parameters)
        return cls(
            groups=[GroupState.at_start(len(group), plan.n_steps) for group in plan.groups],
            gradients=[
                np.zeros((0 if plan.changes_at_once else weights.basis.n_basis, weights.targets.size))
                for weights in plan.weights
            ],
            arrivals=[[] for _ in plan.weights],
            n_updates=optimizer.n_updates,
            slots=optimizer.slots,
            sums=parameters if plan.average else [],
        )
