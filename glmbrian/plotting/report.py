"""One figure of what a classifier has learned and how it decides."""

import math
import textwrap
from contextlib import nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from ..classifier.classifier import GLMClassifier
from ..support.storage import replacing
from ..support.validation import plain_array
from .kernel_sets import kernel_set, square
from .kernels import plot_kernels
from .learning import plot_learning_curve
from .rasters import plot_raster
from .weights import draw_image

_N_RASTERS = 4
_MOST_KERNELS = 10  # the most classes whose kernels are shown


def training_report(
    classifier: GLMClassifier, X: ArrayLike, y: ArrayLike, path: str | Path | IO[bytes] | None = None
) -> Figure:
    """Draw what a classifier has learned and how it decides, in one figure.

    The figure has the learning curve, rasters of up to four presentations of
    different classes, and kernels of up to ten classes.  With hidden layers, it has kernels
    of the ten neurons of the first hidden layer whose kernels are the largest.

    Parameters
    ----------
    classifier : GLMClassifier
        A fitted classifier.
    X : array_like, shape (n, n_inputs) or (n, n_steps, n_inputs)
        Test presentations, as for `GLMClassifier.predict`; the ones
        shown are simulated again.
    y : array_like, shape (n,)
        Class labels.
    path : str, Path or binary file, optional
        A PNG file to write.

    Returns
    -------
    matplotlib Figure
        Not registered with pyplot.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or shape.
    sklearn.exceptions.NotFittedError
        If the classifier is not fitted.
    OSError
        If `path` cannot be written.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import prefs
    >>> prefs.codegen.target = "numpy"
    >>> digits = glm.datasets.load_mnist((5, 7), n_train=4, n_test=4)
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=1, device="runtime")
    >>> fitted = classifier.fit(digits.X_train, digits.y_train)
    >>> figure = glm.plotting.training_report(fitted, digits.X_test, digits.y_test)
    >>> len(figure.subfigs[0].axes)  # the learning curve, and four rasters
    5
    """
    if not isinstance(classifier, GLMClassifier):
        raise TypeError(f"classifier must be a fitted GLMClassifier, got {classifier!r}")
    check_is_fitted(classifier, "weights_")
    inputs, labels = plain_array(X, "X"), plain_array(y, "y", "labels")
    if inputs.ndim == 0 or labels.shape != inputs.shape[:1]:
        raise ValueError(
            f"y must have one label per row of X, {inputs.shape[:1]}, got shape {labels.shape}"
        )
    rows = _rows_of_different_classes(labels)
    traces = classifier.record(inputs[rows])

    layers = classifier.hidden_layers_
    first = layers[0] if layers else classifier
    kernels, shape = kernel_set(first, None), square(classifier.n_features_in_)
    values, text = kernels.at(None)
    targets = np.arange(values.shape[1])
    if layers:
        targets = np.argsort(-np.linalg.norm(values, axis=0), kind="stable")
    targets = targets[:_MOST_KERNELS]
    # Two images alone would leave half of the row empty.
    with_lines = shape is not None and len(targets) == 2
    n_panels = len(targets) * (1 + with_lines)
    n_columns = min(n_panels, 5)
    n_rows = math.ceil(n_panels / n_columns)
    kernels_height = n_rows * (3 if shape is None or n_rows == 1 else 2.2)
    figure = Figure(figsize=(13, 3.8 + kernels_height), layout="constrained")
    layout: Any = figure.get_layout_engine()
    layout.set(w_pad=0.08, h_pad=0.08)
    halves: Any = figure.subfigures(2, 1, height_ratios=[3.8, kernels_height])
    upper, lower = halves

    _draw_training(upper, classifier, traces, labels[rows])
    axes = lower.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax in axes[n_panels:]:
        ax.set_axis_off()
    if shape is None or with_lines:
        for ax, target in zip(axes[-len(targets) :] if with_lines else axes, targets.tolist()):
            name = target if kernels.classes is None else kernels.classes[target]
            plot_kernels(first, name, (len(values),), ax=ax)
            if layers:
                ax.set_title(f"hidden neuron {target}", fontsize="medium")
    if shape is not None:
        images = axes[: len(targets)]
        limit = np.abs(values[:, targets]).max()
        for target, ax in zip(targets.tolist(), images):
            image = draw_image(ax, values[:, target].reshape(shape), limit)
            title = f"hidden neuron {target}" if layers else kernels.title(target)
            ax.set_title(title, fontsize="medium")
        lower.colorbar(image, ax=images.tolist(), label=text)
    if path is not None:
        with nullcontext(path) if hasattr(path, "write") else replacing(path) as file:
            figure.savefig(file, format="png", dpi=150)
    return figure


def _draw_training(part, classifier, traces, labels):
    """Draw the learning curve, and a raster of each trace."""
    widths = [1.1] + [1] * len(traces)
    curve, *rasters = part.subplots(1, len(widths), gridspec_kw={"width_ratios": widths})
    plot_learning_curve(classifier, curve)
    curve.set_title("training", fontsize="medium")
    for ax, trace, label in zip(rasters, traces, labels):
        plot_raster(trace, classifier.classes_, label, ax)
        ax.set_title(textwrap.fill(ax.get_title(), 28), fontsize="medium")
        ax.set_xlim(0.5, classifier.n_steps + 0.5)  # the same for all
        if ax is not rasters[0]:
            ax.tick_params(labelleft=False)
            ax.set_ylabel(None)


def _rows_of_different_classes(y):
    """Return up to `_N_RASTERS` row numbers: one for each class, then a second, ..."""
    if len(y) == 0:
        raise ValueError("X must hold at least one presentation, got none")
    classes = np.unique(y)
    # Spread evenly over the classes, if there are more classes than pictures.
    chosen = np.linspace(0, len(classes) - 1, min(len(classes), _N_RASTERS)).round().astype(int)
    rows_by_class = [np.flatnonzero(y == name) for name in classes[chosen]]
    turns = [(turn, index) for index, rows in enumerate(rows_by_class) for turn in range(len(rows))]
    return np.array([rows_by_class[index][turn] for turn, index in sorted(turns)[:_N_RASTERS]])
