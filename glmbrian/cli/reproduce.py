"""``glmbrian reproduce``."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from joblib import cpu_count

from ..devices import cpp_standalone
from ..reproduce import FULL, QUICK, TARGETS, dask_workers, local_workers, reproduce
from ..support.validation import integer
from .output import require_writable


def add(commands: Any) -> argparse.ArgumentParser:
    command = commands.add_parser("reproduce", help="run the paper's experiments")
    command.add_argument(
        "figure", choices=(*TARGETS, "all"), help="figure 3, 4 or 5 of the paper, or all of them"
    )
    command.add_argument("--quick", action="store_true", help="fewer images, epochs, seeds and points")
    command.add_argument(
        "--seeds",
        type=int,
        metavar="N",
        help=f"fits per point (default: {FULL.n_seeds}, quick {QUICK.n_seeds})",
    )
    workers = command.add_mutually_exclusive_group()
    workers.add_argument(
        "--jobs", type=int, metavar="N", help="parallel fits on this machine (default: one per core)"
    )
    workers.add_argument(
        "--dask", metavar="ADDRESS", help="run on the Dask cluster with this scheduler, tcp://..."
    )
    command.add_argument("--output", type=Path, metavar="DIR",
                         help="folder for tables and figures; if it holds results of the same "
                         "settings, only missing results are computed (default: glmbrian-results, quick "
                         "glmbrian-results-quick)")  # fmt: skip
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    return command


def run(options: argparse.Namespace) -> dict[str, Any]:
    protocol = QUICK if options.quick else FULL
    output = options.output or Path("glmbrian-results" + ("-quick" if options.quick else ""))
    if options.seeds is not None:
        # An interval needs at least two seeds.
        protocol = replace(protocol, n_seeds=integer(options.seeds, "--seeds", 2))
    if options.dask is not None:
        workers = dask_workers(options.dask)
    else:
        n_jobs = cpu_count() if options.jobs is None else options.jobs
        workers = local_workers(integer(n_jobs, "--jobs"))
        if options.figure != "basis" and cpp_standalone.find_compiler() is None:
            raise cpp_standalone.CompilerNotFound(
                "a C++ compiler and make are needed for so many fits, but were not found: install "
                "the packages g++ and make, for example"
            )
    require_writable(output)
    return reproduce(
        list(TARGETS) if options.figure == "all" else [options.figure],
        protocol,
        output,
        workers,
        verbose=not options.quiet,
        say=(lambda line: None) if options.quiet else lambda line: print(line, file=sys.stderr),
    )
