"""Rate encoding: intensities become Bernoulli spike trains.

Probabilities are held as *levels* from 0 to 65536, in single precision, and compared with
random integers of 16 bits; in the rare case that the two are equal a second draw decides
(see `glmbrian.core.randomness.bernoulli`).  These comparisons are exact, so that every spike is
the same on every device.
"""

import numpy as np
from brian2 import NeuronGroup, TimedArray, get_device, second
from brian2.devices.device import RuntimeDevice

from .internals import (
    add_index_alias,
    generate_in_double_precision,
    index_name,
    on_genn,
    planned_steps,
    shared_flag,
)
from ..support.display import Described
from .filters import STEP_COUNT
from ..core.randomness import DRAW_LEVELS, bernoulli, derive_keys, glm_bernoulli, glm_step, split_key
from .streams import warn_of_equal_draws
from ..support.validation import check_brian_arguments, integer, plain_array, warn

_INPUT_DRAWS = 0

#: The images are a TimedArray, of which image n is the value at n times this unit.  The unit is
#: shorter than any time step, since Brian requires the two to fit.
_IMAGE_NUMBER = 1e-9 * second

#: Integers that go only up to this are probably not bytes; even low rates have larger ones.
_SMALL = 16

#: The level of each 8-bit intensity: probability intensity / 510.
LEVEL_OF_BYTE = np.rint(np.arange(256) * (DRAW_LEVELS / 510)).astype(np.uint16)

_ROUNDING = 2 * np.finfo(np.float32).eps


def check_intensities(intensities, name, remedy=""):
    """Return `intensities` as uint8 (0..255) or as float64 (0..1) after checks.

    `remedy` ends the message about values that are out of range: what else can be done.
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
    """Warn if checked `intensities` are integers up to `largest` only: these are hardly bytes."""
    found = intensities.max(initial=0)
    if intensities.dtype == np.uint8 and 0 < found <= largest:
        warn(
            f"{name} holds integers up to {found} only. Integers count as bytes with full intensity at 255, "
            f"so an input of {found} spikes with probability {found / 510:.2g} in a step. If they are "
            f"not bytes, write {name}.astype(float) for 0 and 1, or divide by the largest possible "
            f"value, as in {name} / 16{remedy}"
        )


def as_bytes(intensities):
    """Return the 8-bit intensities that real ones stand for, and which ones do.

    A number that equals k / 255 up to rounding in single precision counts as k, so that an
    image gives the same spikes in both forms.

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
        See `glmbrian.core.randomness.derive_keys`.
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


class RateEncoder(Described, NeuronGroup):
    """Inputs that spike independently, with probabilities given by an image.

    Parameters
    ----------
    intensities : array_like, shape (n_inputs,) or (n_images, n_inputs)
        Integers from 0 to 255 spike with probability intensity / 510 in each
        step (rounded to a multiple of 2**-16), real numbers from 0 to 1 with probability
        intensity / 2.  Real numbers that equal k / 255 up to rounding count as k.
    n_steps : int, optional
        Steps for which each image is presented, one after the other; the last
        one stays.  Needed if there are several images.
    random_state : None, int, RandomState or Generator
        Fixes the spikes drawn, on every device and target alike.  ``None`` takes
        a state from NumPy's global generator, which `brian2.seed` sets on the
        runtime device.
    dt, clock, order, name
        As for `brian2.NeuronGroup`.
    stream : str, optional
        Encoders with the same `random_state` draw the same numbers; with streams of
        different names they draw independent ones.

    Attributes
    ----------
    intensity
        Write only: sets the present image, shape (n_inputs,).
    n_images : int
    n_steps : int or None
    step_count : int
        Steps that the encoder has made.  They choose the image, whatever the network's time
        is: an encoder that is added after some runs begins with its first image.

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
        stream=None,
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
            raise ValueError("n_steps (steps per image) must be given with several images")
        check_brian_arguments(dt, clock, order, name)
        key = split_key(derive_keys(random_state, _INPUT_DRAWS, stream=stream)[0])
        index, shared = index_name("input_index"), shared_flag()
        # A program on GeNN makes one run from time 0, so the time gives the step there.
        self_counting = not on_genn()
        step = f"({STEP_COUNT} - 1)" if self_counting else "glm_step(t, dt)"
        super().__init__(
            images.shape[1],
            f"""
            level : 1
            key_low : integer {shared}
            key_high : integer {shared}
            presentation : integer {shared}
            first_step : integer {shared}
            {STEP_COUNT} : integer {shared}
            """,
            threshold="glm_bernoulli(key_low, key_high, presentation, "
            f"{step} - first_step, {index}, level)",
            reset="",
            namespace={"glm_bernoulli": glm_bernoulli, "glm_step": glm_step},
            dtype={
                # double, whatever precision the user prefers
                "level": np.float64,
                **dict.fromkeys(("presentation", "first_step", STEP_COUNT), np.int64),
            },
            dt=dt,
            clock=clock,
            order=order,
            name=name,
        )
        add_index_alias(self, "input_index")
        for attribute, value in dict(
            n_images=len(images), n_steps=n_steps, draw_key=key, _steps_planned=0, _dt_on_genn=None
        ).items():
            self.add_attribute(attribute)
            setattr(self, attribute, value)
        self.key_low, self.key_high = key
        image_levels = levels(images)
        self.level = image_levels[0]
        if self_counting:
            self.run_regularly(f"{STEP_COUNT} = {STEP_COUNT} + 1", clock=self.clock, when="groups")
        if len(images) > 1:
            self._change_images(image_levels, index)
        generate_in_double_precision(self)

    def _change_images(self, image_levels, index):
        """Show the images in turn."""
        # A TimedArray is part of the program's data; other arrays would be variables.
        self.namespace["image_levels"] = TimedArray(image_levels, dt=_IMAGE_NUMBER)
        self.namespace["image_number"] = _IMAGE_NUMBER
        if on_genn():
            self._dt_on_genn = self.clock.dt
            self.run_regularly(
                f"""
                presentation = glm_step(t, dt) // {self.n_steps}
                first_step = glm_step(t, dt)
                level = image_levels(presentation * image_number, {index})
                """,
                dt=self.n_steps * self.clock.dt,
                when="start",
            )
            return
        image = f"{STEP_COUNT} // {self.n_steps}"
        shown = f"clip({image}, 0, {self.n_images - 1}) * image_number"
        values = {
            "presentation": image,
            "first_step": STEP_COUNT,
            "level": f"image_levels({shown}, {index})",
        }
        # In all other steps they keep their values, so that users may set them meanwhile.
        is_new, is_old = (f"int({STEP_COUNT} % {self.n_steps} {sign} 0)" for sign in ("==", "!="))
        self.run_regularly(
            "\n".join(
                f"{name} = {is_new} * ({value}) + {is_old} * {name}" for name, value in values.items()
            ),
            clock=self.clock,
            when="start",
        )

    @property
    def steps_done(self):
        """Steps made so far, or planned so far for a standalone program."""
        if isinstance(get_device(), RuntimeDevice):
            return self.variables[STEP_COUNT].get_value().item()
        return self._steps_planned

    def before_run(self, run_namespace):
        # On GeNN, images change on a clock of their own.
        if self._dt_on_genn is not None and self.clock.dt != self._dt_on_genn:
            raise ValueError(
                f"dt was {self._dt_on_genn} when {self.name} was created and is {self.clock.dt} "
                "now; on GeNN, set defaultclock.dt before you create an encoder of several images"
            )
        warn_of_equal_draws(self)
        super().before_run(run_namespace)

    def after_run(self):
        super().after_run()
        if not isinstance(get_device(), RuntimeDevice):
            self._steps_planned += planned_steps(self.clock)

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

    def _title(self):
        return f"{type(self).__name__} {self.name!r} with {len(self)} inputs"

    def _description(self):
        shown = {} if self.n_images == 1 else {"n_steps": self.n_steps}
        return {"n_images": self.n_images, **shown, "dt": self.clock.dt}
