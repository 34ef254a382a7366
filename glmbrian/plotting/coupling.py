"""Who is connected with whom: effective coupling as a matrix, and the significant pairs."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..population.population import GLMPopulation
from ..support.validation import real
from .style import axes, index_ticks
from .weights import draw_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_connectivity(
    population: Any,
    kernel: str = "coupling",
    measure: str = "sum",
    ax: "Axes | None" = None,
    *,
    level: float = 0.05,
    limit: float | None = None,
) -> "Axes":
    """Plot the effective coupling of all pairs of neurons, and mark what is significant.

    Parameters
    ----------
    population : GLMPopulation
    kernel : str
        Name of the kernel between neurons.
    measure : {"sum", "norm"}
        As for `GLMPopulation.connectivity`: the sum of each kernel over its lags, or the root of
        its sum of squares, with the sign of the sum.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    level : float
        Pairs are marked if their weights differ from 0 in Wald's test, at this false discovery
        rate; only once `GLMPopulation.standard_errors_` has been computed.
    limit : float, optional
        Colours range from ``-limit`` to ``limit``; by default the largest absolute value.

    Returns
    -------
    matplotlib Axes
        With an image of shape (n_source, n), a colour bar, and a dot on each significant pair.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range, or there is no such kernel.

    Examples
    --------
    >>> import glmbrian as glm
    >>> population = glm.GLMPopulation.from_kernels(
    ...     [-1.0, -1.0], {"coupling": [[[0.0], [1.0]], [[-2.0], [0.0]]]}
    ... )
    >>> ax = glm.plotting.plot_connectivity(population)
    >>> ax.images[0].get_array().tolist()
    [[0.0, 1.0], [-2.0, 0.0]]
    """
    if not isinstance(population, GLMPopulation):
        raise TypeError(f"population must be a GLMPopulation, got {population!r}")
    found = population.connectivity(kernel, measure)
    level = real(level, "level", 0, 1)
    if limit is not None:
        limit = real(limit, "limit", 0, strict=True)
    ax = axes(ax)
    image = draw_image(ax, found.strength, limit, aspect="auto")
    n_source, n = found.strength.shape
    ax.set_xticks(index_ticks(n))
    ax.set_yticks(index_ticks(n_source))
    ax.set(xlabel="target neuron", ylabel="source neuron")
    label = {"sum": "sum over lags", "norm": "signed norm"}[measure]
    ax.figure.colorbar(image, ax=ax, label=f"{kernel}, {label}")
    if found.p_value is not None:
        sources, targets = np.nonzero(found.significant(level))
        # White with a dark edge is visible on every colour.
        ax.plot(targets, sources, "o", color="white", markeredgecolor="black", markersize=4)
    return ax
