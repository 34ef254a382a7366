"""Schedules of the learning rate: factors of the rate as training proceeds."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice, real

#: From the fraction of training that is done, 0 to 1, to a factor of the learning rate.
Schedule = Callable[[float], float]

#: The built-in schedules by name.
SCHEDULES: dict[str, Schedule] = {
    "constant": lambda done: 1.0,
    "linear": lambda done: 1.0 - done,
}


def get_schedule(schedule: str | Schedule, name: str = "learning_rate_schedule") -> Schedule:
    """Return the schedule with this name; a function is returned unchanged."""
    if callable(schedule):
        return schedule
    return SCHEDULES[choice(schedule, f"{name} (unless it is a function)", SCHEDULES)]


def rate_factors(
    schedule: str | Schedule, first: int, n: int, n_planned: int
) -> NDArray[np.float64] | None:
    """Return the factors of the learning rate in `n` presentations; None if all are 1.

    Parameters
    ----------
    schedule : str or callable
    first : int
        Number of the first presentation.
    n : int
    n_planned : int
        Presentations that make up all of training; the fraction done stays at 1 after them.

    Returns
    -------
    ndarray of float, shape (n,), optional

    Raises
    ------
    TypeError, ValueError
        If the schedule returns anything but a finite number of at least 0.

    Examples
    --------
    >>> rate_factors("linear", first=2, n=3, n_planned=4)
    array([0.5 , 0.25, 0.  ])
    """
    factor_of = get_schedule(schedule)
    name = "learning_rate_schedule (its value)"
    factors = np.array([real(factor_of(min(1.0, (first + k) / n_planned)), name, 0) for k in range(n)])
    return None if np.all(factors == 1) else factors


def schedule_to_save(schedule: str | Schedule) -> str:
    """Return the name under which a schedule is saved; raise a ValueError for a function."""
    if callable(schedule):
        raise ValueError(
            f"learning_rate_schedule must be one of {', '.join(SCHEDULES)} to be saved, got a "
            "function; a trained classifier no longer needs it, so set it to 'constant' first"
        )
    return schedule
