"""The log-likelihoods of one presentation, and their gradients, in plain NumPy.

This is the reference that every device is held to; it simulates nothing.
"""

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
    "desired_train",
    "feedback_gradient",
    "first_to_spike_gradient",
    "first_to_spike_log_likelihood",
    "membrane_potential",
    "rate_gradient",
    "rate_log_likelihood",
    "weight_gradient",
]
