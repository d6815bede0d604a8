"""A plant's table: read from its file, checked against its contract. It never leaves the process.

Errors name rules, counts and row numbers, and never a value or a path: they travel to the server.
Nor do they name columns before these are known to be names: the first line of a file may be a row.
Where the file is stands in the plant's own log only.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array
from fdrsvm.core.files import read_capped
from fdrsvm.data.contract import ContractError, FeatureContract, Violation
from fdrsvm.data.tables import Table, parse_table, read_cell, read_labels, read_numbers
from fdrsvm.deploy.plant import Plant
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.joining import Label, TellableError

_MAX_BYTES = 1 << 32
_MAX_CONTRACT = 1 << 24
_MAX_LABELS = 100


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


def read_plant(plant: Plant) -> PlantRows:
    """The rows of a plant, or an error that names column and rule, and to the plant its file."""
    content = _read(plant.data, "data", _MAX_BYTES)
    digest = hashlib.sha256(content)
    contract = None
    if plant.contract is not None:
        text = _read(plant.contract, "contract", _MAX_CONTRACT)
        contract = FeatureContract.from_json(text)
        digest.update(contract.fingerprint.encode())
    with_labels = _parse(content, plant.data)
    if plant.label not in with_labels.by_name:
        raise TellableError(
            f"data of client {plant.client_id!r}",
            f"must have the label column {plant.label!r}",
            f"none of its {len(with_labels.columns)} columns is called that; is the first line a "
            "header?",
            at_plant=str(plant.data),
        )
    table = with_labels.without(plant.label)
    y = _labels(with_labels[plant.label], plant.client_id)
    if contract is None:
        _check_names(table.columns, plant.client_id)
        X, names = _without_contract(table, plant.client_id), tuple(table.columns)
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
    except (OSError, CorruptDataError) as error:
        rule, reason = "must be a file that the node can read", words_without_path(error)
        raise TellableError(what, rule, reason, at_plant=str(path)) from None


def words_without_path(error: OSError | CorruptDataError) -> str:
    """Why a file could not be read or written, in the system's words and without its name."""
    if isinstance(error, CorruptDataError):  # of read_capped, which does not know the name
        return str(error)
    return os.strerror(error.errno) if error.errno is not None else "no reason is known"


def _parse(content: bytes, path: Path) -> Table:
    """The table; that its reader's words hold no value is part of what it promises."""
    is_parquet = path.suffix.lower() == ".parquet"
    try:
        return parse_table(content, "its table.parquet" if is_parquet else "its table")
    except InvalidInputError as error:
        told = (error.argument, error.rule, error.found)
        raise TellableError(*told, at_plant=str(path)) from None


def _check_names(names: Sequence[str], client_id: str) -> None:
    """Without a contract nobody else knows the names, and a row could be taken for them."""
    numbers = [k for k, name in enumerate(names) if isinstance(read_cell(name), float)]
    if numbers:
        raise TellableError(
            f"data of client {client_id!r}",
            "columns must have names that are not numbers, unless a contract has them too",
            f"{len(numbers)} have such names; is the first line a header?",
        )


def _with_contract(
    table: Table, y: npt.NDArray[Any], contract: FeatureContract, plant: Plant
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


def _without_contract(table: Table, client_id: str) -> Array:
    """Every column must be numbers, finite and not missing."""
    violations = []
    if not table.columns:
        violations.append(Violation(client_id, None, "must have a feature", 0, None))
    columns = []
    for name in table.columns:
        values, broken = read_numbers(table[name])
        columns.append(values)
        if broken.any():
            count, first = int(np.count_nonzero(broken)), int(broken.argmax())
            violations.append(Violation(client_id, name, "must be a finite number", count, first))
    if violations:
        raise ContractError(violations)
    return np.column_stack(columns)


def _labels(column: npt.NDArray[Any], client_id: str) -> npt.NDArray[Any]:
    labels, broken = read_labels(column)
    if not broken.any():
        return labels
    rule = "label must be text or a whole number"
    count, first = int(np.count_nonzero(broken)), int(broken.argmax())
    raise ContractError([Violation(client_id, "y", rule, count, first)])
