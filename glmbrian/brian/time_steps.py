"""The time step of recorded series, and of neurons fitted to them.

A discrete-time model says what happens from one step to the next, not how long a step is:
a different step means a different model.  So data and models keep their step.
"""

import math
from collections.abc import Mapping
from typing import Any

from brian2 import Quantity, defaultclock, ms, second

from ..core.bases import Basis
from ..core.lags import has_unit
from .arguments import check_brian_arguments

#: Brian's default time step, until the user sets another.
_BRIANS_OWN = 0.1 * ms

#: Relative difference up to which two steps count as the same.
_ROUNDING = 1e-6


def time_step(dt: Any) -> Quantity | None:
    """Return a checked time step, such as ``1*ms``, as a Quantity, or None for None."""
    check_brian_arguments(dt=dt)
    return None if dt is None else float(dt) * second


def is_same_step(one: Any, other: Any) -> bool:
    """Return whether two time steps are equal up to rounding."""
    return math.isclose(float(one), float(other), rel_tol=_ROUNDING)


def neuron_clock(dt: Quantity | None, given: Mapping[str, Any]) -> dict[str, Quantity]:
    """Return ``dt=...`` for neurons whose model was fitted with step `dt`, if needed.

    Parameters
    ----------
    dt : Quantity or None
        The model's step; None if unknown.
    given : dict
        The user's keywords, perhaps with ``dt`` or ``clock``.

    Raises
    ------
    TypeError, ValueError
        If the neurons would have a different step, or if the step is unknown.
    """
    check_brian_arguments(given.get("dt"), given.get("clock"))
    if given.get("dt") is not None:
        step = given["dt"]
    elif given.get("clock") is not None:
        step = given["clock"].dt
    elif dt is None:
        if is_same_step(defaultclock.dt, _BRIANS_OWN):
            raise ValueError(
                "dt must be given: this population does not know the time step that it was fitted "
                "at, and Brian's default clock still has its own 0.1 ms. Write "
                "population.neurons(dt=1*ms) if its steps are 1 ms; or, before this, "
                "fit_population(..., dt=1*ms), population.dt = 1*ms or defaultclock.dt = 1*ms"
            )
        return {}
    else:
        return {} if is_same_step(defaultclock.dt, dt) else {"dt": dt}
    if dt is not None and not is_same_step(step, dt):
        raise ValueError(
            f"dt must be {dt}, the time step that this population was fitted at, got {step}; leave "
            "dt out, fit to data in other steps, or correct population.dt"
        )
    return {}


def require_steps_of_bases(
    kernels: Mapping[str, Basis], feedback_basis: Basis | None, dt: Quantity | None
) -> None:
    """Raise if a basis was made from times for steps other than `dt`."""
    bases: dict[str, Basis | None] = {f"kernels[{name!r}]": basis for name, basis in kernels.items()}
    for name, basis in {**bases, "feedback_basis": feedback_basis}.items():
        if basis is None or dt is None or not has_unit(basis.dt) or is_same_step(basis.dt, dt):
            continue
        raise ValueError(
            f"{name} was made for steps of {basis.dt}, but steps are {dt} here: make it with dt={dt}, or in numbers "
            "of steps"
        )


def require_step(group: Any, dt: Quantity | None, name: str) -> None:
    """Raise unless a Brian group has the time step `dt`, or `dt` is unknown."""
    if dt is not None and not is_same_step(group.clock.dt, dt):
        raise ValueError(
            f"{name} must have the time step {dt} that the population was fitted at, but "
            f"{group.name} has {group.clock.dt}: create it with dt={dt}, or set "
            f"defaultclock.dt = {dt} and do not change it afterwards"
        )
