"""Accuracy after attacks on the input spikes, with and without adversarial training.

    python benchmarks/adversarial.py [--seeds 5] [--images 1000] [--output adversarial.json] [--times]

Networks for {5, 7} and for ten digits (T = K = 8) are trained with first-to-spike and rate decoding,
normally and adversarially with each kind of change.  They are tested on images that training has not
seen: without changes, after attacks ("greedy") of each kind and budget, and after as many random
changes.  The output file has a row for each fit, so an interrupted run resumes where it stopped.
Tables give means over the seeds.  The last columns give the fraction of the accuracy taken by the
attack that adversarial training keeps, and what it costs without an attack.

With --times, it instead prints how long adversarial training takes, as a multiple of normal training;
with "--hidden 100" for networks with hidden neurons.
"""

import argparse
import json
from itertools import product
from pathlib import Path
from time import perf_counter

import numpy as np

import glmbrian as glm
from glmbrian.robustness import KINDS, attack, random_change

CLASSES = {"5 7": (5, 7), "ten": "all"}
DECODINGS = ("first-to-spike", "rate")
BUDGETS = (0, 1, 2, 5, 10, 20)

#: The fraction of presentations that training attacks, by default: larger fractions keep more of what
#: an attack takes, and cost more without one.
FRACTIONS = {"5 7": 1.0, "ten": 0.3}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--images", type=int, default=1000, help="test images in all")
    parser.add_argument("--output", type=Path, default=Path("adversarial.json"))
    parser.add_argument("--budget", type=int, default=5, help="spikes changed in training")
    parser.add_argument("--fraction", type=float, help="default: 1 for {5, 7}, 0.3 for ten digits")
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--schedule", default="linear")
    parser.add_argument("--average", type=float, default=0.3)
    parser.add_argument("--classes", nargs="+", choices=CLASSES, default=list(CLASSES))
    parser.add_argument("--decodings", nargs="+", choices=DECODINGS, default=DECODINGS)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument(
        "--budgets", nargs="+", type=int, default=BUDGETS, help="spikes changed in tests"
    )
    parser.add_argument("--times", action="store_true")
    parser.add_argument("--hidden", type=int, nargs="*", default=[], help="hidden neurons, for --times")
    options = parser.parse_args()
    if options.times:
        return print_times(options)
    if options.hidden:
        parser.error("--hidden needs --times")
    rows = json.loads(options.output.read_text()) if options.output.exists() else []
    asked = [
        dict(
            seed=seed,
            classes=classes,
            decoding=decoding,
            trained=trained,
            budget=options.budget if trained else 0,
            fraction=(options.fraction or FRACTIONS[classes]) if trained else 1.0,
            epochs=options.epochs,
            learning_rate=options.learning_rate,
            schedule=options.schedule,
            average=options.average,
            images=options.images,
            kinds=options.kinds,
            budgets=list(options.budgets),
        )
        for seed, classes, decoding, trained in product(
            range(options.seeds), options.classes, options.decodings, [None, *options.kinds]
        )
    ]
    for number, fit in enumerate(asked):
        if not any(row["fit"] == fit for row in rows):
            rows.append({"fit": fit, **measure(fit)})
            options.output.write_text(json.dumps(rows, indent=1))
            print(f"{number + 1} of {len(asked)}: {rows[-1]['seconds']:.0f} s", flush=True)
    print_tables([row for row in rows if row["fit"] in asked], options)


def make(fit):
    adversarial = None
    if fit["trained"]:
        adversarial = {"budget": fit["budget"], "kind": fit["trained"], "fraction": fit["fraction"]}
    return glm.GLMClassifier(
        fit["decoding"],
        n_epochs=fit["epochs"],
        learning_rate=fit["learning_rate"],
        learning_rate_schedule=fit["schedule"],
        average=fit["average"],
        hidden=fit.get("hidden", ()),
        adversarial=adversarial,
        random_state=fit["seed"],
        verbose=False,
    )


def measure(fit):
    """Train and attack; return the accuracies by kind and budget."""
    began = perf_counter()
    digits = glm.datasets.load_mnist(CLASSES[fit["classes"]], 1000, 1000)
    classifier = make(fit).fit(digits.X_train, digits.y_train)
    timing = classifier.timing_
    rows = np.random.default_rng(0).permutation(len(digits.y_test))[: fit["images"]]
    X, y = digits.X_test[rows], digits.y_test[rows]
    attacked, at_random = {}, {}
    for kind in fit["kinds"]:
        attacked[kind] = [
            classifier.score(attack(classifier, X, y, b, kind), y) for b in fit["budgets"]
        ]
        at_random[kind] = [
            classifier.score(random_change(classifier, X, b, kind, random_state=0), y)
            for b in fit["budgets"]
        ]
    return {
        "accuracy": classifier.score(digits.X_test, digits.y_test),
        "attacked": attacked,
        "random": at_random,
        "microseconds": 1e6 * timing["run_seconds"] / timing["presentations"],
        "seconds": perf_counter() - began,
    }


def print_tables(rows, options):
    for classes, decoding in product(options.classes, options.decodings):
        own = [
            row
            for row in rows
            if (row["fit"]["classes"], row["fit"]["decoding"]) == (classes, decoding)
        ]
        print(
            f"\n{classes}, {decoding}: accuracy (all test images), then after changes of 0, 1, ... spikes"
        )
        for kind, trained in product(options.kinds, [None, *options.kinds]):
            normal = [row for row in own if row["fit"]["trained"] is None]
            these = [row for row in own if row["fit"]["trained"] == trained]
            for changes in ("attacked", "random"):
                values = np.mean([row[changes][kind] for row in these], axis=0)
                clean = np.mean([row["accuracy"] for row in these])
                line = f"{kind:7}{changes:9}trained: {trained or 'normally':9}{clean:.4f} | "
                line += " ".join(f"{value:.3f}" for value in values)
                if trained == kind and changes == "attacked":
                    before = np.mean([row["accuracy"] for row in normal])
                    line += f" | costs {100 * (before - clean):.2f} points" + kept(normal, these, kind)
                print(line)


def kept(normal, adversarial, kind):
    """Say which fraction of what an attack with the budget of training takes is kept."""
    budgets, budget = normal[0]["fit"]["budgets"], adversarial[0]["fit"]["budget"]
    if budget not in budgets or 0 not in budgets:
        return ""
    without, at = budgets.index(0), budgets.index(budget)
    before = np.mean([row["attacked"][kind] for row in normal], axis=0)
    after = np.mean([row["attacked"][kind] for row in adversarial], axis=0)
    return f", keeps {(after[at] - before[at]) / (before[without] - before[at]):.2f} at {budget}"


def print_times(options):
    for classes, decoding in product(options.classes, options.decodings):
        digits = glm.datasets.load_mnist(CLASSES[classes], 1000, 1)
        best = {}
        for _ in range(5):  # they take turns
            for trained in (None, *options.kinds):
                fit = dict(
                    seed=0, decoding=decoding, trained=trained, budget=options.budget,
                    fraction=options.fraction or 1.0, epochs=10 if classes == "5 7" else 4,
                    learning_rate=options.learning_rate, schedule=options.schedule, average=options.average,
                    hidden=tuple(options.hidden),
                )  # fmt: skip
                timing = make(fit).fit(digits.X_train, digits.y_train).timing_
                own = 1e6 * timing["run_seconds"] / timing["presentations"]
                best[trained] = min(own, best.get(trained, own))
        print(f"{classes}, {decoding}: {best[None]:.2f} us a presentation", end="")
        print("".join(f", {kind} {best[kind] / best[None]:.2f} times" for kind in options.kinds))


if __name__ == "__main__":
    main()
