"""Compiled programs, kept so that the same network is compiled only once.

A program is found by a hash of all that its code depends on.  It is built in a
folder of its own and moved into place when complete, so that two processes may
build the same thing at once and a build that was cut short is never used.  It is
kept with a list of its files and their hashes: what was damaged since is built anew.
"""

import atexit
import contextlib
import functools
import hashlib
import json
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

#: Programs are removed, those unused for longest first, when all take more than this
#: many bytes.  One takes half a megabyte, or three with GeNN.
MOST_BYTES = 300_000_000

#: A build does not take a day: one that old, in seconds, was killed.
_LONGEST_BUILD = 24 * 3600

#: How the names of folders begin in which programs are being built.
_BUILDING = "building-"

#: Where a program's files are listed, in its folder.
_FILE_LIST = "files.json"


def cache_folder():
    """Return the folder of compiled programs, as an absolute path.

    The environment variable ``GLMBRIAN_CACHE_DIR``, else a folder ``glmbrian`` in
    the user's cache folder.
    """
    chosen = os.environ.get("GLMBRIAN_CACHE_DIR")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = Path(base) / "glmbrian"
    # Programs are started in other folders than this one.
    return Path(chosen).expanduser().resolve()


def content_key(content):
    """Return a short hash of `content`, which JSON can write."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def find_or_build(key, build):
    """Return the folder of the program `key`; ``build(folder)`` makes a missing one."""
    try:
        program, workplace = _find_or_begin(cache_folder() / "programs", key)
    # A RuntimeError says that there is no home folder.
    except (OSError, RuntimeError) as problem:
        program, workplace = _find_or_begin(_temporary_programs(), key)
        if workplace is not None:
            warnings.warn(
                f"the compiled program cannot be kept for other processes: {problem}; set the "
                "environment variable GLMBRIAN_CACHE_DIR to a folder that can be written"
            )
    if workplace is None:
        return program
    try:
        folder = workplace / "program"
        folder.mkdir()
        build(folder)
        _list_files(folder)
        try:
            folder.rename(program)
        except OSError:
            # If another process was faster, its program is as good as ours.
            if not _is_whole(program):
                program.rename(workplace / "damaged")
                folder.rename(program)
    finally:
        shutil.rmtree(workplace, ignore_errors=True)
    _remove_oldest(program.parent)
    return program


def kept_programs():
    """Return how many compiled programs are kept, and their size in bytes."""
    programs = _finished()
    return len(programs), sum(_size(program) for program in programs)


def clear():
    """Remove all compiled programs; they are compiled anew when they are needed."""
    for program in _finished():
        # Another process may be removing the same ones.
        shutil.rmtree(program, ignore_errors=True)


def _finished():
    """Return the folders of programs; there may be others' folders beside them."""
    programs = cache_folder() / "programs"
    return [path.parent for path in programs.glob(f"*/{_FILE_LIST}")]


def _size(folder):
    size = 0
    for path in folder.rglob("*"):
        # Another process may be removing it.
        with contextlib.suppress(OSError):
            size += path.lstat().st_size
    return size


def _find_or_begin(programs, key):
    """Return where the program `key` belongs, and a folder for building it or None."""
    program = programs / key
    if _is_whole(program):
        # The cache may be somebody else's, or read-only.
        with contextlib.suppress(OSError):
            os.utime(program)
        return program, None
    programs.mkdir(parents=True, exist_ok=True)
    return program, Path(tempfile.mkdtemp(prefix=f"{_BUILDING}{key}-", dir=programs))


@functools.lru_cache(maxsize=None)
def _temporary_programs():
    """Return a folder for the programs of this process."""
    folder = tempfile.mkdtemp(prefix="glmbrian-programs-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _list_files(folder):
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): _state(path) for path in paths}
    (folder / _FILE_LIST).write_text(json.dumps(files))


def _is_whole(folder):
    """Whether all files of the program in `folder` are as they were built."""
    try:
        files = json.loads((folder / _FILE_LIST).read_text())
        return all(_state(folder / name) == state for name, state in files.items())
    except (OSError, ValueError):
        return False


def _state(path):
    return [os.access(path, os.X_OK), hashlib.sha256(path.read_bytes()).hexdigest()]


def _remove_oldest(programs):
    """Remove what was unused for longest, and what killed builds have left."""
    ages = {}
    for path in programs.iterdir():
        # Another process may be removing the same ones.
        with contextlib.suppress(OSError):
            ages[path] = time.time() - path.stat().st_mtime
    # There may be others' folders beside them.
    finished = [path for path in ages if (path / _FILE_LIST).is_file()]
    total = 0
    for path in sorted(finished, key=ages.get):
        size = _size(path)
        # The newest stays, however large it is.
        if total == 0 or total + size <= MOST_BYTES:
            total += size
        else:
            shutil.rmtree(path, ignore_errors=True)
    for path in ages:
        if path.name.startswith(_BUILDING) and ages[path] > _LONGEST_BUILD:
            shutil.rmtree(path, ignore_errors=True)
