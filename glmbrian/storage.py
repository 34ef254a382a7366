"""Writing result files in one piece."""

import os
import tempfile
from pathlib import Path

import numpy as np


def save_npz(path, content):
    """Write the arrays of the dict `content` to the ``.npz`` file `path`.

    An existing file is replaced only once the new one is complete.

    Raises
    ------
    OSError
        If `path` cannot be written.
    """
    path = Path(path)
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path: the folder {path.parent} does not exist")
    if path.is_dir():
        raise IsADirectoryError(f"path must be a file, and {path} is a folder")
    handle, temporary = tempfile.mkstemp(suffix=".npz", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, **content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask():
    # It can be read only by setting it.
    umask = os.umask(0)
    os.umask(umask)
    return umask
