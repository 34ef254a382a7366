"""GLM neurons in networks that others have: what a Brian 2 user expects of them."""

import numpy as np
import pytest
from brian2 import (
    Clock,
    DimensionMismatchError,
    Network,
    NeuronGroup,
    PopulationRateMonitor,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    Synapses,
    TimedArray,
    collect,
    defaultclock,
    device,
    magic_network,
    ms,
    mV,
    prefs,
    run,
    set_device,
    start_scope,
)
from brian2.core.base import BrianObjectException

import glmbrian as glm
from glmbrian.brian.filters import LONGEST_SHIFT_REGISTER
from glmbrian.core.randomness import join_key, uniforms
from glmbrian.learning import membrane_potential

SHORT, LONG = 5, LONGEST_SHIFT_REGISTER + 20
both_windows = pytest.mark.parametrize("window", [SHORT, LONG])


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms


def make_neurons(window=SHORT, n=4, **settings):
    """Neurons with feedback that spike often."""
    neurons = glm.GLMNeurons(
        n, glm.IndicatorBasis(window), feedback_basis=glm.IndicatorBasis(3), random_state=1, **settings
    )
    neurons.bias = np.linspace(-1, 1, n)
    neurons.feedback_weights = [-2.0, -1.0, 0.5]
    return neurons


def make_network(window=SHORT, delay=2 * ms):
    """A network of coupled neurons with an input, and its monitors."""
    neurons = make_neurons(window)
    random = np.random.default_rng(3)
    steps, inputs = np.nonzero(random.random((100, 3)) < 0.3)
    source = SpikeGeneratorGroup(3, inputs, steps * ms)
    forward = glm.GLMSynapses(source, neurons)
    forward.w = random.normal(size=forward.w.shape)
    lateral = glm.GLMSynapses(neurons, neurons, connect="i != j", delay=delay)
    lateral.w = 0.2 * random.normal(size=lateral.w.shape)
    spikes = SpikeMonitor(neurons)
    potential = StateMonitor(neurons, "u", record=True, when="end")
    return Network(source, neurons, forward, lateral, spikes, potential), neurons, spikes, potential


# ------------------------------------------------------------------ several runs, every device

TARGETS = [
    "numpy",
    pytest.param("cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
    pytest.param("cpp_standalone", marks=pytest.mark.compiled),
]
#: Steps of three runs: of 1 ms, of 1 ms after `clear`, of 0.5 ms.
RUNS = [25, 25, 40]
STEPS = np.cumsum([0, *RUNS])
TIMES = np.concatenate([np.arange(50), 50 + 0.5 * np.arange(40)])


def three_runs(target):
    """Return, for a short window and for a long one, what three runs gave."""
    if target == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    else:
        prefs.codegen.target = target
    defaultclock.dt = 1 * ms
    random = np.random.default_rng(0)
    rows = np.floor(2 * TIMES + 1e-9).astype(int)
    x = (random.random((STEPS[-1], 5)) < 0.2).astype(int)
    trains = np.zeros((200, 5))
    trains[rows] = x
    source = NeuronGroup(
        5,
        "v = trains(t, i) : 1",
        threshold="v > 0.5",
        namespace={"trains": TimedArray(trains, dt=0.5 * ms)},
    )
    table = random.normal(size=(200, 4))
    flicker = TimedArray(table, dt=0.5 * ms)
    alike = TimedArray(table[:, 0].copy(), dt=0.5 * ms)  # noqa: F841 (Brian finds it by its name)
    gain = 0.7
    network = Network(source)
    cases = {}
    for name, window, drive in (
        ("short", SHORT, flicker),
        ("long", LONG, "0.1 * i + gain * alike(t)"),
    ):
        basis = glm.CustomBasis(random.normal(size=(window, 2)))
        feedback = glm.CustomBasis(random.normal(size=(4, 2)))
        neurons = glm.GLMNeurons(4, basis, feedback_basis=feedback, drive=drive, random_state=window)
        neurons.bias = bias = random.normal(size=4) - 1
        neurons.feedback_weights = v = random.normal(size=(4, 2))
        # from a subgroup to a subgroup
        synapses = glm.GLMSynapses(source[1:], neurons[:3])
        synapses.w = w = 0.3 * random.normal(size=(4, 3, 2))
        spikes = SpikeMonitor(neurons)
        states = StateMonitor(neurons, ["u", "drive"], record=True, when="end")
        network.add(neurons, synapses, spikes, states)
        cases[name] = (basis, feedback, bias, v, w, neurons, spikes, states)
    drives = {"short": table[rows], "long": 0.1 * np.arange(4) + gain * table[rows, :1]}
    network.run(RUNS[0] * ms)
    for case in cases.values():
        case[5].clear()
    network.run(RUNS[1] * ms)
    defaultclock.dt = 0.5 * ms
    network.run(RUNS[2] * 0.5 * ms)
    if target == "cpp_standalone":
        device.build(directory=None, with_output=False)

    results = {}
    for name, (basis, feedback, bias, v, w, neurons, spikes, states) in cases.items():
        y = np.zeros((STEPS[-1], 4), dtype=int)
        y[np.searchsorted(TIMES, np.asarray(spikes.t / ms) - 1e-6), np.asarray(spikes.i)] = 1
        all_w = np.concatenate([w, np.zeros((4, 1, 2))], axis=1)
        expected = np.concatenate(
            [
                membrane_potential(x[part, 1:], basis.matrix, all_w, bias, y[part], feedback.matrix, v)
                for part in (slice(0, RUNS[0]), slice(RUNS[0], None))
            ]
        )
        key = join_key(neurons.key_low_, neurons.key_high_)
        results[name] = dict(
            y=y,
            u=np.array(states.u).T,
            expected=expected + drives[name],
            drive=np.array(states.drive).T,
            expected_drive=drives[name],
            draws=uniforms(key, 0, np.arange(STEPS[-1])[:, np.newaxis], np.arange(4)),
        )
    return results


@pytest.fixture(scope="module", params=TARGETS)
def observed(request):
    before = prefs.codegen.target
    results = three_runs(request.param)
    prefs.codegen.target = before
    return results


@pytest.mark.parametrize("case", ["short", "long"])
class TestThreeRuns:
    def test_potential_with_drive_is_that_of_the_equation(self, observed, case):
        result = observed[case]
        assert result["drive"].std() > 0.5
        np.testing.assert_allclose(result["u"], result["expected"], rtol=0, atol=1e-12)

    def test_drive_can_be_monitored(self, observed, case):
        result = observed[case]
        np.testing.assert_allclose(result["drive"], result["expected_drive"], rtol=0, atol=1e-12)

    def test_each_step_has_a_draw_of_its_own(self, observed, case):
        result = observed[case]
        assert 0.1 < result["y"].mean() < 0.9
        probability = glm.get_activation("sigmoid").probability(result["u"])
        np.testing.assert_array_equal(result["y"], result["draws"] < probability)


# ------------------------------------------------------------------ drive


@both_windows
def test_drive_of_random_numbers_is_drawn_once_a_step(window):
    neurons = glm.GLMNeurons(3, glm.IndicatorBasis(window), drive="2 * randn()")
    states = StateMonitor(neurons, ["u", "drive"], record=True, when="end")
    Network(neurons, states).run(300 * ms)
    np.testing.assert_array_equal(states.u, states.drive)
    assert 1.7 < states.u.std() < 2.3 and abs(np.corrcoef(states.u[:2])[0, 1]) < 0.25


def test_drive_of_the_namespace_comes_before_that_around_the_run():
    gain = 1.0  # noqa: F841  (which Brian would find)
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1), drive="gain + i", namespace={"gain": 5.0})
    Network(neurons).run(1 * ms, namespace={})
    np.testing.assert_array_equal(neurons.u[:], [5, 6])


def test_drive_knows_indices_of_the_whole_group():
    neurons = glm.GLMNeurons(4, glm.IndicatorBasis(1), drive="3.0 * i")
    monitor = StateMonitor(neurons[2:], "drive", record=True)
    i = 7  # noqa: F841  (a local variable of this name does no harm)
    Network(neurons, monitor).run(1 * ms)
    np.testing.assert_array_equal(monitor.drive[:, 0], [6, 9])


def test_without_drive_there_is_no_variable():
    with pytest.raises(AttributeError):
        glm.GLMNeurons(1, glm.IndicatorBasis(1)).drive


@pytest.mark.parametrize(
    "settings, error, message",
    [
        (dict(drive=3.0), TypeError, "drive must be an expression in t and i"),
        (dict(drive=np.zeros(3)), TypeError, "or a TimedArray"),
        (dict(drive=TimedArray([1] * mV, dt=1 * ms)), TypeError, "without unit.* in V"),
        (dict(drive=TimedArray(np.zeros((5, 3)), dt=1 * ms)), ValueError, r"\(n_steps, 2\)"),
        (dict(drive="drive(t)"), ValueError, "must not use the name 'drive'"),
        (dict(drive="sin(t"), ValueError, "drive must be an expression.*never closed"),
        (dict(namespace=3), TypeError, "namespace must be a dict"),
    ],
)
def test_bad_drive(settings, error, message):
    with pytest.raises(error, match=message):
        glm.GLMNeurons(2, glm.IndicatorBasis(1), **settings)


def test_there_are_no_timed_arrays_on_genn():
    pytest.importorskip("brian2genn")
    set_device("genn", build_on_run=False)
    with pytest.raises(NotImplementedError, match="GeNN does not support TimedArrays"):
        glm.GLMNeurons(2, glm.IndicatorBasis(1), drive=TimedArray([1.0], dt=1 * ms))


def test_there_is_no_own_code_on_genn():
    pytest.importorskip("brian2genn")
    set_device("genn", build_on_run=False)
    for own in (dict(equations="x : 1"), dict(reset="bias += 1")):
        with pytest.raises(NotImplementedError, match="not supported on the device 'genn'"):
            glm.GLMNeurons(2, glm.IndicatorBasis(1), **own)


@pytest.mark.parametrize("on_device", ["runtime", "cpp_standalone"])
@pytest.mark.parametrize(
    "drive, cause, message",
    [
        ("3*mV", DimensionMismatchError, "subexpression drive"),
        ("unheard_of * 2", KeyError, "unheard_of"),
    ],
)
def test_bad_drive_is_found_before_anything_is_compiled(on_device, drive, cause, message):
    if on_device == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    network = Network(glm.GLMNeurons(2, glm.IndicatorBasis(1), drive=drive))
    with pytest.raises(BrianObjectException) as caught:
        network.run(1 * ms)
    assert isinstance(caught.value.__cause__, cause) and message in str(caught.value.__cause__)


# ------------------------------------------------------------------ units and values


def test_values_have_no_unit():
    neurons = make_neurons()
    neurons.bias = "0.5 * i"
    np.testing.assert_array_equal(neurons.bias[:], [0, 0.5, 1, 1.5])
    neurons[2:].bias = 7
    np.testing.assert_array_equal(neurons.bias[:], [0, 0.5, 7, 7])
    assert type(neurons.u[:]) is np.ndarray
    with pytest.raises(DimensionMismatchError, match="bias should be set with a dimensionless"):
        neurons.bias = 3 * mV
    with pytest.raises(AttributeError, match='Did you mean to write "bias"'):
        neurons.bais = 3


def test_weights_with_a_unit_are_refused():
    neurons = make_neurons()
    synapses = glm.GLMSynapses(neurons, neurons)
    synapses.w = 1.0
    with pytest.raises(TypeError, match="w must be plain numbers, without a unit"):
        synapses.w = 3 * mV
    with pytest.raises(TypeError, match="feedback_weights must be plain numbers"):
        neurons.feedback_weights = np.ones((4, 3)) * mV
    assert (synapses.w == 1).all()


@pytest.mark.parametrize("connect", [False, "i > 10", ([], [])])
def test_synapses_may_be_none(connect):
    neurons = make_neurons()
    synapses = glm.GLMSynapses(neurons, neurons, connect=connect)
    Network(neurons, synapses).run(2 * ms)
    assert len(synapses) == 0 and not synapses.w.any()


def test_weights_of_single_functions_are_brians():
    neurons = make_neurons()
    synapses = glm.GLMSynapses(neurons, neurons, connect="i != j")
    synapses.w_1 = "0.1 * i"
    np.testing.assert_allclose(synapses.w[:, 3, 1], [0, 0.1, 0.2, 0])
    synapses.delay = "j * ms"
    np.testing.assert_array_equal(synapses.delay[0, :] / ms, [1, 2, 3])


@both_windows
def test_states_can_be_taken_and_given_back(window):
    network, neurons, _, potential = make_network(window)
    network.run(20 * ms)
    states = neurons.get_states(read_only_variables=False)
    before = neurons.u[:].copy()
    neurons.clear()
    neurons.set_states({name: 0 * value for name, value in states.items()})
    assert not neurons.u[:].any()
    neurons.set_states(states)
    np.testing.assert_array_equal(neurons.u[:], before)
    network.run(20 * ms)
    undisturbed, _, _, expected = make_network(window)
    undisturbed.run(40 * ms)
    np.testing.assert_allclose(potential.u, expected.u, rtol=0, atol=1e-12)


def test_text_for_people_names_the_kernels():
    text = make_neurons()._repr_html_()
    assert "4 neurons" in text and "n_basis=5, window=5" in text and "du" not in text
    assert "GLMNeurons" in repr(make_neurons())


# ------------------------------------------------------------------ clocks


def test_the_default_clock_may_be_set_after_the_neurons():
    neurons = make_neurons()
    defaultclock.dt = 0.2 * ms
    monitor = StateMonitor(neurons, "u", record=True)
    Network(neurons, monitor).run(2 * ms)
    np.testing.assert_allclose(monitor.t / ms, np.arange(10) * 0.2)


@pytest.mark.parametrize("settings", [dict(dt=0.5 * ms), dict(clock=Clock(dt=0.5 * ms))])
def test_own_clocks(settings):
    neurons = make_neurons(**settings)
    others = make_neurons()
    synapses = glm.GLMSynapses(neurons, neurons)
    spikes = SpikeMonitor(neurons)
    network = Network(neurons, others, synapses, spikes)
    network.run(100 * ms)
    assert (neurons.step_count_, others.step_count_) == (200, 100)
    assert (np.round(spikes.t / ms * 2) % 2 == 1).any()


@both_windows
def test_a_finer_source_counts_for_the_step_in_which_its_spikes_arrive(window):
    times = [0.0, 0.3, 0.9, 1.0, 2.7]
    source = SpikeGeneratorGroup(1, np.zeros(5, dtype=int), times * ms, dt=0.1 * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(window), dt=1 * ms)
    synapses = glm.GLMSynapses(source, neurons)
    synapses.w = np.arange(window) == 0
    monitor = StateMonitor(neurons, "u", record=True, when="end")
    Network(source, neurons, synapses, monitor).run(5 * ms)
    np.testing.assert_array_equal(monitor.u[0], [0, 3, 1, 1, 0])


@both_windows
def test_neurons_may_come_to_a_network_that_has_run(window):
    first = make_neurons()
    network = Network(first)
    network.run(37 * ms)
    later, neurons, spikes, potential = make_network(window)
    network.add(later.objects)
    network.run(30 * ms)
    y = np.zeros((30, 4), dtype=int)
    y[np.round(spikes.t / ms).astype(int) - 37, spikes.i] = 1
    assert potential.t[0] / ms == pytest.approx(37) and neurons.step_count_ == 30
    np.testing.assert_array_equal(potential.u[:, 0], neurons.bias[:])
    draws = uniforms(
        join_key(neurons.key_low_, neurons.key_high_), 0, np.arange(30)[:, np.newaxis], np.arange(4)
    )
    probability = glm.get_activation("sigmoid").probability(np.array(potential.u).T)
    np.testing.assert_array_equal(y, draws < probability)


# ------------------------------------------------------------------ running


@both_windows
def test_several_runs_are_one_long_run(window):
    network, _, spikes, potential = make_network(window)
    network.run(60 * ms)
    in_parts, _, spikes_in_parts, potential_in_parts = make_network(window)
    for duration in (1, 19, 40):
        in_parts.run(duration * ms)
    assert 40 < spikes.num_spikes < 200
    np.testing.assert_array_equal(spikes_in_parts.i, spikes.i)
    np.testing.assert_array_equal(spikes_in_parts.t, spikes.t)
    np.testing.assert_allclose(potential_in_parts.u, potential.u, rtol=0, atol=1e-12)


@both_windows
@pytest.mark.parametrize("in_file", [False, True])
def test_restored_networks_repeat_their_spikes(window, in_file, tmp_path):
    # Brian's queue of delayed spikes is not for another dt before `restore`.
    network, neurons, spikes, potential = make_network(window, delay=0 * ms)
    place = dict(filename=str(tmp_path / "stored")) if in_file else {}
    network.run(20 * ms)
    network.store(**place)
    outcomes = []
    for dt in (1.0, 0.5, 1.0):
        network.restore(**place)
        defaultclock.dt = dt * ms
        network.run(40 * ms)
        outcomes.append((np.array(spikes.t), np.array(spikes.i), np.array(potential.u)))
    for first, again in zip(outcomes[0], outcomes[2]):
        np.testing.assert_array_equal(first, again)
    assert outcomes[1][2].shape[1] == 20 + 80


@both_windows
def test_clear_between_runs_begins_anew(window):
    network, neurons, _, potential = make_network(window)
    network.run(20 * ms)
    neurons.clear()
    network.run(1 * ms)
    np.testing.assert_array_equal(potential.u[:, 20], neurons.bias[:])


def test_magic_networks_find_everything():
    start_scope()
    neurons = make_neurons()
    synapses = glm.GLMSynapses(neurons, neurons)
    spikes = SpikeMonitor(neurons)
    rate = PopulationRateMonitor(neurons[1:3])
    gain = 2.0  # noqa: F841
    driven = glm.GLMNeurons(1, glm.IndicatorBasis(1), drive="gain * int(t > 3*ms)")
    assert {neurons, synapses, spikes, rate, driven} <= set(collect())
    run(50 * ms)
    assert driven.u[0] == 2.0 and spikes.num_spikes == spikes.count[:].sum() > 0
    per_step = np.asarray(rate.rate * ms)
    inner = np.isin(spikes.i, [1, 2])
    steps = np.round(spikes.t[inner] / ms).astype(int)
    np.testing.assert_allclose(per_step, np.bincount(steps, minlength=50) / 2)
    magic_network.store()
    run(10 * ms)
    magic_network.restore()
    assert neurons.step_count_ == 50


def test_monitors_and_regular_operations():
    neurons = make_neurons()
    neurons.feedback_weights = 0 * neurons.feedback_weights
    neurons.bias = -3
    neurons.run_regularly("bias += 1", dt=10 * ms, when="start")
    states = StateMonitor(neurons, ["u", "bias", "firing_probability"], record=[0, 3], when="end")
    spikes = SpikeMonitor(neurons[2:], variables=["u"])
    Network(neurons, states, spikes).run(40 * ms)
    np.testing.assert_array_equal(states.bias, np.tile(np.repeat([-2, -1, 0, 1], 10), (2, 1)))
    np.testing.assert_array_equal(states.u, states.bias)
    probability = glm.get_activation("sigmoid").probability(np.array(states.u))
    np.testing.assert_allclose(states.firing_probability, probability, rtol=1e-12)
    np.testing.assert_array_equal(spikes.u, np.floor(np.asarray(spikes.t / ms + 0.1) / 10) - 2)
    assert set(np.asarray(spikes.i)) <= {0, 1}


def test_neurons_drive_neurons_of_other_kinds():
    neurons = make_neurons()
    leaky = NeuronGroup(2, "dv/dt = -v/(10*ms) : volt", method="exact")
    synapses = Synapses(neurons, leaky, on_pre="v_post += 1*mV")
    synapses.connect(i=[0, 3], j=[0, 1])
    trace = Synapses(leaky, neurons, "bias_post = v_pre/mV : 1 (summed)")
    trace.connect(i=[0, 1], j=[1, 2])
    Network(neurons, leaky, synapses, trace).run(50 * ms)
    assert (leaky.v[:] > 0 * mV).all() and neurons.bias[0] == 0 and neurons.bias[1] > 0


def test_states_on_standalone_are_brians_before_the_run():
    set_device("cpp_standalone", directory=None, build_on_run=False)
    neurons = make_neurons()
    Network(neurons).run(1 * ms)
    with pytest.raises(NotImplementedError, match="standalone"):
        neurons.u[:]
