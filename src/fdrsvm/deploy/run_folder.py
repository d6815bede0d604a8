"""The record of a run in its output folder: what was to be solved, and under which name.

A checkpoint holds bounds on one problem. Gone on with under other settings, they would certify a
model of another problem; so the settings stay with the run, and a resumed run must have them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from fdrsvm import __version__
from fdrsvm.core.files import read_capped, write_atomically
from fdrsvm.core.plain_json import decode, encode, plain
from fdrsvm.deploy.settings import RunSettings
from fdrsvm.errors import CorruptDataError, InvalidInputError
from fdrsvm.federated.joining import Task

MODEL, CERTIFICATE, AUDIT, CHECKPOINTS, RECORD, FAILURE, _LOCK = (
    "model.safetensors",
    "certificate.json",
    "audit.jsonl",
    "checkpoints",
    "run.json",
    "failure.txt",
    "lock",
)
_FAILURE_BYTES = 4096
_MAX_BYTES = 1 << 24
# How long to go on and to wait, and where: none of it is part of the problem.
_MAY_CHANGE = ("tol", "max_rounds", "deadline", "join_deadline", "output", "resume", "contract")


@dataclass(frozen=True)
class RunRecord:
    """A run's own name, its settings as run-config has them, and the task of its clients."""

    run_id: str
    settings: Mapping[str, Any]
    task: Task

    @classmethod
    def read(cls, folder: Path) -> RunRecord | None:
        """Of the run in a folder; None if there is none."""
        try:
            content = json.loads(read_capped(folder / RECORD, _MAX_BYTES))
        except FileNotFoundError:
            return None
        except (ValueError, RecursionError) as error:
            raise CorruptDataError(f"{folder / RECORD}: {error}") from None
        try:
            settings = decode(content["settings"], "settings")
            return cls(str(content["run"]), dict(settings), Task.from_json(content["task"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CorruptDataError(f"{folder / RECORD}: does not fit together ({error})") from None

    @classmethod
    def to_resume(cls, folder: Path, settings: RunSettings) -> RunRecord | None:
        """Of the run in a folder that is to go on; None if it has not got as far as a record."""
        record = cls.read(folder)
        if record is not None:
            record.check_settings(settings)
        elif (folder / CHECKPOINTS).exists():
            raise InvalidInputError(
                "resume", "the run must have kept its settings", f"there is no run.json in {folder}"
            )
        return record

    def write(self, folder: Path) -> None:
        """Keep it."""
        content = {
            "run": self.run_id,
            "release": __version__,
            "settings": encode(plain(self.settings, "settings")),
            "task": self.task.to_json(),
        }
        text = json.dumps(content, indent=2, sort_keys=True)
        write_atomically(folder / RECORD, text.encode() + b"\n")

    def check_settings(self, settings: RunSettings) -> None:
        """Refuse, by name, all that may not change when a run is resumed."""
        began_with = RunSettings.from_config(self.settings)
        # Several models share the rounds by tol, so there it is part of the method.
        is_shared = len(self.task.classes) > 2
        for entry in fields(RunSettings):
            if entry.name in _MAY_CHANGE and not (is_shared and entry.name == "tol"):
                continue
            old, new = getattr(began_with, entry.name), getattr(settings, entry.name)
            if old != new:
                raise InvalidInputError(
                    entry.name.replace("_", "-"),
                    f"must be {old!r}, as the run began, for it to be resumed",
                    f"it is {new!r}; leave it as it was, or start a new run",
                )

    def check_task(self, task: Task) -> None:
        """Refuse another problem, such as one with other classes."""
        for entry in fields(Task):
            old, new = getattr(self.task, entry.name), getattr(task, entry.name)
            if old != new:
                raise InvalidInputError(
                    "resume", f"the {entry.name} of the task must be {old!r}", f"it is {new!r}"
                )


@contextlib.contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Keep the folder to one run: another that tries to write into it is refused."""
    import fcntl  # federations are on Linux or macOS

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go when the process ends
        except BlockingIOError:
            raise InvalidInputError(
                "output", "must not be that of a run which goes on", f"{folder} is; name another"
            ) from None
        yield


@contextlib.contextmanager
def room_for_failure(folder: Path) -> Iterator[None]:
    """Reserve room on the disk for the reason of a failure, which may be that the disk is full."""
    path = folder / FAILURE
    try:
        with path.open("wb") as file:
            file.write(b" " * _FAILURE_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:  # one of writing does not name its file
        raise OSError(error.errno, error.strerror, str(path)) from None
    try:
        yield
    finally:
        if not read_failure(folder):
            path.unlink(missing_ok=True)


def write_failure(folder: Path, reason: str) -> None:
    """Write it over the blanks, for which there is room; if that fails too, it is lost."""
    data = " ".join(reason.split()).encode()[:_FAILURE_BYTES]
    with contextlib.suppress(OSError), (folder / FAILURE).open("r+b") as file:
        file.write(data.ljust(_FAILURE_BYTES))


def read_failure(folder: Path) -> str:
    """Why a run failed, if its audit log could not take it; else empty."""
    try:
        data = read_capped(folder / FAILURE, _FAILURE_BYTES)
    except (OSError, CorruptDataError):
        return ""
    return data.decode("utf-8", "replace").strip()


def check_output(output: Path, resume: bool) -> RunRecord | None:
    """A new run needs a folder without one, and a resumed run one with it, whose record this is."""
    record = RunRecord.read(output)
    if resume and record is None:
        raise InvalidInputError("output", "must be the folder of a run", f"{output} is not")
    names = (MODEL, CHECKPOINTS, RECORD)
    if not resume and any((output / name).exists() for name in names):
        raise InvalidInputError(
            "output", "must have no run in it yet", f"{output} has; resume it, or name another"
        )
    return record


def tell_event(event: Mapping[str, Any], tell: Callable[[str], None]) -> None:
    """An event of the audit log in words; many are for the log only."""
    kind = event["event"]
    if kind in ("joined", "rejoined"):
        tell(f"{event['client']} {kind} with {event['n_rows']} rows")
    elif kind in ("refused", "fault"):
        where = f", round {event['round']}" if "round" in event else ""
        tell(f"{event['client']}{where}: {event['reason']}")
    elif kind == "round":
        objective, gap = float(event["objective"]), float(event["gap"])  # infinite as text
        tell(
            f"round {event['round']}: worst-case risk {objective:.6g}, certified gap {gap:.1e}, "
            f"{event['n_answers']} answers, {event['seconds']:.1f} s"
        )
