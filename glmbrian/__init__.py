"""Probabilistic spiking neurons (generalized linear models) for Brian 2."""

from typing import TYPE_CHECKING

from ._former_names import find_former_names
from ._version import __version__

find_former_names()

__all__ = [
    "Activation",
    "Adam",
    "Basis",
    "ConfidentDecision",
    "CustomBasis",
    "ExponentialBasis",
    "FirstSpikeStop",
    "GLMClassifier",
    "GLMNeurons",
    "GLMPopulation",
    "GLMSynapses",
    "IndicatorBasis",
    "Objective",
    "Optimizer",
    "PAPER_SETTINGS",
    "RaisedCosineBasis",
    "RateEncoder",
    "SGD",
    "Trainer",
    "__version__",
    "compare",
    "datasets",
    "fit_ensemble",
    "fit_population",
    "get_activation",
    "interop",
    "learning",
    "likelihood_ratio_test",
    "plotting",
    "robustness",
    "select_strength",
]

if TYPE_CHECKING:
    from . import datasets, interop, learning, plotting, robustness
    from .brian.encoder import RateEncoder
    from .brian.neurons import GLMNeurons
    from .brian.stopping import FirstSpikeStop
    from .brian.synapses import GLMSynapses
    from .classifier.classifier import PAPER_SETTINGS, GLMClassifier
    from .classifier.ensemble import fit_ensemble
    from .confident.decision import ConfidentDecision
    from .core.activations import Activation, get_activation
    from .core.bases import Basis, CustomBasis, ExponentialBasis, IndicatorBasis, RaisedCosineBasis
    from .core.objectives import Objective
    from .core.optimisers import SGD, Adam, Optimizer
    from .population.comparing import compare, likelihood_ratio_test
    from .population.fitting import fit_population
    from .population.population import GLMPopulation
    from .population.selection import select_strength
    from .training.trainer import Trainer

#: The modules of public names. They are imported at first use: importing Brian 2,
#: scikit-learn and Matplotlib takes seconds, in which Ctrl-C could not yet stop a command cleanly.
_HOMES = {
    "Activation": "core.activations",
    "Basis": "core.bases",
    "ConfidentDecision": "confident.decision",
    "CustomBasis": "core.bases",
    "ExponentialBasis": "core.bases",
    "FirstSpikeStop": "brian.stopping",
    "GLMClassifier": "classifier.classifier",
    "GLMNeurons": "brian.neurons",
    "GLMPopulation": "population.population",
    "GLMSynapses": "brian.synapses",
    "IndicatorBasis": "core.bases",
    "Objective": "core.objectives",
    "Adam": "core.optimisers",
    "Optimizer": "core.optimisers",
    "SGD": "core.optimisers",
    "RaisedCosineBasis": "core.bases",
    "PAPER_SETTINGS": "classifier.classifier",
    "RateEncoder": "brian.encoder",
    "Trainer": "training.trainer",
    "compare": "population.comparing",
    "fit_ensemble": "classifier.ensemble",
    "fit_population": "population.fitting",
    "get_activation": "core.activations",
    "select_strength": "population.selection",
    "likelihood_ratio_test": "population.comparing",
}


def __getattr__(name):
    from importlib import import_module

    # Whoever looks through all modules asks for such names, and one of them runs the program.
    if name.startswith("__") or not name.isidentifier():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _HOMES:
        found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = found
        return found
    try:
        return import_module(f".{name}", __name__)
    except ModuleNotFoundError as error:
        if error.name != f"{__name__}.{name}":
            raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
