"""The kinds of changes to input spikes."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice


class Kind:
    """Which input spikes an attack may change.

    Attributes
    ----------
    name : str
    values : tuple of int
        Which entries may be changed, wherever they are: 0 adds spikes, and 1 removes them.  Leave
        it empty if the choice depends on more than the value, and define `allowed`; adversarial
        training then runs on the runtime device only.

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
    values: ClassVar[tuple[int, ...]] = ()

    def allowed(self, trains: np.ndarray) -> NDArray[np.bool_]:
        """Return which entries may be flipped, from 0 to 1 or from 1 to 0.

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
        return np.isin(trains, self.values)


class Add(Kind):
    """Spikes may be added."""

    name = "add"
    values = (0,)


class Remove(Kind):
    """Spikes may be removed."""

    name = "remove"
    values = (1,)


class Flip(Kind):
    """Spikes may be added and removed."""

    name = "flip"
    values = (0, 1)


#: Every kind of change, by name.
KINDS: dict[str, Kind] = {kind.name: kind for kind in (Add(), Remove(), Flip())}


def get_kind(kind: str | Kind, argument: str = "kind") -> Kind:
    """Return the `Kind` with this name, or `kind` itself if it already is one."""
    return kind if isinstance(kind, Kind) else KINDS[choice(kind, argument, KINDS)]
