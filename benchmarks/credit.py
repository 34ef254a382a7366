"""Measure noise and bias of each kind of credit, in networks small enough to list all hidden spikes.

    python benchmarks/credit.py [--networks 3]

Each network has 4 inputs, 3 hidden neurons and 2 outputs.  In 4 steps there are 4,096 patterns of
hidden spikes.  For weights of three scales, and for each kind of credit, this prints the
relative mean squared error of one draw of the hidden layer's gradient, the relative error of
its mean, and the cosine between this mean and the exact gradient, as medians over networks.
"""

import argparse
from itertools import product

import numpy as np

import glmbrian as glm
from glmbrian.core.credit import CREDITS
from glmbrian.learning import Layer, layered_gradient

N_IN, N_HIDDEN, N_OUT, T = 4, 3, 2, 4
SCALES = (0.3, 1.0, 2.0)


def random_network(random, scale):
    basis = glm.RaisedCosineBasis(2, T).matrix
    return [
        Layer(basis, scale * random.normal(size=(n_in, n, 2)), random.normal(size=n) - 0.5)
        for n_in, n in ((N_IN, N_HIDDEN), (N_HIDDEN, N_OUT))
    ]


def estimates(layers, spikes, credit, baseline):
    """Return the probability, the log-likelihood and the gradient (a row) of each pattern."""
    hidden = layers[0]
    probabilities, values, gradients = [], [], []
    for pattern in product((0, 1), repeat=T * N_HIDDEN):
        own = np.reshape(pattern, (T, N_HIDDEN))
        value, (gradient, _), _ = layered_gradient(
            spikes, 0, layers, [1.0 - own], credit=credit, baseline=baseline
        )
        p = hidden.activation.probability(hidden.potentials(spikes, own))
        probabilities.append(np.prod(np.where(own, p, 1 - p)))
        values.append(value)
        gradients.append(np.concatenate([gradient.weights.ravel(), gradient.bias]))
    return np.array(probabilities), np.array(values), np.array(gradients)


def measure(random, scale):
    """Return for each credit the error of one draw, the error of the mean, and the cosine."""
    layers, spikes = random_network(random, scale), random.integers(0, 2, (T, N_IN))
    p, values, rows = estimates(layers, spikes, "three-factor", 0.0)
    exact, baseline = p @ rows, float(p @ values)
    found = {}
    for name in CREDITS:
        p, _, rows = estimates(layers, spikes, name, baseline)
        mean, size = p @ rows, np.linalg.norm(exact)
        found[name] = (
            p @ np.sum((rows - exact) ** 2, axis=1) / size**2,
            np.linalg.norm(mean - exact) / size,
            mean @ exact / (np.linalg.norm(mean) * size),
        )
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=int, default=3)
    options = parser.parse_args()
    print(f"{'scale':>5} {'credit':<17} {'error of one draw':>17} {'of the mean':>12} {'cosine':>7}")
    for scale in SCALES:
        measured = [measure(np.random.default_rng(seed), scale) for seed in range(options.networks)]
        for name in CREDITS:
            one, mean, cosine = np.median([found[name] for found in measured], axis=0)
            print(f"{scale:5} {name:<17} {one:17.3g} {mean:12.2g} {cosine:7.4f}", flush=True)


if __name__ == "__main__":
    main()
