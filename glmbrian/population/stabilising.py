"""The stable population that costs the least likelihood."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.validation import real
from .design import design_of
from .objective import likelihood
from .parameters import STABILITY, PopulationParameters
from .recorded import RecordedData
from .stability import checked_setting, log_gains

#: The search aims below the bound by this fraction, so that rounding does not decide.
_MARGIN = 1e-3

_MOST_STEPS = 60

#: Moving a weight away from the fit costs half of this times the squared change, in nats.  So where
#: the data say nothing, such as at lags at which no spike came, weights stay near those of the fit.
_STIFFNESS = 0.1

#: The largest change of a parameter in one step: the constraint is far from linear.
_LONGEST_STEP = 1.0

#: The most by which the log-gain may fall in one step, and the shortest fraction of a step to try.
_LARGEST_FALL = 0.2
_SHORTEST = 1e-5

#: The search ends when a step promises less than this (in nats).
_SMALLEST_GAIN = 1e-4

#: The most values in a design matrix that is kept between steps (8 MiB).
MOST_KEPT = 2**20


def stabilise(
    population: PopulationParameters,
    data: RecordedData,
    max_rate: ArrayLike | None = None,
    recurrent: str | Sequence[str] | None = None,
    bound: float = 0.7,
) -> tuple[PopulationParameters, NDArray[np.float64]]:
    """Return the parameters of a population whose gain is at most `bound`, and the rates in its data.

    See `GLMPopulation.stabilised`.  Each neuron with a larger gain is fitted again, under the
    constraint.  The objective is the log-likelihood minus its linear part at the original fit, so that
    this fit is the maximum without the constraint, even if a penalty has shaped it.
    """
    bound = real(bound, "bound", 0, strict=True, below=1)
    design = design_of(population, data)
    setting = _setting_of_data(population, design, max_rate, recurrent)
    hopeless = np.flatnonzero(setting.rates >= bound * setting.max_rate)
    if hopeless.size:
        raise ValueError(
            f"max_rate must be above the rates in outputs divided by bound={bound}, but neuron "
            f"{hopeless[0]} has a rate of {setting.rates[hopeless[0]]:.4g} and a max_rate of "
            f"{setting.max_rate[hopeless[0]]:.4g}"
        )
    moved_by = " and ".join(filter(None, (population.moved_by, STABILITY)))
    stable = replace(population.copy(), moved_by=moved_by)
    limit = np.log(bound)
    connected = population.connections()
    free = design.free({name: connected[name] for name in setting.recurrent})
    for i in range(population.n):
        if log_gains(population, setting, i)[0].max() > limit:
            _Neuron(stable, design, setting, i, free[i]).constrain(limit)
    return stable, setting.rates


def _setting_of_data(population, design, max_rate, recurrent):
    """Return what stability is judged by: the rates of recorded data, and the drive in them."""
    rates = population.observations.rates(design.counts(), design.n_rows)
    setting = checked_setting(population, rates, max_rate, recurrent, None)
    driving = np.zeros((design.n, design.n_parameters), dtype=bool)
    for name, columns in design.columns.items():
        driving[:, columns] = name not in setting.recurrent
    if not driving.any():
        return setting
    everyone, parameters = np.arange(design.n), np.where(driving, design.parameters_of(population), 0.0)
    total, squares = np.zeros((2, design.n))
    for block in design.blocks:
        u = design.potential(design.rows(block, everyone), parameters)
        total, squares = total + u.sum(axis=0), squares + (u**2).sum(axis=0)
    mean = total / design.n_rows
    return replace(
        setting, drive=mean, drive_variance=np.maximum(squares / design.n_rows - mean**2, 0.0)
    )


class _Neuron:
    """One neuron under the constraint; `population` receives its parameters."""

    def __init__(self, population, design, setting, index, free):
        self.population, self.design, self.setting, self.index = population, design, setting, index
        self.free = free
        self.start = design.parameters_of(population)[index]
        self.fitted = self.start[free]
        size = self.fitted.size
        self.kept = list(self._parts()) if design.n_rows * size <= MOST_KEPT else None
        # The data always determine the bias, but perhaps not the other parameters.
        self.ridge = np.where(np.arange(size) > 0, _STIFFNESS, 0.0)
        self.tilt = np.zeros(size)
        self.tilt = self.objective(self.fitted)[1]

    def set(self, parameters):
        """Give the population these free parameters."""
        own, i, every = self.population, self.index, self.start.copy()
        every[self.free] = parameters
        own.bias[i] = every[0]
        for name in self.setting.recurrent:
            own.weights[name][:, i] = every[self.design.columns[name]].T
        if own.feedback_weights is not None:
            own.feedback_weights[i] = every[self.design.n_common :]

    def objective(self, parameters):
        """Return the tilted log-likelihood, its gradient, and the Fisher information."""
        value, gradient = 0.0, np.zeros(parameters.size)
        information = np.zeros((parameters.size, parameters.size))
        for columns, fixed, spikes in self._parts() if self.kept is None else self.kept:
            u = (fixed + columns @ parameters)[:, np.newaxis]
            of_block, slope, weights = likelihood(u, spikes, self.population.observations, True)
            value += of_block[0]
            gradient += columns.T @ slope[:, 0]
            information += columns.T @ (weights * columns)
        moved = parameters - self.fitted
        value -= self.tilt @ parameters + 0.5 * moved @ (self.ridge * moved)
        return value, gradient - self.tilt - self.ridge * moved, information + np.diag(self.ridge)

    def _parts(self):
        """Yield, by block, the free columns, what the fixed ones add to the potential, and the spikes."""
        for block in self.design.blocks:
            rows = self.design.rows(block, np.array([self.index]))
            columns = rows.common if rows.own is None else np.hstack([rows.common, rows.own[:, :, 0]])
            yield columns[:, self.free], columns[:, ~self.free] @ self.start[~self.free], rows.spikes

    def gains(self, parameters):
        """Return the logarithms of the gains along the path of rates, and their slopes."""
        self.set(parameters)
        own, i = self.population, self.index
        values, slopes = log_gains(own, self.setting, i)
        every = np.zeros((len(values), self.design.n_parameters))
        every[:, 0] = slopes.bias
        for name in self.setting.recurrent:
            basis = own.kernels[name].matrix
            by_kernel = slopes.coupling[:, :, : len(basis)].copy()
            by_kernel[:, i] = slopes.own[:, : len(basis)]
            every[:, self.design.columns[name]] = (by_kernel @ basis).swapaxes(1, 2)
        if own.feedback_basis is not None:
            basis = own.feedback_basis.matrix
            every[:, self.design.n_common :] = slopes.own[:, : len(basis)] @ basis
        return values, every[:, self.free]

    def constrain(self, limit):
        """Maximise the objective under the limit, by sequential quadratic programming.

        The limit is approached step by step, since the constraint is far from linear.
        """
        limit = limit - _MARGIN
        here = self.fitted
        value, gradient, information = self.objective(here)
        gains, slopes = self.gains(here)
        for _ in range(_MOST_STEPS):
            goal = max(limit, gains.max() - _LARGEST_FALL)
            step, multipliers = _constrained_step(gradient, information, gains - goal, slopes)
            # An exact penalty: exceeding the goal costs more than it can gain in likelihood.
            price = 2 * multipliers.sum()
            excess = max(gains.max() - goal, 0.0)
            promised = gradient @ step - 0.5 * step @ information @ step + price * excess
            if goal == limit and excess <= _MARGIN / 2 and promised < _SMALLEST_GAIN:
                break
            length = min(1.0, _LONGEST_STEP / max(np.abs(step).max(), _LONGEST_STEP))
            while length > _SHORTEST:
                there = here + length * step
                new_value, *rest = self.objective(there)
                new_gains, new_slopes = self.gains(there)
                gain = new_value - value + price * (excess - max(new_gains.max() - goal, 0.0))
                if gain >= 1e-4 * length * promised:
                    break
                length /= 2
            else:
                break
            here, value, (gradient, information) = there, new_value, rest
            gains, slopes = new_gains, new_slopes
        if gains.max() > limit + _MARGIN / 2:
            here = self._surely_stable(here, limit)
        self.set(here)

    def _surely_stable(self, parameters, limit):
        """Return the nearest stable mixture with a neuron of the same rate, without recurrent kernels."""
        safe = np.zeros(parameters.size)
        bias = self.population.observations.potential(self.setting.rates[[self.index]])
        safe[0] = bias[0] - self.setting.drive[self.index]
        low, high = 0.0, 1.0
        for _ in range(40):
            middle = (low + high) / 2
            if self.gains(safe + middle * (parameters - safe))[0].max() <= limit:
                low = middle
            else:
                high = middle
        return safe + low * (parameters - safe)


def _constrained_step(gradient, information, excess, slopes):
    """Return the best step in the quadratic model with linear constraints, and multipliers.

    Least-distance programming by non-negative least squares (Lawson and Hanson, 1974, chapter 23).
    """
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import nnls

    scale = np.sqrt(np.maximum(np.diag(information), 1e-12))
    ridge = 1e-9 * np.eye(scale.size)
    root = cholesky(information / np.outer(scale, scale) + ridge, lower=True)
    free = solve_triangular(root, gradient / scale, lower=True)
    directions = solve_triangular(root, (slopes / scale).T, lower=True)
    needed = excess + free @ directions
    multipliers = np.zeros(len(excess))
    if needed.max() > 0:
        matrix = np.vstack([-directions, needed])
        target = np.append(np.zeros(scale.size), 1.0)
        found, _ = nnls(matrix, target, maxiter=100 * len(excess))
        residual = matrix @ found - target
        if residual[-1] < -1e-14:
            free = free + residual[:-1] / -residual[-1]
            multipliers = found / -residual[-1]
    return solve_triangular(root, free, lower=True, trans="T") / scale, multipliers
