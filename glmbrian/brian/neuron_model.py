"""What GLM neurons compute, as the parts of a Brian group."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.activations import Activation
from ..core.bases import Basis
from .drive import NEURON_INDEX, Drive
from .filters import (
    LONGEST_SHIFT_REGISTER,
    STEP_COUNT,
    is_geometric,
    pending_names,
    recursion,
    shift_register,
    trace_names,
)
from .functions import glm_uniform, namespace_of
from .kernels import channel_names, feedback_weight_names, stacked, with_feedback
from .ring import RING, ring_buffer
from .target import current_target, index_name, shared_flag


@dataclass(frozen=True)
class NeuronModel:
    """The arguments of a Brian group, and what they define.

    Attributes
    ----------
    equations, threshold, reset : str
    update : str
        Statements that compute the potentials of a step.
    namespace : dict of str to object
    dtype : dict of str to type
        Native code requires these types, whatever precision the user prefers.
    filter_state : list of str
        Variables that hold what has arrived.
    names : frozenset of str
        All variables.
    """

    equations: str
    threshold: str
    reset: str
    update: str
    namespace: dict[str, Any]
    dtype: dict[str, Any]
    filter_state: list[str]
    names: frozenset[str]


def neuron_model(
    kernels: Mapping[str, Basis],
    feedback_basis: Basis | None,
    activation: Activation,
    drive: Drive,
    presentation_steps: int | None,
) -> NeuronModel:
    """Return the model of neurons with these kernels; see `GLMNeurons` for the arguments."""
    filtered = with_feedback(kernels, feedback_basis)
    channels = [channel for key, basis in filtered.items() for channel in channel_names(key, basis)]
    added = ["bias", "drive"] if drive.equation else ["bias"]
    matrix = stacked([basis.matrix for basis in filtered.values()])
    filtering, state, functions = _filter(matrix, channels, added, presentation_steps)
    feedback = [] if feedback_basis is None else channel_names("feedback", feedback_basis)
    weights = [] if feedback_basis is None else feedback_weight_names(feedback_basis)
    pending = [name for name in state if name != RING]
    parameters = ["bias", *channels, *pending, *weights]
    reals = ["u", "firing_probability", *added, *parameters]
    counts = ["presentation", "first_step", STEP_COUNT]
    shared = shared_flag()
    # Brian calls a group's state updater only if the group has a differential
    # equation.  This one is a formality: the updater replaces it with the exact map.
    equations = "du/dt = -u / dt : 1\n"
    equations += "".join(f"{parameter} : 1\n" for parameter in parameters)
    equations += drive.equation
    equations += f"firing_probability = {activation.expression} : 1\nclamp : integer\n"
    equations += "".join(f"{name} : integer {shared}\n" for name in ["key_low", "key_high", *counts])
    return NeuronModel(
        equations,
        threshold="clamp > 0 or (clamp == 0 and glm_uniform(key_low, key_high, "
        f"presentation, {STEP_COUNT} - 1 - first_step, {index_name(NEURON_INDEX)}) < firing_probability)",
        reset="\n".join(f"{channel} += {weight}" for channel, weight in zip(feedback, weights)),
        # The group counts its own steps, since Brian's step number jumps if dt changes
        # between two runs.
        update=f"{STEP_COUNT} = {STEP_COUNT} + 1\n" + filtering,
        namespace={
            "glm_uniform": glm_uniform,
            **namespace_of(activation),
            **drive.namespace,
            **functions,
        },
        dtype={**dict.fromkeys(reals, np.float64), **dict.fromkeys(counts, np.int64)},
        filter_state=channels + state,
        names=frozenset([*reals, *counts, "clamp", "key_low", "key_high", RING]),
    )


def _filter(matrix, channels, added, presentation_steps):
    """Return the statements that filter, the variables that they need, and the functions."""
    window = len(matrix)
    never_ends = presentation_steps is not None and window >= presentation_steps - 1
    if never_ends and is_geometric(matrix):
        return recursion(matrix, channels, added), trace_names(len(channels)), {}
    if window > LONGEST_SHIFT_REGISTER and current_target().has_arrays:
        code, functions = ring_buffer(matrix, channels, "glm_ring", added)
        return code, [RING], functions
    return shift_register(matrix, channels, added), pending_names(window), {}
