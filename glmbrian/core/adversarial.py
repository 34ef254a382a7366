"""Adversarial training: each presentation is attacked before it is learned.

The backward sweep of training ends with the gradient of the log-likelihood in the input spikes.
It says, to first order, how much each change of a spike lowers the log-likelihood.
`native/adversary.hpp` chooses the same changes in compiled programs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..support.validation import LARGEST_INTEGER, integer, real
from .changes import KINDS, Kind, get_kind
from .randomness import adversarial_key, uniforms

_NAMES = ("budget", "kind", "fraction")


@dataclass(frozen=True)
class Adversarial:
    """Which presentations training attacks, and how.

    Parameters
    ----------
    budget : int
        The most spikes to change in each presentation.
    kind : Kind
    fraction : float
        The probability that a presentation is attacked.

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.core.changes import KINDS
    >>> adversarial = Adversarial(1, KINDS["add"])
    >>> adversarial.changed(np.array([[1, 0], [0, 0]]), np.array([[-3.0, -2.0], [0.0, 0.0]]))
    array([[1, 1],
           [0, 0]])
    """

    budget: int
    kind: Kind
    fraction: float = 1.0

    @property
    def settings(self) -> dict[str, Any]:
        """The mapping that `get_adversarial` takes."""
        return {"budget": self.budget, "kind": self.kind.name, "fraction": self.fraction}

    def attacks(self, output_key: int, presentation: int) -> bool:
        """Return whether the presentation with this number is attacked."""
        return bool(uniforms(adversarial_key(output_key), presentation, 0, 0) < self.fraction)

    def changed(self, trains: np.ndarray, gradient: NDArray[np.float64]) -> np.ndarray:
        """Return the trains after the changes that lower the log-likelihood most, to first order.

        Parameters
        ----------
        trains : ndarray of 0/1, shape (T, N_X)
        gradient : ndarray of float, shape (T, N_X)
            The gradient of the log-likelihood in the spikes.

        Returns
        -------
        ndarray of 0/1, shape (T, N_X)
            At most `budget` entries are changed, each of which lowers the log-likelihood to first
            order.
        """
        raised = np.where(self.kind.allowed(trains[np.newaxis])[0], (1 - 2.0 * trains) * gradient, 0.0)
        # In single precision, so that devices that differ by rounding choose the same changes.
        with np.errstate(over="ignore"):
            raised = raised.astype(np.float32).ravel()
        worst = np.argsort(raised, kind="stable")[: self.budget]
        # Compiled code may flush subnormal numbers to 0.
        worst = worst[raised[worst] < -np.finfo(np.float32).tiny]
        changed = trains.copy()
        changed.ravel()[worst] ^= 1
        return changed


def get_adversarial(settings: Any) -> Adversarial | None:
    """Return the `Adversarial` that a mapping describes; None for None.

    Raises
    ------
    TypeError, ValueError
        If it is anything else, lacks the budget, or an entry is not valid.

    Examples
    --------
    >>> get_adversarial({"budget": 5}).kind.name
    'flip'
    """
    if settings is None:
        return None
    if not isinstance(settings, Mapping):
        raise TypeError(
            "adversarial must be None or a mapping such as {'budget': 5, 'kind': 'flip', "
            f"'fraction': 1.0}}, got {settings!r}"
        )
    unknown = [name for name in settings if not (isinstance(name, str) and name in _NAMES)]
    if unknown:
        raise ValueError(
            f"adversarial must hold nothing but {', '.join(map(repr, _NAMES))}, got {unknown[0]!r}"
        )
    if "budget" not in settings:
        raise ValueError(
            "adversarial must hold 'budget', the most spikes to change in each presentation, got "
            f"{dict(settings)!r}"
        )
    return Adversarial(
        integer(settings["budget"], "adversarial['budget']", 1, LARGEST_INTEGER),
        get_kind(settings.get("kind", "flip"), "adversarial['kind']"),
        real(settings.get("fraction", 1.0), "adversarial['fraction']", 0, 1, strict=True),
    )


def to_job(adversarial: Adversarial | None) -> dict[str, Any]:
    """Return the settings of a compiled program: see `native/job.hpp`."""
    values = adversarial.kind.values if adversarial else (0, 1)
    return {
        "adversarial_budget": adversarial.budget if adversarial else 0,
        "adversarial_fraction": repr(adversarial.fraction) if adversarial else 1.0,
        "adversarial_adds": int(0 in values),
        "adversarial_removes": int(1 in values),
    }


def from_job(run: Mapping[str, str]) -> Adversarial | None:
    """Return the settings that a compiled program reports; programs of earlier versions have none.

    Examples
    --------
    >>> from_job({name: str(value) for name, value in to_job(None).items()}) is None
    True
    >>> from_job({})
    """
    budget = int(run.get("adversarial_budget", 0))
    if budget == 0:
        return None
    flags = (run["adversarial_adds"], run["adversarial_removes"])
    values = tuple(value for value, flag in enumerate(flags) if flag == "1")
    (kind,) = (kind for kind in KINDS.values() if kind.values == values)
    return Adversarial(budget, kind, float(run["adversarial_fraction"]))


def adversarial_to_save(settings: Any) -> dict[str, Any] | None:
    """Return the mapping with values that JSON can hold; raise a ValueError for a custom kind."""
    adversarial = get_adversarial(settings)
    if adversarial is None:
        return None
    name = adversarial.kind.name
    if type(KINDS.get(name)) is not type(adversarial.kind):
        raise ValueError(
            f"adversarial['kind'] must be one of {', '.join(KINDS)} to be saved, got a custom one: "
            f"{adversarial.kind!r}"
        )
    values = adversarial.settings
    return {name: values[name] for name in settings}
