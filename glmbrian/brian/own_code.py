"""Equations and statements that users add to the neurons and synapses of the package."""

import re
from collections.abc import Collection
from typing import Any

import numpy as np
from brian2 import Equations
from brian2.equations.equations import (
    DIFFERENTIAL_EQUATION,
    FLOAT,
    EquationError,
    extract_constant_subexpressions,
)
from brian2.stateupdaters.base import StateUpdateMethod

from .target import current_target

#: What statements assign to, with any of the assignment operators.
_ASSIGNED = re.compile(r"(?:^|;)\s*([A-Za-z_]\w*)\s*(?:[-+*/%]|//|\*\*)?=(?!=)", re.MULTILINE)


def check_equations(equations: Any, name: str, taken: Collection[str]) -> Equations | None:
    """Check additional `equations`, and return them as an object; None if there are none.

    Parameters
    ----------
    equations : str or brian2.Equations or None
    name : str
        Name of the argument, for error messages.
    taken : collection of str
        Names that the model itself uses, which `equations` must not define.
    """
    if equations is None or equations == "":
        return None
    _require_target(name)
    if not isinstance(equations, (str, Equations)):
        raise TypeError(
            f"{name} must be Brian equations, as a string or brian2.Equations, got {equations!r}"
        )
    if isinstance(equations, str):
        try:
            equations = Equations(equations)
        except (EquationError, SyntaxError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(f"{name} must be Brian equations: {reason}") from None
    clashing = sorted(equations.names & set(taken))
    if clashing:
        raise ValueError(
            f"{name}: the name {clashing[0]!r} is taken by the model itself; choose another"
        )
    return equations if len(equations) else None


def check_statements(statements: Any, name: str, kept: Collection[str]) -> str:
    """Check additional statements, and return them as text; an empty string if there are none.

    The statements must not assign to the names in `kept`.
    """
    if statements is None or statements == "":
        return ""
    _require_target(name)
    if not isinstance(statements, str):
        raise TypeError(
            f"{name} must be a string of statements, such as 'calcium += 1', got {statements!r}"
        )
    check_assignments(statements, name, kept)
    # Brian takes no lines that hold only a comment.
    lines = [line.strip() for line in re.split("[;\n]", _without_comments(statements))]
    return "".join(f"\n{line}" for line in lines if line)


def check_assignments(statements: str, name: str, kept: Collection[str]) -> None:
    """Raise a ValueError if the `statements` of the argument `name` assign to a name in `kept`."""
    for target in assigned_names(statements):
        if target in kept:
            raise ValueError(f"{name} must not change {target!r}, which belongs to the model itself")


def assigned_names(statements: str) -> list[str]:
    """Return the names that `statements` assign to.

    Examples
    --------
    >>> assigned_names("x = 1; y_post += 2  # z = 3")
    ['x', 'y_post']
    """
    return _ASSIGNED.findall(_without_comments(statements))


def _without_comments(statements):
    return re.sub("#.*", "", statements)


def check_method(method: Any, equations: Equations | None) -> None:
    """Raise unless `method` is None, or names a method and there are equations to integrate."""
    if method is None:
        return
    # Those of GSL write no code that could follow other code.
    known = sorted(known for known in StateUpdateMethod.stateupdaters if "gsl" not in known)
    if not isinstance(method, str):
        raise TypeError(f"method must be one of {', '.join(map(repr, known))}, got {method!r}")
    if method not in known:
        raise ValueError(f"method must be one of {', '.join(map(repr, known))}, got {method!r}")
    if equations is None:
        raise ValueError("method is for differential equations, but equations is not given")


def _require_target(name):
    target = current_target()
    if not target.takes_own_code:
        raise NotImplementedError(
            f"{name}: your own Brian code is not supported on the device {target.name!r}; use "
            "'runtime' or 'cpp_standalone'"
        )


def double_precision_of(equations: Equations | None) -> dict[str, Any]:
    """Return the ``dtype`` argument that gives the real variables in `equations` double precision."""
    if equations is None:
        return {}
    return {name: np.float64 for name, one in equations.items() if one.var_type == FLOAT}


def integration(equations: Equations, variables: Any, method: Any) -> str:
    """Return Brian code that integrates the differential equations in `equations` by one step."""
    if all(one.type != DIFFERENTIAL_EQUATION for one in equations.values()):
        return ""
    # As Brian does: these keep their values from the beginning of the step.
    equations, _ = extract_constant_subexpressions(equations)
    return StateUpdateMethod.apply_stateupdater(equations, variables, method or DEFAULT_METHODS)


#: The first that works is used, as in Brian's own groups.
DEFAULT_METHODS = ("exact", "euler", "heun")
