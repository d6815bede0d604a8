"""Real SuperLinks and SuperNodes on loopback, with TLS and keys, in good and bad days."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys

import psutil
import pytest

from fdrsvm import FDRSVC, FDRSVMError
from fdrsvm.deploy.engine import flwr
from fdrsvm.deploy.founding import init
from fdrsvm.deploy.layout import CONNECTION
from fdrsvm.deploy.processes import stop
from fdrsvm.deploy.trial import status
from tests.deploy.cases import fingerprint, in_process, write_plants
from tests.deploy.live import LONG, Live, free_ports, wait_until

ROUNDS = {"algorithm": "admm", "tol": 0.0, "max_rounds": 8}


def fitted(live, output):
    return FDRSVC.load(live.folder / output / "model.safetensors")


def test_two_plants_train_on_real_processes_with_the_bits_of_one(tmp_path):
    files = write_plants(tmp_path / "data", n_plants=2)
    with Live(tmp_path / "fed", files) as live:
        assert [(one.name, one.is_alive) for one in status(live.folder)] == [
            ("server", True),
            ("plant-0", True),
            ("plant-1", True),
        ]
        end = live.run("run", tol=1e-3)
        family = [one for name in ("server", *files) for one in live.family(name)]
    assert live.killed == []
    assert not any(one.is_alive for one in family)
    assert end["gap"] <= 1e-3
    assert fingerprint(fitted(live, "run")) == fingerprint(in_process(files, tol=1e-3))


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live")
    files = write_plants(folder / "data")
    with Live(folder / "fed", files) as live:
        yield live


@pytest.fixture(scope="module")
def unbroken(live):
    return fingerprint(in_process(live.files, **ROUNDS))


@pytest.mark.federation
@pytest.mark.parametrize("algorithm", ["bundle", "admm", "admm-sc", "subgradient"])
def test_every_method_has_the_bits_of_one_process(live, algorithm, recwarn):
    settings = {"algorithm": algorithm, "max_rounds": 6, "tol": 1e-6}
    live.run(f"parity-{algorithm}", **settings)
    there = in_process(live.files, **settings)
    assert fingerprint(fitted(live, f"parity-{algorithm}")) == fingerprint(there)
    recwarn.clear()


@pytest.mark.federation
def test_a_node_killed_and_started_anew_changes_no_bit(live, unbroken):
    running = live.start("node-killed", deadline=300.0, **ROUNDS)
    running.wait_round(2)
    live.kill("plant-1")
    assert len(running.events("round")) < ROUNDS["max_rounds"]  # in mid-run
    live.restart("plant-1")
    assert running.end(), running.error
    assert fingerprint(fitted(live, "node-killed")) == unbroken
    assert [one["n_answers"] for one in running.events("round")] == [3] * ROUNDS["max_rounds"]


@pytest.mark.federation
def test_a_client_process_killed_in_a_round_changes_no_bit(live, unbroken):
    running = live.start("app-killed", deadline=300.0, **ROUNDS)
    running.wait_round(2)
    client = live.family("plant-2")[0]

    def children():
        with contextlib.suppress(psutil.Error):
            found = psutil.Process(client.pid).children()
            return [one.pid for one in found if "fdrsvm client" in " ".join(one.cmdline())]
        return []

    killed = []

    def kill():
        for pid in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
        return killed or running.outcome or running.error

    wait_until(kill, LONG)
    assert running.end(), running.error
    assert killed
    assert fingerprint(fitted(live, "app-killed")) == unbroken


@pytest.mark.federation
def test_a_server_app_killed_is_resumed_with_equal_bits(live, unbroken):
    running = live.start("server-app-killed", **ROUNDS)
    running.wait_round(3)
    for one in live.family("server"):
        with contextlib.suppress(psutil.Error):
            if "flwr-serverapp" in " ".join(psutil.Process(one.pid).cmdline()):
                os.kill(one.pid, signal.SIGKILL)
    assert running.end() is None
    assert "resume" in str(running.error)
    live.run("server-app-killed", resume=True, **ROUNDS)
    assert fingerprint(fitted(live, "server-app-killed")) == unbroken
    (resumed,) = running.events("resumed")
    assert resumed["round"] >= 3


@pytest.mark.federation
def test_a_server_killed_is_resumed_with_equal_bits(live, unbroken):
    running = live.start("server-killed", **ROUNDS)
    running.wait_round(3)
    live.kill("server")
    assert running.end() is None
    assert isinstance(running.error, FDRSVMError)
    live.restart("server")
    live.wait_online(*live.files)
    live.run("server-killed", resume=True, **ROUNDS)
    assert fingerprint(fitted(live, "server-killed")) == unbroken
    (resumed,) = running.events("resumed")
    assert resumed["round"] >= 3


@pytest.mark.federation
def test_a_silent_node_ends_the_round_at_its_deadline(live):
    live.signal("plant-0", signal.SIGSTOP)
    try:
        running = live.start("silent-join", join_deadline=15.0, **ROUNDS)
        assert running.end() is None
        assert "plant-0" in str(running.error)
    finally:
        live.signal("plant-0", signal.SIGCONT)
    live.wait_online(*live.files)
    running = live.start("silent", deadline=15.0, quorum=2, algorithm="bundle", tol=1e-4)
    running.wait_round(2)
    live.signal("plant-0", signal.SIGSTOP)
    wait_until(lambda: running.events("fault") or running.error, LONG)
    live.signal("plant-0", signal.SIGCONT)
    assert running.end(), running.error
    (fault, *_) = running.events("fault")
    assert fault["client"] == "plant-0"
    assert "no answer within 15 s" in fault["reason"]
    # All are back, so the certificate is of all plants.
    assert fitted(live, "silent").gap_ <= 1e-4


@pytest.mark.federation
def test_a_client_that_raises_is_named_or_dropped(live):
    path = live.files["plant-2"]
    whole = path.read_text()
    for output, policy in (("raises-stop", "stop"), ("raises-drop", "drop")):
        running = live.start(output, on_fault=policy, quorum=2, **ROUNDS)
        try:
            running.wait_round(2)
            path.write_text(whole.replace("healthy", "worn", 1))
            wait_until(lambda: running.events("fault"), LONG)  # noqa: B023
        finally:
            path.write_text(whole)
        done = running.end()
        assert (done is None) == (policy == "stop")
        (fault, *_) = running.events("fault")
        assert fault["client"] == "plant-2"
        assert "must not change during a run" in fault["reason"]
    live.run("after", **ROUNDS)  # the federation survived


@pytest.mark.federation
def test_a_client_with_a_foreign_certificate_does_not_start(live, tmp_path):
    plant = tmp_path / "plant"
    shutil.copytree(live.folder / "plants" / "plant-0", plant)
    init(tmp_path / "other", {"a": None}, port=1)
    shutil.copy(tmp_path / "other" / "server" / "ca.crt", plant / "ca.crt")
    done = client(plant)
    assert done.returncode == 1
    assert "plant-0: the server at" in done.stderr
    assert "ask its operator for this federation's ca.crt" in done.stderr


@pytest.mark.federation
def test_a_client_with_an_unknown_key_is_told_the_remedy(live, tmp_path):
    plant = tmp_path / "plant"
    shutil.copytree(live.folder / "plants" / "plant-0", plant)
    text = (plant / "client.toml").read_text()
    port = live.server.port + 1
    (plant / "client.toml").write_text(text.replace(str(port), str(free_ports(1))))
    init(tmp_path / "other", {"a": None}, port=1)
    shutil.copy(tmp_path / "other" / "plants" / "a" / "node.key", plant / "node.key")
    done = client(plant)
    assert done.returncode == 1
    assert "must stand in the server's folder nodes/ as NAME.pub" in done.stderr
    live.run("after-unknown-key", **ROUNDS)


@pytest.mark.federation
def test_a_client_without_its_data_does_not_start(live, tmp_path):
    plant = tmp_path / "plant"
    shutil.copytree(live.folder / "plants" / "plant-0", plant)
    text = (plant / "client.toml").read_text()
    (plant / "client.toml").write_text(text.replace("plant-0.csv", "nowhere.csv"))
    done = client(plant)
    assert done.returncode == 1
    assert "data: must be a file that the node can read" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.federation
def test_a_plant_that_takes_the_name_of_another_is_found_out(live):
    path = live.folder / "plants" / "plant-1" / "client.toml"
    own = path.read_text()
    path.write_text(own.replace('client-id = "plant-1"', 'client-id = "plant-0"'))
    try:
        restart_gently(live, "plant-1")
        running = live.start("impostor", join_deadline=20.0, **ROUNDS)
        assert running.end() is None
        assert "client 'plant-1'" in str(running.error)
        assert "it calls itself 'plant-0'" in str(running.error)
    finally:
        path.write_text(own)
        restart_gently(live, "plant-1")


def restart_gently(live, name):
    stop([live.family(name)[0]])
    live.restart(name)
    live.wait_online(name)


FOREIGN = {
    "pyproject.toml": """
[project]
name = "foreign"
version = "1.0.0"
description = ""
license = "MIT"
dependencies = []
[tool.flwr.app]
publisher = "somebody"
[tool.flwr.app.components]
serverapp = "foreign.server:app"
clientapp = "foreign.client:app"
[tool.flwr.app.config]
where = ""
""",
    "foreign/__init__.py": "",
    "foreign/client.py": """
from pathlib import Path
from flwr.clientapp import ClientApp
Path(__file__).with_name("was-here").touch()
app = ClientApp()
@app.train()
def train(message, context):
    Path(context.run_config["where"], "was-here").touch()
""",
    "foreign/server.py": """
from pathlib import Path
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import ServerApp
app = ServerApp()
@app.main()
def main(grid, context):
    record = RecordDict({"order": ConfigRecord({"do": "run my code"})})
    messages = [Message(record, node, "train") for node in grid.get_node_ids()]
    replies = grid.send_and_receive(messages, timeout=120)
    lines = [str(dict(reply.content.config_records["fdrsvm"])) for reply in replies]
    Path(context.run_config["where"], "replies").write_text("\\n".join(lines))
""",
}


@pytest.mark.federation
def test_code_of_a_foreign_app_does_not_run_at_a_plant(live, tmp_path):
    for name, text in FOREIGN.items():
        path = tmp_path / "app" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    arguments = ("run", str(tmp_path / "app"), CONNECTION, "--run-config", f'where="{tmp_path}"')
    flwr(live.server, *arguments)
    wait_until(lambda: (tmp_path / "replies").exists(), LONG)
    replies = (tmp_path / "replies").read_text().splitlines()
    assert len(replies) == 3
    assert all("its record has the fields []" in reply for reply in replies)
    assert not (tmp_path / "was-here").exists()
    assert not list((live.folder / "plants").rglob("was-here"))
    assert not list((live.folder / "plants").rglob("foreign*"))


def client(folder):
    command = [sys.executable, "-m", "fdrsvm", "client", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, timeout=LONG, check=False)
