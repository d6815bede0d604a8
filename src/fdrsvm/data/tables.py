"""Tables from CSV and Parquet files: columns by name, numbers and labels.

Errors name files, rules, counts and row numbers, and never a value: plants pass them on. Rows are
counted from 0, without the header line.

CSV is read by Python's own reader. pyarrow's is faster, but it is an optional dependency, larger
than all the others together, and its errors quote the value that it could not read.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.files import read_capped
from fdrsvm.core.texts import as_meant
from fdrsvm.errors import CorruptDataError, InvalidInputError

Column: TypeAlias = npt.NDArray[Any]
Mask: TypeAlias = npt.NDArray[np.bool_]

SUFFIXES = (".csv", ".parquet")
_PARQUET = ".parquet"
_MAX_BYTES = 1 << 32
_MAX_COLUMNS = 100_000  # each is an array of its own, and a million of them take minutes
_MISSING = ("", "?", "nan", "NaN", "NA")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, as a contract reads them: numbers, or objects where None is missing."""

    by_name: Mapping[str, Column]
    n_rows: int

    @property
    def columns(self) -> list[str]:
        """The names, in order."""
        return list(self.by_name)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.n_rows, len(self.by_name)

    def __getitem__(self, name: str) -> Column:
        return self.by_name[name]

    def without(self, *names: str) -> Table:
        """The other columns."""
        kept = {name: column for name, column in self.by_name.items() if name not in names}
        return Table(kept, self.n_rows)


def data_files(folder: Path) -> list[Path]:
    """The data files in a folder, one per client, by name."""
    if not folder.is_dir():
        raise InvalidInputError(
            "data", "must be a folder with one CSV per client", "it is not there"
        )
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)


def read_table(path: Path) -> Table:
    """A file by its suffix, or an error that names it and the rule."""
    if path.is_dir():
        raise InvalidInputError(str(path), "must be a file", "it is a folder")
    if path.suffix.lower() not in SUFFIXES:
        kinds = " or ".join(SUFFIXES)
        found = "it is called otherwise" if path.exists() else "it is not there"
        raise InvalidInputError(str(path), f"must be a {kinds} file", found)
    try:
        content = read_capped(path, _MAX_BYTES)
    except (OSError, CorruptDataError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(str(path), "must be a file that can be read", reason) from None
    return parse_table(content, str(path))


def parse_table(content: bytes, file: str) -> Table:
    """A file's bytes as a table; ``file`` is its name, whose suffix says what it is."""
    is_parquet = file.lower().endswith(_PARQUET)
    columns = _parse_parquet(content, file) if is_parquet else _parse_csv(content, file)
    return Table(columns, len(next(iter(columns.values()), ())))


def csv_rows(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """The line, from 1, that each row starts on, and its cells, of which a blank line has none.

    A UnicodeDecodeError says which byte is wrong, a csv.Error what is broken and in which line.
    """
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1  # a quoted cell may go over several lines
    except csv.Error as error:
        raise csv.Error(str(error), reader.line_num) from None


def _parse_csv(content: bytes, file: str) -> dict[str, Column]:
    try:
        filled = (row for _, row in csv_rows(content) if row)
        header = [as_meant(cell.strip()) for cell in next(filled, [])]
        _check_count(len(header), file)
        rows = list(filled)
    except UnicodeDecodeError as error:
        found = f"{file}: byte {error.start} is none"
        raise InvalidInputError("data", "must be a CSV in UTF-8", found) from None
    except csv.Error:
        raise InvalidInputError("data", "must be a CSV in UTF-8", f"{file}: it is broken") from None
    _check_header(header, len(rows), file)
    for number, row in enumerate(rows):
        if len(row) != len(header):
            raise InvalidInputError(
                "data",
                f"every row must have {len(header)} cells, as the header has",
                f"{file}: row {number} has {len(row)}{ask_separator(header)}",
            )
    cells = zip(*rows, strict=True)
    return {name: _column(column) for name, column in zip(header, cells, strict=True)}


def _check_count(n_columns: int, file: str) -> None:
    if n_columns > _MAX_COLUMNS:
        rule = f"must have at most {_MAX_COLUMNS} columns"
        raise InvalidInputError("data", rule, f"{file} has {n_columns}")


def _check_header(header: Sequence[str], n_rows: int, file: str) -> None:
    if not header or not n_rows:
        raise InvalidInputError("data", "must have a header line and a row", f"{file} has less")
    name, count = Counter(header).most_common(1)[0]
    if count > 1 or "" in header:
        places = (str(k) for k, other in enumerate(header) if other == name)
        first = " and ".join(islice(places, 2))
        found = f"{first} have the same" if count > 1 else "one has none"
        raise InvalidInputError("data", "columns must have different names", f"{file}: {found}")


def ask_separator(header: Sequence[str]) -> str:
    """A question to append to an error, if names look as if cells ended elsewhere; else nothing."""
    for mark, words in ((";", "';'"), ("\t", "tabs")):
        if any(mark in name for name in header):
            return f"; is it separated by {words}? It must be by commas"
    return ""


def _column(cells: Sequence[str]) -> Column:
    """Numbers if all of them are, else as a contract can tell them apart: None is missing."""
    if not any("_" in cell for cell in cells):  # see as_number
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:
            pass
    values = np.empty(len(cells), dtype=object)
    for n, cell in enumerate(cells):
        values[n] = read_cell(as_meant(cell.strip()))
    return values


def read_cell(cell: str) -> float | str | None:
    """A number, text, or None if it is missing."""
    if cell in _MISSING:
        return None
    number = as_number(cell)
    return cell if number is None else number


def as_number(cell: str) -> float | None:
    """None if it is text."""
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_000, nobody else does
    except ValueError:
        return None


def _parse_parquet(content: bytes, file: str) -> dict[str, Column]:
    try:
        from pyarrow import ArrowInvalid, BufferReader, parquet
    except ModuleNotFoundError:
        raise InvalidInputError(
            "data", "Parquet needs pyarrow", "it is not installed; install it, or write a CSV"
        ) from None
    try:
        source = parquet.ParquetFile(BufferReader(content))
        _check_count(source.metadata.num_columns, file)
        table = source.read()
    except ArrowInvalid:
        raise InvalidInputError("data", "must be a Parquet file", f"{file} is none") from None
    _check_header(table.column_names, table.num_rows, file)
    return {name: np.asarray(table[name].to_numpy()) for name in table.column_names}


def read_numbers(column: Column) -> tuple[npt.NDArray[np.float64], Mask]:
    """A column as float64, and which rows are no finite number; those are nan."""
    if column.dtype.kind in "biuf":
        values = column.astype(np.float64)
        return values, ~np.isfinite(values)
    values = np.array([item if isinstance(item, float) else np.nan for item in column], dtype=float)
    return values, ~np.isfinite(values)


def read_labels(column: Column) -> tuple[Column, Mask]:
    """Whole numbers if all are, else text; and which rows are neither.

    Where some labels are numbers and some text, all are text.
    """
    if column.dtype.kind in "biu":
        return column.astype(np.int64), np.zeros(len(column), dtype=bool)
    if column.dtype.kind == "f":
        broken = ~np.isfinite(column) | (column != np.round(column))
        return np.where(broken, 0.0, column).astype(np.int64), broken
    broken = np.array([item is None or item != item for item in column], dtype=bool)
    texts = [
        str(int(item)) if isinstance(item, float) and item.is_integer() else str(item).strip()
        for item in column
    ]
    return np.array(texts), broken
