"""The range of a classifier's inputs, used to notice later inputs on another scale.

Integers are bytes and reals are fractions, so data on another scale become other
intensities.  Only their range reveals this: a range that is far off causes a warning.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sklearn.preprocessing import MinMaxScaler

from ..support.validation import choice, real, warn

KINDS = ("integers", "reals", "trains")

#: Integers no larger than this in training are probably not bytes: even dark images have
#: some brighter pixels, unless there are few images.
SMALL_INTEGERS = 100

#: The factors by which the largest intensity may differ from that in training.  The brightest
#: byte of a single image is close to that of all images, but a single row of a few reals may
#: be almost 0.  Between integers and reals, the mistake to notice is a factor of 255 over the
#: largest integer.
_FACTORS = {"integers": (1 / 8, 8.0), "reals": (1 / 100, 100.0)}
_INTEGERS_TO_REALS = (0.4, 100.0)


class InputRange(NamedTuple):
    """The kind of some inputs, and their largest intensity.

    kind : {"integers", "reals", "trains"}
        8-bit integers; real numbers or booleans; or ready-made spike trains.
    largest : float
        The largest intensity, from 0 to 1; 1 for trains.
    """

    kind: str
    largest: float

    @classmethod
    def seen_in(cls, X: np.ndarray) -> "InputRange":
        """Return the range of checked intensities (n, n_inputs) or trains (n, n_steps, n_inputs)."""
        if X.ndim == 3:
            return cls("trains", 1.0)
        largest = float(X.max())
        return cls("integers", largest / 255) if X.dtype == np.uint8 else cls("reals", largest)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> "InputRange":
        """Return the range that a file holds as a mapping, after checks."""
        return cls(
            choice(config["kind"], "kind of inputs", KINDS), real(config["largest"], "largest", 0, 1)
        )

    def joined(self, later: "InputRange") -> "InputRange":
        """Return the range of all inputs after further training on `later` ones."""
        return self._replace(largest=max(self.largest, later.largest))

    def warn_of_another_scale(self, later: "InputRange") -> None:
        """Warn if `later` inputs seem to be on another scale than these training inputs."""
        if "trains" in (self.kind, later.kind) or 0 in (self.largest, later.largest):
            return
        ratio = later.largest / self.largest
        if self.kind == later.kind:
            low, high = _FACTORS[self.kind]
        else:
            low, high = _INTEGERS_TO_REALS
            if later.kind == "reals":
                low, high = 1 / high, 1 / low
        if low <= ratio <= high:
            return
        warn(
            f"X seems to be on another scale than in training: its largest intensity is "
            f"{later._in_words()}, but in training it was {self._in_words()}. "
            "Write X.astype(float) if it holds 0 and 1, or divide it by its largest possible value, "
            "as in training"
        )

    def _in_words(self):
        of_bytes = f" (the integer {self.largest * 255:.0f} of 255)" if self.kind == "integers" else ""
        return f"{self.largest:.3g}{of_bytes}"


def warn_of_clipping(scaler: MinMaxScaler, X: np.ndarray) -> None:
    """Warn if most of `X` is far outside the training range, to which it will be clipped.

    Values at the minimum in training, such as the background of images, do not count.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        position = X * scaler.scale_ + scaler.min_  # 0 to 1 in training
    n_outside = np.count_nonzero(np.abs(position - 0.5) > 3.5)
    if n_outside > np.count_nonzero(position) / 2:
        warn(
            "X lies far outside the range that the inputs had in training, so scale_inputs clips it: "
            "it seems to be on another scale. Scale X as in training"
        )
