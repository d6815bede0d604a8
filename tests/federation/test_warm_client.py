"""Client processes that start warm, and run nothing but the app that is installed."""

import json
import os
import socket
import subprocess
import sys

import pytest
from flwr.supercore.constant import TASK_TYPE_TO_COMMAND
from flwr.supernode.runtime import run_clientapp

from fdrsvm import FDRSVMError
from fdrsvm.flower_app import warm_client
from fdrsvm.flower_app.client_app import app


def test_every_command_that_flower_can_start_is_ours(tmp_path):
    shims = warm_client._write_shims(tmp_path)
    assert set(TASK_TYPE_TO_COMMAND.values()) <= {path.name for path in shims.iterdir()}
    for name in warm_client._REFUSED:
        done = subprocess.run([shims / name, "--token", "x"], capture_output=True, text=True)
        assert done.returncode == 1
        assert f"{name} was refused" in done.stderr


def test_the_command_hands_its_arguments_over_and_waits_for_the_end(tmp_path):
    shim = warm_client._write_shims(tmp_path) / "flwr-clientapp"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        variables = {**os.environ, warm_client.SOCKET: str(tmp_path / "s")}
        asked = subprocess.Popen([shim, "--token", "ä b"], env=variables)
        link, _ = listener.accept()
        with link:
            assert json.loads(warm_client._read_line(link)) == ["--token", "ä b"]
            assert asked.poll() is None
            link.sendall(bytes([7]))
        assert asked.wait(30) == 7


def test_the_command_fails_where_nobody_listens(tmp_path):
    shim = warm_client._write_shims(tmp_path) / "flwr-clientapp"
    done = subprocess.run([shim], capture_output=True, text=True)
    assert done.returncode == 1
    assert "main process is gone" in done.stderr


def test_the_app_is_our_own_whatever_the_server_sent(monkeypatch):
    for name in ("install_from_fab", "get_load_client_app_fn"):
        monkeypatch.setattr(run_clientapp, name, getattr(run_clientapp, name))
    warm_client._run_own_app_only()
    assert run_clientapp.install_from_fab(b"not even a zip file", skip_prompt=True) is None
    loaded = run_clientapp.get_load_client_app_fn(default_app_ref="", app_path=None)
    assert loaded("evil", "1.0", "hash") is app


def test_where_flower_has_changed_nothing_runs(monkeypatch):
    monkeypatch.setattr(run_clientapp, "install_from_fab", None)
    monkeypatch.delattr(run_clientapp, "install_from_fab")
    with pytest.raises(FDRSVMError, match="lacks install_from_fab"):
        warm_client._run_own_app_only()


NURSERY = """
import socket, subprocess, sys
from fdrsvm.flower_app import warm_client
warm_client._be_client_app = lambda arguments: warm_client.os._exit(int(arguments[0]))
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1]); listener.listen(); listener.settimeout(0.2)
node = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("ready", flush=True)
sys.exit(0 if warm_client._Nursery(listener, node).run() else 3)
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
