"""Argument checks shared by the whole package.

Every check raises before anything is computed or compiled, and its message
names the argument, what is wrong with it and what is allowed.
"""

import math
import numbers
import sys
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Types that Python or NumPy treat as integers, but that are mistakes here.
_NOT_NUMBERS = (bool, np.bool_, np.timedelta64)

#: Types of missing values in pandas.
_MISSING = ("NAType", "NaTType")

#: The largest 32-bit integer: Brian's integers and the sizes in C++ cannot be larger.
LARGEST_INTEGER = 2**31 - 1


def integer(value: Any, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an ``int`` within [`minimum`, `maximum`]."""
    bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
    if isinstance(value, _NOT_NUMBERS) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer {bounds}, got {value!r}")
    if value < minimum or (maximum is not None and value > maximum):  # type: ignore[operator]
        raise ValueError(f"{name} must be an integer {bounds}, got {value!r}")
    return int(value)


def real(
    value: Any,
    name: str,
    minimum: float = -np.inf,
    maximum: float = np.inf,
    strict: bool = False,
    below: float = np.inf,
) -> float:
    """Return `value` as a finite ``float`` within [`minimum`, `maximum`], and less than `below`.

    With `strict` the minimum itself is not allowed.
    """
    bounds = []
    if minimum > -np.inf:
        bounds.append(f"{'above' if strict else 'at least'} {minimum:g}")
    if maximum < np.inf:
        bounds.append(f"at most {maximum:g}")
    if below < np.inf:
        bounds.append(f"below {below:g}")
    allowed = " ".join(["a finite number", " and ".join(bounds)]).strip()
    if isinstance(value, _NOT_NUMBERS) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    too_low = number <= minimum if strict else number < minimum
    if too_low or number > maximum or number >= below or not math.isfinite(number):
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return number


#: The largest number of values in an array that the package makes: 2 GiB in double precision.
MOST_VALUES = 2**28


def check_size(n_values: float, name: str, advice: str) -> None:
    """Raise a ValueError if an array would be so large that it must be a mistake."""
    if n_values > MOST_VALUES:
        raise ValueError(
            f"{name}: there would be {int(n_values)}, but at most {MOST_VALUES} (2 GiB) are allowed; "
            f"{advice}"
        )


def flag(value: Any, name: str, allowed: str = "True or False") -> bool:
    """Return `value` as a ``bool`` if it is True or False, or 1 or 0.

    Other numbers and text raise a ValueError, anything else a TypeError.
    """
    if isinstance(value, (numbers.Integral, np.bool_)) and value in (0, 1):
        return bool(value)
    error = ValueError if isinstance(value, (numbers.Number, str)) else TypeError
    raise error(f"{name} must be {allowed}, got {value!r}")


def choice(value: Any, name: str, allowed: Collection[str]) -> str:
    """Return `value` if it is one of the strings `allowed`."""
    if not isinstance(value, str) or value not in allowed:
        error = ValueError if isinstance(value, str) else TypeError
        raise error(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
    return value


def finite_array(
    value: Any, name: str, shape: Sequence[int | str] | None = None, dtype: Any = float
) -> np.ndarray:
    """Return `value` as an array of finite numbers.

    `shape` is a tuple whose entries are sizes, or names of free sizes for the
    error message; ``None`` allows any shape.
    """
    array = plain_array(value, name)
    try:
        if array.dtype.kind not in "buifO":
            raise TypeError(f"got dtype {array.dtype}")
        array = array.astype(dtype, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from None
    check_shape(array, name, shape)
    if not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must be finite, but holds NaN or infinity")
    return array


def broadcast_array(value: Any, name: str, shape: Sequence[int]) -> NDArray[np.float64]:
    """Return finite numbers broadcast to `shape`; the array may share memory with `value`."""
    array = finite_array(value, name)
    try:
        return np.broadcast_to(array, shape)
    except ValueError:
        raise ValueError(
            f"{name} must have the shape {tuple(shape)} or broadcast to it, got {array.shape}"
        ) from None


def plain_array(
    value: Any, name: str, kind: str = "numbers", error: type[Exception] = TypeError
) -> np.ndarray:
    """Return `value` as an array, unless it is sparse, or this would lose a unit or a mask.

    If it cannot be an array, `error` is raised; its message names the `kind` of array wanted.
    """
    check_plain(value, name)  # first: some sparse arrays are mappings
    # NumPy would turn mappings and pynapple's event times into object arrays.
    if isinstance(value, Mapping) or (hasattr(value, "time_support") and not hasattr(value, "values")):
        raise TypeError(
            f"{name} must be an array, got a {type(value).__name__} (to bin spike times of pynapple, "
            "write glmbrian.interop.from_pynapple(spikes).trains(dt))"
        )
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RuntimeError) as cause:  # for example ragged lists
        raise error(f"{name} must be an array of {kind}: {cause}") from None
    if array.dtype == object:  # for example from a data frame with columns of several types
        check_plain(array, name)
        array = _with_type_of_numbers(array, name)
    return array


def _with_type_of_numbers(array, name):
    """Return an object array of numbers or bools in the type that holds them all, others unchanged.

    Data frames give object arrays if their columns can hold missing values, or are bools and numbers.
    """
    types = set(map(type, array.ravel().tolist()))
    if any(found.__name__ in _MISSING for found in types):
        raise ValueError(
            f"{name} must not hold missing values, such as pandas.NA: leave out their rows "
            f"({name}.dropna()), or fill them ({name}.fillna(0), for example)"
        )
    if not all(issubclass(found, (numbers.Real, np.bool_)) for found in types):
        return array
    numeric = np.array(array.tolist())
    return numeric if numeric.dtype.kind in "buif" else array


def check_dense(value: Any, name: str, instead: str = "") -> None:
    """Raise a TypeError if `value` is a sparse array, whatever package it is from.

    NumPy would wrap it in an object array.  `instead` says what to write where ``toarray()``
    would be of no use.
    """
    for method in ("toarray", "todense"):  # scipy and cupyx; the package sparse, and JAX
        if hasattr(type(value), method):
            raise TypeError(
                f"{name} must be a dense array, not a sparse one; use {instead or f'{name}.{method}()'}"
            )


def check_plain(value: Any, name: str) -> None:
    """Raise if `value` is sparse, or has a unit or masked entries, which an array would lose.

    `value` may be anything: an array, a number, or a list of these.
    """
    check_dense(value, name)
    if isinstance(value, np.ma.MaskedArray) and np.any(np.ma.getmaskarray(value)):
        raise ValueError(
            f"{name} must not have masked entries, which would count as numbers: leave out their "
            f"rows, or fill them with {name}.filled(...)"
        )
    # Units of Brian, of the packages quantities and pint, and of astropy
    if getattr(value, "is_dimensionless", True) is not True or any(
        hasattr(type(value), unit) for unit in ("dimensionality", "unit")
    ):
        got = " ".join(repr(value).split())  # arrays have several lines
        raise TypeError(
            f"{name} must be plain numbers, without a unit (divide by the unit), got "
            f"{got[:60]}{'...' if len(got) > 60 else ''}"
        )
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    # Lists may be long, and mostly hold numbers, which need no check.
    if isinstance(value, (list, tuple)):
        if not all(issubclass(t, (numbers.Number, np.generic, str)) for t in set(map(type, value))):
            for part in value:
                check_plain(part, name)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's code that led here, outside the package, Brian and Python itself."""
    frame, level = sys._getframe(1), 2
    # Python's own modules call the package back, for example where a context manager ends.
    others = {__name__.partition(".")[0], "brian2", *sys.stdlib_module_names}
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in others:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_shape(array: np.ndarray, name: str, shape: Sequence[int | str] | None) -> None:
    """Raise unless `array` has the `shape` (see `finite_array`)."""
    if shape is None:
        return
    matches = array.ndim == len(shape) and all(
        isinstance(want, str) or want == got for want, got in zip(shape, array.shape)
    )
    if not matches:
        wanted = ", ".join(str(size) for size in shape)
        comma = "," if len(shape) == 1 else ""
        raise ValueError(f"{name} must have the shape ({wanted}{comma}), got {array.shape}")


def binary_array(value: Any, name: str, shape: Sequence[int | str] | None = None) -> NDArray[np.uint8]:
    """Return `value` as a ``uint8`` array of zeros and ones."""
    array = plain_array(value, name, "0 and 1")
    if array.dtype.kind not in "buif":
        raise TypeError(f"{name} must be an array of 0 and 1, got dtype {array.dtype}")
    check_shape(array, name, shape)
    if not np.all((array == 0) | (array == 1)):
        raise ValueError(f"{name} must hold only 0 and 1")
    return array.astype(np.uint8)
