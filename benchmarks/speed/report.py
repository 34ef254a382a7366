"""Tables and pictures of the measurements."""

import json
import os
import platform
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from glmbrian.support.storage import replacing, write_text

from .package import Package

_PACKAGES = ("glmbrian", "brian2", "numpy", "numba", "torch")


def machine():
    """Return what the results depend on: processor, compiler and versions."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = None
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "compiler": _compiler(),
        "versions": versions,
    }


def _processor():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _compiler():
    if shutil.which("g++") is None:
        return None
    lines = subprocess.run(["g++", "--version"], capture_output=True, text=True).stdout.splitlines()
    return lines[0] if lines else "g++"


def write(results, folder):
    """Write ``benchmark.json``, ``report.md`` and the pictures into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "benchmark.json", json.dumps(results, indent=1) + "\n", "output")
    write_text(folder / "report.md", markdown(results), "output")
    draw_training(results["training"], folder / "training.png")
    draw_scaling(results["scaling"], folder / "scaling.png")


# ------------------------------------------------------------------ tables


def markdown(results):
    """Return all tables as Markdown."""
    about = results["machine"]
    versions = ", ".join(f"{name} {what}" for name, what in about["versions"].items() if what)
    parts = [
        *(["This was a quick run with short turns."] if results["quick"] else []),
        f"{about['processor']}, {about['cores']} cores; {about['system']}; {about['compiler']}; "
        f"{versions}; {results['date']}; medians of {results['n_rounds']} interleaved rounds, "
        "with the least and the greatest in brackets.",
        "## Training\n\nMicroseconds per presentation, and the time of glmbrian relative to the "
        "other. The last column shows that a contender learns; turns take equal time, so a slow "
        "one has seen fewer images.\n\n" + _training_table(results["training"]),
        "## What the hand-tuned kernel does\n\nAverages per presentation.\n\n"
        + _counts_table(results["training"]),
        "## Other comparisons\n\n" + _others_table(results),
        "## Growth\n\nThe exponent is the slope of log cost over log value between the two "
        "values: 1 is linear, 0 is no growth.\n\n" + _scaling_table(results["scaling"]),
    ]
    for name, reason in results["unavailable"].items():
        parts.append(f"{name} was not measured: {reason}. (pip install 'glmbrian[benchmark]')")
    return "\n\n".join(parts) + "\n"


def _table(header, rows):
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


def _number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _spread(values, unit=""):
    least, greatest = _number(values["least"]), _number(values["greatest"])
    return f"{_number(values['median'])}{unit} ({least} to {greatest})"


def _training_table(rows):
    lines = [
        (
            row["n_classes"],
            row["n_steps"],
            row["contender"],
            _spread(row["microseconds"]),
            _spread(row["ratio"]) if row["contender"] != Package.name else "1",
            f"{row['accuracy']:.3f}",
        )
        for row in rows
    ]
    header = ("N_Y", "T = K", "", "microseconds", "glmbrian / other", "training accuracy")
    return _table(header, lines)


def _counts_table(rows):
    counted = [row for row in rows if "counts" in row]
    names = list(counted[0]["counts"]) if counted else []
    header = ("N_Y", "T = K", *(name.replace("_", " ") for name in names))
    lines = [
        (row["n_classes"], row["n_steps"], *(_number(row["counts"][name]) for name in names))
        for row in counted
    ]
    return _table(header, lines)


def _others_table(results):
    stop, fit, many = results["early_stopping"], results["second_fit"], results["many_images"]
    lines = [
        (
            f"images per second in a test, first-to-spike over rate, T = {stop['n_steps']} (mean "
            f"decision step {stop['mean_decision_step']:.2f})",
            _spread(stop["ratio"]),
        ),
        ("seconds of a second fit, same process", _spread(fit["same_process"])),
        ("seconds of a second fit, fresh process", _spread(fit["fresh_process"])),
        (f"microseconds per presentation, {many['n_images']:,} images", _spread(many["microseconds"])),
        (f"{many['n_images']:,} images over 2,000 images, per presentation", _spread(many["ratio"])),
        ("peak memory of the program, MB", _number(many["program_memory"] / 1e6)),
        (
            "peak memory of Python, MB (before the fit)",
            f"{many['python_memory'] / 1e6:.0f} ({many['python_before'] / 1e6:.0f})",
        ),
        ("seconds that importing glmbrian adds to Brian 2", _spread(results["imports"]["added"])),
    ]
    return _table(("", ""), lines)


def _scaling_table(rows):
    lines = []
    for row in rows:
        exponents = [None, *row["exponents"]]
        for n, (value, cost) in enumerate(zip(row["values"], row["costs"])):
            first = n == 0
            lines.append(
                (
                    f"{row['axis']}: {row['measure']}" if first else "",
                    f"{value:,}",
                    _spread(cost),
                    "" if exponents[n] is None else f"{exponents[n]:.2f}",
                )
            )
    return _table(("axis", "value", "cost", "exponent"), lines)


# ------------------------------------------------------------------ pictures


def draw_training(rows, path):
    """Draw the time per presentation of every contender."""
    from matplotlib.figure import Figure

    sizes = list(dict.fromkeys((row["n_classes"], row["n_steps"]) for row in rows))
    figure = Figure(figsize=(3.2 * len(sizes), 3.4), layout="constrained")
    for ax, size in zip(figure.subplots(1, len(sizes), squeeze=False)[0], sizes):
        own = [row for row in rows if (row["n_classes"], row["n_steps"]) == size]
        own.sort(key=lambda row: row["microseconds"]["median"], reverse=True)
        medians = [row["microseconds"]["median"] for row in own]
        colours = ["0.2" if row["contender"] == Package.name else "0.7" for row in own]
        bars = ax.barh([row["contender"] for row in own], medians, color=colours)
        ax.bar_label(bars, [_number(median) for median in medians], padding=2, fontsize=8)
        ax.set(xscale="log", title=f"$N_Y$ = {size[0]}, T = K = {size[1]}")
        ax.set(xlabel="µs per presentation", xlim=(min(medians) / 3, max(medians) * 6))
        ax.tick_params(axis="y", labelsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    with replacing(path, "output") as file:
        figure.savefig(file, format="png", dpi=150)


def draw_scaling(rows, path):
    """Draw the cost along each axis, with a straight line through the first value."""
    from matplotlib.figure import Figure

    n_columns = 4
    n_rows = -(-len(rows) // n_columns)
    figure = Figure(figsize=(3.2 * n_columns, 2.7 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for ax, row in zip(axes, rows):
        values = row["values"]
        medians = [cost["median"] for cost in row["costs"]]
        below = [cost["median"] - cost["least"] for cost in row["costs"]]
        above = [cost["greatest"] - cost["median"] for cost in row["costs"]]
        ax.errorbar(values, medians, (below, above), marker="o", color="0.2", capsize=2)
        linear = [medians[0] * value / values[0] for value in values]
        ax.plot(values, linear, ":", color="0.5", label="linear")
        ax.set(xscale="log", yscale="log", xlabel=row["axis"])
        ax.set_ylabel(row["measure"], fontsize=8)
        ax.set_xticks(values, [f"{value:,}" for value in values], fontsize=7)
        ax.minorticks_off()
        ax.spines[["top", "right"]].set_visible(False)
    axes[0].legend(frameon=False, fontsize=8)
    for ax in axes[len(rows) :]:
        ax.set_visible(False)
    with replacing(path, "output") as file:
        figure.savefig(file, format="png", dpi=150)
