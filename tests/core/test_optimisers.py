"""Optimisers: their directions are those of PyTorch, and what users may give."""

import numpy as np
import pytest

import glmbrian as glm
from glmbrian.core.optimisers import get_optimizer, optimizer_from_file, optimizer_to_save
from glmbrian.core.updates import OptimizerState, Updater, UpdateRule

GRADIENTS = np.random.default_rng(1).normal(size=(50, 6)) * [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3]


def moved(optimizer, rate):
    """Return where parameters are after each update along the `GRADIENTS`."""
    values = np.zeros(6)
    updater = Updater(UpdateRule(optimizer), OptimizerState.at_start(optimizer, 1, [values]))
    places = []
    for gradient in GRADIENTS:
        updater.update([values], [gradient.copy()], np.ones(1, dtype=int), np.array([rate]))
        places.append(values.copy())
    return np.array(places)


@pytest.mark.parametrize(
    "optimizer, name, settings",
    [
        (glm.SGD(), "SGD", {}),
        (glm.SGD(0.7), "SGD", {"momentum": 0.7}),
        (glm.Adam(), "Adam", {}),
        (glm.Adam(0.5, 0.9, 1e-3), "Adam", {"betas": (0.5, 0.9), "eps": 1e-3}),
    ],
)
def test_they_are_those_of_pytorch(optimizer, name, settings):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    parameter = torch.nn.Parameter(torch.zeros(6, dtype=torch.float64))
    theirs = getattr(torch.optim, name)([parameter], lr=0.01, maximize=True, **settings)
    places = moved(optimizer, 0.01)
    for gradient, place in zip(GRADIENTS, places):
        parameter.grad = torch.tensor(gradient)
        theirs.step()
        np.testing.assert_allclose(place, parameter.detach().numpy(), rtol=1e-12, atol=1e-12)


def test_replicas_do_not_learn_from_each_other():
    optimizer = glm.Adam()
    values, gradient = np.zeros((3, 4, 2)), np.random.default_rng(2).normal(size=(3, 4, 2))
    together = Updater(
        UpdateRule(optimizer, clip_norm=1.0), OptimizerState.at_start(optimizer, 2, [values])
    )
    for learned in ([1, 2], [0, 3], [2, 2]):
        together.update([values], [gradient], np.array(learned), np.array([0.1, 0.2]))
    for replica, (rate, learned) in enumerate([(0.1, [1, 2]), (0.2, [2, 3, 2])]):
        part = slice(2 * replica, 2 * replica + 2)
        alone = np.zeros((3, 2, 2))
        updater = Updater(
            UpdateRule(optimizer, clip_norm=1.0), OptimizerState.at_start(optimizer, 1, [alone])
        )
        for n in learned:
            updater.update([alone], [gradient[:, part]], np.array([n]), np.array([rate]))
        np.testing.assert_allclose(values[:, part], alone, rtol=1e-13)


@pytest.mark.parametrize(
    "optimizer", ["sgd", "momentum", "adam", glm.SGD(0.25), glm.Adam(0.1, 0.2, 0.3)]
)
def test_files_keep_them(optimizer):
    assert optimizer_from_file(optimizer_to_save(optimizer)) == optimizer


@pytest.mark.parametrize(
    "make, error, message",
    [
        (lambda: glm.SGD(1.0), ValueError, "momentum must be .* below 1, got 1.0"),
        (lambda: glm.Adam(beta2=-0.1), ValueError, "beta2 must be .* at least 0"),
        (lambda: glm.Adam(epsilon=0), ValueError, "epsilon must be .* above 0"),
        (
            lambda: get_optimizer("rmsprop"),
            ValueError,
            "optimizer .*'sgd', 'momentum', 'adam'.*'rmsprop'",
        ),
        (lambda: get_optimizer(glm.Adam), TypeError, "optimizer"),
    ],
)
def test_errors(make, error, message):
    with pytest.raises(error, match=message):
        make()
