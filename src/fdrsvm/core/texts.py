"""Text that others wrote, made safe for terminals, logs, pages and spreadsheets.

Names of clients, columns, labels and files come from other people's files and machines. On a
terminal an escape sequence among them moves the cursor or rewrites lines, a newline forges one, and
an override of direction turns a word round; a spreadsheet runs a cell that starts like a formula.
"""

from __future__ import annotations

import csv
import io
import logging
import re
import unicodedata
from collections.abc import Iterable, Sequence

_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf|nan)", re.ASCII | re.IGNORECASE)
# A cell starts at its beginning, and after what a spreadsheet set to another separator cuts at.
_CELL_START = r"(\A|[;\t\r\n])"
_FORMULA = r"(?='*\s*[=+\-@\t\r\n＝＋－＠])"  # noqa: RUF001 - some spreadsheets take the wide ones
_TO_GUARD = re.compile(_CELL_START + _FORMULA)
_GUARDED = re.compile(_CELL_START + "'" + _FORMULA)


def printable(text: str) -> str:
    r"""One line in which every character is seen; the others are written as Python writes them.

    Control characters, line ends, overrides of direction, invisible ones and halves of pairs:

    >>> printable("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\\nc'
    """
    if text.isprintable():
        return text
    return "".join(
        letter  # letters, marks, and every width of space are seen
        if letter.isprintable() or unicodedata.category(letter) == "Zs"
        else letter.encode("unicode_escape").decode("ascii")
        for letter in text
    )


def printable_lines(text: str) -> str:
    """The same for a text of several lines."""
    return "\n".join(map(printable, text.split("\n")))


def listed(names: Iterable[object], most: int) -> str:
    """Names one after the other, of many the first and how many more there are.

    >>> listed(["north", "south", "west"], 2)
    'north, south and 1 more'
    """
    every = [str(name) for name in names]
    more = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


def package_log() -> logging.Logger:
    """The package's logger; what it passes on is printable, tracebacks too."""
    log = logging.getLogger("fdrsvm")
    log.addFilter(_make_printable)  # the same filter is added once
    return log


def _make_printable(record: logging.LogRecord) -> bool:
    record.msg, record.args = printable(record.getMessage()), None
    if record.exc_info and not record.exc_text:
        text = logging.Formatter().formatException(record.exc_info)
        record.exc_text = printable_lines(text)  # what formatters show if it is there
    return True


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Lines of a CSV, with the same ends on every platform; no text in it is run as a formula."""
    lines = []
    for row in rows:
        stream = io.StringIO(newline="")
        writer = csv.writer(stream, lineterminator="\r\n")  # else it quotes no carriage return
        writer.writerow([inert(cell) if isinstance(cell, str) else cell for cell in row])
        lines.append(stream.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)


def inert(cell: str) -> str:
    """A cell with an apostrophe before all that a spreadsheet would run; numbers are as they are.

    >>> inert("=1+1"), inert("-3.5"), inert("leak")
    ("'=1+1", '-3.5', 'leak')
    """
    return cell if _NUMBER.fullmatch(cell) else _TO_GUARD.sub(r"\1'", cell)


def as_meant(cell: str) -> str:
    """The text of which ``inert`` made this cell; any other cell is itself."""
    if "'" not in cell:
        return cell
    meant = _GUARDED.sub(r"\1", cell)
    return meant if inert(meant) == cell else cell
