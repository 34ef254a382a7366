"""Save and load a population."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from brian2 import second

from ..core.activations import name_to_save
from ..core.bases import CustomBasis
from ..support.storage import as_path, load_npz, reading, save_npz
from .parameters import PopulationParameters, checked_parameters


def save_population(population: PopulationParameters, path: str | Path) -> None:
    """Write a population to a file (see `GLMPopulation.save`)."""
    content: dict[str, Any] = {
        "bias": population.bias,
        "activation": name_to_save(population.activation),
    }
    for name, basis in population.kernels.items():
        content[f"basis:{name}"] = basis.matrix
        content[f"weights:{name}"] = population.weights[name]
    if population.feedback_basis is not None:
        content["basis:feedback"] = population.feedback_basis.matrix
        content["weights:feedback"] = population.feedback_weights
    if population.dt is not None:
        content["dt"] = float(population.dt)
    if population.moved_by is not None:
        content["moved_by"] = population.moved_by
    save_npz(path, content)


def load_population(path: str | Path) -> PopulationParameters:
    """Read the parameters of a population from a file (see `GLMPopulation.load`)."""
    path = as_path(path)
    with reading(path, "GLMPopulation.save"):
        archive = load_npz(path, _kinds_of_part, ("bias", "activation"))
        content = archive.content
        matrices, weights = (
            {
                name.partition(":")[2]: array
                for name, array in content.items()
                if name.startswith(f"{part}:")
            }
            for part in ("basis", "weights")
        )
        bases = {name: CustomBasis(matrix) for name, matrix in matrices.items()}
        feedback = bases.pop("feedback", None), weights.pop("feedback", None)
        dt = content["dt"].item() * second if "dt" in content else None
        population = checked_parameters(
            content["bias"], bases, weights, *feedback, content["activation"].item(), dt
        )
        archive.check()
    return replace(population, moved_by=content["moved_by"].item() if "moved_by" in content else None)


def _kinds_of_part(name):
    """Return the kinds of dtype that a part of a file may have, or None."""
    if name in ("activation", "moved_by"):
        return "U"
    return "f" if name in ("bias", "dt") or name.startswith(("basis:", "weights:")) else None
