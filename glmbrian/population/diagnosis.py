"""What the data of a fit do not determine: unbounded kernels, and directions without information."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..support.validation import warn
from ..support.workers import Workers
from .maximiser import MOST_EXACT_COST, Outcome
from .objective import Problem
from .separation import separating_directions
from .task import FitTask
from .undetermined import Undetermined, listed, undetermined_directions

#: The name of the feedback kernel among those of inputs.
FEEDBACK = "feedback"

#: A kernel grows at the lags where a direction has more than this fraction of its largest value.
_GROWS = 1e-4

#: A kernel is undetermined at the lags where directions without information are more than this part of all
#: that its basis can do there.
_MUCH = 0.25

_MOST_LISTED = 5


@dataclass(frozen=True)
class Diagnosis:
    """What the data of a fit leave open.

    Attributes
    ----------
    status : ndarray of str, shape (n,)
        That of the search, corrected.
    unbounded : dict of str to ndarray of bool, shape (n_source, n, window)
        By kernel, the lags at which it grows without bound; "feedback": shape (n, window).
    undetermined : list of Undetermined
    undetermined_lags : dict of str to ndarray of bool
        By kernel, the lags at which directions without information change it most; as `unbounded`.
    """

    status: NDArray[np.str_]
    unbounded: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    undetermined: list[Undetermined] = field(default_factory=list)
    undetermined_lags: dict[str, NDArray[np.bool_]] = field(default_factory=dict)


def diagnose(task: FitTask, outcome: Outcome) -> Diagnosis:
    """Find what the data leave open, given the outcome of all neurons."""
    design, penalty = task.design, task.penalty
    used = task.free.copy() if penalty.strength == 0 else task.free & ~penalty.is_penalised
    ended = np.flatnonzero(np.isin(outcome.status, ("converged", "separated")))
    if not used[:, 1:].any() or not ended.size:
        return Diagnosis(outcome.status)
    all_together = _is_cheap(design, len(ended))
    groups = [np.arange(design.n_parameters)[np.newaxis]]
    if not all_together:
        groups = [columns.T for columns in design.columns.values() if columns.size]
        if design.n_own:
            groups.append(np.arange(design.n_common, design.n_parameters)[np.newaxis])
    with Workers() as workers:
        directions = np.zeros(outcome.parameters.shape)
        problem = Problem.plain(design, task.observations, ended, used[ended])
        directions[ended] = separating_directions(
            problem, outcome.parameters[ended], outcome.gain[ended], outcome.smallest_residual[ended],
            groups, workers,
        )  # fmt: skip
        weights = task.observations.weights(task.start[:, 0]) * design.n_rows
        together = design.n_common**2 <= MOST_EXACT_COST * design.cost_of_pass(len(ended))
        used[np.setdiff1d(np.arange(task.n), ended)] = False
        undetermined, axes = undetermined_directions(design, weights, used, together, workers)
    found = directions.any(axis=1)
    status = outcome.status.copy()
    unnamed = np.flatnonzero((status == "separated") & ~found)
    if all_together:
        # There is a maximum, though far away, and next to nothing to gain.
        status[unnamed] = "converged"
    status[found] = "separated"
    unbounded = {
        name: np.abs(kernels) > _GROWS * np.abs(kernels).max(axis=-1, keepdims=True)
        for name, kernels in task.kernels_of(directions).items()
    }
    lags = _lags(task, axes) if undetermined else {}
    return Diagnosis(status, unbounded if found.any() else {}, undetermined, lags)


def _is_cheap(design, n_neurons):
    """Whether the products of all columns of each neuron cost about as much as a pass over the data."""
    return n_neurons * design.n_parameters**2 <= MOST_EXACT_COST * design.cost_of_pass(n_neurons)


def _lags(task, axes):
    """Return by kernel the lags at which some axes (n, n_parameters, m) change it most."""
    shares: dict[str, np.ndarray] = {}
    for axis in np.moveaxis(axes, 2, 0):
        for name, kernels in task.kernels_of(axis).items():
            norms = np.linalg.norm(kernels, axis=-1, keepdims=True)
            own = np.square(kernels / np.where(norms > 0, norms, 1.0))
            shares[name] = shares.get(name, 0.0) + own
    lags = {}
    for name, share in shares.items():
        basis = task.feedback_basis if name == FEEDBACK else task.design.kernels[name]
        functions, sizes, _ = np.linalg.svd(basis.matrix, full_matrices=False)
        whole = np.square(functions[:, sizes > 1e-9 * sizes[0]]).sum(axis=1)
        lags[name] = (share > _MUCH * whole) & (whole > 0)
    return lags


def warn_of(diagnosis: Diagnosis, max_iter: int) -> None:
    """Warn of neurons whose fit did not reach a maximum, and of what the data leave open."""

    def those(status):
        return np.flatnonzero(diagnosis.status == status).tolist()

    if those("separated"):
        warn(_said_of_separation(those("separated"), diagnosis), RuntimeWarning)
    harmful = [each for each in diagnosis.undetermined if not each.is_silent]
    if harmful:
        warn(
            f"the inputs do not determine all weights: {listed(harmful, _MOST_LISTED, '; ', '; and')}. Chance "
            "sets these combinations, so "
            "predictions for inputs that vary more, or faster, may be far off; use fewer or broader "
            "basis functions, or a ridge penalty (population.fit_.undetermined has the list)",
            RuntimeWarning,
        )
    if those("unfinished"):
        warn(
            f"the fit of the neurons {those('unfinished')} did not reach the maximum in "
            f"max_iter={max_iter} steps",
            RuntimeWarning,
        )
    if those("interrupted"):
        warn(
            f"the fit was interrupted: the neurons {those('interrupted')} have the best parameters "
            "so far, which may be far from the maximum",
            RuntimeWarning,
        )


def _said_of_separation(neurons, diagnosis):
    kernels = []
    for name, lags in diagnosis.unbounded.items():
        if name == FEEDBACK:
            kernels += [f"the feedback of neuron {i}" for i in np.flatnonzero(lags.any(axis=-1))]
        else:
            kernels += [
                f"{name!r} from source {j} to neuron {i}" for j, i in np.argwhere(lags.any(axis=-1))
            ]
    grows = "some weights grew without bound"
    if kernels:
        grows = f"these kernels grow without bound: {listed(kernels, _MOST_LISTED, ', ', ', and')}"
    advice = "Read their large weights as minus (or plus) infinity"
    if FEEDBACK in diagnosis.unbounded and diagnosis.unbounded[FEEDBACK].any():
        advice += (
            ". For a refractory period that is right: leave it as it is, or cover its lags by one function "
            "of a CustomBasis. A penalty would soften it, so if other kernels need one, set "
            "penalise_feedback=False"
        )
    if any(name != FEEDBACK and lags.any() for name, lags in diagnosis.unbounded.items()):
        advice += (
            ". To keep kernels of inputs finite, use a penalty (strength= above 0, with "
            "penalise_feedback=False to keep refractory periods), use fewer basis functions, or leave out "
            "pairs (connect=)"
        )
    return (
        f"the likelihood of the neurons {neurons} has no finite maximum, since their inputs predict some "
        f"steps without a spike, or with one, perfectly (separation): {grows}. {advice}; "
        "population.fit_.unbounded says at which lags"
    )
