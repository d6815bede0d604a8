"""Checkpoints: all of a run in one safe file after each round, to go on from with equal bits.

The server's state is enough where clients keep their own memory. In one process the clients'
memories are part of it: they hold what clients would have on their own disks, and never leave this
machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from fdrsvm.core.arrays import check_count
from fdrsvm.core.codec import Packed, pack, unpack
from fdrsvm.core.files import PathLike, read_capped, write_atomically
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.client_memory import Memory, memory_from_arrays, memory_to_arrays
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import add_prefix, split_prefixes
from fdrsvm.federated.methods import from_description
from fdrsvm.federated.rounds import Snapshot
from fdrsvm.federated.stored_state import (
    Stored,
    history_from_arrays,
    history_texts,
    history_to_arrays,
    state_from_arrays,
    state_to_arrays,
)

_KIND, _VERSION = "checkpoint", 2
_MAX_BYTES = 1 << 32
_NAME = re.compile(r"round-(\d{6})\.safetensors")


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
        So many of the newest files of a run stay, so that a torn one does not cost the run. Files
        of other runs are left alone.
    """

    def __init__(
        self, folder: PathLike, transport: InProcess | None = None, *, keep: int = 2
    ) -> None:
        self.folder = Path(folder)
        self.transport = transport
        self.keep = check_count(keep, "keep")
        self._run_of: dict[str, str] = {}  # by file name
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
                header, _ = unpack(
                    read_capped(path, _MAX_BYTES), _KIND, _VERSION, max_bytes=_MAX_BYTES
                )
                self._run_of[path.name] = str(header["run_id"])
            except (CorruptDataError, KeyError):
                return True
        return self._run_of[path.name] == run_id

    def _newest_first(self) -> Iterator[Path]:
        found = [path for path in self.folder.iterdir() if _NAME.fullmatch(path.name)]
        yield from (path for path in sorted(found, reverse=True) if path.is_file())


def read_checkpoint(path: PathLike) -> tuple[Snapshot, dict[str, Memory]]:
    """One file: the run as it was, and the clients' memories if they were stored with it.

    Raises
    ------
    CorruptDataError
        If the file was cut or altered, or is not what a CheckpointFolder writes.
    """
    return _read_snapshot(read_capped(path, _MAX_BYTES))


def _snapshot_bytes(snapshot: Snapshot, memories: dict[str, Memory]) -> bytes:
    stored: Stored = {
        **add_prefix("state", state_to_arrays(snapshot.state)),
        **add_prefix("history", history_to_arrays(snapshot.history)),
    }
    headers = {}
    for k, (client_id, memory) in enumerate(sorted(memories.items())):
        headers[client_id], arrays = memory_to_arrays(memory)
        stored.update(add_prefix(f"client {k}", arrays))
    header = {
        "run_id": snapshot.run_id,
        "algorithm": snapshot.algorithm,
        "federation": snapshot.federation,
        "round": snapshot.round,
        **history_texts(snapshot.history),
        "clients": headers,
    }
    return pack(_KIND, _VERSION, header, stored)


def _read_snapshot(data: bytes) -> tuple[Snapshot, dict[str, Memory]]:
    packed = unpack(data, _KIND, _VERSION, max_bytes=_MAX_BYTES)
    try:
        snapshot, memories = _build_snapshot(packed)
        # Catches what was built without complaint: other types, spare fields, rounds left out.
        is_ours = _snapshot_bytes(snapshot, memories) == data
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CorruptDataError(f"{_KIND}: its content does not fit together ({error})") from None
    if not is_ours or len(snapshot.history) != snapshot.round:
        raise CorruptDataError(f"{_KIND}: its content is not what this package writes")
    return snapshot, memories


def _build_snapshot(packed: Packed) -> tuple[Snapshot, dict[str, Memory]]:
    header, stored = packed
    algorithm = from_description(header["algorithm"])
    folders = split_prefixes(stored)
    history = history_from_arrays(folders["history"], header)
    memories = {
        client_id: memory_from_arrays(entry, folders.get(f"client {k}", {}))
        for k, (client_id, entry) in enumerate(sorted(header["clients"].items()))
    }
    snapshot = Snapshot(
        run_id=str(header["run_id"]),
        algorithm=str(header["algorithm"]),
        federation=str(header["federation"]),
        round=int(header["round"]),
        state=state_from_arrays(algorithm.state_type, folders["state"]),
        history=history,
    )
    return snapshot, memories
