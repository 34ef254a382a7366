"""Maximise the penalised log-likelihood of many neurons at once.

Each pass over the data evaluates one point for every neuron that has not arrived yet.  Steps
are those of a quadratic function with the Fisher information, from all steps if that is cheap,
and else from a sample of them, corrected by what the gradients have shown since (BFGS).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ..core.activations import Activation
from ..support.workers import Workers
from .design import Design
from .information import axes_of, to_one_scale
from .objective import evaluate, gram, largest_effects
from .penalties import Penalty
from .proximal import proximal_step

#: How often a step that does not lead uphill is halved at most.
_MOST_HALVINGS = 60

#: Up to this many parameters, directions along which the likelihood is flat are left alone exactly.
_MOST_EXACT = 128

#: What is added to the diagonal of larger matrices on one scale, against rounding.
_ROUNDING_RIDGE = 1e-10

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


@dataclass
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
    design: Design,
    neurons: NDArray[np.int64],
    activation: Activation,
    free: NDArray[np.bool_],
    penalty: Penalty,
    strength: float,
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
    design : Design
    neurons : ndarray of int
    activation : Activation
    free : ndarray of bool, shape (n_neurons, n_parameters)
        The parameters that may differ from 0.
    penalty : Penalty
        Of these neurons.
    strength : float
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
    search = _Search(
        design, neurons, activation, free, penalty, strength, start, tol, max_iter, workers, watch
    )
    try:
        search.begin(information)
        while search.active.size:
            search.step()
    except KeyboardInterrupt:
        search.status[search.status == ""] = "interrupted"
    return search.outcome()


class _Search:
    def __init__(
        self, design, neurons, activation, free, penalty, strength, start, tol, max_iter, workers, watch
    ):
        self.design, self.neurons, self.activation, self.free = design, neurons, activation, free
        self.penalty, self.strength, self.tol2, self.max_iter = penalty, strength, tol * tol, max_iter
        self.workers, self.watch = workers, watch
        n, n_parameters = start.shape
        self.parameters = start.copy()
        self.ridge = strength * penalty.by_column() if penalty.smooth else np.zeros_like(start)
        self.is_smooth = penalty.smooth or strength == 0
        self.status = np.full(n, "", dtype="<U11")
        self.log_likelihood, self.objective = np.full((2, n), -np.inf)
        self.gain, self.bound, self.smallest_residual = np.full((3, n), np.inf)
        self.first_gain = np.full(n, np.nan)
        self.gradient = np.zeros_like(start)
        self.direction = np.zeros_like(start)
        self.length = np.ones(n)
        self.n_halvings, self.n_steps = np.zeros((2, n), dtype=np.int64)
        self.is_new = np.ones(n, dtype=bool)
        self.information = None
        self.passes_since_sample = 0
        self.n_passes = 0
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
        self._accept(
            everyone,
            self.parameters,
            *self._penalised(everyone, self.parameters, evaluation),
            evaluation.smallest_residual,
        )
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
            terms = self.activation.silence_terms(self.parameters[:, 0])
            weights = -terms[1] * terms[2]
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
        value, log_likelihood, gradient = self._penalised(active, trial, evaluation)
        needed = self.objective[active] - 1e-12 * np.abs(self.objective[active])
        needed = needed + 1e-4 * self.length[active] * np.maximum(self.gain[active], 0.0)
        good = (value >= needed) & np.isfinite(gradient).all(axis=1)
        good |= self.n_halvings[active] >= _MOST_HALVINGS
        self._shorten(active[~good], value[~good])
        if not sample:
            self._learn(active[good], trial[good], gradient[good])
        elif self.information is None or good.all() and len(active) == len(self.status):
            self.information = evaluation.information
        else:
            self.information[active[good]] = evaluation.information[good]
        if sample:
            self.passes_since_sample = 0
        self._accept(
            active[good],
            trial[good],
            value[good],
            log_likelihood[good],
            gradient[good],
            evaluation.smallest_residual[good],
        )
        self.n_steps[active[good]] += 1
        unfinished = active[good][self.n_steps[active[good]] >= self.max_iter]
        self.status[unfinished] = "unfinished"

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

    def _evaluate(self, who, parameters, sample):
        evaluation = evaluate(
            self.design,
            self.neurons[who],
            parameters,
            self.activation,
            self.workers,
            self.free[who],
            self.every if sample else 0,
            self._advance,
        )
        if sample and self.every > 1:
            diagonal = np.arange(parameters.shape[1])
            evaluation.information[:, diagonal, diagonal] *= 1 + _SAMPLE_RIDGE
        return evaluation

    def _penalised(self, who, parameters, evaluation):
        """Return the objective, the log-likelihood, and the gradient without a rough penalty."""
        value = evaluation.value
        if self.strength > 0:
            value = value - self.strength * self.penalty.of(who).value(parameters)
        gradient = np.where(self.free[who], evaluation.gradient - self.ridge[who] * parameters, 0.0)
        return value, evaluation.value, gradient

    def _accept(self, who, parameters, objective, log_likelihood, gradient, smallest_residual):
        self.parameters[who], self.gradient[who] = parameters, gradient
        self.smallest_residual[who] = smallest_residual
        self.objective[who], self.log_likelihood[who] = objective, log_likelihood
        self.length[who], self.n_halvings[who], self.is_new[who] = 1.0, 0, True
        rough = gradient + self.ridge[who] * parameters
        self.bound[who] = self.penalty.of(who).violation(parameters, rough, self.strength)

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
        if self.is_smooth:
            self._solve(who)
            gain = np.einsum("ni,ni->n", self.gradient[who], self.direction[who])
        else:
            penalty = self.penalty.of(who)
            self.direction[who] = proximal_step(
                self._whole_information(who),
                self.gradient[who],
                self.parameters[who],
                penalty,
                self.strength,
                _STEP_ACCURACY,
                0.01 * self.tol2,
            )
            gain = np.einsum("ni,ni->n", self.gradient[who], self.direction[who])
            ahead = penalty.value(self.parameters[who] + self.direction[who])
            gain -= self.strength * (ahead - penalty.value(self.parameters[who]))
        with np.errstate(invalid="ignore", divide="ignore"):
            self.shrinkage = np.full(len(self.status), np.inf) if self.n_passes == 0 else self.shrinkage
            self.shrinkage[who] = gain / self.gain[who]
        self.gain[who] = gain
        self.first_gain[who] = np.where(np.isnan(self.first_gain[who]), gain, self.first_gain[who])
        self.is_new[who] = False
        self.n_passes += 1
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
            effects = largest_effects(self.design, self.neurons[who], self.direction[who], self.workers)
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

    def outcome(self):
        return Outcome(
            self.parameters,
            self.status,
            self.log_likelihood,
            self.gain,
            self.bound,
            self.n_steps,
            self.smallest_residual,
            self.information,
        )


def solve(matrix: NDArray[np.float64], vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Solve for a positive semidefinite matrix; the solution is 0 along its null space.

    Parameters
    ----------
    matrix : ndarray of float, shape (n, n)
    vector : ndarray of float, shape (n,)
    """
    scaled, scale, absent = to_one_scale(matrix)
    if len(vector) > _MOST_EXACT:
        diagonal = np.arange(len(vector))
        scaled[diagonal, diagonal] += np.where(absent, 1.0, _ROUNDING_RIDGE)
        try:
            factor = cho_factor(scaled, overwrite_a=False, check_finite=False)
            result = cho_solve(factor, vector / scale, check_finite=False)
            result[absent] = 0.0
            return result / scale
        except LinAlgError:
            scaled[diagonal, diagonal] -= np.where(absent, 1.0, _ROUNDING_RIDGE)
    values, axes, kept = axes_of(scaled)
    axes = axes[:, kept]
    axes[absent] = 0.0
    return axes @ (axes.T @ (vector / scale) / values[kept]) / scale


def bias_of_rate(rate: NDArray[np.float64], activation: Activation) -> NDArray[np.float64]:
    """Return the bias at which neurons without inputs spike with these probabilities."""
    low, high = np.full(rate.shape, -1.0), np.full(rate.shape, 1.0)
    for bound, is_beyond in (low, np.greater), (high, np.less):
        for _ in range(60):
            beyond = is_beyond(activation.probability(bound), rate)
            if not beyond.any():
                break
            bound[beyond] *= 2
    while True:
        middle = (low + high) / 2
        if np.all((middle == low) | (middle == high)) or math.isnan(middle.sum()):
            return middle
        below = activation.probability(middle) < rate
        low, high = np.where(below, middle, low), np.where(below, high, middle)
