"""Presentations that test while a network is trained decide as separate runs do."""

import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    StateMonitor,
    TimedArray,
    defaultclock,
    device,
    ms,
    prefs,
    set_device,
)

import glmbrian as glm
from glmbrian.core.objectives import FirstToSpike

#: Exhaustive, as they compile for a minute; `test_trainer.py` and `test_hidden_neurons.py` also test
#: compiled code.
COMPILED = [
    pytest.param(place, marks=[pytest.mark.compiled, pytest.mark.exhaustive])
    for place in ("cython", "cpp_standalone")
]
N_STEPS = 6


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms


class Net:
    """Encoder, recurrent hidden neurons, and three outputs; all have feedback kernels."""

    def __init__(self, rule, learning, seed=0, slowly=False, **options):
        random = np.random.default_rng(seed)
        self.learning, n = learning, len(learning)
        images = random.integers(0, 256, (n, 5)).astype(np.uint8)
        self.labels = random.integers(0, 3, n)
        self.encoder = glm.RateEncoder(images, n_steps=N_STEPS, random_state=seed)
        fast, slow = glm.IndicatorBasis(2), glm.ExponentialBasis([2.0, 4.0], 5)
        self.hidden = glm.GLMNeurons(
            4, {"input": slow, "lateral": fast}, fast, random_state=seed, stream="hidden"
        )
        self.outputs = glm.GLMNeurons(3, slow, fast, random_state=seed, stream="outputs")
        self.groups = [self.hidden, self.outputs]
        for group, bias in ((self.hidden, -1.0), (self.outputs, -3.0)):
            group.bias, group.feedback_weights = bias, random.normal(size=(len(group), 2))
        self.synapses = [
            glm.GLMSynapses(self.encoder, self.hidden, "input"),
            glm.GLMSynapses(self.hidden, self.hidden, "lateral", "i != j", delay=1 * ms),
            glm.GLMSynapses(self.hidden, self.outputs),
        ]
        for synapses in self.synapses:
            synapses.w = random.normal(size=synapses.w.shape)
        examples = dict(labels=self.labels, is_training=learning)
        if slowly:
            examples = dict(labels=self.labels[learning])
        self.trainer = glm.Trainer(
            self.outputs, self.synapses, N_STEPS, rule=rule, target_period=3, target_start=2,
            learning_rate=0.05, **examples, **options,
        )  # fmt: skip
        self.spikes = SpikeMonitor(self.outputs)
        # At the end of a step; Brian would read potentials before their update.
        self.u = StateMonitor(self.outputs, "u", record=True, when="end")
        self.parts = [self.encoder, *self.groups, *self.synapses, self.trainer, self.spikes, self.u]

    def parameters(self):
        arrays = [synapses.w.copy() for synapses in self.synapses]
        for group in self.groups:
            arrays += [group.bias[:].copy(), group.feedback_weights.copy()]
        return arrays

    def decided_by_hand(self):
        """Return decisions and their steps, shape (2, n_presentations), from what monitors recorded."""
        n = len(self.learning)
        spiked = np.zeros((self.u.u.shape[1], 3), dtype=int)
        spiked[np.round(self.spikes.t / ms).astype(int), np.asarray(self.spikes.i)] = 1
        spiked = spiked[: n * N_STEPS].reshape(n, N_STEPS, 3)
        potentials = self.u.u.T[: n * N_STEPS].reshape(n, N_STEPS, 3)
        decided = []
        for learns, y, u in zip(self.learning, spiked, potentials):
            if learns:
                decided.append((-1, 0))
            elif not y.any():
                decided.append((-1, N_STEPS))
            elif self.trainer.rule == "rate":
                counts = y.sum(axis=0)
                best = [i for i in range(3) if counts[i] == counts.max()]
                decided.append((max(best, key=lambda i: u[:, i].sum()), N_STEPS))
            else:
                first = np.flatnonzero(y.any(axis=1))[0]
                decided.append((max(np.flatnonzero(y[first]), key=lambda i: u[first, i]), first + 1))
        return np.array(decided).T


def choose(place):
    """Simulate on a Brian code generation target, or on the standalone device."""
    if place == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    else:
        prefs.codegen.target = place


TRAIN_THEN_TEST = np.arange(32) < 16
MIXED = (np.random.default_rng(1).random(40) < 0.5) & (np.arange(40) < 36)


@pytest.mark.parametrize("rule", ["first-to-spike", pytest.param("rate", marks=pytest.mark.exhaustive)])
def test_one_run_decides_as_a_run_for_each_test(rule):
    slow = Net(rule, TRAIN_THEN_TEST, slowly=True, batch_size=4)
    network = Network(slow.parts)
    network.run(slow.trainer.duration)
    for _ in range(16):
        for group in slow.groups:
            group.clear()
        network.run(N_STEPS * ms)
    net = Net(rule, TRAIN_THEN_TEST, batch_size=4)
    Network(net.parts).run(net.trainer.duration)
    decisions, steps = slow.decided_by_hand()
    np.testing.assert_array_equal(net.trainer.decisions, decisions)
    np.testing.assert_array_equal(net.trainer.decision_steps, steps)
    assert len(set(decisions[16:])) > 2
    right = decisions[16:] == net.labels[16:]
    assert net.trainer.accuracy() == right.mean() > 0
    assert net.trainer.accuracy(slice(26, None)) == right[10:].mean()
    assert net.trainer.accuracy(np.arange(32) < 24) == right[:8].mean()
    for array, same in zip(net.parameters(), slow.parameters()):
        np.testing.assert_array_equal(array, same)


def of_fixed_spikes(learning, spikes, labels):
    """Train two clamped neurons on given spikes, in batches; return the trainer and parameters."""
    source = NeuronGroup(4, "", threshold="fixed(t, i) > 0", reset="")
    source.namespace["fixed"] = TimedArray(spikes.reshape(-1, 4), dt=1 * ms)
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(3), glm.IndicatorBasis(2), random_state=1)
    neurons.bias = -1
    synapses = glm.GLMSynapses(source, neurons)
    trainer = glm.Trainer(
        neurons, synapses, N_STEPS, labels, rule="rate", target_period=2, target_start=3, batch_size=3,
        learning_rate=0.3, is_training=learning,
    )  # fmt: skip
    network = Network(source, neurons, synapses, trainer)
    network.run(trainer.duration / 2)  # to within the batch
    network.run(trainer.duration / 2)
    return trainer, [synapses.w, neurons.bias[:], neurons.feedback_weights]


def test_tests_change_nothing_that_is_learned():
    random = np.random.default_rng(2)
    spikes, labels = (random.random((40, N_STEPS, 4)) < 0.4).astype(float), random.integers(0, 2, 40)
    trainer, parameters = of_fixed_spikes(MIXED, spikes, labels)
    alone, expected = of_fixed_spikes(None, spikes[MIXED], labels[MIXED])
    for array, wanted in zip(parameters, expected):
        np.testing.assert_array_equal(array, wanted)
    np.testing.assert_array_equal(trainer.log_likelihoods[MIXED], alone.log_likelihoods)
    assert np.isnan(trainer.log_likelihoods[~MIXED]).all() and not MIXED[-1]
    assert np.all(alone.decisions == -1) and np.isnan(alone.accuracy())
    assert np.all(trainer.decisions[MIXED] == -1) and np.any(trainer.decisions[~MIXED] >= 0)


def test_store_and_restore():
    net = Net("first-to-spike", MIXED, batch_size=3)
    network = Network(net.parts)
    network.run(100 * ms)  # to within a presentation
    network.store()
    seen = net.trainer.decisions
    network.run(140 * ms)
    once = [net.trainer.decisions, *net.parameters()]
    network.restore()
    np.testing.assert_array_equal(net.trainer.decisions, seen)
    assert np.all(seen[17:] == -1) and np.any(once[0][17:] >= 0)
    network.run(140 * ms)
    for array, same in zip(once, [net.trainer.decisions, *net.parameters()]):
        np.testing.assert_array_equal(array, same)


class Nets:
    """A trainer that tests now and then, one of another rule, and one that only tests."""

    def __init__(self, place):
        choose(place)
        self.first, self.rate = (
            Net(rule, MIXED, seed, batch_size=batch_size)
            for seed, (rule, batch_size) in enumerate({"first-to-spike": 1, "rate": 3}.items())
        )
        encoder = glm.RateEncoder([[1.0, 0.3]], random_state=3)
        neurons = glm.GLMNeurons(2, glm.IndicatorBasis(3), random_state=4)
        neurons.bias, neurons.clamp = -2, -1
        synapses = glm.GLMSynapses(encoder, neurons)
        synapses.w = np.random.default_rng(4).normal(size=synapses.w.shape)
        self.tester = glm.Trainer(neurons, [], N_STEPS, is_training=np.zeros(40))
        network = Network(self.first.parts, self.rate.parts, encoder, neurons, synapses, self.tester)
        network.run(100 * ms, namespace={})  # to within a presentation
        self.first.trainer.learning_rate = 0.1
        network.run(150 * ms, namespace={})
        if place == "cpp_standalone":
            device.build(directory=None, with_output=False)
        trainers = [self.first.trainer, self.rate.trainer, self.tester]
        self.decisions = [trainer.decisions for trainer in trainers]
        self.steps = [trainer.decision_steps for trainer in trainers]
        self.parameters = [array for net in (self.first, self.rate) for array in net.parameters()]
        self.log_likelihoods = [trainer.log_likelihoods for trainer in trainers]
        self.by_hand = [net.decided_by_hand() for net in (self.first, self.rate)]
        self.accuracy = self.first.trainer.accuracy()


@pytest.fixture(scope="module")
def on_numpy():
    defaultclock.dt = 1 * ms
    return Nets("numpy")


def test_training_and_testing_take_turns(on_numpy):
    for decided, steps, by_hand in zip(on_numpy.decisions, on_numpy.steps, on_numpy.by_hand):
        np.testing.assert_array_equal([decided, steps], by_hand)
        assert np.all(decided[MIXED] == -1) and len(set(decided[~MIXED])) > 2
    # The trainer frees neurons that were clamped.
    assert np.all(on_numpy.steps[2] > 0) and {0, 1} <= set(on_numpy.decisions[2])
    assert np.isnan(on_numpy.log_likelihoods[2]).all()


@pytest.mark.parametrize("place", COMPILED)
def test_compiled_code_decides_alike(place, on_numpy):
    nets = Nets(place)
    np.testing.assert_array_equal(nets.decisions, on_numpy.decisions)
    np.testing.assert_array_equal(nets.steps, on_numpy.steps)
    for name in ("parameters", "log_likelihoods"):
        for array, same in zip(getattr(nets, name), getattr(on_numpy, name), strict=True):
            np.testing.assert_allclose(array, same, rtol=0, atol=1e-9)
    assert nets.accuracy == on_numpy.accuracy


def test_a_tester_may_follow_a_trainer():
    net = Net("first-to-spike", np.ones(4, bool))
    tester = glm.Trainer(net.outputs, [], N_STEPS, is_training=[False, False])
    network = Network(net.parts)
    network.run(net.trainer.duration)
    before = net.parameters()
    network.add(tester)
    network.run(tester.duration / 2)
    assert list(tester.decision_steps > 0) == [True, False]
    assert "2 (1 done)" in repr(tester) and "tests 2" in repr(tester)
    network.run(tester.duration / 2)
    for array, same in zip(net.parameters(), before):
        np.testing.assert_array_equal(array, same)
    with pytest.raises(ValueError, match=f"accuracy needs labels, but {tester.name}"):
        tester.accuracy()


def test_an_objective_of_ones_own_decides():
    class Shy(FirstToSpike):
        name = "shy"

        def best(self, outcome):
            return outcome.counts == outcome.counts.min(axis=1, keepdims=True)

    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
    neurons.bias = [100, -100]
    tester = glm.Trainer(neurons, [], 3, rule=Shy(), is_training=[False])
    Network(neurons, tester).run(tester.duration)
    assert tester.decisions[0] == 1 and tester.decision_steps[0] == 1


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(labels=[0, 1, 0], is_training=[True, False]), ValueError,
         r"is_training must hold one truth value for each of the 3 presentations in labels, got 2.* "
         r"np.arange\(3\) < 100"),
        (dict(labels=[0], is_training="no"), TypeError, "is_training must be an array of 0 and 1"),
        (dict(labels=[0, 1], is_training=[0, 2]), ValueError, "is_training must hold only 0 and 1"),
        (dict(labels=[0], is_training=True), ValueError, r"is_training must have the shape \(n_presentations"),
        (dict(is_training=[]), ValueError, "is_training must hold one truth value .* but is empty"),
        (dict(is_training=[False, True]), ValueError,
         r"labels must be given .* unless all presentations are tests \(is_training=np.zeros"),
    ],
)  # fmt: skip
def test_bad_arguments(arguments, error, message):
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
    with pytest.raises(error, match=message):
        glm.Trainer(neurons, [], 3, **arguments)
