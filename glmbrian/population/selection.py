"""Choose the strength of a penalty by how well fits predict held-out steps."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..core.activations import Activation
from ..core.bases import Basis
from ..support.progress import Progress
from ..support.validation import finite_array, flag, integer, real, warn
from ..support.workers import Workers
from .diagnosis import diagnose
from .fitting import check_n_jobs, fit_path, fit_task, fitted_population
from .objective import Problem, evaluate, log_likelihoods_at
from .observations import Observations
from .penalties import Penalty, penalty_of
from .population import GLMPopulation
from .recorded import Epochs
from .task import FitTask, task_of

#: How many strengths are compared by default, and over how many powers of ten.
_N_STRENGTHS, _POWERS_OF_TEN = 10, 3.0


@dataclass(frozen=True)
class StrengthSelection:
    """How well populations with penalties of several strengths predict held-out steps.

    Attributes
    ----------
    strengths : ndarray of float, shape (n_strengths,)
        From strong to weak.
    scores : ndarray of float, shape (n_strengths, n_folds)
        Log-likelihood of the held-out steps of each fold, summed over all neurons, in nats
        per spike.
    mean, standard_error : ndarray of float, shape (n_strengths,)
        Of the scores, over the folds.
    best : float
        The strength with the largest mean.
    population : GLMPopulation
        Fitted to all steps with the strength `best`.

    Examples
    --------
    See `select_strength`.
    """

    strengths: NDArray[np.float64]
    scores: NDArray[np.float64]
    mean: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    best: float
    population: GLMPopulation


def select_strength(
    outputs: Any,
    inputs: Any = None,
    kernels: Basis | Mapping[str, Basis] | None = None,
    feedback_basis: Basis | None = None,
    activation: str | Activation = "sigmoid",
    penalty: str | Penalty = "group",
    *,
    strengths: ArrayLike | None = None,
    n_folds: int = 5,
    groups: Mapping[str, ArrayLike] | None = None,
    penalise_feedback: bool = True,
    mask: ArrayLike | None = None,
    epochs: Epochs = None,
    connect: Mapping[str, Any] | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    dt: Quantity | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    observations: str | Observations = "bernoulli",
) -> StrengthSelection:
    """Choose the strength of a penalty by cross-validation over blocks of time.

    The steps that count are split into consecutive folds.  For each fold, populations are fitted to
    the other folds, from the strongest penalty to the weakest, each fit starting from the previous
    one.  Steps close in time are alike, so single steps held out at random would be too easy to
    predict.

    Parameters
    ----------
    outputs, inputs, kernels, feedback_basis, activation, groups, penalise_feedback, mask, epochs, \
connect, max_iter, dt, verbose, observations
        As for `fit_population`.
    penalty : {"group", "lasso", "ridge"} or Penalty
    strengths : array_like of float, shape (n_strengths,), optional
        The strengths to compare, in any order.  By default ten, evenly spaced on a logarithmic scale
        over three powers of ten.  The largest is, for "group" and "lasso", the smallest strength
        at which all penalised weights are 0; and for "ridge", the information about the weight
        that the data determine best, so that this strength about halves the weight.
    n_folds : int
        At least 2.  Each neuron needs spikes in at least two of the folds.
    tol : float
        As for `fit_population`.  A distance of ``1e-4`` standard errors makes no visible difference
        to the scores.
    n_jobs : int, optional
        Number of processes that share the folds, by joblib.

    Returns
    -------
    StrengthSelection

    Raises
    ------
    ValueError, TypeError
        As for `fit_population`; or if a strength is negative, there are fewer steps than folds, or
        a fold has no spike.
    KeyboardInterrupt
        If the user interrupts the cross-validation (Ctrl-C).  The message has the mean scores over
        the folds that are finished.

    Warns
    -----
    RuntimeWarning
        As for `fit_population`.  If the best strength is the weakest or the strongest of those compared,
        so that a better one may lie beyond.  If the user interrupts the final fit, to all steps, the
        selection is returned with the best parameters so far.

    Examples
    --------
    Only one of three inputs has an effect:

    >>> import numpy as np, glmbrian as glm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.random((3000, 3)) < 0.3
    >>> y = rng.random((3000, 1)) < 0.1
    >>> y[1:] |= x[:-1, :1] & (rng.random((2999, 1)) < 0.3)
    >>> selection = glm.select_strength(
    ...     y, x, glm.IndicatorBasis(2), strengths=[100.0, 10.0, 1.0], n_folds=3
    ... )
    >>> selection.best
    10.0
    >>> selection.population.weights["stimulus"].any(axis=(1, 2))
    array([ True, False, False])
    """
    started = time.perf_counter()
    if not isinstance(penalty, (str, Penalty)):
        raise TypeError(f"penalty must be the name of a penalty, or a Penalty, got {penalty!r}")
    path = None if strengths is None else _checked(strengths)
    n_folds = integer(n_folds, "n_folds", 2)
    tol = real(tol, "tol", 0, strict=True)
    max_iter = integer(max_iter, "max_iter")
    verbose = flag(verbose, "verbose")
    check_n_jobs(n_jobs)
    task = task_of(
        outputs, inputs, kernels, feedback_basis, activation, observations, penalty_of(penalty), 1.0, groups,
        penalise_feedback, mask, epochs, connect, dt,
    )  # fmt: skip
    if path is None:
        path = sensible_strengths(task, tol, max_iter)
    folds = _folds(task, n_folds)
    with Progress("selecting", len(path) * (n_folds + 1), verbose, unit=" fits") as progress:
        scores = _cross_validated(task, folds, path, tol, max_iter, n_jobs, progress)
        mean = scores.mean(axis=1)
        best = int(mean.argmax())
        for done, fitted in enumerate(fit_path(task, path[: best + 1], tol, max_iter), scores.size + 1):
            outcome = fitted
            progress(done)
    task = task.with_strength(path[best])
    population = fitted_population(task, outcome, diagnose(task, outcome), max_iter, started)
    _warn_of_edge(path, best, outcome)
    error = scores.std(axis=1, ddof=1) / np.sqrt(n_folds)
    return StrengthSelection(path, scores, mean, error, float(path[best]), population)


def _cross_validated(task, folds, path, tol, max_iter, n_jobs, progress):
    """Return the scores, shape (n_strengths, n_folds)."""
    scores = np.full((len(path), len(folds)), np.nan)
    is_alone = joblib.effective_n_jobs(n_jobs) == 1
    workers = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator")
    jobs = (
        joblib.delayed(_scores)(
            task, fold, path, tol, max_iter, number * len(path), progress if is_alone else None
        )
        for number, fold in enumerate(folds)
    )
    try:
        for number, column in enumerate(workers(jobs), 1):
            scores[:, number - 1] = column
            progress(number * len(path))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_so_far(task.penalty_name, path, scores)) from None
    return scores


def _checked(strengths):
    path = finite_array(strengths, "strengths", ("n_strengths",))
    if path.size == 0 or path.min() < 0:
        raise ValueError(f"strengths must be one or more numbers of at least 0, got {strengths!r}")
    return np.unique(path)[::-1].astype(float)


def sensible_strengths(task: FitTask, tol: float, max_iter: int) -> NDArray[np.float64]:
    """Return the strengths that `select_strength` compares by default, from strong to weak."""
    who, held = task.fitted, replace(task, free=task.free & ~task.penalty.is_penalised)
    outcome = fit_task(held.with_strength(0.0), tol, max_iter)
    problem = Problem.plain(task.design, task.observations, who, task.free[who])
    with Workers() as workers:
        found = evaluate(problem, outcome.parameters[who], workers, every=1)
    about_each = np.where(problem.free, np.diagonal(found.information, axis1=1, axis2=2), 0.0)
    strongest = task.penalty.of(who).strongest(found.gradient, about_each).max(initial=0.0)
    if not strongest > 0:
        raise ValueError(
            "strengths must be given, since no penalised weight has an effect in these data: there are "
            "no inputs, or no neuron has spikes"
        )
    return strongest * np.logspace(0, -_POWERS_OF_TEN, _N_STRENGTHS)


def _warn_of_edge(path, best, outcome):
    """Warn if the best strength is the last one at either end, unless nothing can lie beyond."""
    if len(path) < 2 or path[best] == 0:
        return
    if best == len(path) - 1:
        beyond = f"weaker ones, such as {path[best] / 10:.3g} and {path[best] / 100:.3g}"
    elif best == 0 and outcome.parameters[:, 1:].any():
        beyond = f"stronger ones, such as {path[best] * 10:.3g} and {path[best] * 100:.3g}"
    else:
        return
    warn(
        f"strengths: the best, {path[best]:.3g}, is the {'strongest' if best == 0 else 'weakest'} of those "
        f"compared, and a better one may lie beyond; compare also {beyond}",
        RuntimeWarning,
    )


def _folds(task, n_folds):
    """Return, for each fold, a mask of the steps that it holds out."""
    counted = task.data.counted()
    index, steps = np.arange(counted.size), np.flatnonzero(counted)
    if steps.size < n_folds:
        raise ValueError(f"n_folds must be at most the {steps.size} steps that count, got {n_folds}")
    parts = np.array_split(steps, n_folds)
    folds = [counted & (part[0] <= index) & (index <= part[-1]) for part in parts]
    for number, fold in enumerate(folds):
        if not task.with_mask(fold).counts.any():
            raise ValueError(
                f"n_folds={n_folds} is too many: there is no spike in fold {number}; take fewer folds"
            )
    return folds


def _scores(task, fold, path, tol, max_iter, done, progress):
    """Return the scores of the steps of a fold for each strength; `done` fits came before them."""
    mask = task.data.mask
    rest, own = task.with_mask(~fold if mask is None else mask & ~fold), task.with_mask(fold)
    scores = []
    for outcome in fit_path(rest, path, tol, max_iter):
        if "interrupted" in outcome.status:
            raise KeyboardInterrupt
        value = log_likelihoods_at(own.design, outcome.parameters, task.observations)
        scores.append(value.sum() / own.counts.sum())
        if progress is not None:
            progress(done + len(scores))
    return scores


def _so_far(penalty, path, scores):
    """Return what an interrupted selection has found."""
    finished = scores[:, np.isfinite(scores).all(axis=0)]
    found = f"select_strength was interrupted after {finished.shape[1]} of {scores.shape[1]} folds"
    if not finished.size:
        return f"{found}, so there are no scores yet"
    mean = dict(zip(path.tolist(), finished.mean(axis=1).round(4).tolist()))
    return (
        f"{found}, with mean scores {mean} (strength: nats per spike); to fit with one of them, call "
        f"fit_population(..., penalty={penalty!r}, strength={max(mean, key=mean.get)})"
    )
