"""C++ code with which a generated program learns a presentation: errors, gradients, changes."""

from collections.abc import Iterator, Mapping
from typing import Any

from ..brian.internals import cpp_data
from .plan import Plan


def learn_presentation(plan: Plan, variables: Mapping[str, Any], learning_rate: float) -> str:
    """Return code that learns the presentation that ends; `variables` are the trainer's own."""
    parts = [*_sets(plan), *_errors(plan), *_learn(plan, _rate(plan, variables, learning_rate))]
    body = "\n    ".join(parts)
    return f"""trainer.add_to_batch({plan.batch_size}, {plan.last_learning});
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


def _sets(plan: Plan) -> Iterator[str]:
    """Yield code that names the parameters of each set: weights, and then biases."""
    sets = [weights.variables for weights in plan.weights] + [[bias] for bias in plan.biases]
    for number, variables in enumerate(sets):
        arrays = [cpp_data(variable) for variable in variables]
        yield f"decltype({arrays[0]}) const values_{number}[] = {{{', '.join(arrays)}}};"


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
            f"{_ends(weights, 'pre')}, {_ends(weights, 'post')}, {_delay(weights)}, values_{number}, "
            f"learner_{weights.sender}.in_spikes);"
        )
    for group in by_credit:
        yield f"    learner_{group}.find_errors<Credit, Activation{group}>(t, reward);"
    yield "}"


def _learn(plan: Plan, rate: str) -> Iterator[str]:
    """Yield code that adds the gradient, and ends the batch if it is full."""
    changes = plan.changes()
    if plan.changes_at_once:
        yield f"const double rate = {rate};"
    for number, weights in enumerate(plan.weights):
        change = f"change_{changes[weights.group, weights.basis]}"
        where = f"{number}, {change}, {len(plan.groups[weights.group])}, {_ends(weights, 'post')}"
        if plan.changes_at_once:
            yield f"trainer.learn_at_once({where}, rate, values_{number});"
        else:
            yield f"trainer.add_gradient<{weights.basis.n_basis}>({where}, {weights.targets.size});"
    for group in range(len(plan.biases)):
        yield f"learner_{group}.add_bias_gradient();"
    yield "if (trainer.updates) {"
    if not plan.changes_at_once:
        yield f"    const double rate = {rate};"
    for line in _update(plan):
        yield f"    {line}"
    yield "}"


def _rate(plan, variables, learning_rate):
    """Return an expression for the learning rate of the update that this presentation ends."""
    done, schedule = f"trainer.done({plan.is_training.sum()})", plan.rule.schedule.cpp
    if not schedule:
        return f"{learning_rate!r} * {cpp_data(variables['_factors'])}[trainer.n_updates - 1]"
    return f"{learning_rate!r} * ([](double done) -> double {{ return {schedule}; }})({done})"


def _update(plan: Plan) -> Iterator[str]:
    """Yield code that changes the parameters after the last presentation of a batch."""
    rule, n_weights = plan.rule, len(plan.weights)
    sizes = [weights.targets.size for weights in plan.weights] + [bias.size for bias in plan.biases]
    gradients = [f"trainer.gradient({number})" for number in range(n_weights)]
    gradients += [f"learner_{group}.bias_gradient" for group in range(len(plan.biases))]
    clip = "1.0"
    if rule.clip_norm is not None:
        n_values = [len(weights.variables) * weights.targets.size for weights in plan.weights]
        n_values += sizes[n_weights:]
        squares = " + ".join(f"glmbrian::squared({of}, {n})" for of, n in zip(gradients, n_values))
        clip = f"trainer.clip({rule.clip_norm!r}, {squares or '0.0'})"
    settings = [*map(repr, rule.optimizer.settings.values()), "0.0"]  # an array is never empty
    yield f"static const double settings[] = {{{', '.join(settings)}}};"
    yield "const Optimizer optimizer(settings, trainer.n_updates);"
    yield f"trainer.begin_update<Optimizer>(rate, {clip});"
    for number in range(n_weights if plan.changes_at_once else 0, len(sizes)):
        where = f"{number}, optimizer, {gradients[number]}, {sizes[number]}"
        yield f"trainer.update({where}, values_{number});"
    if rule.weight_decay:
        yield f"const double decay = std::exp(-{rule.weight_decay!r} * rate);"
        for number in range(n_weights):
            yield f"trainer.decay(decay, {sizes[number]}, values_{number});"
    if plan.average:
        n_updates = len(plan.done_in_updates)
        yield f"if (trainer.n_updates > {n_updates - plan.n_averaged}) {{"
        for number, size in enumerate(sizes):
            is_last = f"trainer.n_updates == {n_updates}"
            yield f"    trainer.average({number}, {plan.n_averaged}, {is_last}, {size}, values_{number});"
        yield "}"


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
