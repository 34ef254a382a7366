"""``glmbrian cache``."""

import argparse
import sys
from typing import Any

from ..support.cache import cache_folder, clear, kept_programs


def add(commands: Any) -> argparse.ArgumentParser:
    command = commands.add_parser(
        "cache", help="show the size of the compiled programs, or remove them"
    )
    command.add_argument("--clear", action="store_true", help="remove all except those in use")
    return command


def run(options: argparse.Namespace) -> dict[str, Any]:
    about = {"folder": str(cache_folder())}
    if not options.clear:
        programs, size = kept_programs()
        return {**about, "programs": programs, "bytes": size}
    removed, size, problems = clear()
    if problems:
        print("glmbrian cache: could not remove " + "\n  ".join(problems), file=sys.stderr)
    return {
        **about,
        "programs removed": removed,
        "bytes": size,
        "programs not removed": len(problems),
    }
