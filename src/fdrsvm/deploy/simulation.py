"""All plants simulated by Flower on this machine: one command from a folder of CSV files."""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fdrsvm.core.files import write_atomically
from fdrsvm.data.tables import data_files
from fdrsvm.deploy.app_folder import write_app_folder
from fdrsvm.deploy.engine import environment, simulation_command, start_run
from fdrsvm.deploy.interruption import uninterrupted
from fdrsvm.deploy.layout import CONNECTION, ServerFolder
from fdrsvm.deploy.processes import Started, start, stop
from fdrsvm.deploy.run_folder import check_output, claimed, room_for_failure
from fdrsvm.deploy.runs import follow
from fdrsvm.deploy.settings import RunSettings, contract_config
from fdrsvm.errors import FDRSVMError, InvalidInputError

_LOCAL = "127.0.0.1"
_START_SECONDS = 120.0
_LOOK = 0.2


def simulate(
    data: Path,
    output: Path,
    config: Mapping[str, Any],
    *,
    cpus_per_client: int = 1,
    timeout: float | None = None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Train on a folder with one CSV a client in Flower's simulation; the audit log's last event.

    Arguments and errors are as in :func:`fdrsvm.deploy.runs.run`.
    """
    output = output.expanduser().resolve()
    check_output(output, resume=False)
    files = data_files(data.expanduser().resolve())
    if not files:
        raise InvalidInputError(
            "data", "must be a folder with one CSV per client", f"{data} has none"
        )
    contract = files[0].parent / "contract.json"
    agreed = contract_config(contract) if contract.exists() else {}
    settings = {**agreed, **config, "data": str(files[0].parent), "output": str(output)}
    RunSettings.from_config(settings).task()  # errors before anything is started
    with claimed(output), room_for_failure(output):
        pass  # a disk that is full now is told before anything is started
    server = _server(output / "simulation")
    log = server.path / "log.txt"
    with _simulation(server, log) as process:
        _wait_until_healthy(server, process, log)
        form = {"num-supernodes": len(files), "client-resources-num-cpus": cpus_per_client}
        number = start_run(server, settings, form)
        tell(f"run {number} started with {len(files)} simulated clients; log in {log}")
        end = None if timeout is None else time.monotonic() + timeout
        return follow(server, number, output, 0, end, tell)


@contextlib.contextmanager
def _simulation(server: ServerFolder, log: Path) -> Iterator[Started]:
    """Flower's processes and Ray's, and a folder for what they leave; all of it ends with this."""
    variables = {**environment(server.flower_home), "RAY_USAGE_STATS_ENABLED": "0"}
    started: list[Started] = []
    with tempfile.TemporaryDirectory(prefix="fdrsvm-", ignore_cleanup_errors=True) as scratch:
        variables["TMPDIR"] = variables["RAY_TMPDIR"] = scratch
        try:
            with uninterrupted():
                started.append(start("simulation", simulation_command(server), log, variables))
            yield started[0]
        finally:
            with uninterrupted():
                stop(started)


def _server(path: Path) -> ServerFolder:
    port = _free_port()
    server = ServerFolder(path, _LOCAL, port, f"{_LOCAL}:{port}")
    server.flower_home.mkdir(parents=True, exist_ok=True)
    write_app_folder(server.app, RunSettings().to_config())
    text = f'[superlink.{CONNECTION}]\naddress = "{server.address}"\ninsecure = true\n'
    write_atomically(server.flower_home / "config.toml", text.encode())
    return server


def _free_port() -> int:
    with socket.socket() as link:
        link.bind((_LOCAL, 0))
        port: int = link.getsockname()[1]
    return port


def _wait_until_healthy(server: ServerFolder, process: Started, log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while not _is_healthy(server):
        if not process.is_alive or time.monotonic() > end:
            raise FDRSVMError(f"the simulation did not start; see {log}")
        time.sleep(_LOOK)


def _is_healthy(server: ServerFolder) -> bool:
    try:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{server.address}/health", timeout=2.0) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
