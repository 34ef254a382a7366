"""The operations of a `Trainer` in generated C++ code.

Brian calls these functions in each step; `native/trainer.hpp` implements them.  This
module supplies the sizes, and where Brian stores its variables.
"""

from importlib import resources
from typing import TYPE_CHECKING, Any

from ..brian.internals import cpp_arriving_synapses, cpp_data, forget_values, spike_array
from ..brian.operations import new_operation

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
    _add(trainer, "end", _end, clock, "end", 1)


def _add(trainer, operation, code, clock, when, order):
    name = f"{trainer.name}_{operation}"

    def cpp_code(owner):
        return f"""
namespace {name}_types {{
struct Activation {{{trainer.neurons.activation.cpp}}};
struct Objective {{{trainer.objective.cpp}}};
}}
static inline int {name}(int done)
{{
    using {name}_types::Activation;
    using {name}_types::Objective;
    static auto& trainer = glmbrian::trainer<{trainer.n_steps}, {len(trainer.neurons)}>("{trainer.name}");
    {code(trainer).strip()}
    return done;
}}
"""

    function = new_operation()
    function.implementations.add_dynamic_implementation(
        "cpp",
        cpp_code,
        lambda owner: None,
        compiler_kwds={
            "headers": ['"trainer.hpp"'],
            "include_dirs": [str(resources.files("glmbrian").joinpath("native"))],
        },
    )
    trainer.namespace[name] = function
    trainer.run_regularly(
        f"done = {name}(done)", clock=clock, when=when, order=order, name=f"{name}_operation"
    )


def _begin(trainer):
    neurons = trainer.neurons
    clear = "\n        ".join(
        f"std::fill_n({cpp_data(neurons.variables[name])}, {neurons.variables[name].size}, 0);"
        for name in [*neurons.filter_state, "u"]
    )
    clamp = f"""
    for (int i = 0; i < {len(neurons)}; i++) {{
        const bool desired = {_desired(trainer, "trainer.step")};
        {cpp_data(neurons.variables["clamp"])}[i] = desired ? 1 : -1;
        {_record_feedback(trainer, "desired")}
    }}"""
    return f"""
    if (trainer.begin_step({trainer.n_presentations})) {{
        {clear}
    }}
    if (trainer.step < 0) return done;{clamp if trainer.objective.clamps_outputs else ""}
"""


def _record_feedback(trainer, spikes):
    """Return C++ code that records a spike of neuron i if the condition `spikes` holds."""
    return "".join(
        f"if ({spikes}) trainer.record({number}, i);"
        for number, learned in enumerate(trainer.learned)
        if learned.pathway is None
    )


def _record(pathways):
    def code(trainer):
        return "\n    ".join(
            cpp_arriving_synapses(pathway, f"trainer.record({number}, synapse);")
            for number, pathway in pathways
        )

    return code


def _end(trainer):
    neurons = trainer.neurons
    variables = neurons.variables
    spiked, emitted = _desired(trainer, "t"), ""
    if not trainer.objective.clamps_outputs:
        # Record the spikes of this step; earlier ones are already known.
        spiked = "trainer.emitted[t][i]"
        emitted = f"""
    if (trainer.step >= 0) {{
        bool (&emitted)[{len(neurons)}] = trainer.emitted[trainer.step];
        std::fill_n(emitted, {len(neurons)}, false);
        const int32_t* const spikes = {cpp_data(spike_array(neurons))};
        for (int s = 0; s < spikes[{len(neurons)}]; s++) {{
            const int i = spikes[s];
            emitted[i] = true;
            {_record_feedback(trainer, "true")}
        }}
    }}"""
    outputs = f"[&](int t, int i) -> bool {{ return {spiked}; }}"
    gradient = f"Objective::gradient<Activation>(trainer.u, {outputs}, {_label(trainer)}, trainer.grad)"
    log_likelihoods = trainer.variables["_log_likelihoods"]
    written = [log_likelihoods, variables["clamp"]]
    lines = []
    if trainer.learn_bias:
        lines.append(f"trainer.learn_bias({cpp_data(variables['bias'])});")
        written.append(variables["bias"])
    for basis in dict.fromkeys(learned.basis for learned in trainer.learned):
        rows = ", ".join("{" + ", ".join(map(repr, row)) + "}" for row in basis.matrix.tolist())
        lines += ["{", f"static const double basis[{basis.window}][{basis.n_basis}] = {{{rows}}};"]
        lines += ["static std::vector<double> change;", "trainer.correlate_all(basis, change);"]
        for number, learned in enumerate(trainer.learned):
            if learned.basis is not basis:
                continue
            weights = [cpp_data(weight) for weight in learned.weights]
            targets = "nullptr"
            if learned.pathway is not None:
                targets = cpp_data(learned.pathway.synapses.variables["_synaptic_post"])
            lines += [
                f"decltype({weights[0]}) const weights_{number}[] = {{{', '.join(weights)}}};",
                f"trainer.learn({number}, change, {learned.targets.size}, {targets}, weights_{number});",
            ]
            written += learned.weights
        lines.append("}")
    forget_values(written)
    body = "\n    ".join(lines)
    arguments = f"{cpp_data(variables['u'])}, {trainer.batch_size}, {trainer.learning_rate!r}"
    return f"""{emitted}
    if (!trainer.end_step({arguments})) return done;
    {cpp_data(log_likelihoods)}[trainer.presentation] = {gradient};
    {body}
    if (trainer.end_presentation())
        std::fill_n({cpp_data(variables["clamp"])}, {len(neurons)}, 0);
"""


def _desired(trainer, step):
    """Return the C++ condition that neuron i should spike in a step."""
    if trainer.has_labels:
        return f"Objective::desired({step}, i, {_label(trainer)}, INT64_C({trainer.objective.period}))"
    targets = cpp_data(trainer.variables["_targets"])
    return (
        f"{targets}[(trainer.presentation * {trainer.n_steps} + {step}) * {len(trainer.neurons)} + i]"
    )


def _label(trainer):
    if not trainer.has_labels:
        return "-1"
    return f"{cpp_data(trainer.variables['_labels'])}[trainer.presentation]"
