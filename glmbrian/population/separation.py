"""Separation: directions along which parameters can grow for ever, and the likelihood rises with them.

Such a direction d raises the potential, or leaves it, in each step with a spike, and lowers it, or leaves
it, in each step without one.  Then the likelihood has no finite maximum, and where an iteration stops
says nothing about the parameters.  It is found in two steps:

- At parameters that a search can improve by little more than `gain`, the changes of all steps, weighted by
  their residuals r (spike minus probability), sum to almost 0: sum of |r| |x.d| <= gain.  So a step whose
  residual is not tiny cannot change along d, and d lies in the null space of these steps.
- In this space, which is small, a linear program finds the direction that changes as many of the other
  steps as possible, and all of them the right way.  It is then checked in all steps of the recording.

So whatever is reported is certain, however the search for the maximum ended.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.activations import Activation
from ..support.workers import Workers
from .design import Design
from .objective import likelihood

#: A residual is tiny if it is below this fraction of the rate, but at most the second number; or
#: below so many times what the search could still gain.
_TINY, _TINIEST, _TIMES_GAIN = 1e-2, 1e-4, 100.0

#: No residual above this counts as tiny, wherever the search ended.
_LARGEST_TINY = 1e-2

#: Spaces without the other steps are first those without these steps in every so many-th block.
_FIRST = 16

#: The last step of a search, after which no residuals are computed, makes them smaller by less than this.
_LAST_STEP = 10.0

#: The other steps may change along a direction by this fraction of its effect, for rounding.
_ROUNDING = 1e-6

#: Parameters with an effect below this fraction of the largest are no part of a direction.
_NEGLIGIBLE = 1e-5

#: The smallest ratio of eigenvalues that is not rounding.
_FLAT = 1e-12

#: The most steps that a linear program begins with, and that are added in each round; the most rounds.
_MOST_STEPS, _MOST_ADDED, _MOST_ROUNDS = 3000, 300, 12

#: The largest weight of a direction in a linear program whose steps have a norm of 1, and the largest effect
#: on a step relative to those that count fully.
_LARGEST_WEIGHT, _LARGEST_GAIN = 1e6, 1e3


@dataclass
class _Candidate:
    """A space in which a direction may be: the columns `axes` (n_columns, m) of some parameters."""

    neuron: int
    columns: NDArray[np.int64]
    axes: NDArray[np.float64]
    steps: list[NDArray[np.float64]] = field(default_factory=list)
    direction: NDArray[np.float64] | None = None
    is_done: bool = False


def separating_directions(
    design: Design,
    neurons: NDArray[np.int64],
    parameters: NDArray[np.float64],
    activation: Activation,
    may_grow: NDArray[np.bool_],
    gain: NDArray[np.float64],
    smallest_residual: NDArray[np.float64],
    groups: Sequence[NDArray[np.int64]],
    workers: Workers,
) -> NDArray[np.float64]:
    """Return for each neuron a direction along which its likelihood never falls; 0 where there is none.

    Parameters
    ----------
    design : Design
    neurons : ndarray of int
    parameters : ndarray of float, shape (n_neurons, n_parameters)
        Where the search for the maximum ended.
    activation : Activation
    may_grow : ndarray of bool, shape (n_neurons, n_parameters)
        Parameters that are neither held at 0 nor penalised.
    gain : ndarray of float, shape (n_neurons,)
        About what the search could still gain, in nats.
    smallest_residual : ndarray of float, shape (n_neurons,)
        Over all steps, where the search was before its last step.
    groups : sequence of ndarray of int, shape (n_groups, size)
        Columns that are searched together: all, or those of each source.  A direction is the
        sum of those in the groups.
    workers : Workers

    Returns
    -------
    ndarray of float, shape (n_neurons, n_parameters)
    """
    found = np.zeros(parameters.shape)
    rates = np.minimum(design.counts() / design.n_rows, _TINIEST / _TINY)[neurons]
    tiny = np.minimum(np.maximum(_TINY * rates, _TIMES_GAIN * gain), _LARGEST_TINY)
    who = np.flatnonzero((smallest_residual < _LAST_STEP * tiny) & may_grow.any(axis=1))
    if not who.size:
        return found
    search = _Search(
        design, neurons[who], parameters[who], activation, may_grow[who], tiny[who], workers
    )
    for number, columns, direction in search.run(groups):
        found[who[number], columns] += direction
    effects = np.abs(found) * design.largest
    return np.where(effects > _NEGLIGIBLE * effects.max(axis=1, keepdims=True), found, 0.0)


class _Search:
    def __init__(self, design, neurons, parameters, activation, may_grow, tiny, workers):
        self.design, self.neurons, self.parameters = design, neurons, parameters
        self.activation, self.may_grow, self.tiny, self.workers = activation, may_grow, tiny, workers

    def run(self, groups):
        """Yield the number of a neuron, columns, and the direction in them."""
        candidates = self._candidates(groups)
        self._collect(candidates)
        candidates = [each for each in candidates if each.axes.shape[1]]
        for _ in range(_MOST_ROUNDS):
            left = [each for each in candidates if not each.is_done]
            if not left:
                break
            for each in left:
                each.direction = _best_direction(each)
                each.is_done = each.direction is None
            self._check([each for each in left if not each.is_done])
        for each in candidates:
            if each.is_done and each.direction is not None:
                yield each.neuron, each.columns, each.direction

    def _columns_of(self, rows, number, chosen):
        """Return all columns of one neuron in some of the rows, (n_chosen, n_parameters)."""
        if rows.own is None:
            return rows.common[chosen]
        return np.hstack([rows.common[chosen], rows.own[chosen, :, number]])

    def _effects(self, rows, number, columns, axes):
        """Return how axes (n_columns, m) in some columns of one neuron change its potentials, (n_rows, m)."""
        whole = np.zeros((self.design.n_parameters, axes.shape[1]))
        whole[columns] = axes
        effects = rows.common @ whole[: self.design.n_common]
        if rows.own is not None:
            effects += rows.own[:, :, number] @ whole[self.design.n_common :]
        return effects

    def _passes(self, of_neuron, who):
        """Yield what `of_neuron` returns for each block and each of some neurons.

        It gets the neuron's number, the rows, the residuals and the signs of its steps, 1 with a spike, and
        whether the block is one of the first to be looked at.
        """

        first = set(self.design.blocks[::_FIRST])

        def of_block(block):
            rows = self.design.rows(block, self.neurons)
            u = self.design.potential(rows, self.parameters)
            slope = likelihood(u, rows.spikes, self.activation, False)[1]
            results = []
            for number in who:
                signs = np.where(rows.spikes[:, number], 1.0, -1.0)
                is_first = block in first
                results.append(of_neuron(number, rows, np.abs(slope[:, number]), signs, is_first))
            return results

        yield from self.workers.map(of_block, self.design.blocks)

    def _candidates(self, groups):
        """Find spaces that only steps with tiny residuals change, as far as some blocks say."""
        n = len(self.neurons)

        def of_neuron(number, rows, residual, signs, is_first):
            is_tiny = residual < self.tiny[number]
            own = self._columns_of(rows, number, is_tiny)
            ones = np.ones(len(own))
            found = [[0.0, _products(own, group, ones)] for group in groups]
            if is_first:
                columns = self._columns_of(rows, number, slice(None))
                others = np.where(is_tiny, 0.0, residual)
                for each, group in zip(found, groups):
                    each[0] = _products(columns, group, others)
            return found

        total = None
        for part in self._passes(of_neuron, range(n)):
            if total is None:
                total = part
                continue
            total = [
                [(a + c, b + d) for (a, b), (c, d) in zip(old, new)] for old, new in zip(total, part)
            ]
        candidates = []
        for number in range(n):
            for group, (others, tiny) in zip(groups, total[number]):
                for columns, of_others, of_tiny in zip(group, others, tiny):
                    used = np.flatnonzero(self.may_grow[number, columns])
                    if not used.size:
                        continue
                    square = np.ix_(used, used)
                    axes = _axes(of_others[square], of_tiny[square], 0.01 * self.tiny[number])
                    if axes.shape[1]:
                        candidates.append(_Candidate(number, columns[used], axes))
        return candidates

    def _collect(self, candidates):
        """Give each candidate the steps with tiny residuals, as far as they differ."""
        by_neuron = _by_neuron(candidates)

        def of_neuron(number, rows, residual, signs, is_first):
            is_tiny = residual < self.tiny[number]
            others = np.where(is_tiny, 0.0, residual)
            results = []
            for each in by_neuron[number]:
                effects = self._effects(rows, number, each.columns, each.axes)
                own = effects[is_tiny]
                steps = _distinct(own * signs[is_tiny, np.newaxis])
                results.append((effects.T * others @ effects, own.T @ own, steps))
            return results

        total: dict[int, list[Any]] = {id(each): [0.0, 0.0] for each in candidates}
        for parts in self._passes(of_neuron, list(by_neuron)):
            for number, of_candidates in zip(by_neuron, parts):
                for each, (others, tiny, steps) in zip(by_neuron[number], of_candidates):
                    each.steps.append(steps)
                    total[id(each)][0] += others
                    total[id(each)][1] += tiny
        for each in candidates:
            # Now all steps say which of the space is left.
            turned = _axes(*total[id(each)], 0.01 * self.tiny[each.neuron])
            each.axes = each.axes @ turned
            steps = _distinct(np.concatenate(each.steps) @ turned)
            each.steps = [steps[:: -(-len(steps) // _MOST_STEPS)] if len(steps) else steps]

    def _check(self, candidates):
        """Accept directions that no step contradicts; give the others the steps that do."""
        by_neuron = _by_neuron(candidates)

        def of_neuron(number, rows, residual, signs, is_first):
            results = []
            for each in by_neuron[number]:
                direction = each.direction[:, np.newaxis]
                effect = signs * self._effects(rows, number, each.columns, direction)[:, 0]
                largest = effect.max(initial=0.0)
                wrong = np.flatnonzero(effect < -_ROUNDING * largest)
                wrong = wrong[np.argsort(effect[wrong])[:_MOST_ADDED]]
                columns = self._columns_of(rows, number, wrong)[:, each.columns]
                steps = columns @ each.axes * signs[wrong, np.newaxis]
                results.append((largest, effect.min(initial=0.0), _distinct(steps)))
            return results

        found: dict[int, list[tuple]] = {id(each): [] for each in candidates}
        for parts in self._passes(of_neuron, list(by_neuron)):
            for number, of_candidates in zip(by_neuron, parts):
                for each, result in zip(by_neuron[number], of_candidates):
                    found[id(each)].append(result)
        for each in candidates:
            largest, lowest, steps = zip(*found[id(each)])
            each.is_done = min(lowest) >= -_ROUNDING * max(largest)
            each.steps.append(np.concatenate(steps)[:_MOST_ADDED])


def _by_neuron(candidates):
    found: dict[int, list[_Candidate]] = {}
    for each in candidates:
        found.setdefault(each.neuron, []).append(each)
    return found


def _products(columns, group, weights):
    """Return the weighted products (n_groups, size, size) of columns in groups (n_groups, size)."""
    parts = columns[:, group].transpose(1, 2, 0)
    return (parts * weights) @ parts.swapaxes(1, 2)


def _axes(others, tiny, limit):
    """Return axes of the space in which the other steps change by less than `limit` of the tiny ones.

    Both are matrices of products; changes are squared.
    """
    total = others + tiny
    scale = np.sqrt(np.diag(total))
    there = scale > 0
    if not there.any():
        return np.zeros((len(scale), 0))
    scale = np.where(there, scale, 1.0)
    values, vectors = np.linalg.eigh(total / scale / scale[:, np.newaxis])
    kept = values > _FLAT * values[-1]
    whitened = vectors[:, kept] / np.sqrt(values[kept]) / scale[:, np.newaxis]
    fractions, turned = np.linalg.eigh(whitened.T @ others @ whitened)
    return whitened @ turned[:, fractions <= max(limit, 1e-9)]


def _distinct(steps):
    """Return steps (n, m) scaled to norm 1, without repetitions and without those that are 0."""
    norms = np.linalg.norm(steps, axis=1)
    kept = norms > 1e-9 * norms.max(initial=0.0)
    steps = steps[kept] / norms[kept, np.newaxis]
    return np.unique(steps.round(9), axis=0) if len(steps) else steps


def _best_direction(candidate):
    """Return the direction that changes most of a candidate's steps, and none the wrong way; or None."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_matrix, hstack, identity, vstack

    steps = np.concatenate(candidate.steps)
    n, m = steps.shape
    if n == 0:
        return None
    if m == 1:
        weights = np.sign(steps[:1, 0])
        if (steps[:, 0] * weights < 0).any():
            return None
    else:
        # The variables are the weights of the axes and, up to 1 each, what the steps gain.  No step gains
        # far more than others, so that none is lost beside it.
        result = linprog(
            np.concatenate([np.zeros(m), -np.ones(n)]),
            A_ub=vstack(
                [
                    hstack([csr_matrix(-steps), identity(n)]),
                    hstack([csr_matrix(steps), csr_matrix((n, n))]),
                ]
            ),
            b_ub=np.concatenate([np.zeros(n), np.full(n, _LARGEST_GAIN)]),
            bounds=[(-_LARGEST_WEIGHT, _LARGEST_WEIGHT)] * m + [(0.0, 1.0)] * n,
            method="highs",
        )
        if result.status != 0 or -result.fun < 0.5:
            return None
        weights = result.x[:m]
    return candidate.axes @ (weights / np.abs(steps @ weights).max())
