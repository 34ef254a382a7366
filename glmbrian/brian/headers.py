"""The C++ headers in `native/`, as Brian's code gets them."""

from importlib import resources


def native_code(header: str) -> str:
    """Return the text of a header inside its include guard, to be copied into other code."""
    text = resources.files("glmbrian").joinpath("native", header).read_text()
    guard = f"GLMBRIAN_{header.removesuffix('.hpp').upper()}_HPP"
    return text.partition(f"#define {guard}\n")[2].rpartition("#endif")[0]
