"""Coupled neurons with long kernels: spikes add rows of weights, which a ring filters."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from brian2 import (
    Network,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    defaultclock,
    device,
    ms,
    prefs,
    set_device,
)

import glmbrian as glm
from glmbrian.brian.internals import CPP_PROGRAM_CAN_STOP
from glmbrian.brian.rows import find_rows
from glmbrian.core.randomness import UniformsOf, uniforms

N_STEPS, N = 150, 19
BASIS = glm.RaisedCosineBasis(4, 60, a=2.2, c=1.0, dt=0.2)
SHORTER = glm.RaisedCosineBasis(3, 50, a=3.0, c=1.0, dt=0.2)
TARGETS = [
    "numpy",
    # Brian compiles for a minute; `test_long_windows_in_cython` is part of every run.
    pytest.param("cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
    pytest.param("cpp_standalone", marks=pytest.mark.compiled),
]


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms


def choose(target):
    if target == "cpp_standalone":
        set_device("cpp_standalone", build_on_run=False)
    else:
        prefs.codegen.target = target


def finish(target):
    if target == "cpp_standalone":
        device.build(directory=None, with_output=False)


class Coupled:
    """Neurons with inputs, and four kinds of synapses: whole rows, rows with gaps, few, out of order."""

    def __init__(self):
        random = np.random.default_rng(0)
        steps, inputs = np.nonzero(random.random((N_STEPS, 5)) < 0.2)
        self.inputs = SpikeGeneratorGroup(5, inputs, steps * ms)
        self.neurons = glm.GLMNeurons(
            N, {"stimulus": BASIS, "coupling": SHORTER}, BASIS, random_state=1
        )
        self.neurons.bias = -1.5
        self.neurons.feedback_weights = random.normal(-1, 1, (N, 4))
        self.whole = glm.GLMSynapses(self.inputs, self.neurons)
        self.gaps = glm.GLMSynapses(self.neurons, self.neurons, "coupling", "i != j")
        few = np.nonzero(random.random((8, 7)) < 0.2)
        self.few = glm.GLMSynapses(self.neurons[3:11], self.neurons[12:], "coupling", few)
        self.mixed = glm.GLMSynapses(self.neurons, self.neurons, "coupling", ([9, 2], [4, 4]))
        self.mixed.connect(i=[2, 0, 18], j=[5, 18, 0])
        self.synapses = [self.whole, self.gaps, self.few, self.mixed]
        for synapses in self.synapses:
            synapses.w = random.normal(0, 0.4, synapses.w.shape)
        self.given = SpikeMonitor(self.inputs)
        self.spikes, self.u = (
            SpikeMonitor(self.neurons),
            StateMonitor(self.neurons, "u", record=True, when="end"),
        )
        self.network = Network(
            self.inputs, self.neurons, *self.synapses, self.given, self.spikes, self.u
        )

    def kernels(self):
        coupling = np.zeros((N, N, SHORTER.n_basis))
        coupling += self.gaps.w
        coupling[3:11, 12:] += self.few.w
        coupling += self.mixed.w
        return self.whole.kernels(), SHORTER.kernels(coupling), self.neurons.feedback_kernels()

    def trains(self, monitor, n):
        trains = np.zeros((N_STEPS, n))
        trains[np.round(monitor.t / ms).astype(int), monitor.i] = 1
        return trains

    def expected(self, kernels):
        """The potentials of the equation, given the spikes."""
        stimulus, coupling, feedback = kernels
        x, y = self.trains(self.given, 5), self.trains(self.spikes, N)
        u = np.full((N_STEPS, N), -1.5)
        for kernel, trains in ((stimulus, x), (coupling, y)):
            for lag in range(kernel.shape[2]):
                u[lag + 1 :] += trains[: -lag - 1] @ kernel[:, :, lag]
        for lag in range(feedback.shape[1]):
            u[lag + 1 :] += y[: -lag - 1] * feedback[:, lag]
        return u


@pytest.mark.parametrize("target", TARGETS)
def test_potentials_are_those_of_the_equation(target, capfd):
    choose(target)
    coupled = Coupled()
    kernels = coupled.kernels()
    coupled.network.run(100 * ms)
    coupled.network.run((N_STEPS - 100) * ms)
    finish(target)
    assert 100 < coupled.spikes.num_spikes < 0.5 * N * N_STEPS
    np.testing.assert_allclose(coupled.u.u.T, coupled.expected(kernels), rtol=0, atol=1e-12)
    if target == "cpp_standalone" and CPP_PROGRAM_CAN_STOP:  # from the version on that has run_args
        # How the program calls the delays depends on Brian's version; 2.11 does not let them be set.
        for name in (coupled.whole.name, coupled.whole.pre.name):
            with pytest.raises(RuntimeError):
                device.run(with_output=False, run_args=[f"{name}.delay=0.002"])
        refusals = capfd.readouterr().err
        assert "generated without delays" in refusals or "unknown variable" in refusals


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_what_is_pending_moves_between_targets():
    coupled, other = Coupled(), Coupled()
    other.network.run(N_STEPS * ms)
    for target in ("numpy", "cython", "numpy"):
        prefs.codegen.target = target
        coupled.network.run(N_STEPS // 3 * ms)
        states = coupled.neurons.get_states(units=False, read_only_variables=False)
        coupled.neurons.clear()
        coupled.neurons.set_states(states, units=False)
    np.testing.assert_array_equal(coupled.spikes.i, other.spikes.i)
    np.testing.assert_allclose(coupled.u.u, other.u.u, rtol=0, atol=1e-12)


def test_delays_may_come_and_go_between_runs():
    spikes = SpikeGeneratorGroup(1, [0, 0, 0], [0, 10, 20] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(50))
    synapses = glm.GLMSynapses(spikes, neurons)
    synapses.w = [1.0] + [0.0] * 49
    seen = StateMonitor(neurons, "u", record=True, when="end")
    network = Network(spikes, neurons, synapses, seen)
    for delay in (0, 4, 0):
        synapses.delay = delay * ms
        network.run(10 * ms)
    assert np.flatnonzero(seen.u[0]).tolist() == [1, 15, 21]


def test_weights_may_change_while_a_network_runs():
    """Statements for spikes of the target change what the next spike of the source adds."""
    spikes = SpikeGeneratorGroup(1, [0, 0], [0, 2] * ms)
    neurons = glm.GLMNeurons(1, glm.IndicatorBasis(45))
    synapses = glm.GLMSynapses(spikes, neurons, on_post="w_0 += 1")
    neurons.clamp = 1
    seen = StateMonitor(neurons, "u", record=True, when="end")
    Network(spikes, neurons, synapses, seen).run(5 * ms)
    # In a step, the spike of the source comes first.
    assert seen.u[0].tolist() == [0, 0, 0, 2, 0]


@pytest.mark.parametrize("density", [0.02, 0.3, 0.9, 1.0])
def test_rows_hold_each_synapse_once(density):
    random = np.random.default_rng(1)
    pre, post = np.nonzero(random.random((12, 30)) < density)
    order = random.permutation(len(pre)) if density == 0.3 else np.arange(len(pre))
    pre, post = pre[order], post[order]
    rows = find_rows(pre, post, 12)
    assert rows.n_synapses == len(pre)
    assert rows.are_runs == (density >= 0.9)
    found = []
    for source in range(12):
        for synapse, target, *length in rows.items[
            rows.first[source] : rows.first[source + 1]
        ].tolist():
            run = range(length[0] if length else 1)
            found += [(synapse + step, source, target + step) for step in run]
    assert sorted(found) == list(zip(range(len(pre)), pre.tolist(), post.tolist()))


def test_prepared_draws_are_the_same():
    index = np.arange(5)[::-1].copy()
    draws = UniformsOf(index)
    for key in (7, 2**63 + 11):
        for presentation in (0, 3, -2):
            for step in (0, 1, 2**31 + 5, 2**32 + 1, 3 * 2**40):
                np.testing.assert_array_equal(
                    draws(key, presentation, step), uniforms(key, presentation, step, index)
                )


@pytest.mark.parametrize("n", [5, 3000, 20_000])
def test_draws_made_ahead_are_the_same(n):
    """Across the steps where a counter overflows, and whatever steps are left out or repeated."""
    index = np.arange(n)
    draws, start = UniformsOf(index), 2**32 - 90
    steps = [*range(start, start + 180), start + 300, start + 20, start + 21, start + 21, start + 23]
    for step in steps:
        np.testing.assert_array_equal(draws(7, 2, step), uniforms(7, 2, step, index))
    np.testing.assert_array_equal(draws(7, 3, steps[-1] + 1), uniforms(7, 3, steps[-1] + 1, index))
    np.testing.assert_array_equal(draws(8, 3, steps[-1] + 2), uniforms(8, 3, steps[-1] + 2, index))


def cpp_files(n_runs, folder, gain=lambda run: 1):
    """Return the names of the C++ files of a program with `n_runs` runs, numbers of names left out."""
    set_device("cpp_standalone", build_on_run=False)
    device.reinit()
    device.activate(build_on_run=False)
    defaultclock.dt = 1 * ms
    encoder = glm.RateEncoder(np.full(4, 0.5), random_state=1)
    neurons = glm.GLMNeurons(
        5, {"stimulus": SHORTER, "coupling": BASIS}, BASIS, random_state=2, drive="gain * i"
    )
    network = Network(encoder, neurons, glm.GLMSynapses(encoder, neurons, delay=1 * ms))
    network.add(glm.GLMSynapses(neurons, neurons, "coupling"))
    for run in range(n_runs):
        neurons.bias = -run
        network.run(2 * ms, namespace={"gain": gain(run)})
    device.build(directory=str(folder), compile=False, run=False, with_output=False)
    return sorted(path.name for path in Path(folder, "code_objects").glob("*.cpp"))


def test_runs_share_their_code(tmp_path):
    few, many = cpp_files(3, tmp_path / "few"), cpp_files(100, tmp_path / "many")
    assert len(few) == len(many) < 30
    # Each run calls it.
    main = (tmp_path / "many" / "main.cpp").read_text()
    assert len(re.findall(r"_run_glmneurons\S*_stateupdater_codeobject\)", main)) == 100


def test_runs_with_other_constants_do_not_share_code(tmp_path):
    equal = cpp_files(4, tmp_path / "equal")
    changing = cpp_files(4, tmp_path / "changing", gain=lambda run: run % 2)
    # The state updater is there twice: for both values.
    assert len(changing) == len(equal) + 1


def test_a_warning_of_a_compiler_for_each_of_very_many_files():
    set_device("cpp_standalone", build_on_run=False)
    prefs.devices.cpp_standalone.extra_make_args_unix = ["-j"]
    neurons = glm.GLMNeurons(2, BASIS)
    network = Network(neurons)
    for number in range(110):
        neurons.run_regularly(f"bias = bias + {number}", name=f"own_{number}")
    with pytest.warns(UserWarning, match="extra_make_args_unix") as caught:
        for _ in range(3):
            network.run(1 * ms)
    assert sum("extra_make_args_unix" in str(warning.message) for warning in caught) == 1
    prefs.devices.cpp_standalone.extra_make_args_unix = ["-j2"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        network.run(1 * ms)
