"""Where a classifier is simulated: one module a device, each with a `Device`."""

from importlib import import_module

from ..support.first_import import import_brian
from ..support.validation import choice

import_brian()

#: The module and the class of each device. They are imported when they are needed.
_HOMES = {
    "runtime": ("runtime", "Runtime"),
    "cpp_standalone": ("cpp_standalone", "CppStandalone"),
    "genn": ("genn", "GeNN"),
}

DEVICES = tuple(_HOMES)


def get_device(name):
    """Return the `Device` of that name."""
    module, kind = _HOMES[choice(name, "device", DEVICES)]
    return getattr(import_module(f".{module}", __name__), kind)()


def exporting_devices():
    """Return the names of the devices that can export."""
    return tuple(name for name in DEVICES if get_device(name).can_export)


def recording_device():
    """Return the device that can record every step: spikes are the same on all."""
    return get_device("runtime")
