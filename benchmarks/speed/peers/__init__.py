"""Other implementations of first-to-spike training, to measure the package against.

A *peer* trains the same model on the same data by the same rule as `glmbrian`, written
as well as its tool allows: what it draws, it may draw with a generator of its own, and
what can be left out (the spikes of the last step, which move nothing) it leaves out.
The tests hold the gradient of each to `glmbrian.learning`.

========================  =========================================================
`NumbaKernel`             loops compiled by Numba, as a skilled user writes them
`PyTorch`                 batched matrix products on the CPU
`PlainBrian`              Brian 2 without this package
`HandTuned`               C++ that does nothing else: the limit
========================  =========================================================

Modules that a peer needs are imported when it is constructed; `Peer.why_unavailable` says
beforehand whether it can be.
"""

from .base import Peer
from .hand_tuned import HandTuned
from .numba_kernel import NumbaKernel
from .plain_brian import PlainBrian
from .pytorch import PyTorch

PEERS = (NumbaKernel, PyTorch, PlainBrian, HandTuned)

__all__ = ["PEERS", "HandTuned", "NumbaKernel", "Peer", "PlainBrian", "PyTorch"]
