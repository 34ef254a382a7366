"""Kernels, and their basis functions, as lines against the lag."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.bases import Basis, as_basis
from .kernel_sets import feedback_errors, feedback_kernels, kernel_set, left_out
from .style import MOST_NAMES, axes, lines_against_lag, milliseconds
from .weights import plot_weight_map

if TYPE_CHECKING:
    from brian2 import Quantity
    from matplotlib.axes import Axes

_N_STRONGEST = 6  # kernels drawn where there are many


def plot_basis(basis: Basis, ax: "Axes | None" = None, *, dt: "Quantity | None" = None) -> "Axes":
    """Plot the functions of a basis against the lag.

    Parameters
    ----------
    basis : Basis
    ax : matplotlib Axes, optional
        By default those of a new figure.
    dt : Quantity of time, optional
        Duration of a step, such as ``1*ms``, for a lag axis in ms; by default the
        axis is in steps.

    Returns
    -------
    matplotlib Axes
        With one line per function, of shape (window,).

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type, or `dt` is not above 0.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import ms
    >>> ax = glm.plotting.plot_basis(glm.RaisedCosineBasis(4, 6), dt=0.5 * ms)
    >>> len(ax.lines), ax.get_xlabel()
    (4, 'lag [ms]')
    """
    as_basis(basis, "basis")
    step = milliseconds(dt)
    ax = axes(ax)
    names = range(1, basis.n_basis + 1)
    lines_against_lag(ax, basis.matrix.T, names, "function", step)
    ax.set_ylabel("basis function")
    return ax


def plot_kernels(
    model: Any,
    output: Any = None,
    shape: tuple[int, ...] | None = None,
    lag: int | None = None,
    ax: "Axes | None" = None,
    *,
    dt: "Quantity | None" = None,
    kernel: str | None = None,
) -> "Axes":
    """Plot the synaptic kernels of one target neuron.

    The kernels of the strongest inputs (those with the largest sum of squares) are
    drawn against the lag.  If the inputs form an image, the kernels are drawn as an
    image instead, by `plot_weight_map`.

    Parameters
    ----------
    model : GLMClassifier, HiddenLayer, GLMSynapses, GLMPopulation or ndarray
        A fitted classifier, or one of its `hidden_layers_`; synapses; a population; or the
        kernels of any other model, of shape (n_source, n_target, window).  Any object with a method
        ``kernels()`` that returns such an array will do.
    output : optional
        The target neuron: for a classifier the class of the output, otherwise the
        index.  By default the first.
    shape : tuple of int, optional
        How the inputs are laid out: (rows, columns) for an image, (n_inputs,) for no
        image.  By default a square image for a classifier whose `n_inputs` is a
        square number, such as 28 x 28 for 784, and no image otherwise.
    lag : int, optional
        The lag shown in an image, in steps from 1; by default the sum over all.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    dt : Quantity of time, optional
        Duration of a step, for lags in ms.  By default the time step of the target's
        clock for synapses, and of a population; otherwise lags are in steps.
    kernel : str, optional
        Which of a population's kernels; by default the first.

    Returns
    -------
    matplotlib Axes
        With up to 6 lines of shape (window,), labelled with the index of the input, and 95%
        bands around them once the `standard_errors_` of a population have been computed; or
        with an image of the given shape and a colour bar.  Lags at which a fitted kernel is
        unbounded, or not determined by the data, are shaded and do not count for the scale.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.
    sklearn.exceptions.NotFittedError
        If a classifier is not fitted.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import ms
    >>> neurons = glm.GLMNeurons(3, {"coupling": glm.IndicatorBasis(5)}, dt=1 * ms)
    >>> lateral = glm.GLMSynapses(neurons, neurons, "coupling", "i != j")
    >>> lateral.w = 0.5
    >>> ax = glm.plotting.plot_kernels(lateral, output=2)
    >>> ax.get_title(), len(ax.get_legend().get_texts())
    ('target neuron 2', 3)
    """
    kernels = kernel_set(model, dt, kernel)
    index = kernels.index(output)
    shape = kernels.image_shape(shape)
    if shape is not None:
        return plot_weight_map(model, output, shape, lag, ax, dt=dt, kernel=kernel)
    if lag is not None:
        raise ValueError(
            "lag needs inputs that form an image; pass shape=(rows, columns) for these "
            f"{len(kernels.values)} inputs"
        )
    ax = axes(ax)
    values = kernels.values[:, index]
    shown = _strongest(values)
    _zero_line(ax)
    errors = None if kernels.errors is None else kernels.errors[shown, index]
    masks = {why: mask[shown, index] for why, mask in kernels.left_out.items()}
    lines_against_lag(ax, values[shown], shown, kernels.source, kernels.step, errors, _not_empty(masks))
    ax.set_ylabel("kernel")
    ax.set_title(kernels.title(index), fontsize="medium")
    return ax


def plot_feedback_kernels(
    model: Any, ax: "Axes | None" = None, *, dt: "Quantity | None" = None
) -> "Axes":
    """Plot the kernels through which neurons respond to their own spikes.

    Parameters
    ----------
    model : GLMNeurons, GLMPopulation, GLMClassifier or ndarray
        Neurons or a population with feedback; a fitted classifier (after first-to-spike
        decoding its feedback kernels are 0); or kernels of shape (n, window).  Any object with a
        method ``feedback_kernels()`` that returns such an array will do.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    dt : Quantity of time, optional
        Duration of a step, for lags in ms.  By default the time step of the neurons'
        clock or of the population; without one, lags are in steps.

    Returns
    -------
    matplotlib Axes
        With one line per neuron, of shape (window,), labelled with its class or
        index, and 95% bands and shaded lags as for `plot_kernels`.  Of more than 12 neurons, the 6 with the
        strongest kernels are shown.

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type, or the neurons have no feedback.
    sklearn.exceptions.NotFittedError
        If a classifier is not fitted.

    Examples
    --------
    >>> import glmbrian as glm
    >>> neurons = glm.GLMNeurons(2, glm.IndicatorBasis(1), feedback_basis=glm.RaisedCosineBasis(2, 4))
    >>> neurons.feedback_weights = [[-4.0, -1.0], [-2.0, 0.0]]
    >>> ax = glm.plotting.plot_feedback_kernels(neurons)
    >>> ax.get_ylabel(), ax.get_xlabel()
    ('feedback kernel', 'lag [ms]')
    """
    values, step, kind, names = feedback_kernels(model, dt)
    ax = axes(ax)
    shown = range(len(values)) if len(values) <= MOST_NAMES else _strongest(values)
    _zero_line(ax)
    errors = feedback_errors(model)
    errors = None if errors is None else errors[shown]
    masks = {why: mask[shown] for why, mask in left_out(model, "feedback").items()}
    labels = [names[index] for index in shown]
    lines_against_lag(ax, values[shown], labels, kind, step, errors, _not_empty(masks))
    ax.set_ylabel("feedback kernel")
    return ax


def _not_empty(masks):
    return {why: mask for why, mask in masks.items() if mask.any()}


def _strongest(values):
    return np.argsort(-(values**2).sum(axis=1), kind="stable")[:_N_STRONGEST]


def _zero_line(ax):
    ax.axhline(0, color="0.7", linewidth=0.8, zorder=0, label="_zero")
