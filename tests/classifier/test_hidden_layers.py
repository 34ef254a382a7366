"""Classifiers with hidden layers."""

import pickle
import subprocess
from fractions import Fraction

import numpy as np
import pytest
from brian2 import prefs
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import glmbrian as glm
from glmbrian.classifier.training import prepare
from glmbrian.core.credit import StraightThrough
from glmbrian.devices.cpp_standalone import find_compiler

RANDOM = np.random.default_rng(0)
X = RANDOM.integers(0, 256, (12, 9)).astype(np.uint8)
Y = np.array(["left", "right", "up"])[np.arange(12) % 3]
ARRAYS = ("weights", "bias", "feedback")


def small(**changes):
    settings = dict(
        hidden=(5, 4), n_steps=5, n_basis=2, hidden_basis=glm.ExponentialBasis([1.5, 4.0], 5),
        n_epochs=3, learning_rate=0.1, device="runtime", random_state=1, verbose=False,
    )  # fmt: skip
    prefs.codegen.target = "numpy"
    return glm.GLMClassifier(**{**settings, **changes})


def learned(classifier):
    """All learned arrays, from the input on."""
    arrays = [getattr(layer, name) for layer in classifier.hidden_layers_ for name in ARRAYS]
    return [*arrays, *(getattr(classifier, f"{name}_") for name in ARRAYS)]


def assert_same(one, other, atol=0.0):
    for array, same in zip(learned(one), learned(other), strict=True):
        np.testing.assert_allclose(array, same, rtol=0, atol=atol)


def test_shapes():
    classifier = small(hidden_feedback=glm.IndicatorBasis(2)).fit(X, Y)
    first, second = classifier.hidden_layers_
    assert (first.weights.shape, first.bias.shape, first.feedback.shape) == ((9, 5, 2), (5,), (5, 2))
    assert (second.weights.shape, second.bias.shape) == ((5, 4, 2), (4,))
    assert first.basis is classifier.hidden_basis and first.kernels().shape == (9, 5, 5)
    assert classifier.weights_.shape == (4, 3, 2) and classifier.n_features_in_ == 9
    assert small(hidden=(4,), hidden_basis=None).fit(X, Y).hidden_layers_[0].weights.shape == (9, 4, 2)
    assert glm.GLMClassifier(device="runtime", n_epochs=1).fit(X, Y).hidden_layers_ == []


@pytest.mark.compiled
@pytest.mark.exhaustive
def test_devices_agree():
    settings = dict(
        batch_size=7, learning_rate_schedule="linear", average=0.5,
        hidden_feedback=glm.IndicatorBasis(2), class_weight={"left": 2.0},
    )  # fmt: skip
    runtime = small(**settings).fit(X, Y)
    compiled = small(device="cpp_standalone", **settings).fit(X, Y)
    assert_same(runtime, compiled, atol=1e-9)
    np.testing.assert_allclose(runtime.history_, compiled.history_, atol=1e-9)
    np.testing.assert_array_equal(runtime.predict(X), compiled.predict(X))
    of_runtime, of_compiled = runtime.evaluate(X, Y), compiled.evaluate(X, Y)
    for name, value in of_runtime.items():
        assert value == pytest.approx(of_compiled[name])
    (trace, *_) = compiled.record(X[:3])
    assert [train.shape for train in trace.hidden] == [(len(trace.inputs), n) for n in (5, 4)]


def test_measures():
    classifier = small().fit(X, Y)
    measured, traces = classifier.evaluate(X, Y), classifier.record(X)
    per_layer = [np.mean([trace.hidden[layer].sum() for trace in traces]) for layer in (0, 1)]
    inputs = np.mean([trace.inputs.sum() for trace in traces])
    outputs = np.mean([trace.outputs.sum() for trace in traces])
    assert measured["hidden_spikes"] == pytest.approx(sum(per_layer))
    assert measured["operations_per_layer"] == pytest.approx(
        [5 * inputs + per_layer[0], 4 * per_layer[0] + per_layer[1], 3 * per_layer[1] + outputs]
    )
    assert measured["operations_per_class"] == pytest.approx(per_layer[1] + outputs / 3)
    assert "hidden_spikes" not in small(hidden=()).fit(X, Y).evaluate(X, Y)


@pytest.mark.parametrize(
    "schedule, optimizer",
    [
        ("constant", "sgd"),
        ("linear", "momentum"),
        ("constant", glm.Adam(0.8, 0.9)),
        (lambda done: 2.0 * (done < 0.5), "sgd"),
    ],
)
def test_partial_fit_continues(schedule, optimizer, tmp_path):
    settings = dict(learning_rate_schedule=schedule, optimizer=optimizer, batch_size=7)
    whole = small(**settings).fit(X, Y)
    parts = small(**settings)
    for _ in range(3):
        parts.partial_fit(X, Y, classes=sorted(set(Y)))
        if isinstance(schedule, str):  # a file keeps what the optimiser remembers
            parts.save(tmp_path / "model.npz")
            parts = glm.GLMClassifier.load(tmp_path / "model.npz")
            assert parts.get_params()["optimizer"] == optimizer
    assert_same(whole, parts)
    np.testing.assert_array_equal(whole.history_, parts.history_)


def test_another_optimiser_begins_anew():
    fitted = small(optimizer="adam").fit(X, Y)
    fitted.set_params(optimizer="momentum").partial_fit(X, Y)
    assert fitted.optimizer_state_.optimizer == glm.SGD(0.9)
    assert fitted.optimizer_state_.n_updates == len(X)


def test_schedules():
    constant = small(hidden=()).fit(X, Y)
    assert_same(constant, small(hidden=(), learning_rate_schedule=lambda done: 1.0).fit(X, Y))
    halved = small(hidden=(), learning_rate=0.2, learning_rate_schedule=lambda done: 0.5)
    assert_same(constant, halved.fit(X, Y))
    one_epoch = small(hidden=(), n_epochs=1, learning_rate_schedule="constant").fit(X, Y)
    stopped = small(hidden=(), learning_rate_schedule=lambda done: float(done < 1 / 3)).fit(X, Y)
    assert_same(one_epoch, stopped)


@pytest.mark.parametrize("hidden", [(), (4,)])
def test_average_is_over_the_last_epochs(hidden):
    averaged = small(hidden=hidden, average=0.6).fit(X, Y)  # two of three epochs
    steps, epochs = small(hidden=hidden), []
    for _ in range(3):
        steps.partial_fit(X, Y, classes=sorted(set(Y)))
        epochs.append([array.copy() for array in learned(steps)])
    for array, second, third in zip(learned(averaged), *epochs[1:]):
        np.testing.assert_allclose(array, (second + third) / 2, rtol=0, atol=1e-12)
    assert_same(small(hidden=hidden, average=0.3).fit(X, Y), small(hidden=hidden).fit(X, Y))


@pytest.mark.parametrize(
    "average, n_epochs, n",
    [
        (0.28, 25, 7),
        (0.07, 100, 7),
        (0.3, 1, 1),
        (1, 3, 3),
        (np.float16(0.25), 8, 2),
        (np.float16(1), 3, 3),
        (np.int8(1), 1000, 1000),
        (np.float32(0.3), 1000, 301),
    ],
)
def test_the_number_of_averaged_epochs_is_rounded_up_but_not_by_rounding_errors(average, n_epochs, n):
    assert prepare([small(average=average, n_epochs=n_epochs).settings], X, Y).training.n_averaged == n
    # What `load` finds in an exported project is the same fraction.
    for k in range(n_epochs + 1):
        assert small(average=k / n_epochs, n_epochs=n_epochs).settings.training.n_averaged == k


def test_by_default_the_last_epochs_are_averaged_unless_training_stops_early():
    five = small(n_epochs=5).fit(X, Y)
    assert_same(small(n_epochs=5, average=0.3).fit(X, Y), five)
    with pytest.raises(AssertionError):
        assert_same(small(n_epochs=5, average=0).fit(X, Y), five)
    stopping = dict(n_epochs=5, early_stopping=True, n_iter_no_change=5, validation_fraction=0.2)
    assert_same(small(**stopping).fit(X, Y), small(**stopping, average=0).fit(X, Y))


def test_weight_decay():
    """Almost without learning, weights decay exponentially and biases do not."""
    start = small(hidden=(4,), learning_rate=1e-9).fit(X, Y)
    decayed = small(hidden=(4,), learning_rate=1e-9, weight_decay=1e7, batch_size=7).fit(X, Y)
    n_updates = 3 * -(-len(X) // 7)
    for layer, before in zip(decayed.hidden_layers_, start.hidden_layers_):
        np.testing.assert_allclose(layer.weights, np.exp(-1e-2 * n_updates) * before.weights, rtol=1e-5)
        np.testing.assert_allclose(layer.bias, before.bias, atol=1e-6)
    np.testing.assert_allclose(decayed.weights_, np.exp(-1e-2 * n_updates) * start.weights_, atol=1e-6)


@pytest.mark.compiled
@pytest.mark.parametrize("device", ["runtime", "cpp_standalone"])
def test_ensemble(device):
    settings = [
        dict(learning_rate=rate, start_state=seed) for rate, seed in ((0.1, 3), (0.2, 4), (0.05, 5))
    ]
    weights = np.random.default_rng(5).choice([0.0, 1.0], (3, 12))
    members = glm.fit_ensemble([small(device=device, **own) for own in settings], X, Y, weights)
    for member, own, weight in zip(members, settings, weights):
        assert_same(member, small(device=device, **own).fit(X, Y, weight))
    assert not np.array_equal(*(member.hidden_layers_[0].weights for member in members[:2]))


@pytest.mark.parametrize("feedback", [None, glm.IndicatorBasis(2)])
def test_files(tmp_path, feedback):
    classifier = small(hidden_feedback=feedback, learning_rate_schedule="linear", average=0.5).fit(X, Y)
    classifier.save(tmp_path / "model.npz")
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    assert_same(classifier, loaded)
    assert loaded.hidden == (5, 4) and loaded.credit == "straight-through"
    np.testing.assert_array_equal(classifier.predict(X), loaded.predict(X))
    assert_same(classifier.partial_fit(X, Y), loaded.partial_fit(X, Y))
    again = pickle.loads(pickle.dumps(classifier))
    assert_same(classifier, again)
    assert clone(classifier).hidden == (5, 4)


def test_settings_do_not_change_what_was_learned():
    classifier = small().fit(X, Y)
    before = classifier.predict(X)
    classifier.hidden, classifier.hidden_basis = (7,), glm.IndicatorBasis(3)
    np.testing.assert_array_equal(classifier.predict(X), before)


@pytest.mark.compiled
@pytest.mark.skipif(find_compiler() is None, reason="needs a compiler")
def test_export(tmp_path):
    settings = dict(
        device="cpp_standalone", average=0.5, learning_rate_schedule="linear", optimizer="adam",
        learning_rate=0.02, clip_norm=0.5, batch_size=4,
    )  # fmt: skip
    small(**settings).export(X, Y, tmp_path / "project")
    subprocess.run(["make", "-j2", "run"], cwd=tmp_path / "project", check=True, capture_output=True)
    exported, fitted = glm.GLMClassifier.load(tmp_path / "project"), small(**settings).fit(X, Y)
    assert_same(exported, fitted)
    assert exported.clip_norm == 0.5 and exported.optimizer == "adam"
    assert_same(exported.partial_fit(X, Y), fitted.partial_fit(X, Y))
    runtime = small(**settings).set_params(device="runtime").fit(X, Y).partial_fit(X, Y)
    assert_same(exported, runtime, atol=1e-9)
    path = tmp_path / "project" / "job" / "settings.txt"
    path.write_text(path.read_text().replace("0.9,0.999,1e-08", "0.5,0.9,0.001"))
    subprocess.run(["make", "run"], cwd=tmp_path / "project", check=True, capture_output=True)
    changed = glm.GLMClassifier.load(tmp_path / "project")
    assert changed.optimizer == glm.Adam(0.5, 0.9, 1e-3)
    assert_same(changed, small(**{**settings, "optimizer": glm.Adam(0.5, 0.9, 1e-3)}).fit(X, Y))


def test_pickles_without_the_new_parameters():
    classifier = small(hidden=()).fit(X, Y)
    state = {
        name: value
        for name, value in classifier.__getstate__().items()
        if not name.startswith(("hidden", "credit", "learning_rate_sch", "average"))
    }
    restored = glm.GLMClassifier.__new__(glm.GLMClassifier)
    restored.__setstate__(state)
    np.testing.assert_array_equal(restored.predict(X), classifier.predict(X))


class Custom(StraightThrough):
    name = "custom"


@pytest.mark.parametrize(
    "changes, error, message",
    [
        (dict(hidden=100), TypeError, r"hidden must be the sizes .* such as \(100,\)"),
        (dict(hidden="5"), TypeError, "hidden must be the sizes"),
        (dict(hidden=None), TypeError, r"hidden must be the sizes .* or \(\) for none"),
        (dict(hidden=(0,)), ValueError, r"hidden\[0\] must be an integer of at least 1, got 0"),
        (dict(hidden=(5, -1)), ValueError, r"hidden\[1\] must be an integer .*, got -1"),
        *(
            (dict(hidden=(5, size)), TypeError, r"hidden\[1\] must be an integer")
            for size in (2.5, True, "3", (3,), None)
        ),
        (dict(hidden_basis=glm.IndicatorBasis(6)), ValueError, "hidden_basis has 6 lags, .* n_steps=5"),
        (dict(hidden_feedback=glm.IndicatorBasis(6)), ValueError, "hidden_feedback has 6 lags"),
        (
            dict(hidden_basis=None, window=6),
            ValueError,
            r"hidden_basis \(by default .* has 6 lags.*; use window of at most 5, or",
        ),
        (
            dict(hidden_basis=None, n_basis=6),
            ValueError,
            r"hidden_basis \(by default .* has 6 lags.*; use n_basis of at most 5, or",
        ),
        (dict(hidden=(10**7, 10**7)), ValueError, "hidden"),
        (dict(hidden_basis="cosine"), TypeError, "hidden_basis"),
        (dict(hidden_feedback=3), TypeError, "hidden_feedback"),
        (dict(credit="backprop"), ValueError, "credit must be one of"),
        (dict(optimizer="rmsprop"), ValueError, "optimizer .*'sgd', 'momentum', 'adam', got 'rmsprop'"),
        (dict(optimizer=0.9), TypeError, "optimizer"),
        (dict(clip_norm=0), ValueError, "clip_norm .* above 0"),
        (dict(learning_rate_schedule="cosine"), ValueError, "learning_rate_schedule .*'linear'"),
        (dict(learning_rate_schedule=3), TypeError, "learning_rate_schedule"),
        (dict(learning_rate_schedule=lambda done: -1.0), ValueError, "learning_rate_schedule"),
        (dict(learning_rate_schedule=lambda done: "a"), TypeError, "learning_rate_schedule"),
        (
            dict(learning_rate_schedule=lambda: 1.0),
            TypeError,
            "learning_rate_schedule must be .* function",
        ),
        (dict(average=1.5), ValueError, "average"),
        (dict(average="all"), TypeError, "average .unless it is 'auto'. must be"),
        (dict(weight_decay=-1), ValueError, "weight_decay"),
        (dict(device="genn"), ValueError, "hidden layers cannot be trained on device='genn'"),
        (dict(device="cpp_standalone", credit="flip"), ValueError, "credit 'flip' has no C"),
    ],
)
def test_errors(changes, error, message):
    classifier = small(**changes)
    with pytest.raises(error, match=message):
        classifier.fit(X, Y)
    with pytest.raises(NotFittedError):
        classifier.predict(X)


def test_a_basis_may_be_as_long_as_a_presentation():
    longest = glm.IndicatorBasis(5)
    small(hidden_basis=longest, hidden_feedback=longest, n_epochs=1).fit(X, Y)
    # Of the outputs it may be longer, as in version 0.1.
    small(window=8, n_epochs=1).fit(X, Y)
    small(hidden=(), hidden_basis=None, window=8, n_epochs=1).fit(X, Y)


def test_numbers_of_any_type_can_be_saved(tmp_path):
    half = Fraction(1, 2)
    numbers = dict(average=half, weight_decay=np.longdouble(0.1), tol=half, validation_fraction=half)
    classifier = small(learning_rate=half, n_epochs=np.int16(2), **numbers).fit(X, Y)
    classifier.save(tmp_path / "model.npz")
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    assert_same(loaded, classifier)
    assert loaded.average == 0.5 and loaded.weight_decay == 0.1 and loaded.n_epochs == 2


def test_what_cannot_be_saved(tmp_path):
    for changes, message in [
        (dict(learning_rate_schedule=lambda done: 1.0), "set it to 'constant' first"),
        (dict(credit=Custom()), "credit must be one of"),
    ]:
        classifier = small(**changes).fit(X, Y)
        with pytest.raises(ValueError, match=message):
            classifier.save(tmp_path / "model.npz")
    assert not list(tmp_path.iterdir())
