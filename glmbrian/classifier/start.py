"""Where the parameters of a classifier start."""

import math

import numpy as np

from ..devices.problem import LayerParameters, LayerShape, Network, Parameters
from .settings import TrainingConfig

#: Where outputs start in presentations of up to so many steps.  In longer ones they begin with as many
#: spikes by chance as in presentations of 8 steps: see docs/howto/long_presentations.md.
_BIAS, _SHORT, _AS_SILENT_AS = -5.0, 32, 8

#: Where hidden neurons start: measured in docs/design/choices.md.
HIDDEN_BIAS, HIDDEN_SCALE = -1.0, 1.4


def make_start(config: TrainingConfig, network: Network, key: int) -> Parameters:
    """Return the `Parameters` before training, drawn with the `key`."""
    random = np.random.default_rng(key)
    scale = config.weight_scale
    *hidden, output = network.layers
    weights = random.uniform(-scale, scale, (output.n_inputs, output.n, output.basis.n_basis))
    feedback = random.uniform(-scale, scale, (output.n, output.n_feedback))
    if config.bias_init == "uniform":
        bias = random.uniform(-1.0, 1.0, output.n)
    else:
        bias = np.full(output.n, _bias(config.bias_init, network.n_steps))
    return Parameters(weights, feedback, bias, tuple(_hidden_start(layer, random) for layer in hidden))


def _bias(bias_init, n_steps):
    if bias_init != "auto":
        return bias_init
    return _BIAS if n_steps <= _SHORT else _BIAS - math.log(n_steps / _AS_SILENT_AS)


def _hidden_start(layer: LayerShape, random: np.random.Generator) -> LayerParameters:
    """Draw the parameters of a hidden layer before training.

    The more inputs, the smaller the weights, so that potentials vary alike in all layers.
    """
    scale = HIDDEN_SCALE / np.sqrt(layer.n_inputs)
    return LayerParameters(
        random.normal(scale=scale, size=(layer.n_inputs, layer.n, layer.basis.n_basis)),
        np.zeros((layer.n, layer.n_feedback)),
        np.full(layer.n, HIDDEN_BIAS),
    )
