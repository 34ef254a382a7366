"""GLM neurons: stochastic spiking neurons in discrete time, as a Brian 2 group."""

import re

import numpy as np
from brian2 import NeuronGroup

from .activations import get_activation
from .bases import Basis, as_basis
from .brian_internals import add_index_alias, on_genn, shared_flag, step_and_index
from .filters import (
    LONGEST_SHIFT_REGISTER,
    add_ring,
    pending_names,
    ring_buffer,
    shift_register,
)
from .randomness import derive_keys, glm_step, glm_uniform, split_key
from .validation import finite_array, integer

_OUTPUT_DRAWS = 1

#: Words that a kernel must not be called, since its channels are named after it.
_RESERVED = ("feedback", "pending", "bias", "key", "clamp", "presentation", "w")


class GLMNeurons(NeuronGroup):
    """Neurons that spike with a probability given by their membrane potential.

    At each step t a neuron spikes with probability g(u(t)), where

        u(t) = sum_j alpha_j . x_j(t - window .. t - 1)
               + beta . y(t - window_fb .. t - 1) + bias

    (eq. membrane_potential_GLM): the spikes x of its inputs weighted by synaptic
    kernels alpha = A w (see `GLMSynapses`), and its own spikes y weighted by the
    feedback kernel beta = B v.  A spike in step t first moves u in step t + 1.

    Parameters
    ----------
    n : int
        Number of neurons.
    kernels : Basis or dict of str to Basis
        Basis of the synaptic kernels, called ``"stimulus"``, or several by name
        such as ``{"stimulus": basis, "coupling": other_basis}``.
    feedback : Basis, optional
        Basis of the feedback kernel.
    activation : {"sigmoid", "probit", "cloglog"} or Activation
        The function g.
    random_state : None, int, RandomState or Generator
        Fixes the spikes drawn, on every device and target alike.  ``None`` takes
        a state from NumPy's global generator, which `brian2.seed` sets on the
        runtime device.
    dt, clock, order, name
        As for `brian2.NeuronGroup`; one step of the model is one `dt`.

    Attributes
    ----------
    u : array of float, shape (n,)
        Membrane potential, without unit.
    bias : array of float, shape (n,)
    feedback_weights : array of float, shape (n, n_basis)
        Weights v of the feedback kernel.
    clamp : array of int, shape (n,)
        0: the neuron is free; 1: it spikes in every step; -1: it is silent.
    firing_probability : array of float, shape (n,)
        g(u).
    kernels : dict of str to Basis
    feedback : Basis or None
    activation : Activation

    Raises
    ------
    TypeError, ValueError
        If an argument is of the wrong type or out of range.

    Examples
    --------
    >>> import glmbrian as glm
    >>> from brian2 import Network, ms
    >>> neurons = glm.GLMNeurons(2, glm.RaisedCosineBasis(2, 4), dt=1 * ms)
    >>> neurons.bias = [-2.0, 0.5]
    >>> Network(neurons).run(5 * ms)
    >>> neurons.u[:]
    array([-2. ,  0.5])
    """

    def __init__(
        self,
        n,
        kernels,
        feedback=None,
        activation="sigmoid",
        random_state=None,
        dt=None,
        clock=None,
        order=0,
        name="glmneurons*",
    ):
        n = integer(n, "n")
        kernels = _named_kernels(kernels)
        if feedback is not None:
            feedback = as_basis(feedback, "feedback")
        activation = get_activation(activation)

        draw_key = split_key(derive_keys(random_state, _OUTPUT_DRAWS)[0])

        filtered = dict(kernels)
        if feedback is not None:
            filtered["feedback"] = feedback
        channels = [channel for key in filtered for channel in channel_names(key, filtered[key])]
        matrix = stacked([basis.matrix for basis in filtered.values()])
        window = matrix.shape[0]

        namespace = {"glm_step": glm_step, "glm_uniform": glm_uniform, **activation.namespace}
        # GeNN's kernels hold variables of single neurons only.
        use_ring = window > LONGEST_SHIFT_REGISTER and not on_genn()
        step, index = step_and_index("neuron_index")
        shared = shared_flag()
        if use_ring:
            method, namespace["glm_ring"] = ring_buffer(matrix, channels, "glm_ring")
            pending = []
        else:
            method, pending = shift_register(matrix, channels), pending_names(window)

        feedback_weights = [] if feedback is None else feedback_weight_names(feedback)
        parameters = ["bias"] + channels + pending + feedback_weights
        # Brian hands a group to its state updater only if it has a differential
        # equation.  This one is formal: the updater replaces it by the exact map.
        equations = "du/dt = -u / dt : 1\n"
        equations += "".join(f"{parameter} : 1\n" for parameter in parameters)
        equations += f"""
            firing_probability = {activation.expression} : 1
            clamp : integer
            key_low : integer {shared}
            key_high : integer {shared}
            presentation : integer {shared}
            first_step : integer {shared}
        """
        super().__init__(
            n,
            equations,
            method=method,
            threshold="clamp > 0 or (clamp == 0 and glm_uniform(key_low, key_high, "
            f"presentation, {step} - first_step, {index}) < firing_probability)",
            reset="\n".join(
                f"{channel} += {weight}"
                for channel, weight in zip(
                    channel_names("feedback", feedback) if feedback else [], feedback_weights
                )
            ),
            namespace=namespace,
            dt=dt,
            clock=clock,
            order=order,
            name=name,
        )
        add_index_alias(self, "neuron_index")
        # Attributes that are no state variables: Brian would take a later
        # assignment for a misspelt one.
        for key, value in dict(
            kernels=kernels, feedback=feedback, activation=activation, filter_state=channels + pending
        ).items():
            self.add_attribute(key)
            setattr(self, key, value)
        if use_ring:
            add_ring(self, window)
            self.filter_state = self.filter_state + ["ring"]
        self.key_low, self.key_high = draw_key

    @property
    def feedback_weights(self):
        """Weights v of the feedback kernel, shape (n, n_basis)."""
        self._require_feedback()
        return np.stack(
            [getattr(self, f"{name}_")[:] for name in feedback_weight_names(self.feedback)], axis=1
        )

    @feedback_weights.setter
    def feedback_weights(self, weights):
        self._require_feedback()
        shape = (len(self), self.feedback.n_basis)
        weights = finite_array(weights, "feedback_weights")
        try:
            weights = np.broadcast_to(weights, shape)
        except ValueError:
            raise ValueError(
                f"feedback_weights must have the shape {shape} or broadcast to it, got {weights.shape}"
            ) from None
        for column, name in zip(weights.T, feedback_weight_names(self.feedback)):
            setattr(self, name, column)

    def feedback_kernels(self):
        """Return the feedback kernels beta = B v, shape (n, window)."""
        return self.feedback.kernels(self.feedback_weights)

    def _require_feedback(self):
        if self.feedback is None:
            raise AttributeError(
                "these neurons have no feedback kernel: create them with "
                "GLMNeurons(..., feedback=basis)"
            )

    def clear(self):
        """Forget all spikes that have arrived: every filter starts anew."""
        for name in self.filter_state:
            self.variables[name].set_value(0)
        self.u_ = 0


def channel_names(kernel, basis):
    """Names of the variables in which the spikes of a kernel arrive."""
    return [f"{kernel}_{k}" for k in range(basis.n_basis)]


def feedback_weight_names(feedback):
    return [f"feedback_weight_{k}" for k in range(feedback.n_basis)]


def _named_kernels(kernels):
    if isinstance(kernels, Basis):
        return {"stimulus": kernels}
    if not isinstance(kernels, dict) or not kernels:
        raise TypeError(
            "kernels must be a basis, or a dict of names to bases with at least one "
            f"entry, got {kernels!r}"
        )
    for key, basis in kernels.items():
        if not isinstance(key, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", key):
            raise ValueError(
                f"kernels: a name must be of letters, digits and underscores, got {key!r}"
            )
        if key.split("_")[0] in _RESERVED:
            raise ValueError(f"kernels: the name {key!r} is taken by the model itself")
        as_basis(basis, f"kernels[{key!r}]")
    return dict(kernels)


def stacked(matrices):
    """Put basis matrices side by side, padding short windows with zeros."""
    window = max(matrix.shape[0] for matrix in matrices)
    return np.hstack(
        [np.pad(matrix, ((0, window - matrix.shape[0]), (0, 0))) for matrix in matrices]
    )
