"""Maximise the penalised log-likelihood of many neurons at once.

Each pass over the data evaluates one point for every neuron that has not converged yet.  Steps
are those of a quadratic function with the Fisher information, from all steps if that is cheap,
and else from a sample of them, corrected by what the gradients have shown since (BFGS).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.workers import Workers
from .block_descent import block_descent_step
from .information import solve
from .objective import Problem, evaluate, gram, largest_effects

#: How often a step that does not lead uphill is halved at most.
_MOST_HALVINGS = 60

#: What is added to the diagonal of the information from a sample of the steps, relative to it:
#: what little the sample says about rare combinations of inputs must not lead to huge steps.
_SAMPLE_RIDGE = 1e-3

#: The information from all steps is taken in each pass if it costs at most so many times as much
#: as the rest of the pass; else a sample that costs a few times as much.
MOST_EXACT_COST, SAMPLE_COST = 3.0, 4.0

#: The fewest sampled steps for each parameter.
_ROWS_PER_PARAMETER = 30

#: If the possible gain shrinks by less than this factor in a pass, a better sample is taken.
_SLOW = 0.3

#: The sample is taken again after so many passes at the earliest.
_PASSES_WITH_SAMPLE = 4

#: Where the likelihood has no maximum, a search ends if it can gain no more than this while some potential
#: still changes by so much in a step.  With a finite maximum, a change below 1 shows that it is near.
_SEPARATED_GAIN, _SEPARATED_STEP = 1e-8, 0.5

#: How exactly a penalised step is computed, relative to its squared length.  The next pass corrects
#: it, as it does what the quadratic function leaves out.
_STEP_ACCURACY = 1e-4


@dataclass(frozen=True, eq=False)
class Outcome:
    """Where the search for the maximum ended, for each neuron.

    Attributes
    ----------
    parameters : ndarray of float, shape (n_neurons, n_parameters)
    status : ndarray of str
        "converged", "separated", "unfinished" or "interrupted".
    log_likelihood : ndarray of float
        Without the penalty.
    gain : ndarray of float
        Twice what a last step could still gain: the squared distance to the maximum in
        standard errors.
    gradient : ndarray of float
        The largest entry of the gradient (or norm of a block) where it was last computed.
    n_steps : ndarray of int
    smallest_residual : ndarray of float
        The smallest difference between a spike, or its absence, and what was expected, where the likelihood
        was last computed.
    information : ndarray of float
        Where another search, with another strength, may begin.
    """

    parameters: NDArray[np.float64]
    status: NDArray[np.str_]
    log_likelihood: NDArray[np.float64]
    gain: NDArray[np.float64]
    gradient: NDArray[np.float64]
    n_steps: NDArray[np.int64]
    smallest_residual: NDArray[np.float64]
    information: NDArray[np.float64] | None = field(default=None, repr=False)


def maximise(
    problem: Problem,
    start: NDArray[np.float64],
    tol: float,
    max_iter: int,
    workers: Workers,
    information: NDArray[np.float64] | None = None,
    watch: Callable[[float], None] | None = None,
) -> Outcome:
    """Return the parameters with the largest penalised log-likelihood.

    Parameters
    ----------
    problem : Problem
    start : ndarray of float, shape (n_neurons, n_parameters)
    tol : float
        Largest distance to the maximum, in standard errors.
    max_iter : int
        The most steps of a neuron.
    workers : Workers
    information : ndarray of float, optional
        That of an earlier search nearby.
    watch : callable, optional
        Called after each part of the work with the fraction that is done.
    """
    search = _Search(problem, start, tol, max_iter, workers, watch)
    try:
        search.begin(information)
        while search.active.size:
            search.step()
    except KeyboardInterrupt:
        search.status[search.status == ""] = "interrupted"
    return Outcome(
        search.parameters, search.status, search.log_likelihood, search.gain, search.bound, search.n_steps,
        search.smallest_residual, search.information,
    )  # fmt: skip


class _Search:
    def __init__(self, problem, start, tol, max_iter, workers, watch):
        self.problem, self.design, self.free = problem, problem.design, problem.free
        self.penalty, self.ridge = problem.penalty, problem.penalty.ridge
        self.tol2, self.max_iter, self.workers, self.watch = tol * tol, max_iter, workers, watch
        n = len(start)
        self.parameters = start.copy()
        self.status = np.full(n, "", dtype="<U11")
        self.log_likelihood, self.objective = np.full((2, n), -np.inf)
        self.gain, self.bound, self.smallest_residual = np.full((3, n), np.inf)
        # How much smaller the gain is than before the last step
        self.shrinkage = np.full(n, np.inf)
        self.first_gain = np.full(n, np.nan)
        self.gradient, self.direction = np.zeros((2, *start.shape))
        self.length = np.ones(n)
        self.n_halvings, self.n_steps = np.zeros((2, n), dtype=np.int64)
        self.is_new = np.ones(n, dtype=bool)
        self.information: Any = None
        self.passes_since_sample = 0
        self._plan()

    @property
    def active(self):
        return np.flatnonzero(self.status == "")

    def _plan(self):
        """Choose how many of the steps the Fisher information is taken from."""
        design, n = self.design, len(self.parameters)
        self.pass_cost = design.cost_of_pass(n)
        self.row_cost = float(np.square(self.free.sum(axis=1, dtype=float)).sum())
        self.is_exact = self.row_cost <= MOST_EXACT_COST * self.pass_cost
        rows = SAMPLE_COST * self.pass_cost * design.n_rows / self.row_cost
        rows = max(rows, _ROWS_PER_PARAMETER * design.n_parameters)
        self.every = 1 if self.is_exact else max(1, int(design.n_rows // rows))

    def begin(self, information):
        everyone = np.arange(len(self.parameters))
        flat = not self.parameters[:, 1:].any()
        sample = information is None and (self.is_exact or not flat or self.design.n_own > 0)
        evaluation = self._evaluate(everyone, self.parameters, sample)
        self._accept(everyone, self.parameters, evaluation, slice(None))
        if information is not None:
            self.information = information
        elif sample:
            self.information = evaluation.information
        else:
            # With the bias alone, all steps have the same Fisher weight.
            cost = self.design.n_common**2 / (MOST_EXACT_COST * self.pass_cost)
            every = max(1, int(min(cost, self.every)))
            products = gram(self.design, self.workers, every, self._advance)
            if every > 1:
                products += np.diag(_SAMPLE_RIDGE * np.diag(products))
            weights = self.problem.observations.weights(self.parameters[:, 0])
            self.information = weights[:, np.newaxis, np.newaxis] * products
            self.passes_since_sample = _PASSES_WITH_SAMPLE - 3

    def step(self):
        self._choose_directions(np.flatnonzero((self.status == "") & self.is_new))
        active = self.active
        if not active.size:
            return
        sample = self.is_exact or self._is_slow()
        trial = self.parameters[active] + self.length[active, np.newaxis] * self.direction[active]
        evaluation = self._evaluate(active, trial, sample)
        needed = self.objective[active] - 1e-12 * np.abs(self.objective[active])
        needed = needed + 1e-4 * self.length[active] * np.maximum(self.gain[active], 0.0)
        good = (evaluation.objective >= needed) & np.isfinite(evaluation.gradient).all(axis=1)
        good |= self.n_halvings[active] >= _MOST_HALVINGS
        self._shorten(active[~good], evaluation.objective[~good])
        arrived = active[good]
        if not sample:
            self._learn(arrived, trial[good], evaluation.gradient[good])
        elif self.information is None or good.all() and len(active) == len(self.status):
            self.information = evaluation.information
        else:
            self.information[arrived] = evaluation.information[good]
        if sample:
            self.passes_since_sample = 0
        self._accept(arrived, trial[good], evaluation, good)
        self.n_steps[arrived] += 1
        self.status[arrived[self.n_steps[arrived] >= self.max_iter]] = "unfinished"

    def _shorten(self, who, value):
        """Shorten steps that did not lead uphill to where a parabola has its maximum."""
        expected = self.length[who] * self.gain[who]
        with np.errstate(invalid="ignore", over="ignore"):
            factor = 0.5 * expected / (expected + self.objective[who] - value)
        self.length[who] *= np.clip(np.nan_to_num(factor), 0.1, 0.5)
        self.n_halvings[who] += 1

    def _is_slow(self):
        """Whether a sample of the steps should be taken at the next point."""
        if 2 * np.count_nonzero(self.n_halvings[self.active]) > self.active.size:
            return False
        self.passes_since_sample += 1
        if self.passes_since_sample < _PASSES_WITH_SAMPLE:
            return False
        if self.n_steps.max(initial=0) <= 2:
            return True
        active = self.active
        slow = np.count_nonzero(self.shrinkage[active] > _SLOW)
        if 2 * slow < active.size:
            return False
        self.every = max(1, self.every // 2)
        return True

    def _of(self, who):
        """Return the problem of some of the neurons, in their order."""
        return self.problem if len(who) == len(self.status) else self.problem.of(who)

    def _evaluate(self, who, parameters, sample):
        every = self.every if sample else 0
        evaluation = evaluate(self._of(who), parameters, self.workers, every, self._advance)
        if every > 1:
            diagonal = np.arange(parameters.shape[1])
            evaluation.information[:, diagonal, diagonal] *= 1 + _SAMPLE_RIDGE
        return evaluation

    def _accept(self, who, parameters, evaluation, good):
        self.parameters[who], self.gradient[who] = parameters, evaluation.gradient[good]
        self.smallest_residual[who] = evaluation.smallest_residual[good]
        self.objective[who] = evaluation.objective[good]
        self.log_likelihood[who] = evaluation.log_likelihood[good]
        self.length[who], self.n_halvings[who], self.is_new[who] = 1.0, 0, True
        gradient = self.gradient[who] + self.ridge[who] * parameters
        self.bound[who] = self._of(who).penalty.violation(parameters, gradient)

    def _learn(self, who, parameters, gradient):
        """Correct the information by the change of the gradient over a step."""
        if not who.size:
            return
        steps = parameters - self.parameters[who]
        falls = self.gradient[who] - gradient - self.ridge[who] * steps

        def of_neuron(index):
            matrix, step, fall = self.information[who[index]], steps[index], falls[index]
            effect = matrix @ step
            curvature, expected = step @ fall, step @ effect
            if curvature <= 1e-8 * expected or not np.isfinite(curvature):
                return
            # One product adds both corrections.
            left = np.column_stack([fall / curvature, -effect / expected])
            matrix += left @ np.stack([fall, effect])

        for _ in self.workers.map(of_neuron, range(len(who))):
            pass

    def _choose_directions(self, who):
        if not who.size:
            return
        if self.penalty.is_smooth:
            self._solve(who)
        else:
            penalty = self._of(who).penalty
            self.direction[who] = block_descent_step(
                self._whole_information(who), self.gradient[who], self.parameters[who], penalty,
                _STEP_ACCURACY, 0.01 * self.tol2,
            )  # fmt: skip
        gain = np.einsum("ni,ni->n", self.gradient[who], self.direction[who])
        if not self.penalty.is_smooth:
            ahead = penalty.rough(self.parameters[who] + self.direction[who])
            gain -= penalty.strength * (ahead - penalty.rough(self.parameters[who]))
        with np.errstate(invalid="ignore", divide="ignore"):
            self.shrinkage[who] = gain / self.gain[who]
        self.gain[who] = gain
        self.first_gain[who] = np.where(np.isnan(self.first_gain[who]), gain, self.first_gain[who])
        self.is_new[who] = False
        arrived = who[gain <= self.tol2]
        self.parameters[arrived] += self.direction[arrived]
        self.status[arrived] = "converged"
        self._find_separated(who[(gain > self.tol2) & (gain < _SEPARATED_GAIN)])

    def _find_separated(self, who):
        # Mostly, no pass is needed to see that the potentials hardly change.
        with np.errstate(over="ignore", invalid="ignore"):
            bound = np.abs(self.direction[who]) @ self.design.largest
        who = who[~(bound <= _SEPARATED_STEP)]
        if who.size:
            neurons = self.problem.neurons[who]
            effects = largest_effects(self.design, neurons, self.direction[who], self.workers)
            self.status[who[effects > _SEPARATED_STEP]] = "separated"

    def _whole_information(self, who):
        """Return the information of neurons, with rows of the identity for what is held at 0."""
        matrices = self.information[who]
        held = ~self.free[who]
        if held.any():
            matrices[held[:, :, np.newaxis] | held[:, np.newaxis, :]] = 0.0
            index, column = np.nonzero(held)
            matrices[index, column, column] = 1.0
        return matrices

    def _solve(self, who):
        def of_neuron(index):
            columns = np.flatnonzero(self.free[index])
            matrix = self.information[index]
            if len(columns) < len(matrix):
                matrix = matrix[np.ix_(columns, columns)]
            matrix = matrix + np.diag(self.ridge[index, columns])
            self.direction[index] = 0.0
            self.direction[index, columns] = solve(matrix, self.gradient[index, columns])

        for _ in self.workers.map(of_neuron, who):
            pass

    def _advance(self, block):
        if self.watch is None:
            return
        # The logarithm of the gain falls about evenly.
        done = self.status != ""
        fraction = done.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            reached = np.log(self.first_gain / self.gain) / np.log(self.first_gain / self.tol2)
        left = ~done & np.isfinite(reached)
        fraction[left] = np.clip(reached[left], 0.0, 1.0)
        self.watch(float(fraction.mean()))
