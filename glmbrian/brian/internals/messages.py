"""Messages of Brian's that would mislead: its loggers are the only place to change them."""

import logging
from typing import Any

from brian2.core.base import BrianObjectException

#: Names of pathways whose time steps may differ, as messages quote them.
_known_pathways: set[str] = set()


def _is_about_users_pathway(record):
    message = record.getMessage()
    return not any(name in message for name in _known_pathways)


logging.getLogger("brian2.synapses.synapses.synapses_dt_mismatch").addFilter(_is_about_users_pathway)


def time_steps_may_differ(synapses: Any) -> None:
    """Suppress Brian's warning that source and target of `synapses` have different time steps.

    The result is well defined, and a readout with its own time step would cause the warning in
    every run.  Brian can suppress it only for all synapses, including the user's.
    """
    _known_pathways.update(f"pathway '{pathway.name}'" for pathway in synapses._pathways)


def _explain_users_mistakes(record):
    """Replace Brian's request for a bug report if an uncaught error is about an argument of this package.

    Brian's hook for uncaught errors logs them with this request, and the log shows the traceback.
    Its preference `logging.display_brian_error_message` would hide the request for all errors.
    """
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, BrianObjectException):
        error = error.__cause__  # what went wrong when a run began
    if "unexpected error" in str(record.msg) and type(error) in (TypeError, ValueError):
        traceback = error.__traceback__
        while traceback is not None and traceback.tb_next is not None:
            traceback = traceback.tb_next
        raised_in = traceback.tb_frame.f_globals.get("__name__", "") if traceback else ""
        if raised_in.partition(".")[0] == __name__.partition(".")[0]:
            record.msg, record.args = "The program ended with an error:", ()
    return True


logging.getLogger("brian2").addFilter(_explain_users_mistakes)
