"""The devices that simulate a classifier: one module per device, each with a `Device`."""

from importlib import import_module
from typing import TYPE_CHECKING

from ..support.first_import import import_brian
from ..support.validation import choice

if TYPE_CHECKING:
    from .base import Device
    from .runtime import Runtime

import_brian()

#: The module and the class of each device, which are imported when needed.
_HOMES = {
    "runtime": ("runtime", "Runtime"),
    "cpp_standalone": ("cpp_standalone", "CppStandalone"),
    "genn": ("genn", "GeNN"),
}

DEVICES = tuple(_HOMES)


def get_device(name: str) -> "Device":
    """Return the `Device` with this name."""
    module, kind = _HOMES[choice(name, "device", DEVICES)]
    return getattr(import_module(f".{module}", __name__), kind)()


def exporting_devices() -> tuple[str, ...]:
    """Return the names of the devices that can export."""
    return tuple(name for name in DEVICES if get_device(name).can_export)


def recording_device() -> "Runtime":
    """Return the device that can record every step; its spikes are those of all devices."""
    return get_device("runtime")  # type: ignore[return-value]
