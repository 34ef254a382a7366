"""Results as tidy tables: one row a fit, and means with 95% intervals."""

import csv
import io
from collections import defaultdict

import numpy as np
from scipy.stats import t as student

from ..support.storage import write_text
from .complexity import energy
from .selection import selected

#: Results of a fit that are a number each.
MEASURES = (
    "accuracy",
    "mean_decision_step",
    "silent_fraction",
    "operations_per_class",
    "accuracy_by_spikes",
    "recounted_operations_per_class",
)

#: What the fits of a figure share if they differ in the seed alone.
POINT = ("settings", "decoder", "classes", "n_steps", "n_basis")

GAP = "first-to-spike minus rate"


def fit_row(fit, result):
    """Return the row of a `fits.Fit`.

    `accuracy_by_spikes` is that under which ties and silence are decided at random,
    not by membrane potentials; `recounted_operations_per_class` is a count made from
    the spikes of the test, drawn again.
    """
    return {
        **_point(fit),
        "seed": fit.seed,
        "learning_rate": fit.learning_rate,
        **{name: result[name] for name in MEASURES},
    }


def ann_row(fit, result):
    """Return the row of a `fits.AnnFit`."""
    measured = {name: result.get(name, "") for name in MEASURES}
    return {**_ann_point(fit), "learning_rate": "", **measured}


def decision_time_rows(fit, result):
    """Return of each step the fraction of test images that a spike decided there."""
    return [
        {**_point(fit), "seed": fit.seed, "step": step, "fraction": fraction}
        for step, fraction in enumerate(result["decision_steps"], start=1)
    ]


def deadline_rows(fit, result):
    """Return what would have been decided by each step, and for how many operations."""
    by_step = result["deadlines"]
    return [
        {**_point(fit), "seed": fit.seed, "deadline": step + 1}
        | {name: values[step] for name, values in by_step.items()}
        for step in range(fit.design.n_steps)
    ]


def operation_rows(fit, result):
    """Return the operations an image by layer and kind, and their energy in additions.

    Also of an `fits.AnnFit`.
    """
    point = {**_point(fit), "seed": fit.seed} if hasattr(fit, "design") else _ann_point(fit)
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


def rate_rows(design, accuracies):
    """Return the cross-validated accuracy of each learning rate, and which was selected."""
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
    """Return the columns of the ANN, which has neither steps nor seeds."""
    empty = dict.fromkeys([*POINT, "seed"], "")
    return {**empty, "decoder": "ann", "classes": _class_name(fit.classes)}


def _class_name(classes):
    return " ".join(map(str, classes))


# ------------------------------------------------------------------ summaries


def interval(values):
    """Return mean, and lower and upper end of Student's 95% interval of the mean.

    Of at least two values.
    """
    values = np.asarray(values, dtype=float)
    mean = values.mean()
    half = student.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(mean), float(mean - half), float(mean + half)


def grouped(rows, keys):
    """Return lists of the rows that agree in the columns `keys`, by their values."""
    groups = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in keys)].append(row)
    return dict(groups)


def gap_rows(rows):
    """Return, seed by seed, the measures of first-to-spike less those of rate decoding."""
    keys = [key for key in (*POINT, "seed") if key != "decoder"]
    gaps = []
    for pair in grouped(rows, keys).values():
        by_decoder = {row["decoder"]: row for row in pair}
        one, other = by_decoder["first-to-spike"], by_decoder["rate"]
        gaps.append({**one, "decoder": GAP} | {name: one[name] - other[name] for name in MEASURES})
    return gaps


def summary(rows, keys=POINT, measures=MEASURES):
    """Return mean and interval over the seeds: one row a point and measure."""
    table = []
    for values, group in grouped(rows, keys).items():
        for name in measures:
            mean, low, high = interval([row[name] for row in group])
            table.append(
                dict(zip(keys, values))
                | {"measure": name, "mean": mean, "low": low, "high": high, "n_seeds": len(group)}
            )
    return table


def write_csv(path, rows):
    """Write rows, dicts of the same keys, with a header."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue(), "output")
