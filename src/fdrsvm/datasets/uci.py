"""The paper's seven UCI data sets: from a folder, from scikit-learn, or fetched and kept.

What is fetched and what is kept must have the recorded content. The checksum is of what the file
says, not of its bytes: another line end or ``0.02`` for ``0.0200`` is the same data.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.utils import Bunch

from fdrsvm.core.arrays import Array, check_choice
from fdrsvm.core.texts import csv_text
from fdrsvm.datasets import fetch
from fdrsvm.datasets._csv import Cells, DataError, read_cells, read_matrix
from fdrsvm.datasets._uci_sets import SETS, UciSet
from fdrsvm.datasets.fetch import DataWarning, FetchError
from fdrsvm.errors import InvalidInputError

__all__ = ["UCI_NAMES", "load_uci"]

DATA_VARIABLE = "FDRSVM_DATA"
LABEL = "label"
UCI_NAMES = tuple(SETS)


@dataclass
class _Content:
    """What a file says, whatever its layout."""

    X: Array
    classes: list[str]
    names: list[str]
    recordings: list[str] | None


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
    folder = _folder(data_home)
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


def _folder(data_home: str | os.PathLike[str] | None) -> Path | None:
    chosen = os.environ.get(DATA_VARIABLE) if data_home is None else data_home
    if not chosen:
        return None
    folder = Path(chosen).expanduser()
    if not folder.is_dir():
        argument = DATA_VARIABLE if data_home is None else "data_home"
        raise InvalidInputError(argument, "must be a folder", f"there is none at {folder}")
    return folder


def _from_folder(item: UciSet, folder: Path) -> _Content:
    """A user's own file is used if it has the right shape; other content is worth a warning."""
    path = folder / item.file
    table = _read_table(item, path.read_bytes(), str(path), LABEL)
    if table.recordings is None and item.recordings_file is not None:
        names = folder / item.recordings_file
        if names.is_file():
            table.recordings = _read_recordings(item, names)
    if _fault(item, table) is not None:
        message = f"{path} has the shape of UCI's {item.title} but not its content"
        warnings.warn(message, DataWarning, stacklevel=3)
    return table


def _read_recordings(item: UciSet, path: Path) -> list[str]:
    cells = read_cells(path.read_bytes(), str(path))
    found = cells.find(str(item.recordings))
    if len(found) != 1 or len(cells.rows) != item.n_rows:
        raise DataError(
            str(path),
            f"must have a column {item.recordings!r} and {item.n_rows} rows",
            f"it has the columns {cells.header} and {len(cells.rows)} rows",
            line=cells.last_line,
        )
    return cells.text(found[0])


def _from_cache_or_network(
    item: UciSet, folder: Path | None, may_download: bool, progress: bool | None
) -> tuple[_Content, str]:
    """The kept file if it is sound; else it is fetched, checked and kept."""
    path = fetch.cache_folder() / item.file
    content = fetch.read_cached(item.file)
    damage = ""
    if content is not None:
        try:
            return _verified(item, content, str(path), LABEL), str(path)
        except DataError as error:
            damage = f" The kept copy is damaged and was not used ({error})."
    if not may_download:
        raise FetchError(
            f"{item.title} is not at hand and download is False.{damage} {_way(item, folder)}"
        )
    address = fetch.uci_address(item.uci_id)
    try:
        fetched = fetch.download(address, item.title, progress=progress)
    except FetchError as error:
        raise FetchError(
            f"{item.title} could not be fetched: {error}.{damage} {_way(item, folder)}"
        ) from None
    table = _verified(item, fetched, address, item.target)
    if damage:
        warnings.warn(f"{item.title} was fetched again.{damage}", DataWarning, stacklevel=3)
    fetch.write_cached(item.file, _normal_csv(item, table))
    return table, address


def _way(item: UciSet, folder: Path | None) -> str:
    """Which file to put where."""
    page = f"https://archive.ics.uci.edu/dataset/{item.uci_id}"
    where = f"a folder that data_home= or the environment variable {DATA_VARIABLE} names"
    if folder is not None:
        where = f"{folder}, where it is not now"
    return (
        f"Without a network put the file {item.file} (a header, {len(item.features)} columns of "
        f"features in UCI's order, then the column {LABEL!r} with the classes "
        f"{', '.join(item.counts)}; from {page}) into {where}."
    )


# -------------------------------------------------------------------------------- reading, checking


def _read_table(item: UciSet, content: bytes, file: str, label: str) -> _Content:
    """From a CSV with features in UCI's order, a column of labels, perhaps one of row names."""
    cells = read_cells(content, file)
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
    classes = _read_classes(item, cells, at[0])
    X = read_matrix(cells, columns, may_miss=item.may_miss)
    if item.single:  # so that X is the same, however many digits this copy prints
        X = X.astype(np.float32).astype(np.float64)
    _check_counts(item, cells, classes)
    recordings = cells.text(named[0]) if named else None
    names = [cells.header[k] for k in columns] if label == LABEL else list(item.features)
    return _Content(X, classes, names, recordings)


def _read_classes(item: UciSet, cells: Cells, column: int) -> list[str]:
    """Classes in our spelling: UCI has `very_low` and `Very Low`, and some writers 1.0 for 1."""
    ours = {name.casefold(): name for name in item.counts}
    classes = []
    for row, cell in enumerate(cells.text(column)):
        name = ours.get(cell.removesuffix(".0").replace("_", " ").casefold())
        if name is None:
            rule = f"must be one of {', '.join(map(repr, item.counts))}"
            raise cells.error(rule, f"the cell is {cell!r}", row, column)
        classes.append(name)
    return classes


def _check_counts(item: UciSet, cells: Cells, classes: Sequence[str]) -> None:
    if len(classes) != item.n_rows:
        raise DataError(
            cells.file,
            f"{item.title} must have {item.n_rows} rows",
            f"the file has {len(classes)}",
            line=cells.last_line,
        )
    for name, count in item.counts.items():
        if classes.count(name) != count:
            raise DataError(
                cells.file,
                f"{item.title} must have {count} rows of class {name!r}",
                f"the file has {classes.count(name)}",
                column=LABEL,
            )


def _verified(item: UciSet, content: bytes, file: str, label: str) -> _Content:
    table = _read_table(item, content, file, label)
    fault = _fault(item, table)
    if fault is not None:
        raise DataError(file, f"must have the content of UCI's {item.title}", fault)
    return table


def _fault(item: UciSet, table: _Content) -> str | None:
    """None if the content is what it was when it was recorded."""
    found = _content_sha256(table.X, table.classes)
    if found != item.sha256:
        return f"its SHA-256 is {found}, not {item.sha256}"
    if table.recordings is not None and item.recordings_sha256 is not None:
        found = hashlib.sha256("\n".join(table.recordings).encode()).hexdigest()
        if found != item.recordings_sha256:
            return f"the SHA-256 of its row names is {found}, not {item.recordings_sha256}"
    return None


def _content_sha256(X: Array, classes: Sequence[str]) -> str:
    """Of the numbers in single precision, missing ones alike, and the classes in our spelling."""
    single = np.where(np.isnan(X), np.nan, X).astype("<f4")
    single += 0.0  # -0 and 0 are the same number
    digest = hashlib.sha256(f"{X.shape[0]} x {X.shape[1]}\n".encode())
    digest.update(np.ascontiguousarray(single).tobytes())
    digest.update("\n".join(classes).encode())
    return digest.hexdigest()


def _normal_csv(item: UciSet, table: _Content) -> bytes:
    """In the layout of a folder's file; ``repr`` loses nothing."""
    cells = [
        ["" if np.isnan(value) else repr(float(value)) for value in row] + [label]
        for row, label in zip(table.X, table.classes, strict=True)
    ]
    header = [*table.names, LABEL]
    if table.recordings is not None:
        header.insert(0, str(item.recordings))
        cells = [[name, *row] for name, row in zip(table.recordings, cells, strict=True)]
    return csv_text([header, *cells]).encode()
