"""One plant as its own node knows it: its settings, and its table, which never leaves the machine.

Errors about the table name rules, counts and row numbers, and never a value or a path: they travel
to the server. Nor do they name columns before these are known to be names: the first line of a file
may be a row. Where the file is stands in the plant's own log only.

A table is read once. Its rows stay in the process that has read them, for every later message and
for every process that is forked from there (:mod:`fdrsvm.deploy.warm_client`), until the file or
the contract changes.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import Array, check_count, check_flag
from fdrsvm.core.files import read_capped
from fdrsvm.core.texts import package_log
from fdrsvm.data.contract import Checked, ContractError, FeatureContract, Violation
from fdrsvm.data.csv_reading import looks_like_number
from fdrsvm.data.tables import (
    Mask,
    RowNumbers,
    Table,
    data_files,
    is_missing,
    parse_table,
    read_labels,
    read_numbers,
)
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.joining import Label, TellableError

_LOG = package_log()
_KEYS = (
    *("client-id", "data", "label", "contract", "clip", "state"),
    *("epsilon", "kappa", "least-in-sum"),
)
_MAX_BYTES = 1 << 32
_MAX_CONTRACT = 1 << 24
_MAX_LABELS = 100
_MOST_KEPT = 8  # tables: a process of a simulation answers for several plants
# A file written a moment ago can be written again and show the same times: the clocks of file
# systems are coarse, and some of them count in steps of 2 s.
_SETTLED_NS = 3_000_000_000


@dataclass(frozen=True)
class Plant:
    """Settings of a client, which only it knows.

    Attributes
    ----------
    client_id : str
        Its name in the federation.
    data : Path
        A CSV file with a header line, or Parquet.
    label : str
        The column with the labels; all others are features.
    contract : Path or None
        A data contract as JSON, see :class:`fdrsvm.FeatureContract`.
    clip : bool
        Move values to the contract's limits rather than refuse them.
    state : Path
        Folder for what it remembers between rounds.
    epsilon, kappa : float or None
        Its own radius and label price, in place of the run's.
    least_in_sum : int
        Its answers leave only in masked sums over at least this many plants; 0 also lets them leave
        in the open.
    """

    client_id: str
    data: Path
    label: str
    contract: Path | None
    clip: bool
    state: Path
    epsilon: float | None = None
    kappa: float | None = None
    least_in_sum: int = 0

    @property
    def memory_folder(self) -> Path:
        """Apart from those of other clients that share ``state``."""
        return self.state / hashlib.sha256(self.client_id.encode()).hexdigest()[:16]


def plant_from_config(node: Mapping[str, Any], run: Mapping[str, Any]) -> Plant:
    """A plant from a node's own settings, or in a simulation from the run's."""
    if "partition-id" in node and "data" not in node:
        return simulated_plant(int(node["partition-id"]), run)
    unknown = sorted(set(node) - {*_KEYS, "partition-id", "num-partitions"})
    if unknown:
        raise InvalidInputError(
            "node-config", f"must hold only {', '.join(_KEYS)}", f"it has {', '.join(unknown)}"
        )
    data = _path(node, "data")
    if data is None:
        raise InvalidInputError("node-config", "must name a data file", "data is missing")
    name = node.get("client-id", data.stem)
    if not isinstance(name, str) or not name:
        raise InvalidInputError("client-id", "must be text, not empty", f"it is {name!r}")
    return Plant(
        client_id=name,
        data=data,
        label=str(node.get("label", "label")),
        contract=_path(node, "contract"),
        clip=check_flag(node.get("clip", False), "clip"),
        state=_path(node, "state") or data.parent / ".fdrsvm-state",
        epsilon=_number(node, "epsilon"),
        kappa=_number(node, "kappa"),
        least_in_sum=check_count(node.get("least-in-sum", 0), "least-in-sum", least=0),
    )


def simulated_plant(number: int, run: Mapping[str, Any]) -> Plant:
    """The plant of a simulated node, which has a number and no data of its own.

    The number picks one of the files in the folder that the run names, in the order of their names.
    """
    folder = _path(run, "data")
    if folder is None:
        raise InvalidInputError(
            "run-config", "data must be a folder with one CSV per client", "it is missing"
        )
    files = data_files(folder)
    if number >= len(files):
        raise InvalidInputError(
            "data",
            "must have a file for each simulated node",
            f"there are {len(files)} files and a node with the number {number}",
        )
    contract = folder / "contract.json"
    return Plant(
        client_id=files[number].stem,
        data=files[number],
        label=str(run.get("label", "label")),
        contract=contract if contract.exists() else None,
        clip=False,
        state=_path(run, "state") or (_path(run, "output") or Path("fdrsvm-run")) / "clients",
    )


def _path(config: Mapping[str, Any], key: str) -> Path | None:
    value = config.get(key, "")
    if not isinstance(value, str):
        raise InvalidInputError(key, "must be a path", f"it is {value!r}")
    return Path(value).expanduser().resolve() if value else None


def _number(config: Mapping[str, Any], key: str) -> float | None:
    value = config.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | None):
        raise InvalidInputError(key, "must be a number", f"it is {value!r}")
    return None if value is None else float(value)


@dataclass(frozen=True, eq=False)
class PlantRows:
    """A plant's table in numbers.

    ``labels`` are the distinct labels that occur, sorted, and ``codes`` the rows' positions in
    them. ``digest`` tells whether file or contract changed. ``row_numbers`` are those of a
    spreadsheet; ``n_dropped`` rows were left out as the contract says.
    """

    X: Array
    labels: tuple[Label, ...]
    codes: npt.NDArray[np.intp]
    feature_names: tuple[str, ...]
    contract: FeatureContract | None
    digest: str
    row_numbers: RowNumbers
    n_dropped: int


_KEPT: dict[Plant, tuple[object, PlantRows]] = {}  # with what the system said of the files


def rows_of(plant: Plant) -> PlantRows:
    """The rows of a plant, as ``read_plant`` gives them, read again only after a change.

    Files that look as they did are taken to be the same. If they look different, or were written
    so recently that looks can deceive, their bytes decide.
    """
    looks = _looks_of(plant)
    before, rows = _KEPT.pop(plant, (None, None))
    if rows is None or looks is None or looks != before:
        rows = read_plant(plant, rows)
    _KEPT[plant] = looks, rows
    if len(_KEPT) > _MOST_KEPT:
        del _KEPT[next(iter(_KEPT))]  # the one that has not been asked for longest
    return rows


def _looks_of(plant: Plant) -> object:
    """What the system says of a plant's files; None if a change might not show in it."""
    try:
        files = [os.stat(path) for path in (plant.data, plant.contract) if path is not None]
    except OSError:
        return None
    if time.time_ns() - max(max(one.st_mtime_ns, one.st_ctime_ns) for one in files) < _SETTLED_NS:
        return None
    return [
        (one.st_dev, one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) for one in files
    ]


def read_plant(plant: Plant, known: PlantRows | None = None) -> PlantRows:
    """The rows of a plant, or an error that names column and rule, and to the plant its file.

    ``known`` were read before; they are given back if the files still have the same content.
    """
    content = _read_file(plant.data, "data", _MAX_BYTES)
    digest = hashlib.sha256(content)
    contract = None
    if plant.contract is not None:
        text = _read_file(plant.contract, "contract", _MAX_CONTRACT)
        contract = FeatureContract.from_json(text)
        digest.update(contract.fingerprint.encode())
    if known is not None and known.digest == digest.hexdigest():
        return known
    table, y = parse_rows(content, plant)
    row_numbers = table.row_numbers
    if contract is None:
        X, n_dropped = numbers_in(table, plant), 0
    else:
        checked = agreed_rows(table, y, contract, plant)
        X, y, n_dropped = checked.X, y[checked.is_kept], checked.n_dropped
        row_numbers = row_numbers[checked.is_kept]
    if n_dropped:
        words = "client %r: %d of %d rows lack a value and are left out, as the contract says (%s)"
        _LOG.warning(words, plant.client_id, n_dropped, n_dropped + len(X), plant.data)
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
        feature_names=tuple(table.columns) if contract is None else contract.names,
        contract=contract,
        digest=digest.hexdigest(),
        row_numbers=row_numbers,
        n_dropped=n_dropped,
    )


def _read_file(path: Path, what: str, max_bytes: int) -> bytes:
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


def parse_rows(content: bytes, plant: Plant) -> tuple[Table, npt.NDArray[Any]]:
    """The features and the labels in a table; its reader promises that its words hold no value."""
    is_parquet = plant.data.suffix.lower() == ".parquet"
    try:
        table = parse_table(content, "its table.parquet" if is_parquet else "its table")
    except InvalidInputError as error:
        words = (error.argument, error.rule, error.found)
        raise TellableError(*words, at_plant=str(plant.data)) from None
    if plant.label not in table.by_name:
        raise TellableError(
            f"data of client {plant.client_id!r}",
            f"must have the label column {plant.label!r}",
            f"none of its {len(table.columns)} columns is called that; is the first line a header?",
            at_plant=str(plant.data),
        )
    labels, broken = read_labels(table[plant.label])
    if broken.any():
        rule = "label must be text or a whole number"
        raise ContractError([_violation(plant, table, "y", rule, broken)])
    return table.without(plant.label), labels


def agreed_rows(
    table: Table, y: npt.NDArray[Any], contract: FeatureContract, plant: Plant
) -> Checked:
    """Rows as agreed; columns that are not in the contract are counted, and not named."""
    try:
        return contract.check(table, y, client=plant.client_id, clip=plant.clip)
    except ContractError as error:
        agreed = {None, "y", *contract.names}
        tellable = [one for one in error.violations if one.column in agreed]
        others = len(error.violations) - len(tellable)
        if others:
            rule = "must have no columns but those in the contract"
            tellable.append(Violation(plant.client_id, None, rule, others, None))
        raise ContractError(tellable) from None


def numbers_in(table: Table, plant: Plant) -> Array:
    """Features without a contract: every column must be numbers, finite and not missing."""
    # Nobody else knows the columns' names, and a row could be taken for them.
    numbers = [name for name in table.columns if looks_like_number(name)]
    if numbers:
        raise TellableError(
            f"data of client {plant.client_id!r}",
            "columns must have names that are not numbers, unless a contract has them too",
            f"{len(numbers)} have such names; is the first line a header?",
        )
    if not table.columns:
        raise ContractError([Violation(plant.client_id, None, "must have a feature", 0, None)])
    columns, violations = [], []
    for name in table.columns:
        values, broken = read_numbers(table[name])
        columns.append(values)
        if not broken.any():
            continue
        absent = np.array([is_missing(item) for item in table[name]], dtype=bool)
        note = table.notes.get(name, "")
        rules = {
            "must not be missing, unless a contract fills it or drops such rows": absent,
            f"must be a finite number{f' ({note})' if note else ''}": broken & ~absent,
        }
        violations += [
            _violation(plant, table, name, rule, rows) for rule, rows in rules.items() if rows.any()
        ]
    if violations:
        raise ContractError(violations)
    return np.column_stack(columns)


def _violation(plant: Plant, table: Table, column: str, rule: str, broken: Mask) -> Violation:
    count, first = int(np.count_nonzero(broken)), int(table.row_numbers[broken.argmax()])
    return Violation(plant.client_id, column, rule, count, first)
