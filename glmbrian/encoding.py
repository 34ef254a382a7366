"""Rate encoding: intensities become Bernoulli spike trains.

Probabilities are held as *levels* from 0 to 65536, in single precision, and compared with
random integers of 16 bits; in the rare case that the two are level a second draw decides
(see `glmbrian.randomness.bernoulli`).  These comparisons are exact, so that every spike is
the same on every device.
"""

import numpy as np
from brian2 import NeuronGroup, TimedArray

from .brian_internals import add_index_alias, shared_flag, step_and_index
from .randomness import DRAW_LEVELS, bernoulli, derive_keys, glm_bernoulli, glm_step, split_key
from .validation import integer, plain_array, warn

_INPUT_DRAWS = 0

#: Integers up to this seem to be no bytes; of low rates, some are larger.
_SMALL = 16

#: The level of each 8-bit intensity: probability intensity / 510.
LEVEL_OF_BYTE = np.rint(np.arange(256) * (DRAW_LEVELS / 510)).astype(np.uint16)

_ROUNDING = 2 * np.finfo(np.float32).eps


def check_intensities(intensities, name, remedy=""):
    """Return `intensities` as uint8 (0..255) or as float64 (0..1) after checks.

    `remedy` is what else can be done about values that are out of range.
    """
    array = plain_array(intensities, name)
    allowed = "integers from 0 to 255 (uint8) or real numbers from 0 to 1"
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind in "iu":
        top, kind = 255, np.uint8
    elif array.dtype.kind in "fb":
        top, kind = 1, np.float64
    else:
        hint = f"; try {name}.astype(float)" if array.dtype.kind == "O" else ""
        raise TypeError(f"{name} must hold {allowed}, got dtype {array.dtype}{hint}")
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold {allowed}, but holds NaN or infinity")
    # Scaling to [0, 1], as MinMaxScaler does, may end a rounding error beyond.
    beyond = max(1e-9, 2 * np.finfo(array.dtype).eps) if array.dtype.kind == "f" else 0
    if array.size and (array.min() < -beyond or array.max() > top + beyond):
        raise ValueError(
            f"{name} must hold {allowed}, got dtype {array.dtype} with values from "
            f"{array.min()} to {array.max()}; scale them to one of these{remedy}"
        )
    return array.astype(kind).clip(0, top)


def warn_of_small_integers(intensities, name, largest, remedy=""):
    """Warn if checked `intensities` are integers up to `largest` only, which seem to be no bytes."""
    found = intensities.max(initial=0)
    if intensities.dtype == np.uint8 and 0 < found <= largest:
        warn(
            f"{name} holds integers up to {found} only. They count as bytes, of which 255 is the full "
            f"intensity, so an input of {found} spikes with probability {found / 510:.2g} in a step. If "
            f"they are no bytes, write {name}.astype(float) for 0 and 1, or divide them by the largest "
            f"value that they can have ({name} / 16){remedy}"
        )


def as_bytes(intensities):
    """Return the 8-bit intensities that real ones stand for, and where they do.

    A number within rounding (of single precision) of k / 255 is taken for k, so that an
    image spikes alike in both forms.

    Returns
    -------
    bytes : ndarray of uint8
    are_bytes : ndarray of bool
    """
    scaled = 255 * intensities
    nearest = np.rint(scaled)
    return nearest.astype(np.uint8), np.abs(scaled - nearest) <= _ROUNDING * nearest


def levels(intensities):
    """Return the spike-probability levels of checked intensities, as float32.

    8-bit intensities spike with probability intensity / 510, rounded to a whole level;
    real ones with intensity / 2.
    """
    if intensities.dtype == np.uint8:
        return LEVEL_OF_BYTE[intensities].astype(np.float32)
    nearest, are_bytes = as_bytes(intensities)
    exact = intensities * (DRAW_LEVELS // 2)
    return np.where(are_bytes, LEVEL_OF_BYTE[nearest], exact).astype(np.float32)


def rate_encode(levels, key, presentations, n_steps):
    """Return the spike trains that `RateEncoder` emits under `key`, in NumPy.

    Parameters
    ----------
    levels : ndarray of float, shape (n, n_inputs)
        See `levels`.
    key : int
        See `glmbrian.randomness.derive_keys`.
    presentations : array_like of int, shape (n,)
        Number of each presentation, which the draws depend on.
    n_steps : int

    Returns
    -------
    ndarray of uint8, shape (n, n_steps, n_inputs)
    """
    presentations = np.asarray(presentations)[:, np.newaxis, np.newaxis]
    steps = np.arange(n_steps)[:, np.newaxis]
    levels = levels[:, np.newaxis, :]
    return bernoulli(key, presentations, steps, np.arange(levels.shape[-1]), levels).astype(np.uint8)


class RateEncoder(NeuronGroup):
    """Inputs that spike independently, with probabilities given by an image.

    Parameters
    ----------
    intensities : array_like, shape (n_inputs,) or (n_images, n_inputs)
        Integers from 0 to 255 spike with probability intensity / 510 in each
        step (rounded to a multiple of 2**-16), real numbers from 0 to 1 with probability
        intensity / 2; those that are within rounding of k / 255 are taken for k.
    n_steps : int, optional
        Steps for which each image is presented, one after the other; the last
        one stays.  Needed if there are several images.
    random_state : None, int, RandomState or Generator
        Fixes the spikes drawn, on every device and target alike.  ``None`` takes
        a state from NumPy's global generator, which `brian2.seed` sets on the
        runtime device.
    dt, clock, order, name
        As for `brian2.NeuronGroup`.

    Attributes
    ----------
    intensity
        Write only: sets the present image, shape (n_inputs,).

    Raises
    ------
    TypeError, ValueError
        If intensities are out of range or not finite, or the shape is wrong.

    Examples
    --------
    >>> import numpy as np, glmbrian as glm
    >>> from brian2 import Network, SpikeMonitor, ms
    >>> encoder = glm.RateEncoder(np.array([0, 255], dtype=np.uint8), dt=1 * ms, random_state=1)
    >>> monitor = SpikeMonitor(encoder)
    >>> Network(encoder, monitor).run(1000 * ms)
    >>> [bool(abs(count - expected) < 50) for count, expected in zip(monitor.count, (0, 500))]
    [True, True]
    """

    def __init__(
        self,
        intensities,
        n_steps=None,
        random_state=None,
        dt=None,
        clock=None,
        order=0,
        name="rateencoder*",
    ):
        images = check_intensities(intensities, "intensities")
        if images.ndim not in (1, 2) or 0 in images.shape:
            raise ValueError(
                "intensities must have the shape (n_inputs,) or (n_images, n_inputs), "
                f"none of them 0, got {images.shape}"
            )
        images = np.atleast_2d(images)
        warn_of_small_integers(images, "intensities", _SMALL)
        if n_steps is not None:
            n_steps = integer(n_steps, "n_steps")
        elif len(images) > 1:
            raise ValueError("n_steps (steps an image) must be given with several images")
        key = split_key(derive_keys(random_state, _INPUT_DRAWS)[0])
        step, index = step_and_index("input_index")
        shared = shared_flag()
        super().__init__(
            images.shape[1],
            f"""
            level : 1
            key_low : integer {shared}
            key_high : integer {shared}
            presentation : integer {shared}
            first_step : integer {shared}
            """,
            threshold="glm_bernoulli(key_low, key_high, presentation, "
            f"{step} - first_step, {index}, level)",
            reset="",
            namespace={"glm_bernoulli": glm_bernoulli, "glm_step": glm_step},
            dt=dt,
            clock=clock,
            order=order,
            name=name,
        )
        add_index_alias(self, "input_index")
        self.key_low, self.key_high = key
        image_levels = levels(images)
        if len(images) == 1:
            self.level = image_levels[0]
        else:
            self.namespace["image_levels"] = TimedArray(image_levels, dt=n_steps * self.clock.dt)
            self.add_attribute("_built_for")
            self._built_for = self.clock.dt
            self.run_regularly(
                f"""
                presentation = {step} // {n_steps}
                first_step = {step}
                level = image_levels(t, {index})
                """,
                dt=n_steps * self.clock.dt,
                when="start",
            )

    def before_run(self, run_namespace=None):
        # The images change on a clock of their own.
        if hasattr(self, "_built_for") and self.clock.dt != self._built_for:
            raise ValueError(
                f"dt was {self._built_for} when {self.name} was created and is {self.clock.dt} "
                "now; set defaultclock.dt before creating an encoder of several images"
            )
        super().before_run(run_namespace)

    @property
    def intensity(self):
        raise AttributeError("intensity can only be set; `level` holds 65536 times the probability")

    @intensity.setter
    def intensity(self, image):
        image = check_intensities(image, "intensity")
        if image.shape != (len(self),):
            raise ValueError(f"intensity must have the shape ({len(self)},), got {image.shape}")
        warn_of_small_integers(image, "intensity", _SMALL)
        self.level = levels(image)
