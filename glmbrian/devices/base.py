"""What a classifier asks of a device."""

from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..core.updates import OptimizerState
from ..support.progress import Progress, Silent
from .problem import Inputs, Network, Outcome, Parameters, Testing, Timing, Trained, Training


class Device(ABC):
    """Simulates, trains and tests the networks of a classifier.

    To add a device, derive a class in a new module, and list it in `glmbrian.devices`.

    Attributes
    ----------
    name : str
    can_export : bool
        Whether it can write a self-contained project that trains.
    is_concurrent : bool
        Whether several simulations may run side by side.
    """

    name: str
    can_export: bool = False
    is_concurrent: bool = False

    def check(  # noqa: B027 (most devices can do everything)
        self, network: Network, training: Training | None = None, inputs: Inputs | None = None
    ) -> None:
        """Raise if the device cannot do this, before anything is generated.

        Parameters
        ----------
        network : glmbrian.devices.problem.Network
        training : glmbrian.devices.problem.Training, optional
        inputs : glmbrian.devices.problem.Inputs, optional
        """

    @abstractmethod
    def train(
        self,
        network: Network,
        parameters: Parameters,
        inputs: Inputs,
        labels: NDArray[np.int64],
        training: Training,
        progress: Progress | Silent,
    ) -> Trained:
        """Train, and return what was learned.

        Parameters
        ----------
        network : glmbrian.devices.problem.Network
        parameters : glmbrian.devices.problem.Parameters
            Where training starts; not changed.
        inputs : glmbrian.devices.problem.Inputs
        labels : ndarray of int, shape (n,)
            Index of the right output of each presentation.
        training : glmbrian.devices.problem.Training
        progress : glmbrian.support.progress.Progress

        Returns
        -------
        glmbrian.devices.problem.Trained
        """

    @abstractmethod
    def test(
        self,
        network: Network,
        parameters: Parameters,
        inputs: Inputs,
        testing: Testing,
        progress: Progress | Silent,
    ) -> tuple[Outcome, Timing]:
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

    def export(
        self,
        network: Network,
        parameters: Parameters,
        inputs: Inputs,
        labels: NDArray[np.int64],
        training: Training,
        folder: Path,
    ) -> None:
        """Write a self-contained project that trains, with make, into the empty `folder`.

        Parameters
        ----------
        folder : pathlib.Path
        network, parameters, inputs, labels, training
            As for `train`.
        """
        raise NotImplementedError(f"device={self.name!r} cannot export")

    def read_exported(
        self, network: Network, folder: Path, has_checksums: bool
    ) -> tuple[Parameters, NDArray[np.float64], OptimizerState, dict[str, str]]:
        """Return what an exported program has learned; see `glmbrian.devices.job.read_exported`."""
        raise NotImplementedError(f"device={self.name!r} cannot export")
