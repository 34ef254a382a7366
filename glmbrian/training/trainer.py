"""Training of GLM neurons in the user's own Brian network: the public class.

`plan.py` holds what it is to do, `runtime.py` and `trainer_cpp.py` do it.
"""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from brian2 import Quantity
from brian2.core.base import BrianObject
from brian2.core.variables import Variables
from brian2.groups.group import Group
from numpy.typing import ArrayLike, NDArray

from ..brian.arguments import check_brian_arguments
from ..brian.internals import networks_with
from ..brian.neurons import GLMNeurons
from ..brian.synapses import GLMSynapses
from ..brian.target import current_target
from ..core.credit import Credit, get_credit
from ..core.objectives import Objective, check_start, get_objective
from ..core.optimisers import SGD, Optimizer, get_optimizer
from ..core.schedules import Schedule, get_schedule
from ..core.updates import UpdateRule
from ..support.display import Described
from ..support.validation import LARGEST_INTEGER, check_size, flag, integer, real, warn
from .checks import check_device, check_one_trainer_at_a_time, check_step_order, check_time_steps
from .divergence import warn_of_divergence
from .encoders import Alignment, check_images, encoders_of
from .examples import checked_examples
from .paths import check_hidden, check_paths, checked_neurons, checked_synapses, hidden_groups
from .plan import Plan

# Files that Network.store wrote before this module was split name these two here.
from .progress import GroupState as _GroupState  # noqa: F401
from .progress import Progress as _Progress  # noqa: F401
from .reward import checked_reward
from .runtime import RuntimeBackend
from .trainer_cpp import CppBackend


class Trainer(Described, Group):
    """Trains GLM neurons, hidden layers below them, and their synapses while a network runs.

    The run is divided into presentations of `n_steps` steps of the neurons' clock,
    counted from the first step in which the trainer runs.  At the start of each
    presentation, the neurons' filters are cleared (`GLMNeurons.clear`).  During it the
    neurons are clamped, to silence (first-to-spike rule) or to the desired spikes (rate
    rule), which are then fed back and sent to other neurons.  At its end the gradient of
    its log-likelihood is added to the batch.  After `batch_size` presentations, and after
    the last one, weights and biases move along the mean gradient of the batch.  In the
    step after the last presentation the filters are cleared once more; from then on the
    neurons are free and learn nothing, so the same network can continue.

    Presentations that `is_training` marks as False are tests: filters are cleared in the same way, but
    the neurons are free, nothing is learned, and the neurons decide.  So one run can train, test,
    train on and test again.

    Parameters
    ----------
    neurons : GLMNeurons
        The neurons to train: the whole group.
    synapses : GLMSynapses or list of GLMSynapses
        The synapses that learn, with any sources, delays and time steps.  Other synapses stay
        fixed.  Their targets are `neurons`, or other `GLMNeurons` whose spikes reach `neurons`
        through these synapses: the hidden neurons, in any number of layers, which may be
        recurrent.  A target may be a subgroup.
    n_steps : int
        Steps of a presentation.
    labels : array_like of int, shape (n_presentations,), optional
        Index of the right neuron in each presentation: the one that should spike first,
        or under the rate rule the one that should spike in every `target_period`-th step.  In a
        test, the one that `accuracy` counts as right.
    targets : array_like of 0/1, shape (n_presentations, n_steps, n), optional
        Instead of `labels` under the rate rule: the desired spikes of the n neurons.
        The first two axes may be merged into one of ``n_presentations * n_steps`` steps.
    rule : {"first-to-spike", "rate"} or Objective
        What is learned; see `glmbrian.learning.first_to_spike_log_likelihood` and
        `glmbrian.learning.rate_log_likelihood`, or `glmbrian.Objective` to define your own.
    learning_rate : float
    batch_size : int
    target_period, target_start : int
        See `labels`; under the rate rule, the first desired spike is in step `target_start`, from 1,
        by default in step `target_period`.
    learn_feedback, learn_bias : bool
        Whether the feedback weights (under the rate rule, if the neurons have any) and
        the biases learn too.
    name : str, optional
    credit : {"straight-through", "three-factor"} or Credit
        How hidden neurons learn; see `glmbrian.learning.layered_gradient`.  With "three-factor",
        they learn from `reward` or, without it, from what the gradient of the rule returns as the
        log-likelihood; each minus its running mean.
    is_training : array_like of bool, shape (n_presentations,), optional
        Which presentations are learned; the others are tests.  By default all are learned.  If all
        are tests, `labels` may be left out and `synapses` may be empty, but only hidden neurons
        to which `synapses` lead are cleared.  With `reward`, this gives the number of
        presentations.
    reward : (group, str) or callable, optional
        With ``credit="three-factor"``, what to learn from in place of labels or targets.  The outputs
        are free, and the gradient for all neurons is the reward, minus its running mean, times the
        derivative of the log-probability of their own spikes.  Give a dimensionless Brian variable
        with one value, as a group and the variable's name; it is read at the end of the last step of
        each presentation that is learned.  Or, on the runtime device, give a function that takes the
        number of the presentation and returns a number.  `rule` then only says how tests decide.
    optimizer : {"sgd", "momentum", "adam"} or Optimizer
        How the gradient of a batch changes the parameters: `SGD()`, ``SGD(momentum=0.9)``, `Adam()`, or your
        own (see `Optimizer`).  `learning_rate` is the step size of all.
    learning_rate_schedule : {"constant", "linear"} or callable
        What `learning_rate` is multiplied by in an update: 1, a line that falls to 0, or a function of the
        fraction of training that is done, which is the number of presentations learned before the last of the
        batch, divided by the number of all that are learned.
    average : float
        From 0 to 1: the fraction of the updates, the last ones, over which the parameters are averaged.  After
        the last presentation that is learned, the weights and biases are set to their mean after each of these
        updates (their number is rounded up).  0 keeps those of the last update.
    weight_decay : float
        After each update, synaptic and feedback weights, but not biases, are multiplied by
        ``exp(-weight_decay * rate)``, where the rate is `learning_rate` as scheduled.
    clip_norm : float, optional
        The largest norm of the mean gradient of a batch, over all parameters that learn, biases included; longer
        ones are shortened to it.

    Attributes
    ----------
    decisions : ndarray of int, shape (n_presentations,)
        Index of the neuron that each test decided for, as `rule` says: by default the first to
        spike, and under the rate rule the one with the most spikes.  Potentials break ties.  -1 if
        no neuron spiked, for presentations that learn, and for those to come.
    decision_steps : ndarray of int, shape (n_presentations,)
        Step of the decision within its presentation, from 1: under the first-to-spike rule that of
        the first spike, otherwise, or without a spike, the last.  0 for presentations that learn,
        and for those to come.
    duration : Quantity
        How long all presentations take.
    log_likelihoods : ndarray of float, shape (n_presentations,)
        For each presentation, before it was learned; NaN for tests, for those to come, and with
        `reward`.
    rewards : ndarray of float, shape (n_presentations,)
        With `reward`, the reward of each presentation; NaN for tests, for those to come, and
        without `reward`.
    n_presentations : int
    is_training : ndarray of bool, shape (n_presentations,)
    learning_rate : float
        You may change it between runs.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type, out of range, or does not fit the others; during a run
        on the runtime device, if a reward is not a finite number.  (A C++ standalone program then
        ends with an error.)
    NotImplementedError
        On a device other than runtime and C++ standalone.

    Warns
    -----
    RuntimeWarning
        If training seems to diverge, as in `GLMClassifier.fit`: when it is over, or if a compiled
        program trained, when its results are first read.

    Notes
    -----
    Presentations may span several runs.  Weights are stored in the synapses, so you may
    set them between runs.  ``Network.restore`` also restores training: the weights, the
    number of the presentation, the batch, what the optimiser and the mean remember, and the decisions.  To restart a source in each
    presentation, set its own variables.  The trainer controls the neurons' `clamp` until training is
    over, and then sets it to 0.  Hidden neurons stay free; their filters are cleared too, and
    their biases and feedback weights learn.  Errors reach them only through the synapses that
    learn.  Each hidden neuron needs input, and kernels of at most `n_steps` lags.  Neurons have one
    trainer at a time; several may follow one another.

    Tests do not count in a batch: a batch that is not full when a test begins continues after it.  A
    test lasts `n_steps` steps, even if it decides early.

    The running mean of the reward is over earlier presentations, so the first changes nothing.

    A spike counts in the step of the neurons in which it arrives, whatever the time step
    of its source: if an integrate-and-fire group is simulated in steps of 0.1 ms and the
    neurons in steps of 1 ms, spikes of ten steps add up.

    Examples
    --------
    Two of three inputs are active in every other presentation:

    >>> import numpy as np, glmbrian as glm
    >>> from brian2 import Network, ms, prefs
    >>> prefs.codegen.target = "numpy"
    >>> labels = np.tile([0, 1], 100)
    >>> images = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]])[labels]
    >>> encoder = glm.RateEncoder(images, n_steps=5, random_state=1, dt=1 * ms)
    >>> neurons = glm.GLMNeurons(2, glm.RaisedCosineBasis(2, 4), dt=1 * ms)
    >>> neurons.bias = -2
    >>> synapses = glm.GLMSynapses(encoder, neurons)
    >>> trainer = glm.Trainer(neurons, synapses, n_steps=5, labels=labels, learning_rate=0.1)
    >>> Network(encoder, neurons, synapses, trainer).run(trainer.duration)
    >>> first, last = trainer.log_likelihoods[:20].mean(), trainer.log_likelihoods[-20:].mean()
    >>> bool(last > first + 0.2)
    True
    >>> synapses.w[[0, 2]].sum(axis=-1).argmax(axis=1)
    array([0, 1])

    The same, with the last 20 presentations as tests:

    >>> encoder = glm.RateEncoder(images, n_steps=5, random_state=1, dt=1 * ms)
    >>> neurons = glm.GLMNeurons(2, glm.RaisedCosineBasis(2, 4), random_state=1, dt=1 * ms)
    >>> neurons.bias = -2
    >>> synapses = glm.GLMSynapses(encoder, neurons)
    >>> trainer = glm.Trainer(neurons, synapses, n_steps=5, labels=labels, learning_rate=0.1,
    ...                       is_training=np.arange(200) < 180)
    >>> Network(encoder, neurons, synapses, trainer).run(trainer.duration)
    >>> trainer.accuracy() > 0.6
    True
    """

    add_to_magic_network = True

    def __init__(
        self,
        neurons: GLMNeurons,
        synapses: GLMSynapses | Iterable[GLMSynapses],
        n_steps: int,
        labels: ArrayLike | None = None,
        targets: ArrayLike | None = None,
        rule: str | Objective = "first-to-spike",
        learning_rate: float = 1e-2,
        batch_size: int = 1,
        target_period: int = 4,
        learn_feedback: bool = True,
        learn_bias: bool = True,
        name: str = "trainer*",
        credit: str | Credit = "straight-through",
        is_training: ArrayLike | None = None,
        reward: tuple[Any, str] | Callable[[int], float] | None = None,
        target_start: int | None = None,
        optimizer: str | Optimizer = "sgd",
        learning_rate_schedule: str | Schedule | Callable[[float], float] = "constant",
        average: float = 0.0,
        weight_decay: float = 0.0,
        clip_norm: float | None = None,
        learning: ArrayLike | None = None,
    ) -> None:
        is_training = _under_its_name(is_training, learning)
        neurons, synapses = checked_neurons(neurons), checked_synapses(synapses)
        credit = get_credit(credit)
        n_steps = integer(n_steps, "n_steps", 1, LARGEST_INTEGER)
        learning_rate = real(learning_rate, "learning_rate", 0, strict=True)
        reward_read = checked_reward(reward, credit, labels, targets, is_training)
        objective = _checked_objective(rule, target_period, target_start, n_steps)
        plan = Plan(
            groups=[neurons, *hidden_groups(synapses, neurons)],
            synapses=synapses,
            examples=checked_examples(
                labels, targets, is_training, objective, n_steps, len(neurons), reward_read is not None
            ),
            n_steps=n_steps,
            batch_size=integer(batch_size, "batch_size", 1, LARGEST_INTEGER),
            objective=objective,
            credit=credit,
            reward=reward_read,
            learn_bias=flag(learn_bias, "learn_bias"),
            learn_feedback=flag(learn_feedback, "learn_feedback"),
            rule=_checked_rule(optimizer, learning_rate_schedule, weight_decay, clip_norm),
            average=real(average, "average", 0, 1),
        )
        check_brian_arguments(name=name)
        n_potentials = n_steps * sum(map(len, plan.groups))
        check_size(n_potentials, "n_steps: potentials of a presentation", "take fewer steps")
        check_hidden(plan)
        check_device(current_target(), plan)
        for encoder in encoders_of(synapses):
            check_images(encoder, n_steps, plan.n_presentations)
        plan = plan.with_weights()
        BrianObject.__init__(self, clock=neurons.clock, name=name)
        self.target_period, self.target_start = target_period, target_start
        self._plan = plan
        self._create(learning_rate)

    def _create(self, learning_rate):
        """Add what users see of the plan, and what Brian needs to simulate the trainer."""
        plan = self._plan
        self.neurons, self.groups, self.synapses = plan.outputs, plan.groups, plan.synapses
        self.objective, self.credit, self.reward = plan.objective, plan.credit, plan.reward
        self.n_steps, self.n_presentations = plan.n_steps, plan.n_presentations
        self.batch_size, self.learn_bias = plan.batch_size, plan.learn_bias
        self.is_training = plan.is_training
        for part in [*plan.groups, *plan.synapses]:
            self.add_dependency(part)
        self.variables = Variables(self)
        self.variables.add_constant("N", 1)
        for name in ("labels", "targets"):
            values = getattr(plan.examples, name)
            if values is not None:
                self._add_array(f"_{name}", values)
        # Brian's C++ code for a single NaN does not compile, so there is one more than needed.
        self._add_array("_values", np.full(plan.n_presentations + 1, np.nan))
        if plan.tests.n:
            self._add_array("_tests", plan.tests.numbers)
            self._add_array("_outcomes", np.zeros((plan.tests.n, plan.tests.n_values)))
        self._is_judged = False
        self._alignment = Alignment(self, plan)
        backend = RuntimeBackend if current_target().runs_at_once else CppBackend
        self._backend: Any = backend(plan, self, learning_rate)
        self._enable_group_attributes()
        if plan.reward is not None:
            plan.reward.add_to(self)
        self._backend.add_operations(self)

    def _add_array(self, name, values):
        self.variables.add_array(name, size=values.size, dtype=values.dtype, values=values.ravel())

    @property
    def rule(self) -> str:
        """Name of the objective."""
        return self.objective.name

    @property
    def duration(self) -> Quantity:
        """How long all presentations take."""
        return self.n_presentations * self.n_steps * self.neurons.clock.dt

    @property
    def learning(self) -> NDArray[np.bool_]:
        """The former name of `is_training`."""
        warn("learning is now called is_training", DeprecationWarning)
        return self.is_training

    @property
    def learning_rate(self) -> float:
        """Step size along the gradient."""
        return self._backend.learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._backend.learning_rate = real(value, "learning_rate", 0, strict=True)

    @property
    def uses_credit(self) -> bool:
        """Whether any neurons learn by `credit`: hidden ones and, with `reward`, the outputs."""
        return self._plan.uses_credit

    @property
    def last_learning(self) -> int:
        """Number of the last presentation that learns."""
        return self._plan.last_learning

    def examples_learned(
        self, most: int
    ) -> tuple[np.ndarray, NDArray[np.int64] | None, NDArray[np.int64]]:
        """Return desired spikes that are learned, their labels, and how often each occurs.

        Parameters
        ----------
        most : int
            Of `targets`, at most about so many.

        Returns
        -------
        desired : ndarray, shape (n_examples, n_steps, n)
        labels : ndarray of int, shape (n_examples,), or None
        counts : ndarray of int, shape (n_examples,)

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
        >>> trainer = glm.Trainer(neurons, [], n_steps=3, labels=[0, 1, 0], rule="rate", target_period=3)
        >>> desired, labels, counts = trainer.examples_learned(most=10)
        >>> desired[1].T.tolist(), labels.tolist(), counts.tolist()
        ([[0, 0, 0], [0, 0, 1]], [0, 1], [2, 1])
        """
        return self._plan.examples_learned(most)

    @property
    def steps_done(self) -> int:
        """Steps of training made so far, or planned so far for a standalone program."""
        return self._backend.steps_done

    @property
    def is_over(self) -> bool:
        """Whether all presentations are done, or planned for a standalone program."""
        return self.steps_done == self.n_presentations * self.n_steps

    @property
    def log_likelihoods(self) -> NDArray[np.float64]:
        """Log-likelihood of each presentation before it was learned.

        NaN for tests, for presentations to come, and with `reward`.
        """
        return self._values_if(self.reward is None)

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Reward of each presentation that was learned.

        NaN for tests, for presentations to come, and without `reward`.
        """
        return self._values_if(self.reward is not None)

    def _values_if(self, are_wanted):
        if not are_wanted:
            return np.full(self.n_presentations, np.nan)
        self._judge()
        return self._values_so_far()

    def _values_so_far(self):
        return self.variables["_values"].get_value()[: self.n_presentations].copy()

    @property
    def decisions(self) -> NDArray[np.int_]:
        """Index of the neuron that each test decided for; see the class."""
        return self._decided()[0]

    @property
    def decision_steps(self) -> NDArray[np.int_]:
        """Step of each test's decision, from 1; see the class."""
        return self._decided()[1]

    def _decided(self):
        self._judge()
        tests = self._plan.tests
        return tests.decided(self.variables["_outcomes"].get_value() if tests.n else [])

    def _judge(self):
        """Warn once if training is over and has diverged.

        Values that a compiled program has learned are known when they are first read.
        """
        if self._plan.learns and not self._is_judged and self.is_over:
            self._is_judged = True
            warn_of_divergence(self._plan, self.learning_rate, self.name, self._values_so_far())

    def accuracy(self, presentations: ArrayLike | slice | None = None) -> float:
        """Return the fraction of tests that decided for their label.

        Parameters
        ----------
        presentations : slice or array_like, optional
            Which presentations to count, by index or as a boolean mask; all by default.  Those
            that learn, and tests to come, never count.

        Returns
        -------
        float
            Tests without a decision count as wrong.  NaN if none of these tests has been made.

        Raises
        ------
        ValueError
            If the trainer has no labels.
        IndexError
            If `presentations` is not a valid index of the presentations.

        Examples
        --------
        Only neuron 0 ever spikes:

        >>> import glmbrian as glm
        >>> from brian2 import Network, ms
        >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2), dt=1 * ms)
        >>> neurons.bias = [100, -100]
        >>> tester = glm.Trainer(neurons, [], n_steps=3, labels=[0, 1, 0, 0],
        ...                      is_training=[False] * 4)
        >>> Network(neurons, tester).run(tester.duration)
        >>> tester.accuracy(), tester.accuracy(slice(2, None))
        (0.75, 1.0)
        """
        labels = self._plan.examples.labels
        if labels is None:
            raise ValueError(
                f"accuracy needs labels, but {self.name} was created without: give them to Trainer, "
                f"or compare {self.name}.decisions with your own"
            )
        decisions, steps = self._decided()
        counted = np.zeros(self.n_presentations, dtype=bool)
        counted[slice(None) if presentations is None else presentations] = True  # type: ignore[index]
        counted &= steps > 0
        if not counted.any():
            return float("nan")
        return float(np.mean((decisions == labels)[counted]))

    def _title(self):
        return f"{type(self).__name__} {self.name!r} of {self.neurons.name!r}"

    def _description(self):
        plan, done = self._plan, "done" if self._backend.runs_at_once else "planned"
        return {
            "rule": self.rule,
            "synapses": ", ".join(repr(learner.name) for learner in plan.synapses) or "none",
            **({} if plan.rule.optimizer == SGD() else {"optimizer": plan.rule.optimizer.name}),
            "learning_rate": self.learning_rate,
            "batch_size": plan.batch_size,
            "n_steps": plan.n_steps,
            "n_presentations": f"{plan.n_presentations} ({self.steps_done // plan.n_steps} {done})",
            **({"tests": plan.tests.n} if plan.tests.n else {}),
        }

    # ------------------------------------------------------------- what Brian calls

    def before_run(self, run_namespace: Any) -> None:
        super().before_run(run_namespace)
        if self.is_over:
            return
        objects = [part for network in networks_with(self) for part in network.sorted_objects]
        others = [part for part in objects if isinstance(part, Trainer) and part is not self]
        check_one_trainer_at_a_time(self, [other for other in others if other.active])
        check_time_steps(self, self._plan)
        if self._plan.learns:
            check_paths(self._plan, objects)
        check_step_order(self, self._plan)
        self._alignment.check(objects, self.steps_done)

    def after_run(self) -> None:
        super().after_run()
        self._backend.after_run()
        if self._backend.runs_at_once:
            self._judge()

    def _full_state(self):
        return super()._full_state(), self._backend.state()

    def _restore_from_full_state(self, state):
        variables, progress = state
        super()._restore_from_full_state(variables)
        self._backend.restore(progress)


def _checked_objective(rule, target_period, target_start, n_steps):
    """Return the `Objective` of these arguments of a `Trainer`."""
    period = integer(target_period, "target_period", 1, LARGEST_INTEGER)
    if target_start is not None:
        integer(target_start, "target_start", 1, LARGEST_INTEGER)
    objective = get_objective(rule, period, "rule", target_start)
    check_start(objective, n_steps)
    return objective


def _checked_rule(optimizer, schedule, weight_decay, clip_norm):
    """Return the `UpdateRule` of these arguments of a `Trainer`."""
    return UpdateRule(
        get_optimizer(optimizer),
        get_schedule(schedule),
        real(weight_decay, "weight_decay", 0),
        None if clip_norm is None else real(clip_norm, "clip_norm", 0, strict=True),
    )


def _under_its_name(is_training, learning):
    """Return which of the two is given; `learning` is the name that `is_training` had."""
    if learning is None:
        return is_training
    warn("the argument learning of Trainer is now called is_training", DeprecationWarning)
    if is_training is not None:
        raise TypeError("is_training and learning are the same argument: leave out learning")
    return learning
