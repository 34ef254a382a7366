"""The filter of a GLM neuron: one state update per step, exact on every device.

Filtering commutes with the weighted sum over inputs, so it is done once per target
neuron, not once per synapse: an input spike adds its weight w_k to the *channel*
k of the target, and the target filters its channels by the basis functions.  There
are three forms of the same map

    u(t) = bias + sum over lags l and channels c of matrix[l - 1, c] * c(t - l)

where c(t) is what arrived in step t (other terms besides the bias may be added to u):

- `shift_register` writes the map as Brian code over `window - 1` variables.  It
  runs everywhere, GeNN included.
- `ring_buffer` (in `ring`) keeps the pending contributions in an array.  Its code does not
  grow with the window, so hundreds of lags compile in seconds.
- `recursion` keeps one decaying trace per channel.  It is the fastest, but only for exponential
  kernels of neurons whose filters are cleared before a lag beyond the window matters.

Each returns the statements of a `StateUpdater`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from brian2 import Equations
from numpy.typing import NDArray

from ..core.bases import NEGLIGIBLE
from .own_code import integration

#: Longest window for which the filter is written out as Brian code; beyond it,
#: generating and compiling the code takes longer than running the ring buffer.
LONGEST_SHIFT_REGISTER = 40

#: Variable of the group that counts its steps.
STEP_COUNT = "step_count"


@dataclass(frozen=True)
class StateUpdater:
    """A state update given as Brian code, for ``NeuronGroup(method=...)``.

    Brian keeps every updater that it has used until the process ends.  Updaters with the same
    code are equal, so it keeps only one of them.

    own_equations : brian2.Equations, optional
        Differential equations of the user's, integrated after `code` by `own_method`.
    """

    code: str
    own_equations: Equations | None = None
    own_method: Any = None

    def __call__(self, equations: Any, variables: Any = None, method_options: Any = None) -> str:
        if self.own_equations is None:
            return self.code
        return f"{self.code}\n{integration(self.own_equations, variables, self.own_method)}"


def pending_names(window: int) -> list[str]:
    """Return the variables of `shift_register`: ``pending_l`` will reach u in l steps."""
    return [f"pending_{lag}" for lag in range(1, window)]


def shift_register(
    matrix: NDArray[np.float64], channels: list[str], added: Sequence[str] = ("bias",)
) -> str:
    """Return Brian code that filters by shifting registers.

    Parameters
    ----------
    matrix : ndarray of float, shape (window, n_channels)
    channels : list of str
        Names of the channel variables.
    added : sequence of str
        Names of the variables that are added to u.
    """
    pending = pending_names(matrix.shape[0])
    # In this order, no statement reads what an earlier one wrote.
    targets = ["u"] + pending
    carried = pending + [None]
    lines = []
    for target, carry, row in zip(targets, carried, matrix):
        terms = [f"{value!r}*{channel}" for value, channel in zip(row.tolist(), channels) if value]
        terms += [carry] if carry else []
        terms += added if target == "u" else []
        lines.append(f"{target} = {' + '.join(terms) or '0'}")
    lines += [f"{channel} = 0" for channel in channels]
    return "\n".join(lines) + "\n"


def trace_names(n_channels: int) -> list[str]:
    """Return the variables of `recursion`, one per channel."""
    return [f"trace_{c}" for c in range(n_channels)]


def is_geometric(matrix: NDArray[np.float64]) -> bool:
    """Return whether each column of `matrix`, shape (window, n_channels), decays geometrically."""
    if len(matrix) < 2 or not matrix[0].all():
        return False
    decays = matrix[1] / matrix[0]
    lags = np.arange(len(matrix))[:, np.newaxis]
    expected = matrix[0] * decays**lags
    bound = 1e-13 * np.abs(expected) + NEGLIGIBLE * np.abs(matrix[0])
    return bool((np.abs(decays) < 1).all() and (np.abs(matrix - expected) <= bound).all())


def recursion(
    matrix: NDArray[np.float64], channels: list[str], added: Sequence[str] = ("bias",)
) -> str:
    """Return Brian code that filters by letting a trace of each channel decay.

    A trace does not end with the window, so filters must be cleared before a later lag matters.

    Parameters
    ----------
    matrix : ndarray of float, shape (window, n_channels)
        It must be geometric (see `is_geometric`).
    channels : list of str
        Names of the channel variables.
    added : sequence of str
        Names of the variables that are added to u.
    """
    traces = trace_names(len(channels))
    rows = zip(traces, channels, matrix[0].tolist(), (matrix[1] / matrix[0]).tolist())
    lines = [
        f"{trace} = {decay!r}*{trace} + {first!r}*{channel}" for trace, channel, first, decay in rows
    ]
    lines.append(f"u = {' + '.join([*traces, *added])}")
    lines += [f"{channel} = 0" for channel in channels]
    return "\n".join(lines) + "\n"
