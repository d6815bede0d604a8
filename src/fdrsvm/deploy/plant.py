"""One plant as its own node knows it: name, data file, contract, and where it keeps its memory."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdrsvm.core.arrays import check_count
from fdrsvm.data.tables import data_files
from fdrsvm.errors import InvalidInputError

_KEYS = (
    "client-id",
    "data",
    "label",
    "contract",
    "clip",
    "state",
    "epsilon",
    "kappa",
    "least-in-sum",
)


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
    """A plant from a node's own settings, or in a simulation from the run's.

    A node of a simulation has a number and no data of its own: the number picks one of the files in
    the folder that the run names, in the order of their names.
    """
    if "partition-id" in node and "data" not in node:
        return _simulated(node, run)
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
        clip=bool(node.get("clip", False)),
        state=_path(node, "state") or data.parent / ".fdrsvm-state",
        epsilon=_number(node, "epsilon"),
        kappa=_number(node, "kappa"),
        least_in_sum=check_count(node.get("least-in-sum", 0), "least-in-sum", least=0),
    )


def _simulated(node: Mapping[str, Any], run: Mapping[str, Any]) -> Plant:
    folder = _path(run, "data")
    if folder is None:
        raise InvalidInputError(
            "run-config", "data must be a folder with one CSV per client", "it is missing"
        )
    files, number = data_files(folder), int(node["partition-id"])
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
        state=_path(run, "state") or Path(str(run.get("output", "fdrsvm-run"))) / "clients",
    )


def _path(config: Mapping[str, Any], key: str) -> Path | None:
    value = config.get(key, "")
    if not isinstance(value, str):
        raise InvalidInputError(key, "must be a path", f"it is {value!r}")
    return Path(value).expanduser().resolve() if value else None


def _number(config: Mapping[str, Any], key: str) -> float | None:
    value = config.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(key, "must be a number", f"it is {value!r}")
    return float(value)
