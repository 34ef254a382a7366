"""Where the modules of version 0.1 are now, so that old imports still work."""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec

_PACKAGE = __name__.rpartition(".")[0]

#: Names of modules in version 0.1, relative to the package, and their present names.
FORMER_NAMES = {
    "activations": "core.activations",
    "bases": "core.bases",
    "brian_internals": "brian.internals",
    "cache": "support.cache",
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


class _FormerNames(MetaPathFinder, Loader):
    """Import a former name as a module that looks up its names in the present module."""

    def find_spec(self, fullname, path=None, target=None):
        package, _, name = fullname.rpartition(".")
        return ModuleSpec(fullname, self) if package == _PACKAGE and name in FORMER_NAMES else None

    def exec_module(self, module):
        present = f"{_PACKAGE}.{FORMER_NAMES[module.__name__.rpartition('.')[2]]}"
        warnings.warn(
            f"{module.__name__} is now {present}; the public names are in {_PACKAGE} itself",
            DeprecationWarning,
            stacklevel=2,
        )
        module.__getattr__ = lambda name: getattr(import_module(present), name)


def find_former_names() -> None:
    """Make modules importable under their former names."""
    sys.meta_path.append(_FormerNames())
