"""Objectives: those of the package, and one of a user's own with free outputs."""

import subprocess
import sys

import numpy as np
import pytest
from brian2 import Network, SpikeGeneratorGroup, device, ms, prefs, set_device

import glmbrian as glm
from glmbrian.brian.target import current_target
from glmbrian.core.likelihoods import rate_gradient
from glmbrian.core.objectives import OBJECTIVES, FirstToSpike, Objective, Rate, get_objective

N_STEPS, N_INPUTS = 6, 4


class Reinforced(Objective):
    """Makes spike trains likelier that end in more spikes of the right neuron than of others."""

    name = "reinforced"
    clamps_outputs = False
    learns_feedback = True
    cpp = """
    static constexpr bool clamps_outputs = false, learns_feedback = true, stops_at_first_spike = false;
    static bool desired(int step, int neuron, int label, int64_t period) { return false; }
    template <class Activation, class Outputs, int STEPS, int NEURONS>
    static double gradient(const double (&u)[STEPS][NEURONS], Outputs outputs, int label,
                           double (&grad)[STEPS][NEURONS])
    {
        double reward = -0.5;
        for (int t = 0; t < STEPS; t++)
            for (int i = 0; i < NEURONS; i++) reward += outputs(t, i) ? (i == label ? 1.0 : -1.0) : 0.0;
        glmbrian::rate_gradient<Activation>(u, outputs, grad);
        for (int t = 0; t < STEPS; t++)
            for (int i = 0; i < NEURONS; i++) grad[t][i] *= reward;
        return reward;
    }
"""

    def gradient(self, potentials, outputs, label, activation):
        counts = outputs.sum(axis=0).astype(float)
        reward = 2 * counts[label] - counts.sum() - 0.5
        _, slope = rate_gradient(potentials, outputs, activation)
        return reward, reward * slope


class LastToSpike(FirstToSpike):
    """Decides for the output that is silent when another spikes first."""

    name = "last-to-spike"

    def best(self, outcome):
        return outcome.counts == 0


def test_names_stand_for_objects():
    assert set(OBJECTIVES) == {"first-to-spike", "rate"}
    assert get_objective("first-to-spike", 3) == FirstToSpike()
    assert get_objective("rate", 3) == Rate(3) and Rate().period == 4
    own = Reinforced()
    assert get_objective(own, 3) is own
    with pytest.raises(ValueError, match="rule must be one of 'first-to-spike', 'rate', got 'other'"):
        get_objective("other", 3, "rule")
    with pytest.raises(TypeError, match="period must be"):
        Rate(2.5)


def test_an_objective_must_say_what_it_maximises():
    class Empty(Objective):
        name = "empty"

    with pytest.raises(TypeError, match="abstract"):
        Empty()


def test_the_core_does_not_import_brian():
    script = """
import importlib, pkgutil, sys
import glmbrian.core
for module in pkgutil.iter_modules(glmbrian.core.__path__, "glmbrian.core."):
    importlib.import_module(module.name)
slow = {"brian2", "scipy", "sklearn", "matplotlib"} & set(sys.modules)
assert not slow, slow
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def train_on_presentations(rule, batch_size=1):
    """Return what a trainer gives that learns from six presentations of known spikes."""
    random = np.random.default_rng(3)
    step, neuron = np.nonzero(random.random((6 * N_STEPS, N_INPUTS)) < 0.5)
    source = SpikeGeneratorGroup(N_INPUTS, neuron, step * ms, dt=1 * ms)
    basis = glm.RaisedCosineBasis(2, 3)
    neurons = glm.GLMNeurons(2, basis, feedback_basis=basis, random_state=1, dt=1 * ms)
    neurons.bias, neurons.feedback_weights = [-0.5, 0.2], [[-1, 0.5], [0.3, -0.2]]
    synapses = glm.GLMSynapses(source, neurons)
    synapses.w = random.normal(size=(N_INPUTS, 2, 2))
    labels = [0, 1, 1, 0, 1, 0]
    trainer = glm.Trainer(
        neurons, synapses, N_STEPS, labels, rule=rule, learning_rate=0.05, batch_size=batch_size
    )
    Network(source, neurons, synapses, trainer).run(trainer.duration + 2 * ms, namespace={})
    if not current_target().runs_at_once:
        device.build(directory=None, with_output=False)
    return trainer.log_likelihoods, synapses.w[:], neurons.feedback_weights[:], neurons.bias[:]


@pytest.mark.compiled
@pytest.mark.parametrize("batch_size", [1, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_free_outputs_are_trained_alike_on_each_device(batch_size):
    expected = train_on_presentations(Reinforced(), batch_size)
    assert len(set(expected[0].tolist())) > 1
    set_device("cpp_standalone", build_on_run=False)
    learned = train_on_presentations(Reinforced(), batch_size)
    for one, other in zip(learned, expected):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)


@pytest.mark.compiled
def test_a_classifier_takes_an_objective():
    X, y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 3, axis=1), ["left", "right"] * 10

    def fitted(device):
        return glm.GLMClassifier(
            Reinforced(), n_steps=6, n_basis=2, n_epochs=5, learning_rate=0.05, bias_init=-1.0,
            device=device, random_state=1, verbose=False,
        ).fit(X, y)  # fmt: skip

    prefs.codegen.target = "numpy"
    one, other = fitted("runtime"), fitted("cpp_standalone")
    for name in ("weights_", "feedback_", "bias_", "history_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=0, atol=1e-9)
    assert one.history_[-1] > one.history_[0] and one.score(X, y) > 0.8
    with pytest.raises(ValueError, match="decoding must be one of first-to-spike, rate to be saved"):
        one.save("unused.npz")


def test_an_objective_without_cpp_runs_in_python_only():
    X, y = [[1.0, 0.0], [0.0, 1.0]], [0, 1]
    settings = dict(n_steps=4, n_basis=2, n_epochs=1, random_state=0, verbose=False)

    class InPython(Reinforced):
        cpp = ""

    glm.GLMClassifier(InPython(), device="runtime", **settings).fit(X, y)
    with pytest.raises(ValueError, match=r"objective 'reinforced' has no C\+\+ form"):
        glm.GLMClassifier(InPython(), **settings).fit(X, y)


def test_a_decoder_of_ones_own():
    X, y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 3, axis=1), [0, 1] * 10
    settings = dict(
        n_steps=6, n_basis=2, n_epochs=20, learning_rate=0.1, bias_init=-1.0, random_state=0
    )
    settings.update(verbose=False, device="runtime")
    usual, other = (
        glm.GLMClassifier(rule, **settings).fit(X, y) for rule in (FirstToSpike(), LastToSpike())
    )
    np.testing.assert_array_equal(usual.weights_, other.weights_)
    assert usual.score(X, y) > 0.8
    one_spiked = [trace.outputs.sum() == 1 for trace in usual.record(X)]
    assert sum(one_spiked) > 10
    np.testing.assert_array_equal(other.predict(X)[one_spiked], 1 - usual.predict(X)[one_spiked])


def test_an_unknown_device_is_named(monkeypatch):
    class CUDAStandaloneDevice:
        pass

    monkeypatch.setattr("glmbrian.brian.target.get_device", CUDAStandaloneDevice)
    with pytest.raises(NotImplementedError, match="CUDAStandaloneDevice.*use one of 'runtime'"):
        glm.GLMNeurons(2, glm.IndicatorBasis(1))
