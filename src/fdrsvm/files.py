"""Files that are whole or not there, and never larger than expected.

A write goes to a temporary file beside the target and is then renamed. A process that is killed in
between leaves the temporary file; the next write of the same target takes it away.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from pathlib import Path
from typing import TypeAlias

from fdrsvm.errors import CorruptDataError

PathLike: TypeAlias = str | os.PathLike[str]
_SUFFIX = ".tmp"


def write_atomically(path: PathLike, data: bytes) -> None:
    """Put all of ``data`` in a file, or leave the file as it was, even if the power fails."""
    # A link is written through, as open() would.
    target = Path(os.path.realpath(path))
    _drop_leftovers(target)
    try:
        while not _is_put_in_place(target, data):
            pass  # another process began to write the same file and took ours for a leftover
    except OSError as error:
        if error.errno is None:
            raise
        # By the name that was asked for: nobody knows the temporary one.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    _sync_folder(target.parent)


def _is_put_in_place(target: Path, data: bytes) -> bool:
    """Write and rename; False if the temporary file was taken away before it had its name."""
    # Not tempfile: it would make the file unreadable for the other users of a gateway.
    temporary = target.with_name(f"{_temporary_prefix(target)}{secrets.token_hex(8)}{_SUFFIX}")
    file = temporary.open("xb")
    try:
        with file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except FileNotFoundError:
        return False
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return True


def _drop_leftovers(target: Path) -> None:
    """Temporary files of writes of this target that were cut off."""
    with contextlib.suppress(OSError):
        prefix = _temporary_prefix(target)
        for name in os.listdir(target.parent):
            if name.startswith(prefix) and name.endswith(_SUFFIX):
                target.with_name(name).unlink(missing_ok=True)


def _temporary_prefix(target: Path) -> str:
    """By its hash, since the target's own name may be as long as a name can be."""
    return f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def _sync_folder(folder: Path) -> None:
    """Make the new name last as well; Windows has no way to ask for that, nor have some disks."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_capped(path: PathLike, max_bytes: int) -> bytes:
    """All of a file, unless it is larger than it may be, or a device or pipe that may never end."""
    with open(path, "rb", opener=_open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise CorruptDataError("not an ordinary file")
        if status.st_size > max_bytes:
            raise CorruptDataError(f"{status.st_size} bytes, at most {max_bytes} are allowed")
        return file.read(status.st_size)


def _open_at_once(path: str, flags: int) -> int:
    """A named pipe would otherwise be waited for until somebody writes into it."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
