"""Arguments that had another name in an earlier version."""

from functools import wraps

from .validation import warn


def renamed(**new_names):
    """Return a decorator that lets a function take arguments under their former names, too.

    Parameters
    ----------
    **new_names : str
        Of each former name, the present one.
    """

    def decorate(function):
        @wraps(function)
        def call(*arguments, **named):
            for old in new_names.keys() & named.keys():
                new = new_names[old]
                if new in named:
                    raise TypeError(f"{old} is the former name of {new}: give {new} alone")
                warn_of_former_name(old, new)
                named[new] = named.pop(old)
            return function(*arguments, **named)

        return call

    return decorate


def warn_of_former_name(old, new):
    warn(f"{old} is now called {new}; the former name will go away", DeprecationWarning)
