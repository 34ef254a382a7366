"""What all pictures share: axes, ticks, legends, and looks that need no colour."""

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from brian2 import Quantity, have_same_dimensions, ms, second
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.ticker import MaxNLocator

#: From blue through grey at zero to yellow.  Unlike a map from blue through white to red,
#: it gets lighter all the way, so the sign is still visible in grey.
DIVERGING = LinearSegmentedColormap.from_list(
    "glmbrian_diverging", ["#050a3c", "#1f57a4", "#8e9094", "#f0b04c", "#fffbd0"]
)

#: For matrices of pairs: white at zero, so that what is weak recedes, and grey where there is nothing to show.
SIGNED, NOTHING = "RdBu_r", "0.75"

STYLES = ("-", "--", "-.", ":")
MARKERS = "osD^vx"
MOST_NAMES = 12  # in a legend, or along an axis
#: Half the width of a 95% interval in standard errors.
WIDTH_OF_95 = 1.96
_MOST_REASONS = 4  # why lags are left out
_MOST_MARKED = 60  # the most points of a line with markers
_LEGEND_COLUMNS = 3
_NO_WIDTH = "\u200b"  # a space of no width


def axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the Axes of a new figure if it is None."""
    if ax is None:
        return plt.subplots(layout="constrained")[1]
    if not isinstance(ax, Axes):
        raise TypeError(f"ax must be matplotlib Axes, got {ax!r}")
    return ax


def milliseconds(dt: Quantity | None) -> float | None:
    """Return a checked time step, such as ``1*ms``, in ms; None for None."""
    if dt is None:
        return None
    if not isinstance(dt, Quantity) or not have_same_dimensions(dt, second) or np.shape(dt):
        raise TypeError(f"dt must be a time such as 1*ms, got {dt!r}")
    if not 0 < dt / ms < np.inf:
        raise ValueError(f"dt must be above 0 and finite, got {dt!r}")
    return float(dt / ms)


def marker(index: int, n_points: int) -> str | None:
    """Return the marker for line number `index`, or None if the line has too many points."""
    return MARKERS[index % len(MARKERS)] if n_points <= _MOST_MARKED else None


def grey(index: int) -> str:
    """Return the grey for curve number `index` of several in the same Axes."""
    return str(0.3 * (index % 3))


def integer_ticks(axis: Axis) -> None:
    axis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10], min_n_ticks=1))


def index_ticks(n: int, most: int = 8) -> list[int]:
    """Return round numbers from 0 to n - 1, not many more than `most`."""
    ticks = MaxNLocator(most, integer=True, steps=[1, 2, 5, 10]).tick_values(0, n - 1)
    return sorted({int(tick) for tick in ticks if 0 <= tick < n})


def plain(text: Any) -> str:
    """Return a user's text such that matplotlib draws it unchanged: dollar signs do not begin a formula.

    Examples
    --------
    >>> plain("US$") == "US" + chr(92) + "$"
    True
    """
    return str(text).replace("$", r"\$")


def curve_name(text: Any) -> str | None:
    """Return a user's text, or None, as the label of a curve, which `legend` shows unchanged."""
    if text is None:
        return None
    # Matplotlib leaves out curves whose names begin with an underscore.
    return f"{_NO_WIDTH}{plain(text)}" if str(text).startswith("_") else plain(text)


def legend(ax: Axes, **look: Any) -> None:
    """Draw a legend of the curves in `ax`, named by `curve_name`."""
    for text in ax.legend(**look).get_texts():
        text.set_text(text.get_text().removeprefix(_NO_WIDTH))


def label_slice(n: int) -> slice:
    """Return the slice that takes at most `MOST_NAMES` of `n` things, to label them."""
    return slice(None, None, -(-n // MOST_NAMES))


def lines_against_lag(
    ax: Axes,
    values: np.ndarray,
    names: Iterable[Any],
    title: str,
    step: float | None,
    errors: np.ndarray | None = None,
    left_out: Mapping[str, np.ndarray] | None = None,
) -> None:
    """Draw rows of `values`, shape (n_lines, window), distinguishable without colour.

    `step` is the duration of a lag in ms, or None for an axis in steps.  With standard `errors`,
    of the same shape, there is a 95% band around each line where they are finite.  `left_out` says why
    some values, as masks of the same shape, do not count for the scale.
    """
    n_lines, window = values.shape
    names = [str(name) for name in names]
    is_named = n_lines <= MOST_NAMES
    lags = np.arange(1, window + 1) * (step or 1)
    for index, (row, name) in enumerate(zip(values, names)):
        color = plt.get_cmap("viridis")(0.85 * index / max(n_lines - 1, 1))
        if errors is not None and np.isfinite(errors[index]).all():
            band = WIDTH_OF_95 * errors[index]
            ax.fill_between(lags, row - band, row + band, color=color, alpha=0.2, linewidth=0)
        ax.plot(
            lags,
            row,
            color=color,
            linestyle=STYLES[index % len(STYLES)] if is_named else "-",
            marker=marker(index, window) if is_named else None,
            markersize=4,
            linewidth=1.3 if is_named else 0.8,
            label=curve_name(name),
        )
    if left_out:
        unit = "steps" if step is None else "ms"
        _leave_out(ax, lags, values, errors, left_out, names, unit)
    if step is None:
        integer_ticks(ax.xaxis)
    ax.set_xlabel("lag [steps]" if step is None else "lag [ms]")
    if is_named:
        legend_above(ax, n_lines, title)


def _leave_out(ax, lags, values, errors, left_out, names, unit):
    """Scale the axis to the values that are not left out, and say which are, and why."""
    kept = ~np.any(list(left_out.values()), axis=0)
    if values[kept].any():
        band = np.zeros(values.shape) if errors is None else WIDTH_OF_95 * errors
        band = np.where(np.isfinite(band).all(axis=1, keepdims=True), band, 0.0)
        low = min((values - band)[kept].min(), 0.0)
        high = max((values + band)[kept].max(), 0.0)
        margin = 0.05 * (high - low)
        ax.set_ylim(low - margin, high + margin)
    half = 0.5 * lags[0]
    said: dict[str, list[str]] = {}
    for why, masks in left_out.items():
        for lag in lags[masks.any(axis=0)]:
            ax.axvspan(lag - half, lag + half, color="0.9", linewidth=0, zorder=-1)
        for name, own in zip(names, masks):
            if own.any():
                said.setdefault(f"{_range_of(lags, own, unit)} {why}", []).append(name)
    lines = [
        text if len(values) == 1 else f"{', '.join(of_lines)}: {text}"
        for text, of_lines in said.items()
    ]
    if len(lines) > _MOST_REASONS:
        lines[_MOST_REASONS - 1 :] = [f"and {len(lines) - _MOST_REASONS + 1} more"]
    box = {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1}
    look: dict[str, Any] = dict(ha="right", va="bottom", fontsize="small", bbox=box)
    ax.text(0.99, 0.02, "\n".join(lines), transform=ax.transAxes, **look)


def _range_of(lags, chosen, unit):
    """Return in words which lags are chosen."""
    last = int(np.flatnonzero(chosen)[-1])
    if chosen[: last + 1].all():
        return f"all {lags[last]:g} {unit}" if last == len(lags) - 1 else f"first {lags[last]:g} {unit}"
    return f"{np.count_nonzero(chosen)} of {len(lags)} lags"


def legend_above(
    ax: Axes, n_lines: int, title: str | None = None, columns: int = _LEGEND_COLUMNS
) -> None:
    """Put a legend inside the axes, and make room for it above the lines."""
    legend_rows = (title is not None) + -(-n_lines // columns)
    height = ax.get_window_extent().height / ax.figure.dpi
    share = min((0.18 * legend_rows + 0.15) / height, 0.5)
    bottom, top = ax.get_ylim()
    ax.set_ylim(bottom, top + (top - bottom) * share / (1 - share))
    legend(
        ax,
        title=title,
        loc="upper center",
        ncols=min(n_lines, columns),
        fontsize="small",
        title_fontsize="small",
        handlelength=1.8,
        columnspacing=0.8,
    )
