"""The program: its commands, and what becomes of their errors."""

from __future__ import annotations

import errno
import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import click

from fdrsvm import __version__
from fdrsvm.cli import federation
from fdrsvm.cli.add_ons import Program
from fdrsvm.cli.alarm import alarm
from fdrsvm.cli.audit_leak import audit_leak
from fdrsvm.cli.bench import bench
from fdrsvm.cli.certify import certify
from fdrsvm.cli.check import check
from fdrsvm.cli.console import warn, warn_lines
from fdrsvm.cli.demo import demo
from fdrsvm.cli.fit import fit
from fdrsvm.cli.models import evaluate, export, report
from fdrsvm.cli.personalise import personalise
from fdrsvm.cli.predict import predict
from fdrsvm.errors import FDRSVMError

FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
# What the system says of a disk is not a sentence, and differs from system to system.
_REASONS = {
    errno.ENOSPC: "the disk is full; make room, or write elsewhere",
    errno.EDQUOT: "your share of the disk is used up; make room, or write elsewhere",
    errno.EFBIG: "the file would be larger than it may be here; write elsewhere",
}


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="""\b
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a model was written but its certified
gap is above what was asked for, 4 one was written that misses a class or ignores all
features, 130 interrupted. Errors are one line on stderr.

\b
example: fdrsvm fit north.csv south.csv --output run
         fdrsvm report run/model.safetensors north.csv south.csv
""",
)
@click.version_option(__version__, message="fdrsvm %(version)s")
def root() -> None:
    """Certified robust classifiers for data that cannot be pooled."""


_USED = (predict, evaluate, certify, report, personalise, alarm, export)
_OWN = (demo, check, fit, *_USED, audit_leak, bench)
for _command in (*_OWN, *federation.COMMANDS):
    root.add_command(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    state: dict[str, Any] = {"debug": False, "typed": typed}
    try:
        with warnings.catch_warnings():
            # In one line, like an error, without the place in the program that Python adds.
            warnings.showwarning = lambda message, *_, **__: warn(_in_one_line(str(message)))
            result = root.main(args=typed, prog_name="fdrsvm", standalone_mode=False, obj=state)
    except click.exceptions.NoArgsIsHelpError as error:
        warn_lines(error.format_message())
        return WRONG_USAGE
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx else "fdrsvm"
        said = " ".join(error.format_message().split())
        warn(f"{said} See '{path} --help'.", who=path)
        return WRONG_USAGE
    except click.Abort:
        warn("interrupted")
        return INTERRUPTED
    except Exception as error:
        if state["debug"]:
            warn_lines("".join(traceback.format_exception(error)).rstrip("\n"))
        warn(_in_words(error))
        return FAILED
    return result if isinstance(result, int) else 0


def _in_words(error: Exception) -> str:
    """An error of ours in its own words; any other with its kind, since it is not expected.

    Of the system's errors the file and the reason, without its number.
    """
    text = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        reason = _REASONS.get(error.errno or 0, error.strerror)
        text = f"{error.filename}: {reason}" if error.filename else reason
    if not isinstance(error, FDRSVMError | OSError):
        text = f"{type(error).__name__}: {text}; run again with --debug to see where"
    return _in_one_line(text)


def _in_one_line(text: str) -> str:
    return "; ".join(part.strip() for part in text.split("\n") if part.strip())
