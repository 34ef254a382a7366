"""Fits that run away when they are simulated freely, and what `stable=True` makes of them.

    python benchmarks/stability.py [--fits 100] [--steps 1000000]

True models of one neuron and of three excite themselves and each other after a refractory time, and are
stable. Recordings are short, so that many fits are not. Those that run away in a free
simulation are stabilised (as `fit_population(stable=True)` does), and simulated for ten times as long;
both are scored on data that neither has seen.
"""

import argparse
import time
import warnings

import numpy as np

import glmbrian as glm

BASIS = glm.RaisedCosineBasis(6, 80, a=4.0, dt=0.3)
SHORT = glm.RaisedCosineBasis(4, 40, a=4.0, dt=0.3)

NOT_ITSELF = {"coupling": "i != j"}

#: Rates are means over so many steps.
SPAN = 1000


def true_models(rng, n, count):
    """Return populations that excite themselves as much as is stable, in a simulation as well."""
    found = []
    while len(found) < count:
        candidates = [candidate(rng, n) for _ in range(count)]
        trains = simulate(candidates, 20 * SPAN, rng)
        rates = trains.mean(axis=1)
        largest = trains.reshape(len(trains), -1, SPAN, n).mean(axis=2).max(axis=1)
        good = (rates > 0.008) & (rates < 0.06) & (largest < 5 * rates)
        found += [population for population, is_good in zip(candidates, good.all(axis=1)) if is_good]
    return found[:count]


def candidate(rng, n):
    """Return a population whose excitation is scaled to a gain below 1."""
    rising = rng.uniform(0, 1, (n, 4))
    coupling = rng.uniform(-0.4, 0.6, (n, n, 4)) * (rng.random((n, n, 1)) < 0.7)
    coupling[np.arange(n), np.arange(n)] = 0.0
    falling = np.column_stack([rng.uniform(-5, -3, n), rng.uniform(-2, 0, n)])
    bias, target = rng.uniform(-4.6, -3.8, n), rng.uniform(0.5, 0.85)
    low, high = 0.0, 4.0
    for _ in range(12):
        scale = (low + high) / 2
        population = glm.GLMPopulation(
            bias,
            {"coupling": SHORT},
            {"coupling": np.where(coupling > 0, scale, 1.0) * coupling},
            BASIS,
            np.hstack([falling, scale * rising]),
        )
        if population.is_stable(rates=0.02).gain < target:
            low = scale
        else:
            high = scale
    return population


def simulate(populations, n_steps, rng, watch=None):
    """Simulate populations of one size side by side: shape (populations, n_steps, n), as uint8.

    With `watch`, return instead the largest mean over `SPAN` steps of each neuron, (populations, n).
    """
    n_pop, n = len(populations), populations[0].n
    window = max(BASIS.window, SHORT.window)
    kernels = np.zeros((n, n_pop, window, n))  # by source
    for number, population in enumerate(populations):
        kernels[:, number, : SHORT.window] = population.kernel("coupling").transpose(0, 2, 1)
        kernels[range(n), number, : BASIS.window, range(n)] += population.feedback_kernels()
    bias = np.array([population.bias for population in populations])
    future = np.zeros((SPAN + window, n_pop, n))
    trains, largest = [], np.zeros((n_pop, n))
    for _ in range(0, n_steps, SPAN):
        future[:window] = future[SPAN:]
        future[window:] = 0.0
        # A spike is where the potential is above the logit of a uniform number.
        uniform = rng.random((SPAN, n_pop, n))
        threshold = np.log(uniform) - np.log1p(-uniform) - bias
        spikes = np.empty((SPAN, n_pop, n), dtype=bool)
        for t in range(SPAN):
            fired = spikes[t] = future[t] > threshold[t]
            if fired.any():
                for j in range(n):
                    which = fired[:, j].nonzero()[0]
                    if which.size:
                        future[t + 1 : t + 1 + window, which] += kernels[j, which].swapaxes(0, 1)
        largest = np.maximum(largest, spikes.mean(axis=0))
        if watch is None:
            trains.append(spikes.astype(np.uint8))
    if watch is not None:
        return largest
    return np.concatenate(trains).swapaxes(0, 1)[:, :n_steps]


def runaways(rng, n, count, n_fitted, n_tried, n_held_out, at_once=120):
    """Return fits that exceed their largest rate in a simulation, with what they were fitted to.

    For each the fit, its data, held-out data, its `Stability`, and the true model.
    """
    found, n_fits, n_called = [], 0, [0, 0]
    while len(found) < count:
        models = true_models(rng, n, at_once)
        trains = simulate(models, n_fitted + n_held_out, rng)
        fits = []
        for model, train in zip(models, trains):
            y, held_out = train[:n_fitted], train[n_fitted:]
            if y.sum(axis=0).min() < 5:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fit = fit_to(y)
            is_stable = fit.is_stable(y.mean(axis=0))
            fits.append((fit, y, held_out, is_stable, model))
        largest = simulate([fit[0] for fit in fits], n_tried, rng, watch=True)
        ran = [bool(np.any(top > each[3].max_rate)) for top, each in zip(largest, fits)]
        n_fits += len(fits)
        for has_run, each in zip(ran, fits):
            n_called[has_run] += not each[3]
        found += [each for has_run, each in zip(ran, fits) if has_run]
    called = f"{n_called[1]} of {len(found)} were called unstable beforehand"
    print(f"{n} neurons: {len(found)} of {n_fits} fits ran away, {called};", end=" ")
    print(f"so were {n_called[0]} of the {n_fits - len(found)} others", flush=True)
    return found[:count]


def fit_to(y, **options):
    return glm.fit_population(
        y, {"coupling": y}, {"coupling": SHORT}, BASIS, penalty=0.1, connect=NOT_ITSELF, **options
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=100)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--fitted", type=int, default=800, help="steps of a recording")
    parser.add_argument("--held-out", type=int, default=100_000)
    parser.add_argument("--bound", type=float, default=0.7, help="largest gain")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    losses, above, n_over, worst, seconds = [], [], 0, 0.0, 0.0
    n_of = {1: options.fits // 2, 3: options.fits - options.fits // 2}
    for n, count in n_of.items():
        fits = runaways(rng, n, count, options.fitted, options.steps // 10, options.held_out)
        started = time.process_time()
        stable = [fit.stabilised(y, {"coupling": y}, bound=options.bound) for fit, y, *_ in fits]
        seconds += time.process_time() - started
        for (fit, y, held_out, _, model), other in zip(fits, stable):
            above.append(model.is_stable(y.mean(axis=0)).gain > options.bound)
            inputs = {"coupling": held_out}
            spikes = held_out.sum(axis=0)
            bits = [model.score(held_out, inputs) @ spikes / spikes.sum() for model in (fit, other)]
            losses.append(bits[0] - bits[1])
        largest = simulate(stable, options.steps, rng, watch=True)
        parts = np.array([(top / each[3].max_rate).max() for top, each in zip(largest, fits)])
        n_over += int((parts > 1).sum())
        print(f"highest rates as parts of the bound: {np.sort(parts)[-6:].round(2)}")
        worst = max(worst, parts.max())
        unstable = sum(not other.is_stable(each[1].mean(axis=0)) for other, each in zip(stable, fits))
        print(f"{n} neurons: stabilised; {unstable} still called unstable", flush=True)
    losses, above = np.array(losses), np.array(above)
    lost = losses > 0.01
    print(f"{n_over} of {options.fits} stabilised fits exceeded their bound in {options.steps} steps;")
    print(f"the highest rate over {SPAN} steps was {worst:.2f} of the bound")
    error = losses.std(ddof=1) / np.sqrt(losses.size)
    print(
        f"held-out loss, bits a spike: mean {losses.mean():.4f} +- {error:.4f}, "
        f"median {np.median(losses):.4f}, largest {losses.max():.4f}; "
        f"{lost.sum()} of {losses.size} lost more than 0.01"
    )
    print(
        f"the true model's own gain was above {options.bound} for {above[lost].sum()} of the {lost.sum()} "
        f"that lost more, and for {above[~lost].sum()} of the {(~lost).sum()} others"
    )
    print(f"{seconds / options.fits:.2f} CPU seconds a fit to stabilise")


if __name__ == "__main__":
    main()
