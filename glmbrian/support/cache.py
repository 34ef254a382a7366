"""Compiled programs, kept so that the same network is compiled only once.

A program is found by a hash of everything its code depends on.  It is built in a
separate folder and moved into place when complete: two processes may build the same
program at once, and an interrupted build is never used.  It is kept with a list of its
files and their hashes, and rebuilt if it has been damaged.

Since programs are run, only files that nobody else could have written are used.  Since they
are also removed, each one is marked: the folder may also hold other things.
"""

import atexit
import contextlib
import functools
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .scratch import MARKER, hold, is_full, is_own, mark, scratch_folder
from .validation import warn

#: When all programs together take more bytes than this, the least recently used are removed.
#: One program takes half a megabyte, or three megabytes with GeNN.
MOST_BYTES = 300_000_000

#: The names of programs' folders, as made by `content_key`.
_NAME = re.compile("[0-9a-f]{24}")

#: The file in a program's folder that lists all others.
FILE_LIST = "files.json"


class _CannotKeep(Exception):
    """A folder cannot hold programs, or cannot hold this one; the message says why."""


def cache_folder() -> Path:
    """Return the folder of compiled programs, as an absolute path.

    It is the environment variable ``GLMBRIAN_CACHE_DIR``, or else a folder ``glmbrian``
    in the user's cache folder.
    """
    chosen: str | Path | None = os.environ.get("GLMBRIAN_CACHE_DIR")
    if not chosen:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        chosen = Path(base) / "glmbrian"
    # Absolute, since programs are started in other working folders.
    return Path(chosen).expanduser().resolve()


def content_key(content: Any) -> str:
    """Return a short hash of `content`, which must be serialisable as JSON."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


@contextlib.contextmanager
def find_or_build(key: str, build: Callable[[Path], None]) -> Iterator[Path]:
    """Yield the folder of the program `key`, which no process removes in the meantime.

    Parameters
    ----------
    key : str
        See `content_key`.
    build : callable
        ``build(folder)`` makes a missing program.

    Raises
    ------
    OSError
        If neither the cache nor the folder for temporary files can hold the program.

    Warns
    -----
    UserWarning
        If the program cannot be kept for other processes.
    """
    with contextlib.ExitStack() as stack:
        try:
            program, _ = _find_or_build(_programs, key, build, stack)
        except _CannotKeep as problem:
            stack.close()  # frees space
            try:
                program, is_new = _find_or_build(temporary_programs, key, build, stack)
            except _CannotKeep as second:
                raise OSError(
                    f"no folder can hold the compiled program. The cache: {problem}. The folder for "
                    f"temporary files: {second}. Free space in {tempfile.gettempdir()}, or set the "
                    "environment variable TMPDIR to another folder"
                ) from None
            if is_new:
                warn(
                    f"the compiled program cannot be kept for other processes: {problem}. Fix this, or "
                    "set the environment variable GLMBRIAN_CACHE_DIR to another folder",
                )
        yield program


def kept_programs() -> tuple[int, int]:
    """Return how many compiled programs are kept, and their size in bytes."""
    programs = _kept(_programs())
    return len(programs), sum(map(_size, programs))


def clear() -> tuple[int, int, list[str]]:
    """Remove the compiled programs; they are compiled again when needed.

    Returns
    -------
    removed : int
        Number of programs removed.
    size : int
        Their size in bytes.
    problems : list of str
        For each program that could not be removed, the reason.
    """
    programs = _programs()
    removed, size, problems = 0, 0, []
    for program in _kept(programs):
        own_size = _size(program)
        try:
            _remove(program)
        except FileNotFoundError:
            pass  # another process has removed it
        except BlockingIOError:
            problems.append(f"{program.name}: it is in use")
        except OSError as error:
            problems.append(f"{program.name}: {error.strerror}")
        else:
            removed, size = removed + 1, size + own_size
    return removed, size, problems


# ------------------------------------------------------------------ finding and building


def _programs():
    return cache_folder() / "programs"


@functools.cache
def temporary_programs():
    """Return a folder for the programs of this process."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(scratch_folder("glmbrian-programs", tempfile.gettempdir()))


def _find_or_build(find_folder, key, build, stack):
    """Return the folder of a program, held until the `stack` is closed, and whether it is new."""
    with _folder_problems():
        programs = find_folder()
        program = programs / key
        if os.path.lexists(programs):
            _require_private(programs)
        if _find(program, stack):
            return program, False
        programs.mkdir(mode=0o755, parents=True, exist_ok=True)
        workplace = stack.enter_context(scratch_folder("building", programs))
        built = workplace / "program"
        built.mkdir()
        mark(built)
    try:
        build(built)
    except Exception as error:
        if is_full(programs, error):
            raise _CannotKeep(f"the disk of {programs} is full ({_first_line(error)})") from error
        raise
    with _folder_problems():
        _list_files(built)
        stack.enter_context(hold(built, alone=False))
        placed = _move_into_place(built, program, stack)
        _remove_oldest(programs)
    return placed, True


@contextlib.contextmanager
def _folder_problems():
    try:
        yield
    # Path.home() raises a RuntimeError if there is no home folder.
    except (OSError, RuntimeError) as problem:
        raise _CannotKeep(_first_line(problem)) from problem


def _first_line(error):
    return str(error).split("\n", 1)[0].rstrip(".")


def _find(program, stack):
    """Whether a usable program is there; if so, it is held until the `stack` is closed.

    Raises
    ------
    OSError
        If something else is in its place, or other users could have written it.
    """
    with contextlib.ExitStack() as own:
        try:
            own.enter_context(hold(program, alone=False))
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(program):
                raise OSError(f"{program} was not made by this package; remove it") from None
            return False
        except BlockingIOError:
            return False  # it is being removed
        if not _is_whole(program):
            return False
        # The cache may belong to another user, or be read-only.
        with contextlib.suppress(OSError):
            os.utime(program)
        stack.enter_context(own.pop_all())
        return True


def _move_into_place(built, program, stack):
    """Move a program to where others find it; return where it is now."""
    with contextlib.suppress(OSError):
        return built.rename(program)
    # If another process was faster, use its program.
    if _find(program, stack):
        return program
    with contextlib.suppress(OSError):
        if is_own(program):
            _remove(program)
        return built.rename(program)
    return built  # removed when the `stack` is closed


# ------------------------------------------------------------------ files of a program


def _require_private(folder):
    """Raise an OSError unless no other user can replace what is in `folder`."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode):
        raise OSError(f"{folder} must be a folder, but is a link or a file; remove it")
    _require_owner(folder, about)
    # With a umask of 002, the group that may write is usually the user's own.
    others = stat.S_IWOTH | (0 if about.st_gid == os.getegid() else stat.S_IWGRP)
    if about.st_mode & others and not about.st_mode & stat.S_ISVTX:
        raise OSError(f"other users could change what is in {folder}; remove their permission to write")


def _require_owner(path, about):
    """Raise an OSError if a file belongs to another user, except root, who may write anywhere."""
    if about.st_uid not in (0, os.geteuid()):
        raise OSError(f"{path} belongs to another user")


def _list_files(program):
    """Write the list of a program's files, and forbid other users to change them."""
    (program / FILE_LIST).write_text(json.dumps(_states(program)))
    for path in _paths(program):
        path.chmod(stat.S_IMODE(path.lstat().st_mode) & ~(stat.S_IWGRP | stat.S_IWOTH))


def _is_whole(program):
    """Whether all files of a program are as they were built.

    Raises
    ------
    OSError
        If another user could have changed them.
    """
    for path in _paths(program):
        about = path.lstat()
        _require_owner(path, about)
        if about.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not stat.S_ISLNK(about.st_mode):
            raise OSError(f"other users could have changed {path}; remove {program}")
    try:
        states = _states(program)  # first: it raises an error if the list is not a plain file
        return json.loads((program / FILE_LIST).read_text()) == states
    except (OSError, ValueError, RecursionError):
        return False


def _paths(program):
    """Return the folder of a program and everything in it, without following links."""
    paths = [program]
    for parent, folders, files in os.walk(program):
        paths += [Path(parent, name) for name in folders + files]
    return paths


def _states(program):
    """Return, by name in the program's folder, whether each file is executable, and its hash."""
    states = {}
    for path in _paths(program):
        name, mode = str(path.relative_to(program)), path.lstat().st_mode
        if stat.S_ISDIR(mode):
            continue
        if not stat.S_ISREG(mode):
            raise OSError(f"{path} is not a plain file")  # reading a pipe would never end
        if name not in (MARKER, FILE_LIST):
            states[name] = [bool(mode & stat.S_IXUSR), hashlib.sha256(path.read_bytes()).hexdigest()]
    return states


def _size(program):
    size = 0
    # Another process may be removing it.
    with contextlib.suppress(OSError):
        for path in _paths(program)[1:]:
            size += path.lstat().st_size
    return size


# ------------------------------------------------------------------ removing


def _kept(programs):
    """Return the folders of programs that may be removed; others may lie beside them."""
    try:
        _require_private(programs)
        paths = list(programs.iterdir())
    except FileNotFoundError:
        return []
    return [path for path in paths if _NAME.fullmatch(path.name) and is_own(path)]


def _remove(program):
    """Remove a program for which `is_own` is true.

    Raises
    ------
    BlockingIOError
        If it is in use.
    OSError
        If the folder cannot be written.
    """
    with hold(program, alone=True), scratch_folder("building", program.parent) as workplace:
        # After this no other process finds it.
        program.rename(workplace / "removed")


def _remove_oldest(programs):
    """Remove the least recently used programs until the rest take at most `MOST_BYTES`."""
    total = 0
    for program in sorted(_kept(programs), key=_last_use, reverse=True):
        size = _size(program)
        # The newest stays, whatever its size.
        if total == 0 or total + size <= MOST_BYTES:
            total += size
        else:
            with contextlib.suppress(OSError):
                _remove(program)


def _last_use(program):
    try:
        return program.stat().st_mtime
    except OSError:
        return 0.0  # another process has removed it
