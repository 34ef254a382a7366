"""How far training carries a difference of the size of rounding errors.

    python benchmarks/rounding.py [--rates 0.005 0.01] [--epochs 20 60] [--steps 8 16 32]

Trains two classifiers whose initial weights, of about 0.01, differ by 1e-13 of themselves, on {5, 7}, {4, 9}
and ten digits (T = K, 1,000 images per digit), and prints the largest difference of their weights after
each number of epochs.  If it stays near 1e-15, devices that differ by rounding learn the same parameters;
if it grows, the learning rate is too high for that, and each epoch multiplies the difference.
"""

import argparse
from itertools import product

import numpy as np

import glmbrian as glm

CLASSES = {"5 7": (5, 7), "4 9": (4, 9), "ten": "all"}
DECODINGS = ("first-to-spike", "rate")


def weights(classes, weight_scale, **settings):
    """Train, and return the weights."""
    digits = glm.datasets.load_mnist(CLASSES[classes])
    classifier = glm.GLMClassifier(
        weight_scale=weight_scale, average=0, random_state=0, verbose=False, **settings
    )
    return classifier.fit(digits.X_train, digits.y_train).weights_


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rates", type=float, nargs="+", default=[0.001, 0.0025, 0.005, 0.01])
    parser.add_argument("--epochs", type=int, nargs="+", default=[20])
    parser.add_argument("--steps", type=int, nargs="+", default=[8, 16, 32])
    parser.add_argument("--classes", nargs="+", choices=CLASSES, default=list(CLASSES))
    parser.add_argument("--decodings", nargs="+", choices=DECODINGS, default=DECODINGS)
    parser.add_argument("--flips", type=int, default=0, help="train against this many flips")
    options = parser.parse_args()
    for n_steps, classes, decoding, rate in product(
        options.steps, options.classes, options.decodings, options.rates
    ):
        differences = []
        for n_epochs in options.epochs:
            settings = dict(
                decoding=decoding, n_steps=n_steps, n_basis=n_steps, learning_rate=rate, n_epochs=n_epochs,
                adversarial={"budget": options.flips} if options.flips else None,
            )  # fmt: skip
            one, other = (weights(classes, scale, **settings) for scale in (0.01, 0.01 * (1 + 1e-13)))
            differences.append(f"{np.abs(one - other).max():.0e} after {n_epochs} epochs")
        print(f"T = {n_steps}, {classes}, {decoding}, {rate:g}: {', '.join(differences)}", flush=True)


if __name__ == "__main__":
    main()
