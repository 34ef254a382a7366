"""Where `Recording` was in version 0.2.0.dev0: pickles name this module."""

from ..recording.recording import Recording

__all__ = ["Recording"]
