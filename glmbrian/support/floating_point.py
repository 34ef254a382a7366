"""Numbers too small for double precision."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])


def underflow_is_zero(function: F) -> F:
    """Decorate a function in which products and exponentials may underflow, as they should.

    A probability that rounds to 0 is no mistake, even after ``np.seterr(all="raise")``, which is
    often set to find divisions by 0.  This is not ``np.errstate`` as a decorator, which threads
    cannot share before NumPy 2.

    Examples
    --------
    >>> import numpy as np
    >>> with np.errstate(all="raise"):
    ...     float(underflow_is_zero(np.exp)(-1000.0))
    0.0
    """

    @functools.wraps(function)
    def with_underflow(*arguments, **keywords):
        with np.errstate(under="ignore"):
            return function(*arguments, **keywords)

    return cast(F, with_underflow)
