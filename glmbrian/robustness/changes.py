"""The kinds of changes to input spikes."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice


class Kind(ABC):
    """Which input spikes an attack may change.

    Attributes
    ----------
    name : str

    Examples
    --------
    Only the first two inputs may be changed:

    >>> import numpy as np
    >>> from glmbrian.robustness import Kind
    >>> class FirstTwo(Kind):
    ...     name = "first two"
    ...     def allowed(self, trains):
    ...         return np.broadcast_to(np.arange(trains.shape[-1]) < 2, trains.shape)
    >>> int(FirstTwo().allowed(np.zeros((1, 2, 3))).sum())
    4
    """

    name: ClassVar[str]

    @abstractmethod
    def allowed(self, trains: np.ndarray) -> NDArray[np.bool_]:
        """Return which entries may be changed, a 0 to 1 or a 1 to 0.

        Parameters
        ----------
        trains : ndarray of 0/1, shape (n, T, N_X)
            The trains before any change.

        Returns
        -------
        ndarray of bool, of the same shape

        Examples
        --------
        >>> import numpy as np
        >>> from glmbrian.robustness import KINDS
        >>> KINDS["remove"].allowed(np.array([[[0, 1]]]))
        array([[[False,  True]]])
        """


class Add(Kind):
    """Spikes may be added."""

    name = "add"

    def allowed(self, trains):
        return trains == 0


class Remove(Kind):
    """Spikes may be removed."""

    name = "remove"

    def allowed(self, trains):
        return trains == 1


class Flip(Kind):
    """Spikes may be added and removed."""

    name = "flip"

    def allowed(self, trains):
        return np.ones(trains.shape, dtype=bool)


#: Every kind of change, by name.
KINDS: dict[str, Kind] = {kind.name: kind for kind in (Add(), Remove(), Flip())}


def get_kind(kind: str | Kind) -> Kind:
    """Return the `Kind` with this name, or `kind` itself if it already is one."""
    return kind if isinstance(kind, Kind) else KINDS[choice(kind, "kind", KINDS)]
