"""Train on all of MNIST, or of a data set in the same form, and test on its official test images.

    python benchmarks/full_mnist.py [FOLDER] [--hidden 100] [--shifts] [--seeds 5] [--output FILE]

FOLDER holds the four IDX files; without it, the images of the package are used.  Decisions are made
by the first spike alone; the accuracy is given twice: with silent presentations decided by the
potential, and with them counted as wrong.
With --shifts, training also sees each training image moved by one pixel up, down, left and right.
With --output, each seed is written to a JSON file as soon as it is done, and seeds that are in
the file are not run again.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from scipy.stats import t as student

import glmbrian as glm


def with_shifts(X, y):
    """Return the images, and beside them each moved by one pixel in four directions."""
    images = np.pad(X.reshape(-1, 28, 28), ((0, 0), (1, 1), (1, 1)))
    places = [(1, 1), (0, 1), (2, 1), (1, 0), (1, 2)]
    moved = [images[:, down : down + 28, right : right + 28] for down, right in places]
    return np.concatenate(moved).reshape(-1, 784), np.tile(y, len(places))


def run(digits, options, seed):
    """Return what one seed gives, as a dict."""
    classifier = glm.GLMClassifier(
        hidden=tuple(options.hidden),
        n_steps=options.n_steps,
        basis=glm.ExponentialBasis([1.5, 4.5], options.n_steps),
        learning_rate=options.learning_rate,
        learning_rate_schedule="linear",
        average=options.average,
        weight_decay=options.weight_decay,
        n_epochs=options.epochs,
        random_state=seed,
        verbose=False,
    )
    X, y = digits.X_train, digits.y_train
    if options.shifts:
        X, y = with_shifts(X, y)
    started = time.perf_counter()
    classifier.fit(X, y)
    seconds, timing = time.perf_counter() - started, classifier.timing_
    measured = classifier.evaluate(digits.X_test, digits.y_test)
    seen = classifier.decisions_
    decided = (seen.decided == seen.label) & ~seen.silent
    return {
        "seed": seed,
        **measured,
        "accuracy_silence_wrong": float(np.mean(decided)),
        "log_likelihood": float(classifier.history_[-1]),
        "fit_seconds": seconds,
        "us_per_presentation": 1e6 * timing["run_seconds"] / timing["presentations"],
        "peak_memory_mb": timing["peak_memory"] / 1e6,
    }


def summary(rows, name):
    """Return the mean of a measure over seeds, with its 95% interval."""
    values = [row[name] for row in rows]
    mean = statistics.mean(values)
    if len(values) < 2:
        return f"{mean:.4f}"
    half = student.ppf(0.975, len(values) - 1) * statistics.stdev(values) / len(values) ** 0.5
    return f"{mean:.4f} (95% interval {mean - half:.4f} to {mean + half:.4f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--hidden", type=int, nargs="*", default=[100], metavar="N")
    parser.add_argument("--n-steps", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--learning-rate", type=float, default=2e-2)
    parser.add_argument("--average", type=float, default=0.0)
    parser.add_argument("--weight-decay", type=float, default=0.0)
    parser.add_argument("--shifts", action="store_true")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    settings = {
        name: value for name, value in vars(options).items() if name not in ("folder", "output")
    }
    del settings["seeds"]
    whole = {} if options.folder is None else dict(full=True, directory=options.folder)
    digits = glm.datasets.load_mnist("all", **whole)
    settings["n_train"], settings["n_test"] = len(digits.y_train), len(digits.y_test)
    rows = []
    if options.output is not None and options.output.exists():
        earlier = json.loads(options.output.read_text())
        if {"weight_decay": 0.0, "shifts": False, **earlier["settings"]} != settings:
            raise SystemExit(f"{options.output} holds results of other settings")
        rows = earlier["seeds"]
    done = {row["seed"] for row in rows}
    for seed in range(options.seeds):
        if seed in done:
            continue
        rows.append(run(digits, options, seed))
        print(json.dumps(rows[-1]), flush=True)
        if options.output is not None:
            text = json.dumps({"settings": settings, "seeds": rows}, indent=1)
            options.output.write_text(text + "\n")
    for name in ("accuracy", "accuracy_silence_wrong", "silent_fraction", "mean_decision_step",
                 "hidden_spikes", "us_per_presentation"):  # fmt: skip
        if name in rows[0]:
            print(f"{name}: {summary(rows, name)}")


if __name__ == "__main__":
    main()
