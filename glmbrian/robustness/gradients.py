"""The gradient of the log-likelihood with respect to the input spikes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.floating_point import underflow_is_zero
from ..support.validation import integer
from .target import prepare_target


@underflow_is_zero
def input_gradient(
    clf: Any, X: ArrayLike, y: ArrayLike, *, n_hidden: int = 2, first_presentation: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the log-likelihood of the right labels, and its gradient with respect to input spikes.

    The log-likelihood is what training maximises: with first-to-spike decoding, the
    log-probability that the right output spikes first.  The errors of the outputs go back through
    the kernels, in the same sweep from the last step to the first as in training.  With hidden
    layers both are means over draws of the hidden spikes, and the gradient uses straight-through
    credit, whatever the classifier was trained with.

    Parameters
    ----------
    clf : GLMClassifier
        Fitted.
    X : array_like, shape (n, n_inputs) or (n, n_steps, n_inputs)
        Intensities, encoded by the spikes that ``clf.predict`` sees; or spike trains.
    y : array_like, shape (n,)
        The right labels.
    n_hidden : int
        Number of draws of the hidden spikes; ignored if there are no hidden layers.
    first_presentation : int
        As for `GLMClassifier.predict`.

    Returns
    -------
    log_likelihoods : ndarray of float, shape (n,)
    gradients : ndarray of float, shape (n, n_steps, n_inputs)

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before training.
    TypeError, ValueError
        If an argument is not valid.

    Examples
    --------
    Spikes of the left inputs make "left" more likely, those of the right ones less:

    >>> import numpy as np, glmbrian as glm
    >>> X, y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 6, axis=1), ["left", "right"] * 10
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=3, learning_rate=0.1,
    ...                                device="runtime", random_state=1).fit(X, y)
    >>> values, gradients = glm.robustness.input_gradient(classifier, X[:1], y[:1])
    >>> gradients.shape
    (1, 4, 12)
    >>> bool(gradients[0, 0, :6].min() > 0 > gradients[0, 0, 6:].max())
    True
    """
    target = prepare_target(clf, X, y, first_presentation)
    n_hidden = integer(n_hidden, "n_hidden") if target.n_hidden_layers else 1
    values, gradients = [], []
    for block in target.test.blocks():
        drive = target.test.batched.first.drive(target.test.trains(block))
        draws = target.hidden_draws(block, n_hidden)
        value, gradient = target.likelihood.gradients(drive, target.labels[block.rows], draws)
        values.append(value)
        gradients.append(gradient)
    return np.concatenate(values), np.concatenate(gradients)
