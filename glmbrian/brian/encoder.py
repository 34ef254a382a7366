"""Rate encoding: intensities become Bernoulli spike trains.

Probabilities are stored as *levels* from 0 to 65536, in single precision, and compared with
16-bit random integers; in the rare case of a tie a second draw decides (see
`glmbrian.core.randomness.bernoulli`).  These comparisons are exact, so every spike is the
same on every device.
"""

from typing import Any

import numpy as np
from brian2 import Clock, NeuronGroup, Quantity, TimedArray, second
from numpy.typing import ArrayLike

from ..core.randomness import RandomState, derive_keys, split_key
from ..core.rate_code import check_intensities, levels, warn_of_small_integers
from ..support.display import Described
from ..support.validation import integer
from .arguments import check_brian_arguments
from .attributes import add_attributes
from .filters import STEP_COUNT
from .functions import glm_bernoulli, glm_step
from .internals.code_objects import generate_in_double_precision, share_code_of_runs
from .internals.networks import planned_steps
from .step_order import step_orders
from .streams import warn_of_equal_draws
from .target import add_index_alias, current_target, index_name, shared_flag

_INPUT_DRAWS = 0

#: The images form a TimedArray; image n is its value at n times this unit.  The unit must be
#: shorter than any time step, since Brian requires the two to be compatible.
_IMAGE_NUMBER = 1e-9 * second

#: Integers up to this are probably not bytes; even low rates have larger ones.
_SMALL = 16


class RateEncoder(Described, NeuronGroup):
    """Inputs that spike independently, with probabilities given by an image.

    Parameters
    ----------
    intensities : array_like, shape (n_inputs,) or (n_images, n_inputs)
        Integers from 0 to 255 spike with probability intensity / 510 in each
        step (rounded to a multiple of 2**-16), real numbers from 0 to 1 with probability
        intensity / 2.  Real numbers that equal k / 255 up to rounding count as k.
    n_steps : int, optional
        Steps for which each image is shown, one after the other; the last
        one stays.  Required if there are several images.
    random_state : None, int, RandomState or Generator
        Makes the spikes reproducible, and the same on every device and target.  ``None``
        takes a state from NumPy's global generator, which `brian2.seed` sets on the
        runtime device.
    dt, clock, order, name
        As for `brian2.NeuronGroup`.
    stream : str, optional
        Encoders with the same `random_state` draw the same numbers, unless their streams
        have different names.

    Attributes
    ----------
    intensity
        Write only: sets the current image, shape (n_inputs,).
    n_images : int
    n_steps : int or None
    step_count : int
        Steps that the encoder has made.  They select the image, independently of the network's
        time: an encoder that is added after some runs begins with its first image.

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

    n_images: int
    n_steps: int | None

    def __init__(
        self,
        intensities: ArrayLike,
        n_steps: int | None = None,
        random_state: RandomState = None,
        dt: Quantity | None = None,
        clock: Clock | None = None,
        order: int = 0,
        name: str = "rateencoder*",
        stream: str | None = None,
    ) -> None:
        images, n_steps = _check_images(intensities, n_steps)
        check_brian_arguments(dt, clock, order, name)
        key = split_key(derive_keys(random_state, _INPUT_DRAWS, stream=stream)[0])
        index, shared = index_name("input_index"), shared_flag()
        # Where groups cannot count steps, the time gives the step.
        self_counting = current_target().counts_steps
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
        add_attributes(
            self,
            n_images=len(images),
            n_steps=n_steps,
            draw_key=key,
            _steps_planned=0,
            _dt_on_genn=None,
            _operations=[],  # what happens in each step before spikes are drawn
        )
        self.key_low, self.key_high = key
        image_levels = levels(images)
        self.level = image_levels[0]
        if len(images) > 1:
            self._change_images(image_levels, index)
        if self_counting:
            count = f"{STEP_COUNT} = {STEP_COUNT} + 1"
            self._operations.append(self.run_regularly(count, clock=self.clock, when="groups"))
        generate_in_double_precision(self)
        share_code_of_runs(self)

    def _change_images(self, image_levels, index):
        """Show the images in turn."""
        # A TimedArray is part of the program's data; another array would be a variable.
        self.namespace["image_levels"] = TimedArray(image_levels, dt=_IMAGE_NUMBER)
        self.namespace["image_number"] = _IMAGE_NUMBER
        if not current_target().counts_steps:
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
        # In other steps the variables keep their values, so users may set them.
        is_new, is_old = (f"int({STEP_COUNT} % {self.n_steps} {sign} 0)" for sign in ("==", "!="))
        change = self.run_regularly(
            "\n".join(
                f"{name} = {is_new} * ({value}) + {is_old} * {name}" for name, value in values.items()
            ),
            clock=self.clock,
            when="start",
        )
        self._operations.append(change)

    @property
    def steps_done(self) -> int:
        """Steps made so far, or planned so far for a standalone program."""
        if current_target().runs_at_once:
            return self.variables[STEP_COUNT].get_value().item()
        return self._steps_planned

    def before_run(self, run_namespace: Any) -> None:
        # On GeNN, images change on a separate clock.
        if self._dt_on_genn is not None and self.clock.dt != self._dt_on_genn:
            raise ValueError(
                f"dt was {self._dt_on_genn} when {self.name} was created and is {self.clock.dt} "
                "now; on GeNN, set defaultclock.dt before you create an encoder with several images"
            )
        for order in step_orders(self):
            order.require(*self._operations, self.thresholder["spike"])
        warn_of_equal_draws(self)
        super().before_run(run_namespace)

    def after_run(self) -> None:
        super().after_run()
        if not current_target().runs_at_once:
            self._steps_planned += planned_steps(self.clock)

    @property
    def intensity(self) -> Any:
        raise AttributeError("intensity can only be set; `level` holds 65536 times the probability")

    @intensity.setter
    def intensity(self, image: ArrayLike) -> None:
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


def _check_images(intensities, n_steps):
    """Return the images, shape (n_images, n_inputs), and the steps for which each is shown."""
    images = check_intensities(intensities, "intensities")
    if images.ndim not in (1, 2) or 0 in images.shape:
        trains = ""
        if images.ndim == 3:
            trains = (
                ". Spike trains need no encoder: give them to GLMClassifier.fit, or emit them in a "
                "network with brian2.SpikeGeneratorGroup"
            )
        raise ValueError(
            "intensities must have the shape (n_inputs,) or (n_images, n_inputs) "
            f"with sizes above 0, got {images.shape}{trains}"
        )
    images = np.atleast_2d(images)
    warn_of_small_integers(images, "intensities", _SMALL)
    if n_steps is not None:
        n_steps = integer(n_steps, "n_steps")
    elif len(images) > 1:
        raise ValueError("n_steps (steps per image) must be given with several images")
    return images, n_steps
