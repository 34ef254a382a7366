"""The limit: C++ that trains only this model."""

import ctypes
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.ctypeslib import ndpointer

from glmbrian.core.rate_code import LEVEL_OF_BYTE

from .base import Peer, lags_within

_FLAGS = ["-std=c++17", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fPIC"]
_N_PATTERNS = 16


class HandTuned(Peer):
    """C++ with all sizes as constants; see ``hand_tuned.cpp``.

    Parameters
    ----------
    workload : object
        See `Peer`.
    real : {"double", "float"}
        Type of the weights.  Only "double" gives the gradient to full precision.
    """

    name = "hand-tuned C++"
    requires = ("g++",)

    def __init__(self, workload, real="double"):
        super().__init__(workload)
        self._basis = lags_within(workload.basis, workload.n_steps)
        self._labels = np.asarray(workload.labels, dtype=np.int32)
        image, pixel = np.nonzero(workload.images)
        self._first = np.searchsorted(image, np.arange(len(workload.images) + 1)).astype(np.int64)
        self._active = pixel.astype(np.int32)
        self._level = LEVEL_OF_BYTE[workload.images[image, pixel]]
        n_inputs, n_classes, n_basis = self.weights.shape
        sizes = {
            "N_INPUTS": n_inputs,
            "N_CLASSES": n_classes,
            "N_STEPS": workload.n_steps,
            "N_BASIS": n_basis,
            "Real": real,
        }
        self._library = _compile(sizes)
        # How often each pattern of spikes occurred, in each group of four steps.
        self._n_seen = np.zeros((-(-len(self._basis) // 4), _N_PATTERNS), dtype=np.int64)
        self._bytes_per_weight = 8 if real == "double" else 4
        self.train(1, seed=0)

    def train(self, n_presentations, seed):
        self._restart()
        began = perf_counter()
        self._library.train(
            self._basis,
            self.weights,
            self.bias,
            self.workload.learning_rate,
            len(self._labels),
            self._first,
            self._active,
            self._level,
            self._labels,
            n_presentations,
            seed,
            self._n_seen,
        )
        seconds = perf_counter() - began
        self._n_presentations = n_presentations
        return seconds

    def gradient(self, spikes, label, weights, bias):
        # An update at a learning rate of 1 is the gradient.
        new_weights, new_bias = np.array(weights, dtype=float), np.array(bias, dtype=float)
        log_likelihood = self._library.learn_once(
            self._basis, new_weights, new_bias, np.array(spikes, dtype=np.uint8), label
        )
        return log_likelihood, new_weights - weights, new_bias - bias

    def counts(self):
        """Return the operations of the latest `train`, on average per presentation.

        Returns
        -------
        dict of str to float
            ``spikes`` (of all steps but the last), ``draws`` (of 64 bits),
            ``additions``, ``multiplications``, ``divisions``, ``transcendentals``, and
            ``bytes_read`` and ``bytes_written``.  The arithmetic inside draws and
            transcendentals is not counted.  Bytes are those of weights and images; the
            rest is some tens of kilobytes of scratch memory.
        """
        seen = self._n_seen / self._n_presentations
        n_groups = len(seen)
        spikes_in_pattern = np.array([bin(p).count("1") for p in range(_N_PATTERNS)])
        draws = seen.sum()  # one per group and input that can spike
        n_active = draws / n_groups
        rows_summed = seen[:, 1:].sum()  # rows of inputs without a spike are skipped
        _, n_classes, n_basis = self.weights.shape
        n_steps, row = self.workload.n_steps, n_classes * n_basis
        n_potentials = n_steps * n_classes
        filtering = (n_steps - 1) * n_steps * row  # zeros of the filters included
        correlating = (n_steps - 1) * n_steps // 2 * row
        pattern_sums = n_groups * (spikes_in_pattern.sum() + _N_PATTERNS - 1) * row
        row_bytes = row * self._bytes_per_weight
        # A pixel is an index and a level.
        pixel_bytes = self._active.itemsize + self._level.itemsize
        return {
            "spikes": float((seen * spikes_in_pattern).sum()),
            "draws": float(draws),
            # The last two terms are for `differentiate` and the bias.
            "additions": float(
                (rows_summed + draws) * row
                + pattern_sums
                + filtering
                + correlating
                + 2 * n_potentials
                + 2 * n_steps
            ),
            "multiplications": float(
                filtering + correlating + (n_steps - 1) * row + 3 * n_potentials + 5 * n_steps
            ),
            "divisions": float(2 * n_potentials + 2 * n_steps),
            "transcendentals": float(n_potentials),
            "bytes_read": float((rows_summed + n_active) * row_bytes + n_active * pixel_bytes),
            "bytes_written": float(n_active * row_bytes),
        }


def _compile(sizes):
    """Compile for these sizes, and return the library."""
    source = Path(__file__).with_name("hand_tuned.cpp")
    definitions = [f"-D{name}={value}" for name, value in sizes.items()]
    with tempfile.TemporaryDirectory() as folder:
        compiled, library = str(Path(folder, "hand_tuned.o")), str(Path(folder, "hand_tuned.so"))
        _run("g++", *_FLAGS, *definitions, "-c", str(source), "-o", compiled)
        # Linked without -ffast-math, which would turn off denormal numbers in all of Python.
        _run("g++", "-shared", compiled, "-o", library, "-lm")
        loaded = ctypes.CDLL(library)
    doubles, integers, integers32, levels, bits = (
        ndpointer(dtype, flags="C_CONTIGUOUS")
        for dtype in (np.float64, np.int64, np.int32, np.uint16, np.uint8)
    )
    loaded.train.argtypes = [
        *(doubles, doubles, doubles, ctypes.c_double),
        *(ctypes.c_int64, integers, integers32, levels, integers32),
        *(ctypes.c_int64, ctypes.c_uint64, integers),
    ]
    loaded.train.restype = None
    loaded.learn_once.argtypes = [doubles, doubles, doubles, bits, ctypes.c_int]
    loaded.learn_once.restype = ctypes.c_double
    return loaded


def _run(*command):
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{result.stderr}")
