"""CSV as it comes: encoding, separator and the mark before decimals are recognised, not agreed on.

Where a file can be read in two ways it is refused, or its column is: nothing is guessed. A cell
such as ``1,234`` has a decimal comma or parts thousands, and only the other cells can tell. What
cannot be told stays text, so that no number is wrong, and a note says what to do about it.

Errors name files, rules, counts and row numbers, and never a value: plants pass them on. Rows are
counted as a spreadsheet does: the header is row 1, a blank line is a row, and a quoted cell of
several lines is in one row.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.texts import as_meant
from fdrsvm.errors import InvalidInputError

Column: TypeAlias = npt.NDArray[Any]

SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs"}
SEPARATORS = tuple(SEPARATOR_NAMES)
_MISSING = ("", "?", "nan", "NaN", "NA", "N/A", "#N/A", "NULL", "null")
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # begins as the next but one does
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t])"?\r?\n')  # spreadsheets write and do not show it

# One mark that three digits follow: of decimals or of thousands. No group of thousands begins
# with 0, so 0,123 has a decimal comma.
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2}([.,])\d{3}", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}((\.\d{3})+,\d*|(,\d{3})+\.\d*|(\.\d{3}){2,}|(,\d{3}){2,})", re.ASCII
)
_DIGITS = re.compile(r"[+-]?[\d.,]+([eE][+-]?\d+)?", re.ASCII)

_ALIKE = "some of its numbers have a decimal point, others a decimal comma: write all alike"
_GROUPED = "some of its numbers have marks between thousands: write them without"
_TWO_WAYS = (
    "its points or commas can part decimals or thousands, and nothing in the file says which: "
    "write numbers without marks between thousands and with decimal points, in cells that commas "
    "separate"
)


@dataclass(frozen=True)
class CsvFormat:
    r"""How a file was written.

    Attributes
    ----------
    separator : str
        ``","``, ``";"`` or ``"\t"``.
    decimal : str
        The marks before decimals that its numbers have: ``"."``, ``","``, ``",."`` if columns
        differ, ``""`` if there are none.
    encoding : str
    """

    separator: str
    decimal: str
    encoding: str


@dataclass(frozen=True, eq=False)
class Cells:
    """A file's cells as they are written; ``numbers`` are those of its rows in a spreadsheet."""

    header: list[str]
    rows: list[list[str]]
    numbers: list[int]
    separator: str
    encoding: str


@dataclass(frozen=True, eq=False)
class Numbers:
    """The columns as numbers where they are, and notes where it cannot be told."""

    by_name: Mapping[str, Column]
    notes: Mapping[str, str]
    decimal: str


# --- cells ---


def csv_rows(content: bytes) -> Iterator[tuple[int, list[str]]]:
    """The line, from 1, that each row starts on, and its cells, of which a blank line has none.

    Of a file in UTF-8 that commas separate. A UnicodeDecodeError says which byte is wrong, a
    csv.Error what is broken and in which line.
    """
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            yield line, row
            line = reader.line_num + 1  # a quoted cell may go over several lines
    except csv.Error as error:
        raise csv.Error(str(error), reader.line_num) from None


def read_cells(content: bytes, file: str, most_columns: int) -> Cells:
    """All cells, of which every row has as many as the header."""
    text, encoding = _decode(content, file)
    told = _SEPARATOR_LINE.match(text)
    if told is None:
        separator = _recognise(text, file)
    else:
        text, separator = text[told.end() :], told[1]
    rows: list[list[str]] = []
    numbers, at = [], 0
    try:
        for at, row in _filled(text, separator):
            if not rows and len(row) > most_columns:
                rule = f"must have at most {most_columns} columns"
                raise InvalidInputError("data", rule, f"{file} has {len(row)}")
            rows.append(row)
            numbers.append(at)
    except csv.Error:
        found = f"{file}: it is broken after row {at}; is a quote missing there?"
        raise InvalidInputError("data", "must be a CSV in UTF-8", found) from None
    header = [as_meant(cell.strip()) for cell in rows[0]] if rows else []
    for number, row in zip(numbers, rows, strict=True):
        if len(row) != len(header):
            has_more = separator == "," and len(row) > len(header)
            raise InvalidInputError(
                "data",
                f"every row must have {len(header)} cells, as the header has",
                f"{file}: row {number} has {len(row)}{ask_separator(header, has_more=has_more)}",
            )
    return Cells(header, rows[1:], numbers[1:], separator, encoding)


def _decode(content: bytes, file: str) -> tuple[str, str]:
    """The text, and its encoding: UTF-8, or what a byte order mark names."""
    encoding = _encoding_of(content)
    remedy = "save it as 'CSV UTF-8', as spreadsheets call it"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"{file}: byte {error.start} is none, in line {line}; {remedy}"
        raise InvalidInputError("data", "must be a CSV in UTF-8", found) from None
    if "\0" in text:
        found = f"{file}: it holds the character 0, as other encodings do; {remedy}"
        raise InvalidInputError("data", "must be a CSV in UTF-8", found)
    return text, encoding.removesuffix("-sig")


def _encoding_of(content: bytes) -> str:
    return next((name for mark, name in _BYTE_ORDER_MARKS if content.startswith(mark)), "utf-8")


def _filled(text: str, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Rows that hold something with their numbers; spreadsheets write empty ones at the end."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for number, row in enumerate(reader, start=1):
        if any(cell and not cell.isspace() for cell in row):
            yield number, row


def _recognise(text: str, file: str) -> str:
    """The separator: the only one that parts the header, or that all rows agree with."""
    parts = {}
    for separator in SEPARATORS:
        with contextlib.suppress(csv.Error):  # cells in quotes that another character separates
            parts[separator] = len(next(_filled(text, separator), (0, []))[1])
    parts = {separator: width for separator, width in parts.items() if width > 1}
    if len(parts) <= 1:
        return next(iter(parts), SEPARATORS[0])
    for are_clean in (True, False):
        fitting = [one for one in parts if _fits(text, one, parts if are_clean else ())]
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            kinds = " or ".join(SEPARATOR_NAMES[one] for one in fitting)
            raise InvalidInputError(
                "data",
                "it must be clear which character separates the cells",
                f"{file}: {kinds} could; quote the names and cells that hold the other one",
            )
    return max(parts, key=lambda separator: parts[separator])  # whose first broken row is named


def _fits(text: str, separator: str, others: Collection[str]) -> bool:
    """Whether all rows are as wide as the header, and no cell holds another separator.

    A comma in a number is none.
    """
    marks = [other for other in others if other != separator]
    rows = (row for _, row in _filled(text, separator))
    try:
        width = len(next(rows))  # of the header, whose names may hold anything
        return all(
            len(row) == width
            and not any(
                mark in cell and not (mark == "," and _DIGITS.fullmatch(cell.strip()))
                for mark in marks
                for cell in row
            )
            for row in rows
        )
    except csv.Error:
        return False


def ask_separator(header: Sequence[str], *, has_more: bool = False) -> str:
    """What to append to an error, if cells seem to end elsewhere; else nothing.

    ``has_more`` tells of a row with more cells than the header.
    """
    if len(header) == 1:
        for mark, words in (("|", "'|'"), (" ", "spaces")):
            if mark in header[0]:
                return f"; is it separated by {words}? It must be by commas, semicolons or tabs"
    remedy = "; if commas are its decimal marks, separate the cells by semicolons"
    return remedy if has_more else ""


def is_table(start: bytes) -> bool:
    """Whether a text may be a table: a separator is as often in its second line as in its first.

    So it is told from prose by its beginning.
    """
    text = start.decode(_encoding_of(start), errors="replace")
    told = _SEPARATOR_LINE.match(text)
    lines = [line for line in text[told.end() if told else 0 :].splitlines() if line.strip()][:2]
    return len(lines) == 2 and any(
        0 < lines[0].count(mark) == lines[1].count(mark) for mark in SEPARATORS
    )


# --- numbers ---


@dataclass
class NumberMarks:
    """The marks in a column's numbers: of decimals for sure, and of decimals or thousands.

    ``grouped`` are the decimal marks of numbers whose thousands are parted.
    """

    sure: set[str] = field(default_factory=set)
    either: set[str] = field(default_factory=set)
    grouped: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, column: Sequence[str], *, has_one_mark: bool) -> NumberMarks:
        """Those of a column; ``has_one_mark`` tells that all are numbers with the same, if any."""
        marks = cls()
        for cell in column:
            if "." not in cell and "," not in cell:
                continue
            number = as_meant(cell.strip())
            either = _EITHER.fullmatch(number)
            if either is not None:
                marks.either.add(either[1])
            elif _THOUSANDS.fullmatch(number):
                first = next(letter for letter in number if letter in ".,")  # it parts thousands
                marks.grouped.add("," if first == "." else ".")
            elif _DECIMAL_COMMA.fullmatch(number):
                marks.sure.add(",")
                if has_one_mark:
                    break  # nothing else can be found
            elif as_number(number) is not None:
                marks.sure.add(".")
                if has_one_mark:
                    break
        return marks

    def decide(self, in_file: set[str], separator: str) -> tuple[str, str]:
        """The column's decimal mark, or none and a note why.

        ``in_file`` are the marks that columns of the file have for sure.
        """
        found = self.sure | self.either
        if self.grouped:
            return "", _GROUPED
        if len(found) > 1:
            return "", _ALIKE
        if not found:
            return ".", ""
        (mark,) = found
        # Who separates cells by commas has points for decimals, unless the file shows otherwise.
        told = in_file or ({"."} if separator == "," else set())
        return (mark, "") if self.sure or told == found else ("", _TWO_WAYS)


def read_columns(cells: Cells) -> Numbers:
    """Each column by its own convention, as far as that is clear."""
    columns = list(zip(*cells.rows, strict=True))
    seen: list[NumberMarks] = []
    quick: list[tuple[str, Column | None]] = []
    for column in columns:
        mark, numbers = ".", _as_floats(column)
        if numbers is None and not any("." in cell for cell in column):
            mark, numbers = ",", _as_floats([cell.replace(",", ".") for cell in column])
        quick.append((mark, numbers))
        seen.append(NumberMarks.of(column, has_one_mark=numbers is not None))
    in_file = set[str]().union(*(marks.sure | marks.grouped for marks in seen))
    by_name: dict[str, Column] = {}
    notes: dict[str, str] = {}
    used: set[str] = set()
    for name, column, (by_mark, numbers), marks in zip(
        cells.header, columns, quick, seen, strict=True
    ):
        mark, note = marks.decide(in_file, cells.separator)
        if note:
            notes[name] = note
        elif marks.sure or marks.either:
            used.add(mark)
        by_name[name] = numbers if numbers is not None and mark == by_mark else _read(column, mark)
    return Numbers(by_name, notes, "".join(sorted(used)))


def _as_floats(column: Sequence[str]) -> Column | None:
    """The column, with nan for what is missing, if float64 reads all the rest at once."""
    if any("_" in cell for cell in column):  # Python reads 1_000, nobody else does
        return None
    with contextlib.suppress(ValueError):
        return np.array(column, dtype=np.float64)
    with contextlib.suppress(ValueError):
        filled = ["nan" if cell in _MISSING else cell for cell in column]
        return np.array(filled, dtype=np.float64)
    return None


def _read(column: Sequence[str], mark: str) -> Column:
    """Numbers, with nan for what is missing; objects if some of it is text."""
    values = np.empty(len(column), dtype=object)
    values[:] = [read_cell(as_meant(cell.strip()), mark) for cell in column]
    if any(isinstance(value, str) for value in values):
        return values
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def read_cell(cell: str, mark: str = ".") -> float | str | None:
    """A number by its decimal mark, text, or None if it is missing.

    Without a mark no number that has one is read.
    """
    if cell in _MISSING:
        return None
    if mark == "." or ("." not in cell and "," not in cell):
        number = as_number(cell)
    else:
        number = as_number(cell.replace(",", ".")) if mark == "," and "." not in cell else None
    return cell if number is None else number


def as_number(cell: str) -> float | None:
    """None if it is text."""
    try:
        return None if "_" in cell else float(cell)  # see _as_floats
    except ValueError:
        return None


def looks_like_number(name: str) -> bool:
    """Whether a column's name is a number by any convention: a row in place of a header."""
    return any(isinstance(read_cell(name, mark), float) for mark in ".,")
