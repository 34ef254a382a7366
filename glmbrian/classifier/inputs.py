"""The presentations given to a classifier: checks, and scaling to intensities."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import validate_data

from ..core.rate_code import check_intensities, warn_of_small_integers
from ..devices.problem import Inputs
from ..support.validation import binary_array, finite_array, plain_array, warn
from .input_range import SMALL_INTEGERS, InputRange, warn_of_clipping

if TYPE_CHECKING:
    from .classifier import GLMClassifier

#: Smaller arrays are unlikely to be images, so they get no warning.
_SMALLEST_IMAGE = 8


def check_first_inputs(classifier: "GLMClassifier", X: ArrayLike) -> Inputs:
    """Return the first `Inputs` that a `GLMClassifier` is trained on.

    Later inputs are checked against these, so this sets `feature_names_in_`, `scaler_` and
    `inputs_seen_`.
    """
    array, flat = _checked_shape(classifier, X, is_first=True)
    array = _checked_values(classifier, array, flat, classifier.inputs_seen_)
    classifier.scaler_ = None
    if classifier.scale_inputs and array.ndim == 2:
        classifier.scaler_ = MinMaxScaler(clip=True).fit(array)
    array = _intensities(classifier, array)
    classifier.inputs_seen_ = InputRange.seen_in(array)
    if array.dtype == np.uint8 and array.ndim == 2:
        warn_of_small_integers(array, "X", SMALL_INTEGERS, ", or use scale_inputs=True")
    return _as_inputs(array)


def check_inputs(classifier: "GLMClassifier", X: ArrayLike, learns: bool = False) -> Inputs:
    """Return the `Inputs` for a test, or for further training if `learns` is True."""
    array, flat = _checked_shape(classifier, X, is_first=False)
    known = classifier.inputs_seen_
    array = _intensities(classifier, _checked_values(classifier, array, flat, known))
    seen = InputRange.seen_in(array)
    if known is not None:
        known.warn_of_another_scale(seen)
        seen = known.joined(seen)
    if learns:
        classifier.inputs_seen_ = seen
    return _as_inputs(array)


def scaled(classifier: "GLMClassifier", X: np.ndarray) -> np.ndarray:
    """Return `X` scaled to intensities as in training."""
    scaler = classifier.scaler_
    if (scaler is not None) != classifier.scale_inputs:
        raise ValueError(
            f"scale_inputs must be as in training, got {classifier.scale_inputs}: training "
            "finds the range of each input"
        )
    if scaler is None:
        return X
    warn_of_clipping(scaler, X)
    return scaler.transform(X)


def _checked_shape(classifier, X, is_first):
    """Return `X` as an array, and a hint for error messages in case `X` holds images."""
    _refuse_events(X)
    array = plain_array(X, "X", error=ValueError)
    # Only column names are checked here: scikit-learn would take axis 1 of spike trains, the
    # steps, for the inputs.
    validate_data(classifier, X, reset=is_first, skip_check_array=True, ensure_2d=False)
    X, n_steps = array, int(classifier.n_steps)
    flat = ""
    if X.ndim > 2 and X.size:
        shape = (len(X), X.size // len(X))
        flat = f". If these are images, flatten them: X.reshape(len(X), -1), of the shape {shape}"
    if X.ndim not in (2, 3):
        reshaped = flat or ". Reshape your data; write X.reshape(1, -1) if it is one presentation"
        raise ValueError(
            f"X must have the shape (n, n_inputs), or (n, {n_steps}, n_inputs) for spike trains of "
            f"n_steps={n_steps} steps, got {X.shape}{reshaped}"
        )
    if 0 in X.shape:
        raise ValueError(
            f"X must hold at least one presentation and one input, got {X.shape[-1]} feature(s) "
            f"(shape={X.shape}) while a minimum of 1 is required."
        )
    if not is_first and X.shape[-1] != classifier.n_features_in_:
        if X.ndim == 2 and X.size == classifier.n_features_in_:
            flat = ". If this is one image, flatten it: X.reshape(1, -1)"
        raise ValueError(
            f"X has {X.shape[-1]} inputs, but {classifier.n_features_in_} were used in training: "
            f"X has {X.shape[-1]} features, but {type(classifier).__name__} is expecting "
            f"{classifier.n_features_in_} features as input{flat}"
        )
    if X.dtype.kind == "c":
        raise ValueError(f"X must hold real numbers. Complex data not supported, got {X.dtype}")
    return X, flat


def _checked_values(classifier, X, flat, known):
    """Return `X` as trains of 0 and 1, or as numbers that may still need scaling."""
    if X.ndim == 3:
        return _checked_trains(X, int(classifier.n_steps), flat, known)
    return finite_array(X, "X") if classifier.scale_inputs else X


def _refuse_events(X):
    """Raise a TypeError if `X` holds events, as structured arrays."""
    first = X
    for _ in range(3):  # a list of pairs (events, label)
        if getattr(getattr(first, "dtype", None), "names", None):
            raise TypeError(
                "X must be an array of numbers, but holds events (a structured array); write X, y = "
                "glmbrian.interop.from_tonic(dataset, n_steps, dt) to make spike trains from pairs "
                "(events, label)"
            )
        if not isinstance(first, (list, tuple)) or not first:
            return
        first = first[0]


def _checked_trains(X, n_steps, flat, known):
    if X.shape[1] != n_steps:
        if X.dtype.kind in "buif" and np.all((X == 0) | (X == 1)):
            flat = f". If these are trains of {X.shape[1]} steps, set n_steps={X.shape[1]}"
            if X.shape[2] == n_steps:
                flat += "; if steps are the last axis, write X.transpose(0, 2, 1)"
        raise ValueError(
            f"X must have the shape (n, {n_steps}, n_inputs) for spike trains of n_steps={n_steps} "
            f"steps, got {X.shape}{flat}"
        )
    try:
        trains = binary_array(X, "X")
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}, if it is spike trains (n, n_steps, n_inputs){flat}") from None
    if _SMALLEST_IMAGE <= n_steps == X.shape[2] and (known is None or known.kind != "trains"):
        warn(
            f"X of the shape {X.shape} is taken to be spike trains (n, n_steps, n_inputs) of {n_steps} "
            f"steps{flat}"
        )
    return trains


def _intensities(classifier, X):
    if X.ndim == 3:
        return X
    return check_intensities(scaled(classifier, X), "X", ", or use scale_inputs=True")


def _as_inputs(X):
    return Inputs("trains", X) if X.ndim == 3 else Inputs.of_intensities(X)
