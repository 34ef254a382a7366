"""Schedules of the learning rate: factors of the rate as training proceeds."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from ..support.validation import choice, real

_NAME = "learning_rate_schedule"


class Schedule(ABC):
    """What the learning rate is multiplied by, given the fraction of training that is done.

    Attributes
    ----------
    name : str
    cpp : str
        The same as a C++ expression in ``done``; "" if there is none.
    """

    name: ClassVar[str]
    cpp: ClassVar[str] = ""

    @abstractmethod
    def factor(self, done: float) -> float:
        """Return the factor, at least 0, when the fraction `done` of training is done."""


class Constant(Schedule):
    """The learning rate stays as it is."""

    name = "constant"
    cpp = "1.0"

    def factor(self, done):
        return 1.0


class Linear(Schedule):
    """The learning rate falls to 0 along a line."""

    name = "linear"
    cpp = "1.0 - done"

    def factor(self, done):
        return 1.0 - done


@dataclass(frozen=True)
class OwnSchedule(Schedule):
    """A function of the user's own.

    Parameters
    ----------
    function : callable
        From the fraction of training that is done, 0 to 1, to a factor of the learning rate.
    """

    function: Callable[[float], float]
    name = "function"

    def factor(self, done):
        try:
            value = self.function(done)
        except TypeError as error:
            # Probably it is not a function of one number.
            raise TypeError(
                f"{_NAME} must be one of {', '.join(map(repr, SCHEDULES))} or a function of the fraction of "
                f"training that is done, but calling {self.function!r} raised a TypeError: {error}"
            ) from error
        return real(value, f"the values of {_NAME}", 0)


#: The schedules that `learning_rate_schedule` may name.
SCHEDULES: dict[str, Schedule] = {kind.name: kind() for kind in (Constant, Linear)}

#: Where a user's function is tried before anything is compiled.
_N_TRIED = 101


def get_schedule(schedule: str | Schedule | Callable[[float], float]) -> Schedule:
    """Return the schedule with this name, or that uses this function.

    Raises
    ------
    TypeError, ValueError
        If it is neither, or the function does not return finite numbers of at least 0.

    Examples
    --------
    >>> get_schedule("linear").factor(0.25), get_schedule(lambda done: (1 - done) ** 2).factor(0.5)
    (0.75, 0.25)
    """
    if isinstance(schedule, Schedule):
        return schedule
    if not callable(schedule):
        return SCHEDULES[choice(schedule, f"{_NAME} (unless it is a function)", SCHEDULES)]
    own = OwnSchedule(schedule)
    for n in range(_N_TRIED):
        own.factor(n / (_N_TRIED - 1))
    return own


def schedule_to_save(schedule: str | Schedule | Callable[[float], float]) -> str:
    """Return the name under which a schedule is saved; raise a ValueError for a function."""
    name = schedule if isinstance(schedule, str) else get_schedule(schedule).name
    if name not in SCHEDULES:
        raise ValueError(
            f"{_NAME} must be one of {', '.join(SCHEDULES)} to be saved, got a "
            "function; a trained classifier no longer needs it, so set it to 'constant' first"
        )
    return name
