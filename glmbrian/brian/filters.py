"""The filter of a GLM neuron: one state update per step, exact on every device.

Filtering commutes with the weighted sum over inputs, so it is done once per target
neuron, not once per synapse: an input spike adds its weight w_k to the *channel*
k of the target, and the target filters its channels by the basis functions.  This module
has three forms of the same map

    u(t) = bias + sum over lags l and channels c of matrix[l - 1, c] * c(t - l)

where c(t) is what arrived in step t (other terms besides the bias may be added to u):

- `shift_register` writes the map as Brian code over `window - 1` variables.  It
  runs everywhere, GeNN included.
- `ring_buffer` keeps the pending contributions in an array.  Its code does not
  grow with the window, so hundreds of lags compile in seconds.
- `recursion` keeps one decaying trace per channel.  It is the fastest, but only for exponential
  kernels of neurons whose filters are cleared before a lag beyond the window matters.

Each returns the statements of a `StateUpdater`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from brian2 import Equations, Function, NeuronGroup, get_device
from numpy.typing import NDArray

from .own_code import integration

#: Longest window for which the filter is written out as Brian code; beyond it,
#: generating and compiling the code takes longer than running the ring buffer.
LONGEST_SHIFT_REGISTER = 40

#: Variable of the group that counts its steps, for `ring_buffer`.
STEP_COUNT = "step_count"


@dataclass(frozen=True)
class StateUpdater:
    """A state update given as Brian code, for ``NeuronGroup(method=...)``.

    Brian keeps every updater that it has used until the process ends.  Updaters with the same
    code are equal, so it keeps only one of them.

    own_equations : brian2.Equations, optional
        Differential equations of the user's, integrated after `code` by `own_method`.
    """

    code: str
    own_equations: Equations | None = None
    own_method: Any = None

    def __call__(self, equations: Any, variables: Any = None, method_options: Any = None) -> str:
        if self.own_equations is None:
            return self.code
        return f"{self.code}\n{integration(self.own_equations, variables, self.own_method)}"


def pending_names(window: int) -> list[str]:
    """Return the variables of `shift_register`: ``pending_l`` will reach u in l steps."""
    return [f"pending_{lag}" for lag in range(1, window)]


def shift_register(
    matrix: NDArray[np.float64], channels: list[str], added: Sequence[str] = ("bias",)
) -> str:
    """Return Brian code that filters by shifting registers.

    Parameters
    ----------
    matrix : ndarray of float, shape (window, n_channels)
    channels : list of str
        Names of the channel variables.
    added : sequence of str
        Names of the variables that are added to u.
    """
    pending = pending_names(matrix.shape[0])
    # In this order, no statement reads what an earlier one wrote.
    targets = ["u"] + pending
    carried = pending + [None]
    lines = []
    for target, carry, row in zip(targets, carried, matrix):
        terms = [f"{value!r}*{channel}" for value, channel in zip(row.tolist(), channels) if value]
        terms += [carry] if carry else []
        terms += added if target == "u" else []
        lines.append(f"{target} = {' + '.join(terms) or '0'}")
    lines += [f"{channel} = 0" for channel in channels]
    return "\n".join(lines) + "\n"


def trace_names(n_channels: int) -> list[str]:
    """Return the variables of `recursion`, one per channel."""
    return [f"trace_{c}" for c in range(n_channels)]


def is_geometric(matrix: NDArray[np.float64]) -> bool:
    """Return whether each column of `matrix`, shape (window, n_channels), decays geometrically."""
    if len(matrix) < 2 or not matrix[0].all():
        return False
    decays = matrix[1] / matrix[0]
    lags = np.arange(len(matrix))[:, np.newaxis]
    return bool((np.abs(decays) < 1).all()) and np.allclose(
        matrix, matrix[0] * decays**lags, rtol=1e-13, atol=0
    )


def recursion(
    matrix: NDArray[np.float64], channels: list[str], added: Sequence[str] = ("bias",)
) -> str:
    """Return Brian code that filters by letting a trace of each channel decay.

    A trace does not end with the window, so filters must be cleared before a later lag matters.

    Parameters
    ----------
    matrix : ndarray of float, shape (window, n_channels)
        It must be geometric (see `is_geometric`).
    channels : list of str
        Names of the channel variables.
    added : sequence of str
        Names of the variables that are added to u.
    """
    traces = trace_names(len(channels))
    rows = zip(traces, channels, matrix[0].tolist(), (matrix[1] / matrix[0]).tolist())
    lines = [
        f"{trace} = {decay!r}*{trace} + {first!r}*{channel}" for trace, channel, first, decay in rows
    ]
    lines.append(f"u = {' + '.join([*traces, *added])}")
    lines += [f"{channel} = 0" for channel in channels]
    return "\n".join(lines) + "\n"


def ring_buffer(
    matrix: NDArray[np.float64],
    channels: list[str],
    name: str,
    added: Sequence[str] = ("bias",),
) -> tuple[str, Function]:
    """Return Brian code that filters in a ring buffer, and the function that it calls.

    The buffer is the array variable ``ring`` of the neuron group (see `add_ring`), with
    `window` entries per neuron.

    Parameters
    ----------
    matrix : ndarray of float, shape (window, n_channels)
    channels : list of str
        Names of the channel variables.
    name : str
        Name of the Brian function, unique to the group.
    added : sequence of str
        Names of the variables that are added to u.

    Returns
    -------
    code : str
    function : brian2.Function
        Put it into the namespace of the group as `name`.
    """
    arrived = f"{name}(i, {STEP_COUNT}, {', '.join(channels)})"
    lines = [f"u = {' + '.join([*added, arrived])}"]
    lines += [f"{channel} = 0" for channel in channels]
    return "\n".join(lines) + "\n", _ring_function(tuple(map(tuple, matrix.tolist())), name)


def add_ring(group: NeuronGroup, window: int) -> None:
    """Give `group` the array variable ``ring`` that `ring_buffer` needs."""
    # This index makes subgroups ignore the array: it does not belong to single neurons.
    # Native code expects an array of doubles.
    group.variables.add_array("ring", size=len(group) * window, index="0", dtype=np.float64)


# As with state updaters, Brian keeps every function that it has generated code for.
@lru_cache(maxsize=100)
def _ring_function(rows, name):
    matrix = np.array(rows)
    window, n_channels = matrix.shape

    # The NumPy implementation needs the group that owns the ring; Brian passes the
    # group when it generates code.
    def numpy_code(owner):
        ring = owner.variables["ring"].get_value().reshape(-1, window)

        def filtered(i, step, *values):
            position = int(step) % window
            arrived = np.array(np.broadcast_arrays(*values, i)[:-1], dtype=float)
            reached = np.flatnonzero(arrived.any(axis=0))
            order = (position + np.arange(window)) % window
            ring[reached[:, np.newaxis], order] += arrived[:, reached].T @ matrix.T
            potential = ring[:, position].copy()
            ring[:, position] = 0.0
            return potential

        return filtered

    arguments = [f"v{c}" for c in range(n_channels)]
    values = ", ".join(repr(value) for value in matrix.ravel().tolist())

    def cpp_code(owner):
        ring = get_device().get_array_name(owner.variables["ring"])
        any_arrived = " || ".join(f"{value} != 0.0" for value in arguments)
        return f"""
static const double {name}_matrix[{matrix.size}] = {{{values}}};
static inline double {name}(int i, int64_t step, {", ".join("double " + v for v in arguments)})
{{
    double* const ring = brian::{ring} + (size_t)i * {window};
    const int position = (int)(step % {window});
    if ({any_arrived})
    {{
        const double arrived[{n_channels}] = {{{", ".join(arguments)}}};
        const double* row = {name}_matrix;
        int slot = position;
        for (int lag = 0; lag < {window}; lag++)
        {{
            double sum = 0.0;
            for (int c = 0; c < {n_channels}; c++) sum += row[c] * arrived[c];
            ring[slot] += sum;
            row += {n_channels};
            if (++slot == {window}) slot = 0;
        }}
    }}
    const double potential = ring[position];
    ring[position] = 0.0;
    return potential;
}}
"""

    def cython_code(owner):
        any_arrived = " or ".join(f"{value} != 0.0" for value in arguments)
        filled = "\n        ".join(f"arrived[{c}] = {v}" for c, v in enumerate(arguments))
        return f"""
from libc.stdint cimport int64_t
cdef double {name}(int i, int64_t step, {", ".join("double " + v for v in arguments)}):
    global _namespace{name}_ring, _namespace{name}_matrix
    cdef double* ring = _namespace{name}_ring + <int64_t>i * {window}
    cdef double* row = _namespace{name}_matrix
    cdef double arrived[{n_channels}]
    cdef int position = <int>(step % {window})
    cdef int lag, c, slot
    cdef double total, potential
    if {any_arrived}:
        {filled}
        slot = position
        for lag in range({window}):
            total = 0.0
            for c in range({n_channels}):
                total += row[c] * arrived[c]
            ring[slot] += total
            row += {n_channels}
            slot += 1
            if slot == {window}:
                slot = 0
    potential = ring[position]
    ring[position] = 0.0
    return potential
"""

    def cython_namespace(owner):
        return {
            f"{name}_ring": owner.variables["ring"].get_value(),
            f"{name}_matrix": np.array(matrix.ravel()),
        }

    function = Function(
        lambda *arguments: None,
        arg_types=["integer", "integer"] + ["float"] * n_channels,
        return_type="float",
        arg_units=[1, 1] + [1] * n_channels,
        return_unit=1,
        stateless=False,
    )
    add = function.implementations.add_dynamic_implementation
    add("numpy", numpy_code)
    add("cpp", cpp_code, lambda owner: None)
    add("cython", cython_code, cython_namespace)
    return function
