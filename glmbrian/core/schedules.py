"""Schedules of the learning rate: factors of the rate as training proceeds."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..support.validation import check_size, choice, finite_array

#: From the fraction of training that is done, 0 to 1, to a factor of the learning rate.
Schedule = Callable[[float], float]

#: The built-in schedules by name; None leaves the rate as it is.
SCHEDULES: dict[str, Schedule | None] = {
    "constant": None,
    "linear": lambda done: 1.0 - done,
}

_NAME = "learning_rate_schedule"


def get_schedule(schedule: str | Schedule) -> Schedule | None:
    """Return the schedule with this name; a function is returned unchanged."""
    if callable(schedule):
        return schedule
    return SCHEDULES[choice(schedule, f"{_NAME} (unless it is a function)", SCHEDULES)]


def rate_factors(
    schedule: str | Schedule, first: int, n: int, n_planned: int
) -> NDArray[np.float64] | None:
    """Return the factors of the learning rate in `n` presentations; None if it stays the same.

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
        If the schedule returns anything but a finite number of at least 0, or there are too many
        presentations.

    Examples
    --------
    >>> rate_factors("linear", first=2, n=3, n_planned=4)
    array([0.5 , 0.25, 0.  ])
    """
    factor_of = get_schedule(schedule)
    if factor_of is None:
        return None
    check_size(n, f"{_NAME}, n_epochs: factors of the rate", "use 'constant', or fewer epochs")
    done = np.minimum((first + np.arange(n)) / n_planned, 1.0)
    try:
        values = [factor_of(fraction) for fraction in done.tolist()]
    except TypeError as error:
        # Probably it is not a function of one number.
        raise TypeError(
            f"{_NAME} must be one of {', '.join(map(repr, SCHEDULES))} or a function of the fraction of "
            f"training that is done, but calling {schedule!r} raised a TypeError: {error}"
        ) from error
    factors = finite_array(values, f"the values of {_NAME}", (n,))
    if np.any(factors < 0):
        raise ValueError(f"the values of {_NAME} must be at least 0, got {factors.min()}")
    return factors


def schedule_to_save(schedule: str | Schedule) -> str:
    """Return the name under which a schedule is saved; raise a ValueError for a function."""
    if callable(schedule):
        raise ValueError(
            f"learning_rate_schedule must be one of {', '.join(SCHEDULES)} to be saved, got a "
            "function; a trained classifier no longer needs it, so set it to 'constant' first"
        )
    return schedule
