"""The gallery: notebooks as Markdown pages, as they are stored, without running them."""

import json
import re


def write(notebooks, folder):
    """Write each notebook of the folder `notebooks` as a page into `folder`."""
    folder.mkdir(exist_ok=True)
    for notebook in sorted(notebooks.glob("*.ipynb")):
        page = folder / f"{notebook.stem}.md"
        text = as_markdown(notebook)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def as_markdown(notebook):
    """Return a notebook's cells as one Markdown text."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            parts.append(f"```python\n{source}\n```")
        else:
            parts.append(_displayed(source))
    parts.insert(1, f"{{download}}`Download this notebook <../../notebooks/{notebook.name}>`.")
    return "\n\n".join(parts) + "\n"


def _displayed(markdown):
    """Give formulas in $$ lines of their own, as MyST wants them."""
    return re.sub(r"\$\$(.+?)\$\$", r"\n$$\n\1\n$$\n", markdown, flags=re.DOTALL)
