"""Compare the speed of the package with other implementations of the same training.

    python benchmarks/compare.py [--quick] [--rounds N] [--data-dir DIR] [--output DIR]

``make benchmark`` installs the other implementations and runs this.
"""

import argparse
import sys
from pathlib import Path

from speed import benchmark, report

from glmbrian.devices.cpp_standalone import find_compiler


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer sizes and rounds; takes minutes")
    parser.add_argument(
        "--rounds", type=int, metavar="N", help="rounds of measurements (default: 5, quick 3)"
    )
    parser.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder with the IDX files of the full MNIST, for the comparison on many images "
        "(default: skip that comparison)",
    )
    parser.add_argument("--output", type=Path, default=Path("output/benchmark"), metavar="DIR",
                        help="folder for tables and pictures (default: %(default)s)")  # fmt: skip
    options = parser.parse_args(arguments)
    # Check now, because measuring takes minutes.
    if options.rounds is not None and options.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {options.rounds}")
    if options.data_dir is not None and not options.data_dir.is_dir():
        parser.error(f"--data-dir: there is no folder {options.data_dir}")
    if find_compiler() is None:
        parser.error("a C++ compiler and make are needed: install packages such as g++ and make")
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--output: cannot make the folder {options.output}: {error.strerror}")
    results = benchmark(
        options.quick,
        options.rounds,
        options.data_dir,
        progress=lambda text: print(text, file=sys.stderr),
    )
    report.write(results, options.output)
    print((options.output / "report.md").read_text())


if __name__ == "__main__":
    main()
