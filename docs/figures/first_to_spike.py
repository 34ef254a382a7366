"""The probabilities in the first-to-spike likelihood, and its gradient in the potentials."""

import matplotlib.pyplot as plt
import numpy as np

import glmbrian as glm

sigmoid = glm.get_activation("sigmoid")
steps = np.arange(1, 9)
u = np.stack([-3 + 3 * np.exp(-(((steps - 5) / 2.0) ** 2)), np.full(8, -2.5)], axis=1)
right = 0
value, grad_u = glm.learning.first_to_spike_gradient(u, right, sigmoid)
g = sigmoid.probability(u)
waited = np.vstack([np.ones(2), np.cumprod(1 - g, axis=0)])
p = g[:, right] * waited[:-1, right] * waited[1:, 1 - right]
h = np.cumsum(p[::-1])[::-1] / p.sum()

fig, (left, middle, last) = plt.subplots(1, 3, figsize=(9, 2.8))
for ax, columns, title in (
    (left, u, "potential $u_{i,t}$"),
    (last, grad_u, r"$\partial L / \partial u_{i,t}$"),
):
    ax.plot(steps, columns[:, 0], "o-", color="black", label="right neuron $c$")
    ax.plot(steps, columns[:, 1], "s--", color="0.5", label="wrong neuron")
    ax.set_title(title)
middle.bar(steps, p, color="0.6", label="$p_t$")
middle.plot(steps, h, "o-", color="black", label="$h_t$")
middle.set_title(f"$L = \\log \\sum_t p_t = {value:.2f}$")
middle.legend(frameon=False)
last.legend(frameon=False, fontsize="small")
last.axhline(0, color="0.8", zorder=0)
for ax in (left, middle, last):
    ax.set_xlabel("step $t$")
