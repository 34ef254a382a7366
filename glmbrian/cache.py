"""Compiled programs, kept so that the same network is compiled only once.

A program is found by a hash of all that its code depends on.  It is built in a
folder of its own and moved into place when complete, so that two processes may
build the same thing at once and a build that was cut short is never used.  It is
kept with a list of its files and their hashes: what was damaged since is built anew.

Programs are run, so that nobody else may have written them; and removed, so that each is
marked as one: the folder may be used for other things, too.
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
import warnings
from pathlib import Path

from .scratch import MARKER, hold, is_full, is_own, mark, scratch_folder

#: Programs are removed, those unused for longest first, when all take more than this
#: many bytes.  One takes half a megabyte, or three with GeNN.
MOST_BYTES = 300_000_000

#: The names of programs, which are those of `content_key`.
_NAME = re.compile("[0-9a-f]{24}")

#: Where a program's files are listed, in its folder.
_FILE_LIST = "files.json"


class _CannotKeep(Exception):
    """A folder cannot serve for programs, or not for this one; says why."""


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


@contextlib.contextmanager
def find_or_build(key, build):
    """Yield the folder of the program `key`, which nobody removes meanwhile.

    Parameters
    ----------
    key : str
        See `content_key`.
    build : callable
        ``build(folder)`` makes a missing program.

    Raises
    ------
    OSError
        If there is no room for a program, neither in the cache nor in the folder for
        temporary files.

    Warns
    -----
    UserWarning
        If it cannot be kept for other processes.
    """
    with contextlib.ExitStack() as stack:
        try:
            program, _ = _find_or_build(_programs, key, build, stack)
        except _CannotKeep as problem:
            stack.close()  # which makes room
            try:
                program, is_new = _find_or_build(_temporary_programs, key, build, stack)
            except _CannotKeep as second:
                raise OSError(
                    f"there is no place for a compiled program: {problem}; and for temporary "
                    f"files: {second}. Make room in {tempfile.gettempdir()}, or set the environment "
                    "variable TMPDIR to another folder"
                ) from None
            if is_new:
                warnings.warn(
                    f"the compiled program cannot be kept for other processes: {problem}; or set "
                    "the environment variable GLMBRIAN_CACHE_DIR to another folder"
                )
        yield program


def kept_programs():
    """Return how many compiled programs are kept, and their size in bytes."""
    programs = _kept(_programs())
    return len(programs), sum(map(_size, programs))


def clear():
    """Remove the compiled programs; they are compiled anew when they are needed.

    Returns
    -------
    removed : int
        How many.
    size : int
        What they took, in bytes.
    problems : list of str
        Of each program that could not be removed, why.
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


@functools.lru_cache(maxsize=None)
def _temporary_programs():
    """Return a folder for the programs of this process."""
    stack = contextlib.ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(scratch_folder("glmbrian-programs", tempfile.gettempdir()))


def _find_or_build(find_folder, key, build, stack):
    """Return the folder of a program, held until the `stack` is closed, and whether it is new."""
    with _place_problems():
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
    with _place_problems():
        _list_files(built)
        stack.callback(os.close, hold(built, alone=False))
        placed = _place(built, program, stack)
        _remove_oldest(programs)
    return placed, True


@contextlib.contextmanager
def _place_problems():
    try:
        yield
    # A RuntimeError says that there is no home folder.
    except (OSError, RuntimeError) as problem:
        raise _CannotKeep(_first_line(problem)) from problem


def _first_line(error):
    return str(error).split("\n", 1)[0].rstrip(".")


def _find(program, stack):
    """Whether a program is there, held until the `stack` is closed.

    Raises
    ------
    OSError
        If something else is in its place, or others could have written it.
    """
    try:
        lock = hold(program, alone=False)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.lexists(program):
            raise OSError(f"{program} was not made by this package; remove it") from None
        return False
    except BlockingIOError:
        return False  # it is being removed
    with contextlib.ExitStack() as own:
        own.callback(os.close, lock)
        if not _is_whole(program):
            return False
        # The cache may be somebody else's, or read-only.
        with contextlib.suppress(OSError):
            os.utime(program)
        stack.enter_context(own.pop_all())
        return True


def _place(built, program, stack):
    """Move a program to where others find it; return where it is now."""
    with contextlib.suppress(OSError):
        return built.rename(program)
    # If another process was faster, its program is as good as this.
    if _find(program, stack):
        return program
    with contextlib.suppress(OSError):
        if is_own(program):
            _remove(program)
        return built.rename(program)
    return built  # which lasts until the `stack` is closed


# ------------------------------------------------------------------ files of a program


def _require_private(folder):
    """Raise an OSError unless no other user can replace what is in `folder`."""
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode):
        raise OSError(f"{folder} is a link or a file, not a folder; remove it")
    _require_owner(folder, about)
    # A folder that was made with a umask of 002 belongs to a group of the user's own.
    others = stat.S_IWOTH | (0 if about.st_gid == os.getegid() else stat.S_IWGRP)
    if about.st_mode & others and not about.st_mode & stat.S_ISVTX:
        raise OSError(f"other users could change what is in {folder}; take that right away")


def _require_owner(path, about):
    """Raise an OSError if a file is of another user; root may do everything anyway."""
    if about.st_uid not in (0, os.geteuid()):
        raise OSError(f"{path} belongs to another user")


def _list_files(program):
    """Write down what belongs to a program, and let nobody else change it."""
    (program / _FILE_LIST).write_text(json.dumps(_states(program)))
    for path in _paths(program):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~(stat.S_IWGRP | stat.S_IWOTH))


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
    file_list = program / _FILE_LIST
    try:
        if not stat.S_ISREG(file_list.lstat().st_mode):
            return False
        return json.loads(file_list.read_text()) == _states(program)
    except (OSError, ValueError, RecursionError):
        return False


def _paths(program):
    """Return the folder of a program, and all that is in it, without following links."""
    paths = [program]
    for place, folders, files in os.walk(program):
        paths += [Path(place, name) for name in folders + files]
    return paths


def _states(program):
    """Return what is to be known of each file, by its name in the program's folder."""
    states = {}
    for path in _paths(program):
        name, mode = str(path.relative_to(program)), path.lstat().st_mode
        if stat.S_ISDIR(mode) or name in (MARKER, _FILE_LIST):
            continue
        if not stat.S_ISREG(mode):
            raise OSError(f"{path} is no plain file")  # a pipe would be read for ever
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
    """Return the folders of programs that may be removed; there may be others beside them."""
    try:
        _require_private(programs)
        paths = list(programs.iterdir())
    except FileNotFoundError:
        return []
    return [path for path in paths if _NAME.fullmatch(path.name) and is_own(path)]


def _remove(program):
    """Remove a program of which `is_own` holds.

    Raises
    ------
    BlockingIOError
        If it is in use.
    OSError
        If the folder cannot be written.
    """
    lock = hold(program, alone=True)
    try:
        with scratch_folder("building", program.parent) as workplace:
            # Nobody finds it while it is being removed.
            program.rename(workplace / "removed")
    finally:
        os.close(lock)


def _remove_oldest(programs):
    """Remove what was unused for longest."""
    ages = {}
    for program in _kept(programs):
        # Another process may be removing the same ones.
        with contextlib.suppress(OSError):
            ages[program] = program.stat().st_mtime
    total = 0
    for program in sorted(ages, key=ages.get, reverse=True):
        size = _size(program)
        # The newest stays, however large it is.
        if total == 0 or total + size <= MOST_BYTES:
            total += size
            continue
        with contextlib.suppress(OSError):
            _remove(program)
