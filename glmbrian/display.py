"""How objects are shown at a prompt and in a notebook."""

import html


def described(title, rows):
    """Return a title, names and values in one line, for the ``repr`` of an object."""
    return f"<{title}: {', '.join(f'{name} {value}' for name, value in rows.items())}>"


def html_table(title, rows):
    """Return an HTML table of names and values under a title."""
    cells = "".join(
        f'<tr><th style="text-align: left">{html.escape(str(name))}</th>'
        f'<td style="text-align: left">{html.escape(str(value))}</td></tr>'
        for name, value in rows.items()
    )
    return f"<b>{html.escape(title)}</b><table>{cells}</table>"


def attribute_names(group, names):
    """Return `names` and those of the state variables of a Brian group.

    Brian offers these as attributes but does not list them, so editors could not complete them.
    """
    variables = [name for name in getattr(group, "variables", ()) if not name.startswith("_")]
    return sorted({*names, *variables})
