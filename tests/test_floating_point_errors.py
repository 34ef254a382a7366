"""``np.seterr(all="raise")`` in the user's program changes nothing: underflow is no mistake."""

import numpy as np
import pytest
from brian2 import Network, StateMonitor, ms, prefs

import glmbrian as glm

RANDOM = np.random.default_rng(0)
Y = np.repeat([0, 1], 10)
X = np.clip(RANDOM.random((20, 8)) * 0.4 + np.repeat(np.eye(2), 4, axis=1)[Y] * 0.6, 0, 1)
TRAINS = RANDOM.random((300, 2)) < 0.2
ACTIVATIONS = ["sigmoid", "probit", "cloglog"]


@pytest.fixture(autouse=True)
def numpy_target():
    before = prefs.codegen.target
    prefs.codegen.target = "numpy"
    yield
    prefs.codegen.target = before


def assert_same_under_raise(work):
    with np.errstate(all="ignore"):
        expected = work()
    with np.errstate(all="raise"):
        got = work()
    assert len(got) == len(expected)
    for one, other in zip(got, expected):
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:training seems to diverge")
@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_classifiers(activation, decoding):
    """Potentials of some tens: probabilities underflow."""
    # A large bias in place of a large learning rate, which may diverge.
    settings = dict(
        n_steps=6, n_basis=2, n_epochs=2, learning_rate=0.01, bias_init=-30.0, weight_scale=10.0
    )

    def work():
        clf = glm.GLMClassifier(
            decoding, activation=activation, device="runtime", random_state=0, verbose=False, **settings
        ).fit(X, Y)
        values, gradients = glm.robustness.input_gradient(clf, X, Y)
        return (
            clf.weights_,
            clf.predict_proba(X),
            clf.decision_function(X),
            list(clf.evaluate(X, Y, calibration=True).values())[:2],
            glm.robustness.attack(clf, X, Y, 2),
            glm.robustness.certified(clf, X, Y, 1),
            values,
            gradients,
        )

    assert_same_under_raise(work)


def test_hidden_layers():
    def work():
        clf = glm.GLMClassifier(
            n_steps=6,
            n_basis=2,
            n_epochs=2,
            hidden=(4,),
            bias_init=-30.0,
            weight_scale=10.0,
            activation="cloglog",
            device="runtime",
            random_state=0,
            verbose=False,
        ).fit(X, Y)
        return clf.weights_, clf.predict_proba(X), glm.robustness.attack(clf, X, Y, 2)

    assert_same_under_raise(work)


@pytest.mark.filterwarnings("ignore:trainer")
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_simulation_and_trainer(activation):
    """Potentials of hundreds, and a kernel that decays to 0 within its window."""

    def work():
        encoder = glm.RateEncoder(X[:4], n_steps=5, random_state=1, dt=1 * ms)
        basis = glm.ExponentialBasis([0.05, 2.0], 40)
        neurons = glm.GLMNeurons(
            2, basis, feedback_basis=basis, activation=activation, dt=1 * ms, random_state=0
        )
        neurons.bias = [-100, 30]
        synapses = glm.GLMSynapses(encoder, neurons)
        synapses.w = 1e-3
        trainer = glm.Trainer(
            neurons, synapses, n_steps=5, labels=Y[:4], rule="rate", learning_rate=0.01
        )
        monitor = StateMonitor(neurons, ("u", "firing_probability"), record=True)
        Network(encoder, neurons, synapses, trainer, monitor).run(40 * ms)
        return monitor.u, monitor.firing_probability, synapses.w[:], trainer.log_likelihoods

    assert_same_under_raise(work)


def test_populations():
    def work():
        population = glm.fit_population(TRAINS, feedback_basis=glm.ExponentialBasis([2.0, 10.0], 40))
        return (
            population.bias,
            population.score(TRAINS),
            *population.rescaled_times(TRAINS, random_state=0),
        )

    assert_same_under_raise(work)


def test_divergence_is_the_same_error():
    clf = glm.GLMClassifier(
        n_steps=6, n_basis=2, learning_rate=5.0, activation="probit", device="runtime", random_state=0
    )
    with (
        np.errstate(all="raise"),
        pytest.raises(ValueError, match="^training diverged .*learning_rate=5"),
    ):
        clf.fit(X, Y)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    activation, u = glm.get_activation(activation), np.array([-800.0, -40.0, 0.0, 40.0, 800.0])

    def work():
        return [
            getattr(activation, name)(u)
            for name in (
                "probability",
                "log_spike",
                "log_silence",
                "log_spike_slope",
                "log_silence_slope",
            )
        ] + list(activation.silence_terms(u))

    assert_same_under_raise(work)
