"""Penalties on the weights of a fit.

A penalty is an object that says how strongly blocks of weights count: by their norm, which makes whole blocks 0,
and by half the square of their norm.  Biases are never penalised.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice


class Penalty:
    """What is subtracted from the log-likelihood, `strength` times: the sum of ``a |w| + b |w|^2 / 2`` over blocks w.

    Derive a class from it for another penalty: pass an instance to ``fit_population(..., penalty=...)``
    or `select_strength`.

    Attributes
    ----------
    name : str
        For reports.
    by_group : bool
        Whether all weights of a group are one block: those from a source, or from the `groups` of
        `fit_population`, to a neuron.  By default each weight is a block of its own.

    See Also
    --------
    fit_population : takes penalties.

    Examples
    --------
    The elastic net, half lasso and half ridge:

    >>> import numpy as np, glmbrian as glm
    >>> from glmbrian.population import Penalty
    >>> class ElasticNet(Penalty):
    ...     name = "elastic net"
    ...     def of_norm(self, sizes):
    ...         return 0.5 * np.ones(sizes.shape)
    ...     def of_square(self, sizes):
    ...         return 0.5 * np.ones(sizes.shape)
    >>> x = np.random.default_rng(0).random((500, 2)) < 0.5
    >>> y = np.roll(x[:, :1], 1, axis=0)
    >>> fit = glm.fit_population(y, x, glm.IndicatorBasis(1), penalty=ElasticNet(), strength=8.0)
    >>> fit.weights["stimulus"].ravel() > 0
    array([ True, False])
    """

    name = ""
    by_group = False

    def of_norm(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the factors `a` of the norms of blocks with so many weights, of the shape of `sizes`; 0 by default."""
        return np.zeros(sizes.shape)

    def of_square(self, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the factors `b` of half the squares, as `of_norm`."""
        return np.zeros(sizes.shape)


class Ridge(Penalty):
    """Half the sum of the squares of all weights."""

    name = "ridge"

    def of_square(self, sizes):
        return np.ones(sizes.shape)


class Lasso(Penalty):
    """The sum of the absolute values of all weights."""

    name = "lasso"

    def of_norm(self, sizes):
        return np.ones(sizes.shape)


class GroupLasso(Penalty):
    """The norm of each group of weights times the root of their number."""

    name, by_group = "group", True

    def of_norm(self, sizes):
        return np.sqrt(sizes)


#: The penalties by their names.
PENALTIES: dict[str, Penalty] = {each.name: each for each in (Ridge(), Lasso(), GroupLasso())}


def penalty_of(penalty: Any) -> Penalty:
    """Return a penalty, given by its name or itself."""
    if isinstance(penalty, Penalty):
        return penalty
    return PENALTIES[choice(penalty, "penalty", tuple(PENALTIES))]


@dataclass(frozen=True, eq=False)
class BlockPenalty:
    """A penalty on the parameters of some neurons.

    Attributes
    ----------
    blocks : list of ndarray of int
        The columns of each block of parameters.
    norm, square : ndarray of float, shape (n_neurons, n_blocks)
        The factors of the norm, and of half its square.  Blocks that are not penalised have 0.
    n_parameters : int
    strength : float
        Multiplies all of it.
    """

    blocks: Sequence[NDArray[np.int64]]
    norm: NDArray[np.float64]
    square: NDArray[np.float64]
    n_parameters: int
    strength: float

    @classmethod
    def none(cls, n_neurons: int, n_parameters: int) -> "BlockPenalty":
        """Return the penalty that is 0."""
        nothing = np.zeros((n_neurons, 0))
        return cls([], nothing, nothing, n_parameters, 0.0)

    def of(self, neurons: NDArray[np.int64]) -> "BlockPenalty":
        """Return the penalty of some of the neurons."""
        part = replace(self, norm=self.norm[neurons], square=self.square[neurons])
        vars(part)["block_of"] = self.block_of
        return part

    @cached_property
    def block_of(self) -> NDArray[np.int64]:
        """The block of each column, or -1, shape (n_parameters,)."""
        block_of = np.full(self.n_parameters, -1)
        for number, columns in enumerate(self.blocks):
            block_of[columns] = number
        return block_of

    @property
    def is_smooth(self) -> bool:
        """Whether there is a gradient everywhere, and no block becomes exactly 0."""
        return self.strength == 0 or not self.norm.any()

    @property
    def is_penalised(self) -> NDArray[np.bool_]:
        """Which parameters are penalised at a strength above 0, shape (n_neurons, n_parameters)."""
        return self._spread((self.norm > 0) | (self.square > 0)) > 0

    @cached_property
    def ridge(self) -> NDArray[np.float64]:
        """What the squares add to the information about each parameter, shape (n_neurons, n_parameters)."""
        return self.strength * self._spread(self.square)

    def value(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the penalty of each neuron."""
        squares = 0.5 * (self._spread(self.square) * np.square(parameters)).sum(axis=1)
        return self.strength * (squares if self.is_smooth else squares + self.rough(parameters))

    def rough(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return, for a strength of 1, the part that has no gradient where a block is 0."""
        return (self.norm * self._norms(parameters)).sum(axis=1)

    def violation(
        self, parameters: NDArray[np.float64], gradient: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the largest norm of a block, or entry elsewhere, of the gradient of the whole objective.

        Where the penalty has no gradient, the one closest to 0 counts.
        """
        whole = gradient - self.ridge * parameters
        if not self.norm.any():
            return np.abs(whole).max(axis=1, initial=0.0)
        norms, threshold = self._norms(parameters), self.strength * self.norm
        with np.errstate(divide="ignore", invalid="ignore"):
            by_norm = np.where(norms > 0, threshold / norms, 0.0)
        whole = whole - self._spread(by_norm) * parameters
        found = self._norms(whole)
        found = np.where(norms > 0, found, np.maximum(found - threshold, 0.0))
        rest = np.abs(whole[:, self.block_of < 0]).max(axis=1, initial=0.0)
        return np.maximum(found.max(axis=1, initial=0.0), rest)

    def strongest(
        self, gradient: NDArray[np.float64], information: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return for each neuron the strength beyond which nothing is left to choose.

        With norms, it is the smallest at which all penalised weights are 0; else the one that halves, or nearly
        so, the weight about which the data say most.

        Parameters
        ----------
        gradient : ndarray of float, shape (n_neurons, n_parameters)
            Of the log-likelihood where all penalised weights are 0.
        information : ndarray of float, shape (n_neurons, n_parameters)
            The Fisher information about each parameter on its own, there.
        """
        if not self.norm.any():
            return np.where(self.is_penalised, information, 0.0).max(axis=1, initial=0.0)
        norms = self._norms(gradient)
        ratios = np.divide(norms, self.norm, out=np.zeros_like(norms), where=self.norm > 0)
        return ratios.max(axis=1, initial=0.0)

    def _spread(self, by_block):
        """Return values of blocks (n_neurons, n_blocks) for each parameter, 0 for those without."""
        return np.column_stack([by_block, np.zeros(len(by_block))])[:, self.block_of]

    def _norms(self, parameters):
        """Return the norm of each block, shape (n_neurons, n_blocks)."""
        squares = np.zeros((len(parameters), len(self.blocks) + 1))
        np.add.at(squares.T, self.block_of, np.square(parameters).T)
        return np.sqrt(squares[:, :-1])
