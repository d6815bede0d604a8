"""Hosts with addresses of their own, without other hosts: network namespaces joined by a bridge."""

import contextlib
import json
import shutil
import subprocess
import sys
import time

import pytest

from fdrsvm import FDRSVC
from fdrsvm.deploy.founding import init
from fdrsvm.deploy.processes import start, stop
from fdrsvm.federated.audit import read_audit
from tests.deploy.cases import fingerprint, in_process, write_plants
from tests.deploy.live import LONG, wait_until

NET = "10.231.87"
SERVER = f"{NET}.1"
PORT = 18800
ROUNDS = {"algorithm": "admm", "tol": 0.0, "max-rounds": 8}


def ip(*arguments, check=True):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True, check=check)


def may_make_namespaces():
    if shutil.which("ip") is None:
        return False
    made = ip("netns", "add", "fdrsvm-try", check=False).returncode == 0
    ip("netns", "del", "fdrsvm-try", check=False)
    return made


pytestmark = [
    pytest.mark.federation,
    pytest.mark.skipif(not may_make_namespaces(), reason="network namespaces are not permitted"),
]


@pytest.fixture
def hosts():
    """A namespace for the server, which has the bridge, and one a plant, each with an address."""
    names = ["fdrsvm-server", "fdrsvm-plant-0", "fdrsvm-plant-1"]
    with contextlib.ExitStack() as stack:
        for name in names:
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name, check=False)
            ip("-n", name, "link", "set", "lo", "up")
        server = names[0]
        ip("-n", server, "link", "add", "bridge", "type", "bridge")
        ip("-n", server, "addr", "add", f"{SERVER}/24", "dev", "bridge")
        ip("-n", server, "link", "set", "bridge", "up")
        for number, name in enumerate(names[1:]):
            port = f"to-{number}"
            ip("-n", server, "link", "add", port, "type", "veth", "peer", "eth0", "netns", name)
            ip("-n", server, "link", "set", port, "master", "bridge", "up")
            ip("-n", name, "addr", "add", f"{NET}.{10 + number}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "eth0", "up")
        yield names


def fdrsvm(host, *arguments):
    return ["ip", "netns", "exec", host, sys.executable, "-m", "fdrsvm", *map(str, arguments)]


def test_a_plant_cut_off_and_back_in_changes_no_bit(hosts, tmp_path):
    files = write_plants(tmp_path / "data", n_plants=2)
    folder = tmp_path / "fed"
    init(folder, files, address=SERVER, port=PORT)
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "OMP_NUM_THREADS": "1"}
    output = folder / "run"
    settings = [f"--set={name}={value}" for name, value in ROUNDS.items()]
    server, *plants = hosts

    def events(kind):
        return [one for one in read_audit(output / "audit.jsonl") if one["event"] == kind]

    with contextlib.ExitStack() as stack:

        def begin(name, command):
            one = start(name, command, folder / "logs" / f"{name}.log", env)
            stack.callback(stop, [one])
            return one

        begin("server", fdrsvm(server, "server", folder / "server", "--open-control"))
        nodes = folder / "server" / "flower" / "nodes.json"
        wait_until(lambda: nodes.exists() and len(json.loads(nodes.read_text())) == 2, LONG)
        for host, name in zip(plants, files, strict=True):
            begin(name, fdrsvm(host, "client", folder / "plants" / name))
        run = begin(
            "run",
            fdrsvm(
                server,
                *("federation", "run", folder / "server", "--output", output),
                *("--set=deadline=300", "--set=join-deadline=300", *settings),
            ),
        )
        wait_until(lambda: len(events("round")) >= 2 or not run.is_alive, LONG)
        assert run.is_alive
        ip("-n", server, "link", "set", "to-1", "down")
        time.sleep(15.0)
        held = len(events("round"))
        ip("-n", server, "link", "set", "to-1", "up")
        wait_until(lambda: not run.is_alive, LONG)
    assert held <= 4  # nothing went on without the plant
    assert len(events("end")) == 1, (folder / "logs" / "run.log").read_text()
    model = FDRSVC.load(output / "model.safetensors")
    there = in_process(files, **{name.replace("-", "_"): value for name, value in ROUNDS.items()})
    assert fingerprint(model) == fingerprint(there)
