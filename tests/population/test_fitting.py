"""Fits to recorded trains end at the maximum of the likelihood, where there is one."""

import warnings

import numpy as np
import pytest
from brian2 import Network, PoissonGroup, SpikeMonitor, defaultclock, ms, seed
from hypothesis import given, settings
from hypothesis import strategies as st

import glmbrian as glm
from glmbrian import learning
from glmbrian.interop import Recording, from_pynapple
from glmbrian.population.design import Design
from glmbrian.population.objective import Problem, evaluate
from glmbrian.population.observations import Bernoulli
from glmbrian.population.recorded import RecordedData
from glmbrian.population.series import ArraySeries
from glmbrian.support.workers import Workers

every_activation = pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])

SMOOTH = glm.RaisedCosineBasis(3, 8)
SHORT = glm.RaisedCosineBasis(2, 4)


def draw(population, x, seed):
    """Draw trains with the kernels "stimulus" and "coupling", step by step."""
    rng = np.random.default_rng(seed)
    coupling = population.kernel("coupling")[:, :, ::-1]
    window = coupling.shape[2]
    fixed = population.bias + population.drive(x)
    y = np.zeros((window + len(x), population.n))
    for t, u in enumerate(fixed):
        u = u + np.einsum("jl,jil->i", y[t : t + window].T, coupling)
        y[window + t] = rng.random(population.n) < population.activation.probability(u)
    return y[window:]


@pytest.fixture(scope="module", params=["sigmoid", "probit", "cloglog"])
def recorded(request):
    """A coupled population, a continuous stimulus, and what it drew."""
    rng = np.random.default_rng(1)
    population = glm.GLMPopulation(
        [-1.5, -2.0, -1.2],
        {"stimulus": SMOOTH, "coupling": SHORT},
        {"stimulus": 0.3 * rng.normal(size=(2, 3, 3)), "coupling": 0.3 * rng.normal(size=(3, 3, 2))},
        activation=request.param,
    )
    x = rng.normal(size=(20_000, 2))
    return population, x, draw(population, x, 2)


def gradient(population, inputs, outputs, penalty=0.0):
    """The gradient of the penalised log-likelihood in all parameters, by the reference.

    For spikes as inputs it comes from `learning`'s function for users; here for any.
    """
    u = population.membrane_potential(inputs, outputs)
    grad_u = learning.rate_gradient(u, np.asarray(outputs), population.activation)[1]
    parts = [grad_u.sum(axis=0)]
    for name, basis in population.kernels.items():
        parts.append(learning.weight_gradient(inputs[name], grad_u, basis.matrix))
        parts[-1] -= penalty * population.weights[name]
    if population.feedback_basis is not None:
        parts.append(learning.feedback_gradient(outputs, grad_u, population.feedback_basis.matrix))
        parts[-1] -= penalty * population.feedback_weights
    return np.concatenate([part.ravel() for part in parts])


def fit_without_warning(*args, **kwds):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return glm.fit_population(*args, **kwds)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 3),
    n_source=st.integers(1, 4),
    n_steps=st.integers(1, 30),
    activation=st.sampled_from(["sigmoid", "probit", "cloglog"]),
)
def test_gradient_is_that_of_the_rate_rule(seed, n, n_source, n_steps, activation):
    rng = np.random.default_rng(seed)
    basis, feedback = (glm.CustomBasis(rng.normal(size=rng.integers(1, 8, size=2))) for _ in range(2))
    x, y = (rng.random((n_steps, size)) < 0.4 for size in (n_source, n))
    w = rng.normal(size=(n_source, n, basis.n_basis)) / 3
    v, bias = rng.normal(size=(n, feedback.n_basis)) / 3, rng.normal(size=n)
    value, grad_w, grad_v, grad_bias = learning.rate_log_likelihood(
        x, y, basis.matrix, feedback.matrix, w, v, bias, activation
    )
    series = {"stimulus": ArraySeries(x)}
    data = RecordedData(series, ArraySeries(y), [(0, n_steps)], largest={"stimulus": np.ones(n_source)})
    design = Design(data, {"stimulus": basis}, feedback)
    parameters = np.hstack([bias[:, np.newaxis], w.transpose(1, 2, 0).reshape(n, -1), v])
    with Workers() as workers:
        observations = Bernoulli(glm.get_activation(activation))
        free = np.ones(parameters.shape, dtype=bool)
        problem = Problem.plain(design, observations, np.arange(n), free)
        got = evaluate(problem, parameters, workers)
    by_function = grad_w.transpose(1, 2, 0).reshape(n, -1)
    want = np.hstack([grad_bias[:, np.newaxis], by_function, grad_v])
    np.testing.assert_allclose(got.gradient, want, rtol=1e-9, atol=1e-9)
    assert got.log_likelihood.sum() == pytest.approx(value, rel=1e-9)


def test_fit_ends_at_the_maximum_near_the_truth(recorded):
    population, x, y = recorded
    inputs = {"stimulus": x, "coupling": y}
    fitted = fit_without_warning(y, inputs, population.kernels, activation=population.activation)
    assert np.abs(gradient(fitted, inputs, y)).max() < 1e-5
    # Twice the gain over the truth is distributed as chi squared.
    n_parameters = 3 + 2 * 3 * 3 + 3 * 3 * 2
    gain = 2 * (fitted.log_likelihood(y, inputs) - population.log_likelihood(y, inputs))
    assert 0 < gain < n_parameters + 4 * np.sqrt(2 * n_parameters)
    for name in inputs:
        np.testing.assert_allclose(fitted.kernel(name), population.kernel(name), atol=0.25)
    np.testing.assert_allclose(fitted.bias, population.bias, atol=0.15)


def test_fit_of_what_brian_simulated():
    """A feedback kernel beside coupling that leaves out the neuron itself."""
    defaultclock.dt = 1 * ms
    rng = np.random.default_rng(3)
    population = glm.GLMPopulation(
        [-2.0, -1.5],
        {"stimulus": SHORT, "coupling": SHORT},
        {
            "stimulus": rng.normal(size=(2, 2, 2)),
            "coupling": rng.normal(size=(2, 2, 2)) * (1 - np.eye(2))[:, :, np.newaxis],
        },
        SMOOTH,
        [[-2.0, 0.5, 0.5], [-1.0, -1.0, 0.5]],
    )
    seed(1)
    source = PoissonGroup(2, 200 / (1000 * ms))
    neurons = population.neurons(random_state=4)
    synapses = population.synapses(source, neurons), population.synapses(neurons, neurons, "coupling")
    monitors = SpikeMonitor(source), SpikeMonitor(neurons)
    Network(source, neurons, synapses, monitors).run(12000 * ms)
    x, y = np.zeros((2, 12000, 2))
    for train, monitor in zip((x, y), monitors):
        train[np.round(monitor.t / ms).astype(int), monitor.i[:]] = 1
    inputs = {"stimulus": x, "coupling": y}
    fitted = fit_without_warning(y, inputs, population.kernels, SMOOTH, connect={"coupling": "i != j"})
    gain = 2 * (fitted.log_likelihood(y, inputs) - population.log_likelihood(y, inputs))
    assert 0 < gain < 20 + 4 * np.sqrt(40)  # of 2 + 8 + 4 + 6 parameters
    np.testing.assert_allclose(fitted.feedback_kernels(), population.feedback_kernels(), atol=0.6)
    np.testing.assert_allclose(fitted.kernel(), population.kernel(), atol=0.6)
    assert not fitted.weights["coupling"][[0, 1], [0, 1]].any()
    free = gradient(fitted, inputs, y)
    held = np.zeros((2, 2, 2), dtype=bool)
    held[[0, 1], [0, 1]] = True
    free[2 + 8 :][:8][held.ravel()] = 0.0
    assert np.abs(free).max() < 1e-5


@every_activation
def test_penalty_holds_the_weights(activation):
    rng = np.random.default_rng(5)
    x, y = (rng.random((500, 2)) < 0.3), (rng.random((500, 1)) < 0.2)
    free, held = (
        fit_without_warning(y, x, SMOOTH, SHORT, activation, penalty) for penalty in (0.0, 30.0)
    )
    assert np.abs(gradient(held, {"stimulus": x}, y, 30.0)).max() < 1e-5
    assert np.sum(held.weights["stimulus"] ** 2) < np.sum(free.weights["stimulus"] ** 2) / 4
    assert np.abs(held.bias) > 0.5


def test_mask_leaves_out_steps_and_keeps_trials_apart():
    """Trials with zeros between them are fitted as if each had begun in silence."""
    rng = np.random.default_rng(6)
    trials = [(rng.random((200, 1)) < 0.3, rng.random((200, 1)) < 0.3) for _ in range(3)]
    gap = np.zeros((SMOOTH.window, 1), dtype=bool)
    x, y = (np.concatenate([part for trial in trials for part in (gap, trial[k])]) for k in (0, 1))
    mask = np.concatenate([part for trial in trials for part in (gap[:, 0], np.ones(200, dtype=bool))])
    fitted = fit_without_warning(y, x, SMOOTH, SHORT, mask=mask)
    apart = [gradient(fitted, {"stimulus": a}, b) for a, b in trials]
    assert np.abs(sum(apart)).max() < 1e-6 < np.abs(apart[0]).max()
    assert fitted.log_likelihood(y, x, mask) == pytest.approx(
        sum(fitted.log_likelihood(b, a) for a, b in trials), rel=1e-12
    )


def test_inputs_on_different_scales():
    rng = np.random.default_rng(7)
    x = rng.normal(size=(3000, 2))
    y = rng.random((3000, 1)) < 0.2 + 0.1 * np.tanh(np.roll(x[:, :1], 1, axis=0))
    fitted = fit_without_warning(y, x, SHORT)
    scale = np.array([1e-6, 1e6])
    scaled = fit_without_warning(y, x * scale, SHORT)
    w = scaled.weights["stimulus"] * scale[:, np.newaxis, np.newaxis]
    np.testing.assert_allclose(w, fitted.weights["stimulus"], atol=1e-6)


def test_undetermined_weights_are_left_alone():
    """A silent source, and coupling that can stand for the feedback of the same basis."""
    rng = np.random.default_rng(8)
    y = rng.random((600, 1)) < 0.3
    x = np.zeros((600, 1))
    fitted = fit_without_warning(
        y, {"stimulus": x, "coupling": y}, {"stimulus": SHORT, "coupling": SHORT}, SHORT
    )
    assert not fitted.weights["stimulus"].any()
    alone = fit_without_warning(y, x, SHORT, SHORT)
    got = fitted.log_likelihood(y, {"stimulus": x, "coupling": y})
    assert got == pytest.approx(alone.log_likelihood(y, x), rel=1e-9)


@every_activation
@pytest.mark.parametrize("always", [False, True])
def test_maximum_at_infinity_is_told(activation, always):
    """An input after which there is never a spike, or always."""
    rng = np.random.default_rng(9)
    x = rng.random((1000, 2)) < 0.2
    y = rng.random((1000, 2)) < 0.3
    y[1:, 1] = np.where(x[:-1, 0], always, y[1:, 1])
    basis, known = glm.IndicatorBasis(1), np.arange(1000) > 0
    with pytest.warns(RuntimeWarning, match=r"neurons \[1\] has no finite maximum"):
        fitted = glm.fit_population(y, x, basis, activation=activation, mask=known)
    w = fitted.weights["stimulus"][0, 1, 0]
    assert np.isfinite(w) and (w > 2) == always and (w < -2) != always
    # What is finite is as it is without these steps.
    rest = np.append(False, ~x[:-1, 0])
    other = fit_without_warning(y, x[:, 1:], basis, activation=activation, mask=rest)
    assert fitted.bias[1] == pytest.approx(other.bias[1], abs=1e-3)
    penalised = fit_without_warning(y, x, basis, activation=activation, penalty=1e-3)
    assert abs(penalised.weights["stimulus"][0, 1, 0]) < 15


def test_too_few_steps_are_told(recorded):
    population, x, y = recorded
    with pytest.warns(RuntimeWarning, match=r"neurons \[0, 1, 2\] did not reach"):
        glm.fit_population(y, x, SMOOTH, max_iter=1)


@pytest.mark.parametrize("spikes, says", [(0, "never"), (1, "always")])
def test_neuron_without_a_finite_bias_is_told(spikes, says):
    y = np.tile([[0, 1], [1, 0]], (20, 1))
    mask = np.ones(40, dtype=bool)
    y[:20, 1], mask[20:] = spikes, False
    with pytest.warns(RuntimeWarning, match=rf"^outputs: the neurons \[1\] {says} spike"):
        fitted = glm.fit_population(y, y[:, :1], SHORT, mask=mask, penalty=1.0)
    assert not fitted.weights["stimulus"][:, 1].any() and fitted.weights["stimulus"][:, 0].any()
    assert fitted.bias[1] == pytest.approx(np.log(39) * (1 if spikes else -1), rel=1e-9)
    assert fitted.fit_.status == ["converged", "silent"]
    u = np.full((20, 1), fitted.bias[1])
    alone = learning.rate_gradient(u, y[:20, 1:], fitted.activation)[0]
    assert fitted.fit_.log_likelihood[1] == pytest.approx(alone, rel=1e-9)


@pytest.mark.parametrize(
    "change, says",
    [
        (dict(outputs=np.zeros((9, 1))), "outputs must have the shape"),
        (dict(outputs=np.full((10, 1), 2)), "outputs must hold only"),
        (dict(outputs=np.zeros((10, 0))), "outputs must have at least one neuron"),
        (dict(inputs=np.zeros(10)), "inputs.* must have the shape"),
        (dict(inputs={"other": np.zeros((10, 1))}), "inputs must have the keys"),
        (dict(kernels=None), "kernels must be"),
        (dict(feedback_basis=3), "feedback_basis must be"),
        (dict(activation="exp"), "activation must be"),
        (dict(penalty=-1.0), "penalty must be"),
        (dict(mask=np.zeros(10)), "mask must be"),
        (dict(mask=np.zeros(10, dtype=bool)), "mask must leave"),
        (dict(connect="i != j"), "connect must be a dict"),
        (dict(connect={"coupling": True}), "connect must be a dict with keys among"),
        (dict(connect={"stimulus": "i +"}), "connect must be a condition"),
        (dict(tol=0.0), "tol must be"),
        (dict(max_iter=0), "max_iter must be"),
        (dict(outputs=None), "outputs must be an array"),
        (dict(mask=np.ma.masked_array(np.ones(10, dtype=bool), [True] * 10)), "mask must not have"),
        (dict(inputs=np.ma.masked_array(np.ones((10, 1)), [[True]] * 10)), "inputs.* must not have"),
    ],
)
def test_bad_argument_is_named(change, says):
    good = dict(outputs=np.tile([[0], [1]], (5, 1)), inputs=np.ones((10, 1)), kernels=SHORT)
    with pytest.raises((TypeError, ValueError), match=f"^{says}"):
        glm.fit_population(**{**good, **change})


# The time step of the data


def recording_of(y, dt=1 * ms):
    return Recording.from_trains(y, dt)


def test_the_time_step_is_given_or_read_from_the_data():
    rng = np.random.default_rng(11)
    x, y = (rng.random((300, 2)) < 0.3), (rng.random((300, 2)) < 0.3)
    plain = fit_without_warning(y, x, SHORT)
    assert plain.dt is None
    told = fit_without_warning(y, x, SHORT, dt=1 * ms)
    read = fit_without_warning(recording_of(y), x, SHORT)
    both = fit_without_warning(recording_of(y), {"a": recording_of(x)}, {"a": SHORT})
    for population in told, read, both:
        assert population.dt == 1 * ms
        np.testing.assert_array_equal(population.bias, plain.bias)
    fine = Recording(recording_of(y).times, 0 * ms, 300 * ms)
    again = fit_without_warning(fine, x, SHORT, dt=1 * ms)
    np.testing.assert_array_equal(again.bias, plain.bias)


def test_the_time_step_of_a_monitor_is_kept():
    defaultclock.dt = 2 * ms
    neurons = glm.GLMNeurons(2, SHORT, random_state=1)
    neurons.bias = -1
    monitor = SpikeMonitor(neurons)
    network = Network(neurons, monitor)
    network.run(400 * ms)
    fitted = glm.fit_population(
        Recording.from_monitor(monitor, 0 * ms, network.t), feedback_basis=SHORT
    )
    assert fitted.dt == 2 * ms


def test_data_in_different_steps_are_refused():
    y = np.tile([[0], [1]], (20, 1))
    with pytest.raises(
        ValueError, match=r"^outputs is in steps of 1\. ms, and inputs\['stimulus'\] in"
    ):
        glm.fit_population(recording_of(y), recording_of(y, 2 * ms), SHORT)
    with pytest.raises(ValueError, match="^dt must be given: outputs is a Recording"):
        glm.fit_population(Recording([[1] * ms], 0 * ms, 40 * ms), feedback_basis=SHORT)
    later = Recording.from_trains(y, 1 * ms, t_start=10 * ms)
    with pytest.raises(
        ValueError, match=r"^outputs must cover the same time as inputs.*recording.part"
    ):
        glm.fit_population(recording_of(y), later, SHORT)
    with pytest.raises(TypeError, match="^dt must be one time with a unit"):
        glm.fit_population(y, y, SHORT, dt=1)


# Fits without inputs


def test_history_alone_and_bias_alone():
    rng = np.random.default_rng(12)
    y = rng.random((2000, 2)) < 0.3
    y[1:] &= ~y[:-1]
    alone = fit_without_warning(y, feedback_basis=SMOOTH)
    assert not alone.kernels and np.abs(gradient(alone, {}, y)).max() < 1e-5
    named = fit_without_warning(y, {}, {}, feedback_basis=SMOOTH)
    np.testing.assert_array_equal(named.feedback_weights, alone.feedback_weights)
    silent = fit_without_warning(y, np.zeros((2000, 1)), SHORT, SMOOTH)
    np.testing.assert_allclose(alone.feedback_weights, silent.feedback_weights, atol=1e-9)
    rate = y.mean(axis=0)
    np.testing.assert_allclose(fit_without_warning(y).bias, np.log(rate / (1 - rate)), atol=1e-9)


def test_inputs_and_kernels_go_together():
    y = np.tile([[0], [1]], (20, 1))
    with pytest.raises(ValueError, match="^inputs must be left out"):
        glm.fit_population(y, y, {})
    for inputs in None, {}:
        with pytest.raises((TypeError, ValueError), match="^inputs"):
            glm.fit_population(y, inputs, SHORT)


# Coupling of neurons with themselves


def test_own_coupling_is_left_to_a_feedback_that_can_stand_for_it():
    rng = np.random.default_rng(13)
    y = rng.random((3000, 3)) < 0.2
    y[1:, 0] |= y[:-1, 1]
    inputs, kernels = {"coupling": y}, {"coupling": SHORT}
    fitted = fit_without_warning(y, inputs, kernels, SHORT)
    own = np.eye(3, dtype=bool)
    assert not fitted.weights["coupling"][own].any() and fitted.weights["coupling"][~own].all()
    said = fit_without_warning(y, inputs, kernels, SHORT, connect={"coupling": "i != j"})
    np.testing.assert_array_equal(fitted.weights["coupling"], said.weights["coupling"])
    np.testing.assert_array_equal(fitted.feedback_weights, said.feedback_weights)
    # Nothing is lost: the likelihood is as high as with both.
    with pytest.warns(RuntimeWarning, match=r"kernels \['coupling'\] couple .* 'i != j'"):
        both = glm.fit_population(y, inputs, kernels, SHORT, connect={"coupling": True})
    got = fitted.log_likelihood(y, inputs)
    assert got == pytest.approx(both.log_likelihood(y, inputs), rel=1e-9)
    total = both.feedback_kernels() + both.kernel("coupling")[[0, 1, 2], [0, 1, 2]]
    np.testing.assert_allclose(fitted.feedback_kernels(), total, atol=1e-5)
    # An input that holds one of the trains
    some = fit_without_warning(y, {"some": y[:, 1:2]}, {"some": SHORT}, SHORT)
    assert not some.weights["some"][0, 1].any() and some.weights["some"][0, [0, 2]].all()


def test_own_coupling_that_says_more_than_the_feedback_stays():
    rng = np.random.default_rng(14)
    y = rng.random((2000, 2)) < 0.2
    inputs = {"coupling": y}
    apart = glm.CustomBasis(np.eye(6)[:, 3:])
    fitted = fit_without_warning(y, inputs, {"coupling": apart}, glm.IndicatorBasis(3))
    assert fitted.weights["coupling"].all()
    with pytest.warns(RuntimeWarning, match="can form part of the same"):
        glm.fit_population(y, inputs, {"coupling": glm.IndicatorBasis(6)}, glm.IndicatorBasis(3))
    without = fit_without_warning(y, inputs, {"coupling": SHORT})
    assert without.weights["coupling"].all()


# Scales


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e155, 1e200, 1e307])
@pytest.mark.parametrize("only_one", [False, True])
def test_inputs_that_cannot_be_squared_are_refused(scale, only_one):
    rng = np.random.default_rng(15)
    y, x = rng.random((200, 1)) < 0.3, rng.normal(size=(200, 2))
    x *= [1, scale] if only_one else scale
    says = rf"^inputs\['stimulus'\] must be on a scale .* source {int(only_one)} goes up to"
    with pytest.raises(ValueError, match=says):
        glm.fit_population(y, x, SHORT)


def test_an_input_that_is_lost_beside_its_mean_is_refused():
    rng = np.random.default_rng(16)
    y, x = rng.random((500, 1)) < 0.3, rng.normal(size=(500, 1))
    known = np.arange(500) >= SHORT.window
    want = fit_without_warning(y, x, SHORT, mask=known)
    near = fit_without_warning(y, x + 1e3, SHORT, mask=known)
    np.testing.assert_allclose(near.weights["stimulus"], want.weights["stimulus"], rtol=1e-4)
    for offset in (1e8, 1e50):
        with pytest.raises(ValueError, match=r"^inputs\['stimulus'\](: source 0 varies|.*scale)"):
            glm.fit_population(y, x + offset + (offset > 1e9) * 1e40 * x, SHORT, mask=known)


# pynapple


def test_counts_and_events_of_pynapple():
    nap = pytest.importorskip("pynapple", reason="pynapple is not installed")
    rng = np.random.default_rng(17)
    y = rng.random((400, 2)) < 0.3
    observed = nap.IntervalSet(0, 0.4)
    times = {key: nap.Ts(np.flatnonzero(train) / 1e3 + 5e-4) for key, train in zip((3, 7), y.T)}
    spikes = nap.TsGroup(times, time_support=observed)
    counts = spikes.count(0.001, ep=observed)
    want = fit_without_warning(y, y, SHORT)
    for outputs in counts, from_pynapple(spikes):
        fitted = fit_without_warning(outputs, y, SHORT, dt=1 * ms)
        np.testing.assert_array_equal(fitted.bias, want.bias)
    fitted = fit_without_warning(counts, counts, SHORT)
    assert fitted.dt == 1 * ms
    with pytest.raises(ValueError, match=r"^outputs is in steps of 1\. ms, and dt is 2\. ms"):
        glm.fit_population(counts, y, SHORT, dt=2 * ms)
    for events in spikes, spikes[3]:
        with pytest.raises(ValueError, match="^dt must be given: outputs is a Ts"):
            glm.fit_population(events, y, SHORT)
    np.testing.assert_array_equal(fit_without_warning(spikes, counts, SHORT).bias, want.bias)
    gap = counts.restrict(nap.IntervalSet([0, 0.2], [0.1, 0.4]))
    with pytest.raises(ValueError, match="^outputs must be in equal steps.*mask"):
        glm.fit_population(gap, feedback_basis=SHORT)
    mask = np.ones(len(gap), dtype=bool)
    mask[99:105] = False
    fitted = fit_without_warning(gap, feedback_basis=SHORT, mask=mask)
    assert fitted.dt == 1 * ms and fitted.log_likelihood(gap, mask=mask) < 0
    with pytest.raises(ValueError, match="^outputs must be in equal steps.*mask"):
        fitted.log_likelihood(gap)


def test_a_tolerance_beyond_all_squares():
    y = np.tile([[0], [1], [1]], (20, 1))
    assert np.isfinite(glm.fit_population(y, y, SHORT, tol=1e308).bias).all()
