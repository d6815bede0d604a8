"""A SuperLink that knows its plants: started, watched, and told whose keys to let in."""

from __future__ import annotations

import signal
import subprocess
import time
from types import FrameType

from fdrsvm.errors import FDRSVMError
from fdrsvm.federation.engine import (
    environment,
    is_healthy,
    register_nodes,
    superlink_command,
)
from fdrsvm.federation.layout import ServerFolder

_START_SECONDS = 120.0
_LOOK = 0.2
_END_AFTER = 20.0


def run_server(server: ServerFolder) -> int:
    """Run a SuperLink until it ends or SIGTERM or SIGINT comes; its exit code."""
    command, variables = superlink_command(server), environment(server.flower_home)
    link = subprocess.Popen(command, env=variables)  # noqa: S603 - our own interpreter's folder

    def stop(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
        link.terminate()

    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, stop)
    try:
        _wait_until_healthy(server, link)
        register_nodes(server)
        return link.wait()
    except BaseException:
        link.terminate()
        try:
            link.wait(_END_AFTER)
        except subprocess.TimeoutExpired:
            link.kill()
        if link.returncode == 0:
            return 0  # it was asked to end while it started
        raise


def _wait_until_healthy(server: ServerFolder, link: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + _START_SECONDS
    while not is_healthy(server):
        if link.poll() is not None:
            raise FDRSVMError(f"the server ended with code {link.returncode}; its log says why")
        if time.monotonic() > end:
            raise FDRSVMError(f"the server did not answer within {_START_SECONDS:g} s")
        time.sleep(_LOOK)
