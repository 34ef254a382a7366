"""Learning curves of one fit, or the mean of several."""

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..classifier.classifier import GLMClassifier
from ..support.validation import finite_array
from .style import STYLES, axes, curve_name, grey, integer_ticks, legend, marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE = "glmbrian learning curve"


def plot_learning_curve(
    classifier: Any, ax: "Axes | None" = None, *, label: str | None = None
) -> "Axes":
    """Plot the mean log-likelihood of the training presentations in each epoch.

    Of a classifier that was fitted with `early_stopping`, the validation accuracy is shown too, on
    an axis at the right.

    For several fits, such as fits with several seeds, plot the mean over them, with a
    band of one standard deviation on either side.

    Parameters
    ----------
    classifier : GLMClassifier, array_like of float, or a list of these
        A fitted classifier, or its `history_` of shape (n_epochs,); or several with
        the same number of epochs, such as an array of shape (n_trainings, n_epochs).
    ax : matplotlib Axes, optional
        By default those of a new figure.  A second curve in the same Axes is
        drawn in a different style.
    label : str, optional
        Name of the curve in a legend.

    Returns
    -------
    matplotlib Axes
        With a line of the mean log-likelihood in nats against the epoch, from 1, both
        of shape (n_epochs,).

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type, or the numbers of epochs differ.
    sklearn.exceptions.NotFittedError
        If a classifier is not fitted.

    Examples
    --------
    >>> import glmbrian as glm
    >>> ax = glm.plotting.plot_learning_curve([-0.7, -0.5, -0.4], label="one seed")
    >>> ax = glm.plotting.plot_learning_curve([[-0.8, -0.6, -0.5], [-0.6, -0.4, -0.5]], ax,
    ...                                       label="two seeds")
    >>> ax.lines[1].get_ydata().tolist()
    [-0.7, -0.5, -0.5]
    """
    histories = _histories(classifier)
    n_trainings, n_epochs = histories.shape
    ax = axes(ax)
    index = sum(line.get_gid() == _CURVE for line in ax.lines)
    epochs, mean = np.arange(1, n_epochs + 1), histories.mean(axis=0)
    ax.plot(
        epochs,
        mean,
        color=grey(index),
        linestyle=STYLES[index % len(STYLES)],
        marker=marker(index, n_epochs),
        markersize=3.5,
        label=curve_name(label),
        gid=_CURVE,
    )
    if n_trainings > 1:
        spread = histories.std(axis=0, ddof=1)
        ax.fill_between(
            epochs,
            mean - spread,
            mean + spread,
            facecolor=grey(index),
            alpha=0.15,
            linewidth=0,
            label="_band",
        )
    longest = max(np.size(line.get_xdata()) for line in ax.lines if line.get_gid() == _CURVE)
    margin = max(0.5, 0.03 * longest)
    ax.set_xlim(1 - margin, max(longest, 1) + margin)
    integer_ticks(ax.xaxis)
    ax.set_xlabel("epoch")
    ax.set_ylabel("mean log-likelihood [nats]")
    if label is not None:
        legend(ax, loc="best", fontsize="small")
    if isinstance(classifier, GLMClassifier) and hasattr(classifier, "validation_scores_"):
        right = ax.twinx()
        scores = classifier.validation_scores_
        right.plot(np.arange(1, len(scores) + 1), scores, color="tab:blue", linestyle="--")
        right.set_ylabel("validation accuracy", color="tab:blue")
    return ax


def _histories(classifier):
    """Return checked histories, shape (n_trainings, n_epochs)."""
    several = [classifier]
    is_list = isinstance(classifier, (list, tuple)) or getattr(classifier, "ndim", 0) > 0
    if is_list and any(isinstance(one, GLMClassifier) or np.ndim(one) for one in classifier):
        several = classifier
    histories = [_history(one) for one in several]
    lengths = sorted({len(history) for history in histories})
    if len(lengths) > 1:
        raise ValueError(f"classifier: all fits must have the same number of epochs, got {lengths}")
    return np.stack(histories)


def _history(classifier):
    if isinstance(classifier, GLMClassifier):
        check_is_fitted(classifier, "weights_")
        return classifier.history_
    if not isinstance(classifier, (list, tuple, np.ndarray)):
        raise TypeError(
            "classifier must be a fitted GLMClassifier, its history_, a list of these, or an array "
            f"such as the log_likelihoods of a Trainer, got {classifier!r}"
        )
    return finite_array(classifier, "classifier (a history)", ("n_epochs",))
