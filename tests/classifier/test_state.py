"""What a classifier has learned, as plain data."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import glmbrian as glm

X = np.repeat([[1.0, 0.0, 0.3], [0.0, 1.0, 0.6]], 10, axis=0)
Y = np.repeat(["a", "b"], 10)


def fitted(**changes):
    settings = dict(n_steps=4, n_basis=2, n_epochs=2, device="runtime", random_state=1, verbose=False)
    return glm.GLMClassifier(**{**settings, "hidden": (3,), **changes}).fit(X, Y)


def test_a_state_holds_all_that_decides():
    classifier = fitted(scale_inputs=True, optimizer="adam")
    other = glm.GLMClassifier(**classifier.get_params())
    other.restore(classifier.state)
    np.testing.assert_array_equal(other.predict(X), classifier.predict(X))
    np.testing.assert_array_equal(
        other.partial_fit(X, Y).weights_, classifier.partial_fit(X, Y).weights_
    )


def test_states_and_settings_cannot_be_changed():
    classifier = fitted()
    for plain in (classifier.state, classifier.settings, classifier.settings.training):
        with pytest.raises(FrozenInstanceError):
            plain.classes = plain.device = plain.tol = None


def test_there_is_none_before_training():
    with pytest.raises(NotFittedError):
        _ = glm.GLMClassifier().state


def test_training_leaves_the_state_that_it_started_from_as_it_was():
    classifier = fitted(optimizer="momentum")
    before = classifier.state
    kept = pickle.loads(pickle.dumps(before))
    classifier.partial_fit(X, Y)
    for array, same in zip(before.parameters.arrays_of_all, kept.parameters.arrays_of_all):
        np.testing.assert_array_equal(array, same)
    np.testing.assert_array_equal(before.optimizer_state.to_vector(), kept.optimizer_state.to_vector())


def test_former_names():
    classifier = fitted()
    other = glm.GLMClassifier(**classifier.get_params())
    with pytest.warns(DeprecationWarning, match="restore"):
        other.adopt(classifier.state)
    np.testing.assert_array_equal(other.weights_, classifier.weights_)
    with pytest.warns(DeprecationWarning, match="glmbrian.classifier.learned is now"):
        from glmbrian.classifier.learned import HiddenLayer, Learned
    assert Learned is type(classifier.state) and HiddenLayer is type(classifier.hidden_layers_[0])
    pickled = pickle.dumps(classifier, protocol=0)  # names are text there
    old = pickled.replace(b"glmbrian.classifier.fitted_state", b"glmbrian.classifier.learned")
    assert old != pickled
    np.testing.assert_array_equal(pickle.loads(old).predict(X), classifier.predict(X))
