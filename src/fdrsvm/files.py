"""Files that are whole or not there, and never larger than expected."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TypeAlias

from fdrsvm.errors import CorruptDataError

PathLike: TypeAlias = str | os.PathLike[str]


def write_atomically(path: PathLike, data: bytes) -> None:
    """Put all of ``data`` in a file, or leave the file as it was, even if the power fails."""
    # A link is written through, as open() would.
    target = Path(os.path.realpath(path))
    # Not tempfile: it would make the file unreadable for the other users of a gateway.
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    file = temporary.open("xb")
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name last as well; Windows has no way to ask for that, nor have some disks."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_capped(path: PathLike, max_bytes: int) -> bytes:
    """All of a file, unless it is larger than it may be."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise CorruptDataError(f"{size} bytes, at most {max_bytes} are allowed")
        return file.read(size)  # a device that never ends has size 0
