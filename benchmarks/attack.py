"""Time an attack on all test images of MNIST, and measure accuracy after it.

    python benchmarks/attack.py [--budget 10] [--kind flip] [--decoding first-to-spike] [--hidden 0]

A network of ten digits (T = K = 8) is trained on the images that ship with the package, and the
10,000 test images that ship with it are attacked.  Prints the seconds of the attack, and the
accuracy before it, after it, and after random changes of the same size.
"""

import argparse
import time

import glmbrian as glm
from glmbrian.robustness import KINDS, LOSSES, METHODS, attack, certified_accuracy, random_change


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=int, default=10)
    parser.add_argument("--kind", choices=sorted(KINDS), default="flip")
    parser.add_argument("--method", choices=sorted(METHODS), default="greedy")
    parser.add_argument("--loss", choices=sorted(LOSSES), default="likelihood")
    parser.add_argument("--decoding", choices=("first-to-spike", "rate"), default="first-to-spike")
    parser.add_argument("--hidden", type=int, default=0)
    parser.add_argument("--certify", action="store_true", help="also time the certified bound")
    options = parser.parse_args()

    digits = glm.datasets.load_mnist("all", 1000, 1000)
    classifier = glm.GLMClassifier(
        options.decoding,
        hidden=(options.hidden,) if options.hidden else (),
        n_epochs=20,
        random_state=0,
        verbose=False,
    ).fit(digits.X_train, digits.y_train)
    X, y = digits.X_test, digits.y_test
    started = time.perf_counter()
    attacked = attack(
        classifier, X, y, options.budget, options.kind, method=options.method, loss=options.loss
    )
    seconds = time.perf_counter() - started
    at_random = random_change(classifier, X, options.budget, options.kind, random_state=0)
    print(f"{len(X)} images, budget {options.budget}, {options.kind}: {seconds:.1f} s")
    for name, trains in (("without attack", X), ("attacked", attacked), ("at random", at_random)):
        print(f"{name:16}{classifier.score(trains, y):.4f}")
    if options.certify:
        started = time.perf_counter()
        for budget in (0, 1, 2, 3):
            held = certified_accuracy(classifier, X, y, budget, options.kind)
            print(f"certified at {budget}: {held:.4f}")
        print(f"four bounds: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
