"""The paper's claims, checked against the results."""

from typing import Any

import numpy as np

from .tables import GAP, gap_rows, grouped, interval

#: The accuracy at which the paper compares complexities (Sec. IV, Fig. 5).
TARGET = 0.984

#: The bootstrap's number of resamples, and the quantiles that bound 95% of them.
_N_RESAMPLES, _ENDS = 2000, (0.025, 0.975)

#: How ties and silence are decided, and the column of the accuracy.
RULES = {"by potential": "accuracy", "by spikes alone": "accuracy_by_spikes"}


def accuracy_vs_k_claims(rows: list[dict]) -> list[dict]:
    """Check whether first-to-spike is at or above rate decoding for the smallest K.

    Parameters
    ----------
    rows : list of dict
        See `tables.fit_row`.

    Returns
    -------
    list of dict
        One per combination of settings, classes and rule for ties.
    """
    least = min(row["n_basis"] for row in rows)
    gaps = [row for row in gap_rows(rows) if row["n_basis"] == least]
    claims = []
    for (settings, classes), group in grouped(gaps, ("settings", "classes")).items():
        for rule, column in RULES.items():
            mean, low, high = interval([row[column] for row in group])
            claims.append(
                {
                    "claim": f"{GAP} is at least 0 at K={least}",
                    "settings": settings,
                    "classes": classes,
                    "ties": rule,
                    "found": mean,
                    "interval": [low, high],
                    "holds": mean >= 0,
                }
            )
    return claims


def accuracy_vs_complexity_claims(rows: list[dict]) -> list[dict]:
    """Check the complexity ratio at `TARGET`, and the accuracy as T grows.

    Parameters
    ----------
    rows : list of dict
        See `tables.fit_row`; without the ANN.

    Returns
    -------
    list of dict
    """
    claims: list[dict] = []
    for (settings,), group in grouped(rows, ("settings",)).items():
        for rule, column in RULES.items():
            about = {"settings": settings, "ties": rule}
            decoders = grouped(group, ("decoder",))
            spike, rate = (Curve(decoders[name,], column) for name in ("first-to-spike", "rate"))
            claims.append({**_best(spike), **about})
            claims.append({**_ratio(spike, rate), **about})
            claims.extend({**claim, **about} for claim in _growth(spike))
    claims.append(_equal_counts(rows))
    return claims


class Curve:
    """Accuracy against operations of one decoder, for each seed.

    Parameters
    ----------
    rows : list of dict
    column : str
        Which accuracy to use.
    """

    def __init__(self, rows: list[dict], column: str):
        by_steps = grouped(rows, ("n_steps",))
        self.n_steps = sorted(n_steps for (n_steps,) in by_steps)
        # Arrays of shape (n_seeds, n_points).
        self.accuracy, self.operations = (
            np.array([[row[name] for row in by_steps[n_steps,]] for n_steps in self.n_steps]).T
            for name in (column, "operations_per_class")
        )

    def operations_at(self, target: float, seeds: Any = slice(None)) -> float:
        """Return the operations at which the mean over `seeds` first reaches an accuracy,
        or infinity.

        Between points the logarithm of the operations is interpolated.
        """
        accuracy = self.accuracy[seeds].mean(axis=0)
        operations = np.log(self.operations[seeds].mean(axis=0))
        reached = np.flatnonzero(accuracy >= target)
        if not reached.size:
            return np.inf
        at = reached[0]
        if at == 0:
            return float(np.exp(operations[0]))
        ends = slice(at - 1, at + 1)
        return float(np.exp(np.interp(target, accuracy[ends], operations[ends])))


def _best(spike):
    at = spike.accuracy.mean(axis=0).argmax()
    mean, low, high = interval(spike.accuracy[:, at])
    return {
        "claim": f"first-to-spike reaches {TARGET}",
        "found": mean,
        "interval": [low, high],
        "n_steps": spike.n_steps[at],
        "holds": mean >= TARGET,
    }


def _ratio(spike, rate):
    """Return the claim on the ratio of operations, rate over first-to-spike, at `TARGET`.

    The interval is from a bootstrap over the seeds, of the resamples in which
    first-to-spike reaches the accuracy.  An accuracy not reached gives None.
    """
    n_seeds = len(spike.accuracy)
    draws = np.random.default_rng(0).integers(n_seeds, size=(_N_RESAMPLES, 2, n_seeds))
    by_rate = np.array([rate.operations_at(TARGET, seeds) for seeds in draws[:, 0]])
    by_spike = np.array([spike.operations_at(TARGET, seeds) for seeds in draws[:, 1]])
    reached = np.isfinite(by_spike)
    ratios = by_rate[reached] / by_spike[reached] if reached.any() else [np.nan]
    needed_by_rate, needed_by_spike = rate.operations_at(TARGET), spike.operations_at(TARGET)
    is_reached = np.isfinite(needed_by_spike)
    # If rate decoding falls short, it needs more operations than its largest network used.
    spent = min(needed_by_rate, rate.operations.mean(axis=0).max())
    at_least = spent / needed_by_spike
    return {
        "claim": f"rate decoding needs at least 5 times the operations at {TARGET}",
        "found": _finite(needed_by_rate / needed_by_spike) if is_reached else None,
        # No averages of two values, since one of the two may be infinite.
        "interval": [_finite(end) for end in np.quantile(ratios, _ENDS, method="inverted_cdf")],
        "at_least": float(at_least),
        "first_to_spike_operations": _finite(needed_by_spike),
        "rate_operations": _finite(needed_by_rate),
        "resamples_in_which_first_to_spike_reaches_it": float(reached.mean()),
        "resamples_in_which_rate_reaches_it": float(np.isfinite(by_rate).mean()),
        "holds": bool(at_least >= 5),
    }


def _growth(spike):
    """Yield whether accuracy falls significantly as T grows beyond 8."""
    if 8 not in spike.n_steps:
        return
    start = spike.n_steps.index(8)
    for at in range(start + 1, len(spike.n_steps)):
        mean, low, high = interval(spike.accuracy[:, at] - spike.accuracy[:, start])
        yield {
            "claim": f"first-to-spike at T={spike.n_steps[at]} is not below T=8",
            "found": mean,
            "interval": [low, high],
            "holds": high >= 0,
        }


def _equal_counts(rows):
    equal = [row["operations_per_class"] == row["recounted_operations_per_class"] for row in rows]
    return {
        "claim": "operations equal a count from the spikes of the same test",
        "found": f"{sum(equal)} of {len(equal)} fits",
        "holds": all(equal),
    }


def _finite(value):
    return float(value) if np.isfinite(value) else None
