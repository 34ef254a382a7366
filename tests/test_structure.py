"""The architecture: what each module may know about the others."""

import ast
import re
import sys
from pathlib import Path

import pytest

import glmbrian

ROOT = Path(glmbrian.__file__).parent
MODULES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
    for path in sorted(ROOT.rglob("*.py"))
}

#: Names that begin with an underscore, but that the libraries defining them document.
DOCUMENTED = {"_asdict", "_replace", "_exit", "_getframe"}

#: The only folder whose modules may use what Brian does not document.
BRIANS_INTERNALS = "brian/internals/"

#: The modules that may contain names of objectives, devices and activations, and why. Documentation
#: and defaults of arguments may contain them anywhere.
NAMING = {
    "core/objectives.py": "objectives",
    "core/activations.py": "activations",
    "devices/__init__.py": "the registry of devices",
    "devices/cpp_standalone.py": "its own name",
    "devices/genn.py": "its own name",
    "devices/runtime.py": "its own name",
    "brian/target.py": "Brian's devices",
    "brian/internals/devices.py": "Brian's devices",
    "brian/functions.py": "Brian's languages",
    "devices/fingerprint.py": "Brian's languages",
    "cli/devices.py": "the devices that --device chooses",
    "cli/export.py": "the default of --device",
    "reproduce/claims.py": "the comparison of the paper's two objectives",
    "reproduce/figures.py": "the comparison of the paper's two objectives",
    "reproduce/tables.py": "the comparison of the paper's two objectives",
}
NAMES = {
    "first-to-spike", "rate", "sigmoid", "probit", "cloglog", "runtime", "cpp_standalone", "genn",
}  # fmt: skip


def is_private(name):
    return name.startswith("_") and not name.endswith("__") and name not in DOCUMENTED


def own_names(tree):
    """Yield the names that a module defines: functions, classes, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(getattr(node, "ctx", None), ast.Store):
            yield getattr(node, "id", None) or getattr(node, "attr", None)


def private_names_of_others(tree):
    own = set(own_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield from (name.name for name in node.names if is_private(name.name))
        # A class may use private names of its base classes.
        elif isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in own:
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield ast.unparse(node)


@pytest.mark.parametrize("module", [name for name in MODULES if not name.startswith(BRIANS_INTERNALS)])
def test_no_module_uses_private_names_of_another(module):
    assert list(private_names_of_others(MODULES[module])) == []


@pytest.mark.parametrize(
    "code", ["from .other import _name", "import other\nother.name._part", "x.y._part()"]
)
def test_private_names_are_found(code):
    assert list(private_names_of_others(ast.parse(code)))


def named(tree):
    """Return the strings in the code that are in `NAMES`, except defaults of arguments."""
    defaults = {
        id(default)
        for node in ast.walk(tree)
        if isinstance(node, ast.arguments)
        for default in (*node.defaults, *node.kw_defaults)
    }
    # The defaults of dataclass fields do not count either.
    defaults |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.AnnAssign)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value in NAMES and id(node) not in defaults
    ]


def test_objectives_devices_and_activations_are_named_in_few_places():
    assert {module for module, tree in MODULES.items() if named(tree)} == set(NAMING)


def imported_modules(module):
    """Yield the modules of the package that a module imports, also for types only."""
    *folders, _ = module.split("/")
    for node in ast.walk(MODULES[module]):
        if not (isinstance(node, ast.ImportFrom) and node.level):
            continue
        base = folders[: len(folders) + 1 - node.level]
        named = [node.module] if node.module else [name.name for name in node.names]
        for name in named:
            path = "/".join([*base, *name.split(".")])
            yield from (file for file in (f"{path}.py", f"{path}/__init__.py") if file in MODULES)


def check_one_way(imports):
    """Raise unless each name can be reached from those it imports by none of them."""
    waiting = set(imports).union(*imports.values())
    while waiting:
        free = {name for name in waiting if not imports.get(name, set()) & waiting}
        assert free, f"circular imports among {sorted(waiting)}"
        waiting -= free


def test_arrows_between_the_files_of_a_folder_run_one_way():
    imports = {module: set(imported_modules(module)) - {module} for module in MODULES}
    for folder in {module.rpartition("/")[0] for module in MODULES}:
        own = {module for module in MODULES if module.rpartition("/")[0] == folder}
        check_one_way({module: imports[module] & own for module in own})


def subpackage_imports():
    """Return, for each subpackage and top-level module, those that its code imports."""
    found = {}
    for module, tree in MODULES.items():
        *folders, _ = module.split("/")
        home = folders[0] if folders else module.removesuffix(".py")
        for node in ast.walk(tree):
            if not (isinstance(node, ast.ImportFrom) and node.level):
                continue
            base = folders[: len(folders) + 1 - node.level]
            modules = [node.module] if node.module else [name.name for name in node.names]
            for imported in modules:
                target = [*base, *imported.split(".")][0]
                if target != home:
                    found.setdefault(home, set()).add(target)
    return found


def test_design_page_lists_the_folders_in_order_of_their_imports():
    design = (Path(__file__).parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)/?` \|", design, flags=re.MULTILINE)
    imports = {
        name: {other for other in others if not other.startswith("_")}
        for name, others in subpackage_imports().items()
        if not name.startswith("_")
    }
    assert set(listed) == set(imports).union(*imports.values())
    for n, name in enumerate(listed):
        assert imports.get(name, set()) <= set(listed[:n]), name


def test_arrows_between_subpackages_run_one_way():
    imports, layers = subpackage_imports(), []
    waiting = set(imports).union(*imports.values())
    while waiting:
        free = {name for name in waiting if not imports.get(name, set()) & waiting}
        assert free, f"circular imports among {sorted(waiting)}"
        layers.append(free)
        waiting -= free
    assert "support" in layers[0] and "core" in layers[1]


TESTS = sorted(Path(__file__).parent.rglob("test_*.py"))


def patched_names(tree):
    """Yield the names that a test replaces with `monkeypatch.setattr` or similar calls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", None) in ("setattr", "delattr"):
            strings = [part.value for part in node.args[:2] if isinstance(part, ast.Constant)]
            yield from (name.rpartition(".")[2] for name in strings if isinstance(name, str))


@pytest.mark.parametrize("path", TESTS, ids=[path.stem for path in TESTS])
def test_tests_patch_no_private_names(path):
    assert [name for name in patched_names(ast.parse(path.read_text())) if is_private(name)] == []


def test_the_nightly_run_has_every_file_with_tests_that_only_it_runs():
    tests = Path(__file__).parent
    marked = {
        path.relative_to(tests).as_posix()
        for path in TESTS
        if re.search(
            r"EXHAUSTIVE\b|mark\.exhaustive|in_numpy_and_compiled", path.read_text(encoding="utf-8")
        )
    }
    listed = (tests.parent / "Makefile").read_text(encoding="utf-8")
    listed = re.search(
        r"^EXHAUSTIVE := \$\(addprefix tests/,(.*?)\)$", listed, flags=re.DOTALL | re.MULTILINE
    )[1].split()
    assert marked - {Path(__file__).name} <= set(listed)


#: What every environment with tests has: what the package needs, and what its extra "test" brings.
INSTALLED = {
    "brian2", "hypothesis", "joblib", "matplotlib", "mpmath", "nbclient", "nbformat", "numpy", "pytest",
    "scipy", "sklearn", "threadpoolctl",
}  # fmt: skip

#: What tests import from files beside them, and from the benchmarks.
OURS = {
    name
    for folder in (Path(__file__).parent, Path(__file__).parents[1] / "benchmarks")
    for path in folder.rglob("*.py")
    for name in (path.stem, path.parent.name)
} | {"glmbrian"}


def outside_imports(tree):
    """Return the packages, other than Python's own, that a module imports when it is imported."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import):
            names |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add(node.module)
    names = {name.partition(".")[0] for name in names}
    return names - set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", TESTS, ids=[path.stem for path in TESTS])
def test_optional_packages_are_imported_with_importorskip(path):
    """Otherwise the tests end with an error where one of these packages is missing."""
    assert outside_imports(ast.parse(path.read_text())) <= INSTALLED | OURS
