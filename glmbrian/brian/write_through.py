"""Parameters as arrays with assignable items."""

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from ..support.validation import finite_array


class WriteThrough(np.ndarray):
    """The values of a parameter; assigning to its items sets the parameter.

    The array holds the values at the time it was read, so you can keep it and compare it with
    later ones.  ``synapses.w[0, 1] = 2`` sets `w`; so does ``synapses.w *= 2``.  Anything
    computed from it is a plain array.  Its memory is read-only, so changing a part of it, as
    in ``synapses.w[0][1] = 2``, is an error instead of being silently lost.

    Parameters
    ----------
    values : ndarray of float
        Used without a copy, and made read-only.
    name : str
        Name of the parameter, for messages.
    set_items : method
        ``set_items(item, value)`` sets the parameter and returns all its values.  The array
        does not keep the method's object alive: Brian would continue to simulate it.
    """

    # Results of NumPy functions are not parameters.
    __array_priority__ = -1.0
    _name: str
    _set_items: Any = None
    _part_of: Any = None

    def __new__(cls, values: np.ndarray, name: str, set_items: Callable[..., Any]) -> "WriteThrough":
        array = values.view(cls)
        array.flags.writeable = False
        array._name, array._set_items = name, weakref.WeakMethod(set_items)
        return array

    def __getitem__(self, item):
        result = super().__getitem__(item)
        if isinstance(result, WriteThrough) and not result.flags.writeable:
            result._part_of = self, item
            return result
        return np.asarray(result)[()]

    def __setitem__(self, item, value):
        if self._set_items is not None:
            set_items = self._set_items()
            if set_items is None:  # its object is gone
                self.base[item] = value
            else:
                self.base[...] = set_items(item, finite_array(value, self._name))
        elif self.flags.writeable:
            super().__setitem__(item, value)
        else:
            raise ValueError(
                "this is a part of a parameter, which must be set with a single index: write "
                "synapses.w[i, j, k] = value in place of synapses.w[i][j, k] = value, or "
                "change a copy()"
            )

    def fill(self, value: Any) -> None:
        self[...] = value

    def __array_ufunc__(self, ufunc, method, *inputs, out=(), **keywords):
        inputs = [np.asarray(x) if isinstance(x, WriteThrough) else x for x in inputs]
        if not out:
            return getattr(ufunc, method)(*inputs, **keywords)
        # With `where`, values that are not computed keep their old value.
        results = [np.array(array) if isinstance(array, WriteThrough) else array for array in out]
        getattr(ufunc, method)(*inputs, out=tuple(results), **keywords)
        taken = [
            array._take(result) if isinstance(array, WriteThrough) else array
            for array, result in zip(out, results)
        ]
        return taken[0] if len(taken) == 1 else tuple(taken)

    def _take(self, result):
        """Set all values, and return what an operator such as ``*=`` leaves."""
        if self._part_of is None:
            self[...] = result
            return self
        # For synapses.w[0] += 1, Python then assigns the returned value to the item again.
        whole, item = self._part_of
        whole[item] = result
        return result

    def __hash__(self):
        raise TypeError(
            "a parameter array cannot be a dict key; for run_args write "
            "device.run(run_args=synapses.run_args(w)), or neurons.run_args(...)"
        )

    def __reduce__(self):
        return np.array(self).__reduce__()

    def __repr__(self):
        return repr(np.asarray(self))

    def __str__(self):
        return str(np.asarray(self))
