"""What a classifier has learned: everything that affects decisions apart from its settings."""

from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from ..core.bases import Basis
from ..devices.problem import Parameters, Timing
from .input_range import InputRange
from .streams import Streams


@dataclass(frozen=True)
class Learned:
    """The state of a fitted classifier (see `GLMClassifier.adopt`).

    parameters : Parameters
        If there are no feedback weights, the array has the shape (n_classes, 0).
    basis : Basis
    classes : ndarray, shape (n_classes,)
    streams : Streams
    n_presentations : int
        Number of presentations so far in training.
    history : ndarray of float, shape (n_epochs,)
    timing : Timing, optional
    scaler : MinMaxScaler, optional
    inputs_seen : InputRange, optional
    feature_names : ndarray of str, shape (n_inputs,), optional
    """

    parameters: Parameters
    basis: Basis
    classes: np.ndarray
    streams: Streams
    n_presentations: int
    history: np.ndarray
    timing: Timing | None = None
    scaler: MinMaxScaler | None = None
    inputs_seen: InputRange | None = None
    feature_names: np.ndarray | None = None
