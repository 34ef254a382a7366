"""Training of many classifiers at once, on the same input spikes."""

from collections.abc import Iterable

import numpy as np
from joblib import cpu_count
from numpy.typing import ArrayLike

from ..core.bases import Basis
from ..support.floating_point import underflow_is_zero
from ..support.validation import integer
from .classifier import GLMClassifier
from .divergence import warn_of_divergence
from .training import prepare, train

#: The parameters in which the members of an ensemble may differ.
OWN_PARAMETERS = ("learning_rate", "start_state", "verbose")


@underflow_is_zero
def fit_ensemble(
    classifiers: Iterable[GLMClassifier],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> list[GLMClassifier]:
    """Train several classifiers at once that differ in start, learning rate or training data.

    One simulation holds the classifiers as replicas that receive the same spikes.  It draws
    the spikes, and does all other work that does not depend on the replica, only once.  Each
    classifier ends up with the parameters that its own ``fit(X, y, sample_weight)`` would give.

    Parameters
    ----------
    classifiers : list of GLMClassifier
        They are fitted in place.  They may differ in `learning_rate`, `start_state` and
        `verbose`.  Give all the same integer `random_state`.
    X, y
        As for `GLMClassifier.fit`.
    sample_weight : array_like of float, shape (n_classifiers, n), optional
        As for `GLMClassifier.fit`, one row per classifier.  Rows of 0 and 1 train on
        folds of the data.
    n_jobs : int, optional
        Number of processes that share the classifiers on the device
        ``"cpp_standalone"``; by default one per core.  The other devices hold all
        classifiers in one simulation.

    Returns
    -------
    list of GLMClassifier
        The same `classifiers`, now fitted.

    Raises
    ------
    TypeError, ValueError
        If classifiers differ in any other parameter, or an argument is not valid.

    Examples
    --------
    >>> import glmbrian as glm
    >>> digits = glm.datasets.load_mnist((5, 7), n_train=10, n_test=10)
    >>> classifiers = [
    ...     glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=1, device="runtime",
    ...                       random_state=0, learning_rate=rate)
    ...     for rate in (1e-3, 1e-2)
    ... ]
    >>> fitted = glm.fit_ensemble(classifiers, digits.X_train, digits.y_train)
    >>> fitted[1].weights_.shape
    (784, 2, 2)
    """
    members = _check_alike(classifiers)
    settings = [member.settings for member in members]
    settings[0].refuse_early_stopping("fit_ensemble")
    n_jobs = cpu_count() if n_jobs is None else integer(n_jobs, "n_jobs")
    prepared = prepare(settings, X, y, sample_weight, one_row_each=True)
    states = train(prepared, n_jobs)
    warn_of_divergence(states, prepared)
    for member, state in zip(members, states):
        member.restore(state)
    return members


def _is_same(value, other):
    if isinstance(value, Basis) and isinstance(other, Basis):
        return np.array_equal(value.matrix, other.matrix)
    return value is other or value == other


def _check_alike(classifiers):
    try:
        classifiers = list(classifiers)
    except TypeError:
        classifiers = []
    if not classifiers or not all(isinstance(member, GLMClassifier) for member in classifiers):
        raise TypeError("classifiers must be a list of at least one GLMClassifier")
    if len({id(member) for member in classifiers}) < len(classifiers):
        raise ValueError("classifiers must be distinct objects, but one of them is given twice")
    # Parameters that are not valid, such as arrays, may not even compare.
    for member in classifiers:
        _ = member.settings
    shared = classifiers[0].get_params()
    for number, member in enumerate(classifiers):
        for name, value in member.get_params().items():
            if name not in OWN_PARAMETERS and not _is_same(value, shared[name]):
                raise ValueError(
                    f"classifiers may differ only in {', '.join(OWN_PARAMETERS)}, but number "
                    f"{number} has {name}={value!r} and number 0 has {shared[name]!r}"
                )
    return classifiers
