"""Tests of glmbrian.support.validation."""

import math
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from brian2 import Clock, defaultclock, ms, mV
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from glmbrian.brian.arguments import check_brian_arguments
from glmbrian.support.validation import (
    binary_array,
    check_shape,
    choice,
    finite_array,
    integer,
    real,
    warn,
)

quick = settings(max_examples=100, derandomize=True, deadline=None)
numbers = st.floats(allow_nan=False, allow_infinity=False)
shapes = hnp.array_shapes(min_dims=0, max_dims=3, max_side=4)


def refused(check, value, *arguments, error=(ValueError, TypeError), **keywords):
    """The message of the error, which has to name the argument."""
    with pytest.raises(error, match=r"^rate must ") as caught:
        check(value, "rate", *arguments, **keywords)
    return str(caught.value)


# integer


@quick
@given(value=st.integers(-(2**70), 2**70), low=st.integers(), high=st.integers())
def test_integer_is_one_within_its_bounds(value, low, high):
    if low <= value <= high:
        assert integer(value, "rate", low, high) == value
    else:
        message = refused(integer, value, low, high, error=ValueError)
        assert message == f"rate must be an integer from {low} to {high}, got {value}"


@quick
@given(value=hnp.from_dtype(np.dtype("uint8")) | hnp.from_dtype(np.dtype("int64")))
def test_integer_takes_numpy_integers(value):
    got = integer(value, "rate", -(2**63))
    assert got == value and type(got) is int


def test_integer_is_positive_by_default():
    assert integer(1, "rate") == 1
    assert refused(integer, 0) == "rate must be an integer of at least 1, got 0"


@pytest.mark.parametrize(
    "value", [1.0, np.float64(1), True, np.True_, None, "1", [1], np.array([1, 2]), Fraction(1)]
)
def test_integer_refuses_other_types(value):
    refused(integer, value, error=TypeError)


# real


@quick
@given(value=numbers, low=numbers, high=numbers, strict=st.booleans())
def test_real_is_one_within_its_bounds(value, low, high, strict):
    if (low < value or (low == value and not strict)) and value <= high:
        assert real(value, "rate", low, high, strict) == value
    else:
        refused(real, value, low, high, strict, error=ValueError)


@pytest.mark.parametrize("value", [2, np.float32(2), np.int8(2), Fraction(4, 2)])
def test_real_returns_a_float(value):
    got = real(value, "rate")
    assert got == 2 and type(got) is float


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float32("nan"), 10**400])
def test_real_refuses_what_is_not_finite(value):
    refused(real, value, error=ValueError)


@pytest.mark.parametrize(
    "value", [True, np.True_, None, "1", 1j, [1.0], np.array([1.0, 2.0]), Decimal(1)]
)
def test_real_refuses_other_types(value):
    refused(real, value, error=TypeError)


@pytest.mark.parametrize(
    "bounds, allowed",
    [
        ((), "a finite number"),
        ((0,), "a finite number at least 0"),
        ((0, 1), "a finite number at least 0 and at most 1"),
        ((0, math.inf, True), "a finite number above 0"),
        ((0, math.inf, True, 1), "a finite number above 0 and below 1"),
    ],
)
def test_real_says_what_is_allowed(bounds, allowed):
    assert refused(real, math.nan, *bounds) == f"rate must be {allowed}, got nan"


def test_real_refuses_the_bound_that_it_must_be_below():
    assert real(0.99, "rate", 0, below=1) == 0.99
    assert refused(real, 1, 0, below=1) == "rate must be a finite number at least 0 and below 1, got 1"


# choice


@quick
@given(value=st.sampled_from("abcd") | st.text(max_size=2))
def test_choice(value):
    allowed = ("a", "b", "ab")
    if value in allowed:
        assert choice(value, "rate", allowed) is value
    else:
        message = refused(choice, value, allowed, error=ValueError)
        assert message == f"rate must be one of 'a', 'b', 'ab', got {value!r}"


@pytest.mark.parametrize("value", [None, 1, ["a"], b"a", np.array(["a"])])
def test_choice_refuses_other_types(value):
    refused(choice, value, ("a",), error=TypeError)


# finite_array


@quick
@given(data=st.data(), dtype=st.sampled_from(["f8", "f4", "i4", "u1", "?"]))
def test_finite_array_keeps_shape_and_values(data, dtype):
    finite = {"allow_nan": False, "allow_infinity": False} if dtype[0] == "f" else None
    array = data.draw(hnp.arrays(dtype, shapes, elements=finite))
    for value in (array, array.tolist()):
        got = finite_array(value, "rate", array.shape)
        assert got.dtype == float
        np.testing.assert_array_equal(got, array.astype(float))


@quick
@given(
    array=hnp.arrays(float, hnp.array_shapes(max_side=4), elements=numbers),
    bad=st.sampled_from([math.nan, math.inf, -math.inf]),
    data=st.data(),
)
def test_finite_array_finds_what_is_not_finite(array, bad, data):
    array.flat[data.draw(st.integers(0, array.size - 1))] = bad
    refused(finite_array, array, error=ValueError)


@pytest.mark.parametrize(
    "value",
    ["x", ["1"], [1j], np.array([1j]), [[1], [1, 2]], [{}], [10**400], np.array(["2000"], "M8")],
    ids=repr,
)
def test_finite_array_refuses_other_types(value):
    refused(finite_array, value, error=TypeError)


def test_finite_array_of_another_dtype():
    assert finite_array([1, 2], "rate", dtype=np.float32).dtype == np.float32


# shapes


@quick
@given(shape=shapes, wanted=shapes)
def test_shape_is_checked(shape, wanted):
    array = np.zeros(shape)
    if shape == wanted:
        check_shape(array, "rate", wanted)
    else:
        refused(check_shape, array, wanted, error=ValueError)


@quick
@given(shape=shapes)
def test_named_sizes_are_free(shape):
    check_shape(np.zeros(shape), "rate", tuple("nmk"[: len(shape)]))


def test_no_shape_takes_any():
    check_shape(np.zeros((2, 3)), "rate", None)


@pytest.mark.parametrize(
    "wanted, text", [((4,), "(4,)"), (("T", 3), "(T, 3)"), (("T", "N", 2), "(T, N, 2)")]
)
def test_shapes_are_written_out(wanted, text):
    message = refused(check_shape, np.zeros((2, 2)), wanted)
    assert message == f"rate must have the shape {text}, got (2, 2)"


# binary_array


@quick
@given(array=hnp.arrays(bool, shapes), dtype=st.sampled_from(["?", "u1", "i8", "f4", "f8"]))
def test_binary_array_is_uint8(array, dtype):
    for value in (array.astype(dtype), array.astype(dtype).tolist()):
        got = binary_array(value, "rate", array.shape)
        assert got.dtype == np.uint8
        np.testing.assert_array_equal(got, array)


@quick
@given(
    array=hnp.arrays(float, hnp.array_shapes(max_side=4), elements=st.sampled_from([0.0, 1.0])),
    bad=st.floats().filter(lambda x: x not in (0, 1)),
    data=st.data(),
)
def test_binary_array_finds_other_values(array, bad, data):
    array.flat[data.draw(st.integers(0, array.size - 1))] = bad
    refused(binary_array, array, error=ValueError)


def test_binary_array_does_not_wrap():
    refused(binary_array, np.array([0, 256]), error=ValueError)


@pytest.mark.parametrize("value", ["01", ["0"], None, [1j], [[1], [1, 0]], [None]], ids=repr)
def test_binary_array_refuses_other_types(value):
    refused(binary_array, value, error=TypeError)


def test_binary_array_checks_the_shape():
    refused(binary_array, [[0, 1]], ("T", 3), error=ValueError)


# what Brian takes for a new object


@pytest.mark.parametrize(
    "arguments",
    [
        dict(),
        dict(dt=0.1 * ms, order=-1, name="output"),
        dict(clock=Clock(1 * ms), order=np.int64(2), name="_output_2*"),
        dict(clock=defaultclock),
    ],
    ids=["none", "dt", "clock", "default clock"],
)
def test_brian_arguments(arguments):
    check_brian_arguments(**arguments)


@pytest.mark.parametrize(
    "name, values, error",
    [
        ("dt", [0.001, "1*ms", 1 * mV, [1, 2] * ms, True], TypeError),
        ("dt", [0 * ms, -1 * ms, np.inf * ms, np.nan * ms], ValueError),
        ("clock", ["x", 1 * ms, 3], TypeError),
        ("order", ["a", 1.0, None, True], TypeError),
        ("name", [3, None, b"x"], TypeError),
        ("name", ["", "2nd", "a b", "*", "a**", "a\n", "é"], ValueError),
    ],
)
def test_bad_brian_arguments(name, values, error):
    for value in values:
        with pytest.raises(error, match=f"^{name} must "):
            check_brian_arguments(**{name: value})


def test_brian_arguments_are_not_both_dt_and_clock():
    with pytest.raises(ValueError, match="^dt and clock must not"):
        check_brian_arguments(dt=1 * ms, clock=Clock(1 * ms))


def test_warnings_point_at_the_users_line():
    """Not at the context manager through which the package was called."""
    code = compile("def leaving(warn):\n    yield\n    warn('careful')\n", "package.py", "exec")
    package: dict = {"__name__": "glmbrian.somewhere"}
    exec(code, package)

    leaving = contextmanager(package["leaving"])
    with pytest.warns(UserWarning, match="careful") as caught, leaving(warn):
        pass
    assert caught[0].filename == __file__
