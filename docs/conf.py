"""Sphinx configuration: ``sphinx-build -W --keep-going -b html docs OUTPUT``.

Pages are Markdown.  Before Sphinx reads them, `api_pages` writes the reference
from the package's public names, and `gallery_pages` the gallery from notebooks and
example scripts.  Nothing is fetched from the network, and none of these is run.
"""

import inspect
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
import gallery_pages  # noqa: E402
from brian2 import prefs  # noqa: E402
from sphinx import addnodes  # noqa: E402
from sphinx.util.inspect import stringify_signature  # noqa: E402

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
html_static_path = ["_static"]
html_css_files = ["glmbrian.css"]
html_title = f"glmbrian {release}"
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#7a3e00", "color-brand-content": "#7a3e00"},
    "dark_css_variables": {"color-brand-primary": "#f0a860", "color-brand-content": "#f0a860"},
}


def _write_pages(app, config):
    api_pages.write(DOCS / "api")
    gallery_pages.write(ROOT / "notebooks", DOCS / "examples", DOCS / "gallery")


def _signature_of_init(app, what, name, obj, options, signature, returned):
    """Show the parameters of Brian's classes, whose metaclass hides them."""
    if what == "class" and signature == "(*args, **kw)":
        parameters = list(inspect.signature(obj.__init__).parameters.values())[1:]
        return stringify_signature(inspect.Signature(parameters)), returned
    return None


def _unlink_words_of_types(app, doctree):
    """Unlink the words of a type such as "shape (n,)", which attributes are called like."""
    for reference in list(doctree.findall(addnodes.pending_xref)):
        target = reference.get("reftarget", "")
        if reference.get("reftype") == "class" and target.islower() and "." not in target:
            reference.replace_self(reference.children)


def setup(app):
    app.connect("config-inited", _write_pages)
    app.connect("autodoc-process-signature", _signature_of_init)
    app.connect("doctree-read", _unlink_words_of_types)
