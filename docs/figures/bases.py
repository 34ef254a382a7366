"""The functions of four bases."""

import matplotlib.pyplot as plt
import numpy as np

import glmbrian as glm

bases = {
    "RaisedCosineBasis(4, 5)": glm.RaisedCosineBasis(4, 5),
    "RaisedCosineBasis(5, 50, last_peak=25)": glm.RaisedCosineBasis(5, 50, last_peak=25),
    "ExponentialBasis([3, 10], 50, tau_rise=1)": glm.ExponentialBasis([3, 10], 50, tau_rise=1),
    "IndicatorBasis(4)": glm.IndicatorBasis(4),
}
fig, axes = plt.subplots(2, 2, figsize=(8, 4.4))
for ax, (title, basis) in zip(axes.flat, bases.items()):
    lags = np.arange(1, basis.window + 1)
    style = dict(marker="o", markersize=4) if basis.window < 10 else {}
    for k, function in enumerate(basis.matrix.T):
        ax.plot(lags, function, color=str(0.75 * k / basis.n_basis), **style)
    ax.set_title(title, fontsize="small")
    ax.set_xlabel("lag [steps]")
    ax.xaxis.get_major_locator().set_params(integer=True)
