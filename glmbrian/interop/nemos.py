"""Models of NeMoS (https://nemos.readthedocs.io): fit there and simulate here, or the reverse.

NeMoS fits GLMs to binned spike counts.  Its features are inputs convolved with the
functions of a basis, shifted by one bin, so that bin t sees the bins up to t - 1.  This is
the same membrane potential (eq. membrane_potential_GLM), with the convolved functions as
basis A.  The features of a component are in the order (source, function); the components
of an additive basis follow one another.

A bin holds at most one spike in glmbrian, and a count in a Poisson model.  A count with
mean lambda is at least 1 with probability 1 - exp(-lambda).  A Poisson model therefore
corresponds to the activation g with ``lambda(u) = -log(1 - g(u))`` of the same
potential u:

============ ==================== ==========================
observations inverse link         activation
============ ==================== ==========================
Bernoulli    logistic             "sigmoid"
Bernoulli    normal distribution  "probit"
Bernoulli    1 - exp(-exp(u))     "cloglog"
Poisson      exp                  "cloglog"
Poisson      softplus             "sigmoid"
============ ==================== ==========================
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.activations import BUILT_IN_ACTIVATIONS, get_activation
from ..core.bases import CustomBasis
from ..population.population import GLMPopulation
from ..support.validation import choice
from .packages import imported

if TYPE_CHECKING:
    from brian2 import Quantity

#: Potentials at which an inverse link is compared with the expected function.
_PROBES = np.linspace(-5.0, 4.0, 19)


def from_nemos(
    model: Any, basis: Any, history: str | None = None, dt: "Quantity | None" = None
) -> GLMPopulation:
    """Return the population that corresponds to a fitted NeMoS model.

    Parameters
    ----------
    model : nemos.glm.GLM or nemos.glm.PopulationGLM
        A fitted model, with one of the observation models and inverse links above.
    basis : nemos basis
        The basis whose ``compute_features`` gave the model's features: a convolutional
        basis (``RaisedCosineLogConv``, ``HistoryConv`` and so on), a sum of such bases, or
        a transformer made from one, as in a scikit-learn pipeline.
    history : str, optional
        Label of the component whose input was the neuron's own counts.  It becomes the
        feedback kernel.
    dt : Quantity of time, optional
        Duration of a bin, such as ``1*ms``: the time step of the population's neurons.
        NeMoS does not store it.

    Returns
    -------
    GLMPopulation
        With a kernel for each other component, named by its label, and the basis
        functions that NeMoS convolves with.  If the input of a component (labelled
        "coupling", say) was the counts of the whole population, that kernel has the
        outputs as its input and includes each neuron's own history.

    Raises
    ------
    ImportError
        If NeMoS is not installed.
    TypeError, ValueError
        If the model is not fitted or of another kind; the basis is not convolutional,
        not causal, or not the basis of the model; a label cannot be the name of a
        kernel; or `history` is not a component, or couples different neurons.

    Examples
    --------
    One neuron, its counts ``y`` and a stimulus ``x``:

    >>> import numpy as np, glmbrian as glm
    >>> import nemos as nmo                                                       # doctest: +SKIP
    >>> random = np.random.default_rng(0)
    >>> x = random.normal(size=1000)
    >>> y = (random.random(1000) < 0.2).astype(float)
    >>> basis = nmo.basis.RaisedCosineLogConv(3, window_size=20, label="stimulus")  # doctest: +SKIP
    >>> basis = basis + nmo.basis.HistoryConv(2, label="history")                 # doctest: +SKIP
    >>> model = nmo.glm.GLM("Bernoulli").fit(basis.compute_features(x, y), y)     # doctest: +SKIP
    >>> population = glm.interop.from_nemos(model, basis, history="history")      # doctest: +SKIP
    >>> population.kernel("stimulus").shape, population.feedback_kernels().shape  # doctest: +SKIP
    ((1, 1, 20), (1, 2))

    A population with all-to-all coupling:

    >>> from brian2 import ms
    >>> counts = (random.random((1000, 2)) < 0.2).astype(float)
    >>> basis = nmo.basis.RaisedCosineLogConv(3, window_size=20, label="coupling")  # doctest: +SKIP
    >>> features = basis.compute_features(counts)                                 # doctest: +SKIP
    >>> model = nmo.glm.PopulationGLM("Bernoulli").fit(features, counts)          # doctest: +SKIP
    >>> population = glm.interop.from_nemos(model, basis, dt=1 * ms)              # doctest: +SKIP
    >>> neurons = population.neurons()                                            # doctest: +SKIP
    >>> coupling = population.synapses(neurons, neurons, "coupling")              # doctest: +SKIP
    >>> coupling.kernels().shape                                                  # doctest: +SKIP
    (2, 2, 20)
    """
    activation = _activation(model)
    if model.coef_ is None or model.intercept_ is None:
        raise ValueError("model must be fitted: it has no coefficients")
    bias = np.asarray(model.intercept_, dtype=float).reshape(-1)
    components = _components(basis, history)
    weights = _split(_coefficients(model, components, bias.size), components)
    bases = {label: CustomBasis(kernels) for label, (_, kernels) in components.items()}
    feedback = feedback_weights = None
    if history is not None:
        feedback = bases.pop(history)
        feedback_weights = _own(weights.pop(history), history)
    return GLMPopulation(bias, bases, weights, feedback, feedback_weights, activation, dt)


def to_nemos(population: GLMPopulation, model: Any, basis: Any, history: str | None = None) -> Any:
    """Write the parameters of a population into a NeMoS model.

    The inverse of `from_nemos`.

    Parameters
    ----------
    population : GLMPopulation
    model : nemos.glm.GLM or nemos.glm.PopulationGLM
        Its observation model and inverse link must correspond to the population's
        activation.  Its coefficients are set, as ``model.fit`` would set them.
    basis : nemos basis
        A convolutional basis, or a sum of them, with components labelled like the kernels,
        after ``compute_features`` or ``setup_basis``.  Its functions must be able to form
        the population's kernels: they are the population's own functions, or a
        ``HistoryConv``, which can form any kernel.
    history : str, optional
        Label of the component for the feedback kernel.

    Returns
    -------
    nemos.glm.GLM or nemos.glm.PopulationGLM
        The same `model`.

    Raises
    ------
    ImportError
        If NeMoS is not installed.
    TypeError, ValueError
        If the model or the basis is of another kind, or does not match the population.

    Examples
    --------
    A kernel of two lags becomes the coefficients of two lags:

    >>> import numpy as np, glmbrian as glm
    >>> import nemos as nmo                                                       # doctest: +SKIP
    >>> population = glm.GLMPopulation.from_kernels([-2.0], [[[1.0, 0.5]]])
    >>> x = np.array([0.0, 1.0, 0.0, 0.0, 0.0])
    >>> basis = nmo.basis.HistoryConv(2, label="stimulus")                        # doctest: +SKIP
    >>> features = basis.compute_features(x)                                      # doctest: +SKIP
    >>> model = glm.interop.to_nemos(population, nmo.glm.GLM("Bernoulli"), basis) # doctest: +SKIP
    >>> model.coef_.tolist(), model.intercept_.tolist()                           # doctest: +SKIP
    ([1.0, 0.5], [-2.0])

    NeMoS predicts from the first bin with a whole window before it:

    >>> predicted = model.predict(features)[2:]                                   # doctest: +SKIP
    >>> expected = population.firing_probability(x[:, np.newaxis])[2:, 0]
    >>> np.allclose(predicted, expected)                                          # doctest: +SKIP
    True
    """
    _check_population(population)
    activation = _activation(model)
    if get_activation(activation) is not population.activation:
        raise ValueError(
            f"model has the activation {activation!r}, but the population has "
            f"{population.activation.name!r}"
        )
    single = not isinstance(model, imported("nemos", "NeMoS").glm.PopulationGLM)
    if single and population.n > 1:
        raise ValueError(f"model must be a PopulationGLM for {population.n} neurons")
    if (history is None) != (population.feedback_basis is None):
        raise ValueError("history must be given if the population has feedback, and only then")
    components = _components(basis, history)
    bases: dict[str, Any] = dict(population.kernels)
    weights: dict[str, Any] = dict(population.weights)
    if history is not None:
        assert population.feedback_weights is not None  # as it has a feedback basis
        bases[history] = population.feedback_basis
        weights[history] = population.feedback_weights * np.eye(population.n)[:, :, np.newaxis]
    if set(components) != set(bases):
        raise ValueError(
            f"basis must have components with the labels {list(bases)}, got {list(components)}"
        )
    coefficients = []
    for label, (n_sources, kernels) in components.items():
        if n_sources != len(weights[label]):
            raise ValueError(
                f"basis: the component {label!r} must have {len(weights[label])} inputs, got "
                f"{n_sources}"
            )
        coefficient = _projected(weights[label], bases[label], kernels, label)
        coefficients.append(coefficient.swapaxes(1, 2).reshape(-1, population.n))
    coefficients = np.concatenate(coefficients)
    mask = getattr(model, "feature_mask", None)
    if isinstance(mask, dict):
        raise ValueError("model: its feature mask must be an array, like the coefficients it will have")
    if mask is not None and np.any(coefficients * (1 - np.asarray(mask)) != 0):
        raise ValueError("model: its feature mask leaves out weights of the population")
    model.coef_ = _jax_array(coefficients[:, 0] if single else coefficients)
    model.intercept_ = _jax_array(population.bias)
    model.scale_ = 1.0
    return model


def conditional_intensity(
    population: GLMPopulation,
    inputs: ArrayLike | Mapping[str, Any] | None,
    outputs: ArrayLike | None = None,
) -> np.ndarray:
    """Return the mean count per bin of the Poisson model that matches a population.

    This is the rate -log(1 - g(u)) of a Poisson count that is at least 1 with the firing
    probability g(u).  It equals ``predict`` of a Poisson model of NeMoS; for a Bernoulli
    model, ``predict`` equals `GLMPopulation.firing_probability`.

    Parameters
    ----------
    population : GLMPopulation
    inputs, outputs
        As for `GLMPopulation.membrane_potential`.

    Returns
    -------
    ndarray of float, shape (T, n)
        In spikes per step.

    Raises
    ------
    TypeError, ValueError
        As for `GLMPopulation.membrane_potential`.

    Examples
    --------
    The activation "cloglog" corresponds to a Poisson model with the inverse link exp:

    >>> import glmbrian as glm
    >>> population = glm.GLMPopulation.from_kernels([0.0], [[[1.0]]], activation="cloglog")
    >>> glm.interop.conditional_intensity(population, [[1], [0], [0]]).round(3)
    array([[1.   ],
           [2.718],
           [1.   ]])
    """
    _check_population(population)
    return -population.activation.log_silence(population.membrane_potential(inputs, outputs))


def _check_population(population):
    if not isinstance(population, GLMPopulation):
        raise TypeError(f"population must be a GLMPopulation, got {population!r}")


def _activation(model):
    """Return the name of the activation that corresponds to a NeMoS model."""
    nemos = imported("nemos", "NeMoS")
    if not isinstance(model, nemos.glm.GLM):
        raise TypeError(f"model must be a GLM or PopulationGLM of NeMoS, got {model!r}")
    expected = {
        nemos.observation_models.BernoulliObservations: lambda g: g.probability,
        nemos.observation_models.PoissonObservations: lambda g: lambda u: -g.log_silence(u),
    }
    observations = type(model.observation_model)
    if observations in expected:
        # Links have no stable names: they are lambdas, and wrappers of JAX's functions.
        link = np.asarray(model.inverse_link_function(_jax_array(_PROBES)), dtype=float)
        for name in BUILT_IN_ACTIVATIONS:
            # JAX uses single precision by default.
            if np.allclose(link, expected[observations](get_activation(name))(_PROBES), rtol=1e-4):
                return name
    link = getattr(model.inverse_link_function, "__name__", model.inverse_link_function)
    raise ValueError(
        "model must have Bernoulli observations with a logistic, normal or complementary "
        "log-log inverse link, or Poisson observations with exp or softplus, got "
        f"{observations.__name__} with {link}"
    )


def _jax_array(array):
    import jax.numpy as jnp

    return jnp.asarray(array)


def _components(basis, history):
    """Return, by label, the number of sources and the functions of each component.

    They are in the order of the features.
    """
    if isinstance(basis, imported("nemos", "NeMoS").basis.TransformerBasis):
        basis = basis.basis
    if not hasattr(basis, "compute_features"):
        raise TypeError(f"basis must be a basis of NeMoS, got {basis!r}")
    components = {}
    for component in basis:  # a basis that is not a sum is its only component
        if not hasattr(component, "window_size") or not hasattr(component, "kernel_"):
            raise ValueError(
                "basis must be a convolutional basis of NeMoS (Conv), or a sum of them, got "
                f"{component.label!r} of {type(component).__name__}"
            )
        causality = component.conv_kwargs.get("predictor_causality", "causal")
        if causality != "causal" or component.conv_kwargs.get("shift") is False:
            raise ValueError(
                f"basis: {component.label!r} must be causal and shifted by one bin, the "
                f"default, got conv_kwargs={component.conv_kwargs}"
            )
        shape = component.input_shape[0]
        if component.kernel_ is None or shape is None:
            raise ValueError(
                f"basis: {component.label!r} does not know its inputs; call compute_features or "
                "setup_basis on the basis first"
            )
        kernels = np.asarray(component.kernel_, dtype=float)
        components[component.label] = int(np.prod(shape)), kernels
    if history is not None:
        choice(history, "history", tuple(components))
    return components


def _coefficients(model, components, n):
    """Return the coefficients of a model as one array (n_features, n)."""
    coefficients, mask = model.coef_, getattr(model, "feature_mask", None)
    if isinstance(coefficients, dict):
        if set(coefficients) != set(components):
            raise ValueError(
                f"basis must have components with the labels {list(coefficients)} of the model, "
                f"got {list(components)}"
            )
        if mask is not None and set(mask) != set(components):
            raise ValueError(f"model: its feature mask must have the keys {list(components)}")
        parts = []
        for label in components:
            part = np.asarray(coefficients[label], dtype=float).reshape(-1, n)
            parts.append(part if mask is None else part * np.asarray(mask[label]))
        coefficients = np.concatenate(parts)
    else:
        coefficients = np.asarray(coefficients, dtype=float).reshape(-1, n)
        if mask is not None:
            coefficients = coefficients * np.asarray(mask)
    n_features = sum(n_sources * kernels.shape[1] for n_sources, kernels in components.values())
    if len(coefficients) != n_features:
        raise ValueError(
            f"basis must be the basis of the model: it has {n_features} features, but the model has "
            f"{len(coefficients)} coefficients per neuron"
        )
    return coefficients


def _split(coefficients, components):
    """Return the weights (n_source, n, n_basis) of each component."""
    sizes = [n_sources * kernels.shape[1] for n_sources, kernels in components.values()]
    parts = np.split(coefficients, np.cumsum(sizes)[:-1])
    return {
        label: part.reshape(n_sources, -1, part.shape[1]).swapaxes(1, 2)
        for part, (label, (n_sources, _)) in zip(parts, components.items())
    }


def _own(weights, label):
    """Return each neuron's weights for its own spikes, (n, n_basis) from (n, n, n_basis)."""
    n_sources, n = weights.shape[:2]
    if n_sources != n or np.any(weights[~np.eye(n, dtype=bool)] != 0):
        raise ValueError(
            f"history: {label!r} must couple each neuron only to its own counts, but its "
            f"{n_sources} inputs act on all {n} neurons; leave history out to make it an "
            "ordinary kernel with the outputs as its input"
        )
    return weights[np.arange(n), np.arange(n)]


def _projected(weights, basis, functions, label):
    """Return weights on the `functions` (window, k) that give the same kernels."""
    if np.array_equal(basis.matrix, functions):
        return weights
    kernels = basis.kernels(weights)
    window = max(len(functions), basis.window)
    functions, kernels = (
        np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, window - array.shape[-1])])
        for array in (functions.T, kernels)
    )
    projected = kernels @ np.linalg.pinv(functions)
    if not np.allclose(projected @ functions, kernels, atol=1e-9 * np.abs(kernels).max()):
        raise ValueError(
            f"basis: the functions of the component {label!r} cannot form the kernels of the "
            "population; use the same functions, or a HistoryConv, which can form any kernel"
        )
    return projected
