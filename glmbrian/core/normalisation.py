"""Scales of basis functions.

The learning rate is the same for all functions, so larger functions learn faster.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice

#: What each rule makes 1 for each function, given the functions as columns.
NORMALISATIONS: dict[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    "peak": lambda matrix: np.abs(matrix).max(axis=0),
    "area": lambda matrix: np.abs(matrix).sum(axis=0),
    "energy": lambda matrix: np.square(matrix).sum(axis=0) ** 0.5,
}


def normalised(matrix: NDArray[np.float64], rule: str | None) -> NDArray[np.float64]:
    """Return a `matrix` whose columns are scaled by a rule; None leaves them as they are.

    Examples
    --------
    >>> normalised(np.array([[3.0, 1.0], [4.0, 1.0]]), "energy").round(3)
    array([[0.6  , 0.707],
           [0.8  , 0.707]])
    """
    if rule is None:
        return matrix
    return matrix / NORMALISATIONS[choice(rule, "normalise", tuple(NORMALISATIONS))](matrix)
