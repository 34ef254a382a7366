"""The synapses that learn: which groups they lead to, and whether input and errors get there."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from brian2 import NeuronGroup, Subgroup, Synapses

from ..brian.neurons import GLMNeurons
from ..brian.subgroups import span, whole_group
from ..brian.synapses import GLMSynapses
from .plan import Plan


def checked_neurons(neurons: Any) -> GLMNeurons:
    """Return `neurons` if they are a whole group of GLM neurons."""
    if not isinstance(neurons, GLMNeurons):
        raise TypeError(
            f"neurons must be GLMNeurons, not a subgroup, got {neurons!r}{_other_neurons(neurons)}"
        )
    return neurons


def _other_neurons(given):
    """Return what to do for neurons and synapses of other models, for error messages."""
    if isinstance(given, Subgroup) or not isinstance(given, (NeuronGroup, Synapses)):
        return ""
    return (
        ". Only GLM neurons can learn, but neurons of other models can be their inputs: train the synapses "
        "GLMSynapses(your_group, neurons) to GLMNeurons, or add your equations to GLM neurons by "
        "GLMNeurons(equations=...). Leave other synapses out of `synapses`: they stay fixed"
    )


def checked_synapses(synapses: GLMSynapses | Iterable[GLMSynapses]) -> list[GLMSynapses]:
    """Return the `GLMSynapses` that learn as a list."""
    if isinstance(synapses, Synapses):
        synapses = [synapses]
    try:
        synapses = list(synapses)
    except TypeError:
        raise TypeError(f"synapses must be GLMSynapses or a list of them, got {synapses!r}") from None
    for position, learner in enumerate(synapses):
        if not isinstance(learner, GLMSynapses):
            raise TypeError(
                f"synapses must be GLMSynapses or a list of them, got a list with {learner!r}"
                f"{_other_neurons(learner)}"
            )
        if any(learner is other for other in synapses[:position]):
            raise ValueError(f"synapses: {learner.name} is given twice")
    return synapses


def hidden_groups(synapses: list[GLMSynapses], neurons: GLMNeurons) -> list[GLMNeurons]:
    """Return the other `GLMNeurons` that these synapses drive; their spikes must reach `neurons`."""
    reached, n_before = {neurons.id}, 0
    while n_before < len(reached):
        n_before = len(reached)
        reached |= {
            whole_group(learner.source).id
            for learner in synapses
            if whole_group(learner.target).id in reached
        }
    hidden = {}
    for learner in synapses:
        target = whole_group(learner.target)
        if target.id not in reached:
            raise ValueError(
                f"synapses: {learner.name} has the target {target.name}, but the neurons to train are "
                f"{neurons.name}, and no synapses in the list lead from one to the other; give each "
                "group of neurons its own trainer, or add the synapses between them"
            )
        if target.id != neurons.id:
            hidden[target.id] = target
    # A subgroup knows its neurons by a weak proxy; a method of theirs knows them themselves.
    return [group.clear.__self__ for group in hidden.values()]


def check_hidden(plan: Plan) -> None:
    """Raise a ValueError if hidden neurons cannot learn from this plan."""
    hidden = plan.groups[1:]
    if hidden and plan.credit.simulates:
        raise ValueError(
            f"credit must not simulate the network again in a Trainer, as {plan.credit.name!r} "
            "does; use 'straight-through' or 'three-factor'"
        )
    if not plan.learns:
        return
    for learner in plan.synapses:
        _check_source(learner, plan)
        target = whole_group(learner.target)
        if target.id != plan.outputs.id:
            _check_window(learner.basis, f"kernel {learner.kernel!r}", target, plan.n_steps)
    for group in hidden:
        if group.feedback_basis is not None:
            _check_window(group.feedback_basis, "feedback kernel", group, plan.n_steps)


def _check_source(synapses, plan):
    """Raise a ValueError if synapses lead from clamped outputs to hidden neurons."""
    outputs, target = plan.outputs, whole_group(synapses.target)
    hidden = [group.id for group in plan.groups[1:]]
    if plan.clamps_outputs and whole_group(synapses.source).id == outputs.id and target.id in hidden:
        raise ValueError(
            f"synapses: {synapses.name} sends spikes of {outputs.name} to the hidden neurons "
            f"{target.name}, but in training rule={plan.objective.name!r} clamps "
            f"{outputs.name}, so in a test the hidden neurons would receive other spikes; leave "
            f"{synapses.name} out, or use a rule that leaves the outputs free"
        )


def _check_window(basis, kernel, group, n_steps):
    """Raise a ValueError if a basis of hidden neurons is longer than a presentation."""
    if basis.window > n_steps:
        raise ValueError(
            f"n_steps is {n_steps}, but the {kernel} of the hidden neurons {group.name} has "
            f"{basis.window} lags, the later of which have no effect; use a basis of at most "
            f"{n_steps} lags, or longer presentations"
        )


def check_paths(plan: Plan, objects: Iterable[Any]) -> None:
    """Raise a ValueError if hidden neurons get no input, or spikes of clamped outputs.

    Parameters
    ----------
    plan : Plan
    objects : list of BrianObject
        The network.
    """
    others = [
        part
        for part in objects
        if isinstance(part, Synapses)
        and part.active
        and not any(part is learner for learner in plan.synapses)
    ]
    for synapses in others:
        _check_source(synapses, plan)
    _check_input_arrives(plan, others)


def _check_input_arrives(plan, others):
    """Raise a ValueError unless each hidden neuron has a drive, or synapses lead to it from a source.

    A standalone device may not know the pairs of `others`, the synapses that do not learn, yet, so each
    counts as reaching its whole target.
    """
    groups = plan.groups
    numbers = {group.id: number for number, group in enumerate(groups)}
    reached = [np.full(len(group), "drive" in group.variables) for group in groups]
    for synapses in others:
        number = numbers.get(whole_group(synapses.target).id)
        if number is not None:
            reached[number][span(synapses.target)] = True
    paths = [each for each in plan.weights if each.pathway is not None]
    before = -1
    while before < (now := sum(np.count_nonzero(each) for each in reached)):
        before = now
        for path in paths:
            sender = numbers.get(whole_group(path.pathway.source).id)
            sends = slice(None) if sender is None else reached[sender][path.sources]
            reached[path.group][path.targets[sends]] = True
    for group, each in list(zip(groups, reached))[1:]:
        missing = np.flatnonzero(~each)
        if missing.size:
            raise ValueError(
                f"synapses: no input reaches {missing.size} of the {len(group)} hidden neurons "
                f"{group.name} (the first is neuron {missing[0]}), so there is nothing that they could "
                "learn; connect them to a source, give them a drive, or leave them out"
            )
