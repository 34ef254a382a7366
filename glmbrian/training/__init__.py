"""Training of GLM neurons in a Brian network of the user's own."""

from ..support.first_import import import_brian

import_brian()

from .trainer import Trainer

__all__ = ["Trainer"]
