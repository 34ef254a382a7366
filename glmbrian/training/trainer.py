"""Training of GLM neurons in the user's own Brian network.

This is the plain form: NumPy between the time steps of the runtime device.  In
generated C++ programs, `trainer_cpp.py` and `native/trainer.hpp` replace it.
"""

import copy
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from brian2 import NetworkOperation, NeuronGroup, Quantity, Subgroup, Synapses
from brian2.core.base import BrianObject
from brian2.core.variables import Variables
from brian2.groups.group import Group
from numpy.typing import ArrayLike, NDArray

from ..brian.arguments import check_brian_arguments
from ..brian.encoder import RateEncoder
from ..brian.internals import (
    delay_steps,
    delayed_arrivals,
    finds_events,
    networks_with,
    planned_steps,
    spike_array,
)
from ..brian.neurons import GLMNeurons, feedback_weight_names
from ..brian.step_order import step_orders
from ..brian.subgroups import whole_group
from ..brian.synapses import GLMSynapses
from ..brian.target import current_target
from ..core.bases import Basis
from ..core.credit import Baseline, Credit, get_credit
from ..core.likelihoods import correlated
from ..core.objectives import Objective, check_start, get_objective
from ..support.display import Described
from ..support.floating_point import underflow_is_zero
from ..support.validation import (
    LARGEST_INTEGER,
    binary_array,
    check_size,
    finite_array,
    flag,
    integer,
    plain_array,
    real,
    warn,
)
from . import trainer_cpp as training_cpp
from .divergence import warn_of_divergence
from .errors import errors_of
from .paths import check_input_arrives
from .reward import END_ORDER, get_reward
from .testing import TestPresentations

#: Neurons that have, or had, a trainer.
_with_trainer: weakref.WeakSet[GLMNeurons] = weakref.WeakSet()


_CLAMP_IS_SET = (
    "a trainer sets it in each step to the desired spikes, so what is written to it would be lost. Leave clamp to "
    "the trainer, or set it after training"
)


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

    Presentations that `learning` marks as False are tests: filters are cleared in the same way, but
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
    learning : array_like of bool, shape (n_presentations,), optional
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
    number of the presentation, the batch and the decisions.  To restart a source in each
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
    ...                       learning=np.arange(200) < 180)
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
        learning: ArrayLike | None = None,
        reward: tuple[Any, str] | Callable[[int], float] | None = None,
        target_start: int | None = None,
    ) -> None:
        if not isinstance(neurons, GLMNeurons):
            raise TypeError(
                f"neurons must be GLMNeurons, not a subgroup, got {neurons!r}{_other_neurons(neurons)}"
            )
        self.neurons = neurons
        self.synapses = _checked_synapses(synapses)
        self.credit = get_credit(credit)
        self.n_steps = integer(n_steps, "n_steps", 1, LARGEST_INTEGER)
        self.learning_rate = real(learning_rate, "learning_rate", 0, strict=True)
        self.batch_size = integer(batch_size, "batch_size", 1, LARGEST_INTEGER)
        self.target_period = integer(target_period, "target_period", 1, LARGEST_INTEGER)
        if target_start is not None:
            integer(target_start, "target_start", 1, LARGEST_INTEGER)
        self.target_start = target_start
        self.objective = get_objective(rule, self.target_period, "rule", target_start)
        check_start(self.objective, self.n_steps)
        self.learn_bias = flag(learn_bias, "learn_bias")
        learn_feedback = flag(learn_feedback, "learn_feedback")
        self.reward = self._checked_reward(reward, labels, targets, learning)
        examples = self._checked_examples(labels, targets, learning)
        self.learns = bool(self.learning.any())
        self.clamps_outputs = self.learns and self.objective.clamps_outputs and self.reward is None
        self.tests = TestPresentations(self.learning, len(neurons), self.objective)
        check_brian_arguments(name=name)
        self.groups = [neurons, *_hidden_groups(self.synapses, neurons)]
        n_potentials = self.n_steps * sum(map(len, self.groups))
        check_size(n_potentials, "n_steps: potentials of a presentation", "take fewer steps")
        self._check_hidden()
        self._check_device()
        self._encoders = [source for source in map(_source, self.synapses) if _has_images(source)]
        for encoder in self._encoders:
            self._check_images(encoder)

        BrianObject.__init__(self, clock=neurons.clock, name=name)
        self.learned = []
        for group in self.groups:
            self.add_dependency(group)
        for learner in self.synapses:
            self.add_dependency(learner)
            if self.learns:
                self.learned.append(_Learned.of_synapses(learner, self.groups))
        for number, group in enumerate(self.groups):
            is_used = number > 0 or self.objective.learns_feedback or self.reward is not None
            if self.learns and is_used and learn_feedback and group.feedback_basis is not None:
                self.learned.append(_Learned.of_feedback(group, number))
        self.variables = Variables(self)
        self.variables.add_constant("N", 1)
        if examples is not None:
            self._add_array("_labels" if self.has_labels else "_targets", examples)
        # Brian's C++ code for a single NaN does not compile, so there is one more than needed.
        self._add_array("_values", np.full(self.n_presentations + 1, np.nan))
        if self.tests.n:
            self._add_array("_tests", self.tests.numbers)
            self._add_array("_outcomes", np.zeros((self.tests.n, self.tests.n_values)))
        self._progress = _Progress.at_start(self)
        self._steps_planned = 0
        self._is_judged = False
        self._leads: dict[str, int] = {}  # how many steps each encoder is ahead
        self._is_first = neurons not in _with_trainer
        _with_trainer.update(self.groups)
        if current_target().runs_at_once:
            self._add_operations()
        else:
            self.variables.add_array("done", size=1, dtype=np.int32)
        self._enable_group_attributes()
        if self.reward is not None:
            self.reward.add_to(self)
        if not current_target().runs_at_once:
            training_cpp.add_operations(self)

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
        rows = self.variables["_outcomes"].get_value() if self.tests.n else []
        return self.tests.decided(rows)

    def _judge(self):
        """Warn once if training is over and has diverged.

        Values that a compiled program has learned are known when they are first read.
        """
        if self.learns and not self._is_judged and self.is_over:
            self._is_judged = True
            warn_of_divergence(self, self._values_so_far())

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
        n = len(self.neurons)
        if self.has_labels:
            learned = self.variables["_labels"].get_value()[self.learning]
            labels, counts = np.unique(learned, return_counts=True)
            desired = [self.objective.desired(int(label), self.n_steps, n) for label in labels]
            return np.stack(desired), labels, counts
        targets = self.variables["_targets"].get_value().reshape(-1, self.n_steps, n)[self.learning]
        some = targets[:: -(-len(targets) // most)]
        return some, None, np.ones(len(some), dtype=int)

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
        >>> tester = glm.Trainer(neurons, [], n_steps=3, labels=[0, 1, 0, 0], learning=[False] * 4)
        >>> Network(neurons, tester).run(tester.duration)
        >>> tester.accuracy(), tester.accuracy(slice(2, None))
        (0.75, 1.0)
        """
        if not self.has_labels:
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
        return float(np.mean((decisions == self.variables["_labels"].get_value())[counted]))

    @property
    def learning_rate(self) -> float:
        """Step size along the gradient."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self._learning_rate = real(value, "learning_rate", 0, strict=True)

    @property
    def steps_done(self) -> int:
        """Steps of training made so far, or planned so far for a standalone program."""
        if current_target().runs_at_once:
            return self._progress.presentation * self.n_steps + self._progress.step + 1
        return min(self._steps_planned, self.n_presentations * self.n_steps)

    @property
    def uses_credit(self) -> bool:
        """Whether any neurons learn by `credit`: hidden ones and, with `reward`, the outputs."""
        return len(self.groups) > 1 or self.reward is not None

    @property
    def last_learning(self) -> int:
        """Number of the last presentation that learns."""
        return int(np.flatnonzero(self.learning)[-1])

    @property
    def is_over(self) -> bool:
        """Whether all presentations are done, or planned for a standalone program."""
        return self.steps_done == self.n_presentations * self.n_steps

    def _title(self):
        return f"{type(self).__name__} {self.name!r} of {self.neurons.name!r}"

    def _description(self):
        learning = ", ".join(repr(learner.name) for learner in self.synapses)
        done = "planned" if not current_target().runs_at_once else "done"
        tests = {"tests": self.tests.n} if self.tests.n else {}
        return {
            "rule": self.objective.name,
            "synapses": learning or "none",
            "learning_rate": self.learning_rate,
            "batch_size": self.batch_size,
            "n_steps": self.n_steps,
            "n_presentations": f"{self.n_presentations} ({self.steps_done // self.n_steps} {done})",
            **tests,
        }

    # ------------------------------------------------- checks of other objects in the network

    def before_run(self, run_namespace: Any) -> None:
        super().before_run(run_namespace)
        if self.is_over:
            return
        objects = [part for network in networks_with(self) for part in network.sorted_objects]
        for other in objects:
            if isinstance(other, Trainer) and other is not self and other.active:
                shared = [group for group in self.groups if any(group is one for one in other.groups)]
                if shared and not other.is_over:
                    raise ValueError(
                        f"{shared[0].name} has two trainers at once, {self.name} and {other.name}: "
                        "remove one from the network until the other is done"
                    )
        for group in self.groups[1:]:
            if group.clock.dt != self.clock.dt:
                raise ValueError(
                    f"dt is {group.clock.dt} for the hidden neurons {group.name} and "
                    f"{self.clock.dt} for {self.name}: use the same dt for both"
                )
        if self.learns:
            self._check_paths(objects)
        self._check_step_order()
        for encoder in self._encoders:
            self._check_encoder(encoder)
        for encoder in _encoders_before(self.neurons, objects):
            if not any(encoder is learned_from for learned_from in self._encoders):
                try:
                    self._check_images(encoder)
                    self._check_encoder(encoder)
                except ValueError as error:
                    warn(str(error))

    def after_run(self) -> None:
        super().after_run()
        if current_target().runs_at_once:
            self._judge()
        else:
            self._steps_planned += planned_steps(self.clock)

    def _check_images(self, encoder):
        """Raise unless an encoder has enough images for the presentations."""
        advice = (
            f"create RateEncoder(images, n_steps={self.n_steps}) with one image per presentation; "
            "repeat images that are shown again"
        )
        if self.n_steps % encoder.n_steps:
            raise ValueError(
                f"n_steps is {self.n_steps} for the trainer, but {encoder.name} shows an image for "
                f"{encoder.n_steps} steps: {advice}"
            )
        needed = self.n_presentations * self.n_steps // encoder.n_steps
        if encoder.n_images < needed:
            raise ValueError(
                f"{self.n_presentations} presentations need {needed} images, but {encoder.name} has "
                f"{encoder.n_images}: {advice}"
            )

    def _check_encoder(self, encoder):
        """Raise if presentations would get the wrong images in the next run."""
        advice = (
            f"use the same dt for both, start both in the same run, and keep both in all runs until "
            f"{self.name} is done; let other parts settle before you add the two to the network"
        )
        if not encoder.active:
            raise ValueError(f"{encoder.name} is not active, but {self.name} is: {advice}")
        if encoder.clock.dt != self.clock.dt:
            raise ValueError(
                f"dt is {encoder.clock.dt} for {encoder.name} and {self.clock.dt} for {self.name}: {advice}"
            )
        lead = encoder.steps_done - self.steps_done
        if self.steps_done == 0 and not self._is_first and lead % encoder.n_steps == 0:
            # Images continue after those of another trainer, or of a test that followed it.
            self._leads[encoder.name] = lead
        if lead != self._leads.get(encoder.name, 0):
            raise ValueError(
                f"the images of {encoder.name} would be shifted against the presentations of "
                f"{self.name}: the encoder has made {encoder.steps_done} steps, the trainer "
                f"{self.steps_done}; {advice}"
            )

    def _checked_reward(self, reward, labels, targets, learning):
        reward = get_reward(reward)
        if reward is None:
            return None
        if not self.credit.takes_reward:
            raise ValueError(
                f"reward needs credit='three-factor', got credit={self.credit.name!r}, which learns from "
                "derivatives"
            )
        for name, given in (("labels", labels), ("targets", targets)):
            if given is not None:
                raise ValueError(f"reward takes the place of {name}: leave out one of the two")
        if learning is None:
            raise ValueError(
                "learning must be given with reward, to tell the number of presentations: to learn "
                "from 200, write learning=np.ones(200, bool)"
            )
        if not (reward.is_variable or current_target().runs_at_once):
            raise ValueError(
                "reward must be (group, 'variable') in a compiled program, which cannot call a Python "
                "function; compute it with Brian equations or synapses, or use the runtime device"
            )
        return reward

    def _checked_examples(self, labels, targets, learning):
        """Set `learning`; return the labels, or the targets in the shape (n_presentations, n_steps, n).

        Return None if there are neither: all presentations are tests, or there is a reward.
        """
        self.has_labels = labels is not None
        if learning is not None:
            learning = binary_array(learning, "learning", ("n_presentations",)).astype(bool)
            if learning.size == 0:
                raise ValueError(
                    "learning must hold one truth value for each presentation, but is empty"
                )
            if labels is targets is None and (self.reward or not learning.any()):
                self.learning, self.n_presentations = learning, len(learning)
                return None
        examples = self._checked_desired(labels, targets)
        self.n_presentations = len(examples)
        self.learning = np.ones(self.n_presentations, dtype=bool) if learning is None else learning
        if len(self.learning) != self.n_presentations:
            n, given = self.n_presentations, "labels" if self.has_labels else "targets"
            raise ValueError(
                f"learning must hold one truth value for each of the {n} presentations in {given}, got "
                f"{len(self.learning)}; to learn the first 100 and test the others, write "
                f"np.arange({n}) < 100"
            )
        return examples

    def _checked_desired(self, labels, targets):
        """Return the labels, or the targets in the shape (n_presentations, n_steps, n)."""
        n = len(self.neurons)
        needs_labels, name = self.objective.needs_labels, self.objective.name
        if needs_labels and targets is not None:
            raise ValueError(f"targets go with rule='rate'; rule={name!r} takes labels")
        if (labels is None) == (targets is None):
            allowed = "labels" if needs_labels else "either labels or targets"
            raise ValueError(
                f"{allowed} must be given with rule={name!r}, unless all presentations are tests "
                "(learning=np.zeros(n_presentations, bool))"
            )
        if self.has_labels:
            if plain_array(labels, "labels").dtype == bool:
                raise TypeError("labels must be indices of neurons, got truth values")
            array = finite_array(labels, "labels", ("n_presentations",))
            if array.size == 0 or np.any((array != np.round(array)) | (array < 0) | (array >= n)):
                raise ValueError(
                    f"labels must be at least one integer, each from 0 to {n - 1} (the index of "
                    f"a neuron), got {labels!r}"
                )
            return array.astype(np.int32)
        array = binary_array(targets, "targets")
        if array.ndim == 2 and array.shape[0] % self.n_steps == 0:
            array = array.reshape(-1, self.n_steps, array.shape[1])
        if array.ndim != 3 or array.shape[1:] != (self.n_steps, n) or array.size == 0:
            raise ValueError(
                f"targets must have the shape (n_presentations, n_steps, n) or "
                f"(n_presentations * n_steps, n) with n_steps={self.n_steps} and n={n} neurons, got "
                f"{np.shape(targets)}"
            )
        return array.astype(bool)

    def _check_hidden(self):
        hidden = self.groups[1:]
        if hidden and self.credit.simulates:
            raise ValueError(
                f"credit must not simulate the network again in a Trainer, as {self.credit.name!r} "
                "does; use 'straight-through' or 'three-factor'"
            )
        if not self.learns:
            return
        for learner in self.synapses:
            self._check_source(learner)
            target = whole_group(learner.target)
            if target.id != self.neurons.id:
                self._check_window(learner.basis, f"kernel {learner.kernel!r}", target)
        for group in hidden:
            if group.feedback_basis is not None:
                self._check_window(group.feedback_basis, "feedback kernel", group)

    def _check_source(self, synapses):
        """Raise a ValueError if synapses lead from clamped outputs to hidden neurons."""
        source, target = _source(synapses), whole_group(synapses.target)
        hidden = [group.id for group in self.groups[1:]]
        if self.clamps_outputs and source.id == self.neurons.id and target.id in hidden:
            raise ValueError(
                f"synapses: {synapses.name} sends spikes of {source.name} to the hidden neurons "
                f"{target.name}, but in training rule={self.objective.name!r} clamps "
                f"{source.name}, so in a test the hidden neurons would receive other spikes; leave "
                f"{synapses.name} out, or use a rule that leaves the outputs free"
            )

    def _check_window(self, basis, kernel, group):
        """Raise a ValueError if a basis of hidden neurons is longer than a presentation."""
        if basis.window > self.n_steps:
            raise ValueError(
                f"n_steps is {self.n_steps}, but the {kernel} of the hidden neurons {group.name} has "
                f"{basis.window} lags, the later of which have no effect; use a basis of at most "
                f"{self.n_steps} lags, or longer presentations"
            )

    def _check_paths(self, objects):
        """Raise a ValueError if hidden neurons get no input, or spikes of clamped outputs."""
        others = [
            part
            for part in objects
            if isinstance(part, Synapses)
            and part.active
            and not any(part is learner for learner in self.synapses)
        ]
        for synapses in others:
            self._check_source(synapses)
        check_input_arrives(self.groups, self.learned, others)

    def _check_step_order(self):
        """Raise a ValueError if a step would not begin and end with what the trainer does then."""
        begins = [part for part in self.contained_objects if part.when == "start"]
        ends = [part for part in self.contained_objects if part.when == "end"]
        ends.sort(key=lambda part: part.order)
        for order in step_orders(self):
            for group in self.groups:
                update, threshold = group.state_updater, group.thresholder["spike"]
                order.require(*begins, update, threshold, group.resetter["spike"], *ends)
            for pathway in (learned.pathway for learned in self.learned if learned.pathway is not None):
                update = whole_group(pathway.target).state_updater
                order.require(update, pathway, *ends)
                order.require(finds_events(pathway.source, pathway.event), pathway)
            if self.clamps_outputs:
                threshold = self.neurons.thresholder["spike"]
                order.refuse_lost(self.neurons, "clamp", begins[0], threshold, _CLAMP_IS_SET)

    def _check_device(self):
        target = current_target()
        if not target.can_train:
            raise NotImplementedError(
                "Trainer runs on the devices 'runtime' and 'cpp_standalone' only; use one of them, "
                "or GLMClassifier(device='genn'), which trains its own network on GeNN"
            )
        if target.runs_at_once or not self.learns:
            return
        parts = [("activation", group.activation) for group in self.groups]
        if self.reward is None:
            parts.append(("rule", self.objective))
        if self.uses_credit:
            parts.append(("credit", self.credit))
        for name, part in parts:
            if not part.cpp:
                raise ValueError(
                    f"{name} {part.name!r} has no C++ form ({type(part).__name__}.cpp), so "
                    "Trainer needs the runtime device"
                )

    # ------------------------------------------------------- the runtime device

    def _add_operations(self):
        add = self.contained_objects.append
        name = self.name
        add(NetworkOperation(self._begin_step, clock=self.clock, when="start", name=f"{name}_begin"))
        for number, learned in enumerate(self.learned):
            if learned.pathway is not None:
                add(_Recorder(self, number, name=f"{name}_record_{number}"))
        add(
            NetworkOperation(
                self._end_step, clock=self.clock, when="end", order=END_ORDER, name=f"{name}_end"
            )
        )

    def _begin_step(self):
        now = self._progress
        if now.is_over:
            return
        now.is_over = now.presentation == self.n_presentations
        if not now.is_over:
            now.step += 1
        if now.is_over or now.step == 0:
            for group in self.groups:
                group.clear()
        if now.is_over:
            return
        if not self.learning[now.presentation]:
            if now.step == 0:
                self._clamp()[:] = 0
            return
        outputs = now.groups[0].spikes
        if not self.clamps_outputs:
            return
        if now.step == 0:
            outputs[:] = self._desired()
        desired = outputs[now.step]
        self._clamp()[:] = np.where(desired, 1, -1)
        self._record_feedback(0, np.flatnonzero(desired))

    def _desired(self):
        """Return the desired spikes of this presentation, shape (n_steps, n)."""
        if not self.has_labels:
            return self._example("_targets").reshape(self.n_steps, len(self.neurons))
        return self.objective.desired(self._label(), self.n_steps, len(self.neurons))

    def _label(self):
        return int(self._example("_labels")[0]) if self.has_labels else None

    def _example(self, name):
        examples = self.variables[name].get_value().reshape(self.n_presentations, -1)
        return examples[self._progress.presentation]

    def _clamp(self):
        return self.neurons.variables["clamp"].get_value()

    def _record_feedback(self, group, spikes):
        for number, learned in enumerate(self.learned):
            if learned.pathway is None and learned.group == group:
                self._record(number, spikes)

    def _record(self, number, synapses):
        """Record the `synapses` where a spike arrives in this step, unless this is a test.

        A spike that arrives in the last step has no effect in this presentation.
        """
        now = self._progress
        is_counted = 0 <= now.step < self.n_steps - 1 and self.learning[now.presentation]
        if is_counted and len(synapses):
            now.arrivals[number].append((now.step, synapses))

    def _end_step(self):
        now = self._progress
        if now.step < 0:
            return
        is_test = not self.learning[now.presentation]
        for number, (group, state) in enumerate(zip(self.groups, now.groups)):
            state.potentials[now.step] = group.variables["u"].get_value()
            if number > 0 or is_test or not self.clamps_outputs:
                spikes = np.array(group.spikes)
                state.spikes[now.step] = 0
                state.spikes[now.step, spikes] = 1
                self._record_feedback(number, spikes)
        if now.step < self.n_steps - 1:
            return
        if is_test:
            self._keep_outcome()
        else:
            self._learn()
        now.step = -1
        now.presentation += 1
        if now.presentation == self.n_presentations:
            self._clamp()[:] = 0

    @underflow_is_zero
    def _keep_outcome(self):
        """Keep what this test observed."""
        outputs, number = self._progress.groups[0], self.tests.numbers[self._progress.presentation]
        rows = self.variables["_outcomes"].get_value().reshape(self.tests.n, -1)
        rows[number] = self.tests.row(outputs.potentials, outputs.spikes)

    @underflow_is_zero
    def _learn(self):
        """Add the gradient of this presentation to the batch; apply it if the batch is full."""
        now = self._progress
        value, output_error = self._value()
        self.variables["_values"].get_value()[now.presentation] = value
        reward = value - now.baseline.value(value)
        now.baseline.add(value)
        errors = [output_error]
        if self.uses_credit:
            errors = errors_of(self.groups, now.groups, self.learned, output_error, self.credit, reward)
        now.in_batch += 1
        for state, error in zip(now.groups, errors):
            state.bias_gradient += error.sum(axis=0)
        pairs = dict.fromkeys((learned.group, learned.basis) for learned in self.learned)
        changes = {(group, basis): correlated(errors[group], basis.matrix) for group, basis in pairs}
        for learned, arrivals, gradient in zip(self.learned, now.arrivals, now.gradients):
            # With batches of one, change the weights directly; otherwise sum first.
            into, scale = gradient, 1.0
            if self.batch_size == 1:
                into, scale = [weight.get_value() for weight in learned.weights], self.learning_rate
            learned.add(arrivals, scale * changes[learned.group, learned.basis], into)
            arrivals.clear()
        if now.in_batch == self.batch_size or now.presentation == self.last_learning:
            self._apply(self.learning_rate / now.in_batch)

    def _value(self):
        """Return the log-likelihood, and its derivatives with respect to the potentials of the outputs.

        With `reward`, return the reward and None.
        """
        if self.reward is not None:
            return self.reward.read(self, self._progress.presentation), None
        outputs = self._progress.groups[0]
        return self.objective.gradient(
            outputs.potentials, outputs.spikes, self._label(), self.neurons.activation
        )

    def _apply(self, rate):
        """Move weights and biases along the mean gradient of the batch."""
        now = self._progress
        for group, state in zip(self.groups, now.groups):
            if self.learn_bias:
                bias = group.variables["bias"].get_value()
                bias += rate * state.bias_gradient
            state.bias_gradient[:] = 0.0
        for learned, gradient in zip(self.learned, now.gradients):
            for weight, change in zip(learned.weights, gradient):
                values = weight.get_value()
                values += rate * change
            gradient[:] = 0.0
        now.in_batch = 0

    def _full_state(self):
        return super()._full_state(), copy.deepcopy(self._progress)

    def _restore_from_full_state(self, state):
        variables, progress = state
        super()._restore_from_full_state(variables)
        self._progress = copy.deepcopy(progress)


@dataclass
class _Learned:
    """Weights that learn: those of a GLMSynapses, or the feedback weights, treated as one
    synapse from each neuron to itself."""

    weights: list  # one Brian variable per basis function
    sources: np.ndarray  # the presynaptic neuron of each synapse, in its whole group
    targets: np.ndarray  # the postsynaptic neuron of each synapse
    basis: Basis
    pathway: Any  # delivers the spikes; None for the feedback
    group: int  # the number of the target among the trainer's groups
    sender: int | None  # the number of the source, if it is hidden

    @classmethod
    def of_synapses(cls, synapses, groups):
        weights, targets = synapses.learned_weights()
        sources = synapses.learned_sources()
        numbers = {group.id: number for number, group in enumerate(groups)}
        sender = numbers.get(whole_group(synapses.source).id) or None  # 0 are the outputs
        group = numbers[whole_group(synapses.target).id]
        return cls(weights, sources, targets, synapses.basis, synapses.pre, group, sender)

    @classmethod
    def of_feedback(cls, neurons, group):
        weights = [neurons.variables[name] for name in feedback_weight_names(neurons.feedback_basis)]
        all_neurons = np.arange(len(neurons))
        basis = neurons.feedback_basis
        return cls(weights, all_neurons, all_neurons, basis, None, group, group or None)

    def delays(self):
        """Return the delay of each synapse in steps, or one for all."""
        return np.zeros(1, dtype=int) if self.pathway is None else delay_steps(self.pathway)

    def add(self, arrivals, changes, into):
        """Add `changes` (K, n_steps, n) to the arrays `into` for each spike that arrived."""
        if not arrivals:
            return
        steps = np.repeat([step for step, _ in arrivals], [len(arrived) for _, arrived in arrivals])
        synapses = np.concatenate([arrived for _, arrived in arrivals])
        targets = self.targets[synapses]
        for values, change in zip(into, changes):
            np.add.at(values, synapses, change[steps, targets])


@dataclass
class _Progress:
    """How far training has come on the runtime device."""

    groups: list["_GroupState"]  # the outputs, then hidden neurons
    # of the batch
    gradients: list  # one array (K, n_synapses) each; no rows if the batch size is 1
    # of this presentation: (step, synapses) for each set of weights that learns
    arrivals: list
    baseline: Baseline = field(default_factory=Baseline)
    presentation: int = 0
    step: int = -1  # below 0 between presentations and after the last
    in_batch: int = 0
    is_over: bool = False

    @classmethod
    def at_start(cls, trainer):
        return cls(
            groups=[_GroupState.at_start(len(group), trainer.n_steps) for group in trainer.groups],
            gradients=[
                np.zeros((len(learned.weights) if trainer.batch_size > 1 else 0, learned.targets.size))
                for learned in trainer.learned
            ],
            arrivals=[[] for _ in trainer.learned],
        )


@dataclass
class _GroupState:
    """What is known about a group of neurons."""

    # of this presentation, shape (n_steps, n)
    potentials: np.ndarray
    spikes: np.ndarray  # desired or emitted
    # of the batch
    bias_gradient: np.ndarray

    @classmethod
    def at_start(cls, n, n_steps):
        shape = n_steps, n
        return cls(np.zeros(shape), np.zeros(shape, dtype=np.uint8), np.zeros(n))


class _Recorder(NetworkOperation):
    """Tells the trainer where spikes arrive, in each step of their source."""

    def __init__(self, trainer, number, name):
        self.pathway = trainer.learned[number].pathway
        super().__init__(
            lambda: trainer._record(number, self._arriving()),
            clock=self.pathway.clock,
            when=self.pathway.when,
            # before the pathway handles the spikes of this step
            order=self.pathway.order - 1,
            name=name,
        )

    def before_run(self, run_namespace):
        # Delays may have changed since the last run.
        super().before_run(run_namespace)
        source = whole_group(self.pathway.source)
        self.spikes = spike_array(source, self.pathway.event).get_value()
        sources = self.pathway.synapse_sources.get_value()
        at_once = np.flatnonzero(np.broadcast_to(delay_steps(self.pathway), sources.shape) == 0)
        order = np.argsort(sources[at_once], kind="stable")
        # those from neuron j are at_once[first[j] : first[j + 1]]
        self.at_once = at_once[order]
        self.first = np.searchsorted(sources[self.at_once], np.arange(len(source) + 1))

    def _arriving(self):
        delayed = delayed_arrivals(self.pathway)
        spikes = self.spikes[: self.spikes[-1]]
        begin, count = self.first[spikes], np.diff(self.first)[spikes]
        within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        return np.concatenate([delayed, self.at_once[np.repeat(begin, count) + within]])


def _source(synapses):
    """Return the whole group, never a subgroup, that sends spikes to the synapses."""
    return whole_group(synapses.source)


def _has_images(group):
    return isinstance(group, RateEncoder) and group.n_images > 1


def _encoders_before(neurons, objects):
    """Return multi-image encoders whose spikes reach `neurons`, directly or indirectly."""
    reached, found = {neurons.name}, {}
    synapses = [part for part in objects if isinstance(part, Synapses)]
    for _ in synapses:
        sources = [_source(part) for part in synapses if whole_group(part.target).name in reached]
        found = {source.name: source for source in sources if _has_images(source)}
        names = {source.name for source in sources}
        if names <= reached:
            break
        reached |= names
    return list(found.values())


def _other_neurons(given):
    """Return what to do for neurons and synapses of other models, for error messages."""
    if isinstance(given, Subgroup) or not isinstance(given, (NeuronGroup, Synapses)):
        return ""
    return (
        ". Only GLM neurons can learn, but neurons of other models can be their inputs: train the synapses "
        "GLMSynapses(your_group, neurons) to GLMNeurons, or add your equations to GLM neurons by "
        "GLMNeurons(equations=...). Leave other synapses out of `synapses`: they stay fixed"
    )


def _checked_synapses(synapses):
    """Return the `GLMSynapses` that learn as a list."""
    if isinstance(synapses, Synapses):
        synapses = [synapses]
    try:
        synapses = list(synapses)
    except TypeError:
        raise TypeError(f"synapses must be GLMSynapses or a list of them, got {synapses!r}") from None
    for position, learner in enumerate(synapses):
        if not isinstance(learner, GLMSynapses):
            raise TypeError(
                f"synapses must be GLMSynapses or a list of them, got a list with {learner!r}"
                f"{_other_neurons(learner)}"
            )
        if any(learner is other for other in synapses[:position]):
            raise ValueError(f"synapses: {learner.name} is given twice")
    return synapses


def _hidden_groups(synapses, neurons):
    """Return the other `GLMNeurons` that these synapses drive; their spikes must reach `neurons`."""
    reached, n_before = {neurons.id}, 0
    while n_before < len(reached):
        n_before = len(reached)
        reached |= {
            _source(learner).id for learner in synapses if whole_group(learner.target).id in reached
        }
    hidden = {}
    for learner in synapses:
        target = whole_group(learner.target)
        if target.id not in reached:
            raise ValueError(
                f"synapses: {learner.name} has the target {target.name}, but the neurons to train are "
                f"{neurons.name}, and no synapses in the list lead from one to the other; give each "
                "group of neurons its own trainer, or add the synapses between them"
            )
        if target.id != neurons.id:
            hidden[target.id] = target
    # A subgroup knows its neurons by a weak proxy; a method of theirs knows them themselves.
    return [group.clear.__self__ for group in hidden.values()]
