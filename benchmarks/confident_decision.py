"""Measure how well `ConfidentDecision` keeps its error bound, over random splits of held-out images.

    python benchmarks/confident_decision.py [--splits 100] [--classes 5 7] [--output FIGURE.png]

A classifier (T = K = 8) is trained on the training images that ship with the package.  Its test
images are split at random, again and again: one half calibrates, and the other one counts mistakes.
For bounds of 1%, 5% and 10% this prints in how many splits the error among the decided test images
was larger, and the means over splits of error, coverage and decision step, beside the classifier's
own decisions.  A split measures its error on few images, so it scatters around the true error.
"""

import argparse

import numpy as np

import glmbrian as glm
from glmbrian.confident.scores import step_scores
from glmbrian.confident.thresholds import checked_thresholds, first_above

ERRORS, CONFIDENCE = (0.01, 0.05, 0.1), 0.95


def split_once(random, scores, right, error):
    """Return error, coverage and decision step on one half, calibrated on the other."""
    order = random.permutation(len(right))
    calibration, test = np.split(order, [len(order) // 2])
    tested = checked_thresholds(scores.log_odds[calibration], right[calibration], error, CONFIDENCE)
    threshold = min((one.threshold for one in tested if one.accepted), default=np.inf)
    steps = first_above(scores.log_odds[test], threshold)
    decided = steps >= 0
    n_steps = right.shape[1]
    wrong = ~right[test, steps][decided]
    return (
        wrong.mean() if decided.any() else 0.0,
        decided.mean(),
        np.where(decided, steps + 1, n_steps).mean(),
        (steps[decided] + 1).mean() if decided.any() else n_steps,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--classes", nargs="+", default=["5", "7"])
    parser.add_argument("--decoding", choices=("first-to-spike", "rate"), default="first-to-spike")
    parser.add_argument("--output", help="draw coverage against error into this file")
    options = parser.parse_args()

    classes = "all" if options.classes == ["all"] else [int(digit) for digit in options.classes]
    digits = glm.datasets.load_mnist(classes)
    classifier = glm.GLMClassifier(options.decoding, n_epochs=20, random_state=0, verbose=False)
    classifier.fit(digits.X_train, digits.y_train)
    own = classifier.evaluate(digits.X_test, digits.y_test)
    print(
        f"own decisions: error {1 - own['accuracy']:.4f}, step {own['mean_decision_step']:.2f} of "
        f"{classifier.n_steps}, operations {own['operations_per_class']:.1f}"
    )
    scores = step_scores(classifier, digits.X_test)
    right = classifier.classes_[scores.best] == digits.y_test[:, np.newaxis]
    random = np.random.default_rng(0)
    for error in ERRORS:
        found = np.array([split_once(random, scores, right, error) for _ in range(options.splits)])
        mean = found.mean(axis=0)
        print(
            f"error {error:.0%}: above in {np.sum(found[:, 0] > error)} of {options.splits} splits; "
            f"error {mean[0]:.4f}, coverage {mean[1]:.3f}, step {mean[2]:.2f}, of decided ones "
            f"{mean[3]:.2f}"
        )
    half = len(digits.y_test) // 2
    order = random.permutation(len(digits.y_test))
    X, y = digits.X_test[order], digits.y_test[order]
    confident = glm.ConfidentDecision(classifier, 0.01).calibrate(X[:half], y[:half])
    measured = confident.evaluate(X[half:], y[half:], first_presentation=half)
    print(
        "one half at 1%:", {name: value for name, value in measured.items() if name != "own_decisions"}
    )
    if options.output:
        ax = glm.plotting.plot_coverage(confident, X[half:], y[half:], first_presentation=half)
        ax.figure.savefig(options.output)


if __name__ == "__main__":
    main()
