"""Defaults of presentations that are longer than an image, and the start of desired spikes."""

import json
import math

import numpy as np
import pytest

import glmbrian as glm
from glmbrian.classifier.start import make_start
from glmbrian.support.storage import save_npz

X = np.random.default_rng(0).random((12, 4))
Y = np.arange(12) % 2


def small(**changed):
    settings = dict(n_basis=2, n_steps=40, n_epochs=2, device="runtime", random_state=1, verbose=False)
    return glm.GLMClassifier(**{**settings, **changed})


def make_basis(classifier):
    return classifier.settings.architecture.make_basis()


def start_of(classifier):
    settings = classifier.settings
    network = settings.architecture.network(4, 2, make_basis(classifier))
    return make_start(settings.training, network, key=1)


@pytest.mark.parametrize("n_steps, n_basis", [(33, 1), (40, 8), (100, 8), (300, 5)])
def test_the_default_basis_spans_long_presentations(n_steps, n_basis):
    matrix = make_basis(glm.GLMClassifier(n_steps=n_steps, n_basis=n_basis)).matrix
    assert matrix.shape == (n_steps, n_basis) and matrix[-1, -1] > 0
    np.testing.assert_allclose((matrix**2).sum(axis=0), 1, rtol=1e-12)
    windowed = make_basis(glm.GLMClassifier(n_basis=n_basis, window=n_steps)).matrix
    np.testing.assert_array_equal(windowed, matrix)


@pytest.mark.parametrize("n_steps, n_basis", [(1, 1), (8, 8), (32, 8), (32, 32)])
def test_short_presentations_keep_their_basis_and_start(n_steps, n_basis):
    classifier = glm.GLMClassifier(n_steps=n_steps, n_basis=n_basis)
    explicit = glm.RaisedCosineBasis(n_basis, n_steps, a=7500.0, c=1.0).matrix
    np.testing.assert_array_equal(make_basis(classifier).matrix, explicit)
    assert start_of(classifier).bias.tolist() == [-5.0, -5.0]


def test_long_presentations_start_as_silent_as_short_ones():
    short, long = (start_of(glm.GLMClassifier(n_steps=n)).bias[0] for n in (8, 400))
    spikes = [n / (1 + math.exp(-bias)) for n, bias in ((8, short), (400, long))]
    assert spikes[1] == pytest.approx(spikes[0], rel=0.01)
    assert start_of(glm.GLMClassifier(n_steps=400, bias_init=-3)).bias.tolist() == [-3.0, -3.0]


def changed_file(classifier, path, **parameters):
    """Save a classifier, and change parameters in the file: `...` removes one."""
    classifier.save(path)
    with np.load(path) as file:
        content = dict(file)
    config = json.loads(str(content["config"]))
    for name, value in parameters.items():
        config["parameters"][name] = value
        if value is ...:
            del config["parameters"][name]
    del content["checksum"]
    save_npz(path, {**content, "config": np.array(json.dumps(config))})


def test_models_keep_the_default_basis_that_they_were_trained_with(tmp_path):
    former = glm.RaisedCosineBasis(2, 40, a=7500.0, c=1.0)  # of version 0.1: its last 37 lags are 0
    trained = small(basis=former, bias_init=-5.0).fit(X, Y)
    changed_file(trained, tmp_path / "model.npz", basis=None)
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.basis_.matrix, former.matrix)
    np.testing.assert_array_equal(loaded.predict(X), trained.predict(X))
    again = loaded.fit(X, Y)
    np.testing.assert_array_equal(again.weights_, trained.weights_)
    # Today's default is not written out.
    small().fit(X, Y).save(tmp_path / "today.npz")
    assert glm.GLMClassifier.load(tmp_path / "today.npz").basis is None


def test_target_start_is_saved_and_older_files_lack_it(tmp_path):
    late, usual = (
        small(decoding="rate", n_steps=6, target_start=start).fit(X, Y) for start in (6, None)
    )
    assert late.objective == glm.core.objectives.Rate(4, 6)
    assert not np.array_equal(late.weights_, usual.weights_)
    late.save(tmp_path / "model.npz")
    assert glm.GLMClassifier.load(tmp_path / "model.npz").target_start == 6
    changed_file(usual, tmp_path / "older.npz", target_start=...)
    older = glm.GLMClassifier.load(tmp_path / "older.npz")
    assert older.target_start is None
    np.testing.assert_array_equal(older.fit(X, Y).weights_, usual.weights_)
