"""The CSV of a data set: cells that know their lines, or an error that names file, line and column.

``fdrsvm.data.tables`` reads the file. Public data sets are no secret, so errors quote the cell.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fdrsvm.core.arrays import Array
from fdrsvm.core.texts import as_meant
from fdrsvm.data.tables import as_number, csv_rows
from fdrsvm.errors import FDRSVMError

MISSING = frozenset({"", "?"})  # UCI writes either


class DataError(FDRSVMError, ValueError):
    """A data file breaks a rule.

    Attributes
    ----------
    file : str
        Path or address of the file.
    rule : str
        What must hold.
    found : str
        What is there instead.
    line : int or None
        Line in the file, counted from 1 as editors do.
    column : str or None
        Name of the column.
    """

    def __init__(
        self,
        file: str,
        rule: str,
        found: str,
        *,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        self.file = file
        self.rule = rule
        self.found = found
        self.line = line
        self.column = column
        super().__init__(file, rule, found)

    def __str__(self) -> str:
        line = "" if self.line is None else f", line {self.line}"
        column = "" if self.column is None else f", column {self.column!r}"
        return f"{self.file}{line}{column}: {self.rule}; {self.found}"


@dataclass(frozen=True)
class Cells:
    """Header and cells of a CSV; ``lines`` are the rows' line numbers, from 1."""

    file: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    @property
    def last_line(self) -> int:
        """That of the last row, or of the header."""
        return self.lines[-1] if self.lines else 1

    def find(self, column: str) -> list[int]:
        """Positions of the columns of that name, upper or lower case."""
        return [k for k, name in enumerate(self.header) if name.casefold() == column.casefold()]

    def text(self, column: int) -> list[str]:
        """The cells of a column, without spaces around them."""
        return [row[column].strip() for row in self.rows]

    def error(self, rule: str, found: str, row: int, column: int) -> DataError:
        """An error at a cell."""
        return DataError(self.file, rule, found, line=self.lines[row], column=self.header[column])


def read_cells(content: bytes, file: str) -> Cells:
    """Every row must have as many cells as the header; blank lines are passed over."""
    try:
        filled = [
            (line, row) for line, row in csv_rows(content) if len(row) > 1 or "".join(row).strip()
        ]
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(file, "must be UTF-8 text", f"byte {error.start}", line=line) from None
    except csv.Error as error:
        broken, line = error.args
        raise DataError(file, "must be a CSV", broken, line=line) from None
    if not filled:
        raise DataError(file, "must have a header line", "the file is empty", line=1)
    header = [as_meant(cell.strip()) for cell in filled[0][1]]
    for line, row in filled[1:]:
        if len(row) != len(header):
            raise DataError(
                file,
                f"every row must have {len(header)} cells, as the header has",
                f"this one has {len(row)}",
                line=line,
                column=header[len(row)] if len(row) < len(header) else None,
            )
    rows = [[as_meant(cell) for cell in row] for _, row in filled[1:]]
    return Cells(file, header, rows, [line for line, _ in filled[1:]])


def read_matrix(cells: Cells, columns: Sequence[int], *, may_miss: bool) -> Array:
    """Some columns as float64; a missing cell is NaN, if it may be missing."""
    numbers = np.empty((len(cells.rows), len(columns)))
    for n, row in enumerate(cells.rows):
        for k, column in enumerate(columns):
            cell = row[column].strip()
            if may_miss and cell in MISSING:
                numbers[n, k] = math.nan
                continue
            number = as_number(cell)
            if number is None or not math.isfinite(number):
                found = "the cell is empty" if not cell else f"the cell is {cell!r}"
                raise cells.error("must be a finite number", found, n, column)
            numbers[n, k] = number
    return numbers
