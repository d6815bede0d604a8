"""A SuperNode whose client processes start warm.

Flower starts a new `flwr-clientapp` for every message, and most of a round goes by while it
imports, loads machine code and reads the data. Here that command is a few lines of Python which
hand their arguments to a process that has everything loaded, the plant's rows too; it forks, and
the child is an ordinary `flwr-clientapp` from there on, with two differences. It runs the app that
is installed here and never code that came over the network: the server's bundle is not unpacked.
And a SuperNode looks for messages several times a second, not every 3 s.

Forked processes share the rows with their parent as long as nobody writes to them. A child that has
answered tells its parent which task it solved, so that the parent has rows and problem ready for
the next one; if it cannot make them, the next child does, and says what is wrong.

The guard fails closed. A release of Flower that it does not fit is refused before a node starts,
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
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, SimpleNamespace

from fdrsvm.core.texts import package_log
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
REFUSED = (*("flwr-agentapp", "flwr-connector", "flwr-model", "flwr-serverapp", "flwr-simulation"),)
_STARTER = "flower-superexec"  # starts the commands above, and runs no app itself
_REPLACED = ("install_from_fab", "get_load_client_app_fn")  # in Flower's run_clientapp
_LONGEST_TEXT = 1 << 16  # that one process tells another
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

    parent = os.getppid()

    def end_with_parent() -> None:
        """Nobody can start client processes without the parent: a node must not outlive it."""
        while os.getppid() == parent:
            time.sleep(_LOOK)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()
    # For that module only: nobody in it sleeps longer than this.
    longest = float(os.environ[POLL])
    clock = SimpleNamespace(**vars(time))
    clock.sleep = lambda seconds: time.sleep(min(seconds, longest))
    vars(start_client_internal)["time"] = clock
    try:
        flower_supernode()
    except SystemExit:
        raise
    except BaseException:
        traceback.print_exc()
    # It failed, and one of its threads would go on forever.
    sys.stderr.flush()
    os._exit(1)


def run_warm(
    arguments: Sequence[str],
    home: Path,
    *,
    poll: float,
    find_reason: Callable[[], object] = lambda: None,
    on_answer: Callable[[str], None] = lambda _: None,
) -> int:
    """Run a SuperNode with these arguments until it is ended: 0, or an error that says why.

    The commands that it may start stand in the folder ``home``, where nobody tidies up. SIGTERM,
    SIGINT and SIGHUP end the SuperNode, and with it this process and all that it started. One that
    ends by itself, since the server does not know its key (yet), is started again a few times,
    unless ``find_reason`` raises one that makes it pointless. ``on_answer`` is called with the
    task of each message that was answered, in the process from which the next one is forked.
    """
    check_flower()
    load()
    shims = write_shims(home)
    folder = Path(tempfile.mkdtemp(prefix="fdrsvm-"))  # short, and nobody else's
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(folder / "warm"))
            listener.listen(16)
            listener.settimeout(_LOOK)
            ours = {SOCKET: str(folder / "warm"), POLL: repr(poll), "PATH": str(shims)}
            variables = {**os.environ, **ours}
            return keep_running(arguments, variables, listener, find_reason, on_answer)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_running(
    arguments: Sequence[str],
    variables: dict[str, str],
    listener: socket.socket,
    find_reason: Callable[[], object],
    on_answer: Callable[[str], None],
) -> int:
    """Start a SuperNode, and again if it ends before the server has let it in."""
    code = f"from {__name__} import supernode; supernode()"
    command = [sys.executable, "-c", code, *arguments]
    first = time.monotonic()
    while True:
        began = time.monotonic()
        node = subprocess.Popen(command, env=variables)  # noqa: S603 - our own interpreter
        nursery = Nursery(listener, node, on_answer)
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


def load() -> None:
    """Import all that a client process needs."""
    import flwr.supernode.cli  # noqa: F401

    import fdrsvm.deploy.client_app  # noqa: F401


def check_flower() -> None:
    """Refuse a release of Flower in which a server's code could find another way to run."""
    try:
        from flwr.supercore.constant import TASK_TYPE_TO_COMMAND
        from flwr.supernode.runtime import run_clientapp
    except ModuleNotFoundError as error:
        raise FDRSVMError(f"{error.name} is missing: pip install 'fdr-svm[flower]'") from None
    missing = sorted(set(_REPLACED) - set(vars(run_clientapp)))
    if missing:
        raise FDRSVMError(f"this release of Flower lacks {', '.join(missing)}; use flwr 1.41")
    new = sorted(set(TASK_TYPE_TO_COMMAND.values()) - {COMMAND, *REFUSED})
    if new:
        raise FDRSVMError(f"this release of Flower can start {', '.join(new)}; use flwr 1.41")


def run_own_app_only() -> None:
    """Nothing is unpacked or imported from a bundle; where Flower has changed, nothing runs."""
    from flwr.supernode.runtime import run_clientapp

    from fdrsvm.deploy.client_app import app

    check_flower()
    own = (lambda *_, **__: None, lambda *_, **__: lambda *_, **__: app)
    vars(run_clientapp).update(zip(_REPLACED, own, strict=True))


def write_shims(home: Path) -> Path:
    """All of a node's PATH: `flwr-clientapp` is ours, other apps are refused, one is Flower's."""
    bin_folder = home / "bin"
    shutil.rmtree(bin_folder, ignore_errors=True)
    bin_folder.mkdir(parents=True)
    for name in (COMMAND, *REFUSED):
        shim = bin_folder / name
        text = _SHIM if name == COMMAND else _REFUSAL
        shim.write_text(text.format(python=sys.executable, socket=SOCKET, command=name))
        shim.chmod(0o700)
    (bin_folder / _STARTER).symlink_to(Path(sys.executable).parent / _STARTER)
    return bin_folder


@dataclass(eq=False)
class Nursery:
    """Forks a child for each request, and tells whoever asked how it ended."""

    listener: socket.socket
    node: subprocess.Popen[bytes]
    on_answer: Callable[[str], None] = lambda _: None

    def __post_init__(self) -> None:
        self.children: dict[int, tuple[socket.socket, int]] = {}  # who asked, what a child tells
        self.ends_at = float("inf")
        self.is_stopping = False
        for number in _ENDING:
            signal.signal(number, self.stop)

    def run(self) -> int:
        """Until the SuperNode has ended."""
        while self.node.poll() is None:
            with contextlib.suppress(TimeoutError, InterruptedError):
                link, _ = self.listener.accept()
                self.start(link)
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

    def stop(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """End the SuperNode, and with it the loop; a handler of signals."""
        self.is_stopping = True
        self.ends_at = min(self.ends_at, time.monotonic() + _END_AFTER)
        self.node.terminate()

    def start(self, link: socket.socket) -> None:
        """Fork a child that does what is asked for over ``link``; nonsense is passed over."""
        link.settimeout(_LOOK)
        try:
            arguments = json.loads(read_line(link))
        except (OSError, ValueError):
            link.close()
            return
        heard, told = os.pipe()
        pid = os.fork()
        if pid:
            os.close(told)
            self.children[pid] = link, heard
            return
        code = 1
        try:
            self.listener.close()
            link.close()
            code = be_client_app(arguments, told)
        except BaseException:
            traceback.print_exc()
        finally:  # whatever happens, a child must never go on with what is its parent's to do
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _end_children(self, number: signal.Signals) -> None:
        for pid in self.children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def _reap(self) -> None:
        for pid in list(self.children):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            link, heard = self.children.pop(pid)
            with contextlib.suppress(OSError):
                link.sendall(bytes([os.waitstatus_to_exitcode(status) & 0xFF]))
            link.close()
            os.set_blocking(heard, False)
            with os.fdopen(heard, "rb", 0) as pipe:
                task = pipe.read(_LONGEST_TEXT)
            if task and not self.is_stopping:
                self.on_answer(task.decode(errors="replace"))


def read_line(link: socket.socket) -> bytes:
    """What is sent up to the end of a line, or of what is allowed."""
    data = b""
    while not data.endswith(b"\n") and len(data) < _LONGEST_TEXT:
        chunk = link.recv(_LONGEST_TEXT)
        if not chunk:
            break
        data += chunk
    return data


def be_client_app(arguments: Sequence[str], told: int) -> int:
    """In the child: what `flwr-clientapp` does, with our own app whatever the server sent."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_DFL)
    from flwr.supernode.cli import flwr_clientapp

    from fdrsvm.deploy import client_app

    def tell_parent(task: str) -> None:
        with contextlib.suppress(OSError):  # too long for a pipe: the next one has to make it
            os.write(told, task.encode())

    os.set_blocking(told, False)
    client_app.on_answer = tell_parent
    run_own_app_only()
    sys.argv = [COMMAND, *arguments]
    try:
        flwr_clientapp()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
