"""Goodness of fit: rescaled times against the uniform distribution, with bands."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..population.rescaling import ks_test
from ..support.validation import finite_array
from .style import MOST_NAMES, STYLES, axes, grey, legend_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def ks_plot(times: Any, ax: "Axes | None" = None) -> "Axes":
    """Plot the distribution of rescaled times beside the uniform one, with 95% bands.

    For each neuron, a true model stays inside the band in 95% of recordings.

    Parameters
    ----------
    times : list of array_like of float, or array_like of float
        What `GLMPopulation.rescaled_times` returns, or the entry of one neuron.
    ax : matplotlib Axes, optional
        By default those of a new figure.

    Returns
    -------
    matplotlib Axes
        For one neuron, a line shows the fraction of rescaled times below each value, and two lines
        show the band.  For several neurons, whose bands differ, each line shows by how much this
        fraction exceeds that of the uniform distribution, divided by half the width of the neuron's
        band, so that the bands are at -1 and 1.  Neurons without a spike are left out.

    Raises
    ------
    TypeError, ValueError
        If `times` are not numbers from 0 to 1, or there are none.

    Examples
    --------
    >>> import numpy as np
    >>> import glmbrian as glm
    >>> outputs = np.random.default_rng(0).random((1000, 2)) < 0.2
    >>> population = glm.GLMPopulation([-1.4, -1.4], {}, {})
    >>> times = population.rescaled_times(outputs, random_state=0)
    >>> ax = glm.plotting.ks_plot(times)
    >>> ax.get_ylabel()
    'distance from uniform [bands]'
    >>> ax = glm.plotting.ks_plot(times[0])
    >>> ax.get_ylabel()
    'part of the rescaled times'
    """
    listed = _by_neuron(times)
    checked = [_checked(own, f"times[{i}]") for i, own in enumerate(listed)]
    shown = [i for i, own in enumerate(checked) if own.size]
    if not shown:
        raise ValueError("times must hold the rescaled times of at least one neuron with a spike")
    bands = ks_test(checked).band
    ax = axes(ax)
    for row, i in enumerate(shown):
        values = np.sort(checked[i])
        # The corners of the distribution's steps, from 0 to 1.
        x = np.concatenate([[0.0], np.repeat(values, 2), [1.0]])
        y = np.repeat(np.arange(values.size + 1) / values.size, 2)
        label, style = str(i), STYLES[row % len(STYLES)]
        if len(listed) > 1:
            y = (y - x) / bands[i]
        ax.plot(x, y, color=grey(row), linestyle=style, linewidth=1.2, label=label)
    if len(listed) == 1:
        band = bands[0]
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, zorder=0, label="_uniform")
        for sign in (-1, 1):
            ax.plot([0, 1], [sign * band, 1 + sign * band], "k:", linewidth=0.8, label="_band")
        ax.set(xlim=(0, 1), ylim=(0, 1), ylabel="part of the rescaled times")
    else:
        ax.axhline(0, color="0.7", linewidth=0.8, zorder=0, label="_uniform")
        for sign in (-1, 1):
            ax.axhline(sign, color="k", linestyle=":", linewidth=0.8, label="_band")
        ax.set(xlim=(0, 1), ylabel="distance from uniform [bands]")
        if len(shown) <= MOST_NAMES:
            legend_above(ax, len(shown), "neuron")
    ax.set_xlabel("rescaled time")
    return ax


def _by_neuron(times):
    """Return a list with an array for each neuron."""
    if isinstance(times, np.ndarray):
        return [times] if times.ndim == 1 else list(times)
    if not isinstance(times, (list, tuple)):
        raise TypeError(f"times must be what rescaled_times returns, a list of arrays, got {times!r}")
    return [times] if times and all(np.ndim(own) == 0 for own in times) else list(times)


def _checked(own, name):
    values = finite_array(own, name, ("n_intervals",))
    if np.any((values < 0) | (values > 1)):
        raise ValueError(f"{name} must hold numbers from 0 to 1, as rescaled_times returns them")
    return values
