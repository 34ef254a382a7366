"""Fits of populations: time and memory beside scikit-learn and NeMoS, and for long recordings.

    python benchmarks/population_fit.py compare [--neurons 20] [--bins 200000] [--rounds 2] [--nemos]
    python benchmarks/population_fit.py long [--neurons 100] [--bins 100000 1000000] [--strength 50]
        [--effect 1.0]

`compare` fits the same coupled population with the package and with others, whose design
matrix is made by hand.  Each fit has a process of its own; rounds alternate between them.  `long` records
coupled neurons with known kernels in a C++ standalone program, fits them with and without a
group lasso, and says how well the weights tell which neurons are connected.  Seconds are
those of the clock and, as the machine may be busy, of the processor.  Memory is how much
the process grew during the fit.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import glmbrian as glm

RATE = 0.02  # spikes a step, about
BASIS = glm.RaisedCosineBasis(5, 50, a=2.2, c=1.0, dt=0.25)


def coupled(n, seed=0, density=0.1, effect=1.0):
    """Return a population in which a tenth of the pairs are connected, and these pairs.

    `effect` scales the weights of the connections, of which the largest are 0.3 to 0.6 in size if it is 1
    (less with more than 100 neurons).
    """
    rng = np.random.default_rng(seed)
    edges = rng.random((n, n)) < density
    np.fill_diagonal(edges, False)
    # Effects of both signs that fade within tens of steps, in all on the same scale in larger
    # populations; the biases make up for the mean input, so that all neurons fire at similar rates.
    size = rng.uniform(0.3, 0.6, (n, n)) * np.where(rng.random((n, n)) < 0.4, 1.0, -1.0)
    size *= effect * edges * min(1.0, np.sqrt(100 / n))
    weights = size[:, :, np.newaxis] * np.array([1.0, 0.8, 0.5, 0.2, 0.0])
    mean_input = RATE * (weights @ BASIS.matrix.sum(axis=0)).sum(axis=0)
    bias = np.log(RATE) + rng.uniform(-0.5, 0.5, n) - mean_input
    history = np.tile([-3.0, -1.0, -0.5, 0.0, 0.0], (n, 1))
    return glm.GLMPopulation(bias, {"coupling": BASIS}, {"coupling": weights}, BASIS, history), edges


def record(population, n_steps):
    """Return what the population does in a simulation, as a Recording."""
    from brian2 import Network, SpikeMonitor, defaultclock, device, ms, set_device

    defaultclock.dt = 1 * ms
    with tempfile.TemporaryDirectory() as folder:
        set_device("cpp_standalone", directory=folder, build_on_run=False)
        device.reinit()
        device.activate(directory=folder, build_on_run=False)
        neurons = population.neurons(dt=1 * ms, random_state=1)
        coupling = population.synapses(neurons, neurons, "coupling")
        monitor = SpikeMonitor(neurons)
        network = Network(neurons, coupling, monitor)
        network.run(n_steps * ms)
        device.build(directory=folder, with_output=False)
        recording = glm.interop.Recording.from_monitor(monitor, 0 * ms, n_steps * ms)
    set_device("runtime")
    return recording


def by_package(y):
    fitted = glm.fit_population(y, {"coupling": y}, {"coupling": BASIS})
    return fitted.fit_.log_likelihood.sum()


def matrix_by_hand(y):
    """Return the columns of all neurons and functions, as one would write it in a notebook."""
    columns = np.zeros((len(y), y.shape[1], BASIS.n_basis))
    for lag in range(1, BASIS.window + 1):
        columns[lag:] += y[:-lag, :, np.newaxis] * BASIS.matrix[lag - 1]
    return columns.reshape(len(y), -1)


def log_likelihood(u, y):
    return -np.logaddexp(0, np.where(y, -u, u)).sum()


def by_scikit_learn(y):
    from sklearn.linear_model import LogisticRegression

    X, total = matrix_by_hand(y), 0.0
    for train in y.T:
        model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-6).fit(X, train)
        total += log_likelihood(model.decision_function(X), train)
    return total


def by_nemos(y, solver="LBFGS"):
    import jax

    jax.config.update("jax_enable_x64", True)
    import nemos

    X = matrix_by_hand(y)
    model = nemos.glm.PopulationGLM(
        observation_model=nemos.observation_models.BernoulliObservations(),
        solver_name=solver,
        solver_kwargs={"maxiter": 1000},
    )
    model.fit(X, y.astype(float))
    u = X @ np.asarray(model.coef_) + np.asarray(model.intercept_)
    return log_likelihood(u, y)


FITS = {"glmbrian": by_package, "scikit-learn": by_scikit_learn, "NeMoS": by_nemos}


def measured(name, path):
    """Print the seconds, the memory and the log-likelihood of one fit."""
    y = np.load(path)
    # Import and compile, with little memory
    FITS[name]((np.random.default_rng(0).random((300, y.shape[1])) < 0.3).astype(np.uint8))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, processor = time.perf_counter(), time.process_time()
    value = FITS[name](y)
    result = {
        "clock": time.perf_counter() - clock,
        "processor": time.process_time() - processor,
        "memory": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024,
        "value": float(value),
    }
    print(json.dumps(result))


def compare(options):
    population, _ = coupled(options.neurons)
    y = record(population, options.bins).trains()
    n_spikes = int(y.sum())
    print(f"{options.neurons} neurons, {options.bins} bins, {n_spikes} spikes")
    names = ["glmbrian", "scikit-learn"] + ["NeMoS"] * options.nemos
    print(f"{'':14}{'clock [s]':>12}{'CPU [s]':>12}{'memory [MiB]':>14}{'nats a spike':>20}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "y.npy"
        np.save(path, y)
        for _ in range(options.rounds):
            for name in names:
                command = [sys.executable, "-W", "ignore", __file__, "one", name, str(path)]
                output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                found = json.loads(output.splitlines()[-1])
                print(
                    f"{name:14}{found['clock']:12.2f}{found['processor']:12.2f}{found['memory']:14.0f}"
                    f"{found['value'] / n_spikes:20.9f}",
                    flush=True,
                )


def long(options):
    from sklearn.metrics import roc_auc_score

    population, edges = coupled(options.neurons, effect=options.effect)
    pairs = ~np.eye(options.neurons, dtype=bool)
    print(
        f"{'bins':>10}{'spikes':>10}{'fit':>12}{'clock [s]':>12}{'CPU [s]':>12}{'memory [MiB]':>14}{'ROC area':>10}"
    )
    for n_steps in options.bins:
        recording = record(population, n_steps)
        n_spikes = sum(map(len, recording.times))
        penalties = {
            "plain": {},
            "group lasso": dict(penalty="group", strength=options.strength * np.sqrt(n_steps / 1e6)),
        }
        for name in options.fits:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            clock, processor = time.perf_counter(), time.process_time()
            fitted = glm.fit_population(
                recording,
                {"coupling": recording},
                {"coupling": BASIS},
                feedback_basis=BASIS,
                tol=options.tol,
                verbose=True,
                **penalties[name],
            )
            clock, processor = time.perf_counter() - clock, time.process_time() - processor
            memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            found = np.linalg.norm(fitted.weights["coupling"], axis=2)
            area = roc_auc_score(edges[pairs], found[pairs])
            print(
                f"{n_steps:10}{n_spikes:10}{name:>12}{clock:12.1f}{processor:12.1f}{memory:14.0f}{area:10.4f}"
                f"   {sorted(set(fitted.fit_.status))} in {fitted.fit_.n_steps.max()} steps",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("compare")
    command.add_argument("--neurons", type=int, default=20)
    command.add_argument("--bins", type=int, default=200_000)
    command.add_argument("--rounds", type=int, default=2)
    command.add_argument("--nemos", action="store_true")
    command = commands.add_parser("long")
    command.add_argument("--neurons", type=int, default=100)
    command.add_argument("--bins", type=int, nargs="+", default=[100_000, 1_000_000])
    command.add_argument("--strength", type=float, default=50.0, help="with a million bins")
    command.add_argument("--effect", type=float, default=1.0, help="scale of the connections")
    command.add_argument("--tol", type=float, default=1e-4)
    command.add_argument(
        "--fits", nargs="+", choices=["plain", "group lasso"], default=["plain", "group lasso"]
    )
    command = commands.add_parser("one")
    command.add_argument("name", choices=list(FITS))
    command.add_argument("path")
    options = parser.parse_args()
    if options.command == "one":
        measured(options.name, options.path)
    else:
        {"compare": compare, "long": long}[options.command](options)


if __name__ == "__main__":
    main()
