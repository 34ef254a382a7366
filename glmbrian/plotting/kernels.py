"""Kernels, and the functions that they are made of, as lines against the lag."""

import numpy as np

from ..core.bases import as_basis
from .kernel_sets import feedback_kernels, kernel_set
from .style import MOST_NAMES, axes, lines_against_lag, milliseconds
from .weights import plot_weight_map

_N_STRONGEST = 6  # kernels that are drawn where there are many


def plot_basis(basis, ax=None, *, dt=None):
    """Plot the functions of a basis against the lag.

    Parameters
    ----------
    basis : Basis
    ax : matplotlib Axes, optional
        By default those of a new figure.
    dt : Quantity of time, optional
        Duration of a step, such as ``1*ms``, for a lag axis in ms; by default it
        is in steps.

    Returns
    -------
    matplotlib Axes
        With one line a function, of the shape (window,).

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


def plot_kernels(model, output=None, shape=None, lag=None, ax=None, *, dt=None, kernel=None):
    """Plot the synaptic kernels of one target neuron.

    The kernels of the strongest inputs (those with the largest sum of squares) are
    drawn against the lag.  Inputs that form an image give an image in their place,
    that of `plot_weight_map`.

    Parameters
    ----------
    model : GLMClassifier, GLMSynapses, GLMPopulation or ndarray
        A fitted classifier; synapses; a population; or kernels of the shape
        (n_source, n_target, window), as those of any other model.  Whatever has a
        method ``kernels()`` that returns such an array will do.
    output : optional
        The target neuron: the class whose output it is for a classifier, otherwise
        its index.  By default the first.
    shape : tuple of int, optional
        How the inputs are laid out: (rows, columns) as an image, (n_inputs,) as
        none.  By default a square image for a classifier whose `n_inputs` is a
        square number, such as 28 x 28 for 784, and none otherwise.
    lag : int, optional
        The lag shown in an image, in steps from 1; by default the sum over all.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    dt : Quantity of time, optional
        Duration of a step, for lags in ms.  By default that of the target's clock
        for synapses, and that of a population; otherwise lags are in steps.
    kernel : str, optional
        Which of a population's kernels; by default the first.

    Returns
    -------
    matplotlib Axes
        With up to 6 lines of shape (window,), labelled with the index of the input;
        or with an image of the given shape, and a colour bar beside it.

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
    lines_against_lag(ax, values[shown], shown, kernels.source, kernels.step)
    ax.set_ylabel("kernel")
    ax.set_title(kernels.title(index), fontsize="medium")
    return ax


def plot_feedback_kernels(model, ax=None, *, dt=None):
    """Plot the kernels by which neurons feel their own spikes.

    Parameters
    ----------
    model : GLMNeurons, GLMPopulation, GLMClassifier or ndarray
        Neurons or a population with feedback; a fitted classifier (first-to-spike decoding leaves
        zeros); or kernels of the shape (n, window).  Whatever has a method
        ``feedback_kernels()`` that returns such an array will do.
    ax : matplotlib Axes, optional
        By default those of a new figure.
    dt : Quantity of time, optional
        Duration of a step, for lags in ms.  By default that of the neurons' clock
        or of the population; without one lags are in steps.

    Returns
    -------
    matplotlib Axes
        With one line a neuron, of shape (window,), labelled with its class or
        index.  Of more than 12 neurons the 6 with the strongest kernels are shown.

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
    lines_against_lag(ax, values[shown], [names[index] for index in shown], kind, step)
    ax.set_ylabel("feedback kernel")
    return ax


def _strongest(values):
    return np.argsort(-(values**2).sum(axis=1), kind="stable")[:_N_STRONGEST]


def _zero_line(ax):
    ax.axhline(0, color="0.7", linewidth=0.8, zorder=0, label="_zero")
