"""A population apart from simulation: its equations, and the way to Brian objects and back."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from brian2 import (
    BrianObjectException,
    Clock,
    Network,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    defaultclock,
    ms,
    mV,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import glmbrian as glm
from glmbrian import learning
from glmbrian.interop import Recording


def random_population(rng, n=3, activation="sigmoid", feedback=True, scale=0.5, **n_sources):
    """A population with kernels of these names and numbers of sources."""
    bases = {
        name: glm.CustomBasis(rng.normal(size=(rng.integers(1, 9), rng.integers(1, 4))))
        for name in [*n_sources, "feedback"]
    }
    fed_back = bases.pop("feedback")
    weights = {
        name: scale * rng.normal(size=(n_source, n, bases[name].n_basis))
        for name, n_source in n_sources.items()
    }
    return glm.GLMPopulation(
        rng.normal(size=n) - 1,
        bases,
        weights,
        fed_back if feedback else None,
        scale * rng.normal(size=(n, fed_back.n_basis)) if feedback else None,
        activation,
    )


def potential_by_definition(population, inputs, outputs):
    """Eqs. membrane_potential_GLM and Ex_GLM_1, lag by lag."""
    u = np.tile(population.bias, (len(outputs), 1))
    for t in range(len(u)):
        for name, x in inputs.items():
            kernel = population.kernel(name)
            for lag in range(1, min(kernel.shape[2], t) + 1):
                u[t] += x[t - lag] @ kernel[:, :, lag - 1]
        if population.feedback_basis is not None:
            beta = population.feedback_kernels()
            for lag in range(1, min(beta.shape[1], t) + 1):
                u[t] += outputs[t - lag] * beta[:, lag - 1]
    return u


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 4),
    n_source=st.integers(1, 4),
    n_steps=st.integers(1, 40),
    feedback=st.booleans(),
    chunk=st.integers(1, 50),
)
def test_potential_is_that_of_the_equation(seed, n, n_source, n_steps, feedback, chunk):
    rng = np.random.default_rng(seed)
    population = random_population(rng, n, feedback=feedback, stimulus=n_source, coupling=n)
    outputs = rng.random((n_steps, n)) < 0.4
    inputs = {"stimulus": rng.normal(size=(n_steps, n_source)), "coupling": outputs}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glmbrian.core.likelihoods.CHUNK", chunk)
        u = population.membrane_potential(inputs, outputs)
    np.testing.assert_allclose(u, potential_by_definition(population, inputs, outputs), atol=1e-12)


@pytest.mark.parametrize("n_source", [2, 20])
@pytest.mark.parametrize("n_functions", [200, 100, 5])
def test_long_recording_is_filtered_exactly(n_functions, n_source):
    """Single lags, many functions and few are filtered in three ways."""
    rng = np.random.default_rng(2)
    n_steps, window = 200_000 // n_source, 200
    basis = glm.IndicatorBasis(window)
    if n_functions < window:
        basis = glm.CustomBasis(rng.normal(size=(window, n_functions)) / np.sqrt(n_functions))
    weights = rng.normal(size=(n_source, 1, n_functions))
    population = glm.GLMPopulation([0.0], {"stimulus": basis}, {"stimulus": weights})
    x = rng.normal(size=(n_steps, n_source))
    x[n_steps // 2 : n_steps // 2 + 1000] = 0.0
    u = population.membrane_potential(x)[:, 0]
    kernel = population.kernel()[:, 0]
    for t in [0, 1, window, *rng.integers(window, n_steps, 200), n_steps - 1]:
        lags = np.arange(1, min(t, window) + 1)
        assert u[t] == pytest.approx(np.sum(kernel[:, lags - 1] * x[t - lags].T), abs=1e-10)
    assert np.all(u[n_steps // 2 + window : n_steps // 2 + 1001] == 0.0)


def test_potential_is_that_of_the_reference():
    rng = np.random.default_rng(3)
    population = random_population(rng, stimulus=5)
    x, y = (rng.random((50, 5)) < 0.3), (rng.random((50, 3)) < 0.3)
    want = learning.membrane_potential(
        x,
        population.kernels["stimulus"].matrix,
        population.weights["stimulus"],
        population.bias,
        y,
        population.feedback_basis.matrix,
        population.feedback_weights,
    )
    np.testing.assert_allclose(population.membrane_potential(x, y), want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])
def test_log_likelihood_is_that_of_the_rate_rule(activation):
    rng = np.random.default_rng(4)
    population = random_population(rng, activation=activation, scale=0.1, stimulus=5)
    x, y = (rng.random((50, 5)) < 0.3), (rng.random((50, 3)) < 0.3)
    want = learning.rate_log_likelihood(
        x,
        y,
        population.kernels["stimulus"].matrix,
        population.feedback_basis.matrix,
        population.weights["stimulus"],
        population.feedback_weights,
        population.bias,
        activation,
    )[0]
    assert population.log_likelihood(y, x) == pytest.approx(want, rel=1e-12)
    mask = rng.random(50) < 0.5
    parts = population.log_likelihood(y, x, mask), population.log_likelihood(y, x, ~mask)
    assert sum(parts) == pytest.approx(want, rel=1e-12) and min(parts) > want
    p = population.firing_probability(x, y)
    assert np.log(np.where(y, p, 1 - p)).sum() == pytest.approx(want, rel=1e-9)


def test_drive_is_one_part_of_the_potential():
    rng = np.random.default_rng(5)
    population = random_population(rng, feedback=False, stimulus=2, coupling=3)
    x, y = rng.normal(size=(30, 2)), (rng.random((30, 3)) < 0.5)
    rest = population.membrane_potential({"stimulus": 0 * x, "coupling": y})
    u = population.membrane_potential({"stimulus": x, "coupling": y})
    np.testing.assert_allclose(population.drive(x) + rest, u, atol=1e-12)


def test_kernels_are_weights_on_indicators():
    rng = np.random.default_rng(6)
    kernels = {"stimulus": rng.normal(size=(2, 3, 7)), "coupling": rng.normal(size=(3, 3, 4))}
    beta = rng.normal(size=(3, 5))
    population = glm.GLMPopulation.from_kernels(np.zeros(3), kernels, beta, "cloglog")
    for name, kernel in kernels.items():
        np.testing.assert_array_equal(population.kernel(name), kernel)
    np.testing.assert_array_equal(population.feedback_kernels(), beta)
    assert population.activation.name == "cloglog"


# Brian


def same_parameters(one, other):
    assert list(one.kernels) == list(other.kernels) and one.activation.name == other.activation.name
    np.testing.assert_array_equal(one.bias, other.bias)
    for name, basis in one.kernels.items():
        np.testing.assert_array_equal(basis.matrix, other.kernels[name].matrix)
        np.testing.assert_array_equal(one.weights[name], other.weights[name])
    assert (one.feedback_basis is None) == (other.feedback_basis is None)
    if one.feedback_basis is not None:
        np.testing.assert_array_equal(one.feedback_basis.matrix, other.feedback_basis.matrix)
        np.testing.assert_array_equal(one.feedback_weights, other.feedback_weights)
    return True


def test_simulation_has_the_potential_of_the_population_and_gives_it_back():
    defaultclock.dt = 1 * ms
    rng = np.random.default_rng(7)
    population = random_population(rng, stimulus=4, coupling=3)
    x = rng.random((80, 4)) < 0.3
    steps, sources = np.nonzero(x)
    source = SpikeGeneratorGroup(4, sources, steps * ms)
    neurons = population.neurons(random_state=1, name="fitted")
    assert neurons.name == "fitted"
    synapses = [
        population.synapses(source, neurons),
        population.synapses(neurons, neurons, "coupling"),
    ]
    potential = StateMonitor(neurons, "u", record=True, when="end")
    spikes = SpikeMonitor(neurons)
    Network(source, neurons, synapses, potential, spikes).run(80 * ms)
    y = np.zeros((80, 3))
    y[np.round(spikes.t / ms).astype(int), spikes.i[:]] = 1
    assert 0.05 < y.mean() < 0.95
    u = population.membrane_potential({"stimulus": x, "coupling": y}, y)
    np.testing.assert_allclose(potential.u[:].T, u, atol=1e-12)
    assert same_parameters(glm.GLMPopulation.from_network(neurons, synapses), population)


def test_sources_of_one_kernel_follow_one_another():
    rng = np.random.default_rng(8)
    population = random_population(rng, feedback=False, stimulus=5, coupling=3)
    neurons = population.neurons(dt=1 * ms)
    w = population.weights["stimulus"]
    synapses = []
    for part in w[:2], w[2:]:
        synapses.append(glm.GLMSynapses(SpikeGeneratorGroup(len(part), [], [] * ms), neurons))
        synapses[-1].w = part
    read = glm.GLMPopulation.from_network(neurons, synapses)
    np.testing.assert_array_equal(read.weights["stimulus"], w)
    assert list(read.kernels) == ["stimulus"] and read.feedback_basis is None


def test_pairs_that_are_not_connected_have_no_weight():
    rng = np.random.default_rng(9)
    population = random_population(rng, coupling=3)
    neurons = population.neurons(dt=1 * ms)
    coupling = population.synapses(neurons, neurons, "coupling", "i != j")
    read = glm.GLMPopulation.from_network(neurons, coupling).weights["coupling"]
    pairs = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(read[pairs], population.weights["coupling"][pairs])
    assert not read[~pairs].any()


def test_what_a_population_does_not_know_is_refused():
    rng = np.random.default_rng(10)
    population = random_population(rng, stimulus=3, coupling=3)
    defaultclock.dt = 1 * ms
    neurons, others = population.neurons(), population.neurons()
    with pytest.raises(ValueError, match="have a delay"):
        delayed = population.synapses(neurons, neurons, "coupling", delay=2 * ms)
        glm.GLMPopulation.from_network(neurons, delayed)
    elsewhere = population.synapses(neurons, others, "coupling")
    with pytest.raises(ValueError, match="target .* must be all of the neurons"):
        glm.GLMPopulation.from_network(neurons, elsewhere)
    with pytest.raises(TypeError, match="^synapses must be"):
        glm.GLMPopulation.from_network(neurons, [neurons])
    with pytest.raises(TypeError, match="^neurons must be"):
        glm.GLMPopulation.from_network(elsewhere, elsewhere)
    with pytest.raises(ValueError, match="^source must have 3 cells"):
        population.synapses(SpikeGeneratorGroup(1, [], [] * ms), neurons)
    with pytest.raises(ValueError, match="^target must have 3 cells"):
        population.synapses(neurons, neurons[:2], "coupling")
    with pytest.raises(ValueError, match="^kernel must be"):
        population.synapses(neurons, neurons, "lateral")


# Files


@pytest.mark.parametrize("feedback", [True, False])
def test_saved_population_is_read_back(tmp_path, feedback):
    rng = np.random.default_rng(11)
    population = random_population(rng, feedback=feedback, activation="probit", stimulus=2, coupling=3)
    path = tmp_path / "population.npz"
    path.write_text("what was there before")
    population.save(path)
    assert same_parameters(glm.GLMPopulation.load(path), population)
    assert [file.name for file in tmp_path.iterdir()] == ["population.npz"]


def test_file_that_is_none_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="^path: cannot read"):
        glm.GLMPopulation.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("text")
    np.savez(tmp_path / "other.npz", bias=np.zeros(2))
    for name in "text.npz", "other.npz":
        with pytest.raises(ValueError, match="^path must be a file written by GLMPopulation.save"):
            glm.GLMPopulation.load(tmp_path / name)


def test_activation_of_ones_own_is_not_saved(tmp_path):
    own = replace(glm.get_activation("sigmoid"), expression="1 / (1 + exp(-u))")
    population = glm.GLMPopulation([0.0], glm.IndicatorBasis(1), [[[1.0]]], activation=own)
    with pytest.raises(ValueError, match="^activation must be one of sigmoid, .* got a custom one"):
        population.save(tmp_path / "population.npz")
    assert not list(tmp_path.iterdir())


# What is refused

BASIS = glm.IndicatorBasis(2)
GOOD = dict(bias=np.zeros(3), kernels=BASIS, weights=np.zeros((4, 3, 2)))


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(bias=[]), "bias must have at least one"),
        (dict(bias=[np.nan] * 3), "bias must be finite"),
        (dict(kernels=np.eye(2)), "kernels must be a basis"),
        (dict(kernels={"feedback": BASIS}), "kernels: the name 'feedback'"),
        (dict(weights=np.zeros((4, 2, 2))), "weights.*must have the shape"),
        (dict(weights={"coupling": np.zeros((4, 3, 2))}), "weights must have the keys"),
        (dict(kernels={"a": BASIS, "b": BASIS}), "weights must be a dict"),
        (dict(feedback_basis=BASIS), "feedback_basis and feedback_weights must be given together"),
        (dict(feedback_weights=np.zeros((3, 2))), "feedback_basis and feedback_weights must be given"),
        (dict(feedback_basis=BASIS, feedback_weights=np.zeros((3, 1))), "feedback_weights must have"),
        (dict(activation="softmax"), "activation must be"),
    ],
)
def test_bad_parameters_are_named(change, says):
    glm.GLMPopulation(**GOOD)
    with pytest.raises((TypeError, ValueError), match=f"^{says}"):
        glm.GLMPopulation(**{**GOOD, **change})


def test_bad_trains_are_named():
    population = random_population(np.random.default_rng(12), stimulus=4, coupling=3)
    x, y = np.zeros((20, 4)), np.zeros((20, 3))
    inputs = {"stimulus": x, "coupling": y}
    for bad, outputs, says in [
        (x, y, "inputs must be a dict"),
        ({"stimulus": x}, y, "inputs must have the keys"),
        ({**inputs, "coupling": y[:5]}, y, r"inputs\['coupling'\] must have the shape"),
        ({**inputs, "stimulus": y}, y, r"inputs\['stimulus'\] must have the shape"),
        ({**inputs, "stimulus": np.full((20, 4), np.nan)}, y, r"inputs\['stimulus'\] must be finite"),
        ({"stimulus": x[:0], "coupling": y[:0]}, y[:0], r"inputs\['stimulus'\] must have at least"),
        (inputs, None, "outputs are needed"),
        (inputs, y + 2, "outputs must hold only"),
        (inputs, y[:5], "outputs must have the shape"),
    ]:
        with pytest.raises((TypeError, ValueError), match=f"^{says}"):
            population.membrane_potential(bad, outputs)
    for mask in np.zeros(20), np.ones(19, dtype=bool), np.zeros(20, dtype=bool):
        with pytest.raises(ValueError, match="^mask must"):
            population.log_likelihood(y, inputs, mask)
    with pytest.raises(ValueError, match="^stimulus must have the shape"):
        population.drive(y)
    with pytest.raises(AttributeError, match="no feedback kernel"):
        random_population(np.random.default_rng(1), feedback=False, stimulus=1).feedback_kernels()


def test_synapses_need_the_basis_of_the_population():
    population = glm.GLMPopulation.from_kernels([0.0], np.ones((1, 1, 3)))
    neurons = glm.GLMNeurons(1, glm.RaisedCosineBasis(3, 50))
    with pytest.raises(ValueError, match="target must be neurons with the basis of the population"):
        population.synapses(neurons, neurons)


def test_a_copy_can_be_saved(tmp_path):
    population = pickle.loads(pickle.dumps(glm.GLMPopulation.from_kernels([0.0], np.ones((1, 1, 3)))))
    population.save(tmp_path / "population.npz")
    assert glm.GLMPopulation.load(tmp_path / "population.npz").activation is population.activation


def test_a_kernel_without_sources_has_no_weights():
    y = np.zeros((50, 1), dtype=np.uint8)
    y[::5] = 1
    basis = glm.IndicatorBasis(2)
    fitted = glm.fit_population(y, {"a": y, "b": np.zeros((50, 0))}, {"a": basis, "b": basis})
    assert fitted.weights["b"].shape == (0, 1, 2)


# The time step

POPULATION = dict(bias=[-3.0], kernels=BASIS, weights=np.zeros((1, 1, 2)))


def test_the_time_step_is_kept(tmp_path):
    population = glm.GLMPopulation(**POPULATION, dt=2 * ms)
    assert population.dt == 2 * ms and "dt=2. ms" in repr(population)
    population.save(tmp_path / "population.npz")
    assert glm.GLMPopulation.load(tmp_path / "population.npz").dt == 2 * ms
    assert pickle.loads(pickle.dumps(population)).dt == 2 * ms
    neurons = population.neurons()
    assert neurons.clock.dt == 2 * ms
    source = SpikeGeneratorGroup(1, [0], [0] * ms)
    read = glm.GLMPopulation.from_network(neurons, population.synapses(source, neurons))
    assert read.dt == 2 * ms
    population.dt = None
    population.save(tmp_path / "population.npz")
    assert glm.GLMPopulation.load(tmp_path / "population.npz").dt is None


def test_neurons_run_at_the_step_of_the_population():
    """Trains in bins of 1 ms, simulated beside Brian's own clock of 0.1 ms, at the same rate."""
    y = np.random.default_rng(0).random((4000, 2)) < 0.03
    basis = glm.RaisedCosineBasis(3, 10)
    population = glm.fit_population(y, {"coupling": y}, {"coupling": basis}, dt=1 * ms)
    neurons = population.neurons(random_state=1)
    spikes = SpikeMonitor(neurons)
    Network(neurons, population.synapses(neurons, neurons, "coupling"), spikes).run(1000 * ms)
    assert np.all((spikes.count > 12) & (spikes.count < 55))
    assert defaultclock.dt == 0.1 * ms


def test_an_unknown_step_must_be_given():
    population = glm.GLMPopulation(**POPULATION)
    with pytest.raises(ValueError, match=r"^dt must be given: .*population.neurons\(dt=1\*ms\)"):
        population.neurons()
    assert population.neurons(dt=0.1 * ms).clock.dt == 0.1 * ms
    defaultclock.dt = 0.5 * ms
    assert population.neurons().clock.dt == 0.5 * ms


def test_another_step_is_refused():
    population = glm.GLMPopulation(**POPULATION, dt=1 * ms)
    for other in (dict(dt=0.1 * ms), dict(clock=Clock(2 * ms)), dict(clock=defaultclock)):
        with pytest.raises(ValueError, match=r"^dt must be 1\. ms, the time step that this population"):
            population.neurons(**other)
    elsewhere = glm.GLMNeurons(1, BASIS, dt=0.1 * ms)
    source = SpikeGeneratorGroup(1, [0], [0] * ms)
    with pytest.raises(ValueError, match=r"^target must have the time step 1\. ms"):
        population.synapses(source, elsewhere)
    with pytest.raises(ValueError, match="^target must have the time step"):
        population.synapses(source, elsewhere[:1])
    defaultclock.dt = 1 * ms
    neurons = population.neurons()
    assert neurons.clock.name == "defaultclock" and neurons.clock.dt == 1 * ms
    network = Network(neurons)
    network.run(2 * ms)
    defaultclock.dt = 0.1 * ms
    with pytest.raises((ValueError, BrianObjectException)) as caught:
        network.run(2 * ms)
    causes = f"{caught.value} {caught.value.__cause__}"
    assert "neurons must have the time step 1. ms" in causes


@pytest.mark.parametrize("dt", [1, 1e-3, 0 * ms, -1 * ms, 1 * mV, [1, 2] * ms, "1 ms", np.inf * ms])
def test_a_step_is_one_time_with_a_unit(dt):
    with pytest.raises((TypeError, ValueError), match="^dt must be"):
        glm.GLMPopulation(**POPULATION, dt=dt)


def test_data_in_other_steps_are_refused():
    population = glm.GLMPopulation(**POPULATION, dt=1 * ms)
    recording = Recording([[1, 3, 8] * ms], 0 * ms, 10 * ms)
    trains = recording.trains(1 * ms)
    np.testing.assert_array_equal(
        population.membrane_potential(recording), population.membrane_potential(trains)
    )
    assert population.log_likelihood(recording, recording) == population.log_likelihood(trains, trains)
    np.testing.assert_array_equal(population.drive(recording), population.drive(trains))
    population.dt = None
    with pytest.raises(ValueError, match="^dt must be given: .*Recording"):
        population.membrane_potential(recording)


def test_the_neurons_of_a_classifier():
    X, y = np.random.default_rng(0).random((12, 5)), np.arange(12) % 3
    for decoding in ("first-to-spike", "rate"):
        classifier = glm.GLMClassifier(
            n_steps=4, n_epochs=2, decoding=decoding, device="runtime", random_state=0, verbose=False
        ).fit(X, y)
        population = glm.GLMPopulation.from_classifier(classifier)
        np.testing.assert_array_equal(population.weights["stimulus"], classifier.weights_)
        assert (population.feedback_basis is None) == (decoding == "first-to-spike")
        with pytest.raises(ValueError, match="^dt must be given"):
            population.neurons()
    assert glm.GLMPopulation.from_classifier(classifier, dt=1 * ms).neurons().clock.dt == 1 * ms
    with pytest.raises(TypeError, match="^classifier must be a GLMClassifier"):
        glm.GLMPopulation.from_classifier(population)
    with pytest.raises(NotFittedError):
        glm.GLMPopulation.from_classifier(glm.GLMClassifier())


# Populations that nothing drives


def test_history_and_bias_alone():
    defaultclock.dt = 1 * ms
    population = glm.GLMPopulation([-1.0], {}, {}, BASIS, [[-2.0, 0.5]])
    y = np.array([[1], [0], [0], [0]])
    assert population.membrane_potential(outputs=y).ravel().tolist() == [-1.0, -3.0, -0.5, -1.0]
    assert population.log_likelihood(y) == population.log_likelihood(y, {}) < 0
    assert "no kernels" in repr(population)
    neurons = population.neurons(random_state=1)
    potential = StateMonitor(neurons, "u", record=True, when="end")
    spikes = SpikeMonitor(neurons)
    Network(neurons, potential, spikes).run(60 * ms)
    trains = Recording.from_monitor(spikes, 0 * ms, 60 * ms).trains()
    assert 5 < trains.sum() < 55
    np.testing.assert_allclose(potential.u[0], population.membrane_potential(outputs=trains)[:, 0])
    assert same_parameters(glm.GLMPopulation.from_network(neurons), population)
    bare = glm.GLMPopulation([0.5], {}, {})
    assert bare.firing_probability(outputs=y).shape == (4, 1) and len(bare.neurons()) == 1
    with pytest.raises(ValueError, match="^outputs are needed"):
        bare.membrane_potential()
    for call in (bare.kernel, lambda: bare.drive(y), lambda: bare.synapses(neurons, neurons)):
        with pytest.raises(ValueError, match="this population has no kernels"):
            call()
    with pytest.raises(ValueError, match="^inputs must be left out"):
        bare.membrane_potential(y)


@pytest.mark.parametrize("feedback", [True, False])
def test_a_saved_population_without_kernels(tmp_path, feedback):
    fed_back = (BASIS, [[-2.0, 0.5]]) if feedback else ()
    population = glm.GLMPopulation([-1.0], {}, {}, *fed_back)
    population.save(tmp_path / "population.npz")
    assert same_parameters(glm.GLMPopulation.load(tmp_path / "population.npz"), population)


def test_potentials_beyond_all_numbers_are_refused():
    population = glm.GLMPopulation.from_kernels([0.0], np.full((2, 1, 1), 1e300))
    with pytest.raises(ValueError, match="^inputs are too large"):
        population.membrane_potential(np.full((3, 2), 1e300))


def test_a_population_in_a_notebook():
    population = glm.GLMPopulation(
        [0.0], {"coupling": BASIS}, np.ones((1, 1, 2)), BASIS, np.ones((1, 2)), dt=2 * ms
    )
    shown = population._repr_html_()
    for part in (
        "1 neurons",
        "kernel coupling",
        "2 steps, which are 4. ms",
        "&lt;Indicator",
        "sigmoid",
    ):
        assert part in shown
    assert "unknown (dt is None)" in glm.GLMPopulation([0.0], {}, {})._repr_html_()


def test_a_pickle_with_the_former_name_of_the_feedback_basis():
    population = random_population(np.random.default_rng(0), stimulus=2)
    state = dict(vars(population))
    state["feedback"] = state.pop("feedback_basis")
    read = glm.GLMPopulation.__new__(glm.GLMPopulation)
    read.__setstate__(state)
    assert same_parameters(read, population)
