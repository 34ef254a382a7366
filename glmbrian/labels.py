"""Class labels of presentations, and their weights: checks, and numbers in place of labels."""

import numbers
import warnings

import numpy as np
from sklearn.exceptions import DataConversionWarning

from .validation import check_shape, finite_array

#: Kinds of class labels; labels of two kinds are never the same class.  The first
#: that fits counts, since in Python a bool is an integer.
_LABEL_KINDS = {
    "bools": (bool, np.bool_),
    "numbers": (numbers.Integral, float, np.floating),
    "strings": str,
    "bytes": bytes,
}


def as_labels(y, n=None, name="y"):
    """Return `y` as an array of `n` class labels, by default of any number, and their kind."""
    try:
        labels = np.asarray(y, dtype=object)
    except ValueError as error:  # arrays of several shapes
        raise ValueError(f"{name} must hold one label a row of X: {error}") from None
    if labels.shape == (n, 1):
        warnings.warn(
            f"A column-vector {name} was passed when a 1d array was expected; its shape should be ({n},)",
            DataConversionWarning,
            stacklevel=2,
        )
        labels, y = labels[:, 0], np.asarray(y)[:, 0]
    if n is None:
        check_shape(labels, name, ("n_classes",))
    elif labels.shape != (n,):
        missing = ": it requires y to be passed, but the target y is None" if y is None else ""
        raise ValueError(
            f"{name} must have the shape ({n},), one label a row of X, got {labels.shape}{missing}"
        )
    labels = labels.tolist()
    # By itself NumPy would take [1, "a"] for strings.
    kinds = {_label_kind(label_type) for label_type in set(map(type, labels))}
    if len(kinds) > 1 or not kinds <= set(_LABEL_KINDS):
        raise TypeError(
            f"{name} must hold class labels of one kind (integers, strings or bools), "
            f"got {' and '.join(sorted(kinds))}"
        )
    array = np.asarray(y)
    if array.dtype.kind not in "biufUS":
        array = np.array(labels)
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold class labels, but holds NaN or infinity")
    if array.dtype.kind == "f" and np.any(array != np.round(array)):
        raise ValueError(
            f"{name} must hold class labels, but holds numbers with fractions "
            "(Unknown label type: continuous)"
        )
    if array.dtype == object or array.tolist() != labels:
        raise ValueError(
            f"{name} must hold class labels that NumPy can store: integers of 64 bits, or strings "
            "without zero characters at the end"
        )
    return array, kinds.pop()


def _label_kind(label_type):
    for kind, types in _LABEL_KINDS.items():
        if issubclass(label_type, types):
            return kind
    return label_type.__name__


def check_labels(y, n):
    """Return the distinct classes, and the index of each label among them."""
    labels = as_labels(y, n)[0]
    classes = check_classes(labels, "y")
    return classes, np.searchsorted(classes, labels)


def check_classes(labels, name):
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"{name} must hold at least two classes, got {len(classes)} class")
    return classes


def check_known(y, n, classes, name, also=()):
    """Return `y` as an array of labels, all of them among `classes` or `also`."""
    y, kind = as_labels(y, n)
    known, known_kind = as_labels(classes, name=name)
    unknown = set(y.tolist())
    if kind == known_kind:
        unknown -= {*known.tolist(), *also}
    if unknown:
        raise ValueError(
            f"y must hold only labels that training knows, the {known_kind} in "
            f"{name}={known.tolist()}, but holds the {kind} {sorted(unknown)[:10]}"
        )
    return y


def indices(labels, classes):
    """Return the index of each label among `classes`, which hold them all."""
    # NumPy would compare signed and unsigned integers as floats.
    place = {label: index for index, label in enumerate(classes.tolist())}
    return np.array([place[label] for label in labels.tolist()])


def check_weights(sample_weight, shape):
    """Return checked weights of presentations, the last axis of `shape`, or None."""
    if sample_weight is None:
        return None
    sample_weight = finite_array(sample_weight, "sample_weight", shape)
    if np.any(sample_weight < 0):
        raise ValueError("sample_weight must be at least 0")
    if not np.all(np.any(sample_weight, axis=-1)):
        raise ValueError(
            "sample_weight must be above 0 for at least one presentation, got only zero weights"
        )
    return sample_weight
