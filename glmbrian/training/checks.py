"""What Brian's device, and the network of a `Trainer`, must allow it."""

from collections.abc import Iterable
from typing import Any

from brian2.core.base import BrianObject

from ..brian.internals import finds_events
from ..brian.step_order import step_orders
from ..brian.subgroups import whole_group
from ..brian.target import Target
from .plan import Plan

_CLAMP_IS_SET = (
    "a trainer sets it in each step to the desired spikes, so what is written to it would be lost. Leave clamp to "
    "the trainer, or set it after training"
)


def check_device(target: Target, plan: Plan) -> None:
    """Raise unless trainers run on Brian's device, and all parts of the plan have a form for it.

    Raises
    ------
    NotImplementedError, ValueError
    """
    if not target.can_train:
        raise NotImplementedError(
            "Trainer runs on the devices 'runtime' and 'cpp_standalone' only; use one of them, "
            "or GLMClassifier(device='genn'), which trains its own network on GeNN"
        )
    if target.runs_at_once:
        return
    if plan.reward is not None and not plan.reward.is_variable:
        raise ValueError(
            "reward must be (group, 'variable') in a compiled program, which cannot call a Python "
            "function; compute it with Brian equations or synapses, or use the runtime device"
        )
    if not plan.learns:
        return
    parts: list[tuple[str, Any]] = [("activation", group.activation) for group in plan.groups]
    parts.append(("optimizer", plan.rule.optimizer))
    if plan.reward is None:
        parts.append(("rule", plan.objective))
    if plan.uses_credit:
        parts.append(("credit", plan.credit))
    for name, part in parts:
        if not part.cpp:
            raise ValueError(
                f"{name} {part.name!r} has no C++ form ({type(part).__name__}.cpp), so "
                "Trainer needs the runtime device"
            )


def check_time_steps(trainer: BrianObject, plan: Plan) -> None:
    """Raise a ValueError unless hidden neurons have the trainer's time step."""
    for group in plan.groups[1:]:
        if group.clock.dt != trainer.clock.dt:
            raise ValueError(
                f"dt is {group.clock.dt} for the hidden neurons {group.name} and "
                f"{trainer.clock.dt} for {trainer.name}: use the same dt for both"
            )


def check_step_order(trainer: BrianObject, plan: Plan) -> None:
    """Raise a ValueError if a step would not begin and end with what the trainer does then."""
    begins = [part for part in trainer.contained_objects if part.when == "start"]
    ends = [part for part in trainer.contained_objects if part.when == "end"]
    ends.sort(key=lambda part: part.order)
    for order in step_orders(trainer):
        for group in plan.groups:
            update, threshold = group.state_updater, group.thresholder["spike"]
            order.require(*begins, update, threshold, group.resetter["spike"], *ends)
        for pathway in (weights.pathway for weights in plan.weights if weights.pathway is not None):
            update = whole_group(pathway.target).state_updater
            order.require(update, pathway, *ends)
            order.require(finds_events(pathway.source, pathway.event), pathway)
        if plan.clamps_outputs:
            threshold = plan.outputs.thresholder["spike"]
            order.refuse_lost(plan.outputs, "clamp", begins[0], threshold, _CLAMP_IS_SET)


def check_one_trainer_at_a_time(trainer: Any, others: Iterable[Any]) -> None:
    """Raise a ValueError if any of the `others` trains the same neurons now."""
    for other in others:
        shared = [group for group in trainer.groups if any(group is one for one in other.groups)]
        if shared and not other.is_over:
            raise ValueError(
                f"{shared[0].name} has two trainers at once, {trainer.name} and {other.name}: "
                "remove one from the network until the other is done"
            )
