"""Pictures of learning, of presentations, and of kernels.

Each function draws into `ax`, or into a new pyplot figure, and returns the Axes.
Line styles, markers and lightness tell things apart, so that they print in grey.
"""

import math
import textwrap

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from sklearn.utils.validation import check_is_fitted

from .bases import as_basis
from .estimator import GLMClassifier
from .model import Trace
from .validation import integer

__all__ = [
    "plot_basis",
    "plot_kernels",
    "plot_learning_curve",
    "plot_raster",
    "training_report",
]

#: From blue over grey at zero to yellow.  Unlike a map from blue over white to red,
#: it gets lighter all the way, so that in grey the sign can still be seen.
_DIVERGING = LinearSegmentedColormap.from_list(
    "glmbrian_diverging", ["#050a3c", "#1f57a4", "#8e9094", "#f0b04c", "#fffbd0"]
)

_STYLES = ("-", "--", "-.", ":")
_MARKERS = "osD^vx"
_MOST_MARKED = 60  # points of a line that gets a marker each
_N_STRONGEST = 6  # inputs that `plot_kernels` draws as lines
_MOST_IN_LEGEND = 12
_LEGEND_COLUMNS = 3
_MOST_ROW_NAMES = 12  # of output rows in `plot_raster`

# Of `training_report`
_N_RASTERS = 4
_MOST_KERNEL_IMAGES = 10


def plot_learning_curve(classifier, ax=None):
    """Plot the mean log-likelihood of the training presentations of each epoch.

    Parameters
    ----------
    classifier : GLMClassifier
        A fitted one.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
        Its one line has the epochs, from 1, and `classifier.history_`, both of
        shape (n_epochs,).

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    sklearn.exceptions.NotFittedError
        If the classifier is not fitted.
    """
    _check_classifier(classifier)
    ax = _axes(ax)
    history = classifier.history_
    epochs = np.arange(1, len(history) + 1)
    ax.plot(epochs, history, color="black", marker=_marker(0, len(epochs)), markersize=3.5)
    margin = max(0.5, 0.03 * len(epochs))
    ax.set_xlim(1 - margin, max(len(epochs), 1) + margin)
    _integer_ticks(ax.xaxis)
    ax.set_xlabel("epoch")
    ax.set_ylabel("mean log-likelihood [nats]")
    return ax


def plot_raster(trace, classes, label=None, ax=None):
    """Plot the spikes of one presentation, and mark the decision.

    Dots are input spikes.  The larger marks in the rows above are output spikes,
    one row a class.  A dashed line marks the step of the decision: that of the
    first output spike with first-to-spike decoding, the last one with rate
    decoding.

    Parameters
    ----------
    trace : glmbrian.model.Trace
        As `GLMClassifier.record` returns: input spikes of shape (steps, n_inputs)
        and output spikes of shape (steps, n_outputs), and the class decided.
    classes : array_like, shape (n_outputs,)
        Class of each output, such as `classifier.classes_`.
    label : optional
        The true class, for the title.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    Returns
    -------
    matplotlib Axes
        Lines labelled ``"input spikes"``, ``"output spikes"`` and
        ``"decision"``.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or shape.
    """
    if not isinstance(trace, Trace):
        raise TypeError(f"trace must be one that GLMClassifier.record returned, got {trace!r}")
    classes = np.asarray(classes)
    (n_steps, n_inputs), n_outputs = trace.inputs.shape, trace.outputs.shape[1]
    if classes.shape != (n_outputs,):
        raise ValueError(
            f"classes must have the shape ({n_outputs},), one an output, got {classes.shape}"
        )
    ax = _axes(ax)

    # Rows of outputs go on above the inputs, in the units of the input index.
    row_height = n_inputs * min(0.12, 0.8 / n_outputs)
    border = n_inputs - 0.5 + 0.5 * row_height
    rows = border + row_height * (np.arange(n_outputs) + 0.75)
    top = rows[-1] + 0.75 * row_height
    steps, inputs = np.nonzero(trace.inputs)
    size = np.clip(40 / math.sqrt(n_inputs), 2, 5)
    ax.plot(steps + 1, inputs, ".", color="0.35", markersize=size, label="input spikes")
    steps, outputs = np.nonzero(trace.outputs)
    is_silent = steps.size == 0
    if not is_silent:
        ax.axvline(n_steps, color="0.5", linestyle="--", linewidth=1, zorder=0, label="decision")
    ax.axhspan(border, top, color="0.93", linewidth=0, zorder=-1)
    ax.plot(steps + 1, rows[outputs], "o", color="black", markersize=6, label="output spikes")

    input_ticks = MaxNLocator(4, integer=True).tick_values(0, n_inputs - 1)
    input_ticks = [int(tick) for tick in input_ticks if 0 <= tick < n_inputs]
    named = slice(None, None, -(-n_outputs // _MOST_ROW_NAMES))
    ax.set_yticks(
        [*input_ticks, *rows[named]],
        [*map(str, input_ticks), *(f"class {name}" for name in classes[named])],
    )
    if n_outputs > 5:
        for text in ax.get_yticklabels()[len(input_ticks) :]:
            text.set_fontsize("x-small")
    bottom = -0.5 - 0.25 * row_height
    ax.set_ylim(bottom, top)
    ax.set_ylabel("input index", y=(border - bottom) / (top - bottom) / 2)
    ax.set_xlim(0.5, n_steps + 0.5)
    _integer_ticks(ax.xaxis)
    ax.set_xlabel("time [steps]")

    title = [] if label is None else [f"class {label}"]
    if is_silent:
        title.append("no spike")
    if trace.decided is not None:
        is_rejected = is_silent and trace.decided not in classes.tolist()
        when = "" if is_silent else f" at step {n_steps}"
        title.append("rejected" if is_rejected else f"decided {trace.decided}{when}")
    ax.set_title(", ".join(title), fontsize="medium")
    return ax


def plot_kernels(classifier, output=None, shape=None, lag=None, ax=None):
    """Plot the synaptic kernels that one output has learned.

    Inputs that form an image give an image of their kernels, at one lag or
    summed.  Otherwise the kernels of the strongest inputs (those with the largest
    sum of squares) are drawn against the lag.

    Parameters
    ----------
    classifier : GLMClassifier
        A fitted one.
    output : optional
        The class whose output it is; by default the first of
        `classifier.classes_`.
    shape : tuple of int, optional
        How the inputs are laid out: (rows, columns) as an image, (n_inputs,) as
        none.  By default a square image if `n_inputs` is a square number, such as
        28 x 28 for 784, and none otherwise.
    lag : int, optional
        The lag shown in an image, from 1; by default the sum over all lags.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
        With an image of the given shape, and a colour bar beside it; or with up
        to 6 lines of shape (window,).

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.
    sklearn.exceptions.NotFittedError
        If the classifier is not fitted.
    """
    _check_classifier(classifier)
    output = _output_index(classifier, output)
    shape = _image_shape(classifier, shape)
    if shape is None and lag is not None:
        raise ValueError(
            "lag needs inputs that form an image; pass shape=(rows, columns) for these "
            f"{classifier.n_features_in_} inputs"
        )
    values, text = _kernel_values(classifier, lag)
    ax = _axes(ax)
    ax.set_title(f"class {classifier.classes_[output]}", fontsize="medium")
    if shape is None:
        return _kernel_lines(classifier, output, ax)
    image = _kernel_image(ax, values[:, output].reshape(shape))
    ax.figure.colorbar(image, ax=ax, label=text)
    return ax


def plot_basis(basis, ax=None):
    """Plot the functions of a basis against the lag.

    Parameters
    ----------
    basis : Basis
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
        With one line a function, of the shape (window,).

    Raises
    ------
    TypeError
        If an argument is of the wrong type.

    Examples
    --------
    >>> import glmbrian as glm
    >>> ax = glm.plotting.plot_basis(glm.RaisedCosineBasis(4, 6))
    >>> len(ax.lines)
    4
    """
    as_basis(basis, "basis")
    ax = _axes(ax)
    names = [f"{k + 1}" for k in range(basis.n_basis)]
    _lines_against_lag(ax, basis.matrix.T, names, "function")
    ax.set_ylabel("basis function")
    return ax


def training_report(classifier, X, y, path=None):
    """Draw what a classifier has learned, and how it decides, in one figure.

    Its parts are the learning curve, rasters of up to four presentations of
    different classes, and kernels of up to ten classes.

    Parameters
    ----------
    classifier : GLMClassifier
        A fitted one.
    X : array_like, shape (n, n_inputs) or (n, n_steps, n_inputs)
        Test presentations, as for `GLMClassifier.predict`; those shown are
        simulated anew.
    y : array_like, shape (n,)
        Class labels.
    path : str or Path, optional
        A PNG file to write.

    Returns
    -------
    matplotlib Figure
        One that pyplot does not know of.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or shape.
    sklearn.exceptions.NotFittedError
        If the classifier is not fitted.
    OSError
        If `path` cannot be written.
    """
    _check_classifier(classifier)
    X, y = np.asarray(X), np.asarray(y)
    if X.ndim == 0 or y.shape != X.shape[:1]:
        raise ValueError(f"y must have one label a row of X, {X.shape[:1]}, got the shape {y.shape}")
    rows = _rows_of_different_classes(y)
    traces = classifier.record(X[rows])

    classes = classifier.classes_[:_MOST_KERNEL_IMAGES]
    shape = _image_shape(classifier, None)
    # Two images would leave half of the row empty.
    with_lines = shape is not None and len(classes) == 2
    n_panels = len(classes) * (1 + with_lines)
    n_columns = min(n_panels, 5)
    n_rows = math.ceil(n_panels / n_columns)
    kernels_height = n_rows * (3 if shape is None or n_rows == 1 else 2.2)
    figure = Figure(figsize=(13, 3.8 + kernels_height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    upper, lower = figure.subfigures(2, 1, height_ratios=[3.8, kernels_height])

    widths = [1.1] + [1] * len(traces)
    curve, *rasters = upper.subplots(1, len(widths), gridspec_kw={"width_ratios": widths})
    plot_learning_curve(classifier, curve)
    curve.set_title("training", fontsize="medium")
    for ax, trace, label in zip(rasters, traces, y[rows]):
        plot_raster(trace, classifier.classes_, label, ax)
        ax.set_title(textwrap.fill(ax.get_title(), 28), fontsize="medium")
        ax.set_xlim(0.5, classifier.n_steps + 0.5)  # the same for all
        if ax is not rasters[0]:
            ax.tick_params(labelleft=False)
            ax.set_ylabel(None)

    axes = lower.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[n_panels:]:
        ax.set_axis_off()
    if shape is None or with_lines:
        for ax, name in zip(axes[-len(classes):] if with_lines else axes, classes):
            plot_kernels(classifier, name, (classifier.n_features_in_,), ax=ax)
    if shape is not None:
        images = axes[: len(classes)]
        values, text = _kernel_values(classifier, None)
        values = values[:, : len(classes)]
        limit = np.abs(values).max()
        for ax, name, column in zip(images, classes, values.T):
            image = _kernel_image(ax, column.reshape(shape), limit)
            ax.set_title(f"class {name}", fontsize="medium")
        lower.colorbar(image, ax=images.tolist(), label=text)
    if path is not None:
        figure.savefig(path, format="png", dpi=150)
    return figure


# ------------------------------------------------------------------ parts of pictures


def _kernel_values(classifier, lag):
    """Return kernels of shape (n_inputs, n_outputs) at a lag or summed, and a name."""
    kernels = classifier.basis_.kernels(classifier.weights_)
    if lag is None:
        return kernels.sum(axis=-1), "kernel, summed over lags"
    lag = integer(lag, "lag", 1, classifier.basis_.window)
    return kernels[..., lag - 1], f"kernel at lag {lag} [steps]"


def _kernel_image(ax, values, limit=None):
    limit = limit or np.abs(values).max() or 1.0
    ax.set_xticks([])
    ax.set_yticks([])
    return ax.imshow(values, cmap=_DIVERGING, vmin=-limit, vmax=limit, interpolation="nearest")


def _kernel_lines(classifier, output, ax):
    kernels = classifier.basis_.kernels(classifier.weights_[:, output])
    strongest = np.argsort(-(kernels**2).sum(axis=1), kind="stable")[:_N_STRONGEST]
    _lines_against_lag(ax, kernels[strongest], strongest, "input")
    ax.axhline(0, color="0.7", linewidth=0.8, zorder=0, label="_zero")
    ax.set_ylabel("kernel")
    return ax


def _lines_against_lag(ax, values, names, title):
    """Draw rows of `values`, shape (n_lines, window), told apart without colour."""
    n_lines, window = values.shape
    for index, (row, name) in enumerate(zip(values, names)):
        ax.plot(
            np.arange(1, window + 1),
            row,
            color=plt.get_cmap("viridis")(0.85 * index / max(n_lines - 1, 1)),
            linestyle=_STYLES[index % len(_STYLES)],
            marker=_marker(index, window),
            markersize=4,
            linewidth=1.3,
            label=str(name),
        )
    _integer_ticks(ax.xaxis)
    ax.set_xlabel("lag [steps]")
    if n_lines <= _MOST_IN_LEGEND:
        _legend_above(ax, n_lines, title)


def _legend_above(ax, n_lines, title):
    """Put a legend inside the axes, with room for it above all lines."""
    legend_rows = 1 + -(-n_lines // _LEGEND_COLUMNS)
    height = ax.get_window_extent().height / ax.figure.dpi
    share = min((0.18 * legend_rows + 0.15) / height, 0.5)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + (top - bottom) * share / (1 - share))
    ax.legend(
        title=title,
        loc="upper center",
        ncols=min(n_lines, _LEGEND_COLUMNS),
        fontsize="small",
        title_fontsize="small",
        handlelength=1.8,
        columnspacing=0.8,
    )


def _integer_ticks(axis):
    axis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def _marker(index, n_points):
    return _MARKERS[index % len(_MARKERS)] if n_points <= _MOST_MARKED else None


# ------------------------------------------------------------------ what is shown


def _rows_of_different_classes(y):
    """Return up to `_N_RASTERS` row numbers: one of each class, then a second, ..."""
    if len(y) == 0:
        raise ValueError("X must hold at least one presentation, got none")
    classes = np.unique(y)
    # Evenly spread over the classes, if there are more of them than pictures.
    chosen = np.linspace(0, len(classes) - 1, min(len(classes), _N_RASTERS)).round().astype(int)
    rows_by_class = [np.flatnonzero(y == name) for name in classes[chosen]]
    turns = [(turn, index) for index, rows in enumerate(rows_by_class) for turn in range(len(rows))]
    return np.array([rows_by_class[index][turn] for turn, index in sorted(turns)[:_N_RASTERS]])


# ------------------------------------------------------------------ checks


def _check_classifier(classifier):
    if not isinstance(classifier, GLMClassifier):
        raise TypeError(f"classifier must be a fitted GLMClassifier, got {classifier!r}")
    check_is_fitted(classifier, "weights_")


def _axes(ax):
    if ax is None:
        return plt.subplots(layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {ax!r}")
    return ax


def _output_index(classifier, output):
    if output is None:
        return 0
    names = classifier.classes_.tolist()
    if output not in names:
        raise ValueError(f"output must be one of the classes {names}, got {output!r}")
    return names.index(output)


def _image_shape(classifier, shape):
    """Return (rows, columns), or None if the inputs do not form an image."""
    n_inputs = classifier.n_features_in_
    if shape is None:
        side = math.isqrt(n_inputs)
        return (side, side) if side**2 == n_inputs and side > 1 else None
    try:
        sizes = tuple(integer(size, "shape") for size in shape)
    except (TypeError, ValueError):
        sizes = ()
    if len(sizes) not in (1, 2) or math.prod(sizes) != n_inputs:
        raise ValueError(
            f"shape must be (rows, columns) with {n_inputs} inputs in all, or ({n_inputs},) "
            f"for inputs that form no image, got {shape!r}"
        )
    return sizes if len(sizes) == 2 else None
