"""Tests of pictures of what was recorded: rasters and membrane potentials."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from brian2 import (
    Network,
    NeuronGroup,
    SpikeGeneratorGroup,
    SpikeMonitor,
    StateMonitor,
    ms,
)
from hypothesis import given
from hypothesis import strategies as st

import glmbrian as glm
from glmbrian import plotting
from glmbrian.core.activations import Activation, get_activation
from glmbrian.devices.problem import Trace
from glmbrian.plotting.potentials import potential_of_even_odds


@pytest.fixture(autouse=True)
def quiet_pyplot(restore_brian):
    plt.close("all")
    yield
    plt.close("all")


def line(ax, label):
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found


def trace_of(outputs, decided=None, n_inputs=10):
    outputs = np.array(outputs, dtype=np.uint8)
    inputs = np.zeros((len(outputs), n_inputs), dtype=np.uint8)
    inputs[0, 3] = inputs[-1, 9] = 1
    return Trace(inputs, outputs, np.zeros(outputs.shape), decided)


# Raster of one presentation


def test_raster_shows_what_was_recorded():
    random = np.random.default_rng(0)
    X, y = random.random((8, 16)), np.arange(8) % 2
    classifier = glm.GLMClassifier(
        n_steps=5, n_basis=3, n_epochs=1, bias_init=-2.0, device="runtime", random_state=0
    ).fit(X, y)
    for trace, label, decided in zip(classifier.record(X[:4]), y, classifier.predict(X[:4])):
        ax = plotting.plot_raster(trace, classifier.classes_, label)
        n_steps = len(trace.inputs)
        dots, marks = line(ax, "input spikes"), line(ax, "output spikes")
        for drawn, spikes in ((dots, trace.inputs), (marks, trace.outputs)):
            np.testing.assert_array_equal(drawn.get_xdata(), np.nonzero(spikes)[0] + 1)
        np.testing.assert_array_equal(dots.get_ydata(), np.nonzero(trace.inputs)[1])
        assert marks.get_markersize() > dots.get_markersize()
        if trace.outputs.any():
            assert list(line(ax, "decision").get_xdata()) == [n_steps, n_steps]
            assert ax.get_title() == f"class {label}, decided {decided} at step {n_steps}"
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("time [steps]", "input index")


def test_raster_names_the_rows_of_outputs():
    ax = plotting.plot_raster(trace_of(np.eye(3)), ["a", "b", "c"])
    names = {text.get_text(): y for text, y in zip(ax.get_yticklabels(), ax.get_yticks())}
    marks = line(ax, "output spikes")
    assert list(marks.get_ydata()) == [names["class a"], names["class b"], names["class c"]]
    assert min(marks.get_ydata()) > 10  # above all inputs
    assert names["0"] == 0


def test_raster_names_some_of_many_rows():
    ax = plotting.plot_raster(trace_of(np.eye(100)), range(100))
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert sum(name.startswith("class") for name in names) == 12


def test_raster_marks_the_decision():
    ax = plotting.plot_raster(trace_of([[0, 0], [1, 1]], decided=7), [5, 7])
    assert ax.get_title() == "decided 7 at step 2"
    assert set(line(ax, "decision").get_xdata()) == {2}


@pytest.mark.parametrize(
    "arguments, title",
    [
        ({}, "no spike"),
        ({"label": 5}, "class 5, no spike"),
        ({"label": 5, "decided": 7}, "class 5, no spike, decided 7"),
        ({"label": 5, "decided": -1}, "class 5, no spike, rejected"),
    ],
)
def test_raster_of_silence(arguments, title):
    trace = trace_of([[0, 0], [0, 0]], arguments.get("decided"))
    ax = plotting.plot_raster(trace, [5, 7], arguments.get("label"))
    assert ax.get_title() == title
    assert "decision" not in [line.get_label() for line in ax.lines]
    assert line(ax, "output spikes").get_xdata().size == 0


def test_raster_of_a_class_called_minus_one():
    ax = plotting.plot_raster(trace_of([[0, 0]], decided=-1), [-1, 1], label=-1)
    assert ax.get_title() == "class -1, no spike, decided -1"


def test_raster_without_classes():
    ax = plotting.plot_raster(trace_of(np.eye(2), decided=1))
    assert [text.get_text() for text in ax.get_yticklabels()][-2:] == ["output 0", "output 1"]
    assert ax.get_title() == "decided 1 at step 2"


# Raster of many presentations


def spikes_of(ax, label):
    drawn = line(ax, label)
    return list(zip(drawn.get_xdata().tolist(), drawn.get_ydata().tolist()))


def shaded(ax):
    """Return the ends of the shaded presentations, left to right."""
    extents = [patch.get_extents().transformed(ax.transData.inverted()) for patch in ax.patches]
    return [pytest.approx((extent.x0, extent.x1)) for extent in extents]


TRACES = [
    trace_of([[0, 0], [0, 1]], "b"),
    trace_of([[0, 0], [0, 0], [0, 0]], "a"),  # without a spike
    trace_of([[1, 1]], "b"),  # level with each other
    trace_of([[1, 0], [0, 0], [0, 1]], "a"),  # goes on after the first spike
]


def test_raster_of_traces():
    ax = plotting.plot_raster(TRACES, ["a", "b"], ["b", "b", "a", "a"])
    assert spikes_of(ax, "output spikes") == [(2, 1), (6, 0), (6, 1), (7, 0), (9, 1)]
    assert spikes_of(ax, "first spike") == [(2, 1), (6, 1), (7, 0)]
    assert shaded(ax) == [(2.5, 5.5), (6.5, 9.5)]
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time [steps]", "class")
    (above,) = ax.child_axes
    assert [text.get_text() for text in above.get_xticklabels()] == ["b", "b", "a", "a"]
    np.testing.assert_array_equal(above.get_xticks(), [1.5, 4, 6, 8])


def test_raster_of_traces_marks_all_that_may_have_decided():
    ax = plotting.plot_raster(TRACES)
    assert spikes_of(ax, "first spike") == [(2, 1), (6, 0), (6, 1), (7, 0)]
    assert ax.get_ylabel() == "output index" and not ax.child_axes


def monitored(times, indices, n=3, duration=20):
    group = SpikeGeneratorGroup(n, indices, times * ms, dt=0.5 * ms)
    monitor = SpikeMonitor(group)
    network = Network(group, monitor)
    network.run(duration * ms)
    return monitor, network


def test_raster_of_a_monitor():
    # Presentations of 4 ms: the third, and the last, have no spike.
    monitor, _network = monitored([0, 3.5, 4, 6, 6, 13], [2, 0, 1, 0, 2, 1])
    ax = plotting.plot_raster(monitor, ["a", "b", "c"], n_steps=8)
    assert spikes_of(ax, "output spikes") == [(0, 2), (3.5, 0), (4, 1), (6, 0), (6, 2), (13, 1)]
    assert spikes_of(ax, "first spike") == [(0, 2), (4, 1), (13, 1)]
    assert shaded(ax) == [(3.75, 7.75), (11.75, 15.75)]
    low, high = ax.get_xlim()
    assert low < -0.25 and 19.75 < high < 20.25
    assert ax.get_xlabel() == "time [ms]"


def test_raster_of_a_monitor_without_presentations():
    monitor, _network = monitored([1, 2], [0, 1])
    ax = plotting.plot_raster(monitor)
    assert spikes_of(ax, "output spikes") == [(1, 0), (2, 1)]
    assert [drawn.get_label() for drawn in ax.lines] == ["output spikes"] and not ax.patches


def test_raster_of_a_silent_monitor():
    monitor, _network = monitored([], [])
    ax = plotting.plot_raster(monitor, n_steps=10)
    assert spikes_of(ax, "first spike") == [] and len(ax.patches) == 2
    ax.figure.canvas.draw()


@pytest.mark.parametrize("size", [(6.4, 4.8), (3, 2.5)])
@pytest.mark.parametrize("n, name", [(2, "a long name"), (12, "giraffe"), (30, "0"), (100, "57")])
def test_labels_of_presentations_do_not_overlap(n, name, size):
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    plotting.plot_raster([trace_of([[0, 1]] * (1 + k % 3)) for k in range(n)], label=[name] * n, ax=ax)
    figure.canvas.draw()
    (above,) = ax.child_axes
    extents = [text.get_window_extent() for text in above.get_xticklabels()]
    assert len(extents) > 1
    assert not any(one.overlaps(other) for one, other in zip(extents, extents[1:]))


def test_spikes_are_not_under_the_legend():
    figure, ax = plt.subplots(figsize=(4, 3), layout="constrained")
    plotting.plot_raster(TRACES, ax=ax)
    figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y0 > ax.transData.transform((0, 1))[1]


# Membrane potential


@pytest.fixture
def recorded():
    """Return three neurons with monitors, after 30 steps of 0.5 ms."""
    feedback = glm.RaisedCosineBasis(1, 4)
    neurons = glm.GLMNeurons(3, glm.IndicatorBasis(1), feedback, "cloglog", 0, dt=0.5 * ms)
    neurons.bias = [-8.0, -1.0, 0.0]
    neurons.feedback_weights = -2
    potential, spikes = StateMonitor(neurons, "u", [1, 2], when="end"), SpikeMonitor(neurons)
    network = Network(neurons, potential, spikes)
    network.run(15 * ms)
    return neurons, potential, spikes, network


def test_potential_of_monitors(recorded):
    _, potential, spikes, _ = recorded
    ax = plotting.plot_membrane_potential(potential, spikes, 2)
    curve, threshold, marks = line(ax, "_potential"), line(ax, "P(spike) = 1/2"), line(ax, "spikes")
    np.testing.assert_allclose(curve.get_xdata(), np.arange(30) * 0.5)
    np.testing.assert_array_equal(curve.get_ydata(), potential[2].u)
    assert list(threshold.get_ydata()) == pytest.approx([np.log(np.log(2))] * 2)
    assert len(marks.get_xdata()) == spikes.count[2] > 0
    np.testing.assert_allclose(marks.get_xdata(), spikes.spike_trains()[2] / ms)
    assert min(marks.get_ydata()) > max(curve.get_ydata())
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time [ms]", "membrane potential $u$")
    assert ax.get_title() == "neuron 2"


def test_potential_without_spikes(recorded):
    ax = plotting.plot_membrane_potential(recorded[1], neuron=1, activation="sigmoid")
    assert len(ax.lines) == 2
    assert list(line(ax, "P(spike) = 1/2").get_ydata()) == pytest.approx([0, 0])


def test_potential_of_a_subgroup(recorded):
    neurons = glm.GLMNeurons(3, glm.IndicatorBasis(1), random_state=0, dt=0.5 * ms)
    part = neurons[1:]
    potential, spikes = StateMonitor(part, "u", True, when="end"), SpikeMonitor(neurons[1:])
    network = Network(neurons, part, potential, spikes)
    network.run(10 * ms)
    ax = plotting.plot_membrane_potential(potential, spikes, 1)
    np.testing.assert_array_equal(line(ax, "_potential").get_ydata(), potential.u[1])
    assert len(line(ax, "spikes").get_xdata()) == spikes.count[1]
    with pytest.raises(ValueError, match="^spike_monitor must record the neurons whose u"):
        plotting.plot_membrane_potential(potential, recorded[2], 1)


def test_potential_of_a_trace():
    trace = trace_of([[0, 0], [1, 1], [0, 1]])
    trace.potentials[:] = [[0, 1], [2, 3], [4, 5]]
    ax = plotting.plot_membrane_potential(trace, neuron=1, activation="cloglog")
    curve = line(ax, "_potential")
    assert (curve.get_xdata().tolist(), curve.get_ydata().tolist()) == ([1, 2, 3], [1, 3, 5])
    assert line(ax, "spikes").get_xdata().tolist() == [2, 3]
    assert list(line(ax, "P(spike) = 1/2").get_ydata()) == pytest.approx([np.log(np.log(2))] * 2)
    assert (ax.get_xlabel(), ax.get_title()) == ("time [steps]", "output 1")


def shifted(shift, top=1.0):
    """Return an activation that reaches half of `top` at u = shift."""
    parts = [lambda u: u] * 4
    sigmoid = get_activation("sigmoid")
    return Activation("own", "u", lambda u: top * sigmoid.probability(u - shift), *parts)


@given(st.floats(-600, 600))
def test_threshold_is_where_the_probability_is_half(shift):
    assert potential_of_even_odds(shifted(shift)) == pytest.approx(shift, abs=1e-9)


def test_threshold_that_is_never_reached():
    assert potential_of_even_odds(shifted(0.0, top=0.4)) is None
    ax = plotting.plot_membrane_potential(TRACES[0], activation=shifted(0.0, top=0.4))
    assert [drawn.get_label() for drawn in ax.lines] == ["_potential", "spikes"]


# Errors


def test_trace_names_the_rejected_only_with_classes():
    trace = trace_of([[0, 0]], decided=-1)
    assert plotting.plot_raster(trace).get_title() == "no spike, decided -1"


def test_raster_arguments_are_checked():
    monitor, _network = monitored([1], [0])
    for wrong in (np.zeros(2), [], [TRACES[0], "x"], "x"):
        with pytest.raises(TypeError, match="^spikes must be a Trace that GLMClassifier.record ret"):
            plotting.plot_raster(wrong, [5, 7])
    for classes in ([5, 7, 9], 5):
        for spikes in (trace_of([[0, 1]]), TRACES):
            with pytest.raises(
                ValueError, match=r"^classes must have the shape \(2,\), one per output"
            ):
                plotting.plot_raster(spikes, classes)
    for spikes in (TRACES, TRACES[0]):
        with pytest.raises(TypeError, match="^n_steps is for a SpikeMonitor or trains"):
            plotting.plot_raster(spikes, n_steps=3)
    with pytest.raises(ValueError, match="^n_steps must be an integer of at least 1, got 0"):
        plotting.plot_raster(monitor, n_steps=0)
    for label in ("a", ["a"] * 3):
        with pytest.raises(ValueError, match=r"^label must have the shape \(4,\), one per presentat"):
            plotting.plot_raster(TRACES, label=label)
    with pytest.raises(ValueError, match=r"^spikes: all traces must .* outputs, got \[2, 3\]"):
        plotting.plot_raster([TRACES[0], trace_of([[0, 0, 1]])])
    counts = SpikeMonitor(monitor.source, record=False)
    with pytest.raises(ValueError, match="^spikes must be a SpikeMonitor with record=True"):
        plotting.plot_raster(counts)
    assert plt.get_fignums() == []


def test_potential_arguments_are_checked(recorded):
    neurons, potential, spikes, _ = recorded
    draw = plotting.plot_membrane_potential
    other = NeuronGroup(2, "u : 1", threshold="u > 1")
    for wrong in (spikes, "x", StateMonitor(neurons, "bias", True), StateMonitor(other, "u", True)):
        with pytest.raises(TypeError, match="^recording must be a StateMonitor that recorded 'u' of"):
            draw(wrong)
    with pytest.raises(ValueError, match=r"^neuron must be one that was recorded, \[1, 2\], got 0"):
        draw(potential)
    with pytest.raises(ValueError, match="^neuron must be an integer from 0 to 2, got 3"):
        draw(potential, neuron=3)
    with pytest.raises(ValueError, match="^neuron must be an integer from 0 to 1, got 2"):
        draw(TRACES[0], neuron=2)
    with pytest.raises(TypeError, match="^spike_monitor must be a SpikeMonitor, got"):
        draw(potential, potential, 1)
    with pytest.raises(ValueError, match="^spike_monitor must record the neurons whose u was"):
        draw(potential, SpikeMonitor(other), 1)
    with pytest.raises(TypeError, match="^spike_monitor must be left out for a Trace"):
        draw(TRACES[0], spikes)
    with pytest.raises(ValueError, match="^activation must be one of 'sigmoid'"):
        draw(potential, neuron=1, activation="tanh")
    assert plt.get_fignums() == []
