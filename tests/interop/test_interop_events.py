"""Event data sets in Tonic's form become spike trains of a classifier."""

import numpy as np
import pytest
from brian2 import Hz, ms, second, us
from hypothesis import example, given
from hypothesis import strategies as st

import glmbrian as glm
from glmbrian.interop import from_tonic

CAMERA = [("x", np.int16), ("y", np.int16), ("t", np.int64), ("p", bool)]


def events(rows, dtype=CAMERA):
    return np.array([tuple(row) for row in rows], dtype=dtype)


def random_events(random, n, size, duration, dtype=CAMERA):
    width, height, n_polarities = size
    sample = np.zeros(n, dtype=dtype)
    sample["t"] = np.sort(random.integers(0, duration, n))
    for field, top in (("x", width), ("y", height), ("p", n_polarities)):
        if field in sample.dtype.names:
            sample[field] = random.integers(0, top, n)
    return sample


class Dataset:
    """As Tonic's: the size of the sensor is an attribute."""

    def __init__(self, samples, sensor_size):
        self.samples, self.sensor_size = samples, sensor_size

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def test_steps_inputs_and_labels():
    samples = [
        (events([(2, 1, 100, 1), (2, 1, 1099, 0), (0, 0, 1100, 0), (0, 0, 1200, 0)]), "b"),
        (events([(1, 0, 50, 0), (1, 0, 99_999, 0)]), "a"),
        (events([]), "b"),
    ]
    X, y = from_tonic(Dataset(samples, (3, 2, 2)), n_steps=4, dt=1 * ms)
    assert X.shape == (3, 4, 12) and X.dtype == np.uint8 and y.tolist() == ["b", "a", "b"]
    # (p * H + y) * W + x, from the first event of a sample
    assert np.argwhere(X).tolist() == [[0, 0, 5], [0, 0, 11], [0, 1, 0], [1, 0, 1]]


def test_steps_from_a_given_time():
    samples = [(events([(0, 0, 900, 0), (1, 0, 1000, 0), (2, 0, 2999, 0), (0, 0, 3000, 0)]), 1)]
    X, y = from_tonic(samples, 2, 1 * ms, (3, 1, 1), t_start=1 * ms)
    assert X.tolist() == [[[0, 1, 0], [0, 0, 1]]] and y.tolist() == [1]


# 1015e-6 * 1e6 is above 1015.
@example(dt=1015, steps=[1, 3], first=0, late=False)
@given(
    dt=st.integers(1, 10**6),
    steps=st.lists(st.integers(0, 50), min_size=1, max_size=20),
    first=st.integers(0, 10**9),
    late=st.booleans(),
)
def test_whole_microseconds_are_binned_exactly(dt, steps, first, late):
    # The first or the last microsecond of a step
    times = first + np.array(steps) * dt + (dt - 1 if late else 0)
    sample = events([(0, 0, time, 0) for time in times])
    X, _ = from_tonic([(sample, 0)], 60, dt * us, (1, 1, 1), t_start=first * us)
    assert np.flatnonzero(X).tolist() == sorted(set(steps))


def test_pooled_pixels():
    size = (5, 4, 2)
    sample = random_events(np.random.default_rng(1), 40, size, 5000)
    full, _ = from_tonic([(sample, 0)], 5, 1 * ms, size)
    pooled, _ = from_tonic([(sample, 0)], 5, 1 * ms, size, pool=2)
    padded = np.pad(full.reshape(5, 2, 4, 5), ((0, 0), (0, 0), (0, 0), (0, 1)))
    expected = padded.reshape(5, 2, 2, 2, 3, 2).max(axis=(3, 5))
    np.testing.assert_array_equal(pooled.reshape(5, 2, 2, 3), expected)


def test_a_pool_larger_than_the_sensor_joins_all():
    sample = random_events(np.random.default_rng(1), 40, (5, 4, 2), 5000)
    want, _ = from_tonic([(sample, 0)], 5, 1 * ms, (5, 4, 2), pool=5)
    for pool in (6, 2**63):
        X, _ = from_tonic([(sample, 0)], 5, 1 * ms, (5, 4, 2), pool=pool)
        np.testing.assert_array_equal(X, want)


def test_channels_of_a_cochlea():
    # As in Tonic's spoken digits: no y, and p always 1 with a single polarity.
    sample = events([(0, 699, 1), (2000, 3, 1)], [("t", int), ("x", int), ("p", int)])
    X, _ = from_tonic([(sample, np.int64(4))], 3, 1 * ms, (700, 1, 1))
    assert np.argwhere(X[0]).tolist() == [[0, 699], [2, 3]]
    bare = np.array([(0, 699), (2000, 3)], dtype=[("t", float), ("x", np.uint16)])
    np.testing.assert_array_equal(from_tonic([(bare, 4)], 3, 1 * ms, (700, 1, 1), unit=1 * us)[0], X)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_real_times_need_their_unit(dtype):
    """As in the files of SHD, whose times are seconds."""
    times = np.arange(20) / 64
    sample = np.zeros(20, dtype=[("t", dtype), ("x", int)])
    sample["t"], sample["x"] = times, np.arange(20)
    with pytest.raises(TypeError, match=r"dataset\[0\]: t holds real numbers, .* unit=1\*second or"):
        from_tonic([(sample, 0)], 20, second / 64, (20, 1, 1))
    X, _ = from_tonic([(sample, 0)], 20, second / 64, (20, 1, 1), unit=1 * second)
    np.testing.assert_array_equal(X[0], np.eye(20))
    sample["t"] = 0.1 * np.arange(20)  # not exact in binary
    X, _ = from_tonic([(sample, 0)], 20, 100 * ms, (20, 1, 1), unit=1 * second)
    assert dtype == np.float16 or np.array_equal(X[0], np.eye(20))


def test_whole_times_in_another_unit():
    sample = events([(0, 0, 3, 0), (1, 0, 5, 0)])
    X, _ = from_tonic([(sample, 0)], 6, 1 * ms, (2, 1, 1), t_start=0 * ms, unit=1 * ms)
    assert np.argwhere(X[0]).tolist() == [[3, 0], [5, 1]]


def test_a_generator_of_samples():
    samples = [(random_events(np.random.default_rng(k), 9, (4, 4, 2), 4000), k) for k in range(3)]
    want, labels = from_tonic(samples, 4, 1 * ms, (4, 4, 2))
    X, y = from_tonic((sample for sample in samples), 4, 1 * ms, (4, 4, 2))
    np.testing.assert_array_equal(X, want)
    np.testing.assert_array_equal(y, labels)


def test_order_of_events_and_fields_does_not_matter():
    sample = random_events(np.random.default_rng(2), 30, (4, 4, 2), 8000)
    other = np.random.default_rng(3).permutation(sample)[["p", "t", "y", "x"]]
    X, _ = from_tonic([(sample, 0), (other, 1)], 8, 1 * ms, (4, 4, 2))
    np.testing.assert_array_equal(X[0], X[1])
    # and they are as they were
    assert other["t"].tolist() != sorted(other["t"])


ONE = events([(0, 0, 0, 0)])


@pytest.mark.parametrize(
    "dataset, options, error, message",
    [
        ([], {}, ValueError, "at least one sample"),
        (3 * ms, {}, TypeError, "dataset must be a sequence of pairs"),
        (3, {}, TypeError, "dataset must be a sequence of pairs"),
        ({0: (ONE, 0)}, {}, TypeError, "dataset must be a sequence of pairs"),
        ([(ONE, 0)], {"unit": 1e-6}, TypeError, "unit must be a time with a Brian unit"),
        ([(ONE, 0)], {"n_steps": 2**62}, ValueError, "n_steps=.* do not fit in memory"),
        ([(ONE, 0)], {"sensor_size": (2**63, 2, 2)}, ValueError, "do not fit in memory"),
        ([(ONE, 0)], {"sensor_size": None}, ValueError, "sensor_size must be given"),
        ([(ONE, 0)], {"sensor_size": (2, 2)}, ValueError, r"three integers \(W, H, P\)"),
        ([(ONE, 0)], {"sensor_size": (2, 0, 1)}, ValueError, r"sensor_size\[1\] must be an integer"),
        ([(ONE, 0)], {"n_steps": 0}, ValueError, "n_steps must be"),
        ([(ONE, 0)], {"pool": 0}, ValueError, "pool must be"),
        ([(ONE, 0)], {"dt": 1000}, TypeError, "dt must be a time with a Brian unit"),
        ([(ONE, 0)], {"dt": 1 * Hz}, TypeError, "dt must be a time"),
        ([(ONE, 0)], {"dt": 0 * ms}, ValueError, "dt must be above 0"),
        ([(ONE, 0)], {"t_start": 0}, TypeError, "t_start must be a time with a Brian unit"),
        ([(ONE, 0), ONE], {}, TypeError, r"dataset\[1\] must be a pair"),
        ([(np.zeros((3, 4)), 0)], {}, TypeError, "structured array.*without a transform"),
        ([((ONE, ONE), 0)], {}, TypeError, "structured array"),
        ([(np.ma.masked_array(ONE), 0)], {}, TypeError, "events must not be masked"),
        ([(ONE[np.newaxis], 0)], {}, ValueError, r"events must have the shape \(n_events,\)"),
        ([(ONE[["x", "y"]], 0)], {}, ValueError, "no field t"),
        ([(ONE[["x", "t"]], 0)], {}, ValueError, r"no field y, although sensor_size is 2 there"),
        ([(ONE[["x", "y", "t"]], 0)], {}, ValueError, "no field p, although sensor_size is 2"),
        ([(events([(2, 0, 0, 0)]), 0)], {}, ValueError, "x must be from 0 to 1.*got 2 to 2"),
        ([(events([(0, -1, 0, 0)]), 0)], {}, ValueError, "y must be from 0 to 1.*got -1 to -1"),
        (
            [(events([(0, 0, 0, 0), (0, 0, 0, 1)]), 0)],
            {"sensor_size": (2, 2, 1)},
            ValueError,
            "one polarity, but the field p has several",
        ),
        ([(ONE.astype([(name, float) for name in "xytp"]), 0)], {}, TypeError, "x must be integers"),
        (
            [(np.array([(0, 0, np.nan, 0)], dtype=[*CAMERA[:2], ("t", float), CAMERA[3]]), 0)],
            {},
            TypeError,
            "t must be finite",
        ),
        ([(ONE, [0, 1])], {}, TypeError, r"dataset\[0\]: a label must be one number or string"),
        ([(ONE, None)], {}, TypeError, "label must be one number or string"),
        ([(ONE, 0), (ONE, "a")], {}, TypeError, "all numbers or all strings"),
    ],
)
def test_bad_data_sets(dataset, options, error, message):
    options = {"n_steps": 2, "dt": 1 * ms, "sensor_size": (2, 2, 2), **options}
    with pytest.raises(error, match=message):
        from_tonic(dataset, **options)


@pytest.mark.parametrize(
    "size, dtype",
    [
        ((5, 4, 2), CAMERA),
        ((9, 1, 1), [("t", int), ("x", int), ("p", int)]),
    ],
)
def test_inputs_are_in_the_order_of_tonics_frames(size, dtype):
    transforms = pytest.importorskip("tonic.transforms", reason="tonic is not installed")
    random = np.random.default_rng(4)
    samples = [(random_events(random, 200, size, 20_000, dtype), label) for label in range(3)]
    for sample, _ in samples:
        sample["t"] += 12_345
    frames = transforms.ToFrame(sensor_size=size, time_window=1000, include_incomplete=True)
    X, _ = from_tonic(samples, 25, 1 * ms, size)
    for trains, (sample, _) in zip(X, samples):
        images = frames(sample.copy()).clip(0, 1).reshape(-1, X.shape[-1])
        # Tonic's last, incomplete frame leaves out the last event where it ends with it.
        np.testing.assert_array_equal(trains[: len(images)], images)
        assert not trains[len(images) + 1 :].any()


def test_a_data_set_of_tonic(tmp_path):
    tonic = pytest.importorskip("tonic", reason="tonic is not installed")
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    # A file such as Tonic downloads, in small
    folder = tmp_path / "SHD"
    folder.mkdir()
    (folder / tonic.datasets.SHD.test_zip).touch()
    with h5py.File(folder / tonic.datasets.SHD.test_zip[:-4], "w") as file:
        for name, dtype, values in (
            ("spikes/times", np.float16, ([0.0, 0.0005, 0.25], [0.125])),
            ("spikes/units", np.uint16, ([699, 0, 5], [350])),
        ):
            column = file.create_dataset(name, (2,), dtype=h5py.vlen_dtype(dtype))
            for index, row in enumerate(values):
                column[index] = np.array(row, dtype=dtype)
        file["labels"] = np.array([13, 4], dtype=np.uint16)
        file["extra/keys"] = np.array([b"zero", b"one"])
        file["extra/speaker"] = np.array([0, 1])
    dataset = tonic.datasets.SHD(str(tmp_path), train=False)
    X, y = from_tonic(dataset, 26, 10 * ms, t_start=0 * second)
    assert X.shape == (2, 26, 700) and y.tolist() == [13, 4]
    assert np.argwhere(X).tolist() == [[0, 0, 0], [0, 0, 699], [0, 25, 5], [1, 12, 350]]
    cached, _ = from_tonic(
        tonic.MemoryCachedDataset(dataset), 26, 10 * ms, dataset.sensor_size, t_start=0 * second
    )
    np.testing.assert_array_equal(cached, X)


def moving_bar(random, direction):
    """A bar that crosses 8 x 8 pixels in 80 ms, with noise; 4 directions."""
    rows = []
    for position in range(8):
        place = position if direction in ("right", "down") else 7 - position
        for along in np.flatnonzero(random.random(8) < 0.7):
            x, y = (place, along) if direction in ("right", "left") else (along, place)
            rows.append((x, y, 10_000 * position + random.integers(10_000), True))
    for x, y in random.integers(0, 8, (6, 2)):
        rows.append((x, y, random.integers(80_000), False))
    return events(sorted(rows, key=lambda row: row[2]))


def test_a_classifier_learns_the_direction_of_a_moving_bar():
    random = np.random.default_rng(0)
    directions = ("right", "left", "down", "up")
    samples = [(moving_bar(random, directions[k % 4]), directions[k % 4]) for k in range(120)]
    X, y = from_tonic(Dataset(samples, (8, 8, 2)), n_steps=8, dt=10 * ms, t_start=0 * second)
    classifier = glm.GLMClassifier(
        n_steps=8,
        n_basis=4,
        window=8,
        n_epochs=4,
        learning_rate=0.05,
        device="runtime",
        random_state=0,
        verbose=False,
    )
    accuracy = classifier.fit(X[:80], y[:80]).score(X[80:], y[80:])
    assert accuracy > 0.7  # chance is 0.25
