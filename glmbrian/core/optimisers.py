"""Optimisers: how the gradient of a batch changes the parameters.

Training maximises, so parameters move along the direction that an `Optimizer` makes of the gradient.  Devices
keep what it remembers of earlier gradients, its *slots*: arrays of the shape of the parameters.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..support.validation import choice, real


class Optimizer(ABC):
    """How the gradient of a batch changes the parameters.

    Subclass it to define your own, as a frozen dataclass whose fields are real numbers.  An update adds the
    learning rate times `direction` to the parameters.  `GLMClassifier(optimizer=...)` and `Trainer(optimizer=...)`
    take an instance in place of the names "sgd", "momentum" and "adam".

    Attributes
    ----------
    name : str
        Its name in messages and files.
    n_slots : int
        How many arrays of the shape of the parameters it keeps; they start at 0.
    is_gradient : bool
        Whether the direction is the gradient itself.  Devices may then add the gradient to the parameters at
        once, synapse by synapse.
    cpp : str
        The body of a C++ struct ``Optimizer`` for compiled devices, with a constructor from the values of the fields
        and the number of this update, and the function ``direction``, as in `glmbrian.core.optimisers`.  Without it,
        training runs on the runtime device only.

    Examples
    --------
    Steps that depend on the sign of the gradient only:

    >>> import numpy as np, glmbrian as glm
    >>> class SignSGD(glm.Optimizer):
    ...     name = "sign"
    ...     def direction(self, gradient, slots, n):
    ...         return np.sign(gradient)
    >>> classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=1, learning_rate=0.5, average=0,
    ...                                optimizer=SignSGD(), device="runtime", random_state=1)
    >>> classifier.fit([[1.0, 0.0], [0.0, 1.0]], ["left", "right"]).bias_
    array([-5., -5.])
    """

    name: ClassVar[str]
    n_slots: int = 0
    is_gradient: bool = False
    cpp: str = ""

    @abstractmethod
    def direction(
        self, gradient: NDArray[np.float64], slots: Sequence[NDArray[np.float64]], n: Any
    ) -> NDArray[np.float64]:
        """Return the direction of an update, and bring the slots up to date, in place.

        Parameters
        ----------
        gradient : ndarray of float
            Mean gradient of the log-likelihood of the presentations in a batch.
        slots : list of ndarray of float, of the same shape
            One for each of the `n_slots`.
        n : int or ndarray of int
            The number of this update, from 1; an array broadcasts against `gradient`.

        Returns
        -------
        ndarray of float, of the same shape

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> glm.SGD().direction(np.array([1.0, -2.0]), slots=[], n=1)
        array([ 1., -2.])
        """

    @property
    def settings(self) -> dict[str, float]:
        """The values of the fields, by name, in the order in which C++ gets them."""
        return {name: float(value) for name, value in vars(self).items()}

    def cpp_struct(self) -> str:
        """Return the C++ struct ``Optimizer``, also with the constants ``n_slots`` and ``is_gradient``.

        Returns
        -------
        str

        Examples
        --------
        >>> import glmbrian as glm
        >>> "n_slots = 2;" in glm.Adam().cpp_struct()
        True
        """
        is_gradient = str(self.is_gradient).lower()
        return (
            f"struct Optimizer {{\n    static constexpr int n_slots = {self.n_slots};\n"
            f"    static constexpr bool is_gradient = {is_gradient};{self.cpp}}};"
        )

    def with_settings(self, values: Sequence[float]) -> "Optimizer":
        """Return the same optimiser with other values of its fields.

        Parameters
        ----------
        values : sequence of float
            In the order of `settings`.

        Returns
        -------
        Optimizer

        Examples
        --------
        >>> import glmbrian as glm
        >>> glm.Adam().with_settings([0.8, 0.99, 1e-6])
        Adam(beta1=0.8, beta2=0.99, epsilon=1e-06)
        """
        return type(self)(**dict(zip(self.settings, values)))


@dataclass(frozen=True)
class SGD(Optimizer):
    """Stochastic gradient ascent, with momentum if that is above 0.

    Parameters
    ----------
    momentum : float
        From 0 to below 1.  The direction is the sum of all gradients so far, those k updates ago times
        ``momentum ** k``; so the steps are up to ``1 / (1 - momentum)`` times as long.

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.core.optimisers import SGD
    >>> slots = [np.zeros(2)]
    >>> for n in (1, 2):
    ...     print(SGD(momentum=0.5).direction(np.array([1.0, -2.0]), slots, n))
    [ 1. -2.]
    [ 1.5 -3. ]
    """

    momentum: float = 0.0
    name = "sgd"

    def __post_init__(self) -> None:
        real(self.momentum, "momentum", 0, below=1)

    @property
    def n_slots(self) -> int:  # type: ignore[override]
        return int(self.momentum > 0)

    @property
    def is_gradient(self) -> bool:  # type: ignore[override]
        return self.momentum == 0

    def direction(self, gradient, slots, n):
        """Return the gradient, or with momentum the decaying sum of all gradients so far.

        Parameters
        ----------
        gradient, slots, n
            As for `Optimizer.direction`.

        Returns
        -------
        ndarray of float

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> glm.SGD(momentum=0.5).direction(np.array([1.0]), [np.array([4.0])], n=2)
        array([3.])
        """
        if self.is_gradient:
            return gradient
        (sums,) = slots
        sums *= self.momentum
        sums += gradient
        return sums

    @property
    def cpp(self) -> str:  # type: ignore[override]
        if self.is_gradient:
            return """
    Optimizer(const double*, double) {}
    double direction(double gradient, double* const*, size_t) const { return gradient; }
"""
        return """
    const double momentum;
    Optimizer(const double* settings, double) : momentum(settings[0]) {}
    double direction(double gradient, double* const* slots, size_t at) const
    {
        return slots[0][at] = momentum * slots[0][at] + gradient;
    }
"""


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam (Kingma & Ba, 2015): steps of about the learning rate, whatever the scale of the gradient.

    The direction is ``m / (sqrt(v) + epsilon)``, where m and v are running means of the gradient and of its square,
    each divided by ``1 - beta ** n`` in the n-th update since they start at 0.

    Parameters
    ----------
    beta1, beta2 : float
        From 0 to below 1: how much of the running means is kept in an update.
    epsilon : float
        Above 0.

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.core.optimisers import Adam
    >>> Adam().direction(np.array([1e-3, -2.0]), [np.zeros(2), np.zeros(2)], 1).round(3)
    array([ 1., -1.])
    """

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    name = "adam"
    n_slots = 2

    def __post_init__(self) -> None:
        real(self.beta1, "beta1", 0, below=1)
        real(self.beta2, "beta2", 0, below=1)
        real(self.epsilon, "epsilon", 0, strict=True)

    def direction(self, gradient, slots, n):
        """Return the unbiased mean gradient over the root of the unbiased mean square.

        Parameters
        ----------
        gradient, slots, n
            As for `Optimizer.direction`.

        Returns
        -------
        ndarray of float

        Examples
        --------
        >>> import numpy as np, glmbrian as glm
        >>> glm.Adam().direction(np.array([0.02, -5.0]), [np.zeros(2), np.zeros(2)], n=1).round(4)
        array([ 1., -1.])
        """
        mean, square = slots
        mean += (1 - self.beta1) * (gradient - mean)
        square += (1 - self.beta2) * (gradient * gradient - square)
        unbiased = mean / (1 - self.beta1**n)
        return unbiased / (np.sqrt(square / (1 - self.beta2**n)) + self.epsilon)

    cpp = """
    const double beta1, beta2, epsilon, weight1, weight2;
    Optimizer(const double* settings, double n)
        : beta1(settings[0]), beta2(settings[1]), epsilon(settings[2]),
          weight1(1.0 - std::pow(beta1, n)), weight2(1.0 - std::pow(beta2, n)) {}
    double direction(double gradient, double* const* slots, size_t at) const
    {
        double &mean = slots[0][at], &square = slots[1][at];
        mean += (1.0 - beta1) * (gradient - mean);
        square += (1.0 - beta2) * (gradient * gradient - square);
        return mean / weight1 / (std::sqrt(square / weight2) + epsilon);
    }
"""


_NAME = "optimizer (unless it is an Optimizer object)"

#: The optimisers that `optimizer` may name.
OPTIMIZERS: dict[str, Optimizer] = {"sgd": SGD(), "momentum": SGD(momentum=0.9), "adam": Adam()}


def get_optimizer(optimizer: str | Optimizer) -> Optimizer:
    """Return the optimiser with this name; an `Optimizer` is returned unchanged."""
    if isinstance(optimizer, Optimizer):
        return optimizer
    return OPTIMIZERS[choice(optimizer, _NAME, OPTIMIZERS)]


#: The classes that files may name.
_KINDS: dict[str, type[Optimizer]] = {kind.name: kind for kind in (SGD, Adam)}


def optimizer_to_save(optimizer: str | Optimizer) -> str | dict[str, Any]:
    """Return what a file says about an optimiser; raise a ValueError for a custom one."""
    if isinstance(optimizer, str):
        return optimizer
    if _KINDS.get(optimizer.name) is not type(optimizer):
        raise ValueError(
            f"optimizer must be one of {', '.join(OPTIMIZERS)}, SGD(...) or Adam(...) to be saved, got a custom one: "
            f"{optimizer!r}; to decide, a trained classifier no longer needs it, so set it to 'sgd' first"
        )
    return {"name": optimizer.name, **optimizer.settings}


def optimizer_from_file(saved: Any) -> str | Optimizer:
    """Return the optimiser of a file."""
    if not isinstance(saved, dict):
        return saved
    settings = dict(saved)
    return _KINDS[choice(settings.pop("name", None), "optimizer", _KINDS)](**settings)
