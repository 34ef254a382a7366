"""What a benchmark trains: images, labels, sizes and initial parameters."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from glmbrian.core.bases import RaisedCosineBasis
from glmbrian.datasets import load_mnist, read_split


@dataclass(frozen=True)
class Workload:
    """First-to-spike training with T steps, K = T functions and the package's start.

    Parameters
    ----------
    images : ndarray of uint8, shape (n, N_X)
    labels : ndarray of int, shape (n,)
        From 0 to ``n_classes - 1``.
    n_classes, n_steps : int
    learning_rate : float
    """

    images: np.ndarray
    labels: np.ndarray
    n_classes: int
    n_steps: int
    learning_rate: float = 1e-2
    basis: np.ndarray = field(init=False)  # (T, K)
    weights: np.ndarray = field(init=False)  # (N_X, N_Y, K), initial
    bias: np.ndarray = field(init=False)  # (N_Y,)

    def __post_init__(self):
        basis = RaisedCosineBasis(self.n_steps, self.n_steps).matrix
        shape = (self.images.shape[1], self.n_classes, basis.shape[1])
        weights = np.random.default_rng(0).uniform(-0.01, 0.01, shape)
        for name, value in (("basis", basis), ("weights", weights), ("bias", np.full(shape[1], -5.0))):
            object.__setattr__(self, name, value)


def mnist(n_classes, n_steps):
    """Return 2,000 images of {5, 7}, or 10,000 of all ten digits."""
    digits = load_mnist((5, 7) if n_classes == 2 else range(n_classes), n_test=0)
    return Workload(
        digits.X_train,
        np.unique(digits.y_train, return_inverse=True)[1].astype(np.int64),
        n_classes,
        n_steps,
    )


def whole_mnist(data_dir, n_steps):
    """Return all training images in the IDX files of `data_dir`."""
    images, labels, _ = read_split(Path(data_dir), "train")
    return Workload(images.reshape(len(images), -1), labels.astype(np.int64), 10, n_steps)


def repeated(workload, n_images):
    """Return the workload with its images truncated or repeated to `n_images`."""
    index = np.arange(n_images) % len(workload.images)
    return replace(workload, images=workload.images[index], labels=workload.labels[index])


def random_images(n_inputs=784, n_classes=2, n_steps=8, n_images=1000, spike_fraction=0.05):
    """Return noise images whose inputs spike in `spike_fraction` of the steps.

    Few pixels are lit, as in MNIST, whose inputs spike in 6% of the steps.
    """
    rng = np.random.default_rng(0)
    # A lit pixel is on average 128 and spikes in a quarter of the steps.
    lit = rng.random((n_images, n_inputs)) < 4 * spike_fraction
    images = np.where(lit, rng.integers(1, 256, lit.shape), 0)
    return Workload(images.astype(np.uint8), np.arange(n_images) % n_classes, n_classes, n_steps)
