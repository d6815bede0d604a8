"""The command line: arguments to calls, printing, exit codes. No logic.

Exit codes: 0 done, 1 the command failed (one line on stderr says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fdrsvm import __version__
from fdrsvm.cli.federation import add_commands
from fdrsvm.errors import FDRSVMError


def _demo(arguments: argparse.Namespace) -> int:
    from fdrsvm.experiments.demo import format_table, run_demo

    try:
        from fdrsvm.experiments.report import write_report
    except ModuleNotFoundError as error:
        raise FDRSVMError(
            f"the demo draws with {error.name}: pip install 'fdr-svm[experiments]'"
        ) from None
    print("Training on four plants (the first run also compiles, about a minute) ...", flush=True)
    data, outcomes = run_demo(arguments.seed)
    path = write_report(data, outcomes, arguments.output, arguments.seed)
    print(format_table(outcomes))
    print(f"Report: {path}")
    return 0


def _seed(text: str) -> int:
    if not (text.isdecimal() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^32 - 1, not {text!r}")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="fdrsvm",
        description="Certified robust classifiers for data that cannot be pooled.",
    )
    parser.add_argument("--version", action="version", version=f"fdrsvm {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")
    demo = commands.add_parser(
        "demo",
        help="train on four plants with wrong labels and write a report",
        description="Train a plain and a robust model on four plants with wrong labels.",
        epilog="example: fdrsvm demo --output report",
    )
    demo.add_argument(
        "--output", type=Path, default=Path("report"), help="folder for index.html (report)"
    )
    demo.add_argument("--seed", type=_seed, default=0, help="seed of splits and noise (0)")
    demo.set_defaults(run=_demo)
    add_commands(commands)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors are one line on stderr."""
    parsed = _parser().parse_args(arguments)
    try:
        result: int = parsed.run(parsed)
    except (FDRSVMError, OSError) as error:
        print(f"fdrsvm: {error}", file=sys.stderr)
        return 1
    return result
