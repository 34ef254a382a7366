"""What is inside a Brian function, to tell functions apart and to send them to another process."""

from copy import copy
from typing import Any

from brian2 import Function
from brian2.core.functions import FunctionImplementationContainer


def signature(function: Function) -> str:
    """Return a text that identifies the types of a Brian function in generated code."""
    return repr([function._arg_types, function._return_type, function.stateless])


class _Uncalled:
    """Stands for the Python form of a Brian function where only its C++ code is needed."""

    def __init__(self, name):
        self.__name__ = name


def without_python(value: Any) -> Any:
    """Return a namespace value for use in C++ code only.

    Functions are copied without their Python and Cython code, which may refer to arbitrary user
    objects and may not be available in another process.
    """
    if type(value) is not Function:
        return value
    plain = copy(value)
    plain.pyfunc = _Uncalled(getattr(value.pyfunc, "__name__", "function"))
    plain.implementations = FunctionImplementationContainer(plain)
    for target, made in value.implementations._implementations.items():
        if getattr(target, "class_name", target) not in ("numpy", "cython"):
            made = copy(made)
            used = (made.dependencies or {}).items()
            made.dependencies = {name: without_python(function) for name, function in used}
            plain.implementations._implementations[target] = made
    return plain
