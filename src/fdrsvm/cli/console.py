"""Printing: tables on stdout, progress on stderr, and neither colour nor bars in a file.

All that commands print goes through here, and only here is it made printable: names in it come from
other people's files.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from fdrsvm.core.texts import printable, printable_lines

if TYPE_CHECKING:
    from fdrsvm.federated.rounds import RoundRecord

_UNLIMITED = 10_000  # columns of a file
_PAGE = 88


def say(line: str = "") -> None:
    """A line on stdout, at once."""
    _put(printable(line) + "\n")


def say_lines(lines: Iterable[str]) -> None:
    """Lines on stdout, at once."""
    _put("".join(f"{printable(line)}\n" for line in lines))


def say_words(text: str) -> None:
    """A paragraph on stdout, in lines that fit a page."""
    width = min(_PAGE, shutil.get_terminal_size().columns) if sys.stdout.isatty() else _PAGE
    lines = textwrap.wrap(printable(text), width, break_on_hyphens=False, break_long_words=False)
    say_lines(lines)


def say_json(content: Any) -> None:
    """JSON on stdout, in ASCII."""
    text = json.dumps(content, indent=2, allow_nan=False)
    _put(text.replace("\x7f", "\\u007f") + "\n")  # the one control character that JSON lets pass


def put_content(text: str) -> None:
    """A file's content on stdout: as it is for a file or a pipe, printable for a terminal."""
    _put(printable_lines(text) if sys.stdout.isatty() else text)


def warn(line: str, who: str = "fdrsvm") -> None:
    """A line on stderr."""
    click.echo(_encodable(f"{who}: {printable(line)}", sys.stderr), err=True)


def warn_lines(text: str) -> None:
    """Several lines on stderr, such as a traceback."""
    click.echo(_encodable(printable_lines(text), sys.stderr), err=True)


def _put(text: str) -> None:
    try:
        # Not by click's echo: it would take what looks like colour out of a file.
        sys.stdout.write(_encodable(text, sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough, and click ends the program
        raise
    except OSError as error:
        # What could not be written must not be tried again at the end, when nobody can say so.
        with contextlib.suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        raise OSError(error.errno, error.strerror, "standard output") from error


def _encodable(text: str, stream: TextIO) -> str:
    """What the stream's encoding lacks as escapes: a name must not end what has succeeded."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def show_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str | tuple[str, ...]]],
    n_left: int = 1,
    spare: Sequence[str] = (),
) -> None:
    """A table on stdout; the first ``n_left`` columns hold names, the others numbers.

    A cell of several lines is a tuple. On a terminal that is too narrow the columns ``spare`` are
    left out, one by one, and named.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, width=None if sys.stdout.isatty() else _UNLIMITED)
    lines = [
        [tuple(map(printable, [cell] if isinstance(cell, str) else cell)) for cell in row]
        for row in rows
    ]
    columns = {
        name: [line for row in lines for line in row[place]] for place, name in enumerate(headings)
    }
    left_out = []
    for name in spare:
        if _least_width(columns) > console.width:
            left_out.append(name)
            del columns[name]
    shown = [place for place, name in enumerate(headings) if name not in left_out]
    whole = sum(2 + max(map(len, (name, *columns[name]))) for name in columns)
    is_stacked = whole > console.width >= _least_width(columns)  # cells stay in one line
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place in shown:
        said = printable(headings[place])
        text = Text("\n".join(said.split()) if is_stacked else said)
        table.add_column(text, justify="left" if place < n_left else "right")
    for row in lines:
        table.add_row(*(Text("\n".join(row[place])) for place in shown))  # Text has no markup
    with console.capture() as drawn:
        console.print(table)
    _put(drawn.get())  # with rich's own colours, if it is a terminal
    if left_out:
        say(f"(A wider terminal also shows: {', '.join(left_out)}.)")


def _least_width(columns: Mapping[str, Iterable[str]]) -> int:
    """Of a table in which only headings go over several lines."""
    widths = [max(map(len, (*name.split(), *cells, ""))) for name, cells in columns.items()]
    return sum(widths) + 2 * len(widths) - 2


class Watch:
    """Puts how far the work is on a line: call it with a round, or with trials done and of all."""

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put

    def __call__(self, record: RoundRecord, model: Any) -> None:  # noqa: ARG002
        """After a round."""
        gap = f"{record.gap:.1e}"
        self._put(f"round {record.round}: objective {record.objective:.5g}, certified gap {gap}")

    def trials(self, done: int, of_all: int) -> None:
        """After one configuration has been trained on one fold."""
        self._put(f"trying settings by cross-validation: {done} of {of_all}")


def page_width() -> int:
    """Columns of the terminal that reads, or as many as a file has."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _UNLIMITED


@contextlib.contextmanager
def steps(title: str) -> Iterator[Callable[[str], None]]:
    """A line on stderr that says what is being done, if that is a terminal; else nothing."""
    if not sys.stderr.isatty():
        yield lambda said: None  # noqa: ARG005
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True, highlight=False).status(Text(printable(title))) as status:
        yield lambda said: status.update(Text(printable(said)))


@contextlib.contextmanager
def progress(title: str) -> Iterator[Watch]:
    """A line on stderr that follows rounds and trials, if that is a terminal; else nothing."""
    with steps(title) as tell:
        yield Watch(tell)


def number(value: float, digits: int = 4) -> str:
    """A number for a table; a dash where there is none."""
    return "-" if value != value else f"{value:.{digits}g}"


def share(value: float) -> str:
    """A score between 0 and 1."""
    return "-" if value != value else f"{value:.3f}"
