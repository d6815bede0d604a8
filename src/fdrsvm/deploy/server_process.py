"""A SuperLink that knows its plants: this process becomes it, another one registers their keys."""

from __future__ import annotations

import os
import sys
import time

from fdrsvm.deploy.engine import (
    environment,
    is_healthy,
    register_nodes,
    superlink_command,
)
from fdrsvm.deploy.layout import ServerFolder
from fdrsvm.deploy.processes import Started, this_process
from fdrsvm.errors import FDRSVMError, InvalidInputError

_START_SECONDS = 120.0
_LOOK = 0.2


def run_server(server: ServerFolder, *, open_control: bool = False) -> None:
    """Become a SuperLink, so that whoever ends this process ends the server and nothing is left.

    Flower's control interface shares the port, so that a server that can be reached from outside
    must be asked for with ``open_control``.
    """
    if server.host != "127.0.0.1" and not open_control:
        raise InvalidInputError(
            "--open-control",
            f"must be given to listen on {server.host}: whoever reaches port {server.port} can run "
            "any code as this user",
            "it is not; docs/federation.md says how to close the port to others",
        )
    command, variables = superlink_command(server), environment(server.flower_home)
    sys.stdout.flush()
    _register_aside(server)
    os.execve(command[0], command, variables)  # noqa: S606 - our own interpreter's folder


def _register_aside(server: ServerFolder) -> None:
    """In a grandchild, which nobody has to wait for, and which ends with the server."""
    superlink = this_process("server")
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    try:
        _register_and_report(server, superlink)
    finally:
        os._exit(0)


def _register_and_report(server: ServerFolder, superlink: Started) -> None:
    """Whatever goes wrong is in the server's log: nobody else would tell."""
    try:
        _register(server, superlink)
    except Exception as error:
        reason = str(error) if isinstance(error, FDRSVMError) else repr(error)
        text = f"fdrsvm: plants whose keys are not known cannot connect: {reason}\n"
        os.write(2, text.encode())


def _register(server: ServerFolder, superlink: Started) -> None:
    end = time.monotonic() + _START_SECONDS
    while not is_healthy(server):
        if not superlink.is_alive:
            raise FDRSVMError("the server ended before it answered")
        if time.monotonic() > end:
            raise FDRSVMError(f"the server did not answer within {_START_SECONDS:g} s")
        time.sleep(_LOOK)
    new = register_nodes(server)
    if new:
        os.write(1, f"fdrsvm: may connect from now on: {', '.join(new)}\n".encode())
