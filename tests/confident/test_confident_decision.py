"""Decisions with a bounded error: thresholds, scores, and the rule as a whole."""

import numpy as np
import pytest
from scipy.stats import beta
from sklearn.exceptions import NotFittedError

import glmbrian as glm
from glmbrian.confident.scores import step_scores
from glmbrian.confident.thresholds import THRESHOLDS, checked_thresholds

DIGITS = glm.datasets.load_mnist((5, 7), 100, 300)
SETTINGS = dict(n_steps=6, n_basis=3, n_epochs=4, device="runtime", random_state=2, verbose=False)


@pytest.fixture(scope="module")
def classifier():
    return glm.GLMClassifier(**SETTINGS).fit(DIGITS.X_train, DIGITS.y_train)


def synthetic(random, n):
    """Log-odds that grow over the steps, and say how probable the best class is, but too surely."""
    log_odds = np.cumsum(random.exponential(0.8, (n, 6)), axis=1)
    right = random.random((n, 6)) < 1 / (1 + np.exp(-0.7 * log_odds))
    return log_odds, right


def test_error_is_held_with_the_confidence():
    random = np.random.default_rng(0)
    whole = synthetic(random, 50_000)
    n_above, n_decides = 0, 0
    for _ in range(100):
        tested = checked_thresholds(*synthetic(random, 600), error=0.1, confidence=0.8)
        accepted = [one.threshold for one in tested if one.accepted]
        if accepted:
            n_decides += 1
            (of_all,) = checked_thresholds(*whole, 0.1, 0.8, [min(accepted)])
            n_above += of_all.n_wrong / of_all.n_decided > 0.1
    assert n_decides > 75
    assert n_above <= 0.2 * 100 + 3 * np.sqrt(100 * 0.2 * 0.8)


def test_levels_add_up_and_are_passed_on():
    log_odds, right = np.full((1000, 1), 7.2), np.ones((1000, 1), bool)
    tested = checked_thresholds(log_odds, right, 0.05, 0.9)
    share = 0.1 / len(THRESHOLDS)
    assert [one.accepted for one in tested] == [threshold <= 7.2 for threshold in THRESHOLDS]
    accepted = [one.level for one in tested if one.accepted]
    np.testing.assert_allclose(accepted, share * np.arange(1, len(accepted) + 1))
    assert all(one.level == pytest.approx(share) for one in tested if not one.accepted)


def test_accepting_is_the_clopper_pearson_bound():
    for n_wrong in range(6):
        right = np.arange(500)[:, np.newaxis] >= n_wrong
        (tested,) = checked_thresholds(np.ones((500, 1)), right, 0.02, 0.95, [0.5])
        assert tested.accepted == (beta.ppf(0.95, n_wrong + 1, 500 - n_wrong) <= 0.02)


def test_scores_are_those_of_predict_proba_at_each_deadline(classifier):
    scores = step_scores(classifier, DIGITS.X_test[:20], 3)
    classifier.set_params(on_silence="reject")
    for step in range(6):
        p = classifier.predict_proba(DIGITS.X_test[:20], deadline=step + 1, first_presentation=3)
        share = p.max(axis=1) / p.sum(axis=1)
        np.testing.assert_allclose(1 / (1 + np.exp(-scores.log_odds[:, step])), share, rtol=1e-9)
        np.testing.assert_array_equal(scores.best[:, step], p.argmax(axis=1))
    classifier.set_params(on_silence="potential")
    counted = [trace.inputs.sum() for trace in classifier.record(DIGITS.X_test[:20], 3)]
    ends = [len(trace.inputs) for trace in classifier.record(DIGITS.X_test[:20], 3)]
    assert [scores.input_spikes[n, end - 1] for n, end in enumerate(ends)] == counted


def test_scores_see_only_inputs_before_the_step(classifier):
    trains = (np.random.default_rng(0).random((5, 6, 784)) < 0.1).astype(np.uint8)
    later = trains.copy()
    later[:, 3:] = 0
    one, other = (step_scores(classifier, part) for part in (trains, later))
    np.testing.assert_allclose(one.log_odds[:, :4], other.log_odds[:, :4], rtol=1e-12)
    assert np.any(one.log_odds[:, 4:] != other.log_odds[:, 4:])


@pytest.mark.parametrize("parameters", [dict(), dict(decoding="rate"), dict(hidden=(10,))])
def test_decides_early_and_holds_the_error(parameters):
    classifier = glm.GLMClassifier(**SETTINGS, **parameters).fit(DIGITS.X_train, DIGITS.y_train)
    order = np.random.default_rng(1).permutation(600)
    X, y = DIGITS.X_test[order], DIGITS.y_test[order]
    confident = glm.ConfidentDecision(classifier, error=0.1).calibrate(X[:300], y[:300])
    measured = confident.evaluate(X[300:], y[300:], first_presentation=300)
    assert measured["error"] <= 0.1 and measured["coverage"] > 0.2
    labels, steps = confident.predict(X[300:], first_presentation=300)
    assert np.mean(steps > 0) == measured["coverage"]
    np.testing.assert_array_equal(labels == -1, steps == 0)
    until = np.where(steps > 0, steps, 6)
    assert measured["mean_decision_step"] == until.mean() and 1 < until.mean() < 6
    assert np.mean((labels != y[300:])[steps > 0]) == measured["error"]
    assert measured["own_decisions"]["accuracy"] > 0.6


def test_abstains_from_all_without_enough_data(classifier):
    confident = glm.ConfidentDecision(classifier, error=0.001)
    confident.calibrate(DIGITS.X_test, DIGITS.y_test)
    assert confident.threshold_ > 1
    labels, steps = confident.predict(DIGITS.X_test[:3])
    assert labels.tolist() == [-1] * 3 and steps.tolist() == [0] * 3
    measured = confident.evaluate(DIGITS.X_test[:3], DIGITS.y_test[:3])
    assert (measured["error"], measured["coverage"], measured["mean_decision_step"]) == (0, 0, 6)


def test_abstentions_of_labels_that_are_strings():
    y = np.array(["five", "seven"])[(DIGITS.y_train == 7).astype(int)]
    classifier = glm.GLMClassifier(**SETTINGS).fit(DIGITS.X_train, y)
    confident = glm.ConfidentDecision(classifier, error=0.001).calibrate(DIGITS.X_train, y)
    labels, _ = confident.predict(DIGITS.X_test[:2])
    assert labels.tolist() == [None, None]


def test_nothing_of_the_classifier_changes(classifier):
    classifier.score(DIGITS.X_test[:10], DIGITS.y_test[:10])
    before = dict(vars(classifier))
    confident = glm.ConfidentDecision(classifier, error=0.2).calibrate(DIGITS.X_test, DIGITS.y_test)
    confident.evaluate(DIGITS.X_test[:5], DIGITS.y_test[:5])
    assert vars(classifier) == before


def test_bad_arguments(classifier):
    for arguments, error, match in (
        (dict(clf="model"), TypeError, "clf must be a fitted GLMClassifier"),
        (dict(clf=classifier, error=0), ValueError, "error must be a finite number above 0"),
        (dict(clf=classifier, error=1), ValueError, "error must be .* above 0 and below 1, got 1"),
        (dict(clf=classifier, confidence=1.2), ValueError, "confidence"),
    ):
        with pytest.raises(error, match=match):
            glm.ConfidentDecision(**arguments)
    with pytest.raises(NotFittedError, match="call calibrate"):
        glm.ConfidentDecision(classifier).predict(DIGITS.X_test)
    with pytest.raises(NotFittedError):
        glm.ConfidentDecision(glm.GLMClassifier()).calibrate(DIGITS.X_test, DIGITS.y_test)
