"""A population of coupled GLM neurons under a flickering stimulus.

After J. W. Pillow et al. (2008), Spatio-temporal correlations and visual signalling in a
complete neuronal population, Nature 454, 995-999: neurons that see the same stimulus are
correlated by it and, in addition, by kernels through which each neuron's spikes move the
potentials of the others.  In steps of 1 ms

    u_i(t) = k_i . s(t - 119 ms .. t) + h_i . y_i(t - 150 ms .. t - 1 ms)
             + sum_j c_ij . y_j(t - 150 ms .. t - 1 ms) + bias_i

where s is the flicker, k_i the stimulus filter of an ON or an OFF neuron, h_i its own
post-spike kernel (refractory, then slightly excitatory) and c_ij a coupling kernel.  The
stimulus is continuous; after filtering it is the `drive` of the neurons.  As in the
paper, coupled neurons of the same type excite each other for some milliseconds; here
those of opposite types inhibit each other.  Strengths follow an exponential
distribution.
"""

import argparse

import numpy as np
from brian2 import Network, SpikeMonitor, StateMonitor, TimedArray, ms, second, set_device

from glmbrian import GLMNeurons, GLMSynapses, RaisedCosineBasis

N_ON, N_OFF = 10, 10
N = N_ON + N_OFF
SIGN = np.repeat([1, -1], [N_ON, N_OFF])
ON, OFF = range(N_ON), range(N_ON, N)
FRAME = 8  # steps between changes of the flicker

#: Raised cosines on a logarithmic axis; they peak at the lags of 1, 3, 7, 16 and 34 ms.
BASIS = RaisedCosineBasis(5, 150, a=2.2, c=2.0, dt=1.0)
POST_SPIKE = [-8.0, -2.0, -0.4, 0.3, 0.1]
COUPLING = np.array([0.7, 0.3, 0.0, 0.0, 0.0])


def stimulus_filters(random):
    """Return the filters k, shape (N, 120): a hump, then a wider one of opposite sign."""
    lag = np.arange(120)[:, np.newaxis]
    peak = random.uniform(0.9, 1.1, N) * 25
    hump = np.exp(-0.5 * ((lag - peak) / 8) ** 2)
    rebound = np.exp(-0.5 * ((lag - 2.2 * peak) / 14) ** 2)
    return (SIGN * (hump - 0.45 * rebound)).T / 8


def coupling_weights(random):
    """Return the weights of the coupling kernels, shape (N, N, n_basis).

    A third of the pairs are coupled, with exponentially distributed strengths.
    """
    strength = random.exponential(1.0, (N, N)) * (random.random((N, N)) < 1 / 3)
    np.fill_diagonal(strength, 0.0)
    return (strength * np.outer(SIGN, SIGN))[:, :, np.newaxis] * COUPLING


def simulate(duration=10 * second, seed=0):
    """Show the flicker to a coupled population, and to one without coupling.

    Stimulus, filters and random numbers are the same for both.

    Parameters
    ----------
    duration : Quantity
    seed : int

    Returns
    -------
    spikes, potentials : dict of str to ndarray, shape (n_steps, N)
        Spikes (0 or 1) and membrane potentials of the "coupled" and the "uncoupled"
        population.
    flicker : ndarray of +-1, shape (n_steps,)
    """
    random = np.random.default_rng(seed)
    filters, weights = stimulus_filters(random), coupling_weights(random)
    n_steps = round(duration / ms)
    flicker = np.repeat(random.choice([-1.0, 1.0], -(-n_steps // FRAME)), FRAME)[:n_steps]
    filtered = np.stack([np.convolve(flicker, k)[:n_steps] for k in filters], axis=1)
    stimulus = TimedArray(filtered, dt=1 * ms)  # noqa: F841 (Brian finds it by name)

    network, monitors = Network(), {}
    for name in ("coupled", "uncoupled"):
        neurons = GLMNeurons(
            N,
            {"coupling": BASIS},
            feedback_basis=BASIS,
            activation="cloglog",
            random_state=seed,
            drive="stimulus(t, i)",
            dt=1 * ms,
        )
        neurons.bias = -4.5
        neurons.feedback_weights = np.tile(POST_SPIKE, (N, 1))
        monitors[name] = SpikeMonitor(neurons), StateMonitor(neurons, "u", record=True, when="end")
        network.add(neurons, monitors[name])
        if name == "coupled":
            pre, post = np.nonzero(weights.any(axis=2))
            synapses = GLMSynapses(neurons, neurons, "coupling", connect=(pre, post))
            synapses.w = weights
            network.add(synapses)
    network.run(duration)

    spikes = {name: np.zeros((n_steps, N), dtype=int) for name in monitors}
    for name, (monitor, _) in monitors.items():
        spikes[name][np.round(monitor.t / ms).astype(int), np.asarray(monitor.i)] = 1
    potentials = {name: np.asarray(potential.u).T for name, (_, potential) in monitors.items()}
    return spikes, potentials, flicker


def cross_correlogram(spikes, pairs, longest=50):
    """Return how often the second of a pair spikes around a spike of the first.

    Parameters
    ----------
    spikes : ndarray of 0/1, shape (n_steps, N)
    pairs : iterable of (int, int)
    longest : int

    Returns
    -------
    lags : ndarray of int, shape (2 * longest + 1,)
        In steps.
    ratio : ndarray of float
        Mean over pairs; 1 for independent neurons with the same rates.
    """
    lags = np.arange(-longest, longest + 1)
    rates = spikes.mean(axis=0)
    inner = slice(longest, len(spikes) - longest)
    ratios = [
        [np.mean(spikes[inner, i] * np.roll(spikes[:, j], -lag)[inner]) for lag in lags]
        / (rates[i] * rates[j])
        for i, j in pairs
    ]
    return lags, np.mean(ratios, axis=0)


def pairs(first, second):
    """Return all pairs of different neurons, one from each list."""
    return [(i, j) for i in first for j in second if i != j]


def draw(spikes, potentials, flicker, file, shown=slice(1000, 1800)):
    """Draw what `simulate` returned into a file."""
    from matplotlib.figure import Figure

    colors = {"uncoupled": "0.55", "coupled": "k"}
    figure = Figure(figsize=(9, 7), layout="constrained")
    grid = figure.add_gridspec(4, 3, height_ratios=[2, 0.6, 2.4, 1.6])

    filters = stimulus_filters(np.random.default_rng(0))
    axis = figure.add_subplot(grid[0, 0])
    axis.plot(filters[ON].T, "k", linewidth=0.6)
    axis.plot(filters[OFF].T, "0.6", linewidth=0.6)
    axis.set(title="stimulus filters", xlabel="lag (ms)", ylabel="$k$ (ON black, OFF grey)")
    kernels = BASIS.kernels([POST_SPIKE, COUPLING])
    lags = np.arange(1, BASIS.window + 1)
    axis = figure.add_subplot(grid[0, 1])
    axis.semilogx(lags, kernels[0], "k")
    axis.semilogx(lags, kernels[1], "k--")
    axis.text(5, -5, "post-spike $h$")
    axis.text(1.2, 1.2, "coupling $c$ of strength 1")
    axis.axhline(0, color="0.8", linewidth=0.8, zorder=-1)
    axis.set(title="kernels", xlabel="lag (ms)", ylim=(-10, 2.5))
    panels = grid[0, 2].subgridspec(2, 1)
    for row, (name, group) in enumerate({"ON-ON": pairs(ON, ON), "ON-OFF": pairs(ON, OFF)}.items()):
        axis = figure.add_subplot(panels[row])
        for label, color in colors.items():
            lags, ratio = cross_correlogram(spikes[label], group)
            axis.plot(lags, ratio, color, linewidth=1, label=label)
        axis.axhline(1, color="0.8", linewidth=0.8, zorder=-1)
        axis.set(ylabel=name, ylim=(0, 4 if row == 0 else None))
        if row == 0:
            axis.set_title("cross-correlograms")
            axis.tick_params(labelbottom=False)
            axis.legend(frameon=False, fontsize="small", loc="upper right", borderpad=0)
    axis.set_xlabel("lag (ms)")

    time = np.arange(len(flicker))[shown]
    first = figure.add_subplot(grid[1, :])
    first.plot(time, flicker[shown], "k", linewidth=0.8)
    first.set(ylabel="flicker", yticks=[])
    raster = figure.add_subplot(grid[2, :], sharex=first)
    for offset, (name, color) in zip((N + 2, 0), colors.items()):
        step, neuron = np.nonzero(spikes[name][shown])
        raster.plot(time[step], neuron + offset, "|", color=color, markersize=3.5)
    middles = [N_ON / 2, N_ON + N_OFF / 2]
    raster.set_yticks(middles + [N + 2 + middle for middle in middles])
    raster.set_yticklabels(["ON", "OFF"] * 2)
    raster.set_ylabel("coupled       uncoupled")
    trace = figure.add_subplot(grid[3, :], sharex=first)
    for name, color in colors.items():
        trace.plot(time, potentials[name][shown, 0], color, linewidth=0.8)
    trace.set(xlabel="time (ms)", ylabel="$u$ of an ON neuron", xlim=(time[0], time[-1]))
    for axis in (first, raster):
        axis.tick_params(labelbottom=False)
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.align_ylabels([first, raster, trace])
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["runtime", "cpp_standalone"], default="runtime")
    parser.add_argument("--output", default="coupled_population.png", metavar="FILE.png")
    arguments = parser.parse_args()
    if arguments.device == "cpp_standalone":
        set_device("cpp_standalone", directory=None)
    draw(*simulate(), arguments.output)
