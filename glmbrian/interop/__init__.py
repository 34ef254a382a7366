"""Spikes from and to other packages: recordings, files, event data sets.

The packages themselves are imported only when a function needs them.
"""

from .events import from_tonic
from .neo import from_neo, to_neo
from .nwb import from_nwb, to_nwb
from .recording import Recording

__all__ = ["Recording", "from_neo", "from_nwb", "from_tonic", "to_neo", "to_nwb"]
