"""Training of GLM neurons in the user's own Brian network."""

from ..support.first_import import import_brian

import_brian()

from .trainer import Trainer

__all__ = ["Trainer"]
