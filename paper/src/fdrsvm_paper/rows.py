"""Rows of results in CSV files that grow as results come: an interrupted run loses none.

Rows that belong together end with an empty line, which CSV readers skip. What comes after the last
one was interrupted, and is dropped.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fdrsvm.core.files import append_whole, write_atomically
from fdrsvm.errors import InvalidInputError

Row = dict[str, str]

_END = b"\n\n"


def read_rows(path: Path) -> list[Row]:
    """All whole rows of a CSV file, plain or ``.gz``; none if there is no file."""
    if not path.exists():
        return []
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    whole = content[: _whole_size(content)].decode("utf-8")
    return list(csv.DictReader(io.StringIO(whole, newline="")))


def _whole_size(content: bytes) -> int:
    """Bytes up to the last end of rows that belong together."""
    end = content.rfind(_END)
    return end + len(_END) if end >= 0 else 0


class RowFile:
    """A file of rows with these columns.

    Parameters
    ----------
    path : Path
        Its folder is made if need be.
    columns : sequence of str
        An existing file must have the same.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = tuple(columns)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.exists() else b""
        whole = _whole_size(content)
        if whole == 0:
            self.replace([])
            return
        header = tuple(next(csv.reader([content[: content.index(b"\n")].decode("utf-8")])))
        if header != self.columns:
            raise InvalidInputError(
                str(path),
                f"must have the columns {', '.join(self.columns)}",
                f"it has {', '.join(header)}: rows of another version; use another folder",
            )
        if whole < len(content):  # or the next rows would join the torn ones
            os.truncate(path, whole)

    def read(self) -> list[Row]:
        """All rows."""
        return read_rows(self.path)

    def append(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Adds rows that belong together: all of them will be there, or none."""
        append_whole(self.path, self._lines(rows))

    def replace(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Writes all rows again."""
        header = dict(zip(self.columns, self.columns, strict=True))
        write_atomically(self.path, self._lines([header, *rows]))

    def _lines(self, rows: Iterable[Mapping[str, Any]]) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, self.columns, lineterminator="\n")
        writer.writerows(rows)
        return text.getvalue().encode("utf-8") + b"\n"
