"""Exchange of models and data with other packages.

The other packages are imported only when a function needs them
(``pip install '.[interop]'``).
"""

from ..support.first_import import import_brian

import_brian()

from ..recording.recording import Recording
from .events import from_tonic
from .nemos import conditional_intensity, from_nemos, to_nemos
from .neo import from_neo, to_neo
from .nwb import from_nwb, to_nwb
from .pynapple import from_pynapple

__all__ = [
    "Recording",
    "conditional_intensity",
    "from_nemos",
    "from_neo",
    "from_nwb",
    "from_pynapple",
    "from_tonic",
    "to_nemos",
    "to_neo",
    "to_nwb",
]
