"""The paper's seven UCI data sets: from a folder, from scikit-learn, or fetched and kept.

What is fetched and what is kept must have the recorded content. The checksum is of what the file
says, not of its bytes: another line end or ``0.02`` for ``0.0200`` is the same data.
"""

from __future__ import annotations

import csv
import hashlib
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from fdrsvm.core.arrays import Array, check_choice
from fdrsvm.core.texts import as_meant, csv_text
from fdrsvm.data.csv_reading import as_number, csv_rows
from fdrsvm.datasets import fetch
from fdrsvm.datasets._uci_sets import SETS, UciSet
from fdrsvm.datasets.fetch import DataWarning, FetchError
from fdrsvm.errors import FDRSVMError, InvalidInputError

__all__ = ["UCI_NAMES", "DataError", "load_uci"]

DATA_VARIABLE = "FDRSVM_DATA"
LABEL = "label"
UCI_NAMES = tuple(SETS)
_MISSING = ("", "?")  # UCI writes either


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


@dataclass
class _Content:
    """What a file says, whatever its layout."""

    X: Array
    classes: list[str]
    names: list[str]
    recordings: list[str] | None

    def fault(self, item: UciSet) -> str | None:
        """None if the content is what it was when it was recorded."""
        found = content_sha256(self.X, self.classes)
        if found != item.sha256:
            return f"its SHA-256 is {found}, not {item.sha256}"
        if self.recordings is not None and item.recordings_sha256 is not None:
            found = hashlib.sha256("\n".join(self.recordings).encode()).hexdigest()
            if found != item.recordings_sha256:
                return f"the SHA-256 of its row names is {found}, not {item.recordings_sha256}"
        return None

    def as_csv(self, item: UciSet) -> bytes:
        """In the layout of a folder's file; ``repr`` loses nothing."""
        rows = [["" if value != value else repr(value) for value in row] for row in self.X.tolist()]
        header = [*self.names, LABEL]
        lines = [[*row, label] for row, label in zip(rows, self.classes, strict=True)]
        if self.recordings is not None:
            header.insert(0, str(item.recordings))
            lines = [[name, *line] for name, line in zip(self.recordings, lines, strict=True)]
        return csv_text([header, *lines]).encode()


def content_sha256(X: Array, classes: Sequence[str]) -> str:
    """Of the numbers in single precision, missing ones alike, and the classes in our spelling."""
    single = np.where(np.isnan(X), np.nan, X).astype("<f4")
    single += 0.0  # -0 and 0 are the same number
    digest = hashlib.sha256(f"{X.shape[0]} x {X.shape[1]}\n".encode())
    digest.update(np.ascontiguousarray(single).tobytes())
    digest.update("\n".join(classes).encode())
    return digest.hexdigest()


def load_uci(
    name: str,
    data_home: str | os.PathLike[str] | None = None,
    *,
    missing: str = "drop",
    rows: str = "all",
    download: bool = True,
    progress: bool | None = None,
) -> Bunch:
    """One of the paper's seven UCI data sets, labelled -1 and +1.

    A file in ``data_home`` (or in the folder that the environment variable FDRSVM_DATA names) comes
    first: a CSV with a header, one column per feature and a column ``label``. Without one the set
    is fetched from the UCI repository and kept; breast cancer comes with scikit-learn.

    Parameters
    ----------
    name : {"banknote", "bcw", "sonar", "mammographic", "parkinsons", "rice", "ukm"}
    data_home : path, optional
        Folder of CSV files.
    missing : {"drop", "keep"}
        Rows with a missing cell (mammographic only): left out, as in the paper, or kept with NaN.
    rows : {"all", "authors"}
        "authors" leaves out the first row of ukm, as the paper's scripts do.
    download : bool, default True
        Whether a set that is nowhere at hand may be fetched.
    progress : bool, optional
        Whether to draw a progress bar; None does so if standard error is a terminal.

    Returns
    -------
    Bunch
        ``X`` (float64), ``y`` (-1 and +1; +1 is the class whose F-1 the paper reports),
        ``feature_names``, ``target_names`` (of -1 and of +1), ``classes`` (UCI's classes and what
        became of them), ``groups`` (parkinsons: the person of each row; else None), ``source``
        (where the data came from) and ``DESCR``.

    Raises
    ------
    DataError
        A file is not what it should be; the message names file, line and column.
    FetchError
        The set could not be fetched; the message says which file to put where.

    Examples
    --------
    >>> from fdrsvm.datasets import load_uci
    >>> data = load_uci("bcw")
    >>> data.X.shape, int((data.y > 0).sum()), data.target_names
    ((569, 30), 357, ('M', 'B'))
    """
    item = SETS[check_choice(name, "name", UCI_NAMES)]
    check_choice(missing, "missing", ("drop", "keep"))
    check_choice(rows, "rows", ("all", "authors"))
    chosen = os.environ.get(DATA_VARIABLE) if data_home is None else data_home
    folder = Path(chosen).expanduser() if chosen else None
    if folder is not None and not folder.is_dir():
        argument = DATA_VARIABLE if data_home is None else "data_home"
        raise InvalidInputError(argument, "must be a folder", f"there is none at {folder}")
    if folder is not None and (folder / item.file).is_file():
        table, source = _from_folder(item, folder), str(folder / item.file)
    elif item.name == "bcw":
        bunch, source = load_breast_cancer(), "scikit-learn's load_breast_cancer"
        benign = ["B" if target else "M" for target in bunch.target]
        table = _Content(bunch.data.astype(np.float64), benign, list(item.features), None)
    else:
        table, source = _from_cache_or_network(item, folder, download, progress)
    keep = np.ones(len(table.classes), dtype=bool)
    if rows == "authors" and item.name == "ukm":
        keep[0] = False
    if missing == "drop":
        keep &= ~np.isnan(table.X).any(axis=1)
    signs = dict.fromkeys(item.negative, -1) | dict.fromkeys(item.positive, 1)
    y = np.array([signs[label] for label in table.classes], dtype=np.float64)
    groups = None
    if table.recordings is not None:  # phon_R01_S07_3 is the third recording of person S07
        persons = [recording.rpartition("_")[0] for recording in table.recordings]
        groups = np.array(persons)[keep]
    address = f"https://archive.ics.uci.edu/dataset/{item.uci_id}"
    return Bunch(
        X=table.X[keep],
        y=y[keep],
        feature_names=tuple(table.names),
        target_names=(" + ".join(item.negative), " + ".join(item.positive)),
        classes=signs,
        groups=groups,
        source=source,
        DESCR=f"{item.title}, UCI Machine Learning Repository, {address} (CC BY 4.0). "
        f"{int(keep.sum())} of {keep.size} rows, read from {source}. {item.note}".rstrip(),
    )


# ------------------------------------------------------------------------------- the three sources


def _from_folder(item: UciSet, folder: Path) -> _Content:
    """A user's own file is used if it has the right shape; other content is worth a warning."""
    path = folder / item.file
    table = _read_table(item, path.read_bytes(), str(path), LABEL)
    if table.recordings is None and item.recordings_file is not None:
        names = folder / item.recordings_file
        if names.is_file():
            cells = _read_cells(names.read_bytes(), str(names))
            at = cells.find(str(item.recordings))
            if len(at) != 1 or len(cells.rows) != item.n_rows:
                raise DataError(
                    str(names),
                    f"must have a column {item.recordings!r} and {item.n_rows} rows",
                    f"it has the columns {cells.header} and {len(cells.rows)} rows",
                    line=cells.lines[-1],
                )
            table.recordings = cells.text(at[0])
    if table.fault(item) is not None:
        message = f"{path} has the shape of UCI's {item.title} but not its content"
        warnings.warn(message, DataWarning, stacklevel=3)
    return table


def _from_cache_or_network(
    item: UciSet, folder: Path | None, may_download: bool, progress: bool | None
) -> tuple[_Content, str]:
    """The kept file if it is sound; else it is fetched, checked and kept."""
    path, damage = fetch.cache_folder() / item.file, ""
    where = f"a folder that data_home= or the environment variable {DATA_VARIABLE} names"
    remedy = (
        f"Without a network put the file {item.file} (a header, {len(item.features)} columns of "
        f"features in UCI's order, then the column {LABEL!r} with the classes "
        f"{', '.join(item.counts)}; from https://archive.ics.uci.edu/dataset/{item.uci_id}) into "
        f"{where if folder is None else f'{folder}, where it is not now'}."
    )
    content = fetch.read_cached(item.file)
    if content is not None:
        try:
            return _verified(item, content, str(path), LABEL), str(path)
        except DataError as error:
            damage = f" The kept copy is damaged and was not used ({error})."
    if not may_download:
        raise FetchError(f"{item.title} is not at hand and download is False.{damage} {remedy}")
    address = fetch.uci_address(item.uci_id)
    try:
        fetched = fetch.download(address, item.title, progress=progress)
    except FetchError as error:
        reason = f"{item.title} could not be fetched: {error}."
        raise FetchError(f"{reason}{damage} {remedy}") from None
    table = _verified(item, fetched, address, item.target)
    if damage:
        warnings.warn(f"{item.title} was fetched again.{damage}", DataWarning, stacklevel=3)
    fetch.write_cached(item.file, table.as_csv(item))
    return table, address


# -------------------------------------------------------------------------------- reading, checking


@dataclass(frozen=True)
class _Cells:
    """Header and cells of a CSV, and the line that each row is on, from 1, the header's first.

    Public data sets are no secret, so errors quote the cell.
    """

    file: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def find(self, column: str) -> list[int]:
        """Positions of the columns of that name, upper or lower case."""
        return [k for k, name in enumerate(self.header) if name.casefold() == column.casefold()]

    def text(self, column: int) -> list[str]:
        """The cells of a column, without spaces around them."""
        return [row[column].strip() for row in self.rows]

    def numbers(self, columns: Sequence[int], *, may_miss: bool) -> Array:
        """Columns as float64; a missing cell is NaN, if it may be missing."""
        numbers = np.empty((len(self.rows), len(columns)))
        for n, row in enumerate(self.rows):
            for k, column in enumerate(columns):
                cell = row[column].strip()
                number = math.nan if may_miss and cell in _MISSING else as_number(cell)
                if number is None or (not math.isfinite(number) and cell not in _MISSING):
                    found = "the cell is empty" if not cell else f"the cell is {cell!r}"
                    raise self.error("must be a finite number", found, n, column)
                numbers[n, k] = number
        return numbers

    def classes(self, column: int, names: Iterable[str]) -> list[str]:
        """In our spelling: UCI has `very_low` and `Very Low`, and some writers 1.0 for 1."""
        ours = {name.casefold(): name for name in names}
        classes = []
        for row, cell in enumerate(self.text(column)):
            name = ours.get(cell.removesuffix(".0").replace("_", " ").casefold())
            if name is None:
                rule = f"must be one of {', '.join(map(repr, ours.values()))}"
                raise self.error(rule, f"the cell is {cell!r}", row, column)
            classes.append(name)
        return classes

    def error(self, rule: str, found: str, row: int, column: int) -> DataError:
        """An error at a cell."""
        name = self.header[column]
        return DataError(self.file, rule, found, line=self.lines[row + 1], column=name)


def _read_cells(content: bytes, file: str) -> _Cells:
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
    return _Cells(file, header, rows, [line for line, _ in filled])


def _read_table(item: UciSet, content: bytes, file: str, label: str) -> _Content:
    """From a CSV with features in UCI's order, a column of labels, perhaps one of row names."""
    cells = _read_cells(content, file)
    at = cells.find(label)
    if len(at) != 1:
        raise DataError(
            file,
            f"must have one column {label!r}",
            f"it has {len(at)}; the columns are {', '.join(cells.header)}",
            line=1,
            column=label,
        )
    named = cells.find(item.recordings) if item.recordings else []
    columns = [k for k in range(len(cells.header)) if k not in (*at, *named)]
    if len(columns) != len(item.features):
        raise DataError(
            file,
            f"must have {len(item.features)} columns of features",
            f"it has {len(columns)}: {', '.join(cells.header[k] for k in columns)}",
            line=1,
        )
    classes = cells.classes(at[0], item.counts)
    X = cells.numbers(columns, may_miss=item.may_miss)
    if item.single:  # so that X is the same, however many digits this copy prints
        X = X.astype(np.float32).astype(np.float64)
    if len(classes) != item.n_rows:
        rule, found = f"must have {item.n_rows} rows", f"the file has {len(classes)}"
        raise DataError(file, f"{item.title} {rule}", found, line=cells.lines[-1])
    for name, count in item.counts.items():
        if classes.count(name) != count:
            rule, found = f"{count} rows of class {name!r}", f"the file has {classes.count(name)}"
            raise DataError(file, f"{item.title} must have {rule}", found, column=LABEL)
    recordings = cells.text(named[0]) if named else None
    names = [cells.header[k] for k in columns] if label == LABEL else list(item.features)
    return _Content(X, classes, names, recordings)


def _verified(item: UciSet, content: bytes, file: str, label: str) -> _Content:
    table = _read_table(item, content, file, label)
    fault = table.fault(item)
    if fault is not None:
        raise DataError(file, f"must have the content of UCI's {item.title}", fault)
    return table
