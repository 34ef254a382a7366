"""What is to be fitted: recorded data, the parameters that are free, and their penalty."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..brian.connectivity import find_pairs
from ..brian.neurons import stacked
from ..brian.time_steps import require_steps_of_bases
from ..core.activations import Activation, get_activation
from ..core.bases import Basis, as_basis
from ..support.validation import choice, flag, real, warn
from .data import kernels_by_name, rates_within_bounds
from .design import Design
from .maximiser import bias_of_rate
from .penalties import PENALTIES, Penalty
from .population import GLMPopulation
from .recorded import longest_window, recorded, require_steps_in_rows
from .series import check_inputs, check_trains, fingerprints


class FitTask:
    """Checked arguments of a fit.

    The parameters are those of `fit_population`, except `penalty`, which is a name.

    Attributes
    ----------
    design : Design
    free : ndarray of bool, shape (n, n_parameters)
        The parameters that may differ from 0.
    penalty : Penalty
    activation : Activation
    counts : ndarray of int, shape (n,)
        Number of spikes in the steps that count.
    fitted : ndarray of int
        The neurons that have both spikes and silences, and so a finite bias.
    """

    def __init__(
        self,
        outputs: Any,
        inputs: Any,
        kernels: Basis | Mapping[str, Basis] | None,
        feedback_basis: Basis | None,
        activation: str | Activation,
        penalty: str,
        is_penalised: bool,
        groups: Mapping[str, ArrayLike] | None,
        penalise_feedback: bool,
        mask: ArrayLike | None,
        epochs: Sequence[tuple[Any, Any]] | None,
        connect: Mapping[str, Any] | None,
        dt: Quantity | None,
    ) -> None:
        self.kernels = kernels_by_name({} if kernels is None and inputs is None else kernels)
        if outputs is None:
            raise TypeError("outputs must be an array of the shape (T, n), got None")
        kind = PENALTIES[choice(penalty, "penalty", tuple(PENALTIES))]
        penalise_feedback = flag(penalise_feedback, "penalise_feedback")
        self.feedback_basis = None
        if feedback_basis is not None:
            self.feedback_basis = as_basis(feedback_basis, "feedback_basis")
        self.activation = get_activation(activation)
        window = longest_window([*self.kernels.values(), self.feedback_basis])
        data = recorded(outputs, inputs, self.kernels, dt, mask, epochs, window=window)
        require_steps_in_rows(data)
        self.inputs, self.outputs, self.dt = data.inputs, data.outputs, data.dt
        require_steps_of_bases(self.kernels, self.feedback_basis, self.dt)
        self.n_steps, self.n = data.n_steps, data.outputs.n_units
        if self.n == 0:
            raise ValueError("outputs must have at least one neuron")
        seen = data.counted()
        scales = {name: check_inputs(x, f"inputs[{name!r}]", seen) for name, x in self.inputs.items()}
        check_trains(self.outputs, "outputs")
        connected = _connected(connect, {name: x.n_units for name, x in self.inputs.items()}, self.n)
        self._labels = _labels(groups, self.inputs)
        own = self._leave_to_feedback(connected, connect or {}, is_penalised)
        self._share_with_feedback(own, connected, groups or {})
        self.design = Design(
            self.inputs,
            self.kernels,
            self.outputs,
            None if self._shared is not None else self.feedback_basis,
            data.epochs,
            data.mask,
            {name: offset for name, (offset, _) in scales.items()},
            {name: largest for name, (_, largest) in scales.items()},
        )
        self.free = self._free(connected)
        self.penalty = self._penalty(kind, penalise_feedback)
        self.find_fitted()

    def _leave_to_feedback(self, connected, connect, is_penalised):
        """Remove each neuron's own train from `connected` if the feedback kernel already covers it.

        Only if the user has not set the connections, and no kernel is lost.  Return for each
        kernel which sources are the neurons' own trains, shape (n_source, n).
        """
        owns: dict[str, NDArray[np.bool_]] = {}
        if self.feedback_basis is None or not self.inputs:
            return owns
        arbitrary = []
        trains = fingerprints(self.outputs)
        for name, x in self.inputs.items():
            own = owns[name] = fingerprints(x)[:, np.newaxis] == trains
            if not np.any(own & connected[name]):
                continue
            own_rank, both_rank = _ranks(self.feedback_basis.matrix, self.kernels[name].matrix)
            if both_rank == own_rank and name not in connect:
                connected[name] &= ~own
            elif both_rank < own_rank + np.linalg.matrix_rank(self.kernels[name].matrix):
                arbitrary.append(name)
        # A penalty would determine the split.
        if arbitrary and not is_penalised:
            warn(
                f"the kernels {arbitrary} couple neurons with themselves, and the feedback kernel can "
                "form part of the same: the fit has split the two arbitrarily. Pass connect="
                f"{{{arbitrary[0]!r}: 'i != j'}} to leave a neuron's effect on itself to the feedback, "
                "or leave feedback_basis out",
                RuntimeWarning,
            )
        return owns

    def _share_with_feedback(self, own, connected, groups):
        """Let columns of a kernel serve as those of the feedback, if each neuron has some there.

        Not if the user has put them into a group with other sources.
        """
        self._shared: tuple[str, NDArray[np.int64]] | None = None
        for name, found in own.items():
            # Where a neuron's own train has weights in the kernel, both are needed.
            there = found & ~connected[name]
            same = np.array_equal(self.kernels[name].matrix, self.feedback_basis.matrix)
            if same and name not in groups and there.any(axis=0).all():
                self._shared = name, there.argmax(axis=0)
                return

    def _free(self, connected):
        free = self.design.free(connected)
        if self._shared is not None:
            free[np.arange(self.n)[:, np.newaxis], self._shared_columns()] = True
        return free

    def _shared_columns(self):
        """Return the columns of a kernel that serve as each neuron's feedback, (n, n_basis)."""
        name, sources = self._shared
        return self.design.columns[name][:, sources].T

    def _penalty(self, kind: type[Penalty], penalise_feedback: bool) -> Penalty:
        columns = self._groups()
        if self.design.n_own:
            columns.append(np.arange(self.design.n_common, self.design.n_parameters))
        blocks = kind.blocks_of(columns)
        sizes = np.zeros((self.n, len(blocks)), dtype=np.int64)
        for number, block in enumerate(blocks):
            sizes[:, number] = self.free[:, block].sum(axis=1)
        factors = kind.factors_of(sizes)
        if not penalise_feedback:
            own = np.zeros_like(self.free)
            own[:, self.design.n_common :] = True
            if self._shared is not None:
                own[np.arange(self.n)[:, np.newaxis], self._shared_columns()] = True
            for number, block in enumerate(blocks):
                factors[own[:, block].any(axis=1), number] = 0.0
        return kind(blocks, factors, self.design.n_parameters)

    def _groups(self) -> list[NDArray[np.int64]]:
        """Return the columns of each group of sources."""
        return [
            self.design.columns[name][:, own == label].T.ravel()
            for name, own in self._labels.items()
            for label in range(own.max(initial=-1) + 1)
        ]

    def with_mask(self, mask: NDArray[np.bool_]) -> "FitTask":
        """Return the same task with other steps that count."""
        other = copy.copy(self)
        other.design = self.design.with_mask(mask)
        other.find_fitted()
        return other

    def find_fitted(self) -> None:
        """Count the spikes, and find the neurons that can be fitted."""
        self.counts = self.design.counts()
        self.fitted = np.flatnonzero((self.counts > 0) & (self.counts < self.design.n_rows))

    def start(self) -> NDArray[np.float64]:
        """Return parameters (n, n_parameters) without weights, with each neuron's rate.

        A neuron that never spikes gets the rate of half a spike.
        """
        parameters = np.zeros((self.n, self.design.n_parameters))
        parameters[:, 0] = bias_of_rate(self.rates(), self.activation)
        return parameters

    def rates(self) -> NDArray[np.float64]:
        """Return the rates of the neurons in spikes a step, above 0 and below 1."""
        return rates_within_bounds(self.counts, self.design.n_rows)

    def warn_of_silence(self) -> None:
        """Warn of neurons that cannot be fitted."""
        for count, problem, rest in (
            (0, "never spike", "half a spike"),
            (self.design.n_rows, "always spike", "half a step without a spike"),
        ):
            silent = np.flatnonzero(self.counts == count).tolist()
            if silent:
                warn(
                    f"outputs: the neurons {silent} {problem} in the steps that count, so their best bias "
                    f"would be infinite; they get that of {rest} in all these steps, and weights of 0. "
                    "Leave them out if they were not recorded",
                    RuntimeWarning,
                )

    def population(self, parameters: NDArray[np.float64]) -> GLMPopulation:
        """Return the population with these parameters, shape (n, n_parameters)."""
        bias, weights, own = self._by_name(self.design.uncentred(parameters))
        return GLMPopulation(
            bias, self.kernels, weights, self.feedback_basis, own, self.activation, self.dt
        )

    def kernels_of(self, parameters: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the kernels (n_source, n, window) of parameters, and "feedback" (n, window) if there is any."""
        _, weights, own = self._by_name(parameters)
        kernels = {name: basis.kernels(weights[name]) for name, basis in self.kernels.items()}
        if self.feedback_basis is not None:
            kernels["feedback"] = self.feedback_basis.kernels(own)
        return kernels

    def _by_name(self, parameters):
        """Return bias, weights and feedback weights, wherever the design has these columns."""
        shared = None
        parameters = parameters.copy()
        if self._shared is not None:
            everyone, columns = np.arange(self.n)[:, np.newaxis], self._shared_columns()
            shared = parameters[everyone, columns]
            parameters[everyone, columns] = 0.0
        bias, weights, own = self.design.by_name(parameters)
        return bias, weights, own if shared is None else shared


def checked_strength(strength: Any, name: str = "strength") -> float:
    """Return the strength of a penalty."""
    return real(strength, name, 0)


def _connected(connect, n_sources, n):
    """Return for each kernel which pairs have weights, shape (n_source, n)."""
    connect = {} if connect is None else connect
    if not isinstance(connect, dict) or not set(connect) <= set(n_sources):
        raise ValueError(f"connect must be a dict with keys among {list(n_sources)}, got {connect!r}")
    connected = {}
    for name, n_source in n_sources.items():
        connected[name] = np.zeros((n_source, n), dtype=bool)
        connected[name][find_pairs(connect.get(name, True), n_source, n)] = True
    return connected


def _labels(groups, inputs):
    """Return for each kernel the number of the group of each source."""
    labels = {name: np.arange(x.n_units) for name, x in inputs.items()}
    if groups is None:
        return labels
    if not isinstance(groups, Mapping) or not set(groups) <= set(labels):
        raise ValueError(f"groups must be a dict with keys among {list(labels)}, got {groups!r}")
    for name, given in groups.items():
        own = np.asarray(given)
        if own.shape != labels[name].shape or own.dtype.kind not in "biuU":
            raise ValueError(
                f"groups[{name!r}] must have a whole number or a string for each of the "
                f"{len(labels[name])} sources, equal for sources of one group, got {given!r}"
            )
        labels[name] = np.unique(own, return_inverse=True)[1].ravel()
    return labels


def _ranks(first, second):
    """Return the ranks of the first basis, and of both together."""
    both = stacked([first, second])
    both = both / np.maximum(np.abs(both).max(axis=0), np.finfo(float).tiny)
    return np.linalg.matrix_rank(both[:, : first.shape[1]]), np.linalg.matrix_rank(both)
