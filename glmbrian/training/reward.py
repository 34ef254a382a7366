"""A reward of the user's own, which takes the place of the log-likelihood.

A `Reward` is read at the end of each presentation that is learned.
"""

from abc import ABC, abstractmethod
from collections import ChainMap
from collections.abc import Callable
from typing import Any

import numpy as np
from brian2.core.variables import Constant
from brian2.groups.group import VariableOwner

from ..brian.subgroups import span, whole_group
from ..core.credit import Credit
from ..support.validation import real

#: Orders within the slot "end" of a step: the reward is read before the trainer ends its step.
READ_ORDER, END_ORDER = 1, 2


class Reward(ABC):
    """Where the reward of a presentation comes from.

    Attributes
    ----------
    is_variable : bool
        Whether it is in a variable, which compiled programs can read as well.
    """

    is_variable: bool

    @abstractmethod
    def read(self, variables: Any, presentation: int) -> float:
        """Return the reward of the presentation that ends, on the runtime device.

        `variables` are those of the trainer.
        """

    @abstractmethod
    def add_to(self, trainer: Any) -> None:
        """Add to a trainer what it needs to read the reward."""


class CalledReward(Reward):
    """What a function returns for the number of a presentation."""

    is_variable = False

    def __init__(self, function: Callable[[int], float]) -> None:
        self._function = function

    def add_to(self, trainer: Any) -> None:
        """Do nothing: a function needs nothing in the trainer."""

    def read(self, variables: Any, presentation: int) -> float:
        try:
            value = self._function(presentation)
        except TypeError as error:
            # Probably it is not a function of one number.
            raise TypeError(
                f"reward must be a function of the number of a presentation, but reward({presentation}) "
                f"raised a TypeError: {error}"
            ) from error
        return real(value, f"reward({presentation})")


class VariableReward(Reward):
    """The value of a Brian variable.

    Brian's own code copies it to the trainer's variable `reward_seen` in each step, so it may even
    be a subexpression.
    """

    is_variable = True

    def __init__(self, group: VariableOwner, name: str) -> None:
        self._group, self._name = group, name

    def read(self, variables: Any, presentation: int) -> float:
        value = variables["reward_seen"].get_value().item()
        return real(value, f"reward ({self._group.name}.{self._name})")

    def add_to(self, trainer: Any) -> None:
        whole = whole_group(self._group)
        trainer.add_dependency(whole)
        variables, index = trainer.variables, None
        if not whole.variables[self._name].scalar:
            index = "reward_index"
            first = np.array([span(self._group).start], dtype=np.int32)
            variables.add_array(
                index, size=1, dtype=np.int32, values=first, constant=True, read_only=True
            )
        # A subexpression may use names in the namespace of its group, even those added later.
        trainer.namespace = ChainMap(trainer.namespace, getattr(whole, "namespace", {}))
        variables.add_reference("reward_source", whole, self._name, index=index)
        variables.add_array("reward_seen", size=1, dtype=np.float64)
        trainer.run_regularly(
            "reward_seen = reward_source",
            clock=trainer.clock,
            when="end",
            order=READ_ORDER,
            name=f"{trainer.name}_reward",
        )


def get_reward(reward: Any) -> Reward | None:
    """Return the `Reward` that the argument `reward` of a `Trainer` describes, or None for None."""
    if reward is None:
        return None
    if callable(reward):
        return CalledReward(reward)
    if not (isinstance(reward, tuple) and len(reward) == 2 and isinstance(reward[1], str)):
        raise TypeError(
            "reward must be (group, 'variable'), a Brian variable with one value, or a function of the "
            f"number of the presentation, got {reward!r}"
        )
    group, name = reward
    if not isinstance(group, VariableOwner):
        raise TypeError(f"reward: {group!r} is not a Brian group; write reward=(group, {name!r})")
    if name not in group.variables:
        raise ValueError(
            f"reward: {group.name} has no variable {name!r}; add it to the equations, such as "
            f"'{name} : 1'"
        )
    variable = group.variables[name]
    if not variable.dim.is_dimensionless:
        raise ValueError(
            f"reward: {name!r} of {group.name} has a unit ({variable.dim}), but a reward is a number; "
            "divide by the unit in the equations"
        )
    size = group.variables.get("N")
    # The size may be unknown yet: the number of synapses, for example, is not a constant.
    if not variable.scalar and not (isinstance(size, Constant) and len(group) == 1):
        raise ValueError(
            f"reward: {name!r} of {group.name} has several values; write '{name} : 1 (shared)', or use a "
            "group of one neuron, to which synapses can add"
        )
    return VariableReward(group, name)


def checked_reward(
    reward: Any, credit: Credit, labels: Any, targets: Any, is_training: Any
) -> Reward | None:
    """Return the `Reward`, or None for None, if it fits the other arguments of a `Trainer`."""
    reward = get_reward(reward)
    if reward is None:
        return None
    if not credit.takes_reward:
        raise ValueError(
            f"reward needs credit='three-factor', got credit={credit.name!r}, which learns from "
            "derivatives"
        )
    for name, given in (("labels", labels), ("targets", targets)):
        if given is not None:
            raise ValueError(f"reward takes the place of {name}: leave out one of the two")
    if is_training is None:
        raise ValueError(
            "is_training must be given with reward, to tell the number of presentations: to learn "
            "from 200, write is_training=np.ones(200, bool)"
        )
    return reward
