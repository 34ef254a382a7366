"""Data frames whose columns NumPy would make an object array of are read by their values."""

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

import glmbrian as glm

pd = pytest.importorskip("pandas", reason="pandas is not installed")

RANDOM = np.random.default_rng(0)
REALS = pd.DataFrame(RANDOM.random((30, 4)), columns=list("abcd"))
BYTES = (REALS * 255).round().astype("uint8")
Y = np.arange(30) % 2

#: Each frame, and the same values in a form that NumPy reads directly.
FRAMES = {
    "Float64": (REALS.astype("Float64"), REALS.to_numpy()),
    "UInt8": (BYTES.astype("UInt8"), BYTES.to_numpy()),
    "boolean": ((REALS > 0.5).astype("boolean"), (REALS > 0.5).to_numpy()),
    "one of bool": (REALS.assign(b=REALS.b > 0.5), REALS.assign(b=(REALS.b > 0.5) * 1.0).to_numpy()),
    "converted": (BYTES.convert_dtypes(), BYTES.to_numpy()),
    "objects": (REALS.astype(object), REALS.to_numpy()),
}


def fitted(X, **settings):
    return glm.GLMClassifier(
        n_steps=4, n_basis=2, n_epochs=1, device="runtime", random_state=0, verbose=False, **settings
    ).fit(X, Y)


@pytest.mark.filterwarnings("ignore:X holds integers")
@pytest.mark.parametrize("scale_inputs", [False, True])
@pytest.mark.parametrize("kind", FRAMES)
def test_columns_are_read_by_their_values(kind, scale_inputs):
    frame, values = FRAMES[kind]
    np.testing.assert_array_equal(  # as other classifiers read them
        KNeighborsClassifier(3).fit(frame, Y).predict(frame),
        KNeighborsClassifier(3).fit(values, Y).predict(values),
    )
    classifier, expected = (
        fitted(frame, scale_inputs=scale_inputs),
        fitted(values, scale_inputs=scale_inputs),
    )
    np.testing.assert_array_equal(classifier.weights_, expected.weights_)
    assert list(classifier.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(classifier.predict_proba(frame), expected.predict_proba(values))
    assert classifier.evaluate(frame, Y)["accuracy"] == expected.evaluate(values, Y)["accuracy"]
    one, other = (
        glm.robustness.attack(fit, X, Y, 1) for fit, X in ((classifier, frame), (expected, values))
    )
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("scale_inputs", [False, True])
def test_missing_values_are_an_error(scale_inputs):
    frame = REALS.astype("Float64")
    frame.iloc[3, 1] = pd.NA
    with pytest.raises(ValueError, match=r"^X must not hold missing values.*X\.dropna\(\)"):
        fitted(frame, scale_inputs=scale_inputs)
    classifier = fitted(REALS, scale_inputs=scale_inputs)
    with pytest.raises(ValueError, match="^X must not hold missing values"):
        classifier.predict(frame)
    filled = frame.fillna(0)
    assert classifier.predict(filled).shape == (30,)


def test_columns_of_arrow():
    pytest.importorskip("pyarrow")
    frame = REALS.convert_dtypes(dtype_backend="pyarrow")
    np.testing.assert_array_equal(fitted(frame).weights_, fitted(REALS).weights_)


def test_whole_reals_are_not_taken_for_bytes():
    with pytest.raises(ValueError, match=r"write X\.astype\('uint8'\) if they are bytes"):
        fitted(BYTES.astype(float))


@pytest.mark.parametrize("values", [[[True, 0.5]], [[1, 2]], [[True, False]], [[np.float32(0.5), 1]]])
def test_arrays_of_objects(values):
    images = np.array(values, dtype=object)
    with pytest.warns(UserWarning, match="holds integers") if values == [[1, 2]] else nullcontext():
        read = glm.RateEncoder(images, n_steps=1)
        plain = glm.RateEncoder(np.array(values), n_steps=1)
    np.testing.assert_array_equal(read.level[:], plain.level[:])
