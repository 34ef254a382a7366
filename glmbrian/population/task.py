"""What is to be fitted: recorded data, the parameters that are free, and their penalty."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..brian.connectivity import find_pairs
from ..brian.neurons import stacked
from ..brian.time_steps import require_steps_of_bases
from ..core.activations import Activation
from ..core.bases import Basis, as_basis
from ..support.validation import flag, warn
from .design import Design
from .objective import Problem
from .observations import Observations, observations_of
from .parameters import PopulationParameters, kernels_by_name
from .penalties import BlockPenalty, Penalty
from .recorded import Epochs, RecordedData, longest_window, recorded
from .series import fingerprints


@dataclass(frozen=True, eq=False)
class FitTask:
    """A fit, ready to begin.

    Attributes
    ----------
    design : Design
        Of the data.  Columns of a kernel may serve as those of the feedback: see `shared`.
    observations : Observations
    feedback_basis : Basis or None
    free : ndarray of bool, shape (n, n_parameters)
        The parameters that may differ from 0.
    penalty : BlockPenalty
    penalty_name : str
    shared : ndarray of int, shape (n, n_basis), or None
        The columns of a kernel that serve as each neuron's feedback.
    counts : ndarray of int, shape (n,)
        Number of spikes in the steps that count.
    """

    design: Design
    observations: Observations
    feedback_basis: Basis | None
    free: NDArray[np.bool_]
    penalty: BlockPenalty
    penalty_name: str
    shared: NDArray[np.int64] | None
    counts: NDArray[Any]

    @property
    def data(self) -> RecordedData:
        """What is fitted."""
        return self.design.data

    @property
    def n(self) -> int:
        """Number of neurons."""
        return self.design.n

    @property
    def fitted(self) -> NDArray[np.int64]:
        """The neurons that have both spikes and silences, and so a finite bias."""
        most = self.observations.largest * self.design.n_rows
        return np.flatnonzero((self.counts > 0) & (self.counts < most))

    def problem(self, neurons: NDArray[np.int64]) -> Problem:
        """Return what is maximised for some of the neurons."""
        penalty = self.penalty.of(neurons)
        return Problem(self.design, self.observations, neurons, self.free[neurons], penalty)

    def with_strength(self, strength: float) -> "FitTask":
        """Return the same task with another strength of the penalty."""
        return replace(self, penalty=replace(self.penalty, strength=float(strength)))

    def with_mask(self, mask: NDArray[np.bool_]) -> "FitTask":
        """Return the same task with other steps that count."""
        design = self.design.with_mask(mask)
        return replace(self, design=design, counts=design.counts())

    @cached_property
    def start(self) -> NDArray[np.float64]:
        """Parameters (n, n_parameters) without weights, with each neuron's rate.

        A neuron that never spikes gets the rate of half a spike.
        """
        parameters = np.zeros((self.n, self.design.n_parameters))
        parameters[:, 0] = self.observations.potential(self.rates())
        return parameters

    def rates(self) -> NDArray[np.float64]:
        """Return the rates of the neurons in spikes per step, which a finite bias can explain."""
        return self.observations.rates(self.counts, self.design.n_rows)

    def warn_of_silence(self) -> None:
        """Warn of neurons that cannot be fitted."""
        for count, problem, rest in (
            (0, "never spike", "half a spike"),
            (self.design.n_rows, "always spike", "half a step without a spike"),
        ):
            silent = np.setdiff1d(np.flatnonzero(self.counts == count), self.fitted).tolist()
            if silent:
                warn(
                    f"outputs: the neurons {silent} {problem} in the steps that count, so their best bias "
                    f"would be infinite; they get that of {rest} in all these steps, and weights of 0. "
                    "Leave them out if they were not recorded",
                    RuntimeWarning,
                )

    def population(self, parameters: NDArray[np.float64]) -> PopulationParameters:
        """Return the population with these parameters, shape (n, n_parameters)."""
        bias, weights, own = self._by_name(self.design.uncentred(parameters))
        strength = self.penalty.strength
        moved_by = f"a penalty ({self.penalty_name}, strength {strength:g})" if strength > 0 else None
        return PopulationParameters(
            bias, self.design.kernels, weights, self.feedback_basis, own, self.observations, self.data.dt,
            moved_by,
        )  # fmt: skip

    def kernels_of(self, parameters: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the kernels (n_source, n, window) of parameters, and "feedback" (n, window) if there is any."""
        _, weights, own = self._by_name(parameters)
        kernels = {name: basis.kernels(weights[name]) for name, basis in self.design.kernels.items()}
        if self.feedback_basis is not None:
            kernels["feedback"] = self.feedback_basis.kernels(own)
        return kernels

    def _by_name(self, parameters):
        """Return bias, weights and feedback weights, wherever the design has these columns."""
        if self.shared is None:
            return self.design.by_name(parameters)
        everyone, parameters = np.arange(self.n)[:, np.newaxis], parameters.copy()
        own = parameters[everyone, self.shared]
        parameters[everyone, self.shared] = 0.0
        return *self.design.by_name(parameters)[:2], own


def task_of(
    outputs: Any,
    inputs: Any,
    kernels: Basis | Mapping[str, Basis] | None,
    feedback_basis: Basis | None,
    activation: str | Activation,
    observations: str | Observations,
    penalty: Penalty,
    strength: float,
    groups: Mapping[str, ArrayLike] | None,
    penalise_feedback: bool,
    mask: Any,
    epochs: Epochs,
    connect: Mapping[str, Any] | None,
    dt: Quantity | None,
) -> FitTask:
    """Return the task that the arguments of `fit_population` describe."""
    bases = kernels_by_name({} if kernels is None and inputs is None else kernels)
    if outputs is None:
        raise TypeError("outputs must be an array of the shape (T, n), got None")
    penalise_feedback = flag(penalise_feedback, "penalise_feedback")
    if feedback_basis is not None:
        as_basis(feedback_basis, "feedback_basis")
    model = observations_of(observations, activation)
    data = recorded(
        outputs, inputs, bases, model, dt, mask, epochs,
        window=longest_window([*bases.values(), feedback_basis]), to_fit=True,
    )  # fmt: skip
    require_steps_of_bases(bases, feedback_basis, data.dt)
    connected, labels = _connected(connect, data), _labels(groups, data)
    own = {} if feedback_basis is None else _own_trains(data)
    may_split = strength > 0  # a penalty determines how a kernel is split
    _leave_to_feedback(own, connected, bases, feedback_basis, connect or {}, may_split)
    shared = _shared(own, connected, bases, feedback_basis, groups or {})
    design = Design(data, bases, None if shared else feedback_basis, model.dtype, is_centred=True)
    free = design.free(connected)
    columns = None
    if shared:
        name, sources = shared
        columns = design.columns[name][:, sources].T
        free[np.arange(data.n)[:, np.newaxis], columns] = True
    of_groups = [
        design.columns[name][:, own_labels == label].T.ravel()
        for name, own_labels in labels.items()
        for label in range(own_labels.max(initial=-1) + 1)
    ]
    spared = np.zeros_like(free)
    if not penalise_feedback:
        spared[:, design.n_common :] = True
        if columns is not None:
            spared[np.arange(data.n)[:, np.newaxis], columns] = True
    bound = _bound(penalty, strength, design, of_groups, free, spared)
    return FitTask(design, model, feedback_basis, free, bound, penalty.name, columns, design.counts())


def _own_trains(data):
    """Return for each kernel which sources are the neurons' own trains, shape (n_source, n)."""
    if not data.inputs:
        return {}
    trains = fingerprints(data.outputs)
    return {name: fingerprints(x)[:, np.newaxis] == trains for name, x in data.inputs.items()}


def _leave_to_feedback(own, connected, kernels, feedback_basis, connect, may_split):
    """Remove each neuron's own train from `connected` if the feedback kernel already covers it.

    Only if the user has not set the connections, and no kernel is lost.
    """
    arbitrary = []
    for name, found in own.items():
        if not np.any(found & connected[name]):
            continue
        own_rank, both_rank = ranks(feedback_basis.matrix, kernels[name].matrix)
        if both_rank == own_rank and name not in connect:
            connected[name] &= ~found
        elif both_rank < own_rank + np.linalg.matrix_rank(kernels[name].matrix):
            arbitrary.append(name)
    if arbitrary and not may_split:
        warn(
            f"the kernels {arbitrary} couple neurons with themselves, and the feedback kernel can "
            "form part of the same: the fit has split the two arbitrarily. Pass connect="
            f"{{{arbitrary[0]!r}: 'i != j'}} to leave a neuron's effect on itself to the feedback, "
            "or leave feedback_basis out",
            RuntimeWarning,
        )


def _shared(own, connected, kernels, feedback_basis, groups):
    """Return a kernel whose columns can serve as those of the feedback, and each neuron's source there; or None.

    Not if the user has put them into a group with other sources.
    """
    for name, found in own.items():
        # Where a neuron's own train has weights in the kernel, both are needed.
        there = found & ~connected[name]
        same = np.array_equal(kernels[name].matrix, feedback_basis.matrix)
        if same and name not in groups and there.any(axis=0).all():
            return name, there.argmax(axis=0)
    return None


def _bound(penalty, strength, design, groups, free, spared):
    """Return a penalty on the free parameters; blocks with `spared` ones are not penalised."""
    columns = list(groups)
    if design.n_own:
        columns.append(np.arange(design.n_common, design.n_parameters))
    if not penalty.by_group:
        columns = [group[[k]] for group in columns for k in range(len(group))]
    sizes = np.zeros((design.n, len(columns)), dtype=np.int64)
    is_spared = np.zeros(sizes.shape, dtype=bool)
    for number, block in enumerate(columns):
        sizes[:, number] = free[:, block].sum(axis=1)
        is_spared[:, number] = spared[:, block].any(axis=1)
    factors = []
    for of_sizes in penalty.of_norm, penalty.of_square:
        values = np.where((sizes == 0) | is_spared, 0.0, of_sizes(sizes))
        if not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(f"penalty: {of_sizes.__name__} must return numbers of at least 0")
        factors.append(values)
    return BlockPenalty(columns, *factors, design.n_parameters, strength)


def _connected(connect, data):
    """Return for each kernel which pairs have weights, shape (n_source, n)."""
    connect = {} if connect is None else connect
    if not isinstance(connect, dict) or not set(connect) <= set(data.inputs):
        raise ValueError(f"connect must be a dict with keys among {list(data.inputs)}, got {connect!r}")
    connected = {}
    for name, x in data.inputs.items():
        connected[name] = np.zeros((x.n_units, data.n), dtype=bool)
        connected[name][find_pairs(connect.get(name, True), x.n_units, data.n)] = True
    return connected


def _labels(groups, data):
    """Return for each kernel the number of the group of each source."""
    labels = {name: np.arange(x.n_units) for name, x in data.inputs.items()}
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


def ranks(
    first: NDArray[np.float64], second: NDArray[np.float64]
) -> tuple[np.integer[Any], np.integer[Any]]:
    """Return the ranks of the first basis, and of both together."""
    both = stacked([first, second])
    both = both / np.maximum(np.abs(both).max(axis=0), np.finfo(float).tiny)
    return np.linalg.matrix_rank(both[:, : first.shape[1]]), np.linalg.matrix_rank(both)
