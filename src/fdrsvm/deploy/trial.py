"""A federation of real processes on this machine, to try things out: up, status, down."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fdrsvm.deploy.engine import environment, is_healthy, node_status
from fdrsvm.deploy.layout import ClientFolder, ServerFolder
from fdrsvm.deploy.processes import (
    Started,
    family_memory,
    read_list,
    start,
    stop,
    uninterrupted,
    wait_until,
    write_list,
)
from fdrsvm.errors import FDRSVMError, InvalidInputError

_LIST = "processes.json"
_SERVER = "server"
_LOOK = 0.5


class ProcessStatus(NamedTuple):
    """One process of a federation; ``node`` is what the server says of it."""

    name: str
    pid: int
    is_alive: bool
    megabytes: float
    node: str


def up(folder: Path, *, timeout: float = 180.0, tell: Callable[[str], None]) -> None:
    """Start the server and every plant, and wait until all are connected.

    If that takes longer than ``timeout`` seconds, or one of them ends, all are ended again and the
    error names the log to read.
    """
    if any(one.is_alive for one in read_list(folder / _LIST)):
        raise InvalidInputError("folder", "its federation must be down", "some of it is running")
    end = time.monotonic() + timeout

    def wait(what: str, holds: Callable[[], bool]) -> None:
        def holds_or_raises() -> bool:
            for one in read_list(folder / _LIST):
                if not one.is_alive:
                    log = log_of(folder, one.name)
                    raise FDRSVMError(f"{one.name} ended while waiting for {what}; see {log}")
            return holds()

        if not wait_until(holds_or_raises, end - time.monotonic(), _LOOK):
            raise FDRSVMError(f"timed out waiting for {what}; see {folder / 'logs'}")

    def states() -> set[str]:
        nodes = node_status(server_folder(folder))
        return {nodes.get(name, "unknown") for name in names}

    write_list(folder / _LIST, [])
    try:
        start_one(folder, _SERVER)
        tell("server: starting")
        names = plant_names(folder)
        wait("the server to answer", lambda: is_healthy(server_folder(folder)))
        wait("the server to know all keys", lambda: "unknown" not in states())
        for name in names:
            start_one(folder, name)
        tell(f"plants: starting {', '.join(names)}")
        wait("all plants to be connected", lambda: states() == {"online"})
    except BaseException:
        with uninterrupted():
            down(folder)
        raise
    tell(f"up: {len(names)} plants connected to {server_folder(folder).address}")


def start_one(folder: Path, name: str) -> Started:
    """Start the server (``"server"``) or one plant, and keep its pid for ``down``."""
    there: ServerFolder | ClientFolder
    if name == _SERVER:
        verb, there = "server", server_folder(folder)
    else:
        verb, there = "client", ClientFolder.read(folder / "plants" / name)
    command = [sys.executable, "-m", "fdrsvm", verb, str(there.path)]
    with uninterrupted():
        started = start(name, command, log_of(folder, name), environment(there.flower_home))
        others = [one for one in read_list(folder / _LIST) if one.name != name]
        write_list(folder / _LIST, [*others, started])
    return started


def status(folder: Path) -> list[ProcessStatus]:
    """Every process, and what the server says of the nodes; quick where the server is down."""
    server = server_folder(folder)
    nodes = node_status(server) if is_healthy(server) else {}
    return [
        ProcessStatus(
            one.name,
            one.pid,
            one.is_alive,
            family_memory(one.pid) / 1e6 if one.is_alive else 0.0,
            nodes.get(one.name, "answers" if one.name == _SERVER and nodes else ""),
        )
        for one in read_list(folder / _LIST)
    ]


def down(folder: Path) -> list[str]:
    """End what ``up`` started, plants first, and nothing else; those that had to be killed."""
    processes = read_list(folder / _LIST)
    plants = [one for one in processes if one.name != _SERVER]
    killed = stop(plants) + stop([one for one in processes if one.name == _SERVER])
    write_list(folder / _LIST, [])
    return killed


def server_folder(folder: Path) -> ServerFolder:
    """Of a federation that was made in one place."""
    return ServerFolder.read(folder / "server")


def plant_names(folder: Path) -> list[str]:
    """The plants whose folders are here."""
    return sorted(path.parent.name for path in (folder / "plants").glob("*/client.toml"))


def log_of(folder: Path, name: str) -> Path:
    """Where a process writes."""
    return folder / "logs" / f"{name}.log"
