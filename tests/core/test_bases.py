"""Tests of glmbrian.core.bases."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from glmbrian.core.bases import (
    CustomBasis,
    ExponentialBasis,
    IndicatorBasis,
    RaisedCosineBasis,
    as_basis,
)

quick = settings(max_examples=100, derandomize=True, deadline=None)

# Raised cosines


@pytest.mark.parametrize("window", [1, 2, 4, 8, 16])
def test_default_raised_cosines_are_one_half_nothing(window):
    """1 at the own lag, 1/2 at the neighbours, 0 beyond.

    The logarithmic axis lags a (l dt)**2 / 2 behind an even one, 0.035 in phase at
    lag 16, and a bump changes by at most 1/2 a unit of phase.
    """
    ones, halves = np.eye(window), np.eye(window, k=1) + np.eye(window, k=-1)
    np.testing.assert_allclose(RaisedCosineBasis(window, window).matrix, ones + halves / 2, atol=0.0175)


def test_first_peak_and_first_crossing_are_exact():
    matrix = RaisedCosineBasis(3, 8).matrix
    np.testing.assert_allclose(matrix[:2, :2], [[1, 0.5], [0.5, 1]], rtol=1e-12)
    assert matrix[0, 2] == 0  # on the edge of the support


@pytest.mark.parametrize("window", [1, 2, 4, 8, 16, 32, 64])
def test_as_many_raised_cosines_as_lags_are_a_full_basis(window):
    assert np.linalg.matrix_rank(RaisedCosineBasis(window, window).matrix) == window


@quick
@given(
    n_basis=st.integers(1, 8),
    window=st.integers(1, 60),
    a=st.floats(0.5, 20),
    c=st.floats(0.05, 20),
    dt=st.floats(0.05, 5),
)
def test_raised_cosines_follow_pillow(n_basis, window, a, c, dt):
    want = np.zeros((window, n_basis))
    for lag in range(1, window + 1):
        for k in range(n_basis):
            phase = a * math.log((lag - 1) * dt + c) - (a * math.log(c) + k * math.pi / 2)
            if -math.pi <= phase <= math.pi:
                want[lag - 1, k] = (1 + math.cos(phase)) / 2
    largest = want.max(axis=0)
    assume(not any((largest > 0) & (largest < 2e-6)))  # too close to nothing to tell
    if largest.all():
        got = RaisedCosineBasis(n_basis, window, a, c, dt).matrix
        np.testing.assert_allclose(got, want, atol=2e-6)
    else:
        with pytest.raises(ValueError, match="is zero at all lags"):
            RaisedCosineBasis(n_basis, window, a, c, dt)


def test_log_spaced_functions_widen():
    matrix = RaisedCosineBasis(5, 400, a=2.2, c=1.0, dt=0.2).matrix
    assert (np.diff(matrix.argmax(axis=0)) > 0).all()
    assert (np.diff((matrix > 0).sum(axis=0)) > 0).all()


@pytest.mark.parametrize("n_basis, window", [(3, 1), (6, 4), (100, 8)])
def test_too_many_raised_cosines(n_basis, window):
    with pytest.raises(ValueError, match=f"^n_basis={n_basis} .* window={window}: .* larger"):
        RaisedCosineBasis(n_basis, window)


# The other bases


def test_indicator_has_one_weight_a_lag():
    weights = [3.0, 1.0, 2.0]
    assert IndicatorBasis(3).kernels(weights).tolist() == weights


@quick
@given(
    tau=st.lists(st.floats(0.5, 100), min_size=1, max_size=5),
    window=st.integers(1, 50),
)
def test_exponentials(tau, window):
    want = [[math.exp(-lag / one) for one in tau] for lag in range(1, window + 1)]
    np.testing.assert_allclose(ExponentialBasis(tau, window).matrix, want, rtol=1e-12)


def test_one_time_constant_may_be_a_number():
    assert ExponentialBasis(5, 3).matrix.tolist() == ExponentialBasis([5.0], 3).matrix.tolist()


def test_rising_exponentials_have_the_shape_and_peak_at_one():
    lags = np.arange(1, 31)
    matrix = ExponentialBasis([5.0, 20.0], 30, tau_rise=2.0).matrix
    for column, tau in zip(matrix.T, [5.0, 20.0]):
        shape = np.exp(-lags / tau) - np.exp(-lags / 2.0)
        np.testing.assert_allclose(column, shape / shape.max(), rtol=1e-12)
        assert column.max() == 1 and column.argmax() > 0


def test_custom_basis_is_a_copy():
    matrix = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    basis = CustomBasis(matrix)
    matrix[:] = 0
    assert basis.matrix.tolist() == [[1, 2], [3, 4], [5, 6]]


# What all have in common

ALL = [
    CustomBasis([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]),
    IndicatorBasis(4),
    RaisedCosineBasis(3, 8),
    ExponentialBasis([2.0, 5.0], 10),
]
every_basis = pytest.mark.parametrize("basis", ALL, ids=lambda basis: type(basis).__name__)


@every_basis
def test_shape_and_repr(basis):
    assert basis.matrix.shape == (basis.window, basis.n_basis)
    assert repr(basis) == (f"<{type(basis).__name__}: n_basis={basis.n_basis}, window={basis.window}>")


@every_basis
def test_matrix_is_read_only(basis):
    assert basis.matrix.dtype == float
    with pytest.raises(ValueError, match="read-only"):
        basis.matrix[0, 0] = 7


@every_basis
def test_kernels_are_the_basis_times_the_weights(basis):
    weights = np.random.default_rng(0).normal(size=(2, 3, basis.n_basis))
    kernels = basis.kernels(weights)
    assert kernels.shape == (2, 3, basis.window)
    np.testing.assert_allclose(kernels[1, 2], basis.matrix @ weights[1, 2], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weights", [1.0, [1.0], np.ones((2, 3))])
def test_kernels_need_one_weight_a_function(weights):
    with pytest.raises(ValueError, match=r"^weights must have the shape \(\.\.\., 2\)"):
        ALL[0].kernels(weights)


@pytest.mark.parametrize(
    "weights, error", [([math.nan, 1], ValueError), (["1", "2"], TypeError), ("ab", TypeError)]
)
def test_kernels_need_finite_numbers(weights, error):
    with pytest.raises(error, match="^weights must be"):
        ALL[0].kernels(weights)


@every_basis
def test_as_basis_returns_a_basis(basis):
    assert as_basis(basis, "feedback") is basis


@pytest.mark.parametrize("bad", [None, [[1.0]], "raised", RaisedCosineBasis])
def test_as_basis_refuses_the_rest(bad):
    with pytest.raises(TypeError, match="^feedback must be a basis"):
        as_basis(bad, "feedback")


# What is refused


@pytest.mark.parametrize(
    "make, name, value",
    [
        pytest.param(make, name, value, id=f"{make.__name__}-{name}-{value}".replace("\n", ""))
        for make, name, values in [
            (IndicatorBasis, "window", [0, -1, 2.0, True, None, "3"]),
            (RaisedCosineBasis, "window", [0, 2.0, None]),
            (RaisedCosineBasis, "n_basis", [0, -1, 2.0, None]),
            (RaisedCosineBasis, "a", [0, -1.0, math.nan, math.inf, "1", None]),
            (RaisedCosineBasis, "c", [0, -1.0, math.nan, math.inf, "1", None]),
            (RaisedCosineBasis, "dt", [0, -1.0, math.nan, math.inf, "1"]),
            (ExponentialBasis, "window", [0, 2.0, None]),
            (ExponentialBasis, "tau", [0, -1.0, math.nan, [], [1.0, 0.0], [[1.0]], "x", 1e-3]),
            (ExponentialBasis, "tau_rise", [0, -1.0, 5.0, 6.0, math.nan, "1"]),
            (CustomBasis, "matrix", [1.0, [1.0], [], [[]], [[1], [1, 2]]]),
            (CustomBasis, "matrix", [[[math.nan]], [[math.inf]], "x", None]),
            (CustomBasis, "matrix", [np.zeros((3, 2)), [[1e308]], [[-1e31]]]),
        ]
        for value in values
    ],
)
def test_bad_argument_is_named(make, name, value):
    good = {
        IndicatorBasis: dict(window=3),
        RaisedCosineBasis: dict(n_basis=2, window=3),
        ExponentialBasis: dict(tau=5.0, window=3),
    }.get(make, {})
    with pytest.raises((ValueError, TypeError), match=rf"^{name}\b"):
        make(**{**good, name: value})


def test_units_are_not_lost_without_a_word():
    from brian2 import ms

    with pytest.raises(TypeError, match="tau must be plain numbers, without a unit"):
        ExponentialBasis(2 * ms, 3)
    with pytest.raises(TypeError, match="weights must be plain numbers, without a unit"):
        ALL[0].kernels([1, 2] * ms)
