"""The model in simulation equals the equation of the paper, for every source."""

import gc
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    PoissonGroup,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    Synapses,
    defaultclock,
    device,
    ms,
    prefs,
    set_device,
)
from brian2.core.base import BrianObjectException
from brian2.utils.logger import catch_logs
from conftest import levels_above_draws

import glmbrian as glm
from glmbrian.brian.filters import LONGEST_SHIFT_REGISTER
from glmbrian.brian.internals import CPP_PROGRAM_CAN_STOP
from glmbrian.core.randomness import derive_keys
from glmbrian.core.rate_code import levels, rate_encode
from glmbrian.learning import membrane_potential

N_STEPS = 60
# Brian's Cython target takes minutes to compile all this: it has smaller tests, in
# test_existing_models.py, test_examples.py and test_simulation.py.
# Native code is the same with either precision (test_precision.py); it is compiled with the
# preference that might go wrong.
TARGETS = [
    ("numpy", np.float64),
    ("numpy", np.float32),
    pytest.param(("cpp_standalone", np.float32), marks=pytest.mark.compiled),
]
LONG = LONGEST_SHIFT_REGISTER + 20


def choose(target):
    """Simulate on a Brian code generation target, or on the standalone device."""
    if target == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
    else:
        prefs.codegen.target = target
    defaultclock.dt = 1 * ms


def spike_trains(monitor, n_steps=N_STEPS):
    trains = np.zeros((n_steps, len(monitor.source)), dtype=int)
    trains[np.round(monitor.t / ms).astype(int), np.asarray(monitor.i)] = 1
    return trains


#: Intensities that a second draw decides about (see `glmbrian.core.randomness.bernoulli`).
IMAGE_KEY = derive_keys(6, 0)[0]
IMAGE = levels_above_draws(np.random.default_rng(2), IMAGE_KEY, [0], N_STEPS, 30)[0] / 32768


def make_sources(random):
    """One group of every kind that can drive GLM neurons; what else it needs."""
    steps, neurons = np.nonzero(random.random((N_STEPS, 7)) < 0.2)
    leaky = NeuronGroup(
        5,
        "dv/dt = (drive - v)/(10*ms) : 1\ndrive : 1",
        threshold="v > 1",
        reset="v = 0",
        method="exact",
    )
    leaky.drive = np.linspace(1.2, 3.0, 5)
    glm_source = glm.GLMNeurons(4, glm.IndicatorBasis(2), random_state=5)
    glm_source.bias = -1
    encoder = glm.RateEncoder(IMAGE, random_state=6)
    return {
        "rate encoder": encoder,
        "poisson": PoissonGroup(5, rates=200 / (1000 * ms)),
        "generator": SpikeGeneratorGroup(7, neurons, steps * ms),
        "integrate and fire": leaky,
        "glm": glm_source,
        "subgroup": leaky[1:4],
    }


@pytest.fixture(scope="module", params=TARGETS)
def observed(request):
    """Potentials of a network with all sources, and the paper's equation for it.

    Two groups of neurons have a kernel for each source: one with short windows and
    feedback, one with a long window and without.
    """
    target, precision = request.param
    previous, previous_precision = prefs.codegen.target, prefs.core.default_float_dtype
    choose(target)
    prefs.core.default_float_dtype = precision
    random = np.random.default_rng(1)
    sources = make_sources(random)
    spikes = {name: SpikeMonitor(source) for name, source in sources.items()}
    network = Network(spikes.values(), [s for name, s in sources.items() if name != "subgroup"])
    cases = {}
    for case, window in (("feedback", 6), ("long", LONG)):
        kernels = {
            name.replace(" ", "_"): glm.CustomBasis(random.normal(size=(window - n, 2)))
            for n, name in enumerate(sources)
        }
        feedback = glm.CustomBasis(random.normal(size=(4, 2))) if case == "feedback" else None
        neurons = glm.GLMNeurons(3, kernels, feedback_basis=feedback, random_state=window)
        neurons.bias = bias = random.normal(size=3) - 1
        v = random.normal(size=(3, 2))
        if feedback:
            neurons.feedback_weights = v
        synapses, weights = [], []
        for source, kernel in zip(sources.values(), kernels):
            synapses.append(glm.GLMSynapses(source, neurons, kernel))
            weights.append(random.normal(size=(len(source), 3, 2)) * 0.2)
            synapses[-1].w = weights[-1]
        outputs = SpikeMonitor(neurons)
        potential = StateMonitor(neurons, "u", record=True, when="end")
        network.add(neurons, synapses, outputs, potential)
        cases[case] = (kernels, weights, bias, feedback, v, synapses, outputs, potential)
    network.run(N_STEPS * ms, namespace={})
    if target == "cpp_standalone":
        device.build(directory=None, with_output=False)
    trains = {name: spike_trains(monitor) for name, monitor in spikes.items()}
    result = {"inputs": trains, "precision": precision}
    for case, (kernels, weights, bias, feedback, v, synapses, outputs, potential) in cases.items():
        y = spike_trains(outputs)
        with_feedback = (y, feedback.matrix, v) if feedback else ()
        zero = np.zeros(3)
        expected = bias + sum(
            membrane_potential(x, basis.matrix, w, zero)
            for x, basis, w in zip(trains.values(), kernels.values(), weights)
        )
        if feedback:
            expected += membrane_potential(
                y, np.ones((1, 1)), np.zeros((3, 3, 1)), zero, *with_feedback
            )
        result[case] = dict(
            u=np.array(potential.u[:]).T,
            expected=expected,
            outputs=y,
            weights=[(synapse.w, w) for synapse, w in zip(synapses, weights)],
        )
    if target == "cpp_standalone" and CPP_PROGRAM_CAN_STOP:  # so are its arguments of Brian 2.6
        result["other arguments"] = run_with_other_arguments(*cases["feedback"][5:7])
    prefs.codegen.target, prefs.core.default_float_dtype = previous, previous_precision
    return result


def run_with_other_arguments(synapses, outputs):
    """Run a program with other parameters, and return what they were and are."""
    neurons = outputs.source
    w, feedback = np.full(synapses[0].w.shape, 0.5), np.full((3, 2), -0.25)
    w[0, 1] = [1.0, 2.0]
    device.run(
        with_output=False,
        run_args={**synapses[0].run_args(w), **neurons.run_args([1.0, 2.0, 3.0], feedback)},
    )
    written = w, feedback, [1.0, 2.0, 3.0]
    read = synapses[0].w, neurons.feedback_weights, neurons.bias[:]
    # A project may be moved, and runs on its own.
    with tempfile.TemporaryDirectory() as folder:
        moved = os.path.join(folder, "moved")
        shutil.copytree(device.project_dir, moved)
        os.mkdir(os.path.join(moved, "r2"))
        subprocess.run(
            ["./main", "--results_dir", "r2/", f"{neurons.name}.bias=-50"],
            cwd=moved, check=True, capture_output=True,
        )  # fmt: skip
        potential = np.fromfile(next(Path(moved, "r2").glob(f"_array_{neurons.name}_u_*")))
    return written, read, potential


@pytest.mark.parametrize("case", ["feedback", "long"])
def test_potential_is_that_of_the_equation(observed, case):
    assert all(0 < train.mean() < 1 for train in observed["inputs"].values())
    assert 0 < observed[case]["outputs"].mean() < 1
    np.testing.assert_allclose(observed[case]["u"], observed[case]["expected"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("case", ["feedback", "long"])
def test_weights_read_back(observed, case):
    for read, written in observed[case]["weights"]:
        np.testing.assert_array_equal(read, written)


def test_a_program_runs_with_other_parameters(observed):
    if "other arguments" not in observed:
        pytest.skip("for programs, with Brian 2.6 or newer")
    written, read, potential = observed["other arguments"]
    for one, other in zip(written, read):
        np.testing.assert_array_equal(one, other)
    assert potential.shape == (3,) and (potential < -30).all()


SPIKES_ON_FIRST_TARGET = {}


def test_inputs_are_the_same_on_every_target(observed):
    for source, train in observed["inputs"].items():
        if source == "integrate and fire" and observed["precision"] == np.float32:
            continue  # the user's own, which are computed as preferred
        if source != "poisson":  # drawn by Brian
            first = SPIKES_ON_FIRST_TARGET.setdefault(source, train)
            np.testing.assert_array_equal(train, first, err_msg=source)


def test_encoded_inputs_are_those_in_numpy(observed):
    image = levels(IMAGE[np.newaxis].astype(float))
    np.testing.assert_array_equal(
        observed["inputs"]["rate encoder"], rate_encode(image, IMAGE_KEY, [0], N_STEPS)[0]
    )
    whole = rate_encode(np.floor(image), IMAGE_KEY, [0], N_STEPS)[0]
    assert (observed["inputs"]["rate encoder"] != whole).sum() > 2


def test_input_moves_the_potential_one_step_later():
    choose("numpy")
    source = SpikeGeneratorGroup(1, [0], [3] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(2))
    neurons.clamp = -1
    synapses = glm.GLMSynapses(source, neurons)
    synapses.w = [[[1.0, 10.0]]]
    monitor = StateMonitor(neurons, "u", record=True, when="end")
    Network(source, neurons, synapses, monitor).run(8 * ms)
    np.testing.assert_array_equal(monitor.u[0], [0, 0, 0, 0, 1, 10, 0, 0])


def test_lateral_coupling_leaves_out_the_neuron_itself():
    choose("numpy")
    neurons = glm.GLMNeurons(3, {"stimulus": glm.IndicatorBasis(1), "coupling": glm.IndicatorBasis(2)})
    neurons.clamp = [1, -1, -1]
    lateral = glm.GLMSynapses(neurons, neurons, "coupling", "i != j")
    lateral.w = 2.0
    assert lateral.w[0, 0].tolist() == [0, 0] and lateral.w[0, 1].tolist() == [2, 2]
    Network(neurons, lateral).run(4 * ms)
    np.testing.assert_array_equal(neurons.u[:], [0, 4, 4])


def test_delay_adds_to_the_lag():
    choose("numpy")
    source = SpikeGeneratorGroup(1, [0], [1] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1))
    synapses = glm.GLMSynapses(source, neurons, delay=2 * ms)
    synapses.w = 1.0
    monitor = StateMonitor(neurons, "u", record=True, when="end")
    Network(source, neurons, synapses, monitor).run(6 * ms)
    np.testing.assert_array_equal(monitor.u[0], [0, 0, 0, 0, 1, 0])


@pytest.mark.parametrize("activation", ["sigmoid", "probit", "cloglog"])
def test_neurons_spike_with_the_probability_of_the_activation(activation):
    choose("numpy")
    neurons = glm.GLMNeurons(5, glm.IndicatorBasis(1), activation=activation, random_state=3)
    neurons.bias = [-2.0, -1.0, 0.0, 0.5, 1.0]
    monitor = SpikeMonitor(neurons)
    Network(neurons, monitor).run(4000 * ms)
    p = glm.get_activation(activation).probability(neurons.u_[:])
    error = (monitor.count[:] / 4000 - p) / np.sqrt(p * (1 - p) / 4000)
    assert np.abs(error).max() < 4


@pytest.mark.parametrize(
    "activation, target",
    [
        *((name, "numpy") for name in ("sigmoid", "probit", "cloglog")),
        pytest.param("sigmoid", "cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
        pytest.param("cloglog", "cython", marks=pytest.mark.compiled),
    ],
)
def test_extreme_potentials_have_extreme_probabilities(activation, target):
    prefs.codegen.target = target
    neurons = glm.GLMNeurons(4, glm.IndicatorBasis(1), activation=activation, dt=1 * ms)
    neurons.bias = [-1e4, -750, 750, 1e4]
    monitor = SpikeMonitor(neurons)
    Network(neurons, monitor).run(2 * ms)
    np.testing.assert_allclose(neurons.firing_probability[:], [0, 0, 1, 1], rtol=0, atol=1e-300)
    assert monitor.count[:].tolist() == [0, 0, 2, 2]


def test_feedback_alone_makes_a_neuron_fire_every_third_step():
    choose("numpy")
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1), feedback_basis=glm.IndicatorBasis(2))
    neurons.bias = 50
    neurons.feedback_weights = [[-100, -100]]
    monitor = SpikeMonitor(neurons)
    Network(neurons, monitor).run(9 * ms)
    np.testing.assert_array_equal(np.round(monitor.t / ms), [0, 3, 6])
    np.testing.assert_array_equal(neurons.feedback_kernels(), [[-100, -100]])


@pytest.mark.parametrize("window", [5, LONG])
def test_clear_forgets_all_arrived_spikes(window):
    choose("numpy")
    source = SpikeGeneratorGroup(1, [0, 0], [0, 1] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(window))
    synapses = glm.GLMSynapses(source, neurons)
    synapses.w = 1.0
    network = Network(source, neurons, synapses)
    network.run(3 * ms)
    assert neurons.u[0] == 2
    neurons.clear()
    network.run(1 * ms)
    assert neurons.u[0] == 0


@pytest.mark.parametrize("window", [5, LONG])
def test_store_and_restore_repeat_the_run(window):
    choose("numpy")
    encoder = glm.RateEncoder(np.full(10, 200, dtype=np.uint8), random_state=0)
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(window), random_state=1)
    synapses = glm.GLMSynapses(encoder, neurons)
    synapses.w = np.random.default_rng(0).normal(size=synapses.w.shape)
    monitor = StateMonitor(neurons, "u", record=True)
    network = Network(encoder, neurons, synapses, monitor)
    network.run(20 * ms)
    network.store()
    network.run(20 * ms)
    first = np.array(monitor.u[:])
    network.restore()
    network.run(20 * ms)
    np.testing.assert_array_equal(monitor.u[:], first)


@pytest.mark.filterwarnings("ignore:.* draw the same random numbers")
@pytest.mark.parametrize("steps, is_recursion", [(9, True), (10, False), (None, False)])
def test_exponential_kernels_may_be_recursions(steps, is_recursion):
    """If filters are cleared before the window ends, kernels need no end."""

    class Presented(glm.GLMNeurons):
        presentation_steps = steps

    choose("numpy")
    arguments = (3, glm.ExponentialBasis([1.5, 4.5], 8), glm.ExponentialBasis([2.0], 8))
    groups = [kind(*arguments, random_state=4) for kind in (Presented, glm.GLMNeurons)]
    assert any(name.startswith("trace") for name in groups[0].filter_state) == is_recursion
    for neurons in groups:
        neurons.bias, neurons.feedback_weights = [-1.0, 0.0, 1.0], -0.5
    network, seen = Network(groups), [[], []]
    for presentation in range(2):
        for step in range(8):  # after the one in which the first input arrives
            for neurons in groups:
                if step == 0:
                    neurons.clear()
                    neurons.stimulus_0 = presentation + 1
                neurons.stimulus_1 += step % 3
            network.run(1 * ms)
            for neurons, potentials in zip(groups, seen):
                potentials.append(neurons.u[:].copy())
    np.testing.assert_allclose(*seen, rtol=1e-12)


def test_brians_seed_fixes_neurons_without_a_state_of_their_own():
    import brian2

    keys = []
    for _ in range(2):
        brian2.seed(42)
        neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1))
        keys.append((neurons.key_low_, neurons.key_high_))
    assert keys[0] == keys[1]


def test_several_synapses_objects_add_up():
    choose("numpy")
    source = NeuronGroup(2, "v : 1", threshold="t < 0.5*ms", reset="")
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1))
    first = glm.GLMSynapses(source, neurons, connect=([0], [0]))
    second = glm.GLMSynapses(source[1:], neurons)
    first.w, second.w = 1.0, 10.0
    network = Network(source, neurons, first, second)
    network.run(2 * ms)
    assert neurons.u[0] == 11
    assert first.w.shape == (2, 1, 1) and second.kernels().shape == (1, 1, 1)


def test_brians_own_synapses_may_drive_the_channels():
    choose("numpy")
    source = SpikeGeneratorGroup(1, [0], [0] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(1))
    synapses = Synapses(source, neurons, on_pre="stimulus_0_post += 3")
    synapses.connect()
    Network(source, neurons, synapses).run(2 * ms)
    assert neurons.u[0] == 3


@pytest.mark.parametrize(
    "condition, expected",
    [
        ("i != j and i < 1", [(0, 1), (0, 2)]),
        ("j == 2 or i == j", [(0, 0), (0, 2), (1, 1), (1, 2), (2, 2)]),
        ("not (abs(i - j) < 2)", [(0, 2), (2, 0)]),
        ("0 < i < 2", [(1, 0), (1, 1), (1, 2)]),
        ("i == N_pre - 1", [(2, 0), (2, 1), (2, 2)]),
    ],
)
def test_conditions(condition, expected):
    neurons = glm.GLMNeurons(3, BASIS)
    synapses = glm.GLMSynapses(neurons, neurons, connect=condition)
    assert list(zip(synapses.i, synapses.j)) == expected


@pytest.mark.parametrize("window", [4, LONG])
def test_subgroups_at_both_ends(window):
    choose("numpy")
    source = NeuronGroup(3, "v : 1", threshold="t < 0.5*ms", reset="")
    neurons = glm.GLMNeurons(4, glm.IndicatorBasis(window))
    neurons.clamp = -1
    synapses = glm.GLMSynapses(source[1:], neurons[2:])
    synapses.w = np.arange(1, 5).reshape(2, 2, 1) * np.ones(window)
    monitor = SpikeMonitor(neurons[:2])
    Network(source, neurons, synapses, monitor, glm.FirstSpikeStop(neurons[:2])).run(2 * ms)
    np.testing.assert_array_equal(neurons.u[:], [0, 0, 4, 6])


BASIS = glm.IndicatorBasis(2)


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: glm.GLMNeurons(0, BASIS), ValueError, "n must be an integer of at least 1"),
        (lambda: glm.GLMNeurons(1.5, BASIS), TypeError, "n must be an integer"),
        (lambda: glm.GLMNeurons(1, np.eye(2)), TypeError, "kernels must be a basis"),
        (lambda: glm.GLMNeurons(1, {}), TypeError, "kernels must be a basis"),
        (lambda: glm.GLMNeurons(1, {"feedback": BASIS}), ValueError, "'feedback' is taken"),
        (lambda: glm.GLMNeurons(1, {"a b": BASIS}), ValueError, "of letters, digits"),
        (
            lambda: glm.GLMNeurons(1, BASIS, feedback_basis=3),
            TypeError,
            "feedback_basis must be a basis",
        ),
        (lambda: glm.GLMNeurons(1, BASIS, activation="relu"), ValueError, "activation must be one"),
        (lambda: glm.GLMNeurons(1, BASIS, random_state=-1), ValueError, "random_state must be"),
        (lambda: glm.GLMNeurons(2**31, BASIS), ValueError, "^n: .*at most 268435456"),
        (lambda: glm.GLMNeurons(10**6, glm.IndicatorBasis(500)), ValueError, "^n: .*2 GiB"),
        (lambda: glm.GLMNeurons(1, BASIS, dt=0.001), TypeError, "^dt must be one time"),
        (lambda: glm.GLMNeurons(1, BASIS, clock="x"), TypeError, "^clock must be"),
        (lambda: glm.GLMNeurons(1, BASIS, order="a"), TypeError, "^order must be"),
        (lambda: glm.GLMNeurons(1, BASIS, name=3), TypeError, "^name must be"),
        (lambda: glm.GLMNeurons(1, BASIS, namespace=[1]), TypeError, "^namespace must be"),
        (lambda: glm.GLMNeurons(1, BASIS, drive=3), TypeError, "^drive must be"),
    ],
)
def test_bad_neurons(make, error, message):
    # Brian would warn about half-made objects.
    with catch_logs() as warnings:
        with pytest.raises(error, match=message):
            make()
        gc.collect()
    assert not [text for _, _, text in warnings if "never included" in text]


def test_a_name_that_drive_uses_is_missing():
    network = Network(glm.GLMNeurons(1, BASIS, drive="gain * i"))
    with pytest.raises(Exception) as caught:
        network.run(0.1 * ms, namespace={"other": 1})
    message = str(caught.value.__cause__)
    assert message.startswith("drive uses a name") and "namespace=" in message and '"gain"' in message
    network.run(0.1 * ms, namespace={"gain": 1})


def test_unknown_variables_say_what_to_record():
    neurons = glm.GLMNeurons(2, {"coupling": BASIS}, feedback_basis=BASIS)
    for name, instead in (
        ("coupling", "coupling_0, coupling_1"),
        ("feedback_weights", "feedback_weight_0, feedback_weight_1"),
    ):
        with pytest.raises(ValueError, match=f"no variable '{name}': .*{instead}"):
            StateMonitor(neurons, name, record=True)
    with pytest.raises(ValueError, match="have no feedback kernel"):
        StateMonitor(glm.GLMNeurons(2, BASIS), "feedback_weights", record=True)


def test_names_are_listed_and_neurons_describe_themselves():
    neurons = glm.GLMNeurons(2, {"coupling": BASIS}, feedback_basis=BASIS, name="output")
    assert {"bias", "firing_probability", "u", "clamp", "feedback_weights", "clear"} <= set(
        dir(neurons)
    )
    for text in (repr(neurons), neurons._repr_html_()):
        for part in ("GLMNeurons", "output", "2 neurons", "sigmoid", "coupling", "n_basis=2"):
            assert part in text


def test_neurons_of_a_kind_leave_nothing_behind():
    choose("numpy")
    sizes = []
    for _ in range(6):
        for window in (3, LONG):
            neurons = glm.GLMNeurons(2, glm.IndicatorBasis(window), name="some", random_state=1)
            Network(neurons).run(1 * ms)
            del neurons
        gc.collect()
        sizes.append(len(gc.get_objects()))
    assert sizes[-1] - sizes[2] < 30, sizes


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        (dict(kernel="coupling"), ValueError, "kernel must be one of 'stimulus'"),
        (dict(connect="i ** j >"), ValueError, "connect must be a condition"),
        (dict(connect="i <> j"), ValueError, "connect must be a condition"),
        (dict(connect="randn() < 0.5"), ValueError, "connect must be a condition"),
        (dict(connect=([0, 3], [0, 0])), ValueError, "connect: i must be from 0 to 2"),
        (dict(connect=([0, 0], [1, 1])), ValueError, "given twice"),
        (dict(connect=([0.5], [1])), TypeError, "integer arrays"),
        (dict(connect=([0, 1], [1])), ValueError, "the same length"),
    ],
)
def test_bad_synapses(arguments, error, message):
    neurons = glm.GLMNeurons(3, BASIS)
    with pytest.raises(error, match=message):
        glm.GLMSynapses(neurons, neurons, **arguments)


def test_bad_weights():
    neurons = glm.GLMNeurons(3, BASIS)
    synapses = glm.GLMSynapses(neurons, neurons)
    with pytest.raises(ValueError, match=r"w must have the shape \(3, 3, 2\)"):
        synapses.w = np.zeros((3, 3, 4))
    with pytest.raises(ValueError, match="w must be finite"):
        synapses.w = np.nan
    with pytest.raises(TypeError, match="target must be GLMNeurons"):
        glm.GLMSynapses(neurons, NeuronGroup(1, "v : 1"))
    with pytest.raises(AttributeError, match="no feedback kernel"):
        neurons.feedback_weights
    with pytest.raises(AttributeError, match="no feedback kernel"):
        neurons.feedback_kernels()
    with_feedback = glm.GLMNeurons(3, BASIS, feedback_basis=BASIS)
    with pytest.raises(ValueError, match=r"feedback_weights must have the shape \(3, 2\)"):
        with_feedback.feedback_weights = np.zeros((2, 3))
    with pytest.raises(TypeError, match="source must be a group that spikes"):
        glm.GLMSynapses(NeuronGroup(1, "v : 1"), neurons)


def test_the_former_name_of_the_feedback_basis():
    with pytest.warns(DeprecationWarning, match="feedback is now called feedback_basis") as caught:
        neurons = glm.GLMNeurons(2, BASIS, feedback=BASIS)
    assert caught[0].filename == __file__ and neurons.feedback_basis is BASIS
    with pytest.warns(DeprecationWarning, match="feedback is now called feedback_basis"):
        assert neurons.feedback is BASIS
    with pytest.raises(TypeError, match="feedback is the former name of feedback_basis"):
        glm.GLMNeurons(2, BASIS, feedback=BASIS, feedback_basis=BASIS)


@pytest.mark.parametrize(
    "basis",
    [
        glm.RaisedCosineBasis(3, window=10 * ms, last_peak=5 * ms, dt=1 * ms),
        glm.ExponentialBasis(4 * ms, 10 * ms, dt=1 * ms),
        glm.IndicatorBasis(3 * ms, dt=1 * ms),
    ],
    ids=repr,
)
def test_a_basis_of_times_is_for_its_own_steps(basis):
    other = glm.IndicatorBasis(2)
    for kernels, feedback, name in [(basis, other, "kernels"), (other, basis, "feedback_basis")]:
        neurons = glm.GLMNeurons(1, kernels, feedback, dt=2 * ms)
        with pytest.raises(BrianObjectException) as caught:
            Network(neurons).run(2 * ms)
        assert str(caught.value.__cause__).startswith(name)
        assert "was made for steps of 1. ms, but steps are 2. ms here" in str(caught.value.__cause__)
        trains = np.arange(40)[:, np.newaxis] % 3 == 0
        with pytest.raises(ValueError, match=f"^{name}.* was made for steps of 1. ms"):
            glm.fit_population(trains, trains, kernels, feedback, dt=2 * ms)
    Network(glm.GLMNeurons(1, basis, basis, dt=1 * ms)).run(2 * ms)
    # The steps of a classifier have no duration.
    settings = dict(n_steps=4, basis=basis, n_epochs=1, device="runtime", random_state=0, verbose=False)
    glm.GLMClassifier(**settings).fit(np.eye(2), [0, 1])
