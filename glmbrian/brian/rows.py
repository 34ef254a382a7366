"""Spikes that add whole rows of weights to channels, in place of one synapse at a time.

Brian keeps spikes in a queue of synapses, which takes longer than adding the weights.  Without
delays nothing waits in the queue: the synapses of a source are a row of weights, and each of its
spikes adds that row to the channels of its targets at once (`native/coupling.hpp`).
"""

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from brian2 import Function, get_device
from numpy.typing import NDArray

from .headers import cpp_header
from .internals.arrays import cpp_data, private_arrays
from .internals.events import spike_array
from .operations import new_operation
from .ring import addresses, cython_header
from .subgroups import span, whole_group

#: The mean length of runs of synapses from which on they are not added one by one.
_LONG_RUNS = 4


#: From this mean length of runs on, NumPy adds them fastest one by one.
_LONG_ARRAYS = 100


@dataclass(frozen=True)
class Rows:
    """The synapses of each source.

    Attributes
    ----------
    first : ndarray of int32, shape (n_source + 1,)
        Where the items of each source begin, and where the last end.
    items : ndarray of int32, shape (n_items, 3) or (n_items, 2)
        Runs of synapses whose numbers and targets are consecutive (first synapse, first target,
        length); or, where runs would be short, each synapse and its target.
    """

    first: NDArray[np.int32]
    items: NDArray[np.int32]

    @property
    def are_runs(self) -> bool:
        return self.items.shape[1] == 3

    @property
    def n_synapses(self) -> int:
        return int(self.items[:, 2].sum()) if self.are_runs else len(self.items)


def find_rows(pre: NDArray[np.int_], post: NDArray[np.int_], n_source: int) -> Rows:
    """Return the rows of synapses with these sources and targets.

    Examples
    --------
    >>> rows = find_rows([0, 0, 0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 3, 4, 1, 2, 3, 4], 2)
    >>> rows.first.tolist(), rows.items.tolist()
    ([0, 1, 2], [[0, 0, 5], [5, 1, 4]])
    """
    pre, post = np.asarray(pre), np.asarray(post)
    synapses = np.lexsort((post, pre))
    pre, post = pre[synapses], post[synapses]
    continues = (np.diff(pre) == 0) & (np.diff(post) == 1) & (np.diff(synapses) == 1)
    starts = np.flatnonzero(np.concatenate([[True], ~continues]))
    if _LONG_RUNS * len(starts) <= len(pre):
        lengths = np.diff(starts, append=len(pre))
        items = np.stack([synapses[starts], post[starts], lengths], axis=1)
        pre = pre[starts]
    else:
        items = np.stack([synapses, post], axis=1)
    first = np.searchsorted(pre, np.arange(n_source + 1))
    return Rows(first.astype(np.int32), items.astype(np.int32))


class RowCode:
    """The code that adds the rows of all sources that have just spiked, in each language.

    Parameters
    ----------
    synapses : brian2.Synapses
    weights, channels : list of brian2.core.variables.Variable
        One per basis function: of each synapse, and of each neuron of the whole target group.
    rows : Rows
        With targets as indices into the whole target group.
    """

    def __init__(self, synapses: Any, weights: list[Any], channels: list[Any], rows: Rows) -> None:
        source = whole_group(synapses.source)
        self._name, self._label = operation_name(synapses), f"delays of {synapses.name}"
        self._spikes, self._n_source = spike_array(source, synapses.pre.event), len(source)
        self._sources = span(synapses.source)
        self._weights, self._channels, self._rows = weights, channels, rows
        self._delay = synapses.pre.variables["delay"]
        self._first, self._items = private_arrays(
            synapses, row_starts=rows.first, row_items=rows.items.ravel()
        )

    def numpy(self) -> Any:
        values = [variable.get_value() for variable in self._weights]
        reached = [variable.get_value() for variable in self._channels]
        return _numpy_operation(self._spikes.get_value(), self._sources, self._rows, values, reached)

    def cpp(self) -> str:
        array = get_device().get_array_name
        spiked = f"brian::{array(self._spikes)}"
        name, sources, n_basis, rows = self._name, self._sources, len(self._weights), self._rows
        first, items = array(self._first), array(self._items)
        return f"""
static inline int64_t {name}(int64_t step)
{{
    static const bool checked =
        glmbrian::require_zeros({cpp_data(self._delay)}, {rows.n_synapses}, "{self._label}");
    const glmbrian::Rows rows = {{brian::{first}, brian::{items}, {str(rows.are_runs).lower()}}};
    double* const weights[{n_basis}] = {{{", ".join(map(cpp_data, self._weights))}}};
    double* const channels[{n_basis}] = {{{", ".join(map(cpp_data, self._channels))}}};
    glmbrian::add_rows<{n_basis}>(
        {spiked}, {spiked}[{self._n_source}], {sources.start}, {sources.stop}, rows, weights, channels);
    return step;
}}
"""

    def cython(self) -> str:
        name, sources, n_basis = self._name, self._sources, len(self._weights)
        return f"""
{cython_header()}
    ctypedef struct {name}_rows "glmbrian::Rows":
        const int32_t* first
        const int32_t* items
        bint are_runs
    void {name}_native "glmbrian::add_rows<{n_basis}>"(
        int32_t* spikes, int n_spikes, int start, int stop, {name}_rows rows,
        double** weights, double** channels) noexcept nogil
cdef int64_t {name}(int64_t step) noexcept nogil:
    global _namespace{name}_addresses
    cdef void** arrays = <void**>_namespace{name}_addresses
    cdef int32_t* spikes = <int32_t*>arrays[{2 * n_basis}]
    cdef {name}_rows rows
    if spikes[{self._n_source}] > 0:
        rows.first = <int32_t*>arrays[{2 * n_basis + 1}]
        rows.items = <int32_t*>arrays[{2 * n_basis + 2}]
        rows.are_runs = {int(self._rows.are_runs)}
        {name}_native(
            spikes, spikes[{self._n_source}], {sources.start}, {sources.stop}, rows,
            <double**>arrays, <double**>(arrays + {n_basis}))
    return step
"""

    def cython_namespace(self) -> dict[str, Any]:
        variables = [*self._weights, *self._channels, self._spikes, self._first, self._items]
        return {f"{self._name}_addresses": addresses([one.get_value() for one in variables])}


# As with state updaters, Brian keeps every function that it has generated code for, and with it
# whatever the function refers to: it asks its owner for the code.
@lru_cache(maxsize=100)
def row_operation(name: str) -> Function:
    """Return the Brian function with this name, whose code is in its owner's `row_code`.

    Returns
    -------
    brian2.Function
        From integer to the same integer.
    """
    function = new_operation()
    add = function.implementations.add_dynamic_implementation
    add("numpy", lambda owner: owner.row_code[name].numpy())
    add(
        "cpp",
        lambda owner: owner.row_code[name].cpp(),
        lambda owner: None,
        compiler_kwds=cpp_header("coupling.hpp"),
    )
    add(
        "cython",
        lambda owner: owner.row_code[name].cython(),
        lambda owner: owner.row_code[name].cython_namespace(),
    )
    return function


def operation_name(synapses: Any) -> str:
    """Return the name under which code calls what `row_operation` returns."""
    return f"{synapses.name}_add_rows"


def _numpy_operation(spikes, sources, rows, weights, channels):
    first, items, pairs = rows.first.tolist(), rows.items, list(zip(channels, weights))
    n = len(channels[0])

    # Views of a source's weights and of their targets, which take longer to make than to add.
    @cache
    def runs_of(source):
        return [
            (channel[target : target + length], weight[synapse : synapse + length])
            for synapse, target, length in items[first[source] : first[source + 1]].tolist()
            for channel, weight in pairs
        ]

    def add_runs(spiked):
        for source in spiked:
            for channel, weight in runs_of(source):
                np.add(channel, weight, out=channel)

    @cache
    def synapses_of(source):
        chosen = items[first[source] : first[source + 1]].astype(np.intp)
        if not rows.are_runs:
            return tuple(chosen.T)
        steps = [np.arange(length) for length in chosen[:, 2]] or [np.zeros(0, dtype=np.intp)]
        return tuple(
            np.concatenate(steps) + np.repeat(begin, chosen[:, 2]) for begin in chosen[:, :2].T
        )

    def add_together(spiked):
        synapses, targets = (np.concatenate(parts) for parts in zip(*map(synapses_of, spiked)))
        for channel, weight in pairs:
            # A target may occur more than once.
            channel += np.bincount(targets, weight[synapses], n)

    def add_one(source):
        synapses, targets = synapses_of(source)
        for channel, weight in pairs:
            channel[targets] += weight[synapses]

    mean_length = rows.n_synapses / len(items) if rows.are_runs else 0

    def add(spiked):
        if mean_length >= _LONG_ARRAYS or (mean_length and len(spiked) < 3):
            add_runs(spiked)
        elif len(spiked) == 1:
            add_one(spiked[0])
        else:
            add_together(spiked)

    whole = sources == slice(0, len(spikes) - 1)

    def operation(step):
        count = spikes[-1]
        if count:
            spiked = spikes[:count].tolist()
            if not whole:
                spiked = [s - sources.start for s in spiked if sources.start <= s < sources.stop]
            if spiked:
                add(spiked)
        return step

    return operation
