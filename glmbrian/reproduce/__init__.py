"""The paper's numbers: figures 3 to 5, with error bars, and what it leaves out.

Each module uses only those above it:

=============  ===========================================================
`protocol`     the grids of the figures, and how their points are trained
`recording`    the spikes of a test run, had again without recording them
`complexity`   operations by layer and kind, and their energy
`fits`         one fit, from the digits to what is measured
`sweep`        many fits, on this machine or a cluster, none done twice
`selection`    the learning rate, by cross-validation
`tables`       results as tidy rows, means and intervals
`claims`       the paper's claims, held to the rows
`figures`      the figures
`pipeline`     from a protocol to its tables and figures
=============  ===========================================================
"""

from .pipeline import reproduce
from .protocol import FULL, QUICK, TARGETS, Protocol
from .sweep import dask_workers, local_workers

__all__ = ["FULL", "QUICK", "TARGETS", "Protocol", "dask_workers", "local_workers", "reproduce"]
