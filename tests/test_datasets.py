"""Tests of glmbrian.datasets, and of the data that it loads."""

import doctest
import gzip
import hashlib
import importlib.util
import itertools
import os
import re
import shutil
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import glmbrian.datasets
from glmbrian.datasets import MNIST, load_idx, load_mnist

DATA = Path(__file__).resolve().parent.parent / "data"
CODES = {
    "uint8": 0x08,
    "int8": 0x09,
    "int16": 0x0B,
    "int32": 0x0C,
    "float32": 0x0D,
    "float64": 0x0E,
}
# The file is written anew for each example, so sharing tmp_path is fine.
same_folder = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def idx_bytes(array):
    header = struct.pack(f">HBB{array.ndim}I", 0, CODES[array.dtype.name], array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def write(path, content):
    """Write bytes, or an array as IDX, packed if the name ends in .gz."""
    if isinstance(content, np.ndarray):
        content = idx_bytes(content)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def fake_images(labels, first=0):
    """Images that show their position in the file, plus `first`."""
    images = np.zeros((len(labels), 28, 28), np.uint8)
    number = first + np.arange(len(labels))
    images[:, 0, 0], images[:, 0, 1] = number // 256, number % 256
    return images


def fake_numbers(X):
    return (X[..., 0] * 256 + X[..., 1]).tolist()


@pytest.fixture
def fake_mnist(tmp_path):
    """A folder like the original MNIST's, with 5 training and 2 test images a digit."""
    folder = tmp_path / "mnist"
    folder.mkdir()
    for split, n, first in [("train", 5, 0), ("t10k", 2, 1000)]:
        # Digits in descending order, so that neither file is in the order asked for.
        labels = np.repeat(np.arange(9, -1, -1, dtype=np.uint8), n)
        write(folder / f"{split}-images-idx3-ubyte", fake_images(labels, first))
        write(folder / f"{split}-labels-idx1-ubyte", labels)
    return folder


@pytest.fixture(scope="module")
def shipped():
    return load_mnist("all")


# load_idx: what it reads


@same_folder
@given(
    array=st.sampled_from(sorted(CODES)).flatmap(
        lambda dtype: hnp.arrays(
            dtype, hnp.array_shapes(min_dims=1, max_dims=6, min_side=1, max_side=4)
        )
    ),
    packed=st.booleans(),
)
def test_idx_round_trip(tmp_path, array, packed):
    content = idx_bytes(array)
    # Names that say the opposite of what the files are.
    path = tmp_path / ("packed" if packed else "plain.gz")
    path.write_bytes(gzip.compress(content) if packed else content)
    loaded = load_idx(path)
    assert loaded.dtype == array.dtype and loaded.dtype.isnative
    assert loaded.shape == array.shape
    assert loaded.tobytes() == array.tobytes()
    assert loaded.flags.writeable and loaded.flags.c_contiguous


@pytest.mark.parametrize("dtype", CODES)
def test_idx_extreme_values_and_str_path(tmp_path, dtype):
    info = (np.iinfo if np.dtype(dtype).kind in "iu" else np.finfo)(dtype)
    array = np.array([info.min, info.max, 1], dtype)
    loaded = load_idx(str(write(tmp_path / "x", array)))
    np.testing.assert_array_equal(loaded, array)
    loaded[:] = 0
    np.testing.assert_array_equal(load_idx(tmp_path / "x"), array)


def test_idx_larger_than_a_chunk(tmp_path):
    array = np.random.default_rng(0).integers(0, 256, (3, 1 << 20), np.uint8)
    for name in ("x", "x.gz"):
        np.testing.assert_array_equal(load_idx(write(tmp_path / name, array)), array)


def test_idx_most_dimensions(tmp_path):
    array = np.arange(3, dtype=np.uint8).reshape((1,) * 31 + (3,))
    assert load_idx(write(tmp_path / "x", array)).shape == array.shape


def test_idx_gzip_in_two_members(tmp_path):
    content = idx_bytes(np.arange(9, dtype=np.uint8))
    path = tmp_path / "x"
    path.write_bytes(gzip.compress(content[:10]) + gzip.compress(content[10:]))
    assert load_idx(path).tolist() == list(range(9))


# load_idx: what it refuses


def refused(path):
    with pytest.raises(ValueError) as caught:
        load_idx(path)
    message = str(caught.value)
    assert f"path '{path}'" in message
    return message


@pytest.mark.parametrize("name", ["x", "x.gz"])
@pytest.mark.parametrize(
    "content, begins",
    [
        (b"", "is empty"),
        (b"\0\0\x08", "00 00 08"),
        (b"\x89PNG1234", "89 50 4e 47"),
        (b"\0\x01\x08\x01\0\0\0\x01a", "00 01 08 01"),
        (b"\0\0\x0a\x01\0\0\0\x01a", "00 00 0a 01"),
        (b"\0\0\x08\0", "00 00 08 00"),
        (b"\0\0\x08\x21" + b"\0\0\0\x01" * 33 + b"a", "00 00 08 21"),
    ],
)
def test_idx_refuses_other_files(tmp_path, name, content, begins):
    message = refused(write(tmp_path / name, content))
    assert "is not an IDX file" in message and begins in message
    assert "0e float64" in message and "(01 to 20)" in message


@pytest.mark.parametrize("name, unit", [("x", "bytes"), ("x.gz", "bytes once unpacked")])
def test_idx_refuses_wrong_length(tmp_path, name, unit):
    content = idx_bytes(np.zeros((5, 3), np.int16))
    header = r"its header \(int16, 5 x 3\) calls for 42 bytes in all"
    for wrong, fault, found in [
        (content[:-1], "is cut short", 41),
        (content[:12], "is cut short", 12),
        (content + b"abc", "goes on after its data", 45),
    ]:
        message = refused(write(tmp_path / name, wrong))
        assert re.search(f"{fault}: {header}, but the file has {found} {unit}", message)
    message = refused(write(tmp_path / name, content[:7]))
    assert f"2 dimension(s) has 12 bytes, but the file has 7 {unit}" in message


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2**32 - 1, 2**32 - 1)])
def test_idx_refuses_size_zero(tmp_path, shape):
    header = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)
    message = refused(write(tmp_path / "x", header))
    assert "dimension of size 0" in message and " x ".join(map(str, shape)) in message


@pytest.mark.parametrize("name", ["x", "x.gz"])
@pytest.mark.parametrize("shape", [(2**32 - 1,), (2**32 - 1,) * 32])
def test_idx_does_not_allocate_what_the_header_claims(tmp_path, name, shape):
    header = struct.pack(f">HBB{len(shape)}I", 0, 0x0E, len(shape), *shape)
    path = write(tmp_path / name, header + b"abc")
    tracemalloc.start()
    try:
        message = refused(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "is cut short" in message and f"has {len(header) + 3} bytes" in message
    assert peak < 8 << 20


def test_idx_refuses_damaged_gzip(tmp_path):
    array = np.random.default_rng(0).integers(0, 256, (50, 50), np.uint8)
    good = gzip.compress(idx_bytes(array))
    checksum_off = bytearray(good)
    checksum_off[-8] ^= 1
    data_off = bytearray(good)
    data_off[12:40] = b"\xff" * 28
    path = tmp_path / "x.gz"
    for damaged in (
        good[:2],
        good[:11],
        good[: len(good) // 2],
        good[:-1],
        checksum_off,
        data_off,
        good + b"garbage",
        b"\x1f\x8b\xff" + good[3:],
    ):
        path.write_bytes(damaged)
        assert "is damaged or incomplete gzip data (" in refused(path)


@same_folder
@given(
    start=st.sampled_from([b"", b"\x1f\x8b", b"\x1f\x8b\x08", b"\0\0\x08\x01\0\0\0"]),
    rest=st.binary(max_size=40),
)
def test_idx_any_bytes_load_or_give_value_error(tmp_path, start, rest):
    path = tmp_path / "x"
    path.write_bytes(start + rest)
    try:
        assert load_idx(path).nbytes < len(start + rest)
    except ValueError as error:
        assert f"path '{path}'" in str(error)


def test_idx_refuses_folder_missing_file_and_non_path(tmp_path):
    assert "is a folder" in refused(tmp_path)
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError, match=re.escape(f"'{missing}': there is no")):
        load_idx(missing)
    for wrong in (None, 3, b"x"):
        with pytest.raises(TypeError, match="path must be a path, a string or pathlib.Path"):
            load_idx(wrong)


# load_mnist: the data that ships


def test_shipped_counts(shipped):
    assert isinstance(shipped, MNIST)
    for X, y in [shipped[:2], shipped[2:]]:
        assert X.shape == (10000, 784) and X.dtype == np.uint8
        assert X.flags.c_contiguous and X.flags.writeable
        assert y.shape == (10000,) and y.dtype == np.int64
        assert np.bincount(y).tolist() == [1000] * 10


def test_shipped_images_are_all_different(shipped):
    train = {image.tobytes() for image in shipped.X_train}
    test = {image.tobytes() for image in shipped.X_test}
    assert len(train) == len(test) == 10000
    assert not train & test


def test_shipped_images_are_digits_the_right_way_up(shipped):
    # A zero is hollow in the middle and a one is not; ink is high.
    zero, one, seven = (
        shipped.X_train[shipped.y_train == digit].mean(axis=0).reshape(28, 28) for digit in (0, 1, 7)
    )
    assert zero[12:16, 12:16].mean() < 50 < one[12:16, 12:16].mean()
    # A seven has its bar on top.
    assert seven[6:11].sum() > 1.3 * seven[17:22].sum()
    assert shipped.X_train.max() == 255 and not shipped.X_train[:, 0].any()


def test_checksums_are_those_in_readme():
    rows = re.findall(
        r"^\| `(\S+)` \| (\d+) \| `([0-9a-f]{64})` \|$",
        (DATA / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    ours = {name: (int(size), digest) for name, size, digest in rows[4:]}
    assert sorted(n for n in ours if n.endswith(".gz")) == sorted(
        file.name for file in DATA.glob("*ubyte*")
    )
    for file in DATA.glob("*.gz"):
        packed = file.read_bytes()
        unpacked = gzip.decompress(packed)
        for name, content in [(file.name, packed), (file.stem, unpacked)]:
            assert ours[name] == (len(content), hashlib.sha256(content).hexdigest())


def test_default_is_fives_and_sevens(shipped):
    default = load_mnist()
    for (X, y), (all_X, all_y) in [
        (default[:2], shipped[:2]),
        (default[2:], shipped[2:]),
    ]:
        assert y.tolist() == [5, 7] * 1000
        for digit in (5, 7):
            np.testing.assert_array_equal(X[y == digit], all_X[all_y == digit])


@settings(deadline=None, max_examples=10)
@given(
    classes=st.lists(st.integers(0, 9), min_size=1, unique=True),
    n_train=st.integers(0, 1000),
    n_test=st.integers(0, 1000),
)
def test_prefixes_are_balanced_and_in_file_order(shipped, classes, n_train, n_test):
    loaded = load_mnist(classes, n_train, n_test)
    for X, y, n, all_X, all_y in [
        (loaded.X_train, loaded.y_train, n_train, shipped.X_train, shipped.y_train),
        (loaded.X_test, loaded.y_test, n_test, shipped.X_test, shipped.y_test),
    ]:
        assert X.shape == (n * len(classes), 784) and X.dtype == np.uint8
        assert X.flags.c_contiguous
        assert y.dtype == np.int64 and y.tolist() == classes * n
        for digit in classes:
            np.testing.assert_array_equal(X[y == digit], all_X[all_y == digit][:n])


@pytest.mark.parametrize(
    "classes",
    [[3, 1], np.array([3, 1]), (n for n in (3, 1)), {3: "", 1: ""}, range(3, 0, -2)],
)
def test_classes_any_iterable(classes):
    loaded = load_mnist(classes, np.int32(2), 0)
    assert loaded.y_train.tolist() == [3, 1, 3, 1]
    assert loaded.X_test.shape == (0, 784) and loaded.X_test.dtype == np.uint8
    assert loaded.y_test.shape == (0,) and loaded.y_test.dtype == np.int64


# load_mnist: wrong arguments


@pytest.mark.parametrize(
    "classes, error, found",
    [
        ((), ValueError, "empty"),
        ((5, 5), ValueError, "5 twice"),
        ((5, 10), ValueError, "has 10"),
        ((-1,), ValueError, "has -1"),
        (itertools.count(), ValueError, "has 10"),
        ("57", ValueError, "'57'"),
        (b"\5", ValueError, "b'"),
        ((5, 7.0), TypeError, r"7\.0 \(float\)"),
        ((True, 7), TypeError, r"True \(bool\)"),
        ((np.True_, 7), TypeError, "True"),
        (("5", "7"), TypeError, r"'5' \(str\)"),
        ([[5, 7]], TypeError, "list"),
        (5, TypeError, "not 5"),
    ],
)
def test_wrong_classes(classes, error, found):
    allowed = r'^classes must be distinct integers from 0 to 9.*or "all".*'
    with pytest.raises(error, match=allowed + found):
        load_mnist(classes)


@pytest.mark.parametrize("name", ["n_train", "n_test"])
def test_wrong_counts(name):
    for wrong in (1.0, True, np.True_, "3", [3]):
        with pytest.raises(TypeError, match=f"^{name} must be an integer, 0 or more"):
            load_mnist(**{name: wrong})
    with pytest.raises(ValueError, match=f"^{name} must be an integer.*not -1"):
        load_mnist(**{name: -1})
    for wrong in (1001, 10**30):
        with pytest.raises(ValueError, match=f"^{name} must be 0 to 1000 .* not {wrong}: .* has 1000 "):
            load_mnist(**{name: wrong})


# load_mnist: data_dir


def rename_packed(file):
    write(file.with_name(file.name + ".gz"), file.read_bytes())
    file.unlink()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("test_name", ["t10k", "test"])
def test_data_dir(fake_mnist, packed, test_name):
    for file in list(fake_mnist.iterdir()):
        file = file.rename(fake_mnist / file.name.replace("t10k", test_name))
        if packed:
            rename_packed(file)
    loaded = load_mnist((7, 9), 4, 1, data_dir=str(fake_mnist))
    assert loaded.y_train.tolist() == [7, 9] * 4
    assert fake_numbers(loaded.X_train.astype(int)) == [10, 0, 11, 1, 12, 2, 13, 3]
    assert fake_numbers(loaded.X_test.astype(int)) == [1004, 1000]


def test_data_dir_may_have_more_than_1000(tmp_path):
    labels = np.resize(np.uint8([5, 7]), 2402)
    for split in ("train", "test"):
        write(tmp_path / f"{split}-images-idx3-ubyte", fake_images(labels))
        write(tmp_path / f"{split}-labels-idx1-ubyte", labels)
    assert load_mnist(n_train=1201, n_test=1200, data_dir=tmp_path).y_train.size == 2402


def test_data_dir_with_too_few(fake_mnist):
    labels = np.uint8([5] * 8 + [7] * 12)
    write(fake_mnist / "t10k-labels-idx1-ubyte", labels)
    with pytest.raises(ValueError) as caught:
        load_mnist((7, 5), 3, 10, data_dir=fake_mnist)
    assert str(caught.value) == (
        "n_test must be 0 to 8 for these classes, not 10: "
        f"'{fake_mnist / 't10k-images-idx3-ubyte'}' has 8 images of the digit 5"
    )
    with pytest.raises(ValueError, match="n_test must be 0 to 0 .* 0 images .* 1$"):
        load_mnist((1,), 3, 1, data_dir=fake_mnist)


@pytest.mark.parametrize("stem", ["train-labels", "t10k-labels", "train-images"])
def test_data_dir_missing_file(fake_mnist, stem):
    (file,) = fake_mnist.glob(stem + "*")
    file.unlink()
    with pytest.raises(FileNotFoundError, match=f"data_dir '.*' .*{file.name} or "):
        load_mnist(n_train=1, n_test=1, data_dir=fake_mnist)


def test_data_dir_wrong_folder(fake_mnist):
    with pytest.raises(TypeError, match="data_dir must be a path"):
        load_mnist(data_dir=3)
    for wrong in ("nowhere", "train-images-idx3-ubyte"):
        with pytest.raises(FileNotFoundError, match="data_dir '.*' is not a folder"):
            load_mnist(data_dir=fake_mnist / wrong)
    with pytest.raises(FileNotFoundError, match="data_dir '.*' has no test images"):
        load_mnist(data_dir=fake_mnist.parent)
    shutil.copy(DATA / "test-images-idx3-ubyte.gz", fake_mnist)
    with pytest.raises(ValueError, match="has both .* of one data set only"):
        load_mnist(data_dir=fake_mnist)


@pytest.mark.parametrize("split", ["train", "t10k"])
def test_data_dir_mislabelled(fake_mnist, split):
    def check(message, *numbers):
        with pytest.raises(ValueError, match=message) as caught:
            load_mnist(n_train=1, n_test=1, data_dir=fake_mnist)
        for expected in (split, *numbers):
            assert expected in str(caught.value)

    images_file = fake_mnist / f"{split}-images-idx3-ubyte"
    labels_file = fake_mnist / f"{split}-labels-idx1-ubyte"
    images, labels = load_idx(images_file), load_idx(labels_file)

    write(labels_file, labels[:-1])
    n = len(images)
    check("one label for each image", f"{n} images", f"{n - 1} labels")
    write(labels_file, images)
    check("does not hold MNIST labels", f"{images.shape}")
    write(labels_file, labels.astype(np.int16))
    check("does not hold MNIST labels", "int16")
    wrong = labels.copy()
    wrong[3] = 10
    write(labels_file, wrong)
    check("must hold digits from 0 to 9", "label 3 ", "is 10")

    write(labels_file, labels)
    write(images_file, labels)
    check("does not hold MNIST images", f"{labels.shape}")
    write(images_file, images[:, :, :27])
    check("does not hold MNIST images", "28, 28", "28, 27")
    write(images_file, images.astype(np.float32))
    check("does not hold MNIST images", "float32")
    write(images_file, idx_bytes(images)[:-1])
    check("is cut short", f"{16 + images.size} bytes")


# Where the shipped data is looked for


LOAD = "import glmbrian.datasets as d; print(len(d.load_mnist(n_train=7).y_train))"


def run_load(search_path):
    """Run LOAD in a new Python that finds glmbrian in `search_path`."""
    return subprocess.run(
        [sys.executable, "-c", LOAD],
        env={**os.environ, "PYTHONPATH": str(search_path)},
        cwd=search_path if search_path.is_dir() else search_path.parent,
        capture_output=True,
        text=True,
    )


def install(root, data):
    """Lay out the package in `root` with its data in `data`, which may be None."""
    (root / "glmbrian").mkdir()
    (root / "glmbrian" / "__init__.py").touch()
    package = Path(glmbrian.datasets.__file__).parent
    shutil.copy(package / "datasets.py", root / "glmbrian")
    shutil.copytree(package / "support", root / "glmbrian" / "support")
    if data is not None:
        shutil.copytree(DATA, root / data)


@pytest.mark.parametrize("data", ["data", "glmbrian/data"])
def test_shipped_data_of_checkout_and_of_installed_package(tmp_path, data):
    install(tmp_path, data)
    done = run_load(tmp_path)
    assert done.stdout.strip() == "14", done.stderr


def test_shipped_data_of_zipped_package(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    install(root, "glmbrian/data")
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for member in root.rglob("*"):
            file.write(member, member.relative_to(root))
    done = run_load(archive)
    assert done.stdout.strip() == "14", done.stderr


def test_shipped_data_missing(tmp_path):
    install(tmp_path, None)
    last = run_load(tmp_path).stderr.strip().splitlines()[-1]
    assert last.startswith("FileNotFoundError: the MNIST data that ships with glmbrian")
    assert "data_dir" in last


# All images of a folder


def test_full_is_all_images_in_the_order_of_the_files(fake_mnist):
    labels = np.repeat(np.arange(9, -1, -1), 5)
    full = load_mnist(full=True, directory=fake_mnist)
    np.testing.assert_array_equal(full.y_train, labels)
    np.testing.assert_array_equal(
        full.X_train.reshape(-1, 28, 28), fake_images(labels.astype(np.uint8), 0)
    )
    assert full.X_test.shape == (20, 784) and full.y_train.dtype == np.int64
    some = load_mnist([3, 8], full=True, data_dir=fake_mnist)
    np.testing.assert_array_equal(some.X_train, full.X_train[np.isin(labels, [3, 8])])
    assert some.y_test.tolist() == [8, 8, 3, 3]


def test_full_without_images_of_a_class(fake_mnist):
    labels = np.full(50, 5, dtype=np.uint8)
    write(fake_mnist / "train-labels-idx1-ubyte", labels)
    with pytest.raises(ValueError, match="has no images of the digit 7"):
        load_mnist((5, 7), full=True, directory=fake_mnist)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (dict(full=True), "full=True needs directory"),
        (dict(full=True, directory=".", n_train=3), "n_train and n_test must be left out"),
        (dict(directory=3), "directory must be a path"),
        (dict(full="yes", directory="."), "full must be True or False"),
        (dict(directory=".", data_dir="."), "directory and data_dir are two names for one argument"),
    ],
)
def test_arguments_of_full(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        load_mnist(**arguments)


# make_subset.py


@pytest.fixture
def make_subset(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))  # the script adds to it
    script = DATA / "make_subset.py"
    spec = importlib.util.spec_from_file_location("make_subset", script)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PER_DIGIT", 2)
    return module


def test_make_subset(make_subset, fake_mnist, tmp_path, capsys):
    # Take away one test eight; it is made up for by the third training eight.
    labels = np.delete(load_idx(fake_mnist / "t10k-labels-idx1-ubyte"), 3)
    images = np.delete(load_idx(fake_mnist / "t10k-images-idx3-ubyte"), 3, axis=0)
    write(fake_mnist / "t10k-labels-idx1-ubyte", labels)
    write(fake_mnist / "t10k-images-idx3-ubyte", images)
    rename_packed(fake_mnist / "train-images-idx3-ubyte")

    outs = [tmp_path / "one", tmp_path / "two"]
    for out in outs:
        make_subset.main(["--source", str(fake_mnist), "--out", str(out)])
        printed = capsys.readouterr().out
        for file in DATA.glob("*.gz"):
            made = out / file.name
            assert hashlib.sha256(made.read_bytes()).hexdigest() in printed
            assert made.read_bytes() == (outs[0] / file.name).read_bytes()

    for split in ("train", "test"):
        made = load_idx(outs[0] / f"{split}-labels-idx1-ubyte.gz")
        assert made.tolist() == list(range(10)) * 2
    loaded = load_mnist((9, 8), 2, 2, data_dir=outs[0])
    assert fake_numbers(loaded.X_train.astype(int)) == [0, 5, 1, 6]
    assert fake_numbers(loaded.X_test.astype(int)) == [1000, 1002, 1001, 7]


def test_make_subset_errors(make_subset, fake_mnist, tmp_path, capsys, monkeypatch):
    def refused(source, out=tmp_path / "out"):
        with pytest.raises(SystemExit) as caught:
            make_subset.main(["--source", str(source), "--out", str(out)])
        assert caught.value.code == 2
        assert not (tmp_path / "out").exists()
        return capsys.readouterr().err

    assert "is not a folder" in refused(tmp_path / "nowhere")
    assert "has no file train-images-idx3-ubyte or train-" in refused(tmp_path)
    assert "not be the same folder as --source" in refused(fake_mnist, fake_mnist)
    monkeypatch.setattr(make_subset, "PER_DIGIT", 4)
    message = "5 training and 2 test images of the digit 0: too few for 4 of each"
    assert message in refused(fake_mnist)
    write(fake_mnist / "t10k-labels-idx1-ubyte", np.uint8([1, 2]))
    assert "20 images but 2 labels in its t10k files" in refused(fake_mnist)
    write(fake_mnist / "t10k-labels-idx1-ubyte", b"not IDX")
    assert "is not an IDX file" in refused(fake_mnist)


def test_docstring_examples():
    result = doctest.testmod(glmbrian.datasets)
    assert result.attempted > 5 and not result.failed


# names with a dot


@pytest.mark.parametrize("packed", [False, True])
def test_names_with_a_dot(fake_mnist, packed):
    expected = load_mnist((5, 7), 3, 2, data_dir=fake_mnist)
    for file in list(fake_mnist.iterdir()):
        dotted = file.with_name(file.name.replace("-idx", ".idx") + (".gz" if packed else ""))
        content = file.read_bytes()
        file.unlink()
        dotted.write_bytes(gzip.compress(content) if packed else content)
    for first, second in zip(expected, load_mnist((5, 7), 3, 2, data_dir=fake_mnist)):
        np.testing.assert_array_equal(first, second)
    (dotted,) = fake_mnist.glob("train-labels*")
    dotted.unlink()
    with pytest.raises(FileNotFoundError, match="train-labels-idx1-ubyte.* with a dot"):
        load_mnist((5, 7), 3, 2, data_dir=fake_mnist)
