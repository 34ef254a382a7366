"""A simulated second of coupled GLM neurons: the package, and a NumPy loop of a few lines.

    python benchmarks/coupled_simulation.py [--neurons 100 1000] [--density 1.0 0.1] [--rounds 3]
        [--beside PYTHON]

Prints CPU seconds per simulated second (steps of 1 ms; without generating or compiling code), and
the time of each relative to the NumPy loop.  All simulate the same network: kernels of 100 lags
from 8 raised cosines, self-coupling included, at rates of about 10 Hz.  They take turns, so that a
busy machine slows all of them.  PYTHON is that of an environment with another version of the package,
which then takes its turns in processes of its own.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from brian2 import Network, SpikeMonitor, device, ms, prefs, second, set_device

import glmbrian as glm

# Peaks from the first lag to the 60th; the last function reaches the end of the window.
BASIS = glm.RaisedCosineBasis(8, 100, a=4.3, c=1.0, dt=0.2)


class Coupled:
    """The parameters of a network: bias (n,), weights (n, n, K) and where there are synapses."""

    def __init__(self, n, density):
        rng = np.random.default_rng(0)
        self.n = n
        self.connected = rng.random((n, n)) < density
        np.fill_diagonal(self.connected, True)
        # A neuron's inputs fluctuate equally, whatever their number.
        scale = 0.3 / np.sqrt(n * density)
        self.weights = scale * rng.normal(size=(n, n, BASIS.n_basis))
        # A spike makes the neuron itself less likely to spike again.
        self.weights[np.arange(n), np.arange(n)] = -1.0
        self.weights[~self.connected] = 0
        self.bias = np.full(n, -3.9)

    def network(self):
        neurons = glm.GLMNeurons(self.n, {"coupling": BASIS}, random_state=1, dt=1 * ms)
        synapses = glm.GLMSynapses(neurons, neurons, "coupling", np.nonzero(self.connected))
        neurons.bias = self.bias
        synapses.w = self.weights
        monitor = SpikeMonitor(neurons, record=False)
        return TimedNetwork(neurons, synapses, monitor), monitor


class TimedNetwork(Network):
    """A network that measures the CPU time between the preparation of a run and its end."""

    def before_run(self, *args, **kwds):
        super().before_run(*args, **kwds)
        self.started = time.process_time()

    def after_run(self):
        self.cpu_seconds = time.process_time() - self.started
        super().after_run()


class NumpyLoop:
    """Adds the kernels of what has fired to a ring of future potentials."""

    name = "NumPy loop"

    def __init__(self, coupled):
        # (source, lag, target), so that what a spike adds is contiguous.
        self.kernels = np.ascontiguousarray(BASIS.kernels(coupled.weights).transpose(0, 2, 1))
        self.bias = coupled.bias
        self.rng = np.random.default_rng(1)
        self.ring = np.zeros((BASIS.window, coupled.n))
        self.step = 0

    def simulate(self, n_steps):
        kernels, ring, rng, bias, count = self.kernels, self.ring, self.rng, self.bias, 0
        started = time.process_time()
        window, n = ring.shape
        for step in range(self.step, self.step + n_steps):
            now = step % window
            u = bias + ring[now]
            ring[now] = 0
            spiked = np.flatnonzero(rng.random(n) < 1 / (1 + np.exp(-u)))
            # The first lag is the next step.
            left = window - now - 1
            for source in spiked:
                ring[now + 1 :] += kernels[source, :left]
                ring[: now + 1] += kernels[source, left:]
            count += len(spiked)
        self.step += n_steps
        return time.process_time() - started, count


class Runtime:
    """The package on Brian's runtime device."""

    def __init__(self, coupled, target):
        self.name = f"glmbrian, {target}"
        prefs.codegen.target = target
        self.target = target
        self.network, self.monitor = coupled.network()

    def simulate(self, n_steps):
        prefs.codegen.target = self.target
        before = self.monitor.num_spikes
        self.network.run(n_steps * ms, namespace={})
        return self.network.cpu_seconds, self.monitor.num_spikes - before


class Standalone:
    """The package in a C++ program, which measures itself."""

    name = "glmbrian, C++ standalone"

    def __init__(self, coupled, n_steps, folder):
        self.folder = folder
        set_device("cpp_standalone", directory=folder, build_on_run=False)
        device.reinit()
        device.activate(directory=folder, build_on_run=False)
        prefs.devices.cpp_standalone.extra_make_args_unix = ["-j2"]
        network, monitor = coupled.network()
        n_spikes = device.get_array_name(monitor.variables["N"])
        device.insert_code("before_network_run", "const std::clock_t glm_started = std::clock();")
        device.insert_code(
            "after_network_run",
            'std::ofstream("measured") << double(std::clock() - glm_started) / CLOCKS_PER_SEC'
            f' << " " << brian::{n_spikes}[0];',
        )
        network.run(n_steps * ms, namespace={})
        device.build(directory=folder, compile=True, run=False, with_output=False)
        set_device("runtime")

    def simulate(self, n_steps):
        subprocess.run(["./main"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        cpu, spikes = Path(self.folder, "measured").read_text().split()
        return float(cpu), int(spikes)


class Elsewhere:
    """One of the others, in a process of another environment."""

    def __init__(self, python, name, n, density, n_steps):
        command = [python, "-W", "ignore", __file__, "--serve", name, "--steps", str(n_steps)]
        self.process = subprocess.Popen(
            [*command, "--neurons", str(n), "--density", str(density)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        )
        self.name = f"other version, {self._answer()}"

    def simulate(self, n_steps):
        self.process.stdin.write(f"{n_steps}\n")
        self.process.stdin.flush()
        cpu, spikes = self._answer().split()
        return float(cpu), int(spikes)

    def _answer(self):
        for line in self.process.stdout:
            if line.startswith(_ANSWER):
                return line.removeprefix(_ANSWER).strip()
        raise RuntimeError("the other version stopped")

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def serve(name, n, density, n_steps):
    """Simulate as often as lines with numbers of steps arrive."""
    with tempfile.TemporaryDirectory() as folder:
        contender = MAKERS[name](Coupled(n, density), n_steps, folder)
        print(_ANSWER, contender.name.removeprefix("glmbrian, "), flush=True)
        for line in sys.stdin:
            print(_ANSWER, *contender.simulate(int(line)), flush=True)


#: What begins the lines of an answer, as Brian may print others.
_ANSWER = "coupled_simulation:"

MAKERS = {
    "loop": lambda coupled, n_steps, folder: NumpyLoop(coupled),
    "cpp": lambda coupled, n_steps, folder: Standalone(coupled, n_steps, folder),
    "cython": lambda coupled, n_steps, folder: Runtime(coupled, "cython"),
    "numpy": lambda coupled, n_steps, folder: Runtime(coupled, "numpy"),
}


def measure(n, density, rounds, n_steps, chosen, beside):
    coupled = Coupled(n, density)
    with tempfile.TemporaryDirectory() as folder:
        contenders = [MAKERS[name](coupled, n_steps, folder) for name in chosen]
        others = [
            Elsewhere(beside, name, n, density, n_steps) for name in chosen if beside and name != "loop"
        ]
        contenders += others
        seconds = {contender.name: [] for contender in contenders}
        rates = {}
        for _ in range(rounds):
            for contender in contenders:
                cpu, spikes = contender.simulate(n_steps)
                seconds[contender.name].append(cpu / (n_steps * float(ms / second)))
                rates[contender.name] = spikes / (n * n_steps * float(ms / second))
        for other in others:
            other.close()
    print(f"\n{n} neurons, {density:.0%} of all pairs connected")
    print(f"{'':32}{'CPU s a simulated s':>32}{'relative':>10}{'Hz':>6}")
    base = statistics.median(next(iter(seconds.values())))
    for name, values in seconds.items():
        median = statistics.median(values)
        spread = f"{median:.4f} ({min(values):.4f} to {max(values):.4f})"
        own = seconds.get(name.replace("other version, ", "glmbrian, "))
        gain = f"{median / statistics.median(own):6.2f} times ours" if name.startswith("other") else ""
        print(f"{name:32}{spread:>32}{median / base:10.3f}{rates[name]:6.1f} {gain}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--neurons", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--density", type=float, nargs="+", default=[1.0, 0.1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument(
        "--only", nargs="+", default=["loop", "cpp", "cython", "numpy"], help="loop, cpp, cython, numpy"
    )
    parser.add_argument("--beside", metavar="PYTHON", help="of an environment with another version")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.neurons[0], options.density[0], options.steps)
    for n in options.neurons:
        for density in options.density:
            measure(n, density, options.rounds, options.steps, options.only, options.beside)


if __name__ == "__main__":
    main()
