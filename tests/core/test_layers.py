"""Hidden layers in NumPy, checked in networks small enough to list all hidden spikes."""

from itertools import product

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from glmbrian.core.credit import CREDITS, get_credit, layered_gradient
from glmbrian.core.layers import Layer, layered_log_likelihood

T, PERIOD = 3, 2
STEP = mpf(10) ** -20  # for finite differences with 50 digits

EXACT = {
    "sigmoid": lambda u: 1 / (1 + mpmath.exp(-u)),
    "probit": mpmath.ncdf,
    "cloglog": lambda u: 1 - mpmath.exp(-mpmath.exp(u)),
}
RULES = ["first-to-spike", "rate"]


@pytest.fixture(autouse=True)
def fifty_digits():
    with mpmath.workdps(50):
        yield


def random_layers(sizes, feedback, activation="sigmoid", scale=1.0, seed=1):
    """Return layers of these sizes, inputs first. The output layer always has feedback."""
    random = np.random.default_rng(seed)
    layers = []
    for n_in, n in zip(sizes, sizes[1:]):
        has_feedback = feedback or len(layers) == len(sizes) - 2
        layers.append(
            Layer(
                random.normal(size=(2, 2)),
                scale * random.normal(size=(n_in, n, 2)),
                random.normal(size=n) - 0.5,
                random.normal(size=(2, 1)) if has_feedback else None,
                scale * random.normal(size=(n, 1)) if has_feedback else None,
                activation,
            )
        )
    return layers


def parameters(layers):
    """Return all parameters as exact numbers, by layer, name and index."""
    return {
        (number, name, index): mpf(float(value))
        for number, layer in enumerate(layers)
        for name in ("weights", "feedback", "bias")
        if getattr(layer, name) is not None
        for index, value in np.ndenumerate(getattr(layer, name))
    }


class ExactLayer:
    """Computes the potentials of a layer from the equations, one number at a time."""

    def __init__(self, number, layer):
        self.number, self.layer, self.g = number, layer, EXACT[layer.activation.name]

    def potential(self, theta, inputs, own, step, neuron):
        layer, number = self.layer, self.number
        u = theta[number, "bias", (neuron,)]
        for lag in range(1, min(step, len(layer.basis)) + 1):
            for j, k in product(range(layer.n_in), range(layer.basis.shape[1])):
                weight = theta[number, "weights", (j, neuron, k)]
                u += mpf(float(layer.basis[lag - 1, k])) * weight * inputs[step - lag][j]
        if layer.feedback is not None:
            for lag in range(1, min(step, len(layer.feedback_basis)) + 1):
                weight = theta[number, "feedback", (neuron, 0)]
                u += mpf(float(layer.feedback_basis[lag - 1, 0])) * weight * own[step - lag][neuron]
        return u


def exact_log_likelihood(layers, theta, spikes, label, rule, hidden):
    """Return L given the spikes of all hidden layers, which may be real numbers."""
    output = ExactLayer(len(layers) - 1, layers[-1])
    inputs = [spikes, *hidden][-1]
    n = layers[-1].n
    desired = [
        [int(rule == "rate" and i == label and t % PERIOD == PERIOD - 1) for i in range(n)]
        for t in range(T)
    ]
    g = [[output.g(output.potential(theta, inputs, desired, t, i)) for i in range(n)] for t in range(T)]
    if rule == "rate":
        return sum(
            mpmath.log(p if spike else 1 - p)
            for row, wanted in zip(g, desired)
            for p, spike in zip(row, wanted)
        )
    first, silent = mpf(0), mpf(1)
    for row in g:
        others = mpmath.fprod(1 - p for i, p in enumerate(row) if i != label)
        first += silent * others * row[label]
        silent *= others * (1 - row[label])
    return mpmath.log(first)


def exact_mean(layers, theta, spikes, label, rule, hidden=()):
    """Return the mean of L over all hidden spikes, layer by layer."""
    number = len(hidden)
    if number == len(layers) - 1:
        return exact_log_likelihood(layers, theta, spikes, label, rule, hidden)
    layer, inputs = ExactLayer(number, layers[number]), [spikes, *hidden][-1]
    mean = mpf(0)
    for pattern in product((0, 1), repeat=T * layers[number].n):
        own = np.reshape(pattern, (T, layers[number].n)).tolist()
        probability = mpf(1)
        for t, i in np.ndindex(T, layers[number].n):
            p = layer.g(layer.potential(theta, inputs, own, t, i))
            probability *= p if own[t][i] else 1 - p
        mean += probability * exact_mean(layers, theta, spikes, label, rule, (*hidden, own))
    return mean


def derivatives(function, theta):
    """Return the derivative of a function with respect to each parameter."""
    found = {}
    for name, value in theta.items():
        above, below = ({**theta, name: value + sign * STEP} for sign in (1, -1))
        found[name] = float((function(above) - function(below)) / (2 * STEP))
    return found


def as_dict(gradients):
    return {
        (number, name, index): value
        for number, gradient in enumerate(gradients)
        for name in ("weights", "feedback", "bias")
        if getattr(gradient, name) is not None
        for index, value in np.ndenumerate(getattr(gradient, name))
    }


def all_draws(layers, spikes):
    """Yield draws that represent all possible draws, with their probabilities.

    All draws between two neighbours among the firing probabilities that the neuron can have in
    a step give the same spikes, so the middle of each interval is enough.
    """
    thresholds = [{} for _ in layers[:-1]]

    def collect(number, inputs):
        if number == len(layers) - 1:
            return
        layer = layers[number]
        for pattern in product((0, 1), repeat=T * layer.n):
            own = np.reshape(pattern, (T, layer.n))
            g = layer.activation.probability(layer.potentials(inputs, own))
            for place in np.ndindex(g.shape):
                thresholds[number].setdefault(place, set()).add(float(g[place]))
            collect(number + 1, own)

    collect(0, spikes)
    places, intervals = [], []
    for number, of_layer in enumerate(thresholds):
        for place, found in of_layer.items():
            edges = np.array([0.0, *sorted(found), 1.0])
            places.append((number, *place))
            intervals.append(list(zip((edges[1:] + edges[:-1]) / 2, np.diff(edges))))
    for chosen in product(*intervals):
        draws = [np.zeros((T, layer.n)) for layer in layers[:-1]]
        for (number, *place), (middle, _) in zip(places, chosen):
            draws[number][tuple(place)] = middle
        yield draws, np.prod([length for _, length in chosen])


def mean_gradient(layers, spikes, label, rule, credit, baseline=0.0):
    mean = {}
    for draws, probability in all_draws(layers, spikes):
        _, gradients, _ = layered_gradient(
            spikes, label, layers, draws, rule, credit, baseline, target_period=PERIOD
        )
        for name, value in as_dict(gradients).items():
            mean[name] = mean.get(name, 0.0) + probability * value
    return mean


SPIKES = np.array([[1, 0], [1, 1], [0, 1]])


@pytest.mark.parametrize(
    "sizes, feedback, rule",
    [
        ((2, 2, 2), False, "first-to-spike"),
        ((2, 2, 2), False, "rate"),
        ((2, 1, 2), True, "first-to-spike"),
        ((2, 1, 2), True, "rate"),
        ((2, 1, 1, 2), False, "rate"),
        pytest.param((2, 1, 1, 2), True, "first-to-spike", marks=pytest.mark.exhaustive),
    ],
)
def test_the_mean_of_unbiased_credit_is_the_exact_gradient(sizes, feedback, rule):
    layers = random_layers(sizes, feedback)
    exact = derivatives(
        lambda theta: exact_mean(layers, theta, SPIKES.tolist(), 1, rule), parameters(layers)
    )
    for credit, baseline in (("flip", 0.0), ("three-factor", -1.7)):
        mean = mean_gradient(layers, SPIKES, 1, rule, credit, baseline)
        assert mean.keys() == exact.keys()
        for name, value in exact.items():
            assert mean[name] == pytest.approx(value, abs=1e-12), (credit, name)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("activation", EXACT)
@pytest.mark.parametrize("sizes", [(2, 3, 2), (2, 2, 3, 2)], ids=["one layer", "two layers"])
def test_straight_through_is_the_derivative_of_its_definition(sizes, activation, rule):
    """The definition replaces a spike h with h + g(v) - g(v at the given parameters)."""
    layers = random_layers(sizes, True, activation)
    random = np.random.default_rng(2)
    hidden = [random.integers(0, 2, (T, n)) for n in sizes[1:-1]]
    present = parameters(layers)

    def relaxed(theta):
        trains = [SPIKES.tolist()]
        for number, drawn in enumerate(hidden):
            layer, inputs = ExactLayer(number, layers[number]), trains[-1]
            fixed = [SPIKES, *hidden][number].tolist()
            own = [[mpf(0)] * layers[number].n for _ in range(T)]
            for t, i in np.ndindex(T, layers[number].n):
                moving = layer.g(layer.potential(theta, inputs, own, t, i))
                held = layer.g(layer.potential(present, fixed, drawn.tolist(), t, i))
                own[t][i] = int(drawn[t, i]) + moving - held
            trains.append(own)
        return exact_log_likelihood(layers, theta, trains[0], 0, rule, trains[1:])

    value, gradients = layered_log_likelihood(SPIKES, 0, layers, hidden, rule, PERIOD)
    assert value == pytest.approx(float(relaxed(present)), abs=1e-12)
    found = as_dict(gradients)
    for name, expected in derivatives(relaxed, present).items():
        assert found[name] == pytest.approx(expected, abs=1e-9), name


def test_draws_decide_about_spikes():
    layers = random_layers((2, 3, 2), True)
    random = np.random.default_rng(0)
    mean = np.mean(
        [layered_gradient(SPIKES, 0, layers, [random.random((T, 3))])[2][0] for _ in range(4000)],
        axis=0,
    )
    first = layers[0].activation.probability(layers[0].bias)
    np.testing.assert_allclose(mean[0], first, atol=0.04)
    silent, sure = (layered_gradient(SPIKES, 0, layers, [np.full((T, 3), d)])[2][0] for d in (1, 0))
    assert not silent.any() and sure.all()


def test_without_hidden_layers_it_is_the_known_log_likelihood():
    from glmbrian.learning import first_to_spike_log_likelihood

    (layer,) = random_layers((2, 2), False)
    layer = Layer(layer.basis, layer.weights, layer.bias)
    value, (gradient,) = layered_log_likelihood(SPIKES, 1, [layer], [])
    expected = first_to_spike_log_likelihood(SPIKES, 1, layer.basis, layer.weights, layer.bias)
    assert value == pytest.approx(expected[0], abs=1e-14) and gradient.feedback is None
    np.testing.assert_allclose(gradient.weights, expected[1], atol=1e-14)


def test_a_basis_object_will_do():
    import glmbrian as glm

    basis = glm.RaisedCosineBasis(2, 4)
    layer = Layer(basis, np.zeros((1, 1, 2)), [0.0])
    np.testing.assert_array_equal(layer.basis, basis.matrix)


LAYERS = random_layers((2, 3, 2), False)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(spikes=SPIKES * 2), "spikes must hold only 0 and 1"),
        (dict(spikes=np.zeros((0, 2))), "spikes must have at least one step"),
        (dict(spikes=SPIKES[:, :1]), r"layers\[0\] must have weights for 1 inputs"),
        (dict(layers=[LAYERS[0], LAYERS[0]]), r"layers\[1\] must have weights for 3 inputs"),
        (dict(layers=[]), "layers must be a list of at least one"),
        (dict(label=2), "label must be an integer from 0 to 1"),
        (dict(draws=[]), r"draws must hold one array per hidden layer \(1\), got 0"),
        (dict(draws=[np.zeros((T, 2))]), r"draws\[0\] must have the shape \(3, 3\)"),
        (dict(credit="flop"), "credit must be one of"),
        (dict(rule="rat"), "rule must be"),
        (dict(baseline=np.inf), "baseline must be"),
        (dict(layers=LAYERS[0]), "layers must be a list"),
        (dict(draws=None), "draws must be a list of one array per hidden layer"),
        (dict(draws=np.array(0.5)), "draws must be a list of one array per hidden layer"),
        (dict(draws=[np.full((T, 3), 2.0)]), "draws must be from 0 to 1"),
        (dict(target_period=0), "target_period must be"),
        (dict(target_start=0), "target_start must be"),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)
def test_bad_arguments(change, message):
    good = dict(spikes=SPIKES, label=0, layers=LAYERS, draws=[np.zeros((T, 3))])
    with pytest.raises((TypeError, ValueError), match=message):
        layered_gradient(**{**good, **change})


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(basis=np.zeros((0, 1))), "basis must have at least one lag"),
        (dict(weights=np.zeros((1, 2, 1))), "weights must have the shape"),
        (dict(weights=np.zeros((0, 1, 1))), "weights must have at least one input"),
        (dict(bias=[np.nan]), "bias must be finite"),
        (dict(feedback=[[1.0]]), "feedback_basis and feedback must be given together"),
        (dict(feedback_basis=[[1.0]], feedback=[[1.0, 2.0]]), "feedback must have the shape"),
        (dict(activation="relu"), "activation must be"),
    ],
    ids=lambda value: ", ".join(value) if isinstance(value, dict) else "",
)
def test_bad_layers(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Layer(**{**dict(basis=[[1.0]], weights=np.zeros((1, 1, 1)), bias=[0.0]), **change})


def test_credit_is_found_by_its_name():
    assert [get_credit(name) for name in CREDITS] == list(CREDITS.values())
    assert get_credit(CREDITS["flip"]) is CREDITS["flip"]


def test_a_layer_that_is_changed_in_place():
    feedback = np.zeros((1, 1))
    layer = Layer([[1.0]], np.zeros((1, 1, 1)), [0.0], [[1.0]], feedback)
    feedback -= 50  # somebody else's
    inputs, draws = np.zeros((4, 1), dtype=int), np.full((4, 1), 0.3)
    assert layer.simulate(inputs, draws).ravel().tolist() == [1, 1, 1, 1]
    layer.feedback -= 50
    assert layer.simulate(inputs, draws).ravel().tolist() == [1, 0, 1, 0]
