"""What a check finds, and the files as it reads them: whatever is broken is one more finding.

A ``Sheet`` is one file. Its cells are told apart once, as numbers, missing, infinite or text, so
that each check is a few lines over arrays.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.data.csv_reading import SEPARATOR_NAMES
from fdrsvm.data.rows import DataSettings
from fdrsvm.data.tables import (
    Mask,
    Table,
    data_files,
    is_missing,
    read_labels,
    read_numbers,
    read_table,
)
from fdrsvm.data.units import bare_name
from fdrsvm.errors import FDRSVMError

Severity: TypeAlias = Literal["stop", "warn", "note"]
Texts: TypeAlias = npt.NDArray[Any]

MOST_NAMED = 8  # columns, labels or files, one by one
SEVERITIES: tuple[Severity, ...] = ("stop", "warn", "note")
_MOST_COMPARED = 200  # names, letter by letter


@dataclass(frozen=True)
class Finding:
    """One thing that a check has to say.

    Attributes
    ----------
    kind : str
        Which check: "missing", "leak", "units" and so on.
    severity : "stop", "warn" or "note"
        Training refuses the data as they are; it takes them, but look first; for information.
    client : str or None
        Whose data; the file where a column says whose rows they are; None for all together.
    column : str or None
    row : int or None
        The first row concerned, as a spreadsheet counts: the header is row 1.
    what : str
        In words, with counts and shares.
    remedy : str
        What to do; the option to type where one helps.
    """

    kind: str
    severity: Severity
    client: str | None
    column: str | None
    row: int | None
    what: str
    remedy: str


class ColumnCells(NamedTuple):
    """A column: numbers, nan where a cell holds none, and what stands there instead."""

    values: Array
    missing: Mask
    infinite: Mask
    text: Mask
    raw: npt.NDArray[Any]

    @property
    def good(self) -> Array:
        """Its finite numbers."""
        return self.values[np.isfinite(self.values)]

    @property
    def n(self) -> int:
        """How many cells it has."""
        return len(self.raw)


@dataclass(frozen=True, eq=False)
class Sheet:
    """One file, read.

    Attributes
    ----------
    where : str
        Its client, or its file's name where a column tells the client.
    table : Table
        All columns.
    cells : mapping from str to ColumnCells
        The columns that would be features.
    labels : array of str or None
        None where there is no label column; "" where a label is missing.
    clients : array of str
        Row by row; "" where none is given.
    has_numbers : bool
        Whether labels are whole numbers.
    """

    where: str
    table: Table
    cells: Mapping[str, ColumnCells]
    labels: Texts | None
    clients: Texts
    has_numbers: bool = False

    @cached_property
    def places(self) -> dict[str, npt.NDArray[np.intp]]:
        """The rows of each client that is named."""
        names, codes = np.unique(self.clients.astype(np.str_), return_inverse=True)
        groups = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
        return {str(n): group for n, group in zip(names, groups, strict=True) if n}

    def without_alike(self, label: str) -> Sheet:
        """Where the labels are called otherwise, they are no reading for that."""
        if label in self.table.by_name:
            return self
        alike = alike_names(label, list(self.cells))[:1]
        return replace(self, cells={k: v for k, v in self.cells.items() if k not in alike})

    def row(self, place: Any) -> int:
        """The number that a spreadsheet shows beside the row at this place from 0."""
        return int(self.table.row_numbers[int(place)])


@dataclass
class Notebook:
    """Where checks write down what they find."""

    findings: list[Finding] = field(default_factory=list)

    def add(
        self,
        kind: str,
        severity: Severity,
        what: str,
        remedy: str,
        *,
        client: str | None = None,
        column: str | None = None,
        row: int | None = None,
    ) -> None:
        """One finding."""
        self.findings.append(Finding(kind, severity, client, column, row, what, remedy))


def tell_apart(column: npt.NDArray[Any]) -> ColumnCells:
    """A column's cells, as training would read them."""
    values, broken = read_numbers(column)
    missing, infinite = np.zeros((2, len(column)), dtype=bool)
    for place in np.flatnonzero(broken).tolist():
        item = column[place]
        is_number = isinstance(item, int | float | np.number)
        missing[place] = is_missing(item)
        infinite[place] = is_number and not missing[place] and math.isinf(item)
    return ColumnCells(
        np.where(broken, np.nan, values), missing, infinite, broken & ~missing & ~infinite, column
    )


def read_sheets(settings: DataSettings, notes: Notebook) -> list[Sheet]:
    """Every file that can be read; of each other one a finding."""
    sheets: list[Sheet] = []
    for where, path in find_files(settings, notes):
        own = Notebook()
        try:
            sheets.append(read_sheet(where, path, settings, own))
        except Exception as error:  # whatever is in the file, the others are still checked
            own = Notebook()
            own.add("unreadable", "stop", *_reason(error), client=where)
        notes.findings += own.findings
    return sheets


def read_sheet(where: str, path: Path, settings: DataSettings, notes: Notebook) -> Sheet:
    """One file; what is wrong with its labels and its clients is noted."""
    table = read_table(path)
    taken = {settings.label, settings.client_column, *settings.ignore}
    cells = {name: tell_apart(table[name]) for name in table.columns if name not in taken}
    notes.add("read", "note", as_read(table), "", client=where)
    labels, has_numbers = labels_of(table, where, settings.label, notes)
    clients = np.full(table.n_rows, where, dtype=object)
    if settings.client_column is not None:
        clients = clients_of(table, where, settings.client_column, notes)
    return Sheet(where, table, cells, labels, clients, has_numbers)


def find_files(settings: DataSettings, notes: Notebook) -> list[tuple[str, Path]]:
    """All files, each with its client, or its name where a column tells the client."""
    found: list[tuple[str, Path]] = []
    for path in settings.paths:
        try:
            inside = data_files(path) if path.is_dir() else [path]
        except (FDRSVMError, OSError) as error:
            notes.add("unreadable", "stop", *_reason(error), client=path.name)
            continue
        if not inside:
            what = "the folder holds no file that can be read as a table"
            notes.add("unreadable", "stop", what, "name another folder", client=str(path))
        found += [(one.name if settings.client_column else one.stem, one) for one in inside]
    if settings.client_column and settings.named:
        what = "--client-column and --client are both given"
        notes.add("option", "stop", what, "give one of them")
    found += settings.named.items()
    if not settings.paths and not settings.named:
        notes.add("option", "stop", "no file is given", "name files or a folder")
    seen: set[str] = set()
    for where, path in found:
        if where in seen:
            what = f"two files are both of client {where!r}"
            notes.add("option", "stop", what, f"--client NAME={shlex.quote(str(path))}")
        seen.add(where)
    return found


def _reason(error: Exception) -> tuple[str, str]:
    text = str(error) if isinstance(error, FDRSVMError) else f"{type(error).__name__}: {error}"
    return f"cannot be read: {text}", "mend the file, or export it again as CSV in UTF-8"


def as_read(table: Table) -> str:
    """Size, and how the file was read where the table says so."""
    words = [f"{number_of(table.n_rows, 'row')}, {number_of(len(table.columns), 'column')}"]
    written = table.written
    if written is not None:
        words.append(f"separated by {SEPARATOR_NAMES[written.separator]}")
        words.append("decimal comma" if written.decimal == "," else "decimal point")
    return ", ".join(words)


def texts_of(
    table: Table, where: str, column: str, notes: Notebook, kind: str, what: str, remedy: str
) -> Texts:
    """A column of labels or clients as text, with a finding for rows that have none, "" here."""
    names, broken = read_labels(table[column])
    if broken.any():
        row = int(table.row_numbers[broken.argmax()])
        said = f"{counted(broken)} {what}"
        notes.add(kind, "stop", said, remedy, client=where, column=column, row=row)
    texts = names.astype(np.str_).astype(object)
    texts[broken] = ""
    return texts


def labels_of(table: Table, where: str, label: str, notes: Notebook) -> tuple[Texts | None, bool]:
    """As text, with a finding for rows that have none."""
    if label not in table.by_name:
        return None, False
    names, broken = read_labels(table[label])
    is_measured = names.dtype.kind == "i" and np.count_nonzero(broken) * 2 > len(broken)
    if is_measured and not np.isnan(table[label].astype(np.float64)).all():
        what = "holds numbers with decimals, so it is a reading and no label"
        notes.add("label", "stop", what, "--label COLUMN: name another", client=where, column=label)
        return None, False
    what = "have no label that is text or a whole number"
    remedy = "fill in the labels, or delete these rows"
    texts = texts_of(table, where, label, notes, "missing label", what, remedy)
    return texts, names.dtype.kind == "i"


def clients_of(table: Table, where: str, column: str, notes: Notebook) -> Texts:
    """As text, row by row, with a finding for rows that name none."""
    if column not in table.by_name:
        alike = alike_names(column, table.columns)
        remedy = f"--client-column {shlex.quote(alike[0])}" if alike else "--client-column COLUMN"
        what = "is not there, so nobody knows whose rows these are"
        notes.add("client", "stop", what, remedy, client=where, column=column)
        return np.full(table.n_rows, where, dtype=object)
    remedy = "fill in the clients, or delete these rows"
    return texts_of(table, where, column, notes, "client", "name no client", remedy)


# --- words that all checks use ---


def number_of(count: int, thing: str) -> str:
    """How many: 1 row, 2 rows."""
    return f"{count} {thing}{'s' * (count != 1)}"


def counted(mask: Mask, thing: str = "row") -> str:
    """How many, of how many, and what share."""
    count, total = int(np.count_nonzero(mask)), len(mask)
    return f"{count} of {total} {thing}s ({percent(count, total)})"


def percent(count: float, total: float) -> str:
    """A share with two digits that mean something: 3.4 %, 0.19 %, 50 %."""
    share = 100.0 * count / total if total else 0.0
    digits = 2 if 0.0 < share < 1.0 else 1 if share < 10.0 else 0
    return f"{share:.{digits}f} %"


def to_ignore(*names: str) -> str:
    """What to type to leave columns out."""
    return " ".join(f"--ignore {shlex.quote(name)}" for name in names)


def alike_names(name: str, others: Sequence[str]) -> list[str]:
    """Those that differ by case, unit, spaces or a letter; never by a digit."""
    by_bare = {bare_name(other): other for other in others}
    bare = bare_name(name)
    near = [bare] if bare in by_bare else []
    if not near and len(by_bare) <= _MOST_COMPARED:
        near = get_close_matches(bare, list(by_bare), n=3, cutoff=0.85)
    digits = re.sub(r"\D", "", name)
    return [by_bare[one] for one in near if re.sub(r"\D", "", by_bare[one]) == digits]
