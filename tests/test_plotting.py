"""Tests of glmbrian.plotting: what is in each picture, and that it can be read."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from brian2 import prefs
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError

import glmbrian as glm
from glmbrian import plotting
from glmbrian.model import Trace


@pytest.fixture(autouse=True)
def quiet_pyplot(restore_brian):
    prefs.codegen.target = "numpy"
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
    target = prefs.codegen.target
    prefs.codegen.target = "numpy"
    try:
        return make()
    finally:
        prefs.codegen.target = target


@pytest.fixture
def classifier(fitted):
    return fitted[0]


def line(ax, label):
    (found,) = [line for line in ax.lines if line.get_label() == label]
    return found


def trace_of(outputs, decided=None, n_inputs=10):
    outputs = np.array(outputs, dtype=np.uint8)
    inputs = np.zeros((len(outputs), n_inputs), dtype=np.uint8)
    inputs[0, 3] = inputs[-1, 9] = 1
    return Trace(inputs, outputs, np.zeros(outputs.shape), decided)


# Where it is drawn

DRAWINGS = {
    "learning_curve": lambda classifier, ax: plotting.plot_learning_curve(classifier, ax=ax),
    "raster": lambda classifier, ax: plotting.plot_raster(trace_of([[0, 1]]), [5, 7], ax=ax),
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
    ax.figure.canvas.draw()


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


# Raster


def test_raster_shows_what_was_recorded(fitted):
    classifier, X, y = fitted
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
    colours = np.array([to_rgb(plotting._DIVERGING(level)) for level in np.linspace(0, 1, 65)])
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
    assert plotting.plot_basis(glm.IndicatorBasis(13)).get_legend() is None


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


@pytest.mark.parametrize(
    "draw",
    [
        plotting.plot_learning_curve,
        plotting.plot_kernels,
        lambda classifier: plotting.training_report(classifier, [[0.0]], [0]),
    ],
)
def test_classifier_is_checked(draw):
    with pytest.raises(TypeError, match="^classifier must be a fitted GLMClassifier, got 'x'"):
        draw("x")
    with pytest.raises(NotFittedError):
        draw(glm.GLMClassifier())
    assert plt.get_fignums() == []


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


def test_raster_arguments_are_checked():
    with pytest.raises(TypeError, match="^trace must be one that GLMClassifier.record returned"):
        plotting.plot_raster(np.zeros((2, 2)), [5, 7])
    for classes in ([5, 7, 9], 5):
        with pytest.raises(ValueError, match=r"^classes must have the shape \(2,\), one an output"):
            plotting.plot_raster(trace_of([[0, 1]]), classes)
    assert plt.get_fignums() == []


def test_basis_is_checked():
    with pytest.raises(TypeError, match="^basis must be a basis such as"):
        plotting.plot_basis(np.eye(3))
    assert plt.get_fignums() == []


def test_report_arguments_are_checked(fitted):
    classifier, X, y = fitted
    for wrong in (y[:-1], y[:, np.newaxis], 5):
        with pytest.raises(ValueError, match="^y must have one label a row of X"):
            plotting.training_report(classifier, X, wrong)
    with pytest.raises(ValueError, match="^X must hold at least one presentation, got none"):
        plotting.training_report(classifier, X[:0], y[:0])
    with pytest.raises(ValueError, match="^X has 15 inputs"):
        plotting.training_report(classifier, X[:, 1:], y)
