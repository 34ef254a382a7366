"""The paper's results: figures 3 to 5 with error bars, and results it leaves out.

Each module uses only those above it:

=============  ===========================================================
`protocol`     the grids of the figures, and how their points are trained
`redrawn`      the spikes of a test run, drawn again rather than recorded
`complexity`   operations by layer and kind, and their energy
`fits`         one fit, from the digits to the measurements
`sweep`        many fits, on this machine or a cluster, each done once
`selection`    the learning rate, by cross-validation
`tables`       results as tidy rows, means and intervals
`claims`       the paper's claims, checked against the rows
`figures`      the figures
`pipeline`     from a protocol to its tables and figures
=============  ===========================================================
"""

from .pipeline import reproduce
from .protocol import FULL, QUICK, TARGETS, Protocol
from .sweep import dask_workers, local_workers

__all__ = ["FULL", "QUICK", "TARGETS", "Protocol", "dask_workers", "local_workers", "reproduce"]
