"""How objects are shown at a prompt and in a notebook."""

import html
from collections.abc import Mapping
from typing import Any


def html_table(title: str, rows: Mapping[str, Any]) -> str:
    """Return an HTML table of names and values under a title."""
    cells = "".join(
        f'<tr><th style="text-align: left">{html.escape(str(name))}</th>'
        f'<td style="text-align: left">{html.escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f"<b>{html.escape(title)}</b><table>{cells}</table>"


class Described:
    """A Brian object that describes itself, and whose state variables editors complete.

    Brian's own ``repr`` shows little but the clock, and Brian offers state variables as
    attributes without listing them.  List this class before Brian's among the base classes,
    and define `_title` and `_description`, a dict of names to values.
    """

    def __repr__(self):
        listed = ", ".join(f"{name} {value}" for name, value in self._description().items())
        return f"<{self._title()}: {listed}>"

    def _repr_html_(self):
        return html_table(self._title(), self._description())

    def __dir__(self):
        names = [name for name in getattr(self, "variables", ()) if not name.startswith("_")]
        return sorted({*super().__dir__(), *names})
