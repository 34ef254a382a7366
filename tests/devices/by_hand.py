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


def direction_by_hand(optimizer, gradients):
    """What an optimiser makes of all gradients so far, of which the last is new."""
    if isinstance(optimizer, glm.Adam):
        n, b1, b2 = len(gradients), optimizer.beta1, optimizer.beta2
        ages = np.arange(n)[::-1].reshape(-1, *[1] * gradients[0].ndim)
        mean = np.sum((1 - b1) * b1**ages * gradients, axis=0) / (1 - b1**n)
        square = np.sum((1 - b2) * b2**ages * np.square(gradients), axis=0) / (1 - b2**n)
        return mean / (np.sqrt(square) + optimizer.epsilon)
    if not optimizer.momentum:
        return gradients[-1]
    return sum(optimizer.momentum**age * gradient for age, gradient in enumerate(reversed(gradients)))


def learn_by_hand(network, start, inputs, labels, training):
    """Apply `glmbrian.learning` presentation by presentation."""
    n_items = len(inputs)
    learned, history = start.copy(), []
    averaged = [np.zeros_like(array) for array in learned.arrays_of_all]
    baseline, n_done, n_clipped = Baseline(), 0, 0
    means = []  # the gradient of each update
    weights = training.sample_weights
    weights = np.ones(n_items) if weights is None else weights[0]
    for epoch in range(training.n_epochs):
        order, values, batch, total = shuffled(training.order_key, epoch, n_items), [], [], 0.0
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
            rate = training.learning_rates[0] * training.schedule.factor(n_done / training.n_planned)
            n_done += 1
            if len(batch) == training.batch_size or len(values) == n_items:
                total += rate
                n_counted = sum(weight != 0 for weight, _ in batch)
                if n_counted:
                    means.append([np.zeros_like(array) for array in learned.arrays_of_all])
                    for weight, gradients in batch:
                        parts = [part for g in gradients for part in (g.weights, g.feedback, g.bias)]
                        for mean, part in zip(means[-1], parts):
                            mean += 0.0 if part is None else weight * part / n_counted
                    norm = np.sqrt(sum(np.sum(mean**2) for mean in means[-1]))
                    if training.clip_norm is not None and norm > training.clip_norm:
                        n_clipped += 1
                        means[-1] = [mean * training.clip_norm / norm for mean in means[-1]]
                    for array, so_far in zip(learned.arrays_of_all, zip(*means)):
                        array += rate * direction_by_hand(network.optimizer, so_far)
                batch = []
        history.append(sum(values) / weights.sum())
        for layer in learned.layers:
            layer.weights *= np.exp(-training.weight_decay * total)
            layer.feedback *= np.exp(-training.weight_decay * total)
        if epoch >= training.n_epochs - training.n_averaged:
            for total, array in zip(averaged, learned.arrays_of_all):
                total += array / training.n_averaged
    if training.clip_norm is not None:
        assert 0 < n_clipped < len(means)  # some, and not all
    if training.n_averaged:
        learned = Parameters.of_arrays(averaged)
    return learned, np.array(history)
