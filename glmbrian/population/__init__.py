"""Populations of coupled neurons, and fitting them to recordings."""

from ..support.first_import import import_brian

import_brian()

from .fitting import FitReport, fit_population
from .population import GLMPopulation
from .selection import StrengthSelection, select_strength

__all__ = [
    "FitReport",
    "GLMPopulation",
    "StrengthSelection",
    "fit_population",
    "select_strength",
]
