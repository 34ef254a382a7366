"""Make the MNIST subset in this folder from the four original MNIST files.

    python data/make_subset.py --source DIR_WITH_THE_FOUR_IDX_FILES [--out data]

README.md in this folder says exactly which images are chosen, and why.
"""

import argparse
import gzip
import hashlib
import struct
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
# The script also runs from a checkout without glmbrian installed.
sys.path.insert(0, str(HERE.parent))

from glmbrian.datasets import load_idx  # noqa: E402

PER_DIGIT = 1000


def choose(train_labels, test_labels):
    """Choose the images of the subset.

    Parameters
    ----------
    train_labels, test_labels : ndarray of int, shape (n,)
        The labels of the training and the test file.

    Returns
    -------
    train : ndarray of int, shape (10 * PER_DIGIT,)
        Training images, as positions in the training file. The digits alternate:
        item ``10 * k + d`` is the ``k``-th image of the digit ``d``.
    test : ndarray of int, shape (10 * PER_DIGIT,)
        Test images in the same order, as positions in the concatenation of the test
        file and the training file.
    """
    train, test = [], []
    for digit in range(10):
        in_train = np.flatnonzero(train_labels == digit)
        in_test = np.flatnonzero(test_labels == digit)
        pool = np.concatenate([in_test, len(test_labels) + in_train[PER_DIGIT:]])
        if min(len(in_train), len(pool)) < PER_DIGIT:
            raise ValueError(
                f"--source has {len(in_train)} training and {len(in_test)} test images "
                f"of the digit {digit}: too few for {PER_DIGIT} of each"
            )
        train.append(in_train[:PER_DIGIT])
        test.append(pool[:PER_DIGIT])
    return np.stack(train, axis=1).ravel(), np.stack(test, axis=1).ravel()


def load_source(source):
    """Return the arrays of the four original files in the folder `source`, by name."""
    if not source.is_dir():
        raise FileNotFoundError(f"--source '{source}' is not a folder")
    arrays = {}
    for split in ("train", "t10k"):
        for part in ("images-idx3", "labels-idx1"):
            name = f"{split}-{part}-ubyte"
            files = [source / name, source / f"{name}.gz"]
            found = [file for file in files if file.is_file()]
            if not found:
                raise FileNotFoundError(f"--source '{source}' has no file {name} or {name}.gz")
            arrays[split, part] = load_idx(found[0])
        n_images, n_labels = len(arrays[split, "images-idx3"]), len(arrays[split, part])
        if n_images != n_labels:
            raise ValueError(
                f"--source '{source}' has {n_images} images but {n_labels} labels in its {split} files"
            )
    return arrays


def write_idx(path, array):
    """Write a uint8 array as a gzip-compressed IDX file; the bytes depend on the array only."""
    header = struct.pack(f">HBB{array.ndim}I", 0, 0x08, array.ndim, *array.shape)
    # The gzip header has neither the file name nor the time of writing.
    with path.open("wb") as raw:
        with gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as stream:
            stream.write(header + array.tobytes())


def make_subset(source, out):
    """Write the subset's four files to the folder `out` and return their paths."""
    # Our training files are named like the compressed originals.
    if source.resolve() == out.resolve():
        raise ValueError(
            f"--out '{out}' must not be the same folder as --source, whose files might be overwritten"
        )
    arrays = load_source(source)
    train, test = choose(arrays["train", "labels-idx1"], arrays["t10k", "labels-idx1"])
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for part in ("images-idx3", "labels-idx1"):
        ours = {
            "train": arrays["train", part][train],
            "test": np.concatenate([arrays["t10k", part], arrays["train", part]])[test],
        }
        for split, array in ours.items():
            path = out / f"{split}-{part}-ubyte.gz"
            write_idx(path, array)
            written.append(path)
    return written


def main(argv=None):
    parser = argparse.ArgumentParser(
        description="Make glmbrian's MNIST subset from the four original MNIST files."
    )
    parser.add_argument(
        "--source",
        type=Path,
        required=True,
        help="folder with the original files train-images-idx3-ubyte, "
        "train-labels-idx1-ubyte, t10k-images-idx3-ubyte and "
        "t10k-labels-idx1-ubyte, each plain or .gz",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=HERE,
        help="folder to write to (default: the folder of this script)",
    )
    args = parser.parse_args(argv)
    try:
        written = make_subset(args.source, args.out)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for path in written:
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path)


if __name__ == "__main__":
    main()
