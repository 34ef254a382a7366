"""Rate coding: intensities become the probabilities of Bernoulli spike trains.

Probabilities are stored as *levels* from 0 to 65536, in single precision, and compared with
16-bit random integers; in the rare case of a tie a second draw decides (see
`glmbrian.core.randomness.bernoulli`).  These comparisons are exact, so every spike is the
same on every device.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.validation import plain_array, warn
from .randomness import DRAW_LEVELS, bernoulli

#: The level of each 8-bit intensity, for the probability intensity / 510.
LEVEL_OF_BYTE = np.rint(np.arange(256) * (DRAW_LEVELS / 510)).astype(np.uint16)

_ROUNDING = 2 * np.finfo(np.float32).eps


def check_intensities(intensities: Any, name: str, remedy: str = "") -> np.ndarray:
    """Return `intensities` as uint8 (0..255) or as float64 (0..1) after checks.

    `remedy` is appended to the message about values that are out of range.
    """
    array = plain_array(intensities, name)
    allowed = "integers from 0 to 255 (uint8) or real numbers from 0 to 1"
    if array.dtype == np.uint8:
        return array
    kind: type[np.number]
    if array.dtype.kind in "iu":
        top, kind = 255, np.uint8
    elif array.dtype.kind in "fb":
        top, kind = 1, np.float64
    else:
        hint = f"; try {name}.astype(float)" if array.dtype.kind == "O" else ""
        raise TypeError(f"{name} must hold {allowed}, got dtype {array.dtype}{hint}")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold {allowed}, but holds NaN or infinity")
    # Scaling to [0, 1], as MinMaxScaler does, may overshoot by a rounding error.
    beyond: Any = max(1e-9, 2 * np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0
    if array.size and (array.min() < -beyond or array.max() > top + beyond):
        if array.dtype.kind == "f" and np.all(
            (array >= 0) & (array <= 255) & (array == np.round(array))
        ):
            remedy = f", write {name}.astype('uint8') if they are bytes{remedy}"
        raise ValueError(
            f"{name} must hold {allowed}, got dtype {array.dtype} with values from "
            f"{array.min()} to {array.max()}; scale them to one of these{remedy}"
        )
    return array.astype(kind).clip(0, top)


def warn_of_small_integers(intensities: np.ndarray, name: str, largest: int, remedy: str = "") -> None:
    """Warn if checked `intensities` are integers up to `largest` only: probably not bytes."""
    found = intensities.max(initial=0)
    if intensities.dtype == np.uint8 and 0 < found <= largest:
        warn(
            f"{name} holds integers up to {found} only. Integers count as bytes with full intensity at 255, "
            f"so an input of {found} spikes with probability {found / 510:.2g} in a step. If they are "
            f"not bytes, write {name}.astype(float) for 0 and 1, or divide by the largest possible "
            f"value, as in {name} / 16{remedy}"
        )


def as_bytes(intensities: NDArray[np.float64]) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return real intensities as the nearest bytes, and which of them are bytes.

    A number that equals k / 255 up to rounding in single precision counts as k, so an image
    gives the same spikes in both forms.

    Returns
    -------
    bytes : ndarray of uint8
    are_bytes : ndarray of bool
    """
    scaled = 255 * intensities
    nearest = np.rint(scaled)
    return nearest.astype(np.uint8), np.abs(scaled - nearest) <= _ROUNDING * nearest


def levels(intensities: np.ndarray) -> NDArray[np.float32]:
    """Return the spike-probability levels of checked intensities, as float32.

    8-bit intensities spike with probability intensity / 510, rounded to a whole level;
    real ones with probability intensity / 2.
    """
    if intensities.dtype == np.uint8:
        return LEVEL_OF_BYTE[intensities].astype(np.float32)
    nearest, are_bytes = as_bytes(intensities)
    exact = intensities * (DRAW_LEVELS // 2)
    return np.where(are_bytes, LEVEL_OF_BYTE[nearest], exact).astype(np.float32)


def rate_encode(
    levels: np.ndarray, key: int, presentations: ArrayLike, n_steps: int
) -> NDArray[np.uint8]:
    """Return the spike trains that `RateEncoder` emits under `key`, computed with NumPy.

    Parameters
    ----------
    levels : ndarray of float, shape (n, n_inputs)
        See `levels`.
    key : int
        See `glmbrian.core.randomness.derive_keys`.
    presentations : array_like of int, shape (n,)
        Number of each presentation; the draws depend on it.
    n_steps : int

    Returns
    -------
    ndarray of uint8, shape (n, n_steps, n_inputs)
    """
    spikes = np.zeros((len(levels), n_steps, levels.shape[-1]), dtype=np.uint8)
    # In images most inputs never spike.
    rows, inputs = np.nonzero(levels)
    numbers = np.asarray(presentations)[rows]
    for step in range(n_steps):
        spikes[rows, step, inputs] = bernoulli(key, numbers, step, inputs, levels[rows, inputs])
    return spikes
