"""Populations in Brian networks: neurons and synapses with given parameters, and the way back."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from brian2 import Quantity
from sklearn.utils.validation import check_is_fitted

from ..brian.neurons import GLMNeurons
from ..brian.subgroups import whole_group
from ..brian.synapses import GLMSynapses
from ..brian.time_steps import neuron_clock, require_step
from ..classifier.classifier import GLMClassifier
from ..core.bases import IndicatorBasis
from .parameters import PopulationParameters, checked_parameters


def of_classifier(classifier: GLMClassifier, dt: Quantity | None) -> PopulationParameters:
    """Return the parameters of the output neurons of a classifier; see `GLMPopulation.from_classifier`."""
    if not isinstance(classifier, GLMClassifier):
        raise TypeError(f"classifier must be a GLMClassifier, got {classifier!r}")
    check_is_fitted(classifier, "weights_")
    if classifier.hidden_layers_:
        raise ValueError(
            "classifier must have no hidden layers; make a population of each layer, with the "
            "weights, bias and basis of classifier.hidden_layers_"
        )
    has_feedback = classifier.objective.learns_feedback
    own_basis, own = (classifier.basis_, classifier.feedback_) if has_feedback else (None, None)
    return checked_parameters(
        classifier.bias_,
        classifier.basis_,
        classifier.weights_,
        own_basis,
        own,
        classifier.activation,
        dt,
    )


def of_network(
    neurons: GLMNeurons, synapses: GLMSynapses | Sequence[GLMSynapses]
) -> PopulationParameters:
    """Return the parameters of neurons and synapses in a Brian network; see `GLMPopulation.from_network`."""
    if not isinstance(neurons, GLMNeurons):
        raise TypeError(f"neurons must be GLMNeurons, got {neurons!r}")
    weights: dict[str, list[np.ndarray]] = {}
    for each in synapses if isinstance(synapses, (list, tuple)) else [synapses]:
        if not isinstance(each, GLMSynapses):
            raise TypeError(f"synapses must be GLMSynapses, got {each!r}")
        if each.target is not neurons:
            raise ValueError(
                f"synapses: the target of {each.name} must be all of the neurons, got {each.target!r}"
            )
        if np.any(np.asarray(each.delay) > 0):
            raise ValueError(
                f"synapses: {each.name} have a delay; make it part of the kernel, as zeros "
                "at its first lags"
            )
        weights.setdefault(each.kernel, []).append(each.w)
    kernels = {name: basis for name, basis in neurons.kernels.items() if name in weights}
    joined = {name: np.concatenate(weights[name]) for name in kernels}
    own = None if neurons.feedback_basis is None else neurons.feedback_weights
    return checked_parameters(
        np.array(neurons.bias), kernels, joined, neurons.feedback_basis, own, neurons.activation,
        neurons.clock.dt,
    )  # fmt: skip


def neurons_of(population: PopulationParameters, **kwds: Any) -> GLMNeurons:
    """Return neurons with these parameters; see `GLMPopulation.neurons`."""
    activation = population.activation
    kwds.update(neuron_clock(population.dt, kwds))
    kernels = population.kernels or {"stimulus": IndicatorBasis(1)}
    neurons = GLMNeurons(population.n, kernels, population.feedback_basis, activation, **kwds)
    neurons.fitted_dt = population.dt
    neurons.bias = population.bias
    if population.feedback_basis is not None:
        neurons.feedback_weights = population.feedback_weights  # type: ignore[assignment]
    return neurons


def synapses_of(
    population: PopulationParameters,
    source: Any,
    target: GLMNeurons,
    kernel: str,
    connect: Any,
    **kwds: Any,
) -> GLMSynapses:
    """Return synapses with the weights of one kernel; see `GLMPopulation.synapses`."""
    weights, basis = population.weights[kernel], population.kernels[kernel]
    for group, name, size in (source, "source", len(weights)), (target, "target", population.n):
        if len(group) != size:
            raise ValueError(
                f"{name} must have {size} cells for the kernel {kernel!r}, got {len(group)}"
            )
    require_step(whole_group(target), population.dt, "target")
    synapses = GLMSynapses(source, target, kernel, connect, **kwds)
    if not np.array_equal(synapses.basis.matrix, basis.matrix):
        raise ValueError(
            f"target must be neurons with the basis of the population's kernel {kernel!r}, {basis}, "
            f"got {synapses.basis}"
        )
    synapses.w = weights
    return synapses
