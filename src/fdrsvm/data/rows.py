"""The rows of all clients from files: one file per client, or one with a column that names it.

Unlike a plant's own reader, this one serves whoever holds the files, so errors may name columns.
Rows are counted as a spreadsheet does, with the header in row 1.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_choice
from fdrsvm.core.texts import listed
from fdrsvm.data.contract import Feature, FeatureContract, read_contract, read_feature
from fdrsvm.data.csv_reading import Column, ask_separator
from fdrsvm.data.tables import (
    SUFFIXES,
    Mask,
    RowNumbers,
    Table,
    data_files,
    is_missing,
    kind_of_text,
    read_labels,
    read_numbers,
    read_table,
)
from fdrsvm.errors import CorruptDataError, InvalidInputError

Labels: TypeAlias = npt.NDArray[Any]

REFUSE, DROP = "refuse", "drop"
_OPTIONS = {"label": "--label", "client": "--client-column"}
_MOST_LISTED = 12
_MOST_REASONS = 5
_KINDS = {"date": " (dates or times)", "id": " (all different, as names of rows are)", "text": ""}


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
    missing : "refuse" or "drop"
        What to do, without a contract, about a row that lacks a value: end with an error, or leave
        the row out.
    rules : mapping from str to Feature
        What a model's training did about each feature, in place of ``missing``.
    typed : frozenset of str, or None
        Which of these somebody asked for; the others give way to what a model remembers. None is
        all of them.
    """

    paths: tuple[Path, ...] = ()
    named: Mapping[str, Path] = field(default_factory=dict)
    label: str = "label"
    client_column: str | None = None
    ignore: tuple[str, ...] = ()
    contract: Path | None = None
    clip: bool = False
    missing: str = REFUSE
    rules: Mapping[str, Feature] = field(default_factory=dict)
    typed: frozenset[str] | None = None

    def is_typed(self, name: str) -> bool:
        """Whether somebody asked for it."""
        return self.typed is None or name in self.typed

    def rule_of(self, name: str) -> Feature:
        """What to do about a feature's missing values, and about its limits if there are any."""
        known = self.rules.get(name)
        return known or Feature(name, missing="drop" if self.missing == DROP else "forbid")

    def as_trained(self, record: Mapping[str, Any]) -> DataSettings:
        """With what a model's record remembers of its files, where nobody asked for anything else.

        A client column is not taken over by files of named clients.
        """
        columns, rules = remembered_columns(record), _of_data(record, "rules", [])
        known: dict[str, Any] = {name: columns[name] for name in ("label",) if name in columns}
        if "client" in columns and not self.named:
            known["client_column"] = columns["client"]
        if not self.is_typed("missing"):
            features = [read_feature(entry) for entry in rules]
            known |= {"rules": {rule.name: rule for rule in features}}
            known |= {"clip": _of_data(record, "clip", False)}
        return replace(self, **{k: v for k, v in known.items() if not self.is_typed(k)})


def remembered_columns(record: Mapping[str, Any]) -> dict[str, str]:
    """What a model's record knows of the columns "label" and "client"."""
    columns = _of_data(record, "columns", {})
    known = {name: columns[name] for name in ("label", "client") if name in columns}
    if not all(isinstance(column, str) for column in known.values()):
        raise CorruptDataError("the model's record of its data: a column has no name")
    return known


def _of_data(record: Mapping[str, Any], name: str, default: Any) -> Any:
    """A model file is anybody's: what it remembers has the kind it should have."""
    data = record.get("data", {})
    value = data.get(name, default) if isinstance(data, dict) else None
    if type(value) is not type(default):
        raise CorruptDataError(f"the model's record of its data: {name!r} is of another kind")
    return value


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
    row_numbers : ndarray of shape (n_rows,), or None
        Their numbers in their files, as a spreadsheet counts; None if they are from no file.
    n_dropped : mapping from str to int
        How many rows of each client were left out, of those that lost any.
    settings : DataSettings or None
        How they were read.
    """

    X: Array
    y: Labels | None
    clients: npt.NDArray[np.str_]
    feature_names: tuple[str, ...]
    contract: FeatureContract | None = None
    row_numbers: RowNumbers | None = None
    n_dropped: Mapping[str, int] = field(default_factory=dict)
    settings: DataSettings | None = None

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
        dropped = {name: n for name, n in self.n_dropped.items() if name == client}
        return replace(self.where(mine), n_dropped=dropped)

    def where(self, is_kept: Mask) -> Rows:
        """Some of the rows."""
        return replace(
            self,
            X=self.X[is_kept],
            y=None if self.y is None else self.y[is_kept],
            clients=self.clients[is_kept],
            row_numbers=None if self.row_numbers is None else self.row_numbers[is_kept],
        )

    def codes(self, classes: Sequence[Any]) -> npt.NDArray[np.intp]:
        """Positions of the labels in a model's classes; an unknown one is named, with its client.

        A label is known by its text: ``1`` and ``"1"`` are the same in a file.
        """
        codes = match_labels(self.labels, classes)
        unknown = np.flatnonzero(codes < 0)
        if unknown.size:
            row = int(unknown[0])
            client = str(self.clients[row])
            place = int(np.count_nonzero(self.clients[:row] == client))
            if self.row_numbers is not None:
                place = int(self.row_numbers[row])
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

    def record(self) -> dict[str, Any]:
        """What a model remembers of its files: columns, rules for features, rows left out.

        Plain values, none of them of any row.
        """
        if self.settings is None:
            return {}
        columns = {"label": self.settings.label, "ignored": list(self.settings.ignore)}
        if self.settings.client_column is not None:
            columns["client"] = self.settings.client_column
        kept: dict[str, Any] = {"columns": columns}
        if self.contract is not None or self.settings.missing == DROP:
            agreed = self.contract.features if self.contract is not None else ()
            rules = agreed or [self.settings.rule_of(name) for name in self.feature_names]
            kept |= {"rules": [dataclasses.asdict(rule) for rule in rules]}
            kept |= {"clip": self.contract is not None and self.settings.clip}
        return kept | ({"dropped": dict(self.n_dropped)} if self.n_dropped else {})


@dataclass(frozen=True, eq=False)
class Readings:
    """Rows to be judged by a model, of which some may not be.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        nan where there is no number.
    clients, row_numbers : ndarray of shape (n_rows,)
        As in ``Rows``.
    texts : mapping from str to list of str
        Columns as the files have them.
    reasons : list of str
        Why a row cannot be judged; empty if it can.
    n_outside : int
        How many rows that can be judged have a value beyond the limits of the model's contract.
    notes : mapping from str to str
        By feature why not all of its numbers could be told, where that is so.
    """

    X: Array
    clients: npt.NDArray[np.str_]
    row_numbers: RowNumbers
    texts: Mapping[str, list[str]]
    reasons: list[str]
    n_outside: int
    notes: Mapping[str, str]


def read_rows(
    settings: DataSettings,
    *,
    features: Sequence[str] | None = None,
    with_labels: bool | None = True,
) -> Rows:
    """Read every file.

    Parameters
    ----------
    settings : DataSettings
        The files.
    features : sequence of str, optional
        Columns that a model wants, in its order; others are left out. Without them all columns
        that are not something else are features, and all files must have the same.
    with_labels : bool or None
        Whether the label column is needed; None reads it where the first file has it.
    """
    check_choice(settings.missing, "missing", (REFUSE, DROP))
    contract = None if settings.contract is None else read_contract(settings.contract)
    if contract is not None and settings.missing == DROP:
        raise InvalidInputError(
            "missing",
            "must not be 'drop' with a contract, whose features say what to do",
            "both are given",
        )
    wanted = features if features is not None else (contract.names if contract else None)
    parts, unseen = [], set(settings.ignore)
    settings, tables = _open(settings)
    for client, where, table in tables:
        unseen -= set(table.columns)
        if with_labels is None:
            with_labels = settings.label in table.by_name
        rule = "every label must be text or a whole number"
        label = (settings.label, "label", where, rule, "is not")
        y = _read_names(table, *label) if with_labels else None
        names = _read_clients(table, client, where, settings)
        rest = table.without(*_taken(settings))
        if contract is not None:
            checked = contract.check(rest, y, client=client or where, clip=settings.clip)
            X, is_kept, wanted = checked.X, checked.is_kept, contract.names
        else:
            may_have_more = features is not None
            wanted = _check_columns(rest, wanted, where, may_have_more=may_have_more)
            _refuse_text(rest, wanted, where, may_ignore=not may_have_more)
            X, is_kept = _read_strictly(rest, wanted, where, settings)
        dropped = count_dropped(names, is_kept, where)
        y, numbers = None if y is None else y[is_kept], table.row_numbers[is_kept]
        kept = (X, y, names[is_kept], tuple(wanted), contract, numbers, dropped, settings)
        parts.append(Rows(*kept))
    if unseen:
        raise InvalidInputError(
            "ignore", "must name columns that some file has", f"none has {_quoted(sorted(unseen))}"
        )
    return join_rows(parts)


def count_dropped(names: Labels, is_kept: Mask, where: str) -> Counter[str]:
    """How many rows each client loses; one that would lose all is an error."""
    dropped = Counter(names[~is_kept].tolist())
    for name in dropped.keys() - set(names[is_kept].tolist()):
        raise InvalidInputError(
            where,
            "every client must have a row that lacks no value",
            f"{dropped[name]} of {dropped[name]} rows of client {name!r} lack one",
        )
    return dropped


def join_rows(parts: Sequence[Rows]) -> Rows:
    """Rows of several files, read alike; where some labels are numbers and some text, as text."""
    ys = [part.y for part in parts if part.y is not None]
    if len({y.dtype.kind for y in ys}) > 1:
        ys = [y.astype(np.str_) for y in ys]
    return replace(
        parts[0],
        X=np.concatenate([part.X for part in parts]),
        y=np.concatenate(ys) if ys else None,
        clients=np.concatenate([part.clients for part in parts]),
        row_numbers=np.concatenate([part.row_numbers for part in parts]),
        n_dropped=dict(sum((Counter(part.n_dropped) for part in parts), Counter())),
    )


def read_readings(
    settings: DataSettings, *, features: Sequence[str] | None = None, keep: Sequence[str] = ()
) -> Readings:
    """Read every file for a model that has learnt: a row with a fault is marked, not refused.

    Parameters
    ----------
    settings : DataSettings
        The files. No labels are needed.
    features : sequence of str, optional
        As for ``read_rows``.
    keep : sequence of str
        Columns whose cells are wanted as they are written.
    """
    wanted, may_have_more = features, features is not None
    parts: list[Readings] = []
    settings, tables = _open(settings, keep)
    for client, where, table in tables:
        names = _read_clients(table, client, where, settings)
        _check_has(table, keep, where)
        rest = table.without(*_taken(settings), *(() if may_have_more else keep))
        wanted = _check_columns(rest, wanted, where, may_have_more=may_have_more)
        X, reasons = np.empty((rest.n_rows, len(wanted))), [""] * rest.n_rows
        n_faults = np.zeros(rest.n_rows, dtype=int)
        outside = np.zeros(rest.n_rows, dtype=bool)
        for p, name in enumerate(wanted):
            rule = settings.rule_of(name)
            X[:, p], broken, _ = _read_feature(rest[name], rule, clip=settings.clip)
            for row in np.flatnonzero(broken | np.isnan(X[:, p])):
                n_faults[row] += 1
                if n_faults[row] <= _MOST_REASONS:  # an empty row of a wide file has very many
                    words = f"{name!r} is {_kind(rest[name][row])}"
                    reasons[row] = f"{reasons[row]}; {words}" if reasons[row] else words
            low, high = _limits(rule)
            outside |= (X[:, p] < low) | (X[:, p] > high)
        for row in np.flatnonzero(n_faults > _MOST_REASONS):
            reasons[row] += f"; and {n_faults[row] - _MOST_REASONS} more"
        n_outside = int(np.count_nonzero(outside & (n_faults == 0)))
        texts = {name: list(table.texts[name]) for name in keep}
        notes = {name: table.notes[name] for name in wanted if name in table.notes}
        parts.append(Readings(X, names, table.row_numbers, texts, reasons, n_outside, notes))
    return Readings(
        X=np.concatenate([part.X for part in parts]),
        clients=np.concatenate([part.clients for part in parts]),
        row_numbers=np.concatenate([part.row_numbers for part in parts]),
        texts={name: [text for part in parts for text in part.texts[name]] for name in keep},
        reasons=[reason for part in parts for reason in part.reasons],
        n_outside=sum(part.n_outside for part in parts),
        notes={name: note for part in parts for name, note in part.notes.items()},
    )


def _open(
    settings: DataSettings, texts: Collection[str] = ()
) -> tuple[DataSettings, Iterator[tuple[str | None, str, Table]]]:
    """The tables with their clients and files; the client is None where a column tells.

    A column that only a model remembers is used if the files have it.
    """
    paths: list[Path] = []
    for path in settings.paths:
        inside = data_files(path) if path.is_dir() else [path]
        if not inside:
            kinds = f"{', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}"
            raise InvalidInputError(str(path), f"a folder must hold {kinds} files", "it has none")
        paths += inside
    if settings.client_column is not None and settings.named:
        raise InvalidInputError(
            "client-column", "must not be given with files of named clients", "both are"
        )
    sources = [*paths, *settings.named.values()]
    if not sources:
        raise InvalidInputError("data", "must be one or more files", "there is none")
    tables: Iterable[Table] = (read_table(path, texts) for path in sources)
    if settings.client_column is not None and not settings.is_typed("client_column"):
        tables = list(tables)
        has = [settings.client_column in table.by_name for table in tables]
        if not any(has):
            settings = replace(settings, client_column=None)
    names: list[str | None] = [None] * len(sources)
    if settings.client_column is None:
        names = [*(path.stem for path in paths), *settings.named]
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise InvalidInputError(
                "data",
                "clients must have different names",
                f"{name!r} is there twice; --client NAME=FILE gives a file another name",
            )
    return settings, zip(names, map(str, sources), tables, strict=True)


def match_labels(y: Labels, classes: Sequence[Any]) -> npt.NDArray[np.intp]:
    """Positions of labels in a model's classes, by their text; -1 where there is none."""
    places = {str(label): k for k, label in enumerate(classes)}
    return np.array([places.get(str(label), -1) for label in y.tolist()], dtype=np.intp)


def _taken(settings: DataSettings) -> tuple[str, ...]:
    """Columns that are no features."""
    return (settings.label, settings.client_column or settings.label, *settings.ignore)


def _read_clients(
    table: Table, client: str | None, where: str, settings: DataSettings
) -> npt.NDArray[np.str_]:
    """The client of every row."""
    if settings.client_column is None:
        return np.full(table.n_rows, client)
    rule = "every row must name its client"
    names = _read_names(table, settings.client_column, "client", where, rule, "does not")
    return names.astype(np.str_)


def _read_names(
    table: Table, column: str, what: str, where: str, rule: str, failing: str
) -> Labels:
    """The column of labels or of clients; ``failing`` says in a word what a row does wrong."""
    if column not in table.by_name:
        raise InvalidInputError(
            where,
            f"must have the {what} column {column!r}",
            f"its columns are {_quoted(table.columns)}{ask_separator(table.columns)}; "
            f"{_OPTIONS[what]} names it",
        )
    names, broken = read_labels(table[column])
    if broken.any():
        raise InvalidInputError(
            where,
            f"column {column!r}: {rule}",
            f"row {table.row_numbers[broken.argmax()]} {failing} "
            f"({np.count_nonzero(broken)} in all); fill in what is missing, or delete these rows",
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
    _check_has(table, wanted, where)
    known = set(wanted)  # a list would take quadratic time
    others = [name for name in table.columns if name not in known]
    if others and not may_have_more:
        raise InvalidInputError(
            where,
            f"must have the same columns as the files before, {_quoted(wanted)}",
            f"it also has {_quoted(others)}; ignore them, or give a contract",
        )
    return tuple(wanted)


def _check_has(table: Table, wanted: Sequence[str], where: str) -> None:
    missing = [name for name in wanted if name not in table.by_name]
    if missing:
        raise InvalidInputError(
            where,
            f"must have the columns {_quoted(wanted)}",
            f"it lacks {_quoted(missing)}{ask_separator(table.columns)}",
        )


def _refuse_text(table: Table, names: Sequence[str], where: str, *, may_ignore: bool) -> None:
    """All columns that are mostly text at once, and what to type to leave them out."""
    text = {}
    for name in names:
        column = table[name]
        if column.dtype.kind in "biuf" or name in table.notes:
            continue
        present = [item for item in column if not is_missing(item)]
        words = [item for item in present if not isinstance(item, float)]
        if 2 * len(words) > len(present):
            text[name] = f"{name!r}{_KINDS[kind_of_text(words)]}"
    if not text:
        return
    found = f"there is text in {listed(text.values(), _MOST_LISTED)}"
    if may_ignore:
        found += "; leave out what is no reading with " + " ".join(
            f"--ignore {shlex.quote(name)}" for name in text
        )
    raise InvalidInputError(where, "columns of features must hold numbers", found)


def _read_strictly(
    table: Table, names: Sequence[str], where: str, settings: DataSettings
) -> tuple[Array, Mask]:
    """The features of the rows that are kept, and which these are; a fault is an error."""
    is_kept, columns = np.ones(table.n_rows, dtype=bool), []
    for name in names:
        rule = settings.rule_of(name)
        values, broken, lacks = _read_feature(table[name], rule, clip=settings.clip)
        if broken.any():
            row = int(broken.argmax())
            kind, note = _kind(table[name][row]), table.notes.get(name, "")
            remedy = f": {note}" if note else ""
            if kind == "missing":
                remedy = "; leave such rows out with --missing drop, or fill them by a contract"
            raise InvalidInputError(
                where,
                f"column {name!r}: every value must be a finite number",
                f"row {table.row_numbers[row]} is {kind} ({np.count_nonzero(broken)} in all)"
                f"{remedy}",
            )
        is_kept &= ~lacks
        columns.append(values)
    return np.column_stack(columns)[is_kept], is_kept


def _read_feature(column: Column, rule: Feature, *, clip: bool) -> tuple[Array, Mask, Mask]:
    """Values by the feature's rule, which of them are at fault, and which have rows left out."""
    values, broken = read_numbers(column)
    lacks = np.zeros(len(values), dtype=bool)
    if broken.any() and rule.missing != "forbid":
        absent = np.isnan(values)
        if column.dtype.kind not in "biuf":
            absent = np.array([is_missing(item) for item in column], dtype=bool)
        broken = broken & ~absent
        if rule.fill is not None:
            values = np.where(absent, rule.fill, values)
        else:
            lacks = absent
    if clip:
        finite = np.isfinite(values)
        values[finite] = np.clip(values[finite], *_limits(rule))
    return values, broken, lacks


def _limits(rule: Feature) -> tuple[float, float]:
    return (
        -np.inf if rule.low is None else rule.low,
        np.inf if rule.high is None else rule.high,
    )


def _kind(item: Any) -> str:
    """What stands in place of a number, without its value."""
    if is_missing(item):
        return "missing"
    return "infinite" if isinstance(item, float | np.floating) else "no number"


def _quoted(names: Iterable[str]) -> str:
    return listed(map(repr, names), _MOST_LISTED)
