"""The classifier: accuracy on real digits, its cost, its files and its errors."""

import errno
import io
import json
import os
import sys
import threading

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import glmbrian as glm
from glmbrian.devices import get_device
from glmbrian.learning import membrane_potential
from glmbrian.support.progress import Progress, Silent

DIGITS = glm.datasets.load_mnist((5, 7))
compiled = pytest.mark.compiled
pytestmark = pytest.mark.usefixtures("optimised")


@pytest.fixture(scope="module")
def first_to_spike():
    return glm.GLMClassifier(n_epochs=50, random_state=0).fit(DIGITS.X_train, DIGITS.y_train)


@pytest.fixture(scope="module")
def rate():
    return glm.GLMClassifier("rate", random_state=0).fit(DIGITS.X_train, DIGITS.y_train)


@compiled
def test_first_to_spike_accuracy_and_cost(first_to_spike):
    result = first_to_spike.evaluate(DIGITS.X_test, DIGITS.y_test)
    assert result["accuracy"] >= 0.98
    # no steps are simulated after a decision
    simulated = first_to_spike.timing_["steps"]
    assert simulated == pytest.approx(result["mean_decision_step"] * len(DIGITS.X_test), rel=1e-9)
    assert simulated < 0.7 * 8 * len(DIGITS.X_test)
    assert result["silent_fraction"] < 0.02


@compiled
def test_rate_accuracy_and_cost(rate):
    result = rate.evaluate(DIGITS.X_test, DIGITS.y_test)
    assert result["accuracy"] >= 0.975
    assert result["mean_decision_step"] == 8
    assert rate.timing_["steps"] == 8 * len(DIGITS.X_test)
    assert rate.feedback_.shape == (2, 8) and np.abs(rate.feedback_).max() > 0.01


@compiled
@pytest.mark.long
@pytest.mark.exhaustive
def test_no_seed_ends_in_a_bad_optimum():
    scores = [
        glm.GLMClassifier(n_steps=4, n_basis=1, n_epochs=100, random_state=seed)
        .fit(DIGITS.X_train, DIGITS.y_train)
        .score(DIGITS.X_test, DIGITS.y_test)
        for seed in range(10)
    ]
    assert min(scores) >= 0.95, scores


@compiled
@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
def test_devices_learn_the_same(decoding, request):
    if decoding == "rate":
        request.getfixturevalue("users_compiler")
    few = glm.datasets.load_mnist((5, 7), 20, 20)
    fitted = [
        glm.GLMClassifier(decoding, n_epochs=2, device=device, random_state=3).fit(
            few.X_train, few.y_train
        )
        for device in ("runtime", "cpp_standalone")
    ]
    for name in ("weights_", "feedback_", "bias_", "history_"):
        first, second = (getattr(classifier, name) for classifier in fitted)
        np.testing.assert_allclose(first, second, rtol=0, atol=1e-9, err_msg=name)
    predictions = [classifier.predict(few.X_test) for classifier in fitted]
    np.testing.assert_array_equal(*predictions)


@compiled
def test_second_fit_of_an_architecture_compiles_nothing(first_to_spike, monkeypatch):
    def build(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr("glmbrian.devices.cpp_standalone.CppStandalone.build", staticmethod(build))
    few = glm.datasets.load_mnist((1, 9), 30, 30)
    again = glm.GLMClassifier(n_epochs=2, learning_rate=0.1, batch_size=4, random_state=9)
    assert again.fit(few.X_train, few.y_train).timing_["presentations"] == 120


@compiled
def test_recorded_presentations_are_those_of_the_test_run(first_to_spike):
    traces = first_to_spike.record(DIGITS.X_test[:5])
    run = first_to_spike.prepare_test(DIGITS.X_test[:5])
    outcome, _ = get_device(first_to_spike.device).test(
        run.network, run.parameters, run.inputs, run.testing, Silent()
    )
    np.testing.assert_array_equal([len(trace.inputs) for trace in traces], outcome.steps)
    np.testing.assert_array_equal([trace.inputs.sum() for trace in traces], outcome.input_spikes)
    for trace in traces:
        u = membrane_potential(
            trace.inputs,
            first_to_spike.basis_.matrix,
            first_to_spike.weights_,
            first_to_spike.bias_,
        )
        np.testing.assert_allclose(trace.potentials, u, atol=1e-9)


@compiled
def test_a_users_standalone_network_is_left_alone(first_to_spike):
    from brian2 import Network, NeuronGroup, device, get_device, ms, set_device

    set_device("cpp_standalone", directory=None, build_on_run=False)
    users_device = get_device()
    group = NeuronGroup(3, "dv/dt = 1/(10*ms) : 1", method="euler")
    network = Network(group)
    network.run(1 * ms)
    few = glm.datasets.load_mnist((5, 7), 5, 5)
    glm.GLMClassifier(n_epochs=1, n_steps=3).fit(few.X_train, few.y_train)
    glm.GLMClassifier(n_epochs=1, n_steps=3, device="runtime").fit(few.X_train, few.y_train)
    assert get_device() is users_device
    device.build(directory=None, with_output=False)
    np.testing.assert_allclose(group.v[:], 0.1)


# ------------------------------------------------------------------ files


def small(**parameters):
    random = np.random.default_rng(0)
    X, y = random.integers(0, 256, (12, 9)).astype(np.uint8), np.tile([0, 1, 2], 4)
    settings = dict(n_steps=3, n_basis=2, n_epochs=1, device="runtime", random_state=1)
    return glm.GLMClassifier(**{**settings, **parameters}).fit(X, y), X, y


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
def test_save_and_load(tmp_path, decoding):
    classifier, X, y = small(decoding=decoding)
    path = tmp_path / "model.npz"
    classifier.save(path)
    with np.load(path, allow_pickle=False) as file:
        assert {"weights", "feedback", "bias", "basis", "feedback_basis", "classes", "config"} <= set(
            file.files
        )
        assert json.loads(str(file["config"]))["parameters"]["decoding"] == decoding
        assert file["weights"].shape == (9, 3, 2) and file["feedback"].shape == (3, 2)
    loaded = glm.GLMClassifier.load(path)
    np.testing.assert_array_equal(loaded.predict(X), classifier.predict(X))
    assert loaded.evaluate(X, y) == classifier.evaluate(X, y)


@pytest.mark.parametrize(
    "labels",
    [
        np.array([5, 7, 9], dtype=object),
        np.array(["a", "bc", "d"], dtype=object),
        np.array([2**64 - 1, 2, 3], dtype=np.uint64),
        np.array([5, 7, 9], dtype=np.int8),
        [1.0, 2, 3],
    ],
)
def test_labels_come_back_from_a_file(tmp_path, labels):
    X = np.random.default_rng(0).integers(0, 256, (3, 9)).astype(np.uint8)
    classifier = glm.GLMClassifier(n_steps=2, n_basis=1, n_epochs=1, device="runtime").fit(X, labels)
    classifier.save(tmp_path / "model.npz")
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    assert loaded.classes_.tolist() == sorted(labels)
    assert loaded.classes_.dtype == classifier.classes_.dtype
    assert 0 <= loaded.score(X, labels) <= 1
    classifier.classes_ = np.array([None, 1, 2])
    with pytest.raises(TypeError, match="classes_ must hold class labels of one kind"):
        classifier.save(tmp_path / "model.npz")


def test_a_loaded_classifier_can_be_trained_anew_with_other_parameters(tmp_path):
    classifier, X, y = small(random_state=np.int64(7))
    path = tmp_path / "model.npz"
    classifier.save(path)
    loaded = glm.GLMClassifier.load(path)
    assert loaded.get_params() == classifier.get_params() and loaded.random_state == 7
    again = clone(loaded).set_params(n_basis=3).fit(X, y)
    assert again.weights_.shape == (9, 3, 3)
    # a basis of the user's stays, and is not that of the latest training
    classifier.set_params(basis=glm.IndicatorBasis(4)).save(path)
    loaded = glm.GLMClassifier.load(path)
    assert loaded.basis_.n_basis == 2
    np.testing.assert_array_equal(loaded.basis.matrix, np.eye(4))
    assert clone(loaded).fit(X, y).weights_.shape == (9, 3, 4)


@pytest.mark.parametrize(
    "name, change",
    [
        ("weights", lambda array: array[:, :2]),
        ("bias", lambda array: array[:2]),
        ("bias", lambda array: array * np.nan),
        ("feedback", lambda array: array[:, :1]),
        ("feedback", lambda array: array + np.inf),
        ("classes", lambda array: array[np.newaxis]),
    ],
)
def test_files_with_arrays_that_do_not_fit(tmp_path, name, change):
    path = tmp_path / "model.npz"
    small(decoding="rate")[0].save(path)
    with np.load(path) as file:
        content = dict(file)
    np.savez(path, **{**content, name: change(content[name])})
    with pytest.raises(ValueError, match=f"path must be a file written by .*{name} must"):
        glm.GLMClassifier.load(path)


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    classifier, _, _ = small()
    path = tmp_path / "model.npz"
    path.write_text("old")

    def full_disk(*arguments, **named):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full_disk)
    with pytest.raises(OSError, match="no space"):
        classifier.save(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_bad_files(tmp_path):
    classifier, _, _ = small()
    with pytest.raises(OSError, match="path: the folder .* does not exist"):
        classifier.save(tmp_path / "missing" / "model.npz")
    with pytest.raises(OSError, match="path must be a file"):
        classifier.save(tmp_path)
    (tmp_path / "text.npz").write_text("no model")
    with pytest.raises(ValueError, match="path must be a file written by"):
        glm.GLMClassifier.load(tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError, match="path: cannot read .*missing.npz: No such file"):
        glm.GLMClassifier.load(tmp_path / "missing.npz")
    with pytest.raises(ValueError, match="was not written by GLMClassifier.export"):
        glm.GLMClassifier.load(tmp_path)


def test_string_labels_and_reject(tmp_path):
    random = np.random.default_rng(0)
    X, y = random.integers(0, 2, (6, 4)) * 255, np.array(["a", "b"] * 3)
    classifier = glm.GLMClassifier(n_steps=2, n_basis=2, n_epochs=1, device="runtime").fit(X, y)
    assert set(classifier.predict(X)) <= {"a", "b"}
    classifier.set_params(on_silence="reject")
    for use in (classifier.predict, classifier.record, lambda X: classifier.fit(X, y)):
        with pytest.raises(ValueError, match="class labels must be numbers"):
            use(X)
    for labels in (y == "a", np.array([2**63, 1] * 3, dtype=np.uint64), np.where(y == "a", -1, 1)):
        with pytest.raises(ValueError, match="class labels must be numbers"):
            clone(classifier).fit(X, labels)
    classifier = glm.GLMClassifier(
        n_steps=2, n_basis=2, n_epochs=1, bias_init=-40.0, device="runtime", on_silence="reject"
    ).fit(X, (y == "b").astype(np.uint8))
    np.testing.assert_array_equal(classifier.predict(X), -1)
    assert classifier.evaluate(X, np.zeros(6))["silent_fraction"] == 1
    assert classifier.score(X, np.full(6, -1)) == 1


def test_ready_made_trains_and_real_intensities():
    random = np.random.default_rng(0)
    trains, y = (random.random((10, 3, 5)) < 0.5).astype(int), np.tile([3, 8], 5)
    common = dict(n_steps=3, n_basis=2, n_epochs=2, device="runtime", random_state=0)
    assert glm.GLMClassifier(**common).fit(trains, y).predict(trains).shape == (10,)
    # the same image as bytes and as fractions is the same up to rounding
    image = random.integers(0, 2, (10, 5)).astype(np.uint8)
    first = glm.GLMClassifier(**common).fit(image * np.uint8(255), y)
    second = glm.GLMClassifier(**common).fit(image.astype(float), y)
    np.testing.assert_array_equal(first.weights_, second.weights_)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_errors_of_scaled_intensities(dtype):
    X = np.random.default_rng(0).normal(size=(50, 40)).astype(dtype)
    assert MinMaxScaler().fit_transform(X).max() > 1
    classifier = glm.GLMClassifier(n_steps=2, n_basis=1, n_epochs=1, device="runtime")
    pipeline = make_pipeline(MinMaxScaler(), classifier).fit(X, np.tile([0, 1], 25))
    assert pipeline.predict(X).shape == (50,)
    with pytest.raises(ValueError, match="X must hold"):
        classifier.predict(np.full((1, 40), 1 + 1e-6))


def test_paper_settings():
    classifier, _, _ = small(**{**glm.PAPER_SETTINGS, "n_epochs": 1})
    assert classifier.get_params()["bias_init"] == "uniform"
    assert np.abs(classifier.weights_).max() > 0.8


# ------------------------------------------------------------------ errors

GOOD_X = np.zeros((4, 6), dtype=np.uint8)
GOOD_Y = np.array([0, 1, 0, 1])


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        (dict(n_steps=0), ValueError, "n_steps must be an integer of at least 1, got 0"),
        (dict(n_basis=0), ValueError, "n_basis must be an integer of at least 1, got 0"),
        (dict(window=0), ValueError, "window must be an integer of at least 1, got 0"),
        (dict(n_basis=9, window=2), ValueError, "n_basis=9 functions do not fit window=2"),
        (dict(n_steps=2.5), TypeError, "n_steps must be an integer"),
        (dict(n_epochs=0), ValueError, "n_epochs must be"),
        (dict(batch_size=0), ValueError, "batch_size must be"),
        (dict(target_period=0), ValueError, "target_period must be"),
        (dict(target_start=0), ValueError, "target_start must be"),
        (dict(target_start=2.5), TypeError, "target_start must be"),
        (
            dict(target_start=9, n_steps=8, decoding="rate"),
            ValueError,
            "target_start must be at most n_steps=8",
        ),
        (dict(learning_rate=0), ValueError, "learning_rate must be a finite number above 0"),
        (dict(learning_rate=np.nan), ValueError, "learning_rate must be a finite number"),
        (dict(weight_scale=-1), ValueError, "weight_scale must be a finite number at least 0"),
        (dict(bias_init=np.inf), ValueError, "bias_init"),
        (dict(bias_init="normal"), TypeError, "bias_init .*'auto' or 'uniform'"),
        (dict(device="gpu"), ValueError, "device must be one of"),
        (dict(activation="relu"), ValueError, "activation must be one of"),
        (dict(decoding="latency"), ValueError, "decoding must be one of"),
        (dict(on_silence="guess"), ValueError, "on_silence must be one of"),
        (dict(on_tie="guess"), ValueError, "on_tie must be one of"),
        (dict(basis=np.eye(2)), TypeError, "basis must be a basis"),
        (dict(random_state="a"), ValueError, "random_state must be"),
    ],
)
def test_bad_parameters(parameters, error, message, no_building):
    with pytest.raises(error, match=message):
        glm.GLMClassifier(**parameters).fit(GOOD_X, GOOD_Y)


@pytest.mark.parametrize(
    "X, y, error, message",
    [
        (GOOD_X[0], GOOD_Y, ValueError, "X must have the shape"),
        (GOOD_X[:0], GOOD_Y[:0], ValueError, "X must hold at least one presentation"),
        (GOOD_X - 1.0, GOOD_Y, ValueError, "X must hold .* from -1.0 to -1.0"),
        (GOOD_X.astype(int) + 256, GOOD_Y, ValueError, "integers from 0 to 255"),
        (GOOD_X + 1.01, GOOD_Y, ValueError, "real numbers from 0 to 1"),
        (GOOD_X * np.nan, GOOD_Y, ValueError, "X must hold .*NaN"),
        (GOOD_X.astype(str), GOOD_Y, TypeError, "X must hold"),
        (np.zeros((4, 7, 6)), GOOD_Y, ValueError, r"X must have the shape \(n, 8, n_inputs\)"),
        (np.full((4, 8, 6), 2), GOOD_Y, ValueError, "X must hold only 0 and 1"),
        (GOOD_X, GOOD_Y[:3], ValueError, r"y must have the shape \(4,\)"),
        (GOOD_X, np.zeros((4, 2)), ValueError, r"y must have the shape \(4,\)"),
        (GOOD_X, np.zeros(4), ValueError, "y must hold at least two classes"),
        (GOOD_X, [0, 1, np.nan, 1], ValueError, "y must hold class labels, but holds NaN"),
        (GOOD_X, [0.5, 1, 0, 1], ValueError, "numbers with fractions"),
        (GOOD_X, [None] * 4, TypeError, "y must hold class labels of one kind .* got NoneType"),
        (GOOD_X, [0, "a", 0, "a"], TypeError, "y must hold .* got numbers and strings"),
        (GOOD_X, [0, True, 0, True], TypeError, "y must hold .* got bools and numbers"),
        (GOOD_X, [[0], [1, 2], [0], [1]], TypeError, "y must hold .* got list"),
        (GOOD_X, [0, 2**64, 0, 1], ValueError, "y must hold .* that NumPy can store"),
        (GOOD_X, None, ValueError, r"y must have the shape \(4,\)"),
        (None, GOOD_Y, ValueError, "X must have the shape"),
        ([[0, 1], [0], [1], [0]], GOOD_Y, ValueError, "X must be an array"),
        ([[0, "a"]] * 4, GOOD_Y, TypeError, "X must hold"),
    ],
)
def test_bad_data(X, y, error, message, no_building):
    with pytest.raises(error, match=message):
        glm.GLMClassifier().fit(X, y)


@pytest.fixture
def no_building(monkeypatch):
    def build(*arguments):
        raise AssertionError("compiled before the check")

    monkeypatch.setattr("glmbrian.devices.compiled.find_or_build", build)


def test_prediction_checks_its_input():
    classifier, X, y = small()
    with pytest.raises(ValueError, match="X has 8 inputs, but 9 were used in training"):
        classifier.predict(X[:, :8])
    with pytest.raises(ValueError, match="y must have the shape"):
        classifier.evaluate(X, y[:3])
    with pytest.raises(ValueError, match="not fitted yet"):
        glm.GLMClassifier().predict(X)
    with pytest.raises(ValueError, match="X must have the shape"):
        classifier.evaluate(None, y)


@pytest.mark.parametrize(
    "change, error, message",
    [
        (lambda y: y.astype(str), ValueError, r"classes_=\[0, 1, 2\].* strings \['0', '1', '2'\]"),
        (lambda y: y + 10, ValueError, r"classes_=\[0, 1, 2\].* numbers \[10, 11, 12\]"),
        (lambda y: y + 1, ValueError, r"but holds the numbers \[3\]"),
        (lambda y: np.where(y > 1, -1, y), ValueError, r"but holds the numbers \[-1\]"),
        (lambda y: y > 0, ValueError, r"but holds the bools"),
        (lambda y: [None] * len(y), TypeError, "y must hold class labels of one kind"),
        (lambda y: y * np.nan, ValueError, "NaN or infinity"),
        (lambda y: np.where(y, y, np.inf), ValueError, "NaN or infinity"),
        (lambda y: y / 2, ValueError, "numbers with fractions"),
    ],
)
def test_labels_that_training_has_not_seen(change, error, message, monkeypatch):
    classifier, X, y = small()
    monkeypatch.setattr("glmbrian.devices.runtime.Runtime.test", None)  # not reached
    for test in (classifier.evaluate, classifier.score):
        with pytest.raises(error, match=message):
            test(X, change(y))


def test_weighted_score():
    classifier, X, y = small()
    right = classifier.predict(X) == y
    assert 0 < right.sum() < len(y)
    assert classifier.score(X, y) == np.mean(right)
    assert classifier.score(X, y, sample_weight=right) == 1
    weights = 1 + 2 * right
    assert classifier.score(X, y, weights) == pytest.approx(np.average(right, weights=weights))
    with pytest.raises(ValueError, match=r"sample_weight must have the shape \(12,\)"):
        classifier.score(X, y, [1])


def test_without_a_compiler_it_says_so(monkeypatch):
    monkeypatch.setattr("glmbrian.devices.cpp_standalone.find_compiler", lambda: None)
    with pytest.raises(RuntimeError, match="needs .*a C\\+\\+ compiler .* or use device='runtime'"):
        glm.GLMClassifier(n_steps=5, n_basis=5).fit(GOOD_X, GOOD_Y)


def test_an_export_that_fails_leaves_the_folder_as_it_was(tmp_path, monkeypatch):
    def export(network, parameters, inputs, labels, training, folder):
        (folder / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("glmbrian.devices.cpp_standalone.CppStandalone.export", staticmethod(export))
    (tmp_path / "empty").mkdir()
    for name in ("new", "empty"):
        with pytest.raises(KeyboardInterrupt):
            glm.GLMClassifier().export(GOOD_X, GOOD_Y, tmp_path / name)
    assert list(tmp_path.rglob("*")) == [tmp_path / "empty"]
    with pytest.raises(ValueError, match="device .* must be one of 'cpp_standalone', 'genn'"):
        glm.GLMClassifier(device="runtime").export(GOOD_X, GOOD_Y, tmp_path / "new")


def test_a_progress_bar_that_cannot_be_written_ends_nothing(monkeypatch):
    class FullDisk(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def show_a_bar():
        with Progress("training", 10, show=True) as progress:
            progress.compiling()
            for done in range(10):
                progress(done)

    monkeypatch.setattr(sys, "stderr", FullDisk())
    show_a_bar()
    thread = threading.Thread(target=show_a_bar, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()  # it waited for ever while tqdm kept its lock
