"""For how many replicas a program is compiled, so that ensembles of many sizes share a few programs."""

from dataclasses import replace

import numpy as np

from .problem import Network, Parameters, Training

#: Seconds that compiling takes at least. Seconds per presentation, weight of a replica and four steps.
_COMPILING, _A_WEIGHT = 5.0, 1e-10


def compiled_replicas(network: Network, training: Training, n_items: int) -> int:
    """Return for how many replicas to compile the program that trains those of `network`.

    A power of 2, unless training so many takes longer than compiling another program.

    Examples
    --------
    >>> import glmbrian as glm
    >>> network = Network(784, 2, 8, glm.RaisedCosineBasis(8, 8), None, glm.get_activation("sigmoid"),
    ...                   n_replicas=5)
    >>> training = Training(np.ones(5), n_epochs=10, batch_size=1, input_key=1, order_key=2)
    >>> compiled_replicas(network, training, 1000), compiled_replicas(network, training, 1_000_000)
    (8, 5)
    """
    n_replicas = network.n_replicas
    power = 1 << (n_replicas - 1).bit_length()
    n_weights = network.n_inputs * network.n_classes * network.basis.n_basis
    n_fours = -(-network.n_steps // 4)
    seconds = training.n_epochs * n_items * n_fours * n_weights * _A_WEIGHT
    return power if (power - n_replicas) * seconds < _COMPILING else n_replicas


def repeat_last(
    n_replicas: int, network: Network, parameters: Parameters, training: Training
) -> tuple[Parameters, Training]:
    """Return parameters and settings of `n_replicas`: those of `network`, and then copies of its last."""
    n_more = n_replicas - network.n_replicas
    if n_more == 0:
        return parameters, training
    last = parameters.of_replicas(slice(network.n_replicas - 1, network.n_replicas), network)
    weights = training.sample_weights
    return Parameters.joined([parameters, *[last] * n_more]), replace(
        training,
        learning_rates=np.pad(training.learning_rates, (0, n_more), mode="edge"),
        sample_weights=None if weights is None else np.pad(weights, ((0, n_more), (0, 0)), mode="edge"),
    )
