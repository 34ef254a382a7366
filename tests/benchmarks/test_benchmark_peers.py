"""The peers of the benchmark train what the package trains, and learn."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from speed.peers import PEERS, HandTuned, NumbaKernel, PlainBrian, PyTorch

import glmbrian as glm
from glmbrian.learning import first_to_spike_log_likelihood, membrane_potential

DIGITS = glm.datasets.load_mnist((5, 7), n_train=200, n_test=200)


def case(peer, label=None, **options):
    reason = peer.why_unavailable()
    return pytest.param(
        partial(peer, **options),
        id=label or peer.name,
        marks=pytest.mark.skipif(reason is not None, reason=str(reason)),
    )


def workload(images, labels, basis, n_steps, n_classes):
    rng = np.random.default_rng(0)
    shape = (images.shape[1], n_classes, basis.shape[1])
    return SimpleNamespace(
        images=images,
        labels=labels,
        basis=basis,
        n_steps=n_steps,
        n_classes=n_classes,
        learning_rate=1e-2,
        weights=rng.uniform(-0.01, 0.01, shape),
        bias=np.full(n_classes, -5.0),
    )


def digits(n_steps=4):
    basis = glm.RaisedCosineBasis(n_steps, n_steps).matrix
    return workload(DIGITS.X_train, (DIGITS.y_train == 7).astype(int), basis, n_steps, n_classes=2)


def accuracy(peer):
    """Return how often the right neuron has the highest mean potential."""
    rng = np.random.default_rng(1)
    n_steps, basis = peer.workload.n_steps, peer.workload.basis
    right = [
        membrane_potential(
            rng.random((n_steps, len(image))) < image / 510, basis, peer.weights, peer.bias
        )
        .mean(axis=0)
        .argmax()
        == (digit == 7)
        for image, digit in zip(DIGITS.X_test, DIGITS.y_test)
    ]
    return np.mean(right)


@pytest.mark.parametrize(
    "n_inputs, n_classes, n_steps, n_basis, window",
    [(20, 2, 4, 4, 4), (30, 3, 5, 2, 8), (12, 3, 9, 2, 4), (25, 10, 16, 16, 16), (5, 2, 2, 1, 1)],
)
@pytest.mark.parametrize(
    "peer",
    [case(NumbaKernel), case(PyTorch, dtype="float64"), case(PlainBrian), case(HandTuned)],
)
def test_gradient(peer, n_inputs, n_classes, n_steps, n_basis, window):
    rng = np.random.default_rng(2)
    images = rng.integers(0, 256, (2, n_inputs), dtype=np.uint8)
    basis = rng.normal(size=(window, n_basis))
    trained = peer(workload(images, np.arange(2), basis, n_steps, n_classes))
    for label in range(n_classes):
        spikes = (rng.random((n_steps, n_inputs)) < 0.3).astype(np.uint8)
        weights = rng.normal(size=(n_inputs, n_classes, n_basis))
        bias = rng.normal(size=n_classes)
        scale = 20 / np.abs(membrane_potential(spikes, basis, weights, bias)).max()
        weights, bias = scale * weights, scale * bias
        expected = first_to_spike_log_likelihood(spikes, label, basis, weights, bias)
        for value, reference in zip(trained.gradient(spikes, label, weights, bias), expected):
            np.testing.assert_allclose(value, reference, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "peer",
    [
        case(NumbaKernel),
        case(PyTorch),
        case(PyTorch, "PyTorch in batches", batch_size=32),
        case(PlainBrian),
        case(HandTuned),
        case(HandTuned, "hand-tuned C++ in single precision", real="float"),
    ],
)
def test_learns_and_repeats(peer):
    peer = peer(digits())
    n_presentations = 5 * len(DIGITS.X_train)
    assert peer.train(n_presentations, seed=1) > 0
    weights, bias = peer.weights.copy(), peer.bias.copy()
    assert accuracy(peer) > 0.9
    peer.train(n_presentations, seed=2)
    assert not np.array_equal(peer.weights, weights)
    peer.train(n_presentations, seed=1)
    np.testing.assert_array_equal(peer.weights, weights)
    np.testing.assert_array_equal(peer.bias, bias)


@pytest.mark.parametrize("peer", [case(HandTuned)])
def test_counts(peer):
    n_steps = 6  # five that count: two groups
    peer = peer(digits(n_steps))
    n_epochs = 3
    peer.train(n_epochs * len(DIGITS.X_train), seed=0)
    counts = peer.counts()
    n_lit = np.count_nonzero(DIGITS.X_train) / len(DIGITS.X_train)
    n_spikes = DIGITS.X_train.sum() / 510 / len(DIGITS.X_train) * (n_steps - 1)
    row_bytes = 2 * n_steps * 8
    assert counts["draws"] == pytest.approx(2 * n_lit)
    assert counts["spikes"] == pytest.approx(n_spikes, rel=0.01)
    assert counts["bytes_written"] == pytest.approx(n_lit * row_bytes)
    assert counts["transcendentals"] == 2 * n_steps
    assert all(count > 0 for count in counts.values())


def test_availability(monkeypatch):
    assert len({peer.name for peer in PEERS}) == len(PEERS)
    assert PlainBrian.why_unavailable() is None
    monkeypatch.setattr(PlainBrian, "requires", ("brian2", "no_such_thing"))
    assert PlainBrian.why_unavailable() == "no_such_thing not found"
