"""Changes to input spikes: the worst that an attack finds, and random ones."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.changes import Kind, get_kind
from ..core.randomness import check_random_state, derive_keys, uniforms
from ..support.floating_point import underflow_is_zero
from ..support.progress import Progress
from ..support.validation import integer
from ..support.workers import Workers
from .losses import Loss, get_loss
from .methods import Method, Search, found_by, get_method, lowest
from .target import check_classifier, prepare_target

#: By default, all changes to presentations with at most this many entries are tried.
_TRY_ALL = 512

#: In larger presentations, how many changes are tried, times the draws of the hidden spikes.
_CANDIDATES = 8


@underflow_is_zero
def attack(
    clf: Any,
    X: ArrayLike,
    y: ArrayLike,
    budget: int,
    kind: str | Kind = "flip",
    *,
    method: str | Method = "greedy",
    loss: str | Loss = "likelihood",
    n_candidates: int | None = None,
    n_hidden: int = 2,
    first_presentation: int = 0,
) -> NDArray[np.uint8]:
    """Find the changes to input spikes that hurt the decisions of a trained classifier most.

    The attack knows the network (a white box), and by default lowers the log-likelihood of the
    right label: with first-to-spike decoding, the log-probability that the right output spikes
    first; with rate decoding, that of the desired trains.  It does not know the random numbers of
    hidden and output neurons.

    Parameters
    ----------
    clf : GLMClassifier
        Fitted, on any device; with or without hidden layers.
    X : array_like, shape (n, n_inputs) or (n, n_steps, n_inputs)
        Intensities, encoded by the spikes that ``clf.predict`` sees; or spike trains.
    y : array_like, shape (n,)
        The right labels.
    budget : int
        The most spikes to change in each presentation.  Fewer are changed if the search finds no
        further change that lowers the loss.
    kind : {"flip", "add", "remove"} or Kind
        Whether spikes are added, removed, or both.
    method : {"greedy", "iterated"} or Method
        One change at a time; or all changes at once, chosen anew in each of ten rounds.
    loss : {"likelihood", "margin"} or Loss
        What to lower: the log-likelihood of the right label; or the same minus the log-likelihood
        of the wrong label that is most likely before the attack, which hurts more with rate
        decoding.
    n_candidates : int, optional
        How many changes "greedy" compares by their exact loss at a time; the gradient proposes
        them.  By default all if a presentation has at most 512 entries (steps times inputs); else
        8, or with hidden layers 8 divided by `n_hidden`.  If all are compared, an attack with a
        budget of 1 finds the change that lowers the loss most.
    n_hidden : int
        With hidden layers: the number of draws of the hidden spikes over which the loss is averaged.
    first_presentation : int
        As for `GLMClassifier.predict`.

    Returns
    -------
    ndarray of uint8, shape (n, n_steps, n_inputs)
        The trains after the changes.  ``clf.score(trains, y, first_presentation=...)`` tests them
        with the random numbers of the same presentations.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        Before training.
    TypeError, ValueError
        If an argument is not valid.

    Examples
    --------
    >>> import glmbrian as glm
    >>> digits = glm.datasets.load_mnist((5, 7), n_train=50, n_test=50)
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=5, device="runtime",
    ...                                random_state=1).fit(digits.X_train, digits.y_train)
    >>> X, y = digits.X_test, digits.y_test
    >>> trains = glm.robustness.attack(classifier, X, y, budget=10)
    >>> at_random = glm.robustness.random_change(classifier, X, budget=10, random_state=1)
    >>> bool(classifier.score(trains, y) < classifier.score(at_random, y) - 0.2)
    True
    """
    target = prepare_target(clf, X, y, first_presentation)
    budget, kind = integer(budget, "budget", 0), get_kind(kind)
    method, loss = get_method(method), get_loss(loss)
    n_entries = target.test.n_steps * target.test.network.n_inputs
    n_hidden = integer(n_hidden, "n_hidden") if target.n_hidden_layers else 1
    if n_candidates is None:
        n_candidates = n_entries if n_entries <= _TRY_ALL else -(-_CANDIDATES // n_hidden)
    n_candidates = min(integer(n_candidates, "n_candidates"), n_entries)
    values_of_each = n_candidates * target.test.n_steps * target.test.layers[0].n
    attacked = np.empty(
        (len(target.labels), target.test.n_steps, target.test.network.n_inputs), np.uint8
    )

    def after_attack(block):
        trains = target.test.trains(block)
        draws = target.hidden_draws(block, n_hidden)
        drive = target.test.batched.first.drive(trains)
        goal, labels = target.goal(block, loss, drive, draws)
        search = Search(goal, labels, draws, trains, kind.allowed(trains), workers.go_on)
        return block.rows, search.changed(found_by(method, search, budget, n_candidates))

    blocks = target.test.blocks(values_of_each)
    with Workers() as workers, Progress("attacking", len(attacked), clf.verbose) as progress:
        for rows, changed in workers.map(after_attack, blocks):
            attacked[rows] = changed
            progress(rows.stop)
    return attacked


@underflow_is_zero
def random_change(
    clf: Any,
    X: ArrayLike,
    budget: int,
    kind: str | Kind = "flip",
    *,
    random_state: Any = None,
    first_presentation: int = 0,
) -> NDArray[np.uint8]:
    """Change input spikes at random, to compare with an `attack` of the same size.

    Parameters
    ----------
    clf, X, budget, kind, first_presentation
        As for `attack`.
    random_state : None, int, RandomState or Generator
        Determines which entries are changed.

    Returns
    -------
    ndarray of uint8, shape (n, n_steps, n_inputs)
        The trains after exactly `budget` changes in each presentation, or as many as `kind`
        allows.

    Raises
    ------
    sklearn.exceptions.NotFittedError, TypeError, ValueError
        As for `attack`.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=1, device="runtime",
    ...                                random_state=1).fit([[1.0, 0.0], [0.0, 1.0]], [0, 1])
    >>> trains = np.zeros((1, 4, 2), dtype=int)
    >>> int(glm.robustness.random_change(classifier, trains, budget=3, random_state=1).sum())
    3
    """
    test = check_classifier(clf).prepare_test(X, first_presentation).presented()
    budget, kind = integer(budget, "budget", 0), get_kind(kind)
    check_random_state(random_state)
    (key,) = derive_keys(random_state, 0, stream="random change")
    changed = np.empty((len(test.inputs), test.n_steps, test.network.n_inputs), np.uint8)
    for block in test.blocks():
        trains = test.trains(block)
        numbers = block.numbers[:, np.newaxis]
        ranks = uniforms(key, numbers, 0, np.arange(trains[0].size))
        ranks = np.where(kind.allowed(trains).reshape(ranks.shape), ranks, np.inf)
        is_changed = np.zeros(ranks.shape, dtype=bool)
        if budget:
            places = lowest(ranks, budget)
            open_ = np.isfinite(np.take_along_axis(ranks, places, axis=1))
            np.put_along_axis(is_changed, places, open_, axis=1)
        changed[block.rows] = trains ^ is_changed.reshape(trains.shape).astype(np.uint8)
    return changed
