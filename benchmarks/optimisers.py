"""Compare optimisers: the paper's two digits, all digits with hidden neurons, and spoken digits.

    python benchmarks/optimisers.py [--spoken FOLDER] [--seeds 3] [--output FILE]

Each optimiser is tried at several learning rates, with a tenth of the training data held out; the rate with the best mean
accuracy there is the one whose test accuracy is printed.  FOLDER is that of `spoken_digits.py`.  With --output, each run is
added to a JSON file as soon as it is done, and runs that are in it are not repeated.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import spoken_digits
from sklearn.model_selection import train_test_split

import glmbrian as glm

#: Learning rates that each optimiser tries, times that of the task.
FACTORS = {"sgd": (0.3, 1.0, 3.0), "momentum": (0.03, 0.1, 0.3), "adam": (0.03, 0.1, 0.3)}


def tasks(spoken):
    """Return the data and the classifier's parameters of each task, by name."""
    pair, ten = glm.datasets.load_mnist((5, 7)), glm.datasets.load_mnist("all")
    exponentials = glm.ExponentialBasis([1.5, 4.5], 12)
    hidden = dict(
        hidden=(100,), n_steps=12, basis=exponentials, learning_rate=0.02, n_epochs=5,
        learning_rate_schedule="linear",
    )  # fmt: skip
    found = {
        "first spike": (pair, dict(n_epochs=60)),
        "rate": (pair, dict(n_epochs=60, decoding="rate")),
        "hidden": (ten, hidden),
    }
    if spoken is not None:
        events = spoken_digits.load(spoken)
        found["spoken"] = (events, dict(n_steps=spoken_digits.N_STEPS))
    return found


def data_of(task, data):
    """Return the training and test data of a task."""
    if task != "spoken":
        return data.X_train, data.y_train, data.X_test, data.y_test
    X, y = spoken_digits.in_steps(data), data["digit"].astype(int)
    test = data["take"] < 5
    return X[~test], y[~test], X[test], y[test]


def run(task, data, parameters, optimizer, rate, seed):
    """Return one row of results."""
    X, y, X_test, y_test = data_of(task, data)
    X, X_held_out, y, y_held_out = train_test_split(X, y, test_size=0.1, random_state=seed, stratify=y)
    settings = {**parameters, "learning_rate": rate, "optimizer": optimizer}
    classifier = glm.GLMClassifier(**settings, random_state=seed, verbose=False).fit(X, y)
    return {
        "task": task,
        "optimizer": optimizer,
        "rate": rate,
        "seed": seed,
        "held_out": classifier.score(X_held_out, y_held_out),
        "test": classifier.score(X_test, y_test),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spoken", type=Path, metavar="FOLDER")
    parser.add_argument("--tasks", nargs="*")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    rows = []
    if options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text())
    done = {(row["task"], row["optimizer"], row["rate"], row["seed"]) for row in rows}
    chosen = {
        name: task
        for name, task in tasks(options.spoken).items()
        if options.tasks is None or name in options.tasks
    }
    for task, (data, parameters) in chosen.items():
        for seed in range(options.seeds):
            for optimizer, factors in FACTORS.items():
                for factor in factors:
                    rate = factor * parameters.get("learning_rate", glm.GLMClassifier().learning_rate)
                    if (task, optimizer, rate, seed) in done:
                        continue
                    rows.append(run(task, data, parameters, optimizer, rate, seed))
                    print(json.dumps(rows[-1]), flush=True)
                    if options.output is not None:
                        lines = ",\n ".join(json.dumps(row) for row in rows)
                        options.output.write_text(f"[\n {lines}\n]\n")
    print(f"\n{'task':14}{'optimizer':12}{'rate':>8}{'test accuracy':>22}")
    for task in chosen:
        for optimizer in FACTORS:
            own = [row for row in rows if (row["task"], row["optimizer"]) == (task, optimizer)]
            rates = sorted({row["rate"] for row in own})
            held_out = [
                np.mean([row["held_out"] for row in own if row["rate"] == rate]) for rate in rates
            ]
            best = rates[int(np.argmax(held_out))]
            tests = [row["test"] for row in own if row["rate"] == best]
            spread = f"{np.mean(tests):.4f} ({min(tests):.4f}-{max(tests):.4f})"
            print(f"{task:14}{optimizer:12}{best:8.4g}{spread:>22}")


if __name__ == "__main__":
    main()
