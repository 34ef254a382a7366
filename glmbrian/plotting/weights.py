"""Weight maps: images of kernels, at one lag or summed over all."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..support.validation import real
from .kernel_sets import kernel_set
from .style import DIVERGING, axes, index_ticks, label_slice, plain

if TYPE_CHECKING:
    from brian2 import Quantity
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage


def plot_weight_map(
    model: Any,
    output: Any = None,
    shape: tuple[int, ...] | None = None,
    lag: int | None = None,
    ax: "Axes | None" = None,
    *,
    dt: "Quantity | None" = None,
    limit: float | None = None,
    kernel: str | None = None,
) -> "Axes":
    """Plot kernels as an image: of one target, or all in a matrix.

    Parameters
    ----------
    model : GLMClassifier, HiddenLayer, GLMSynapses, GLMPopulation or ndarray
        As for `plot_kernels`.
    output : optional
        For inputs that form an image, the target neuron whose kernels are shown: the
        class for a classifier, otherwise the index.  By default the first.
    shape : tuple of int, optional
        How the inputs are laid out: (rows, columns) for an image; (n_inputs,) for the
        matrix of all inputs (rows) and targets (columns).  By default a square image
        for a classifier whose `n_inputs` is a square number, and the matrix otherwise.
    lag : int, optional
        The lag shown, in steps from 1; by default the sum over all lags.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    dt : Quantity of time, optional
        As for `plot_kernels`.
    limit : float, optional
        Colours range from ``-limit`` to ``limit``; by default the largest absolute
        value shown.  Use the same limit to compare several maps.
    kernel : str, optional
        As for `plot_kernels`.

    Returns
    -------
    matplotlib Axes
        With an image of the given shape, or of shape (n_inputs, n_targets), and a
        colour bar.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.
    sklearn.exceptions.NotFittedError
        If a classifier is not fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import glmbrian as glm
    >>> kernels = np.random.default_rng(0).normal(size=(6, 3, 5))
    >>> glm.plotting.plot_weight_map(kernels).images[0].get_array().shape
    (6, 3)
    >>> glm.plotting.plot_weight_map(kernels, 2, shape=(2, 3)).images[0].get_array().shape
    (2, 3)
    """
    kernels = kernel_set(model, dt, kernel)
    index = kernels.index(output)
    shape = kernels.image_shape(shape)
    if shape is None and output is not None:
        raise ValueError(
            "output needs inputs that form an image; pass shape=(rows, columns) for these "
            f"{len(kernels.values)} inputs, or leave output out for the matrix of all kernels"
        )
    values, name = kernels.at(lag)
    if limit is not None:
        limit = real(limit, "limit", 0, strict=True)
    ax = axes(ax)
    if shape is None:
        image = draw_image(ax, values, limit, aspect="auto")
        _label_matrix(ax, kernels)
    else:
        image = draw_image(ax, values[:, index].reshape(shape), limit)
        ax.set_title(kernels.title(index), fontsize="medium")
    ax.figure.colorbar(image, ax=ax, label=name)
    return ax


def draw_image(
    ax: "Axes",
    values: np.ndarray,
    limit: float | None = None,
    aspect: Literal["equal", "auto"] = "equal",
    cmap: Any = DIVERGING,
) -> "AxesImage":
    """Draw values as an image without ticks, with zero in the middle of the map, and return the image."""
    limit = limit or np.abs(values).max() or 1.0
    ax.set_xticks([])
    ax.set_yticks([])
    look: dict[str, Any] = dict(
        cmap=cmap, vmin=-limit, vmax=limit, interpolation="nearest", aspect=aspect
    )
    return ax.imshow(values, **look)


def _label_matrix(ax, kernels):
    n_sources, n_targets, _ = kernels.values.shape
    ax.set_yticks(index_ticks(n_sources))
    if kernels.classes is None:
        ax.set_xticks(index_ticks(n_targets))
    else:
        named = label_slice(n_targets)
        ax.set_xticks(np.arange(n_targets)[named], [plain(name) for name in kernels.classes[named]])
    ax.set_xlabel(kernels.target)
    ax.set_ylabel(kernels.source)
