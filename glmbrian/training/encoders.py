"""Whether encoders show each presentation of a `Trainer` its own images."""

import weakref
from collections.abc import Iterable
from typing import Any

from brian2 import Synapses
from brian2.core.base import BrianObject

from ..brian.encoder import RateEncoder
from ..brian.subgroups import whole_group
from ..support.validation import warn
from .plan import Plan

#: Neurons that have, or had, a trainer.
_with_trainer: weakref.WeakSet[Any] = weakref.WeakSet()


def check_images(encoder: Any, n_steps: int, n_presentations: int) -> None:
    """Raise a ValueError unless a `RateEncoder` has enough images for presentations of `n_steps` steps."""
    advice = (
        f"create RateEncoder(images, n_steps={n_steps}) with one image per presentation; "
        "repeat images that are shown again"
    )
    if n_steps % encoder.n_steps:
        raise ValueError(
            f"n_steps is {n_steps} for the trainer, but {encoder.name} shows an image for "
            f"{encoder.n_steps} steps: {advice}"
        )
    needed = n_presentations * n_steps // encoder.n_steps
    if encoder.n_images < needed:
        raise ValueError(
            f"{n_presentations} presentations need {needed} images, but {encoder.name} has "
            f"{encoder.n_images}: {advice}"
        )


def encoders_of(synapses: Iterable[Synapses]) -> list[Any]:
    """Return the encoders of several images among the sources of `synapses`."""
    sources = [whole_group(each.source) for each in synapses]
    return [source for source in sources if _has_images(source)]


class Alignment:
    """The steps of encoders beside those of a trainer.

    Parameters
    ----------
    trainer : BrianObject
    plan : Plan
    """

    def __init__(self, trainer: BrianObject, plan: Plan) -> None:
        self._name, self._clock, self._plan = trainer.name, trainer.clock, plan
        self._encoders = encoders_of(plan.synapses)
        self._leads: dict[str, int] = {}  # how many steps each encoder is ahead
        self._is_first = plan.groups[0] not in _with_trainer
        _with_trainer.update(plan.groups)

    def check(self, objects: Iterable[Any], steps_done: int) -> None:
        """Raise a ValueError if presentations would get the wrong images in the next run.

        Warn of encoders that reach the neurons through synapses which do not learn.

        Parameters
        ----------
        objects : list of BrianObject
            The network.
        steps_done : int
            By the trainer.
        """
        for encoder in self._encoders:
            self._check(encoder, steps_done)
        for encoder in _encoders_before(self._plan.groups[0], objects):
            if not any(encoder is learned_from for learned_from in self._encoders):
                try:
                    check_images(encoder, self._plan.n_steps, self._plan.n_presentations)
                    self._check(encoder, steps_done)
                except ValueError as error:
                    warn(str(error))

    def _check(self, encoder, steps_done):
        advice = (
            f"use the same dt for both, start both in the same run, and keep both in all runs until "
            f"{self._name} is done; let other parts settle before you add the two to the network"
        )
        if not encoder.active:
            raise ValueError(f"{encoder.name} is not active, but {self._name} is: {advice}")
        if encoder.clock.dt != self._clock.dt:
            raise ValueError(
                f"dt is {encoder.clock.dt} for {encoder.name} and {self._clock.dt} for {self._name}: "
                f"{advice}"
            )
        lead = encoder.steps_done - steps_done
        if steps_done == 0 and not self._is_first and lead % encoder.n_steps == 0:
            # Images continue after those of another trainer, or of a test that followed it.
            self._leads[encoder.name] = lead
        if lead != self._leads.get(encoder.name, 0):
            raise ValueError(
                f"the images of {encoder.name} would be shifted against the presentations of "
                f"{self._name}: the encoder has made {encoder.steps_done} steps, the trainer "
                f"{steps_done}; {advice}"
            )


def _has_images(group):
    return isinstance(group, RateEncoder) and group.n_images > 1


def _encoders_before(neurons, objects):
    """Return multi-image encoders whose spikes reach `neurons`, directly or indirectly."""
    reached, found = {neurons.name}, {}
    synapses = [part for part in objects if isinstance(part, Synapses)]
    for _ in synapses:
        sources = [
            whole_group(part.source) for part in synapses if whole_group(part.target).name in reached
        ]
        found = {source.name: source for source in sources if _has_images(source)}
        names = {source.name for source in sources}
        if names <= reached:
            break
        reached |= names
    return list(found.values())
