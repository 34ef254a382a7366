"""Populations of coupled neurons, and fits of them to recordings."""

from .fitting import fit_population
from .population import GLMPopulation

__all__ = ["GLMPopulation", "fit_population"]
