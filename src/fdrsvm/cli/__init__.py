"""The command line: arguments to calls, printing, exit codes. No logic.

Exit codes: 0 done, 1 the command failed (one line on stderr says why), 2 wrong usage.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fdrsvm import __version__
from fdrsvm.cli.federation import add_commands
from fdrsvm.errors import FDRSVMError


def _demo(arguments: argparse.Namespace) -> int:
    from fdrsvm.experiments.demo import format_table, run_demo

    try:
        from fdrsvm.experiments.demo_report import write_report
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


def _reproduce(arguments: argparse.Namespace) -> int:
    try:
        from fdrsvm.experiments.reproduction.command import Options, reproduce
    except ModuleNotFoundError as error:
        raise FDRSVMError(
            f"the figures are drawn with {error.name}: pip install 'fdr-svm[experiments]'"
        ) from None
    options = Options(
        protocol=arguments.protocol,
        repetitions=arguments.repetitions,
        jobs=arguments.jobs,
        data_home=arguments.data,
        quick=arguments.quick,
        seed=arguments.seed,
    )
    command = shlex.join(["fdrsvm", *arguments.typed])
    path = reproduce(arguments.target, options, arguments.output, command)
    print(f"Report: {path}")
    return 0


def _seed(text: str) -> int:
    if not (text.isdecimal() and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to 2^32 - 1, not {text!r}")
    return int(text)


def _count(text: str) -> int:
    if not (text.isdecimal() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
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
    _add_reproduce(commands)
    add_commands(commands)
    return parser


def _add_reproduce(commands: Any) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="repeat the paper's experiments: tables, figures and a report",
        description="Repeat the paper's experiments. Rows are stored as they come: run the same "
        "command again after an interruption, and what is done is skipped.",
        epilog="example: fdrsvm reproduce table1 --protocol both --jobs 2 --data uci",
    )
    reproduce.add_argument(
        "target",
        choices=("table1", "wilcoxon", "table2", "sensitivity", "scalability", "rounds", "all"),
        help="what to repeat; wilcoxon is made from table1's rows",
    )
    reproduce.add_argument(
        "--protocol",
        choices=("paper-code", "text", "both"),
        default="paper-code",
        help="as the authors' scripts behave, or as the paper says (paper-code)",
    )
    reproduce.add_argument(
        "--repetitions",
        type=_count,
        help="instead of 50 (table1, sensitivity), 10 (table2, scalability) and 5 (rounds)",
    )
    reproduce.add_argument("--jobs", type=_count, default=1, help="processes (1)")
    reproduce.add_argument(
        "--data",
        help="folder of the UCI sets' CSV files (FDRSVM_DATA, or they are fetched and kept)",
    )
    reproduce.add_argument(
        "--quick", action="store_true", help="a small part of everything, in a minute or two"
    )
    reproduce.add_argument(
        "--output",
        type=Path,
        default=Path("reproduction"),
        help="folder for rows, tables, figures and report/index.html (reproduction)",
    )
    reproduce.add_argument("--seed", type=_seed, default=0, help="seed of all random numbers (0)")
    reproduce.set_defaults(run=_reproduce)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors are one line on stderr."""
    parsed = _parser().parse_args(arguments)
    parsed.typed = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result: int = parsed.run(parsed)
    except (FDRSVMError, OSError) as error:
        print(f"fdrsvm: {error}", file=sys.stderr)
        return 1
    return result
