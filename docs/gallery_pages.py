"""The gallery: notebooks and example scripts as pages, as they are stored, not run."""

import ast
import json
import re


def write(notebooks, examples, folder):
    """Write a page into `folder` for each notebook and each script of two other folders."""
    pages = {path.stem: notebook_page(path) for path in notebooks.glob("*.ipynb")}
    pages.update({f"example_{path.stem}": example_page(path) for path in examples.glob("*.py")})
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        page = folder / f"{name}.md"
        # An unchanged file keeps its time stamp, so that the next build is short.
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def notebook_page(notebook):
    """Return a notebook's cells as Markdown."""
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


def example_page(script):
    """Return a page that shows a script, under the first line of its docstring."""
    docstring = ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))
    title = docstring.partition("\n")[0].rstrip(".")
    return f"# {title}\n\n```{{literalinclude}} ../examples/{script.name}\n:language: python\n```\n"


def _displayed(markdown):
    """Give formulas in $$ lines of their own, as MyST wants them."""
    return re.sub(r"\$\$(.+?)\$\$", r"\n$$\n\1\n$$\n", markdown, flags=re.DOTALL)
