"""The command line: ``glmbrian train | evaluate | attack | export | reproduce | cache``.

Each command has a module of its name with two functions: `add` defines its options, and `run` does
the work and returns what it has found.  Importing them takes seconds, so `make_parser` does it, where
`main` handles errors and interruptions.
"""

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Sequence

from .showing import show
from .termination import Terminated, stopped, termination


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    name = "glmbrian"
    with termination():
        try:
            options = make_parser().parse_args(arguments)
            name += f" {options.command}"
            result = options.run(options)
            # With --json, the text for people goes to standard error, like logs.
            show(result, sys.stderr if options.json else sys.stdout)
            if options.json:
                print(json.dumps(result), flush=True)
            return 0
        except (ValueError, TypeError, OSError, RuntimeError, subprocess.SubprocessError) as error:
            print(f"{name}: error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            return stopped(f"{name}: stopped", signal.SIGINT)
        except Terminated:
            return stopped(f"{name}: stopped by SIGTERM", signal.SIGTERM)


def make_parser() -> argparse.ArgumentParser:
    from .._version import __version__
    from . import attack, cache, evaluate, export, reproduce, train

    parser = argparse.ArgumentParser(
        prog="glmbrian", description="Spiking GLM neurons for Brian 2: train and test on MNIST digits."
    )
    parser.add_argument("--version", action="version", version=f"glmbrian {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    for module in (train, evaluate, attack, export, reproduce, cache):
        command = module.add(commands)
        command.add_argument(
            "--json",
            action="store_true",
            help="print one JSON object as the last line of standard output",
        )
        command.set_defaults(run=module.run)
    return parser
