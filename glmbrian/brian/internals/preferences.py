"""Brian's preferences as a whole, also those that are not validated yet."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from brian2 import prefs


@contextmanager
def double_precision() -> Iterator[None]:
    """Create Brian objects in double precision, whatever the user's preference."""
    before = prefs.core.default_float_dtype
    prefs.core.default_float_dtype = np.float64
    try:
        yield
    finally:
        prefs.core.default_float_dtype = before


@contextmanager
def same_preferences() -> Iterator[None]:
    """Restore all preferences afterwards, including those that brian2genn changes."""
    before, backup = dict(prefs), dict(prefs.backup_prefs)
    try:
        yield
    finally:
        for name, value in before.items():
            if prefs[name] is not value:
                prefs[name] = value
        prefs.backup_prefs = backup


#: Prefixes of the preferences that control how C++ code is generated and compiled.
_CPP_PREFERENCES = ("codegen.cpp.", "devices.cpp_standalone.", "devices.genn.")


def cpp_preferences() -> dict[str, Any]:
    """Return the preferences that affect C++ programs.

    They include those that a preference file sets for brian2genn before it is imported.
    """
    every = {**prefs.prefs_unvalidated, **prefs}
    return {name: value for name, value in every.items() if name.startswith(_CPP_PREFERENCES)}


def set_cpp_preferences(preferences: Mapping[str, Any]) -> None:
    """Set all preferences to Brian's defaults, except those that `cpp_preferences` returned."""
    if any(name.startswith("devices.genn.") for name in preferences):
        import brian2genn  # noqa: F401  (registers the preferences)
    prefs.reset_to_defaults()
    for name, value in preferences.items():
        prefs[name] = value


def genn_preference(name: str) -> Any:
    """Return a preference of brian2genn, or None, without importing brian2genn.

    The import would register a device and preferences.
    """
    return cpp_preferences().get(f"devices.genn.{name}")
