"""Pictures of reliability, attacks and coverage."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import glmbrian as glm
from glmbrian import plotting


@pytest.fixture(autouse=True)
def closed(restore_brian):
    plt.close("all")
    yield
    plt.close("all")


def test_reliability():
    ax = plotting.plot_reliability([0.15, 0.9, 0.95, 1.0], [1, 1, 0, 1], n_bins=10, label="test")
    curve = ax.lines[-1]
    np.testing.assert_allclose(curve.get_xdata(), [0.15, 0.95])
    np.testing.assert_allclose(curve.get_ydata(), [1.0, 2 / 3])
    heights = [bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(heights, np.eye(10)[1] * 0.2 / 3 + np.eye(10)[9] * 0.2)
    assert ax.get_legend().get_texts()[0].get_text() == "test"


@pytest.mark.parametrize("probabilities, right", [([], []), ([1.2], [1]), ([0.5, 0.6], [1])])
def test_reliability_checks_its_arguments(probabilities, right):
    with pytest.raises(ValueError, match="probabilities|right"):
        plotting.plot_reliability(probabilities, right)


def test_accuracy_by_budget():
    ax = plotting.plot_accuracy_by_budget({"attack": {5: 0.5, 0: 0.9}, "random": {0: 0.9}})
    assert ax.lines[0].get_xdata().tolist() == [0, 5]
    assert ax.lines[0].get_ydata().tolist() == [0.9, 0.5]
    with pytest.raises(TypeError, match="accuracies must be a mapping"):
        plotting.plot_accuracy_by_budget({"attack": [0.9]})


def test_coverage():
    X = np.repeat([[1.0, 0.0], [0.0, 1.0]] * 100, 20, axis=1)
    y = [0, 1] * 100
    classifier = glm.GLMClassifier(n_steps=4, n_basis=2, n_epochs=1, learning_rate=0.1,
                                   device="runtime", random_state=1, verbose=False)  # fmt: skip
    confident = glm.ConfidentDecision(classifier.fit(X, y), error=0.05)
    with pytest.raises(ValueError, match="must be calibrated"):
        plotting.plot_coverage(confident, X, y)
    ax = plotting.plot_coverage(confident.calibrate(X, y), X, y, first_presentation=200)
    curve, in_use, bound = ax.lines
    assert bound.get_xdata() == [0.05, 0.05]
    measured = confident.evaluate(X, y, first_presentation=200)
    assert in_use.get_xdata().tolist() == [measured["error"]]
    assert in_use.get_ydata().tolist() == [measured["coverage"]]
    assert np.all(np.diff(curve.get_ydata()) >= 0)
    with pytest.raises(TypeError, match="confident must be a ConfidentDecision"):
        plotting.plot_coverage(classifier, X, y)
