"""The folders and top-level modules of the package, and which of them import which.

The imports are read from the code, so the picture is always true.  An arrow is left out where
a path of other arrows says the same.
"""

import ast
from pathlib import Path
from random import Random

import matplotlib.pyplot as plt

import glmbrian

ROOT = Path(glmbrian.__file__).parent


def imports():
    """Return, for each folder and top-level module, those that it imports."""
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        *folders, name = path.relative_to(ROOT).with_suffix("").parts
        home = folders[0] if folders else name
        if home.startswith("_"):
            continue
        found.setdefault(home, set())
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = folders[: len(folders) + 1 - node.level]
                modules = [node.module] if node.module else [alias.name for alias in node.names]
                found[home] |= {[*base, *module.split(".")][0] for module in modules}
    return {
        home: {name for name in names - {home} if not name.startswith("_")}
        for home, names in found.items()
    }


def reachable(name, arrows):
    """Return everything that `name` imports, directly or not."""
    return arrows[name].union(*(reachable(other, arrows) for other in arrows[name]))


def without_shortcuts(arrows):
    """Return the arrows that no path of other arrows replaces."""
    return {
        name: {
            other
            for other in others
            if not any(other in reachable(via, arrows) for via in others - {other})
        }
        for name, others in arrows.items()
    }


def levels(arrows):
    """Return the length of the longest path from each name down to one that imports nothing."""

    def level(name):
        return 1 + max(map(level, arrows[name]), default=-1)

    return {name: level(name) for name in arrows}


def cost(x, level, arrows):
    """Return how hard a picture is to read: long arrows, boxes that overlap, arrows through boxes."""
    total = 0
    for name, others in arrows.items():
        beside = [other for other in arrows if other != name and level[other] == level[name]]
        total += sum(10 for other in beside if abs(x[other] - x[name]) < 1)
        for other in others:
            total += abs(x[name] - x[other])
            slope = (x[name] - x[other]) / (level[name] - level[other])
            total += sum(
                10
                for box in arrows
                if level[other] < level[box] < level[name]
                and abs(x[other] + slope * (level[box] - level[other]) - x[box]) < 0.7
            )
    return total


def places(level, arrows):
    """Return an x for each name, from a random search that always ends the same."""
    random = Random(0)
    x = {name: random.randint(-3, 3) for name in arrows}
    best = cost(x, level, arrows)
    for _ in range(6000):
        moved = {**x, random.choice(list(x)): random.randint(-6, 6) / 2}
        new = cost(moved, level, arrows)
        if new <= best:
            x, best = moved, new
    return x


arrows = without_shortcuts(imports())
level = levels(arrows)
x = places(level, arrows)
figure, ax = plt.subplots(figsize=(8, 6.5))
boxes = {}
for name in arrows:
    label = f"{name}/" if (ROOT / name).is_dir() else name
    style = {"boxstyle": "round,pad=0.45", "facecolor": "white", "edgecolor": "#7a3e00"}
    boxes[name] = ax.text(x[name], level[name], label, ha="center", va="center", bbox=style, zorder=2)
ax.set(xlim=(min(x.values()) - 0.6, max(x.values()) + 0.6), ylim=(-0.4, max(level.values()) + 0.4))
ax.axis("off")
figure.canvas.draw()  # boxes have their size, at which arrows end, once they are drawn
for name, others in arrows.items():
    for other in others:
        ends = {"patchA": boxes[name].get_bbox_patch(), "patchB": boxes[other].get_bbox_patch()}
        style = {"arrowstyle": "-|>", "color": "0.5", "shrinkA": 0, "shrinkB": 2, **ends}
        ax.annotate("", (x[other], level[other]), (x[name], level[name]), arrowprops=style)
