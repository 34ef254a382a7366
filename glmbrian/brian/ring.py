"""The filter of a GLM neuron as a ring of future potentials: a step costs what arrives in it.

The ring holds what the spikes so far will add to the potential of each neuron in each of the next
steps.  In a step, only neurons whose channels something has reached are filtered, and only over the
lags where their basis is not 0.  All neurons are filtered in one call (`native/coupling.hpp`).
"""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np
from brian2 import Function, NeuronGroup, get_device
from numpy.typing import NDArray
from scipy.linalg.blas import dgemm

from .filters import STEP_COUNT
from .headers import cpp_header, native_code
from .operations import new_operation

#: Array variable of the group: the ring.
RING = "ring"

#: Array variable of the group: what reaches the potentials in this step.
_ARRIVING = "_arriving"

#: Native code handles this many lags at a time, and needs as many more elements in the ring's array.
_LANES = 8


def cython_header() -> str:
    """Return Cython code after which the functions in native/coupling.hpp can be declared.

    It contains the header, since Brian does not pass folders of headers on to Cython.
    """
    code = native_code("coupling.hpp")
    return f'from libc.stdint cimport int32_t, int64_t\ncdef extern from *:\n    """{code}"""\n'


def addresses(arrays: Sequence[np.ndarray]) -> NDArray[np.int64]:
    """Return the addresses of arrays, for Cython code.

    Cython takes longer to accept an array than many a step takes, so it gets one in place of many.
    """
    return np.array([array.ctypes.data for array in arrays], dtype=np.int64)


def ring_buffer(
    matrix: NDArray[np.float64],
    channels: list[str],
    name: str,
    added: Sequence[str] = ("bias",),
) -> tuple[str, dict[str, Function]]:
    """Return Brian code that filters in a ring buffer, and the functions that it calls.

    Parameters
    ----------
    matrix : ndarray of float, shape (window, n_channels)
    channels : list of str
        Names of the channel variables.
    name : str
        Name of the Brian function that filters.
    added : sequence of str
        Names of the variables that are added to u.

    Returns
    -------
    code : str
    functions : dict of str to brian2.Function
        Put them into the namespace of the group, which must be prepared with `add_ring`.
    """
    matrix = _without_empty_lags(matrix)
    arriving = _arriving_name(name)
    # The first statement changes variables of the whole group, so Brian runs it once, before the
    # second.
    code = f"{STEP_COUNT} = {name}({STEP_COUNT})\nu = {' + '.join([*added, f'{arriving}(i)'])}\n"
    return code, {
        name: _filter(tuple(map(tuple, matrix.tolist())), tuple(channels), name),
        arriving: _arriving(arriving),
    }


def add_ring(group: NeuronGroup, matrix: NDArray[np.float64]) -> None:
    """Give `group` the array variables that `ring_buffer` needs for `matrix`."""
    size = len(group) * _length(_without_empty_lags(matrix))
    # This index makes subgroups ignore the arrays: they do not belong to single neurons.
    # Native code expects arrays of doubles.
    add = group.variables.add_array
    add(RING, size=size + _LANES, index="0", dtype=np.float64)
    add(_ARRIVING, size=len(group), index="0", dtype=np.float64)


def ring_variables(group: NeuronGroup) -> list[Any]:
    """Return the variables of the group that filtering changes, other than its channels."""
    return [group.variables[name] for name in (RING, _ARRIVING) if name in group.variables]


def ring_values(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a copy of the array of a ring whose entries are at the beginning."""
    values = np.zeros_like(array)
    skipped = int(array[-1])
    n_entries = len(array) - _LANES
    values[:n_entries] = array[skipped : skipped + n_entries]
    return values


def _without_empty_lags(matrix):
    """Leave out lags at the end where the basis is 0, but not all lags."""
    used = np.flatnonzero(matrix.any(axis=1))
    return matrix[: used[-1] + 1 if used.size else 1]


def _length(matrix):
    """Return how many steps the ring holds.

    The present step can be any of the elements that native code handles at a time.
    """
    return _LANES * -(-(len(matrix) + _LANES - 1) // _LANES)


def _phases(matrix):
    """Return the table of the struct ``Phases`` in native/coupling.hpp: values and ranges."""
    window, n_channels = matrix.shape
    n_vectors = _length(matrix) // _LANES
    values = np.zeros((_LANES, n_vectors, n_channels, _LANES))
    for phase in range(_LANES):
        padded = np.zeros((n_vectors * _LANES, n_channels))
        padded[phase : phase + window] = matrix
        values[phase] = padded.reshape(n_vectors, _LANES, n_channels).swapaxes(1, 2)
    used = values.any(axis=3)
    first, last = used.argmax(axis=2), n_channels - used[..., ::-1].argmax(axis=2)
    ranges = np.where(used.any(axis=2)[..., np.newaxis], np.stack([first, last], axis=2), 0)
    return values, ranges.astype(np.int32)


# As with state updaters, Brian keeps every function that it has generated code for.
@lru_cache(maxsize=100)
def _filter(rows, channels, name):
    matrix = np.array(rows)
    n_channels = len(channels)
    phases = _phases(matrix)

    # Brian passes the group when it generates code.
    def numpy_code(owner):
        return _numpy_filter(
            matrix,
            [owner.variables[channel].get_value() for channel in channels],
            owner.variables[RING].get_value(),
            owner.variables[_ARRIVING].get_value(),
        )

    def cython_namespace(owner):
        variables = [owner.variables[variable] for variable in (*channels, RING, _ARRIVING)]
        values = [variable.get_value() for variable in variables]
        return {f"{name}_addresses": addresses([*values[:n_channels], *phases, *values[n_channels:]])}

    function = new_operation()
    add = function.implementations.add_dynamic_implementation
    add("numpy", numpy_code)
    cpp_code = partial(_cpp_filter, matrix, channels, name)
    add("cpp", cpp_code, lambda owner: None, compiler_kwds=cpp_header("coupling.hpp"))
    add("cython", partial(_cython_filter, matrix, name), cython_namespace)
    return function


def _cpp_filter(matrix, channels, name, owner):
    device = get_device()
    window, n_channels = matrix.shape

    def pointer(variable):
        return f"brian::{device.get_array_name(owner.variables[variable])}"

    values = ", ".join(repr(value) for value in matrix.ravel().tolist())
    return f"""
static int64_t {name}(int64_t step)
{{
    static const double matrix[{matrix.size}] = {{{values}}};
    static const glmbrian::PhasesOf phases(matrix, {window}, {n_channels}, {_length(matrix) // _LANES});
    double* const channels[{n_channels}] = {{{", ".join(map(pointer, channels))}}};
    glmbrian::filter_arrived<{n_channels}>(
        channels, {len(owner)}, phases.get(), {pointer(RING)}, {pointer(_ARRIVING)}, step);
    return step;
}}
"""


def _cython_filter(matrix, name, owner):
    n_channels = matrix.shape[1]
    return f"""
{cython_header()}
    ctypedef struct {name}_phases "glmbrian::Phases":
        int n_vectors
        const double* values
        const int32_t* ranges
    void {name}_native "glmbrian::filter_arrived<{n_channels}>"(
        double** channels, int n, {name}_phases phases, double* ring, double* arriving,
        int64_t step) noexcept nogil
cdef double* {_arriving_name(name)}_values
cdef int64_t {name}(int64_t step) noexcept nogil:
    global {_arriving_name(name)}_values
    global _namespace{name}_addresses
    cdef double** arrays = <double**>_namespace{name}_addresses
    cdef {name}_phases phases
    {_arriving_name(name)}_values = arrays[{n_channels + 3}]
    phases.n_vectors = {_length(matrix) // _LANES}
    phases.values = arrays[{n_channels}]
    phases.ranges = <int32_t*>arrays[{n_channels + 1}]
    {name}_native(
        arrays, {len(owner)}, phases, arrays[{n_channels + 2}], {_arriving_name(name)}_values, step)
    return step
"""


def _numpy_filter(matrix, channels, array, arriving):
    window, n_channels = matrix.shape
    length = _length(matrix)
    n = len(channels[0])
    array[:] = ring_values(array)
    ring = array[: n * length].reshape(n, length)
    # Two rounds of the ring, so that a slice of one begins with any lag.
    rounds = np.zeros((n_channels, 2, length))
    rounds[:, :, :window] = matrix.T[:, np.newaxis]
    rounds = rounds.reshape(n_channels, 2 * length)
    arrived = np.empty((n_channels, n))
    in_one = arrived.reshape(-1)

    def filtered(step):
        position = int(step) % length
        np.concatenate(channels, out=in_one)
        if arrived.any():
            for channel in channels:
                channel.fill(0)
            basis = np.ascontiguousarray(rounds[:, length - position : 2 * length - position])
            reached = np.flatnonzero(arrived.any(axis=0))
            if 2 * len(reached) > n:
                # ring += arrived.T @ basis, without an array for the product
                dgemm(1.0, basis.T, arrived.T, 1.0, ring.T, trans_b=1, overwrite_c=1)
            else:
                ring[reached] += arrived[:, reached].T @ basis
        arriving[:] = ring[:, position]
        ring[:, position] = 0
        return step

    return filtered


def _arriving_name(name):
    return f"{name}_arriving"


@lru_cache(maxsize=100)
def _arriving(name):
    """Return the Brian function of a neuron's index that gives what has reached its potential.

    It belongs to the function that filters, without ``_arriving``.  In Cython, where each array that
    code names costs time, that function says where the values are.
    """

    def numpy_code(owner):
        values = owner.variables[_ARRIVING].get_value()
        return lambda i: values

    def cpp_code(owner):
        array = get_device().get_array_name(owner.variables[_ARRIVING])
        return f"static inline double {name}(int i) {{ return brian::{array}[i]; }}"

    def cython_code(owner):
        return f"""
cdef inline double {name}(int i) noexcept nogil:
    return {name}_values[i]
"""

    function = Function(
        lambda i: None,
        arg_types=["integer"],
        return_type="float",
        arg_units=[1],
        return_unit=1,
        stateless=False,
    )
    add = function.implementations.add_dynamic_implementation
    add("numpy", numpy_code)
    add("cpp", cpp_code, lambda owner: None)
    add("cython", cython_code, lambda owner: None)
    return function
