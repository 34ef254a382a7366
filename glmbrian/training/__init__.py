"""Training of GLM neurons in a Brian network of the user's own."""

from .trainer import Trainer

__all__ = ["Trainer"]
