"""Neurons, synapses and training are the same whatever precision the user prefers."""

import re
from pathlib import Path

import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    defaultclock,
    device,
    get_device,
    ms,
    prefs,
    set_device,
)

import glmbrian as glm
from glmbrian.brian.filters import LONGEST_SHIFT_REGISTER
from glmbrian.brian.internals import CPP_PROGRAM_CAN_STOP

LONG = LONGEST_SHIFT_REGISTER + 10


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms


def everything():
    """A network with one object of each kind, for short and long windows."""
    images = np.random.default_rng(0).integers(0, 256, (4, 5)).astype(np.uint8)
    encoder = glm.RateEncoder(images, n_steps=6, random_state=1, name="encoder")
    parts = [encoder]
    for window, activation in ((6, "sigmoid"), (LONG, "probit")):
        basis = glm.RaisedCosineBasis(3, window, a=2.2, dt=0.3)
        neurons = glm.GLMNeurons(
            2,
            basis,
            feedback_basis=basis,
            activation=activation,
            drive="0.1 * i",
            random_state=window,
            name=f"neurons_{window}",
        )
        neurons.bias = -0.7
        neurons.feedback_weights = [-0.3, -0.2, 0.1]
        synapses = glm.GLMSynapses(encoder, neurons, connect="i != j", name=f"synapses_{window}")
        synapses.w = "0.1 * (i - j)"
        trainer = glm.Trainer(
            neurons, synapses, 6, [0, 1, 0], rule="rate", batch_size=2, name=f"trainer_{window}"
        )
        parts += [neurons, synapses, trainer]
    watched = glm.GLMNeurons(1, glm.IndicatorBasis(1), name="watched")
    watched.clamp = -1
    return [*parts, watched, *([glm.FirstSpikeStop(watched, name="stop")] if can_stop() else [])]


def can_stop():
    return CPP_PROGRAM_CAN_STOP or type(get_device()).__name__ == "RuntimeDevice"


def learned(parts):
    return [
        part.log_likelihoods if isinstance(part, glm.Trainer) else part.w
        for part in parts
        if isinstance(part, (glm.Trainer, glm.GLMSynapses))
    ] + [part.u[:] for part in parts if isinstance(part, glm.GLMNeurons)]


def test_single_precision_changes_nothing():
    results = []
    for precision in (np.float64, np.float32):
        prefs.core.default_float_dtype = precision
        parts = everything()
        Network(*parts).run(20 * ms)
        results.append(learned(parts))
        # Native code expects arrays of double, including the ring buffer.
        for part in parts[:-1]:
            single = [name for name, one in part.variables.items() if np.dtype(one.dtype) == np.float32]
            assert set(single) <= {"delay", "_pre_delay"}  # which are Brian's own
    assert all(values.any() for values in results[0][:-1])
    for one, other in zip(*results):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def test_other_groups_keep_the_precision_that_is_preferred():
    prefs.core.default_float_dtype = np.float32
    users = NeuronGroup(1, "dv/dt = (0.1 - v)/(10*ms) : 1", method="euler")
    network = Network(users, *everything())
    network.run(2 * ms)
    assert users.v[:].dtype == np.float32 and prefs.core.default_float_dtype == np.float32


def unnumbered(text):
    return re.sub(r"(_codeobject|_timedarray)_\d+", r"\1", text)


def test_generated_programs_are_the_same(tmp_path):
    texts = []
    for precision in (np.float64, np.float32):
        folder = tmp_path / precision.__name__
        set_device("cpp_standalone", build_on_run=False)
        device.reinit()
        device.activate(build_on_run=False)
        prefs.core.default_float_dtype = precision
        parts = everything()
        Network(*parts).run(20 * ms, namespace={})
        device.build(directory=str(folder), compile=False, run=False, with_output=False)
        files = folder.glob("code_objects/*.cpp")
        # Names of code objects are numbered if others still exist.
        texts.append(
            {unnumbered(path.name): unnumbered(path.read_text()).splitlines() for path in files}
        )
    double, single = texts
    assert len(double) > 20 and double.keys() == single.keys()
    for name, lines in double.items():
        # Delays are Brian's own, and so are clocks.
        different = [
            pair for pair in zip(lines, single[name]) if pair[0] != pair[1] and "delay" not in pair[0]
        ]
        assert len(lines) == len(single[name]) and different == [], name
    # They hold the headers that they need, and so can be moved.
    package = Path(glm.__file__).resolve().parent
    for path in folder.rglob("*"):
        assert not path.is_file() or bytes(package) not in path.read_bytes(), path


@pytest.mark.compiled
@pytest.mark.long
def test_long_windows_in_cython():
    """Neurons that should never spike do not."""
    prefs.codegen.target = "cython"
    prefs.core.default_float_dtype = np.float32
    neurons = glm.GLMNeurons(2, glm.RaisedCosineBasis(4, 50, a=2.2, dt=0.14), random_state=1)
    neurons.bias = -50.1
    monitor = SpikeMonitor(neurons)
    Network(neurons, monitor).run(20 * ms)
    assert list(neurons.u) == [-50.1, -50.1] and monitor.num_spikes == 0
