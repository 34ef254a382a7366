"""Choose the strength of a penalty by how well fits predict held-out steps."""

import copy
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from .diagnosis import diagnose, warn_of
from .finishing import finished
from .fitting import check_n_jobs, fit_path, fit_task, report
from .maximum import by_penalty
from .objective import evaluate, log_likelihood
from .population import GLMPopulation
from .task import FitTask

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
    penalty: str = "group",
    *,
    strengths: ArrayLike | None = None,
    n_folds: int = 5,
    groups: Mapping[str, ArrayLike] | None = None,
    penalise_feedback: bool = True,
    mask: ArrayLike | None = None,
    epochs: Sequence[tuple[Any, Any]] | None = None,
    connect: Mapping[str, Any] | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    dt: Quantity | None = None,
    n_jobs: int | None = None,
    verbose: bool = False,
) -> StrengthSelection:
    """Choose the strength of a penalty by cross-validation over blocks of time.

    The steps that count are split into consecutive folds.  For each fold, populations are fitted to
    the other folds, from the strongest penalty to the weakest, each fit starting from the previous
    one.  Steps close in time are alike, so single steps held out at random would be too easy to
    predict.

    Parameters
    ----------
    outputs, inputs, kernels, feedback_basis, activation, groups, penalise_feedback, mask, epochs, \
connect, max_iter, dt, verbose
        As for `fit_population`.
    penalty : {"group", "lasso", "ridge"}
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
    if not isinstance(penalty, str):
        raise TypeError(f"penalty must be the name of a penalty, got {penalty!r}")
    path = None if strengths is None else _checked(strengths)
    n_folds = integer(n_folds, "n_folds", 2)
    tol = real(tol, "tol", 0, strict=True)
    max_iter = integer(max_iter, "max_iter")
    verbose = flag(verbose, "verbose")
    check_n_jobs(n_jobs)
    task = FitTask(
        outputs, inputs, kernels, feedback_basis, activation, penalty, True, groups,
        penalise_feedback, mask, epochs, connect, dt,
    )  # fmt: skip
    if path is None:
        path = sensible_strengths(task, tol, max_iter)
    held_out = _folds(task, n_folds)
    n_fits = len(path) * (n_folds + 1)
    with Progress("selecting", n_fits, verbose, unit=" fits") as progress:
        done = 0
        scores = np.full((len(path), n_folds), np.nan)
        try:
            if joblib.effective_n_jobs(n_jobs) == 1:
                for number, fold in enumerate(held_out):
                    for row, value in enumerate(_scores(task, fold, path, tol, max_iter)):
                        scores[row, number] = value
                        done += 1
                        progress(done)
            else:
                workers = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator")
                jobs = (
                    joblib.delayed(_all_scores)(task, fold, path, tol, max_iter) for fold in held_out
                )
                for number, column in enumerate(workers(jobs)):
                    scores[:, number] = column
                    done += len(path)
                    progress(done)
        except KeyboardInterrupt:
            raise KeyboardInterrupt(_so_far(penalty, path, scores)) from None
        mean = scores.mean(axis=1)
        best = int(mean.argmax())
        for fitted in fit_path(task, path[: best + 1], tol, max_iter):
            outcome = fitted
            done += 1
            progress(done)
    strength = float(path[best])
    found = diagnose(task, outcome, strength)
    warn_of(outcome, max_iter, found)
    task.warn_of_silence()
    _warn_of_edge(path, best, outcome)
    population = finished(
        task.population(outcome.parameters), task.rates(), outputs, inputs, mask, epochs,
        by_penalty(penalty, strength),
    )  # fmt: skip
    population.fit_ = report(penalty, strength, outcome, found, time.perf_counter() - started)
    error = scores.std(axis=1, ddof=1) / np.sqrt(n_folds)
    return StrengthSelection(path, scores, mean, error, strength, population)


def _checked(strengths):
    path = finite_array(strengths, "strengths", ("n_strengths",))
    if path.size == 0 or path.min() < 0:
        raise ValueError(f"strengths must be one or more numbers of at least 0, got {strengths!r}")
    return np.unique(path)[::-1].astype(float)


def sensible_strengths(task: FitTask, tol: float, max_iter: int) -> NDArray[np.float64]:
    """Return the strengths that `select_strength` compares by default, from strong to weak."""
    without = copy.copy(task)
    without.free = task.free & ~(task.penalty.by_column() > 0)
    outcome = fit_task(without, 0.0, tol, max_iter)
    who = task.fitted
    with Workers() as workers:
        found = evaluate(
            task.design, who, outcome.parameters[who], task.activation, workers, task.free[who], every=1
        )
    gradient = np.where(task.free[who], found.gradient, 0.0)
    information: Any = found.information  # not None, since `every` is above 0
    about_each = np.where(task.free[who], np.diagonal(information, axis1=1, axis2=2), 0.0)
    strongest = task.penalty.of(who).strongest(gradient, about_each).max(initial=0.0)
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
    counted = np.zeros(task.n_steps, dtype=bool)
    for start, stop in task.design.epochs:
        counted[start:stop] = True
    if task.design.mask is not None:
        counted &= task.design.mask
    steps = np.flatnonzero(counted)
    if steps.size < n_folds:
        raise ValueError(f"n_folds must be at most the {steps.size} steps that count, got {n_folds}")
    folds = []
    for part in np.array_split(steps, n_folds):
        fold = np.zeros(task.n_steps, dtype=bool)
        fold[part] = True
        folds.append(fold)
    for number, fold in enumerate(folds):
        if not task.with_mask(fold).counts.any():
            raise ValueError(
                f"n_folds={n_folds} is too many: there is no spike in fold {number}; take fewer folds"
            )
    return folds


def _scores(task, fold, path, tol, max_iter):
    """Yield the score of the steps of a fold for each strength."""
    counted = ~fold if task.design.mask is None else task.design.mask & ~fold
    rest, own = task.with_mask(counted), task.with_mask(fold)
    for outcome in fit_path(rest, path, tol, max_iter):
        if "interrupted" in outcome.status:
            raise KeyboardInterrupt
        value = log_likelihood(own.design, outcome.parameters, task.activation)
        yield value.sum() / own.counts.sum()


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


def _all_scores(*arguments):
    return list(_scores(*arguments))
