"""Penalties on the weights of a fit.

A penalty is an object in `PENALTIES`.  It is a sum over blocks of weights: of their squares, or
of a factor times their norm, which makes whole blocks 0.  Biases are never penalised.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


class Penalty:
    """What is subtracted from the log-likelihood, as a function of the weights.

    Parameters
    ----------
    blocks : sequence of ndarray of int
        The columns of each block of parameters.
    factors : ndarray of float, shape (n_neurons, n_blocks)
        How strongly each neuron's block is penalised, relative to the strength.  Blocks that
        are not penalised have 0.
    n_parameters : int
    """

    #: Whether the penalty has a gradient everywhere, and no block becomes exactly 0.
    smooth = False

    def __init__(
        self, blocks: Sequence[NDArray[np.int64]], factors: NDArray[np.float64], n_parameters: int
    ) -> None:
        self.blocks, self.factors, self.n_parameters = list(blocks), factors, n_parameters
        #: The block of each column, or -1.
        self.block_of = np.full(n_parameters, -1)
        for number, columns in enumerate(self.blocks):
            self.block_of[columns] = number

    @staticmethod
    def blocks_of(groups: Sequence[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Return the blocks, given the columns of each group."""
        raise NotImplementedError

    @staticmethod
    def factors_of(sizes: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the factors of blocks in which so many weights are not held at 0."""
        raise NotImplementedError

    def of(self, neurons: NDArray[np.int64]) -> "Penalty":
        """Return the penalty of some of the neurons."""
        return type(self)(self.blocks, self.factors[neurons], self.n_parameters)

    def value(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the penalty of each neuron, for a strength of 1."""
        raise NotImplementedError

    def strongest(
        self, gradient: NDArray[np.float64], information: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return for each neuron the strength beyond which nothing is left to choose.

        Parameters
        ----------
        gradient : ndarray of float, shape (n_neurons, n_parameters)
            Of the log-likelihood where all penalised weights are 0.
        information : ndarray of float, shape (n_neurons, n_parameters)
            The Fisher information about each parameter on its own, there.
        """
        raise NotImplementedError

    def by_column(self) -> NDArray[np.float64]:
        """Return the factor of each parameter, shape (n_neurons, n_parameters)."""
        return self._spread(self.factors)

    def _spread(self, by_block):
        """Return values of blocks (n_neurons, n_blocks) for each parameter, 0 for those without."""
        return np.column_stack([by_block, np.zeros(len(by_block))])[:, self.block_of]

    def norms(self, parameters: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the norm of each block, shape (n_neurons, n_blocks)."""
        squares = np.zeros((len(parameters), len(self.blocks) + 1))
        np.add.at(squares.T, self.block_of, np.square(parameters).T)
        return np.sqrt(squares[:, :-1])

    def violation(
        self, parameters: NDArray[np.float64], gradient: NDArray[np.float64], strength: float
    ) -> NDArray[np.float64]:
        """Return the largest entry, or norm of a block, of the gradient of the whole objective.

        Where the penalty has no gradient, the one closest to 0 counts.
        """
        raise NotImplementedError


class Ridge(Penalty):
    """Half the sum of the squares of all weights."""

    smooth = True

    @staticmethod
    def blocks_of(groups):
        return [columns[[k]] for columns in groups for k in range(len(columns))]

    @staticmethod
    def factors_of(sizes):
        return (sizes > 0).astype(float)

    def value(self, parameters):
        return 0.5 * (self.by_column() * np.square(parameters)).sum(axis=1)

    def strongest(self, gradient, information):
        """Return the strength that halves, or nearly so, the weight about which the data say most."""
        return np.max(np.where(self.by_column() > 0, information, 0.0), axis=1, initial=0.0)

    def violation(self, parameters, gradient, strength):
        whole = gradient - strength * self.by_column() * parameters
        return np.abs(whole).max(axis=1, initial=0.0)


class GroupLasso(Penalty):
    """The norm of each group of weights times the root of their number."""

    @staticmethod
    def blocks_of(groups):
        return list(groups)

    @staticmethod
    def factors_of(sizes):
        return np.sqrt(sizes)

    def value(self, parameters):
        return (self.factors * self.norms(parameters)).sum(axis=1)

    def strongest(self, gradient, information):
        """Return the smallest strength at which all penalised weights are 0."""
        norms, factors = self.norms(gradient), self.factors
        ratios = np.divide(norms, factors, out=np.zeros_like(norms), where=factors > 0)
        return ratios.max(axis=1, initial=0.0)

    def violation(self, parameters, gradient, strength):
        norms = self.norms(parameters)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_norm = np.where(norms > 0, strength * self.factors / norms, 0.0)
        whole = self.norms(gradient - self._spread(by_norm) * parameters)
        excess = np.where(norms > 0, whole, np.maximum(whole - strength * self.factors, 0.0))
        rest = np.abs(gradient[:, self.block_of < 0]).max(axis=1, initial=0.0)
        return np.maximum(excess.max(axis=1, initial=0.0), rest)


class Lasso(GroupLasso):
    """The sum of the absolute values of all weights: groups of one."""

    blocks_of = Ridge.blocks_of
    factors_of = Ridge.factors_of


#: The penalties by their names.
PENALTIES: dict[str, type[Penalty]] = {"ridge": Ridge, "lasso": Lasso, "group": GroupLasso}
