"""Objectives: what a network is trained for, and how it decides.

Trainers, devices and decisions call methods of an `Objective`; they never look at its name.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice, integer
from .activations import Activation
from .count_probabilities import Draw, most_spikes_probabilities
from .first_spike_bounds import first_spike_is_certain
from .first_spike_probabilities import first_spike_probabilities
from .likelihood_batches import first_to_spike_gradients, first_to_spike_values
from .likelihoods import desired_train, first_to_spike_gradient, rate_gradient
from .most_spikes_bounds import most_spikes_is_certain

#: Where `Objective.chance` looks for the best constant potential: closer together where the
#: activations are steep.
_CONSTANT_POTENTIALS = (-12, -10, -8, -7, -6, -5, -4, -3.5, -3, -2.5, -2, -1.5, -1, -0.5, 0, 1, 2)


class Objective(ABC):
    """What training maximises, and how a test decides.

    Subclass it to define your own: `desired` and `gradient` for training, `best` and
    `preference` for decisions.  `GLMClassifier(decoding=...)` and `Trainer(rule=...)` take an
    instance in place of the names "first-to-spike" and "rate".

    Attributes
    ----------
    name : str
        Its name in messages and results.
    clamps_outputs : bool
        Whether outputs are forced to emit the desired spikes during training.  Otherwise
        they are free, and `gradient` receives what they emitted.
    needs_labels : bool
        Whether `gradient` needs the label, and not only the desired spikes.
    learns_feedback : bool
        Whether outputs have feedback kernels, and learn them.
    stops_at_first_spike : bool
        Whether a test presentation ends with the first output spike.
    period : int
        Steps from one desired spike to the next; 1 if this does not apply.
    start : int or None
        Step of the first desired spike, from 1; None is `period`.  In compiled programs, `desired`
        sees steps shifted by ``start - period``, so that it need not know.
    cpp : str
        A C++ struct body for compiled devices, with the constants ``clamps_outputs``,
        ``learns_feedback`` and ``stops_at_first_spike``, and the static functions ``desired``
        and ``gradient``, as in `glmbrian.core.objectives`.  Without it, training runs on the
        runtime device only.

    See Also
    --------
    glmbrian.learning : log-likelihoods and gradients to build one from.

    Examples
    --------
    The right neuron should spike in every step, and the others never:

    >>> import glmbrian as glm
    >>> class Always(glm.Objective):
    ...     name = "always"
    ...     def desired(self, label, n_steps, n_outputs):
    ...         spikes = super().desired(label, n_steps, n_outputs)
    ...         spikes[:, label] = 1
    ...         return spikes
    ...     def gradient(self, potentials, outputs, label, activation):
    ...         return glm.learning.rate_gradient(potentials, outputs, activation)
    >>> classifier = glm.GLMClassifier(Always(), n_steps=4, n_basis=2, n_epochs=10, learning_rate=0.1,
    ...                                bias_init=-1.0, device="runtime", random_state=1)
    >>> X, y = [[1.0] * 6 + [0.0] * 6, [0.0] * 6 + [1.0] * 6] * 10, ["left", "right"] * 10
    >>> classifier.fit(X, y).score(X, y) > 0.9
    True
    """

    name: ClassVar[str]
    clamps_outputs: ClassVar[bool] = True
    needs_labels: ClassVar[bool] = True
    learns_feedback: ClassVar[bool] = False
    stops_at_first_spike: ClassVar[bool] = False
    period: int = 1
    start: int | None = None
    cpp: ClassVar[str] = ""

    def desired(self, label: int, n_steps: int, n_outputs: int) -> NDArray[np.uint8]:
        """Return the desired output spikes for a `label`.

        Parameters
        ----------
        label : int
            Index of the right output.
        n_steps, n_outputs : int

        Returns
        -------
        ndarray of uint8, shape (n_steps, n_outputs)
            No spikes by default.

        Examples
        --------
        >>> get_objective("rate", period=2).desired(label=1, n_steps=4, n_outputs=3)[:, 1]
        array([0, 1, 0, 1], dtype=uint8)
        """
        return np.zeros((n_steps, n_outputs), dtype=np.uint8)

    @abstractmethod
    def gradient(
        self,
        potentials: NDArray[np.float64],
        outputs: np.ndarray,
        label: int | None,
        activation: Activation,
    ) -> tuple[float, NDArray[np.float64]]:
        """Return the value of one presentation, and its gradient in the potentials.

        Parameters
        ----------
        potentials : ndarray of float, shape (T, N_Y)
        outputs : ndarray of uint8, shape (T, N_Y)
            Output spikes: the desired ones if outputs are clamped, else those emitted.
        label : int or None
            Index of the right output; None if a `glmbrian.Trainer` was given `targets`.
        activation : glmbrian.Activation

        Returns
        -------
        value : float
            The log-likelihood, or whatever is maximised.
        slope : ndarray of float, shape (T, N_Y)

        Examples
        --------
        Two neurons with a firing probability of 1/2 in each of two steps; neuron 0 should
        spike first:

        >>> import glmbrian as glm
        >>> value, slope = get_objective("first-to-spike", period=1).gradient(
        ...     np.zeros((2, 2)), None, 0, glm.get_activation("sigmoid")
        ... )
        >>> round(float(np.exp(value)), 12)
        0.3125
        """

    def best(self, outcome: Any) -> NDArray[np.bool_]:
        """Return which outputs a test may choose.

        Parameters
        ----------
        outcome : glmbrian.core.outcome.Outcome

        Returns
        -------
        ndarray of bool, shape (n, N_Y)
            By default the outputs with the most spikes.  Rows without output spikes are
            ignored: `on_silence` decides there.

        Examples
        --------
        >>> from glmbrian.core.outcome import Outcome
        >>> outcome = Outcome.from_rows([[4, 9, 1, 2, 2, 0.0, 0.5, 0.7, 0.1, 0.2, 0.3]], n_outputs=3)
        >>> get_objective("rate", period=4).best(outcome)
        array([[False,  True,  True]])
        """
        return outcome.counts == outcome.counts.max(axis=1, keepdims=True)

    def preference(self, outcome: Any) -> NDArray[np.float64]:
        """Return the potentials that decide between the `best` outputs, the highest first.

        Parameters
        ----------
        outcome : glmbrian.core.outcome.Outcome

        Returns
        -------
        ndarray of float, shape (n, N_Y)
            By default the sums over the presentation.

        Examples
        --------
        >>> from glmbrian.core.outcome import Outcome
        >>> outcome = Outcome.from_rows([[4, 9, 1, 2, 2, 0.0, 0.5, 0.7, 0.1, 0.2, 0.3]], n_outputs=3)
        >>> get_objective("rate", period=4).preference(outcome)
        array([[0. , 0.5, 0.7]])
        """
        return outcome.potential_sum

    def gradients(
        self,
        potentials: NDArray[np.float64],
        outputs: np.ndarray,
        labels: NDArray[np.int64],
        activation: Activation,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the values and gradients of several presentations (see `gradient`).

        Parameters
        ----------
        potentials : ndarray of float, shape (n, T, N_Y)
        outputs : ndarray of uint8, shape (n, T, N_Y)
        labels : ndarray of int, shape (n,)
        activation : glmbrian.Activation

        Returns
        -------
        values : ndarray of float, shape (n,)
        slopes : ndarray of float, shape (n, T, N_Y)

        Examples
        --------
        >>> import glmbrian as glm
        >>> values, slopes = get_objective("first-to-spike", period=1).gradients(
        ...     np.zeros((1, 2, 2)), None, np.array([0]), glm.get_activation("sigmoid")
        ... )
        >>> np.exp(values).round(12)
        array([0.3125])
        """
        found = [
            self.gradient(potential, output, int(label), activation)
            for potential, output, label in zip(potentials, outputs, labels)
        ]
        values, slopes = zip(*found)
        return np.array(values), np.array(slopes)

    def values(
        self,
        potentials: NDArray[np.float64],
        outputs: np.ndarray,
        labels: NDArray[np.int64],
        activation: Activation,
    ) -> NDArray[np.float64]:
        """Return the first part of what `gradients` returns.

        Parameters
        ----------
        potentials, outputs, labels, activation
            As for `gradients`.

        Returns
        -------
        ndarray of float, shape (n,)

        Examples
        --------
        >>> import glmbrian as glm
        >>> values = get_objective("first-to-spike", period=1).values(
        ...     np.zeros((1, 2, 2)), None, np.array([0]), glm.get_activation("sigmoid")
        ... )
        >>> np.exp(values).round(12)
        array([0.3125])
        """
        return self.gradients(potentials, outputs, labels, activation)[0]

    def chance(
        self,
        desired: np.ndarray,
        labels: NDArray[np.int64] | None,
        weights: NDArray[np.float64],
        activation: Activation,
    ) -> float:
        """Return the mean value of the best constant firing rate, whatever the input.

        Training that ends far below it has diverged, and warns.

        Parameters
        ----------
        desired : ndarray of uint8, shape (n, T, N_Y)
            Desired output spikes.
        labels : ndarray of int, shape (n,), or None
            Indices of the right outputs; None if a `glmbrian.Trainer` was given `targets`.
        weights : ndarray of float, shape (n,)
            How often each of these occurs; they sum to 1.
        activation : glmbrian.Activation

        Returns
        -------
        float
            By default the largest mean `value` at potentials that are the same for all outputs and
            steps; minus infinity, which stands for unknown, if outputs are free.

        Examples
        --------
        Two neurons, one step: at best the right one spikes alone with probability 1/4.

        >>> import glmbrian as glm
        >>> chance = get_objective("first-to-spike", period=1).chance(
        ...     np.zeros((2, 1, 2)), np.array([0, 1]), np.array([0.5, 0.5]), glm.get_activation("sigmoid")
        ... )
        >>> round(float(np.exp(chance)), 12)
        0.25
        """
        if not self.clamps_outputs:
            return -np.inf
        means = []
        for potential in _CONSTANT_POTENTIALS:
            u = np.full(desired.shape, float(potential))
            if labels is None:
                pairs = zip(u, desired)
                values = np.array([self.gradient(*pair, None, activation)[0] for pair in pairs])
            else:
                values = self.values(u, desired, labels, activation)
            means.append(weights @ values)
        return float(np.nanmax(means, initial=-np.inf))

    def probabilities(
        self,
        potentials: NDArray[np.float64],
        activation: Activation,
        feedback_kernels: NDArray[np.float64] | None,
        on_tie: str,
        on_silence: str,
        draw: Draw,
        n_simulated: int,
    ) -> NDArray[np.float64]:
        """Return the probability that a test decides for each output, given the inputs.

        `GLMClassifier.predict_proba` needs it; by default it raises a ValueError.

        Parameters
        ----------
        potentials : ndarray of float, shape (n, T, N_Y)
            Of the outputs, without feedback.
        activation : glmbrian.Activation
        feedback_kernels : ndarray of float, shape (lags, N_Y), or None
        on_tie, on_silence : str
            As for `GLMClassifier`.
        draw : callable
            Returns uniform random numbers, shape (n, T, N_Y), given the number of a repetition.
        n_simulated : int
            How often to simulate, if there is no closed form.

        Returns
        -------
        ndarray of float, shape (n, N_Y)
            Rows sum to 1; with ``on_silence="reject"`` to 1 minus the probability of no decision.

        Examples
        --------
        >>> import glmbrian as glm
        >>> get_objective("first-to-spike", period=1).probabilities(
        ...     np.zeros((1, 2, 2)), glm.get_activation("sigmoid"), None, "random", "random", None, 1
        ... ).round(12)
        array([[0.5, 0.5]])
        """
        raise ValueError(
            f"decoding {self.name!r} does not say how probable each decision is; define "
            "`probabilities` in its class, as in glmbrian.Objective"
        )

    def is_certain(
        self,
        lowest: NDArray[np.float64],
        highest: NDArray[np.float64],
        labels: NDArray[np.int64],
        activation: Activation,
        feedback_kernels: NDArray[np.float64] | None,
        on_tie: str,
        on_silence: str,
    ) -> NDArray[np.bool_]:
        """Return where the right output is the most probable one, for all potentials in a range.

        `glmbrian.robustness.certified` needs it; by default it raises a ValueError.

        Parameters
        ----------
        lowest, highest : ndarray of float, shape (n, T, N_Y)
            Bounds on the potentials, without feedback.
        labels : ndarray of int, shape (n,)
        activation : glmbrian.Activation
        feedback_kernels : ndarray of float, shape (lags, N_Y), or None
        on_tie, on_silence : str
            As for `GLMClassifier`.

        Returns
        -------
        ndarray of bool, shape (n,)

        Examples
        --------
        >>> import glmbrian as glm
        >>> u = np.array([[[5.0, -5.0]]])
        >>> get_objective("first-to-spike", period=1).is_certain(
        ...     u - 1, u + 1, np.array([0]), glm.get_activation("sigmoid"), None, "random", "random"
        ... )
        array([ True])
        """
        raise ValueError(
            f"decoding {self.name!r} has no bound on its decisions; define `is_certain` in its class, "
            "as in glmbrian.Objective"
        )


def check_decides_as_defined(objective: Objective, method: str) -> None:
    """Raise a ValueError if a class changes decisions, but inherits a `method` about them."""
    kind = type(objective)
    owner = next(cls for cls in kind.__mro__ if method in vars(cls))
    for name in ("best", "preference", "stops_at_first_spike", "probabilities"):
        if name != method and getattr(kind, name) is not getattr(owner, name):
            raise ValueError(
                f"decoding {objective.name!r} defines its own {name!r}, so that the inherited "
                f"{method!r} does not apply; define {method!r} as well, as in glmbrian.Objective"
            )


@dataclass(frozen=True)
class FirstToSpike(Objective):
    """The right output spikes before all others (eqs. first_spk_method_2 to first_spk_method_q).

    Outputs are held silent in training, so feedback plays no part.
    """

    name = "first-to-spike"
    stops_at_first_spike = True
    cpp = """
    static constexpr bool clamps_outputs = true, learns_feedback = false, stops_at_first_spike = true;
    static bool desired(int step, int neuron, int label, int64_t period) { return false; }
    template <class Activation, class Outputs, int STEPS, int NEURONS>
    static double gradient(const double (&u)[STEPS][NEURONS], Outputs outputs, int label,
                           double (&grad)[STEPS][NEURONS])
    {
        return glmbrian::first_to_spike_gradient<Activation>(u, label, grad);
    }
"""

    def gradient(
        self,
        potentials: NDArray[np.float64],
        outputs: np.ndarray,
        label: int | None,
        activation: Activation,
    ) -> tuple[float, NDArray[np.float64]]:
        # `needs_labels` excludes None.
        return first_to_spike_gradient(potentials, label, activation)  # type: ignore[arg-type]

    def best(self, outcome: Any) -> NDArray[np.bool_]:
        return outcome.counts > 0

    def preference(self, outcome: Any) -> NDArray[np.float64]:
        return outcome.potential_last

    def gradients(self, potentials, outputs, labels, activation):
        return first_to_spike_gradients(potentials, labels, activation)

    def values(self, potentials, outputs, labels, activation):
        return first_to_spike_values(potentials, labels, activation)

    def probabilities(
        self, potentials, activation, feedback_kernels, on_tie, on_silence, draw, n_simulated
    ):
        return first_spike_probabilities(potentials, activation, on_tie, on_silence)

    def is_certain(self, lowest, highest, labels, activation, feedback_kernels, on_tie, on_silence):
        return first_spike_is_certain(lowest, highest, labels, activation, on_silence)


@dataclass(frozen=True)
class Rate(Objective):
    """Outputs emit desired trains; the right one spikes every `period` steps (eq. LL_conv).

    Its first spike is in step `start`, counted from 1; by default in step `period`.
    """

    period: int = 4
    start: int | None = None

    name = "rate"
    needs_labels = False
    learns_feedback = True
    cpp = """
    static constexpr bool clamps_outputs = true, learns_feedback = true, stops_at_first_spike = false;
    static bool desired(int step, int neuron, int label, int64_t period)
    {
        return neuron == label && (step + INT64_C(1)) % period == 0;
    }
    template <class Activation, class Outputs, int STEPS, int NEURONS>
    static double gradient(const double (&u)[STEPS][NEURONS], Outputs outputs, int label,
                           double (&grad)[STEPS][NEURONS])
    {
        return glmbrian::rate_gradient<Activation>(u, outputs, grad);
    }
"""

    def __post_init__(self):
        integer(self.period, "period")
        if self.start is not None:
            integer(self.start, "start")

    def desired(self, label: int, n_steps: int, n_outputs: int) -> NDArray[np.uint8]:
        spikes = super().desired(label, n_steps, n_outputs)
        spikes[:, label] = desired_train(n_steps, self.period, self.start)
        return spikes

    def gradient(
        self,
        potentials: NDArray[np.float64],
        outputs: np.ndarray,
        label: int | None,
        activation: Activation,
    ) -> tuple[float, NDArray[np.float64]]:
        return rate_gradient(potentials, outputs, activation)

    def gradients(self, potentials, outputs, labels, activation):
        slopes = activation.log_probability_slope(potentials, outputs)
        return self.values(potentials, outputs, labels, activation), slopes

    def values(self, potentials, outputs, labels, activation):
        spike, silence = activation.log_spike(potentials), activation.log_silence(potentials)
        return np.where(outputs, spike, silence).sum(axis=(1, 2))

    def chance(self, desired, labels, weights, activation):
        # The best rate is that of the desired spikes.
        spiking = float(np.average(desired, axis=0, weights=weights).mean())
        logarithms = sum(rate * math.log(rate) for rate in (spiking, 1 - spiking) if rate > 0)
        return desired[0].size * logarithms

    def probabilities(
        self, potentials, activation, feedback_kernels, on_tie, on_silence, draw, n_simulated
    ):
        return most_spikes_probabilities(
            potentials, activation, feedback_kernels, on_tie, on_silence, draw, n_simulated
        )

    def is_certain(self, lowest, highest, labels, activation, feedback_kernels, on_tie, on_silence):
        return most_spikes_is_certain(
            lowest, highest, labels, activation, feedback_kernels, on_tie, on_silence
        )


#: The built-in objectives by name.
OBJECTIVES: dict[str, Callable[[int, int | None], Objective]] = {
    FirstToSpike.name: lambda period, start: FirstToSpike(),
    Rate.name: Rate,
}


def check_objective(objective: Any, argument: str) -> None:
    """Raise unless `objective` is an `Objective` or the name of one; errors name the `argument`."""
    if not isinstance(objective, Objective):
        choice(objective, argument, tuple(OBJECTIVES))


def get_objective(
    objective: str | Objective, period: int, argument: str = "objective", start: int | None = None
) -> Objective:
    """Return the `Objective` with this name; an `Objective` is returned unchanged.

    Parameters
    ----------
    objective : {"first-to-spike", "rate"} or Objective
    period : int
        Period of the desired spikes, for an objective given by name.
    argument : str
        Name of the caller's argument, for error messages.
    start : int, optional
        Step of the first desired spike, likewise; by default `period`.

    Returns
    -------
    Objective

    Raises
    ------
    TypeError, ValueError
        If no objective has this name.

    Examples
    --------
    >>> get_objective("rate", 3, start=20)
    Rate(period=3, start=20)
    """
    check_objective(objective, argument)
    return objective if isinstance(objective, Objective) else OBJECTIVES[objective](period, start)


def check_start(objective: Objective, n_steps: int) -> None:
    """Raise a ValueError naming `target_start` if presentations end before the first desired spike."""
    if objective.start is not None and objective.start > n_steps:
        raise ValueError(
            f"target_start must be at most n_steps={n_steps}, got {objective.start}: no neuron would learn to spike"
        )


def objective_to_save(objective: Objective) -> str:
    """Return the name under which an `Objective` is saved.

    Raises a `ValueError` for a custom objective: code cannot be saved.
    """
    made = OBJECTIVES.get(objective.name)
    if made is None or type(made(objective.period, objective.start)) is not type(objective):
        raise ValueError(
            f"decoding must be one of {', '.join(OBJECTIVES)} to be saved, got a custom one: "
            f"{objective!r}"
        )
    return objective.name
