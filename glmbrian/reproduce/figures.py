"""The figures, in a style for print: curves differ in markers and lines, readable in grey.

Each function takes the rows of a table (see `tables`) and returns a Figure that is not
registered with pyplot.
"""

from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ..core.bases import RaisedCosineBasis
from ..support.storage import replacing
from .claims import TARGET
from .protocol import DECODINGS
from .tables import grouped, interval

#: Widths of a page with two columns, in inches.
PAGE, COLUMN = 7.16, 3.5

_STYLE: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "pdf.fonttype": 42,  # text stays text
}

_FIRST: dict[str, Any] = dict(color="black", marker="o", linestyle="-")
_RATE: dict[str, Any] = dict(color="0.45", marker="s", linestyle="--", markerfacecolor="white")

#: The curves of figures of accuracy: decoder, column, label and look.
_CURVES: tuple[tuple[str, str, str, dict[str, Any]], ...] = (
    ("first-to-spike", "accuracy", "first-to-spike", _FIRST),
    ("rate", "accuracy", "rate", _RATE),
    ("first-to-spike", "accuracy_by_spikes", "first-to-spike, ties at random",
     dict(color="black", marker="^", linestyle=":", markerfacecolor="white")),
    ("rate", "accuracy_by_spikes", "rate, ties at random",
     dict(color="0.45", marker="x", linestyle=":")),
)  # fmt: skip

_TITLES = {
    "paper": "the paper's settings",
    "package": "the settings of version 0.1",
    "package-averaged": "the package's settings",
}

#: Limits for intervals, which may extend beyond 0 and 1, where the logit scale ends.
_SHOWN = (0.05, 0.999)
_ACCURACIES = (0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995)
#: Values of T in figures with one curve or bar per T.
_STEPS = (4, 8, 16, 32)

_OPERATIONS = (20, 50, 100, 200, 500, 1000, 2000)

_HATCHES = ("", "////", "....", "xxxx")
_GREYS = ("0.15", "0.5", "0.75", "0.95")


def save(figure: Figure, path: Path, quick: bool) -> None:
    """Write a figure as PNG and PDF, marked "quick run" if `quick`."""
    with matplotlib.rc_context(_STYLE):
        if quick:
            figure.suptitle("quick run", fontsize=9, style="italic", weight="bold")
        with replacing(path.with_suffix(".png"), "output") as file:
            figure.savefig(file, format="png", dpi=200)
        with replacing(path.with_suffix(".pdf"), "output") as file:
            # Without a date, the same results give the same file.
            figure.savefig(file, format="pdf", metadata={"CreationDate": None})


def basis(n_basis: int = 4) -> Figure:
    """Fig. 3: the raised cosines with a = 7500 and c = 1, and their samples at the lags."""
    fine = 40  # points per lag
    window = n_basis + 2  # until the last function is 0
    sampled = RaisedCosineBasis(n_basis, window)
    # The same functions, on a finer axis.
    step = np.expm1(np.pi / (2 * 7500.0)) / fine
    smooth = RaisedCosineBasis(n_basis, window * fine + 1, dt=step)
    lags = np.arange(1, window + 1)
    with _axes(1, 1, COLUMN, 2.2) as (figure, [[ax]]):
        for k in range(n_basis):
            grey = str(0.6 * k / n_basis)
            style = ("-", "--", "-.", ":")[k % 4]
            ax.plot(1 + np.arange(window * fine + 1) / fine, smooth.matrix[:, k], style, color=grey)
            ax.plot(lags, sampled.matrix[:, k], "osD^"[k % 4], color=grey, label=f"$k={k + 1}$")
        ax.set_xlim(0.8, window + 0.2)
        ax.set_xticks(lags)
        ax.set_xlabel("lag [steps]")
        ax.set_ylabel("basis function")
        ax.set_ylim(-0.03, 1.03)
        _legend_below(figure, ax)
    return figure


def accuracy_vs_k(rows: list[dict]) -> Figure:
    """Fig. 4: test accuracy against the number of basis functions, T = 4."""
    classes = list(dict.fromkeys(row["classes"] for row in rows))
    settings = list(dict.fromkeys(row["settings"] for row in rows))
    n_rows = len(settings)
    with _axes(n_rows, len(classes), PAGE, 2.1 * n_rows, sharex=True, sharey="col") as (figure, axes):
        for line, name in zip(axes, settings):
            for ax, chosen in zip(line, classes):
                group = [r for r in rows if (r["settings"], r["classes"]) == (name, chosen)]
                _accuracy_curves(ax, group, "n_basis")
                ax.set_xticks(sorted({row["n_basis"] for row in rows}))
        _label_outer(axes, "number of basis functions $K$", None)
        for ax, chosen in zip(axes[0], classes):
            ax.set_title(_digits(chosen))
        for ax, name in zip(axes[:, 0], settings):
            ax.set_ylabel(f"test accuracy,\n{_TITLES[name]}")
        _legend_below(figure, axes[0][0])
    return figure


def accuracy_vs_complexity(rows: list[dict]) -> Figure:
    """Fig. 5: test accuracy against operations per class, K = T."""
    ann = [row for row in rows if row["decoder"] == "ann"]
    star: dict[str, Any] = dict(color="black", markersize=9, markerfacecolor="white")
    labels = "operations per class and image", "test accuracy"
    with _panels(rows, 3.1, *labels, sharex=True, sharey=True) as (figure, panels):
        for ax, _, group in panels:
            _accuracy_curves(ax, group, "operations_per_class")
            for row in ann:
                at = row["operations_per_class"], row["accuracy"]
                ax.plot(*at, "*", label="logistic ANN", **star)
            ax.axhline(TARGET, color="0.7", linewidth=0.7, zorder=0)
            at, system = (0.01, TARGET), ("axes fraction", "data")
            ax.annotate(f"{TARGET:.1%}", at, xycoords=system, va="bottom", fontsize=6, color="0.4")
            ax.set_xscale("log")
            _plain_ticks(ax.xaxis, _OPERATIONS)
        _legend_below(figure, panels[0][0])
    return figure


def decision_times(rows: list[dict]) -> Figure:
    """When first-to-spike decisions are made, for several T."""
    rows = [row for row in rows if row["decoder"] == "first-to-spike"]
    shown = _shown_steps(rows)
    labels = "time of the first output spike [steps]", "fraction of test images"
    with _panels(rows, 2.4, *labels, sharey=True) as (figure, panels):
        for ax, _, group in panels:
            for n_steps, grey, marker, line in zip(shown, "0246", "osD^", ("-", "--", "-.", ":")):
                steps, ends = _curve([r for r in group if r["n_steps"] == n_steps], "step", "fraction")
                look = dict(color=f"0.{grey}", marker=marker, markersize=3, linestyle=line)
                _plot_interval(ax, steps, ends.clip(0), label=f"$T={n_steps}$", **look)
        panels[-1][0].legend(frameon=False)
    return figure


def deadlines(rows: list[dict]) -> Figure:
    """Accuracy if the decision must be made by a deadline."""
    n_steps = max(row["n_steps"] for row in rows)
    with _panels(rows, 2.8, "deadline [steps]", "test accuracy", sharey=True) as (figure, panels):
        for ax, name, group in panels:
            longest = [row for row in group if row["n_steps"] == n_steps]
            _accuracy_curves(ax, longest, "deadline", markevery=max(1, n_steps // 8))
            ax.set_title(f"$K=T={n_steps}$, {_TITLES[name]}")
        _legend_below(figure, panels[0][0])
    return figure


def operations(rows: list[dict]) -> Figure:
    """Energy per decision by layer, in units of one addition."""
    shown = _shown_steps([row for row in rows if row["decoder"] != "ann"])
    bars = [(decoder, n_steps) for n_steps in shown for decoder in DECODINGS]
    names = [f"{decoder}, $T={n_steps}$" for decoder, n_steps in bars] + ["ANN"]
    layers = ("encoding", "synapses", "filters", "outputs")
    label = "energy per image [additions]"
    with _panels(rows, 2.6, label, None, sharey=True, sharex=True) as (figure, panels):
        for ax, _, group in panels:
            left = np.zeros(len(names))
            for layer, grey, hatch in zip(layers, _GREYS, _HATCHES):
                width = [_energy(group, layer, decoder=d, n_steps=n_steps) for d, n_steps in bars]
                width.append(_energy(rows, layer, decoder="ann"))
                look = dict(facecolor=grey, hatch=hatch, edgecolor="black", linewidth=0.5)
                ax.barh(names, width, left=left, label=layer, **look)
                left += width
        panels[0][0].invert_yaxis()
        _legend_below(figure, panels[0][0])
    return figure


# ------------------------------------------------------------------ parts of figures


@contextmanager
def _axes(n_rows, n_columns, width, height, **sharing):
    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots(n_rows, n_columns, squeeze=False, **sharing)


@contextmanager
def _panels(rows, height, x, y, **sharing):
    """Yield a figure with axes for each of the settings in `rows`: the axes, the name and its rows."""
    groups = {name: group for (name,), group in grouped(rows, ("settings",)).items() if name}
    with _axes(1, len(groups), PAGE, height, **sharing) as (figure, axes):
        for ax, name in zip(axes[0], groups):
            ax.set_title(_TITLES[name])
        yield figure, [(ax, name, group) for ax, (name, group) in zip(axes[0], groups.items())]
        _label_outer(axes, x, y)


def _accuracy_curves(ax, rows, x, **look):
    """Draw the accuracies of both decoders against the column `x`."""
    ax.set_yscale("logit")  # before drawing, for the margins
    for decoder, column, label, style in _CURVES:
        group = [row for row in rows if row["decoder"] == decoder]
        positions, ends = _curve(group, x, column)
        _plot_interval(ax, positions, ends.clip(*_SHOWN), label=label, **style, **look)
    _plain_ticks(ax.yaxis, _ACCURACIES)
    ax.grid(axis="y", color="0.92", linewidth=0.5)


def _curve(rows, x, column):
    """Return the mean position, and the mean and interval of a column, of each point."""
    positions, ends = [], []
    # Operations differ between the seeds of a point.
    key = "n_steps" if x == "operations_per_class" else x
    for group in grouped(rows, (key,)).values():
        positions.append(np.mean([row[x] for row in group]))
        ends.append(interval([row[column] for row in group]))
    return np.array(positions), np.array(ends)


def _plot_interval(ax, x, ends, **look):
    mean, low, high = ends.T
    ax.errorbar(x, mean, np.stack([mean - low, high - mean]), elinewidth=0.7, capsize=1.5, **look)


def _plain_ticks(axis, values):
    axis.set_major_locator(FixedLocator(values))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _energy(rows, layer, **where):
    """Return the mean energy of a layer over the fits whose rows have the values `where`."""
    fits = grouped(
        [r for r in rows if r["layer"] == layer and all(r[k] == v for k, v in where.items())],
        ("seed",),
    ).values()
    return np.mean([sum(row["energy"] for row in fit) for fit in fits]) if fits else 0.0


def _shown_steps(rows):
    """Return up to four values of T for which there are rows."""
    available = sorted({row["n_steps"] for row in rows})
    return [n_steps for n_steps in _STEPS if n_steps in available] or available[:4]


def _label_outer(axes, x, y):
    for ax in axes[-1]:
        ax.set_xlabel(x)
    for ax in axes[:, 0]:
        ax.set_ylabel(y)


def _legend_below(figure, ax):
    handles, labels = ax.get_legend_handles_labels()
    if labels[0] == "logistic ANN":  # matplotlib puts lines before error bars
        handles, labels = handles[1:] + handles[:1], labels[1:] + labels[:1]
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)


def _digits(classes):
    digits = classes.split()
    return "all ten digits" if len(digits) == 10 else "digits " + ", ".join(digits)
