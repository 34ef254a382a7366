"""Who is connected with whom: effective coupling as a matrix, and the significant pairs."""

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from ..population.connectivity import MEASURES
from ..population.population import GLMPopulation
from ..support.validation import real
from .style import NOTHING, SIGNED, axes, index_ticks
from .weights import draw_image

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Pairs that are so many times as strong as the typical strong pair do not set the scale.  The strong pairs are
#: the strongest tenth of all, and at least three.
_RUNAWAY, _STRONG, _FEWEST_STRONG = 10.0, 0.1, 3

#: Untested kernels may have a plus-minus sign if their peak is above this fraction of that of other strong kernels.
_WORTH_A_SIGN = 0.3


def plot_connectivity(
    population: Any,
    kernel: str = "coupling",
    measure: str = "sum",
    ax: "Axes | None" = None,
    *,
    level: float = 0.05,
    limit: float | None = None,
    test: str | None = None,
) -> "Axes":
    """Plot the effective coupling of all pairs of neurons, and mark what is significant.

    A significant pair is a correlated one: it may be coupled, or driven by a common input that the
    model lacks (drift, states of the network, neurons that were not recorded).

    Parameters
    ----------
    population : GLMPopulation
    kernel : str
        Name of the kernel between neurons.
    measure : {"sum", "norm", "peak"}
        As for `GLMPopulation.connectivity`: the sum of each kernel over its lags; the root of its sum of
        squares, with the sign of the sum; or the value that is largest in size.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    level : float
        The false discovery rate of the pairs that are marked.
    limit : float, optional
        Colours range from ``-limit`` to ``limit``; by default the largest absolute value among pairs
        that are bounded, and not more than ten times as strong as other strong pairs.
    test : {"likelihood-ratio", "wald", "none"}, optional
        As for `GLMPopulation.connectivity`.

    Returns
    -------
    matplotlib Axes
        With an image of shape (n_source, n), a colour bar, and a dot on each significant pair.  Pairs
        without a connection are grey.  Kernels that grow without bound have an infinity sign, and kernels
        of two signs, whose sum says little, a plus-minus sign (if significant or, untested, strong).

    Raises
    ------
    TypeError, ValueError, AttributeError
        If an argument is of the wrong type or out of range, there is no such kernel, or a test that
        was asked for cannot be done.

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
    level = real(level, "level", 0, 1)
    if limit is not None:
        limit = real(limit, "limit", 0, strict=True)
    found = population.connectivity(kernel, measure, test)
    strength, shape = found.strength, found.strength.shape
    unbounded = np.zeros(shape, dtype=bool) if found.unbounded is None else found.unbounded
    if limit is None:
        limit = _sensible_limit(np.abs(strength[~unbounded]))
    ax = axes(ax)
    image = draw_image(ax, strength, limit, aspect="auto", cmap=SIGNED)
    absent = ~population.weights[kernel].any(axis=2)
    grey = ListedColormap([NOTHING])
    ax.imshow(np.ma.masked_where(~absent, absent), cmap=grey, interpolation="nearest", aspect="auto")
    ax.set_xticks(index_ticks(shape[1]))
    ax.set_yticks(index_ticks(shape[0]))
    ax.set(xlabel="target neuron", ylabel="source neuron")
    beyond = "both" if (np.abs(strength) > limit).any() else "neither"
    label = f"{kernel}, {MEASURES[measure].label}"
    ax.figure.colorbar(image, ax=ax, label=label, extend=beyond)
    # Without a test, a sign on each weak kernel that changes sign would cover the picture.
    peak = np.abs(population.kernel(kernel)).max(axis=-1)
    marked = peak > _WORTH_A_SIGN * _sensible_limit(peak[~unbounded])
    handles: list[Any] = []
    if found.p_value is not None:
        marked = found.significant(level)
        sources, targets = np.nonzero(marked)
        said = f"correlated at a false discovery rate of {level:g} ({found.test}):\ncoupled, or a common input"
        # White with a dark edge is visible on every colour.
        look: dict[str, Any] = dict(color="white", markeredgecolor="black", markersize=4, label=said)
        handles += ax.plot(targets, sources, "o", **look)
    for chosen, sign, said in [
        (unbounded, r"$\infty$", "grows without bound"),
        (found.changes_sign & marked & ~unbounded, r"$\pm$", "excites and inhibits"),
    ]:
        sources, targets = np.nonzero(chosen)
        if sources.size:
            # Beside the dot
            sign_look: dict[str, Any] = dict(
                marker=sign, color="black", s=45, linewidths=0.4, label=said
            )
            edge = [withStroke(linewidth=2, foreground="white")]
            handles.append(ax.scatter(targets + 0.28, sources - 0.28, path_effects=edge, **sign_look))
    if absent.any():
        handles.append(Patch(color=NOTHING, label="no connection"))
    if handles:
        where: dict[str, Any] = dict(loc="upper center", bbox_to_anchor=(0.5, -0.13))
        ax.legend(handles=handles, fontsize="small", frameon=False, **where)
    return ax


def _sensible_limit(sizes):
    """Return the largest of the sizes that are of the order of other large ones."""
    sizes = np.sort(sizes[sizes > 0])[::-1]
    if not sizes.size:
        return 1.0
    n_strong = max(_FEWEST_STRONG, int(_STRONG * sizes.size))
    typical = np.median(sizes[:n_strong])
    return float(sizes[sizes <= _RUNAWAY * typical].max())
