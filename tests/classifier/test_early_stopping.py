"""Training that stops early, by the accuracy on presentations that are held out."""

import numpy as np
import pytest
from brian2 import prefs

import glmbrian as glm

RANDOM = np.random.default_rng(0)
Y = np.tile([0, 1, 2], 20)
X = np.where(np.eye(3)[Y].repeat(4, axis=1) == 1, 200, 60).astype(np.uint8)
X = np.clip(X + RANDOM.integers(-40, 40, X.shape), 0, 255).astype(np.uint8)


def small(**changes):
    prefs.codegen.target = "numpy"
    settings = dict(
        n_steps=4, n_basis=2, n_epochs=12, learning_rate=0.3, device="runtime", random_state=1,
        verbose=False, early_stopping=True, validation_fraction=0.2, n_iter_no_change=2,
    )  # fmt: skip
    return glm.GLMClassifier(**{**settings, **changes})


def test_keeps_the_best_epoch():
    classifier = small().fit(X, Y)
    scores = classifier.validation_scores_
    best = int(np.argmax(scores))
    n_epochs = len(scores)
    assert 3 < n_epochs < 12 and len(classifier.history_) == n_epochs
    assert np.all(scores[best + 1 :] < scores[best] + classifier.tol)
    assert n_epochs == best + 1 + 3  # more than `n_iter_no_change` epochs without a better one
    assert classifier.n_presentations_ == 48 * n_epochs
    # As many epochs as the best one had, without stopping, give its parameters.
    same = small(n_epochs=best + 1, n_iter_no_change=100).fit(X, Y)
    assert np.argmax(same.validation_scores_) == best
    np.testing.assert_array_equal(same.weights_, classifier.weights_)
    np.testing.assert_array_equal(same.validation_scores_, scores[: best + 1])


def test_held_out_presentations_are_not_learned():
    images, labels, seen = X[:6], Y[:6], []
    half = dict(n_epochs=1, validation_fraction=0.5)
    one = small(**half).fit(images, labels)
    for row in range(6):
        changed = images.copy()
        changed[row] = 255 - changed[row]
        weights = small(**half).fit(changed, labels).weights_
        seen.append(not np.array_equal(weights, one.weights_))
    assert np.bincount(labels[~np.array(seen)]).tolist() == [1, 1, 1]


@pytest.mark.compiled
def test_devices_agree():
    settings = dict(hidden=(5,), learning_rate_schedule="linear", class_weight={0: 2.0}, n_epochs=4)
    runtime = small(**settings).fit(X, Y)
    compiled = small(device="cpp_standalone", **settings).fit(X, Y)
    np.testing.assert_array_equal(runtime.validation_scores_, compiled.validation_scores_)
    np.testing.assert_allclose(runtime.weights_, compiled.weights_, rtol=0, atol=1e-9)
    np.testing.assert_allclose(runtime.history_, compiled.history_, rtol=0, atol=1e-9)


def test_file_and_picture(tmp_path):
    classifier = small().fit(X, Y)
    classifier.save(tmp_path / "model.npz")
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.validation_scores_, classifier.validation_scores_)
    ax = glm.plotting.plot_learning_curve(loaded)
    (right,) = (other for other in ax.figure.axes if other is not ax)
    np.testing.assert_array_equal(right.lines[0].get_ydata(), classifier.validation_scores_)
    loaded.set_params(early_stopping=False).partial_fit(X, Y)
    assert not hasattr(loaded, "validation_scores_")


@pytest.mark.parametrize(
    "changes, error, message",
    [
        (dict(early_stopping="yes"), ValueError, "early_stopping"),
        (dict(early_stopping=np.array([])), (TypeError, ValueError), "early_stopping"),
        (dict(validation_fraction=1.0), ValueError, "validation_fraction must be .* below 1, got 1"),
        (dict(validation_fraction=0), ValueError, "validation_fraction"),
        (
            dict(validation_fraction=0.01),
            ValueError,
            "too few presentations of each class .* early_stopping",
        ),
        (dict(n_iter_no_change=0), ValueError, "n_iter_no_change"),
        (dict(tol=-1), ValueError, "tol"),
        (dict(average=0.5), ValueError, "average must be 'auto' or 0 with early_stopping"),
    ],
)
def test_errors(changes, error, message):
    with pytest.raises(error, match=message):
        small(**changes).fit(X, Y)


def test_all_weight_is_on_what_is_held_out_or_on_the_rest():
    one = small(n_epochs=1, validation_fraction=0.5)
    for row in range(6):
        with pytest.raises(ValueError, match="sample_weight .* early_stopping=True holds out"):
            one.fit(X[:6], Y[:6], np.arange(6) == row)


def test_what_is_held_out_is_weighted():
    settings = dict(n_epochs=1, learning_rate=1e-12, validation_fraction=0.5)
    whole = small(**settings).fit(X[:18], Y[:18]).validation_scores_[0]
    assert 0 < whole < 1
    scores = []
    for row in range(18):
        weights = np.where(np.arange(18) == row, 1e9, 1.0)
        scores += small(**settings).fit(X[:18], Y[:18], weights).validation_scores_.tolist()
    # With nearly all weight on one that is held out, the score says whether it is decided rightly.
    alone = np.round(scores, 7)[np.isin(np.round(scores, 7), [0, 1])]
    assert len(alone) == 9 and alone.mean() == pytest.approx(whole)


def test_what_cannot_stop_early(tmp_path):
    for call in (
        lambda one: one.partial_fit(X, Y, classes=[0, 1, 2]),
        lambda one: one.set_params(device="cpp_standalone").export(X, Y, tmp_path / "project"),
        lambda one: glm.fit_ensemble([one], X, Y),
    ):
        with pytest.raises(ValueError, match="early_stopping must be False for"):
            call(small())
    assert not (tmp_path / "project").exists()
