"""Processes that outlive the command that started them: found again, and ended, by their pids.

A pid can be given to another process later, so the time at which a process started is kept with it;
one that does not match is not ours and is left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fdrsvm.core.files import write_atomically

_PATIENCE, _GRACE = 20.0, 5.0  # seconds for a process to end, and then for what it started
_LOOK = 0.2
_PROC = Path("/proc/self/stat")
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}  # what ended must be waited for by its parent


@dataclass(frozen=True)
class Started:
    """A process of ours."""

    name: str
    pid: int
    since: str

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return _started_at(self.pid) == self.since


def this_process(name: str) -> Started:
    """The one that asks; it stays the same when it becomes another program."""
    return Started(name, os.getpid(), _started_at(os.getpid()))


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
    return Started(name, process.pid, _started_at(process.pid))


def stop(processes: Sequence[Started]) -> list[str]:
    """End processes and all that they started; the names of those that had to be killed."""
    family = [*processes, *_descendants([one.pid for one in processes if one.is_alive])]
    for one in processes:
        _signal(one, signal.SIGTERM)
    if not _all_end(processes, _PATIENCE) or not _all_end(family, _GRACE):
        for one in family:
            _signal(one, signal.SIGTERM)
    if _all_end(family, _PATIENCE):
        return []
    left = [one for one in family if one.is_alive]
    for one in left:
        _signal(one, signal.SIGKILL)
    _all_end(left, _PATIENCE)
    return [one.name for one in left]


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


def family_memory(one: Started) -> int:
    """Bytes of memory of a process and all that it started, pages that they share counted once.

    0 where the system does not say (it does on Linux).
    """
    total = 0
    for member in [one, *_descendants([one.pid])]:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{member.pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
    return total


def _signal(one: Started, number: signal.Signals) -> None:
    if one.is_alive:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.pid, number)


def _all_end(processes: Sequence[Started], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while any(one.is_alive for one in processes):
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK)
    for one in processes:
        child = _CHILDREN.pop(one.pid, None)
        if child is not None:
            child.wait()  # at once, since it has ended; unwaited-for it would count as running
    return True


def _descendants(pids: Sequence[int]) -> list[Started]:
    """All that these processes started, as far as they are known to be their parents."""
    children: dict[int, list[int]] = {}
    for line in _ps("-e", "-o", "pid=,ppid=").splitlines():
        pid, parent = map(int, line.split())
        children.setdefault(parent, []).append(pid)
    found, open_ = [], list(pids)
    while open_:
        below = children.get(open_.pop(), [])
        open_ += below
        found += [Started(f"process {pid}", pid, _started_at(pid)) for pid in below]
    return [one for one in found if one.since]


def _started_at(pid: int) -> str:
    """When a process started, in the system's own words; "" if it has ended."""
    if _PROC.exists():
        try:
            # The name, in brackets, may hold anything; what follows it does not.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if fields[0] in "ZX" else fields[19]
    fields = _ps("-p", str(pid), "-o", "stat=,lstart=").split(maxsplit=1)
    return "" if not fields or fields[0].startswith("Z") else fields[1].strip()


def _ps(*arguments: str) -> str:
    done = subprocess.run(  # noqa: S603
        ["/bin/ps", *arguments], capture_output=True, text=True, check=False, timeout=30
    )
    return done.stdout
