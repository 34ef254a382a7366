"""Spike times from and to files of Neurodata Without Borders (NWB)."""

import os
import uuid
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..recording.observed import observed_part
from ..recording.recording import Recording, check_recording
from ..support.storage import as_path
from ..support.validation import plain_array
from .packages import imported

if TYPE_CHECKING:
    from brian2 import Quantity

#: The column for the names of units; spike sorting programs use it as well.
_NAME_COLUMN = "unit_name"


def from_nwb(
    source: Any,
    units: ArrayLike | None = None,
    t_start: "Quantity | float | None" = None,
    t_stop: "Quantity | float | None" = None,
) -> Recording:
    """Return the units of an NWB file as a `Recording`.

    Parameters
    ----------
    source : str, Path, pynwb.NWBFile or units table
        A file, or what was read from one.  If the file has no units table at the top level,
        the units table of its processing modules is used; if there are several, pass one,
        such as ``nwbfile.processing["ecephys"]["units"]``.
    units : array_like of int or bool, optional
        Rows of the units table, by number or as a mask of all rows, such as
        ``nwbfile.units["quality"][:] == "good"``; by default all.
    t_start, t_stop : time, optional
        When the observation begins and ends; spikes before and after are left out.
        By default the interval in ``obs_intervals``, if it is the same for all units.

    Returns
    -------
    Recording
        Units are named by the column ``unit_name`` if there is one, otherwise by id.

    Raises
    ------
    ImportError
        If pynwb is not installed.
    OSError
        If the file cannot be read.
    TypeError, ValueError
        If `source` is something else or has no spike times, `units` are not rows of the
        table, the times are unknown or not finite, or ``obs_intervals`` say that a unit
        was not observed the whole time (it would look silent).

    Examples
    --------
    The last 10 minutes of two units, in steps of 2 ms:

    >>> import glmbrian as glm
    >>> from brian2 import ms
    >>> recording = glm.interop.from_nwb(                         # doctest: +SKIP
    ...     "session.nwb", [3, 7], t_start=3000, t_stop=3600)
    >>> recording.trains(2 * ms).shape                            # doctest: +SKIP
    (300000, 2)
    """
    pynwb = imported("pynwb", "pynwb")
    if isinstance(source, pynwb.core.DynamicTable):
        return _read(source, units, t_start, t_stop)
    if isinstance(source, pynwb.NWBFile):
        return _read(_units_table(source), units, t_start, t_stop)
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(f"source must be a path or a pynwb.NWBFile, got {source!r}")
    try:
        file = pynwb.NWBHDF5IO(os.fspath(source), "r")
    except OSError as error:
        raise type(error)(f"source: cannot read {source}: {error}") from None
    with file:
        return _read(_units_table(file.read()), units, t_start, t_stop)


def to_nwb(
    recording: Recording,
    path: str | Path,
    session_start_time: datetime | None = None,
    session_description: str = "Spikes simulated with Brian 2",
) -> None:
    """Write a recording into a new NWB file, as its units table.

    Parameters
    ----------
    recording : Recording
    path : str or Path
        Must not exist.
    session_start_time : datetime, optional
        The date and time of time 0; by default now.
    session_description : str
        Description of the session, for the file.

    Raises
    ------
    ImportError
        If pynwb is not installed.
    FileExistsError
        If the file already exists.
    OSError
        If the file cannot be written.
    TypeError
        If an argument is of the wrong type.

    Notes
    -----
    ``from_nwb(path)`` returns the recording.  To store more (electrodes, the stimulus),
    write the file with pynwb.

    Examples
    --------
    >>> import os, tempfile
    >>> import glmbrian as glm
    >>> from brian2 import ms
    >>> recording = glm.interop.Recording([[1, 3] * ms, [0] * ms], 0 * ms, 4 * ms, ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:             # doctest: +SKIP
    ...     path = os.path.join(folder, "session.nwb")
    ...     glm.interop.to_nwb(recording, path)
    ...     glm.interop.from_nwb(path)
    <Recording: 2 units, 3 spikes, 0. s to 4. ms>
    """
    pynwb = imported("pynwb", "pynwb")
    check_recording(recording)
    if not isinstance(session_start_time, (datetime, type(None))):
        raise TypeError(f"session_start_time must be a datetime, got {session_start_time!r}")
    if not isinstance(session_description, str):
        raise TypeError(f"session_description must be a string, got {session_description!r}")
    target = as_path(path)
    if not os.path.isdir(target.parent):
        raise FileNotFoundError(f"path: the folder {target.parent} does not exist")
    if os.path.lexists(target):
        raise FileExistsError(f"path: {target} already exists")
    nwbfile = pynwb.NWBFile(
        session_description=session_description,
        identifier=str(uuid.uuid4()),
        session_start_time=session_start_time or datetime.now(timezone.utc),
    )
    nwbfile.add_unit_column(_NAME_COLUMN, "name of the unit")
    observed = [[float(recording.t_start), float(recording.t_stop)]]
    for name, times in zip(recording.names, recording.times):
        nwbfile.add_unit(spike_times=np.asarray(times), obs_intervals=observed, **{_NAME_COLUMN: name})
    # Mode x fails if the file was created in the meantime.
    with pynwb.NWBHDF5IO(os.fspath(target), "x") as file:
        file.write(nwbfile)


def _units_table(nwbfile):
    """Return the units table of a file or of its processing modules, or None."""
    if nwbfile.units is not None:
        return nwbfile.units
    tables = {
        f"processing[{module.name!r}][{name!r}]": table
        for module in nwbfile.processing.values()
        for name, table in module.data_interfaces.items()
        if "spike_times" in getattr(table, "colnames", ())
    }
    if len(tables) > 1:
        raise ValueError(
            f"source has several units tables; pass one of nwbfile.{', nwbfile.'.join(tables)}"
        )
    return next(iter(tables.values()), None)


def _read(table, units, t_start, t_stop):
    """Return the recording in a units table; see `from_nwb`."""
    if table is None or "spike_times" not in table.colnames:
        raise ValueError("source has no units table with spike_times")
    rows = _rows(units, len(table))
    names = table[_NAME_COLUMN if _NAME_COLUMN in table.colnames else "id"]
    return observed_part(
        [np.asarray(table["spike_times"][row], dtype=float) for row in rows],
        [
            np.asarray(table["obs_intervals"][row], dtype=float).reshape(-1, 2)
            if "obs_intervals" in table.colnames
            else np.empty((0, 2))
            for row in rows
        ],
        [str(names[row]) for row in rows],
        t_start,
        t_stop,
    )


def _rows(units, n):
    """Return the numbers of the selected rows."""
    try:
        rows = np.arange(n) if units is None else np.arange(n)[plain_array(units, "units")]
    except (IndexError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"units must be rows of the units table, 0 to {n - 1}, or a mask of length {n}: {error}"
        ) from None
    if rows.ndim != 1 or rows.size == 0:
        raise ValueError(f"units must be at least one of the table's {n} rows, got {units!r}")
    return rows.tolist()
