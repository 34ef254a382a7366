"""Training with NumPy, between the time steps of the runtime device.

In generated C++ programs, `trainer_cpp.py` and `native/trainer.hpp` replace it.
"""

import copy
from dataclasses import replace
from functools import partial

import numpy as np
from brian2 import NetworkOperation

from ..core.likelihoods import correlated
from ..core.updates import OptimizerState, Updater
from ..support.floating_point import underflow_is_zero
from .arrivals import Recorder
from .backend import Backend
from .errors import errors_of
from .progress import Progress
from .reward import END_ORDER


class RuntimeBackend(Backend):
    """Training on the runtime device."""

    runs_at_once = True

    def __init__(self, plan, owner, learning_rate):
        super().__init__(plan, owner, learning_rate)
        self._progress = Progress.at_start(plan)

    def add_operations(self, owner):
        add, name, clock = owner.contained_objects.append, owner.name, owner.clock
        add(NetworkOperation(self._begin_step, clock=clock, when="start", name=f"{name}_begin"))
        for number, weights in enumerate(self.plan.weights):
            if weights.pathway is not None:
                record = partial(self._record, number)
                add(Recorder(weights.pathway, record, name=f"{name}_record_{number}"))
        add(
            NetworkOperation(
                self._end_step, clock=clock, when="end", order=END_ORDER, name=f"{name}_end"
            )
        )

    @property
    def steps_done(self):
        return self._progress.presentation * self.plan.n_steps + self._progress.step + 1

    def after_run(self):
        """Do nothing: Brian knows what has changed."""

    def state(self):
        """Return what ``Network.store`` should keep, besides variables."""
        return copy.deepcopy(self._progress)

    def restore(self, state):
        """Return to a `state`."""
        fresh, state = Progress.at_start(self.plan), copy.deepcopy(state)
        # Files of earlier versions hold fewer fields.
        n_learned = np.count_nonzero(self.plan.is_training[: state.presentation])
        fresh.n_updates[:] = n_learned // self.plan.batch_size
        self._progress = replace(fresh, **vars(state))

    # ------------------------------------------------------------------- in each step

    def _begin_step(self):
        now, plan = self._progress, self.plan
        if now.is_over:
            return
        now.is_over = now.presentation == plan.n_presentations
        if not now.is_over:
            now.step += 1
        if now.is_over or now.step == 0:
            for group in plan.groups:
                group.clear()
        if now.is_over:
            return
        if not plan.is_training[now.presentation]:
            if now.step == 0:
                self._clamp()[:] = 0
            return
        if not plan.clamps_outputs:
            return
        outputs = now.groups[0].spikes
        if now.step == 0:
            outputs[:] = self._desired()
        desired = outputs[now.step]
        self._clamp()[:] = np.where(desired, 1, -1)
        self._record_feedback(0, np.flatnonzero(desired))

    def _desired(self):
        """Return the desired spikes of this presentation, shape (n_steps, n)."""
        plan = self.plan
        if plan.examples.targets is not None:
            return plan.examples.targets[self._progress.presentation]
        return plan.objective.desired(self._label(), plan.n_steps, len(plan.outputs))

    def _label(self):
        labels = self.plan.examples.labels
        return None if labels is None else int(labels[self._progress.presentation])

    def _clamp(self):
        return self.plan.outputs.variables["clamp"].get_value()

    def _record_feedback(self, group, spikes):
        for number in self.plan.feedback_of(group):
            self._record(number, spikes)

    def _record(self, number, synapses):
        """Record the `synapses` where a spike arrives in this step, unless this is a test.

        A spike that arrives in the last step has no effect in this presentation.
        """
        now, plan = self._progress, self.plan
        is_counted = 0 <= now.step < plan.n_steps - 1 and plan.is_training[now.presentation]
        if is_counted and len(synapses):
            now.arrivals[number].append((now.step, synapses))

    def _end_step(self):
        now, plan = self._progress, self.plan
        if now.step < 0:
            return
        is_test = not plan.is_training[now.presentation]
        for number, (group, state) in enumerate(zip(plan.groups, now.groups)):
            state.potentials[now.step] = group.variables["u"].get_value()
            if number > 0 or is_test or not plan.clamps_outputs:
                spikes = np.array(group.spikes)
                state.spikes[now.step] = 0
                state.spikes[now.step, spikes] = 1
                self._record_feedback(number, spikes)
        if now.step < plan.n_steps - 1:
            return
        if is_test:
            self._keep_outcome()
        else:
            self._learn()
        now.step = -1
        now.presentation += 1
        if now.presentation == plan.n_presentations:
            self._clamp()[:] = 0

    # ---------------------------------------------------- at the end of a presentation

    @underflow_is_zero
    def _keep_outcome(self):
        """Keep what this test observed."""
        tests, outputs = self.plan.tests, self._progress.groups[0]
        rows = self.variables["_outcomes"].get_value().reshape(tests.n, -1)
        number = tests.numbers[self._progress.presentation]
        rows[number] = tests.row(outputs.potentials, outputs.spikes)

    @underflow_is_zero
    def _learn(self):
        """Add the gradient of this presentation to the batch; apply it if the batch is full."""
        now, plan = self._progress, self.plan
        errors = self._errors()
        now.in_batch += 1
        for state, error in zip(now.groups, errors):
            state.bias_gradient += error.sum(axis=0)
        changes = {
            (group, basis): correlated(errors[group], basis.matrix) for group, basis in plan.changes()
        }
        is_full = now.in_batch == plan.batch_size or now.presentation == plan.last_learning
        rate = self._rate() if is_full else 0.0
        for weights, arrivals, gradient in zip(plan.weights, now.arrivals, now.gradients):
            into, scale = gradient, 1.0
            if plan.changes_at_once:
                into, scale = [variable.get_value() for variable in weights.variables], rate
            _add(into, arrivals, weights.targets, scale * changes[weights.group, weights.basis])
            arrivals.clear()
        if is_full:
            self._update(rate)

    def _rate(self):
        """Return the learning rate of the update that this presentation ends."""
        schedule, done = self.plan.rule.schedule, self.plan.done_in_updates
        return self.learning_rate * schedule.factor(float(done[self._progress.n_updates[0]]))

    def _errors(self):
        """Return the derivatives in the potentials of each group; note the value of this presentation."""
        now, plan = self._progress, self.plan
        value, output_error = self._value()
        self.variables["_values"].get_value()[now.presentation] = value
        reward = value - now.baseline.value(value)
        now.baseline.add(value)
        if not plan.uses_credit:
            return [output_error]
        return errors_of(plan.groups, now.groups, plan.weights, output_error, plan.credit, reward)

    def _value(self):
        """Return the log-likelihood, and its derivatives with respect to the potentials of the outputs.

        With a reward, return the reward and None.
        """
        plan = self.plan
        if plan.reward is not None:
            return plan.reward.read(self.variables, self._progress.presentation), None
        outputs = self._progress.groups[0]
        return plan.objective.gradient(
            outputs.potentials, outputs.spikes, self._label(), plan.outputs.activation
        )

    def _update(self, rate):
        """Change weights and biases by the gradient of the batch."""
        now, plan = self._progress, self.plan
        weights = [variable.get_value() for each in plan.weights for variable in each.variables]
        biases = [variable.get_value() for variable in plan.biases]
        bias_gradients = [state.bias_gradient for state in now.groups]
        gradients = [row for gradient in now.gradients for row in gradient]
        updater = Updater(plan.rule, OptimizerState(plan.rule.optimizer, now.n_updates, now.slots))
        updater.update(
            [*([] if plan.changes_at_once else weights), *biases],
            [*gradients, *(bias_gradients if plan.learn_bias else [])],
            np.array([now.in_batch]),
            np.array([rate]),
        )
        if plan.rule.weight_decay:
            updater.decay(weights)
        if plan.average:
            self._average([*weights, *biases])
        for gradient in (*now.gradients, *bias_gradients):
            gradient[:] = 0.0
        now.in_batch = 0

    def _average(self, parameters):
        """Add the parameters to their sums if this update counts; set them to the mean after the last."""
        now, plan = self._progress, self.plan
        n_updates = len(plan.done_in_updates)
        if now.n_updates[0] <= n_updates - plan.n_averaged:
            return
        now.n_summed += 1
        for total, values in zip(now.sums, parameters):
            total += values
            if now.n_updates[0] == n_updates:
                values[:] = total / now.n_summed


def _add(into, arrivals, targets, changes):
    """Add `changes` (K, n_steps, n) to the arrays `into` for each spike that arrived."""
    if not arrivals:
        return
    steps = np.repeat([step for step, _ in arrivals], [len(arrived) for _, arrived in arrivals])
    synapses = np.concatenate([arrived for _, arrived in arrivals])
    for values, change in zip(into, changes):
        np.add.at(values, synapses, change[steps, targets[synapses]])
