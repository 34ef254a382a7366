"""Pairs that look connected because they share an input, and what remains when it is in the model.

    python benchmarks/common_input.py [--seeds 20] [--trials 60] [--output FILE]

Three neurons, of which the first excites the second, share a stimulus, a slow drift over the session and a state
that switches between up and down.  For each set of common inputs in the model, the table counts over seeds which of
the six pairs are significant (at a false discovery rate of 1%).  With --output, each seed is written to a JSON file
as soon as it is done, and seeds that are in the file are not run again.
"""

import argparse
import json
from pathlib import Path

import brian2 as b2
import numpy as np
from brian2 import ms

import glmbrian as glm

N, N_STEPS = 3, 1000
BASIS = glm.RaisedCosineBasis(n_basis=4, window=30, a=3.0, dt=0.5)
#: One lag, for inputs that are not spikes.
NOW = glm.IndicatorBasis(1)

MODELS = {
    "coupling alone": (),
    "and stimulus": ("stimulus",),
    "and stimulus, drift": ("stimulus", "drift"),
    "and stimulus, state": ("stimulus", "state"),
    "and stimulus, drift, noisy state": ("stimulus", "drift", "noisy state"),
    "and stimulus, drift, state": ("stimulus", "drift", "state"),
}


def bumps(n_steps, width):
    """Return smooth functions of time, one every `width` steps, shape (n_steps, n)."""
    centres = np.arange(0, n_steps + 1, width)
    return np.exp(-0.5 * ((np.arange(n_steps)[:, np.newaxis] - centres) / (0.6 * width)) ** 2)


def simulate(seed, n_trials):
    """Return spikes, shape (n_trials * N_STEPS, N), and the common inputs that a model may have."""
    random = np.random.default_rng(seed)
    trial = np.arange(n_trials) / n_trials
    drift = 0.8 * np.sin(2 * np.pi * trial + random.uniform(0, 2 * np.pi))
    switches = random.random((n_trials, N_STEPS)) < 1 / 200
    state = (np.cumsum(switches, axis=1) + random.integers(0, 2, (n_trials, 1))) % 2
    stimulus = np.exp(-0.5 * ((np.arange(N_STEPS) - 300) / 60) ** 2)
    common = drift[:, np.newaxis] + 1.5 * (state - 0.5) + stimulus

    # All trials at once, as separate neurons: trial 0's three, trial 1's three, ...
    b2.defaultclock.dt = 1 * ms
    drive = b2.TimedArray(np.repeat(common.T, N, axis=1), dt=1 * ms)
    neurons = glm.GLMNeurons(
        N * n_trials, {"coupling": BASIS}, feedback_basis=BASIS, drive=drive, random_state=seed
    )
    neurons.bias = np.tile([-4.0, -4.0, -3.8], n_trials)
    neurons.feedback_weights = [-5.0, -2.0, 0.0, 0.0]
    lateral = glm.GLMSynapses(neurons, neurons, "coupling", f"i % {N} == 0 and j == i + 1")
    lateral.w = [1.0, 0.8, 0.4, 0.0]
    spikes = b2.SpikeMonitor(neurons)
    b2.Network(neurons, lateral, spikes).run(N_STEPS * ms)
    trains = np.zeros((N_STEPS, N * n_trials), dtype=np.uint8)
    trains[np.round(spikes.t / ms).astype(int), np.array(spikes.i)] = 1
    outputs = trains.reshape(N_STEPS, n_trials, N).swapaxes(0, 1).reshape(-1, N)

    slow = np.cos(np.pi * np.outer(trial + 0.5 / n_trials, np.arange(1, 7)))
    known = {
        "stimulus": np.tile(bumps(N_STEPS, 100), (n_trials, 1)),
        "drift": np.repeat(slow, N_STEPS, axis=0),
        "state": state.reshape(-1, 1).astype(float),
    }
    # As guessed from another signal, which is wrong in a fifth of all steps, in stretches of 50.
    wrong = np.repeat(random.random((len(outputs) // 50, 1)) < 0.2, 50, axis=0)
    known["noisy state"] = np.abs(known["state"] - wrong)
    return outputs, known


def significant_pairs(outputs, known, names):
    """Return which pairs are significant with these common inputs in the model, shape (N, N)."""
    fit = glm.fit_population(
        outputs,
        {"coupling": outputs, **{name.replace(" ", "_"): known[name] for name in names}},
        {"coupling": BASIS, **{name.replace(" ", "_"): NOW for name in names}},
        feedback_basis=BASIS,
        connect={"coupling": "i != j"},
        epochs=[(start, start + N_STEPS) for start in range(0, len(outputs), N_STEPS)],
        dt=1 * ms,
    )
    return fit.connectivity("coupling").significant(0.01)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    b2.prefs.codegen.target = "numpy"
    rows = []
    if options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text())
    done = {(row["seed"], row["trials"]) for row in rows}
    for seed in range(options.seeds):
        if (seed, options.trials) in done:
            continue
        outputs, known = simulate(seed, options.trials)
        pairs = {}
        for model, names in MODELS.items():
            sources, targets = np.nonzero(significant_pairs(outputs, known, names))
            pairs[model] = [f"{i}-{j}" for i, j in zip(sources.tolist(), targets.tolist())]
        rows.append({"seed": seed, "trials": options.trials, "pairs": pairs})
        if options.output is not None:
            options.output.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n")
    chosen = [row["pairs"] for row in rows if row["trials"] == options.trials][: options.seeds]
    for model in MODELS:
        found = sum("0-1" in pairs[model] for pairs in chosen)
        false = [len(set(pairs[model]) - {"0-1"}) for pairs in chosen]
        exact = sum(pairs[model] == ["0-1"] for pairs in chosen)
        print(
            f"{model}: true pair found in {found} of {len(chosen)}, false pairs {np.mean(false):.2f} of 5, "
            f"exactly the true one in {exact}"
        )


if __name__ == "__main__":
    main()
