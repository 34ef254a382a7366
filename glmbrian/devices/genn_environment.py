"""Whether brian2genn, GeNN and CUDA are installed, and what to do if they are not."""

import os
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..brian.internals import genn_preference

#: Brian 2 versions that brian2genn 1.7 works with.
_BRIAN_BEFORE = (2, 6)
_GENN_MAJOR = 4


class GeNNNotFound(RuntimeError):
    """Something that the GeNN device needs is missing, or of the wrong version."""


def find_genn() -> str | None:
    """Return the folder of GeNN: ``GENN_PATH``, or brian2genn's preference, or None.

    The path is absolute, since programs are built in other working folders.
    """
    return _folder(os.environ.get("GENN_PATH") or genn_preference("path"))


def find_cuda() -> str | None:
    """Return the absolute path of CUDA's folder if there is a card for it, or None.

    The folder is the first of ``CUDA_PATH``, brian2genn's preference, the folder of ``nvcc``
    and the usual one.
    """
    chosen = os.environ.get("CUDA_PATH") or genn_preference("cuda_backend.cuda_path")
    if chosen:
        return _folder(chosen)
    if not (Path("/proc/driver/nvidia").exists() or shutil.which("nvidia-smi")):
        return None
    compiler = shutil.which("nvcc")
    folders = [Path(compiler).resolve().parents[1]] if compiler else []
    for folder in [*folders, Path("/usr/local/cuda")]:
        if (folder / "include" / "cuda.h").is_file():
            return str(folder)
    return None


def _folder(chosen):
    return str(Path(chosen).expanduser().absolute()) if chosen else None


def check_packages() -> None:
    """Raise `GeNNNotFound` unless GeNN code can be generated."""
    try:
        version("brian2genn")
    except PackageNotFoundError:
        raise GeNNNotFound(
            "device='genn' needs brian2genn, which is not installed: install glmbrian[genn] into "
            "a separate environment (make genn-env), since it needs Brian 2 2.5.4"
        ) from None
    found = version("brian2")
    if tuple(int(part) for part in found.split(".")[:2]) >= _BRIAN_BEFORE:
        raise GeNNNotFound(
            f"device='genn' needs Brian 2 before 2.6, but {found} is installed: install "
            "glmbrian[genn] into a separate environment (make genn-env)"
        )


def check_environment(gpu: bool) -> None:
    """Raise `GeNNNotFound` unless GeNN simulations can be built, on a GPU if `gpu`."""
    check_packages()
    genn = find_genn()
    if genn is None:
        raise GeNNNotFound(
            "device='genn' needs GeNN 4: install it as its documentation describes and set the "
            "environment variable GENN_PATH to its folder"
        )
    file = Path(genn) / "version.txt"
    if not file.is_file():
        raise GeNNNotFound(f"GENN_PATH: {genn} is not the folder of GeNN, since it has no version.txt")
    found = file.read_text().strip()
    if found.split(".")[0] != str(_GENN_MAJOR):
        raise GeNNNotFound(
            f"GENN_PATH: brian2genn needs GeNN {_GENN_MAJOR}, but {genn} is GeNN {found}"
        )
    if gpu and find_cuda() is None:
        raise GeNNNotFound(
            "a GPU was requested, but no NVIDIA card with CUDA was found: set the environment "
            "variable CUDA_PATH to CUDA's folder if there is one, or use GeNN's CPU code "
            "(gpu=False, --no-gpu)"
        )
