"""Processes that outlive the command that started them: found again, and ended, by their pids.

Signals that end a command become an exception, so that nothing it started stays behind.

A pid can be given to another process later, so the time at which a process started is kept with it;
one that does not match is not ours and is left alone. A zombie has ended: where nobody waits for
orphans, as in some containers, it would stay forever, so psutil's own waiting is not used.
"""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

from fdrsvm.core.files import write_atomically
from fdrsvm.errors import FDRSVMError

try:
    import psutil
except ModuleNotFoundError as error:
    raise FDRSVMError(f"{error.name} is missing: pip install 'fdr-svm[flower]'") from None

_PATIENCE, _GRACE = 20.0, 5.0  # seconds for a process to end, and then for what it started
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
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


class Interrupted(KeyboardInterrupt):
    """One of the signals that end a command has come; ``number`` is the signal's."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


class _Watch:
    """Which signal has come first, and how many blocks must end before it is raised."""

    def __init__(self) -> None:
        self.seen = 0
        self.is_raised = False
        self.n_blocks = 0

    def note(self, number: int = 0, frame: FrameType | None = None) -> None:  # noqa: ARG002
        """A signal has come, or a block has ended."""
        self.seen = self.seen or number
        if self.seen and not self.n_blocks and not self.is_raised:
            self.is_raised = True
            raise Interrupted(self.seen)


_watch = _Watch()


@contextlib.contextmanager
def signals_raised() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise Interrupted, once: what is ended for it ends in peace.

    Those that are ignored already, as under nohup, stay so.
    """
    global _watch
    if threading.current_thread() is not threading.main_thread():  # only that one gets signals
        yield
        return
    _watch = _Watch()
    before = {number: signal.getsignal(number) for number in _ENDING}
    watched = [number for number in _ENDING if before[number] != signal.SIG_IGN]
    for number in watched:
        signal.signal(number, _watch.note)
    try:
        yield
    finally:
        for number in watched:
            signal.signal(number, before[number])
        _watch = _Watch()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """A signal waits for the end of this block: what starts a process must live to know it."""
    watch, is_main = _watch, threading.current_thread() is threading.main_thread()
    watch.n_blocks += is_main
    try:
        yield
    finally:
        watch.n_blocks -= is_main
    if is_main:
        watch.note()
