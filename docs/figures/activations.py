"""The three activation functions, and the two slopes that training needs."""

import matplotlib.pyplot as plt
import numpy as np

import glmbrian as glm

u = np.linspace(-4, 4, 161)
fig, axes = plt.subplots(1, 3, figsize=(9, 2.8))
for name, style in zip(("sigmoid", "probit", "cloglog"), ("-", "--", ":")):
    activation = glm.get_activation(name)
    values = activation.probability(u), activation.log_spike_slope(u), activation.log_silence_slope(u)
    for ax, value in zip(axes, values):
        ax.plot(u, value, style, color="black", label=name)
for ax, title in zip(axes, ("$g(u)$", r"$(\log g)'$", r"$(\log \bar{g})'$")):
    ax.set_title(title)
    ax.set_xlabel("potential $u$")
axes[2].set_ylim(-8, 0.4)
axes[0].legend(frameon=False)
