"""Other implementations of first-to-spike training, to measure the package against.

A *peer* trains the same model on the same data by the same rule as `glmbrian`, written
as well as its tool allows.  It may use its own random number generator, and leaves out
whatever has no effect (such as the spikes of the last step).  The tests compare the
gradient of each with `glmbrian.learning`.

========================  =========================================================
`NumbaKernel`             loops compiled by Numba, as a skilled user writes them
`PyTorch`                 batched matrix products on the CPU
`PlainBrian`              Brian 2 without this package
`HandTuned`               C++ for this model only: the limit
========================  =========================================================

Modules that a peer needs are imported when it is constructed; `Peer.why_unavailable`
tells beforehand whether that is possible.
"""

from .base import Peer
from .hand_tuned import HandTuned
from .numba_kernel import NumbaKernel
from .plain_brian import PlainBrian
from .pytorch import PyTorch

PEERS = (NumbaKernel, PyTorch, PlainBrian, HandTuned)

__all__ = ["PEERS", "HandTuned", "NumbaKernel", "Peer", "PlainBrian", "PyTorch"]
