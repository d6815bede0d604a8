"""Client processes that start warm, and run nothing but the app that is installed."""

import json
import os
import shutil
import socket
import subprocess
import sys

import pytest
from flwr.supercore.constant import TASK_TYPE_TO_COMMAND
from flwr.supernode.runtime import run_clientapp

from fdrsvm import FDRSVMError
from fdrsvm.deploy import warm_client
from fdrsvm.deploy.client_app import app


def test_every_command_that_flower_can_start_is_ours(tmp_path):
    shims = warm_client.write_shims(tmp_path)
    assert set(TASK_TYPE_TO_COMMAND.values()) <= {path.name for path in shims.iterdir()}
    for name in warm_client.REFUSED:
        done = subprocess.run([shims / name, "--token", "x"], capture_output=True, text=True)
        assert done.returncode == 1
        assert f"{name} was refused" in done.stderr


def test_the_command_hands_its_arguments_over_and_waits_for_the_end(tmp_path):
    shim = warm_client.write_shims(tmp_path) / "flwr-clientapp"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        variables = {**os.environ, warm_client.SOCKET: str(tmp_path / "s")}
        asked = subprocess.Popen([shim, "--token", "ä b"], env=variables)
        link, _ = listener.accept()
        with link:
            assert json.loads(warm_client.read_line(link)) == ["--token", "ä b"]
            assert asked.poll() is None
            link.sendall(bytes([7]))
        assert asked.wait(30) == 7


def test_the_command_fails_where_nobody_listens(tmp_path):
    shim = warm_client.write_shims(tmp_path) / "flwr-clientapp"
    done = subprocess.run([shim], capture_output=True, text=True)
    assert done.returncode == 1
    assert "main process is gone" in done.stderr


def test_the_app_is_our_own_whatever_the_server_sent(monkeypatch):
    for name in ("install_from_fab", "get_load_client_app_fn"):
        monkeypatch.setattr(run_clientapp, name, getattr(run_clientapp, name))
    warm_client.run_own_app_only()
    assert run_clientapp.install_from_fab(b"not even a zip file", skip_prompt=True) is None
    loaded = run_clientapp.get_load_client_app_fn(default_app_ref="", app_path=None)
    assert loaded("evil", "1.0", "hash") is app


def test_a_new_kind_of_app_is_refused_before_a_node_starts(monkeypatch, tmp_path):
    monkeypatch.setitem(TASK_TYPE_TO_COMMAND, "new", "flwr-new")
    with pytest.raises(FDRSVMError, match="can start flwr-new"):
        warm_client.run_warm([], tmp_path, poll=1.0)
    assert not list(tmp_path.iterdir())


def test_a_node_finds_nothing_but_what_is_ours(tmp_path):
    shims = warm_client.write_shims(tmp_path)
    (shims / "flwr-from-another-day").touch()
    shims = warm_client.write_shims(tmp_path)  # starting again is always safe
    names = {path.name for path in shims.iterdir()}
    assert names == {"flwr-clientapp", "flower-superexec", *warm_client.REFUSED}
    assert (shims / "flower-superexec").exists()


def test_where_flower_has_changed_nothing_runs(monkeypatch):
    monkeypatch.setattr(run_clientapp, "install_from_fab", None)
    monkeypatch.delattr(run_clientapp, "install_from_fab")
    with pytest.raises(FDRSVMError, match="lacks install_from_fab"):
        warm_client.run_own_app_only()
    with pytest.raises(FDRSVMError, match="lacks install_from_fab"):
        warm_client.check_flower()


NURSERY = """
import socket, subprocess, sys
from fdrsvm.deploy import warm_client
warm_client.be_client_app = lambda arguments, told: int(arguments[0])
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1]); listener.listen(); listener.settimeout(0.2)
node = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("ready", flush=True)
sys.exit(0 if warm_client.Nursery(listener, node).run() else 3)
"""


def test_children_are_forked_and_all_ends_with_a_signal(tmp_path):
    where = str(tmp_path / "s")
    command = [sys.executable, "-c", NURSERY, where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as nursery:
        assert nursery.stdout.readline() == "ready\n"
        for code in (0, 5):
            with socket.socket(socket.AF_UNIX) as link:
                link.connect(where)
                link.sendall(json.dumps([str(code)]).encode() + b"\n")
                assert link.recv(1)[0] == code
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(where)
            link.sendall(b"nonsense\n")  # is passed over
        nursery.terminate()
        assert nursery.wait(30) == 0


BROKEN = """
import subprocess, sys
from pathlib import Path
from fdrsvm.deploy import warm_client

def keep_running(arguments, variables, listener, find_reason, on_answer):
    print(variables["PATH"], variables[warm_client.SOCKET], flush=True)
    node = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    return warm_client.Nursery(listener, node).run()

def changed():
    raise warm_client.FDRSVMError("this release of Flower has changed")

warm_client.load = lambda: None
warm_client.keep_running = keep_running
warm_client.run_own_app_only = changed
warm_client.run_warm([], Path(sys.argv[1]), poll=1.0)
"""


def test_a_guard_that_breaks_leaves_nothing_open_for_the_next_message(tmp_path):
    command = [sys.executable, "-c", BROKEN, str(tmp_path)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as client:
        path, where = client.stdout.readline().split()
        assert shutil.which("sh", path=path) is None
        for _ in range(2):
            shim = shutil.which("flwr-clientapp", path=path)
            variables = {"PATH": path, warm_client.SOCKET: where}
            done = subprocess.run([shim], env=variables, capture_output=True, timeout=60)
            assert done.returncode == 1
            assert not done.stderr  # the main process is there and said so
            assert client.poll() is None
        client.terminate()
        _, errors = client.communicate(timeout=60)
    assert errors.count("this release of Flower has changed") == 2
    assert (tmp_path / "bin" / "flwr-clientapp").exists()


ENDS = """
import sys
from pathlib import Path
from fdrsvm.errors import FDRSVMError
from fdrsvm.deploy import warm_client

def find_reason():
    if sys.argv[2]:
        raise FDRSVMError(sys.argv[2])

warm_client.load = lambda: None
warm_client._PAUSE = warm_client._GIVE_UP = 0.0
if sys.argv[3] == "late":
    warm_client._LONG = 0.0
try:  # a SuperNode that says its version, and ends with code 0
    warm_client.run_warm(["--version"], Path(sys.argv[1]), poll=1.0, find_reason=find_reason)
except FDRSVMError as error:
    sys.exit(f"fdrsvm: {error}")
"""


@pytest.mark.parametrize(
    ("reason", "when", "words"),
    [
        ("its clock is wrong", "early", "fdrsvm: its clock is wrong"),
        ("", "early", "fdrsvm: the server has not let this node in"),
        ("", "late", "fdrsvm: this plant's node ended by itself after"),
    ],
)
def test_a_node_that_ends_by_itself_ends_the_client_with_a_reason(reason, when, words, tmp_path):
    command = [sys.executable, "-c", ENDS, str(tmp_path), reason, when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1
    assert words in done.stderr
    assert "Flower version" in done.stdout
