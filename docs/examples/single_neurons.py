"""Tonic firing, bursting and adaptation, made by the feedback kernel alone.

After A. I. Weber and J. W. Pillow (2017), Capturing the dynamical repertoire of single
neurons with generalized linear models, Neural Computation 29, 3260-3289: a GLM neuron
whose own spikes feed back through a kernel beta has many of the behaviours that otherwise
need a dynamical system.  Here

    u(t) = beta . y(t - 1 s .. t - 1 ms) + bias + I(t)

where y is the spike train of the neuron and I(t) a step of current.  The neuron spikes
with the rate exp(u) per millisecond, that is with the probability 1 - exp(-exp(u)) in a
step of 1 ms.  All neurons get the same current; only beta and the bias differ:

tonic
    A spike silences the neuron for about 40 ms.  Then the current makes it fire at once.
bursting
    A spike excites for a few milliseconds, and so triggers the next one.  Each leaves some
    slow inhibition behind, and the sum of this ends the burst.
adapting
    A spike leaves weak inhibition behind that lasts for hundreds of milliseconds.
"""

import argparse

import numpy as np
from brian2 import Network, SpikeMonitor, StateMonitor, ms, set_device

from glmbrian import GLMNeurons, RaisedCosineBasis

#: Raised cosines on a logarithmic axis; they peak at the lags of 1, 3, 7, 16, 34, 70, 144
#: and 295 ms.
BASIS = RaisedCosineBasis(8, 1000, a=2.2, c=2.0, dt=1.0)

#: Weights of the basis functions in the feedback kernel, and bias.
BEHAVIOURS = {
    "tonic": ([-20, -20, -20, -12, 0, 0, 0, 0], -6.0),
    "bursting": ([-12, 4, 3, -2, -2.5, -2, 0, 0], -8.5),
    "adapting": ([-12, -4, -1, -0.3, -0.2, -0.2, -0.3, -0.3], -7.0),
}

BEGINS, ENDS, DURATION = 200 * ms, 1200 * ms, 1400 * ms


def simulate(n_repeats=50, current=6.0, seed=0):
    """Repeat a step of current, with one neuron per repeat and behaviour.

    Parameters
    ----------
    n_repeats : int
    current : float
        The amount that the current adds to u.
    seed : int

    Returns
    -------
    trains : dict of str to list of ndarray
        For each behaviour, the spike times of its repeats, in milliseconds after the
        onset of the current.
    times : ndarray of float
        Time in milliseconds after the onset.
    potentials : dict of str to ndarray
        Membrane potential of the first repeat.
    """
    neurons = GLMNeurons(
        len(BEHAVIOURS) * n_repeats,
        BASIS,
        feedback_basis=BASIS,
        activation="cloglog",
        random_state=seed,
        drive="current * int(t >= BEGINS and t < ENDS)",
        dt=1 * ms,
    )
    weights, bias = zip(*BEHAVIOURS.values())
    neurons.feedback_weights = np.repeat(weights, n_repeats, axis=0)
    neurons.bias = np.repeat(bias, n_repeats)
    spikes = SpikeMonitor(neurons)
    firsts = list(range(0, len(neurons), n_repeats))
    monitor = StateMonitor(neurons, "u", record=firsts, when="end")
    Network(neurons, spikes, monitor).run(DURATION)

    spike_times, indices = np.asarray((spikes.t - BEGINS) / ms), np.asarray(spikes.i)
    trains = {
        behaviour: [spike_times[indices == first + repeat] for repeat in range(n_repeats)]
        for behaviour, first in zip(BEHAVIOURS, firsts)
    }
    return trains, np.asarray((monitor.t - BEGINS) / ms), dict(zip(BEHAVIOURS, np.asarray(monitor.u)))


def intervals(trains, first=0.0, last=1000.0):
    """Return the intervals between spikes of the same repeat within [first, last) ms."""
    return np.concatenate([np.diff(t[(t >= first) & (t < last)]) for t in trains])


def rate(trains, first, last):
    """Return the mean firing rate within [first, last) ms, in spikes per second."""
    n_spikes = sum(((t >= first) & (t < last)).sum() for t in trains)
    return 1000 * n_spikes / (len(trains) * (last - first))


def draw(trains, times, potentials, file):
    """Draw the kernel, potential, spikes and rate of each behaviour into a file."""
    from matplotlib.figure import Figure

    rows = {"height_ratios": [2, 2, 2, 1.5]}
    figure = Figure(figsize=(9, 7), layout="constrained")
    axes = figure.subplots(4, len(BEHAVIOURS), gridspec_kw=rows)
    for column, (behaviour, (weights, _)) in zip(axes.T, BEHAVIOURS.items()):
        kernel, potential, raster, histogram = column
        kernel.set_title(behaviour)
        kernel.axhline(0, color="0.8", linewidth=0.8)
        kernel.semilogx(np.arange(1, BASIS.window + 1), BASIS.kernels(weights), "k")
        kernel.set(xlabel="lag (ms)", yscale="symlog", yticks=[-10, -1, 0, 1])
        kernel.set_yticklabels(["-10", "-1", "0", "1"])
        potential.plot(times, potentials[behaviour], "0.3", linewidth=0.7)
        spikes = trains[behaviour][0]
        potential.plot(spikes, np.full(spikes.size, 4.0), "k|", markersize=5)
        raster.eventplot(trains[behaviour][:30], colors="k", linelengths=0.8, linewidths=0.7)
        bins = np.arange(-200, 1200, 25)
        heights = [rate(trains[behaviour], first, first + 25) for first in bins]
        histogram.bar(bins, heights, 25, align="edge", color="0.5")
        for axis in (potential, raster, histogram):
            axis.set_xlim(times[0], times[-1])
            axis.axvspan(0, (ENDS - BEGINS) / ms, color="0.93", zorder=-1)
        potential.tick_params(labelbottom=False)
        raster.tick_params(labelbottom=False)
        histogram.set_xlabel("time after current onset (ms)")
    for axis, label in zip(axes[:, 0], ("kernel $\\beta$", "potential $u$", "repeat", "spikes / s")):
        axis.set_ylabel(label)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    figure.align_ylabels(axes[:, 0])
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["runtime", "cpp_standalone"], default="runtime")
    parser.add_argument("--output", default="single_neurons.png", metavar="FILE.png")
    arguments = parser.parse_args()
    if arguments.device == "cpp_standalone":
        set_device("cpp_standalone", directory=None)
    draw(*simulate(), arguments.output)
