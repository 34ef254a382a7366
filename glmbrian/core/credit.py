"""Credit assignment: how much each hidden neuron contributes to the log-likelihood of the outputs.

A `Credit` estimates the derivatives with respect to the potentials of hidden layers.
`Presentation.gradients` computes the gradients of all parameters from these.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..support.floating_point import underflow_is_zero
from ..support.validation import choice, real
from .layers import Gradient, Layer, Presentation, check_network
from .objectives import Objective


class Credit(ABC):
    """A way to estimate the derivative of the mean log-likelihood for hidden potentials.

    Attributes
    ----------
    name : str
    simulates : bool
        Whether it simulates the network again.
    takes_reward : bool
        Whether `slope` needs only the neurons' own potentials and spikes, and the reward, which may
        then be any number.
    cpp : str
        A C++ struct body for compiled devices, with the static function `slope`.  Without it,
        training runs on the runtime device only.
    """

    name: ClassVar[str]
    cpp: ClassVar[str] = ""
    simulates: ClassVar[bool] = False
    takes_reward: ClassVar[bool] = False

    @abstractmethod
    def slopes(self, presentation, draws, label, objective, baseline):
        """Return the estimates, one array (T, n) per hidden layer.

        Parameters
        ----------
        presentation : Presentation
        draws : list of ndarray of float, shape (T, n)
            The random numbers that gave the hidden spikes, one array per hidden layer.
        label : int
        objective : Objective
        baseline : float
            Subtracted from the log-likelihood by `ThreeFactor`; the others ignore it.
        """

    def slope(self, activation, potentials, spikes, in_spikes, reward):
        """Return the estimates in one step, from what is known of each neuron.

        Parameters
        ----------
        activation : Activation
        potentials, spikes : ndarray, shape (n,)
        in_spikes : ndarray of float, shape (n,)
            Derivatives with respect to the spikes, as if these were real numbers.
        reward : float
            The log-likelihood minus the baseline.

        Returns
        -------
        ndarray of float, shape (n,)
        """
        raise NotImplementedError(f"credit {self.name!r} is not local")


class StraightThrough(Credit):
    """The derivative as if each hidden spike were its probability: little noise, but biased."""

    name = "straight-through"
    cpp = """
    template <class Activation>
    static double slope(double u, bool spike, double in_spike, double reward)
    {
        return Activation::probability_slope(u) * in_spike;
    }
"""

    def slopes(self, presentation, draws, label, objective, baseline):
        return presentation.straight_through_slopes()

    def slope(self, activation, potentials, spikes, in_spikes, reward):
        return activation.probability_slope(potentials) * in_spikes


class Flip(Credit):
    """The effect of adding or removing one spike: unbiased, but slow.

    The derivative with respect to the potential v of a neuron in a step is g'(v) times the
    difference between the log-likelihoods with and without a spike there.  All later spikes are
    drawn again from the same random numbers, so each neuron and step takes two simulations.
    """

    name = "flip"
    simulates = True

    def slopes(self, presentation, draws, label, objective, baseline):
        slopes = []
        for number, layer in enumerate(presentation.layers[:-1]):
            differences = np.zeros(draws[number].shape)
            for step, neuron in np.ndindex(differences.shape):
                without, with_one = (
                    self._value(presentation, draws, label, objective, number, (step, neuron, spike))
                    for spike in (0, 1)
                )
                differences[step, neuron] = with_one - without
            slopes.append(layer.probability_slope(presentation.potentials[number]) * differences)
        return slopes

    @staticmethod
    def _value(presentation, draws, label, objective, number, forced):
        layers, trains = presentation.layers, presentation.trains[: number + 1]
        for layer, own_draws in zip(layers[number:-1], draws[number:]):
            trains.append(layer.simulate(trains[-1], own_draws, forced))
            forced = None
        return Presentation.with_spikes(layers, trains[0], trains[1:], label, objective).value


class ThreeFactor(Credit):
    """The log-likelihood, as a reward, times the derivative of the log-probability of the spikes.

    It is local, and unbiased for any `baseline` subtracted from the reward, but noisy.
    """

    name = "three-factor"
    takes_reward = True
    cpp = """
    template <class Activation>
    static double slope(double u, bool spike, double in_spike, double reward)
    {
        return reward * (spike ? Activation::log_spike_slope(u) : Activation::log_silence_slope(u));
    }
"""

    def slopes(self, presentation, draws, label, objective, baseline):
        reward = presentation.value - baseline
        return [
            self.slope(layer.activation, potentials, own, None, reward)
            for layer, potentials, own in zip(
                presentation.layers[:-1], presentation.potentials, presentation.trains[1:]
            )
        ]

    def slope(self, activation, potentials, spikes, in_spikes, reward):
        return reward * activation.log_probability_slope(potentials, spikes)


class Baseline:
    """The mean log-likelihood of earlier presentations, which forgets after about a hundred.

    Examples
    --------
    >>> baseline = Baseline()
    >>> baseline.value(-3.0)
    -3.0
    >>> baseline.add(-3.0)
    >>> baseline.add(-1.0)
    >>> baseline.value(-5.0)
    -2.0
    """

    def __init__(self) -> None:
        self._mean, self._n = 0.0, 0

    def value(self, log_likelihood: float) -> float:
        """Return the baseline for this log-likelihood: itself, if there were none before."""
        return self._mean if self._n else log_likelihood

    def add(self, log_likelihood: float) -> None:
        self._n += 1
        self._mean += (log_likelihood - self._mean) * max(1 / self._n, 0.01)


#: Every kind of credit, by name.
CREDITS: dict[str, Credit] = {
    credit.name: credit for credit in (StraightThrough(), Flip(), ThreeFactor())
}


def credit_to_save(credit: str | Credit) -> str:
    """Return the name under which a `Credit` is saved; raise a ValueError for a custom one."""
    found = get_credit(credit)
    if CREDITS.get(found.name) is not found:
        raise ValueError(
            f"credit must be one of {', '.join(CREDITS)} to be saved, got a custom one: {credit!r}"
        )
    return found.name


def get_credit(credit: str | Credit) -> Credit:
    """Return the `Credit` with this name, or `credit` itself if it already is a `Credit`."""
    return credit if isinstance(credit, Credit) else CREDITS[choice(credit, "credit", CREDITS)]


@underflow_is_zero
def layered_gradient(
    spikes: ArrayLike,
    label: int,
    layers: Sequence[Layer],
    draws: Sequence[ArrayLike],
    rule: str | Objective = "first-to-spike",
    credit: str | Credit = "straight-through",
    baseline: float = 0.0,
    target_period: int = 4,
    target_start: int | None = None,
) -> tuple[float, list[Gradient], list[NDArray[np.uint8]]]:
    """Draw hidden spikes; return the log-likelihood of the outputs, and an estimated gradient.

    This estimates the gradient of the log-likelihood averaged over hidden spikes.  The average
    is a lower bound on the log-probability that the outputs do what they should.

    Parameters
    ----------
    spikes : array_like of 0/1, shape (T, N_X)
    label : int
        Index of the right output.
    layers : list of Layer
        From the first hidden layer to the outputs.
    draws : list of array_like of float, shape (T, n)
        Uniform random numbers from 0 to 1, one array per hidden layer.  A neuron spikes when
        its draw is below its firing probability.
    rule : {"first-to-spike", "rate"} or Objective
    credit : {"straight-through", "flip", "three-factor"} or Credit
        How hidden neurons learn.  "straight-through" has the least noise, but a bias that grows
        with the weights.  The mean of each of the other two is the exact gradient.  "flip"
        simulates the network twice per hidden neuron and step.
    baseline : float
        With "three-factor", subtracted from the log-likelihood.  Noise is low if it is near the
        usual log-likelihood.
    target_period, target_start : int
        Period of the desired train, and the step of its first spike (by default `target_period`), for
        the rate rule.

    Returns
    -------
    log_likelihood : float
        Log-likelihood of the outputs given the hidden spikes.
    gradients : list of Gradient
        One per layer.
    hidden_spikes : list of ndarray of uint8, shape (T, n)

    Raises
    ------
    TypeError, ValueError
        If sizes do not match, parameters or draws are not finite, or spikes are not 0 or 1.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> layers = [
    ...     Layer([[1.0]], random.normal(size=(2, 3, 1)), np.zeros(3)),
    ...     Layer([[1.0]], random.normal(size=(3, 2, 1)), np.zeros(2)),
    ... ]
    >>> value, gradients, hidden = layered_gradient(
    ...     [[1, 0], [0, 1], [0, 0]], 1, layers, [random.random((3, 3))], credit="flip"
    ... )
    >>> hidden[0].shape, gradients[0].weights.shape
    ((3, 3), (2, 3, 1))
    """
    layers, inputs, label, objective, own_draws = check_network(
        spikes, label, layers, draws, rule, target_period, target_start
    )
    credit, baseline = get_credit(credit), real(baseline, "baseline")
    trains = [inputs]
    for layer, own in zip(layers[:-1], own_draws):
        trains.append(layer.simulate(trains[-1], own))
    presentation = Presentation.with_spikes(layers, inputs, trains[1:], label, objective)
    slopes = credit.slopes(presentation, own_draws, label, objective, baseline)
    return presentation.value, presentation.gradients(slopes), trains[1:]
