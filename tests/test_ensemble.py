"""Replicas trained at once end where separate runs do."""

import numpy as np
import pytest
from brian2 import prefs
from sklearn.base import clone

import glmbrian as glm

DIGITS = glm.datasets.load_mnist((5, 7), 20, 0)
X, Y = DIGITS.X_train, DIGITS.y_train
DEVICES = ["runtime", pytest.param("cpp_standalone", marks=pytest.mark.compiled)]


@pytest.fixture(autouse=True)
def numpy_target():
    prefs.codegen.target = "numpy"


@pytest.mark.parametrize("batch_size", [1, 7])
@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
@pytest.mark.parametrize("device", DEVICES)
def test_each_replica_is_its_own_run(device, decoding, batch_size):
    one = glm.GLMClassifier(
        decoding, n_steps=4, n_basis=3, n_epochs=2, batch_size=batch_size, device=device, random_state=5
    )
    members = [
        clone(one).set_params(learning_rate=rate, start_state=state, weight_scale=0.01)
        for rate, state in ((1e-2, None), (5e-2, None), (1e-2, 3), (2e-2, 4))
    ]
    # the last two learn from different folds
    weights = np.ones((4, len(Y)))
    weights[2, ::3] = 0
    weights[3, 1::3] = 0
    together = glm.fit_ensemble([clone(member) for member in members], X, Y, weights)
    for member, replica, weight in zip(members, together, weights):
        member.fit(X, Y, sample_weight=weight)
        for name in ("weights_", "feedback_", "bias_", "history_"):
            np.testing.assert_allclose(
                getattr(replica, name), getattr(member, name), rtol=0, atol=1e-9, err_msg=name
            )
        np.testing.assert_array_equal(replica.predict(X), member.predict(X))
    assert np.abs(together[0].weights_ - together[2].weights_).max() > 1e-3


def test_weight_zero_leaves_a_presentation_out():
    odd = np.arange(len(Y)) % 4 < 2
    one = glm.GLMClassifier(n_steps=3, n_basis=2, n_epochs=1, device="runtime", random_state=0)
    with_nonsense = np.where(odd[:, np.newaxis], X, 255 - X)
    first = clone(one).fit(X, Y, sample_weight=odd)
    second = clone(one).fit(with_nonsense, Y, sample_weight=odd)
    np.testing.assert_array_equal(first.weights_, second.weights_)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(n_steps=3), "n_steps=3"),
        (dict(random_state=2), "random_state=2"),
        (dict(decoding="rate"), "decoding='rate'"),
    ],
)
def test_members_must_share(change, message):
    one = glm.GLMClassifier(device="runtime", random_state=1)
    with pytest.raises(ValueError, match=f"classifiers may differ only in .*{message}"):
        glm.fit_ensemble([one, clone(one).set_params(**change)], X, Y)


def test_bad_arguments():
    one = glm.GLMClassifier(device="runtime", random_state=1)
    with pytest.raises(TypeError, match="classifiers must be a list"):
        glm.fit_ensemble([], X, Y)
    with pytest.raises(ValueError, match="given twice"):
        glm.fit_ensemble([one, one], X, Y)
    with pytest.raises(ValueError, match=r"sample_weight must have the shape \(1, 40\)"):
        glm.fit_ensemble([one], X, Y, np.ones(40))
    with pytest.raises(ValueError, match="sample_weight must be at least 0"):
        one.fit(X, Y, -np.ones(40))
    with pytest.raises(ValueError, match="sample_weight must be above 0 for at least one"):
        one.fit(X, Y, np.zeros(40))
