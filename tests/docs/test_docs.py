"""The documentation builds, is complete, and what it shows is so.

In the pages, the ```python blocks of one page run from top to bottom in one
namespace, in an empty folder.  A ```text block right after one is what it prints.
A comment on the line above a block says what it needs:

    <!-- needs: compiler, nemos -->     skipped where one of them is missing
    <!-- not run: reason -->            never run
"""

import contextlib
import importlib.util
import inspect
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import has_compiler

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def _api_pages():
    spec = importlib.util.spec_from_file_location("api_pages", DOCS / "api_pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _is_method(cls, member):
    """Whether a member is a method that Brian 2 does not have, and document, itself."""
    of_brian = [base for base in cls.__mro__ if base.__module__.startswith("brian2.")]
    return not isinstance(inspect.getattr_static(cls, member), property) and not any(
        member in vars(base) for base in of_brian
    )


# ---------------------------------------------------------------------- reference

api_pages = _api_pages()
OBJECTS = api_pages.public_objects()
CALLABLES = {name: value for name, value in OBJECTS.items() if callable(value)}
for _cls, _members in api_pages.own_members().items():
    for _member in _members:
        if _is_method(OBJECTS[_cls], _member):
            CALLABLES[f"{_cls}.{_member}"] = getattr(OBJECTS[_cls], _member)


def test_reference_has_every_public_name(tmp_path):
    api_pages.write(tmp_path)
    index = (tmp_path / "index.rst").read_text(encoding="utf-8")
    for name in OBJECTS:
        assert re.search(rf"(^   |:: ){re.escape(name)}$", index, flags=re.MULTILINE), name
    assert set(api_pages.public_modules()) >= {"glmbrian.learning", "glmbrian.datasets"}
    assert "glmbrian.GLMNeurons" in OBJECTS and "glmbrian.learning.rate_gradient" in OBJECTS
    assert "glmbrian.GLMClassifier.fit" in CALLABLES


@pytest.mark.parametrize("name", sorted(CALLABLES))
def test_docstring_is_complete(name):
    value = CALLABLES[name]
    # Not inspect.getdoc, which would take that of a base class.
    doc = inspect.cleandoc(value.__doc__ or "")
    assert doc, f"{name} has no docstring"
    _, heading, examples = doc.partition("\nExamples\n--------\n")
    assert heading and ">>>" in examples, f"the docstring of {name} has no example"
    if list(inspect.signature(value).parameters) not in ([], ["self"]):
        # the fields of a named tuple are its attributes
        section = "Attributes" if hasattr(value, "_fields") else "Parameters"
        assert re.search(rf"^{section}\n-+$", doc, flags=re.MULTILINE), f"{name} has no {section}"


# ---------------------------------------------------------------------- pages

# Design and benchmarks show commands, but no Python.
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted((DOCS / "howto").glob("*.md"))]

_BLOCK = re.compile(
    r"(?:^<!-- (?P<comment>.*?) -->\n)?"
    r"^```python\n(?P<code>.*?)^```$"
    r"(?:\n\n?^```text\n(?P<output>.*?)^```$)?",
    flags=re.DOTALL | re.MULTILINE,
)


class Block:
    """A ```python block of a page, and what is said about it."""

    def __init__(self, page, match):
        text = page.read_text(encoding="utf-8")
        self.code, self.output = match["code"], match["output"]
        line = text.count("\n", 0, match.start("code"))
        # With its place in the page, so that tracebacks show it.
        self.code_object = "\n" * line + self.code
        self.name = f"{page.relative_to(ROOT)}:{line + 1}"
        key, _, rest = (match["comment"] or "").partition(": ")
        self.not_run = rest if key == "not run" else ""
        self.needs = [need.strip() for need in rest.split(",")] if key == "needs" else []
        assert key in ("", "not run", "needs"), f"{self.name}: {key!r} is no known comment"
        assert bool(key) == bool(rest), f"{self.name}: the comment must say what, or why"

    def missing(self):
        return [
            need
            for need in self.needs
            if not (has_compiler() if need == "compiler" else importlib.util.find_spec(need))
        ]


def blocks_of(page):
    return [Block(page, match) for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))]


def test_pages_show_code():
    assert len([block for page in PAGES for block in blocks_of(page)]) > 20


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=str(page.relative_to(ROOT)),
            marks=[pytest.mark.compiled] if page.name == "README.md" else [],
        )
        for page in PAGES
        if blocks_of(page)
    ],
)
def test_code_of_pages_runs(page, tmp_path, monkeypatch):
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    left_out = []
    for block in blocks_of(page):
        if block.not_run:
            continue
        if block.missing():
            left_out.append(f"{block.name} ({', '.join(block.missing())})")
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.code_object, str(page), "exec"), namespace)
        if block.output is not None:
            assert printed.getvalue() == block.output, block.name
    pyplot.close("all")
    if left_out:
        pytest.skip(f"all but these ran, for lack of: {'; '.join(left_out)}")


#: Pages for those who change the code.
_FOR_DEVELOPERS = [
    ROOT / "CONTRIBUTING.md",
    DOCS / "design.md",
    *sorted((DOCS / "design").glob("*.md")),
]


@pytest.mark.parametrize("page", [*_FOR_DEVELOPERS, DOCS / "model.md"], ids=lambda page: page.stem)
def test_pages_name_files_that_exist(page):
    named = set(re.findall(r"`([\w./]+\.(?:py|hpp|md))`", page.read_text(encoding="utf-8")))
    missing = {
        name
        for name in named
        if not any((folder / name).exists() for folder in (ROOT, ROOT / "glmbrian"))
    }
    # Tables may leave out the folder that the name before it has.
    files = {path.name for path in (ROOT / "glmbrian").rglob("*.py")}
    assert {name for name in missing if "/" in name or name not in files} == set()


# ---------------------------------------------------------------------- site


def test_site_builds_without_warnings(tmp_path):
    for package in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(package, reason=f"{package} is not installed (pip install '.[docs]')")
    # A copy, as the build writes pages into the folder.
    for folder in ("docs", "notebooks", "benchmarks", "data/results"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("api", "gallery", "fits")
        )
    for file in ("CHANGELOG.md", "README.md"):
        shutil.copy(ROOT / file, tmp_path)
    site = tmp_path / "site"
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", str(site)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    index = (site / "api" / "index.html").read_text(encoding="utf-8")
    for name in OBJECTS:
        assert name in index, name
        if name in CALLABLES:
            assert (site / "api" / f"{name}.html").is_file(), name
