"""Sounds become spikes as benchmarks/spoken_digits.py says."""

import numpy as np
import pytest
import spoken_digits
from scipy.io import wavfile

import glmbrian as glm

RATE = 8000


def write_tone(path, frequency, seconds=0.2, amplitude=1.0):
    t = np.arange(int(seconds * RATE)) / RATE
    wavfile.write(path, RATE, (32000 * amplitude * np.sin(2 * np.pi * frequency * t)).astype(np.int16))


@pytest.fixture
def folder(tmp_path):
    for digit, frequency in ((0, 300), (1, 2000)):
        for speaker in ("zoe", "adam"):
            for take in (0, 7):
                write_tone(tmp_path / f"{digit}_{speaker}_{take}.wav", frequency)
    return tmp_path


def by_the_definition(sound, centre):
    """Spikes of one channel, sample by sample, from the impulse response of a gammatone filter."""
    t = np.arange(len(sound)) / RATE
    bandwidth = 1.019 * 24.7 * (4.37 * centre / 1000 + 1)  # Glasberg and Moore
    response = t**3 * np.exp(-2 * np.pi * bandwidth * t) * np.cos(2 * np.pi * centre * t)
    gain = abs(np.sum(response * np.exp(-2j * np.pi * centre * t)))  # 1 at the centre
    heard = np.convolve(sound, response / gain)[: len(sound)]
    smooth, charge, times = 0.0, 0.5, []  # half-way to the first spike
    for step, value in enumerate(heard):
        smooth += (max(value, 0.0) - smooth) * (1 - np.exp(-1 / (0.004 * RATE)))
        charge += 60 / RATE * smooth ** (1 / 3)
        if charge >= 1:
            charge -= 1
            times.append(step)
    return np.array(times)


def test_spikes_of_a_tone(tmp_path):
    write_tone(tmp_path / "0_a_0.wav", 1000, seconds=0.5)
    channel, time = spoken_digits.events_of(tmp_path / "0_a_0.wav")
    sound = np.sqrt(2) * np.sin(2 * np.pi * 1000 * np.arange(RATE // 2) / RATE)  # its power is 1
    nearest = np.abs(spoken_digits.CENTRES - 1000).argmin()
    assert np.bincount(channel).argmax() == nearest
    for number in (nearest, nearest - 6, nearest + 6):
        want = by_the_definition(sound, spoken_digits.CENTRES[number])
        got = time[channel == number]
        assert len(want) > 3 and abs(len(got) - len(want)) <= 1
        # The digital filter is an approximation of the gammatone.
        n = min(len(got), len(want))
        np.testing.assert_allclose(got[:n], want[:n], rtol=0.05)


def test_events_of_a_folder_are_kept_and_binned(folder):
    events = spoken_digits.load(folder, n_jobs=1)
    assert events["digit"].tolist() == [0] * 4 + [1] * 4
    assert events["speaker"].tolist() == [0, 0, 1, 1] * 2 and events["take"].tolist() == [0, 7] * 4
    assert events["count"].sum() == len(events["time"]) == len(events["channel"])
    kinds = {name: array.dtype.name for name, array in events.items()}
    bytes_of = dict.fromkeys(("channel", "digit", "speaker", "take"), "uint8")
    assert kinds == {**bytes_of, "time": "uint16", "count": "uint16"}
    again = spoken_digits.load(folder / "events.npz")
    assert all(np.array_equal(again[name], array) for name, array in events.items())
    trains = spoken_digits.in_steps(events)
    assert trains.shape == (8, 100, 64) and not trains[:, 26:].any()  # 0.2 s are 25 steps
    first = events["count"][0]
    pairs = set(zip(events["time"][:first] // 64, events["channel"][:first]))
    assert {(t, c) for t, c in zip(*np.nonzero(trains[0]))} == pairs
    # low tones in low channels
    heard = trains.sum(axis=1).argmax(axis=1)
    assert (heard[:4] < heard[4:]).all()


def test_wrong_sounds_are_named(tmp_path):
    with pytest.raises(SystemExit, match="holds no wave files"):
        spoken_digits.load(tmp_path)
    wavfile.write(tmp_path / "0_a_0.wav", 16000, np.zeros(10, np.int16))
    with pytest.raises(SystemExit, match="0_a_0.wav: expected one channel at 8000 Hz, got .* 16000"):
        spoken_digits.convert(tmp_path, n_jobs=1)


def test_named_settings_are_valid():
    for arguments in spoken_digits.settings().values():
        _ = glm.GLMClassifier(n_steps=100, **arguments).settings
