"""The operations of a `Trainer` in generated C++ code.

Brian calls these functions in each step; `native/trainer.hpp` implements them.  This
module supplies the sizes, and where Brian stores its variables.
"""

from typing import Any

import numpy as np

from ..brian.headers import cpp_header
from ..brian.internals import (
    cpp_arriving_synapses,
    cpp_data,
    forget_values,
    planned_steps,
    share_code_of_runs,
    spike_array,
)
from ..brian.operations import new_operation
from .backend import Backend
from .learning_cpp import desired, learn_presentation
from .reward import END_ORDER


class CppBackend(Backend):
    """Training in a generated program."""

    runs_at_once = False

    def __init__(self, plan, owner, learning_rate):
        super().__init__(plan, owner, learning_rate)
        self._clock = owner.clock
        self._steps_planned = 0
        self.variables.add_array("done", size=1, dtype=np.int32)
        schedule = plan.rule.schedule
        if plan.learns and not schedule.cpp:
            factors = np.array([schedule.factor(done) for done in plan.done_in_updates.tolist()])
            self.variables.add_array("_factors", size=factors.size, dtype=float, values=factors)

    def add_operations(self, owner):
        plan, clock = self.plan, owner.clock
        self._add(owner, "begin", self._begin, clock, "start", 0)
        together: dict[Any, list] = {}  # one operation for all pathways that run at the same time
        for number, weights in enumerate(plan.weights):
            if weights.pathway is not None:
                turn = (weights.pathway.clock, weights.pathway.when)
                together.setdefault(turn, []).append((number, weights.pathway))
        for n, ((source_clock, when), pathways) in enumerate(together.items()):
            # after the pathways have handled the spikes of this step
            order = max(pathway.order for _, pathway in pathways) + 1
            self._add(owner, f"record_{n}", _recording(pathways), source_clock, when, order)
        self._add(owner, "end", self._end, clock, "end", END_ORDER)
        share_code_of_runs(owner)

    @property
    def steps_done(self):
        return min(self._steps_planned, self.plan.n_presentations * self.plan.n_steps)

    def after_run(self):
        """Count the steps, and make Brian read what the program changes when it has run."""
        self._steps_planned += planned_steps(self._clock)
        plan, own = self.plan, self.variables
        changed = [plan.outputs.variables["clamp"]]
        if plan.tests.n:
            changed.append(own["_outcomes"])
        if plan.learns:
            changed.append(own["_values"])
            changed += [variable for weights in plan.weights for variable in weights.variables]
            changed += plan.biases
        forget_values(changed)

    def _add(self, owner, operation, code, clock, when, order):
        plan, name, owners_name = self.plan, f"{owner.name}_{operation}", owner.name

        def cpp_code(owner):
            learners = "\n    ".join(
                f"static auto& learner_{number} = glmbrian::shared<glmbrian::Learner<{plan.n_steps}, "
                f'{len(group)}>>("{owners_name}_{number}");'
                for number, group in enumerate(plan.groups)
            )
            return f"""
namespace {name}_types {{
{_types(plan)}
}}
static inline int {name}(int done)
{{
    using namespace {name}_types;
    static auto& trainer = glmbrian::shared<glmbrian::Trainer<{plan.n_steps}>>("{owners_name}");
    {learners}
    {code().strip()}
    return done;
}}
"""

        function = new_operation()
        function.implementations.add_dynamic_implementation(
            "cpp", cpp_code, lambda owner: None, compiler_kwds=cpp_header("trainer.hpp")
        )
        owner.namespace[name] = function
        owner.run_regularly(
            f"done = {name}(done)", clock=clock, when=when, order=order, name=f"{name}_operation"
        )

    def _begin(self):
        plan, outputs = self.plan, self.plan.outputs
        clear = "\n        ".join(
            f"std::fill_n({cpp_data(group.variables[name])}, {group.variables[name].size}, 0);"
            for group in plan.groups
            for name in [*group.filter_state, "u"]
        )
        is_free = ""
        if plan.tests.n:
            is_free = f"""
    if (trainer.step == 0) {{
        trainer.set_test({cpp_data(self.variables["_tests"])}[trainer.presentation] >= 0);
        if (trainer.is_test) std::fill_n({cpp_data(outputs.variables["clamp"])}, {len(outputs)}, 0);
    }}
    if (trainer.is_test) return done;"""
        clamp = ""
        if plan.clamps_outputs:
            clamp = f"""
    for (int i = 0; i < {len(outputs)}; i++) {{
        const bool desired = {desired(plan, self.variables, "trainer.step")};
        {cpp_data(outputs.variables["clamp"])}[i] = desired ? 1 : -1;
        if (desired) {{ {_record_feedback(plan, 0)} }}
    }}"""
        return f"""
    if (trainer.begin_step({plan.n_presentations})) {{
        {clear}
    }}
    if (trainer.step < 0) return done;{is_free}{clamp}
"""

    def _end(self):
        plan = self.plan
        parts = ["if (trainer.step < 0) return done;"]
        if plan.tests.n:
            parts.append(self._end_test())
        if plan.learns:
            parts.append(self._end_learning())
        return "\n    ".join(parts)

    def _end_test(self):
        """Return C++ code that ends the step if this presentation is a test."""
        plan = self.plan
        outcomes, numbers = (cpp_data(self.variables[name]) for name in ("_outcomes", "_tests"))
        stops = str(plan.objective.stops_at_first_spike).lower()
        return f"""
    if (trainer.is_test) {{
        {_record_step(plan, 0)}
        {_record_spikes(plan, 0)}
        if (!trainer.is_last_step()) return done;
        learner_0.report({stops}, &{outcomes}[{numbers}[trainer.presentation] * {plan.tests.n_values}]);
        trainer.end_presentation();
        return done;
    }}
"""

    def _end_learning(self):
        """Return C++ code that ends the step if this presentation is learned."""
        plan, outputs = self.plan, self.plan.outputs
        record = "\n    ".join(
            line
            for number in range(len(plan.groups))
            for line in [
                _record_step(plan, number),
                *([] if plan.clamps_outputs and number == 0 else [_record_spikes(plan, number)]),
            ]
        )
        return f"""
    {record}
    if (!trainer.is_last_step()) return done;
    {learn_presentation(plan, self.variables, self.learning_rate)}
    if (trainer.end_presentation())
        std::fill_n({cpp_data(outputs.variables["clamp"])}, {len(outputs)}, 0);
"""


def _types(plan):
    """Return the C++ structs that the plan's parts define."""
    activations = "\n".join(
        group.activation.cpp_struct(f"Activation{number}") for number, group in enumerate(plan.groups)
    )
    credit = f"struct Credit {{{plan.credit.cpp}}};" if plan.uses_credit else ""
    objective = plan.objective.cpp if plan.reward is None else ""
    optimizer = plan.rule.optimizer.cpp_struct() if plan.learns else ""
    return f"{activations}\n{credit}\nstruct Objective {{{objective}}};\n{optimizer}"


def _recording(pathways):
    def code():
        return "\n    ".join(
            cpp_arriving_synapses(pathway, f"trainer.record({number}, synapse);")
            for number, pathway in pathways
        )

    return code


def _record_feedback(plan, group):
    """Return C++ code that records a spike of neuron i of a group."""
    return "".join(f"trainer.record({number}, i);" for number in plan.feedback_of(group))


def _record_step(plan, number):
    potentials = cpp_data(plan.groups[number].variables["u"])
    return f"learner_{number}.record_step(trainer.step, {potentials});"


def _record_spikes(plan, number):
    spikes = cpp_data(spike_array(plan.groups[number]))
    each = f"[&](int i) {{ {_record_feedback(plan, number)} }}"
    return f"learner_{number}.record_spikes(trainer.step, {spikes}, {each});"
