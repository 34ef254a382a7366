"""Populations of coupled neurons, and fitting them to recordings."""

from ..support.first_import import import_brian

import_brian()

from .comparing import Comparison, LikelihoodRatioTest, compare, likelihood_ratio_test
from .connectivity import Connectivity
from .fitting import FitReport, fit_population
from .observations import Bernoulli, Observations
from .parameters import PopulationParameters
from .penalties import Penalty
from .population import GLMPopulation
from .recorded import RecordedData
from .rescaling import KSTest
from .selection import StrengthSelection, select_strength
from .stability import Stability
from .standard_errors import StandardErrors
from .undetermined import Undetermined

__all__ = [
    "Bernoulli",
    "Comparison",
    "Connectivity",
    "FitReport",
    "GLMPopulation",
    "KSTest",
    "LikelihoodRatioTest",
    "Observations",
    "Penalty",
    "PopulationParameters",
    "RecordedData",
    "Stability",
    "StandardErrors",
    "StrengthSelection",
    "Undetermined",
    "compare",
    "fit_population",
    "likelihood_ratio_test",
    "select_strength",
]
