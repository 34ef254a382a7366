"""Where training happens: between the steps of Brian's runtime device, or in a generated program."""

from abc import ABC, abstractmethod
from typing import ClassVar

from brian2.groups.group import Group

from .plan import Plan


class Backend(ABC):
    """Training on one of Brian's devices.

    Parameters
    ----------
    plan : Plan
    owner : Group
        The Brian object that holds the variables `_values` (one for each presentation), `_labels` or
        `_targets`, and `_tests` and `_outcomes` if there are tests.
    learning_rate : float

    Attributes
    ----------
    runs_at_once : bool
        Whether a run is over when ``run`` returns.
    learning_rate : float
        Of the runs to come.
    """

    runs_at_once: ClassVar[bool]

    def __init__(self, plan: Plan, owner: Group, learning_rate: float) -> None:
        self.plan, self.variables, self.learning_rate = plan, owner.variables, learning_rate

    @abstractmethod
    def add_operations(self, owner: Group) -> None:
        """Give `owner` what runs in each step."""

    @property
    @abstractmethod
    def steps_done(self) -> int:
        """Steps of training made so far, or planned so far for a program."""

    @abstractmethod
    def after_run(self) -> None:
        """Take note that a run is over, or was described."""
