"""Runs seen from the server's machine: start one, follow it by its audit log, resume it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fdrsvm.deploy.app_folder import app_config
from fdrsvm.deploy.engine import run_status, start_run, stop_run
from fdrsvm.deploy.interruption import uninterrupted
from fdrsvm.deploy.layout import ServerFolder
from fdrsvm.deploy.run_folder import (
    AUDIT,
    check_output,
    claimed,
    read_failure,
    room_for_failure,
)
from fdrsvm.deploy.settings import RunSettings
from fdrsvm.errors import FDRSVMError
from fdrsvm.federated.audit import read_audit

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
    # Errors before anything is started; Flower adds what is not set here from the app's own file.
    RunSettings.from_config({**app_config(server.app), **settings}).task()
    with claimed(output), room_for_failure(output):
        pass  # a disk that is full now is told before anything is started
    seen = sum(1 for _ in read_audit(output / AUDIT))
    number = ""
    try:
        with uninterrupted():
            number = start_run(server, settings)
        tell(f"run {number} started; audit log in {output / AUDIT}")
        end = None if timeout is None else time.monotonic() + timeout
        return follow(server, number, output, seen, end, tell)
    except KeyboardInterrupt:
        if number:
            with uninterrupted():
                stop_run(server, number)
            tell("the run was stopped; `fdrsvm federation resume` goes on")
        raise


def follow(
    server: ServerFolder,
    number: str,
    output: Path,
    seen: int,
    end: float | None,
    tell: Callable[[str], None],
) -> dict[str, Any]:
    """Tell what the audit log says beyond its first ``seen`` events, until the run has ended."""
    heard, unsure = time.monotonic(), 0
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
                raise _ended(status)
            unsure = 0 if status.startswith("running") else unsure + 1
            if unsure >= _MAX_UNSURE:
                stop_run(server, number)
                raise FDRSVMError(
                    f"the run does not start: its status has been {status!r} for {unsure} looks; "
                    "see the server's log"
                )
        if end is not None and now > end:
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
        _tell_event(event, tell)
        if event["event"] == "failed":
            raise FDRSVMError(str(event.get("reason")))
        if event["event"] == "end":
            return len(events), event
    return len(events), None


def _ended(status: str) -> FDRSVMError:
    return FDRSVMError(
        f"the run's process ended without a result ({status}); `fdrsvm federation resume` goes on "
        "from its last checkpoint"
    )


def _tell_event(event: Mapping[str, Any], tell: Callable[[str], None]) -> None:
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
