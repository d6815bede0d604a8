"""A SuperNode whose client processes start warm.

Flower starts a new `flwr-clientapp` for every message, and most of a round goes by while it imports
and loads machine code. Here that command is a few lines of Python which hand their arguments to a
process that has everything loaded; it forks, and the child is an ordinary `flwr-clientapp` from
there on, with two differences. It runs the app that is installed here and never code that came over
the network: the server's bundle is not unpacked. And a SuperNode looks for messages several times a
second, not every 3 s.

The guard fails closed. A release of Flower that it does not fit is found out before a node starts,
and the node's PATH holds nothing but these commands: where one is missing, nothing runs.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NoReturn

from fdrsvm.core.texts import package_log
from fdrsvm.deploy.layout import ClientFolder
from fdrsvm.errors import FDRSVMError

COMMAND = "flwr-clientapp"
SOCKET = "FDRSVM_WARM_SOCKET"
POLL = "FDRSVM_POLL_SECONDS"

_SHIM = """\
#!{python} -IS
import json, os, socket, sys
try:
    link = socket.socket(socket.AF_UNIX)
    link.connect(os.environ["{socket}"])
    link.sendall(json.dumps(sys.argv[1:]).encode() + b"\\n")
    status = link.recv(1)
except (OSError, KeyError) as error:
    sys.exit(f"fdrsvm: the client's main process is gone ({{error}})")
sys.exit(status[0] if status else 1)
"""
_REFUSAL = """\
#!{python} -IS
import sys
sys.exit("fdrsvm: this plant takes part in FDR-SVM runs only; {command} was refused")
"""
# Whatever else Flower can start: it would run code that the server sent.
_REFUSED = (
    "flwr-agentapp",
    "flwr-connector",
    "flwr-model",
    "flwr-serverapp",
    "flwr-simulation",
)
_STARTER = "flower-superexec"  # starts the commands above, and runs no app itself
_REPLACED = ("install_from_fab", "get_load_client_app_fn")  # in Flower's run_clientapp
_LONGEST_REQUEST = 1 << 16
_IS_KEPT = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # as under nohup
_ENDING = (signal.SIGTERM, signal.SIGINT, *(() if _IS_KEPT else (signal.SIGHUP,)))
_LOOK = 0.2
_END_AFTER = 10.0
# A node that was killed counts as connected for a minute, and cannot connect again before.
_GIVE_UP, _PAUSE, _LONG = 150.0, 5.0, 60.0
_LOG = package_log()


def supernode() -> None:
    """Flower's own `flower-supernode`, which looks for messages every ``FDRSVM_POLL_SECONDS``."""
    from flwr.supernode import start_client_internal
    from flwr.supernode.cli import flower_supernode

    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    vars(start_client_internal)["time"] = _Clock(float(os.environ[POLL]))
    try:
        flower_supernode()
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
    # It came to no good end, and a thread of its own would go on for ever.
    sys.stderr.flush()
    os._exit(1)


def _end_with(parent: int) -> None:
    """Nobody can start client processes without the parent, so a node must not outlive it."""
    while os.getppid() == parent:
        time.sleep(_LOOK)
    os.kill(os.getpid(), signal.SIGTERM)


class _Clock(ModuleType):
    """The module ``time`` for one other module, in which nobody sleeps long."""

    def __init__(self, longest: float) -> None:
        super().__init__("time")
        self._longest = longest

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, self._longest))


def check_plant(client: ClientFolder) -> str:
    """One line about the data, or an error before anything is started."""
    from fdrsvm.data.contract import ContractError
    from fdrsvm.deploy.plant import plant_from_config
    from fdrsvm.deploy.plant_data import read_plant
    from fdrsvm.federated.joining import TellableError

    plant = plant_from_config(client.node_config, {})
    try:
        rows = read_plant(plant)
    except TellableError as error:
        raise FDRSVMError(error.in_full) from None  # this terminal is the plant's own
    except ContractError as error:
        raise FDRSVMError(f"{error} ({plant.data})") from None
    return f"{client.client_id}: {len(rows.X)} rows, {rows.X.shape[1]} features, data as agreed"


def run_warm(
    arguments: Sequence[str],
    home: Path,
    *,
    poll: float,
    find_reason: Callable[[], None] = lambda: None,
) -> int:
    """Run a SuperNode with these arguments until it is ended: 0, or an error that says why.

    The commands that it may start stand in the folder ``home``, where nobody tidies up. SIGTERM,
    SIGINT and SIGHUP end the SuperNode, and with it this process and all that it started. One that
    ends by itself, since the server does not know its key (yet), is started again a few times,
    unless ``find_reason`` raises one for which that is of no use.
    """
    check_flower()
    _load()
    shims = _write_shims(home)
    folder = Path(tempfile.mkdtemp(prefix="fdrsvm-"))  # short, and nobody else's
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "warm"))
            listener.listen(16)
            listener.settimeout(_LOOK)
            variables = {
                **os.environ,
                SOCKET: str(folder / "warm"),
                POLL: repr(poll),
                "PATH": str(shims),
            }
            return _keep_running(arguments, variables, listener, find_reason)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_running(
    arguments: Sequence[str],
    variables: dict[str, str],
    listener: socket.socket,
    find_reason: Callable[[], None],
) -> int:
    code = f"from {__name__} import supernode; supernode()"
    command = [sys.executable, "-c", code, *arguments]
    first = time.monotonic()
    while True:
        began = time.monotonic()
        node = subprocess.Popen(command, env=variables)  # noqa: S603 - our own interpreter
        nursery = _Nursery(listener, node)
        status = nursery.run()
        now = time.monotonic()
        if nursery.is_stopping:
            return 0
        find_reason()
        if now - began > _LONG:
            raise FDRSVMError(
                f"this plant's node ended by itself after {now - began:.0f} s with the code "
                f"{status}: the server does not take its messages any more, or it was killed; the "
                "lines above have Flower's own words. Start it again: it goes on where it was"
            )
        if now - first > _GIVE_UP:
            break
        _LOG.warning(
            "the server did not let this node in: its last connection has not ended yet (that takes"
            " up to a minute), or its key is not known; trying again"
        )
        time.sleep(_PAUSE)
        if nursery.is_stopping:
            return 0
    raise FDRSVMError(
        f"the server has not let this node in for {_GIVE_UP:g} s: most likely it does not know the "
        "plant's key (its node.pub must stand in the server's folder nodes/ as NAME.pub, and the "
        "server be started again after that); the lines above have Flower's own words"
    )


def _load() -> None:
    """Import all that a client process needs."""
    import flwr.supernode.cli  # noqa: F401

    import fdrsvm.deploy.client_app  # noqa: F401


def check_flower() -> None:
    """Refuse a release of Flower in which a server's code could find another way to run."""
    from flwr.supercore.constant import TASK_TYPE_TO_COMMAND
    from flwr.supernode.runtime import run_clientapp

    missing = sorted(set(_REPLACED) - set(vars(run_clientapp)))
    if missing:
        raise FDRSVMError(f"this release of Flower lacks {', '.join(missing)}; use flwr 1.41")
    new = sorted(set(TASK_TYPE_TO_COMMAND.values()) - {COMMAND, *_REFUSED})
    if new:
        raise FDRSVMError(f"this release of Flower can start {', '.join(new)}; use flwr 1.41")


def _run_own_app_only() -> None:
    """Nothing is unpacked or imported from a bundle; where Flower has changed, nothing runs."""
    from flwr.supernode.runtime import run_clientapp

    from fdrsvm.deploy.client_app import app

    check_flower()
    own = (lambda *_, **__: None, lambda *_, **__: lambda *_, **__: app)
    vars(run_clientapp).update(zip(_REPLACED, own, strict=True))


def _write_shims(home: Path) -> Path:
    """All of a node's PATH: `flwr-clientapp` is ours, other apps are refused, one is Flower's."""
    bin_folder = home / "bin"
    shutil.rmtree(bin_folder, ignore_errors=True)
    bin_folder.mkdir(parents=True)
    for name in (COMMAND, *_REFUSED):
        shim = bin_folder / name
        text = _SHIM if name == COMMAND else _REFUSAL
        shim.write_text(text.format(python=sys.executable, socket=SOCKET, command=name))
        shim.chmod(0o700)
    (bin_folder / _STARTER).symlink_to(Path(sys.executable).parent / _STARTER)
    return bin_folder


class _Nursery:
    """Forks a child for each request, and tells who asked how it ended."""

    def __init__(self, listener: socket.socket, node: subprocess.Popen[bytes]) -> None:
        self.listener = listener
        self.node = node
        self.children: dict[int, socket.socket] = {}
        self.ends_at = float("inf")
        self.is_stopping = False
        for name in _ENDING:
            signal.signal(name, self._stop)

    def run(self) -> int:
        """Until the SuperNode has ended."""
        while self.node.poll() is None:
            with contextlib.suppress(TimeoutError, InterruptedError):
                link, _ = self.listener.accept()
                self._start(link)
            self._reap()
            if time.monotonic() > self.ends_at:
                self.node.kill()
        self._end_children(signal.SIGTERM)
        end = time.monotonic() + _END_AFTER
        while self.children and time.monotonic() < end:
            time.sleep(_LOOK)
            self._reap()
        self._end_children(signal.SIGKILL)
        return self.node.returncode

    def _end_children(self, number: signal.Signals) -> None:
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.is_stopping = True
        self.ends_at = min(self.ends_at, time.monotonic() + _END_AFTER)
        self.node.terminate()

    def _start(self, link: socket.socket) -> None:
        link.settimeout(_LOOK)
        try:
            arguments = json.loads(_read_line(link))
        except (OSError, ValueError):
            link.close()
            return
        pid = os.fork()
        if pid:
            self.children[pid] = link
            return
        self._be_child(link, arguments)

    def _be_child(self, link: socket.socket, arguments: Sequence[str]) -> NoReturn:
        """Whatever happens, a child must never go on with what is its parent's to do."""
        code = 1
        try:
            self.listener.close()
            link.close()
            code = _be_client_app(arguments)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _reap(self) -> None:
        for pid in list(self.children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                link = self.children.pop(pid)
                with contextlib.suppress(OSError):
                    link.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
                link.close()


def _read_line(link: socket.socket) -> bytes:
    data = b""
    while not data.endswith(b"\n") and len(data) < _LONGEST_REQUEST:
        part = link.recv(_LONGEST_REQUEST)
        if not part:
            break
        data += part
    return data


def _be_client_app(arguments: Sequence[str]) -> int:
    """In the child: what `flwr-clientapp` does, with our own app whatever the server sent."""
    for name in _ENDING:
        signal.signal(name, signal.SIG_DFL)
    from flwr.supernode.cli import flwr_clientapp

    _run_own_app_only()
    sys.argv = [COMMAND, *arguments]
    try:
        flwr_clientapp()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
