"""Devices for a while: the active one is shared by all threads, and users may be describing a network for it."""

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from brian2 import Network, prefs
from brian2.devices.cpp_standalone.device import CPPStandaloneDevice
from brian2.devices.device import all_devices, get_device
from brian2.utils.logger import catch_logs

from ..target import runs_at_once
from .preferences import double_precision, same_preferences


def complete_standard_streams() -> None:
    """Open the standard streams that this process lacks, on the null device.

    When Brian calls a compiler, it redirects both output streams by file descriptor, which
    fails in a process that was started without them.
    """
    while True:
        number = os.open(os.devnull, os.O_RDWR)
        if number > 2:
            os.close(number)
            break
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 (for as long as Python runs)


#: The module `brian2.devices.device`, hidden by the proxy of the same name.
_devices = import_module("brian2.devices.device")


class _Turns:
    """Lets one thread at a time replace the active device, which all threads share."""

    def __init__(self):
        self._lock = threading.RLock()
        self._users_device = None
        self._depth = 0
        # A forked child has a copy of the lock but not the thread that would release it.
        os.register_at_fork(after_in_child=self._renew)

    @contextmanager
    def device(self, device):
        """Make `device` active, and restore the previous device afterwards.

        Brian's own `set_device` and `reset_device` would copy the time step from one default
        clock to the other, and write it to the user's standalone project.
        """
        with self._lock:
            before = _devices.active_device
            if self._depth == 0:
                self._users_device = before
            self._depth += 1
            try:
                _devices.active_device = device
                yield device
            finally:
                self._depth -= 1
                # One of the user's threads may have set another device meanwhile.
                if _devices.active_device is device:
                    _devices.active_device = before

    def _renew(self):
        if self._lock.acquire(blocking=False):  # free, or held by the thread that forked
            self._lock.release()
            return
        self._lock = threading.RLock()
        self._depth = 0
        _devices.active_device = self._users_device


_turns = _Turns()


@contextmanager
def runtime_device() -> Iterator[Any]:
    """Simulate in this process, even while the user is describing a standalone network.

    Only one thread at a time can be in this context.
    """
    users = get_device()
    own = users if runs_at_once(users) else all_devices["runtime"]
    with _turns.device(own) as device:
        try:
            yield device
        except BaseException:
            # Brian does not reset this after an error, and would treat the next Ctrl-C as a
            # request to stop this run.
            Network._globally_running = False
            raise


@contextmanager
def private_standalone_device() -> Iterator[CPPStandaloneDevice]:
    """Return a context in which a new C++ standalone device is active.

    ``set_device("cpp_standalone")`` would switch to the shared instance, for which the user
    may be describing a network.
    """
    complete_standard_streams()
    with _turns.device(CPPStandaloneDevice()) as device, double_precision():
        device.activate(build_on_run=False)
        # GCC vectorises a loop over many arrays only if it may check that many for overlap.
        device.extra_compile_args.append("--param=vect-max-version-for-alias-checks=100")
        yield device


@contextmanager
def private_genn_device(
    genn: str | None, cuda: str | None, header: str, **options: Any
) -> Iterator[Any]:
    """Return a context in which a new GeNN device is active.

    The device builds with these `options` when the network runs, since brian2genn cannot
    build later.

    Parameters
    ----------
    genn, cuda : str or None
        The folders of GeNN and CUDA.
    header : str
        A C++ header for all generated files.
    **options
        Options of brian2genn's `build`.
    """
    from brian2genn.device import GeNNDevice

    chosen = {
        "devices.genn.path": genn,
        "devices.genn.cuda_backend.cuda_path": cuda,
        # GeNN 4.9 fails with dense connectivity.
        "devices.genn.connectivity": "SPARSE",
        "codegen.cpp.headers": [*prefs["codegen.cpp.headers"], header],
    }
    complete_standard_streams()
    with _turns.device(GeNNDevice()) as device, double_precision(), same_preferences():
        for name, value in chosen.items():
            prefs[name] = value
        # brian2genn would tell the user to restore preferences that are restored here.
        with catch_logs(log_level=logging.INFO):
            device.activate(build_on_run=True, **options)
            yield device
