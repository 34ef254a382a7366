"""Guarantees that hold for every change to a few input spikes."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.batches import BatchedLayer
from ..core.changes import Kind, get_kind
from ..core.objectives import check_decides_as_defined
from ..support.floating_point import underflow_is_zero
from ..support.progress import Progress
from ..support.validation import integer
from .target import prepare_target


@underflow_is_zero
def certified(
    clf: Any,
    X: ArrayLike,
    y: ArrayLike,
    budget: int,
    kind: str | Kind = "flip",
    *,
    first_presentation: int = 0,
) -> NDArray[np.bool_]:
    """Return which presentations no change to a few input spikes can lead astray.

    A presentation is certified if the right class is the most probable one, the largest entry of
    its row of ``clf.predict_proba``, after every change of at most `budget` input spikes.
    A presentation that is not certified need not have a change that leads it astray.

    The bound: each change moves the potential of an output in a step by one value of a kernel.  So
    no attack raises it by more than the sum of the `budget` largest positive values among all
    allowed changes, or lowers it by more than that of the `budget` most negative ones.  Over all
    potentials in this range, the right output is least likely to win (to spike before all others
    or, with rate decoding, more often) at its own least favourable potentials and the most
    favourable ones of the others.  A wrong output is most likely to win in the opposite case.  Ties
    and silence count for the wrong output if they may be decided for it.  A presentation is
    certified if the first probability exceeds the second for every wrong output.

    With rate decoding, spikes change later potentials through feedback, so which potentials are
    least favourable depends on the output's own spikes.  With at most 10 steps, all its spike trains
    are compared.  With more, feedback is bounded by the number of earlier spikes, which certifies
    fewer presentations; and the bound is on the probability itself, which ``clf.predict_proba``
    estimates there.

    Parameters
    ----------
    clf : GLMClassifier
        Fitted, without hidden layers.  A custom objective must define `is_certain`, and a custom
        activation must rise with the potential.
    X : array_like, shape (n, n_inputs) or (n, n_steps, n_inputs)
        Intensities, encoded by the spikes that ``clf.predict`` sees; or spike trains.
    y : array_like, shape (n,)
        The right labels.
    budget : int
        The most spikes that are changed in each presentation.
    kind : {"flip", "add", "remove"} or Kind
    first_presentation : int
        As for `GLMClassifier.predict`.

    Returns
    -------
    ndarray of bool, shape (n,)

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before training.
    TypeError, ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> X, y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 20, axis=1), ["left", "right"] * 10
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=5, learning_rate=0.1,
    ...                                device="runtime", random_state=1).fit(X, y)
    >>> glm.robustness.certified(classifier, X[:2], y[:2], budget=1).tolist()
    [True, True]
    """
    target = prepare_target(clf, X, y, first_presentation)
    if target.n_hidden_layers:
        raise ValueError(
            "clf must be without hidden layers, since bounds are known only for such networks, got "
            f"hidden={clf.hidden}"
        )
    check_decides_as_defined(target.test.objective, "is_certain")
    budget, kind = integer(budget, "budget", 0), get_kind(kind)
    test, labels = target.test, target.labels
    first, outputs = test.batched.first, test.layers[-1]
    found = np.empty(len(labels), dtype=bool)
    with Progress("bounding", len(found), clf.verbose) as progress:
        for block in test.blocks():
            trains = test.trains(block)
            signs = np.where(kind.allowed(trains), 1.0 - 2.0 * trains, 0.0)
            drive = first.drive(trains)
            falls, rises = largest_effects(first, signs, budget)
            _check_rises(outputs, drive + falls, drive + rises)
            found[block.rows] = test.objective.is_certain(
                drive + falls,
                drive + rises,
                labels[block.rows],
                outputs.activation,
                outputs.feedback_kernels,
                clf.on_tie,
                clf.on_silence,
            )
            progress(block.rows.stop)
    return found


def _check_rises(outputs, lowest, highest):
    """Raise a ValueError if the activation falls somewhere in the range of the potentials."""
    kernels = outputs.feedback_kernels
    fed_back = 0.0 if kernels is None else np.abs(kernels).sum(axis=0).max(initial=0.0)
    u = np.linspace(lowest.min() - fed_back, highest.max() + fed_back, 1001)
    falls = np.diff(outputs.activation.probability(u)) < -1e-12
    if falls.any():
        raise ValueError(
            "clf must have an activation that rises with the potential, since the bound compares only "
            f"the ends of a range of potentials, got {outputs.activation.name!r}, which falls near "
            f"u = {u[falls.argmax()]:g}"
        )


def largest_effects(
    layer: BatchedLayer, signs: NDArray[np.float64], budget: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how far changes to at most `budget` spikes can lower and raise each potential.

    Parameters
    ----------
    layer : BatchedLayer
    signs : ndarray of float, shape (n, T, N_X)
        1 where a spike may be added, -1 where one may be removed, else 0.
    budget : int

    Returns
    -------
    falls, rises : ndarray of float, shape (n, T, N)
        At most 0, and at least 0.
    """
    n, n_steps, n_inputs = signs.shape
    falls, rises = (np.zeros((n, n_steps, layer.layer.n)) for _ in range(2))
    if budget == 0:
        return falls, rises
    for step in range(1, n_steps):
        # The kernel values of spikes in each earlier step
        lags = step - 1 - np.arange(step)
        kernels = layer.kernels[:, n_steps + lags].transpose(1, 0, 2)
        for neuron in range(layer.layer.n):
            effects = (signs[:, :step] * kernels[..., neuron]).reshape(n, -1)
            if budget < effects.shape[1] // 2:
                ends = np.partition(effects, [budget - 1, effects.shape[1] - budget], axis=1)
                low, high = ends[:, :budget], ends[:, -budget:]
            else:
                ends = np.sort(effects, axis=1)
                low, high = ends[:, :budget], ends[:, -budget:]
            falls[:, step, neuron] = np.minimum(low, 0).sum(axis=1)
            rises[:, step, neuron] = np.maximum(high, 0).sum(axis=1)
    return falls, rises


@underflow_is_zero
def certified_accuracy(
    clf: Any,
    X: ArrayLike,
    y: ArrayLike,
    budget: int,
    kind: str | Kind = "flip",
    *,
    first_presentation: int = 0,
) -> float:
    """Return the fraction of presentations that are `certified`.

    Under any attack that changes at most `budget` spikes, the right class remains the most
    probable one in at least this fraction of presentations.

    Parameters
    ----------
    clf, X, y, budget, kind, first_presentation
        As for `certified`.

    Returns
    -------
    float

    Raises
    ------
    sklearn.exceptions.NotFittedError, TypeError, ValueError
        As for `certified`.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> X, y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 10, 20, axis=1), ["left", "right"] * 10
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=5, learning_rate=0.1,
    ...                                device="runtime", random_state=1).fit(X, y)
    >>> [glm.robustness.certified_accuracy(classifier, X, y, budget) for budget in (1, 100)]
    [1.0, 0.0]
    """
    held = certified(clf, X, y, budget, kind, first_presentation=first_presentation)
    return float(held.mean())
