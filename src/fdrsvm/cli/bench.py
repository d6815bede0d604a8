"""``fdrsvm bench``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from fdrsvm.cli.commands import Command
from fdrsvm.errors import UnsupportedError

_ENTRY = Path("benchmarks") / "__main__.py"


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    epilog="example: fdrsvm bench --quick",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def bench(arguments: Sequence[str]) -> int:
    """Run the benchmarks, in a checkout of the project.

    ARGUMENTS go to `python -m benchmarks`, which lists its own with --help after a --.
    """
    here = Path.cwd()
    root = next((each for each in (here, *here.parents) if (each / _ENTRY).is_file()), None)
    if root is None:
        raise UnsupportedError(
            "bench: the benchmarks are not part of the installed package; run this in a checkout "
            "of the project, where benchmarks/__main__.py is"
        )
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=root, check=False).returncode  # noqa: S603
