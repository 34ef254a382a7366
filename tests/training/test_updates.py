"""A Trainer changes parameters as its optimiser, schedule, mean, decay and clipping say."""

import math
import pickle

import numpy as np
import pytest
from brian2 import Network, SpikeMonitor, defaultclock, device, ms, prefs, set_device
from conftest import EXHAUSTIVE

import glmbrian as glm
from glmbrian import learning
from glmbrian.training import progress, trainer

CPP = pytest.param("cpp_standalone", marks=pytest.mark.compiled)
CYTHON = pytest.param("cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive])
N_INPUTS, N_STEPS, N_PRESENTATIONS, RATE = 4, 5, 200, 0.05
#: Every seventh presentation is a test.
IS_TRAINING = np.arange(N_PRESENTATIONS) % 7 != 3


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms
    prefs.codegen.target = "numpy"


def falling(done):
    return (1 - done) ** 2


#: Hidden neurons, and arguments of the trainer.
CASES = {
    "sgd": (0, dict(batch_size=1, weight_decay=0.2, average=0.3, learning_rate_schedule=falling)),
    "sgd, clipped": (3, dict(batch_size=1, clip_norm=0.5, learning_rate_schedule="linear")),
    "momentum, hidden": (3, dict(optimizer="momentum", batch_size=1, weight_decay=0.1)),
    "momentum, clipped": (
        0,
        dict(optimizer="momentum", batch_size=8, clip_norm=0.4, learn_feedback=False, learning_rate_schedule=falling),
    ),
    "adam": (0, dict(optimizer="adam", batch_size=1, average=1.0, learn_bias=False)),
    "adam, hidden": (
        3,
        dict(
            optimizer=glm.Adam(0.8, 0.95, 1e-3), batch_size=8, average=0.15, weight_decay=0.3, clip_norm=0.5,
            learning_rate_schedule="linear", is_training=IS_TRAINING,
        ),
    ),
    "adam, clipped": (3, dict(optimizer="adam", batch_size=1, clip_norm=0.3)),
}  # fmt: skip
#: Compiling takes long.
COMPILED = list(CASES) if EXHAUSTIVE else ["sgd", "adam, hidden"]


class Net:
    """An encoder, perhaps hidden neurons, and two outputs, with feedback kernels."""

    def __init__(self, name, n_presentations=N_PRESENTATIONS):
        self.name, (n_hidden, self.options) = name, CASES[name]
        self.random = np.random.default_rng(list(CASES).index(name))
        images = self.random.random((n_presentations, N_INPUTS))
        self.labels = self.random.integers(0, 2, n_presentations)
        stream = name.replace(", ", "_")
        encoder = glm.RateEncoder(images, n_steps=N_STEPS, random_state=1, stream=stream)
        self.basis, self.own_basis = glm.RaisedCosineBasis(2, 4), glm.IndicatorBasis(2)
        self.groups, self.synapses = [], []
        for layer, n in enumerate([n_hidden, 2] if n_hidden else [2]):
            neurons = glm.GLMNeurons(
                n, self.basis, self.own_basis, random_state=2, stream=f"{stream}_{layer}"
            )
            neurons.bias = self.random.normal(size=n) - 1
            neurons.feedback_weights = self.random.normal(size=(n, 2))
            synapses = glm.GLMSynapses(self.groups[-1] if self.groups else encoder, neurons)
            synapses.w = self.random.normal(size=synapses.w.shape) * 0.7
            self.groups.append(neurons)
            self.synapses.append(synapses)
        self.trainer = glm.Trainer(
            self.groups[-1], self.synapses, N_STEPS, self.labels, rule="rate", learning_rate=RATE,
            target_period=2, **self.options,
        )  # fmt: skip
        self.monitors = [SpikeMonitor(group) for group in (encoder, *self.groups)]
        self.parts = [encoder, *self.groups, *self.synapses, self.trainer, *self.monitors]
        self.start = self.parameters()

    def parameters(self):
        """Weights, feedback weights and biases, one of each for each layer, as one vector."""
        kinds = [
            [synapses.w for synapses in self.synapses],
            [group.feedback_weights for group in self.groups],
            [group.bias[:] for group in self.groups],
        ]
        return np.concatenate([np.ravel(array) for kind in kinds for array in kind])

    def finish(self):
        self.learned, self.trains = self.parameters(), []
        for monitor in self.monitors:
            spikes = np.zeros((len(self.labels) * N_STEPS, len(monitor.source)), dtype=int)
            spikes[np.round(monitor.t / ms).astype(int), np.asarray(monitor.i)] = 1
            self.trains.append(spikes.reshape(len(self.labels), N_STEPS, -1))
        return self

    # ---------------------------------------------------------- the same by definition

    def parts_of(self, vector):
        """Return the arrays of a vector, by kind and layer."""
        sizes = [len(group) for group in self.groups]
        shapes = [(*pair, 2) for pair in zip([N_INPUTS, *sizes], sizes)]
        shapes += [(n, 2) for n in sizes] + [(n,) for n in sizes]
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        arrays = [part.reshape(shape) for part, shape in zip(np.split(vector, ends), shapes)]
        n = len(self.groups)
        return arrays[:n], arrays[n : 2 * n], arrays[2 * n :]

    def gradient(self, vector, p):
        layers = [
            learning.Layer(self.basis, weights, bias, self.own_basis, feedback)
            for weights, feedback, bias in zip(*self.parts_of(vector))
        ]
        hidden = [trains[p] for trains in self.trains[1:-1]]
        _, gradients = learning.layered_log_likelihood(
            self.trains[0][p], self.labels[p], layers, hidden, "rate", 2
        )
        kinds = [
            [getattr(each, kind) for each in gradients] for kind in ("weights", "feedback", "bias")
        ]
        if not self.options.get("learn_feedback", True):
            kinds[1] = [np.zeros_like(each) for each in kinds[1]]
        if not self.options.get("learn_bias", True):
            kinds[2] = [np.zeros_like(each) for each in kinds[2]]
        return np.concatenate([np.ravel(array) for kind in kinds for array in kind])

    def expected(self):
        options = self.options
        values, directions, after = self.start.copy(), [], []
        decays = np.ones(values.size, dtype=bool)
        decays[-sum(map(len, self.groups)) :] = False
        if not options.get("learn_feedback", True):
            weights, feedback, _ = (sum(each.size for each in kind) for kind in self.parts_of(values))
            decays[weights : weights + feedback] = False
        learned = np.flatnonzero(options.get("is_training", np.ones(len(self.labels), bool)))
        batches = np.split(
            learned, np.arange(options["batch_size"], learned.size, options["batch_size"])
        )
        for batch in batches:
            gradient = np.mean([self.gradient(values, p) for p in batch], axis=0)
            norm = np.sqrt(np.sum(gradient**2))
            gradient *= min(1, options.get("clip_norm", np.inf) / norm)
            directions.append(gradient)
            done = np.searchsorted(learned, batch[-1]) / learned.size
            schedule = options.get("learning_rate_schedule")
            rate = RATE * {"linear": 1 - done, falling: (1 - done) ** 2, None: 1}[schedule]
            values += rate * self.direction(np.array(directions))
            values[decays] *= np.exp(-options.get("weight_decay", 0) * rate)
            after.append(values.copy())
        return np.mean(after[-max(math.ceil(options.get("average", 0) * len(after)), 1) :], axis=0)

    def direction(self, gradients):
        """Return the direction of an update, given the gradients of all updates so far."""
        ages = np.arange(len(gradients))[::-1]
        optimizer = self.options.get("optimizer", "sgd")
        if optimizer == "sgd":
            return gradients[-1]
        if optimizer == "momentum":
            return 0.9**ages @ gradients
        beta1, beta2, epsilon = (0.8, 0.95, 1e-3) if optimizer != "adam" else (0.9, 0.999, 1e-8)
        mean, square = beta1**ages @ gradients, beta2**ages @ gradients**2
        mean, square = mean / np.sum(beta1**ages), square / np.sum(beta2**ages)
        return mean / (np.sqrt(square) + epsilon)


def simulate(place):
    """Simulate all networks together, in two runs, since building a program takes long."""
    defaultclock.dt = 1 * ms
    if place == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    else:
        prefs.codegen.target = place
    nets = [Net(name) for name in (COMPILED if place == "cpp_standalone" else CASES)]
    network = Network([net.parts for net in nets])
    duration = N_PRESENTATIONS * N_STEPS
    network.run(333 * ms, namespace={})  # to within a presentation
    network.run((duration - 333) * ms, namespace={})
    if place == "cpp_standalone":
        device.build(directory=None, with_output=False)
    return [net.finish() for net in nets]


@pytest.mark.parametrize("place", ["numpy", CYTHON, CPP])
def test_two_hundred_presentations_equal_the_definitions(place):
    for net in simulate(place):
        np.testing.assert_allclose(net.learned, net.expected(), rtol=0, atol=1e-9, err_msg=net.name)
        assert np.median(np.abs(net.learned - net.start)) > 1e-3


# --------------------------------------------------------------------- store and restore


@pytest.mark.parametrize("name", ["sgd", "adam, hidden"])
def test_restore_sets_optimisers_and_means_back(name, tmp_path, monkeypatch):
    monkeypatch.setitem(CASES, name, (CASES[name][0], {**CASES[name][1], "is_training": None}))
    monkeypatch.setitem(CASES[name][1], "average", 0.6)
    net = Net(name, n_presentations=30)
    network = Network(net.parts)
    network.run(107 * ms)
    network.store(filename=str(tmp_path / "state"))
    network.store()
    network.run(43 * ms)
    learned = net.parameters()
    for filename in (None, str(tmp_path / "state")):
        network.restore(filename=filename)
        network.run(43 * ms)
        np.testing.assert_array_equal(net.parameters(), learned)


def test_files_from_before_optimisers_are_restored(tmp_path):
    """They hold fewer fields, and the classes under their former names."""
    net = Net("sgd", n_presentations=30)
    network = Network(net.parts)
    network.run(52 * ms)
    file = tmp_path / "state"
    network.store(filename=str(file))
    network.run(98 * ms)
    learned = net.parameters()
    stored = pickle.loads(file.read_bytes())
    for name in ("n_updates", "slots", "sums", "n_summed"):
        del vars(stored["default"][net.trainer.name][1])[name]
    file.write_bytes(pickle.dumps(stored))
    network.restore(filename=str(file))
    network.run(98 * ms)
    np.testing.assert_array_equal(net.parameters(), learned)
    assert trainer._Progress is progress.Progress and trainer._GroupState is progress.GroupState


# ---------------------------------------------------------------------------- arguments


class Sign(glm.Optimizer):
    name = "sign"

    def direction(self, gradient, slots, n):
        return np.sign(gradient)


def train(**options):
    encoder = glm.RateEncoder(np.ones((4, 3)), n_steps=3, random_state=1)
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(2))
    synapses = glm.GLMSynapses(encoder, neurons)
    made = glm.Trainer(neurons, synapses, 3, [0, 1, 0, 1], **options)
    return made, Network(encoder, neurons, synapses, made)


def test_an_optimizer_of_ones_own():
    made, network = train(optimizer=Sign(), batch_size=2, learning_rate=0.25)
    assert "optimizer sign" in repr(made)
    network.run(made.duration)
    assert set(made.neurons.bias[:]) <= {0, 0.25, -0.25, 0.5, -0.5}
    assert np.any(made.neurons.bias[:])
    set_device("cpp_standalone", build_on_run=False)
    with pytest.raises(ValueError, match=r"optimizer 'sign' has no C\+\+ form \(Sign.cpp\)"):
        train(optimizer=Sign())


def test_weights_in_single_precision():
    prefs.core.default_float_dtype = np.float32
    made, network = train(optimizer="adam", average=0.5, weight_decay=0.1, clip_norm=1.0)
    network.run(made.duration)
    w = made.synapses[0].w
    assert np.isfinite(w).all() and np.any(w)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(optimizer="rmsprop"), ValueError, "optimizer .* must be one of 'sgd', 'momentum', 'adam'"),
        (dict(optimizer=3), TypeError, "optimizer .* must be one of"),
        (dict(learning_rate_schedule="step"), ValueError, "learning_rate_schedule .* must be one of"),
        (dict(learning_rate_schedule=lambda done: -done), ValueError, "values of learning_rate_schedule"),
        (dict(average=1.5), ValueError, "average must be"),
        (dict(average="auto"), TypeError, "average must be"),
        (dict(weight_decay=-1), ValueError, "weight_decay must be"),
        (dict(clip_norm=0), ValueError, "clip_norm must be a finite number above 0"),
        (dict(is_training=[1, 1, 1, 0], learning=[1, 1, 1, 0]), TypeError, "are the same argument"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:the argument learning")
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        train(**arguments)


def test_learning_is_the_former_name_of_is_training():
    with pytest.warns(DeprecationWarning, match="is now called is_training") as warned:
        made, network = train(learning=[True, True, False, True])
    (ours,) = [each for each in warned if "is_training" in str(each.message)]
    assert ours.filename == __file__
    np.testing.assert_array_equal(made.is_training, [True, True, False, True])
    with pytest.warns(DeprecationWarning, match="is now called is_training"):
        np.testing.assert_array_equal(made.learning, made.is_training)
    network.run(made.duration)
    np.testing.assert_array_equal(np.isnan(made.log_likelihoods), ~made.is_training)
