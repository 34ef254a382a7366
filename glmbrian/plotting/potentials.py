"""Membrane potentials over time, with threshold and spikes."""

from typing import TYPE_CHECKING

import numpy as np
from brian2 import StateMonitor, ms

from ..brian.neurons import GLMNeurons
from ..brian.subgroups import span, whole_group
from ..core.activations import SIGMOID, Activation, get_activation
from ..devices.problem import Trace
from ..support.validation import integer
from .monitors import recorded_spikes
from .style import axes, integer_ticks, legend_above, marker

if TYPE_CHECKING:
    from brian2 import SpikeMonitor
    from matplotlib.axes import Axes

_THRESHOLD = "P(spike) = 1/2"
_FARTHEST_THRESHOLD = 700.0  # no activation distinguishes potentials beyond it


def plot_membrane_potential(
    recording: "StateMonitor | Trace",
    spike_monitor: "SpikeMonitor | None" = None,
    neuron: int = 0,
    ax: "Axes | None" = None,
    *,
    activation: str | Activation | None = None,
) -> "Axes":
    """Plot the membrane potential of one neuron over time, and its spikes.

    A GLM neuron has no sharp threshold; a dashed line marks the potential at which
    it spikes with probability 1/2.

    Parameters
    ----------
    recording : StateMonitor or glmbrian.devices.problem.Trace
        A monitor that recorded ``u`` of `GLMNeurons` or of a subgroup of them; or
        one of the traces that `GLMClassifier.record` returns.
    spike_monitor : SpikeMonitor, optional
        The spikes of the same neurons.  Leave out for a trace, which has its own.
    neuron : int
        Index of the neuron in the recorded group, or of the output in a trace.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    activation : {"sigmoid", "probit", "cloglog"} or Activation, optional
        The function g whose threshold is marked.  By default that of the recorded
        neurons, or the sigmoid for a trace, which does not hold its activation.

    Returns
    -------
    matplotlib Axes
        With the potential (without unit) over time in ms, or in steps from 1 for a
        trace; and marks for the spikes above it.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range, or the monitors recorded
        something else.

    Notes
    -----
    By default Brian's StateMonitor records at the start of a step, and so the potential
    of the step before.  With ``when="end"`` each potential lines up with the spikes it
    caused.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import Network, SpikeMonitor, StateMonitor, ms, prefs
    >>> prefs.codegen.target = "numpy"
    >>> feedback = glm.RaisedCosineBasis(1, 4)
    >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1), feedback, random_state=0, dt=1 * ms)
    >>> neurons.feedback_weights = -5
    >>> potential = StateMonitor(neurons, "u", record=True, when="end")
    >>> spikes = SpikeMonitor(neurons)
    >>> Network(neurons, potential, spikes).run(20 * ms)
    >>> ax = glm.plotting.plot_membrane_potential(potential, spikes, neuron=1)
    >>> ax.get_xlabel()
    'time [ms]'
    """
    if isinstance(recording, Trace):
        if spike_monitor is not None:
            raise TypeError("spike_monitor must be left out for a Trace, which holds its own spikes")
        times, potential, spikes = _of_trace(recording, neuron)
        activation, in_steps = SIGMOID if activation is None else activation, True
    else:
        neurons = _recorded_neurons(recording)
        times, potential, spikes = _of_monitors(recording, spike_monitor, neuron)
        activation, in_steps = neurons.activation if activation is None else activation, False
    threshold = potential_of_even_odds(get_activation(activation))
    ax = axes(ax)
    ax.plot(
        times,
        potential,
        color="black",
        linewidth=1.1,
        marker=marker(0, len(times)),
        markersize=3.5,
        label="_potential",
    )
    if threshold is not None:
        ax.axhline(threshold, color="0.5", linestyle="--", linewidth=1, zorder=0, label=_THRESHOLD)
    if spikes is not None:
        _mark_spikes(ax, spikes)
    n_names = len(ax.get_legend_handles_labels()[1])
    if n_names:
        legend_above(ax, n_names)
    if in_steps:
        ax.set_xlim(0.5, len(times) + 0.5)
        integer_ticks(ax.xaxis)
    ax.set_xlabel("time [steps]" if in_steps else "time [ms]")
    ax.set_ylabel("membrane potential $u$")
    ax.set_title(f"{'output' if in_steps else 'neuron'} {neuron}", fontsize="medium")
    return ax


def potential_of_even_odds(activation: Activation) -> float | None:
    """Return the potential u with g(u) = 1/2, or None if g does not reach it."""
    from scipy.optimize import brentq

    def excess(u):
        return float(activation.probability(u)) - 0.5

    ends = -_FARTHEST_THRESHOLD, _FARTHEST_THRESHOLD
    if not excess(ends[0]) < 0 < excess(ends[1]):
        return None
    return brentq(excess, *ends)


def _mark_spikes(ax, spikes):
    """Draw the spikes in a row above everything drawn so far."""
    bottom, top = ax.get_ylim()
    height = top - bottom
    row = np.full(len(spikes), top + 0.02 * height)
    ax.plot(spikes, row, "|", color="black", markersize=8, markeredgewidth=1.3, label="spikes")
    ax.set_ylim(bottom, top + 0.07 * height)


def _of_trace(trace, neuron):
    n_steps, n_outputs = trace.potentials.shape
    neuron = integer(neuron, "neuron", 0, n_outputs - 1)
    spikes = np.flatnonzero(trace.outputs[:, neuron]) + 1
    return np.arange(1, n_steps + 1), trace.potentials[:, neuron], spikes


def _recorded_neurons(recording):
    if isinstance(recording, StateMonitor) and "u" in recording.record_variables:
        neurons = whole_group(recording.source)
        if isinstance(neurons, GLMNeurons):
            return neurons
    raise TypeError(
        "recording must be a StateMonitor that recorded 'u' of GLMNeurons, or a Trace that "
        f"GLMClassifier.record returned, got {recording!r}"
    )


def _of_monitors(recording, spike_monitor, neuron):
    neuron = integer(neuron, "neuron", 0, len(recording.source) - 1)
    (rows,) = np.nonzero(np.asarray(recording.record) == neuron)
    if rows.size == 0:
        raise ValueError(
            f"neuron must be one that was recorded, {np.asarray(recording.record).tolist()}, "
            f"got {neuron}"
        )
    spikes = None
    if spike_monitor is not None:
        times, indices = recorded_spikes(spike_monitor, "spike_monitor")
        source, other = spike_monitor.source, recording.source
        if (whole_group(source), span(source)) != (whole_group(other), span(other)):
            raise ValueError(
                "spike_monitor must record the neurons whose u was recorded, "
                f"{recording.source.name!r}, got one of {spike_monitor.source.name!r}"
            )
        spikes = times[indices == neuron]
    return np.asarray(recording.t / ms), np.asarray(recording.u)[rows[0]], spikes
