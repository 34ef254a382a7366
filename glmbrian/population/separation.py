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

import numpy as np
from numpy.typing import NDArray

from ..support.workers import Workers
from .objective import Problem, likelihood, total

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
    problem: Problem,
    parameters: NDArray[np.float64],
    gain: NDArray[np.float64],
    smallest_residual: NDArray[np.float64],
    groups: Sequence[NDArray[np.int64]],
    workers: Workers,
) -> NDArray[np.float64]:
    """Return for each neuron a direction along which its likelihood never falls; 0 where there is none.

    Parameters
    ----------
    problem : Problem
        Its free parameters are those that are neither held at 0 nor penalised.
    parameters : ndarray of float, shape (n_neurons, n_parameters)
        Where the search for the maximum ended.
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
    found, design = np.zeros(parameters.shape), problem.design
    rates = np.minimum(design.counts() / design.n_rows, _TINIEST / _TINY)[problem.neurons]
    tiny = np.minimum(np.maximum(_TINY * rates, _TIMES_GAIN * gain), _LARGEST_TINY)
    who = np.flatnonzero((smallest_residual < _LAST_STEP * tiny) & problem.free.any(axis=1))
    if not who.size:
        return found
    search = _Search(problem.of(who), parameters[who], tiny[who], workers)
    for number, columns, direction in search.run(groups):
        found[who[number], columns] += direction
    effects = np.abs(found) * design.largest
    return np.where(effects > _NEGLIGIBLE * effects.max(axis=1, keepdims=True), found, 0.0)


class _Search:
    def __init__(self, problem, parameters, tiny, workers):
        self.problem, self.design, self.parameters = problem, problem.design, parameters
        self.tiny, self.workers = tiny, workers

    def run(self, groups):
        """Yield the number of a neuron, columns, and the direction in them."""
        candidates = self._candidates(groups)
        if not candidates:
            return
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

    def _passes(self, function, neurons):
        """Yield, for each block, a tuple of what `function` returns for each of some neurons.

        It gets the number of its turn and of the neuron, the rows, the residuals and the signs of its steps, 1 with a
        spike, and whether the block is one of the first to be looked at.
        """
        first, observations = set(self.design.blocks[::_FIRST]), self.problem.observations

        def of_block(block):
            rows = self.design.rows(block, self.problem.neurons)
            u = self.design.potential(rows, self.parameters)
            slope = likelihood(u, rows.spikes, observations, False)[1]
            results = []
            for turn, number in enumerate(neurons):
                signs, residual = observations.signs(rows.spikes[:, number]), np.abs(slope[:, number])
                # Steps that allow no change have no tiny residual.
                residual = np.where(signs == 0, np.maximum(residual, _LARGEST_TINY), residual)
                results.append(function(turn, number, rows, residual, signs, block in first))
            return tuple(results)

        yield from self.workers.map(of_block, self.design.blocks)

    def _candidates(self, groups):
        """Find spaces that only steps with tiny residuals change, as far as some blocks say."""
        n = len(self.parameters)

        def of_neuron(turn, number, rows, residual, signs, is_first):
            is_tiny = residual < self.tiny[number]
            own = self._columns_of(rows, number, is_tiny)
            columns = self._columns_of(rows, number, slice(None if is_first else 0))
            others = np.where(is_tiny, 0.0, residual)[: len(columns)]
            return tuple(
                (_products(columns, group, others), _products(own, group, np.ones(len(own))))
                for group in groups
            )

        candidates = []
        for number, found in enumerate(total(self._passes(of_neuron, range(n)))):
            for group, (others, tiny) in zip(groups, found):
                for columns, of_others, of_tiny in zip(group, others, tiny):
                    used = np.flatnonzero(self.problem.free[number, columns])
                    if not used.size:
                        continue
                    square = np.ix_(used, used)
                    axes = _axes(of_others[square], of_tiny[square], 0.01 * self.tiny[number])
                    if axes.shape[1]:
                        candidates.append(_Candidate(number, columns[used], axes))
        return candidates

    def _collect(self, candidates):
        """Give each candidate the steps with tiny residuals, as far as they differ."""

        def of_candidate(turn, number, rows, residual, signs, is_first):
            each, is_tiny = candidates[turn], residual < self.tiny[number]
            others = np.where(is_tiny, 0.0, residual)
            effects = self._effects(rows, number, each.columns, each.axes)
            own = effects[is_tiny]
            steps = _distinct(own * signs[is_tiny, np.newaxis])
            return effects.T * others @ effects, own.T @ own, [steps]

        found = total(self._passes(of_candidate, [each.neuron for each in candidates]))
        for each, (others, tiny, steps) in zip(candidates, found):
            # Now all steps say which of the space is left.
            turned = _axes(others, tiny, 0.01 * self.tiny[each.neuron])
            each.axes = each.axes @ turned
            distinct = _distinct(np.concatenate(steps) @ turned)
            each.steps = [distinct[:: -(-len(distinct) // _MOST_STEPS)] if len(distinct) else distinct]

    def _check(self, candidates):
        """Accept directions that no step contradicts; give the others the steps that do."""

        def of_candidate(turn, number, rows, residual, signs, is_first):
            each = candidates[turn]
            change = self._effects(rows, number, each.columns, each.direction[:, np.newaxis])[:, 0]
            effect = np.where(signs == 0, -np.abs(change), signs * change)
            largest = effect.max(initial=0.0)
            wrong = np.flatnonzero(effect < -_ROUNDING * largest)
            wrong = wrong[np.argsort(effect[wrong])[:_MOST_ADDED]]
            columns = self._columns_of(rows, number, wrong)[:, each.columns]
            steps = columns @ each.axes * signs[wrong, np.newaxis]
            return largest, effect.min(initial=0.0), _distinct(steps)

        passes = self._passes(of_candidate, [each.neuron for each in candidates])
        for each, of_blocks in zip(candidates, zip(*passes)):
            largest, lowest, steps = zip(*of_blocks)
            each.is_done = min(lowest) >= -_ROUNDING * max(largest)
            each.steps.append(np.concatenate(steps)[:_MOST_ADDED])


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
