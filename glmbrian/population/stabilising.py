"""The stable population that costs the least likelihood."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..support.validation import real
from .blocks import Recorded
from .scoring import of_trains, rates_at_rest
from .stability import Setting, checked_setting, log_gains
from .standard_errors import connections

if TYPE_CHECKING:
    from .population import GLMPopulation

#: The gain of a stabilised population is by this part below its bound, so that rounding does not
#: decide.
_MARGIN = 1e-3

_MOST_STEPS = 60

#: A change of a weight from the fit costs half of this times its square, in nats: where the data say
#: nothing, such as at lags at which no spike came, weights stay near those of the fit.
_STIFFNESS = 0.1

#: The largest change of a parameter in one step: the constraint is far from linear.
_LONGEST_STEP = 1.0

#: By how much the logarithm of the gain may fall in one step, and the smallest part of a step.
_LARGEST_FALL = 0.2
_SHORTEST = 1e-5

#: The search ends when a step would change the log-likelihood by less (in nats).
_SMALLEST_GAIN = 1e-4

#: The most values in a design matrix that is kept between steps (256 MiB).
MOST_KEPT = 2**25


def stabilise(
    population: "GLMPopulation",
    data: Recorded,
    max_rate: ArrayLike | None = None,
    recurrent: str | Sequence[str] | None = None,
    bound: float = 0.7,
) -> "GLMPopulation":
    """Return a copy of a fitted population whose gain is at most `bound`.

    See `GLMPopulation.stabilised`.  Each neuron with a larger gain is fitted again, under the
    constraint.  What is maximised is the log-likelihood minus its slope at the fit, so that the fit
    is the maximum without the constraint, also if a penalty has shaped it.
    """
    bound = real(bound, "bound", 0, 1, strict=True)
    if bound == 1:
        raise ValueError("bound must be below 1, since gains below 1 are stable")
    setting = setting_of_data(population, data, max_rate, recurrent)
    hopeless = np.flatnonzero(setting.rates >= bound * setting.max_rate)
    if hopeless.size:
        raise ValueError(
            f"max_rate must be above the rates in outputs, divided by bound={bound}, but neuron "
            f"{hopeless[0]} has a rate of {setting.rates[hopeless[0]]:.4g} and a max_rate of "
            f"{setting.max_rate[hopeless[0]]:.4g}"
        )
    stable = type(population)(
        population.bias,
        population.kernels,
        population.weights,
        population.feedback_basis,
        population.feedback_weights,
        population.activation,
        population.dt,
    )
    stable.fitted_rates = setting.rates
    stable.why_no_standard_errors = "it is under the constraint of stability"
    limit = np.log(bound)
    connected = connections(population)
    for i in range(population.n):
        if log_gains(population, setting, i)[0].max() > limit:
            _Neuron(stable, data, setting, i, connected).constrain(limit)
    return stable


def setting_of_data(
    population: "GLMPopulation",
    data: Recorded,
    max_rate: ArrayLike | None = None,
    recurrent: str | Sequence[str] | None = None,
) -> Setting:
    """Return what stability is judged by: the rates of recorded data, and the drive in them."""
    setting = checked_setting(population, rates_at_rest(data), max_rate, recurrent, None)
    driving = [name for name in population.kernels if name not in setting.recurrent]
    if not driving:
        return setting
    total, squares = np.zeros((2, population.n))
    for block in data.blocks():
        u = block.potential_of(population, driving)
        total, squares = total + u.sum(axis=0), squares + (u**2).sum(axis=0)
    mean = total / data.n_counted
    return replace(
        setting, drive=mean, drive_variance=np.maximum(squares / data.n_counted - mean**2, 0.0)
    )


class _Neuron:
    """One neuron under the constraint: its free parameters are those of `population`, changed in place."""

    def __init__(self, population, data, setting, index, connected):
        self.population, self.setting, self.index = population, setting, index
        self.connected = {name: connected[name][:, index] for name in setting.recurrent}
        self.data = data
        size = self.get().size
        self.kept = list(self._parts()) if data.n_counted * size <= MOST_KEPT else None
        # The bias is always determined, other parameters perhaps not.
        self.ridge = np.where(np.arange(size) > 0, _STIFFNESS, 0.0)
        self.fitted, self.tilt = self.get(), np.zeros(size)
        self.tilt = self.objective(self.fitted)[1]

    def get(self):
        """Return the free parameters: bias, weights of connections, feedback weights."""
        own, i = self.population, self.index
        parts = [own.bias[[i]]]
        parts += [own.weights[name][chosen, i].ravel() for name, chosen in self.connected.items()]
        if own.feedback_basis is not None:
            parts.append(own.feedback_weights[i])
        return np.concatenate(parts)

    def set(self, parameters):
        own, i, start = self.population, self.index, 1
        own.bias[i] = parameters[0]
        for name, chosen in self.connected.items():
            shape = (int(chosen.sum()), own.kernels[name].n_basis)
            stop = start + shape[0] * shape[1]
            own.weights[name][chosen, i] = parameters[start:stop].reshape(shape)
            start = stop
        if own.feedback_basis is not None:
            own.feedback_weights[i] = parameters[start:]

    def objective(self, parameters):
        """Return the tilted log-likelihood, its gradient, and the Fisher information."""
        g = self.population.activation
        value, gradient = 0.0, np.zeros(parameters.size)
        information = np.zeros((parameters.size, parameters.size))
        for design, fixed, spikes in self.kept if self.kept is not None else self._parts():
            u = fixed + design @ parameters
            value += of_trains(u[:, np.newaxis], spikes[:, np.newaxis], g)[0]
            gradient += design.T @ g.log_probability_slope(u, spikes)
            weights = -g.log_spike_slope(u) * g.log_silence_slope(u)
            information += design.T @ (weights[:, np.newaxis] * design)
        moved = parameters - self.fitted
        value -= self.tilt @ parameters + 0.5 * moved @ (self.ridge * moved)
        return value, gradient - self.tilt - self.ridge * moved, information + np.diag(self.ridge)

    def _parts(self):
        """Yield the design matrix, what fixed weights add to the potential, and the spikes, by blocks."""
        own, i = self.population, self.index
        start = self.get()
        free = [np.repeat(chosen, own.kernels[name].n_basis) for name, chosen in self.connected.items()]
        free = np.concatenate([[True], *free]).astype(bool)
        for block in self.data.blocks():
            common = block.columns(own, self.connected)[:, free]
            design = np.hstack([common, block.own_columns(own, i)])
            yield design, block.potential(own)[:, i] - design @ start, block.spikes[:, i]

    def gains(self, parameters):
        """Return the logarithms of the gains along the path of rates, and their slopes."""
        self.set(parameters)
        own, i = self.population, self.index
        values, slopes = log_gains(own, self.setting, i)
        parts = [slopes.bias[:, np.newaxis]]
        for name, chosen in self.connected.items():
            basis = own.kernels[name].matrix
            by_kernel = slopes.coupling[:, :, : len(basis)].copy()
            by_kernel[:, i] = slopes.own[:, : len(basis)]
            parts.append((by_kernel[:, chosen] @ basis).reshape(len(values), -1))
        if own.feedback_basis is not None:
            basis = own.feedback_basis.matrix
            parts.append(slopes.own[:, : len(basis)] @ basis)
        return values, np.hstack(parts)

    def constrain(self, limit):
        """Climb to the largest objective under the limit, by sequential quadratic programming.

        The limit comes nearer step by step, since the constraint is far from linear.
        """
        limit = limit - _MARGIN
        here = self.get()
        value, gradient, information = self.objective(here)
        gains, slopes = self.gains(here)
        for _ in range(_MOST_STEPS):
            goal = max(limit, gains.max() - _LARGEST_FALL)
            step, multipliers = _constrained_step(gradient, information, gains - goal, slopes)
            # A nat of excess costs more than it can bring.
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
        """Return the nearest stable mixture with a neuron that has its rate and no feedback."""
        safe = np.zeros(parameters.size)
        safe[0] = _potential_of_rate(self.setting, self.index, self.population.activation)
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


def _potential_of_rate(setting, neuron, activation):
    """Return the bias at which a neuron without spikes has its rate at rest."""
    low, high = -1e3, 1e3
    for _ in range(80):
        middle = (low + high) / 2
        if activation.log_spike(middle) < np.log(setting.rates[neuron]):
            low = middle
        else:
            high = middle
    return (low + high) / 2 - setting.drive[neuron]
