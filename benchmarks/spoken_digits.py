"""Train on spoken digits as events, and decide by the first spike.

    python benchmarks/spoken_digits.py FOLDER [--settings defaults hidden] [--seeds 3] [--output FILE]

FOLDER holds the wave files of the Free Spoken Digit Dataset, `{digit}_{speaker}_{take}.wav`.  Each is
scaled to a power of 1 and turned into spikes: 64 gammatone channels, from 100 to 3,600 Hz; half-wave rectification; a low-pass filter of
4 ms; a cube root; and integrate-and-fire without leak.  The events are kept in FOLDER/events.npz, which the
script also takes in place of the folder.  Takes 0 to 4 are the test, as in the data set's own split.
With --output, each run is added to a JSON file as soon as it is done, and runs that are in it are not
repeated.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import joblib
import numpy as np
from brian2 import ms
from scipy.io import wavfile
from scipy.signal import gammatone, lfilter
from sklearn.base import clone

import glmbrian as glm

SAMPLE_RATE = 8000  # Hz
CENTRES = np.geomspace(100, 3600, 64)  # Hz
SMOOTHING = 0.004  # s
SPIKES_PER_SECOND = 60  # for a signal of 1 after the cube root

#: Steps of a presentation, and their length: 99% of the recordings are shorter than 0.92 s.
N_STEPS, DT = 100, 8 * ms


def events_of(path):
    """Return the channels and times (in samples) of the spikes of one wave file."""
    rate, sound = wavfile.read(path)
    if rate != SAMPLE_RATE or sound.ndim != 1:
        raise SystemExit(
            f"{path}: expected one channel at {SAMPLE_RATE} Hz, got {sound.shape} at {rate} Hz"
        )
    sound = sound / max(
        1.0, np.sqrt(np.mean(sound.astype(float) ** 2))
    )  # quiet and loud speakers alike
    heard = np.stack([lfilter(*gammatone(centre, "iir", fs=rate), sound) for centre in CENTRES])
    keep = np.exp(-1 / (SMOOTHING * rate))
    envelope = lfilter([1 - keep], [1, -keep], np.maximum(heard, 0), axis=1)
    charge = np.cumsum(np.cbrt(envelope), axis=1) * (SPIKES_PER_SECOND / rate)
    # Neurons start half-way to their first spike.
    return np.nonzero(np.diff(np.floor(charge + 0.5), axis=1, prepend=0))


def convert(folder, n_jobs=-1):
    """Return the events of all wave files in a folder, as the arrays of an .npz file."""
    paths = sorted(folder.glob("*.wav"))
    if not paths:
        raise SystemExit(f"{folder} holds no wave files")
    names = [path.stem.split("_") for path in paths]
    speakers = sorted({speaker for _, speaker, _ in names})
    events = joblib.Parallel(n_jobs)(joblib.delayed(events_of)(path) for path in paths)
    return {
        "channel": np.concatenate([channel for channel, _ in events]).astype(np.uint8),
        "time": np.concatenate([time for _, time in events]).astype(np.uint16),
        "count": np.array([len(channel) for channel, _ in events], np.uint16),
        "digit": np.array([digit for digit, _, _ in names], np.uint8),
        "speaker": np.array([speakers.index(speaker) for _, speaker, _ in names], np.uint8),
        "take": np.array([take for _, _, take in names], np.uint8),
    }


def load(path, n_jobs=-1):
    """Return the events of a folder or a file."""
    if not path.is_dir():
        return dict(np.load(path))
    kept = path / "events.npz"
    if not kept.exists():
        np.savez_compressed(kept, **convert(path, n_jobs))
    return dict(np.load(kept))


def in_steps(events, n_steps=N_STEPS, dt=DT):
    """Return spike trains of 0 and 1, shape (n, n_steps, channels); later events are left out."""
    recording = np.repeat(np.arange(len(events["count"])), events["count"])
    step = (events["time"] / (SAMPLE_RATE * float(dt))).astype(int)
    shown = step < n_steps
    trains = np.zeros((len(events["count"]), n_steps, len(CENTRES)), np.uint8)
    trains[recording[shown], step[shown], events["channel"][shown]] = 1
    return trains


def settings():
    """Return arguments of `GLMClassifier` by name; what they leave out has its default."""

    def cosines(n_basis, window, last_peak=None, normalise="energy"):
        return glm.RaisedCosineBasis(n_basis, window, last_peak=last_peak, normalise=normalise, dt=DT)

    def exponentials(normalise):
        return glm.ExponentialBasis([2, 8, 30], N_STEPS, normalise=normalise)

    outputs = cosines(4, 320 * ms, 160 * ms)
    hidden = {
        rule: dict(hidden=(100,), basis=outputs, hidden_basis=cosines(8, 320 * ms, 240 * ms, rule))
        for rule in (None, "energy")
    }
    named = {
        "defaults": {},
        "hidden": dict(learning_rate=0.005, learning_rate_schedule="linear", **hidden[None]),
        "hidden, energy": dict(learning_rate=0.02, learning_rate_schedule="linear", **hidden["energy"]),
        "rate": dict(decoding="rate"),
        "rate from step 40": dict(decoding="rate", target_start=40),
        "bias -5": dict(bias_init=-5.0),
        "10 lags": dict(basis=glm.RaisedCosineBasis(8, N_STEPS, a=7500.0), bias_init=-5.0),
    }
    rates = {None: (0.005, 0.015), "area": (0.05, 0.15), "energy": (0.015, 0.03)}
    for rule, choices in rates.items():
        for rate in choices:
            about = f"{rule or 'peak'} {rate}"
            named[f"cosines, {about}"] = dict(
                basis=cosines(8, N_STEPS, normalise=rule), learning_rate=rate
            )
            named[f"exponentials, {about}"] = dict(basis=exponentials(rule), learning_rate=rate)
    return named


def cpu_seconds():
    """Return the processor time of this process and of the programs that it has started."""
    return sum(
        sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def run(events, name, seed):
    """Return what one seed gives with named settings, as a dict."""
    trains, digits, is_test = in_steps(events), events["digit"].astype(int), events["take"] < 5
    classifier = glm.GLMClassifier(
        n_steps=N_STEPS, random_state=seed, verbose=False, **settings()[name]
    )
    # Compiles the program, which serves every fit of this architecture.
    clone(classifier).set_params(n_epochs=1).fit(trains[::50], digits[::50])
    started, cpu_started = time.perf_counter(), cpu_seconds()
    classifier.fit(trains[~is_test], digits[~is_test])
    measured = classifier.evaluate(trains[is_test], digits[is_test])
    seen = classifier.decisions_
    return {
        "settings": name,
        "seed": seed,
        "accuracy": measured["accuracy"],
        "accuracy_silence_wrong": float(np.mean((seen.decided == seen.label) & ~seen.silent)),
        "decision_step": measured["mean_decision_step"],
        "input_spikes": float(trains[is_test].sum(axis=(1, 2)).mean()),
        "hidden_spikes": measured.get("hidden_spikes", 0.0),
        "log_likelihood": float(classifier.history_[-1]),
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(cpu_seconds() - cpu_started, 1),
    }


def main():
    names = list(settings())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "path", type=Path, metavar="FOLDER", help="wave files, or an .npz file of events"
    )
    parser.add_argument("--settings", nargs="*", default=["defaults", "hidden"], metavar="NAME",
                        help=f"among {', '.join(map(repr, names))}")  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    unknown = sorted(set(options.settings) - set(names))
    if unknown:
        parser.error(f"--settings must be among {names}, got {unknown}")
    rows = []
    if options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text())
    done = {(row["settings"], row["seed"]) for row in rows}
    events = load(options.path)
    for name in options.settings:
        for seed in range(options.seeds):
            if (name, seed) in done:
                continue
            rows.append(run(events, name, seed))
            print(json.dumps(rows[-1]), flush=True)
            if options.output is not None:
                lines = ",\n ".join(json.dumps(row) for row in rows)
                options.output.write_text(f"[\n {lines}\n]\n")
    print(
        f"\n{'settings':28} {'accuracy':>18} {'decision step':>13} {'hidden spikes':>13} {'CPU [s]':>8}"
    )
    for name in options.settings:
        own = [row for row in rows if row["settings"] == name]
        accuracies = [row["accuracy"] for row in own]
        means = [
            np.mean([row[key] for row in own])
            for key in ("decision_step", "hidden_spikes", "cpu_seconds")
        ]
        ends = f"{np.mean(accuracies):.3f} ({min(accuracies):.3f}-{max(accuracies):.3f})"
        print(f"{name:28} {ends:>18} {means[0]:13.1f} {means[1]:13.0f} {means[2]:8.1f}")


if __name__ == "__main__":
    main()
