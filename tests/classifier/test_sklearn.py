"""The classifier among scikit-learn's tools: checks, searches, pipelines, partial_fit."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import DataConversionWarning, SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import (
    check_classifiers_classes,
    check_classifiers_train,
    check_dataframe_column_names_consistency,
    check_estimator,
)

import glmbrian as glm
from glmbrian.core.objectives import FirstToSpike
from glmbrian.core.rate_code import levels, rate_encode
from glmbrian.devices.genn_environment import GeNNNotFound, check_environment
from glmbrian.devices.runtime import Runtime

try:
    check_environment(gpu=False)
    why_no_genn = ""
except GeNNNotFound as error:
    why_no_genn = f"GeNN programs are not run: {error}"

compiled = pytest.mark.compiled
DIGITS = glm.datasets.load_mnist((5, 7), 10, 10)
X, Y = DIGITS.X_train, DIGITS.y_train
LEARNED = ("weights_", "feedback_", "bias_", "history_")

#: The checks of scikit-learn that do not hold, and why they cannot.
EXPECTED_FAILED_CHECKS = {
    "check_sample_weight_equivalence_on_dense_data": "training is by single presentations, each "
    "encoded by fresh spikes: one that is repeated is two presentations",
    "check_methods_sample_order_invariance": "the spikes that encode a presentation depend on its "
    "place in X, so that equal images get different spikes",
    "check_methods_subset_invariance": "the spikes that encode a presentation depend on its place "
    "in X, so that equal images get different spikes",
    "check_classifiers_classes": "decisions are drawn, so predict need not choose the class that "
    "decision_function finds most probable",
    "check_classifiers_train": "decisions are drawn, so predict need not choose the class that "
    "decision_function finds most probable",
}


def small(**parameters):
    settings = dict(n_steps=3, n_basis=2, n_epochs=1, device="runtime", random_state=1)
    return glm.GLMClassifier(**{**settings, **parameters})


class WithoutProbabilities(glm.GLMClassifier):
    """Checks of decisions that do not compare them with probabilities."""

    predict_proba = property()
    decision_function = property()


def assert_same_learned(first, second):
    for name in LEARNED:
        expected, got = getattr(first, name), getattr(second, name)
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12, err_msg=name)
    assert first.n_presentations_ == second.n_presentations_


# ------------------------------------------------------------------ scikit-learn's checks


@pytest.mark.long
def test_checks_of_scikit_learn():
    # a start and a rate at which it learns from a few presentations
    classifier = glm.GLMClassifier(
        n_steps=2, n_basis=1, n_epochs=1, learning_rate=1.0, bias_init=-1.0,
        device="runtime", scale_inputs=True, verbose=False,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        results = check_estimator(
            classifier, expected_failed_checks=EXPECTED_FAILED_CHECKS, on_fail=None
        )
    failed = {
        result["check_name"]: str(result["exception"])
        for result in results
        if result["status"] == "failed"
    }
    assert not failed
    # what is declared does fail
    declared = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert declared == set(EXPECTED_FAILED_CHECKS)
    assert sum(result["status"] == "passed" for result in results) >= 45


@pytest.mark.long
@pytest.mark.parametrize("check", [check_classifiers_classes, check_classifiers_train])
def test_checks_of_decisions_without_probabilities(check):
    classifier = WithoutProbabilities(
        n_steps=2, n_basis=1, n_epochs=1, learning_rate=1.0, bias_init=-1.0,
        device="runtime", scale_inputs=True, verbose=False,
    )  # fmt: skip
    assert not hasattr(classifier, "predict_proba")
    check("WithoutProbabilities", classifier)


def test_columns_of_data_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    check_dataframe_column_names_consistency("GLMClassifier", small(scale_inputs=True))
    frame = pandas.DataFrame(X[:, 300:303], columns=["a", "b", "c"])
    classifier = small().fit(frame, Y)
    classifier.save(tmp_path / "model.npz")
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["b", "a", "c"]])


def test_tags():
    tags = small().__sklearn_tags__()
    assert tags.input_tags.two_d_array and tags.input_tags.three_d_array
    assert tags.input_tags.positive_only and not tags.input_tags.sparse
    assert not small(scale_inputs=True).__sklearn_tags__().input_tags.positive_only
    assert tags.classifier_tags.multi_class and not tags.non_deterministic
    assert tags.classifier_tags.poor_score


def test_two_inputs_have_too_few_spikes_for_the_score_that_checks_want():
    # The tag poor_score: no classifier could do much better on the same spikes.
    blobs, labels = make_blobs(n_samples=300, random_state=0)
    intensities = MinMaxScaler(clip=True).fit_transform(blobs)
    n_steps = glm.GLMClassifier().n_steps
    counts = rate_encode(levels(intensities), 0, np.arange(300), n_steps).sum(axis=1)
    assert LogisticRegression(C=100).fit(intensities, labels).score(intensities, labels) > 0.9
    assert LogisticRegression(C=100).fit(counts, labels).score(counts, labels) < 0.75


@pytest.mark.parametrize(
    "bad, error, message",
    [
        (csr_matrix(X), TypeError, "X must be a dense array, not a sparse one"),
        (X[0], ValueError, r"X must have the shape .*X.reshape\(1, -1\)"),
        (X[:, :0], ValueError, "X must hold at least one presentation and one input"),
        (X + 1j, ValueError, "X must hold real numbers. Complex data not supported"),
    ],
)
@pytest.mark.parametrize("scale_inputs", [False, True])
def test_inputs_that_are_no_intensities(bad, error, message, scale_inputs):
    for train in (small(scale_inputs=scale_inputs).fit, small().fit(X, Y).partial_fit):
        with pytest.raises(error, match=message):
            train(bad, Y)


def test_a_column_of_labels():
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        column = small().fit(X, Y[:, np.newaxis])
    assert_same_learned(small().fit(X, Y), column)
    assert column.classes_.dtype == Y.dtype


# ------------------------------------------------------------------ its tools


def test_clone_and_set_params():
    fitted = small().fit(X, Y)
    cloned = clone(fitted).set_params(n_basis=3, learning_rate=0.1)
    assert not hasattr(cloned, "weights_") and cloned.get_params()["n_basis"] == 3
    assert cloned.fit(X, Y).weights_.shape == (784, 2, 3)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("scale_inputs", [False, True])
def test_copies_of_a_fitted_classifier(copied, scale_inputs):
    fitted = small(scale_inputs=scale_inputs).fit(X, Y)
    twin = copied(fitted)
    np.testing.assert_array_equal(twin.predict(DIGITS.X_test), fitted.predict(DIGITS.X_test))
    weights = fitted.weights_.copy()
    twin.partial_fit(X, Y)
    np.testing.assert_array_equal(fitted.weights_, weights)
    assert_same_learned(fitted.partial_fit(X, Y), twin)


def test_folds_are_those_by_hand():
    folds = StratifiedKFold(2)
    scores = cross_val_score(small(), X, Y, cv=folds)
    by_hand = [
        small().fit(X[train], Y[train]).score(X[test], Y[test]) for train, test in folds.split(X, Y)
    ]
    assert scores.tolist() == by_hand


def test_search_over_a_pipeline():
    pipeline = make_pipeline(MinMaxScaler(clip=True), small())
    search = GridSearchCV(pipeline, {"glmclassifier__learning_rate": [1e-6, 0.1]}, cv=2)
    search.fit(X.astype(float) * 3 - 7, Y)
    assert search.best_params_ == {"glmclassifier__learning_rate": 0.1}
    assert search.score(DIGITS.X_test.astype(float) * 3 - 7, DIGITS.y_test) > 0.7


def test_search_in_parallel(tmp_path, monkeypatch):
    # what Brian 2 reads in the processes of joblib
    (tmp_path / "brian_preferences").write_text("codegen.target = 'numpy'\n")
    monkeypatch.chdir(tmp_path)
    results = [
        GridSearchCV(small(), {"learning_rate": [0.01, 0.1]}, cv=2, n_jobs=n_jobs)
        .fit(X, Y)
        .cv_results_["mean_test_score"]
        for n_jobs in (1, 2)
    ]
    np.testing.assert_array_equal(*results)


def test_sample_weights_are_routed():
    weights = np.where(np.arange(len(Y)) % 2, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        classifier = small().set_fit_request(sample_weight=True)
        pipeline = make_pipeline(MinMaxScaler(), classifier).fit(X, Y, sample_weight=weights)
    expected = small().fit(MinMaxScaler().fit_transform(X), Y, weights)
    np.testing.assert_array_equal(pipeline[-1].weights_, expected.weights_)
    unweighted = small().fit(MinMaxScaler().fit_transform(X), Y)
    assert not np.allclose(unweighted.weights_, expected.weights_)


@compiled
def test_fits_of_a_search_share_their_program(monkeypatch):
    from glmbrian.devices import compiled

    keys, find_or_build = [], compiled.find_or_build
    monkeypatch.setattr(
        compiled, "find_or_build", lambda key, build: keys.append(key) or find_or_build(key, build)
    )
    grid = {"learning_rate": [0.01, 0.1], "n_epochs": [1, 2], "batch_size": [1, 5]}
    search = GridSearchCV(small(decoding="rate", device="cpp_standalone"), grid, cv=2).fit(X, Y)
    # 8 settings, trained and tested on 2 folds each, and the best of them trained again
    assert len(keys) == 8 * 2 * 2 + 1 and len(set(keys)) == 1
    assert search.best_estimator_.timing_["build_seconds"] < 1


# ------------------------------------------------------------------ scaled inputs


@pytest.mark.parametrize("change", [lambda X: X, lambda X: X * 40.0 - 7, lambda X: X.astype(int) * 9])
def test_scaled_inputs_are_those_of_a_min_max_scaler(change):
    scaler = MinMaxScaler(clip=True)
    changed, tested = change(X), change(DIGITS.X_test)
    expected = small().fit(scaler.fit_transform(changed), Y)
    classifier = small(scale_inputs=True).fit(changed, Y)
    assert_same_learned(expected, classifier)
    np.testing.assert_array_equal(
        classifier.predict(tested), expected.predict(scaler.transform(tested))
    )


def test_flowers():
    flowers = load_iris()
    X, y = flowers.data[::2], flowers.target[::2]
    with pytest.raises(ValueError, match="real numbers from 0 to 1"):
        small().fit(X, y)
    classifier = small(n_steps=8, n_epochs=2, learning_rate=0.3, bias_init=-2.0, scale_inputs=True)
    assert classifier.fit(X, y).score(flowers.data[1::2], flowers.target[1::2]) > 0.5


def test_spike_trains_are_not_scaled():
    trains = np.random.default_rng(0).integers(0, 2, (6, 3, 5))
    labels = [0, 1] * 3
    scaled = small(scale_inputs=True).fit(trains, labels)
    assert_same_learned(small().fit(trains, labels), scaled)
    assert scaled.predict(trains).shape == (6,)


def test_the_range_of_inputs_is_kept(tmp_path):
    wild = np.random.default_rng(0).normal(size=(20, 30)) * np.logspace(-3, 5, 30)
    classifier = small(scale_inputs=True).fit(wild, Y)
    classifier.save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz", allow_pickle=False) as file:
        np.testing.assert_array_equal(file["input_range"], [wild.min(axis=0), wild.max(axis=0)])
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    assert loaded.scale_inputs and loaded.evaluate(wild, Y) == classifier.evaluate(wild, Y)
    # what lies beyond the range is clipped to it
    np.testing.assert_array_equal(
        loaded.predict(np.full((9, 30), 1e9)), loaded.predict(np.tile(wild.max(axis=0), (9, 1)))
    )
    # later parts of the data do not move what has been learned
    loaded.partial_fit(3 * wild, Y)
    np.testing.assert_array_equal(loaded.scaler_.data_max_, wild.max(axis=0))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scaled_inputs_must_be_finite(bad):
    with pytest.raises(ValueError, match="X must be finite, but holds NaN or infinity"):
        small(scale_inputs=True).fit(np.where(X.max() == X, bad, X), Y)


def test_scaling_is_decided_in_training():
    with pytest.raises(ValueError, match="scale_inputs must be True or False, got 'yes'"):
        small(scale_inputs="yes").fit(X, Y)
    for trained in (True, False):
        classifier = small(scale_inputs=trained).fit(X, Y).set_params(scale_inputs=not trained)
        with pytest.raises(ValueError, match="scale_inputs must be as in training"):
            classifier.predict(X)


# ------------------------------------------------------------------ partial_fit


def check_parts_and_epochs(**settings):
    one = small(**settings).partial_fit(X, Y, classes=[5, 7])
    assert_same_learned(small(**settings).fit(X, Y), one)
    assert_same_learned(small(**settings, n_epochs=2).fit(X, Y), one.partial_fit(X, Y))


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
@pytest.mark.parametrize("batch_size", [1, 7])
def test_calls_are_epochs(decoding, batch_size):
    check_parts_and_epochs(decoding=decoding, batch_size=batch_size)


@compiled
def test_calls_are_epochs_of_a_program():
    check_parts_and_epochs(decoding="rate", device="cpp_standalone")


@compiled
@pytest.mark.long
@pytest.mark.skipif(bool(why_no_genn), reason=why_no_genn)
def test_calls_are_epochs_on_genn():
    check_parts_and_epochs(decoding="rate", device="genn", gpu=False)


def test_sample_weights_of_a_call():
    weights = np.linspace(0, 2, len(Y))
    assert_same_learned(
        small().fit(X, Y, weights), small().partial_fit(X, Y, [7, 5], sample_weight=weights)
    )


def test_parts_of_different_sizes_are_numbered_on(monkeypatch):
    seen, train = [], Runtime.train
    monkeypatch.setattr(
        "glmbrian.devices.runtime.Runtime.train",
        lambda *arguments: seen.append(arguments[5].first_presentation) or train(*arguments),
    )
    classifier = small(n_epochs=5)
    for part in (slice(0, 10), slice(10, 13), slice(13, 20), slice(0, 1)):
        classifier.partial_fit(X[part], Y[part], classes=[5, 7])
    assert seen == [0, 10, 13, 20] and classifier.n_presentations_ == 21
    assert classifier.history_.shape == (4,)


def test_fresh_spikes_in_each_call():
    classifier = small(learning_rate=1e-9)
    for _ in range(2):
        classifier.partial_fit(X, Y, classes=[5, 7])
    first, second = classifier.history_
    assert first != pytest.approx(second, abs=1e-6)


def test_it_goes_on_after_fit_and_load(tmp_path):
    fitted = small().fit(X, Y)
    fitted.save(tmp_path / "model.npz")
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    twice = small(n_epochs=2).fit(X, Y)
    assert_same_learned(twice, fitted.partial_fit(X, Y))
    assert_same_learned(twice, loaded.partial_fit(X, Y))


def test_without_a_random_state_it_goes_on_with_the_same_streams():
    classifier = small(random_state=None).partial_fit(X, Y, classes=[5, 7])
    streams = classifier.streams_
    assert classifier.partial_fit(X, Y).streams_ == streams


def test_it_goes_on_after_an_ensemble(tmp_path):
    members = [small(start_state=0), small(start_state=1)]
    for member in glm.fit_ensemble(members, X, Y):
        member.save(tmp_path / "model.npz")
        loaded = glm.GLMClassifier.load(tmp_path / "model.npz").partial_fit(X, Y)
        assert_same_learned(member.partial_fit(X, Y), loaded)
        assert member.history_.shape == (2,)


def test_older_files_load(tmp_path):
    small(n_epochs=2).fit(X, Y).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        content = dict(file)
    config = json.loads(str(content["config"]))
    del config["n_presentations"], config["parameters"]["scale_inputs"], config["format"]
    del content["format"], content["checksum"]
    np.savez(tmp_path / "old.npz", **{**content, "config": np.array(json.dumps(config))})
    old = glm.GLMClassifier.load(tmp_path / "old.npz")
    assert old.n_presentations_ == 0 and not old.scale_inputs
    assert old.partial_fit(X, Y).history_.shape == (3,)


def test_a_range_that_does_not_fit_the_file(tmp_path):
    small(scale_inputs=True).fit(X, Y).save(tmp_path / "model.npz")
    with np.load(tmp_path / "model.npz") as file:
        content = dict(file)
    np.savez(tmp_path / "bad.npz", **{**content, "input_range": content["input_range"][:, :9]})
    with pytest.raises(ValueError, match="path must be a file .*input_range must have the shape"):
        glm.GLMClassifier.load(tmp_path / "bad.npz")


@pytest.mark.parametrize(
    "labels, classes, message",
    [
        (Y, None, "classes must be passed on the first call"),
        (Y, [5], "classes must hold at least two classes"),
        (Y, [[5, 7]], r"classes must have the shape \(n_classes,\)"),
        (Y, 5, r"classes must have the shape \(n_classes,\)"),
        (Y, [5, 8], r"labels known from training, .*classes=\[5, 8\], but holds the numbers \[7\]"),
        (Y, ["5", "7"], r"the strings in classes=\['5', '7'\], but holds the numbers \[5, 7\]"),
    ],
)
def test_classes_of_the_first_call(labels, classes, message):
    classifier = small()
    with pytest.raises(ValueError, match=message):
        classifier.partial_fit(X, labels, classes=classes)
    assert vars(classifier) == vars(small())


@pytest.mark.parametrize(
    "data, labels, named, message",
    [
        (X, Y, dict(classes=[5, 6, 7]), r"classes=\[5, 6, 7\] is not the same as before"),
        (X, Y, dict(classes=["5", "7"]), r"classes=\['5', '7'\] is not the same as before"),
        (X, Y + 1, {}, r"classes_=\[5, 7\], but holds the numbers \[6, 8\]"),
        (X, -np.ones(len(Y)), {}, r"classes_=\[5, 7\], but holds the numbers \[-1"),
        (X[:, :9], Y, {}, "X has 9 inputs, but 784 were used in training"),
        (X, Y[:3], {}, "y must have the shape"),
        (X, Y, dict(sample_weight=-np.ones(len(Y))), "sample_weight must be at least 0"),
        (X, None, {}, "y must have the shape .* but the target y is None"),
    ],
)
def test_errors_of_later_calls_lose_nothing(data, labels, named, message):
    classifier = small(on_silence="reject").fit(X, Y)
    before = dict(vars(classifier))
    with pytest.raises(ValueError, match=message):
        classifier.partial_fit(data, labels, **named)
    assert vars(classifier).keys() == before.keys()
    assert all(value is before[name] for name, value in vars(classifier).items())


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_run_that_fails_loses_nothing(method, monkeypatch):
    classifier = small(random_state=None).fit(X, Y)
    before, predicted = dict(vars(classifier)), classifier.predict(X)

    def train(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("glmbrian.devices.runtime.Runtime.train", staticmethod(train))
        with pytest.raises(KeyboardInterrupt):
            getattr(classifier, method)(X[:, ::-1], Y)
    assert vars(classifier) == before
    np.testing.assert_array_equal(classifier.predict(X), predicted)


def test_a_call_may_hold_one_class_only():
    classifier = small().partial_fit(X[:4], Y[:4], classes=[7, 5, 3])
    assert classifier.classes_.tolist() == [3, 5, 7]
    assert classifier.partial_fit(X[Y == 7], Y[Y == 7], [3, 5, 7]).weights_.shape[1] == 3


# ------------------------------------------------------------------ decisions


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
@pytest.mark.parametrize("on_silence", ["potential", "reject"])
def test_decisions_of_an_evaluation(decoding, on_silence, tmp_path):
    classifier = small(decoding=decoding, n_steps=6, bias_init=-3.0, on_silence=on_silence)
    classifier.fit(X, Y)
    classifier.predict(DIGITS.X_test)
    assert not hasattr(classifier, "decisions_")
    measured = classifier.evaluate(DIGITS.X_test, DIGITS.y_test)
    seen = classifier.decisions_
    np.testing.assert_array_equal(seen.label, DIGITS.y_test)
    np.testing.assert_array_equal(seen.decided, classifier.predict(DIGITS.X_test))
    assert seen.step.mean() == measured["mean_decision_step"]
    assert 0 < seen.silent.mean() == measured["silent_fraction"] < 1
    assert (seen.decided == seen.label).mean() == measured["accuracy"]
    assert (seen.step[seen.silent] == 6).all()
    assert decoding == "first-to-spike" or (seen.step == 6).all()
    # spikes and steps are those of recorded presentations
    for number, trace in enumerate(classifier.record(DIGITS.X_test[:5])):
        assert seen.step[number] == len(trace.inputs)
        assert seen.silent[number] == (not trace.outputs.any())
    few = classifier.score(DIGITS.X_test[:7], DIGITS.y_test[:7])
    assert (classifier.decisions_.decided == classifier.decisions_.label).mean() == few
    assert classifier.decisions_.step.shape == (7,)
    classifier.save(tmp_path / "model.npz")
    assert not hasattr(glm.GLMClassifier.load(tmp_path / "model.npz"), "decisions_")
    assert not hasattr(classifier.partial_fit(X, Y), "decisions_")


def test_accuracy_by_a_deadline_is_that_of_the_decisions_made_by_then():
    from glmbrian.reproduce.redrawn import redraw

    classifier = small(n_steps=6, bias_init=-3.0).fit(X, Y)
    classifier.evaluate(DIGITS.X_test, DIGITS.y_test)
    seen = classifier.decisions_
    recording = redraw(classifier, DIGITS.X_test)
    run = classifier.prepare_test(DIGITS.X_test)
    for deadline in range(1, 7):
        outcome = recording.outcome(FirstToSpike(), deadline)
        spiked = outcome.counts.any(axis=1)
        by_then = spiked & (run.decided_labels(outcome) == DIGITS.y_test)
        np.testing.assert_array_equal(
            (seen.decided == seen.label) & (seen.step <= deadline) & ~seen.silent, by_then
        )


def test_an_evaluation_that_fails_keeps_the_last_decisions(monkeypatch):
    classifier = small().fit(X, Y)
    classifier.score(X, Y)
    before = classifier.decisions_
    with pytest.raises(ValueError, match="y must have the shape"):
        classifier.evaluate(X, Y[:3])
    assert classifier.decisions_ is before


def test_a_pickle_of_earlier_versions_is_read():
    fitted = small().fit(X, Y)
    state = dict(fitted.__getstate__())
    state["_keys"] = state.pop("streams_").to_file()  # as they kept them
    read = glm.GLMClassifier.__new__(glm.GLMClassifier)
    read.__setstate__(state)
    np.testing.assert_array_equal(read.predict(DIGITS.X_test), fitted.predict(DIGITS.X_test))
    assert read.streams_ == fitted.streams_
