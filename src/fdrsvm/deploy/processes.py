"""Processes that outlive the command that started them: found again, and ended, by their pids.

A pid can be given to another process later, so the time at which a process started is kept with it;
one that does not match is not ours and is left alone. A zombie has ended: where nobody waits for
orphans, as in some containers, it would stay for ever, so psutil's own waiting is not used.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fdrsvm.core.files import write_atomically
from fdrsvm.errors import FDRSVMError

try:
    import psutil
except ModuleNotFoundError as error:
    raise FDRSVMError(f"{error.name} is missing: pip install 'fdr-svm[flower]'") from None

_PATIENCE, _GRACE = 20.0, 5.0  # seconds for a process to end, and then for what it started
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}  # what ended must be waited for by its parent


@dataclass(frozen=True)
class Started:
    """A process of ours; ``since`` tells it from a later one with the same pid."""

    name: str
    pid: int
    since: str

    @classmethod
    def of(cls, name: str, pid: int) -> Started:
        """A process that runs now, or one that has ended if there is none."""
        try:
            process = psutil.Process(pid)
            since = float(process.create_time())
            if psutil.LINUX:  # there both move when the clock is set, and their difference does not
                since -= float(psutil.boot_time())
            has_ended = process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
        except psutil.Error:
            has_ended = True
        return cls(name, pid, "" if has_ended else f"{since:.2f}")

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.since != "" and Started.of(self.name, self.pid) == self

    @property
    def descendants(self) -> list[Started]:
        """All that it started, as far as it is known to be the parent."""
        try:
            pids = [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        except psutil.Error:
            return []
        family = [Started.of(f"process {pid}", pid) for pid in pids]
        return [one for one in family if one.since]

    def send(self, number: signal.Signals) -> None:
        """Ask it to end, or kill it; nobody else's process gets it."""
        if self.is_alive:
            with contextlib.suppress(psutil.Error):
                psutil.Process(self.pid).send_signal(number)


def start(name: str, command: Sequence[str], log: Path, variables: Mapping[str, str]) -> Started:
    """Start a process of its own, which writes to a log file."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as file:
        process = subprocess.Popen(  # noqa: S603 - commands are ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=dict(variables),
            start_new_session=True,
        )
    _CHILDREN[process.pid] = process
    return Started.of(name, process.pid)


def stop(processes: Sequence[Started]) -> list[str]:
    """End processes and all that they started; the names of those that had to be killed."""
    alive = [one for one in processes if one.is_alive]
    family = [*alive, *(below for one in alive for below in one.descendants)]

    def ends(some: Sequence[Started], seconds: float) -> bool:
        return wait_until(lambda: not any(one.is_alive for one in some), seconds)

    for one in alive:
        one.send(signal.SIGTERM)
    if not ends(alive, _PATIENCE) or not ends(family, _GRACE):
        for one in family:
            one.send(signal.SIGTERM)
    ends(family, _PATIENCE)
    left = [one for one in family if one.is_alive]
    for one in left:
        one.send(signal.SIGKILL)
    ends(left, _PATIENCE)
    for one in processes:
        if one.pid in _CHILDREN and not one.is_alive:
            _CHILDREN.pop(one.pid).wait()  # at once; unwaited-for it would count as running
    return [one.name for one in left]


def wait_until(holds: Callable[[], bool], seconds: float, look: float = 0.2) -> bool:
    """Look again and again, until something holds or the time is up; whether it holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(look)
    return True


def write_list(path: Path, processes: Sequence[Started]) -> None:
    """Keep them for a later command."""
    text = json.dumps([asdict(one) for one in processes], indent=2)
    write_atomically(path, text.encode() + b"\n")


def read_list(path: Path) -> list[Started]:
    """Those kept, or none."""
    try:
        return [Started(**entry) for entry in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []


def family_memory(pid: int) -> int:
    """Bytes of memory of a process and all that it started, pages that they share counted once.

    0 where the system does not say (it does on Linux).
    """
    total = 0
    for one in (pid, *(child.pid for child in Started.of("", pid).descendants)):
        with contextlib.suppress(psutil.Error):
            total += int(getattr(psutil.Process(one).memory_full_info(), "pss", 0))
    return total
