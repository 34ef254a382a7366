"""Where a classifier is simulated: one module a device, all with one interface.

Each module offers

- ``train(network, parameters, inputs, labels, training, progress)``, which returns
  ``(parameters, history, timing)``: what was learned, the mean log-likelihoods of
  shape (n_epochs, n_replicas), and a `glmbrian.devices.problem.Timing`;
- ``test(network, parameters, inputs, testing, progress)``, which returns
  ``(outcome, timing)``.

`progress` is a `glmbrian.support.progress.Progress` or its like.
"""

from importlib import import_module

from ..support.validation import choice

_MODULES = {"runtime": "runtime", "cpp_standalone": "cpp_standalone", "genn": "genn"}

DEVICES = tuple(_MODULES)

#: Devices that may run several simulations side by side.
CONCURRENT = ("cpp_standalone",)


def get_device(name):
    """Return the module of the device of that name."""
    return import_module(f".{_MODULES[choice(name, 'device', DEVICES)]}", __name__)
