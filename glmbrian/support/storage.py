"""Files written completely or not at all, and archives of arrays with checksums."""

import contextlib
import errno
import hashlib
import io
import os
import secrets
import stat
import struct
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from .scratch import lock_file, remove_all_but

#: The version of the archives' format.  Archives of glmbrian 0.1 have neither this number nor a
#: checksum.
FORMAT = 2

#: Parts of an archive that describe the archive itself.
_OWN_PARTS = {"format": "iu", "checksum": "U"}

# ------------------------------------------------------------------ writing


@contextlib.contextmanager
def replacing(path: str | Path, name: str = "path") -> Iterator[BinaryIO]:
    """Yield a binary file that takes the place of `path` once it is complete.

    If `path` is a link, its target is replaced.  A new file gets the default permissions of
    the process; a file that replaces another keeps the other's permissions.

    Parameters
    ----------
    path : str or Path
    name : str
        Name of the argument, for messages.

    Raises
    ------
    TypeError, ValueError
        If `path` is not a path.
    OSError
        If it cannot be written, or is neither new nor a plain file.
    """
    path = as_path(path, name)
    target = Path(os.path.realpath(path))
    try:
        mode = _mode_to_replace(target, path, name)
        remove_unfinished(target.parent)
        # In the same folder, hence on the same disk.
        unfinished = target.parent / f".unfinished-{secrets.token_hex(8)}"
        # Let the system apply the umask, which can only be read by changing it.
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except OSError as error:
        raise _unwritable(error, path, name) from None
    try:
        with os.fdopen(handle, "wb") as file:
            lock_file(file)
            if mode is not None:
                os.fchmod(handle, mode)
            yield file
            file.flush()
            os.fsync(handle)
        os.replace(unfinished, target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(unfinished)
        if isinstance(error, OSError):
            raise _unwritable(error, path, name) from None
        raise


def write_text(path: str | Path, text: str, name: str = "path") -> None:
    """Write a text file, with `replacing`."""
    with replacing(path, name) as file:
        file.write(text.encode())


def remove_unfinished(folder: str | Path) -> None:
    """Remove unfinished files that killed processes of this user left in `folder`."""
    for path in Path(folder).glob(f".unfinished-{'[0-9a-f]' * 16}"):
        with contextlib.suppress(OSError):
            about = path.lstat()
            is_own = stat.S_ISREG(about.st_mode) and about.st_uid == os.geteuid()
            # A new file may not be locked yet.
            if is_own and time.time() - about.st_mtime > _SECONDS_TO_LOCK:
                with open(path, "rb+") as file:
                    lock_file(file)
                    path.unlink()


_SECONDS_TO_LOCK = 1


@contextlib.contextmanager
def new_folder(path: str | Path, name: str = "path") -> Iterator[Path]:
    """Make a folder that stays only if it is complete.

    An unfinished folder left at `path` by a killed process is replaced.

    Parameters
    ----------
    path : str or Path
        A new or empty folder, or an unfinished one.
    name : str
        Name of the argument, for messages.

    Yields
    ------
    Path

    Raises
    ------
    TypeError, ValueError
        If `path` is not a path, or is a folder with something else in it.
    OSError
        If it cannot be written, or another process is writing into it.
    """
    path = as_path(path, name)
    marker = path / _UNFINISHED
    made = [folder for folder in (path, *path.parents) if not os.path.lexists(folder)]
    try:
        try:
            path.mkdir(parents=True, exist_ok=True)
            if any(path.iterdir()) and not _is_marker(marker):
                raise FileExistsError
        except FileExistsError:
            raise ValueError(f"{name} must be new or empty, but {path} is not") from None
        with open(marker, "a") as file:
            try:
                lock_file(file)
            except BlockingIOError:
                raise OSError(f"{name}: another process is writing into {path}") from None
            try:
                remove_all_but(marker)
                marker.write_text(_UNFINISHED_TEXT)
                yield path
                marker.unlink()
            except BaseException:
                # What cannot be removed now, the next process replaces.
                with contextlib.suppress(OSError):
                    remove_all_but(marker)
                    marker.unlink(missing_ok=True)
                raise
    except BaseException as error:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError):
            raise _unwritable(error, path, name, "into ") from None
        raise


#: The file that is in a folder until the folder is complete.
_UNFINISHED = ".unfinished-export"
_UNFINISHED_TEXT = "glmbrian is writing this folder, or was stopped: it can be removed.\n"


def _is_marker(path):
    if path.is_symlink() or not path.is_file():
        return False
    # A process that was stopped before it wrote anything else leaves an empty marker.
    text = path.read_bytes()[: len(_UNFINISHED_TEXT)].decode(errors="replace")
    return text == _UNFINISHED_TEXT or (not text and [*path.parent.iterdir()] == [path])


def _mode_to_replace(target, path, name):
    """Return the permissions of the file at `target`, or None if there is no file."""
    if not os.path.isdir(target.parent):
        raise FileNotFoundError(f"{name}: the folder {target.parent} does not exist")
    try:
        mode = os.stat(target).st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"{name} must be a file, but {path} is a folder")
    if not stat.S_ISREG(mode):
        raise OSError(f"{name} must be a plain file or a new one, but {path} is a device or a pipe")
    # For the administrator, os.access accepts any file.
    if not mode & 0o222 or not os.access(target, os.W_OK):
        raise PermissionError(f"{name}: {path} is read-only; choose another file, or make it writable")
    return stat.S_IMODE(mode) & 0o777


def _unwritable(error, path, name, into=""):
    # Errors raised in this module have no number.
    if error.errno is None:
        return error
    return type(error)(f"{name}: cannot write {into}{path}: {reason(error)}")


def reason(error: OSError) -> str:
    """Describe the reason of an OSError in words."""
    if error.errno == errno.ENOSPC:
        return "the disk is full"
    if error.errno == errno.EDQUOT:
        return "the disk quota is used up"
    return error.strerror or str(error)


def as_path(path: Any, name: str = "path") -> Path:
    """Return `path` as a `Path`, or raise an error that names the argument."""
    if not isinstance(path, (str, os.PathLike)) or not isinstance(os.fspath(path), str):
        raise TypeError(f"{name} must be a path, a string or pathlib.Path, got {path!r}")
    if "\0" in os.fspath(path):
        raise ValueError(f"{name} must be a path, which cannot contain zero characters, got {path!r}")
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass  # it may be about to be written
    except OSError as error:  # its name is too long, or this user may not enter a folder
        text = os.fspath(path)
        shown = text if len(text) < 200 else f"{text[:100]}..."
        raise type(error)(f"{name}: cannot reach {shown}: {reason(error)}") from None
    return Path(path)


# ------------------------------------------------------------------ archives


def save_npz(path: str | Path, content: Mapping[str, Any]) -> None:
    """Write the arrays in `content` to the ``.npz`` file `path`, with a checksum.

    Raises
    ------
    TypeError, ValueError, OSError
        As for `replacing`.
    """
    content = {**content, "format": np.array(FORMAT)}
    with replacing(path) as file:
        np.savez(file, **content, checksum=np.array(_checksum(content)))


class Archive:
    """The content of a file read by `load_npz`.

    Attributes
    ----------
    content : dict of ndarray
    has_checksum : bool
        Archives of version 0.1 have none.
    """

    def __init__(self, content: dict[str, np.ndarray], own: dict[str, np.ndarray]) -> None:
        self.content = content
        self.has_checksum = bool(own)
        self._own = own

    def check(self) -> None:
        """Raise a ValueError if the arrays differ from those that were written.

        Call this after checking the content, since those checks give better messages.
        """
        if not self.has_checksum:
            return
        if self._own["checksum"].item() != _checksum({**self.content, "format": self._own["format"]}):
            raise ValueError("it was changed or damaged after writing: its checksum does not match")


def load_npz(path: str | Path, kinds: Callable[[str], str | None], required: Iterable[str]) -> Archive:
    """Read the arrays of a file written by `save_npz` of this or an earlier version.

    Only plain numbers and text are read, and each part only after a check of its size.

    Parameters
    ----------
    path : str or Path
    kinds : callable
        ``kinds(name)`` returns the kinds of dtype that a part may have, such as "f", or
        None if there is no part of that name.
    required : iterable of str
        Parts that must be present.

    Returns
    -------
    Archive

    Raises
    ------
    OSError
        If the file cannot be read.
    Exception
        Any kind, if it is not such a file; `reading` turns all of them into one.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise OSError("it is not a plain file")  # reading it might never end
    if not zipfile.is_zipfile(path):
        raise ValueError("it is not an archive of arrays (.npz), or only the beginning of one")
    with open(path, "rb") as file, zipfile.ZipFile(file) as archive:
        members: dict[str, zipfile.ZipInfo] = {}
        if len(archive.infolist()) != _n_members(file):
            raise ValueError("some of its parts are missing")
        for member in archive.infolist():
            name = member.filename.removesuffix(".npy")
            if name in members:
                raise ValueError(f"it holds {name!r} twice")
            members[name] = member
        # These checks ensure that no part takes more memory than the size of the file.
        if any(member.compress_type != zipfile.ZIP_STORED for member in members.values()):
            raise ValueError("its parts are compressed")
        if sum(member.file_size for member in members.values()) > os.fstat(file.fileno()).st_size:
            raise ValueError("its parts are larger than the file")
        own = {
            name: _read_part(archive, members.pop(name), name, allowed)
            for name, allowed in _OWN_PARTS.items()
            if name in members
        }
        _check_format(own)
        unknown = [name for name in members if kinds(name) is None]
        missing = [name for name in required if name not in members]
        if unknown or missing:
            wrong = f"lacks {missing[0]!r}" if missing else f"holds an unknown part {unknown[0]!r}"
            raise ValueError(f"it {wrong}")
        content = {
            name: _read_part(archive, member, name, kinds(name)) for name, member in members.items()
        }
    return Archive(content, own)


@contextlib.contextmanager
def reading(path: str | Path, writer: str) -> Iterator[None]:
    """Turn every exception while a file is read into an OSError or ValueError that names `path`.

    Parameters
    ----------
    path : str or Path
    writer : str
        The function that writes such files or folders.
    """
    try:
        yield
    except OSError as error:
        raise type(error)(f"path: cannot read {path}: {reason(error)}") from None
    # A damaged file may raise anything.
    except Exception as error:
        problem = " ".join(str(error).split())
        problem = problem if len(problem) < 300 else problem[:300] + " ..."
        kind = "folder" if os.path.isdir(path) else "file"
        raise ValueError(
            f"path must be a {kind} written by {writer}; {path} is not: {problem}"
        ) from None


def _n_members(file):
    """Return the number of parts stated at the end of an archive.

    A wrong length in the list of parts could hide the parts that follow.
    """
    file.seek(-22, os.SEEK_END)
    signature, count = struct.unpack("<4s6xH10x", file.read(22))
    if signature != b"PK\5\6":
        raise ValueError("it does not end like an archive")
    return count


def _check_format(own):
    if not own:
        return  # version 0.1
    for name in _OWN_PARTS:
        if name not in own:
            raise ValueError(f"it lacks {name!r}")
        if own[name].shape != ():
            raise ValueError(f"{name} must be a single value")
    if own["format"] > FORMAT:
        raise ValueError(
            f"a newer version of glmbrian has written it, in format {own['format']}, but this version "
            f"only reads formats up to {FORMAT}; install the newer version"
        )
    if own["format"] < FORMAT:
        raise ValueError(f"format must be {FORMAT}, got {own['format']}")


def _read_part(archive, member, name, allowed):
    # To its end, so that zipfile verifies the part's own checksum.
    stream = io.BytesIO(archive.read(member))
    try:
        array = np.lib.format.read_array(stream)
    except ValueError as error:
        raise ValueError(f"{name} must not be an array of objects, nor damaged: {error}") from None
    if array.dtype.kind not in allowed or array.dtype.itemsize == 0:
        raise ValueError(f"{name} must not be an array of {array.dtype}")
    return np.asarray(array, order="C")


def _checksum(content):
    digest = hashlib.sha256()
    for name in sorted(content):
        array = np.asarray(content[name])
        digest.update(repr((name, array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
