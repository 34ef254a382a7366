"""The other packages, imported only when a function needs them."""

from importlib import import_module
from typing import Any


def imported(module: str, name: str, requirement: str = "'.[interop]'") -> Any:
    """Return a module, or raise an ImportError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(f"{name} is not installed ({error}): pip install {requirement}") from error
