"""Maximum-likelihood fits of a population to recorded spike trains.

The rate rule of `glmbrian.learning`, with all data as one batch, run to convergence.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import joblib
import numpy as np
from brian2 import Quantity
from numpy.typing import ArrayLike, NDArray

from ..core.activations import Activation
from ..core.bases import Basis
from ..support.progress import Progress
from ..support.renamed import renamed
from ..support.validation import flag, integer, real
from ..support.workers import Workers
from .diagnosis import Diagnosis, diagnose, warn_of
from .maximiser import Outcome, maximise
from .observations import Observations
from .penalties import Penalty, penalty_of
from .population import GLMPopulation
from .recorded import Epochs
from .stabilising import stabilise
from .task import FitTask, task_of
from .undetermined import Undetermined

#: Bytes for the Fisher information of neurons that are fitted together.
_MOST_INFORMATION = 2**29


@dataclass(frozen=True)
class FitReport:
    """How a fit ended: the attribute `fit_` of a fitted population.

    Attributes
    ----------
    penalty : str
    strength : float
    status : list of str, one per neuron
        "converged"; "separated" if the likelihood has no finite maximum; "unfinished" if
        `max_iter` steps were not enough; "interrupted"; or "silent" if the neuron never (or
        always) spiked.
    distance : ndarray of float, shape (n,)
        Distance to the maximum in standard errors before the last step, which is at most
        `tol` for neurons that converged.
    gradient : ndarray of float, shape (n,)
        The largest entry of the gradient of the objective there, in nats per unit of the
        parameters.  With "lasso" and "group": of the subgradient closest to 0, or the
        norm of its part for a group.
    log_likelihood : ndarray of float, shape (n,)
        In nats, summed over the steps that count, without the penalty.
    n_steps : ndarray of int, shape (n,)
    seconds : float
    unbounded : dict of str to ndarray of bool, shape (n_source, n, window)
        By kernel, the lags at which it grows without bound, so that its values there mean plus or
        minus infinity; "feedback": shape (n, window).  Empty if there are none.
    undetermined : list of Undetermined
        Combinations of basis functions about which the inputs say next to nothing.
    undetermined_lags : dict of str to ndarray of bool, shape (n_source, n, window)
        By kernel, the lags at which such combinations change it most.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> y = np.tile([[0], [1], [0], [0]], (50, 1))
    >>> report = glm.fit_population(y, y, glm.IndicatorBasis(1), penalty=1.0).fit_
    >>> report.status, bool(report.distance[0] < 1e-8)
    (['converged'], True)
    """

    penalty: str
    strength: float
    status: list[str]
    distance: NDArray[np.float64]
    gradient: NDArray[np.float64]
    log_likelihood: NDArray[np.float64]
    n_steps: NDArray[np.int64]
    seconds: float = field(compare=False)
    unbounded: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    undetermined: list[Undetermined] = field(default_factory=list)
    undetermined_lags: dict[str, NDArray[np.bool_]] = field(default_factory=dict)


@renamed(feedback="feedback_basis")
def fit_population(
    outputs: Any,
    inputs: Any = None,
    kernels: Basis | Mapping[str, Basis] | None = None,
    feedback_basis: Basis | None = None,
    activation: str | Activation = "sigmoid",
    penalty: float | str | Penalty = 0.0,
    mask: ArrayLike | None = None,
    connect: Mapping[str, Any] | None = None,
    tol: float = 1e-8,
    max_iter: int = 200,
    dt: Quantity | None = None,
    *,
    strength: float | None = None,
    groups: Mapping[str, ArrayLike] | None = None,
    penalise_feedback: bool = True,
    epochs: Epochs = None,
    n_jobs: int | None = None,
    verbose: bool = False,
    stable: bool = False,
    max_rate: ArrayLike | None = None,
    observations: str | Observations = "bernoulli",
) -> GLMPopulation:
    """Fit the kernels and biases of a population to recorded spike trains.

    The fit maximises the log-likelihood of the recorded trains (eq. LL_conv), with these
    trains fed back.  For the sigmoid, the probit and the cloglog it is concave, so there
    is no other maximum.  The gradient is that of `glmbrian.learning.rate_log_likelihood`.
    All neurons are fitted at once, in passes over the recording, which is never
    held as a design matrix: memory does not grow with its length.

    Parameters
    ----------
    outputs : array_like of 0/1, shape (T, n), or Recording
        Recorded trains of the population.  They may be a memory-mapped array, or a data set
        of h5py or zarr: they are read in blocks of steps, in any dtype.  Or a TsGroup or TsdFrame
        of pynapple, a DataFrame of pandas, or a sparse matrix.  Data that know their times
        (a Recording, those of pynapple, and indices of times or dates) must have the same times.
    inputs : array_like of float or dict of str to array_like, optional
        The input of each kernel, shape (T, n_source): spikes, counts or any continuous
        stimulus.  Give an array if there is one kernel, and leave it out if there is none.
        Coupling is a kernel whose input is the outputs:
        ``inputs={"stimulus": x, "coupling": outputs}``.  As `outputs`, they are read in blocks;
        of a Recording, only the steps with spikes are kept.  A dict may have more inputs than there
        are kernels, here and wherever data are judged: nested models take the inputs of their own
        kernels from the same dict.
    kernels : Basis or dict of str to Basis, optional
        As for `GLMPopulation`.  Without kernels the neurons have only a bias and, if given,
        a feedback kernel.
    feedback_basis : Basis, optional
        Basis of the feedback kernel.
    activation : {"sigmoid", "probit", "cloglog"} or Activation
    penalty : {"ridge", "lasso", "group"}, Penalty or float
        What is subtracted from the log-likelihood (in nats, summed over steps), `strength`
        times: half the sum of all squared weights; the sum of their absolute values; or the sum
        over groups of weights of their norm times the root of their number, which makes
        all weights of a group 0 at once.  Biases are not penalised.  A number is the
        strength of a ridge penalty.  Or a `glmbrian.population.Penalty` of your own.
    mask : array_like of bool, shape (T,), optional
        The steps that count; all by default.  Kernels still see the other steps.  Use it
        to leave out the first steps of a recording, before which no input is known.  To
        separate consecutive trials in the arrays, leave out as many steps as the longest
        window at the beginning of each trial, or at the beginning of zeros put between
        the trials.  A mask may know its times, as outputs may.
    connect : dict of str to (bool, str or pair of arrays), optional
        For each kernel, the pairs (source, neuron) that have weights, as in
        `GLMSynapses`.  By default all pairs, except a neuron's coupling with itself if the
        feedback basis can form the same kernels: the split between the two would be
        arbitrary, so the coupling's weights are then 0.
    tol : float
        Largest distance to the maximum, in standard errors of the parameters.
    max_iter : int
        Largest number of steps of each neuron.
    dt : Quantity of time, optional
        Duration of a step of the data, such as ``1*ms``.  By default the step stored in the
        data: in a `Recording` made from bins or a monitor, or in series with times.  The
        population keeps it, so that its neurons run at this step.
    strength : float, optional
        Strength of the penalty, unless `penalty` is a number.  `select_strength` chooses it.
    groups : dict of str to array_like, shape (n_source,), optional
        For penalty "group": for each kernel, a label of each source.  The weights from all
        sources with the same label to a neuron are a group.  By default each source is a
        group of its own, so that what a group says is whether the source is connected.
    penalise_feedback : bool
        Whether the weights of the feedback kernel are penalised, too.  This softens an absolute
        refractory period: set False to keep it.
    epochs : list of (start, stop), optional
        The parts of the recording to be fitted, each from a step up to another, or from a time up
        to another: times of the data, if they know them, or else from 0 if the step is known.  Or an
        IntervalSet of pynapple, or an IntervalIndex of pandas.  Kernels see nothing from before an
        epoch.  All steps are one epoch by default.
    n_jobs : int, optional
        Number of processes that share the neurons, by joblib, also on a cluster:
        ``with joblib.parallel_config(backend="dask")``.  By default as many as joblib's
        configuration says, or one.  Each process uses as many threads as linear algebra
        would, so more processes help only on more machines, or if there are many neurons.
    verbose : bool
        Show a progress bar with the remaining time.
    stable : bool
        Keep the gain of the population below its bound, so that it does not run away when it is
        simulated: the fit then ends with `GLMPopulation.stabilised`.
    max_rate : array_like of float, shape (n,) or a number, optional
        With `stable`, the rates that a simulation must not exceed for long; see
        `GLMPopulation.is_stable`.
    observations : {"bernoulli"} or Observations
        What is recorded in each step: spikes with the probability `activation`, or what a
        `glmbrian.population.Observations` of your own says, which has no need of `activation`.  The population
        cannot be simulated then.

    Returns
    -------
    GLMPopulation
        If the data leave weights undetermined (a source that is always silent, or
        kernels that can replace each other) it is one of the maxima.  Its attribute `fit_`
        is a `FitReport`: how close to the maximum each neuron is, and what the data do not
        determine.  The result does not depend on the number of threads.

    Raises
    ------
    ValueError, TypeError
        If shapes do not match, or values are not finite.  If the data have different steps,
        or steps other than `dt`.  If an input is too large or too small to be squared, or its
        mean is so far from 0 that rounding would hide its variation.  If the strength is
        negative, or epochs are empty, overlap, or lie outside the recording.  If series are of
        different times, or steps that count follow a gap in the times by less than the longest window,
        within an epoch.  If outputs without times have more neurons than steps.

    Warns
    -----
    RuntimeWarning
        If the likelihood has no finite maximum for some neurons (separation): a linear combination of their
        inputs predicts perfectly when there is no spike, or when there is one, for example
        after a neuron's own spike if it has a refractory period.  The kernels that grow without
        bound are named, at any `tol`; their large values mean plus or minus infinity.  A `penalty`
        keeps kernels finite, but softens a refractory period unless ``penalise_feedback=False``.
        If the inputs say next to nothing about some combinations of basis functions (a stimulus that
        varies too slowly, kernels that can replace each other), which are then set by chance;
        weights of a source that is always silent are 0, without a warning.  If a neuron never
        spikes (or always) in the steps that count: it gets a bias at the rate of half a spike, and
        weights of 0.  If `max_iter` steps were not enough, or the user interrupted the fit
        (Ctrl-C), which returns the best parameters so far.  And if a feedback kernel can form part
        of a neuron's coupling with itself, so that the split between the two is arbitrary.

    Notes
    -----
    The steps use the Fisher information, at 8 bytes times the square of the number of
    parameters, for each of the neurons that are fitted together (at most 512 MiB).  If it
    would take longer than the rest, it comes from a sample of the steps, and is corrected
    by the gradients on the way.  The gradient itself is always that of all steps.  While the fit
    runs, linear algebra is limited to one thread, and as many threads share the blocks.

    Examples
    --------
    An input spikes in every second step; a spike follows one in four of its spikes, and
    one in eight of its silences.

    >>> import numpy as np
    >>> import glmbrian as glm
    >>> x, y = np.zeros((2, 401, 1))
    >>> x[::2] = y[1::8] = y[2::16] = 1
    >>> population = glm.fit_population(y, x, glm.IndicatorBasis(1), mask=np.arange(401) > 0)
    >>> population.firing_probability([[1], [0], [1]])[1:].round(3)
    array([[0.25 ],
           [0.125]])
    """
    started = time.perf_counter()
    kind, strength = _penalty_and_strength(penalty, strength)
    tol = real(tol, "tol", 0, strict=True)
    max_iter = integer(max_iter, "max_iter")
    verbose = flag(verbose, "verbose")
    check_n_jobs(n_jobs)
    stable = flag(stable, "stable")
    task = task_of(
        outputs, inputs, kernels, feedback_basis, activation, observations, kind, strength, groups,
        penalise_feedback, mask, epochs, connect, dt,
    )  # fmt: skip
    with Workers():  # finding the libraries of linear algebra once takes long enough
        outcome = fit_task(task, tol, max_iter, n_jobs, verbose)
        found = diagnose(task, outcome)
    return fitted_population(task, outcome, found, max_iter, started, stable, max_rate)


def fitted_population(
    task: FitTask,
    outcome: Outcome,
    found: Diagnosis,
    max_iter: int,
    started: float,
    stable: bool = False,
    max_rate: ArrayLike | None = None,
) -> GLMPopulation:
    """Return a population with its report, as `fit_population` hands it out, and warn of what is wrong."""
    warn_of(found, max_iter)
    task.warn_of_silence()
    name, strength = task.penalty_name, task.penalty.strength
    parameters, rates = task.population(outcome.parameters), task.rates()
    if stable:
        parameters, rates = stabilise(parameters, task.data, max_rate)
    population = GLMPopulation.from_parameters(parameters)
    population.fitted_rates = rates
    if parameters.moved_by is None:
        population.fitted_to = task.data
    population.fit_ = FitReport(
        name, strength, found.status.tolist(), np.sqrt(np.maximum(outcome.gain, 0.0)), outcome.gradient,
        outcome.log_likelihood, outcome.n_steps, time.perf_counter() - started,
        found.unbounded, found.undetermined, found.undetermined_lags,
    )  # fmt: skip
    return population


def _penalty_and_strength(penalty, strength):
    """Return a penalty and its strength."""
    if isinstance(penalty, (str, Penalty)):
        if strength is None:
            raise TypeError(
                f"strength must be given with penalty={penalty!r}; select_strength chooses it"
            )
        return penalty_of(penalty), real(strength, "strength", 0)
    if strength is not None:
        raise TypeError('strength goes with the name of a penalty, such as penalty="ridge"')
    return penalty_of("ridge"), real(penalty, "penalty", 0)


def check_n_jobs(n_jobs: Any) -> None:
    """Raise unless `n_jobs` is what joblib takes."""
    if n_jobs is not None and (integer(n_jobs, "n_jobs", -(2**31)) == 0):
        raise ValueError("n_jobs must be a number of processes, or -1 for all cores, got 0")


def fit_task(
    task: FitTask, tol: float, max_iter: int, n_jobs: int | None = None, verbose: bool = False
) -> Outcome:
    """Return the fit of all neurons of a task.

    Parameters
    ----------
    task : FitTask
    tol : float
    max_iter : int
    n_jobs : int, optional
    verbose : bool
    """
    n_processes = joblib.effective_n_jobs(n_jobs)
    groups = _groups(task, n_processes)
    outcomes: dict[int, Outcome] = {}
    with Progress("fitting", 100, verbose, unit="%") as progress:

        def watch(done):
            progress(round(100 * done / len(groups)))

        workers = joblib.Parallel(n_jobs=n_jobs, batch_size=1, return_as="generator_unordered")
        jobs = (
            joblib.delayed(_fit_numbered)(
                number, task, group, tol, max_iter, watch if n_processes == 1 else None
            )
            for number, group in enumerate(groups)
        )
        try:
            for number, outcome in workers(jobs):
                outcomes[number] = outcome
                watch(len(outcomes))
                if "interrupted" in outcome.status:
                    break
        except KeyboardInterrupt:
            pass
    return _joined(task, groups, outcomes)


def fit_path(
    task: FitTask, strengths: NDArray[np.float64], tol: float, max_iter: int
) -> Iterator[Outcome]:
    """Yield the fit of all neurons for each strength; each begins at the one before.

    After a fit that the user interrupts, which has the best parameters so far, there are no more.
    """
    groups = _groups(task, 1)
    last: dict[int, Outcome] = {}
    for strength in strengths:
        penalised = task.with_strength(strength)
        for number, group in enumerate(groups):
            last[number] = _fit_group(penalised, group, tol, max_iter, None, last.get(number))
            if "interrupted" in last[number].status:
                yield _joined(task, groups, last, all_interrupted=True)
                return
        yield _joined(task, groups, last)


def _groups(task, n_groups):
    """Return at least so many groups of the neurons that can be fitted."""
    memory = 8.0 * task.design.n_parameters**2
    n_together = max(1, int(_MOST_INFORMATION / memory))
    n_groups = max(-(-len(task.fitted) // n_together), min(n_groups, len(task.fitted)), 1)
    return [group for group in np.array_split(task.fitted, n_groups) if len(group)]


def _fit_group(task, group, tol, max_iter, watch=None, last=None):
    start = task.start[group] if last is None else last.parameters
    information = None if last is None else last.information
    with Workers() as workers:
        return maximise(task.problem(group), start, tol, max_iter, workers, information, watch)


def _fit_numbered(number, task, group, tol, max_iter, watch):
    own_watch = None if watch is None else lambda fraction: watch(number + fraction)
    return number, replace(_fit_group(task, group, tol, max_iter, own_watch), information=None)


def _joined(task, groups, outcomes, all_interrupted=False):
    """Return the outcome of all neurons, given those of groups of the neurons with spikes."""
    n, start = task.n, task.start.copy()
    status = np.full(n, "silent", dtype="<U11")
    # Silent neurons have the same in each step, or as much as there can be.
    rows = task.observations.terms(start[:, 0], np.minimum(task.counts, 1).astype(task.design.dtype))
    whole = Outcome(
        start, status, task.design.n_rows * rows[0], *np.zeros((2, n)), np.zeros(n, dtype=np.int64),
        np.full(n, np.inf),
    )  # fmt: skip
    for number, group in enumerate(groups):
        if number not in outcomes:
            status[group] = "interrupted"
            whole.gain[group] = whole.gradient[group] = np.inf
            continue
        for each in fields(Outcome):
            if each.name != "information":
                getattr(whole, each.name)[group] = getattr(outcomes[number], each.name)
    if all_interrupted:
        status[task.fitted] = "interrupted"
    return whole
