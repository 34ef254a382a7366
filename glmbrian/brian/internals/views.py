"""What users meet when they name or set a variable that is not what it seems.

Brian's own messages are just the name, and its flag for variables that are read only has other effects.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from brian2.core.variables import ArrayVariable, Variables, VariableView


class UnknownName(KeyError, ValueError):
    """An unknown name: a KeyError, as in Brian, with a message that says what to write."""

    def __str__(self):
        return self.args[0]


class _ExplainedVariables(Variables):
    def __getitem__(self, item):
        try:
            return super().__getitem__(item)
        except KeyError:
            if item not in self.explanations:
                raise
            raise UnknownName(f"there is no variable {item!r}: {self.explanations[item]}") from None


def explain_unknown_variables(group: Any, explanations: dict[str, str]) -> None:
    """Make a group explain names that look like its state variables but are not.

    Monitors look names up in ``group.variables``, whose error message is just the name.
    `explanations` maps names to texts.
    """
    group.variables.__class__ = _ExplainedVariables
    group.variables.explanations = explanations


class _ComputedView(VariableView):
    def set_item(self, item, value, level=0, namespace=None):
        if not self.variable.takes_values:
            raise TypeError(self.variable.advice)
        super().set_item(item, value, level=level + 1, namespace=namespace)


class _ComputedVariable(ArrayVariable):
    takes_values = False

    def get_addressable_value(self, name, group):
        return _ComputedView(name, self, group, dimensions=None)

    def get_addressable_value_with_unit(self, name, group):
        return _ComputedView(name, self, group, dimensions=self.dim)


def refuse_values(group: Any, name: str, advice: str) -> None:
    """Make assignments to a variable of `group` raise a TypeError that gives `advice`.

    Brian's own flag for this would also change which values a standalone device remembers, and
    what ``get_states`` returns.
    """
    group.variables[name].__class__ = _ComputedVariable
    group.variables[name].advice = advice


def take_values(group: Any, name: str, taken: bool) -> None:
    """Say whether assignments to a variable that `refuse_values` has been called for are allowed."""
    group.variables[name].takes_values = taken


@contextmanager
def values_taken(group: Any, name: str) -> Iterator[None]:
    """Allow assignments to a variable that `refuse_values` has been called for."""
    variable = group.variables[name]
    before, variable.takes_values = variable.takes_values, True
    try:
        yield
    finally:
        variable.takes_values = before
