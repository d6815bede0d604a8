"""A plant's rows are read once, however many messages come, and again as soon as they change."""

import contextlib
import json
import os
import socket
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from fdrsvm import __version__
from fdrsvm.deploy import client_side
from fdrsvm.deploy import plant as plant_module
from fdrsvm.deploy.client_side import make_problem, respond
from fdrsvm.deploy.plant import read_plant, rows_of
from fdrsvm.federated.joining import Request, Task
from fdrsvm.federated.messages import Broadcast, decode_update, encode
from fdrsvm.federated.methods import Bundle
from fdrsvm.federated.methods.method import describe
from tests.deploy.cases import plant, plant_rows, write_csv

TASK = Task(classes=("healthy", "worn")).to_json()


def asking(number):
    """The request of a round."""
    asked = {"points": np.full((1, 4), 0.1 * number), "prox": np.array(0.0), "price": np.zeros(4)}
    payload = encode(Broadcast("run", number, "a", describe(Bundle()), asked))
    return Request("round", __version__, TASK, payload, number > 1)


@pytest.fixture
def opened(monkeypatch):
    """The names of files as they are opened for reading, by the interpreter's own account."""
    names = []

    def note(event, arguments):
        # Each file that is read is opened once with a mode, and by that once without.
        if names is not None and event == "open" and arguments[1] is None:
            names.append(os.path.basename(str(arguments[0])))

    sys.addaudithook(note)
    yield names
    names = None  # a hook stays for ever


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.setattr(plant_module, "_SETTLED_NS", 0)
    return plant("a", write_csv(tmp_path / "a.csv", *plant_rows(0)), state=str(tmp_path / "state"))


def test_the_file_is_read_once_for_all_messages(own, opened):
    greeting = Request("greeting", __version__, Task().to_json())
    responses = [respond(greeting, own), *(respond(asking(k), own) for k in range(1, 6))]
    assert [one.kind for one in responses] == ["introduction", *["update"] * 5]
    assert opened.count("a.csv") == 1
    assert client_side._make_problem.cache_info().currsize == 1
    assert make_problem(own, rows_of(own), Task()) is make_problem(
        own, rows_of(own), Task.from_json(TASK)
    )


def test_answers_have_the_bits_of_rows_read_anew(own, opened):
    kept = [respond(asking(k), own).payload for k in range(1, 5)]
    fresh = replace(own, state=own.state.with_name("another"))
    for number, payload in enumerate(kept, 1):
        plant_module._KEPT.clear()
        client_side._make_problem.cache_clear()
        assert respond(asking(number), fresh).payload == payload
    assert opened.count("a.csv") == 1 + len(kept)


def test_a_file_written_a_moment_ago_is_judged_by_its_bytes(tmp_path, opened):
    """Written again within one tick of the clock it would look the same."""
    own = plant("a", write_csv(tmp_path / "a.csv", *plant_rows(0)))
    before = rows_of(own)
    looks = os.stat(own.data)
    assert rows_of(own) is before
    assert opened.count("a.csv") == 2
    content = own.data.read_bytes()
    with own.data.open("r+b") as file:
        file.write(content.replace(b"healthy", b"unknown", 1))
    os.utime(own.data, ns=(looks.st_atime_ns, looks.st_mtime_ns))
    after = rows_of(own)
    assert after.labels == ("healthy", "unknown", "worn")
    assert after.digest == read_plant(own).digest != before.digest


def test_a_changed_file_contract_or_setting_is_noticed(own, opened):
    first = respond(asking(1), own)
    assert first.kind == "update"
    whole = own.data.read_bytes()
    own.data.write_bytes(whole.replace(b"healthy", b"worn", 1))
    assert "must not change during a run" in respond(asking(2), own).reason
    own.data.write_bytes(whole)
    assert decode_update(respond(asking(2), own).payload).round == 2
    assert "must not change" in respond(asking(3), replace(own, kappa=9.0)).reason
    own.data.unlink()
    assert "No such file" in respond(asking(3), own).reason
    own.data.write_bytes(whole)
    assert respond(asking(3), own).kind == "update"


def test_a_file_touched_but_not_changed_keeps_its_rows(own):
    rows = rows_of(own)
    own.data.touch()
    assert rows_of(own) is rows
    other = own.data.with_name("b.csv")
    other.write_bytes(own.data.read_bytes())
    os.replace(other, own.data)
    assert rows_of(own) is rows


def test_only_the_last_plants_are_kept(tmp_path):
    path = write_csv(tmp_path / "a.csv", *plant_rows(0))
    for number in range(20):
        rows_of(plant(f"plant {number}", path))
    assert len(plant_module._KEPT) == plant_module._MOST_KEPT


FORKING = """
import json, os, socket, subprocess, sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import flwr.supernode.cli
from flwr.app import Message
from flwr.supercore.task_identity import TaskIdentity

from fdrsvm.deploy import client_app, plant, warm_client
from fdrsvm.deploy.client_side import check_plant, keep_ready
from fdrsvm.deploy.flower import from_records, to_records
from fdrsvm.federated.joining import Request, Response

where, node = sys.argv[1], json.loads(sys.argv[3])
log, main = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND), os.getpid()

def note(event, arguments):
    if event == "open" and arguments[1] is None and str(arguments[0]) == node["data"]:
        os.write(log, b"parent\\n" if os.getpid() == main else b"child\\n")

sys.addaudithook(note)

def one_message():
    # In place of Flower's own command, which fetches the message from a SuperNode.
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
    fields = json.loads(Path(sys.argv[1]).read_text())
    request = Request(**{**fields, "payload": bytes.fromhex(fields["payload"])})
    context = SimpleNamespace(node_config=node, run_config={}, node_id=1)
    reply = client_app.train(Message(to_records(request), 1, "train"), context)
    response = from_records(reply.content, Response)
    told = [response.kind, response.payload.hex(), response.reason]
    Path(sys.argv[1]).write_text(json.dumps(told))

flwr.supernode.cli.flwr_clientapp = one_message
plant._SETTLED_NS = 0
own = plant.plant_from_config(node, {})
check_plant(own)
listener = socket.socket(socket.AF_UNIX)
listener.bind(where); listener.listen(); listener.settimeout(0.05)
supernode = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("ready", flush=True)
warm_client.Nursery(listener, supernode, partial(keep_ready, own)).run()
"""


def test_forked_processes_share_the_rows_of_their_parent(own, tmp_path):
    """The real fork server, app, files and memory; only the message comes from a file."""
    where, log, message = tmp_path / "s", tmp_path / "log", tmp_path / "message"
    log.touch()
    node = {"client-id": "a", "data": str(own.data), "state": str(own.state)}
    command = [sys.executable, "-c", FORKING, str(where), str(log), json.dumps(node)]

    def ask(number):
        fields = vars(asking(number))
        message.write_text(json.dumps({**fields, "payload": fields["payload"].hex()}))
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(60.0)
            link.connect(str(where))
            link.sendall(json.dumps([str(message)]).encode() + b"\n")
            assert link.recv(1)[0] == 0
        return json.loads(message.read_text())

    with contextlib.ExitStack() as stack:
        parent = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stack.callback(parent.terminate)
        assert parent.stdout.readline() == "ready\n"
        answers = [ask(number) for number in range(1, 7)]
        assert log.read_text().split() == ["parent"]  # before the first message
        whole = own.data.read_bytes()
        own.data.write_bytes(whole.replace(b"healthy", b"worn", 1))
        assert "must not change during a run" in ask(7)[2]
        own.data.write_bytes(whole)
        answers += [ask(7), ask(8)]
        reads = log.read_text().split()
        answers += [ask(9), ask(10)]
        assert log.read_text().split() == reads
        parent.terminate()
        assert parent.wait(60) == 0
    assert [kind for kind, _, _ in answers] == ["update"] * 10
    # The change and its end were seen by whoever looked first, and at most once more by the other.
    assert 3 <= len(reads) <= 5
    here = replace(own, state=tmp_path / "here")
    assert [respond(asking(k), here).payload.hex() for k in range(1, 11)] == [
        payload for _, payload, _ in answers
    ]
