"""Runs seen from the server's machine: start one, follow it by its audit log, resume it.

The plants are real, or all of them simulated by Flower on this machine: one command from a folder
of CSV files.
"""

from __future__ import annotations

import contextlib
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fdrsvm.data.tables import data_files
from fdrsvm.deploy.engine import (
    environment,
    run_status,
    start_run,
    stop_run,
    superlink_command,
    wait_for_server,
)
from fdrsvm.deploy.layout import ServerFolder, app_config, write_app
from fdrsvm.deploy.processes import Started, start, stop, uninterrupted
from fdrsvm.deploy.run_folder import (
    AUDIT,
    check_output,
    claimed,
    read_failure,
    room_for_failure,
    tell_event,
)
from fdrsvm.deploy.settings import RunSettings, contract_config
from fdrsvm.errors import FDRSVMError, InvalidInputError
from fdrsvm.federated.audit import read_audit

_LOCAL = "127.0.0.1"
_LOOK = 0.5
_MAX_UNSURE = 15  # looks at a run that neither runs nor has ended
_ASK_FLOWER = 20.0  # its command takes seconds, so it is asked only where the log is silent


def run(
    server: ServerFolder,
    output: Path,
    config: Mapping[str, Any],
    *,
    resume: bool = False,
    timeout: float | None = None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Run to the end and return the audit log's last event.

    Parameters
    ----------
    server : ServerFolder
    output : Path
        Where the results go. A new run needs a folder without one.
    config : mapping
        Settings in place of the app's, see RunSettings.
    resume : bool
        Go on from the newest checkpoint in ``output``, with the settings that the run began with;
        ``config`` may change tol, max-rounds and the deadlines.
    timeout : float, optional
        Seconds after which the run is stopped. Without it, rounds and joining have their deadlines
        all the same.
    tell : callable
        Gets a line now and then.

    Raises
    ------
    FDRSVMError
        If the run failed, with the reason that the audit log has.
    KeyboardInterrupt
        If that interrupts it here; the run is stopped first.
    """
    output = output.expanduser().resolve()
    record = check_output(output, resume)
    settings = {**config, "output": str(output), "resume": resume}
    if record is not None:
        settings = {**record.settings, **settings}
        record.check_settings(RunSettings.from_config(settings))
    # Flower adds what is not set here from the app's own file.
    _check_start({**app_config(server.app), **settings}, output)
    seen = sum(1 for _ in read_audit(output / AUDIT))
    number = ""
    try:
        with uninterrupted():
            number = start_run(server, settings)
        tell(f"run {number} started; audit log in {output / AUDIT}")
        return follow(server, number, output, seen, timeout, tell)
    except KeyboardInterrupt:
        if number:
            with uninterrupted():
                stop_run(server, number)
            tell("the run was stopped; `fdrsvm federation resume` goes on")
        raise


def simulate(
    data: Path,
    output: Path,
    config: Mapping[str, Any],
    *,
    cpus_per_client: int = 1,
    timeout: float | None = None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Train on a folder with one CSV per client in Flower's simulation.

    Other arguments, result and errors are as in :func:`run`.
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
    _check_start(settings, output)
    with simulated_server(output / "simulation") as (server, log):
        form = {"num-supernodes": len(files), "client-resources-num-cpus": cpus_per_client}
        number = start_run(server, settings, form)
        tell(f"run {number} started with {len(files)} simulated clients; log in {log}")
        return follow(server, number, output, 0, timeout, tell)


def _check_start(settings: Mapping[str, Any], output: Path) -> None:
    """Raise what is wrong with settings or disk before anything is started."""
    RunSettings.from_config(settings).task()
    with claimed(output), room_for_failure(output):
        pass


@contextlib.contextmanager
def simulated_server(path: Path) -> Iterator[tuple[ServerFolder, Path]]:
    """Flower's processes and Ray's, and where they write; all of them end with this."""
    with socket.socket() as link:  # a port that nobody uses
        link.bind((_LOCAL, 0))
        port: int = link.getsockname()[1]
    server = ServerFolder(path, _LOCAL, port, f"{_LOCAL}:{port}", is_simulated=True)
    server.write_connection(address=server.address, insecure=True)
    write_app(server.app, RunSettings().to_config())
    log = path / "log.txt"
    variables = {**environment(server.flower_home), "RAY_USAGE_STATS_ENABLED": "0"}
    started: list[Started] = []
    with tempfile.TemporaryDirectory(prefix="fdrsvm-", ignore_cleanup_errors=True) as scratch:
        variables["TMPDIR"] = variables["RAY_TMPDIR"] = scratch
        try:
            with uninterrupted():
                started.append(start("simulation", superlink_command(server), log, variables))
            wait_for_server(server, started[0], log)
            yield server, log
        finally:
            with uninterrupted():
                stop(started)


def follow(
    server: ServerFolder,
    number: str,
    output: Path,
    seen: int,
    timeout: float | None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Tell what the audit log says beyond its first ``seen`` events, until the run has ended."""
    began = heard = time.monotonic()
    unsure = 0
    while True:
        news, outcome = _news(output, seen, tell)
        if outcome is not None:
            return outcome
        now = time.monotonic()
        seen, heard = seen + news, now if news else heard
        if now - heard > _ASK_FLOWER:
            status, heard = run_status(server, number), time.monotonic()
            if status.startswith("finished"):
                # It may have ended between the last look at the log and Flower's answer.
                _, outcome = _news(output, seen, tell)
                if outcome is not None:
                    return outcome
                raise FDRSVMError(
                    f"the run's process ended without a result ({status}); `fdrsvm federation "
                    "resume` goes on from its last checkpoint"
                )
            unsure = 0 if status.startswith("running") else unsure + 1
            if unsure >= _MAX_UNSURE:
                stop_run(server, number)
                raise FDRSVMError(
                    f"the run does not start: its status has been {status!r} for {unsure} looks; "
                    "see the server's log"
                )
        if timeout is not None and now > began + timeout:
            stop_run(server, number)
            raise FDRSVMError("the run took too long and was stopped; it can be resumed")
        time.sleep(_LOOK)


def _news(
    output: Path, seen: int, tell: Callable[[str], None]
) -> tuple[int, dict[str, Any] | None]:
    """How many events are new, and the last one if the run has ended; a failure is raised."""
    if failure := read_failure(output):
        raise FDRSVMError(failure)
    events = list(read_audit(output / AUDIT))[seen:]
    for event in events:
        tell_event(event, tell)
        if event["event"] == "failed":
            raise FDRSVMError(str(event.get("reason")))
        if event["event"] == "end":
            return len(events), event
    return len(events), None
