"""An attack on intensities, before they are encoded as spikes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.randomness import repeated_key
from ..core.rate_code import levels, rate_encode
from ..devices.problem import Inputs
from ..support.floating_point import underflow_is_zero
from ..support.progress import Progress
from ..support.validation import integer, real
from ..support.workers import Workers
from .losses import Loss, get_loss
from .target import Target, prepare_target


@underflow_is_zero
def attack_intensities(
    clf: Any,
    X: ArrayLike,
    y: ArrayLike,
    epsilon: float,
    *,
    n_iterations: int = 20,
    step_size: float | None = None,
    n_encodings: int = 4,
    loss: str | Loss = "likelihood",
    first_presentation: int = 0,
) -> NDArray[np.float64]:
    """Change intensities by at most `epsilon` each, so as to hurt decisions.

    Projected gradient descent on the loss, averaged over encodings: in each iteration, all
    intensities move by `step_size` against the sign of the gradient, and are then clipped to the
    range from 0 to 1, and to at most `epsilon` from where they started.  The derivative with
    respect to an intensity is estimated by half the sum, over the steps, of the derivatives with
    respect to the spikes of the input, since an input of intensity x spikes with probability x / 2.

    Parameters
    ----------
    clf : GLMClassifier
        Fitted, and without `scale_inputs`.
    X : array_like, shape (n, n_inputs)
        Intensities, as for `GLMClassifier.fit`.
    y : array_like, shape (n,)
        The right labels.
    epsilon : float
        The largest change of an intensity, where 1 is full intensity (255 in 8-bit images).
        Intensities are those that the encoder sees, in single precision.
    n_iterations : int
    step_size : float, optional
        By default ``2.5 * epsilon / n_iterations``.
    n_encodings : int
        Number of encodings, drawn anew in each iteration, over which gradients are averaged.
        None of them is that of ``clf.predict``.
    loss : {"likelihood", "margin"} or Loss
        As for `attack`.
    first_presentation : int
        As for `GLMClassifier.predict`.

    Returns
    -------
    ndarray of float, shape (n, n_inputs)
        Intensities from 0 to 1.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before training.
    TypeError, ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> digits = glm.datasets.load_mnist((5, 7), n_train=50, n_test=50)
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=5, device="runtime",
    ...                                random_state=1).fit(digits.X_train, digits.y_train)
    >>> X, y = digits.X_test, digits.y_test
    >>> attacked = glm.robustness.attack_intensities(classifier, X, y, epsilon=0.1)
    >>> bool(np.abs(attacked - X / 255).max() <= 0.1 + 1e-12)
    True
    >>> bool(classifier.score(attacked, y) < classifier.score(X, y) - 0.2)
    True
    """
    target = prepare_target(clf, X, y, first_presentation)
    if clf.scale_inputs:
        raise ValueError(
            "clf must be without scale_inputs, since intensities are attacked, got scale_inputs=True: "
            "scale X before training, for example with sklearn.preprocessing.MinMaxScaler"
        )
    if target.test.inputs.kind == "trains":
        raise ValueError(
            "X must hold intensities (n, n_inputs), got spike trains (n, n_steps, n_inputs); use attack"
        )
    epsilon, loss = real(epsilon, "epsilon", 0), get_loss(loss)
    n_iterations, n_encodings = (
        integer(n_iterations, "n_iterations"),
        integer(n_encodings, "n_encodings"),
    )
    step_size = (
        2.5 * epsilon / n_iterations
        if step_size is None
        else real(step_size, "step_size", 0, strict=True)
    )
    found = np.empty(target.test.inputs.data.shape)

    def after_attack(block):
        start = _intensities(target.test.inputs, block.rows)
        now = start
        for iteration in range(n_iterations):
            workers.go_on()
            first = 1 + iteration * n_encodings
            slope = _slope(target, block, loss, now, range(first, first + n_encodings))
            now = now - step_size * np.sign(slope)
            now = np.clip(now, np.maximum(start - epsilon, 0), np.minimum(start + epsilon, 1))
        return block.rows, now

    with Workers() as workers, Progress("attacking", len(found), clf.verbose) as progress:
        for rows, attacked in workers.map(after_attack, target.test.blocks()):
            found[rows] = attacked
            progress(rows.stop)
    return found


def _intensities(inputs: Inputs, rows: slice) -> NDArray[np.float64]:
    data = inputs.data[rows].astype(float)
    return data / (255 if inputs.kind == "bytes" else 2**15)


def _slope(target: Target, block, loss, intensities, encodings) -> NDArray[np.float64]:
    """Return the derivatives with respect to intensities, times two, summed over encodings."""
    test, total = target.test, np.zeros(intensities.shape)
    for encoding in encodings:
        key = repeated_key(test.testing.input_key, encoding)
        trains = rate_encode(levels(intensities), key, block.numbers, test.n_steps)
        drive = test.batched.first.drive(trains)
        draws = target.hidden_draws(block, 1, encoding)
        goal, labels = target.goal(block, loss, drive, draws)
        total += goal.gradients(drive, labels, draws)[1].sum(axis=1)
    return total
