"""GLM neurons that read out a balanced network of integrate-and-fire neurons.

The network is the current-based one of T. P. Vogels and L. F. Abbott (2005), Signal
propagation and logic gating in networks of integrate-and-fire neurons, Journal of
Neuroscience 25, 10786-10795, with the parameters of benchmark 2 in R. Brette et al.
(2007), Simulation of networks of spiking neurons, Journal of Computational Neuroscience
23, 349-398: 3200 excitatory and 800 inhibitory neurons, each pair connected with a
probability of 2 %, in steps of 0.1 ms.

Three GLM neurons, in steps of 1 ms, listen to 300 excitatory neurons each.  Their kernels
are sums of raised cosines on a logarithmic axis of lags: "fast" weighs the last
milliseconds, "slow" about a hundred, and "change" is the first minus the second.

The network is chaotic: a difference in the last digit soon changes the spikes.  To give
the same spikes on all devices, connections come from NumPy, equations are integrated with
products and sums only, and compilers are told to round each of them.
"""

import argparse

import numpy as np
from brian2 import (
    Network,
    NeuronGroup,
    SpikeMonitor,
    StateMonitor,
    Synapses,
    ms,
    mV,
    prefs,
    set_device,
)

from glmbrian import GLMNeurons, GLMSynapses, RaisedCosineBasis

N_EXCITATORY, N_INHIBITORY = 3200, 800
CONNECTIVITY = 0.02
DT = 0.1 * ms

PARAMETERS = {
    "tau_m": 20 * ms,
    "tau_e": 5 * ms,
    "tau_i": 10 * ms,
    "v_rest": -49 * mV,
    "v_threshold": -50 * mV,
    "v_reset": -60 * mV,
    "w_e": 1.62 * mV,
    "w_i": -9 * mV,
}

EQUATIONS = """
dv/dt = (v_rest - v + g_e + g_i) / tau_m : volt (unless refractory)
dg_e/dt = -g_e / tau_e : volt
dg_i/dt = -g_i / tau_i : volt
"""

#: Raised cosines that peak at the lags of 1, 3, 7, 16, 34 and 70 ms.
BASIS = RaisedCosineBasis(6, 150, a=2.2, c=2.0, dt=1.0)
READOUTS = {
    "fast": ([0.08, 0.08, 0, 0, 0, 0], -4.5),
    "slow": ([0, 0, 0, 0, 0.008, 0.008], -4.5),
    "change": ([0.08, 0.08, 0, 0, -0.008, -0.008], -2.0),
}
N_INPUTS = 300


def round_alike():
    """Keep compilers from reordering sums or fusing products with them."""
    fast = [flag for flag in prefs.codegen.cpp.extra_compile_args_gcc if flag != "-ffast-math"]
    prefs.codegen.cpp.extra_compile_args = [*fast, "-ffp-contract=off"]


def random_pairs(random, n_pre, n_post):
    """Return the indices (i, j) of pairs, each connected with probability `CONNECTIVITY`."""
    return np.nonzero(random.random((n_pre, n_post)) < CONNECTIVITY)


def simulate(duration=500 * ms, seed=0):
    """Run the network and its readouts.

    Parameters
    ----------
    duration : Quantity
    seed : int

    Returns
    -------
    network_spikes, readout_spikes : (ndarray of float, ndarray of int)
        Times in milliseconds, and indices of the neurons.
    potentials : ndarray of float, shape (n_steps, 3)
        Membrane potentials of the readouts in steps of 1 ms.
    """
    round_alike()
    random = np.random.default_rng(seed)
    n = N_EXCITATORY + N_INHIBITORY
    neurons = NeuronGroup(
        n,
        EQUATIONS,
        threshold="v > v_threshold",
        reset="v = v_reset",
        refractory=5 * ms,
        method="euler",
        namespace=PARAMETERS,
        dt=DT,
    )
    neurons.v = random.uniform(-60, -50, n) * mV
    excitatory, inhibitory = neurons[:N_EXCITATORY], neurons[N_EXCITATORY:]
    synapses = []
    for source, effect in ((excitatory, "g_e += w_e"), (inhibitory, "g_i += w_i")):
        synapses.append(Synapses(source, neurons, on_pre=effect, namespace=PARAMETERS, dt=DT))
        i, j = random_pairs(random, len(source), n)
        synapses[-1].connect(i=i, j=j)

    weights, bias = zip(*READOUTS.values())
    readouts = GLMNeurons(len(READOUTS), BASIS, random_state=seed, dt=1 * ms)
    readouts.bias = bias
    listens = np.stack([random.permutation(N_EXCITATORY) < N_INPUTS for _ in READOUTS], axis=1)
    listening = GLMSynapses(excitatory, readouts, connect=np.nonzero(listens))
    listening.w = weights

    monitors = SpikeMonitor(neurons), SpikeMonitor(readouts)
    potential = StateMonitor(readouts, "u", record=True, when="end")
    Network(neurons, synapses, readouts, listening, monitors, potential).run(duration)
    spikes = [(np.asarray(monitor.t / ms), np.asarray(monitor.i)) for monitor in monitors]
    return (*spikes, np.asarray(potential.u).T)


def draw(network_spikes, readout_spikes, potentials, file):
    """Draw what `simulate` returned into a file."""
    from matplotlib.figure import Figure

    duration = len(potentials)
    figure = Figure(figsize=(9, 7), layout="constrained")
    grid = figure.add_gridspec(5, 2, width_ratios=[4, 1.2], height_ratios=[3, 1.2, 1, 1, 1])
    raster = figure.add_subplot(grid[0, 0])
    times, indices = network_spikes
    shown = indices % 10 == 0
    inhibitory = indices >= N_EXCITATORY
    for chosen, color in ((shown & ~inhibitory, "k"), (shown & inhibitory, "0.6")):
        raster.plot(times[chosen], indices[chosen], ".", color=color, markersize=1)
    raster.set(ylabel="neuron (every tenth)", ylim=(0, N_EXCITATORY + N_INHIBITORY))
    rate = figure.add_subplot(grid[1, 0], sharex=raster)
    counts, edges = np.histogram(times[~inhibitory], np.arange(0, duration + 1, 2))
    rate.stairs(counts / N_EXCITATORY / 0.002, edges, color="k")
    rate.set(ylabel="excitatory rate\n(spikes / s)", ylim=(0, None))
    left = [raster, rate]
    panels = grid[:, 1].subgridspec(len(READOUTS), 1)
    kernels = BASIS.kernels([weights for weights, _ in READOUTS.values()])
    for row, (name, kernel) in enumerate(zip(READOUTS, kernels)):
        trace = figure.add_subplot(grid[2 + row, 0], sharex=raster)
        trace.plot(np.arange(duration), potentials[:, row], "0.4", linewidth=0.8)
        own = readout_spikes[0][readout_spikes[1] == row]
        top = potentials[:, row].max() + 1
        trace.plot(own, np.full(own.size, top), "k|", markersize=6)
        trace.set_ylabel(f"{name}\n$u$")
        left.append(trace)
        shape = figure.add_subplot(panels[row])
        shape.axhline(0, color="0.8", linewidth=0.8)
        shape.plot(np.arange(1, BASIS.window + 1), kernel, "k")
        shape.set(title=name, ylabel="kernel $\\alpha$", ylim=(-0.04, 0.14))
        for axis in (trace, shape) if row < len(READOUTS) - 1 else ():
            axis.tick_params(labelbottom=False)
    for axis in (raster, rate):
        axis.tick_params(labelbottom=False)
    raster.set_xlim(0, duration)
    trace.set_xlabel("time (ms)")
    shape.set_xlabel("lag (ms)")
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.align_ylabels(left)
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["runtime", "cpp_standalone"], default="runtime")
    parser.add_argument("--output", default="cuba_readout.png", metavar="FILE.png")
    arguments = parser.parse_args()
    if arguments.device == "cpp_standalone":
        set_device("cpp_standalone", directory=None)
    draw(*simulate(), arguments.output)
