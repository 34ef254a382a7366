"""The order of operations in a step: it decides when a spike takes effect, and which writes are lost.

The model needs state updates before thresholds before synapses and resets, which is Brian's default order,
or synapses first, which is GeNN's.  In both, a spike arrives after the state update of its own step and
before the next.  Users can change the order: by the schedule of a network, and by `when` and `order` of objects.
"""

from collections.abc import Sequence
from typing import Any

from brian2 import NetworkOperation
from brian2.core.variables import ArrayVariable

from .internals.events import finds_events
from .internals.networks import SCHEDULE, code_of, is_pathway, networks_to_run, operations_of
from .internals.views import take_values
from .own_code import assigned_names

#: What to do in place of writing to the potential.
POTENTIAL_IS_COMPUTED = (
    "u is computed anew in each step, so what is written to it would be lost. For input that acts for one "
    "step, give the neurons a kernel of one lag, as in GLMNeurons(n, {'stimulus': basis, 'input': "
    "IndicatorBasis(1)}), and write to input_0 in place of u. For a current that decays, write to a "
    "variable of your own, as in GLMNeurons(..., equations='dI/dt = -I / (5*ms) : 1', drive='I'). Only code "
    "between the state update and the threshold may change u itself, as in run_regularly(..., when='after_groups')"
)

_DRIVE_IS_COMPUTED = (
    "drive is computed anew in each step, so what is written to it would be lost. Write to a variable of your "
    "own that the expression uses"
)

_ADVICE = (
    f"GLM neurons need Brian's own order, network.schedule = {SCHEDULE}, and the default `when` of neurons and "
    "synapses"
)


class StepOrder:
    """The order in which the active parts of a network run in each step."""

    def __init__(self, network: Any) -> None:
        self._operations = [part for part in operations_of(network) if part.active]
        self._place = {operation.id: place for place, operation in enumerate(self._operations)}
        self._has_run = network.t_ > 0

    def require(self, *operations: Any) -> None:
        """Raise a ValueError unless those of the operations that are in the network run in this order."""
        found = [operation for operation in operations if operation.id in self._place]
        for first, second in zip(found, found[1:]):
            if not self._are_in_order(first, second):
                raise ValueError(
                    f"each step runs {_described(second, first)}, which must be the other way round. {_ADVICE}"
                )

    def require_lag(self, spikes: Any, arrival: Any, update: Any) -> None:
        """Raise a ValueError unless spikes reach the state update of the next step, if all are in the network.

        Spikes that wait for the next step do not outlive a run, so then a second run is refused.

        Parameters
        ----------
        spikes, arrival, update : BrianObject
            What finds the spikes, what adds their effect, and what needs it.
        """
        if not all(one.id in self._place for one in (spikes, arrival, update)):
            return
        # What runs before the operation whose result it needs gets this result one step later.
        waits = self._are_in_order(arrival, spikes)
        lag = waits + self._are_in_order(update, arrival)
        if lag == 1 and not (waits and self._has_run):
            return
        parts = sorted((spikes, arrival, update), key=lambda one: self._place[one.id])
        fault = f"a kernel's value at lag l would act {'l - 1' if lag == 0 else 'l + 1'} steps after a spike, not l"
        if lag == 1:
            fault = "spikes in the last step of the previous run would be lost"
        raise ValueError(f"{fault}: each step runs {_described(*parts)}. {_ADVICE}")

    def refuse_lost(self, neurons: Any, name: str, after: Any, before: Any, advice: str) -> None:
        """Raise a ValueError if what other operations write to a variable would be lost.

        Parameters
        ----------
        neurons : NeuronGroup
        name : str
            A variable that is computed anew in each step.
        after, before : BrianObject
            What computes it, and what reads it: between the two, others may change it.
        advice : str
        """
        for operation in self.writers([neurons.variables[name]]):
            if operation.id != after.id and not self._are_in_order(after, operation, before):
                raise ValueError(f"{operation.name} writes to {name} of {neurons.name}: {advice}")

    def writers(self, variables: Sequence[Any]) -> list[Any]:
        """Return the operations whose statements assign to any of these variables."""
        found = []
        for operation in self._operations:
            statements, named = code_of(operation)
            written = [named.get(name) for name in assigned_names(statements)]
            if any(one is variable for one in written for variable in variables):
                found.append(operation)
        return found

    def calls_python(self, after: Any, before: Any) -> bool:
        """Return whether a function of the user's runs between two operations."""
        return any(
            isinstance(operation, NetworkOperation) and self._are_in_order(after, operation, before)
            for operation in self._operations
        )

    def _are_in_order(self, *operations):
        places = [self._place[operation.id] for operation in operations]
        return places == sorted(places)


def step_orders(brian_object: Any) -> list[StepOrder]:
    """Return the order of a step in the networks that may be about to run an object."""
    return [StepOrder(network) for network in networks_to_run(brian_object)]


def check_neurons(neurons: Any) -> None:
    """Raise a ValueError if the coming run would shift kernels of GLM neurons, or lose input to them."""
    update, threshold, reset = (
        neurons.state_updater,
        neurons.thresholder["spike"],
        neurons.resetter["spike"],
    )
    channels = [neurons.variables[name] for name in neurons.filter_state]
    calls_python = False
    for order in step_orders(neurons):
        order.require(update, threshold)
        order.require_lag(threshold, reset, update)
        for operation in order.writers(channels):
            if is_pathway(operation):
                spikes = finds_events(operation.source, operation.event)
                order.require_lag(spikes, operation, update)
        order.refuse_lost(neurons, "u", update, threshold, POTENTIAL_IS_COMPUTED)
        if isinstance(neurons.variables.get("drive"), ArrayVariable):
            order.refuse_lost(
                neurons, "drive", neurons.subexpression_updater, update, _DRIVE_IS_COMPUTED
            )
        calls_python |= order.calls_python(update, threshold)
    take_values(neurons, "u", calls_python)


def _described(*operations):
    """Return text that says in which order operations run."""
    return " before ".join(f"{one.name} (slot {one.when!r})" for one in operations)
