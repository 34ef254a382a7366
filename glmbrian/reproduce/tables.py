"""Results as tidy tables: one row per fit, and means with 95% intervals."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t as student

from ..support.storage import write_text
from .complexity import energy
from .fits import AnnFit, Fit
from .protocol import Design
from .selection import selected

#: Results of a fit that are single numbers.
MEASURES = (
    "accuracy",
    "mean_decision_step",
    "silent_fraction",
    "operations_per_class",
    "accuracy_by_spikes",
    "recounted_operations_per_class",
)

#: Columns shared by the fits of a figure that differ only in the seed.
POINT = ("settings", "decoder", "classes", "n_steps", "n_basis")

GAP = "first-to-spike minus rate"


def fit_row(fit: Fit, result: dict) -> dict[str, Any]:
    """Return the row of a `fits.Fit`.

    For `accuracy_by_spikes`, ties and silence are decided at random, not by membrane
    potentials; `recounted_operations_per_class` is counted from the spikes of the test,
    drawn again.
    """
    return {
        **_point(fit),
        "seed": fit.seed,
        "learning_rate": fit.learning_rate,
        **{name: result[name] for name in MEASURES},
    }


def ann_row(fit: AnnFit, result: dict) -> dict[str, Any]:
    """Return the row of a `fits.AnnFit`."""
    measured = {name: result.get(name, "") for name in MEASURES}
    return {**_ann_point(fit), "learning_rate": "", **measured}


def decision_time_rows(fit: Fit, result: dict) -> list[dict]:
    """Return the fraction of test images decided by a spike in each step."""
    return [
        {**_point(fit), "seed": fit.seed, "step": step, "fraction": fraction}
        for step, fraction in enumerate(result["decision_steps"], start=1)
    ]


def deadline_rows(fit: Fit, result: dict) -> list[dict]:
    """Return the results if decisions are made by each step, and their operations."""
    by_step = result["deadlines"]
    return [
        {**_point(fit), "seed": fit.seed, "deadline": step + 1}
        | {name: values[step] for name, values in by_step.items()}
        for step in range(fit.design.n_steps)
    ]


def operation_rows(fit: Fit | AnnFit, result: dict) -> list[dict]:
    """Return the operations per image by layer and kind, and their energy in additions."""
    point = {**_point(fit), "seed": fit.seed} if isinstance(fit, Fit) else _ann_point(fit)
    return [
        {
            **point,
            "layer": layer,
            "kind": kind,
            "operations": number,
            "energy": energy({kind: number}),
        }
        for layer, counts in result["operations"].items()
        for kind, number in counts.items()
    ]


def rate_rows(design: Design, accuracies: dict[float, float]) -> list[dict]:
    """Return the cross-validated accuracy of each learning rate, and the selected rate."""
    point = _design_point(design)
    best = selected(accuracies)
    return [
        {**point, "learning_rate": rate, "accuracy": accuracy, "selected": int(rate == best)}
        for rate, accuracy in accuracies.items()
    ]


def _point(fit):
    return {"settings": fit.settings, **_design_point(fit.design)}


def _design_point(design):
    return {
        "decoder": design.decoding,
        "classes": _class_name(design.classes),
        "n_steps": design.n_steps,
        "n_basis": design.n_basis,
    }


def _ann_point(fit):
    """Return the columns for the ANN, which has no steps and no seeds."""
    empty = dict.fromkeys([*POINT, "seed"], "")
    return {**empty, "decoder": "ann", "classes": _class_name(fit.classes)}


def _class_name(classes):
    return " ".join(map(str, classes))


# ------------------------------------------------------------------ summaries


def interval(values: ArrayLike) -> tuple[float, float, float]:
    """Return the mean of at least two values, and the ends of Student's 95% interval of it."""
    array = np.asarray(values, dtype=float)
    mean = array.mean()
    half = student.ppf(0.975, len(array) - 1) * array.std(ddof=1) / np.sqrt(len(array))
    return float(mean), float(mean - half), float(mean + half)


def grouped(rows: Iterable[dict], keys: Sequence[str]) -> dict[tuple, list[dict]]:
    """Return the rows grouped by their values in the columns `keys`."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def gap_rows(rows: list[dict]) -> list[dict]:
    """Return, for each seed, the measures of first-to-spike minus those of rate decoding."""
    keys = [key for key in (*POINT, "seed") if key != "decoder"]
    gaps = []
    for pair in grouped(rows, keys).values():
        by_decoder = {row["decoder"]: row for row in pair}
        one, other = by_decoder["first-to-spike"], by_decoder["rate"]
        gaps.append({**one, "decoder": GAP} | {name: one[name] - other[name] for name in MEASURES})
    return gaps


def summary(
    rows: list[dict], keys: Sequence[str] = POINT, measures: Sequence[str] = MEASURES
) -> list[dict]:
    """Return the mean and interval over the seeds: one row per point and measure."""
    table = []
    for values, group in grouped(rows, keys).items():
        for name in measures:
            mean, low, high = interval([row[name] for row in group])
            table.append(
                dict(zip(keys, values))
                | {"measure": name, "mean": mean, "low": low, "high": high, "n_seeds": len(group)}
            )
    return table


def write_csv(path: Path, rows: list[dict]) -> None:
    """Write rows, dicts with the same keys, with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue(), "output")
