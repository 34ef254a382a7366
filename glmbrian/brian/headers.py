"""The C++ headers in `native/`, as Brian's code gets them."""

import re
from importlib import resources
from typing import Any


def native_header(name: str) -> str:
    """Return the text of a header."""
    return resources.files("glmbrian").joinpath("native", name).read_text()


def native_code(name: str) -> str:
    """Return the text of a header inside its include guard, to be copied into other code."""
    guard = f"GLMBRIAN_{name.removesuffix('.hpp').upper()}_HPP"
    return native_header(name).partition(f"#define {guard}\n")[2].rpartition("#endif")[0]


def cpp_header(name: str) -> dict[str, Any]:
    """Return what an implementation of a Brian function in C++ needs to call what a header defines.

    The generated files hold the text of the header, and of those that it includes, in place of the
    path of this package: a project can then be moved, and built where there is no Python.
    """
    # Brian writes `#include` before each of these.
    return {"headers": [f"<stdint.h>\n{_with_included(name)}"]}


def _with_included(name):
    return re.sub(
        r'^#include "(\w+\.hpp)"$',
        lambda found: _with_included(found[1]),
        native_header(name),
        flags=re.MULTILINE,
    )
