"""Rasters: the spikes of one or many presentations, and the decisions."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from brian2 import SpikeMonitor, ms
from numpy.typing import ArrayLike

from ..devices.problem import Trace
from ..recording.recording import Recording
from ..support.validation import binary_array, integer, plain_array
from .monitors import recorded_spikes
from .style import axes, index_ticks, integer_ticks, label_slice, legend_above, milliseconds, plain

if TYPE_CHECKING:
    from brian2 import Quantity
    from matplotlib.axes import Axes

# Width of a letter in the labels of presentations, and the gap between labels, in points
_LETTER = 6.0
_BETWEEN_LABELS = 5.0

#: Height of the band of a hidden layer, as a fraction of that of the inputs.
_HIDDEN_BAND = 0.35


def plot_raster(
    spikes: "Trace | list[Trace] | SpikeMonitor | Recording | ArrayLike",
    classes: ArrayLike | None = None,
    label: Any = None,
    ax: "Axes | None" = None,
    *,
    n_steps: int | None = None,
    dt: "Quantity | None" = None,
) -> "Axes":
    """Plot spikes, and mark the decisions.

    A single presentation is shown with its inputs.  Dots are input spikes, and those of
    hidden layers in the shaded bands above; the larger marks in the rows at the top are output
    spikes, one row per output.  A dashed line marks
    the step of the decision: the step of the first output spike with first-to-spike
    decoding, the last step with rate decoding.

    Of several presentations in sequence, only the outputs are shown.  Every second
    presentation is shaded, and a ring marks the first spike of each, which decides in
    first-to-spike decoding.  (If several outputs spike first in the same step, and the
    decision between them is unknown, each has a ring.)

    Parameters
    ----------
    spikes : Trace, list of Trace, SpikeMonitor, Recording, or array_like of 0/1, shape (T, n)
        One presentation, or several, as `GLMClassifier.record` returns them: input
        spikes of shape (steps, n_inputs), output spikes of shape (steps, n_outputs), and
        the class decided.  Or the spikes of output neurons recorded by Brian, with
        presentations of `n_steps` steps from time 0 on.  Or a recording, or binned trains, one row
        per step and one column per unit.
    classes : array_like, shape (n_outputs,), optional
        Class of each output, such as `classifier.classes_`; by default outputs are
        labelled with their index.
    label : optional
        The true class of a single presentation, for the title; for several, an
        array_like of shape (n_presentations,), shown above.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    n_steps : int, optional
        Steps per presentation, for a SpikeMonitor or trains.  By default their spikes are shown
        without presentations.
    dt : Quantity of time, optional
        Duration of a step of trains, for an axis in ms.

    Returns
    -------
    matplotlib Axes
        Lines labelled ``"input spikes"`` (of one presentation only), ``"output
        spikes"`` (of recordings and trains ``"spikes"``), and ``"decision"`` or ``"first spike"``.  Time
        is in steps from 1, or in ms for a SpikeMonitor, a Recording, or trains with `dt`.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or shape.

    Examples
    --------
    >>> import numpy as np
    >>> import glmbrian as glm
    >>> from brian2 import Network, SpikeMonitor, ms, prefs
    >>> prefs.codegen.target = "numpy"
    >>> images = np.array([[255, 0], [0, 255], [255, 255]], dtype=np.uint8)
    >>> encoder = glm.RateEncoder(images, n_steps=8, random_state=0, dt=1 * ms)
    >>> monitor = SpikeMonitor(encoder)
    >>> Network(encoder, monitor).run(24 * ms)
    >>> ax = glm.plotting.plot_raster(monitor, ["a", "b"], n_steps=8)
    >>> len(ax.patches)  # of three presentations the second is shaded
    1
    """
    is_sequence = isinstance(spikes, (list, tuple)) and len(spikes) > 0 and _all_traces(spikes)
    has_steps = isinstance(spikes, (Trace, Recording)) or is_sequence
    if n_steps is not None and has_steps:
        raise TypeError(
            "n_steps is for a SpikeMonitor or trains; a Trace has its own steps, a Recording none"
        )
    if dt is not None and (has_steps or isinstance(spikes, SpikeMonitor)):
        raise TypeError("dt is for trains only, as an array of steps by units")
    if isinstance(spikes, Trace):
        classes = _check_classes(classes, spikes.outputs.shape[1])
        return _one_presentation(spikes, classes, label, axes(ax))
    if isinstance(spikes, SpikeMonitor):
        shown = _of_monitor(spikes, n_steps)
    elif isinstance(spikes, Recording):
        shown = _of_recording(spikes)
    elif is_sequence:
        traces: list[Trace] = list(spikes)  # type: ignore[arg-type]
        shown = _of_traces(traces, _check_classes(classes, traces[0].outputs.shape[1]))
    else:
        shown = _of_trains(spikes, n_steps, milliseconds(dt))
    classes = _check_classes(classes, shown.n_outputs)
    n_presentations = len(shown.ends) - 1
    if label is not None and np.shape(label) != (n_presentations,):
        raise ValueError(
            f"label must have the shape ({n_presentations},), one per presentation, got {np.shape(label)}"
        )
    return _many_presentations(shown, classes, label, axes(ax))


# ------------------------------------------------------------------ one presentation


def _one_presentation(trace, classes, label, ax):
    (n_steps, n_inputs), n_outputs = trace.inputs.shape, trace.outputs.shape[1]
    # Rows of outputs continue above the inputs, in units of the input index.
    row_height = n_inputs * min(0.12, 0.8 / n_outputs)
    border = n_inputs - 0.5 + 0.5 * row_height
    band_names, bands = [], []
    for number, train in enumerate(trace.hidden, start=1):
        height = _HIDDEN_BAND * n_inputs
        _draw_hidden(ax, train, border, height, number)
        band_names.append("hidden" if len(trace.hidden) == 1 else f"hidden {number}")
        bands.append(border + height / 2)
        border += height
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

    input_ticks = index_ticks(n_inputs, 4)
    named = label_slice(n_outputs)
    names = [f"output {j}" for j in range(n_outputs)]
    if classes is not None:
        names = [plain(f"class {name}") for name in classes]
    ax.set_yticks(
        [*input_ticks, *bands, *rows[named]],
        [*map(str, input_ticks), *band_names, *names[named]],
    )
    if n_outputs > 5:
        for text in ax.get_yticklabels()[len(input_ticks) + len(bands) :]:
            text.set_fontsize("x-small")
    bottom = -0.5 - 0.25 * row_height
    ax.set_ylim(bottom, top)
    ax.set_ylabel("input index", y=(n_inputs - bottom) / (top - bottom) / 2)
    ax.set_xlim(0.5, n_steps + 0.5)
    integer_ticks(ax.xaxis)
    ax.set_xlabel("time [steps]")

    title = [] if label is None else [f"class {label}"]
    if is_silent:
        title.append("no spike")
    if trace.decided is not None:
        is_rejected = is_silent and classes is not None and trace.decided not in classes.tolist()
        when = "" if is_silent else f" at step {n_steps}"
        title.append("rejected" if is_rejected else f"decided {trace.decided}{when}")
    ax.set_title(plain(", ".join(title)), fontsize="medium")
    return ax


def _draw_hidden(ax, train, border, height, number):
    """Draw the spikes of a hidden layer in the band of this height above `border`."""
    steps, neurons = np.nonzero(train)
    n_neurons = train.shape[1]
    if number % 2:
        ax.axhspan(border, border + height, color="0.97", linewidth=0, zorder=-1)
    rows = border + height * (neurons + 1) / (n_neurons + 1)
    size = np.clip(25 / math.sqrt(n_neurons), 2, 5)
    ax.plot(steps + 1, rows, ".", color="tab:blue", markersize=size, label="hidden spikes")


# ------------------------------------------------------------------ many presentations


@dataclass(frozen=True)
class _Presentations:
    """Output spikes of consecutive presentations.

    times : ndarray of float, shape (n_spikes,), in steps or in ms
    outputs : ndarray of int, shape (n_spikes,)
    ends : ndarray of float, shape (n_presentations + 1,)
        Where presentations begin and end, halfway between steps.
    is_first : ndarray of bool, shape (n_spikes,)
        Whether a spike decides its presentation; or None without presentations.
    """

    n_outputs: int
    times: np.ndarray
    outputs: np.ndarray
    ends: np.ndarray
    is_first: np.ndarray
    unit: str
    what: str = "output"


def _of_traces(traces, classes):
    widths = {trace.outputs.shape[1] for trace in traces}
    if len(widths) > 1:
        raise ValueError(
            f"spikes: all traces must have the same number of outputs, got {sorted(widths)}"
        )
    ends = np.cumsum([0] + [len(trace.outputs) for trace in traces])
    times, outputs = np.nonzero(np.concatenate([trace.outputs for trace in traces]))
    is_first = _first_of_each(times, np.searchsorted(ends, times, side="right") - 1)
    if classes is not None:
        for begin, end, trace in zip(ends, ends[1:], traces):
            inside = is_first & (begin <= times) & (times < end)
            decides = inside & (classes[outputs] == trace.decided)
            if decides.any():  # of several outputs that spiked first
                is_first[inside & ~decides] = False
    return _Presentations(widths.pop(), times + 1, outputs, ends + 0.5, is_first, "steps")


def _of_monitor(monitor, n_steps):
    """Return the spikes of a monitor, in presentations of so many steps if any."""
    step = float(monitor.source.clock.dt / ms)
    times, outputs = recorded_spikes(monitor, "spikes")
    steps = np.rint(times / step).astype(int)
    # The clock is at the end of the run, but a standalone device may leave it at 0.
    n_run = round(float(monitor.source.clock.t / ms) / step)
    n_run = max(n_run, steps.max(initial=0) + 1)
    ends, is_first = _in_presentations(steps, n_run, n_steps)
    n_outputs = len(monitor.source)
    return _Presentations(n_outputs, steps * step, outputs, (ends - 0.5) * step, is_first, "ms")


def _of_recording(recording):
    times = [np.asarray(of_unit / ms) for of_unit in recording.times]
    units = np.repeat(np.arange(len(times)), [len(of_unit) for of_unit in times])
    ends = np.array([float(recording.t_start / ms), float(recording.t_stop / ms)])
    return _Presentations(len(times), np.concatenate(times), units, ends, None, "ms", "unit")


def _of_trains(spikes, n_steps, step):
    try:
        trains = plain_array(spikes, "spikes", "0 and 1")
        is_matrix = trains.ndim == 2 and trains.dtype.kind in "buif"
    except (TypeError, ValueError):
        is_matrix = False
    if not is_matrix:
        raise TypeError(
            "spikes must be a Trace that GLMClassifier.record returned, a list of these, a SpikeMonitor, a "
            f"Recording, or trains of 0 and 1 of the shape (steps, units), got {spikes!r}"
        )
    trains = binary_array(trains, "spikes")
    steps, units = np.nonzero(trains)
    ends, is_first = _in_presentations(steps, len(trains), n_steps)
    if step is None:
        return _Presentations(trains.shape[1], steps + 1, units, ends + 0.5, is_first, "steps", "unit")
    times = (steps * step, units, (ends - 0.5) * step)
    return _Presentations(trains.shape[1], *times, is_first, "ms", "unit")


def _in_presentations(steps, n_run, n_steps):
    """Return where presentations begin and end, and which spikes are the first of theirs, if there are any."""
    if n_steps is None:
        return np.array([0, n_run]), None
    n_steps = integer(n_steps, "n_steps")
    ends = np.arange(-(-n_run // n_steps) + 1) * n_steps
    return ends, _first_of_each(steps, steps // n_steps)


def _first_of_each(times, presentations):
    """Return which spikes are in the same step as the first of their presentation."""
    earliest = np.full(presentations.max(initial=-1) + 1, np.inf)
    np.minimum.at(earliest, presentations, times)
    return times == earliest[presentations]


def _many_presentations(shown, classes, label, ax):
    n_outputs, ends = shown.n_outputs, shown.ends
    for begin, end in zip(ends[1::2], ends[2::2]):
        ax.axvspan(begin, end, color="0.9", linewidth=0, zorder=-1)
    size = np.clip(min(120, 500 * n_outputs / max(len(shown.times), 1)) / n_outputs, 2, 5)
    name = "output spikes" if shown.what == "output" else "spikes"
    ax.plot(shown.times, shown.outputs, "o", color="black", markersize=size, label=name)
    if shown.is_first is not None:
        ax.plot(
            shown.times[shown.is_first],
            shown.outputs[shown.is_first],
            "o",
            color="black",
            markerfacecolor="none",
            markersize=size + 5,
            label="first spike",
        )
    margin = 0.01 * (ends[-1] - ends[0])  # for the rings
    ax.set_xlim(ends[0] - margin, ends[-1] + margin)
    ax.set_xlabel(f"time [{shown.unit}]")
    if shown.unit == "steps":
        integer_ticks(ax.xaxis)
    if classes is None:
        ax.set_yticks(index_ticks(n_outputs))
        ax.set_ylabel(f"{shown.what} index" if shown.what == "output" else shown.what)
    else:
        named = label_slice(n_outputs)
        ax.set_yticks(np.arange(n_outputs)[named], [plain(name) for name in classes.tolist()[named]])
        ax.set_ylabel("class" if shown.what == "output" else shown.what)
    margin = 0.4 + 0.03 * n_outputs
    ax.set_ylim(-margin, n_outputs - 1 + margin)
    legend_above(ax, 2, columns=2)
    if label is not None:
        _label_presentations(ax, ends, label)
    return ax


def _label_presentations(ax, ends, label):
    """Write the true classes above their presentations, as many as there is room for."""
    names = [str(name) for name in np.asarray(label).tolist()]
    centers = (ends[:-1] + ends[1:]) / 2
    low, high = ax.get_xlim()
    positions = (centers - low) / (high - low) * ax.get_window_extent().width * 72 / ax.figure.dpi
    widths = _LETTER * np.array([len(name) for name in names]) + _BETWEEN_LABELS
    is_turned = np.any(np.diff(positions) < (widths[1:] + widths[:-1]) / 2)
    shown = [0]
    for index, position in enumerate(positions[1:], start=1):
        if not is_turned or position - positions[shown[-1]] >= 1.5 * _LETTER + _BETWEEN_LABELS:
            shown.append(index)
    above = ax.secondary_xaxis("top")
    above.set_xticks(centers[shown], [plain(names[index]) for index in shown])
    above.tick_params(length=0, labelsize="small", rotation=90 if is_turned else 0)
    above.set_xlabel("true class")


# ------------------------------------------------------------------ checks


def _all_traces(spikes):
    return all(isinstance(trace, Trace) for trace in spikes)


def _check_classes(classes, n_outputs):
    if classes is None:
        return None
    classes = np.asarray(classes)
    if classes.shape != (n_outputs,):
        raise ValueError(
            f"classes must have the shape ({n_outputs},), one per output, got {classes.shape}"
        )
    return classes
