"""Arguments that had a different name in an earlier version."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from .validation import warn

F = TypeVar("F", bound=Callable[..., Any])


def renamed(**new_names: str) -> Callable[[F], F]:
    """Return a decorator that makes a function accept arguments under their former names, too.

    Parameters
    ----------
    **new_names : str
        The current name of each argument, by its former name.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*arguments, **named):
            for old in new_names.keys() & named.keys():
                new = new_names[old]
                if new in named:
                    raise TypeError(f"{old} is the former name of {new}: pass only {new}")
                warn_of_former_name(old, new)
                named[new] = named.pop(old)
            return function(*arguments, **named)

        return cast(F, call)

    return decorate


def warn_of_former_name(old: str, new: str) -> None:
    warn(f"{old} is now called {new}; the former name will be removed", DeprecationWarning)
