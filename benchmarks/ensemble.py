"""Run time of an ensemble of replicas relative to the summed run time of separate fits.

    python benchmarks/ensemble.py [--replicas 10] [--rounds 5]

C++ standalone, T = K = 8, the package's settings, without build times.  Separate fits,
the ensemble in one process, and the ensemble with one process per core take turns; the
medians are printed.
"""

import argparse
import statistics

import numpy as np
from joblib import cpu_count

import glmbrian as glm

N_EPOCHS = {(5, 7): 5, "all": 1}


def classifiers(n_replicas, n_epochs):
    return [
        glm.GLMClassifier(n_epochs=n_epochs, random_state=0, start_state=state, verbose=False)
        for state in range(n_replicas)
    ]


def measure(classes, n_replicas, n_rounds):
    data = glm.datasets.load_mnist(classes)
    ratios, worst = {n_jobs: [] for n_jobs in sorted({1, cpu_count()})}, 0.0
    for _ in range(n_rounds):
        alone = classifiers(n_replicas, N_EPOCHS[classes])
        separate = sum(one.fit(data.X_train, data.y_train).timing_["run_seconds"] for one in alone)
        for n_jobs in ratios:
            together = glm.fit_ensemble(
                classifiers(n_replicas, N_EPOCHS[classes]), data.X_train, data.y_train, n_jobs=n_jobs
            )
            ratios[n_jobs].append(together[0].timing_["run_seconds"] / separate)
            for one, replica in zip(alone, together):
                worst = max(worst, float(np.abs(one.weights_ - replica.weights_).max()))
    for n_jobs, found in ratios.items():
        print(
            f"classes {classes}: {n_replicas} replicas with n_jobs={n_jobs} take "
            f"{statistics.median(found):.2f} of the summed time ({min(found):.2f} to {max(found):.2f})"
        )
    print(f"classes {classes}: largest difference of a weight {worst:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--replicas", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    for classes in N_EPOCHS:
        measure(classes, options.replicas, options.rounds)


if __name__ == "__main__":
    main()
