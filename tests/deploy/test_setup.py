"""Folders, keys, settings, commands and processes, without Flower's processes."""

import contextlib
import os
import signal
import ssl
import stat
import subprocess
import sys
import threading
import time
import tomllib
from dataclasses import replace
from datetime import datetime, timedelta
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from fdrsvm import FDRSVMError, Feature, FeatureContract, InvalidInputError
from fdrsvm.cli import main
from fdrsvm.deploy import engine, founding, processes, runs
from fdrsvm.deploy.engine import (
    check_server,
    environment,
    superlink_command,
    supernode_arguments,
)
from fdrsvm.deploy.founding import init
from fdrsvm.deploy.layout import ClientFolder, ServerFolder, app_config, toml_value
from fdrsvm.deploy.processes import Interrupted, Started, read_list, start, stop, write_list
from fdrsvm.deploy.server_side import read_settings
from fdrsvm.deploy.settings import RunSettings
from fdrsvm.federated.audit import AuditLog, read_audit
from tests.deploy.cases import write_plants
from tests.deploy.live import wait_until


@pytest.fixture
def folder(tmp_path):
    files = write_plants(tmp_path / "data", n_plants=2)
    init(tmp_path / "fed", files, address="plants.example.org", port=4242)
    return tmp_path / "fed"


def test_secret_files_are_for_their_owner_only(folder):
    secret = list(folder.rglob("*.key"))
    assert len(secret) == 1 + 2 * 2  # the authority's own is not kept
    for path in secret:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert b"PRIVATE KEY" in path.read_bytes()


def test_a_plant_gets_no_secret_of_the_server_or_of_another(folder):
    plant = folder / "plants" / "plant-0"
    names = {path.name for path in plant.iterdir()}
    assert names == {
        *("README.md", "client.toml", "ca.crt", "node.key", "node.pub"),
        *("inside.pem", "inside.key"),
    }
    others = folder / "plants" / "plant-1"
    assert (plant / "node.key").read_bytes() != (others / "node.key").read_bytes()
    assert (folder / "server" / "nodes" / "plant-0.pub").read_bytes() == (
        plant / "node.pub"
    ).read_bytes()


def test_the_certificate_is_for_the_servers_address_and_signed_by_the_authority(folder):
    server = folder / "server"
    context = ssl.create_default_context(cafile=str(server / "ca.crt"))
    assert context.cert_store_stats()["x509_ca"] == 1
    decoded = ssl._ssl._test_decode_cert(str(server / "server.pem"))
    assert ("DNS", "plants.example.org") in decoded["subjectAltName"]
    assert ("IP Address", "127.0.0.1") in decoded["subjectAltName"]
    assert decoded["issuer"] != decoded["subject"]


def test_the_folders_say_what_flower_is_started_with(folder):
    client = ClientFolder.read(folder / "plants" / "plant-1")
    assert client.client_id == "plant-1"
    arguments = supernode_arguments(client)
    assert arguments[arguments.index("--superlink") + 1] == "plants.example.org:4242"
    config = arguments[arguments.index("--node-config") + 1]
    assert 'client-id="plant-1"' in config
    assert "server=" not in config
    assert "--insecure" not in arguments
    command = superlink_command(ServerFolder.read(folder / "server"))
    assert "--enable-supernode-auth" in command
    assert "--disable-runtime-dependency-installation" in command
    assert "--insecure" not in command


def test_a_server_for_other_machines_has_to_be_asked_for(folder, monkeypatch, capsys):
    monkeypatch.setattr(os, "execve", lambda *_: pytest.fail("it must not start"))
    monkeypatch.setattr(engine, "register_aside", lambda _: pytest.fail("nor this"))
    assert main(["server", str(folder / "server")]) == 1
    assert "can run any code as this user" in capsys.readouterr().err
    started = []
    monkeypatch.setattr(os, "execve", lambda *command: started.append(command))
    monkeypatch.setattr(engine, "register_aside", started.append)
    assert main(["server", str(folder / "server"), "--open-control"]) == 0
    assert len(started) == 2


class Registry:
    """In place of Flower's commands: nodes by number, each with its key's path and status."""

    def __init__(self, monkeypatch):
        self.nodes = {}
        monkeypatch.setattr(engine, "flwr", self)

    def __call__(self, server, _, verb, *arguments):
        if verb == "list":
            nodes = [{"node-id": n, "status": status} for n, (_, status) in self.nodes.items()]
            return {"nodes": nodes}
        if verb == "unregister":
            key, status = self.nodes[arguments[0]]
            assert status != "unregistered"
            self.nodes[arguments[0]] = (key, "unregistered")
            return {}
        if arguments[0] in [key for key, _ in self.nodes.values()]:
            raise FDRSVMError("public key already in use")
        self.nodes[str(len(self.nodes))] = (arguments[0], "registered")
        return {"node-id": len(self.nodes) - 1}

    @property
    def registered(self):
        return {Path(key).stem for key, status in self.nodes.values() if status == "registered"}


def test_only_keys_in_the_servers_folder_are_let_in(folder, monkeypatch):
    server, registry = ServerFolder.read(folder / "server"), Registry(monkeypatch)
    registry.nodes["0"] = ("stranger.pub", "registered")
    registry.nodes["1"] = ("gone.pub", "unregistered")
    for new in (["plant-0", "plant-1"], []):
        assert engine.register_nodes(server) == new
        assert registry.registered == {"plant-0", "plant-1"}
    (server.path / "nodes" / "plant-1.pub").unlink()
    assert engine.register_nodes(server) == []
    assert registry.registered == {"plant-0"}


def test_a_key_that_is_taken_is_reported_and_the_others_registered(folder, monkeypatch):
    server, registry = ServerFolder.read(folder / "server"), Registry(monkeypatch)
    registry.nodes["0"] = (str(server.path / "nodes" / "plant-0.pub"), "unregistered")
    with pytest.raises(FDRSVMError, match=r"plant-0\.pub \(public key already.*make a new one"):
        engine.register_nodes(server)
    assert registry.registered == {"plant-1"}


def test_keys_are_not_registered_with_a_server_that_has_ended(folder, monkeypatch, capfd):
    monkeypatch.setattr(engine, "is_healthy", lambda _: False)
    monkeypatch.setattr(engine, "register_nodes", lambda _: pytest.fail("with whom?"))
    gone = replace(Started.of("server", os.getpid()), since="long ago")
    engine.register_and_report(ServerFolder.read(folder / "server"), gone)
    assert "the server ended before it answered" in capfd.readouterr().err


def test_whatever_goes_wrong_with_keys_is_reported(folder, monkeypatch, capfd):
    monkeypatch.setattr(engine, "is_healthy", lambda _: True)
    server, own = ServerFolder.read(folder / "server"), Started.of("server", os.getpid())
    for error, words in (
        (FDRSVMError("not registered: a.pub"), "not registered: a.pub"),
        (KeyError("node-id"), "KeyError('node-id')"),
    ):
        monkeypatch.setattr(engine, "register_nodes", mock.Mock(side_effect=error))
        engine.register_and_report(server, own)
        assert words in capfd.readouterr().err


def test_flowers_processes_do_not_look_outside(tmp_path):
    variables = environment(tmp_path)
    assert variables["FLWR_TELEMETRY_ENABLED"] == "0"
    assert variables["FLWR_DISABLE_UPDATE_CHECK"] == "1"
    assert variables["FLWR_HOME"] == str(tmp_path)


def test_the_app_has_every_setting_and_no_code(folder):
    app = folder / "server" / "app"
    assert {path.name for path in app.iterdir()} == {"pyproject.toml", "README.md"}
    config = tomllib.loads((app / "pyproject.toml").read_text())["tool"]["flwr"]["app"]["config"]
    settings = RunSettings.from_config(config)
    assert settings.expected == ("plant-0", "plant-1")
    assert settings.to_config() == config


@pytest.mark.parametrize(
    ("plants", "rule"),
    [
        ({}, "at least one"),
        ({"../escape": None}, "letters, digits"),
        ({"": None}, "letters, digits"),
        ({"a" * 64: None}, "at most 63"),
        ({"a": "nowhere.csv"}, "must be a file"),
    ],
)
def test_wrong_plants_are_refused(plants, rule, tmp_path):
    paths = {name: None if data is None else tmp_path / data for name, data in plants.items()}
    with pytest.raises(InvalidInputError, match=rule):
        init(tmp_path / "fed", paths)
    assert not (tmp_path / "fed").exists()


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"address": "::1"}, "address: must be a host name in ASCII or an IPv4"),
        ({"address": "wärme.example"}, "address: must be a host name in ASCII"),
        ({"address": "a b"}, "address"),
        ({"contract": Path("nowhere.json")}, "contract: must be a file that can be read"),
        ({"contract": Path(__file__)}, "contract"),
    ],
)
def test_what_cannot_work_is_refused_before_keys_are_written(change, rule, tmp_path):
    with pytest.raises(FDRSVMError, match=rule):
        init(tmp_path / "fed", {"a": None}, **change)
    assert not (tmp_path / "fed").exists()


def test_a_setting_that_flower_cannot_read_is_refused(folder):
    path = folder / "plants" / "plant-0" / "client.toml"
    path.write_text(path.read_text().replace('label = "label"', "label = 'a \"b\"'"))
    with pytest.raises(InvalidInputError, match=r"client\.toml: label: must have no quotes"):
        ClientFolder.read(path.parent)


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_a_plant_without_its_authority_is_told_so(content, folder):
    client = ClientFolder.read(folder / "plants" / "plant-0")
    (client.path / "ca.crt").unlink()
    if content:
        (client.path / "ca.crt").write_bytes(content)
    with pytest.raises(FDRSVMError, match=r"ca\.crt cannot be read .*ask the server's operator"):
        check_server(client)


def test_this_machine_is_asked_without_a_proxy(folder, monkeypatch):
    server = ServerFolder.read(folder / "server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.path / "server.pem", server.path / "server.key")
    with HTTPServer(("127.0.0.1", 0), Healthy) as service:
        service.socket = context.wrap_socket(service.socket, server_side=True)
        monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
        thread = threading.Thread(target=service.handle_request)
        thread.start()
        assert engine.is_healthy(replace(server, port=service.server_port), timeout=30.0)
        thread.join()


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()


@contextlib.contextmanager
def answering(server, date=None):
    """A server with this federation's certificate, and a clock that may be wrong; its port."""

    class Dated(Healthy):
        def date_time_string(self, timestamp=None):
            return super().date_time_string(timestamp) if date is None else date

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.path / "server.pem", server.path / "server.key")
    with HTTPServer(("127.0.0.1", 0), Dated) as service:
        service.socket = context.wrap_socket(service.socket, server_side=True)
        thread = threading.Thread(target=service.handle_request)
        thread.start()
        yield service.server_port
        thread.join()


def at(seconds):
    return formatdate(time.time() + seconds, usegmt=True)


@pytest.mark.parametrize(
    ("date", "words"),
    [
        (None, None),
        ("nonsense", None),  # a server that does not tell is not judged
        (-2.0, None),
        (290.0, None),
        (-600.0, r"clock is (599|600|601) s ahead of that of the server .* set the clock"),
        (-8.0, r"clock is (7|8|9) s ahead of that of the server"),
        (600.0, r"clock is (599|600|601) s behind that of the server .* set the clock"),
    ],
)
def test_a_plant_compares_its_clock_with_the_servers(date, words, folder):
    date = at(date) if isinstance(date, float) else date
    client = ClientFolder.read(folder / "plants" / "plant-0")
    with answering(ServerFolder.read(folder / "server"), date) as port:
        near = replace(client, server=f"127.0.0.1:{port}")
        if words is None:
            assert check_server(near, timeout=30.0) is None
        else:
            with pytest.raises(FDRSVMError, match=words):
                check_server(near, timeout=30.0)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        (None, r"is not the one that ca\.crt is for .* ask its operator"),
        (-1, r"is not valid at .* this machine's time .*expired.* set the clock of this machine"),
        (1, r"is not valid at .* this machine's time .*not yet valid.* set the clock"),
    ],
)
def test_a_certificate_that_does_not_hold_is_refused(days, words, folder, tmp_path, monkeypatch):
    """Of another authority, or made by one whose clock is years away."""
    if days is None:
        init(tmp_path / "other", {"a": None}, address="127.0.0.1")
    else:

        class Elsewhen(datetime):
            @classmethod
            def now(cls, tz=None):
                return datetime.now(tz) + timedelta(days=days * 800)

        monkeypatch.setattr(founding, "datetime", Elsewhen)
        init(tmp_path / "other", {"a": None}, address="127.0.0.1")
    client = ClientFolder.read(tmp_path / "other" / "plants" / "a")
    server = ServerFolder.read((folder if days is None else tmp_path / "other") / "server")
    with (
        answering(server) as port,
        pytest.raises(FDRSVMError, match=words),
    ):
        check_server(replace(client, server=f"127.0.0.1:{port}"), timeout=30.0)


def test_clocks_are_held_to_what_flower_allows():
    from flwr.common.constant import SYSTEM_TIME_TOLERANCE, TIMESTAMP_TOLERANCE

    precision = 1.0
    assert SYSTEM_TIME_TOLERANCE - precision == engine._AHEAD
    assert TIMESTAMP_TOLERANCE + SYSTEM_TIME_TOLERANCE - precision == engine._BEHIND


def test_a_contract_is_the_servers_too_and_its_limits_are_the_runs(tmp_path):
    contract = FeatureContract((Feature("a", low=-2.0, high=1.0),), ("x", "y"))
    (tmp_path / "c.json").write_text(contract.to_json())
    init(tmp_path / "fed", {"a": None}, contract=tmp_path / "c.json")
    server = ServerFolder.read(tmp_path / "fed" / "server")
    settings = RunSettings.from_config(app_config(server.app))
    assert settings.task().feature_limit == (2.0,)
    assert settings.read_contract().fingerprint == contract.fingerprint
    (tmp_path / "open.json").write_text(FeatureContract((Feature("a"),), ("x", "y")).to_json())
    init(tmp_path / "open", {"a": None}, contract=tmp_path / "open.json")
    open_ended = RunSettings.from_config(app_config(tmp_path / "open" / "server" / "app"))
    assert open_ended.feature_limit == 0.0
    assert open_ended.read_contract() is not None


def test_a_folder_with_something_in_it_is_refused(folder):
    with pytest.raises(InvalidInputError, match="must be new or empty"):
        init(folder, {"a": None})


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"algorithm": "magic"}, "algorithm"),
        ({"tol": "small"}, "tol: must be of type float"),
        ({"max-rounds": 2.5}, "max-rounds: must be of type int"),
        ({"deadline": 0}, "deadline"),
        ({"join-deadline": -1.0}, "join-deadline"),
        ({"quorum": -1}, "quorum"),
        ({"on-fault": "ignore"}, "on-fault"),
        ({"support": "ball"}, "support"),
        ({"epsilon": "large"}, "epsilon: must be of type float"),
        ({"resume": 1}, "resume: must be of type bool"),
        ({"colour": "red"}, "see 'colour'"),
        ({"client-weights": "mine"}, "client-weights"),
        ({"leave-out-after": -1}, "leave-out-after"),
        ({"leave-out-after": 2.0}, "leave-out-after: must be of type int"),
        ({"feature-limit": True}, "feature-limit: must be of type float"),
    ],
)
def test_wrong_settings_are_refused_by_name(change, rule):
    with pytest.raises(InvalidInputError, match=rule):
        RunSettings.from_config(change)


def test_settings_that_do_not_go_together_are_refused_before_the_run():
    with pytest.raises(FDRSVMError, match="support=None only"):
        RunSettings.from_config({"algorithm": "admm", "support": "unit-box"})


def test_settings_take_whole_numbers_auto_and_infinity():
    settings = RunSettings.from_config({"tol": 1, "kappa": "inf", "tau": 0.5, "epsilon": "auto"})
    assert settings.tol == 1.0
    assert settings.task().kappa == "inf"
    assert settings.estimator().tau == 0.5
    assert RunSettings().estimator().tau is None


@pytest.mark.parametrize("value", [True, False, 3, 1e-5, "text", 'a "quoted" \\ one', "", "ä"])
def test_settings_survive_toml(value):
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


def test_an_audit_log_passes_over_a_line_that_was_cut_off(tmp_path):
    log = AuditLog(tmp_path / "a" / "audit.jsonl")
    log({"event": "start"})
    log({"event": "end", "gap": float("inf")})
    with log.path.open("a") as file:
        file.write('{"event": "rou')
    assert [one["event"] for one in read_audit(log.path)] == ["start", "end"]
    assert list(read_audit(tmp_path / "none")) == []


@pytest.fixture
def flower(monkeypatch):
    """Flower's word on a run, and what it was told, in place of its commands."""
    told = SimpleNamespace(status="running", stopped=[], before=lambda: None)

    def status(server, number):
        told.before()
        return told.status

    monkeypatch.setattr(runs, "run_status", status)
    monkeypatch.setattr(runs, "stop_run", lambda server, number: told.stopped.append(number))
    monkeypatch.setattr(runs, "_ASK_FLOWER", 0.0)
    monkeypatch.setattr(runs, "_LOOK", 0.001)
    return told


def test_a_run_that_ends_while_flower_is_asked_has_ended_well(tmp_path, flower):
    log = AuditLog(tmp_path / "audit.jsonl")
    flower.status = "finished:completed"
    flower.before = lambda: log({"event": "end", "gap": 0.0})
    assert runs.follow(None, "7", tmp_path, 0, None, print)["gap"] == 0.0
    flower.before = lambda: None
    with pytest.raises(FDRSVMError, match="ended without a result"):
        runs.follow(None, "7", tmp_path, 1, None, print)


@pytest.mark.parametrize("status", ["pending", "unknown"])
def test_a_run_that_never_starts_is_given_up(status, tmp_path, flower):
    flower.status = status
    with pytest.raises(FDRSVMError, match=f"does not start: .*{status}"):
        runs.follow(None, "7", tmp_path, 0, None, print)
    assert flower.stopped == ["7"]


def test_settings_that_the_server_refuses_are_in_the_audit_log(tmp_path):
    with pytest.raises(InvalidInputError, match="colour"):
        read_settings({"output": str(tmp_path), "colour": "red"})
    (event,) = read_audit(tmp_path / "audit.jsonl")
    assert event["event"] == "failed"
    assert "colour" in event["reason"]


def test_a_run_is_checked_with_what_stands_in_the_app(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "start_run", lambda *_: pytest.fail("it must not start"))
    server = ServerFolder.read(folder / "server")
    path = server.app / "pyproject.toml"
    path.write_text(path.read_text().replace('algorithm = "bundle"', 'algorithm = "admm"'))
    with pytest.raises(FDRSVMError, match="support=None only"):
        runs.run(server, tmp_path / "run", {"support": "unit-box"}, tell=print)
    path.write_text("no app")
    with pytest.raises(InvalidInputError, match="must be the app"):
        runs.run(server, tmp_path / "run", {}, tell=print)


PARENT = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
print(child.pid, "is my child", flush=True)
child.wait()
"""


def test_processes_are_ended_with_all_that_they_started(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_PATIENCE", 2.0)
    log = tmp_path / "log.txt"
    one = start("parent", [sys.executable, "-c", PARENT], log, os.environ)
    assert one.is_alive
    write_list(tmp_path / "list.json", [one])
    assert read_list(tmp_path / "list.json") == [one]
    wait_until(lambda: "my child" in log.read_text(), 60.0)
    pid = int(log.read_text().split()[0])
    child = Started.of("child", pid)
    assert child.is_alive
    try:
        assert stop([one]) == []
        assert one.pid not in processes._CHILDREN  # waited for: Python warns of those that are not
        assert not one.is_alive
        assert not child.is_alive
    finally:
        if child.is_alive:
            os.kill(pid, signal.SIGKILL)


RAISING = """
import os, signal, sys
from fdrsvm.deploy.processes import Interrupted, signals_raised, uninterrupted
number = int(sys.argv[1])
signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
told = []
try:
    with signals_raised():
        try:
            with uninterrupted():
                os.kill(os.getpid(), number)
                told.append("the block ended")
            told.append("never")
        finally:
            os.kill(os.getpid(), signal.SIGTERM)  # a second one, while all is ended
            with uninterrupted():
                os.kill(os.getpid(), number)
                told.append("so did this")
except Interrupted as error:
    told.append(f"{error} {error.number == number}")
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
print("; ".join(told))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_raised_once_and_never_within_a_block(number):
    command = [sys.executable, "-c", RAISING, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"the block ended; so did this; {number.name} True\n"


def test_a_signal_that_is_ignored_stays_so():
    code = """
import os, signal
from fdrsvm.deploy.processes import signals_raised
signal.signal(signal.SIGHUP, signal.SIG_IGN)
with signals_raised():
    os.kill(os.getpid(), signal.SIGHUP)
print("went on")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "went on\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt, Interrupted(signal.SIGTERM)])
def test_a_run_that_is_interrupted_is_stopped(error, folder, tmp_path, flower, monkeypatch):
    told = []
    monkeypatch.setattr(runs, "start_run", lambda *_: "7")
    monkeypatch.setattr(runs, "follow", mock.Mock(side_effect=error))
    with pytest.raises(KeyboardInterrupt):
        runs.run(ServerFolder.read(folder / "server"), tmp_path / "run", {}, tell=told.append)
    assert flower.stopped == ["7"]
    assert "resume" in told[-1]


def test_a_pid_that_now_belongs_to_another_process_is_left_alone():
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
    try:
        assert stop([Started("old", other.pid, "long ago")]) == []
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_server_that_is_not_there_yet_is_waited_for(tmp_path):
    init(tmp_path / "fed", {"a": None}, port=1)
    client = ClientFolder.read(tmp_path / "fed" / "plants" / "a")
    assert "does not answer yet" in check_server(client)


def test_the_commands_say_what_is_wrong_in_one_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(os, "environ", os.environ.copy())  # commands set Flower's variables
    fed = str(tmp_path / "fed")
    assert main(["federation", "init", fed, "--plant", "a", "--plant", "b", "--port", "4400"]) == 0
    assert capsys.readouterr().out == f"{fed}: server and 2 plants; see {fed}/server\n"
    for arguments, rule in (
        (["federation", "init", fed, "--plant", "a"], "must be new or empty"),
        (["federation", "init", fed + "2", "--plant", "a", "--plant", "a"], "names must differ"),
        (["federation", "run", fed, "--output", fed, "--set", "tol"], "NAME=VALUE"),
        (["federation", "run", fed, "--output", fed, "--set", "tol=x"], "tol: must be of type"),
        (["federation", "resume", fed, "--output", fed + "3"], "must be the folder of a run"),
        (["federation", "run", str(tmp_path), "--output", fed], "federation init"),
        (["federation", "simulate", str(tmp_path), "--output", fed + "4"], "has none"),
        (["client", str(tmp_path)], "federation init"),
        (["client", f"{fed}/plants/a"], "data: must be a file"),
        (["server", str(tmp_path)], "federation init"),
    ):
        assert main(arguments) == 1, arguments
        error = capsys.readouterr().err
        assert rule in error, error
        assert len(error.splitlines()) == 1, error
    assert main(["federation", "status", fed]) == 1
    assert capsys.readouterr().out == "down\n"
    assert main(["federation", "down", fed]) == 0
