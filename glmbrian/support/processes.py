"""Commands that end with this process, however it ends.

Each runs in its own session, beside a shell that kills everything the command has started
as soon as this process has ended or no longer needs it.
"""

import contextlib
import os
import selectors
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

#: `read` returns when the other end of the pipe is closed; the operating system does that for
#: a killed process, too.  "kill 0" reaches the whole group, including this shell.
_WATCH = """
exec 3<&0 </dev/null
(read -r ended <&3; kill -KILL 0) >/dev/null 2>&1 &
"$@" 3<&-
code=$?
exec 2>/dev/null
kill -KILL $!
wait $!
exit $code
"""

#: Seconds to wait for killed processes to close their output.
_LONGEST_ENDING = 5

_running: set[subprocess.Popen[bytes]] = set()


@contextlib.contextmanager
def watched(
    command: Sequence[Any], cwd: str | Path | None = None, env: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command within a context, and at its end kill everything the command has started.

    Parameters
    ----------
    command : list of str
    cwd : str or Path, optional
    env : dict of str, optional

    Yields
    ------
    subprocess.Popen
        Its `stdout` is a binary stream of everything the command writes, including errors.
        The command gets no input.
    """
    with subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "sh", *map(str, command)],
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        _running.add(process)
        try:
            yield process
        finally:
            _running.discard(process)
            if process.returncode is None:
                with contextlib.suppress(OSError):  # the group may have just ended
                    os.killpg(process.pid, signal.SIGKILL)
                # Output ends when the last of them has ended, after which no more files are written.
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.communicate(timeout=_LONGEST_ENDING)


def run_watched(
    command: Sequence[Any], cwd: str | Path | None = None, env: dict[str, str] | None = None
) -> tuple[int, str]:
    """Run a command to completion.

    Parameters
    ----------
    command, cwd, env
        See `watched`.

    Returns
    -------
    returncode : int
        See `how_it_ended`.
    output : str
        Everything it wrote, including errors.
    """
    with watched(command, cwd, env) as process:
        output = process.stdout.read().decode(errors="replace")  # type: ignore[union-attr]
        process.wait()
    return process.returncode, output


def lines_of(
    processes: Iterable[subprocess.Popen[bytes]],
) -> Iterator[tuple[subprocess.Popen[bytes], str | None]]:
    """Yield the lines that `watched` processes write, as pairs of a process and a line.

    The line is None once a process has closed its output.
    """
    with selectors.DefaultSelector() as selector:
        begun = dict.fromkeys(processes, b"")
        for process in processes:
            selector.register(process.stdout, selectors.EVENT_READ, process)  # type: ignore[arg-type]
        while selector.get_map():
            for ready, _ in selector.select():
                process = ready.data
                read = os.read(ready.fd, 65536)
                *lines, begun[process] = (begun[process] + read).split(b"\n")
                if not read:
                    selector.unregister(ready.fileobj)
                    lines = list(filter(None, [begun.pop(process)]))
                for line in lines:
                    yield process, line.decode(errors="replace")
                if not read:
                    yield process, None


def how_it_ended(returncode: int) -> str:
    """Describe in words how a `watched` process has ended."""
    # A shell reports a signal by adding 128.
    number = -returncode if returncode < 0 else returncode - 128
    if number not in set(signal.Signals):
        return f"ended with code {returncode}"
    text = f"was ended by {signal.Signals(number).name} ({signal.strsignal(number)})"
    if number == signal.SIGKILL:
        text += ", perhaps because the memory was full"
    return text


def _leave_to_parent():
    """Make a forked copy forget the processes, which belong to the process that started them."""
    for process in _running:
        process.stdin.close()
    _running.clear()


os.register_at_fork(after_in_child=_leave_to_parent)
