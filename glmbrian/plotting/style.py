"""What all pictures share: axes, ticks, legends, and looks that need no colour."""

import matplotlib.pyplot as plt
import numpy as np
from brian2 import Quantity, have_same_dimensions, ms, second
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator

#: From blue over grey at zero to yellow.  Unlike a map from blue over white to red,
#: it gets lighter all the way, so that in grey the sign can still be seen.
DIVERGING = LinearSegmentedColormap.from_list(
    "glmbrian_diverging", ["#050a3c", "#1f57a4", "#8e9094", "#f0b04c", "#fffbd0"]
)

STYLES = ("-", "--", "-.", ":")
MARKERS = "osD^vx"
MOST_NAMES = 12  # in a legend, or along an axis
_MOST_MARKED = 60  # points of a line that gets a marker each
_LEGEND_COLUMNS = 3


def axes(ax):
    """Return `ax`, or the Axes of a new figure."""
    if ax is None:
        return plt.subplots(layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {ax!r}")
    return ax


def milliseconds(dt):
    """Return a checked time step, such as ``1*ms``, in ms; or None for None."""
    if dt is None:
        return None
    if not isinstance(dt, Quantity) or not have_same_dimensions(dt, second) or np.shape(dt):
        raise TypeError(f"dt must be a time such as 1*ms, got {dt!r}")
    if not 0 < dt / ms < np.inf:
        raise ValueError(f"dt must be above 0 and finite, got {dt!r}")
    return float(dt / ms)


def marker(index, n_points):
    """Return the marker of line number `index`, or None if it has too many points."""
    return MARKERS[index % len(MARKERS)] if n_points <= _MOST_MARKED else None


def grey(index):
    """Return the grey of curve number `index` of several that are drawn one by one."""
    return str(0.3 * (index % 3))


def integer_ticks(axis):
    axis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def index_ticks(n, most=8):
    """Return round numbers from 0 to n - 1, about `most` at the most."""
    ticks = MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]).tick_values(0, n - 1)
    return sorted({int(tick) for tick in ticks if 0 <= tick < n})


def some(n):
    """Return the slice of `n` things in a row of which there is room to name each."""
    return slice(None, None, -(-n // MOST_NAMES))


def lines_against_lag(ax, values, names, title, step):
    """Draw rows of `values`, shape (n_lines, window), told apart without colour.

    `step` is that of a lag in ms, or None for an axis in steps.
    """
    n_lines, window = values.shape
    is_named = n_lines <= MOST_NAMES
    for index, (row, name) in enumerate(zip(values, names)):
        ax.plot(
            np.arange(1, window + 1) * (step or 1),
            row,
            color=plt.get_cmap("viridis")(0.85 * index / max(n_lines - 1, 1)),
            linestyle=STYLES[index % len(STYLES)] if is_named else "-",
            marker=marker(index, window) if is_named else None,
            markersize=4,
            linewidth=1.3 if is_named else 0.8,
            label=str(name),
        )
    if step is None:
        integer_ticks(ax.xaxis)
    ax.set_xlabel("lag [steps]" if step is None else "lag [ms]")
    if is_named:
        legend_above(ax, n_lines, title)


def legend_above(ax, n_lines, title=None, columns=_LEGEND_COLUMNS):
    """Put a legend inside the axes, with room for it above all lines."""
    legend_rows = (title is not None) + -(-n_lines // columns)
    height = ax.get_window_extent().height / ax.figure.dpi
    share = min((0.18 * legend_rows + 0.15) / height, 0.5)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + (top - bottom) * share / (1 - share))
    ax.legend(
        title=title,
        loc="upper center",
        ncols=min(n_lines, columns),
        fontsize="small",
        title_fontsize="small",
        handlelength=1.8,
        columnspacing=0.8,
    )
