"""NeMoS models and populations are the same model: prediction, simulation and fit."""

import sys

import numpy as np
import pytest
from brian2 import Network, SpikeGeneratorGroup, SpikeMonitor, StateMonitor, defaultclock, ms
from sklearn.pipeline import Pipeline

import glmbrian as glm

nmo = pytest.importorskip("nemos", reason="NeMoS is not installed (pip install '.[interop]')")
jax = pytest.importorskip("jax")

N_STEPS = 3000


@pytest.fixture(autouse=True, scope="module")
def double_precision():
    """JAX computes in single precision by default."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def cloglog(u):
    return 1 - jax.numpy.exp(-jax.numpy.exp(u))


#: Observations and inverse link, and the activation that they stand for.
MODELS = [
    ("Bernoulli", None, "sigmoid"),
    ("Bernoulli", "norm.cdf", "probit"),
    ("Bernoulli", cloglog, "cloglog"),
    ("Poisson", None, "cloglog"),
    ("Poisson", "softplus", "sigmoid"),
]

BASES = {
    "log": lambda label: nmo.basis.RaisedCosineLogConv(4, window_size=12, label=label),
    "linear": lambda label: nmo.basis.RaisedCosineLinearConv(5, window_size=9, label=label),
    "M-spline": lambda label: nmo.basis.MSplineConv(5, window_size=10, label=label),
    "B-spline": lambda label: nmo.basis.BSplineConv(6, window_size=11, label=label),
    "cyclic": lambda label: nmo.basis.CyclicBSplineConv(5, window_size=10, label=label),
    "exponential": lambda label: nmo.basis.OrthExponentialConv(
        3, window_size=14, decay_rates=[0.5, 1.5, 4.0], label=label
    ),
    "history": lambda label: nmo.basis.HistoryConv(6, label=label),
}


def recording(seed, n=1, n_source=2, rate=0.15):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(N_STEPS, n_source))
    y = (rng.random((N_STEPS, n)) < rate).astype(float)
    return x, y


def with_coefficients(model, basis, n, seed, scale=0.3):
    """Give a model random coefficients, as if it had been fitted."""
    rng = np.random.default_rng(seed)
    n_features = basis.n_output_features
    coef = scale * rng.normal(size=(n_features, n))
    population = isinstance(model, nmo.glm.PopulationGLM)
    model.coef_ = jax.numpy.asarray(coef if population else coef[:, 0])
    model.intercept_ = jax.numpy.asarray(rng.normal(size=n) - 1.5)
    model.scale_ = 1.0
    return model


def predicted(population, model, inputs, outputs=None):
    """What `model.predict` should give."""
    if isinstance(model.observation_model, nmo.observation_models.PoissonObservations):
        return glm.interop.nemos.conditional_intensity(population, inputs, outputs)
    return population.firing_probability(inputs, outputs)


def assert_same_prediction(model, features, want):
    got = np.asarray(model.predict(features)).reshape(len(features), -1)
    known = ~np.isnan(got).any(axis=1)
    assert known.mean() > 0.9 and np.ptp(want[known], axis=0).min() > 0.01
    np.testing.assert_allclose(want[known], got[known], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", BASES)
def test_every_convolutional_basis(kind):
    """Two inputs to one neuron, and its history."""
    x, y = recording(1)
    basis = BASES[kind]("stimulus") + nmo.basis.RaisedCosineLogConv(3, window_size=7, label="past")
    features = basis.compute_features(x, y[:, 0])
    model = with_coefficients(nmo.glm.GLM("Bernoulli"), basis, 1, 2)
    population = glm.interop.from_nemos(model, basis, history="past")
    assert list(population.kernels) == ["stimulus"] and population.feedback_basis.window == 7
    assert_same_prediction(model, features, population.firing_probability(x, y))


@pytest.mark.parametrize("observations, link, activation", MODELS)
@pytest.mark.parametrize("coupled", [False, True])
def test_every_observation_model(observations, link, activation, coupled):
    n = 3 if coupled else 1
    x, y = recording(3, n)
    basis = BASES["log"]("stimulus") + BASES["history"]("past")
    kind = nmo.glm.PopulationGLM if coupled else nmo.glm.GLM
    features = basis.compute_features(x, y if coupled else y[:, 0])
    model = with_coefficients(kind(observations, inverse_link_function=link), basis, n, 4)
    population = glm.interop.from_nemos(model, basis, None if coupled else "past")
    assert population.activation.name == activation
    inputs = {"stimulus": x, "past": y} if coupled else x
    assert_same_prediction(model, features, predicted(population, model, inputs, y))
    if observations == "Bernoulli":
        known = ~np.isnan(np.asarray(features)).any(axis=1)
        target = y if coupled else y[:, 0]
        score = float(model.score(features, target, aggregate_sample_scores=jax.numpy.sum))
        assert population.log_likelihood(y, inputs, known) == pytest.approx(score, rel=1e-9)


def test_single_precision_is_precise_enough():
    jax.config.update("jax_enable_x64", False)
    try:
        x, y = recording(5)
        basis = BASES["B-spline"]("stimulus")
        features = basis.compute_features(x)
        model = with_coefficients(nmo.glm.GLM("Poisson"), basis, 1, 6)
        population = glm.interop.from_nemos(model, basis)
        got = np.asarray(model.predict(features))
        want = predicted(population, model, x)[:, 0]
        known = ~np.isnan(got)
        assert got.dtype == np.float32
        np.testing.assert_allclose(want[known], got[known], rtol=1e-5)
    finally:
        jax.config.update("jax_enable_x64", True)


def test_mask_and_features_by_name():
    """A model may know its features by name, and which neuron uses them."""
    x, y = recording(7, 2)
    basis = BASES["linear"]("stimulus") + BASES["log"]("coupling")
    features = {
        label: part.reshape(N_STEPS, -1)
        for label, part in basis.split_by_feature(basis.compute_features(x, y)).items()
    }
    mask = {"stimulus": np.array([1, 0]), "coupling": np.array([0, 1])}
    model = nmo.glm.PopulationGLM("Bernoulli", feature_mask=mask)
    rng = np.random.default_rng(8)
    model.coef_ = {k: jax.numpy.asarray(rng.normal(size=(f.shape[1], 2))) for k, f in features.items()}
    model.intercept_ = jax.numpy.zeros(2)
    population = glm.interop.from_nemos(model, basis)
    assert not population.weights["stimulus"][:, 1].any()
    got = np.asarray(model.predict(features))
    known = ~np.isnan(got).any(axis=1)
    want = population.firing_probability({"stimulus": x, "coupling": y})
    np.testing.assert_allclose(want[known], got[known], atol=1e-9)


def test_population_with_only_its_own_history_has_feedback():
    x, y = recording(9, 3)
    basis = BASES["log"]("stimulus") + BASES["linear"]("history")
    features = basis.compute_features(x, y)
    mask = np.ones((features.shape[1], 3))
    mask[8:] = np.kron(np.eye(3), np.ones((5, 1)))
    model = nmo.glm.PopulationGLM("Bernoulli", feature_mask=mask)
    with_coefficients(model, basis, 3, 10)
    population = glm.interop.from_nemos(model, basis, history="history")
    assert_same_prediction(model, features, population.firing_probability(x, y))
    with pytest.raises(ValueError, match="^history: 'history' must couple each neuron only"):
        unmasked = with_coefficients(nmo.glm.PopulationGLM("Bernoulli"), basis, 3, 10)
        glm.interop.from_nemos(unmasked, basis, history="history")


def test_history_alone():
    _, y = recording(19)
    basis = BASES["history"]("past")
    features = basis.compute_features(y[:, 0])
    model = with_coefficients(nmo.glm.GLM("Bernoulli"), basis, 1, 20)
    population = glm.interop.from_nemos(model, basis, history="past")
    assert not population.kernels
    assert_same_prediction(model, features, population.firing_probability(outputs=y))
    again = glm.interop.to_nemos(population, nmo.glm.GLM("Bernoulli"), basis, "past")
    np.testing.assert_allclose(again.coef_, model.coef_)


def test_the_basis_of_a_pipeline():
    x, _ = recording(21, n_source=1)
    basis = BASES["log"]("stimulus").set_input_shape(1)
    basis.setup_basis(x[:, 0])
    model = with_coefficients(nmo.glm.GLM("Bernoulli"), basis, 1, 22)
    pipeline = Pipeline([("basis", basis.to_transformer()), ("glm", model)])
    population = glm.interop.from_nemos(pipeline["glm"], pipeline["basis"], dt=2 * ms)
    assert population.dt == 2 * ms and population.neurons().clock.dt == 2 * ms
    want = glm.interop.from_nemos(pipeline["glm"], pipeline["basis"].basis)
    np.testing.assert_array_equal(population.kernel(), want.kernel())
    assert population.kernel().shape == (1, 1, 12)
    assert_same_prediction(
        pipeline["glm"], basis.compute_features(x[:, 0]), population.firing_probability(x)
    )


def test_a_mask_of_other_components_is_named():
    x, y = recording(7, 2)
    basis = BASES["linear"]("stimulus")
    basis.compute_features(x)
    model = nmo.glm.PopulationGLM("Bernoulli", feature_mask={"other": np.ones(2)})
    model.coef_, model.intercept_ = {"stimulus": jax.numpy.zeros((10, 2))}, jax.numpy.zeros(2)
    with pytest.raises(ValueError, match="^model: its feature mask must have the keys"):
        glm.interop.from_nemos(model, basis)


# Simulation


@pytest.mark.parametrize("observations, link", [("Bernoulli", None), ("Poisson", None)])
def test_simulation_has_the_potential_of_nemos(observations, link):
    """Recorded trains drive a coupled population, which NeMoS then sees spike."""
    defaultclock.dt = 1 * ms
    x, y = recording(11, 3, n_source=4)
    x = (x > 0.8).astype(float)[:300]
    basis = BASES["log"]("stimulus") + BASES["linear"]("coupling")
    basis.compute_features(x, y[:300])
    model = nmo.glm.PopulationGLM(observations, inverse_link_function=link)
    with_coefficients(model, basis, 3, 12)
    population = glm.interop.from_nemos(model, basis)
    steps, sources = np.nonzero(x)
    source = SpikeGeneratorGroup(4, sources, steps * ms)
    neurons = population.neurons(random_state=13)
    synapses = population.synapses(source, neurons), population.synapses(neurons, neurons, "coupling")
    spikes = SpikeMonitor(neurons)
    potential = StateMonitor(neurons, "u", record=True, when="end")
    Network(source, neurons, synapses, spikes, potential).run(300 * ms)
    simulated = np.zeros((300, 3))
    simulated[np.round(spikes.t / ms).astype(int), spikes.i[:]] = 1
    assert 0.02 < simulated.mean() < 0.9
    rate = np.asarray(model.predict(basis.compute_features(x, simulated)))
    u = np.log(rate) if observations == "Poisson" else np.log(rate / (1 - rate))
    known = ~np.isnan(u).any(axis=1)
    assert known.sum() == 300 - 12
    np.testing.assert_allclose(potential.u[:].T[known], u[known], atol=1e-9)


# Fit


def drawn(population, x, seed):
    """Trains of a population whose kernels are "stimulus" and either coupling or feedback."""
    rng = np.random.default_rng(seed)
    fixed = population.bias + population.drive(x)
    if population.feedback_basis is not None:
        own = population.feedback_kernels()
        lagged = np.eye(population.n)[:, :, np.newaxis] * own
    else:
        lagged = population.kernel("coupling")
    window = lagged.shape[2]
    y = np.zeros((window + len(x), population.n))
    for t, u in enumerate(fixed):
        u = u + np.einsum("jl,jil->i", y[t : t + window][::-1].T, lagged)
        y[window + t] = rng.random(population.n) < population.activation.probability(u)
    return y[window:]


def fitted_by_both(observations, link, coupled, bias, scale):
    """Return NeMoS's model, it as a population, ours, and what they were fitted to."""
    n = 3 if coupled else 1
    rng = np.random.default_rng(14)
    x = rng.normal(size=(20_000, 2))
    second = "coupling" if coupled else "history"
    basis = nmo.basis.RaisedCosineLogConv(3, window_size=10, label="stimulus")
    basis = basis + nmo.basis.RaisedCosineLogConv(3, window_size=15, label=second)
    kind = nmo.glm.PopulationGLM if coupled else nmo.glm.GLM
    model = kind(
        observations,
        inverse_link_function=link,
        solver_name="LBFGS",
        solver_kwargs=dict(tol=1e-12, maxiter=5000),
    )
    history = None if coupled else second
    basis.compute_features(x, np.zeros((len(x), n)) if coupled else np.zeros(len(x)))
    truth = glm.interop.from_nemos(with_coefficients(model, basis, n, 15, scale), basis)
    truth.bias[:] = bias
    if not coupled:
        truth = glm.GLMPopulation(
            truth.bias,
            {"stimulus": truth.kernels["stimulus"]},
            truth.weights["stimulus"],
            truth.kernels[second],
            truth.weights[second][0],
            truth.activation,
        )
    y = drawn(truth, x, 16)
    features = np.asarray(basis.compute_features(x, y if coupled else y[:, 0]))
    model.fit(features, y if coupled else y[:, 0])
    theirs = glm.interop.from_nemos(model, basis, history)
    inputs = {"stimulus": x, "coupling": y} if coupled else x
    # NeMoS leaves out the steps before which not all of the window is known.
    mask = ~np.isnan(features).any(axis=1)
    ours = glm.fit_population(
        y, inputs, theirs.kernels, theirs.feedback_basis, theirs.activation, mask=mask
    )
    return model, features, theirs, ours, inputs, y, mask


@pytest.mark.parametrize("coupled", [pytest.param(False, marks=pytest.mark.exhaustive), True])
def test_fit_reaches_the_likelihood_of_nemos(coupled):
    model, features, theirs, ours, inputs, y, mask = fitted_by_both(
        "Bernoulli", None, coupled, bias=-2.0, scale=0.3
    )
    n_spikes = y[mask].sum()
    their_value, our_value = (p.log_likelihood(y, inputs, mask) for p in (theirs, ours))
    assert n_spikes > 500
    assert -1e-9 < (our_value - their_value) / n_spikes < 1e-4
    score = float(
        model.score(features, y if coupled else y[:, 0], aggregate_sample_scores=jax.numpy.sum)
    )
    assert their_value == pytest.approx(score, rel=1e-9)
    for name in theirs.kernels:
        np.testing.assert_allclose(ours.kernel(name), theirs.kernel(name), atol=1e-3)


@pytest.mark.parametrize("link", [None, "softplus"])
def test_fit_is_that_of_poisson_counts_where_spikes_are_rare(link):
    """A bin's count is hardly ever above 1, so that the two likelihoods differ by little."""
    _, _, theirs, ours, inputs, y, mask = fitted_by_both("Poisson", link, False, bias=-4.0, scale=0.1)
    assert 0.01 < y.mean() < 0.03
    their_value, our_value = (p.log_likelihood(y, inputs, mask) for p in (theirs, ours))
    assert 0 < (our_value - their_value) / y[mask].sum() < 1e-4


# Back


@pytest.mark.parametrize("observations, link", [("Bernoulli", "norm.cdf"), ("Poisson", "softplus")])
@pytest.mark.parametrize("coupled", [False, True])
def test_written_back_it_is_the_same_model(observations, link, coupled):
    n = 3 if coupled else 1
    x, y = recording(17, n)
    basis = BASES["log"]("stimulus") + BASES["B-spline"]("past")
    basis.compute_features(x, y if coupled else y[:, 0])
    kind = nmo.glm.PopulationGLM if coupled else nmo.glm.GLM
    first = with_coefficients(kind(observations, inverse_link_function=link), basis, n, 18)
    history = None if coupled else "past"
    population = glm.interop.from_nemos(first, basis, history)
    second = kind(observations, inverse_link_function=link)
    assert glm.interop.to_nemos(population, second, basis, history) is second
    np.testing.assert_array_equal(second.coef_, first.coef_)
    np.testing.assert_array_equal(second.intercept_, first.intercept_)


def test_any_kernel_goes_to_nemos_as_history():
    """Of a basis that NeMoS does not have, and shorter than the window there."""
    x, y = recording(19, 2)
    ours = glm.RaisedCosineBasis(3, 5)
    rng = np.random.default_rng(20)
    population = glm.GLMPopulation(
        [-1.0, -2.0],
        {"stimulus": ours, "coupling": ours},
        {name: rng.normal(size=(2, 2, 3)) for name in ("stimulus", "coupling")},
    )
    basis = nmo.basis.HistoryConv(8, label="coupling") + nmo.basis.HistoryConv(6, label="stimulus")
    features = basis.compute_features(y, x)
    model = glm.interop.to_nemos(population, nmo.glm.PopulationGLM("Bernoulli"), basis)
    want = population.firing_probability({"stimulus": x, "coupling": y})
    assert_same_prediction(model, features, want)
    target = y[8:]
    score = float(model.score(features[8:], target, aggregate_sample_scores=jax.numpy.sum))
    mask = np.arange(N_STEPS) >= 8
    value = population.log_likelihood(y, {"stimulus": x, "coupling": y}, mask)
    assert value == pytest.approx(score, rel=1e-9)


# What is refused


def good():
    x, y = recording(21)
    basis = BASES["log"]("stimulus") + BASES["history"]("past")
    basis.compute_features(x, y[:, 0])
    return with_coefficients(nmo.glm.GLM("Bernoulli"), basis, 1, 22), basis


@pytest.mark.parametrize(
    "observations, link",
    [
        ("Poisson", "logistic"),
        ("Bernoulli", "exp"),
        ("Gaussian", None),
        ("Gamma", None),
        ("NegativeBinomial", None),
        ("Poisson", lambda x: x**2),
    ],
)
def test_other_observation_models_are_refused(observations, link):
    _, basis = good()
    other = nmo.glm.GLM(observations, inverse_link_function=link)
    with pytest.raises(ValueError, match="^model must have Bernoulli observations"):
        glm.interop.from_nemos(with_coefficients(other, basis, 1, 1), basis)


def test_bad_model_or_basis_is_named():
    model, basis = good()
    x, y = recording(21)
    with pytest.raises(TypeError, match="^model must be a GLM"):
        glm.interop.from_nemos(basis, basis)
    with pytest.raises(ValueError, match="^model must be fitted"):
        glm.interop.from_nemos(nmo.glm.GLM("Bernoulli"), basis)
    with pytest.raises(ValueError, match="^history must be one of 'stimulus', 'past'"):
        glm.interop.from_nemos(model, basis, history="feedback")
    with pytest.raises(ValueError, match="^history: 'stimulus' must couple"):
        glm.interop.from_nemos(model, basis, history="stimulus")
    for bad, says in [
        (nmo.basis.BSplineEval(5, label="x"), "must be a convolutional basis"),
        (BASES["log"]("a") * BASES["log"]("b"), "must be a convolutional basis"),
        (BASES["log"]("unused"), "does not know its inputs"),
        (nmo.basis.MSplineConv(4, window_size=8, conv_kwargs=dict(shift=False)), "must be causal"),
        (
            nmo.basis.MSplineConv(4, window_size=9, conv_kwargs=dict(predictor_causality="acausal")),
            "must be causal",
        ),
    ]:
        with pytest.raises(ValueError, match=f"^basis.*{says}"):
            glm.interop.from_nemos(model, bad)
    with pytest.raises(TypeError, match="^basis must be a basis of NeMoS"):
        glm.interop.from_nemos(model, np.eye(3))
    other = BASES["log"]("stimulus")
    other.compute_features(x)
    with pytest.raises(ValueError, match="^basis must be the basis of the model: it has 8 features"):
        glm.interop.from_nemos(model, other)
    spaced = BASES["log"]("two words")
    spaced.compute_features(x)
    with pytest.raises(ValueError, match="^kernels: a name must"):
        named = with_coefficients(nmo.glm.GLM("Bernoulli"), spaced, 1, 2)
        glm.interop.from_nemos(named, spaced)


def test_what_does_not_fit_a_model_is_named():
    model, basis = good()
    population = glm.interop.from_nemos(model, basis, history="past")
    with pytest.raises(ValueError, match="^model has the activation 'cloglog'"):
        glm.interop.to_nemos(population, nmo.glm.GLM("Poisson"), basis, "past")
    with pytest.raises(ValueError, match="^history must be given"):
        glm.interop.to_nemos(population, nmo.glm.GLM("Bernoulli"), basis)
    x, y = recording(21)
    for label, inputs, says in [
        ("stimulus", x[:, :1], "the component 'stimulus' must have 2 inputs, got 1"),
        ("visual", x, "must have components with the labels"),
        ("stimulus", x, "the functions of the component 'stimulus' cannot form"),
    ]:
        other = BASES["M-spline"](label) + BASES["history"]("past")
        other.compute_features(inputs, y[:, 0])
        with pytest.raises(ValueError, match=f"^basis:? {says}"):
            glm.interop.to_nemos(population, nmo.glm.GLM("Bernoulli"), other, "past")
    for mask, says in [
        (np.zeros((2 * 4 + 6, 1)), "leaves out weights"),
        ({"stimulus": [1], "past": [1]}, "must be an array"),
    ]:
        masked = nmo.glm.PopulationGLM("Bernoulli", feature_mask=mask)
        with pytest.raises(ValueError, match=f"^model: its feature mask {says}"):
            glm.interop.to_nemos(population, masked, basis, "past")
    two = glm.GLMPopulation([0.0, 0.0], glm.IndicatorBasis(1), np.zeros((2, 2, 1)))
    with pytest.raises(ValueError, match="^model must be a PopulationGLM for 2 neurons"):
        glm.interop.to_nemos(two, nmo.glm.GLM("Bernoulli"), basis)


def test_without_nemos_it_is_said_what_to_install(monkeypatch):
    model, basis = good()
    monkeypatch.setitem(sys.modules, "nemos", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[interop\]'"):
        glm.interop.from_nemos(model, basis)


def test_only_a_population_is_accepted():
    for call in (
        lambda: glm.interop.conditional_intensity(None, [[1]]),
        lambda: glm.interop.to_nemos("population", nmo.glm.GLM("Bernoulli"), BASES["log"]("a")),
    ):
        with pytest.raises(TypeError, match="^population must be a GLMPopulation"):
            call()
