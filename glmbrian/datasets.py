"""Reading IDX files, and the MNIST digits that ship with the package.

`load_mnist` loads training and test images of chosen digits; `load_idx` reads any
IDX file, the format in which MNIST is published.
"""

import contextlib
import gzip
import io
import math
import operator
import shutil
import zlib
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .support.storage import as_path, reason
from .support.validation import flag

__all__ = ["MNIST", "load_idx", "load_mnist"]

# The element types of the IDX format, which is big-endian.
_IDX_DTYPES: dict[int, np.dtype] = {
    0x08: np.dtype("u1"),
    0x09: np.dtype("i1"),
    0x0B: np.dtype(">i2"),
    0x0C: np.dtype(">i4"),
    0x0D: np.dtype(">f4"),
    0x0E: np.dtype(">f8"),
}
# The format allows 255 dimensions, NumPy 1 allows 32.
_MAX_NDIM = 32
_IDX_MAGIC = (
    "an unpacked IDX file begins with the bytes 00 00, then an element type ("
    + ", ".join(f"{code:02x} {dtype.name}" for code, dtype in _IDX_DTYPES.items())
    + f"), then the number of dimensions (01 to {_MAX_NDIM:02x})"
)

_SIDE = 28  # MNIST images are 28 x 28 pixels
# Names of the test files: in our subset, and in the original.
_TEST_NAMES = ("test", "t10k")


class MNIST(NamedTuple):
    """Training and test images of handwritten digits, as `load_mnist` returns them.

    Attributes
    ----------
    X_train : ndarray of uint8, shape (n_train * n_classes, 784)
        Training images, one per row: the 28 x 28 pixels row by row, from 0 for
        background to 255 for ink.
    y_train : ndarray of int64, shape (n_train * n_classes,)
        The digit in each training image.
    X_test : ndarray of uint8, shape (n_test * n_classes, 784)
        Test images, laid out like `X_train`.
    y_test : ndarray of int64, shape (n_test * n_classes,)
        The digit in each test image.

    Examples
    --------
    >>> from glmbrian.datasets import load_mnist
    >>> digits = load_mnist(classes=(5, 7), n_train=2, n_test=1)
    >>> digits.y_train, digits.y_test
    (array([5, 7, 5, 7]), array([5, 7]))
    >>> digits.X_test.reshape(-1, 28, 28).shape
    (2, 28, 28)
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def load_idx(path: str | PathLike) -> np.ndarray:
    """Read an IDX file into an array.

    Parameters
    ----------
    path : str or os.PathLike
        The file, plain or gzip-compressed. Its content decides which, not its
        name.

    Returns
    -------
    ndarray
        A new writable C-contiguous array with the shape and the element type
        (uint8, int8, int16, int32, float32 or float64) given in the file's header,
        in native byte order.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If `path` is a folder, is not an IDX file, is damaged gzip data, has a
        dimension of size 0 or more than 32 dimensions, or holds fewer or more
        bytes than its header calls for.
    TypeError
        If `path` is not a path.

    Notes
    -----
    If the header claims more data than the file has, no more memory is used than
    for the data in the file.

    Examples
    --------
    A file of two 16-bit numbers, 1 and -1:

    >>> import os, tempfile
    >>> from glmbrian.datasets import load_idx
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "numbers-idx1-short")
    ...     with open(path, "wb") as file:
    ...         _ = file.write(bytes.fromhex("00000b01 00000002 0001ffff"))
    ...     load_idx(path).tolist()
    [1, -1]
    """
    return _read_idx(as_path(path, "path"))


def load_mnist(
    classes: Iterable[int] | str | None = None,
    n_train: int | None = None,
    n_test: int | None = None,
    data_dir: str | PathLike | None = None,
    *,
    full: bool = False,
    directory: str | PathLike | None = None,
) -> MNIST:
    """Load training and test images of some of the MNIST digits.

    Parameters
    ----------
    classes : iterable of int, or "all", optional
        The digits to load: distinct integers from 0 to 9, by default (5, 7), or all of them
        with `full`. The images alternate in this order, except with `full`. "all" means
        ``range(10)``.
    n_train, n_test : int, optional
        How many training and test images of each digit to load: the first ones in
        the order of the files, by default 1000. 0 to 1000 for the data that ships with
        glmbrian; 0 to the number available for `data_dir`.
    data_dir : str or os.PathLike, optional
        A folder to read instead of the data that ships with glmbrian. It must hold
        four IDX files, each either gzip-compressed with a name ending in ``.gz``, or
        plain (if there are both, the plain one is read):
        ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, and
        ``t10k-images-idx3-ubyte`` and ``t10k-labels-idx1-ubyte`` as in the original
        MNIST, or the latter two with ``test`` in place of ``t10k``.
        Names with a dot, such as ``train-images.idx3-ubyte``, work too, and so do the files
        of data sets in the format of MNIST, such as Fashion-MNIST.
    full : bool
        Load all images of the `classes` in the order of the files, instead of equally many
        of each class in turn. For all classes of the original MNIST, these are 60,000
        training and 10,000 test images.
    directory : str or os.PathLike, optional
        Another name for `data_dir`.

    Returns
    -------
    MNIST
        The named tuple ``(X_train, y_train, X_test, y_test)``. Each ``X`` is a
        C-contiguous uint8 array of shape (n * n_classes, 784), and each ``y``
        the int64 array of shape (n * n_classes,) of the digits shown. The
        classes alternate (5, 7, 5, 7, ...), so the first ``k * n_classes`` images
        have ``k`` of each class. With `full`, the images are in the order of the files.

    Raises
    ------
    ValueError
        If `classes` is empty, repeats a digit or has one outside 0 to 9, if
        `n_train` or `n_test` is negative or more than there are images of a
        digit, or if the files of `data_dir` are damaged or do not fit together.
    TypeError
        If an argument is of the wrong type, or two arguments exclude each other.
    FileNotFoundError
        If `data_dir` or one of its files is missing.

    Examples
    --------
    >>> from glmbrian.datasets import load_mnist
    >>> data = load_mnist(classes=(5, 7), n_train=3, n_test=2)
    >>> data.X_train.shape, data.X_test.shape
    ((6, 784), (4, 784))
    >>> data.y_train.tolist()
    [5, 7, 5, 7, 5, 7]

    All images, as four arrays:

    >>> X_train, y_train, X_test, y_test = load_mnist("all")
    >>> X_train.shape, X_test.shape
    ((10000, 784), (10000, 784))
    """
    full = flag(full, "full")
    argument = "data_dir" if directory is None else "directory"
    if directory is not None:
        if data_dir is not None:
            raise TypeError("directory and data_dir are two names for one argument; pass only one")
        data_dir = directory
    if full and not (n_train is None and n_test is None):
        raise TypeError("n_train and n_test must be left out with full=True, which loads all images")
    if full and data_dir is None:
        raise TypeError(
            "full=True needs directory, a folder with the four MNIST files: those that ship with "
            "glmbrian hold only 1000 images of each digit"
        )
    if classes is None:
        classes = "all" if full else (5, 7)
    classes = _check_classes(classes)
    counts = {
        name: None if full else _check_count(1000 if n is None else n, name)
        for name, n in {"n_train": n_train, "n_test": n_test}.items()
    }
    folder = _shipped_data() if data_dir is None else as_path(data_dir, argument)
    if not folder.is_dir():
        raise FileNotFoundError(f"{argument} '{folder}' is not a folder")
    test_name = _find_test_name(folder)
    return MNIST(
        *_select(folder, "train", classes, counts["n_train"], "n_train"),
        *_select(folder, test_name, classes, counts["n_test"], "n_test"),
    )


def _read_idx(file):
    """Read an IDX file from a Path, or from inside an installed package; see `load_idx`."""
    name = f"path '{file}'"
    try:
        raw = file.open("rb")
    except FileNotFoundError:
        raise FileNotFoundError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise ValueError(f"{name}: it is a folder, not an IDX file") from None
    except OSError as error:
        raise type(error)(f"{name}: cannot be read: {reason(error)}") from None
    with raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not is_gzip:
            return _parse_idx(raw, name, "bytes")
        try:
            return _parse_idx(gzip.GzipFile(fileobj=raw), name, "bytes once unpacked")
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ValueError(
                f"{name} is damaged or incomplete gzip data ({error}); "
                "an IDX file may be plain or whole gzip data"
            ) from None


def _parse_idx(stream, name, unit):
    magic = stream.read(4)
    if (
        len(magic) < 4
        or magic[:2] != b"\0\0"
        or magic[2] not in _IDX_DTYPES
        or not 1 <= magic[3] <= _MAX_NDIM
    ):
        begins = f"begins with the bytes {magic.hex(' ')}" if magic else "is empty"
        raise ValueError(f"{name} is not an IDX file: it {begins}; {_IDX_MAGIC}")
    dtype, ndim = _IDX_DTYPES[magic[2]], magic[3]

    start = 4 + 4 * ndim
    sizes = stream.read(4 * ndim)
    if len(sizes) < 4 * ndim:
        raise ValueError(
            f"{name} is cut short: a header of {ndim} dimension(s) has "
            f"{start} bytes, but the file has {4 + len(sizes)} {unit}"
        )
    shape = tuple(np.frombuffer(sizes, ">u4").tolist())
    header = f"{dtype.name}, {' x '.join(map(str, shape))}"
    if 0 in shape:
        raise ValueError(f"{name} has a dimension of size 0 ({header}); each must be at least 1")

    # Read in pieces, because a single read would first allocate all that the header
    # claims; and to the end of the file, which also checks gzip's checksum.
    data = io.BytesIO()
    shutil.copyfileobj(stream, data)
    n_bytes, n_found = dtype.itemsize * math.prod(shape), data.tell()
    if n_found != n_bytes:
        fault = "is cut short" if n_found < n_bytes else "goes on after its data"
        raise ValueError(
            f"{name} {fault}: its header ({header}) calls for {start + n_bytes} "
            f"bytes in all, but the file has {start + n_found} {unit}"
        )
    native = dtype.newbyteorder("=")
    return np.frombuffer(data.getbuffer(), dtype).astype(native, copy=False).reshape(shape)


def _check_classes(classes):
    allowed = 'distinct integers from 0 to 9, such as (5, 7), or "all"'
    if isinstance(classes, (str, bytes)):
        if classes == "all":
            return tuple(range(10))
        raise ValueError(f"classes must be {allowed}, not {classes!r}")
    try:
        items = iter(classes)
    except TypeError:
        raise TypeError(f"classes must be {allowed}, not {classes!r}") from None
    digits: list[int] = []
    for item in items:
        digit = _as_int(item, f"classes must be {allowed}, but it has")
        if not 0 <= digit <= 9:
            raise ValueError(f"classes must be {allowed}, but it has {digit}")
        if digit in digits:
            raise ValueError(f"classes must be {allowed}, but it has {digit} twice")
        digits.append(digit)
    if not digits:
        raise ValueError(f"classes must be {allowed}, but it is empty")
    return tuple(digits)


def _check_count(value, name):
    allowed = f"{name} must be an integer, 0 or more, not"
    count = _as_int(value, allowed)
    if count < 0:
        raise ValueError(f"{allowed} {count}")
    return count


def _as_int(value, wrong):
    """Return a Python or NumPy integer as an int, or raise an error that begins with `wrong`."""
    # NumPy 1 accepts its own booleans as integers.
    if not isinstance(value, (bool, np.bool_)):
        with contextlib.suppress(TypeError):
            return operator.index(value)
    raise TypeError(f"{wrong} {value!r} ({type(value).__name__})")


def _shipped_data():
    # Imported here because it takes as long as the rest of the module.
    from importlib import resources

    # An installed package has the data as glmbrian.data. A checkout has it beside the
    # package; this is tried last, because a folder "data" beside an installed package
    # belongs to something else.
    try:
        folder = resources.files("glmbrian.data")
    except ModuleNotFoundError:
        folder = Path(__file__).resolve().parent.parent / "data"
    if not (folder / "train-images-idx3-ubyte.gz").is_file():
        raise FileNotFoundError(
            f"the MNIST data that ships with glmbrian is not in '{folder}': "
            "reinstall glmbrian, or pass a folder with the MNIST files as data_dir"
        )
    return folder


def _find(folder, stem):
    """Return the file with this name in the folder, plain or .gz, or None.

    Some programs unpack `train-images-idx3-ubyte.gz` to `train-images.idx3-ubyte`.
    """
    dotted = stem.replace("-idx", ".idx")
    for name in (stem, stem + ".gz", dotted, dotted + ".gz"):
        if (folder / name).is_file():
            return folder / name
    return None


def _find_test_name(folder):
    found = [name for name in _TEST_NAMES if _find(folder, f"{name}-images-idx3-ubyte")]
    # Both would mean that two data sets are mixed, where training images of one may be
    # test images of the other.
    if len(found) == 2:
        raise ValueError(
            f"data_dir '{folder}' has both test-images-idx3-ubyte and "
            "t10k-images-idx3-ubyte: keep the files of one data set only"
        )
    if not found:
        raise FileNotFoundError(
            f"data_dir '{folder}' has no test images: it must have a file "
            "t10k-images-idx3-ubyte or test-images-idx3-ubyte, plain or .gz (or "
            "t10k-images.idx3-ubyte, with a dot)"
        )
    return found[0]


def _select(folder, split, classes, n, argument):
    """Return the first `n` images of each class and their labels, the classes alternating.

    Without `n`, all images of the classes, in the order of the file.
    """
    images, labels, images_file = read_split(folder, split)
    if n is None:
        missing = sorted(set(classes) - set(labels.tolist()))
        if missing:
            raise ValueError(f"classes: '{images_file}' has no images of the digit {missing[0]}")
        chosen = np.flatnonzero(np.isin(labels, classes))
    else:
        indices = [np.flatnonzero(labels == digit) for digit in classes]
        for digit, found in zip(classes, indices):
            if n > len(found):
                raise ValueError(
                    f"{argument} must be 0 to {min(map(len, indices))} for these classes, "
                    f"not {n}: '{images_file}' has {len(found)} images of the digit {digit}"
                )
        chosen = np.stack([found[:n] for found in indices], axis=1).ravel()
    return images.reshape(len(images), _SIDE * _SIDE)[chosen], labels[chosen].astype(np.int64)


def read_split(folder: Any, split: str) -> tuple[np.ndarray, np.ndarray, Any]:
    """Return the checked images and labels of a split ("train", ...), and the file of images."""
    images, images_file = _read_part(folder, f"{split}-images-idx3-ubyte", "images", (_SIDE, _SIDE))
    labels, labels_file = _read_part(folder, f"{split}-labels-idx1-ubyte", "labels", ())
    if len(images) != len(labels):
        raise ValueError(
            f"'{images_file}' has {len(images)} images, but '{labels_file}' has "
            f"{len(labels)} labels: there must be one label for each image"
        )
    if labels.max() > 9:
        first = int(np.argmax(labels > 9))
        raise ValueError(
            f"'{labels_file}' must hold digits from 0 to 9, but its label {first} "
            f"(counted from 0) is {labels[first]}"
        )
    return images, labels, images_file


def _read_part(folder, stem, what, shape):
    """Return an array of uint8 of shape ``(n, *shape)``, and its file."""
    file = _find(folder, stem)
    if file is None:
        raise FileNotFoundError(
            f"data_dir '{folder}' must have a file {stem} or {stem}.gz (or "
            f"{stem.replace('-idx', '.idx')}, with a dot)"
        )
    array = _read_idx(file)
    if array.dtype != np.uint8 or array.shape[1:] != shape:
        wanted = str(("n", *shape)).replace("'", "")
        raise ValueError(
            f"'{file}' does not hold MNIST {what}: it must be uint8 of shape {wanted}, "
            f"but is {array.dtype} of shape {array.shape}"
        )
    return array, file
