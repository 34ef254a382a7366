"""The reference: one page per public name, by topic, made from the package itself.

A name is public if it is in ``glmbrian.__all__`` or in one of its public modules, so
the reference is complete by construction.
"""

import inspect
import sys
from importlib import import_module
from types import ModuleType

import glmbrian

#: Titles of topics, by the module that defines their names, in the order shown.
#: Names from any other module get their own topic.
TOPICS = {
    "glmbrian.brian.neurons": "Neurons and synapses",
    "glmbrian.brian.synapses": "Neurons and synapses",
    "glmbrian.brian.encoder": "Inputs, and the end of a run",
    "glmbrian.brian.stopping": "Inputs, and the end of a run",
    "glmbrian.core.bases": "Bases of kernels",
    "glmbrian.core.activations": "Activation functions",
    "glmbrian.core.objectives": "Objectives of training",
    "glmbrian.training.trainer": "Training in networks of your own",
    "glmbrian.population.population": "Populations, and fits to recordings",
    "glmbrian.population.fitting": "Populations, and fits to recordings",
    "glmbrian.population.selection": "Populations, and fits to recordings",
    "glmbrian.population.comparing": "Populations, and fits to recordings",
    "glmbrian.classifier.classifier": "Classifier",
    "glmbrian.classifier.ensemble": "Classifier",
    "glmbrian.confident.decision": "Decisions that can be trusted",
    "glmbrian.core.changes": "Decisions that can be trusted",
    **{
        f"glmbrian.robustness.{module}": "Decisions that can be trusted"
        for module in (
            "attacks",
            "gradients",
            "intensities",
            "certificates",
            "losses",
            "methods",
        )
    },
}
_CONSTANTS = "Constants"


def public_names(module):
    """Return the public names of a module, in the order of its ``__all__``."""
    if hasattr(module, "__all__"):
        return list(module.__all__)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isfunction(value) or inspect.isclass(value))
        and value.__module__ == module.__name__
    ]


def public_modules(package=glmbrian):
    """Return the public modules of a package, and of those modules, by full name."""
    found = {}
    for name in getattr(package, "__all__", ()):
        value = getattr(package, name)
        if isinstance(value, ModuleType):
            found.update({value.__name__: value, **public_modules(value)})
    return found


def public_objects():
    """Return all public values except modules, by full name (the shortest if several)."""
    found, seen = {}, set()
    for module in (glmbrian, *public_modules().values()):
        for name in public_names(module):
            value = getattr(module, name)
            if not isinstance(value, ModuleType) and id(value) not in seen:
                found[f"{module.__name__}.{name}"] = value
                seen.add(id(value))
    return found


def own_members():
    """Return the public methods and properties that the package itself defines, by class.

    Those from Brian 2 and scikit-learn are in their own documentation.
    """
    return {
        full_name: [
            name for name, value in vars(cls).items() if not name.startswith("_") and _is_own(value)
        ]
        for full_name, cls in public_objects().items()
        if inspect.isclass(cls)
    }


def _is_own(value):
    if isinstance(value, property):
        value = value.fget
    function = getattr(value, "__func__", value)  # for a class method
    return inspect.isfunction(function) and function.__module__.startswith("glmbrian")


def topics():
    """Return lists of the full names of all public objects, by title."""
    found = {title: [] for title in TOPICS.values()}
    later = {_CONSTANTS: [], **{name: [] for name in public_modules()}}
    for full_name, value in public_objects().items():
        home = full_name.rpartition(".")[0]
        if home != "glmbrian":
            title = home
        elif not callable(value):
            title = _CONSTANTS
        else:
            title = TOPICS.get(value.__module__) or _summary(import_module(value.__module__))
        (later if title in later else found).setdefault(title, []).append(full_name)
    return {title: names for title, names in {**found, **later}.items() if names}


def write(folder):
    """Write ``index.rst`` with the topics; autosummary makes the pages from it."""
    lines = [
        "API reference",
        "=============",
        "",
        "All public names. Those in the first topics are attributes of ``glmbrian``, which the",
        "examples import as ``glm``.",
        "",
    ]
    for title, names in topics().items():
        lines += [title, "-" * len(title), ""]
        if title == _CONSTANTS:
            for name in names:
                lines += _constant(name)
            continue
        if title in public_modules():
            lines += [*inspect.getdoc(public_modules()[title]).splitlines(), ""]
        lines += [".. autosummary::", "   :toctree:", ""]
        lines += [f"   {name}" for name in names]
        lines += [""]
    folder.mkdir(exist_ok=True)
    text = "\n".join(lines)
    index = folder / "index.rst"
    # An unchanged file keeps its modification time, which shortens the next build.
    if not index.exists() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")


def _summary(module):
    return inspect.getdoc(module).partition("\n")[0].rstrip(".")


def _constant(full_name):
    value = getattr(glmbrian, full_name.rpartition(".")[2])
    entry = [f".. py:data:: {full_name}", f"   :value: {value!r}", ""]
    return entry + [f"   {line}" for line in _comment(full_name.rpartition(".")[2])] + [""]


def _comment(name):
    """Return the ``#:`` comment above the assignment of `name`, somewhere in the package."""
    from sphinx.pycode import ModuleAnalyzer

    for module in sorted(module for module in sys.modules if module.startswith("glmbrian.")):
        comments = ModuleAnalyzer.for_module(module).find_attr_docs()
        if ("", name) in comments:
            return comments["", name]
    return []
