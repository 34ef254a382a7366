"""Where modules of earlier versions are now, so that old imports and pickles still work."""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

_PACKAGE = __name__.rpartition(".")[0]

#: Former names of modules, relative to the package, and their present names.
FORMER_NAMES = {
    "activations": "core.activations",
    "bases": "core.bases",
    "brian_internals": "brian.internals",
    "cache": "support.cache",
    "classifier.learned": "classifier.fitted_state",
    "decoding": "core.decisions",
    "encoding": "brian.encoder",
    "ensemble": "classifier.ensemble",
    "estimator": "classifier.classifier",
    "filters": "brian.filters",
    "fitting": "population.fitting",
    "genn_environment": "devices.genn_environment",
    "labels": "classifier.labels",
    "model": "devices.problem",
    "neurons": "brian.neurons",
    "operations": "brian.operations",
    "progress": "support.progress",
    "randomness": "core.randomness",
    "stopping": "brian.stopping",
    "storage": "support.storage",
    "synapses": "brian.synapses",
    "training_cpp": "training.trainer_cpp",
    "validation": "support.validation",
}


#: Classes that have another name there.
_RENAMED = {"Learned": "FittedState"}


class _FormerNames(MetaPathFinder, Loader):
    """Import a former name as a module that looks up its names in the present module."""

    @staticmethod
    def _name(fullname):
        return fullname.removeprefix(f"{_PACKAGE}.")

    def find_spec(self, fullname, path=None, target=None):
        return ModuleSpec(fullname, self) if self._name(fullname) in FORMER_NAMES else None

    def exec_module(self, module):
        present = f"{_PACKAGE}.{FORMER_NAMES[module.__name__.removeprefix(f'{_PACKAGE}.')]}"
        warnings.warn(
            f"{module.__name__} is now {present}; the public names are in {_PACKAGE} itself",
            DeprecationWarning,
            stacklevel=2,
        )
        module.__getattr__ = lambda name: getattr(import_module(present), _RENAMED.get(name, name))


def find_former_names() -> None:
    """Make modules importable under their former names."""
    sys.meta_path.append(_FormerNames())
