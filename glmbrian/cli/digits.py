"""Which MNIST digits a command takes."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..datasets import load_mnist
from ..support.validation import integer

#: Images per class.
_DEFAULT_IMAGES = 1000


def add_digit_options(
    command: argparse.ArgumentParser,
    classes: Sequence[int] | None = (5, 7),
    sizes: Sequence[str] = ("n_train", "n_test"),
) -> None:
    """Add the options that choose images, with the default `classes` (None for those of the model)."""
    default = "the classes of the model" if classes is None else " ".join(map(str, classes))
    command.add_argument(
        "--classes",
        nargs="+",
        default=classes,
        metavar="DIGIT",
        help=f"digits, or 'all' (default: {default})",
    )
    for name, kind in (("n_train", "training"), ("n_test", "test")):
        # The other option is accepted, since scripts may pass it, but has no effect.
        text = f"{kind} images per class (default: %(default)s)" if name in sizes else argparse.SUPPRESS
        command.add_argument(
            "--" + name.replace("_", "-"), type=int, default=_DEFAULT_IMAGES, metavar="N", help=text
        )
    command.add_argument("--data-dir", type=Path, metavar="DIR",
                         help="folder with IDX files of MNIST (default: the images that ship "
                         "with glmbrian)")  # fmt: skip
    command.add_argument(
        "--full", action="store_true", help="all images in --data-dir, however many per class"
    )


def check_counts(options: argparse.Namespace, *names: str) -> None:
    """Raise unless these options are at least 1."""
    for name in names:
        integer(getattr(options, name), "--" + name.replace("_", "-"))


def digits_of(texts: Sequence[Any], least: int = 1) -> list[int]:
    """Return the digits that ``--classes`` lists."""
    if list(texts) == ["all"]:
        return list(range(10))
    try:
        digits = [int(text) for text in texts]
    except ValueError:
        raise ValueError(
            f"--classes must be digits from 0 to 9 or 'all', got {listed(texts)}"
        ) from None
    if len(digits) < least:
        raise ValueError(f"--classes must be at least {least} digits or 'all', got {listed(texts)}")
    return digits


def listed(labels: Iterable[Any]) -> str:
    return " ".join(map(str, labels))


def load_digits(options: argparse.Namespace, digits: Sequence[int], n_train: int, n_test: int) -> Any:
    """Return the images that the options choose."""
    if options.full and options.data_dir is None:
        raise ValueError("--full needs --data-dir, a folder with the four files of MNIST")
    if options.full and not (options.n_train == options.n_test == _DEFAULT_IMAGES):
        raise ValueError("--full loads all images: leave out --n-train and --n-test")
    if options.full:
        return load_mnist(digits, data_dir=options.data_dir, full=True)
    return load_mnist(digits, n_train, n_test, data_dir=options.data_dir)
