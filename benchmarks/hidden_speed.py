"""Time training with a hidden layer, beside hand-tuned C++ and PyTorch, which take turns.

    python benchmarks/hidden_speed.py [--hidden 100] [--rounds 5] [--seconds 2]

The network has 784 inputs, one hidden layer and ten outputs, 16 steps, and two exponential
kernels per synapse; training is straight-through, in batches of one, on the 10,000 images of
the package.  Both programs compute in double precision.  PyTorch, if it is installed, trains
the same network with automatic derivatives in single precision, in batches; the best counts.
"""

import argparse
import ctypes
import statistics
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.ctypeslib import ndpointer

import glmbrian as glm
from glmbrian.core.rate_code import LEVEL_OF_BYTE

N_STEPS, TAUS, RATE = 16, [1.5, 4.5], 2e-2
FLAGS = ["-std=c++17", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fPIC"]
BATCHES = (16, 64, 256, 1024)


class Package:
    """`GLMClassifier` in C++ standalone."""

    name = "glmbrian"

    def __init__(self, digits, n_hidden):
        self.digits, self.n_hidden = digits, n_hidden

    def microseconds(self, n_epochs, seed):
        classifier = glm.GLMClassifier(
            hidden=(self.n_hidden,),
            n_steps=N_STEPS,
            basis=glm.ExponentialBasis(TAUS, N_STEPS),
            learning_rate=RATE,
            n_epochs=n_epochs,
            random_state=seed,
            verbose=False,
        )
        classifier.fit(self.digits.X_train, self.digits.y_train)
        self.log_likelihood = classifier.history_[-1]
        timing = classifier.timing_
        return 1e6 * timing["run_seconds"] / timing["presentations"]


class HandTuned:
    """C++ that does nothing else: hidden/kernel.cpp."""

    name = "hand-tuned C++"

    def __init__(self, digits, n_hidden):
        images = digits.X_train
        image, pixel = np.nonzero(images)
        self.begins = np.searchsorted(image, np.arange(len(images) + 1)).astype(np.int64)
        self.active, self.level = pixel.astype(np.int32), LEVEL_OF_BYTE[images[image, pixel]]
        self.labels = digits.y_train.astype(np.int32)
        basis = glm.ExponentialBasis(TAUS, N_STEPS).matrix
        self.first, self.decay = basis[0].copy(), basis[1] / basis[0]
        random = np.random.default_rng(0)
        self.into = random.normal(scale=1.4 / 28, size=(784, n_hidden, len(TAUS)))
        self.out = random.uniform(-0.01, 0.01, size=(n_hidden, 10, len(TAUS)))
        self.library = compiled(n_hidden)

    def microseconds(self, n_epochs, seed):
        n = n_epochs * len(self.labels)
        started = perf_counter()
        self.log_likelihood = self.library.train(
            self.first, self.decay, self.into, self.out, -1.0, -5.0, RATE, len(self.labels),
            self.begins, self.active, self.level, self.labels, n, seed,
        )  # fmt: skip
        return 1e6 * (perf_counter() - started) / n


def compiled(n_hidden):
    sizes = dict(N_INPUTS=784, N_HIDDEN=n_hidden, N_CLASSES=10, N_STEPS=N_STEPS, N_BASIS=len(TAUS))
    source = Path(__file__).with_name("hidden") / "kernel.cpp"
    with tempfile.TemporaryDirectory() as folder:
        compiled, library = f"{folder}/kernel.o", f"{folder}/kernel.so"
        definitions = [f"-D{name}={value}" for name, value in sizes.items()]
        subprocess.run(["g++", *FLAGS, *definitions, "-c", source, "-o", compiled], check=True)
        # Linked without -ffast-math, which would turn off denormal numbers in all of Python.
        subprocess.run(["g++", "-shared", compiled, "-o", library, "-lm"], check=True)
        loaded = ctypes.CDLL(library)
    doubles, integers, integers32, levels = (
        ndpointer(dtype, flags="C_CONTIGUOUS") for dtype in (np.float64, np.int64, np.int32, np.uint16)
    )
    loaded.train.argtypes = [
        *(doubles, doubles, doubles, doubles, ctypes.c_double, ctypes.c_double, ctypes.c_double),
        *(ctypes.c_int64, integers, integers32, levels, integers32, ctypes.c_int64, ctypes.c_uint64),
    ]
    loaded.train.restype = ctypes.c_double
    return loaded


class PyTorch:
    """The same network with automatic derivatives; its batches sum gradients."""

    def __init__(self, digits, n_hidden, batch_size):
        import torch

        torch.set_num_threads(1)
        self.torch, self.batch_size, self.name = torch, batch_size, f"PyTorch, batch {batch_size}"
        self.intensity = torch.tensor(digits.X_train / 510.0, dtype=torch.float32)
        self.labels = torch.tensor(digits.y_train.astype(np.int64))
        self.n_hidden = n_hidden
        basis = torch.tensor(glm.ExponentialBasis(TAUS, N_STEPS).matrix, dtype=torch.float32)
        self.first, self.decay = basis[0], basis[1] / basis[0]

    def microseconds(self, n_epochs, seed):
        torch = self.torch
        torch.manual_seed(seed)
        into = (torch.randn(784, self.n_hidden * len(TAUS)) * 0.05).requires_grad_()
        out = (torch.rand(self.n_hidden, 10 * len(TAUS)) * 0.02 - 0.01).requires_grad_()
        hidden_bias = torch.full((self.n_hidden,), -1.0, requires_grad=True)
        bias = torch.full((10,), -5.0, requires_grad=True)
        parameters = [into, out, hidden_bias, bias]
        # A few batches are enough: each takes the same time.
        order = torch.randperm(len(self.labels))[: max(self.batch_size, 512)]
        started = perf_counter()
        for batch in order.split(self.batch_size):
            value = self.log_likelihood_of(batch, *parameters)
            gradients = torch.autograd.grad(value.sum(), parameters)
            with torch.no_grad():
                for parameter, gradient in zip(parameters, gradients):
                    parameter += RATE * gradient
        self.log_likelihood = float(value.mean())
        return 1e6 * (perf_counter() - started) / len(order)

    def log_likelihood_of(self, batch, into, out, hidden_bias, bias):
        torch = self.torch
        n, k = len(batch), len(TAUS)
        x = (torch.rand(n, N_STEPS, 784) < self.intensity[batch][:, None]).float()
        arriving = (x.flatten(0, 1) @ into).view(n, N_STEPS, self.n_hidden, k)
        trace, out_trace = torch.zeros(n, self.n_hidden, k), torch.zeros(n, 10, k)
        potentials = []
        for t in range(N_STEPS):
            p = torch.sigmoid(hidden_bias + trace.sum(-1))
            h = p + ((torch.rand_like(p) < p).float() - p).detach()
            potentials.append(bias + out_trace.sum(-1))
            trace = trace * self.decay + arriving[:, t] * self.first
            out_trace = out_trace * self.decay + (h @ out).view(n, 10, k) * self.first
        u = torch.stack(potentials, 1)
        right = self.labels[batch][:, None, None].expand(-1, N_STEPS, 1)
        silent = torch.nn.functional.logsigmoid(-u).sum(-1).cumsum(1)
        return (u.gather(2, right)[..., 0] + silent).logsumexp(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hidden", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="how long each turn should take")
    options = parser.parse_args()
    digits = glm.datasets.load_mnist("all", n_test=0)
    contenders = [Package(digits, options.hidden), HandTuned(digits, options.hidden)]
    try:
        contenders += [PyTorch(digits, options.hidden, size) for size in BATCHES]
    except ImportError:
        print("PyTorch is not installed, so it is left out")
    times = {contender.name: [] for contender in contenders}
    n_epochs = {}
    for contender in contenders:
        once = contender.microseconds(1, 0)  # compiles
        once = contender.microseconds(1, 0)
        n_epochs[contender.name] = max(1, round(options.seconds / (1e-6 * once * len(digits.y_train))))
    for seed in range(options.rounds):
        for contender in contenders:
            times[contender.name].append(contender.microseconds(n_epochs[contender.name], seed))
    own = times[Package.name]
    for contender in contenders:
        values = times[contender.name]
        ratio = statistics.median(a / b for a, b in zip(own, values))
        print(
            f"{contender.name}: {statistics.median(values):.1f} us a presentation; glmbrian takes "
            f"{ratio:.3f} times as long (log-likelihood {contender.log_likelihood:.3f})"
        )


if __name__ == "__main__":
    main()
