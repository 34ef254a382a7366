"""Tests of pictures of decisions: when they were made, and how many were right."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glmbrian as glm
from glmbrian import plotting

BOTH = (plotting.plot_decision_times, plotting.plot_accuracy_by_deadline)


@pytest.fixture(autouse=True)
def quiet_pyplot(restore_brian):
    plt.close("all")
    yield
    plt.close("all")


def decisions(rows):
    """Return decisions of rows of (is right, step, is silent)."""
    right, step, silent = np.array(rows, dtype=int).T
    return SimpleNamespace(label=np.full(len(step), "b"), decided=np.where(right, "b", "a"),
                           step=step, silent=silent.astype(bool))  # fmt: skip


FEW = decisions([(1, 1, 0), (0, 2, 0), (1, 2, 0), (1, 2, 0), (1, 4, 1), (0, 4, 1), (0, 4, 1)])


def bars(ax, name):
    """Return (position, bottom, height) of the bars that are there."""
    (container,) = [container for container in ax.containers if container.get_label() == name]
    return [(bar.get_x() + bar.get_width() / 2, bar.get_y(), bar.get_height())
            for bar in container if bar.get_height()]  # fmt: skip


def test_decision_times():
    ax = plotting.plot_decision_times(FEW)
    *right, (silent, _, n_silent) = bars(ax, "right")
    assert right == [pytest.approx((1, 0, 1)), pytest.approx((2, 0, 2))]
    assert n_silent == 1 and silent > 5  # apart from the four steps
    assert bars(ax, "wrong") == [pytest.approx((2, 2, 1)), pytest.approx((silent, 1, 2))]
    names = dict(zip(ax.get_xticks(), (text.get_text() for text in ax.get_xticklabels())))
    assert list(names.values()) == ["1", "2", "3", "4", "no\nspike"]
    assert names[silent] == "no\nspike"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("decision time [steps]", "presentations")
    assert ax.get_ylim() == (0, pytest.approx(3 * 1.05))


def test_decision_times_without_silence():
    ax = plotting.plot_decision_times(decisions([(1, 2, 0)]), n_steps=3)
    assert ax.get_xlim() == (0.4, 3.6)
    assert "no\nspike" not in [text.get_text() for text in ax.get_xticklabels()]


def test_accuracy_by_deadline():
    ax = plotting.plot_accuracy_by_deadline(FEW, n_steps=5)
    right, decided = ax.lines
    for curve, counts in ((right, [1, 3, 3, 3, 3]), (decided, [1, 4, 4, 4, 4])):
        np.testing.assert_array_equal(curve.get_xdata(), [1, 2, 3, 4, 5])
        np.testing.assert_allclose(curve.get_ydata(), np.array(counts) / 7)
    assert right.get_linestyle() != decided.get_linestyle()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("deadline [steps]", "fraction of presentations")


def test_curves_over_each_other():
    ax = plotting.plot_accuracy_by_deadline(FEW, label="few", n_steps=20)
    for label in ("one", "other"):
        plotting.plot_accuracy_by_deadline(decisions([(1, 3, 0)]), ax, label=label)
    assert len({(curve.get_linestyle(), curve.get_marker()) for curve in ax.lines}) == 6
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == [f"{label}: {name}" for label in ("few", "one", "other")
                     for name in ("right", "decided")]  # fmt: skip
    assert ax.get_xlim() == (0.5, 20.5)


rows = st.lists(st.tuples(st.booleans(), st.integers(1, 30), st.booleans()), min_size=1, max_size=40)


@settings(max_examples=25)
@given(rows)
def test_every_presentation_is_counted_once(rows):
    ax = plotting.plot_decision_times(decisions(rows))
    for name, wanted in (("right", True), ("wrong", False)):
        count = sum(height for _, _, height in bars(ax, name))
        assert count == sum(right == wanted for right, _, _ in rows)
    plt.close(ax.figure)


@settings(max_examples=25)
@given(rows)
def test_deadline_curves_are_cumulative(rows):
    ax = plotting.plot_accuracy_by_deadline(decisions(rows))
    right, decided = (curve.get_ydata() for curve in ax.lines)
    assert np.all(np.diff(right) >= 0) and np.all(right <= decided)
    assert decided[-1] == pytest.approx(np.mean([not silent for _, _, silent in rows]))
    plt.close(ax.figure)


@pytest.mark.parametrize("draw", BOTH)
def test_classifier_that_was_evaluated(draw):
    classifier = glm.GLMClassifier(n_steps=9)
    classifier.decisions_ = FEW
    assert draw(classifier).get_xlim()[1] > 9


@pytest.mark.parametrize("draw", BOTH)
def test_decisions_are_checked(draw):
    with pytest.raises(ValueError, match="^decisions: the classifier has decided nothing yet"):
        draw(glm.GLMClassifier())
    with pytest.raises(TypeError, match="^decisions must be a GLMClassifier that was evaluated, or"):
        draw([1, 2])
    for change, error, message in (
        ({"step": [1]}, ValueError, r"must have one shape \(n,\)"),
        ({"label": 5}, ValueError, r"must have one shape \(n,\)"),
        ({"step": FEW.step * 1.0}, TypeError, "step must hold integers and silent bools"),
        ({"silent": FEW.step}, TypeError, "step must hold integers and silent bools"),
        ({"step": FEW.step - 1}, ValueError, "step must be at least 1, got 0"),
    ):
        with pytest.raises(error, match=f"^decisions: .*{message}"):
            draw(SimpleNamespace(**{**vars(FEW), **change}))
    empty = SimpleNamespace(**{name: values[:0] for name, values in vars(FEW).items()})
    with pytest.raises(ValueError, match="^decisions: .* n of at least 1"):
        draw(empty)
    with pytest.raises(ValueError, match="^n_steps must be an integer of at least 4, got 3"):
        draw(FEW, n_steps=3)
    assert plt.get_fignums() == []
