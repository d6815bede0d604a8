"""A federation of real processes on loopback, for tests and measurements."""

import contextlib
import os
import signal
import socket
import threading
import time

from fdrsvm.deploy.founding import init
from fdrsvm.deploy.processes import read_list
from fdrsvm.deploy.runs import run
from fdrsvm.deploy.trial import down, node_status, server_folder, start_one, up
from fdrsvm.federated.audit import read_audit

LONG = 600.0


def free_ports(count):
    """The first of so many ports in a row that nobody uses now."""
    for first in range(20000 + os.getpid() % 20000, 60000, count):
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    link = stack.enter_context(socket.socket())
                    link.bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise RuntimeError("no free ports")


class Live:
    """Up on entry, down on exit."""

    def __init__(self, folder, files, **settings):
        self.folder = folder
        self.files = files
        init(folder, files, port=free_ports(len(files) + 1), **settings)

    def __enter__(self):
        start = time.monotonic()
        up(self.folder, timeout=LONG, tell=print)
        self.start_seconds = time.monotonic() - start
        return self

    def __exit__(self, *_):
        self.killed = down(self.folder)

    @property
    def server(self):
        return server_folder(self.folder)

    def run(self, output, resume=False, timeout=LONG, **config):
        config = {name.replace("_", "-"): value for name, value in config.items()}
        return run(
            self.server, self.folder / output, config, resume=resume, timeout=timeout, tell=print
        )

    def start(self, output, **config):
        return Running(self, output, config)

    def events(self, output):
        return list(read_audit(self.folder / output / "audit.jsonl"))

    def family(self, name):
        """A process and all that it started."""
        (one,) = [one for one in read_list(self.folder / "processes.json") if one.name == name]
        return [one, *one.descendants]

    def signal(self, name, number):
        for one in self.family(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, number)

    def kill(self, name):
        family = self.family(name)
        self.signal(name, signal.SIGKILL)
        wait_until(lambda: not any(one.is_alive for one in family), 30.0)

    def restart(self, name):
        start_one(self.folder, name)

    def wait_online(self, *names):
        def online():
            with contextlib.suppress(Exception):
                nodes = node_status(self.server)
                return all(nodes.get(name) == "online" for name in names)
            return False

        wait_until(online, LONG)


class Running:
    """A run in the background."""

    def __init__(self, live, output, config):
        self.live, self.output = live, output
        self.outcome = self.error = None
        self.thread = threading.Thread(target=self._run, args=(config,), daemon=True)
        self.thread.start()

    def _run(self, config):
        try:
            self.outcome = self.live.run(self.output, **config)
        except Exception as error:
            self.error = error

    def events(self, kind):
        return [one for one in self.live.events(self.output) if one["event"] == kind]

    def wait_round(self, number):
        wait_until(lambda: len(self.events("round")) >= number or self.error, LONG)
        if self.error:
            raise self.error

    def end(self):
        self.thread.join(LONG)
        assert not self.thread.is_alive(), "the run hangs"
        return self.outcome


def wait_until(holds, seconds):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)
