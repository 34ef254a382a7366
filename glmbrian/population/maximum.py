"""Whether a population is at the maximum of the likelihood, as standard errors and tests take for granted."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .population import GLMPopulation

STABILITY = "the constraint of stability"

#: What earlier versions wrote into pickled populations, and what `GLMPopulation.moved_by` says now.
FORMER_REASONS = {
    "it was fitted with a penalty, which moves parameters": "a penalty",
    "it was fitted under the constraint of stability": STABILITY,
}


def by_penalty(penalty: str, strength: float) -> str | None:
    """Return what a penalty is called in `GLMPopulation.moved_by`; None if it has no strength."""
    return f"a penalty ({penalty}, strength {strength:g})" if strength > 0 else None


def by_stability(moved_by: str | None) -> str:
    """Return `GLMPopulation.moved_by` of a stable population, given that of the fit it comes from."""
    return STABILITY if moved_by is None else f"{moved_by} and {STABILITY}"


def require_maximum(population: "GLMPopulation", name: str, what: str) -> None:
    """Raise a ValueError if a penalty or a constraint has moved the parameters of a population.

    Parameters
    ----------
    population : GLMPopulation
    name : str
        What to call it in the message.
    what : str
        What would be wrong then.
    """
    if population.moved_by is not None:
        raise ValueError(f"{name} has no {what}, since {_why(population)}")


def data_of_fit(population: "GLMPopulation", what: str, call: str) -> tuple[Any, Any, Any, Any]:
    """Return the outputs, inputs, mask and epochs of a fit; raise an AttributeError if there are none.

    Parameters
    ----------
    population : GLMPopulation
    what : str
        What is to be computed from them.
    call : str
        The method that computes it from data.
    """
    if population.moved_by is not None:
        raise AttributeError(f"this population has no {what}, since {_why(population)}")
    if population.fitted_to is None:
        raise AttributeError(
            f"the {what} of this population are not known, since it was not made by fit_population, or "
            "it is a copy without the data of the fit. If its parameters are at the maximum of the "
            f"likelihood of your data, call population.{call}"
        )
    return population.fitted_to


def _why(population):
    return (
        f"it was fitted with {population.moved_by}, which moves parameters away from the maximum of the "
        "likelihood. Fit again without it (with connect= to keep only the pairs that it has found), or "
        "compare by score on steps that the fit has not seen"
    )
