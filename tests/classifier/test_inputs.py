"""Arguments of the classifier: scales, images, units and masks, class weights, numbering."""

import warnings

import numpy as np
import pytest
from brian2 import mV
from sklearn import config_context
from sklearn.utils.class_weight import compute_sample_weight

import glmbrian as glm
from glmbrian.classifier.input_range import InputRange
from glmbrian.classifier.labels import as_labels, check_weights, weighted_by_class
from glmbrian.core.rate_code import check_intensities
from glmbrian.devices.problem import Outcome, Timing, Trained
from glmbrian.devices.runtime import Runtime
from glmbrian.support.validation import binary_array, finite_array

DIGITS = glm.datasets.load_mnist((5, 7), 10, 10)
BYTES, Y = DIGITS.X_train, DIGITS.y_train
REALS, BINARY = BYTES / 255, BYTES > 127
compiled = pytest.mark.compiled


def small(**parameters):
    settings = dict(n_steps=3, n_basis=2, n_epochs=1, device="runtime", random_state=1, verbose=False)
    return glm.GLMClassifier(**{**settings, **parameters})


@pytest.fixture
def no_simulation(monkeypatch):
    """Replace training and testing, for warnings and errors that come before them."""

    def train(network, parameters, inputs, labels, training, progress):
        history = np.zeros((training.n_epochs, network.n_replicas))
        state = training.state_at_start(network, parameters)
        return Trained(parameters.copy(), history, state, Timing(0, 0, 0, 0))

    def test(network, parameters, inputs, testing, progress):
        rows = np.ones((len(inputs), 2 + 3 * network.n_outputs))
        return Outcome.from_rows(rows, network.n_outputs), Timing(0, 0, 0, 0)

    monkeypatch.setattr(Runtime, "train", staticmethod(train))
    monkeypatch.setattr(Runtime, "test", staticmethod(test))


def told(call, *arguments):
    """Return the warnings of a call, each of which must point to this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments)
    ours = [str(one.message) for one in caught if one.category is UserWarning]
    assert all(one.filename == __file__ for one in caught if one.category is UserWarning)
    return ours


# ------------------------------------------------------------------ scales


@pytest.mark.parametrize(
    "X",
    [BINARY.astype(np.uint8), BINARY.astype(int), BYTES // 16, (BYTES * (100 / 255)).astype(int)],
    ids=["0 and 1 in bytes", "0 and 1", "to 15", "per cent"],
)
def test_small_integers_in_training_warn(X, no_simulation):
    (message,) = told(small().fit, X, Y)
    assert message.startswith(f"X holds integers up to {X.max()} only. Integers count as bytes")
    assert "X.astype(float)" in message and "X / 16" in message and "scale_inputs=True" in message
    # later inputs of the same kind are as expected
    fitted = small().fit(X, Y)
    assert told(fitted.predict, X) == told(fitted.partial_fit, X, Y) == []
    assert told(small(scale_inputs=True).fit, X, Y) == []


@pytest.mark.parametrize(
    "X", [BYTES, BYTES.astype(int), BYTES // 2, REALS, BINARY, BINARY.astype(float), BYTES * 0]
)
def test_images_do_not_warn(X, no_simulation):
    fitted = small()
    assert told(fitted.fit, X, Y) == told(fitted.predict, X) == []
    # also a few at a time, and dark ones
    for few in (X[:1], X[7:9]):
        assert told(fitted.predict, few) == told(fitted.predict, few // 3 if X is BYTES else few) == []
    for place in (slice(0, 1), slice(1, 4)):
        assert told(small().partial_fit, X[place], Y[place], [5, 7]) == []


def test_truth_values_are_exact():
    first, second = (small().fit(X, Y) for X in (BINARY, BINARY.astype(float)))
    np.testing.assert_array_equal(first.weights_, second.weights_)


@pytest.mark.parametrize("trained", [BYTES, REALS, BINARY], ids=["bytes", "reals", "bools"])
@pytest.mark.parametrize(
    "tested",
    [BINARY.astype(int), BINARY.astype(np.uint8), BYTES // 16, REALS / 255],
    ids=["0 and 1", "0 and 1 in bytes", "to 15", "divided twice"],
)
def test_a_test_on_another_scale_warns(trained, tested, no_simulation):
    fitted = small().fit(trained, Y)
    for call in (fitted.predict, lambda X: fitted.score(X, Y)):
        (message,) = told(call, tested)
        assert message.startswith("X seems to be on another scale than in training")
    # the same scale in both
    for same in (BYTES, REALS, BINARY, REALS[:1]):
        assert told(fitted.predict, same) == []
    assert len(told(fitted.partial_fit, tested, Y)) == 1


@pytest.mark.parametrize(
    "trained, tested", [(BINARY.astype(int), BINARY), (BYTES // 16, REALS), (BYTES // 16, BYTES)]
)
def test_full_intensities_after_training_on_small_integers_warn(trained, tested, no_simulation):
    with pytest.warns(UserWarning, match="integers up to"):
        fitted = small().fit(trained, Y)
    assert len(told(fitted.predict, tested)) == 1


def test_the_scale_that_is_warned_about_matters():
    # integers 0 and 1 hardly ever spike; the same values as reals do
    counts = [
        small(bias_init=-40.0).fit(X, Y).record(X[:1])[0].inputs.sum()
        for X in (BINARY.astype(float), BINARY)
    ]
    assert counts[0] == counts[1] > 50
    with pytest.warns(UserWarning):
        wrong = small(bias_init=-40.0).fit(BINARY.astype(int), Y)
        assert wrong.record(BINARY[:1].astype(int))[0].inputs.sum() < 5


@pytest.mark.parametrize("change", [lambda X: X / 255, lambda X: X * 255.0, lambda X: X - 1e4])
def test_scaled_inputs_far_from_their_range_warn(change, no_simulation):
    fitted = small(scale_inputs=True).fit(BYTES, Y)
    for X in (BYTES, BYTES[:1]):
        assert len(told(fitted.predict, change(X))) == 1
        assert told(fitted.predict, X) == []
    outlier = np.random.default_rng(0).normal(size=(20, 10))
    fitted = small(scale_inputs=True).fit(outlier, Y)
    outlier[0, 0] = 1e6
    assert told(fitted.predict, outlier) == told(fitted.predict, outlier[:1]) == []


def test_the_range_of_training_is_kept(tmp_path, no_simulation):
    for X, expected in (
        (BYTES, ("integers", 1.0)),
        (REALS / 2, ("reals", 0.5)),
        (BINARY, ("reals", 1.0)),
    ):
        fitted = small().fit(X, Y)
        fitted.save(tmp_path / "model.npz")
        loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
        assert fitted.inputs_seen_ == loaded.inputs_seen_ == expected
    (member,) = glm.fit_ensemble([small()], REALS / 2, Y)
    assert member.inputs_seen_ == ("reals", 0.5)
    # only training extends it
    member.predict(REALS)
    assert member.inputs_seen_ == ("reals", 0.5)
    assert member.partial_fit(REALS, Y).inputs_seen_ == ("reals", 1.0)
    with pytest.raises(ValueError, match="y must"):
        member.partial_fit(REALS / 4, Y[:1])
    assert member.inputs_seen_ == ("reals", 1.0)


@pytest.mark.parametrize(
    "config",
    [{"kind": "x", "largest": 1}, {"kind": "reals", "largest": 2}, {"kind": "reals", "largest": "1"}],
)
def test_the_range_of_training_is_checked_in_files(config):
    with pytest.raises((TypeError, ValueError), match="must be"):
        InputRange.from_config(config)


def test_encoders_of_small_integers_warn():
    (message,) = told(glm.RateEncoder, [0, 1, 1])
    assert message.startswith("intensities holds integers up to 1 only")
    for silent in ([0, 0], [0, 20], [0.0, 1.0], [False, True], np.array([0, 255], dtype=np.uint8)):
        assert told(glm.RateEncoder, silent) == []
    encoder = glm.RateEncoder([0.0, 1.0])
    with pytest.warns(UserWarning, match="intensity holds integers up to 16"):
        encoder.intensity = [0, 16]


# ------------------------------------------------------------------ images


@pytest.mark.parametrize("shape", [(-1, 28, 28), (-1, 1, 28, 28), (-1, 28, 28, 1)])
def test_images_must_be_flattened(shape, no_simulation):
    images, fitted = BYTES.reshape(shape), small().fit(BYTES, Y)
    for call in (lambda X: small().fit(X, Y), fitted.predict):
        with pytest.raises(ValueError, match=r"X\.reshape\(len\(X\), -1\), of the shape \(20, 784\)"):
            call(images)
    assert fitted.predict(images.reshape(20, 784)).shape == (20,)


def test_one_image_must_be_flattened(no_simulation):
    fitted = small().fit(BYTES, Y)
    with pytest.raises(ValueError, match=r"If this is one image, flatten it: X\.reshape\(1, -1\)"):
        fitted.predict(BYTES[0].reshape(28, 28))
    with pytest.raises(ValueError, match=r"X\.reshape\(1, -1\) if it is one presentation"):
        fitted.predict(BYTES[0])


def test_a_stack_of_images_taken_for_spike_trains_warns(no_simulation):
    stack = BINARY.reshape(-1, 28, 28)
    (message,) = told(small(n_steps=28).fit, stack, Y)
    assert "is taken to be spike trains (n, n_steps, n_inputs) of 28 steps" in message
    assert "X.reshape(len(X), -1), of the shape (20, 784)" in message
    with pytest.raises(ValueError, match=r"X must hold only 0 and 1, if it is spike trains .*flatten"):
        small(n_steps=28).fit(BYTES.reshape(-1, 28, 28), Y)
    # trains that cannot be images
    for shape in ((20, 28, 7), (20, 3, 3)):
        trains = np.random.default_rng(0).integers(0, 2, shape)
        assert told(small(n_steps=shape[1]).fit, trains, Y) == []


# ------------------------------------------------------------------ units and masks

MASKED = np.ma.array([0.0, 1.0, 1.0], mask=[False, True, False])


@pytest.mark.parametrize(
    "check",
    [
        lambda value: finite_array(value, "rate"),
        lambda value: binary_array(value, "rate"),
        lambda value: check_intensities(value, "rate"),
        lambda value: as_labels(value, name="rate"),
    ],
    ids=["finite_array", "binary_array", "check_intensities", "as_labels"],
)
@pytest.mark.parametrize(
    "value, error, message",
    [
        (MASKED, ValueError, "must not have masked entries"),
        ([MASKED, MASKED], ValueError, "must not have masked entries"),
        ([0, np.ma.masked], ValueError, "must not have masked entries"),
        (np.array([0.0, 1.0]) * mV, TypeError, "must be plain numbers, without a unit"),
        ([0 * mV, 1 * mV], TypeError, "must be plain numbers, without a unit"),
        ([[0 * mV], [1 * mV]], TypeError, "must be plain numbers, without a unit"),
        (np.array([0 * mV, 1 * mV], dtype=object), TypeError, "must be plain numbers, without a unit"),
    ],
)
def test_units_and_masks_are_not_lost(check, value, error, message):
    with pytest.raises(error, match=f"^rate {message}"):
        check(value)


def test_arrays_without_masked_entries_are_arrays():
    whole = np.ma.array([0.0, 1.0], mask=False)
    assert finite_array(whole, "rate").tolist() == [0, 1]
    assert finite_array(np.array([1.0, 2.0]) * mV / mV, "rate").size == 2


@pytest.mark.parametrize("name", ["X", "y", "sample_weight"])
@pytest.mark.parametrize("change", [lambda a: a * mV, lambda a: np.ma.masked_equal(a, a.flat[-1])])
def test_the_classifier_names_what_has_a_unit_or_a_mask(name, change, no_simulation):
    data = dict(X=REALS, y=Y, sample_weight=np.linspace(1, 2, len(Y)))
    data[name] = change(data[name])
    for train in (small().fit, small().fit(REALS, Y).partial_fit):
        with pytest.raises((TypeError, ValueError), match=f"^{name} must .*(without a unit|masked)"):
            train(**data)


# ------------------------------------------------------------------ labels


def test_minus_zero_is_zero(no_simulation):
    fitted = small().fit(REALS, np.where(Y == 5, -0.0, 1.0))
    assert [str(label) for label in fitted.classes_.tolist()] == ["0.0", "1.0"]
    mixed = small().fit(REALS, [-0.0, 0.0, 1.0, 1.0] * 5)
    assert mixed.classes_.tolist() == [0, 1] and not np.signbit(mixed.classes_).any()


@pytest.mark.parametrize(
    "y, message",
    [
        (np.arange(20).astype("datetime64[ns]"), "got dates or times"),
        (np.arange(20).astype("timedelta64[ns]"), "got dates or times"),
        (np.arange(20).astype("datetime64[D]"), "got date"),
        (np.arange(20) * 1j, "got complex"),
        (Y * mV, "without a unit"),
    ],
)
def test_values_that_cannot_be_labels(y, message):
    with pytest.raises(TypeError, match=f"^y must .*{message}"):
        small().fit(REALS, y)


@pytest.mark.parametrize("classes", [[], (), np.array([]), [5]])
def test_too_few_classes(classes):
    with pytest.raises(ValueError, match="^classes must hold"):
        small().partial_fit(REALS, Y, classes)


# ------------------------------------------------------------------ parameters


@pytest.mark.parametrize(
    "parameters, error, message",
    [
        (dict(start_state="x"), ValueError, "start_state must be None, a non-negative integer"),
        (dict(gpu=3 * mV), TypeError, "gpu must be None, True or False"),
        (dict(bias_init=np.ones(2)), TypeError, "bias_init"),
        (dict(bias_init=1 * mV), TypeError, "bias_init"),
        (dict(weight_scale=1e308), ValueError, "weight_scale must be"),
        (dict(target_period=2**63), ValueError, "target_period must be"),
        (dict(n_epochs=10**40), ValueError, "n_epochs must be"),
        (dict(verbose=np.ones(2)), TypeError, "verbose must be"),
        (dict(class_weight="x"), ValueError, "class_weight must be None, 'balanced' or a mapping"),
        (dict(class_weight=[1, 2]), TypeError, "class_weight must be None, 'balanced' or a mapping"),
        (dict(class_weight={5: -1}), ValueError, r"class_weight\[5\] must be a finite number"),
        (dict(class_weight={5: "a"}), TypeError, r"class_weight\[5\] must be a finite number"),
        (
            dict(class_weight={9: 1}),
            ValueError,
            "class_weight must hold only labels .* numbers \\[9\\]",
        ),
        (dict(class_weight={"5": 1}), ValueError, "class_weight must hold only labels .* strings"),
        (dict(class_weight={5: 0, 7: 0}), ValueError, "class_weight .* above 0"),
        (dict(class_weight={5: 1e308}), ValueError, "class_weight .* finite sum"),
    ],
)
def test_errors_name_the_parameter_and_draw_nothing(parameters, error, message):
    np.random.seed(0)
    random = np.random.RandomState(0)
    for state in (None, random):
        with pytest.raises(error, match=f"^{message}"):
            small(random_state=state, **parameters).fit(REALS, Y)
    assert np.random.random() == random.random_sample()  # neither has drawn anything


def test_weights_too_large_to_add_up():
    with pytest.raises(ValueError, match="^sample_weight must have a finite sum, got weights up to 1e"):
        small().fit(REALS, Y, np.full(len(Y), 1e308))


@pytest.mark.parametrize("settings, weight", [(dict(learning_rate=1e308), None), ({}, 1e300)])
def test_a_training_that_diverges_is_an_error(settings, weight):
    weights = None if weight is None else np.r_[weight, np.ones(len(Y) - 1)]
    fitted = small(**settings)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="training diverged to .*learning_rate="):
            fitted.fit(REALS, Y, weights)
        with pytest.raises(ValueError, match="training diverged to .*learning_rate="):
            glm.fit_ensemble([fitted], REALS, Y, None if weights is None else [weights])
    assert not hasattr(fitted, "weights_")


# ------------------------------------------------------------------ weights of classes

PART, PART_Y = np.delete(REALS, [1, 3, 5, 7], axis=0), np.delete(Y, [1, 3, 5, 7])


def assert_same_learned(first, second):
    for name in ("weights_", "feedback_", "bias_", "history_"):
        np.testing.assert_allclose(
            getattr(first, name), getattr(second, name), rtol=0, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("class_weight", ["balanced", {5: 0.5, 7: 3}, {7: 3.0}, {np.int64(5): 0}])
def test_class_weights_are_those_of_scikit_learn(class_weight):
    expected = compute_sample_weight(class_weight, PART_Y)
    assert len(set(expected.tolist())) == 2
    weighted = small(class_weight=class_weight).fit(PART, PART_Y)
    assert_same_learned(weighted, small().fit(PART, PART_Y, expected))
    assert not np.allclose(weighted.weights_, small().fit(PART, PART_Y).weights_)


def test_class_weights_multiply_those_of_presentations():
    weights = np.linspace(0, 2, len(PART_Y))
    both = small(class_weight={5: 0.5}).fit(PART, PART_Y, weights)
    assert_same_learned(both, small().fit(PART, PART_Y, np.where(PART_Y == 5, 0.5, 1) * weights))
    part_by_part = small(class_weight={5: 0.5})
    for _ in range(2):
        part_by_part.partial_fit(PART, PART_Y, [5, 7], sample_weight=weights)
    assert_same_learned(part_by_part, both.set_params(n_epochs=2).fit(PART, PART_Y, weights))
    with pytest.raises(ValueError, match="class_weight='balanced' needs all presentations"):
        small(class_weight="balanced").partial_fit(PART, PART_Y, [5, 7])


def test_balanced_weights_count_what_is_weighted():
    # with weights of 0 and 1, presentations of weight 0 do not count
    labels, kept = np.array([0, 0, 0, 1, 1, 2]), np.array([1.0, 1, 0, 1, 0, 1])
    weights = weighted_by_class(kept, "balanced", labels, np.arange(3))
    np.testing.assert_allclose(weights[kept > 0], compute_sample_weight("balanced", labels[kept > 0]))
    assert not weights[kept == 0].any()
    rows = np.array([kept, np.ones(6)])
    np.testing.assert_array_equal(
        weighted_by_class(rows, "balanced", labels, np.arange(3)),
        [weighted_by_class(row, "balanced", labels, np.arange(3)) for row in rows],
    )


@pytest.mark.parametrize("with_folds", [False, True])
def test_class_weights_of_an_ensemble(with_folds):
    folds = np.ones((2, len(PART_Y)))
    folds[0, ::3] = folds[1, 1::3] = 0
    members = [small(class_weight="balanced", start_state=state) for state in (1, 2)]
    alone = [small(class_weight="balanced", start_state=state) for state in (1, 2)]
    glm.fit_ensemble(members, PART, PART_Y, folds if with_folds else None)
    for member, one, fold in zip(members, alone, folds):
        assert_same_learned(member, one.fit(PART, PART_Y, fold if with_folds else None))


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 2.0}, {}])
def test_class_weights_in_files(class_weight, tmp_path):
    labels = np.where(Y == 5, "a", "b")
    small(class_weight=class_weight).fit(REALS, labels).save(tmp_path / "model.npz")
    loaded = glm.GLMClassifier.load(tmp_path / "model.npz")
    assert loaded.class_weight == class_weight
    assert_same_learned(loaded.fit(REALS, labels), small(class_weight=class_weight).fit(REALS, labels))


def test_an_export_carries_class_weights(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "glmbrian.devices.cpp_standalone.CppStandalone.export",
        staticmethod(lambda *arguments: seen.append(arguments[4])),
    )
    small(device="cpp_standalone", class_weight="balanced").export(PART, PART_Y, tmp_path / "project")
    np.testing.assert_allclose(seen[0].sample_weights, [compute_sample_weight("balanced", PART_Y)])


def test_weights_are_checked_before_they_are_multiplied():
    assert check_weights(None, (3,)) is None
    assert weighted_by_class(None, None, np.array([0, 1]), np.arange(2)) is None


# ------------------------------------------------------------------ numbering of presentations


def check_numbering(decoding, device):
    fitted = small(
        decoding=decoding,
        device=device,
        on_silence="random",
        on_tie="random",
        n_steps=5,
        bias_init=-3.0,
    ).fit(BYTES, Y)
    whole = fitted.predict(BYTES)
    assert len(set(whole.tolist())) == 2
    for first in (1, 13):
        np.testing.assert_array_equal(fitted.predict(BYTES[first:], first), whole[first:])
    fitted.evaluate(BYTES, Y)
    seen = fitted.decisions_
    fitted.evaluate(BYTES[13:], Y[13:], first_presentation=13)
    for name in ("label", "decided", "step", "silent"):
        np.testing.assert_array_equal(getattr(fitted.decisions_, name), getattr(seen, name)[13:])
    right = whole[13:] == Y[13:]
    assert fitted.score(BYTES[13:], Y[13:], first_presentation=13) == right.mean()
    return fitted


@pytest.mark.parametrize("decoding", ["first-to-spike", "rate"])
def test_presentations_can_be_numbered(decoding):
    fitted = check_numbering(decoding, "runtime")
    whole, rest = fitted.record(BYTES), fitted.record(BYTES[13:], first_presentation=13)
    for expected, got in zip(whole[13:], rest):
        np.testing.assert_array_equal(got.inputs, expected.inputs)
        np.testing.assert_array_equal(got.potentials, expected.potentials)
        np.testing.assert_array_equal(got.outputs, expected.outputs)
        assert got.decided == expected.decided


@compiled
def test_presentations_of_a_program_can_be_numbered():
    compiled_one = check_numbering("first-to-spike", "cpp_standalone")
    far = 2**31 - 1 - len(BYTES)
    in_python = small().set_params(**{**compiled_one.get_params(), "device": "runtime"}).fit(BYTES, Y)
    np.testing.assert_array_equal(compiled_one.predict(BYTES, far), in_python.predict(BYTES, far))


def test_single_calls_share_their_random_numbers():
    # without any spikes, each call makes the same random decision
    fitted = small(bias_init=-40.0, on_silence="random").fit(BYTES, Y)
    assert len({fitted.predict(x[np.newaxis]).item() for x in BYTES[:6]}) == 1
    numbered = [fitted.predict(x[np.newaxis], number).item() for number, x in enumerate(BYTES[:6])]
    assert len(set(numbered)) == 2 and numbered == fitted.predict(BYTES[:6]).tolist()


@pytest.mark.parametrize("first", [-1, 1.5, None, 2**63 - 20, "1", True])
def test_bad_numbers_of_presentations(first, monkeypatch):
    fitted = small().fit(BYTES, Y)
    monkeypatch.setattr("glmbrian.devices.runtime.Runtime.test", None)  # not reached
    for call in (fitted.predict, fitted.record):
        with pytest.raises(
            (TypeError, ValueError), match="^first_presentation must be an integer from 0"
        ):
            call(BYTES, first)


# ------------------------------------------------------------------ views


def test_views_say_what_it_is_fitted_to(no_simulation):
    new, fitted = small(), small(decoding="rate").fit(REALS, Y)
    assert repr(new).startswith("GLMClassifier(") and repr(new).endswith(")")
    assert "not fitted" in new._repr_html_()
    line = "fitted to 784 inputs and 2 classes (5, 7)"
    assert repr(fitted).endswith(line) and "decoding='rate'" in repr(fitted)
    assert line in fitted._repr_html_()
    bundle = fitted._repr_mimebundle_()
    assert line in bundle["text/html"] and bundle["text/plain"] == repr(fitted)
    with config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert "text/html" not in fitted._repr_mimebundle_()
    many = small().fit(np.tile(REALS, (2, 1)), np.arange(40) // 2)
    assert "20 classes (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...)" in repr(many)
    labels = small().fit(REALS, np.where(Y == 5, "<b>", "c"))
    assert "&lt;b&gt;" in labels._repr_html_()


# ------------------------------------------------------------------ what to write instead


def test_trains_of_another_number_of_steps():
    trains = np.zeros((4, 10, 8))
    with pytest.raises(
        ValueError, match=r"If these are trains of 10 steps, set n_steps=10; .*transpose"
    ):
        small(n_steps=8).fit(trains, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"flatten them: X.reshape\(len\(X\), -1\)"):
        small(n_steps=8).fit(trains + 0.5, [0, 1, 0, 1])


@pytest.mark.parametrize(
    "as_given", [lambda one: [one, one[:2]], lambda one: [(one, 0)], lambda one: one]
)
def test_events_are_refused_by_what_reads_them(as_given):
    events = np.zeros(5, dtype=[("t", int), ("x", int), ("p", int)])
    with pytest.raises(
        TypeError, match=r"^X must be .* holds events .*from_tonic\(dataset, n_steps, dt\)"
    ):
        small().fit(as_given(events), [0, 1])
