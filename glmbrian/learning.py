"""The log-likelihoods of one presentation, and their gradients, in plain NumPy.

This is the reference for every device; it simulates nothing.
"""

from .core.credit import layered_gradient
from .core.layers import Layer, layered_log_likelihood
from .core.likelihoods import (
    desired_train,
    feedback_gradient,
    first_to_spike_gradient,
    first_to_spike_log_likelihood,
    membrane_potential,
    rate_gradient,
    rate_log_likelihood,
    weight_gradient,
)

__all__ = [
    "Layer",
    "desired_train",
    "feedback_gradient",
    "first_to_spike_gradient",
    "first_to_spike_log_likelihood",
    "layered_gradient",
    "layered_log_likelihood",
    "membrane_potential",
    "rate_gradient",
    "rate_log_likelihood",
    "weight_gradient",
]
