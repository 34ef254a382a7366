"""One neuron: input spikes, potential, firing probability, output spikes."""

import matplotlib.pyplot as plt
import numpy as np
from brian2 import Network, SpikeGeneratorGroup, SpikeMonitor, StateMonitor, ms

import glmbrian as glm

step = 1 * ms
arrivals = np.array([10, 14, 18, 50, 52, 54, 56, 58, 60])
stimulus = SpikeGeneratorGroup(1, np.zeros(len(arrivals), dtype=int), arrivals * ms, dt=step)
basis = glm.RaisedCosineBasis(5, 30, a=2.2, dt=0.3)
neuron = glm.GLMNeurons(1, basis, feedback_basis=basis, random_state=8, dt=step)
neuron.bias = -4
neuron.feedback_weights = [-8, -4, -1, 0, 0]
synapse = glm.GLMSynapses(stimulus, neuron)
synapse.w = [0.5, 1.5, 1, 0.5, 0.2]
recorded = StateMonitor(neuron, ["u", "firing_probability"], record=True, when="end")
spikes = SpikeMonitor(neuron)
Network(stimulus, neuron, synapse, recorded, spikes).run(100 * ms)

fig, (inputs, potential, probability) = plt.subplots(
    3, 1, figsize=(8, 4.4), sharex=True, height_ratios=(1, 3, 3)
)
inputs.vlines(arrivals, 0, 1, color="black")
inputs.set(ylabel="input $x$", yticks=[])
potential.step(recorded.t / ms, recorded.u[0], where="post", color="black")
potential.set_ylabel("potential $u$")
probability.step(recorded.t / ms, recorded.firing_probability[0], where="post", color="black")
probability.vlines(spikes.t / ms, 0, 1, color="black", linestyle=":", label="output spikes $y$")
probability.set(ylabel="$g(u)$", xlabel="time [ms] (one step each)", ylim=(0, 1))
probability.legend(frameon=False, loc="upper left")
