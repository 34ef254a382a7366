"""Train recurrent hidden neurons to match a probe to an earlier cue, beside a feedforward control.

    python benchmarks/delayed_match.py [--device cpp_standalone] [--presentations 16000] [--seeds 3]

A presentation has 28 steps: a cue (A or B) of 4 steps, a gap of 16, a probe (A or B) of 4 and a
response of 4.  Output 1 should spike first in the response if the probe is the same as the cue,
output 0 if not.  Kernels have 6 lags, so through a hidden layer an input affects the outputs for
at most 12 steps: only hidden neurons that excite each other can keep the cue until the response.
The control has the same hidden layer without synapses among its neurons.

For each seed this prints the share of 200 new trials in which the right output spikes first, for
both networks.  A trial without an output spike counts half, as a guess.
"""

import argparse
import os
from typing import Any

import numpy as np
from brian2 import Network, defaultclock, device, ms, prefs, set_device

import glmbrian as glm

#: Steps of a cue, of a probe and of a response; the gap has four times as many.
PART = 4
N_PARTS = 7
N_STEPS, RESPONSE = N_PARTS * PART, (N_PARTS - 1) * PART
INPUTS_PER_SYMBOL, N_HIDDEN = 4, 80
N_TEST = 200


def trials(n, random):
    """Return images, shape (n * N_PARTS, n_inputs), and labels, shape (n,): 1 for a match."""
    cue, probe = random.integers(0, 2, (2, n))
    parts = np.zeros((n, N_PARTS, 2, INPUTS_PER_SYMBOL))
    parts[np.arange(n), 0, cue] = 1.0
    parts[np.arange(n), 5, probe] = 1.0
    return parts.reshape(n * N_PARTS, -1), (cue == probe).astype(int)


class DelayedMatch:
    """A network, its trainer, and a test on `n_test` trials that follows the training."""

    def __init__(
        self,
        seed: int,
        n_presentations: int,
        recurrent: bool = True,
        n_test: int = N_TEST,
        **options: Any,
    ) -> None:
        random = np.random.default_rng(seed)
        images, self.labels = trials(n_presentations + n_test, random)
        self.is_test = np.arange(len(self.labels)) >= n_presentations
        basis = glm.ExponentialBasis([1.5, 4.0], 6)
        encoder = glm.RateEncoder(images, n_steps=PART, random_state=seed, stream=f"inputs_{recurrent}")
        self.hidden = glm.GLMNeurons(
            N_HIDDEN,
            {"input": basis, "recurrent": basis},
            random_state=seed,
            stream=f"hidden_{recurrent}",
        )
        self.outputs = glm.GLMNeurons(
            2, basis, random_state=seed, stream=f"outputs_{recurrent}",
            drive=f"-30 * int(timestep(t, dt) % {N_STEPS} < {RESPONSE})",  # silent until the response
        )  # fmt: skip
        self.hidden.bias = self.outputs.bias = -2.0
        self.synapses = [
            glm.GLMSynapses(encoder, self.hidden, "input"),
            glm.GLMSynapses(self.hidden, self.outputs),
        ]
        scales = [1.5, 0.05]
        if recurrent:
            self.synapses.append(glm.GLMSynapses(self.hidden, self.hidden, "recurrent"))
            # Activity then nearly sustains itself, so that errors reach back to the cue.
            scales.append(2.0 / np.sqrt(N_HIDDEN))
        for synapses, scale in zip(self.synapses, scales):
            synapses.w = random.normal(scale=scale, size=synapses.w.shape)
        self.trainer = glm.Trainer(
            self.outputs, self.synapses, N_STEPS, self.labels, is_training=~self.is_test,
            **{"learning_rate": 0.2, "batch_size": 32, **options},
        )  # fmt: skip
        self.parts = [encoder, self.hidden, self.outputs, *self.synapses, self.trainer]

    def parameters(self) -> list[np.ndarray]:
        biases = [np.array(group.bias) for group in (self.hidden, self.outputs)]
        return [synapses.w.copy() for synapses in self.synapses] + biases

    def decisions(self) -> np.ndarray:
        """Return what each test trial decided for: the output that spikes first, or -1 for none."""
        return self.trainer.decisions[self.is_test]

    def accuracy(self) -> float:
        """Return the share of right decisions in the test; no decision counts half, as a guess."""
        decisions = self.decisions()
        return float(np.mean(decisions == self.labels[self.is_test]) + np.mean(decisions == -1) / 2)


def simulate(place: str, networks: list[DelayedMatch]) -> None:
    """Train and test several networks side by side."""
    duration = max(network.trainer.duration for network in networks)
    Network([part for network in networks for part in network.parts]).run(duration, namespace={})
    if place == "cpp_standalone":
        device.build(directory=None, with_output=False)


def choose(place: str) -> None:
    """Simulate on this device, in steps of a millisecond."""
    if place == "cpp_standalone":
        set_device("cpp_standalone", directory=None, build_on_run=False)
        # Without a bound, Brian starts a compiler for every file.
        prefs.devices.cpp_standalone.extra_make_args_unix = [f"-j{os.cpu_count()}"]
    else:
        prefs.codegen.target = "numpy"
    defaultclock.dt = 1 * ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpp_standalone", "runtime"), default="cpp_standalone")
    parser.add_argument("--presentations", type=int, default=16000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    choose(options.device)
    kinds = (True, False)
    networks = {
        (seed, recurrent): DelayedMatch(seed, options.presentations, recurrent)
        for seed in range(options.seeds)
        for recurrent in kinds
    }
    simulate(options.device, list(networks.values()))
    for seed in range(options.seeds):
        recurrent, control = (networks[seed, kind].accuracy() for kind in kinds)
        print(f"seed {seed}: recurrent {recurrent:.3f}, without recurrence {control:.3f}", flush=True)


if __name__ == "__main__":
    main()
