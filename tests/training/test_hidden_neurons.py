"""Hidden neurons learn in networks of the user's own, also recurrent ones with delays."""

import delayed_match
import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    Synapses,
    defaultclock,
    device,
    ms,
    prefs,
    set_device,
)
from brian2.core.base import BrianObjectException
from conftest import EXHAUSTIVE
from delayed_match import DelayedMatch

import glmbrian as glm
from glmbrian import learning
from glmbrian.core.credit import Baseline

CPP = pytest.param("cpp_standalone", marks=pytest.mark.compiled)
#: Brian compiles each operation of its Cython target by itself: several minutes in all.
CYTHON = pytest.param("cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive])
N_INPUTS, N_STEPS, N_PRESENTATIONS = 6, 6, 200
RATE = 0.2


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms


def choose(place):
    """Simulate on a Brian code generation target, or on the standalone device."""
    if place == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    else:
        prefs.codegen.target = place


class Net:
    """Groups by name, the outputs first, and synapses that learn."""

    def __init__(self, rule, n_presentations, seed=0, **options):
        self.seed, self.random = seed, np.random.default_rng(seed)
        images = self.random.integers(0, 256, (n_presentations, N_INPUTS)).astype(np.uint8)
        self.encoder = glm.RateEncoder(images, n_steps=N_STEPS, random_state=seed)
        self.labels = self.random.integers(0, 3, n_presentations)
        self.groups, self.synapses = {}, []
        self.build()
        outputs = self.groups["outputs"]
        options = {"target_period": 2, "learning_rate": RATE, **self.examples(), **options}
        self.trainer = glm.Trainer(
            outputs, self.synapses, N_STEPS, rule=rule, name=f"t{seed}", **options
        )
        self.monitors = {
            name: SpikeMonitor(group)
            for name, group in (("encoder", self.encoder), *self.groups.items())
        }
        self.start, self.recorded = self.parameters(), {}

    def examples(self):
        """What the trainer learns from."""
        return dict(labels=self.labels)

    def group(self, name, n, kernels, feedback=None):
        neurons = glm.GLMNeurons(
            n, kernels, feedback_basis=feedback, random_state=self.seed, stream=name
        )
        neurons.bias = self.random.normal(size=n) - 0.5
        if feedback is not None:
            neurons.feedback_weights = self.random.normal(size=(n, feedback.n_basis))
        self.groups[name] = neurons
        return neurons

    def connect(self, source, target, kernel, connect=True, delay=None, **own_code):
        synapses = glm.GLMSynapses(source, target, kernel, connect, **own_code)
        synapses.w = self.random.normal(size=synapses.w.shape) * 0.7
        if delay is not None:
            synapses.delay = delay
        self.synapses.append(synapses)

    def parameters(self):
        """Weights of the synapses, then biases and feedback weights of the groups."""
        arrays = [synapses.w.copy() for synapses in self.synapses]
        for group in self.groups.values():
            arrays.append(group.bias[:].copy())
            if group.feedback_basis is not None:
                arrays.append(group.feedback_weights.copy())
        return arrays

    def parts(self):
        return [
            self.encoder, *self.groups.values(), *self.synapses, self.trainer, *self.monitors.values()
        ]  # fmt: skip

    def run(self):
        Network(self.parts()).run(self.trainer.duration, namespace={})

    def trains(self, name):
        """Spikes (n_presentations, N_STEPS, n) during training."""
        if name in self.recorded:
            return self.recorded[name]
        monitor = self.monitors[name]
        steps = np.round(monitor.t / ms).astype(int)
        spikes = np.zeros(
            (max(len(self.labels) * N_STEPS, steps.max(initial=0) + 1), len(monitor.source))
        )
        spikes[steps, np.asarray(monitor.i)] = 1
        return spikes[: len(self.labels) * N_STEPS].reshape(len(self.labels), N_STEPS, -1).astype(int)


# --------------------------------------------------------- layers, beside `learning`


class Layers(Net):
    sizes: tuple[int, ...] = (5,)
    outputs_are_free = False

    def judged(self, log_likelihood, outputs):
        """Return the reward of a presentation, and how many layers learn from it."""
        return log_likelihood, len(self.sizes)

    def build(self):
        basis = glm.CustomBasis(np.random.default_rng(7).normal(size=(4, 2)))
        below = self.encoder
        for number, n in enumerate(self.sizes):
            hidden = self.group(f"hidden{number}", n, basis, glm.IndicatorBasis(2))
            self.connect(below, hidden, "stimulus")
            below = hidden
        outputs = self.group("outputs", 3, glm.ExponentialBasis([2.0, 4.0], 5), glm.IndicatorBasis(3))
        self.connect(below, outputs, "stimulus")

    def expected(self, rule, credit, batch_size):
        """Learn by `learning` from the recorded spikes."""
        names = [*(f"hidden{n}" for n in range(len(self.sizes))), "outputs"]
        groups = [self.groups[name] for name in names]
        values = iter(self.start)
        weights = [next(values) for _ in self.synapses]
        bias, feedback = zip(*((next(values), next(values)) for _ in names))
        trains = {name: self.trains(name) for name in ("encoder", *names)}
        parts = [weights, list(bias), list(feedback)]
        log_likelihoods, sums, baseline = [], None, Baseline()
        for p, label in enumerate(self.labels):
            layers = []
            for n, group in enumerate(groups):
                # First-to-spike training clamps the outputs to silence, so nothing is fed back.
                layers.append(
                    learning.Layer(group.kernels["stimulus"], weights[n], parts[1][n],
                                   group.feedback_basis, parts[2][n])
                )  # fmt: skip
            hidden = [trains[name][p] for name in names[:-1]]
            value, gradients = learning.layered_log_likelihood(
                trains["encoder"][p], label, layers, hidden, rule, 2
            )
            if credit == "three-factor":
                value, n_by_credit = self.judged(value, trains["outputs"][p])
                reward = value - baseline.value(value)
                baseline.add(value)
                own = [trains[name][p] for name in names]
                for n, layer in enumerate(layers[:n_by_credit]):
                    below = trains["encoder"][p] if n == 0 else own[n - 1]
                    u = layer.potentials(below, own[n])
                    error = reward * layer.log_probability_slope(u, own[n])
                    gradients[n] = learning_gradient(layer, below, own[n], error)
            log_likelihoods.append(value)
            now = [
                [g.weights for g in gradients],
                [g.bias for g in gradients],
                [g.feedback for g in gradients],
            ]
            if sums is not None:
                now = [[a + b for a, b in zip(x, y)] for x, y in zip(sums, now)]
            sums = now
            n_in_batch = p % batch_size + 1
            if n_in_batch == batch_size or p + 1 == len(self.labels):
                for part, total in zip(parts, sums):
                    for n in range(len(part)):
                        part[n] = part[n] + RATE / n_in_batch * total[n]
                weights, sums = parts[0], None
        learned = [*parts[0]]
        for n in range(len(names)):
            is_fixed = not self.outputs_are_free and rule != "rate" and n == len(names) - 1
            learned += [parts[1][n], self.start_feedback(n) if is_fixed else parts[2][n]]
        return learned, log_likelihoods

    def start_feedback(self, n):
        return self.start[len(self.synapses) + 2 * n + 1]


def learning_gradient(layer, inputs, own, error):
    from glmbrian.core.layers import Gradient
    from glmbrian.core.likelihoods import feedback_gradient, weight_gradient

    return Gradient(
        weight_gradient(inputs, error, layer.basis),
        feedback_gradient(own, error, layer.feedback_basis),
        error.sum(axis=0),
    )


class TwoLayers(Layers):
    sizes = (5, 4)


class Rewarded(Layers):
    """Each spike of an output has a worth; the reward is half their sum over a presentation."""

    outputs_are_free = True
    worths = np.array([1.0, -2.0, 0.5])

    def build(self):
        super().build()
        equations = "total : 1\nreward = half * total : 1"
        self.judges = NeuronGroup(2, equations, namespace={"half": 0.5})
        self.verdict = Synapses(
            self.groups["outputs"], self.judges[1:], "worth : 1", on_pre="total_post += worth"
        )
        self.verdict.connect()
        self.verdict.worth = self.worths
        self.judges.run_regularly("total = 0", dt=N_STEPS * ms, when="start")

    def examples(self):
        return dict(reward=(self.judges[1:], "reward"), is_training=np.ones(len(self.labels), bool))

    def parts(self):
        return [*super().parts(), self.judges, self.verdict]

    def judged(self, log_likelihood, outputs):
        return 0.5 * outputs.sum(axis=0) @ self.worths, len(self.sizes) + 1


CASES = {
    "one": (Layers, "first-to-spike", "straight-through", 1),
    "one, rate": (Layers, "rate", "straight-through", 8),
    "two": (TwoLayers, "first-to-spike", "straight-through", 1),
    "two, rate": (TwoLayers, "rate", "straight-through", 8),
    "three-factor": (TwoLayers, "first-to-spike", "three-factor", 1),
    "reward": (Rewarded, "first-to-spike", "three-factor", 3),
}
#: Compiling takes long.
COMPILED = list(CASES) if EXHAUSTIVE else ["two", "reward"]


@pytest.mark.parametrize("place", ["numpy", CYTHON, CPP])
def test_two_hundred_presentations_equal_the_maths(place, networks):
    for name, net in networks(place).items():
        if name not in CASES:
            continue
        _, rule, credit, batch_size = CASES[name]
        expected, log_likelihoods = net.expected(rule, credit, batch_size)
        np.testing.assert_allclose(
            net.learned_log_likelihoods, log_likelihoods, rtol=0, atol=1e-9, err_msg=name
        )
        for got, wanted in zip(net.learned, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-9, err_msg=name)
        moved = [np.abs(a - b).max() for a, b in zip(net.learned, net.start)]
        assert np.median(moved) > 1e-5


# ------------------------------------------ any network, beside an automatic derivative


class Recurrent(Net):
    """Two hidden groups that drive themselves, each other and the outputs, with delays."""

    def build(self):
        fast, slow = glm.IndicatorBasis(2), glm.CustomBasis([[0.0], [1.0], [0.5]])
        a = self.group("a", 4, {"input": slow, "lateral": fast, "back": fast}, glm.IndicatorBasis(3))
        b = self.group("b", 3, {"forward": slow})
        outputs = self.group("outputs", 3, {"a": fast, "b": slow}, glm.IndicatorBasis(2))
        self.connect(self.encoder, a, "input", "(i + j) % 3 != 0")
        self.connect(a, a, "lateral", "i != j", delay="((i + j) % 3)*ms")
        self.connect(a[1:], b, "forward", delay=1 * ms)
        self.connect(b, a[:3], "back")
        self.connect(a, outputs[1:], "a")
        self.connect(b, outputs, "b", delay=2 * ms)

    def relaxed(self, parameters):
        """The log-likelihood as a function of parameters near the start.

        A hidden spike is h + g(v) - g(v_start): its derivative is that of its probability.
        """
        start = self._potentials(self.start, None)
        u = self._potentials(parameters, start)["outputs"]
        objective = self.trainer.objective
        desired = objective.desired(self.labels[0], N_STEPS, 3)
        return objective.gradient(u, desired, self.labels[0], self.groups["outputs"].activation)[0]

    def _potentials(self, parameters, start):
        values = iter(parameters)
        weights = [next(values) for _ in self.synapses]
        groups = {"encoder": self.encoder, **self.groups}
        spikes = {name: self.trains(name)[0].astype(float) for name in groups}
        u, kernels = {}, []  # kernels: source, target, and an array (lag, source, target) with delays
        for name, group in self.groups.items():
            u[name] = np.tile(next(values), (N_STEPS, 1))
            if group.feedback_basis is not None:
                own = group.feedback_basis.matrix @ next(values).T
                kernels.append((name, name, own[:, :, np.newaxis] * np.eye(len(group))))
        for synapses, w in zip(self.synapses, weights):
            source, target = (
                next(name for name, group in groups.items() if group.id == whole(end).id)
                for end in (synapses.source, synapses.target)
            )
            i = synapses.i[:] + getattr(synapses.source, "start", 0)
            j = synapses.j[:] + getattr(synapses.target, "start", 0)
            delays = np.broadcast_to(np.round(synapses.delay[:] / ms).astype(int), i.shape)
            kernel = np.zeros((10, len(groups[source]), len(groups[target])))
            for lag, row in enumerate(synapses.basis.matrix):
                np.add.at(kernel, (lag + delays, i, j), w[synapses.i[:], synapses.j[:]] @ row)
            kernels.append((source, target, kernel))
        for t in range(N_STEPS):
            if start is not None:
                for name in ("a", "b"):
                    g = self.groups[name].activation.probability
                    spikes[name][t] += g(u[name][t]) - g(start[name][t])
            for source, target, kernel in kernels:
                later = u[target][t + 1 : t + 1 + len(kernel)]
                later += np.einsum("j,lji->li", spikes[source][t], kernel[: len(later)])
        return u


def whole(group):
    return getattr(group, "source", group)


@pytest.mark.parametrize("rule", ["first-to-spike", pytest.param("rate", marks=pytest.mark.exhaustive)])
def test_recurrent_gradients_equal_an_automatic_derivative(rule):
    choose("numpy")
    net = Recurrent(rule, 1, seed=3)
    net.run()
    net.recorded = {name: net.trains(name) for name in net.monitors}
    random, n_moved = np.random.default_rng(4), 0
    for number, (start, end) in enumerate(zip(net.start, net.parameters())):
        # Along a random direction, which leaves out pairs that are not connected.
        direction = random.normal(size=start.shape)
        if number < len(net.synapses):
            direction *= np.any(start, axis=-1, keepdims=True)
        values = []
        for step in (1e-4, -1e-4, 2e-4, -2e-4):
            moved = [array.copy() for array in net.start]
            moved[number] += step * direction
            values.append(net.relaxed(moved))
        # of fourth order
        expected = (8 * (values[0] - values[1]) - (values[2] - values[3])) / 12e-4
        if number == len(net.start) - 1 and rule == "first-to-spike":
            expected = 0  # the feedback of the outputs does not learn
        found = np.sum((end - start) / RATE * direction)
        assert found == pytest.approx(expected, rel=1e-8, abs=1e-9), number
        n_moved += found != 0
    assert n_moved >= 8


class SpikeTiming(Recurrent):
    """Spike-timing plasticity also changes the weights among the neurons of a hidden group."""

    def connect(self, source, target, kernel, connect=True, delay=None):
        own_code = {}
        if kernel == "lateral":
            own_code = dict(
                model="""
                    dbefore/dt = -before / (8*ms) : 1 (event-driven)
                    dafter/dt = -after / (12*ms) : 1 (event-driven)
                    moved : 1
                    n_received : integer
                """,
                on_pre="before += 1; w_0 -= 1e-3 * after; moved -= 1e-3 * after",
                on_post="after += 1; w_0 += 2e-3 * before; moved += 2e-3 * before; n_received += 1",
            )
        super().connect(source, target, kernel, connect, delay, **own_code)
        if own_code:
            self.lateral = self.synapses[-1]

    def results_of_own_code(self):
        return [getattr(self.lateral, name)[:] for name in ("moved", "before", "after", "n_received")]


RECURRENT = {"recurrent": (SpikeTiming, "first-to-spike", 1, "straight-through"),
             "recurrent, rate": (Recurrent, "rate", 8, "three-factor")}  # fmt: skip
#: Presentations that are learned; the others are tests.
LEARNING = np.random.default_rng(2).random(N_PRESENTATIONS) < 0.8


@pytest.mark.compiled
def test_recurrent_networks_learn_alike_in_programs(networks):
    for name in RECURRENT:
        one, other = (networks(place)[name] for place in ("numpy", "cpp_standalone"))
        for array, same in zip(one.learned, other.learned, strict=True):
            np.testing.assert_allclose(array, same, rtol=0, atol=1e-9)
        np.testing.assert_array_equal(one.trains("a"), other.trains("a"))
        np.testing.assert_array_equal(one.tested, other.tested)
        assert np.all(one.tested[0][LEARNING] == -1) and {0, 1, 2} <= set(one.tested[0])


@pytest.mark.compiled
def test_a_rule_of_spike_timing_beside_a_trainer(networks):
    one, other = (networks(place)["recurrent"] for place in ("numpy", "cpp_standalone"))
    for array, same in zip(one.own, other.own, strict=True):
        np.testing.assert_allclose(array, same, rtol=0, atol=1e-9)
    moved, _, _, n_received = one.own
    assert np.median(np.abs(moved)) > 1e-2
    n_spikes = one.trains("a").sum(axis=(0, 1))
    np.testing.assert_array_equal(n_received, n_spikes[one.lateral.learned_weights()[1]])


@pytest.mark.compiled
def test_delayed_matches_are_learned_alike_in_programs(networks):
    one, other = (networks(place)["delayed match"] for place in ("numpy", "cpp_standalone"))
    for start, array, same in zip(one.start, one.learned, other.learned, strict=True):
        np.testing.assert_allclose(array, same, rtol=0, atol=1e-9)
        assert np.abs(array - start).max() > 1e-3
    np.testing.assert_array_equal(one.decided, other.decided)
    assert len(set(one.decided)) > 1


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_recurrence_remembers_over_a_gap(users_compiler):
    """The gap is longer than kernels reach, so a network without recurrence stays at chance."""
    delayed_match.choose("cpp_standalone")
    recurrent, control = (DelayedMatch(1, 16000, kind) for kind in (True, False))
    delayed_match.simulate("cpp_standalone", [recurrent, control])
    assert recurrent.accuracy() > 0.9
    assert 0.4 < control.accuracy() < 0.6


@pytest.fixture(scope="module")
def networks():
    """Simulate all networks of a device together, once, as building a program takes long."""
    done = {}

    def simulate(place):
        if place not in done:
            done[place] = _simulate(place)
        return done[place]

    return simulate


def _simulate(place):
    choose(place)
    nets = {
        name: kind(rule, N_PRESENTATIONS, seed=seed, credit=credit, batch_size=batch_size)
        for seed, (name, (kind, rule, credit, batch_size)) in enumerate(CASES.items())
        if place != "cpp_standalone" or name in COMPILED
    }
    for seed, (name, (kind, rule, batch_size, credit)) in enumerate(RECURRENT.items(), start=10):
        if place != "cython":
            nets[name] = kind(
                rule, N_PRESENTATIONS, seed, credit=credit, batch_size=batch_size, is_training=LEARNING
            )
    match = DelayedMatch(13, 32, n_test=8, batch_size=8)
    match.start = match.parameters()
    network = Network([*(part for net in nets.values() for part in net.parts()), *match.parts])
    network.run(N_PRESENTATIONS * N_STEPS * ms, namespace={})
    if place == "cpp_standalone":
        device.build(directory=None, with_output=False)
    for net in nets.values():
        # Later tests may choose another device.
        net.learned, net.learned_log_likelihoods = net.parameters(), net.trainer.log_likelihoods
        if net.trainer.reward is not None:
            net.learned_log_likelihoods = net.trainer.rewards
        net.tested = [net.trainer.decisions, net.trainer.decision_steps]
        net.recorded = {name: net.trains(name) for name in net.monitors}
        if isinstance(net, SpikeTiming):
            net.own = net.results_of_own_code()
    match.learned, match.decided = match.parameters(), match.decisions()
    return {**nets, "delayed match": match}


# ------------------------------------------------------------------------ errors


def small():
    encoder = glm.RateEncoder(np.full(3, 200, np.uint8), random_state=1)
    hidden = glm.GLMNeurons(4, glm.IndicatorBasis(2), random_state=2, stream="hidden")
    outputs = glm.GLMNeurons(2, glm.IndicatorBasis(2), random_state=3)
    into, out = glm.GLMSynapses(encoder, hidden), glm.GLMSynapses(hidden, outputs)
    return encoder, hidden, outputs, into, out


def test_hidden_neurons_stay_free_and_are_cleared():
    choose("numpy")
    encoder, hidden, outputs, into, out = small()
    hidden.bias, into.w, out.w = 1.0, 0.1, 0.1
    trainer = glm.Trainer(outputs, [into, out], 4, labels=[0, 1, 0])
    monitor = SpikeMonitor(hidden)
    network = Network(encoder, hidden, outputs, into, out, trainer, monitor)
    network.run(13 * ms)
    assert len(monitor.t) > 20 and np.all(hidden.clamp[:] == 0)
    assert trainer.groups[1] is hidden
    assert np.all(hidden.u[:] == hidden.bias[:])  # cleared in the last step


def test_store_and_restore():
    choose("numpy")
    net = Recurrent("rate", 10, seed=5, batch_size=4, credit="three-factor")
    network = Network(net.parts())
    network.run(27 * ms)
    network.store()
    network.run(33 * ms)
    once = net.parameters()
    network.restore()
    network.run(33 * ms)
    for array, same in zip(once, net.parameters()):
        np.testing.assert_array_equal(array, same)


def test_errors():
    choose("numpy")
    encoder, hidden, outputs, into, out = small()
    settings = dict(n_steps=4, labels=[0])
    with pytest.raises(ValueError, match="no synapses in the list lead from one to the other"):
        glm.Trainer(outputs, into, **settings)
    with pytest.raises(ValueError, match="credit must be one of"):
        glm.Trainer(outputs, [into, out], credit="backprop", **settings)
    with pytest.raises(ValueError, match="credit must not simulate .* 'flip'"):
        glm.Trainer(outputs, [into, out], credit="flip", **settings)
    back = glm.GLMSynapses(outputs, hidden)
    for rule in ("first-to-spike", "rate"):
        with pytest.raises(ValueError, match=f"{back.name} sends spikes of .* clamps"):
            glm.Trainer(outputs, [into, out, back], rule=rule, **settings)
    trainer = glm.Trainer(outputs, [into, out], **settings)
    other = glm.Trainer(hidden, into, **settings)
    network = Network(encoder, hidden, outputs, into, out, trainer, other)
    assert f"{hidden.name} has two trainers at once" in error_of(network)
    fast = glm.GLMNeurons(4, glm.IndicatorBasis(2), dt=0.5 * ms)
    out = glm.GLMSynapses(fast, outputs)
    source = NeuronGroup(2, "", threshold="False")
    into = glm.GLMSynapses(source, fast)
    trainer = glm.Trainer(outputs, [into, out], **settings)
    network = Network(source, fast, outputs, into, out, trainer)
    assert "dt is 0.5 ms for the hidden neurons" in error_of(network)


def test_two_trainers_share_hidden_neurons():
    choose("numpy")
    encoder, hidden, outputs, into, out = small()
    others = glm.GLMNeurons(2, glm.IndicatorBasis(2), random_state=4)
    to_others = glm.GLMSynapses(hidden, others)
    trainers = [
        glm.Trainer(neurons, [into, synapses], n_steps=4, labels=[0])
        for neurons, synapses in ((outputs, out), (others, to_others))
    ]
    network = Network(encoder, hidden, outputs, others, into, out, to_others, *trainers)
    assert f"{hidden.name} has two trainers at once" in error_of(network)
    trainers[0].active = False
    network.run(1 * ms)


def test_bases_longer_than_a_presentation():
    choose("numpy")
    encoder = glm.RateEncoder(np.full(3, 200, np.uint8), random_state=1)
    long, short = glm.IndicatorBasis(5), glm.IndicatorBasis(4)
    for kernels, feedback, message in [
        ({"input": long, "own": short}, None, "the kernel 'input' of the hidden neurons .* has 5 lags"),
        ({"input": short, "own": long}, None, "the kernel 'own' of"),
        ({"input": short, "own": short}, long, "the feedback kernel of"),
        ({"input": short, "own": short, "unused": long}, short, None),
    ]:
        hidden = glm.GLMNeurons(4, kernels, feedback_basis=feedback, random_state=2, stream="hidden")
        outputs = glm.GLMNeurons(2, long, random_state=3)
        synapses = [
            glm.GLMSynapses(encoder, hidden, "input"),
            glm.GLMSynapses(hidden, hidden, "own"),
            glm.GLMSynapses(hidden, outputs),
        ]
        if message is None:
            glm.Trainer(outputs, synapses, n_steps=4, labels=[0])
        else:
            with pytest.raises(ValueError, match=f"n_steps is 4, but {message}"):
                glm.Trainer(outputs, synapses, n_steps=4, labels=[0])


@pytest.mark.parametrize("simulated_by", ["numpy", "cpp_standalone"])
def test_hidden_neurons_without_input(simulated_by):
    choose(simulated_by)

    def network(connect, recurrent, *more, **options):
        encoder, basis = (
            glm.RateEncoder(np.full(3, 200, np.uint8), random_state=1),
            glm.IndicatorBasis(2),
        )
        kernels = {"input": basis, "own": basis}
        hidden = glm.GLMNeurons(4, kernels, random_state=2, stream="hidden", **options)
        outputs = glm.GLMNeurons(2, basis, random_state=3)
        synapses = [
            glm.GLMSynapses(encoder, hidden, "input", connect),
            glm.GLMSynapses(hidden, hidden, "own", recurrent),
            glm.GLMSynapses(hidden, outputs),
        ]
        trainer = glm.Trainer(outputs, synapses, n_steps=4, labels=[0])
        more = [create(hidden, outputs, encoder) for create in more]
        return Network(encoder, hidden, outputs, *synapses, trainer, *more)

    def fixed(hidden, outputs, encoder):
        synapses = Synapses(encoder, hidden[1:], on_pre="input_0_post += 1")
        synapses.connect(p=0.5)
        return synapses

    # Neuron 3 would hear only from itself, or from nobody.
    for recurrent in ("i == j", False, "i == 3"):
        assert "no input reaches 1 of the 4 hidden neurons" in error_of(network("j < 3", recurrent))
        assert "(the first is neuron 3)" in error_of(network("j < 3", recurrent))
    assert "no input reaches 4 of the 4" in error_of(network(False, True))
    back = lambda hidden, outputs, encoder: glm.GLMSynapses(outputs, hidden, "own")  # noqa: E731
    assert "but in training rule='first-to-spike' clamps" in error_of(network(True, True, back))
    if simulated_by == "numpy":
        for connected in (
            network("j == 0", "j == i + 1"),
            network("j == 0", False, fixed),
            network(False, False, drive="1"),
        ):
            connected.run(1 * ms)


def test_a_spike_acts_one_step_later_at_the_earliest():
    """So every cycle of synapses has a lag."""
    choose("numpy")
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
    synapses = glm.GLMSynapses(neurons, neurons)
    for delay in (-1 * ms, [0, 1, 2, -0.5] * ms, "(j - 1)*ms"):
        synapses.delay = delay
        message = error_of(Network(neurons, synapses))
        assert f"delay of {synapses.name} must be at least 0, got -" in message
    synapses.delay, synapses.w, neurons.clamp = 0 * ms, 1, 1
    network = Network(neurons, synapses)
    for order in (-5, 5):
        synapses.pre.order = order
        neurons.clear()
        found = []
        for _ in range(3):
            network.run(1 * ms)
            found.append(neurons.u[0])
        assert found == [0, 2, 4]


def error_of(network):
    """The message of the error that stops a run before it begins."""
    with pytest.raises(BrianObjectException) as caught:
        network.run(1 * ms)
    return str(caught.value.__cause__)
