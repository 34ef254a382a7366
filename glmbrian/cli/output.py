"""The option ``--output``, checked before the work begins."""

import contextlib
import os
import tempfile
from pathlib import Path


def require_writable(folder: Path, *files: Path) -> None:
    """Raise unless `files` can be written into `folder`.

    Folders created for the check are removed, since the work may fail.
    """
    for file in files:
        if os.path.isdir(file):
            raise IsADirectoryError(f"--output: {file} must be a file or not exist, but is a folder")
    created = [path for path in (folder, *folder.parents) if not os.path.lexists(path)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(f"--output: cannot write into the folder {folder}: {error.strerror}") from None
    finally:
        for path in created:
            with contextlib.suppress(OSError):
                path.rmdir()
