"""How easily decisions can be led astray: attacks on input spikes and intensities, and bounds.

`core.changes` says which spikes an attack may change, `methods` how it searches, `attacks` and
`intensities` apply this to the presentations of a classifier, and `certificates` bounds what any
change can do.  KINDS, METHODS and LOSSES hold what comes with the package, by name.
"""

from ..support.first_import import import_brian

import_brian()

from ..core.changes import KINDS as KINDS
from ..core.changes import Kind
from .attacks import attack, random_change
from .certificates import certified, certified_accuracy
from .gradients import input_gradient
from .intensities import attack_intensities
from .losses import LOSSES as LOSSES
from .losses import Loss
from .methods import METHODS as METHODS
from .methods import Method

__all__ = [
    "Kind",
    "Loss",
    "Method",
    "attack",
    "attack_intensities",
    "certified",
    "certified_accuracy",
    "input_gradient",
    "random_change",
]
