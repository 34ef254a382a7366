"""Long windows in C++ standalone: seconds to build, and cost per step.

    python benchmarks/long_window.py [--windows 8 40 100 500] [--n-basis 10]

A step costs at most window x n_basis multiplications per neuron, and none unless
something arrived.
"""

import argparse
import tempfile
import time

import numpy as np
from brian2 import Network, PoissonGroup, defaultclock, device, ms, set_device

import glmbrian as glm

N_NEURONS, N_INPUTS, N_STEPS = 10, 20, 200_000


def measure(window, n_basis):
    with tempfile.TemporaryDirectory() as folder:
        set_device("cpp_standalone", directory=folder, build_on_run=False)
        device.reinit()
        device.activate(directory=folder, build_on_run=False)
        defaultclock.dt = 0.2 * ms
        matrix = np.random.default_rng(0).normal(size=(window, n_basis))
        inputs = PoissonGroup(N_INPUTS, rates=0.05 / defaultclock.dt)
        neurons = glm.GLMNeurons(N_NEURONS, glm.CustomBasis(matrix))
        synapses = glm.GLMSynapses(inputs, neurons)
        synapses.w = 0.01
        started = time.perf_counter()
        Network(inputs, neurons, synapses).run(N_STEPS * defaultclock.dt, namespace={})
        device.build(directory=folder, run=False, with_output=False)
        built = time.perf_counter()
        device.run(directory=folder, with_output=False)
        ran = time.perf_counter()
    return built - started, (ran - built) / (N_STEPS * N_NEURONS)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--windows", type=int, nargs="+", default=[8, 40, 100, 500])
    parser.add_argument("--n-basis", type=int, default=10)
    options = parser.parse_args()
    print(f"{'lags':>6}{'build [s]':>12}{'ns per step and neuron':>24}{'ns per lag and basis':>22}")
    for window in options.windows:
        build, step = measure(window, options.n_basis)
        per_operation = step / (window * options.n_basis)
        print(f"{window:6}{build:12.1f}{step * 1e9:24.1f}{per_operation * 1e9:22.3f}", flush=True)


if __name__ == "__main__":
    main()
