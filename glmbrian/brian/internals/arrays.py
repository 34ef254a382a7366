"""The arrays of Brian's variables, and what a standalone device knows of their values.

Functions that generated code calls read and change arrays, which Brian does not expect.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import brian2
import numpy as np
from brian2.core.variables import DynamicArrayVariable, Variables
from brian2.devices.device import get_device

from ..target import runs_at_once

BRIAN_VERSION = tuple(int(part) for part in brian2.__version__.split(".")[:2])


def cpp_data(variable: Any) -> str:
    """Return the C++ expression for the first element of a Brian array."""
    name = get_device().get_array_name(variable, access_data=False)
    return f"brian::{name}.data()" if isinstance(variable, DynamicArrayVariable) else f"brian::{name}"


def private_arrays(owner: Any, **values: np.ndarray) -> list[Any]:
    """Return constant Brian arrays with these values, for native code.

    They belong to `owner`, whose own variables, which users see and set, do not include them.
    """
    variables = Variables(owner)
    for name, array in values.items():
        variables.add_array(
            name,
            size=array.size,
            values=array,
            dtype=array.dtype,
            constant=True,
            read_only=True,
            index="0",
        )
    return [variables[name] for name in values]


def forget_values(variables: Iterable[Any]) -> None:
    """Make the standalone device read these variables after the run.

    It assumes that a variable is unchanged if none of its own code writes to it.
    """
    for variable in variables:
        get_device().array_cache[variable] = None


def changed_by_operations(variables: Iterable[Any]) -> None:
    """Say that functions which a run calls change these variables, though its code does not name them.

    On the runtime device there is nothing to do.
    """
    if not runs_at_once(get_device()):
        forget_values(variables)


def remember_values(variable: Any, values: Any) -> None:
    """Tell a standalone device the contents of an array until a run may change it.

    The device remembers values written to fixed arrays, but not to arrays that grow, such as
    the variables of synapses.
    """
    if not runs_at_once(get_device()):
        get_device().array_cache[variable] = np.array(values, dtype=variable.dtype)


def run_args(values: Mapping[tuple[Any, str], Any]) -> dict[Any, np.ndarray]:
    """Return a dict for ``device.run(run_args=...)`` from (group, variable name): value."""
    if BRIAN_VERSION < (2, 6):
        raise NotImplementedError(
            "run_args need Brian 2.6 or newer; set the values and build again instead"
        )
    # Brian hashes the array's memory, so it must be contiguous.
    return {
        getattr(group, name): np.ascontiguousarray(value) for (group, name), value in values.items()
    }
