"""GLM neurons learn in networks of the user's own as the gradients of `learning` say."""

import gc
from dataclasses import replace

import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    Synapses,
    TimedArray,
    collect,
    defaultclock,
    device,
    ms,
    prefs,
    run,
    seed,
    set_device,
)
from brian2.utils.logger import catch_logs

import glmbrian as glm
from glmbrian import learning
from glmbrian.brian.target import Target
from glmbrian.core.randomness import derive_keys
from glmbrian.core.rate_code import levels, rate_encode

CPP = pytest.param("cpp_standalone", marks=pytest.mark.compiled)
CYTHON = pytest.param("cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive])
N_STEPS, N_PRESENTATIONS, N_FREE, FINE = 8, 50, 10, 4
N_TRAINED = N_STEPS * N_PRESENTATIONS


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms


def choose(device_or_target):
    """Simulate on a Brian code generation target, or on the standalone device."""
    if device_or_target == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    else:
        prefs.codegen.target = device_or_target


# ------------------------------------------- every device beside plain arithmetic

CASES = {
    "first-to-spike": dict(rule="first-to-spike"),
    "first-to-spike in batches": dict(rule="first-to-spike", batch_size=3),
    "rate in batches": dict(rule="rate", batch_size=3, target_period=3, target_start=2),
    "targets": dict(rule="rate"),
    "weights alone": dict(rule="rate", batch_size=4, learn_feedback=False, learn_bias=False),
}
#: Compiling takes long, so that there is less of it.
COMPILED = ["first-to-spike", "targets"]
#: With more lags than Brian's code spells out, beside kernels of a few.
LONG = ["targets", "weights alone"]
LEARNING_RATE = 0.05


class Case:
    """A trainer, its neurons with three kinds of synapses, and what they start from."""

    def __init__(self, name, encoder, generator, random):
        self.arguments = CASES[name]
        n = 3
        self.bases = {
            "stimulus": glm.CustomBasis(random.normal(size=(45 if name in LONG else 5, 2))),
            "coupling": glm.IndicatorBasis(2),
        }
        self.feedback_basis = glm.CustomBasis(random.normal(size=(3, 2)))
        self.neurons = glm.GLMNeurons(
            n, self.bases, feedback_basis=self.feedback_basis, random_state=1, stream=name
        )
        self.bias = self.neurons.bias = random.normal(size=n) - 1
        self.feedback = self.neurons.feedback_weights = random.normal(size=(n, 2)) * 0.3
        self.synapses = [
            glm.GLMSynapses(encoder, self.neurons, "stimulus", "(i + j) % 3 != 0"),
            glm.GLMSynapses(generator[1:4], self.neurons[1:], "stimulus"),
            glm.GLMSynapses(self.neurons, self.neurons, "coupling", "i != j", delay=1 * ms),
        ]
        # Delays in steps of the generator, and what they are in steps of the neurons
        self.delays = random.integers(0, 3 * FINE, (3, 2))
        self.synapses[1].delay = self.delays.ravel() * ms / FINE
        self.weights = [random.normal(size=synapse.w.shape) * 0.3 for synapse in self.synapses]
        for synapse, w in zip(self.synapses, self.weights):
            synapse.w = w
        self.connected = [synapse.w != 0 for synapse in self.synapses]
        self.later_weights = None
        self.labels = random.integers(0, n, N_PRESENTATIONS)
        self.targets = random.random((N_PRESENTATIONS, N_STEPS, n)) < 0.3
        examples = dict(labels=self.labels)
        if name in ("targets", "weights alone"):
            examples = dict(targets=self.targets.reshape(-1, n).astype(int))
        else:
            train = np.zeros(N_STEPS)
            train[
                self.arguments.get("target_start", 4) - 1 :: self.arguments.get("target_period", 4)
            ] = 1
            self.targets = np.zeros((N_PRESENTATIONS, N_STEPS, n), dtype=bool)
            if self.arguments["rule"] == "rate":
                self.targets[np.arange(N_PRESENTATIONS), :, self.labels] = train
        self.trainer = glm.Trainer(
            self.neurons,
            self.synapses,
            N_STEPS,
            learning_rate=LEARNING_RATE,
            **examples,
            **self.arguments,
        )
        self.monitor = SpikeMonitor(self.neurons)
        self.objects = [self.neurons, *self.synapses, self.trainer, self.monitor]

    def set_weights(self):
        """Set weights after three presentations."""
        self.synapses[0].w = self.later_weights = -self.weights[0]

    def results(self):
        return dict(
            weights=[synapse.w for synapse in self.synapses],
            feedback=self.neurons.feedback_weights,
            bias=self.neurons.bias[:],
            log_likelihoods=self.trainer.log_likelihoods,
            outputs=trains(self.monitor, N_TRAINED + N_FREE),
        )

    def expected(self, encoder_trains, generator_trains):
        """Learn from recorded input trains, step by step and spike by spike."""
        weights, connected = [w * c for w, c in zip(self.weights, self.connected)], self.connected
        feedback, bias = self.feedback.copy(), self.bias.copy()
        bases = [self.bases[name].matrix for name in ("stimulus", "stimulus", "coupling")]
        arrived = self.arrivals(encoder_trains, generator_trains)
        arguments = {"batch_size": 1, "learn_feedback": True, "learn_bias": True, **self.arguments}
        activation = glm.get_activation("sigmoid")
        log_likelihoods, batch = [], []
        for p in range(N_PRESENTATIONS):
            if p == 3 and self.later_weights is not None:
                weights[0] = self.later_weights * connected[0]
            steps = slice(p * N_STEPS, (p + 1) * N_STEPS)
            counts = [count[steps] for count in arrived]
            own = self.targets[p][:, np.newaxis, :] * np.eye(3)[np.newaxis]
            u = np.tile(bias, (N_STEPS, 1))
            own_weights = np.eye(3)[:, :, np.newaxis] * feedback
            everything = [*zip(counts, weights, bases), (own, own_weights, self.feedback_basis.matrix)]
            for count, w, basis in everything:
                first = 1 if w.shape[1] == 2 else 0
                for t in range(N_STEPS):
                    for lag in range(1, min(t, len(basis)) + 1):
                        u[t, first:] += np.einsum("ji,jik,k->i", count[t - lag], w, basis[lag - 1])
            if self.arguments["rule"] == "rate":
                log_likelihood, grad_u = learning.rate_gradient(u, self.targets[p], activation)
            else:
                log_likelihood, grad_u = learning.first_to_spike_gradient(u, self.labels[p], activation)
            log_likelihoods.append(log_likelihood)
            grads = []
            for count, w, basis in everything:
                first = 1 if w.shape[1] == 2 else 0
                grad = np.zeros(w.shape)
                for t in range(N_STEPS):
                    for lag in range(1, min(t, len(basis)) + 1):
                        grad += np.einsum(
                            "ji,i,k->jik", count[t - lag], grad_u[t, first:], basis[lag - 1]
                        )
                grads.append(grad)
            batch.append((*grads, grad_u.sum(axis=0)))
            if len(batch) == arguments["batch_size"] or p == N_PRESENTATIONS - 1:
                *means, own, of_bias = [LEARNING_RATE * np.mean(part, axis=0) for part in zip(*batch)]
                weights = [w + mean * c for w, mean, c in zip(weights, means, connected)]
                feedback = feedback + arguments["learn_feedback"] * np.einsum("iik->ik", own)
                bias = bias + arguments["learn_bias"] * of_bias
                batch = []
        return dict(
            weights=weights, feedback=feedback, bias=bias, log_likelihoods=np.array(log_likelihoods)
        )

    def arrivals(self, encoder_trains, generator_trains):
        """Return how many spikes arrive, each (steps, sources, targets)."""
        from_encoder = np.repeat(encoder_trains[:N_TRAINED, :, np.newaxis], 3, axis=2)
        from_generator = np.zeros((N_TRAINED, 3, 2), dtype=int)
        for step, source in np.argwhere(generator_trains[:, 1:4]):
            for target in range(2):
                at = (step + self.delays[source, target]) // FINE
                if at < N_TRAINED:
                    from_generator[at, source, target] += 1
        lateral = np.zeros((N_TRAINED, 3, 3), dtype=int)
        lateral[1:] = self.targets.reshape(N_TRAINED, 3, 1)[:-1]
        return from_encoder, from_generator, lateral


def trains(monitor, n_steps, dt=1 * ms):
    spikes = np.zeros((n_steps, len(monitor.source)), dtype=int)
    spikes[np.round(monitor.t / dt).astype(int), np.asarray(monitor.i)] = 1
    return spikes


@pytest.fixture(scope="module", params=["numpy", CPP])
def trained(request):
    """What all cases have learned in one network, and what they should have."""
    previous = prefs.codegen.target
    choose(request.param)
    defaultclock.dt = 1 * ms
    random = np.random.default_rng(3)
    images = random.integers(0, 256, (N_PRESENTATIONS, 6)).astype(np.uint8)
    encoder = glm.RateEncoder(images, n_steps=N_STEPS, random_state=4)
    fine_spikes = random.random(((N_TRAINED + N_FREE) * FINE, 5)) < 0.08
    generator = NeuronGroup(5, "", threshold="fine(t, i) > 0", reset="", dt=1 * ms / FINE)
    generator.namespace["fine"] = TimedArray(fine_spikes.astype(float), dt=1 * ms / FINE)
    monitor = SpikeMonitor(encoder)
    names = CASES if request.param == "numpy" else COMPILED
    cases = {name: Case(name, encoder, generator, random) for name in names}
    network = Network(encoder, generator, monitor)
    for case in cases.values():
        network.add(*case.objects)
    if request.param == "numpy":
        network.run(17 * ms, namespace={})  # to within a presentation
        network.run(7 * ms, namespace={})
        for case in cases.values():
            case.set_weights()
    network.run((N_TRAINED + N_FREE) * ms - network.t, namespace={})
    if request.param == "cpp_standalone":
        device.build(directory=None, with_output=False)
    encoder_trains = trains(monitor, N_TRAINED + N_FREE)
    prefs.codegen.target = previous
    learned = {
        name: (case.results(), case.expected(encoder_trains, fine_spikes), case.targets)
        for name, case in cases.items()
    }
    return encoder_trains, images, learned


def test_the_encoder_shows_an_image_a_presentation(trained):
    encoder_trains, images, _ = trained
    expected = rate_encode(levels(images), derive_keys(4, 0)[0], range(N_PRESENTATIONS), N_STEPS)
    np.testing.assert_array_equal(encoder_trains[:N_TRAINED], expected.reshape(N_TRAINED, -1))


def test_learns_what_the_gradients_say(trained):
    for learned, expected, _ in trained[2].values():
        assert_same(learned, expected)


def assert_same(learned, expected):
    for name in ("log_likelihoods", "bias", "feedback"):
        np.testing.assert_allclose(learned[name], expected[name], rtol=0, atol=1e-9, err_msg=name)
    for got, wanted in zip(learned["weights"], expected["weights"]):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9)


def test_neurons_are_clamped_in_training_and_free_afterwards(trained):
    for learned, _, targets in trained[2].values():
        np.testing.assert_array_equal(learned["outputs"][:N_TRAINED], targets.reshape(N_TRAINED, 3))
        assert 0 < learned["outputs"][N_TRAINED:].mean() < 1


# ------------------------------------------------------- small networks at runtime


def small_network(n_presentations=6, n_steps=4, **options):
    """A network of one encoder; returns its parts by name."""
    random = np.random.default_rng(5)
    images = random.integers(0, 256, (n_presentations, 4)).astype(np.uint8)
    encoder = glm.RateEncoder(images, n_steps=n_steps, random_state=6)
    neurons = glm.GLMNeurons(
        2, glm.RaisedCosineBasis(2, 3), feedback_basis=glm.IndicatorBasis(2), random_state=7
    )
    neurons.bias = -1
    synapses = glm.GLMSynapses(encoder, neurons)
    synapses.w = random.normal(size=(4, 2, 2))
    labels = np.arange(n_presentations) % 2
    trainer = glm.Trainer(neurons, synapses, n_steps, labels, **options)
    return dict(encoder=encoder, neurons=neurons, synapses=synapses, trainer=trainer)


def learned_in(parts):
    neurons, trainer = parts["neurons"], parts["trainer"]
    return dict(
        weights=[parts["synapses"].w],
        feedback=neurons.feedback_weights,
        bias=neurons.bias[:],
        log_likelihoods=trainer.log_likelihoods,
    )


@pytest.mark.parametrize("rule", ["first-to-spike", "rate"])
def test_one_presentation_is_one_step_along_the_gradient(rule):
    parts = small_network(1, 8, rule=rule, learning_rate=0.5, target_period=2)
    neurons, synapses = parts["neurons"], parts["synapses"]
    neurons.feedback_weights = 0.7
    monitor = SpikeMonitor(parts["encoder"])
    weights, bias, feedback = synapses.w, neurons.bias[:].copy(), neurons.feedback_weights
    Network(*parts.values(), monitor).run(parts["trainer"].duration)
    spikes, basis = trains(monitor, 8), neurons.kernels["stimulus"].matrix
    if rule == "rate":
        targets = np.zeros((8, 2))
        targets[:, 0] = learning.desired_train(8, 2)
        log_likelihood, for_weights, for_feedback, for_bias = learning.rate_log_likelihood(
            spikes, targets, basis, neurons.feedback_basis.matrix, weights, feedback, bias
        )
        assert np.any(for_feedback)
    else:
        log_likelihood, for_weights, for_bias = learning.first_to_spike_log_likelihood(
            spikes, 0, basis, weights, bias
        )
        for_feedback = 0.0
    expected = dict(
        weights=[weights + 0.5 * for_weights],
        feedback=feedback + 0.5 * for_feedback,
        bias=bias + 0.5 * for_bias,
        log_likelihoods=[log_likelihood],
    )
    assert_same(learned_in(parts), expected)


def test_log_likelihoods_to_come_are_nan():
    parts = small_network()
    Network(*parts.values()).run(9 * ms)
    np.testing.assert_array_equal(np.isnan(parts["trainer"].log_likelihoods), [False] * 2 + [True] * 4)
    np.testing.assert_array_equal(parts["neurons"].clamp[:], [-1, -1])


def test_magic_network_takes_the_trainer_along():
    expected = small_network()
    Network(*expected.values()).run(30 * ms)
    encoder, neurons, synapses, trainer = small_network().values()
    assert trainer in collect()
    run(trainer.duration)
    run(6 * ms)
    assert_same(
        learned_in(dict(neurons=neurons, synapses=synapses, trainer=trainer)), learned_in(expected)
    )


@pytest.mark.parametrize("batch_size", [1, 4])
def test_restore_sets_training_back(batch_size, tmp_path):
    parts = small_network(rule="rate", batch_size=batch_size)
    network = Network(*parts.values())
    network.run(10 * ms)  # to within the third presentation
    network.store()
    network.store(filename=str(tmp_path / "state"))
    network.run(20 * ms)
    expected = learned_in(parts)
    for filename in (None, str(tmp_path / "state")):
        network.restore(filename=filename)
        assert np.isnan(parts["trainer"].log_likelihoods[2:]).all()
        network.run(20 * ms)
        assert_same(learned_in(parts), expected)


def test_input_may_be_changed_between_runs():
    """A run a presentation, with the image set by the user, is as one run of all."""
    expected = small_network()
    Network(*expected.values()).run(24 * ms)
    images = np.random.default_rng(5).integers(0, 256, (6, 4)).astype(np.uint8)
    parts = small_network()
    parts["encoder"] = encoder = glm.RateEncoder(images[0], random_state=6)
    weights = parts["synapses"].w
    parts["synapses"] = glm.GLMSynapses(encoder, parts["neurons"])
    parts["synapses"].w = weights
    parts["trainer"] = glm.Trainer(parts["neurons"], parts["synapses"], 4, np.arange(6) % 2)
    network = Network(*parts.values())
    for number, image in enumerate(images):
        encoder.intensity = image
        encoder.presentation = number
        encoder.first_step = 4 * number
        network.run(4 * ms)
    assert_same(learned_in(parts), learned_in(expected))


@pytest.mark.parametrize("compiled", [CYTHON, CPP])
def test_several_runs_where_code_is_compiled(compiled):
    def run_twice():
        learning = [True, True, False, True, False, True]
        parts = small_network(
            rule="rate", batch_size=2, target_period=2, target_start=3, is_training=learning
        )
        parts["neurons"].bias = 0
        network = Network(*parts.values())
        network.run(10 * ms, namespace={})  # to within the third presentation, a test
        parts["neurons"].bias = -2
        parts["trainer"].learning_rate = 0.3
        network.run(16 * ms, namespace={})
        return parts

    parts = run_twice()
    expected, trainer = learned_in(parts), parts["trainer"]
    tested = [trainer.decisions, trainer.decision_steps]
    choose(compiled)
    parts = run_twice()
    if compiled == "cpp_standalone":
        with pytest.raises(NotImplementedError, match="before the simulation has been run"):
            parts["trainer"].log_likelihoods
        device.build(directory=None, with_output=False)
    assert_same(learned_in(parts), expected)
    np.testing.assert_array_equal([parts["trainer"].decisions, parts["trainer"].decision_steps], tested)
    assert max(tested[0]) >= 0 and parts["trainer"].accuracy() == trainer.accuracy()
    np.testing.assert_array_equal(parts["neurons"].clamp[:], 0)


def test_the_learning_rate_may_be_changed_between_runs():
    expected, parts = small_network(learning_rate=0.3), small_network(learning_rate=0.1)
    parts["trainer"].learning_rate = 0.3
    network, of_one_rate = Network(*parts.values()), Network(*expected.values())
    for net in (network, of_one_rate):
        net.run(12 * ms)
    assert_same(learned_in(parts), learned_in(expected))
    weights = parts["synapses"].w
    parts["trainer"].learning_rate = 1e-15
    network.run(12 * ms)
    np.testing.assert_allclose(parts["synapses"].w, weights, rtol=0, atol=1e-12)
    of_one_rate.run(12 * ms)
    assert np.abs(expected["synapses"].w - weights).max() > 0.01
    with pytest.raises(ValueError, match="learning_rate must be a finite number above 0"):
        parts["trainer"].learning_rate = -1


# ------------------------------------------------ encoder and trainer keep in step


def error_of(network, duration):
    with pytest.raises(Exception) as raised:
        network.run(duration, namespace={})
    return str(raised.getrepr(style="short", chain=True))


def test_training_in_a_network_that_has_run_before_is_as_from_its_beginning():
    expected = small_network()
    Network(*expected.values()).run(30 * ms)
    parts = small_network()
    network = Network(NeuronGroup(1, "x : 1"))
    network.run(5 * ms)
    network.add(*parts.values())
    network.run(30 * ms)
    assert_same(learned_in(parts), learned_in(expected))


@pytest.mark.parametrize("simulated_by", ["numpy", "cpp_standalone"])
def test_a_shift_between_images_and_presentations_is_an_error(simulated_by):
    choose(simulated_by)
    encoder, neurons, synapses, trainer = small_network().values()
    network = Network(encoder, neurons, synapses)
    network.run(4 * ms, namespace={})  # a whole image, so that labels would be shifted
    network.add(trainer)
    message = error_of(network, 4 * ms)
    for part in (encoder.name, trainer.name, "shifted", "4 steps", "start both in the same run"):
        assert part in message
    # together from the start, and the encoder then left out of a run
    encoder, neurons, synapses, trainer = small_network().values()
    network = Network(encoder, neurons, synapses, trainer)
    network.run(6 * ms, namespace={})
    encoder.active = False
    assert f"{encoder.name} is not active" in error_of(network, 4 * ms)
    encoder.active, trainer.active = True, False
    network.run(8 * ms, namespace={})
    trainer.active = True
    assert "has made 14 steps, the trainer 6" in error_of(network, 4 * ms)


def test_images_that_do_not_fit_the_presentations():
    encoder, neurons, synapses, _ = small_network().values()
    with pytest.raises(ValueError, match=r"n_steps is 6 .* shows an image for 4 steps: create RateEnc"):
        glm.Trainer(neurons, synapses, 6, [0, 1])
    with pytest.raises(ValueError, match="7 presentations need 7 images, but rateencoder.* has 6"):
        glm.Trainer(neurons, synapses, 4, np.zeros(7))
    # presentations of two images each
    trainer = glm.Trainer(neurons, synapses, 8, [0, 1, 0])
    Network(encoder, neurons, synapses, trainer).run(24 * ms)
    assert np.isfinite(trainer.log_likelihoods).all()


def test_encoder_and_trainer_have_one_time_step():
    encoder = glm.RateEncoder(np.eye(2), n_steps=4, dt=0.5 * ms)
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
    synapses = glm.GLMSynapses(encoder, neurons)
    trainer = glm.Trainer(neurons, synapses, 4, [0, 1])
    assert f"for {encoder.name} and 1. ms for {trainer.name}" in error_of(
        Network(encoder, neurons, synapses, trainer), 8 * ms
    )


def test_a_shift_of_images_behind_other_neurons_warns():
    encoder = glm.RateEncoder(np.eye(2)[[0, 1, 0, 1]], n_steps=4)
    between = NeuronGroup(3, "v : 1", threshold="v > 0.5", reset="v = 0")
    into = Synapses(encoder, between, on_pre="v_post += 1")
    into.connect()
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
    synapses = glm.GLMSynapses(between, neurons)
    network = Network(encoder, between, into)
    network.run(4 * ms)
    trainer = glm.Trainer(neurons, synapses, 4, [0, 1, 0])
    network.add(neurons, synapses, trainer)
    with pytest.warns(UserWarning, match=f"images of {encoder.name} would be shifted"):
        network.run(12 * ms)


@pytest.mark.parametrize("simulated_by", ["numpy", "cpp_standalone"])
def test_trainers_follow_one_another_and_never_meet(simulated_by):
    choose(simulated_by)
    parts = small_network()
    encoder, neurons, synapses, first = parts.values()
    second = glm.Trainer(neurons, synapses, 4, [1, 0])
    network = Network(*parts.values(), second)
    # Brian sorts them by name, as text: "trainer_10" comes before "trainer_9".
    names = " and ".join(sorted([first.name, second.name]))
    assert f"two trainers at once, {names}" in error_of(network, 4 * ms)
    encoder, neurons, synapses, first = small_network().values()
    network = Network(encoder, neurons, synapses, first)
    network.run(4 * 4 * ms, namespace={})
    first.active = False  # images continue with the second
    short = glm.Trainer(neurons, synapses, 4, [1, 0])
    network.remove(first)
    network.add(short)
    network.run(short.duration, namespace={})
    assert short.is_over and not first.is_over
    if simulated_by == "numpy":
        assert np.isfinite(short.log_likelihoods).all()


def test_trainers_show_how_far_they_are():
    encoder, neurons, synapses, trainer = parts = small_network().values()
    assert "6 (0 done)" in repr(trainer) and synapses.name in repr(trainer)
    Network(*parts).run(9 * ms)
    for shown in (repr(trainer), trainer._repr_html_()):
        for part in ("Trainer", neurons.name, "first-to-spike", "6 (2 done)"):
            assert part in shown


def test_readout_of_a_recurrent_network():
    """Which of two patterns drives excitatory and inhibitory integrate-and-fire neurons."""
    prefs.codegen.target = "numpy"  # Cython would take longer to compile
    seed(8)
    random = np.random.default_rng(8)
    n_train, n_test, n_steps = 100, 40, 20
    labels = random.integers(0, 2, n_train + n_test)
    drive = TimedArray(np.where(labels[:, np.newaxis] == np.arange(2), 1.4, 0.7), dt=n_steps * ms)
    group = NeuronGroup(
        50,
        """dv/dt = (drive(t, pattern) - v)/(10*ms) + 0.3*xi/sqrt(10*ms) : 1
        pattern : integer""",
        threshold="v > 1",
        reset="v = 0",
        method="euler",
        dt=0.2 * ms,
    )
    group.namespace["drive"] = drive
    group.pattern = "i % 2"
    recurrent = Synapses(group, group, "strength : 1", on_pre="v_post += strength", delay=1.5 * ms)
    recurrent.connect(p=0.2)
    recurrent.strength = "0.05 - 0.25 * int(i >= 40)"
    neurons = glm.GLMNeurons(2, glm.RaisedCosineBasis(3, 10, a=2.0), random_state=9)
    neurons.bias = -4
    readout = glm.GLMSynapses(group[:40], neurons)
    learning = np.arange(n_train + n_test) < n_train
    trainer = glm.Trainer(neurons, readout, n_steps, labels, learning_rate=0.05, is_training=learning)
    Network(collect()).run(trainer.duration)
    log_likelihoods = trainer.log_likelihoods[learning]
    assert log_likelihoods[-40:].mean() > log_likelihoods[:40].mean() + 0.3
    assert trainer.accuracy() > 0.7


# ------------------------------------------------------------------- bad arguments


def two_neurons():
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
    return neurons, glm.GLMSynapses(glm.RateEncoder(np.zeros(3)), neurons)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(), ValueError, "labels must be given"),
        (dict(labels=[0, 2]), ValueError, "labels must be .* from 0 to 1"),
        (dict(labels=[0.5]), ValueError, "labels must be"),
        (dict(labels=[1e300]), ValueError, "labels must be"),
        (dict(labels=[[0], [0, 1]]), TypeError, "labels must be"),
        (dict(labels=[]), ValueError, "labels must be"),
        (dict(labels=[[0]]), ValueError, "labels must have the shape"),
        (dict(labels=[0], targets=np.zeros((3, 2))), ValueError, "targets go with rule='rate'"),
        (dict(labels=[0], targets=np.zeros((3, 2)), rule="rate"), ValueError, "either labels or"),
        (dict(rule="rate"), ValueError, "either labels or targets"),
        (dict(targets=np.zeros((4, 2)), rule="rate"), ValueError, "targets must have the shape"),
        (dict(targets=np.zeros((1, 3, 3)), rule="rate"), ValueError, "targets must have the shape"),
        (dict(targets=np.full((3, 2), 2), rule="rate"), ValueError, "targets must hold only 0"),
        (dict(labels=[0], rule="spikes"), ValueError, "rule must be one of"),
        (dict(labels=[0], n_steps=0), ValueError, "n_steps must be"),
        (dict(labels=[0], batch_size=0.5), TypeError, "batch_size must be"),
        (dict(labels=[0], batch_size=2**32 + 1), ValueError, "batch_size must be"),
        (dict(labels=[0], target_period=2**64), ValueError, "target_period must be"),
        (dict(labels=[0], n_steps=2**31), ValueError, "n_steps must be"),
        (dict(labels=[0], n_steps=2**31 - 1), ValueError, "n_steps: potentials .* take fewer steps"),
        (dict(labels=[0], target_period=0), ValueError, "target_period must be"),
        (dict(labels=[0], target_start=0), ValueError, "target_start must be"),
        (dict(labels=[0], target_start=2.0), TypeError, "target_start must be"),
        (
            dict(labels=[0], target_start=99, rule="rate"),
            ValueError,
            "target_start must be at most n_steps=",
        ),
        (dict(labels=[0], learning_rate=0), ValueError, "learning_rate must be"),
        (dict(labels=[0], learn_feedback="no"), ValueError, "learn_feedback must be"),
        (dict(labels=[0], name="my trainer"), ValueError, "name must be"),
    ],
)
def test_bad_arguments(arguments, error, message):
    neurons, synapses = two_neurons()
    with catch_logs() as messages:
        with pytest.raises(error, match=message) as raised:
            glm.Trainer(neurons, synapses, **{"n_steps": 3, **arguments})
        del raised
        gc.collect()
    # Brian would warn that a half-made trainer was never in a network
    assert not [text for *_, text in messages if "'trainer" in text]


def test_bad_groups():
    neurons, synapses = two_neurons()
    others, of_others = two_neurons()
    for bad, error, message in (
        ((neurons[:1], synapses), TypeError, "neurons must be GLMNeurons, not a subgroup"),
        (
            (synapses.source, synapses),
            TypeError,
            r"neurons must be GLMNeurons.*GLMSynapses\(your_group",
        ),
        ((neurons, 3), TypeError, "synapses must be GLMSynapses or a list"),
        ((neurons, [Synapses(neurons, neurons)]), TypeError, "synapses must be GLMSynapses or a list"),
        ((neurons, [synapses, of_others]), ValueError, f"has the target {others.name}"),
        ((neurons, [synapses, synapses]), ValueError, "is given twice"),
    ):
        with pytest.raises(error, match=message):
            glm.Trainer(*bad, n_steps=3, labels=[0])


def test_devices_without_a_trainer(monkeypatch):
    neurons, synapses = two_neurons()
    monkeypatch.setattr(
        "glmbrian.training.trainer.current_target", lambda: Target("other", can_train=False)
    )
    with pytest.raises(NotImplementedError, match=r"GLMClassifier\(device='genn'\)"):
        glm.Trainer(neurons, synapses, 3, [0])


def test_activation_without_cpp_form():
    set_device("cpp_standalone", build_on_run=False)
    sigmoid = glm.get_activation("sigmoid")
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2), activation=replace(sigmoid, name="own", cpp=""))
    with pytest.raises(ValueError, match="activation 'own' has no C"):
        glm.Trainer(neurons, [], 3, [0])
