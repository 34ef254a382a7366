"""What a falling learning rate and averaged parameters are worth, beside the defaults of version 0.1.

    python benchmarks/schedules.py [--epochs 20] [--seeds 5] [--settings ...] [--points 4]

Trains classifiers with both decodings at T = K = 16 on {4, 9} and on ten digits, then on {5, 7} at
every T of the paper's figure 5; 1,000 images per digit, and as many to test on.  Each fit is a row of
the output file, so a run that was stopped goes on where it stopped.
Prints the accuracy in percent: the mean over seeds, and by how much each of the settings is above
the first, with the standard error over seeds (which share images and starts).
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

import glmbrian as glm
from glmbrian.reproduce import FULL

SETTINGS = {
    "constant": {"learning_rate": 0.01, "average": 0.0},
    "linear": {"learning_rate": 0.01, "learning_rate_schedule": "linear", "average": 0.0},
    "average-0.005": {"learning_rate": 0.005, "average": 0.3},
    "average": {"learning_rate": 0.01, "average": 0.3},
    "average-0.015": {"learning_rate": 0.015, "average": 0.3},
    "average-0.02": {"learning_rate": 0.02, "average": 0.3},
    "linear-0.02": {"learning_rate": 0.02, "learning_rate_schedule": "linear", "average": 0.0},
    "both-0.02": {"learning_rate": 0.02, "learning_rate_schedule": "linear", "average": 0.3},
}

#: Classes, decoding and T.
POINTS = [
    *(
        (classes, decoding, 16)
        for decoding in ("first-to-spike", "rate")
        for classes in ((4, 9), tuple(range(10)))
    ),
    *(((5, 7), decoding, t) for decoding in ("first-to-spike", "rate") for t in FULL.t_grid),
]


def accuracy(settings, point, n_epochs, seed):
    """Train and test."""
    classes, decoding, n_steps = point
    digits = glm.datasets.load_mnist(classes)
    classifier = glm.GLMClassifier(
        decoding,
        n_steps=n_steps,
        n_basis=n_steps,
        n_epochs=n_epochs,
        random_state=seed,
        verbose=False,
        **SETTINGS[settings],
    )
    return classifier.fit(digits.X_train, digits.y_train).score(digits.X_test, digits.y_test)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument(
        "--settings", nargs="+", choices=SETTINGS, default=["constant", "average-0.015"]
    )
    parser.add_argument("--points", type=int, default=len(POINTS), help="only the first so many")
    parser.add_argument("--output", type=Path, default=Path("schedules.json"))
    options = parser.parse_args()
    rows = json.loads(options.output.read_text()) if options.output.exists() else []
    known = {json.dumps(row["fit"]): row["accuracy"] for row in rows}
    for point in POINTS[: options.points]:
        percent = []
        for settings, seed in product(options.settings, range(options.seeds)):
            fit = {"settings": settings, "point": point, "epochs": options.epochs, "seed": seed}
            key = json.dumps(fit)
            if key not in known:
                known[key] = accuracy(settings, point, options.epochs, seed)
                rows.append({"fit": fit, "accuracy": known[key]})
                options.output.write_text(json.dumps(rows, indent=1) + "\n")
            percent.append(100 * known[key])
        values = np.reshape(percent, (len(options.settings), options.seeds))
        classes, decoding, n_steps = point
        text = f"{options.epochs} epochs, {len(classes)} digits, {decoding}, T = {n_steps}:"
        for settings, own in zip(options.settings, values):
            text += f" {settings} {own.mean():.2f}"
            if settings != options.settings[0]:
                gain = own - values[0]
                error = gain.std(ddof=1) / len(gain) ** 0.5 if len(gain) > 1 else np.nan
                text += f" ({gain.mean():+.2f} +- {error:.2f})"
        print(text, flush=True)


if __name__ == "__main__":
    main()
