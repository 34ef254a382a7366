"""Networks learn from a reward of the user's own; test_hidden_neurons.py checks gradients and C++."""

import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    Synapses,
    TimedArray,
    defaultclock,
    ms,
    prefs,
    set_device,
)

import glmbrian as glm
from glmbrian.core.credit import Baseline
from glmbrian.core.likelihoods import rate_gradient

N_STEPS = 5


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms
    prefs.codegen.target = "numpy"


class Choice:
    """Two patterns, each of which should make its own output spike, with or without hidden neurons."""

    def __init__(self, n, has_hidden=True, **options):
        random = np.random.default_rng(1)
        self.labels = random.integers(0, 2, n)
        images = np.eye(2)[self.labels].repeat(3, axis=1)
        self.encoder = glm.RateEncoder(images, n_steps=N_STEPS, random_state=1)
        basis = glm.IndicatorBasis(3)
        self.outputs = glm.GLMNeurons(2, basis, glm.IndicatorBasis(1), random_state=2, stream="outputs")
        self.groups = [self.outputs]
        if has_hidden:
            self.groups = [glm.GLMNeurons(4, basis, random_state=2, stream="hidden"), self.outputs]
        self.synapses = [
            glm.GLMSynapses(*ends) for ends in zip([self.encoder, *self.groups], self.groups)
        ]
        for group in self.groups:
            group.bias = -1
        for synapses in self.synapses:
            synapses.w = random.normal(size=synapses.w.shape) * 0.3
        self.monitor = SpikeMonitor(self.outputs)
        parts = [self.encoder, self.groups, self.synapses, self.monitor, self.judge()]
        options = {"is_training": np.ones(n, bool), **self.judged_by, **options}
        self.trainer = glm.Trainer(
            self.outputs, self.synapses, N_STEPS, credit="three-factor", **options
        )
        self.network = Network(parts, self.trainer)

    def judge(self):
        """Give a point for each spike of the right neuron, and take one for each of the other."""
        judge = NeuronGroup(1, "points : 1")
        judge.run_regularly("points = 0", dt=N_STEPS * ms, when="start")
        verdict = Synapses(self.outputs, judge, on_pre="points_post += 1 - 2*int(i != wanted(t))")
        verdict.namespace["wanted"] = TimedArray(self.labels, dt=N_STEPS * ms)
        verdict.connect()
        self.judged_by = dict(reward=(judge, "points"))
        return [judge, verdict]

    def parameters(self):
        return [
            *(synapses.w.copy() for synapses in self.synapses),
            *(group.bias[:].copy() for group in self.groups),
            self.outputs.feedback_weights.copy(),
        ]

    def points(self, presentation):
        """Return the points of a presentation that ends now."""
        own = np.asarray(self.monitor.i)[self.monitor.t > (presentation * N_STEPS - 0.5) * ms]
        return float(np.sum(np.where(own == self.labels[presentation], 1, -1)))

    def run(self):
        self.network.run(self.trainer.duration, namespace={})
        return self


class OfFunction(Choice):
    def judge(self):
        self.judged_by = dict(reward=self.points)
        return []


class Points(glm.Objective):
    """The same points as the log-likelihood of an objective, which keeps its own running mean."""

    name = "points"
    clamps_outputs = False
    learns_feedback = True

    def __init__(self):
        self.baseline = Baseline()

    def gradient(self, potentials, outputs, label, activation):
        counts = outputs.sum(axis=0).astype(float)
        points = 2 * counts[label] - counts.sum()
        reward = points - self.baseline.value(points)
        self.baseline.add(points)
        return points, reward * rate_gradient(potentials, outputs, activation)[1]


class OfObjective(Choice):
    def judge(self):
        self.judged_by = dict(labels=self.labels)
        return []


def test_a_task_is_learned_by_reward_alone():
    n = 240
    learning = np.arange(n) < 200
    net = Choice(n, has_hidden=False, rule="rate", is_training=learning, learning_rate=0.1).run()
    rewards = net.trainer.rewards
    assert rewards[:20].mean() < 1 and rewards[150:200].mean() > 2.5
    assert np.isnan(rewards[200:]).all() and np.isnan(net.trainer.log_likelihoods).all()
    assert np.mean(net.trainer.decisions[200:] == net.labels[200:]) > 0.9


def test_variables_functions_and_objectives_reward_alike():
    nets = [Choice(40), OfFunction(40), OfObjective(40, rule=Points())]
    start = nets[0].parameters()
    for net in nets:
        net.run()
    for net in nets[1:]:
        for array, same in zip(nets[0].parameters(), net.parameters(), strict=True):
            np.testing.assert_allclose(array, same, rtol=0, atol=1e-12)
    assert all(np.abs(one - other).max() > 1e-4 for one, other in zip(nets[0].parameters(), start))
    points = [nets[0].trainer.rewards, nets[1].trainer.rewards, nets[2].trainer.log_likelihoods]
    np.testing.assert_array_equal(points[0], points[1])
    np.testing.assert_array_equal(points[0], points[2])
    assert len(set(points[0])) > 3


def rewards_seen(group, name, part=slice(None), others=()):
    """Return the rewards that a trainer reads from a variable of a group, or of a part of it."""
    source = group if part == slice(None) else group[part]
    outputs = glm.GLMNeurons(2, glm.IndicatorBasis(1), random_state=1)
    trainer = glm.Trainer(
        outputs, [], 2, credit="three-factor", reward=(source, name), is_training=[True, False, True]
    )
    Network(outputs, group, trainer, *others).run(6 * ms, namespace={})
    return trainer.rewards.tolist()


def test_where_a_reward_may_be():
    equations = """shared_one : 1 (shared)
    x : 1
    twice = 2 * x + shared_one : 1
    is_late = t > 3*ms : boolean"""

    def one():
        group = NeuronGroup(1, equations)
        group.shared_one, group.x = 3, 4
        return group

    def several():
        group = NeuronGroup(3, "a : 1\nb : 1 (shared)\nsquare = a**2 : 1")
        group.a, group.b = [5, 6, 7], 8
        return group

    for group, part, name, first, last in (
        (one(), slice(None), "shared_one", 3, 3),
        (one(), slice(None), "x", 4, 4),
        (one(), slice(0, 1), "twice", 11, 11),
        (one(), slice(None), "is_late", 0, 1),
        (several(), slice(None), "b", 8, 8),
        (several(), slice(1, 2), "a", 6, 6),
        (several(), slice(2, 3), "square", 49, 49),
    ):
        seen = rewards_seen(group, name, part)
        np.testing.assert_array_equal(seen, [first, np.nan, last], err_msg=name)
    cells = several()
    synapses = Synapses(cells, cells, "total : 1 (shared)")
    synapses.connect()
    synapses.total = 9
    np.testing.assert_array_equal(rewards_seen(synapses, "total", others=[cells]), [9, np.nan, 9])
    # changed in the last step of a presentation by Brian's own code
    counter = NeuronGroup(1, "n : 1")
    counter.run_regularly("n += 1", dt=1 * ms, when="end")
    np.testing.assert_array_equal(rewards_seen(counter, "n"), [2, np.nan, 6])


def test_store_and_restore():
    net = Choice(8, batch_size=3)
    net.network.run(17 * ms)
    net.network.store()
    net.network.run(23 * ms)
    once = [net.trainer.rewards, *net.parameters()]
    net.network.restore()
    net.network.run(23 * ms)
    for array, same in zip(once, [net.trainer.rewards, *net.parameters()]):
        np.testing.assert_array_equal(array, same)


def test_errors():
    outputs = glm.GLMNeurons(2, glm.IndicatorBasis(1))
    group = NeuronGroup(2, "x : 1\none : 1 (shared)\nv : volt (shared)")
    given = dict(reward=(group, "one"), credit="three-factor", is_training=[True])

    def refuses(error, message, **arguments):
        with pytest.raises(error, match=message):
            glm.Trainer(outputs, [], 3, **{**given, **arguments})

    refuses(ValueError, "reward needs credit='three-factor', got credit='flip'", credit="flip")
    refuses(ValueError, "reward takes the place of labels", labels=[0])
    refuses(ValueError, "reward takes the place of targets", targets=np.zeros((1, 3, 2)), rule="rate")
    refuses(
        ValueError, r"is_training must be given with reward.*np.ones\(200, bool\)", is_training=None
    )
    refuses(ValueError, f"{group.name} has no variable 'y'; add it to the eq", reward=(group, "y"))
    refuses(ValueError, "'x' of .* has several values; write 'x : 1 .shared.'", reward=(group, "x"))
    refuses(ValueError, "'v' of .* has a unit", reward=(group, "v"))
    refuses(TypeError, r"reward must be \(group, 'variable'\)", reward="one")
    refuses(TypeError, "is not a Brian group", reward=(3, "one"))
    synapses = Synapses(outputs, outputs, "w : 1")
    synapses.connect(i=0, j=1)
    refuses(ValueError, "'w' of .* has several values", reward=(synapses, "w"))
    bad = NeuronGroup(1, "one : 1")
    bad.one = np.nan
    for reward, parts, message in (
        ((bad, "one"), [bad], r"reward \(.*one\) must be a finite number, got nan"),
        (lambda presentation: None, [], r"reward\(0\) must be a finite number, got None"),
        (len, [], r"reward must be a function of the number of a presentation, but reward\(0\) raised"),
    ):
        outputs = glm.GLMNeurons(2, glm.IndicatorBasis(1))
        trainer = glm.Trainer(outputs, [], 3, **{**given, "reward": reward})
        with pytest.raises((ValueError, TypeError), match=message):
            Network(outputs, trainer, parts).run(3 * ms, namespace={})
    set_device("cpp_standalone", build_on_run=False)
    outputs = glm.GLMNeurons(2, glm.IndicatorBasis(1))
    refuses(ValueError, "cannot call a Python function", reward=lambda presentation: 1.0)
