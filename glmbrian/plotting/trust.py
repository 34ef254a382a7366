"""How far decisions can be trusted: reliability, attacks, and bounds on the error."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..classifier.classifier import GLMClassifier
from ..classifier.labels import check_known
from ..confident.decision import ConfidentDecision
from ..confident.scores import step_scores
from ..confident.thresholds import first_above
from ..support.validation import finite_array, integer
from .style import axes, curve_name, grey, legend, marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_reliability(
    probabilities: ArrayLike,
    right: ArrayLike,
    ax: "Axes | None" = None,
    *,
    n_bins: int = 10,
    label: str | None = None,
) -> "Axes":
    """Plot how often the most probable class is the right one, against its probability.

    Presentations are sorted by this probability into bins of equal width.  Points on the diagonal
    mean that probabilities are right.  Bars show how many presentations each bin has, relative to
    the fullest.

    Parameters
    ----------
    probabilities : array_like of float, shape (n,)
        Of the most probable class: ``clf.predict_proba(X).max(axis=1)``.
    right : array_like of bool, shape (n,)
        Whether it is the right one.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    n_bins : int
    label : str, optional
        For the legend.

    Returns
    -------
    matplotlib Axes
        With one point per bin that is not empty.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or shape, or probabilities are not from 0 to 1.

    Examples
    --------
    >>> import glmbrian as glm
    >>> ax = glm.plotting.plot_reliability([0.95, 0.92, 0.55, 0.51], [True, True, False, True])
    >>> ax.lines[-1].get_ydata().tolist()
    [0.5, 1.0]
    """
    probabilities = finite_array(probabilities, "probabilities", ("n",))
    if not len(probabilities) or probabilities.min() < 0 or probabilities.max() > 1 + 1e-9:
        raise ValueError("probabilities must be from 0 to 1, one for each presentation")
    right = finite_array(right, "right", probabilities.shape)
    n_bins = integer(n_bins, "n_bins")
    bins = np.minimum((probabilities * n_bins).astype(int), n_bins - 1)
    counts = np.bincount(bins, minlength=n_bins)
    full = counts > 0
    confidence, fraction = (
        np.bincount(bins, values, n_bins)[full] / counts[full] for values in (probabilities, right)
    )
    ax = axes(ax)
    edges = np.arange(n_bins) / n_bins
    ax.bar(edges, 0.2 * counts / counts.max(), 1 / n_bins, align="edge", color="0.85", edgecolor="0.6")
    ax.plot([0, 1], [0, 1], "--", color="0.6", linewidth=1)
    index = len(ax.lines) // 2
    ax.plot(
        confidence, fraction, color=grey(index), marker=marker(index, n_bins), label=curve_name(label)
    )
    ax.set_xlim(0, 1)
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("probability of the most probable class")
    ax.set_ylabel("fraction of this class")
    if label is not None:
        legend(ax, fontsize="small", loc="upper left")
    return ax


def plot_accuracy_by_budget(
    accuracies: Mapping[str, Mapping[int, float]], ax: "Axes | None" = None
) -> "Axes":
    """Plot accuracy against the number of spikes that were changed.

    Parameters
    ----------
    accuracies : mapping of str to mappings of int to float
        For each curve, such as "attack" and "random", the accuracy at each budget.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError
        If `accuracies` is not such a mapping.

    Examples
    --------
    >>> import glmbrian as glm
    >>> ax = glm.plotting.plot_accuracy_by_budget(
    ...     {"attack": {0: 0.9, 5: 0.6}, "random": {0: 0.9, 5: 0.88}}
    ... )
    >>> [line.get_ydata().tolist() for line in ax.lines]
    [[0.9, 0.6], [0.9, 0.88]]
    """
    if not isinstance(accuracies, Mapping) or not all(
        isinstance(curve, Mapping) for curve in accuracies.values()
    ):
        raise TypeError(
            "accuracies must be a mapping of names to mappings of budgets to accuracies, such as "
            f"{{'attack': {{0: 0.9, 5: 0.6}}}}, got {accuracies!r}"
        )
    ax = axes(ax)
    for index, (name, curve) in enumerate(accuracies.items()):
        budgets = sorted(curve)
        ax.plot(
            budgets,
            [curve[budget] for budget in budgets],
            color=grey(index),
            marker=marker(index, len(budgets)),
            label=curve_name(name),
        )
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("spikes changed")
    ax.set_ylabel("accuracy")
    legend(ax, fontsize="small")
    return ax


def plot_coverage(
    confident: ConfidentDecision,
    X: ArrayLike,
    y: ArrayLike,
    ax: "Axes | None" = None,
    *,
    first_presentation: int = 0,
) -> "Axes":
    """Plot the fraction of presentations that are decided against the error among these.

    There is one point for each threshold of a `ConfidentDecision` that decides any of them.  A
    cross marks the threshold in use, and a dashed line the largest error allowed.

    Parameters
    ----------
    confident : ConfidentDecision
        After `calibrate`.
    X, y, first_presentation
        As for `ConfidentDecision.evaluate`.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    TypeError, ValueError
        If an argument is not valid, or `confident` is not calibrated.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 100, 20, axis=1)
    >>> y = ["left", "right"] * 100
    >>> classifier = glm.GLMClassifier(n_steps=8, n_basis=2, n_epochs=1, learning_rate=0.1,
    ...                                device="runtime", random_state=1).fit(X, y)
    >>> confident = glm.ConfidentDecision(classifier, error=0.05).calibrate(X, y)
    >>> ax = glm.plotting.plot_coverage(confident, X, y, first_presentation=200)
    >>> ax.get_ylabel()
    'coverage'
    """
    if not isinstance(confident, ConfidentDecision):
        raise TypeError(f"confident must be a ConfidentDecision, got {confident!r}")
    if not hasattr(confident, "tested_"):
        raise ValueError("confident must be calibrated; call confident.calibrate(X, y) first")
    classifier: GLMClassifier = confident.clf
    scores = step_scores(classifier, X, first_presentation)
    y = check_known(y, len(scores.best), classifier.classes_, "classes_")
    right = classifier.classes_[scores.best] == y[:, np.newaxis]
    points, in_use = [], None
    for tested in confident.tested_:
        steps = first_above(scores.log_odds, tested.threshold)
        decided = steps >= 0
        if decided.any():
            wrong = ~right[np.arange(len(steps)), steps][decided]
            points.append((float(wrong.mean()), float(decided.mean())))
            in_use = points[-1] if tested.accepted else in_use
    ax = axes(ax)
    ax.plot(*np.reshape(points, (-1, 2)).T, color="0.3", marker="o", markersize=3)
    if in_use is not None:
        ax.plot(*in_use, "kx", markersize=9, label="in use")
    ax.axvline(confident.error, color="0.6", linestyle="--", label="error bound")
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("error among decided presentations")
    ax.set_ylabel("coverage")
    legend(ax, fontsize="small")
    return ax
