"""Text of the user's is drawn as it is: dollars begin no formula, and underscores hide nothing."""

import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.cbook import is_math_text
from matplotlib.text import Text

import glmbrian as glm
from glmbrian import plotting
from glmbrian.devices.problem import Trace

NAMES = ["$_$", "_U$"]  # the first would be a formula with an error
TRACE = Trace(np.ones((3, 4), int), np.eye(3, 2, dtype=int), np.ones((3, 2)), NAMES[1])


@pytest.fixture(scope="module")
def fitted():
    y = np.tile(NAMES, 4)
    X = np.where(y[:, np.newaxis] == NAMES[0], [0.9, 0.9, 0.1, 0.1], [0.1, 0.1, 0.9, 0.9])
    settings = dict(n_steps=3, n_basis=2, n_epochs=2, device="runtime", random_state=0, verbose=False)
    classifier = glm.GLMClassifier(**settings).fit(X, y)
    classifier.evaluate(X, y)
    return classifier, X, y


def curves(fitted, labels):
    ax = None
    for label in labels:
        ax = plotting.plot_learning_curve(fitted[0], ax, label=label)


#: What draws text of the user's, and which of it.
DRAWINGS = {
    "curves": (lambda fitted: curves(fitted, NAMES), NAMES),
    "raster": (lambda _: plotting.plot_raster(TRACE, NAMES, NAMES[0]), NAMES),
    "rasters": (lambda _: plotting.plot_raster([TRACE, TRACE], NAMES, NAMES), NAMES),
    "deadlines": (lambda fitted: plotting.plot_accuracy_by_deadline(fitted[0], label="_$_$"), ["_$_$"]),
    "weight map": (lambda fitted: plotting.plot_weight_map(fitted[0], NAMES[0]), NAMES[:1]),
    "weight matrix": (lambda fitted: plotting.plot_weight_map(fitted[0], shape=(4,)), NAMES),
    "feedback": (lambda fitted: plotting.plot_feedback_kernels(fitted[0]), NAMES),
    "kernels": (lambda fitted: plotting.plot_kernels(fitted[0], NAMES[1], (4,)), NAMES[1:]),
    "reliability": (
        lambda _: plotting.plot_reliability([0.9, 0.6], [True, False], label="$_$"),
        ["$_$"],
    ),
    "budgets": (
        lambda _: plotting.plot_accuracy_by_budget(dict.fromkeys(NAMES, {0: 1.0, 5: 0.5})),
        NAMES,
    ),
    "report": (lambda fitted: plotting.training_report(*fitted, io.BytesIO()), NAMES),
}


@pytest.mark.parametrize("name", DRAWINGS)
def test_text_is_drawn_as_it_is(name, fitted):
    draw, expected = DRAWINGS[name]
    plt.close("all")
    drawn = draw(fitted)
    figure = drawn if name == "report" else plt.gcf()
    figure.savefig(io.BytesIO())  # an error if a formula has one
    texts = [text.get_text() for text in figure.findobj(Text) if text.get_visible()]
    assert not any(is_math_text(text) for text in texts if text != "membrane potential $u$")
    shown = [text.replace(r"\$", "$") for text in texts]
    for wanted in expected:
        assert any(wanted in text for text in shown)
    plt.close("all")


def test_legends_show_names_that_begin_with_an_underscore(fitted):
    for draw in (
        lambda: plotting.plot_accuracy_by_budget(dict.fromkeys(["_a", "b"], {0: 1.0})),
        lambda: curves(fitted, ["_a", "b"]),
        lambda: plotting.plot_reliability([0.9, 0.6], [True, False], label="_a"),
    ):
        plt.close("all")
        draw()
        texts = [text.get_text() for text in plt.gca().get_legend().get_texts()]
        assert texts[0] == "_a" and texts[1:] in ([], ["b"])
        plt.close("all")
