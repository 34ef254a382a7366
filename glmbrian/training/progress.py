"""How far training has come on the runtime device: what ``Network.store`` keeps, besides variables."""

from dataclasses import dataclass, field

import numpy as np

from ..core.credit import Baseline
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
    gradients: list  # one array (K, n_synapses) each; no rows if the batch size is 1
    # of this presentation: (step, synapses) for each set of weights that learns
    arrivals: list
    baseline: Baseline = field(default_factory=Baseline)
    presentation: int = 0
    step: int = -1  # below 0 between presentations and after the last
    in_batch: int = 0
    is_over: bool = False

    @classmethod
    def at_start(cls, plan: Plan) -> "Progress":
        return cls(
            groups=[GroupState.at_start(len(group), plan.n_steps) for group in plan.groups],
            gradients=[
                np.zeros((weights.basis.n_basis if plan.batch_size > 1 else 0, weights.targets.size))
                for weights in plan.weights
            ],
            arrivals=[[] for _ in plan.weights],
        )
