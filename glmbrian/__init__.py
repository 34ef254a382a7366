"""Probabilistic spiking neurons (generalized linear models) for Brian 2."""

from . import learning
from ._version import __version__
from .activations import Activation, get_activation
from .bases import (
    Basis,
    CustomBasis,
    ExponentialBasis,
    IndicatorBasis,
    RaisedCosineBasis,
)
from .encoding import RateEncoder
from .neurons import GLMNeurons
from .stopping import FirstSpikeStop
from .synapses import GLMSynapses

__all__ = [
    "Activation",
    "Basis",
    "CustomBasis",
    "ExponentialBasis",
    "FirstSpikeStop",
    "GLMClassifier",
    "GLMNeurons",
    "GLMSynapses",
    "IndicatorBasis",
    "RaisedCosineBasis",
    "PAPER_SETTINGS",
    "RateEncoder",
    "__version__",
    "datasets",
    "fit_ensemble",
    "get_activation",
    "interop",
    "learning",
    "plotting",
]

#: Imported at first use: scikit-learn and matplotlib are slow to load.
_LAZY = {
    "GLMClassifier": "estimator",
    "PAPER_SETTINGS": "estimator",
    "datasets": None,
    "fit_ensemble": "ensemble",
    "interop": None,
    "plotting": None,
}


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{_LAZY[name] or name}", __name__)
    return module if _LAZY[name] is None else getattr(module, name)


def __dir__():
    return sorted(__all__)
