"""Models and data of other packages; each is needed only where it is used."""

_LAZY = {"from_nemos": "nemos", "to_nemos": "nemos"}

__all__ = [*_LAZY, "nemos"]


def __getattr__(name):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(f".{_LAZY.get(name, name)}", __name__)
    return getattr(module, name) if name in _LAZY else module


def __dir__():
    return sorted(__all__)
