"""Sphinx configuration: ``sphinx-build -W --keep-going -b html docs OUTPUT``.

Pages are Markdown.  Before Sphinx reads them, `api_pages` writes the reference
from the package's public names, and `notebook_pages` the gallery from the notebooks.
Nothing is fetched from the network, and no notebook is run.
"""

import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path.insert(0, str(DOCS))
try:
    import glmbrian
except ModuleNotFoundError:  # not installed: the checkout's
    sys.path.insert(0, str(ROOT))
    import glmbrian
os.environ["MPLBACKEND"] = "Agg"

import api_pages  # noqa: E402
import notebook_pages  # noqa: E402
from brian2 import prefs  # noqa: E402

# Figures simulate for a moment: not worth compiling.
prefs.codegen.target = "numpy"

project = "glmbrian"
author = "the glmbrian developers"
copyright = author
version = release = glmbrian.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "matplotlib.sphinxext.plot_directive",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "examples", "figures"]
templates_path = ["_templates"]
# Single backticks in docstrings are names of the package, or plain words.
default_role = "py:obj"

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_context = {"own_members": api_pages.own_members()}
autodoc_inherit_docstrings = False
autodoc_typehints = "none"
napoleon_google_docstring = False
# Attributes stay in the text of their class; properties have no second entry there.
napoleon_use_ivar = True
napoleon_use_rtype = False

plot_formats = [("png", 160)]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {"figure.constrained_layout.use": True, "figure.dpi": 100}
plot_apply_rcparams = True

html_theme = "furo"
html_title = f"glmbrian {release}"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#7a3e00", "color-brand-content": "#7a3e00"},
    "dark_css_variables": {"color-brand-primary": "#f0a860", "color-brand-content": "#f0a860"},
}


def _write_pages(app, config):
    api_pages.write(DOCS / "api")
    notebook_pages.write(ROOT / "notebooks", DOCS / "gallery")


def setup(app):
    app.connect("config-inited", _write_pages)
