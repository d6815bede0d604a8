"""A SuperLink that knows its plants: this process becomes it, another one registers their keys."""

from __future__ import annotations

import os
import sys
import time

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


def run_server(server: ServerFolder) -> None:
    """Become a SuperLink, so that whoever ends this process ends the server and nothing is left."""
    command, variables = superlink_command(server), environment(server.flower_home)
    sys.stdout.flush()
    _register_aside(server)
    os.execve(command[0], command, variables)  # noqa: S606 - our own interpreter's folder


def _register_aside(server: ServerFolder) -> None:
    """In a grandchild, which nobody has to wait for."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    try:
        _register(server)
    except FDRSVMError as error:
        os.write(2, f"fdrsvm: plants cannot connect, their keys are not known: {error}\n".encode())
    finally:
        os._exit(0)


def _register(server: ServerFolder) -> None:
    end = time.monotonic() + _START_SECONDS
    while not is_healthy(server):
        if time.monotonic() > end:
            raise FDRSVMError(f"the server did not answer within {_START_SECONDS:g} s")
        time.sleep(_LOOK)
    new = register_nodes(server)
    if new:
        os.write(1, f"fdrsvm: may connect from now on: {', '.join(new)}\n".encode())
