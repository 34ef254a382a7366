"""Files and folders are written as a whole or not at all, and only plain files are replaced."""

import errno
import multiprocessing
import os
import signal
import stat

import numpy as np
import pytest

import glmbrian as glm
from glmbrian.support.storage import as_path, new_folder, replacing, write_text


def test_a_device_is_not_replaced():
    for path in ("/dev/null", "/dev/full"):
        with pytest.raises(OSError, match="path must be a plain file or a new one, but /dev/"):
            write_text(path, "text")
        assert stat.S_ISCHR(os.stat(path).st_mode)


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="path must be a plain file"):
        write_text(tmp_path / "pipe", "text")
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "folder").mkdir()
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    for old in ("old", None):
        if old is None:
            target.unlink()
        else:
            target.write_text(old)
        if not link.is_symlink():
            link.symlink_to("folder/target")
        write_text(link, "new")
        assert link.is_symlink() and target.read_text() == "new"
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match="path: cannot write .*loop"):
        write_text(tmp_path / "loop", "text")
    (tmp_path / "null").symlink_to("/dev/null")
    with pytest.raises(OSError, match="path must be a plain file"):
        write_text(tmp_path / "null", "text")


def test_a_read_only_file_is_kept(tmp_path):
    """Even for the administrator, whom the system would let write."""
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="path: .*file is read-only"):
        write_text(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_permissions(tmp_path, monkeypatch):
    """The umask is never changed, even for a moment, since all threads share it."""
    path = tmp_path / "file"
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.delattr(os, "umask")
            write_text(path, "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_text(path, "newer")
    assert stat.S_IMODE(path.stat().st_mode) == 0o604 and path.read_text() == "newer"


def fill_disk(monkeypatch, number=errno.ENOSPC):
    def full(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", full)


@pytest.mark.parametrize(
    "number, said",
    [(errno.ENOSPC, "the disk is full"), (errno.EDQUOT, "the disk quota is used up"),
     (errno.EIO, "Input/output error")],
)  # fmt: skip
def test_the_reason_of_an_error_is_named(tmp_path, monkeypatch, number, said):
    path = tmp_path / "population.npz"
    path.write_text("old")
    fill_disk(monkeypatch, number)
    with pytest.raises(OSError, match=f"^path: cannot write .*population.npz: {said}"):
        glm.GLMPopulation.from_kernels([0.0], np.ones((1, 1, 2))).save(path)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_paths_of_the_wrong_type():
    for path in (3, None, b"bytes", ["a"]):
        with pytest.raises(TypeError, match="path must be a path, a string or pathlib.Path"):
            write_text(path, "text")
    with pytest.raises(ValueError, match="cannot contain zero characters"):
        write_text("a\0b", "text")


def test_a_reader_sees_the_old_or_the_new(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with replacing(path) as file:
        file.write(b"ne")
        file.flush()
        assert path.read_bytes() == b"old"
        file.write(b"w")
    assert path.read_bytes() == b"new"


# ------------------------------------------------------------------ folders


def test_a_folder_is_whole_or_not_there(tmp_path):
    path = tmp_path / "a" / "b"
    with new_folder(path) as folder:
        (folder / "file").touch()
    assert [*path.iterdir()] == [path / "file"]
    with pytest.raises(ValueError, match="path must be new or empty, but .* is not"):
        with new_folder(path):
            pass
    with pytest.raises(ValueError, match="path must be new or empty"), new_folder(path / "file"):
        pass
    assert [*path.iterdir()] == [path / "file"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
def test_a_failure_leaves_nothing(tmp_path, error):
    (tmp_path / "empty").mkdir()
    for place in ("a/b", "empty"):
        with pytest.raises(type(error)) as caught:
            with new_folder(tmp_path / place, "directory") as folder:
                (folder / "sub").mkdir()
                (folder / "sub" / "half").touch()
                raise error
        if isinstance(error, OSError):
            assert (
                str(caught.value)
                == f"directory: cannot write into {tmp_path / place}: the disk is full"
            )
    assert [*tmp_path.rglob("*")] == [tmp_path / "empty"]


def _begin_folder(path, begun):
    with new_folder(path) as folder:
        (folder / "sub").mkdir()
        (folder / "sub" / "half").touch()
        begun.send(True)
        signal.pause()


def test_what_a_killed_process_left_is_replaced(tmp_path):
    path = tmp_path / "folder"
    context = multiprocessing.get_context("fork")
    parent, child = context.Pipe()
    process = context.Process(target=_begin_folder, args=(path, child))
    process.start()
    assert parent.poll(30) and (path / "sub" / "half").exists()
    with pytest.raises(OSError, match="path: another process is writing into"), new_folder(path):
        pass
    assert (path / "sub" / "half").exists()
    process.kill()
    process.join()
    with new_folder(path) as folder:
        (folder / "file").touch()
    assert [*path.iterdir()] == [path / "file"]


def test_others_files_are_not_removed(tmp_path):
    """A file of the marker's name is not enough."""
    for text in ("", "something else"):
        (tmp_path / ".unfinished-export").write_text(text)
        (tmp_path / "kept").touch()
        with pytest.raises(ValueError, match="path must be new or empty"), new_folder(tmp_path):
            pass
        assert (tmp_path / "kept").exists()


@pytest.mark.parametrize("read", [glm.GLMClassifier.load, glm.GLMPopulation.load, as_path])
def test_a_name_that_is_too_long(read):
    with pytest.raises(OSError, match="^path: cannot reach nnnnn.*[.]{3}: File name too long"):
        read("n" * 5000)
