"""The package itself, with the interface of its peers."""

import numpy as np

from glmbrian.classifier.classifier import GLMClassifier
from glmbrian.classifier.ensemble import fit_ensemble


class Package:
    """`GLMClassifier` in C++ standalone; see `peers.Peer` for the interface.

    Parameters
    ----------
    workload : Workload
    batch_size : int
    n_replicas : int
        If more than one, `fit_ensemble` trains that many, and the presentations of each count.
    """

    name = "glmbrian"

    def __init__(self, workload, batch_size=1, n_replicas=1):
        self.workload = workload
        self.batch_size, self.n_replicas = batch_size, n_replicas
        self.train(1, seed=0)  # compiles

    def train(self, n_presentations, seed):
        """Train for whole epochs, at least one, and return the seconds it took.

        They are the `run_seconds` of `timing_`: writing the program's input, starting the
        program, and training; not the build.
        """
        images, labels = self.workload.images, self.workload.labels
        n_epochs = max(1, round(n_presentations / len(images)))
        self.n_presentations = n_epochs * len(images) * self.n_replicas
        classifiers = [
            GLMClassifier(
                n_steps=self.workload.n_steps,
                n_basis=self.workload.n_steps,
                n_epochs=n_epochs,
                batch_size=self.batch_size,
                learning_rate=self.workload.learning_rate,
                random_state=seed,
                start_state=replica,
                verbose=False,
            )
            for replica in range(self.n_replicas)
        ]
        if self.n_replicas == 1:
            classifiers[0].fit(images, labels)
        else:
            fit_ensemble(classifiers, images, labels, n_jobs=1)
        first = classifiers[0]
        self.weights, self.bias = first.weights_, first.bias_
        self.timing = first.timing_
        return first.timing_["run_seconds"]


def micros(contender, n_presentations, seed):
    """Return the microseconds per presentation of one `train`."""
    seconds = contender.train(n_presentations, seed)
    # The package trains for whole epochs.
    return 1e6 * seconds / getattr(contender, "n_presentations", n_presentations)


def accuracy(contender, images, labels):
    """Return how often the correct output has the highest expected mean potential."""
    basis_sum = _reach(contender.workload)
    weights = np.tensordot(contender.weights, basis_sum, axes=1)  # (N_X, N_Y)
    return float(np.mean((images / 510 @ weights + contender.bias).argmax(axis=1) == labels))


def _reach(workload):
    """Return what an input that always spikes adds to the mean potential, (K,)."""
    n_steps = workload.n_steps
    seen = np.maximum(0, n_steps - 1 - np.arange(len(workload.basis)))  # steps within reach of each lag
    return seen @ workload.basis / n_steps
