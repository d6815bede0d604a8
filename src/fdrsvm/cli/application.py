"""The program: its commands, and what becomes of their errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from fdrsvm import __version__
from fdrsvm.cli import (
    audit_leak,
    bench,
    certify,
    demo,
    evaluate,
    export,
    federation,
    fit,
    predict,
    report,
    reproduce,
)
from fdrsvm.cli.commands import Group
from fdrsvm.errors import FDRSVMError

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130


@click.group(
    cls=Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a model was written but its certified
gap is above what was asked for, 4 one was written that misses a class or ignores all
features, 130 interrupted. Errors are one line on stderr.

\b
example: fdrsvm fit north.csv south.csv --label fault --output run
         fdrsvm report run/model.safetensors north.csv south.csv --label fault
""",
)
@click.version_option(__version__, message="fdrsvm %(version)s")
def root() -> None:
    """Certified robust classifiers for data that cannot be pooled."""


for _module in (
    demo,
    fit,
    predict,
    evaluate,
    certify,
    report,
    export,
    audit_leak,
    bench,
    reproduce,
    federation,
):
    for _command in _module.COMMANDS:
        root.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    state: dict[str, Any] = {"debug": False, "typed": typed}
    try:
        result = root.main(args=typed, prog_name="fdrsvm", standalone_mode=False, obj=state)
    except click.UsageError as error:
        return _wrong_usage(error)
    except click.Abort:
        click.echo("fdrsvm: interrupted", err=True)
        return INTERRUPTED
    except Exception as error:
        return _failed(error, debug=state["debug"])
    return result if isinstance(result, int) else 0


def _wrong_usage(error: click.UsageError) -> int:
    """One line, but the whole help where nothing was asked for."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return WRONG_USAGE
    path = error.ctx.command_path if error.ctx else "fdrsvm"
    said = " ".join(error.format_message().split())
    click.echo(f"{path}: {said} See '{path} --help'.", err=True)
    return WRONG_USAGE


def _failed(error: Exception, *, debug: bool) -> int:
    """An error of ours in its own words; any other with its kind, since it is not expected."""
    if debug:
        traceback.print_exception(error)
    said = "; ".join(part.strip() for part in _words(error).splitlines() if part.strip())
    if not isinstance(error, FDRSVMError | OSError):
        said = f"{type(error).__name__}: {said}; run again with --debug to see where"
    click.echo(f"fdrsvm: {said}", err=True)
    return FAILED


def _words(error: Exception) -> str:
    """Of the system's errors the file and the reason, without its number."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)
