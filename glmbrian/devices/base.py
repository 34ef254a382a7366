"""What a classifier asks of a device."""

from abc import ABC, abstractmethod


class Device(ABC):
    """Simulates, trains and tests the networks of a classifier.

    Derive a class, in a module of its own, and list it in `glmbrian.devices`.

    Attributes
    ----------
    name : str
    can_export : bool
        Whether it can write a project that trains by itself.
    is_concurrent : bool
        Whether several simulations may run side by side.
    """

    name: str
    can_export = False
    is_concurrent = False

    def check(self, network, training=None, inputs=None):  # noqa: B027 (most can do all)
        """Raise if the device cannot do this, before anything is generated.

        Parameters
        ----------
        network : glmbrian.devices.problem.Network
        training : glmbrian.devices.problem.Training, optional
        inputs : glmbrian.devices.problem.Inputs, optional
        """

    @abstractmethod
    def train(self, network, parameters, inputs, labels, training, progress):
        """Train, and return what was learned.

        Parameters
        ----------
        network : glmbrian.devices.problem.Network
        parameters : glmbrian.devices.problem.Parameters
            Where training starts; stays as it is.
        inputs : glmbrian.devices.problem.Inputs
        labels : ndarray of int, shape (n,)
            Index of the right output of each presentation.
        training : glmbrian.devices.problem.Training
        progress : glmbrian.support.progress.Progress

        Returns
        -------
        parameters : glmbrian.devices.problem.Parameters
        history : ndarray of float, shape (n_epochs, n_replicas)
            Mean log-likelihoods.
        timing : glmbrian.devices.problem.Timing
        """

    @abstractmethod
    def test(self, network, parameters, inputs, testing, progress):
        """Present all inputs without learning.

        Parameters
        ----------
        testing : glmbrian.devices.problem.Testing
        network, parameters, inputs, progress
            As for `train`.

        Returns
        -------
        outcome : glmbrian.devices.problem.Outcome
        timing : glmbrian.devices.problem.Timing
        """

    def export(self, network, parameters, inputs, labels, training, folder):
        """Write a project into the empty `folder` that trains by itself, with make.

        Parameters
        ----------
        folder : pathlib.Path
        network, parameters, inputs, labels, training
            As for `train`.
        """
        raise NotImplementedError(f"device={self.name!r} cannot export")

    def read_exported(self, network, folder, has_checksums):
        """Return what an exported program has learned; see `glmbrian.devices.program.read_exported`."""
        raise NotImplementedError(f"device={self.name!r} cannot export")
