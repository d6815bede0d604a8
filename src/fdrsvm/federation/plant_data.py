"""A plant's table: read from its file, checked against its contract. It never leaves the process.

Errors name rules, counts and row numbers, and never a value: they travel to the server. Nor do they
name columns before these are known to be names: the first line of a file may be a row.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.estimators.contract import ContractError, FeatureContract, Violation
from fdrsvm.federated.joining import Label, TellableError
from fdrsvm.federation.plant import Plant
from fdrsvm.files import read_capped
from fdrsvm.maths.arrays import Array

_MAX_BYTES = 1 << 32
_MAX_CONTRACT = 1 << 24
_MAX_LABELS = 100
_MISSING = ("", "?", "nan", "NaN", "NA")


@dataclass(frozen=True, eq=False)
class PlantRows:
    """A plant's table in numbers.

    ``labels`` are the distinct labels that occur, sorted, and ``codes`` the rows' positions in
    them. ``digest`` tells whether file or contract changed.
    """

    X: Array
    labels: tuple[Label, ...]
    codes: npt.NDArray[np.intp]
    feature_names: tuple[str, ...]
    contract: FeatureContract | None
    digest: str


@dataclass(frozen=True)
class _Table:
    """Columns by name, as a contract reads them."""

    by_name: Mapping[str, npt.NDArray[Any]]
    columns: Sequence[str]
    n_rows: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_rows, len(self.columns)

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.by_name[name]


def read_plant(plant: Plant) -> PlantRows:
    """The rows of a plant, or an error that names file, column and rule."""
    content = _read(plant.data, "data", _MAX_BYTES)
    digest = hashlib.sha256(content)
    contract = None
    if plant.contract is not None:
        text = _read(plant.contract, "contract", _MAX_CONTRACT)
        contract = FeatureContract.from_json(text)
        digest.update(contract.fingerprint.encode())
    is_parquet = plant.data.suffix.lower() == ".parquet"
    columns = _read_parquet(content) if is_parquet else _read_csv(content, plant.data.name)
    labels = columns.pop(plant.label, None)
    if labels is None:
        raise TellableError(
            f"data of client {plant.client_id!r}",
            f"must have the label column {plant.label!r}",
            f"none of its {len(columns)} columns is called that; is the first line a header?",
        )
    table = _Table(columns, list(columns), len(labels))
    y = _read_labels(labels, plant.client_id)
    if contract is None:
        _check_names(table.columns, plant.client_id)
        X, names = _without_contract(table, plant.client_id), tuple(columns)
    else:
        X, names = _with_contract(table, y, contract, plant), contract.names
    distinct, codes = np.unique(y, return_inverse=True)
    if len(distinct) > _MAX_LABELS:
        raise TellableError(
            f"labels of client {plant.client_id!r}",
            f"at most {_MAX_LABELS} must be different",
            f"{len(distinct)} are; is {plant.label!r} the column with the labels?",
        )
    return PlantRows(
        X=np.require(X, np.float64, ["C", "W", "O"]),
        labels=tuple(distinct.tolist()),
        codes=codes.astype(np.intp),
        feature_names=names,
        contract=contract,
        digest=digest.hexdigest(),
    )


def _read(path: Path, what: str, max_bytes: int) -> bytes:
    try:
        return read_capped(path, max_bytes)
    except OSError as error:
        raise TellableError(
            what, "must be a file that the node can read", f"{path}: {error.strerror}"
        ) from None


def _read_csv(content: bytes, file: str) -> dict[str, npt.NDArray[Any]]:
    try:
        text = content.decode("utf-8-sig")
        rows = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except UnicodeDecodeError as error:
        found = f"{file}: byte {error.start} is none"
        raise TellableError("data", "must be a CSV in UTF-8", found) from None
    except csv.Error:
        raise TellableError("data", "must be a CSV in UTF-8", f"{file}: it is broken") from None
    if len(rows) < 2:
        raise TellableError("data", "must have a header line and a row", f"{file} has less")
    header = [cell.strip() for cell in rows[0]]
    _check_header(header, file)
    for number, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise TellableError(
                "data",
                f"every row must have {len(header)} cells, as the header has",
                f"{file}: row {number} has {len(row)}",
            )
    cells = zip(*rows[1:], strict=True)
    return {name: _column(column) for name, column in zip(header, cells, strict=True)}


def _check_header(header: Sequence[str], file: str) -> None:
    name, count = Counter(header).most_common(1)[0]
    if count > 1 or "" in header:
        places = [str(k) for k, other in enumerate(header) if other == name]
        found = f"{' and '.join(places)} have the same" if count > 1 else "one has none"
        raise TellableError("data", "columns must have different names", f"{file}: {found}")


def _check_names(names: Sequence[str], client_id: str) -> None:
    """Without a contract nobody else knows the names, and a row could be taken for them."""
    numbers = [k for k, name in enumerate(names) if isinstance(_cell(name), float)]
    if numbers:
        raise TellableError(
            f"data of client {client_id!r}",
            "columns must have names that are not numbers, unless a contract has them too",
            f"{len(numbers)} have such names; is the first line a header?",
        )


def _column(cells: Sequence[str]) -> npt.NDArray[Any]:
    """Numbers if all of them are, else as a contract can tell them apart: None is missing."""
    if not any("_" in cell for cell in cells):  # Python reads 1_000, nobody else does
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:
            pass
    values = np.empty(len(cells), dtype=object)
    for n, cell in enumerate(cells):
        values[n] = _cell(cell.strip())
    return values


def _cell(cell: str) -> float | str | None:
    if cell in _MISSING:
        return None
    try:
        return cell if "_" in cell else float(cell)
    except ValueError:
        return cell


def _read_parquet(content: bytes) -> dict[str, npt.NDArray[Any]]:
    try:
        from pyarrow import ArrowInvalid, BufferReader, parquet
    except ModuleNotFoundError:
        raise TellableError(
            "data", "Parquet needs pyarrow", "it is not installed; install it, or write a CSV"
        ) from None
    try:
        table = parquet.read_table(BufferReader(content))
    except ArrowInvalid:
        raise TellableError("data", "must be a Parquet file", "it is not") from None
    return {name: np.asarray(table[name].to_numpy()) for name in table.column_names}


def _with_contract(
    table: _Table, y: npt.NDArray[Any], contract: FeatureContract, plant: Plant
) -> Array:
    """As agreed; columns that are not in the contract are counted, and not named."""
    try:
        return contract.check(table, y, client=plant.client_id, clip=plant.clip).X
    except ContractError as error:
        agreed = {None, "y", *contract.names}
        found = [one for one in error.violations if one.column in agreed]
        others = len(error.violations) - len(found)
        if others:
            rule = "must have no columns but those in the contract"
            found.append(Violation(plant.client_id, None, rule, others, None))
        raise ContractError(found) from None


def _without_contract(table: _Table, client_id: str) -> Array:
    """Every column must be numbers, finite and not missing."""
    violations = []
    if not table.columns:
        violations.append(Violation(client_id, None, "must have a feature", 0, None))
    for name in table.columns:
        column = table[name]
        if column.dtype.kind in "biuf":
            broken = ~np.isfinite(column.astype(np.float64))
        else:
            broken = np.array([not isinstance(item, float) for item in column], dtype=bool)
        if broken.any():
            count, first = int(np.count_nonzero(broken)), int(broken.argmax())
            violations.append(Violation(client_id, name, "must be a finite number", count, first))
    if violations:
        raise ContractError(violations)
    return np.column_stack([table[name].astype(np.float64) for name in table.columns])


def _read_labels(column: npt.NDArray[Any], client_id: str) -> npt.NDArray[Any]:
    """Whole numbers if all are, else text."""
    if column.dtype.kind in "biu":
        return column.astype(np.int64)
    if column.dtype.kind == "f":
        broken = ~np.isfinite(column) | (column != np.round(column))
        if not broken.any():
            return column.astype(np.int64)
    else:
        broken = np.array([item is None or item != item for item in column], dtype=bool)
        if not broken.any():
            return np.array([_label_text(item) for item in column])
    raise ContractError(
        [
            Violation(
                client_id,
                "y",
                "label must be text or a whole number",
                int(np.count_nonzero(broken)),
                int(broken.argmax()),
            )
        ]
    )


def _label_text(item: Any) -> str:
    """Where some labels are numbers and some text, all are text."""
    is_whole = isinstance(item, float) and item.is_integer()
    return str(int(item)) if is_whole else str(item).strip()
