"""Drift and state that neurons share, and the p values of their pairs without and with both in the model."""

import matplotlib.pyplot as plt
import numpy as np
from brian2 import Network, SpikeMonitor, TimedArray, ms, prefs

import glmbrian as glm

prefs.codegen.target = "numpy"
n_trials, n_steps, n, step = 40, 1000, 3, 1 * ms
random = np.random.default_rng(0)
trial = np.arange(n_trials) / n_trials
drift = 0.8 * np.sin(2 * np.pi * trial + 1)
changes = random.random((n_trials, n_steps)) < 1 / 200
state = (np.cumsum(changes, axis=1) + random.integers(0, 2, (n_trials, 1))) % 2
flash = np.exp(-0.5 * ((np.arange(n_steps) - 300) / 60) ** 2)
common = drift[:, np.newaxis] + 1.5 * (state - 0.5) + flash

basis = glm.RaisedCosineBasis(4, window=30 * ms, last_peak=10 * ms, dt=step)
drive = TimedArray(np.repeat(common.T, n, axis=1), dt=step)
neurons = glm.GLMNeurons(
    n * n_trials, {"coupling": basis}, feedback_basis=basis, drive=drive, random_state=0, dt=step
)
neurons.bias = np.tile([-4.0, -4.0, -3.8], n_trials)
neurons.feedback_weights = [-5, -2, 0, 0]
lateral = glm.GLMSynapses(neurons, neurons, "coupling", "i % 3 == 0 and j == i + 1")
lateral.w = [1.0, 0.8, 0.4, 0.0]
spikes = SpikeMonitor(neurons)
Network(neurons, lateral, spikes).run(n_steps * ms)
trains = glm.interop.Recording.from_monitor(spikes, 0 * ms, n_steps * ms).trains(step)
trains = trains.reshape(n_steps, n_trials, n).swapaxes(0, 1)
outputs = trains.reshape(-1, n)

centres = np.arange(0, n_steps + 1, 100)
bumps = np.exp(-0.5 * ((np.arange(n_steps)[:, np.newaxis] - centres) / 60) ** 2)
session = (np.arange(len(outputs)) // n_steps + 0.5) / n_trials
inputs = {
    "stimulus": np.tile(bumps, (n_trials, 1)),
    "drift": np.cos(np.pi * np.outer(session, np.arange(1, 7))),
    "state": state.reshape(-1, 1).astype(float),
}
p_values = []
for names in ((), ("stimulus",), ("stimulus", "drift"), ("stimulus", "drift", "state")):
    fit = glm.fit_population(
        outputs,
        {"coupling": outputs, **{name: inputs[name] for name in names}},
        {"coupling": basis, **dict.fromkeys(names, glm.IndicatorBasis(1))},
        feedback_basis=basis,
        connect={"coupling": "i != j"},
        epochs=[(start, start + n_steps) for start in range(0, len(outputs), n_steps)],
        dt=step,
    )
    p_values.append(fit.connectivity("coupling").p_value)

fig, (over_session, in_trial, tests) = plt.subplots(
    1, 3, figsize=(11, 3.4), layout="constrained", width_ratios=(1, 1, 1.3)
)
for unit in range(n):
    look = dict(color=str(0.3 * unit), linestyle=("-", "--", ":")[unit])
    over_session.plot(1 + np.arange(n_trials), 1000 * trains[:, :, unit].mean(axis=1), **look)
    psth = 1000 * trains[:, :, unit].reshape(n_trials, -1, 25).mean(axis=(0, 2))
    in_trial.plot(12.5 + 25 * np.arange(len(psth)), psth, label=f"neuron {unit}", **look)
over_session.set(xlabel="trial", ylabel="rate [Hz]", title="drift and state", ylim=(0, None))
in_trial.set(xlabel="time in the trial [ms]", title="stimulus (PSTH)", ylim=(0, None))
in_trial.legend(frameon=False, fontsize="small")
pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
for number, (i, j) in enumerate(pairs):
    heights = [max(p[i, j], 1e-40) for p in p_values]
    is_true = (i, j) == (0, 1)
    tests.plot(
        np.arange(4) + 0.04 * (number - 2.5),
        heights,
        marker="s" if is_true else "o",
        markersize=5,
        linewidth=0.8,
        color="black" if is_true else "tab:orange",
        label="true pair, 0 to 1" if is_true else ("the five others" if number == 1 else None),
    )
tests.axhline(0.01, color="0.5", linestyle="--", linewidth=1)
tests.set_yscale("log")
tests.set_xticks(range(4), ["coupling\nalone", "and\nstimulus", "and\ndrift", "and\nstate"])
tests.set(ylabel="p value (below 1e-40: 1e-40)", title="pairs, by what is in the model")
tests.legend(frameon=False, fontsize="small", loc="lower right", bbox_to_anchor=(1, 0.15))
