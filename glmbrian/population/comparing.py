"""Comparing models of the same neurons: information criteria and likelihood-ratio tests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.bases import Basis
from ..support.display import html_table
from ..support.validation import choice, warn
from .objective import log_likelihoods
from .population import GLMPopulation
from .recorded import Epochs, read
from .task import ranks

#: The most nats by which a larger model may fall short, since fits end slightly below the maximum.
_SLACK = 1e-4


@dataclass(frozen=True, eq=False)
class Comparison:
    """Models of the same neurons side by side; rows are models, columns neurons.

    Parameters
    ----------
    names : list of str
    log_likelihood : ndarray of float, shape (n_models, n)
        In nats, summed over the steps that count.
    n_parameters : ndarray of int, shape (n_models, n)
        Numbers of biases and weights; connections whose weights are all 0 do not count.
    n_steps : int

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.population import Comparison
    >>> both = Comparison(["bias", "history"], np.array([[-120.0], [-100.0]]), np.array([[1], [4]]), 500)
    >>> both.aic
    array([[242.],
           [208.]])
    >>> both.best("bic")
    ['history']
    """

    names: list[str]
    log_likelihood: NDArray[np.float64]
    n_parameters: NDArray[np.int_]
    n_steps: int

    @property
    def aic(self) -> NDArray[np.float64]:
        """Akaike's criterion, 2 k - 2 log L; the lowest is best."""
        return 2 * self.n_parameters - 2 * self.log_likelihood

    @property
    def bic(self) -> NDArray[np.float64]:
        """The Bayesian criterion, k log(n_steps) - 2 log L; the lowest is best."""
        return np.log(self.n_steps) * self.n_parameters - 2 * self.log_likelihood

    def best(self, criterion: str = "aic") -> list[str]:
        """Return the name of the best model of each neuron.

        Parameters
        ----------
        criterion : {"aic", "bic"}

        Returns
        -------
        list of str

        Examples
        --------
        >>> import numpy as np
        >>> from glmbrian.population import Comparison
        >>> Comparison(["a", "b"], np.array([[-9.0], [-8.5]]), np.array([[1], [2]]), 50).best()
        ['a']
        """
        values = getattr(self, choice(criterion, "criterion", ("aic", "bic")))
        return [self.names[row] for row in values.argmin(axis=0)]

    def _rows(self):
        return {
            name: f"log-likelihood {self.log_likelihood[row].sum():.1f}, "
            f"{self.n_parameters[row].sum()} parameters, AIC {self.aic[row].sum():.1f}, "
            f"BIC {self.bic[row].sum():.1f}"
            for row, name in enumerate(self.names)
        }

    def __repr__(self):
        listed = "; ".join(f"{name}: {text}" for name, text in self._rows().items())
        return f"<Comparison: {listed}>"

    def _repr_html_(self):
        return html_table(f"{self.log_likelihood.shape[1]} neurons, all together", self._rows())


@dataclass(frozen=True, eq=False)
class LikelihoodRatioTest:
    """Whether a larger model is better than a smaller one by more than chance, neuron by neuron.

    Parameters
    ----------
    statistic : ndarray of float, shape (n,)
        Twice the difference of the log-likelihoods.
    degrees_of_freedom : ndarray of int, shape (n,)
        Number of parameters that only the larger model has.
    p_value : ndarray of float, shape (n,)
        Probability of a statistic at least as large if the smaller model is true; 1 without
        additional parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from glmbrian.population import LikelihoodRatioTest
    >>> LikelihoodRatioTest(np.array([3.84]), np.array([1]), np.array([0.05])).p_value
    array([0.05])
    """

    statistic: NDArray[np.float64]
    degrees_of_freedom: NDArray[np.int_]
    p_value: NDArray[np.float64]


def compare(
    models: Mapping[str, GLMPopulation],
    outputs: Any,
    inputs: Any = None,
    mask: ArrayLike | None = None,
    *,
    epochs: Epochs = None,
) -> Comparison:
    """Compare models of the same neurons, fitted to the same data, by information criteria.

    The criteria hold for models fitted to these data without a penalty.

    Parameters
    ----------
    models : dict of str to GLMPopulation
    outputs : array_like of 0/1, shape (T, n), or Recording
    inputs : dict of str to array_like, optional
        The inputs of all kernels of all models, by name; each model takes those of its own kernels.
    mask : array_like of bool, shape (T,), optional
        The steps that count, the same for all models.
    epochs : list of (start, stop), optional
        As for `fit_population`, the same for all models.

    Returns
    -------
    Comparison

    Raises
    ------
    TypeError, ValueError
        If `models` are not populations of the same number of neurons, or the data do not fit; or if
        a penalty or `stable` has moved the parameters of one, for which the criteria do not hold.

    Warns
    -----
    RuntimeWarning
        If a model remembers that it was fitted to other steps.

    Examples
    --------
    Each spike prevents a spike in the next step; a model without history does not know this:

    >>> import numpy as np
    >>> import glmbrian as glm
    >>> outputs = np.random.default_rng(0).random((500, 1)) < 0.3
    >>> outputs[1:] &= ~outputs[:-1]
    >>> models = {
    ...     "bias": glm.fit_population(outputs),
    ...     "history": glm.fit_population(outputs, feedback_basis=glm.CustomBasis([[1.0], [0.1]])),
    ... }
    >>> glm.compare(models, outputs).best()
    ['history']
    """
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models must be a dict of names to GLMPopulations, got {models!r}")
    for name, model in models.items():
        _require_population(model, f"models[{name!r}]", "information criteria")
    sizes = {name: model.n for name, model in models.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"models must have the same number of neurons, got {sizes}")
    all_parameters = [model.parameters for model in models.values()]
    data = read(all_parameters, outputs, inputs, mask, epochs)
    for name, model in models.items():
        _warn_of_other_steps(model, f"models[{name!r}]", data)
    values = np.array([log_likelihoods(each, data) for each in all_parameters])
    counts = np.array([each.n_parameters() for each in all_parameters])
    return Comparison([str(name) for name in models], values, counts, data.n_counted)


def likelihood_ratio_test(
    smaller: GLMPopulation,
    larger: GLMPopulation,
    outputs: Any,
    inputs: Any = None,
    mask: ArrayLike | None = None,
    *,
    epochs: Epochs = None,
) -> LikelihoodRatioTest:
    """Test for each neuron whether a larger model is better by more than chance.

    Both must be at the maximum of the likelihood of these data: fitted to them, without penalty.

    Parameters
    ----------
    smaller, larger : GLMPopulation
        The kernels and connections of the smaller model must be among those of the larger.
    outputs, inputs, mask, epochs
        As for `compare`.

    Returns
    -------
    LikelihoodRatioTest

    Raises
    ------
    TypeError, ValueError
        If the models are not nested; if a penalty or `stable` has moved the parameters of one; or if
        the larger has a lower likelihood, which shows that it was not fitted to these data.

    Warns
    -----
    RuntimeWarning
        If a model remembers that it was fitted to other steps.

    Examples
    --------
    >>> import numpy as np
    >>> import glmbrian as glm
    >>> x = np.random.default_rng(0).random((400, 1)) < 0.5
    >>> y = np.roll(x, 1) & (np.random.default_rng(1).random((400, 1)) < 0.5)
    >>> y |= np.random.default_rng(2).random((400, 1)) < 0.1
    >>> bias = glm.fit_population(y)
    >>> driven = glm.fit_population(y, x, glm.IndicatorBasis(1))
    >>> test = glm.likelihood_ratio_test(bias, driven, y, {"stimulus": x})
    >>> test.degrees_of_freedom, bool(test.p_value[0] < 0.001)
    (array([1]), True)
    """
    for name, model in ("smaller", smaller), ("larger", larger):
        _require_population(model, name, "likelihood-ratio test")
    few, many = smaller.parameters, larger.parameters
    _require_nested(few, many)
    data = read([many, few], outputs, inputs, mask, epochs)
    for name, model in ("smaller", smaller), ("larger", larger):
        _warn_of_other_steps(model, name, data)
    gain = log_likelihoods(many, data) - log_likelihoods(few, data)
    short = np.flatnonzero(gain < -_SLACK)
    if short.size:
        raise ValueError(
            f"larger must be fitted to these data without a penalty, but for neuron {short[0]} its "
            f"log-likelihood is {-gain[short[0]]:.4g} below that of smaller"
        )
    from scipy.stats import chi2

    statistic = 2 * np.maximum(gain, 0.0)
    degrees = many.n_parameters() - few.n_parameters()
    p_value = np.where(degrees > 0, chi2.sf(statistic, np.maximum(degrees, 1)), 1.0)
    return LikelihoodRatioTest(statistic, degrees, p_value)


def _require_population(model, name, what):
    """Raise unless `model` is a population at the maximum of its likelihood."""
    if not isinstance(model, GLMPopulation):
        raise TypeError(f"{name} must be a GLMPopulation, got {model!r}")
    model.parameters.require_maximum(what, name)


def _warn_of_other_steps(model, name, data):
    """Warn if a model was fitted to other steps than those of `data`, as far as it is known."""
    fitted = model.fitted_to
    if fitted is not None and not np.array_equal(data.counted(), fitted.counted()):
        warn(
            f"{name} was fitted to other steps than these: its fit counted {fitted.n_counted} of {fitted.n_steps} "
            f"steps, and here {data.n_counted} of {data.n_steps} count. The comparison holds for models fitted to the "
            "same steps: pass the same outputs, mask and epochs to both, or compare by score on steps that no fit "
            "has seen",
            RuntimeWarning,
        )


def _require_nested(smaller, larger):
    if smaller.n != larger.n:
        raise ValueError(f"smaller must have the {larger.n} neurons of larger, got {smaller.n}")
    if smaller.observations != larger.observations:
        raise ValueError(
            f"smaller must have the activation of larger, {str(larger.observations)!r}, got "
            f"{str(smaller.observations)!r}"
        )
    present, allowed = smaller.connections(), larger.connections()
    for name, basis in smaller.kernels.items():
        if name not in larger.kernels or not _contains(larger.kernels[name], basis):
            raise ValueError(f"larger must have a kernel {name!r} whose basis can form that of smaller")
        if present[name].shape != allowed[name].shape or np.any(present[name] & ~allowed[name]):
            raise ValueError(f"larger must have all connections {name!r} of smaller")
    if smaller.feedback_basis is not None:
        if larger.feedback_basis is None or not _contains(
            larger.feedback_basis, smaller.feedback_basis
        ):
            raise ValueError("larger must have a feedback_basis that can form that of smaller")


def _contains(larger: Basis, smaller: Basis) -> bool:
    """Return whether the functions of one basis can form those of another."""
    own, both = ranks(larger.matrix, smaller.matrix)
    return bool(own == both)
