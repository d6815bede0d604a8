"""CSV files into numbers, or an error that names file, line and column."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.texts import as_meant, csv_text
from fdrsvm.datasets._errors import DataError

MISSING = frozenset({"", "?"})  # UCI writes either


@dataclass(frozen=True)
class Rows:
    """Header and cells of a CSV; ``lines`` are the rows' line numbers, from 1."""

    file: str
    header: list[str]
    cells: list[list[str]]
    lines: list[int]

    def find(self, column: str) -> list[int]:
        """Positions of the columns of that name, upper or lower case."""
        return [k for k, name in enumerate(self.header) if name.casefold() == column.casefold()]

    def error(self, rule: str, found: str, row: int, column: int | None = None) -> DataError:
        """An error at a cell, or at a row."""
        name = None if column is None else self.header[column]
        return DataError(self.file, rule, found, line=self.lines[row], column=name)


def read_rows(content: bytes, file: str) -> Rows:
    """Every row must have as many cells as the header; blank lines are passed over."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(file, "must be UTF-8 text", f"byte {error.start}", line=line) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        # The line a row starts on: one past where the row before it ended.
        numbered, before = [], 0
        for row in reader:
            if len(row) > 1 or "".join(row).strip():
                numbered.append((before + 1, row))
            before = reader.line_num
    except csv.Error as error:
        raise DataError(file, "must be a CSV", str(error), line=reader.line_num) from None
    if not numbered:
        raise DataError(file, "must have a header line", "the file is empty", line=1)
    header = [as_meant(cell.strip()) for cell in numbered[0][1]]
    for line, row in numbered[1:]:
        if len(row) != len(header):
            raise DataError(
                file,
                f"every row must have {len(header)} cells, as the header has",
                f"this one has {len(row)}",
                line=line,
                column=header[len(row)] if len(row) < len(header) else None,
            )
    cells = [[as_meant(cell) for cell in row] for _, row in numbered[1:]]
    return Rows(file, header, cells, [n for n, _ in numbered[1:]])


def read_numbers(rows: Rows, columns: Sequence[int], *, may_miss: bool) -> Array:
    """Cells of some columns as float64; a missing one is NaN, if it may be missing."""
    numbers = np.empty((len(rows.cells), len(columns)))
    for n, row in enumerate(rows.cells):
        for k, column in enumerate(columns):
            cell = row[column].strip()
            if may_miss and cell in MISSING:
                numbers[n, k] = math.nan
            else:
                numbers[n, k] = _number(rows, n, column, cell)
    return numbers


def _number(rows: Rows, row: int, column: int, cell: str) -> float:
    try:
        number = math.nan if "_" in cell else float(cell)  # Python reads 1_000, nobody else does
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        found = "the cell is empty" if not cell else f"the cell is {cell!r}"
        raise rows.error("must be a finite number", found, row, column)
    return number


def write_csv(header: Sequence[str], cells: Sequence[Sequence[str]]) -> bytes:
    """The bytes of a CSV, with the same line ends on every platform."""
    return csv_text([header, *cells]).encode()
