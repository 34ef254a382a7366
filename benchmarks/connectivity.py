"""Likelihood-ratio tests of all pairs from one fit, compared with a new fit without each source.

    python benchmarks/connectivity.py [--neurons 15] [--steps 20000]

Prints the times, their ratio, and the largest difference between the statistics.
"""

import argparse
import time

import numpy as np

import glmbrian as glm

BASIS = glm.RaisedCosineBasis(4, 20, a=3.0, dt=0.5)


def draw(n, n_steps, rng, rate=0.02):
    """Draw the trains of neurons with sparse coupling and a refractory period."""
    weights = rng.normal(0, 0.5, (n, n, 4)) * (rng.random((n, n, 1)) < 0.15)
    coupling = BASIS.kernels(weights)[:, :, ::-1]
    feedback = BASIS.kernels(np.tile([-4.0, 0, 0, 0], (n, 1)))[:, ::-1]
    trains = np.zeros((n_steps + BASIS.window, n), dtype=np.uint8)
    for t in range(BASIS.window, len(trains)):
        past = trains[t - BASIS.window : t].astype(float)
        u = np.log(rate / (1 - rate)) + np.einsum("lj,jil->i", past, coupling)
        u += np.einsum("li,il->i", past, feedback)
        trains[t] = rng.random(n) < 1 / (1 + np.exp(-u))
    return trains[BASIS.window :]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neurons", type=int, default=15)
    parser.add_argument("--steps", type=int, default=20_000)
    options = parser.parse_args()
    n = options.neurons
    y = draw(n, options.steps, np.random.default_rng(0))
    data = y, {"coupling": y}
    kept = ~np.eye(n, dtype=bool)

    def fit(without=None):
        pairs = kept.copy()
        if without is not None:
            pairs[without] = False
        connect = {"coupling": pairs.nonzero()}
        return glm.fit_population(*data, {"coupling": BASIS}, BASIS, connect=connect, tol=1e-4)

    whole = fit()
    started = time.perf_counter()
    found = whole.connectivity(test="likelihood-ratio")
    together = time.perf_counter() - started
    started = time.perf_counter()
    others = np.array([fit(j).log_likelihoods(*data) for j in range(n)])
    apart = time.perf_counter() - started
    want = 2 * (whole.log_likelihoods(*data) - others)
    print(
        f"{n} neurons, {options.steps} steps: all pairs from one fit {together:.1f} s, new fits {apart:.1f} s"
    )
    print(
        f"ratio {apart / together:.1f}, largest difference {np.abs(found.statistic - want)[kept].max():.2g}"
    )


if __name__ == "__main__":
    main()
