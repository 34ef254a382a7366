"""Recordings: when units spiked and were observed, between other packages, Brian and fits."""

from ..support.first_import import import_brian

import_brian()

from .recording import Recording

__all__ = ["Recording"]
