"""Tests of glmbrian.core.bases."""

import math

import numpy as np
import pytest
from brian2 import ms, mV, second
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


# Raised cosines from the number of functions, the window and the last peak

SIZES = [(n_basis, window) for n_basis in (1, 2, 5, 8, 20) for window in (33, 41, 100, 1000)] + [
    (8, 10**5)
]


@pytest.mark.parametrize("n_basis, window", SIZES)
def test_the_default_spans_its_window(n_basis, window):
    matrix = RaisedCosineBasis(n_basis, window).matrix
    assert matrix[0, 0] == 1 and matrix[-1, -1] > 0
    assert (matrix.max(axis=0) > 0.8).all()
    assert window > 1000 or np.linalg.matrix_rank(matrix) == n_basis
    distances = np.diff(matrix.argmax(axis=0))
    assert (distances >= 1).all() and (np.diff(distances) >= -1).all()  # wider, up to rounding to lags


@pytest.mark.parametrize("window", [1, 2, 8, 31, 32])
def test_windows_of_the_papers_sizes_keep_their_functions(window):
    for n_basis in (1, 2, 8, 31, 32):
        if n_basis <= window:
            axis = 7500 * np.log1p(np.arange(window) * np.expm1(np.pi / 15000))
            phase = axis[:, np.newaxis] - np.pi / 2 * np.arange(n_basis)
            want = np.where(np.abs(phase) < np.pi - 1e-3, (1 + np.cos(phase)) / 2, 0)
            np.testing.assert_allclose(RaisedCosineBasis(n_basis, window).matrix, want, atol=1e-6)


def test_full_bases_of_longer_windows_keep_their_functions():
    for n_basis, window in ((64, 64), (63, 64), (40, 40)):
        explicit = RaisedCosineBasis(n_basis, window, 7500.0, 1.0).matrix
        assert np.array_equal(RaisedCosineBasis(n_basis, window).matrix, explicit)


@settings(quick, max_examples=30)
@given(
    n_basis=st.integers(2, 10),
    first=st.floats(1, 20),
    span=st.floats(10, 200),
    window=st.none() | st.integers(230, 300),
    c=st.none() | st.floats(5, 100),
)
def test_peaks_are_where_they_should_be(n_basis, first, span, window, c):
    last = first + span
    matrix = RaisedCosineBasis(n_basis, window, c=c, first_peak=first, last_peak=last).matrix
    if c is None:  # recover it from the position of the second peak, by the documented limits
        c = _offset_by_trial(n_basis - 1, span)
    # Peak k is where log(1 + (lag - first)/c) is k equal parts of its value at the last peak.
    for lag in range(1, len(matrix) + 1):
        for k in range(n_basis):
            x = 1 + (lag - first) / c
            position = math.log(x) / math.log1p(span / c) * (n_basis - 1) if x > 0 else -math.inf
            d = position - k
            want = (1 + math.cos(d * math.pi / 2)) / 2 if abs(d) < 2 else 0
            assert matrix[lag - 1, k] == pytest.approx(want, abs=1e-6)
    if window is None:  # the last function ends with it
        assert matrix[-1, -1] > 0
        assert (n_basis - 1) * math.log1p((len(matrix) + 1 - first) / c) / math.log1p(
            span / c
        ) >= n_basis + 1


def _offset_by_trial(n_intervals, span):
    """The smallest offset with distances of a lag at least, growing at most twofold, and a span of 50."""
    low, high = 1e-9, 1e9
    for _ in range(200):
        c = math.sqrt(low * high)
        growth = (1 + span / c) ** (1 / n_intervals)
        allowed = growth <= 2 and c * (growth - 1) >= 1 and span <= 50 * c
        low, high = (low, c) if allowed else (c, high)
    return high


def test_peaks_a_lag_apart_are_the_papers():
    linear = RaisedCosineBasis(8, 10, last_peak=8).matrix
    np.testing.assert_allclose(linear, RaisedCosineBasis(8, 10).matrix, atol=0.01)


def test_one_function_peaks_where_asked_and_ends_with_the_window():
    matrix = RaisedCosineBasis(1, 60, last_peak=20).matrix[:, 0]
    assert matrix.argmax() + 1 == 20 and matrix[19] == 1 and matrix[-1] > 0


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(n_basis=6), "^window must be given, or last_peak"),
        (dict(n_basis=1, last_peak=5), "^window must be given, or last_peak .for more than one"),
        (
            dict(n_basis=6, window=20, last_peak=3),
            "^n_basis=6 .*use a smaller n_basis, or last_peak .* by 3",
        ),
        (
            dict(n_basis=6, window=7, first_peak=4),
            "^n_basis=6 .*use a smaller n_basis, or a window .* by 3",
        ),
        (dict(n_basis=6, window=50, last_peak=80), "^last_peak must be .* at most 50, got 80"),
        (dict(n_basis=6, window=50, last_peak=30, a=2.0), "^a, .* last_peak, .*leave out a and dt"),
        (dict(n_basis=6, window=50, last_peak=30, dt=0.1), "^a, and a dt without a unit, .*last_peak"),
        (dict(n_basis=6, window=50, first_peak=9, last_peak=5), "^last_peak must be .* above 9"),
        (dict(n_basis=1, window=50, first_peak=9, last_peak=10), "^last_peak must be first_peak=9"),
        (dict(n_basis=10, window=50, last_peak=30, c=1e-9), "^c=1e-09 gives .* use a larger c"),
        (dict(n_basis=6, last_peak=1e300), "^last_peak must be .* at most 2.68"),
        (dict(n_basis=1, window=50, last_peak=80), "^last_peak must be .* at most 50"),
        (dict(n_basis=6, last_peak=1e8), "^last_peak, n_basis: .* set a window"),
        (dict(n_basis=6, last_peak=1e8, c=1e-300), "^last_peak, n_basis: .* set a window"),
        (dict(n_basis=6, window=100, a=2.2, dt=0.07), "^n_basis=6 .* window=100: .*, or last_peak"),
    ],
)
def test_raised_cosines_that_cannot_be(arguments, message):
    with pytest.raises(ValueError, match=message):
        RaisedCosineBasis(**arguments)


# Times


def test_times_are_steps():
    for dt in (1 * ms, 0.1 * ms, 0.0003 * second):
        n = round(float(100 * ms / dt) + 0.49)  # windows are rounded up
        timed = RaisedCosineBasis(
            6, 100 * ms, first_peak=2 * ms, last_peak=80 * ms, c=9 * ms, dt=dt
        ).matrix
        in_steps = [float(time * ms / dt) for time in (2, 80, 9)]
        plain = RaisedCosineBasis(6, n, first_peak=in_steps[0], last_peak=in_steps[1], c=in_steps[2])
        np.testing.assert_allclose(timed, plain.matrix, rtol=1e-9)
    axis = RaisedCosineBasis(5, 10 * ms, a=2.2, c=1 * ms, dt=0.2 * ms)
    np.testing.assert_allclose(axis.matrix, RaisedCosineBasis(5, 50, 2.2, 5.0, 1.0).matrix, rtol=1e-9)
    rising = ExponentialBasis([5, 20] * ms, 50 * ms, tau_rise=2 * ms, dt=0.5 * ms)
    np.testing.assert_allclose(rising.matrix, ExponentialBasis([10, 40], 100, 4).matrix, rtol=1e-9)
    for taus in ([5 * ms, 20 * ms], (5 * ms, 0.02 * second)):  # not one quantity, but several
        listed = ExponentialBasis(taus, 50 * ms, tau_rise=2 * ms, dt=0.5 * ms)
        np.testing.assert_allclose(listed.matrix, rising.matrix, rtol=1e-9)
    assert IndicatorBasis(0.3 * ms, dt=0.1 * ms).window == 3
    assert IndicatorBasis(1 * ms, dt=8 * ms).window == 1


# Normalisation


@pytest.mark.parametrize("rule, power", [("peak", np.inf), ("area", 1), ("energy", 2)])
def test_normalised_functions(rule, power):
    for make in (
        lambda **scale: RaisedCosineBasis(6, 100, **scale),
        lambda **scale: RaisedCosineBasis(6, 50, a=2.2, dt=0.2, **scale),
        lambda **scale: ExponentialBasis([2, 8, 30], 50, **scale),
        lambda **scale: ExponentialBasis([8, 30], 50, tau_rise=3, **scale),
    ):
        plain, scaled = make().matrix, make(normalise=rule).matrix
        np.testing.assert_allclose(np.linalg.norm(scaled, power, axis=0), 1, rtol=1e-12)
        np.testing.assert_allclose(scaled * np.linalg.norm(plain, power, axis=0), plain, rtol=1e-12)


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
            (RaisedCosineBasis, "window", [0, 2.0, "3"]),
            (RaisedCosineBasis, "n_basis", [0, -1, 2.0, None]),
            (RaisedCosineBasis, "a", [0, -1.0, math.nan, math.inf, "1"]),
            (RaisedCosineBasis, "c", [0, -1.0, math.nan, math.inf, "1", 5 * ms, 5 * mV]),
            (RaisedCosineBasis, "dt", [0, -1.0, math.nan, math.inf, "1", 0 * ms, -1 * ms, [1, 2] * ms]),
            (RaisedCosineBasis, "last_peak", [0, 1, 4, math.nan, "2", 2 * ms, [2.0, 3.0]]),
            (RaisedCosineBasis, "first_peak", [0, 0.5, 4, math.nan, "2", 2 * ms]),
            (RaisedCosineBasis, "normalise", ["max", True, 1.0]),
            (ExponentialBasis, "normalise", ["max", True, 1.0]),
            (ExponentialBasis, "window", [0, 2.0, None]),
            (ExponentialBasis, "tau", [0, -1.0, math.nan, [], [1.0, 0.0], [[1.0]], "x", 1e-3]),
            (ExponentialBasis, "tau", [2 * ms, [2, 4] * mV]),
            (ExponentialBasis, "window", [2 * ms]),
            (IndicatorBasis, "window", [2 * ms, 0 * second]),
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
    with pytest.raises(TypeError, match="tau is a time, 5. .* so dt must be the time step"):
        ExponentialBasis([5 * ms, 20 * ms], 50)
    with pytest.raises(TypeError, match="tau is a time, .* so dt must be the time step, such as dt=1"):
        ExponentialBasis(2 * ms, 3)
    with pytest.raises(TypeError, match="window must be a time or a number of steps, got .*volt"):
        IndicatorBasis(2 * mV, dt=1 * ms)
    with pytest.raises(TypeError, match="weights must be plain numbers, without a unit"):
        ALL[0].kernels([1, 2] * ms)
