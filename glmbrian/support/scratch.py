"""Folders that disappear with the process that made them, even if it is killed.

Such a folder holds a file that its process keeps locked.  If the lock is free, the process
has ended: the next process that makes a folder of the same kind removes the leftovers.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, TextIO

#: The file that marks a folder as made by the package, and is locked while the folder is in use.
MARKER = ".glmbrian"

#: Seconds after which the process that made an unmarked folder must have been killed.
_LONGEST_BEGINNING = 24 * 3600

#: A disk with less free space than this, in bytes, counts as full.
LEAST_ROOM = 10_000_000


@contextlib.contextmanager
def scratch_folder(kind: str, parent: str | Path) -> Iterator[Path]:
    """Make a folder, and remove it with everything in it afterwards.

    This also removes folders of the same kind left behind by killed processes of the same user.

    Parameters
    ----------
    kind : str
        Beginning of the folder's name.
    parent : str or Path
        The folder to make it in.

    Yields
    ------
    Path

    Raises
    ------
    OSError
        If it cannot be made.
    """
    _remove_remains(kind, parent)
    folder, lock = _begin(kind, parent)
    process = os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == process:  # not a forked copy
            # If it cannot be removed now, a later process will try again.
            with contextlib.suppress(OSError):
                _remove(folder, lock)


def mark(folder: Path) -> None:
    """Mark `folder` as made by the package."""
    os.close(os.open(folder / MARKER, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))


def is_own(folder: Path) -> bool:
    """Whether `folder` is marked, and both it and its mark belong to this user."""
    try:
        about, mark = folder.lstat(), (folder / MARKER).lstat()
    except OSError:
        return False
    user = os.geteuid()
    return (
        (stat.S_ISDIR(about.st_mode) and about.st_uid == user)
        and (stat.S_ISREG(mark.st_mode) and mark.st_uid == user)
    )  # fmt: skip


def hold(folder: Path, alone: bool) -> BinaryIO:
    """Lock a marked folder until the returned file is closed.

    Raises
    ------
    FileNotFoundError
        If there is no marked folder, or it has just been removed.
    BlockingIOError
        If another process holds it, and either process wants it `alone`.
    """
    path = folder / MARKER
    # Without O_NONBLOCK, opening a named pipe would wait.  On network file systems, an
    # exclusive lock needs a file that is open for writing.
    access = (os.O_RDWR if alone else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(os.open(path, access), "rb"))
        lock_file(file, alone)
        about = os.fstat(file.fileno())
        # It may have been removed before it was locked.
        if not (stat.S_ISREG(about.st_mode) and os.path.samestat(about, path.lstat())):
            raise FileNotFoundError(errno.ENOENT, "it is not a plain file, or was removed", str(path))
        stack.pop_all()
    return file


def lock_file(file: int | BinaryIO | TextIO, alone: bool = True) -> None:
    """Lock an open file until it is closed, or its process ends, for whatever reason.

    Raises
    ------
    BlockingIOError
        If another process has locked it, and either process wants it `alone`.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        pass  # some network disks have no locks


def remove_all_but(kept: Path) -> None:
    """Remove everything in the folder of `kept` except `kept` itself."""
    for path in kept.parent.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path != kept:
            path.unlink(missing_ok=True)


def is_full(folder: str | Path, error: BaseException) -> bool:
    """Whether `error` came from a full disk or quota.

    Not all such errors say so; then the free space of `folder` decides.
    """
    text = str(error)
    if any(os.strerror(number) in text for number in (errno.ENOSPC, errno.EDQUOT)):
        return True
    return shutil.disk_usage(folder).free < LEAST_ROOM


def _begin(kind, parent):
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=parent))
        try:
            mark(folder)
            return folder, hold(folder, alone=True)
        except (FileNotFoundError, BlockingIOError):
            continue  # another process mistook it for a leftover
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise


def _remove_remains(kind, parent):
    for folder in Path(parent).glob(f"{kind}-{'[a-z0-9_]' * 8}"):
        with contextlib.suppress(OSError):
            if is_own(folder):
                _remove(folder, hold(folder, alone=True))
                continue
            about = folder.lstat()
            age = time.time() - about.st_mtime
            # A process killed before it could mark its folder has put nothing into it.
            if about.st_uid == os.geteuid() and age > _LONGEST_BEGINNING:
                folder.rmdir()


def _remove(folder, lock):
    """Remove a folder, its mark last, so that the folder is recognised as ours until then."""
    with lock:
        remove_all_but(folder / MARKER)
        (folder / MARKER).unlink()
    folder.rmdir()
