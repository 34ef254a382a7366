"""Populations of coupled neurons, and fitting them to recordings."""

from ..support.first_import import import_brian

import_brian()

from .fitting import fit_population
from .population import GLMPopulation

__all__ = ["GLMPopulation", "fit_population"]
