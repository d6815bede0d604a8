"""Files that are whole or not there, and never larger than expected.

A write goes to a temporary file beside the target and is then renamed. A process that is killed in
between leaves the temporary file; the next write of the same target takes it away. Files that
belong together are all written before the first is renamed, so that a full disk leaves none of
them. What is not a file, such as a device or a pipe, is written to and never renamed over.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from fdrsvm.errors import CorruptDataError

PathLike: TypeAlias = str | os.PathLike[str]
_SUFFIX = ".tmp"


def write_atomically(path: PathLike, data: bytes) -> None:
    """Put all of ``data`` in a file, or leave the file as it was, even if the power fails."""
    write_together((path, data))


def write_together(*files: tuple[PathLike, bytes]) -> None:
    """Put data in several files, each with its path, or leave all of them as they were.

    A device or a pipe is written to when the files are in place, and keeps what it got. Only a
    power failure in the instant between two renames leaves some files new and some old; each is
    whole even then.
    """
    writes = [_Write(path, data) for path, data in files]
    try:
        for one in writes:
            one.prepare()
        for one in writes if len(writes) > 1 else ():
            one.keep_old()
        for one in sorted(writes, key=lambda one: one.is_stream):  # what cannot be undone is last
            one.put_in_place()
    except BaseException:
        for one in writes:
            one.undo()
        raise
    finally:
        for one in writes:
            one.tidy_up()
    for folder in {one.target.parent for one in writes}:
        # So that the new names last too; Windows has no way to ask for that, nor have some disks.
        with contextlib.suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


class _Write:
    """One file on its way; temporary files stand beside it."""

    def __init__(self, path: PathLike, data: bytes) -> None:
        self.path = path
        self.data = data
        self.target = Path(os.path.realpath(path))  # a link is written through, as open() would
        self.new: Path | None = None
        self.old: Path | None = None
        self.is_in_place = False
        # A rename would put a file in the place of a device, a pipe or a socket.
        self.is_stream = os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path))

    def prepare(self) -> None:
        if self.is_stream:
            return
        with contextlib.suppress(OSError):  # leftovers of writes of this target that were cut off
            prefix = _temporary_prefix(self.target)
            for name in os.listdir(self.target.parent):
                if name.startswith(prefix) and name.endswith(_SUFFIX):
                    self.target.with_name(name).unlink(missing_ok=True)
        with _by_its_name(self.path):
            self.new = _write_beside(self.target, self.data)

    def keep_old(self) -> None:
        """What stands there now, to be put back if another file of the write fails."""
        if not self.is_stream and self.target.exists():
            with _by_its_name(self.path):
                second = _temporary_name(self.target)
                try:
                    os.link(self.target, second)
                    self.old = second
                except OSError:  # this disk knows no second names
                    self.old = _write_beside(self.target, self.target.read_bytes())

    def put_in_place(self) -> None:
        with _by_its_name(self.path):
            if self.is_stream:
                with open(self.path, "wb", buffering=0) as stream:
                    _write_all(stream.fileno(), self.data)
                return
            while not self.is_in_place:
                assert self.new is not None
                try:
                    os.replace(self.new, self.target)
                    self.is_in_place = True
                except FileNotFoundError:
                    # Another process began to write the same file and took ours for a leftover.
                    self.new = _write_beside(self.target, self.data)

    def undo(self) -> None:
        if self.is_in_place:
            with contextlib.suppress(OSError):
                if self.old is None:
                    self.target.unlink()
                else:
                    os.replace(self.old, self.target)

    def tidy_up(self) -> None:
        for path in (self.new, self.old):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)


@contextlib.contextmanager
def _by_its_name(path: PathLike) -> Iterator[None]:
    """Errors name the file that was asked for: nobody knows the temporary one."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _write_beside(target: Path, data: bytes) -> Path:
    """A temporary file that is on disk."""
    temporary = _temporary_name(target)
    file = temporary.open("xb", buffering=0)
    try:
        with file:
            _write_all(file.fileno(), data)
            os.fsync(file.fileno())
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    return temporary


def _write_all(descriptor: int, data: bytes) -> None:
    """The system may take a part, and refuse the rest when it is asked again."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def append_whole(path: PathLike, data: bytes, *, on_disk: bool = True) -> None:
    """Add data to the end of a file, or leave the file as it was."""
    with _by_its_name(path), open(path, "ab", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        try:
            _write_all(file.fileno(), data)
            if on_disk:
                os.fsync(file.fileno())
        except BaseException:
            with contextlib.suppress(OSError):
                file.truncate(end)
            raise


def _temporary_name(target: Path) -> Path:
    # Not tempfile: it would make the file unreadable for the other users of a gateway.
    return target.with_name(f"{_temporary_prefix(target)}{secrets.token_hex(8)}{_SUFFIX}")


def _temporary_prefix(target: Path) -> str:
    """By its hash, since the target's own name may be as long as a name can be."""
    return f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"


def read_capped(path: PathLike, max_bytes: int) -> bytes:
    """All of a file, unless it is larger than it may be, or a device or pipe that may never end."""

    def open_at_once(name: str, flags: int) -> int:
        # A named pipe would otherwise be waited for until somebody writes into it.
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with open(path, "rb", opener=open_at_once) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise CorruptDataError("not an ordinary file")
        if status.st_size > max_bytes:
            raise CorruptDataError(f"{status.st_size} bytes, at most {max_bytes} are allowed")
        return file.read(status.st_size)
