"""Checkpoints: all of a run in one safe file after each round, to go on from with equal bits.

Header   run, method, federation, round, and what of the history is text
Arrays   "state/...", "history/...", "client 0/...": the server's state by the path to each number,
         one column per number of the history, and the clients' memories

The server's state is enough where clients keep their own memory. In one process the clients'
memories are part of it: they hold what clients would have on their own disks, and never leave this
machine. A state is a frozen dataclass of arrays, numbers and other such dataclasses, or a tuple of
states; nothing else is stored, so nothing in a file can run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import count, takewhile
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from fdrsvm.core.arrays import check_count
from fdrsvm.core.codec import pack, unpack
from fdrsvm.core.files import PathLike, read_capped, write_atomically
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.client_memory import Memory, memory_from_arrays, memory_to_arrays
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import add_prefix, split_prefixes
from fdrsvm.federated.methods import from_description
from fdrsvm.federated.rounds import RoundRecord, Snapshot

Stored = dict[str, npt.NDArray[Any]]
State = TypeVar("State")

_KIND, _VERSION = "checkpoint", 2
_MAX_BYTES = 1 << 32
_NAME = re.compile(r"round-(\d{6})\.safetensors")
# Of a record: a column each, and lists of text, which are kept in the header.
_COUNTS = ("round", "n_answers", "bytes_down", "bytes_up")
_NUMBERS = ("objective", "lower_bound", "gap", "seconds", "server_seconds")
_TEXTS = ("faults", "faulty", "absent", "left_out")
_RESIDUAL = "residual "
_NAMES_IN_FILES = {"certificate": "standing"}  # as files of 0.1 have it


class CheckpointFolder:
    """Keeps the checkpoints of the last rounds of one run in a folder.

    Pass the object as ``checkpoint`` of :func:`fdrsvm.federated.run_rounds`, and ``latest()`` as
    ``resume``.

    Parameters
    ----------
    folder : path
        Made if missing.
    transport : InProcess, optional
        Its clients' memories are stored too, and put back by ``latest``.
    keep : int
        This many of the newest files of a run stay, so that a torn one does not cost the run.
        Files of other runs are left alone.
    """

    def __init__(
        self, folder: PathLike, transport: InProcess | None = None, *, keep: int = 2
    ) -> None:
        self.folder = Path(folder)
        self.transport = transport
        self.keep = check_count(keep, "keep")
        self._run_of: dict[str, str] = {}  # by file name: each is read once
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, snapshot: Snapshot) -> None:
        """Write one more, and drop the oldest."""
        memories = self.transport.memories if self.transport is not None else {}
        path = self.folder / f"round-{snapshot.round:06d}.safetensors"
        write_atomically(path, _snapshot_bytes(snapshot, memories))
        self._run_of[path.name] = snapshot.run_id
        own = [old for old in self._newest_first() if self._is_of(old, snapshot.run_id)]
        for old in own[self.keep :]:
            old.unlink()

    def latest(self, run_id: str | None = None) -> Snapshot | None:
        """The newest whole checkpoint (of a run), or None; damaged ones are passed over."""
        for path in self._newest_first():
            try:
                snapshot, memories = read_checkpoint(path)
            except CorruptDataError:
                continue
            if run_id is not None and snapshot.run_id != run_id:
                continue
            if self.transport is not None:
                self.transport.memories = memories
            return snapshot
        return None

    def _is_of(self, path: Path, run_id: str) -> bool:
        """Whether a file is of a run; a damaged one could be of any."""
        if path.name not in self._run_of:
            try:
                data = read_capped(path, _MAX_BYTES)
                header, _ = unpack(data, _KIND, _VERSION, max_bytes=_MAX_BYTES)
                self._run_of[path.name] = str(header["run_id"])
            except (CorruptDataError, KeyError):
                return True
        return self._run_of[path.name] == run_id

    def _newest_first(self) -> Iterator[Path]:
        paths = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        yield from (path for path in sorted(paths, reverse=True) if path.is_file())


# --- a file ---


def read_checkpoint(path: PathLike) -> tuple[Snapshot, dict[str, Memory]]:
    """One file: the run as it was, and the clients' memories if they were stored with it.

    A CorruptDataError if it was cut or altered, or is not what a CheckpointFolder writes.
    """
    data = read_capped(path, _MAX_BYTES)
    header, stored = unpack(data, _KIND, _VERSION, max_bytes=_MAX_BYTES)
    try:
        sets = split_prefixes(stored)
        memories = {
            client_id: memory_from_arrays(entry, sets.get(f"client {k}", {}))
            for k, (client_id, entry) in enumerate(sorted(header["clients"].items()))
        }
        state_type = from_description(header["algorithm"]).state_type
        snapshot = Snapshot(
            run_id=str(header["run_id"]),
            algorithm=str(header["algorithm"]),
            federation=str(header["federation"]),
            round=int(header["round"]),
            state=state_from_arrays(state_type, sets["state"]),
            history=history_from_arrays(sets["history"], header),
        )
        # Catches what was built without complaint: other types, spare fields, rounds left out.
        is_ours = _snapshot_bytes(snapshot, memories) == data
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CorruptDataError(f"{_KIND}: its content does not fit together ({error})") from None
    if not is_ours or len(snapshot.history) != snapshot.round:
        raise CorruptDataError(f"{_KIND}: its content is not what this package writes")
    return snapshot, memories


def _snapshot_bytes(snapshot: Snapshot, memories: dict[str, Memory]) -> bytes:
    stored: Stored = {
        **add_prefix("state", state_to_arrays(snapshot.state)),
        **add_prefix("history", history_to_arrays(snapshot.history)),
    }
    clients = {}
    for k, (client_id, memory) in enumerate(sorted(memories.items())):
        clients[client_id], arrays = memory_to_arrays(memory)
        stored.update(add_prefix(f"client {k}", arrays))
    header = {
        "run_id": snapshot.run_id,
        "algorithm": snapshot.algorithm,
        "federation": snapshot.federation,
        "round": snapshot.round,
        **{name: [getattr(record, name) for record in snapshot.history] for name in _TEXTS},
        "clients": clients,
    }
    return pack(_KIND, _VERSION, header, stored)


# --- states and histories as named arrays, and back, with the same bits ---


def state_to_arrays(state: Any, prefix: str = "") -> Stored:
    """Every array and number of a state, by the path to it."""
    stored: Stored = {}
    if isinstance(state, tuple):
        for k, entry in enumerate(state):
            stored.update(state_to_arrays(entry, f"{prefix}{k}."))
        return stored
    for entry in fields(state):
        value = getattr(state, entry.name)
        path = prefix + _NAMES_IN_FILES.get(entry.name, entry.name)
        if is_dataclass(value):
            stored.update(state_to_arrays(value, f"{path}."))
        else:
            stored[path] = np.asarray(value)
    return stored


def state_from_arrays(kind: type[State], stored: Mapping[str, Any], prefix: str = "") -> State:
    """The state of that class that ``state_to_arrays`` took apart."""
    if get_origin(kind) is tuple:  # as many as there are, numbered from 0
        paths = (f"{prefix}{k}." for k in count())
        there = takewhile(lambda path: any(name.startswith(path) for name in stored), paths)
        entry = get_args(kind)[0]
        return tuple(state_from_arrays(entry, stored, path) for path in there)  # type: ignore[return-value]
    values = {}
    for name, hint in _hints(kind).items():  # type: ignore[arg-type]
        path = prefix + _NAMES_IN_FILES.get(name, name)
        if isinstance(hint, type) and is_dataclass(hint):
            values[name] = state_from_arrays(hint, stored, f"{path}.")
            continue
        if path not in stored:
            raise CorruptDataError(f"state: {path} is missing")
        array = stored[path]
        values[name] = array.item() if hint in (int, float, bool) else array
    return kind(**values)


_hints = cache(get_type_hints)  # read once, so that nothing is evaluated while a file is


def history_to_arrays(history: Sequence[RoundRecord]) -> Stored:
    """One array per column."""
    stored: Stored = {}
    for names, kind in ((_COUNTS, int), (_NUMBERS, float)):
        for name in names:
            stored[name] = np.array([getattr(record, name) for record in history], dtype=kind)
    for name in history[0].residuals if history else ():
        column = [record.residuals[name] for record in history]
        stored[_RESIDUAL + name] = np.array(column, dtype=float)
    return stored


def history_from_arrays(
    stored: Mapping[str, Any], texts: Mapping[str, Sequence[Sequence[str]]]
) -> tuple[RoundRecord, ...]:
    """The records, from their columns and what the header has of them."""
    residuals = [name for name in stored if name.startswith(_RESIDUAL)]
    records = []
    for k in range(len(texts[_TEXTS[0]])):
        values: dict[str, Any] = {name: stored[name][k].item() for name in (*_COUNTS, *_NUMBERS)}
        values |= {name: tuple(str(text) for text in texts[name][k]) for name in _TEXTS}
        values["residuals"] = {
            name.removeprefix(_RESIDUAL): stored[name][k].item() for name in residuals
        }
        records.append(RoundRecord(**values))
    return tuple(records)
