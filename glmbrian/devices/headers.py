"""The C++ headers of a program: those of the package, and the one that describes the network."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..brian.headers import native_header
from ..core.optimisers import SGD, Optimizer
from ..core.schedules import SCHEDULES
from .problem import Network

#: The headers that every program includes.
HEADERS = ("updates.hpp", "schedule.hpp", "gradients.hpp", "encoder.hpp", "job.hpp", "hash.hpp")


def constants(network: Network) -> dict[str, Any]:
    """Return sizes and matrices of the network, by their names in C++."""
    feedback = network.feedback_basis
    return {
        "N_INPUTS": network.n_inputs,
        "N_CLASSES": network.n_classes,
        "N_REPLICAS": network.n_replicas,
        "N_STEPS": network.n_steps,
        "N_HIDDEN": len(network.hidden.sizes),
        "N_BASIS": network.basis.n_basis,
        "N_FEEDBACK": feedback.n_basis if feedback else 0,
        "BASIS": network.basis.matrix.tolist(),
        # An array in C++ has at least one element.
        "FEEDBACK_BASIS": feedback.matrix.tolist() if feedback else [[0.0]],
    }


def hidden_constants(network: Network) -> list[Any]:
    """Return what the code of hidden layers depends on, as a list that JSON can hold."""
    hidden = [
        [
            layer.n,
            layer.basis.matrix.tolist(),
            layer.feedback_basis and layer.feedback_basis.matrix.tolist(),
        ]
        for layer in network.layers[:-1]
    ]
    return [*hidden, network.credit.name, network.credit.cpp] if hidden else []


def write_headers(
    network: Network, folder: Path, own_headers: Sequence[str], lines: Sequence[str]
) -> None:
    """Write the headers of a program, including glmbrian_model.hpp.

    The latter holds the `constants`, the activation and the `lines`, which give access
    to Brian's variables (see `pointer` and `pointers`).
    """
    text = ["// Written by glmbrian.", "#pragma once", "#include <algorithm>", "#include <cmath>"]
    text += [
        "#include <cstdint>",
        '#include "objects.h"',
        '#include "gradients.hpp"',
        "",
        "namespace glmbrian_model {",
        "",
    ]
    for name, value in constants(network).items():
        if isinstance(value, int):
            text.append(f"constexpr int {name} = {value};")
        else:
            text.append(f"constexpr double {name}[{len(value)}][{len(value[0])}] = {_braces(value)};")
    text.append(network.activation.cpp_struct("Activation"))
    text.append(f"struct Objective {{{network.objective.cpp}}};")
    text.append(f'constexpr const char* OBJECTIVE = "{network.objective.name}";')
    text += update_rules(network.optimizer)
    text += [*lines, "", "}  // namespace glmbrian_model", ""]
    (folder / "glmbrian_model.hpp").write_text("\n".join(text))
    for header in (*own_headers, *HEADERS):
        (folder / header).write_text(native_header(header))


def update_rules(optimizer: Optimizer) -> list[str]:
    """Return C++ code for the optimiser, and for all schedules of the learning rate."""
    schedules = [
        f"inline double {name}_schedule(double done) {{ return {schedule.cpp}; }}"
        for name, schedule in SCHEDULES.items()
    ]
    named = ", ".join(f'{{"{name}", {name}_schedule}}' for name in SCHEDULES)
    return [
        (optimizer if optimizer.cpp else SGD()).cpp_struct(),  # a test needs none
        f'constexpr const char* OPTIMIZER = "{optimizer.name}";',
        f"constexpr int N_OPTIMIZER_SETTINGS = {max(1, len(optimizer.settings))};",
        *schedules,
        "struct NamedSchedule { const char* name; double (*factor)(double); };",
        f"constexpr NamedSchedule SCHEDULES[] = {{{named}}};",
    ]


def pointer(name: str, array: str, c_type: str) -> str:
    """Return a C++ function `name` that returns the Brian array called `array`."""
    return f"static inline {c_type}* {name}() {{ return brian::{array}; }}"


def matrix(name: str, rows: Sequence[Sequence[float]]) -> str:
    """Return a C++ function `name` that returns a constant matrix."""
    return (
        f"static inline const double (&{name}())[{len(rows)}][{len(rows[0])}]\n{{\n"
        f"    static constexpr double values[{len(rows)}][{len(rows[0])}] = {_braces(rows)};\n"
        "    return values;\n}"
    )


def _braces(rows):
    return "{\n" + ",\n".join("    {" + ", ".join(map(repr, row)) + "}" for row in rows) + "\n}"


def pointers(name: str, arrays: Sequence[str]) -> str:
    """Return a C++ function `name` of k that returns the k-th of the Brian `arrays`."""
    if not arrays:
        return f"static inline double* {name}(int k) {{ return nullptr; }}"
    listed = ", ".join(f"brian::{array}" for array in arrays)
    return (
        f"static inline double* {name}(int k)\n{{\n"
        f"    double* const all[] = {{{listed}}};\n    return all[k];\n}}"
    )
