"""Tables from CSV and Parquet files: columns by name, numbers and labels.

Errors name files, rules, counts and row numbers, and never a value: plants pass them on. Rows are
counted as a spreadsheet does, with the header in row 1; so are those of Parquet, which has none.

CSV is read by Python's own reader. pyarrow's is faster, but it is an optional dependency, larger
than all the others together, and its errors quote the value that it could not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.files import read_capped
from fdrsvm.core.texts import as_meant
from fdrsvm.data.csv_reading import Column, CsvFormat, is_table, read_cells, read_columns
from fdrsvm.errors import CorruptDataError, InvalidInputError

Mask: TypeAlias = npt.NDArray[np.bool_]
RowNumbers: TypeAlias = npt.NDArray[np.intp]

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet")
_PARQUET = ".parquet"
_NOTES = ".txt"  # such as README.txt
_MAX_BYTES = 1 << 32
_MAX_COLUMNS = 100_000  # each is an array of its own, and a million of them take minutes
_BEGINNING = 1 << 16  # bytes that tell a table from prose
_SAMPLE = 200  # cells that are looked at to tell dates from words
_LEAST_IDS = 10  # fewer words can all be different without being names of rows
_DATE = re.compile(
    r"\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}|"
    r"\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?)([T ].*)?\s*$",
    re.ASCII,
)


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name, as a contract reads them.

    Attributes
    ----------
    by_name : dict
        Each column: numbers, with nan where they are missing, or objects if some of it is text;
        then None is missing.
    row_numbers : ndarray of shape (n_rows,)
        The rows' numbers in a spreadsheet, where the header is row 1.
    written : CsvFormat or None
        How the file was written; None for Parquet.
    notes : dict
        By column why not all of its numbers could be told; they are text here.
    texts : dict
        The cells as they are written, of the columns that were asked for.
    """

    by_name: Mapping[str, Column]
    row_numbers: RowNumbers
    written: CsvFormat | None = None
    notes: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Rows with something in them."""
        return len(self.row_numbers)

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
        return replace(self, by_name=kept)


def data_files(folder: Path) -> list[Path]:
    """The data files in a folder, one per client, by name.

    A text file counts if it begins as a table does: README.txt is no client.
    """
    if not folder.is_dir():
        raise InvalidInputError(
            "data", "must be a folder with one CSV per client", "it is not there"
        )
    return sorted(path for path in folder.iterdir() if _has_data(path))


def _has_data(path: Path) -> bool:
    suffix = path.suffix.lower()
    if suffix != _NOTES:
        return suffix in SUFFIXES
    try:
        with path.open("rb") as file:
            start = file.read(_BEGINNING)
    except OSError:  # whoever reads it says why
        return not path.is_dir()
    return is_table(start)


def read_table(path: Path, texts: Collection[str] = ()) -> Table:
    """A file by its suffix, or an error that names it and the rule.

    ``texts`` names columns whose cells are also wanted as they are written, where there are such.
    """
    if path.is_dir():
        raise InvalidInputError(str(path), "must be a file", "it is a folder")
    if path.suffix.lower() not in SUFFIXES:
        kinds = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
        found = "it is called otherwise" if path.exists() else "it is not there"
        raise InvalidInputError(str(path), f"must be a {kinds} file", found)
    try:
        content = read_capped(path, _MAX_BYTES)
    except (OSError, CorruptDataError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidInputError(str(path), "must be a file that can be read", reason) from None
    return parse_table(content, str(path), texts)


def parse_table(content: bytes, file: str, texts: Collection[str] = ()) -> Table:
    """A file's bytes as a table; ``file`` is its name, whose suffix says what it is."""
    parse = _parse_parquet if file.lower().endswith(_PARQUET) else _parse_csv
    return parse(content, file, texts)


def _parse_csv(content: bytes, file: str, texts: Collection[str]) -> Table:
    cells = read_cells(content, file, _MAX_COLUMNS)
    _check_header(cells.header, len(cells.rows), file)
    read = read_columns(cells)
    wanted = {name: cells.header.index(name) for name in texts if name in read.by_name}
    return Table(
        read.by_name,
        np.array(cells.numbers, dtype=np.intp),
        CsvFormat(cells.separator, read.decimal, cells.encoding),
        read.notes,
        {name: [as_meant(row[at].strip()) for row in cells.rows] for name, at in wanted.items()},
    )


def _check_header(header: Sequence[str], n_rows: int, file: str) -> None:
    if not header or not n_rows:
        raise InvalidInputError("data", "must have a header line and a row", f"{file} has less")
    name, count = Counter(header).most_common(1)[0]
    if count > 1 or "" in header:
        places = (str(k) for k, other in enumerate(header, start=1) if other == name)
        first = " and ".join(islice(places, 2))
        found = f"{first} have the same" if count > 1 else f"{header.index('') + 1} has none"
        raise InvalidInputError("data", "columns must have different names", f"{file}: {found}")


def _parse_parquet(content: bytes, file: str, texts: Collection[str]) -> Table:
    try:
        from pyarrow import ArrowInvalid, BufferReader, parquet
    except ModuleNotFoundError:
        raise InvalidInputError(
            "data", "Parquet needs pyarrow", "it is not installed; install it, or write a CSV"
        ) from None
    try:
        source = parquet.ParquetFile(BufferReader(content))
        if source.metadata.num_columns > _MAX_COLUMNS:
            rule = f"must have at most {_MAX_COLUMNS} columns"
            raise InvalidInputError("data", rule, f"{file} has {source.metadata.num_columns}")
        table = source.read()
    except ArrowInvalid:
        raise InvalidInputError("data", "must be a Parquet file", f"{file} is none") from None
    _check_header(table.column_names, table.num_rows, file)
    columns = {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
    wanted = {name: table[name].to_pylist() for name in texts if name in columns}
    return Table(
        columns,
        np.arange(table.num_rows, dtype=np.intp) + 2,
        texts={
            name: ["" if item is None else str(item) for item in items]
            for name, items in wanted.items()
        },
    )


def read_numbers(column: Column) -> tuple[npt.NDArray[np.float64], Mask]:
    """A column as float64, and which rows are no finite number; those are nan or infinite."""
    if column.dtype.kind in "biuf":
        values = column.astype(np.float64)
        return values, ~np.isfinite(values)
    values = np.array([item if isinstance(item, float) else np.nan for item in column], dtype=float)
    return values, ~np.isfinite(values)


def is_missing(item: Any) -> bool:
    """Whether a column's item stands for nothing: None, nan, no time. A list is something."""
    return item is None or (not isinstance(item, np.ndarray) and bool(item != item))


def kind_of_text(items: Sequence[Any]) -> Literal["date", "id", "text"]:
    """What cells that are no numbers seem to be: dates or times, names of rows, or words.

    Names of rows are 10 or more, all different.
    """
    sample = items[:: max(1, len(items) // _SAMPLE)]
    are_times = [
        isinstance(item, np.datetime64 | np.timedelta64) or _DATE.match(str(item)) is not None
        for item in sample
    ]
    if sum(are_times) >= 0.9 * len(sample):
        return "date"
    is_id = len(items) >= _LEAST_IDS and len(set(map(str, items))) == len(items)
    return "id" if is_id else "text"


def read_labels(column: Column) -> tuple[Column, Mask]:
    """Whole numbers if all are, else text; and which rows are neither.

    Where some labels are numbers and some text, all are text.
    """
    if column.dtype.kind in "biu":
        return column.astype(np.int64), np.zeros(len(column), dtype=bool)
    if column.dtype.kind == "f":
        broken = ~np.isfinite(column) | (column != np.round(column))
        return np.where(broken, 0.0, column).astype(np.int64), broken
    broken = np.array([is_missing(item) for item in column], dtype=bool)
    texts = [
        str(int(item)) if isinstance(item, float) and item.is_integer() else str(item).strip()
        for item in column
    ]
    return np.array(texts), broken
