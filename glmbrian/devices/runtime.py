"""The runtime device: Brian simulates step by step, called from Python.

Runs on Brian's NumPy or Cython target, as ``prefs.codegen.target`` says; if it says
"auto", on NumPy unless there is much to do.  The operations between time steps are plain
Python; `native/presentations.hpp` is their counterpart in compiled programs.
"""

import time

import numpy as np
from brian2 import Clock, NetworkOperation, NumpyCodeObject, ms, prefs
from brian2 import Network as BrianNetwork

from ..brian.encoder import RateEncoder
from ..brian.internals import SCHEDULE, runtime_device, use_numpy
from ..brian.neurons import GLMNeurons
from ..brian.synapses import GLMSynapses
from ..core.bases import plain_basis
from ..core.credit import Baseline
from ..core.layers import Presentation
from ..core.likelihoods import feedback_gradient, input_gradient, weight_gradient
from ..core.randomness import DRAW_LEVELS, hidden_key, shuffled, split_key, uniforms
from ..core.updates import Updater
from ..support.garbage import only_new_garbage
from ..support.progress import Silent
from .base import Device
from .problem import (
    Inputs,
    Network,
    Outcome,
    Parameters,
    Testing,
    Timing,
    Trace,
    Trained,
    as_layers,
)

#: Seconds that Brian's Cython target first takes to compile.  Seconds by which a step is then
#: faster than in NumPy: this many per step, and this many per pair of input and output.
_COMPILING, _SAVED_A_STEP, _SAVED_A_PAIR = 30.0, 2e-4, 3e-8


class Runtime(Device):
    """Simulates with Brian in this process, step by step."""

    name = "runtime"

    @only_new_garbage()
    def train(self, network, parameters, inputs, labels, training, progress):
        simulation = _Training(network, parameters, inputs, labels, training, progress)
        # Numbers that are too large raise the same error wherever they arise, after each update.
        with np.errstate(all="ignore"):
            timing = simulation.run(training.n_epochs * len(inputs))
        history = np.array(simulation.history)
        return Trained(simulation.learned(), history, simulation.updater.state, timing)

    @only_new_garbage()
    def test(self, network, parameters, inputs, testing, progress):
        simulation = _Testing(network, parameters, inputs, testing, progress)
        timing = simulation.run(len(inputs))
        n_hidden_layers = len(network.hidden.sizes)
        return Outcome.from_rows(simulation.rows, network.n_outputs, n_hidden_layers), timing

    @only_new_garbage()
    def record(
        self, network: Network, parameters: Parameters, inputs: Inputs, testing: Testing
    ) -> list[Trace]:
        """Test like `test`, and return a `glmbrian.devices.problem.Trace` per presentation."""
        simulation = _Recording(network, parameters, inputs, testing, Silent())
        simulation.run(len(inputs))
        return simulation.traces


def numpy_is_faster(network: Network, n_presentations: int) -> bool:
    """Whether Brian may choose the target, and NumPy would finish before Cython has compiled."""
    n_pairs = sum(layer.n_inputs * layer.n for layer in network.layers)
    saved = _SAVED_A_STEP + _SAVED_A_PAIR * n_pairs
    return prefs.codegen.target == "auto" and n_presentations * network.n_steps * saved < _COMPILING


class _Simulation:
    """A network, and what happens between its time steps."""

    #: How often each presentation may be simulated.
    most_repetitions = 1

    def __init__(self, network, parameters, inputs, settings, progress):
        self.network = network
        self.parameters = parameters.copy()
        self.inputs = inputs
        self.settings = settings  # for its keys
        self.progress = progress
        self.step = 0
        self.n_done = 0
        self.n_steps_run = 0

    def run(self, n_presentations):
        """Simulate `n_presentations` and return the `Timing`."""
        self.n_presentations = n_presentations
        self.started = None
        created = time.perf_counter()
        with runtime_device():
            self._create()
            # An upper bound: `end_step` stops the run after the last presentation.
            n_steps = self.most_repetitions * n_presentations * self.network.n_steps
            self.brian.run(n_steps * self.clock.dt, namespace={})
            if self.n_done < n_presentations:
                # On Ctrl-C Brian ends the run and returns as if it were complete.
                raise KeyboardInterrupt("the simulation was stopped, by Ctrl-C or brian2.stop()")
        ended = time.perf_counter()
        return Timing(self.started - created, ended - self.started, n_presentations, self.n_steps_run)

    def _create(self):
        network = self.network
        # Fixed names leave the numbered names to the user's objects, and let Brian's Cython target
        # find code that it has compiled before.
        self.clock = Clock(dt=1 * ms, name="glm_clock")
        self.encoder = RateEncoder(
            np.zeros(network.n_inputs, dtype=np.uint8),
            random_state=0,
            clock=self.clock,
            name="glm_inputs",
        )
        self.encoder.key_low, self.encoder.key_high = split_key(self.settings.input_key)
        self.layers = [
            GLMNeurons(
                layer.n,
                plain_basis(layer.basis),
                feedback_basis=layer.feedback_basis and plain_basis(layer.feedback_basis),
                activation=network.activation,
                random_state=0,
                stream=name,
                clock=self.clock,
                name=name,
            )
            for name, layer in zip(network.layer_names, network.layers)
        ]
        self.neurons = self.layers[-1]
        for neurons, key in zip(self.layers, self._keys()):
            neurons.key_low, neurons.key_high = split_key(key)
        target = None
        if numpy_is_faster(network, self.n_presentations):
            target = NumpyCodeObject
            for group in (self.encoder, *self.layers):
                use_numpy(group)
        self.synapses = [
            GLMSynapses(source, neurons, codeobj_class=target, name=f"{neurons.name}_synapses")
            for source, neurons in zip([self.encoder, *self.layers], self.layers)
        ]
        self.load_parameters()
        operations = [
            NetworkOperation(operation, clock=self.clock, when=when, name=f"glm_{when}")
            for operation, when in ((self.begin_step, "start"), (self.end_step, "end"))
        ]
        self.brian = BrianNetwork(
            self.encoder, self.layers, self.synapses, *operations, name="glm_network"
        )
        self.brian.schedule = SCHEDULE

    def _keys(self):
        """Return the key of the random draws of each layer."""
        output_key = self.settings.output_key
        return [
            *(hidden_key(output_key, number) for number in range(len(self.layers) - 1)),
            output_key,
        ]

    def load_parameters(self):
        for synapses, neurons, learned in zip(self.synapses, self.layers, self.parameters.layers):
            synapses.w = learned.weights
            neurons.bias = learned.bias
            if neurons.feedback_basis is not None:
                neurons.feedback_weights = learned.feedback

    def begin_step(self):
        if self.started is None:
            self.started = time.perf_counter()
        if self.step == 0:
            self.begin_presentation()
        if self.given is not None:
            # The highest level is above every draw.
            self.encoder.level = DRAW_LEVELS * self.given[self.step].astype(float)

    def begin_presentation(self):
        self.item, self.presentation = self.next_item()
        self.given = self.given_trains()
        if self.given is None:
            self.encoder.level = self.inputs.levels(self.item)
        for group in (self.encoder, *self.layers):
            group.presentation = self.presentation
            group.first_step = group.step_count
        for neurons in self.layers:
            neurons.clear()
        n_steps = self.network.n_steps
        self.potentials = [np.zeros((n_steps, len(neurons))) for neurons in self.layers]
        #: Spikes of the inputs, then of each layer.
        self.trains = [
            np.zeros((n_steps, len(group)), dtype=np.uint8) for group in (self.encoder, *self.layers)
        ]

    def end_step(self):
        for potentials, neurons in zip(self.potentials, self.layers):
            potentials[self.step] = neurons.u_[:]
        for train, group in zip(self.trains, (self.encoder, *self.layers)):
            train[self.step, group.spikes] = 1
        self.step += 1
        self.n_steps_run += 1
        if self.step == self.network.n_steps or self.is_decided():
            if not self.is_repeated():
                self.end_presentation()
                self.n_done += 1
                self.progress(self.n_done)
                if self.n_done == self.n_presentations:
                    self.brian.stop()
            self.step = 0

    def given_trains(self):
        """Return the input spikes (n_steps, n_inputs) if they need not be drawn, or None."""
        return self.inputs.data[self.item] if self.inputs.kind == "trains" else None

    def is_decided(self):
        return False

    def is_repeated(self):
        """Return whether this presentation begins again."""
        return False


class _Training(_Simulation):
    def __init__(self, network, parameters, inputs, labels, training, progress):
        super().__init__(network, parameters, inputs, training, progress)
        self.labels = labels
        self.training = training
        self._firsts = range(0, network.n_outputs, network.n_classes)
        self.history = []
        self.log_likelihood, self.total_weight = 0.0, 0.0
        state = training.state_at_start(network, parameters)
        self.updater = Updater(training.rule(network), state)
        self.baseline = Baseline()
        self.most_repetitions = 1 if training.adversarial is None else 2
        self.changed = None  # input spikes after an attack
        self.averaged = [np.zeros_like(array) for array in self.parameters.arrays_of_all]
        self._begin_batch()

    def learned(self):
        """Return the parameters at the end, or their mean over the last epochs."""
        n_averaged = self.training.n_averaged
        if not n_averaged:
            return self.parameters
        return Parameters.of_arrays([array / n_averaged for array in self.averaged])

    def _begin_batch(self):
        zeros = [np.zeros_like(array) for array in self.parameters.arrays_of_all]
        self.gradient = Parameters.of_arrays(zeros)
        self.in_batch, self.learned_from = 0, np.zeros(self.network.n_replicas, dtype=int)

    def next_item(self):
        presentation = self.training.first_presentation + self.n_done
        n = len(self.inputs)
        if self.n_done % n == 0:
            self.order = shuffled(self.training.order_key, presentation // n, n)
        return self.order[self.n_done % n], presentation

    def begin_step(self):
        super().begin_step()
        if self.network.objective.clamps_outputs:
            self.neurons.clamp = np.where(self.desired[self.step], 1, -1)

    def begin_presentation(self):
        super().begin_presentation()
        network = self.network
        desired = network.objective.desired(self.labels[self.item], network.n_steps, network.n_classes)
        self.desired = np.tile(desired, network.n_replicas)

    def given_trains(self):
        return super().given_trains() if self.changed is None else self.changed

    def is_repeated(self):
        adversarial = self.training.adversarial
        if adversarial is None or self.changed is not None:
            return False
        if not adversarial.attacks(self.training.output_key, self.presentation):
            return False
        _, slopes = self._gradients()
        layer, learned = self.network.layers[0], self.parameters.layers[0]
        gradient = input_gradient(slopes[0], layer.basis.matrix, learned.weights)
        self.changed = adversarial.changed(self.trains[0], gradient)
        return True

    def end_presentation(self):
        """Add the gradients of this presentation to the batch, and apply a complete batch."""
        self.changed = None
        weights = np.ones(self.network.n_replicas)
        if self.training.sample_weights is not None:
            weights = self.training.sample_weights[:, self.item]
        log_likelihoods, slopes = self._gradients()
        if weights[0]:
            self.baseline.add(log_likelihoods[0])
        for layer, gradient, slope, inputs, own in zip(
            self.network.layers, self.gradient.layers, slopes, self.trains, self.trains[1:]
        ):
            grad_u = slope * np.repeat(weights, layer.n // len(weights))
            gradient.weights += weight_gradient(inputs, grad_u, layer.basis.matrix)
            if layer.feedback_basis is not None:
                gradient.feedback += feedback_gradient(own, grad_u, layer.feedback_basis.matrix)
            gradient.bias += grad_u.sum(axis=0)
        self.in_batch += 1
        self.learned_from += weights != 0
        self.log_likelihood += weights * log_likelihoods
        self.total_weight += weights
        epoch_is_over = (self.n_done + 1) % len(self.inputs) == 0
        if self.in_batch == self.training.batch_size or epoch_is_over:
            self.apply()
        if epoch_is_over:
            self.history.append(self.log_likelihood / np.where(self.total_weight, self.total_weight, 1))
            self.log_likelihood, self.total_weight = 0.0, 0.0
            if self.training.weight_decay:
                self.decay()
            if len(self.history) > self.training.n_epochs - self.training.n_averaged:
                for total, array in zip(self.averaged, self.parameters.arrays_of_all):
                    total += array

    def _gradients(self):
        """Return the log-likelihood of each replica, and the gradient in the potentials of each layer."""
        log_likelihoods, grads = zip(
            *(self._gradient(slice(first, first + self.network.n_classes)) for first in self._firsts)
        )
        return log_likelihoods, [*self._hidden_slopes(log_likelihoods[0], grads[0]), np.hstack(grads)]

    def _gradient(self, outputs):
        """Return log-likelihood and gradient with respect to the potentials of one replica."""
        return self.network.objective.gradient(
            self.potentials[-1][:, outputs],
            self.trains[-1][:, outputs],
            self.labels[self.item],
            self.network.activation,
        )

    def _hidden_slopes(self, log_likelihood, output_slope):
        """Return the derivatives with respect to the potentials of each hidden layer."""
        network = self.network
        if not network.hidden.sizes:
            return []
        layers = as_layers(network, self.parameters)
        presentation = Presentation(
            layers, self.trains, self.potentials, float(log_likelihood), output_slope
        )
        draws = [
            uniforms(key, self.presentation, np.arange(network.n_steps)[:, np.newaxis], np.arange(n))
            for key, n in zip(self._keys(), network.hidden.sizes)
        ]
        baseline = self.baseline.value(log_likelihood)
        label = self.labels[self.item]
        return network.credit.slopes(presentation, draws, label, network.objective, baseline)

    def apply(self):
        """Update the parameters with the gradient of the batch."""
        rates = self.training.learning_rates * self.training.rate_factor(self.presentation)
        gradients = self.gradient.arrays_of_all
        self.updater.update(self.parameters.arrays_of_all, gradients, self.learned_from, rates)
        # What has diverged has no way back, and Brian's variables must be finite.
        self.parameters.raise_if_diverged(self.log_likelihood, self.training)
        self._begin_batch()
        self.load_parameters()

    def decay(self):
        """Let the weights decay at the end of an epoch."""
        layers = self.parameters.layers
        self.updater.decay([part for layer in layers for part in (layer.weights, layer.feedback)])
        self.load_parameters()


class _Testing(_Simulation):
    def __init__(self, network, parameters, inputs, testing, progress):
        super().__init__(network, parameters, inputs, testing, progress)
        self.testing = testing
        self.rows = []

    def next_item(self):
        return self.n_done, self.testing.first_presentation + self.n_done

    def is_decided(self):
        return self.network.objective.stops_at_first_spike and self.trains[-1].any()

    def end_presentation(self):
        self.rows.append(self.trace().row())

    def trace(self):
        seen = slice(0, self.step)
        inputs, *hidden, outputs = (train[seen] for train in self.trains)
        *of_hidden, potentials = (potentials[seen] for potentials in self.potentials)
        return Trace(inputs, outputs, potentials, hidden=hidden, hidden_potentials=of_hidden)


class _Recording(_Testing):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.traces = []

    def end_presentation(self):
        self.traces.append(self.trace())
