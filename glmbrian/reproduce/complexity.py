"""The cost of a decision: operations by layer and kind, and their energy."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..devices.problem import Network, Outcome

KINDS = ("additions", "multiplications", "random draws")

#: Energy of one operation of each kind, in units of one addition: 32-bit floating
#: point in 45 nm takes 0.9 pJ per addition and 3.7 pJ per multiplication (Horowitz,
#: "Computing's energy problem", ISSCC 2014).  A random draw counts as one addition,
#: about what a linear-feedback shift register needs.
ENERGY = {"additions": 1.0, "multiplications": 3.7 / 0.9, "random draws": 1.0}


def operations(network: "Network", outcome: "Outcome") -> dict[str, dict[str, float]]:
    """Count the operations of a test, per presentation, up to its decision.

    The count is for this package's algorithm.  Spikes add weights to the channels of
    the outputs, and the basis filters the channels:

    - *encoding* draws a number for each input in each step and compares it (an
      addition) with the intensity;
    - *synapses* add K weights for each input spike and output;
    - *filters* take a multiplication and an addition in each step for each output
      and each nonzero element of the basis and of the feedback basis;
    - *outputs* add the bias, draw a number and compare it with the firing
      probability in each step; each output spike adds its feedback weights.

    The paper's measure, t (N_X s_x + s_y) per output, consists of the synapses for
    K = 1 and the output spikes (see `glmbrian.core.decisions.measures`).

    Parameters
    ----------
    network : glmbrian.devices.problem.Network
    outcome : glmbrian.devices.problem.Outcome

    Returns
    -------
    dict of str to dict of str to float
        By layer, the mean number of operations of each of the `KINDS`.
    """
    steps, input_spikes = outcome.steps.mean(), outcome.input_spikes.mean()
    output_spikes = outcome.counts.sum(axis=1).mean()
    n_outputs, feedback = network.n_outputs, network.feedback_basis
    filtered = np.count_nonzero(network.basis.matrix)
    if feedback is not None:
        filtered += np.count_nonzero(feedback.matrix)
    n_feedback = 0 if feedback is None else feedback.n_basis
    counts = {
        "encoding": (steps * network.n_inputs, 0, steps * network.n_inputs),
        "synapses": (input_spikes * n_outputs * network.basis.n_basis, 0, 0),
        "filters": (steps * n_outputs * filtered, steps * n_outputs * filtered, 0),
        "outputs": (2 * steps * n_outputs + output_spikes * n_feedback, 0, steps * n_outputs),
    }
    return {layer: dict(zip(KINDS, map(float, numbers))) for layer, numbers in counts.items()}


def ann_operations(n_inputs: int, n_outputs: int) -> dict[str, dict[str, float]]:
    """Count the operations of the ANN, in the same form as `operations`.

    Each output multiplies and adds all inputs, and adds its bias.
    """
    n_products = float(n_inputs * n_outputs)
    return {"outputs": dict(zip(KINDS, (n_products, n_products, 0.0)))}


def energy(counts: dict[str, float]) -> float:
    """Return the energy of the numbers of operations by kind, in units of one addition."""
    return sum(ENERGY[kind] * number for kind, number in counts.items())
