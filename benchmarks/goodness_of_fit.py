"""Do the tests of a fit keep what they promise? On recordings drawn from true models.

    python benchmarks/goodness_of_fit.py [--recordings 1000]

Prints how often the Kolmogorov-Smirnov test rejects the true model (5% expected), the model without
the neuron's history, and, for comparison, the true model if the correction for discrete time
is left out; and how often the 95% intervals of fits hold the true parameters.
"""

import argparse
import time

import numpy as np
from scipy import stats

import glmbrian as glm

BASIS = glm.RaisedCosineBasis(3, 12, a=3.0, dt=0.5)
N_STEPS, N_TEST = 4000, 1500


def true_model(rng):
    """Return a neuron with a refractory time and a stimulus, which fires often in long steps."""
    return glm.GLMPopulation(
        rng.uniform(-0.5, 0.5, 1),
        BASIS,
        rng.normal(0, 0.4, (1, 1, 3)),
        BASIS,
        np.column_stack([rng.uniform(-4, -2.5), rng.uniform(-2, -0.5), rng.uniform(-0.3, 0.3)]),
    )


def draw(populations, x, rng):
    """Draw the trains of several populations of one neuron side by side: (steps, populations)."""
    window = BASIS.window
    drive = np.column_stack([p.bias + p.drive(own) for p, own in zip(populations, x)])
    feedback = np.concatenate([p.feedback_kernels() for p in populations])[:, ::-1].T
    trains = np.zeros((window + len(drive), len(populations)))
    uniform = rng.random(drive.shape)
    for t, u in enumerate(drive):
        u = u + np.einsum("lp,lp->p", trains[t : t + window], feedback)
        trains[window + t] = uniform[t] < 1 / (1 + np.exp(-u))
    return trains[window:].astype(np.uint8)


def undrawn_times(p, y):
    """Return rescaled times without the draws of where in its step a spike fell."""
    passed = np.append(0.0, np.cumsum(-np.log1p(-p)))
    return -np.expm1(-np.diff(passed[np.append(0, np.flatnonzero(y) + 1)]))


def share(name, counts, n, wanted):
    part = counts / n
    error = np.sqrt(part * (1 - part) / n)
    print(f"{name}: {part:.3f} +- {error:.3f} of {n} ({wanted})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recordings", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    n, rng = options.recordings, np.random.default_rng(options.seed)
    started = time.process_time()
    populations = [true_model(rng) for _ in range(n)]
    x = rng.normal(size=(n, N_STEPS, 1))
    trains = draw(populations, x, rng)
    spikes = trains[:N_TEST].sum(axis=0)
    print(
        f"{n} recordings; those tested have {spikes.min()} to {spikes.max()} spikes in {N_TEST} steps"
    )

    rejected = dict.fromkeys(["true", "without history", "without draws"], 0)
    held = {"bias": 0, "stimulus": np.zeros(3), "feedback": np.zeros(3)}
    for i, true in enumerate(populations):
        y, own = trains[:, [i]], x[i]
        test = slice(0, N_TEST)
        rejected["true"] += true.ks_test(y[test], own[test], random_state=i).rejected[0]
        # Fitted to other steps than it is tested on.
        driven = glm.fit_population(y[N_TEST:], own[N_TEST:], BASIS)
        rejected["without history"] += driven.ks_test(y[test], own[test], random_state=i).rejected[0]
        p = true.firing_probability(own[test], y[test])[:, 0]
        undrawn = undrawn_times(p, y[test, 0])
        rejected["without draws"] += stats.kstest(undrawn, "uniform").pvalue < 0.05

        fit = glm.fit_population(y, own, BASIS, BASIS)
        errors = fit.standard_errors(y, own)
        for name, got, wanted, error in [
            ("bias", fit.bias[0], true.bias[0], errors.bias[0]),
            ("stimulus", fit.weights["stimulus"], true.weights["stimulus"], errors.weights["stimulus"]),
            ("feedback", fit.feedback_weights, true.feedback_weights, errors.feedback_weights),
        ]:
            held[name] = held[name] + np.ravel(np.abs(got - wanted) <= 1.96 * error)

    share("KS test rejects the true model", rejected["true"], n, "0.05 expected")
    share("KS test rejects the model without history", rejected["without history"], n, "at least 0.8")
    share("without the correction the true model is rejected", rejected["without draws"], n, "too many")
    for name, counts in held.items():
        for k, count in enumerate(np.ravel(counts)):
            share(f"95% interval of {name} {k} holds the true value", count, n, "0.93 to 0.97")
    print(f"{(time.process_time() - started) / n:.3f} CPU seconds a recording")


if __name__ == "__main__":
    main()
