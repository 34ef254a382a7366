"""Compare the training speed of two versions of the package, which take turns.

    python benchmarks/versions.py OLD_PYTHON [NEW_PYTHON] [--rounds 7] [--seconds 1]

OLD_PYTHON and NEW_PYTHON are the Pythons of two environments, each with one version installed.
By default, NEW_PYTHON is the Python that runs this script.  Prints microseconds per
presentation, and the ratio of new to old, for the four sizes at which `compare.py` measures
other implementations (`speed.comparisons.SIZES`).
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile

#: (classes, T = K). Not imported from `speed`, which an old version may not have.
SIZES = ((2, 4), (2, 8), (10, 8), (10, 16))

#: The program that each version runs: it reads sizes and seeds, and prints the seconds taken.
WORKER = """
import json, sys
import glmbrian as glm

print(glm.__version__, flush=True)
data = {}
for line in sys.stdin:
    n_classes, n_steps, n_epochs, seed = json.loads(line)
    if n_classes not in data:
        data[n_classes] = glm.datasets.load_mnist((5, 7) if n_classes == 2 else "all", n_test=0)
    digits = data[n_classes]
    classifier = glm.GLMClassifier(
        n_steps=n_steps, n_basis=n_steps, n_epochs=n_epochs, random_state=seed, verbose=False
    )
    classifier.fit(digits.X_train, digits.y_train)
    seconds = classifier.timing_["run_seconds"]
    print(json.dumps([seconds, n_epochs * len(digits.y_train)]), flush=True)
"""


class Version:
    """A process that trains with one version of the package."""

    def __init__(self, python):
        self._process = subprocess.Popen(
            [python, "-c", WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tempfile.gettempdir(),  # in a checkout Python would import that, not what is installed
        )
        self.name = self._process.stdout.readline().strip()
        if not self.name:
            raise SystemExit(f"{python} cannot import glmbrian")

    def seconds(self, n_classes, n_steps, n_epochs, seed):
        """Train, and return the seconds taken and the number of presentations."""
        print(json.dumps([n_classes, n_steps, n_epochs, seed]), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


def compare(old, new, n_rounds, seconds):
    for size in SIZES:
        for version in (old, new):
            version.seconds(*size, 1, 0)  # compiles, so that the next call measures training alone
        taken, n_presentations = old.seconds(*size, 1, 0)
        n_epochs = max(1, round(seconds / taken))
        times = {old: [], new: []}
        for n in range(n_rounds):
            # The second version finds warmer caches, so the two take turns in going first.
            for version in (old, new) if n % 2 else (new, old):
                taken, n_presentations = version.seconds(*size, n_epochs, n)
                times[version].append(1e6 * taken / n_presentations)
        ratios = sorted(b / a for a, b in zip(times[old], times[new]))
        print(
            f"{size}: {statistics.median(times[old]):.2f} us in {old.name}, "
            f"{statistics.median(times[new]):.2f} us in {new.name}; new over old "
            f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", metavar="OLD_PYTHON")
    parser.add_argument("new", metavar="NEW_PYTHON", nargs="?", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1, help="how long each turn should take")
    options = parser.parse_args()
    compare(Version(options.old), Version(options.new), options.rounds, options.seconds)


if __name__ == "__main__":
    main()
