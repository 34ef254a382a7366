"""The operations of a `Trainer` in generated C++ code.

Brian calls these functions in each step; `native/trainer.hpp` implements them.  This
module supplies the sizes, and where Brian stores its variables.
"""

from typing import TYPE_CHECKING, Any

from ..brian.headers import cpp_header
from ..brian.internals import (
    cpp_arriving_synapses,
    cpp_data,
    forget_values,
    share_code_of_runs,
    spike_array,
)
from ..brian.operations import new_operation
from .reward import END_ORDER

if TYPE_CHECKING:
    from .trainer import Trainer


def add_operations(trainer: "Trainer") -> None:
    """Give `trainer` the operations that a generated program runs in each step."""
    clock = trainer.clock
    _add(trainer, "begin", _begin, clock, "start", 0)
    together: dict[Any, list] = {}  # one operation for all pathways that run at the same time
    for number, learned in enumerate(trainer.learned):
        if learned.pathway is not None:
            turn = (learned.pathway.clock, learned.pathway.when)
            together.setdefault(turn, []).append((number, learned.pathway))
    for n, ((source_clock, when), pathways) in enumerate(together.items()):
        # after the pathways have handled the spikes of this step
        order = max(pathway.order for _, pathway in pathways) + 1
        _add(trainer, f"record_{n}", _record(pathways), source_clock, when, order)
    _add(trainer, "end", _end, clock, "end", END_ORDER)
    share_code_of_runs(trainer)


def _add(trainer, operation, code, clock, when, order):
    name = f"{trainer.name}_{operation}"

    def cpp_code(owner):
        activations = "\n".join(
            group.activation.cpp_struct(f"Activation{number}")
            for number, group in enumerate(trainer.groups)
        )
        credit = f"struct Credit {{{trainer.credit.cpp}}};" if trainer.uses_credit else ""
        learners = "\n    ".join(
            f"static auto& learner_{number} = glmbrian::shared<glmbrian::Learner<{trainer.n_steps}, "
            f'{len(group)}>>("{trainer.name}_{number}");'
            for number, group in enumerate(trainer.groups)
        )
        return f"""
namespace {name}_types {{
{activations}
{credit}
struct Objective {{{trainer.objective.cpp if trainer.reward is None else ""}}};
}}
static inline int {name}(int done)
{{
    using namespace {name}_types;
    static auto& trainer = glmbrian::shared<glmbrian::Trainer<{trainer.n_steps}>>("{trainer.name}");
    {learners}
    {code(trainer).strip()}
    return done;
}}
"""

    function = new_operation()
    function.implementations.add_dynamic_implementation(
        "cpp", cpp_code, lambda owner: None, compiler_kwds=cpp_header("trainer.hpp")
    )
    trainer.namespace[name] = function
    trainer.run_regularly(
        f"done = {name}(done)", clock=clock, when=when, order=order, name=f"{name}_operation"
    )


def _begin(trainer):
    neurons = trainer.neurons
    clear = "\n        ".join(
        f"std::fill_n({cpp_data(group.variables[name])}, {group.variables[name].size}, 0);"
        for group in trainer.groups
        for name in [*group.filter_state, "u"]
    )
    is_free = ""
    if trainer.tests.n:
        is_free = f"""
    if (trainer.step == 0) {{
        trainer.set_test({cpp_data(trainer.variables["_tests"])}[trainer.presentation] >= 0);
        if (trainer.is_test) std::fill_n({cpp_data(neurons.variables["clamp"])}, {len(neurons)}, 0);
    }}
    if (trainer.is_test) return done;"""
    clamp = ""
    if trainer.clamps_outputs:
        clamp = f"""
    for (int i = 0; i < {len(neurons)}; i++) {{
        const bool desired = {_desired(trainer, "trainer.step")};
        {cpp_data(neurons.variables["clamp"])}[i] = desired ? 1 : -1;
        if (desired) {{ {_record_feedback(trainer, 0)} }}
    }}"""
    return f"""
    if (trainer.begin_step({trainer.n_presentations})) {{
        {clear}
    }}
    if (trainer.step < 0) return done;{is_free}{clamp}
"""


def _record_feedback(trainer, group):
    """Return C++ code that records a spike of neuron i of a group."""
    return "".join(
        f"trainer.record({number}, i);"
        for number, learned in enumerate(trainer.learned)
        if learned.pathway is None and learned.group == group
    )


def _record(pathways):
    def code(trainer):
        return "\n    ".join(
            cpp_arriving_synapses(pathway, f"trainer.record({number}, synapse);")
            for number, pathway in pathways
        )

    return code


def _end(trainer):
    clamp = trainer.neurons.variables["clamp"]
    forget_values([clamp])
    parts = ["if (trainer.step < 0) return done;"]
    if trainer.tests.n:
        parts.append(_end_test(trainer))
    if trainer.learns:
        parts.append(_end_learning(trainer))
    return "\n    ".join(parts)


def _end_test(trainer):
    """Return C++ code that ends the step if this presentation is a test."""
    outcomes = trainer.variables["_outcomes"]
    forget_values([outcomes])
    numbers = cpp_data(trainer.variables["_tests"])
    stops = str(trainer.objective.stops_at_first_spike).lower()
    return f"""
    if (trainer.is_test) {{
        {_record_step(trainer, 0)}
        {_record_spikes(trainer, 0)}
        if (!trainer.is_last_step()) return done;
        learner_0.report({stops}, &{cpp_data(outcomes)}[{numbers}[trainer.presentation] * {trainer.tests.n_values}]);
        trainer.end_presentation();
        return done;
    }}
"""


def _end_learning(trainer):
    clamps = trainer.clamps_outputs
    record = "\n    ".join(
        line
        for number in range(len(trainer.groups))
        for line in [
            _record_step(trainer, number),
            *([] if clamps and number == 0 else [_record_spikes(trainer, number)]),
        ]
    )
    values, clamp = trainer.variables["_values"], trainer.neurons.variables["clamp"]
    forget_values([values])
    body = "\n    ".join([*_weights(trainer), *_errors(trainer), *_learn(trainer)])
    return f"""
    {record}
    if (!trainer.is_last_step()) return done;
    trainer.add_to_batch({trainer.batch_size}, {trainer.learning_rate!r}, {trainer.last_learning});
    const double value = {_value(trainer)};
    {cpp_data(values)}[trainer.presentation] = value;
    {body}
    if (trainer.end_presentation())
        std::fill_n({cpp_data(clamp)}, {len(trainer.neurons)}, 0);
"""


def _value(trainer):
    """Return a C++ expression for the log-likelihood or reward of this presentation."""
    if trainer.reward is not None:
        return f"glmbrian::finite_reward({cpp_data(trainer.variables['reward_seen'])}[0])"
    # Spikes of free outputs are those that were recorded.
    spiked = _desired(trainer, "t") if trainer.clamps_outputs else "learner_0.emitted[t][i]"
    outputs = f"[&](int t, int i) -> bool {{ return {spiked}; }}"
    return (
        f"Objective::gradient<Activation0>(learner_0.u, {outputs}, {_label(trainer)}, learner_0.grad)"
    )


def _record_step(trainer, number):
    potentials = cpp_data(trainer.groups[number].variables["u"])
    return f"learner_{number}.record_step(trainer.step, {potentials});"


def _record_spikes(trainer, number):
    spikes = cpp_data(spike_array(trainer.groups[number]))
    each = f"[&](int i) {{ {_record_feedback(trainer, number)} }}"
    return f"learner_{number}.record_spikes(trainer.step, {spikes}, {each});"


def _weights(trainer):
    """Return C++ code that names the weights of each set."""
    for number, learned in enumerate(trainer.learned):
        weights = [cpp_data(weight) for weight in learned.weights]
        yield f"decltype({weights[0]}) const weights_{number}[] = {{{', '.join(weights)}}};"


def _changes(trainer):
    """Return numbers for the pairs of a group and a basis, in the order of the groups."""
    pairs = dict.fromkeys((learned.group, learned.basis) for learned in trainer.learned)
    return {pair: number for number, pair in enumerate(pairs)}


def _errors(trainer):
    """Return C++ code for the gradient with respect to what arrives, and for errors by credit."""
    changes = _changes(trainer)
    for (_, basis), number in changes.items():
        rows = ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in basis.matrix.tolist())
        yield f"static const double basis_{number}[{basis.window}][{basis.n_basis}] = {{{rows}}};"
        yield f"static std::vector<double> change_{number};"
    # The outputs have the gradient of the objective, unless there is a reward.
    by_credit = range(1 if trainer.reward is None else 0, len(trainer.groups))
    if by_credit:
        yield "const double reward = trainer.reward(value);"
    # A spike changes potentials in later steps only.
    yield f"for (int t = {trainer.n_steps - 1}; t >= 0; t--) {{"
    for (group, _), number in changes.items():
        yield f"    learner_{group}.correlate_step(basis_{number}, t, change_{number});"
    for group in by_credit:
        yield f"    std::fill_n(learner_{group}.in_spikes, {len(trainer.groups[group])}, 0.0);"
    for number, learned in enumerate(trainer.learned):
        if learned.sender is None:
            continue
        yield (
            f"    trainer.add_effect(t, change_{changes[learned.group, learned.basis]}, "
            f"{len(trainer.groups[learned.group])}, {learned.targets.size}, "
            f"{_ends(learned, 'pre')}, {_ends(learned, 'post')}, {_delay(learned)}, weights_{number}, "
            f"learner_{learned.sender}.in_spikes);"
        )
    for group in by_credit:
        yield f"    learner_{group}.find_errors<Credit, Activation{group}>(t, reward);"
    yield "}"


def _learn(trainer):
    """Return C++ code that changes biases and weights, or adds to the gradient of the batch."""
    written = []
    if trainer.learn_bias:
        for number, group in enumerate(trainer.groups):
            yield f"trainer.learn_bias(learner_{number}, {cpp_data(group.variables['bias'])});"
            written.append(group.variables["bias"])
    changes = _changes(trainer)
    for number, learned in enumerate(trainer.learned):
        yield (
            f"trainer.learn({number}, change_{changes[learned.group, learned.basis]}, "
            f"{len(trainer.groups[learned.group])}, {learned.targets.size}, "
            f"{_ends(learned, 'post')}, weights_{number});"
        )
        written += learned.weights
    forget_values(written)


def _ends(learned, end):
    """Return the C++ array of the neuron at one end of each synapse, "pre" or "post"."""
    if learned.pathway is None:
        return "nullptr"
    return cpp_data(learned.pathway.synapses.variables[f"_synaptic_{end}"])


def _delay(learned):
    """Return a C++ function of the delay of a synapse in steps."""
    if learned.pathway is None:
        return "[](size_t) { return 0; }"
    variable = learned.pathway.variables["delay"]
    which = "0" if variable.scalar else "s"
    dt = float(learned.pathway.source.clock.dt_)
    return f"[&](size_t s) {{ return (int)({cpp_data(variable)}[{which}] / {dt!r} + 0.5); }}"


def _desired(trainer, step):
    """Return the C++ condition that neuron i should spike in a step."""
    if trainer.has_labels:
        train = f"INT64_C({trainer.objective.period}), INT64_C({trainer.objective.start or 0})"
        return f"glmbrian::is_desired<Objective>({step}, i, {_label(trainer)}, {train})"
    targets = cpp_data(trainer.variables["_targets"])
    return (
        f"{targets}[(trainer.presentation * {trainer.n_steps} + {step}) * {len(trainer.neurons)} + i]"
    )


def _label(trainer):
    if not trainer.has_labels:
        return "-1"
    return f"{cpp_data(trainer.variables['_labels'])}[trainer.presentation]"
