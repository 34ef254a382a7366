"""What networks should learn: the equations in NumPy, presentation by presentation."""

import numpy as np

import glmbrian as glm
from glmbrian.core.credit import Baseline
from glmbrian.core.randomness import hidden_key, shuffled, uniforms
from glmbrian.core.rate_code import rate_encode
from glmbrian.devices.problem import LayerParameters, Parameters


def make_start(network, scale=0.3):
    random = np.random.default_rng(3)
    layers = [
        LayerParameters(
            random.normal(size=(layer.n_inputs, layer.n, layer.basis.n_basis)) * scale,
            random.normal(size=(layer.n, layer.n_feedback)),
            random.normal(size=layer.n) - 1,
        )
        for layer in network.layers
    ]
    return Parameters(*layers[-1].arrays, tuple(layers[:-1]))


def as_layers(network, parameters):
    return [
        glm.learning.Layer(
            shape.basis,
            layer.weights,
            layer.bias,
            shape.feedback_basis,
            None if shape.feedback_basis is None else layer.feedback,
        )
        for shape, layer in zip(network.layers, parameters.layers)
    ]


def hidden_draws(network, output_key, presentation):
    steps = np.arange(network.n_steps)[:, np.newaxis]
    return [
        uniforms(hidden_key(output_key, number), presentation, steps, np.arange(n))
        for number, n in enumerate(network.hidden.sizes)
    ]


def learn_by_hand(network, start, inputs, labels, training):
    """Apply `glmbrian.learning` presentation by presentation."""
    n_items = len(inputs)
    learned, history = start.copy(), []
    averaged = [np.zeros_like(array) for array in learned.arrays_of_all]
    baseline, n_done = Baseline(), 0
    weights = training.sample_weights
    weights = np.ones(n_items) if weights is None else weights[0]
    for epoch in range(training.n_epochs):
        order, values, batch = shuffled(training.order_key, epoch, n_items), [], []
        for item in order:
            layers = as_layers(network, learned)
            x = rate_encode(inputs.levels([item]), training.input_key, [n_done], network.n_steps)[0]
            draws = hidden_draws(network, training.output_key, n_done)
            settings = dict(rule=network.objective, credit=network.credit)
            value, _, _ = glm.learning.layered_gradient(x, labels[item], layers, draws, **settings)
            _, gradients, _ = glm.learning.layered_gradient(
                x, labels[item], layers, draws, baseline=baseline.value(value), **settings
            )
            weight = weights[item]
            if weight:
                baseline.add(value)
            values.append(weight * value)
            batch.append((weight, gradients))
            factor = 1.0 if training.rate_factors is None else training.rate_factors[n_done]
            n_done += 1
            if len(batch) == training.batch_size or len(values) == n_items:
                n_counted = max(1, sum(weight != 0 for weight, _ in batch))
                rate = factor * training.learning_rates[0] / n_counted
                for weight, gradients in batch:
                    for layer, gradient in zip(learned.layers, gradients):
                        layer.weights += rate * weight * gradient.weights
                        layer.bias += rate * weight * gradient.bias
                        if gradient.feedback is not None:
                            layer.feedback += rate * weight * gradient.feedback
                batch = []
        history.append(sum(values) / weights.sum())
        rates = training.learning_rates[0] * (
            np.ones(n_done) if training.rate_factors is None else training.rate_factors
        )
        updates = [n for n in range(n_items) if (n + 1) % training.batch_size == 0 or n + 1 == n_items]
        total = sum(rates[epoch * n_items + n] for n in updates)
        for layer in learned.layers:
            layer.weights *= np.exp(-training.weight_decay * total)
            layer.feedback *= np.exp(-training.weight_decay * total)
        if epoch >= training.n_epochs - training.n_averaged:
            for total, array in zip(averaged, learned.arrays_of_all):
                total += array / training.n_averaged
    if training.n_averaged:
        learned = Parameters.of_arrays(averaged)
    return learned, np.array(history)
