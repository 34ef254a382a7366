"""Running a compiled program, once or several times side by side."""

import contextlib
import errno
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..support.processes import how_it_ended, lines_of, watched
from ..support.progress import Progress, Silent
from ..support.scratch import is_full

#: The beginning of the lines that report how many presentations are done.
_PROGRESS = "glmbrian progress "


def execute(
    arguments: Sequence[str],
    environment: dict[str, str] | None,
    folders: Sequence[Path],
    progress: Progress | Silent,
) -> int:
    """Run a program in all `folders` at once; return how many presentations each simulated.

    All have the same amount of work.
    """
    done = 0
    with contextlib.ExitStack() as stack:
        # The last other lines of each.
        output: dict[Any, deque[str]] = {
            stack.enter_context(watched(arguments, folder, environment)): deque(maxlen=20)
            for folder in folders
        }
        for process, line in lines_of(output):
            if line is None:
                if process.wait() != 0:
                    raise RuntimeError(
                        f"the compiled simulation {how_it_ended(process.returncode)}: "
                        + "\n".join(output[process])
                    )
            elif line.startswith(_PROGRESS):
                done = max(done, int(line.split()[2]))
                progress(done)
            else:
                output[process].append(line)
    return done


@contextmanager
def room_for_temporary_files() -> Iterator[None]:
    """Name the folder that is full if writing or running a job fails for lack of space."""
    folder = tempfile.gettempdir()
    try:
        yield
    except (OSError, RuntimeError) as error:
        is_about_files = isinstance(error, OSError) or "cannot write" in str(error)
        if not is_about_files or not is_full(folder, error):
            raise
        raise OSError(
            errno.ENOSPC,
            f"the disk of the folder for temporary files is full ({error}); free some space, or set "
            "the environment variable TMPDIR to another folder",
            folder,
        ) from None
