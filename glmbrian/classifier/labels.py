"""Class labels of presentations, and their weights: checks, and numbers in place of labels."""

import numbers
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import DataConversionWarning

from ..support.validation import check_plain, check_shape, finite_array, real, warn

#: Kinds of class labels; labels of different kinds are never the same class.  The first
#: match counts, since in Python a bool is an integer.
_LABEL_KINDS: dict[str, Any] = {
    "bools": (bool, np.bool_),
    "numbers": (numbers.Integral, float, np.floating),
    "strings": str,
    "bytes": bytes,
}


def as_labels(y: Any, n: int | None = None, name: str = "y") -> tuple[np.ndarray, str]:
    """Return `y` as an array of `n` class labels, by default of any number, and their kind."""
    check_plain(y, name)
    try:
        labels = np.asarray(y, dtype=object)
    except ValueError as error:  # arrays of several shapes
        raise ValueError(f"{name} must hold one label per row of X: {error}") from None
    if labels.shape == (n, 1):
        warn(
            f"A column-vector {name} was passed when a 1d array was expected; its shape should be ({n},)",
            DataConversionWarning,
        )
        labels, y = labels[:, 0], np.asarray(y)[:, 0]
    if n is None:
        check_shape(labels, name, ("n_classes",))
    elif labels.shape != (n,):
        missing = ": it requires y to be passed, but the target y is None" if y is None else ""
        raise ValueError(
            f"{name} must have the shape ({n},), one label per row of X, got {labels.shape}{missing}"
        )
    plain = labels.tolist()
    if not plain:
        raise ValueError(f"{name} must hold class labels, but is empty")
    # NumPy would turn [1, "a"] into strings.
    kinds = {_label_kind(label_type) for label_type in set(map(type, plain))}
    if len(kinds) > 1 or not kinds <= set(_LABEL_KINDS):
        raise TypeError(
            f"{name} must hold class labels of one kind (integers, strings or bools), "
            f"got {' and '.join(sorted(kinds))}"
        )
    array = np.asarray(y)
    if array.dtype.kind in "mM":  # tolist() above turns nanoseconds into integers
        raise TypeError(
            f"{name} must hold class labels (integers, strings or bools), got dates or times "
            f"({array.dtype}); use strings: {name}.astype(str)"
        )
    if array.dtype.kind not in "biufUS":
        array = np.array(plain)
    if array.dtype.kind == "f" and not np.all(np.isfinite(array)):
        raise ValueError(f"{name} must hold class labels, but holds NaN or infinity")
    if array.dtype.kind == "f" and np.any(array != np.round(array)):
        raise ValueError(
            f"{name} must hold class labels, but holds numbers with fractions "
            "(Unknown label type: continuous)"
        )
    if array.dtype == object or array.tolist() != plain:
        raise ValueError(
            f"{name} must hold class labels that NumPy can store: integers of 64 bits, or strings "
            "without zero characters at the end"
        )
    if array.dtype.kind == "f":
        array = array + 0.0  # so that -0 is printed as 0
    return array, kinds.pop()


def _label_kind(label_type):
    for kind, types in _LABEL_KINDS.items():
        if issubclass(label_type, types):
            return kind
    return label_type.__name__


def check_labels(y: ArrayLike, n: int) -> tuple[np.ndarray, NDArray[np.int64]]:
    """Return the distinct classes, and the index of each label among them."""
    labels = as_labels(y, n)[0]
    classes = check_classes(labels, "y")
    return classes, np.searchsorted(classes, labels)


def check_classes(labels: np.ndarray, name: str) -> np.ndarray:
    classes = np.unique(labels)
    if len(classes) < 2:
        raise ValueError(f"{name} must hold at least two classes, got {len(classes)} class")
    return classes


def check_known(
    y: Any,
    n: int | None,
    classes: ArrayLike,
    known_name: str,
    also: Collection[Any] = (),
    name: str = "y",
) -> np.ndarray:
    """Return `y` as an array of labels, all of them among `classes` or `also`."""
    labels, kind = as_labels(y, n, name)
    known, known_kind = as_labels(classes, name=known_name)
    unknown = set(labels.tolist())
    if kind == known_kind:
        unknown -= {*known.tolist(), *also}
    if unknown:
        raise ValueError(
            f"{name} must hold only labels known from training, the {known_kind} in "
            f"{known_name}={known.tolist()}, but holds the {kind} {sorted(unknown)[:10]}"
        )
    return labels


def indices(labels: np.ndarray, classes: np.ndarray) -> NDArray[np.int64]:
    """Return the index of each label among `classes`, which must hold them all."""
    # NumPy would compare signed and unsigned integers as floats.
    index_of = {label: index for index, label in enumerate(classes.tolist())}
    return np.array([index_of[label] for label in labels.tolist()])


def check_weights(
    sample_weight: ArrayLike | None, shape: tuple[int, ...]
) -> NDArray[np.float64] | None:
    """Return checked weights of presentations, the last axis of `shape`, or None."""
    if sample_weight is None:
        return None
    weights = finite_array(sample_weight, "sample_weight", shape)
    if np.any(weights < 0):
        raise ValueError("sample_weight must be at least 0")
    check_sum(weights, "sample_weight")
    return weights


def check_sum(weights: NDArray[np.float64], name: str) -> None:
    """Raise unless the sum of each row of weights is finite and above 0."""
    with np.errstate(over="ignore"):
        total = weights.sum(axis=-1)
    if not np.all(total):
        raise ValueError(f"{name} must be above 0 for at least one presentation, got only zero weights")
    if not np.all(np.isfinite(total)):
        raise ValueError(
            f"{name} must have a finite sum, got weights up to {weights.max():g}; divide them by "
            "their mean, and adjust learning_rate instead"
        )


def check_class_weight(class_weight: Any) -> None:
    """Raise unless `class_weight` is None, "balanced" or a mapping of labels to weights."""
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        error = ValueError if isinstance(class_weight, str) else TypeError
        raise error(
            "class_weight must be None, 'balanced' or a mapping of class labels to weights, got "
            f"{class_weight!r}"
        )
    for label, weight in class_weight.items():
        real(weight, f"class_weight[{label!r}]", 0)


def weighted_by_class(
    sample_weight: NDArray[np.float64] | None,
    class_weight: str | Mapping[Any, float] | None,
    labels: NDArray[np.int64],
    classes: np.ndarray,
) -> NDArray[np.float64] | None:
    """Return the weights of presentations, multiplied by those of their classes.

    Parameters
    ----------
    sample_weight : ndarray of float, shape (n,) or (n_replicas, n), or None
    class_weight : None, "balanced" or mapping of labels to weights
        "balanced" gives all classes the same sum of weights, and keeps the total.  Classes
        that a mapping leaves out have the weight 1.
    labels : ndarray of int, shape (n,)
        Indices among `classes`.
    classes : ndarray

    Returns
    -------
    ndarray of float, or None
        Has the shape of `sample_weight` or, if that is None, (n,); None without any weights.
    """
    if class_weight is None:
        return sample_weight
    if sample_weight is None:
        sample_weight = np.ones(len(labels))
    if isinstance(class_weight, Mapping):
        if class_weight:
            check_known(list(class_weight), None, classes, "classes", name="class_weight")
        of_class = np.array([float(class_weight.get(label, 1)) for label in classes.tolist()])
    else:
        sums = np.apply_along_axis(
            lambda weights: np.bincount(labels, weights, len(classes)), -1, sample_weight
        )
        n_present = np.count_nonzero(sums, axis=-1, keepdims=True)
        of_class = sample_weight.sum(axis=-1, keepdims=True) / (n_present * np.where(sums, sums, 1))
    with np.errstate(over="ignore"):
        weights = sample_weight * of_class[..., labels]
    check_sum(weights, "class_weight (times sample_weight)")
    return weights


def class_weight_to_save(
    class_weight: str | Mapping[Any, float] | None, classes: np.ndarray
) -> str | list[float | None] | None:
    """Return `class_weight` for JSON: a mapping becomes a list of one weight, or None, per class."""
    if not isinstance(class_weight, Mapping):
        return class_weight
    if class_weight:
        check_known(list(class_weight), None, classes, "classes_", name="class_weight")
    labels = classes.tolist()
    return [float(class_weight[label]) if label in class_weight else None for label in labels]


def class_weight_from_file(saved: Any, classes: np.ndarray) -> str | dict[Any, float] | None:
    """Invert `class_weight_to_save`: return the checked `class_weight` from `saved`."""
    if isinstance(saved, list):
        labels = classes.tolist()
        if len(saved) != len(labels):
            raise ValueError(f"class_weight must hold {len(labels)} weights, got {len(saved)}")
        saved = {label: weight for label, weight in zip(labels, saved) if weight is not None}
    elif isinstance(saved, Mapping):
        raise TypeError(f"class_weight must hold one weight per class, got the mapping {saved!r}")
    check_class_weight(saved)
    return saved
