"""Compare start values of hidden layers over seeds.

    python benchmarks/start_values.py [--seeds 10] [--output FILE]

Trains 100 hidden neurons on the package's own MNIST images, with each seed, from each pair of a
bias and a scale of the weights.  For each pair it prints the accuracy on the test images: the mean
over seeds, the standard deviation, and the worst.  With --output, each fit is written to a JSON file as
soon as it is done, and fits that are in the file are not run again.
"""

import argparse
import json
import statistics
from pathlib import Path

import glmbrian as glm
from glmbrian.classifier import start

BIASES, SCALES = (-2.0, -1.0, 0.0), (0.35, 0.7, 1.4, 2.8)


def accuracy(digits, bias, scale, seed):
    """Return the accuracy after training from these start values."""
    start.HIDDEN_BIAS, start.HIDDEN_SCALE = bias, scale
    classifier = glm.GLMClassifier(
        hidden=(100,),
        n_steps=12,
        basis=glm.ExponentialBasis([1.5, 4.5], 12),
        learning_rate=2e-2,
        learning_rate_schedule="linear",
        n_epochs=5,
        random_state=seed,
        verbose=False,
    )
    classifier.fit(digits.X_train, digits.y_train)
    return classifier.score(digits.X_test, digits.y_test)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    digits = glm.datasets.load_mnist("all")
    rows = []
    if options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text())
    done = {tuple(row[:3]) for row in rows}
    for seed in range(options.seeds):
        for bias in BIASES:
            for scale in SCALES:
                if (bias, scale, seed) in done:
                    continue
                rows.append([bias, scale, seed, accuracy(digits, bias, scale, seed)])
                if options.output is not None:
                    options.output.write_text("\n".join(_lines(rows)) + "\n")
    for bias in BIASES:
        for scale in SCALES:
            values = [row[3] for row in rows if row[:2] == [bias, scale]]
            spread = statistics.stdev(values) if len(values) > 1 else float("nan")
            print(
                f"bias {bias:g}, scale {scale:g}: accuracy {statistics.mean(values):.4f} "
                f"+- {spread:.4f}, worst {min(values):.4f} ({len(values)} seeds)"
            )


def _lines(rows):
    """Return JSON with one fit per line."""
    texts = [json.dumps(row) for row in rows]
    return ["[", *(f" {text}," for text in texts[:-1]), f" {texts[-1]}", "]"]


if __name__ == "__main__":
    main()
