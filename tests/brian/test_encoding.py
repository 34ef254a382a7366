"""Rate encoding in Brian equals its NumPy form and has the right statistics."""

import warnings

import numpy as np
import pytest
from brian2 import Network, NeuronGroup, SpikeMonitor, defaultclock, ms, mV, prefs
from brian2.utils.logger import catch_logs
from scipy import stats

import glmbrian as glm
from glmbrian.core.randomness import derive_keys
from glmbrian.core.rate_code import LEVEL_OF_BYTE, levels, rate_encode
from glmbrian.devices.problem import Inputs


@pytest.fixture(autouse=True)
def steps_of_a_millisecond():
    defaultclock.dt = 1 * ms


def run(encoder, n_steps):
    monitor = SpikeMonitor(encoder)
    Network(encoder, monitor).run(n_steps * ms, namespace={})
    trains = np.zeros((n_steps, len(encoder)), dtype=np.uint8)
    trains[np.round(monitor.t / ms).astype(int), np.asarray(monitor.i)] = 1
    return trains


def test_levels_stand_for_intensity_over_510():
    np.testing.assert_allclose(LEVEL_OF_BYTE / 65536, np.arange(256) / 510, atol=2.0**-17)
    assert LEVEL_OF_BYTE[255] == 32768 and LEVEL_OF_BYTE[0] == 0
    np.testing.assert_array_equal(levels(np.array([0.0, 0.5, 1.0])), [0, 16384, 32768])


@pytest.mark.parametrize("real", [np.float64, np.float32])
def test_an_image_spikes_alike_as_bytes_and_as_reals(real):
    image = np.arange(256, dtype=np.uint8)
    scaled = image.astype(real) / real(255)
    for same in (scaled, scaled * real(0.1) * real(10), np.nextafter(scaled, real(0))):
        np.testing.assert_array_equal(levels(same.astype(float)), LEVEL_OF_BYTE)
    assert Inputs.of_intensities(scaled.astype(float)[np.newaxis]).kind == "bytes"


def test_levels_are_exact_between_8_bit_intensities():
    image = np.array([0, 1e-12, 2e-5, 3.7 / 255, 51.1 / 255, 0.34])
    inputs = Inputs.of_intensities(image[np.newaxis])
    assert inputs.kind == "levels"
    np.testing.assert_allclose(inputs.levels(0) / 65536, image / 2, rtol=1e-7)


def test_real_inputs_spike_alike_whatever_else_a_data_set_holds():
    some = np.array([[51, 102, 0]]) / 255
    both = np.vstack([some, [[0.123, 0.456, 1e-7]]])
    np.testing.assert_array_equal(
        Inputs.of_intensities(some).levels(0), Inputs.of_intensities(both).levels(0)
    )


def test_slow_trains_in_short_steps():
    """5 Hz in steps of 0.01 ms: a probability of 5e-5, which 16 bits round to 4.58e-5."""
    n_inputs, n_steps = 4000, 500
    encoder = glm.RateEncoder(np.full(n_inputs, 1e-4), random_state=3)
    monitor = SpikeMonitor(encoder)
    Network(encoder, monitor).run(n_steps * ms, namespace={})
    key, image = derive_keys(3, 0)[0], levels(np.full((1, n_inputs), 1e-4))
    assert monitor.num_spikes == rate_encode(image, key, [0], n_steps).sum()
    many = sum(rate_encode(image, key, [place], n_steps).sum() for place in range(10))
    assert stats.binomtest(int(many), 10 * n_inputs * n_steps, 5e-5).pvalue > 0.01
    assert stats.binomtest(int(many), 10 * n_inputs * n_steps, 3 / 65536).pvalue < 0.01


def test_images_follow_each_other():
    images = np.random.default_rng(0).integers(0, 256, (3, 40)).astype(np.uint8)
    trains = run(glm.RateEncoder(images, n_steps=8, random_state=5), 24)
    expected = rate_encode(levels(images), derive_keys(5, 0)[0], [0, 1, 2], 8)
    np.testing.assert_array_equal(trains, expected.reshape(24, 40))


def test_spikes_are_bernoulli_and_independent():
    image = np.array([0, 51, 102, 255, 255], dtype=np.uint8)
    trains = run(glm.RateEncoder(image, random_state=1), 5000)
    p = image / 510
    error = np.abs(trains.mean(0) - p) / np.sqrt(np.maximum(p * (1 - p), 1e-12) / 5000)
    assert trains[:, 0].sum() == 0 and error[1:].max() < 4
    pair = trains[:, 3:].astype(float)
    assert abs(np.corrcoef(pair.T)[0, 1]) < 0.06
    assert abs(np.corrcoef(pair[1:, 0], pair[:-1, 0])[0, 1]) < 0.06


def test_another_image_at_run_time():
    encoder = glm.RateEncoder(np.zeros(3), random_state=1)
    monitor = SpikeMonitor(encoder)
    network = Network(encoder, monitor)
    network.run(20 * ms)
    assert monitor.num_spikes == 0
    encoder.intensity = [0, 255, 0]
    network.run(50 * ms)
    assert set(monitor.i) == {1}
    with pytest.raises(ValueError, match=r"intensity must have the shape \(3,\)"):
        encoder.intensity = [0, 255]


def test_an_encoder_that_joins_later_begins_with_its_first_image():
    expected = run(glm.RateEncoder(np.eye(4), n_steps=5, random_state=1), 25)
    encoder = glm.RateEncoder(np.eye(4), n_steps=5, random_state=1)
    monitor = SpikeMonitor(encoder)
    network = Network(NeuronGroup(1, "x : 1"))
    network.run(7 * ms)
    network.add(encoder, monitor)
    for duration in (3, 8, 14):
        network.run(duration * ms)
    assert_spikes(monitor, np.vstack([np.zeros((7, 4)), expected]))


def assert_spikes(monitor, trains):
    steps, inputs = np.nonzero(trains)
    np.testing.assert_array_equal(np.round(monitor.t / ms), steps)
    np.testing.assert_array_equal(monitor.i, inputs)


@pytest.mark.parametrize(
    "n_steps, target",
    [
        (None, "numpy"),
        (6, "numpy"),
        pytest.param(6, "cython", marks=[pytest.mark.compiled, pytest.mark.exhaustive]),
    ],
)
def test_another_dt_between_runs_neither_repeats_nor_skips(n_steps, target):
    """Steps continue as in one run; they only last longer."""
    images = np.full((1 if n_steps is None else 5, 30), 255, dtype=np.uint8)
    images[1::2, ::2] = 0
    expected = run(glm.RateEncoder(images, n_steps=n_steps, random_state=3), 30)
    prefs.codegen.target = target
    encoder = glm.RateEncoder(images, n_steps=n_steps, random_state=3)
    monitor = SpikeMonitor(encoder)
    network = Network(encoder, monitor)
    defaultclock.dt = 0.5 * ms
    network.run(10 * 0.5 * ms)
    defaultclock.dt = 2.5 * ms
    network.run(20 * 2.5 * ms)
    steps = np.where(monitor.t < 4.9 * ms, monitor.t / (0.5 * ms), 8 + monitor.t / (2.5 * ms))
    found = np.zeros_like(expected)
    found[np.round(steps).astype(int), np.asarray(monitor.i)] = 1
    np.testing.assert_array_equal(found, expected)


def test_images_and_draws_are_stored_and_restored():
    encoder = glm.RateEncoder(np.eye(3), n_steps=4, random_state=2)
    monitor = SpikeMonitor(encoder)
    network = Network(encoder, monitor)
    network.run(6 * ms)
    network.store()
    network.run(9 * ms)
    spikes = list(monitor.i), list(monitor.t)
    network.restore()
    assert encoder.step_count == 6
    network.run(9 * ms)
    assert (list(monitor.i), list(monitor.t)) == spikes


def test_an_image_that_is_set_stays_until_the_next():
    encoder = glm.RateEncoder(np.zeros((3, 2)), n_steps=20, random_state=1)
    monitor = SpikeMonitor(encoder)
    network = Network(encoder, monitor)
    network.run(30 * ms)
    encoder.intensity = [0, 255]
    network.run(30 * ms)
    assert set(monitor.i) == {1} and 30 * ms <= monitor.t[0] and monitor.t[-1] < 40 * ms


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_steps_and_presentations_beyond_32_bits(precision):
    prefs.core.default_float_dtype = precision
    step = 2**33
    images = np.eye(3)
    encoder = glm.RateEncoder(images, n_steps=2, random_state=4)
    encoder.step_count = step
    key, presentations = derive_keys(4, 0)[0], np.arange(step // 2, step // 2 + 20)
    last = np.repeat(levels(images)[2:], 20, axis=0)
    expected = rate_encode(last, key, presentations, 2).reshape(-1, 3)
    np.testing.assert_array_equal(run(encoder, 40), expected)
    one = glm.RateEncoder(np.ones(4), random_state=4)
    one.presentation = 2**40
    expected = rate_encode(levels(np.ones((1, 4))), key, [2**40], 20)[0]
    np.testing.assert_array_equal(run(one, 20), expected)


def test_streams_of_one_seed():
    def spikes(**options):
        return run(glm.RateEncoder(np.ones(50), random_state=1, **options), 10)

    np.testing.assert_array_equal(spikes(stream="a"), spikes(stream="a"))
    assert (spikes(stream="a") != spikes(stream="b")).any()
    assert (spikes(stream="a") != spikes()).any()
    for stream, error in ((1, TypeError), ("", ValueError)):
        with pytest.raises(error, match="stream must be a name"):
            glm.RateEncoder(np.ones(3), stream=stream)


def test_groups_that_draw_the_same_numbers_warn_once_per_run():
    layers = [glm.GLMNeurons(2, glm.IndicatorBasis(2), random_state=1) for _ in range(2)]
    network = Network(*layers, glm.RateEncoder(np.ones(2), random_state=1))
    for _ in range(2):
        with pytest.warns(UserWarning) as warned:
            network.run(1 * ms)
        (message,) = [str(warning.message) for warning in warned if warning.category is UserWarning]
        assert f"{layers[0].name} and {layers[1].name} draw the same" in message
        assert warned[0].filename == __file__ and "stream=" in message
    layers[1].active = False
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".* draw the same random numbers")
        network.run(1 * ms)
        apart = [glm.GLMNeurons(2, glm.IndicatorBasis(2), random_state=1, stream=name) for name in "ab"]
        Network(*apart).run(1 * ms)


def test_encoders_show_what_they_are():
    encoder = glm.RateEncoder(np.zeros((2, 3)), n_steps=4)
    for shown in (repr(encoder), encoder._repr_html_()):
        for part in ("RateEncoder", "3 inputs", "n_images", "n_steps", "1. ms"):
            assert part in shown
    assert {"level", "presentation", "intensity"} <= set(dir(encoder))


@pytest.mark.parametrize(
    "arguments, error",
    [
        (dict(dt=1), TypeError),
        (dict(clock="fast"), TypeError),
        (dict(order=0.5), TypeError),
        (dict(name="my inputs"), ValueError),
    ],
)
def test_bad_arguments_of_brian(arguments, error):
    with catch_logs() as messages, pytest.raises(error, match=f"{next(iter(arguments))} must be"):
        glm.RateEncoder(np.zeros(3), **arguments)
    assert not messages


@pytest.mark.parametrize(
    "intensities, n_steps, error, message",
    [
        ([-1], None, ValueError, "intensities must hold .* from -1 to -1"),
        ([256], None, ValueError, "integers from 0 to 255"),
        ([1.5], None, ValueError, "real numbers from 0 to 1"),
        ([np.nan], None, ValueError, "NaN"),
        (["a"], None, TypeError, "intensities must hold"),
        ([], None, ValueError, "sizes above 0"),
        (np.zeros((2, 2, 2)), None, ValueError, "must have the shape"),
        (np.zeros((2, 3)), None, ValueError, "n_steps"),
        (np.ones(3) * mV, None, TypeError, "without a unit"),
        (np.zeros((2, 3)), 0, ValueError, "n_steps must be an integer of at least 1"),
    ],
)
def test_bad_intensities(intensities, n_steps, error, message):
    with pytest.raises(error, match=message):
        glm.RateEncoder(intensities, n_steps)


def test_trains_are_refused_by_what_takes_them():
    with pytest.raises(
        ValueError, match=r"got \(2, 5, 3\)\. Spike trains .*fit, .*SpikeGeneratorGroup"
    ):
        glm.RateEncoder(np.zeros((2, 5, 3)), n_steps=5)
