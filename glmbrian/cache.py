"""Compiled programs, kept so that the same network is compiled only once.

A program is found by a hash of all that its code depends on.  It is built in a
folder of its own and moved into place when complete, so that two processes may
build the same thing at once and a build that was cut short is never used.
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

#: Programs beyond this many are removed, those unused for longest first.  One
#: takes about 3 MB.
MOST_PROGRAMS = 100


def cache_folder():
    """Return the folder of compiled programs.

    The environment variable ``GLMBRIAN_CACHE_DIR``, else a folder ``glmbrian`` in
    the user's cache folder.
    """
    chosen = os.environ.get("GLMBRIAN_CACHE_DIR")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "glmbrian"


def content_key(content):
    """Return a short hash of `content`, which JSON can write."""
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def find_or_build(key, build):
    """Return the folder of the program `key`; ``build(folder)`` makes a missing one."""
    programs = cache_folder() / "programs"
    program = programs / key
    if program.is_dir():
        os.utime(program)
        return program
    programs.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"building-{key}-", dir=programs))
    try:
        build(folder)
        try:
            folder.rename(program)
        except OSError:
            # Another process was faster; its program is as good as ours.
            if not program.is_dir():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _remove_oldest(programs)
    return program


def _remove_oldest(programs):
    folders = [folder for folder in programs.iterdir() if not folder.name.startswith("building-")]
    folders.sort(key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in folders[MOST_PROGRAMS:]:
        shutil.rmtree(folder, ignore_errors=True)
