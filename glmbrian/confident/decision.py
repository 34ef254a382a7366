"""Decisions whose error stays below a bound."""

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError

from ..classifier.classifier import GLMClassifier
from ..classifier.labels import check_known
from ..core.decisions import REJECTED
from ..support.floating_point import underflow_is_zero
from ..support.validation import real
from .scores import Scores, check_classifier, step_scores
from .thresholds import Tested, checked_thresholds, first_above


class ConfidentDecision:
    """Decide in the first step in which a class is sure enough, or abstain.

    In step t, the inputs so far give the probability that each output spikes first (or, with rate
    decoding, most often) by step t.  Divided by their sum, these say how probable each class is,
    given that there is a decision by then.  The presentation is decided for the most probable
    class in the first step in which this probability reaches a threshold.  It does not depend on
    output spikes, so the only randomness is that of the encoding and of hidden neurons.  With rate
    decoding, it is exact up to step 10, and estimated by simulating the outputs from then on.

    `calibrate` finds the threshold from data that training did not see.  The guarantee: if the
    presentations in calibration and later ones are drawn independently from one distribution, then
    with a probability of at least `confidence` (over the calibration data), the error is at most
    `error`.  The error is the probability that a new presentation is decided wrongly, given that it
    is decided.  The guarantee does not hold for each class by itself, nor under attack.  A small
    bound needs much data: even without a mistake, about ``6 / error`` decided presentations at the
    default confidence.  With too few, `predict` abstains from every presentation.

    Parameters
    ----------
    clf : GLMClassifier
        Fitted; not changed.
    error : float
        The bound on the error among decided presentations.
    confidence : float
        The probability, over calibration data, that `error` is not exceeded.

    Attributes
    ----------
    threshold_ : float
        The probability at which to decide; infinite if no threshold passes the test.
    tested_ : list of glmbrian.confident.thresholds.Tested
        What calibration found for each threshold.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 100, 20, axis=1)
    >>> y = ["left", "right"] * 100
    >>> classifier = glm.GLMClassifier(n_steps=8, n_basis=2, n_epochs=1, learning_rate=0.1,
    ...                                device="runtime", random_state=1).fit(X, y)
    >>> confident = glm.ConfidentDecision(classifier, error=0.05).calibrate(X, y)
    >>> labels, steps = confident.predict(X[:2])
    >>> labels.tolist()
    ['left', 'right']
    >>> bool(steps.max() < 8)
    True
    """

    threshold_: float
    tested_: list[Tested]

    def __init__(self, clf: GLMClassifier, error: float = 0.05, confidence: float = 0.95) -> None:
        self.clf = check_classifier(clf)
        self.error = real(error, "error", 0, strict=True, below=1)
        self.confidence = real(confidence, "confidence", 0, strict=True, below=1)

    def __repr__(self):
        found = f", threshold={self.threshold_:.6g}" if hasattr(self, "threshold_") else ""
        return (
            f"ConfidentDecision({self.clf!r}, error={self.error}, confidence={self.confidence}{found})"
        )

    @underflow_is_zero
    def calibrate(self, X: ArrayLike, y: ArrayLike, first_presentation: int = 0) -> "ConfidentDecision":
        """Find the threshold that keeps the error below the bound.

        28 thresholds, fixed in advance, are tested from the strictest to the most lenient, and the
        most lenient accepted one is used.  Each test is exact (binomial, as in the Clopper-Pearson
        bound).  The tests share the significance level ``1 - confidence``, and one that is passed
        hands its level on to the next.

        Parameters
        ----------
        X : array_like
            As for `GLMClassifier.fit`, but presentations that training did not see.
        y : array_like, shape (n,)
            Class labels.
        first_presentation : int
            As for `GLMClassifier.predict`.  Later presentations should have other numbers.

        Returns
        -------
        self

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the classifier is not fitted.
        TypeError, ValueError
            If an argument is not valid.

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 100, 20, axis=1)
        >>> y = ["left", "right"] * 100
        >>> classifier = glm.GLMClassifier(n_steps=8, n_basis=2, n_epochs=1, learning_rate=0.1,
        ...                                device="runtime", random_state=1).fit(X, y)
        >>> confident = glm.ConfidentDecision(classifier, error=0.05).calibrate(X, y)
        >>> 0.5 < confident.threshold_ < 1
        True
        """
        scores = step_scores(self.clf, X, first_presentation)
        y = check_known(y, len(scores.best), self.clf.classes_, "classes_")
        right = self.clf.classes_[scores.best] == y[:, np.newaxis]
        self.tested_ = checked_thresholds(scores.log_odds, right, self.error, self.confidence)
        self._log_odds = min(
            (tested.threshold for tested in self.tested_ if tested.accepted), default=math.inf
        )
        self.threshold_ = 1 / (1 + math.exp(-self._log_odds)) if self._log_odds < math.inf else math.inf
        return self

    @underflow_is_zero
    def predict(
        self, X: ArrayLike, first_presentation: int = 0
    ) -> tuple[np.ndarray, NDArray[np.int64]]:
        """Decide, or abstain.

        Parameters
        ----------
        X : array_like
            As for `GLMClassifier.fit`.
        first_presentation : int
            As for `GLMClassifier.predict`.

        Returns
        -------
        labels : ndarray, shape (n,)
            Abstentions are -1 if the classes are numbers other than -1; otherwise they are
            None, in an array of objects.
        steps : ndarray of int, shape (n,)
            Steps of the decisions, from 1; 0 for abstentions, which come after all steps.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            Before `calibrate`, or if the classifier is not fitted.
        TypeError, ValueError
            If an argument is not valid.

        Examples
        --------
        Too few presentations for an error bound of 1%:

        >>> import numpy as np, glmbrian as glm
        >>> X, y = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 50, 20, axis=1), [0, 1] * 50
        >>> classifier = glm.GLMClassifier(n_steps=8, n_basis=2, n_epochs=1, learning_rate=0.1,
        ...                                device="runtime", random_state=1).fit(X, y)
        >>> confident = glm.ConfidentDecision(classifier, error=0.01).calibrate(X, y)
        >>> confident.predict(X[:2])
        (array([-1, -1]), array([0, 0]))
        """
        labels, steps, _ = self._decide(X, first_presentation)
        return labels, steps

    @underflow_is_zero
    def evaluate(self, X: ArrayLike, y: ArrayLike, first_presentation: int = 0) -> dict[str, Any]:
        """Measure error, coverage and cost, beside those of the classifier's own decisions.

        Parameters
        ----------
        X : array_like
            As for `GLMClassifier.fit`.
        y : array_like, shape (n,)
            Class labels.
        first_presentation : int
            As for `GLMClassifier.predict`.

        Returns
        -------
        dict
            ``error`` (the fraction of decided presentations that are wrong; 0 if none is decided),
            ``coverage`` (the fraction that is decided), ``mean_decision_step`` (of all
            presentations; abstentions take all steps), ``operations_per_class`` (the mean number
            of input spikes up to the decision) and ``own_decisions``, what
            `GLMClassifier.evaluate` returns for the same presentations.

        Raises
        ------
        sklearn.exceptions.NotFittedError, TypeError, ValueError
            As for `predict`.

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 100, 20, axis=1)
        >>> y = ["left", "right"] * 100
        >>> classifier = glm.GLMClassifier(n_steps=8, n_basis=2, n_epochs=1, learning_rate=0.1,
        ...                                device="runtime", random_state=1).fit(X, y)
        >>> confident = glm.ConfidentDecision(classifier, error=0.05).calibrate(X, y)
        >>> measured = confident.evaluate(X, y, first_presentation=200)
        >>> measured["error"], measured["coverage"] > 0.9
        (0.0, True)
        """
        labels, steps, scores = self._decide(X, first_presentation)
        y = check_known(y, len(steps), self.clf.classes_, "classes_")
        decided, n_steps = steps > 0, scores.best.shape[1]
        until = np.where(decided, steps, n_steps)
        wrong = np.array([label != right for label, right in zip(labels[decided], y[decided])])
        # On a copy, since `evaluate` would replace the user's `decisions_`.
        own = copy(self.clf).evaluate(X, y, first_presentation)
        return {
            "error": float(wrong.mean()) if len(wrong) else 0.0,
            "coverage": float(decided.mean()),
            "mean_decision_step": float(until.mean()),
            "operations_per_class": float(scores.input_spikes[np.arange(len(until)), until - 1].mean()),
            "own_decisions": own,
        }

    def _decide(self, X, first_presentation) -> tuple[np.ndarray, NDArray[np.int64], Scores]:
        if not hasattr(self, "threshold_"):
            raise NotFittedError(
                "this ConfidentDecision has no threshold yet; call calibrate, with presentations that "
                "training did not see"
            )
        scores = step_scores(self.clf, X, first_presentation)
        steps = first_above(scores.log_odds, self._log_odds)
        labels = self.clf.classes_[scores.best[np.arange(len(steps)), steps]]
        return _with_abstentions(labels, steps < 0, self.clf.classes_), steps + 1, scores


def _with_abstentions(labels, abstained, classes):
    if classes.dtype.kind in "iuf" and REJECTED not in classes.tolist():
        if labels.dtype.kind == "u":
            labels = labels.astype(np.int64 if labels.dtype.itemsize < 8 else float)
        labels[abstained] = REJECTED
        return labels
    labels = labels.astype(object)
    labels[abstained] = None
    return labels
