"""When decisions were made, and how many were right by then."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..classifier.classifier import GLMClassifier
from ..support.validation import integer
from .style import axes, curve_name, grey, integer_ticks, legend, marker

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_CURVE = "glmbrian accuracy by deadline"
_NAMES = ("label", "decided", "step", "silent")


def plot_decision_times(
    decisions: Any, ax: "Axes | None" = None, *, n_steps: int | None = None
) -> "Axes":
    """Plot how many presentations were decided in each step, rightly and wrongly.

    Presentations without any output spike, which something else decided (see
    `GLMClassifier`, `on_silence`), have a separate bar on the right.

    Parameters
    ----------
    decisions : GLMClassifier, or an object with the four attributes below
        A classifier after `evaluate` or `score`, or its `decisions_`:

        label, decided : array_like, shape (n,)
            The true class and the decided class of each presentation.
        step : array_like of int, shape (n,)
            The step of the decision, from 1.
        silent : array_like of bool, shape (n,)
            Whether no output spiked.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    n_steps : int, optional
        Steps per presentation.  By default the classifier's, or the step of the
        latest decision.

    Returns
    -------
    matplotlib Axes
        With two bars per step, "wrong" stacked on "right", in presentations; and two
        for presentations without a spike, if there are any.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or shape, or a classifier has not been
        evaluated.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import glmbrian as glm
    >>> decisions = SimpleNamespace(label=[5, 5, 7, 7], decided=[5, 7, 7, 5],
    ...                             step=[1, 2, 2, 4], silent=[False, False, False, True])
    >>> ax = glm.plotting.plot_decision_times(decisions)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['right', 'wrong']
    """
    decisions = _decisions(decisions, n_steps)
    n_steps, spiked = decisions.n_steps, ~decisions.silent
    # Presentations without a spike have a bar to the right of the steps.
    apart = n_steps + max(1.5, 0.1 * n_steps)
    width = max(0.8, 0.04 * n_steps)
    ax = axes(ax)
    below = np.zeros(n_steps + 1)
    for name, chosen, color in (
        ("right", decisions.right, "0.3"),
        ("wrong", ~decisions.right, "white"),
    ):
        counts = np.bincount(decisions.step[chosen & spiked], minlength=n_steps + 1)[1:]
        counts = np.append(counts, np.sum(chosen & ~spiked))
        shown = slice(None) if decisions.silent.any() else slice(n_steps)
        ax.bar(
            np.append(np.arange(1, n_steps + 1), apart)[shown],
            counts[shown],
            np.append(np.full(n_steps, 0.8), width)[shown],
            bottom=below[shown],
            facecolor=color,
            edgecolor="black",
            linewidth=0.6,
            label=name,
        )
        below += counts
    integer_ticks(ax.xaxis)
    integer_ticks(ax.yaxis)
    ax.set_ylim(0, 1.05 * below.max())
    ax.set_xlim(0.4, n_steps + 0.6)
    if decisions.silent.any():
        ax.set_xlim(0.4, apart + 0.5 * width + 0.3)
        ax.axvline((n_steps + 0.4 + apart - 0.5 * width) / 2, color="0.6", linewidth=0.8)
        _name_apart(ax, apart, n_steps)
    ax.set_xlabel("decision time [steps]")
    ax.set_ylabel("presentations")
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize="small", frameon=False)
    return ax


def plot_accuracy_by_deadline(
    decisions: Any,
    ax: "Axes | None" = None,
    *,
    label: str | None = None,
    n_steps: int | None = None,
) -> "Axes":
    """Plot the fraction of presentations that were decided rightly by each step.

    A dashed line above it shows the fraction that was decided at all.  Only output spikes
    count: without one, `GLMClassifier` decides at the end of a presentation
    (`on_silence`), so `score` may be above the end of the curve.

    Parameters
    ----------
    decisions : GLMClassifier, or an object with four attributes
        As for `plot_decision_times`.
    ax : matplotlib Axes, optional
        By default those of a new figure.  A second pair of curves in the same Axes is
        drawn in a different style.
    label : str, optional
        What was tested, for the legend.
    n_steps : int, optional
        As for `plot_decision_times`.

    Returns
    -------
    matplotlib Axes
        With two lines of shape (n_steps,) over the deadline in steps.

    Raises
    ------
    TypeError, ValueError
        As for `plot_decision_times`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> import glmbrian as glm
    >>> decisions = SimpleNamespace(label=[5, 5, 7, 7], decided=[5, 7, 7, 5],
    ...                             step=[1, 2, 2, 4], silent=[False, False, False, True])
    >>> right, decided = glm.plotting.plot_accuracy_by_deadline(decisions).lines
    >>> right.get_ydata().tolist(), decided.get_ydata().tolist()
    ([0.25, 0.5, 0.5, 0.5], [0.25, 0.75, 0.75, 0.75])
    """
    decisions = _decisions(decisions, n_steps)
    n_steps, spiked = decisions.n_steps, ~decisions.silent
    ax = axes(ax)
    index = sum(line.get_gid() == _CURVE for line in ax.lines)
    deadlines = np.arange(1, n_steps + 1)
    curves: list[tuple[str, np.ndarray, dict[str, Any]]] = [
        ("right", spiked & decisions.right, dict(markersize=4, zorder=2.2, gid=_CURVE)),
        ("decided", spiked, dict(linestyle="--", linewidth=1, markersize=6, markerfacecolor="white")),
    ]
    for name, chosen, look in curves:
        by_step = np.bincount(decisions.step[chosen], minlength=n_steps + 1)[1:]
        ax.plot(
            deadlines,
            by_step.cumsum() / len(decisions.step),
            color=grey(index),
            marker=marker(index, n_steps),
            label=curve_name(name if label is None else f"{label}: {name}"),
            **look,
        )
    longest = max(np.size(line.get_xdata()) for line in ax.lines if line.get_gid() == _CURVE)
    ax.set_xlim(0.5, longest + 0.5)
    ax.set_ylim(-0.03, 1.03)
    integer_ticks(ax.xaxis)
    ax.set_xlabel("deadline [steps]")
    ax.set_ylabel("fraction of presentations")
    legend(ax, loc="best", fontsize="small")
    return ax


def _name_apart(ax, position, n_steps):
    """Add a tick "no spike" at a position to those of the steps."""
    ticks = [tick for tick in ax.xaxis.get_major_locator().tick_values(1, n_steps)
             if 1 <= tick <= n_steps]  # fmt: skip
    ax.set_xticks([*ticks, position], [*(f"{tick:g}" for tick in ticks), "no\nspike"])


# ------------------------------------------------------------------ checks


@dataclass(frozen=True)
class _Decisions:
    right: np.ndarray
    step: np.ndarray
    silent: np.ndarray
    n_steps: int | None


def _decisions(decisions, n_steps):
    """Return the checked decisions of a classifier or of an object with the attributes."""
    held, steps_of_model = decisions, 1
    if isinstance(decisions, GLMClassifier):
        held, steps_of_model = getattr(decisions, "decisions_", None), int(decisions.n_steps)
        if held is None:
            raise ValueError(
                "decisions: the classifier has decided nothing yet; call its evaluate or score"
            )
    if not all(hasattr(held, name) for name in _NAMES):
        raise TypeError(
            "decisions must be a GLMClassifier that was evaluated, or an object with the "
            f"attributes {', '.join(_NAMES)}, got {decisions!r}"
        )
    label, decided, step, silent = (np.asarray(getattr(held, name)) for name in _NAMES)
    if {label.shape, decided.shape, step.shape, silent.shape} != {(step.size,)} or step.size == 0:
        raise ValueError(
            "decisions: label, decided, step and silent must have one shape (n,) with n of at "
            f"least 1, got {label.shape}, {decided.shape}, {step.shape} and {silent.shape}"
        )
    if step.dtype.kind not in "iu" or silent.dtype.kind != "b":
        raise TypeError(
            f"decisions: step must hold integers and silent bools, got dtypes {step.dtype} "
            f"and {silent.dtype}"
        )
    if step.min() < 1:
        raise ValueError(f"decisions: step must be at least 1, got {step.min()}")
    latest = int(step.max())
    n_steps = max(steps_of_model, latest) if n_steps is None else integer(n_steps, "n_steps", latest)
    return _Decisions(label == decided, step, silent, n_steps)
