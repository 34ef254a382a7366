"""What all peers share."""

import importlib
import shutil
from abc import ABC, abstractmethod

import numpy as np


class Peer(ABC):
    """An alternative implementation of first-to-spike training.

    It trains the model of `glmbrian.learning.first_to_spike_log_likelihood` on rate-coded
    images by plain gradient ascent, with an update after each image and a new random order
    in each epoch.

    Parameters
    ----------
    workload : object
        What to train, with the attributes

        - ``images``, uint8 (n, N_X): an input spikes in each step with probability
          intensity / 510;
        - ``labels``, int (n,), from 0 to ``n_classes - 1``;
        - ``basis``, float (window, K);
        - ``n_steps`` (at least 2), ``n_classes`` and ``learning_rate``;
        - the initial ``weights``, float (N_X, N_Y, K), and ``bias``, float (N_Y,).

        All one-time work, such as compiling, is done in the constructor.

    Attributes
    ----------
    name : str
    requires : tuple of str
        The modules and commands it needs.
    weights, bias : ndarray of float
        The parameters, trained by the latest `train`.
    """

    name: str
    requires: tuple = ()

    def __init__(self, workload):
        self.workload = workload
        self._restart()

    @classmethod
    def why_unavailable(cls):
        """Return the reason why this peer cannot be used here, or None."""
        for need in cls.requires:
            if shutil.which(need) is not None:
                continue
            try:
                importlib.import_module(need)
            except ModuleNotFoundError as error:
                return f"{error.name} not found"
            # Installed packages may be incompatible, such as an old Numba with a new NumPy.
            except ImportError as error:
                return str(error)
        return None

    def _restart(self):
        self.weights = np.array(self.workload.weights, dtype=float)
        self.bias = np.array(self.workload.bias, dtype=float)

    @abstractmethod
    def train(self, n_presentations, seed):
        """Train from the initial parameters for `n_presentations`.

        Returns the seconds it took.  The same seed gives the same parameters.
        """

    @abstractmethod
    def gradient(self, spikes, label, weights, bias):
        """Return the log-likelihood of one presentation and its gradient.

        This runs the same code as `train`, but on given input spikes.

        Parameters
        ----------
        spikes : ndarray of 0/1, shape (T, N_X)
        label : int
        weights : ndarray of float, shape (N_X, N_Y, K)
        bias : ndarray of float, shape (N_Y,)

        Returns
        -------
        log_likelihood : float
        grad_weights : ndarray of float, shape (N_X, N_Y, K)
        grad_bias : ndarray of float, shape (N_Y,)
        """


def presentation_order(n_images, n_presentations, rng):
    """Return the order of the images, with a new permutation of all images in each epoch."""
    n_epochs = -(-n_presentations // n_images)
    order = [rng.permutation(n_images) for _ in range(n_epochs)]
    return np.concatenate(order)[:n_presentations]


def lags_within(basis, n_steps):
    """Return the basis for the lags 1 to ``n_steps - 1``, with zeros for lags it lacks.

    Longer lags have no effect within a presentation.
    """
    lags = np.zeros((n_steps - 1, basis.shape[1]))
    n_given = min(len(basis), n_steps - 1)
    lags[:n_given] = basis[:n_given]
    return lags


def step_filters(basis, n_steps):
    """Return what a spike in step s adds to the potential in step t, for each function k.

    The shape is ((T - 1) K, T), with s before k in the first axis, so one matrix product
    filters all input of a presentation.
    """
    lags = lags_within(basis, n_steps)
    filters = np.zeros((n_steps - 1, lags.shape[1], n_steps))
    for s in range(n_steps - 1):
        filters[s, :, s + 1 :] = lags[: n_steps - 1 - s].T
    return filters.reshape(-1, n_steps)
