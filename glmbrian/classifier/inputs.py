"""The presentations given to a classifier: checks, and scaling to intensities."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.validation import validate_data

from ..core.rate_code import check_intensities, warn_of_small_integers
from ..devices.problem import Inputs
from ..support.validation import binary_array, finite_array, plain_array, warn
from .input_range import SMALL_INTEGERS, InputRange, warn_of_clipping
from .settings import Settings

#: Smaller arrays are unlikely to be images, so they get no warning.
_SMALLEST_IMAGE = 8


@dataclass(frozen=True)
class InputSpec:
    """What training has seen of its inputs; later ones are checked, and scaled, alike.

    n_inputs : int
    scaler : MinMaxScaler, optional
        With `scale_inputs`.
    seen : InputRange, optional
        Unknown in models of version 0.1.
    names : ndarray of str, shape (n_inputs,), optional
        Names of columns.
    owner : str
        The class of the classifier, for scikit-learn's messages.
    """

    n_inputs: int
    scaler: MinMaxScaler | None = None
    seen: InputRange | None = None
    names: np.ndarray | None = None
    owner: str = "GLMClassifier"

    @classmethod
    def fit(
        cls, X: ArrayLike, settings: Settings, owner: str, before: InputRange | None = None
    ) -> tuple["InputSpec", Inputs]:
        """Return what the first training inputs say, and the inputs; `before` is from an earlier fit."""
        array, names, flat = _checked_shape(X, settings, cls(0, owner=owner), is_first=True)
        array = _checked_values(array, settings, flat, before)
        scaler = None
        if settings.scale_inputs and array.ndim == 2:
            scaler = MinMaxScaler(clip=True).fit(array)
        spec = cls(array.shape[-1], scaler, None, names, owner)
        array = spec._intensities(array, settings)
        if array.dtype == np.uint8 and array.ndim == 2:
            warn_of_small_integers(array, "X", SMALL_INTEGERS, ", or use scale_inputs=True")
        return replace(spec, seen=InputRange.seen_in(array)), _as_inputs(array)

    def transform(self, X: ArrayLike, settings: Settings) -> tuple["InputSpec", Inputs]:
        """Return what is known after further training on `X`, and the inputs."""
        array, _, flat = _checked_shape(X, settings, self, is_first=False)
        array = self._intensities(_checked_values(array, settings, flat, self.seen), settings)
        seen = InputRange.seen_in(array)
        if self.seen is not None:
            self.seen.warn_of_another_scale(seen)
            seen = self.seen.joined(seen)
        return replace(self, seen=seen), _as_inputs(array)

    def scaled(self, X: np.ndarray, settings: Settings) -> np.ndarray:
        """Return `X` scaled to intensities as in training."""
        if (self.scaler is not None) != settings.scale_inputs:
            raise ValueError(
                f"scale_inputs must be as in training, got {settings.scale_inputs}: training "
                "finds the range of each input"
            )
        if self.scaler is None:
            return X
        warn_of_clipping(self.scaler, X)
        return self.scaler.transform(X)

    def _intensities(self, X, settings):
        if X.ndim == 3:
            return X
        return check_intensities(self.scaled(X, settings), "X", ", or use scale_inputs=True")


def _column_names(X, spec, is_first):
    """Return the names of the columns; raise or warn if they differ from earlier ones, as scikit-learn does."""
    columns = type(spec.owner, (BaseEstimator,), {})()
    if not is_first:
        columns.n_features_in_ = spec.n_inputs
        if spec.names is not None:
            columns.feature_names_in_ = spec.names
    # Only names are checked here: scikit-learn would take axis 1 of spike trains, the steps, for the inputs.
    validate_data(columns, X, reset=is_first, skip_check_array=True, ensure_2d=False)
    return getattr(columns, "feature_names_in_", None)


def _checked_shape(X, settings, spec, is_first):
    """Return `X` as an array, the names of its columns, and a hint for messages in case `X` holds images."""
    _refuse_events(X)
    array = plain_array(X, "X", error=ValueError)
    names = _column_names(X, spec, is_first)
    X, n_steps = array, settings.architecture.n_steps
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
    if not is_first and X.shape[-1] != spec.n_inputs:
        if X.ndim == 2 and X.size == spec.n_inputs:
            flat = ". If this is one image, flatten it: X.reshape(1, -1)"
        raise ValueError(
            f"X has {X.shape[-1]} inputs, but {spec.n_inputs} were used in training: "
            f"X has {X.shape[-1]} features, but {spec.owner} is expecting "
            f"{spec.n_inputs} features as input{flat}"
        )
    if X.dtype.kind == "c":
        raise ValueError(f"X must hold real numbers. Complex data not supported, got {X.dtype}")
    return X, names, flat


def _checked_values(X, settings, flat, known):
    """Return `X` as trains of 0 and 1, or as numbers that may still need scaling."""
    if X.ndim == 3:
        return _checked_trains(X, settings.architecture.n_steps, flat, known)
    return finite_array(X, "X") if settings.scale_inputs else X


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


def _as_inputs(X):
    return Inputs("trains", X) if X.ndim == 3 else Inputs.of_intensities(X)
