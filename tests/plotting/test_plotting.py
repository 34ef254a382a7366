"""Tests of glmbrian.plotting: what is in each picture, and that it can be read.

Those of what was recorded, and of decisions, are in files of their own.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from brian2 import ms, mV, second
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError

import glmbrian as glm
from glmbrian import plotting
from glmbrian.classifier.fitted_state import HiddenLayer
from glmbrian.devices.problem import Trace
from glmbrian.plotting.style import DIVERGING


@pytest.fixture(autouse=True)
def quiet_pyplot(restore_brian):
    plt.close("all")
    yield
    plt.close("all")


def make(n_inputs=16, names=(5, 7), n_epochs=3, **parameters):
    """Return a fitted classifier and its data: each class has inputs of its own."""
    random = np.random.default_rng(0)
    y = np.tile(names, 6)
    X = 0.3 * random.random((len(y), n_inputs))
    for index, name in enumerate(names):
        X[y == name, index :: len(names)] += 0.6
    parameters = {
        "n_steps": 5,
        "n_basis": 3,
        "n_epochs": n_epochs,
        "bias_init": -2.0,
        "learning_rate": 0.1,
        "device": "runtime",
        "random_state": 0,
        "verbose": False,
        **parameters,
    }
    return glm.GLMClassifier(**parameters).fit(X, y), X, y


@pytest.fixture(scope="module")
def fitted():
    """Two classes, and 16 inputs: an image of 4 x 4."""
    return make()


@pytest.fixture
def classifier(fitted):
    return fitted[0]


def line(ax, label):
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found


# Where it is drawn

TRACE = Trace(np.ones((3, 4), int), np.eye(3, 2, dtype=int), np.ones((3, 2)), 5)
DECISIONS = SimpleNamespace(label=[5, 7], decided=[5, 5], step=[2, 3], silent=[False, True])

DRAWINGS = {
    "learning_curve": lambda classifier, ax: plotting.plot_learning_curve(classifier, ax=ax),
    "learning_curves": lambda classifier, ax: plotting.plot_learning_curve([classifier] * 2, ax),
    "raster": lambda _, ax: plotting.plot_raster(TRACE, [5, 7], ax=ax),
    "rasters": lambda _, ax: plotting.plot_raster([TRACE, TRACE], [5, 7], [5, 7], ax),
    "potential": lambda _, ax: plotting.plot_membrane_potential(TRACE, ax=ax),
    "decision_times": lambda _, ax: plotting.plot_decision_times(DECISIONS, ax),
    "deadlines": lambda _, ax: plotting.plot_accuracy_by_deadline(DECISIONS, ax, label="a"),
    "weight_map": lambda classifier, ax: plotting.plot_weight_map(classifier, 7, ax=ax),
    "weight_matrix": lambda classifier, ax: plotting.plot_weight_map(classifier, shape=(16,), ax=ax),
    "feedback": lambda classifier, ax: plotting.plot_feedback_kernels(classifier, ax),
    "image": lambda classifier, ax: plotting.plot_kernels(classifier, ax=ax),
    "lines": lambda classifier, ax: plotting.plot_kernels(classifier, shape=(16,), ax=ax),
    "basis": lambda classifier, ax: plotting.plot_basis(classifier.basis_, ax=ax),
}
every_drawing = pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)


@every_drawing
def test_draws_into_given_axes(draw, classifier):
    figure, (ax, other) = plt.subplots(1, 2)
    plt.sca(other)
    assert draw(classifier, ax) is ax
    assert plt.get_fignums() == [figure.number]
    assert plt.gca() is other and not other.has_data()


@every_drawing
def test_makes_a_figure(draw, classifier):
    ax = draw(classifier, None)
    assert plt.get_fignums() == [ax.figure.number]
    assert ax.has_data()
    ax.figure.canvas.draw()


@pytest.mark.parametrize("size", [(6.4, 4.8), (3, 2.5)])
@every_drawing
def test_nothing_is_cut_off(draw, classifier, size):
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    draw(classifier, ax)
    figure.canvas.draw()
    whole = figure.get_window_extent()
    for part in figure.axes:
        extent = part.get_tightbbox()
        assert whole.x0 <= extent.x0 and extent.x1 <= whole.x1
        assert whole.y0 <= extent.y0 and extent.y1 <= whole.y1


@every_drawing
def test_axes_are_checked(draw, classifier):
    with pytest.raises(TypeError, match="^ax must be matplotlib Axes"):
        draw(classifier, plt.figure())


# Learning curve


def test_learning_curve(classifier):
    ax = plotting.plot_learning_curve(classifier)
    (curve,) = ax.lines
    np.testing.assert_array_equal(curve.get_xdata(), [1, 2, 3])
    np.testing.assert_array_equal(curve.get_ydata(), classifier.history_)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("epoch", "mean log-likelihood [nats]")


def test_learning_curve_of_one_epoch():
    ax = plotting.plot_learning_curve(make(n_epochs=1)[0])
    ax.figure.canvas.draw()
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == [1]


def test_learning_curve_of_a_history():
    (curve,) = plotting.plot_learning_curve([-2.0, -1.0]).lines
    np.testing.assert_array_equal(curve.get_ydata(), [-2, -1])


def test_learning_curve_of_several_trainings(classifier):
    history = classifier.history_
    ax = plotting.plot_learning_curve([history - 1, classifier, history + 4])
    (curve,), (band,) = ax.lines, ax.collections
    np.testing.assert_allclose(curve.get_ydata(), history + 1)
    middle = [y for x, y in band.get_paths()[0].vertices if x == 2]
    deviation = np.std([-1, 0, 4], ddof=1)
    assert min(middle) == pytest.approx(history[1] + 1 - deviation)
    assert max(middle) == pytest.approx(history[1] + 1 + deviation)


def test_learning_curve_of_one_seed_has_no_band(classifier):
    assert not plotting.plot_learning_curve([classifier]).collections


def test_learning_curves_over_each_other():
    ax = plotting.plot_learning_curve(np.zeros((2, 9)), label="long")
    plotting.plot_learning_curve([-1.0, -2.0], ax, label="short")
    assert len({(curve.get_linestyle(), curve.get_marker()) for curve in ax.lines}) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["long", "short"]
    assert ax.get_xlim()[1] > 9


# Kernels


def test_kernel_image_is_the_sum_over_lags(classifier):
    ax = plotting.plot_kernels(classifier, 7)
    (image,) = ax.images
    kernels = classifier.basis_.kernels(classifier.weights_)
    np.testing.assert_allclose(image.get_array(), kernels[:, 1].sum(axis=1).reshape(4, 4))
    limit = np.abs(kernels[:, 1].sum(axis=1)).max()
    assert image.get_clim() == pytest.approx((-limit, limit))
    assert ax.get_title() == "class 7"
    (colorbar,) = [other for other in ax.figure.axes if other is not ax]
    assert colorbar.get_ylabel() == "kernel, summed over lags"


def test_kernel_image_at_a_lag(classifier):
    ax = plotting.plot_kernels(classifier, shape=(2, 8), lag=2)
    kernels = classifier.basis_.kernels(classifier.weights_)
    np.testing.assert_allclose(ax.images[0].get_array(), kernels[:, 0, 1].reshape(2, 8))
    assert ax.get_title() == "class 5"  # the first


def test_kernel_image_of_zeros(classifier):
    silent, _, _ = make(weight_scale=0.0)
    silent.weights_ = np.zeros_like(silent.weights_)
    (image,) = plotting.plot_kernels(silent).images
    assert image.get_clim() == (-1, 1)


def test_kernel_colours_get_lighter_all_the_way():
    colours = np.array([to_rgb(DIVERGING(level)) for level in np.linspace(0, 1, 65)])
    luminance = colours @ [0.299, 0.587, 0.114]
    assert np.all(np.diff(luminance) > 0)
    # grey at zero, blue below and yellow above
    assert np.ptp(colours[32]) < 0.05
    assert np.all(colours[:32, 2] > colours[:32, 0]) and np.all(colours[33:, 2] < colours[33:, 0])


@pytest.mark.parametrize("n_inputs, shape", [(10, None), (16, (16,))])
def test_kernel_lines_of_the_strongest_inputs(n_inputs, shape):
    classifier, _, _ = make(n_inputs)
    ax = plotting.plot_kernels(classifier, 7, shape)
    kernels = classifier.basis_.kernels(classifier.weights_[:, 1])
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert len(lines) == 6
    for drawn in lines:
        np.testing.assert_array_equal(drawn.get_xdata(), [1, 2, 3, 4, 5])
        np.testing.assert_allclose(drawn.get_ydata(), kernels[int(drawn.get_label())])
    strength = (kernels**2).sum(axis=1)
    drawn = [strength[int(drawn.get_label())] for drawn in lines]
    np.testing.assert_allclose(drawn, np.sort(strength)[::-1][:6])
    assert not ax.images
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lag [steps]", "kernel")


@pytest.fixture
def neurons():
    """Four neurons, with kernels of 3 lags and feedback of 2, on a clock of 0.5 ms."""
    kernels = {"coupling": glm.RaisedCosineBasis(2, 3)}
    neurons = glm.GLMNeurons(4, kernels, feedback_basis=glm.IndicatorBasis(2), dt=0.5 * ms)
    neurons.feedback_weights = np.arange(8).reshape(4, 2)
    return neurons


@pytest.fixture
def synapses(neurons):
    synapses = glm.GLMSynapses(neurons, neurons[1:], "coupling")
    synapses.w = np.random.default_rng(0).normal(size=(4, 3, 2))
    return synapses


def test_kernels_of_synapses(synapses):
    ax = plotting.plot_kernels(synapses, 2)
    for source in range(4):
        np.testing.assert_allclose(line(ax, str(source)).get_xdata(), [0.5, 1.0, 1.5])
        np.testing.assert_allclose(line(ax, str(source)).get_ydata(), synapses.kernels()[source, 2])
    assert ax.get_title() == "target neuron 2"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lag [ms]", "kernel")
    assert ax.get_legend().get_title().get_text() == "source neuron"


def test_lags_follow_the_clock_of_the_target(neurons):
    encoder = glm.RateEncoder(np.zeros(2), dt=2 * ms)
    synapses = glm.GLMSynapses(encoder, neurons, "coupling")
    np.testing.assert_allclose(plotting.plot_kernels(synapses).lines[-1].get_xdata(), [0.5, 1, 1.5])


def test_kernels_of_an_array_and_of_what_has_some(synapses):
    kernels = synapses.kernels()
    for model in (kernels, SimpleNamespace(kernels=lambda: kernels)):
        ax = plotting.plot_kernels(model, 1)
        assert ax.get_xlabel() == "lag [steps]"
        np.testing.assert_allclose(line(ax, "3").get_ydata(), kernels[3, 1])
        ax = plotting.plot_kernels(model, 1, dt=0.001 * second)
        assert ax.get_xlabel() == "lag [ms]"
        np.testing.assert_allclose(line(ax, "3").get_xdata(), [1, 2, 3])


def test_kernel_image_is_the_weight_map(classifier):
    for arguments in ({}, {"output": 7, "shape": (2, 8), "lag": 3}):
        image = plotting.plot_kernels(classifier, **arguments).images[0]
        other = plotting.plot_weight_map(classifier, **arguments).images[0]
        np.testing.assert_array_equal(image.get_array(), other.get_array())


def test_feedback_kernels(neurons):
    ax = plotting.plot_feedback_kernels(neurons)
    for index in range(4):
        np.testing.assert_allclose(line(ax, str(index)).get_xdata(), [0.5, 1.0])
        np.testing.assert_allclose(line(ax, str(index)).get_ydata(), [2 * index, 2 * index + 1])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lag [ms]", "feedback kernel")


def test_feedback_kernels_of_a_classifier():
    classifier, _, _ = make(decoding="rate", n_epochs=1)
    ax = plotting.plot_feedback_kernels(classifier)
    kernels = classifier.basis_.kernels(classifier.feedback_)
    assert kernels.any()
    for name, kernel in zip((5, 7), kernels):
        np.testing.assert_allclose(line(ax, str(name)).get_ydata(), kernel)
    assert ax.get_xlabel() == "lag [steps]"


def test_feedback_kernels_of_many_neurons():
    ax = plotting.plot_feedback_kernels(np.arange(100.0)[:, np.newaxis] * np.ones(3), dt=1 * ms)
    names = [drawn.get_label() for drawn in ax.lines if not drawn.get_label().startswith("_")]
    assert names == ["99", "98", "97", "96", "95", "94"]


# Weight maps


def test_weight_map_of_synapses(synapses):
    ax = plotting.plot_weight_map(synapses)
    np.testing.assert_allclose(ax.images[0].get_array(), synapses.kernels().sum(axis=2))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("target neuron", "source neuron")


def test_weight_map_of_a_target_as_an_image(synapses):
    ax = plotting.plot_weight_map(synapses, 2, shape=(2, 2), lag=3)
    image = synapses.kernels()[:, 2, 2].reshape(2, 2)
    np.testing.assert_allclose(ax.images[0].get_array(), image)
    assert ax.get_title() == "target neuron 2"
    (colorbar,) = [other for other in ax.figure.axes if other is not ax]
    assert colorbar.get_ylabel() == "kernel at lag 1.5 ms"


def test_weight_map_of_a_classifier_as_a_matrix(classifier):
    ax = plotting.plot_weight_map(classifier, shape=(16,))
    kernels = classifier.basis_.kernels(classifier.weights_)
    np.testing.assert_allclose(ax.images[0].get_array(), kernels.sum(axis=2))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["5", "7"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("class", "input")


def test_weight_maps_of_one_limit(classifier):
    images = [plotting.plot_weight_map(classifier, name, limit=3).images[0] for name in (5, 7)]
    assert [image.get_clim() for image in images] == [(-3, 3)] * 2


@pytest.mark.parametrize("n", [1, 13, 100])
def test_ticks_of_a_weight_matrix_are_indices(n):
    ax = plotting.plot_weight_map(np.ones((n, n, 2)))
    for ticks in (ax.get_xticks(), ax.get_yticks()):
        assert ticks[0] == 0 and ticks[-1] < n and len(ticks) <= 12
        assert len(set(ticks)) == len(ticks) and np.all(ticks == np.round(ticks))


# Basis


def test_basis_lines():
    basis = glm.RaisedCosineBasis(4, 7)
    ax = plotting.plot_basis(basis)
    assert len(ax.lines) == 4
    for drawn, column in zip(ax.lines, basis.matrix.T):
        np.testing.assert_array_equal(drawn.get_xdata(), np.arange(1, 8))
        np.testing.assert_array_equal(drawn.get_ydata(), column)
    looks = {(drawn.get_linestyle(), drawn.get_marker()) for drawn in ax.lines}
    assert len(looks) == 4  # told apart without colour
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["1", "2", "3", "4"]


def test_basis_of_many_functions_has_no_legend():
    ax = plotting.plot_basis(glm.IndicatorBasis(13))
    assert ax.get_legend() is None and len(ax.lines) == 13


def test_basis_over_time():
    ax = plotting.plot_basis(glm.IndicatorBasis(4), dt=0.25 * ms)
    np.testing.assert_allclose(ax.lines[0].get_xdata(), [0.25, 0.5, 0.75, 1.0])
    assert ax.get_xlabel() == "lag [ms]"


@pytest.mark.parametrize("size", [(6.4, 4.8), (3, 2.5)])
@pytest.mark.parametrize("n_basis", [1, 3, 8, 12])
def test_legend_covers_no_line(n_basis, size):
    figure, ax = plt.subplots(figsize=size, layout="constrained")
    plotting.plot_basis(glm.RaisedCosineBasis(n_basis, 12), ax)
    figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    highest = ax.transData.transform((1, 1.0))[1]
    assert legend.y0 > highest


# Report


@pytest.mark.parametrize(
    "n_inputs, names, n_panels",
    [
        (16, (5, 7), 4),  # images and lines
        (16, tuple(range(10)), 10),
        (16, tuple(range(12)), 10),
        (10, ("setosa", "versicolor", "virginica"), 3),
        (30, tuple(range(10)), 10),
    ],
)
def test_report(n_inputs, names, n_panels, tmp_path):
    classifier, X, y = make(n_inputs, names, n_epochs=1)
    path = tmp_path / "report.png"
    figure = plotting.training_report(classifier, X, y, path)
    assert plt.get_fignums() == []
    assert plt.imread(path).std() > 0

    upper, lower = figure.subfigs
    curve, *rasters = upper.axes
    np.testing.assert_array_equal(curve.lines[0].get_ydata(), classifier.history_)
    assert len(rasters) == 4
    for ax in rasters:
        assert ax.get_title().startswith("class ")
        assert ax.get_xlim() == (0.5, 5.5)
    panels = [ax for ax in lower.axes if ax.get_title()]
    assert len(panels) == n_panels
    assert sum(len(ax.images) for ax in panels) == (n_inputs == 16) * min(len(names), 10)
    assert len({image.get_clim() for ax in panels for image in ax.images}) <= 1

    # Nothing is cut off, and no text or panel runs into another.
    figure.canvas.draw()
    whole = figure.get_window_extent()
    extents = [ax.get_tightbbox() for ax in figure.axes if ax.axison]
    for extent in extents:
        assert whole.x0 <= extent.x0 and extent.x1 <= whole.x1
        assert whole.y0 <= extent.y0 and extent.y1 <= whole.y1
    for index, extent in enumerate(extents):
        assert not any(extent.overlaps(other) for other in extents[:index])


@pytest.mark.parametrize("n_inputs", [12, 16])
def test_report_names_hidden_neurons(n_inputs):
    """16 inputs form an image."""
    classifier, X, y = make(n_inputs, (0, 1, 2), n_epochs=1, hidden=(3,))
    panels = plotting.training_report(classifier, X, y).subfigs[1].axes
    titles = {ax.get_title() for ax in panels if ax.get_title()}
    assert titles == {f"hidden neuron {index}" for index in range(3)}


def test_report_titles_are_the_decisions():
    names = (0, 1, 2)
    classifier, X, y = make(12, names)
    for on_silence in ("potential", "reject"):
        classifier.on_silence = on_silence
        _, *rasters = plotting.training_report(classifier, X, y).subfigs[0].axes
        rows = [0, 1, 2, 3]  # one of each class, then a second of the first
        for ax, label, decided in zip(rasters, y[rows], classifier.predict(X[rows])):
            title = ax.get_title().replace("\n", " ")
            assert title.startswith(f"class {label}, ")
            assert f"decided {decided}" in title or (decided == -1 and "rejected" in title)


def test_report_shows_as_many_classes_as_there_is_room_for():
    classifier, X, y = make(20, tuple(range(10)), n_epochs=1)
    order = np.argsort(y, kind="stable")
    _, *rasters = plotting.training_report(classifier, X[order], y[order]).subfigs[0].axes
    assert [ax.get_title().split()[1].strip(",") for ax in rasters] == ["0", "3", "6", "9"]


def test_report_of_few_presentations_and_of_trains(fitted):
    classifier, X, y = fitted
    assert len(plotting.training_report(classifier, X[:1], y[:1]).subfigs[0].axes) == 2
    trains = (np.random.default_rng(0).random((3, 5, 16)) < 0.3).astype(int)
    assert len(plotting.training_report(classifier, trains, y[:3]).subfigs[0].axes) == 4


def test_report_of_rate_decoding():
    classifier, X, y = make(decoding="rate")
    _, *rasters = plotting.training_report(classifier, X, y).subfigs[0].axes
    for ax, decided in zip(rasters, classifier.predict(X[:4])):
        assert f"decided {decided}" in ax.get_title()
        assert "at step 5" in ax.get_title() or "no spike" in ax.get_title()


# Errors


def test_path_that_cannot_be_written(fitted, tmp_path):
    path = tmp_path / "nowhere" / "report.png"
    with pytest.raises(OSError, match="nowhere"):
        plotting.training_report(*fitted, path)


def report(classifier):
    return plotting.training_report(classifier, [[0.0]], [0])


@pytest.mark.parametrize(
    "draw, message",
    [
        (
            plotting.plot_learning_curve,
            "classifier must be a fitted GLMClassifier, its history_, a list",
        ),
        (plotting.plot_kernels, "model must be a fitted GLMClassifier, GLMSynapses, a GLMPopulation"),
        (
            plotting.plot_weight_map,
            "model must be a fitted GLMClassifier, GLMSynapses, a GLMPopulation",
        ),
        (
            plotting.plot_feedback_kernels,
            "model must be a fitted GLMClassifier, GLMNeurons, a GLMPopulation",
        ),
        (report, "classifier must be a fitted GLMClassifier"),
    ],
)
@pytest.mark.parametrize("wrong", ["x", glm.IndicatorBasis(2)])
def test_models_are_checked(draw, message, wrong):
    with pytest.raises(TypeError, match=f"^{message}.*, got {wrong!r}"):
        draw(wrong)
    with pytest.raises(NotFittedError):
        draw(glm.GLMClassifier())
    assert plt.get_fignums() == []


@pytest.mark.parametrize(
    "kernels, error, message",
    [
        (np.ones((2, 2)), ValueError, r"model .* must have the shape \(n_source, n_target, window\)"),
        (np.ones((2, 0, 3)), ValueError, r"model must hold at least one kernel, got shape"),
        (np.full((1, 1, 1), np.nan), ValueError, "model .* must be finite"),
        (np.ones((1, 1, 1)) * mV, TypeError, "model .* must be plain numbers"),
    ],
)
def test_arrays_of_kernels_are_checked(kernels, error, message):
    for draw in (plotting.plot_kernels, plotting.plot_weight_map):
        with pytest.raises(error, match=message):
            draw(kernels)
    assert plt.get_fignums() == []


def test_arrays_of_feedback_kernels_are_checked():
    with pytest.raises(ValueError, match=r"model .* must have the shape \(n, window\)"):
        plotting.plot_feedback_kernels(np.ones(2))
    with pytest.raises(ValueError, match="model must hold at least one kernel"):
        plotting.plot_feedback_kernels(np.ones((0, 2)))


def test_neurons_without_feedback():
    neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1))
    with pytest.raises(ValueError, match="model has no feedback kernels: create"):
        plotting.plot_feedback_kernels(neurons)
    layer = HiddenLayer(np.ones((3, 2, 1)), np.ones(2), np.ones((2, 0)), glm.IndicatorBasis(1), None)
    with pytest.raises(ValueError, match="no feedback kernels: train .* with hidden_feedback=basis"):
        plotting.plot_feedback_kernels(layer)


def test_targets_are_checked(synapses):
    with pytest.raises(ValueError, match="output must be an integer from 0 to 2, got 3"):
        plotting.plot_kernels(synapses, 3)
    with pytest.raises(ValueError, match="output needs inputs that form an image; pass shape="):
        plotting.plot_weight_map(synapses, 2)
    with pytest.raises(ValueError, match="limit must be a finite number above 0"):
        plotting.plot_weight_map(synapses, limit=0)


@pytest.mark.parametrize(
    "dt, error", [(1, TypeError), (1 * mV, TypeError), ([1, 2] * ms, TypeError),
                  (0 * ms, ValueError), (np.inf * ms, ValueError)]
)  # fmt: skip
def test_time_steps_are_checked(dt, error):
    kernels = np.ones((2, 2, 2))
    for draw, shown in (
        (plotting.plot_basis, glm.IndicatorBasis(2)),
        (plotting.plot_kernels, kernels),
        (plotting.plot_weight_map, kernels),
        (plotting.plot_feedback_kernels, kernels[0]),
    ):
        with pytest.raises(error, match="^dt must be "):
            draw(shown, dt=dt)
    assert plt.get_fignums() == []


def test_histories_are_checked(classifier):
    with pytest.raises(ValueError, match="all fits must have the same number of epochs, got"):
        plotting.plot_learning_curve([classifier, [-1.0]])
    with pytest.raises(TypeError, match="^classifier must be a fitted GLMClassifier, its history_"):
        plotting.plot_learning_curve([classifier, "x"])
    with pytest.raises(ValueError, match=r"^classifier .* must have the shape \(n_epochs,\)"):
        plotting.plot_learning_curve(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="^classifier .* must be finite"):
        plotting.plot_learning_curve([np.nan])


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"output": 6}, ValueError, r"output must be one of the classes \[5, 7\], got 6"),
        ({"lag": 0}, ValueError, "lag must be an integer from 1 to 5, got 0"),
        ({"lag": 6}, ValueError, "lag must be an integer from 1 to 5, got 6"),
        ({"lag": 1.5}, TypeError, "lag must be an integer from 1 to 5, got 1.5"),
        ({"shape": (16,), "lag": 1}, ValueError, "lag needs inputs that form an image; pass shape="),
        ({"shape": (4, 5)}, ValueError, r"shape must be \(rows, columns\) with 16 inputs in all"),
        ({"shape": (4, 2, 2)}, ValueError, "shape must be .* got \\(4, 2, 2\\)"),
        ({"shape": (-4, -4)}, ValueError, "shape must be"),
        ({"shape": 16}, ValueError, "shape must be .* got 16"),
        ({"shape": "4"}, ValueError, "shape must be .* got '4'"),
    ],
)
def test_kernel_arguments_are_checked(classifier, arguments, error, message):
    with pytest.raises(error, match="^" + message):
        plotting.plot_kernels(classifier, **arguments)
    assert plt.get_fignums() == []


def test_basis_is_checked():
    with pytest.raises(TypeError, match="^basis must be a basis such as"):
        plotting.plot_basis(np.eye(3))
    assert plt.get_fignums() == []


def test_report_arguments_are_checked(fitted):
    classifier, X, y = fitted
    for wrong in (y[:-1], y[:, np.newaxis], 5):
        with pytest.raises(ValueError, match="^y must have one label per row of X"):
            plotting.training_report(classifier, X, wrong)
    with pytest.raises(ValueError, match="^X must hold at least one presentation, got none"):
        plotting.training_report(classifier, X[:0], y[:0])
    with pytest.raises(ValueError, match="^X has 15 inputs"):
        plotting.training_report(classifier, X[:, 1:], y)


def test_a_population_is_drawn_by_name_and_in_its_own_steps():
    basis = glm.IndicatorBasis(3)
    weights = {"stimulus": np.ones((4, 2, 3)), "coupling": 2 * np.ones((2, 2, 3))}
    population = glm.GLMPopulation(
        [0.0, 0.0], dict.fromkeys(weights, basis), weights, basis, [[1, 2, 3]] * 2, dt=2 * ms
    )
    ax = glm.plotting.plot_kernels(population, 1)
    assert ax.get_title() == "neuron 1, stimulus" and ax.get_xlabel() == "lag [ms]"
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert len(lines) == 4 and lines[0].get_xdata().tolist() == [2.0, 4.0, 6.0]
    ax = glm.plotting.plot_kernels(population, kernel="coupling")
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    assert len(lines) == 2 and lines[0].get_ydata().tolist() == [2.0, 2.0, 2.0]
    image = glm.plotting.plot_weight_map(population, kernel="coupling").images[0]
    assert image.get_array().tolist() == [[6.0, 6.0], [6.0, 6.0]]
    assert glm.plotting.plot_feedback_kernels(population).get_xlabel() == "lag [ms]"
    population.dt = None
    assert glm.plotting.plot_feedback_kernels(population).get_xlabel() == "lag [steps]"
    with pytest.raises(ValueError, match="^kernel must be one of"):
        glm.plotting.plot_kernels(population, kernel="lateral")
    with pytest.raises(ValueError, match="^kernel must be left out unless model is a GLMPopulation"):
        glm.plotting.plot_kernels(np.ones((2, 2, 3)), kernel="stimulus")
    bare = glm.GLMPopulation([0.0], {}, {})
    for draw in glm.plotting.plot_kernels, glm.plotting.plot_feedback_kernels:
        with pytest.raises(ValueError, match="^model"):
            draw(bare)
