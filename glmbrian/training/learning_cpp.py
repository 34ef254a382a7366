"""C++ code with which a generated program learns a presentation: errors, gradients, changes."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..brian.internals import cpp_data
from .plan import Plan


def learn_presentation(plan: Plan, variables: Mapping[str, Any], learning_rate: float) -> str:
    """Return code that learns the presentation that ends; `variables` are the trainer's own."""
    body = "\n    ".join([*_weights(plan), *_errors(plan), *_learn(plan)])
    return f"""trainer.add_to_batch({plan.batch_size}, {learning_rate!r}, {plan.last_learning});
    const double value = {_value(plan, variables)};
    {cpp_data(variables["_values"])}[trainer.presentation] = value;
    {body}"""


def desired(plan: Plan, variables: Mapping[str, Any], step: str) -> str:
    """Return the condition that neuron i should spike in a step."""
    if plan.examples.targets is None:
        train = f"INT64_C({plan.objective.period}), INT64_C({plan.objective.start or 0})"
        return f"glmbrian::is_desired<Objective>({step}, i, {_label(plan, variables)}, {train})"
    targets = cpp_data(variables["_targets"])
    return f"{targets}[(trainer.presentation * {plan.n_steps} + {step}) * {len(plan.outputs)} + i]"


def _label(plan, variables):
    if plan.examples.labels is None:
        return "-1"
    return f"{cpp_data(variables['_labels'])}[trainer.presentation]"


def _value(plan, variables):
    """Return an expression for the log-likelihood or reward of this presentation."""
    if plan.reward is not None:
        return f"glmbrian::finite_reward({cpp_data(variables['reward_seen'])}[0])"
    # Spikes of free outputs are those that were recorded.
    spiked = desired(plan, variables, "t") if plan.clamps_outputs else "learner_0.emitted[t][i]"
    outputs = f"[&](int t, int i) -> bool {{ return {spiked}; }}"
    label = _label(plan, variables)
    return f"Objective::gradient<Activation0>(learner_0.u, {outputs}, {label}, learner_0.grad)"


def _weights(plan: Plan) -> Iterator[str]:
    """Yield code that names the weights of each set."""
    for number, weights in enumerate(plan.weights):
        arrays = [cpp_data(variable) for variable in weights.variables]
        yield f"decltype({arrays[0]}) const weights_{number}[] = {{{', '.join(arrays)}}};"


def _errors(plan: Plan) -> Iterator[str]:
    """Yield code for the gradient with respect to what arrives, and for errors by credit."""
    changes = plan.changes()
    for (_, basis), number in changes.items():
        rows = ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in basis.matrix.tolist())
        yield f"static const double basis_{number}[{basis.window}][{basis.n_basis}] = {{{rows}}};"
        yield f"static std::vector<double> change_{number};"
    # The outputs have the gradient of the objective, unless there is a reward.
    by_credit = range(1 if plan.reward is None else 0, len(plan.groups))
    if by_credit:
        yield "const double reward = trainer.reward(value);"
    # A spike changes potentials in later steps only.
    yield f"for (int t = {plan.n_steps - 1}; t >= 0; t--) {{"
    for (group, _), number in changes.items():
        yield f"    learner_{group}.correlate_step(basis_{number}, t, change_{number});"
    for group in by_credit:
        yield f"    std::fill_n(learner_{group}.in_spikes, {len(plan.groups[group])}, 0.0);"
    for number, weights in enumerate(plan.weights):
        if weights.sender is None:
            continue
        yield (
            f"    trainer.add_effect(t, change_{changes[weights.group, weights.basis]}, "
            f"{len(plan.groups[weights.group])}, {weights.targets.size}, "
            f"{_ends(weights, 'pre')}, {_ends(weights, 'post')}, {_delay(weights)}, weights_{number}, "
            f"learner_{weights.sender}.in_spikes);"
        )
    for group in by_credit:
        yield f"    learner_{group}.find_errors<Credit, Activation{group}>(t, reward);"
    yield "}"


def _learn(plan: Plan) -> Iterator[str]:
    """Yield code that changes biases and weights, or adds to the gradient of the batch."""
    if plan.learn_bias:
        for number, group in enumerate(plan.groups):
            yield f"trainer.learn_bias(learner_{number}, {cpp_data(group.variables['bias'])});"
    changes = plan.changes()
    for number, weights in enumerate(plan.weights):
        yield (
            f"trainer.learn({number}, change_{changes[weights.group, weights.basis]}, "
            f"{len(plan.groups[weights.group])}, {weights.targets.size}, "
            f"{_ends(weights, 'post')}, weights_{number});"
        )


def _ends(weights, end):
    """Return the C++ array of the neuron at one end of each synapse, "pre" or "post"."""
    if weights.pathway is None:
        return "nullptr"
    return cpp_data(weights.pathway.synapses.variables[f"_synaptic_{end}"])


def _delay(weights):
    """Return a C++ function of the delay of a synapse in steps."""
    if weights.pathway is None:
        return "[](size_t) { return 0; }"
    variable = weights.pathway.variables["delay"]
    which = "0" if variable.scalar else "s"
    dt = float(weights.pathway.source.clock.dt_)
    return f"[&](size_t s) {{ return (int)({cpp_data(variable)}[{which}] / {dt!r} + 0.5); }}"
