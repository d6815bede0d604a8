"""The rows of all clients from files: one file per client, or one with a column that names it.

Unlike a plant's own reader, this one serves whoever holds the files, so errors may name columns.
Rows are counted from 0 in each file, without the header line.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.data.contract import FeatureContract, read_contract
from fdrsvm.data.tables import (
    SUFFIXES,
    Table,
    ask_separator,
    data_files,
    read_labels,
    read_numbers,
    read_table,
)
from fdrsvm.errors import InvalidInputError

Labels: TypeAlias = npt.NDArray[Any]

_MOST_LISTED = 12


@dataclass(frozen=True)
class DataSettings:
    """Which files there are, and what their columns mean.

    Attributes
    ----------
    paths : tuple of Path
        Files or folders. A file is a client called after it, unless ``client_column`` is given.
    named : mapping from str to Path
        Files of clients whose names are given.
    label : str
        Column with the labels.
    client_column : str or None
        Column with the clients.
    ignore : tuple of str
        Columns that are neither, such as a time.
    contract : Path or None
        Data contract as JSON, checked before anything else.
    clip : bool
        Move values to the contract's limits rather than refuse them.
    """

    paths: tuple[Path, ...] = ()
    named: Mapping[str, Path] = field(default_factory=dict)
    label: str = "label"
    client_column: str | None = None
    ignore: tuple[str, ...] = ()
    contract: Path | None = None
    clip: bool = False


@dataclass(frozen=True, eq=False)
class Rows:
    """All clients' rows, as recorded.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,) or None
        Labels: whole numbers or text.
    clients : ndarray of shape (n_rows,)
        Names.
    feature_names : tuple of str
    contract : FeatureContract or None
        What the rows were checked against.
    """

    X: Array
    y: Labels | None
    clients: npt.NDArray[np.str_]
    feature_names: tuple[str, ...]
    contract: FeatureContract | None = None

    @property
    def client_names(self) -> list[str]:
        """Sorted."""
        return [str(name) for name in np.unique(self.clients)]

    @property
    def labels(self) -> Labels:
        """``y`` of rows that were read with their labels."""
        assert self.y is not None
        return self.y

    def of(self, client: str) -> Rows:
        """One client's."""
        mine = self.clients == client
        y = None if self.y is None else self.y[mine]
        return Rows(self.X[mine], y, self.clients[mine], self.feature_names, self.contract)

    def codes(self, classes: Sequence[Any]) -> npt.NDArray[np.intp]:
        """Positions of the labels in a model's classes; an unknown one is named, with its client.

        A label is known by its text: ``1`` and ``"1"`` are the same in a file.
        """
        codes = match_labels(self.labels, classes)
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            row = int(unknown[0])
            client = str(self.clients[row])
            place = np.count_nonzero(self.clients[:row] == client)
            raise InvalidInputError(
                "labels",
                f"must be among the model's classes {list(classes)}",
                f"row {place} of client {client!r} is {self.labels[row].item()!r} "
                f"({unknown.size} in all)",
            )
        return codes

    def counts(self) -> dict[str, int]:
        """How many rows each client has."""
        names, counts = np.unique(self.clients, return_counts=True)
        return {str(name): int(count) for name, count in zip(names, counts, strict=True)}


def read_rows(
    settings: DataSettings, *, features: Sequence[str] | None = None, with_labels: bool = True
) -> Rows:
    """Read every file.

    Parameters
    ----------
    settings : DataSettings
        The files.
    features : sequence of str, optional
        Columns that a model wants, in its order; others are left out. Without them all columns
        that are not something else are features, and all files must have the same.
    with_labels : bool
        Whether the label column is needed.
    """
    contract = None if settings.contract is None else read_contract(settings.contract)
    wanted = features if features is not None else (contract.names if contract else None)
    tables, unseen = [], set(settings.ignore)
    for client, path in _find_files(settings):
        table = read_table(path)
        unseen -= set(table.columns)
        rows = _read_rows(
            table,
            client,
            str(path),
            settings,
            wanted,
            contract,
            with_labels=with_labels,
            may_have_more=features is not None,
        )
        wanted = rows.feature_names
        tables.append(rows)
    if unseen:
        raise InvalidInputError(
            "ignore", "must name columns that some file has", f"none has {_listed(sorted(unseen))}"
        )
    ys = [rows.y for rows in tables if rows.y is not None]
    if len({y.dtype.kind for y in ys}) > 1:  # where some are numbers and some text, all are text
        ys = [y.astype(np.str_) for y in ys]
    return Rows(
        X=np.concatenate([rows.X for rows in tables]),
        y=np.concatenate(ys) if ys else None,
        clients=np.concatenate([rows.clients for rows in tables]),
        feature_names=tables[0].feature_names,
        contract=contract,
    )


def has_labels(settings: DataSettings) -> bool:
    """Whether some file has the column of labels; one that was named is expected in all."""
    is_named = settings.label != DataSettings.label
    return is_named or any(
        settings.label in read_table(path).by_name for _, path in _find_files(settings)
    )


def _find_files(settings: DataSettings) -> list[tuple[str | None, Path]]:
    """All files with their clients, in order; the client is None where a column tells."""
    files = []
    for path in settings.paths:
        inside = data_files(path) if path.is_dir() else [path]
        if not inside:
            kinds = " or ".join(SUFFIXES)
            raise InvalidInputError(str(path), f"a folder must hold {kinds} files", "it has none")
        files += inside
    is_split = settings.client_column is not None
    if is_split and settings.named:
        raise InvalidInputError(
            "client-column", "must not be given with files of named clients", "both are"
        )
    sources = [(None if is_split else path.stem, path) for path in files]
    sources += settings.named.items()
    if not sources:
        raise InvalidInputError("data", "must be one or more files", "there is none")
    names = Counter(client for client, _ in sources if client is not None)
    for name, count in names.most_common(1):
        if count > 1:
            raise InvalidInputError(
                "data", "clients must have different names", f"{name!r} is there twice"
            )
    return sources


def match_labels(y: Labels, classes: Sequence[Any]) -> npt.NDArray[np.intp]:
    """Positions of labels in a model's classes, by their text; -1 where there is none."""
    places = {str(label): k for k, label in enumerate(classes)}
    return np.array([places.get(str(label), -1) for label in y.tolist()], dtype=np.intp)


def _read_rows(
    table: Table,
    client: str | None,
    where: str,
    settings: DataSettings,
    wanted: Sequence[str] | None,
    contract: FeatureContract | None,
    *,
    with_labels: bool,
    may_have_more: bool,
) -> Rows:
    y, clients = None, np.full(table.n_rows, client)
    if with_labels:
        rule = "every label must be text or a whole number"
        y = _read_names(table, settings.label, "label", where, rule, "is not")
    if settings.client_column is not None:
        rule = "every row must name its client"
        names = _read_names(table, settings.client_column, "client", where, rule, "does not")
        clients = names.astype(np.str_)
    taken = (settings.label, settings.client_column or settings.label, *settings.ignore)
    rest = table.without(*taken)
    if contract is not None:
        checked = contract.check(rest, y, client=client or where, clip=settings.clip)
        return Rows(checked.X, y, clients, contract.names, contract)
    features = _check_columns(rest, wanted, where, may_have_more=may_have_more)
    _refuse_text(rest, features, where, may_ignore=not may_have_more)
    X: Array = np.column_stack([_read_feature(rest[name], name, where) for name in features])
    return Rows(X, y, clients, features)


def _read_names(
    table: Table, column: str, what: str, where: str, rule: str, failing: str
) -> Labels:
    """The column of labels or of clients; ``failing`` says in a word what a row does wrong."""
    if column not in table.by_name:
        raise InvalidInputError(
            where,
            f"must have the {what} column {column!r}",
            f"its columns are {_listed(table.columns)}{ask_separator(table.columns)}",
        )
    names, broken = read_labels(table[column])
    if broken.any():
        raise InvalidInputError(
            where,
            f"column {column!r}: {rule}",
            f"row {int(broken.argmax())} {failing} ({np.count_nonzero(broken)} in all)",
        )
    return names


def _check_columns(
    table: Table, wanted: Sequence[str] | None, where: str, *, may_have_more: bool
) -> tuple[str, ...]:
    """The features in order: those of the first file or of the model, else all there are."""
    if wanted is None:
        if not table.columns:
            raise InvalidInputError(where, "must have a feature", "it has none")
        return tuple(table.columns)
    missing = [name for name in wanted if name not in table.by_name]
    if missing:
        raise InvalidInputError(
            where,
            f"must have the columns {_listed(wanted)}",
            f"it lacks {_listed(missing)}",
        )
    known = set(wanted)  # a list would take quadratic time
    others = [name for name in table.columns if name not in known]
    if others and not may_have_more:
        raise InvalidInputError(
            where,
            f"must have the same columns as the files before, {_listed(wanted)}",
            f"it also has {_listed(others)}; ignore them, or give a contract",
        )
    return tuple(wanted)


def _refuse_text(table: Table, names: Sequence[str], where: str, *, may_ignore: bool) -> None:
    """All columns without a number at once, and what to type to leave them out."""
    text = []
    for name in names:
        column = table[name]
        has_number = column.dtype.kind in "biuf" or not read_numbers(column)[1].all()
        if not has_number and any(_kind(item) == "no number" for item in column):
            text.append(name)  # not only because all are missing
    if not text:
        return
    found = f"there is none in {_listed(text)}"
    if may_ignore:
        found += "; leave out what is no reading with " + " ".join(
            f"--ignore {shlex.quote(name)}" for name in text[:_MOST_LISTED]
        )
    raise InvalidInputError(where, "columns of features must hold numbers", found)


def _read_feature(column: npt.NDArray[Any], name: str, where: str) -> Array:
    values, broken = read_numbers(column)
    if broken.any():
        row = int(broken.argmax())
        raise InvalidInputError(
            where,
            f"column {name!r}: every value must be a finite number",
            f"row {row} is {_kind(column[row])} ({np.count_nonzero(broken)} in all)",
        )
    return values


def _kind(item: Any) -> str:
    """What stands in place of a number, without its value."""
    if item is None or item != item:
        return "missing"
    return "infinite" if isinstance(item, float | np.floating) else "no number"


def _listed(names: Iterable[str], most: int = _MOST_LISTED) -> str:
    listed = list(names)
    rest = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(map(repr, listed[:most])) + rest
