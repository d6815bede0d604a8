"""What a client remembers of a run, in a file of its own: a node may be restarted at any time.

There is one file per run and client, written whole or not at all before the answer is sent. So an
answer that the server has is never newer than the memory, and a round that is asked for again has
the same bits. From reading to writing the client's folder is locked, so that of two processes that
got the same message one waits for the other.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

from fdrsvm.core.codec import pack, unpack
from fdrsvm.core.files import read_capped, write_atomically
from fdrsvm.errors import CorruptDataError
from fdrsvm.federated.client_memory import NO_MEMORY, Memory, memory_from_arrays, memory_to_arrays
from fdrsvm.federated.joining import TellableError

_KIND, _VERSION = "memory", 1
_SUFFIX = ".memory"
_LOCK = "lock"
_KEPT_RUNS = 3
_MAX_BYTES = 1 << 32


class MemoryFile:
    """The memory of one client and run.

    Parameters
    ----------
    folder : Path
        Of the client; made if missing. The files of its last three runs stay.
    run_id : str
        Names the run, and by its hash the file.
    digest : str
        Of the client's data and task: a run goes on only with those it began with.
    """

    def __init__(self, folder: Path, run_id: str, digest: str) -> None:
        self.folder = folder
        self.run_id = run_id
        self.digest = digest
        self.path = folder / (hashlib.sha256(run_id.encode()).hexdigest()[:32] + _SUFFIX)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Wait for whoever answers for this client now: a message may have been sent twice."""
        import fcntl  # plants are on Linux or macOS

        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # it may hold keys
        with (self.folder / _LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)  # let go when the file is closed
            yield

    def read(self) -> Memory:
        """What was remembered, or nothing if this run is new."""
        try:
            data = read_capped(self.path, _MAX_BYTES)
        except FileNotFoundError:
            return NO_MEMORY
        header, arrays = unpack(data, _KIND, _VERSION, max_bytes=_MAX_BYTES)
        try:
            digest, memory = str(header["data"]), memory_from_arrays(header, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(f"{_KIND}: does not fit together ({error})") from None
        if _memory_bytes(memory, digest) != data:
            raise CorruptDataError(f"{_KIND}: its content is not what this package writes")
        if digest != self.digest:
            raise TellableError(
                "data",
                "must not change during a run",
                "file, contract, task or settings changed since it began; put them back, or start "
                "a new run",
            )
        return memory

    def write(self, memory: Memory) -> None:
        """Keep it, and drop those of runs long past."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self.path, _memory_bytes(memory, self.digest))
        files = sorted(self.folder.glob(f"*{_SUFFIX}"), key=_written_at, reverse=True)
        for old in files[_KEPT_RUNS:]:
            old.unlink(missing_ok=True)


def _memory_bytes(memory: Memory, digest: str) -> bytes:
    header, arrays = memory_to_arrays(memory)
    return pack(_KIND, _VERSION, {**header, "data": digest}, arrays)


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
