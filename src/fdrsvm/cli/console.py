"""Printing: tables on stdout, progress on stderr, and neither colour nor bars in a file."""

from __future__ import annotations

import contextlib
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fdrsvm.federated.rounds import RoundRecord

_UNLIMITED = 10_000  # columns of a file
_PAGE = 88


def say(line: str = "") -> None:
    """A line on stdout, at once."""
    click.echo(line)
    sys.stdout.flush()


def say_words(text: str) -> None:
    """A paragraph on stdout, in lines that fit a page."""
    say(textwrap.fill(text, _PAGE, break_on_hyphens=False, break_long_words=False))


def warn(line: str) -> None:
    """A line on stderr."""
    click.echo(f"fdrsvm: {line}", err=True)


def show_table(headings: Sequence[str], rows: Sequence[Sequence[str]], n_left: int = 1) -> None:
    """A table on stdout; the first ``n_left`` columns hold names, the others numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if place < n_left else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    width = None if sys.stdout.isatty() else _UNLIMITED
    Console(highlight=False, width=width).print(table)


@contextlib.contextmanager
def progress(title: str) -> Iterator[Callable[[RoundRecord, Any], None]]:
    """A line on stderr that follows the rounds, if that is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield lambda record, model: None  # noqa: ARG005
        return
    from rich.console import Console

    with Console(stderr=True, highlight=False).status(title) as status:

        def show(record: RoundRecord, model: Any) -> None:  # noqa: ARG001
            status.update(
                f"round {record.round}: objective {record.objective:.5g}, certified gap "
                f"{record.gap:.1e}"
            )

        yield show


def number(value: float, digits: int = 4) -> str:
    """A number for a table; a dash where there is none."""
    return "-" if value != value else f"{value:.{digits}g}"


def share(value: float) -> str:
    """A score between 0 and 1."""
    return "-" if value != value else f"{value:.3f}"
