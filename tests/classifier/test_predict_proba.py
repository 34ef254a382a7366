"""`predict_proba` and `decision_function`: against simulated decisions, and in scikit-learn."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV

import glmbrian as glm
from glmbrian.core.objectives import FirstToSpike

DIGITS = glm.datasets.load_mnist((5, 7, 9), 20, 20)
METHODS = ["sigmoid", "isotonic"]
#: Repetitions of a presentation on a device.
N_REPEATED = {"runtime": 250, "cpp_standalone": 100_000}


def fitted(images=DIGITS, **parameters):
    settings = dict(n_steps=4, n_basis=2, n_epochs=2, bias_init=-2.0, weight_scale=0.1,
                    device="runtime", random_state=3, verbose=False)  # fmt: skip
    return glm.GLMClassifier(**{**settings, **parameters}).fit(images.X_train, images.y_train)


NETWORKS = {
    "first": dict(),
    "rate": dict(decoding="rate"),
    "long rate": dict(decoding="rate", n_steps=11),
    "hidden": dict(hidden=(5,)),
    "hidden rate": dict(hidden=(5,), decoding="rate"),
    "hidden feedback": dict(hidden=(4, 3), hidden_feedback=glm.IndicatorBasis(2)),
}


def assert_frequencies(classifier, device, n_hidden, n_simulated=256):
    """Compare with the frequencies of decisions for two fixed input trains, within 4 errors."""
    n = N_REPEATED[device]
    draws = np.random.default_rng(5).random((2, classifier.n_steps, 784))
    classifier.set_params(device=device)
    for train in (draws < DIGITS.X_test[[0, 1], np.newaxis] / 510).astype(np.uint8):
        decided = classifier.predict(np.repeat(train[np.newaxis], n, axis=0), 10**6)
        counted = (decided[:, np.newaxis] == classifier.classes_).mean(axis=0)
        # Each presentation number has its own hidden spikes: a second estimate gives the error.
        estimates = classifier.predict_proba(
            np.repeat(train[np.newaxis], 20, axis=0), n_hidden=n_hidden, n_simulated=n_simulated
        )
        expected = estimates.mean(axis=0)
        variance = expected * (1 - expected) / n + estimates.var(axis=0, ddof=1) / 20
        assert np.all(np.abs(counted - expected) < 4 * np.sqrt(variance) + 1e-12), (counted, expected)


@pytest.mark.parametrize("name", NETWORKS)
def test_frequencies(name):
    assert_frequencies(fitted(**NETWORKS[name]), "runtime", n_hidden=50)


@pytest.mark.exhaustive
@pytest.mark.compiled
@pytest.mark.parametrize("on_tie", ["potential", "random"])
@pytest.mark.parametrize("on_silence", ["potential", "random", "reject"])
@pytest.mark.parametrize("name", NETWORKS)
def test_frequencies_of_many(name, on_tie, on_silence, users_compiler):
    classifier = fitted(**NETWORKS[name], on_tie=on_tie, on_silence=on_silence)
    assert_frequencies(classifier, "cpp_standalone", n_hidden=5000, n_simulated=2000)


def test_input_and_hidden_spikes_are_those_of_predict():
    classifier = fitted(hidden=(5,), bias_init=-40.0)  # the outputs never spike
    decided = classifier.predict(DIGITS.X_test, first_presentation=7)
    probabilities = classifier.predict_proba(DIGITS.X_test, n_hidden=1, first_presentation=7)
    assert np.unique(decided).size > 1
    np.testing.assert_array_equal(classifier.classes_[probabilities.argmax(axis=1)], decided)
    np.testing.assert_allclose(probabilities.max(axis=1), 1.0, atol=1e-9)


def test_rows_sum_to_one_or_leave_out_silence():
    shares = fitted().predict_proba(DIGITS.X_test)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-12)
    rejecting = fitted(on_silence="reject").predict_proba(DIGITS.X_test)
    assert np.all(rejecting.sum(axis=1) < 1) and np.all(rejecting <= shares + 1e-12)


def test_deadline_cuts_presentations():
    classifier = fitted(on_silence="reject")
    decided = [
        classifier.predict_proba(DIGITS.X_test, deadline=deadline).sum(axis=1)
        for deadline in (1, 2, 3, 4)
    ]
    assert np.all(np.diff(decided, axis=0) > 0)
    # In the first step there is only the bias.
    first = classifier.predict_proba(DIGITS.X_test, deadline=1)
    np.testing.assert_allclose(first, first[:1].repeat(len(first), axis=0), atol=1e-15)
    trains = (np.random.default_rng(0).random((3, 4, 784)) < 0.1).astype(np.uint8)
    later = trains.copy()
    later[:, 2:] = 0
    np.testing.assert_array_equal(
        classifier.predict_proba(trains, deadline=2), classifier.predict_proba(later, deadline=2)
    )


def test_averages_over_encodings():
    classifier = fitted()
    one, many = (classifier.predict_proba(DIGITS.X_test, n_encodings=n) for n in (1, 30))
    other = classifier.predict_proba(DIGITS.X_test, n_encodings=30, first_presentation=1000)
    assert np.abs(many - other).mean() < 0.5 * np.abs(one - other).mean()


def test_blocks_do_not_matter():
    classifier = fitted()
    X = np.tile(DIGITS.X_test, (30, 1))
    together = classifier.predict_proba(X)
    np.testing.assert_allclose(together[900:905], classifier.predict_proba(X[900:905],
                               first_presentation=900), rtol=0, atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("classes", [(5, 7), (5, 7, 9)])
@pytest.mark.parametrize("method", METHODS)
def test_calibrates_in_scikit_learn(classes, method):
    digits = glm.datasets.load_mnist(classes, 20, 10)
    classifier = glm.GLMClassifier(n_steps=3, n_basis=2, n_epochs=1, device="runtime",
                                   random_state=3, verbose=False)  # fmt: skip
    calibrated = CalibratedClassifierCV(classifier, method=method, cv=2)
    probabilities = calibrated.fit(digits.X_train, digits.y_train).predict_proba(digits.X_test)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    assert np.mean(calibrated.predict(digits.X_test) == digits.y_test) > 1.2 / len(classes)


def test_decision_function_is_the_log_odds():
    digits = glm.datasets.load_mnist((5, 7), 20, 10)
    classifier = fitted(digits)
    probabilities = classifier.predict_proba(digits.X_test)
    odds = classifier.decision_function(digits.X_test)
    np.testing.assert_allclose(odds, np.log(probabilities[:, 1] / probabilities[:, 0]), rtol=1e-9)
    assert fitted().decision_function(DIGITS.X_test).shape == (60, 3)


def test_evaluate_measures_calibration():
    classifier = fitted()
    measured = classifier.evaluate(DIGITS.X_test, DIGITS.y_test, calibration=True)
    probabilities = classifier.predict_proba(DIGITS.X_test)
    labels = np.searchsorted(classifier.classes_, DIGITS.y_test)
    expected = -np.log(probabilities[np.arange(60), labels]).mean()
    assert measured["log_loss"] == pytest.approx(expected)
    confidence, gaps = probabilities.max(axis=1), 0.0
    right = probabilities.argmax(axis=1) == labels
    for low in np.arange(10) / 10:
        inside = (confidence >= low) & (confidence < low + 0.1)
        gaps += abs(confidence[inside].sum() - right[inside].sum())
    assert measured["expected_calibration_error"] == pytest.approx(gaps / 60)
    assert "log_loss" not in classifier.evaluate(DIGITS.X_test, DIGITS.y_test)


class Patient(FirstToSpike):
    name = "patient"
    stops_at_first_spike = False


class Own(glm.Objective):
    name = "own"

    def gradient(self, potentials, outputs, label, activation):
        return glm.learning.first_to_spike_gradient(potentials, label, activation)


@pytest.mark.parametrize("decoding", [Patient(), Own()])
def test_custom_objectives_say_what_is_missing(decoding):
    with pytest.raises(ValueError, match="define 'probabilities'|define `probabilities`"):
        fitted(decoding=decoding).predict_proba(DIGITS.X_test)


@pytest.mark.parametrize(
    "argument, value", [("deadline", 5), ("deadline", 0), ("n_encodings", 0), ("n_hidden", 0), ("n_simulated", 0)]
)  # fmt: skip
def test_bad_arguments(argument, value):
    classifier = fitted(hidden=(3,))
    with pytest.raises(ValueError, match=argument):
        classifier.predict_proba(DIGITS.X_test, **{argument: value})


def test_trains_have_one_encoding():
    with pytest.raises(ValueError, match="n_encodings must be 1"):
        fitted().predict_proba(np.zeros((1, 4, 784), dtype=int), n_encodings=2)
