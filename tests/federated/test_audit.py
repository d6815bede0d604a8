"""A run in one process has an audit log: who, when, how much, what was wrong; and no value."""

import hashlib
import json
import re

import numpy as np
import pytest

from fdrsvm import ClientError, LeftOutWarning, NumericalError, QuorumError
from fdrsvm.federated.audit import AuditLog, read_audit, run_audited
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.messages import encode
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.secure.secure_sums import SecureSum
from tests.federated.cases import (
    Absent,
    Recorded,
    Tampered,
    assert_same_bits,
    blobs,
    problems,
    train,
    with_values,
)

SECRET = 73.25001
SETTINGS = {"tol": 0.0, "max_rounds": 4, "run_id": "a-run"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "logs" / "audit.jsonl"


def transport_of(clients):
    return InProcess(problems(clients))


def events(path, kind):
    return [event for event in read_audit(path) if event["event"] == kind]


def sha256(data):
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("method", [Bundle(), ADMM(rho=0.05), Subgradient()])
def test_the_log_tells_who_took_part_and_what_was_sent(method, path):
    clients = blobs(3)
    recorded = Recorded(transport_of(clients))
    result = run_audited(path, recorded, method, **SETTINGS)
    assert_same_bits(result, train(clients, method, **SETTINGS))
    assert [event["client"] for event in events(path, "joined")] == [
        f"client-{g}" for g in range(3)
    ]
    exchanged = [pair for round_ in recorded.rounds for pair in zip(*round_, strict=True)]
    answers = events(path, "answer")
    assert len(answers) == len(exchanged)
    for event, (broadcast, update) in zip(answers, exchanged, strict=True):
        down, up = encode(broadcast), encode(update)
        assert (event["round"], event["client"]) == (broadcast.round, broadcast.client_id)
        assert (event["bytes_down"], event["sha256_down"]) == (len(down), sha256(down))
        assert (event["bytes_up"], event["sha256_up"]) == (len(up), sha256(up))
    rounds = events(path, "round")
    assert [event["round"] for event in rounds] == [1, 2, 3, 4]
    for event, record in zip(rounds, result.history, strict=True):
        assert float(event["gap"]) == record.gap
        assert event["bytes_up"] == record.bytes_up
    (end,) = events(path, "end")
    assert end["sha256_model"] == sha256(result.model.astype("<f8").tobytes())
    assert end["objective"] == result.objective


def test_every_line_is_json_in_the_strict_sense(path):
    run_audited(path, transport_of(blobs(2)), Subgradient(), **SETTINGS)
    AuditLog(path)({"event": "end", "gap": np.inf, "lower_bound": -np.inf, "n": np.nan})

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    lines = path.read_text().splitlines()
    assert len(lines) > 10
    for line in lines:
        assert "time" in json.loads(line, parse_constant=refuse)
    last = list(read_audit(path))[-1]
    assert (last["gap"], last["lower_bound"], last["n"]) == ("inf", "-inf", "nan")


def planted(broken=False):
    """Clients with a number in their data that nothing else gives."""
    clients = blobs(3)
    for client in clients:
        client.X[:, 1] = SECRET
        client.X[0, 2] = -SECRET
    return clients


class Raising:
    """A client whose error shows a value, as errors do."""

    def __init__(self, inner, error):
        self.inner = inner
        self.error = error

    def join(self):
        return self.inner.join()

    def exchange(self, broadcasts, deadline):
        problem = self.inner.problems[1]
        self.inner._by_id[problem.profile.client_id] = None  # answering fails from now on
        answers = list(self.inner.exchange(broadcasts, deadline))
        assert "AttributeError" in answers[1].reason
        answers[1] = type(answers[1])(answers[1].client_id, f"{self.error}: row 3 is {SECRET}")
        return answers


@pytest.mark.parametrize("on_fault", ["stop", "drop"])
@pytest.mark.parametrize(
    ("error", "reason"), [("ValueError", "ValueError"), ("no words", "an error at the client")]
)
def test_no_value_of_the_data_is_in_the_log(on_fault, error, reason, path):
    settings = {**SETTINGS, "on_fault": on_fault, "quorum": 2, "leave_out_after": None}
    run_audited(path, transport_of(planted()), Bundle(), **SETTINGS)
    broken = Raising(transport_of(planted()), error)
    if on_fault == "stop":
        with pytest.raises(ClientError, match=str(SECRET)):
            run_audited(path, broken, Subgradient(), **settings)
        (failed,) = events(path, "failed")
        assert failed["client"] == "client-1"
    else:
        result = run_audited(path, broken, Subgradient(), **settings)
        assert str(SECRET) in result.history[0].faults[0]  # it was there to be logged
    faults = events(path, "fault")
    assert faults
    assert {(event["client"], event["reason"]) for event in faults} == {("client-1", reason)}
    text = path.read_text()
    # Hashes and times may hold any digits.
    digits = re.sub(r'"(sha256_\w+|time|\w*seconds)": ("[^"]*"|[^,}]*)', "", text)
    assert "73.25" not in digits
    assert "7325" not in digits


@pytest.mark.parametrize("on_fault", ["stop", "drop"])
def test_no_value_of_the_data_is_in_the_log_of_a_sum_that_failed(on_fault, path):
    sums = SecureSum(Raising(transport_of(planted()), "ValueError"), on_fault=on_fault)
    with pytest.raises((ClientError, QuorumError), match=str(SECRET)):
        run_audited(path, sums, sums.method(Subgradient()), **SETTINGS, on_fault=on_fault)
    (fault,) = events(path, "fault")
    few = "2 of 3 clients joined, 3 are needed"
    assert fault["reason"] == {"stop": "an error at the client", "drop": few}[on_fault]
    assert "73.25" not in re.sub(r'"(sha256_\w+|time)": "[^"]*"', "", path.read_text())


def test_who_is_left_out_is_in_the_log_since_when(path):
    def lie(answer):
        return with_values(answer, risks=np.full(1, np.nan))

    transport = Tampered(transport_of(blobs(3)), "client-2", lie, rounds=range(1, 9))
    with pytest.warns(LeftOutWarning, match="'client-2' after round 2"):
        run_audited(path, transport, Subgradient(), **SETTINGS, on_fault="drop", leave_out_after=2)
    left_out = [event["left_out"] for event in events(path, "round")]
    assert left_out == [[], ["client-2"], ["client-2"], ["client-2"]]
    assert events(path, "end")[0]["left_out"] == {"client-2": 2}


def test_what_was_rejected_is_there_with_the_rule(path):
    clients = blobs(3)

    def tampered(answer):
        return with_values(answer, risks=np.full(1, np.nan))

    settings = {**SETTINGS, "on_fault": "drop", "quorum": 2}
    transport = Tampered(transport_of(clients), "client-2", tampered, rounds=(2, 3))
    result = run_audited(path, transport, Subgradient(), **settings)
    rejected = events(path, "rejected")
    assert [(event["round"], event["client"]) for event in rejected] == [
        (2, "client-2"),
        (3, "client-2"),
    ]
    for event, record in zip(rejected, result.history[1:3], strict=True):
        assert record.faults == (f"client-2: {event['reason']}",)
        assert "risks" in event["reason"]
    assert [event["faults"] for event in events(path, "round")] == [0, 1, 1, 0]


@pytest.mark.parametrize("values", [np.array(["x"]), "no array", None])
def test_an_answer_that_cannot_be_encoded_is_logged_and_rejected(values, path):
    def tampered(answer):
        changed = with_values(answer)
        changed.values["risks"] = values
        return changed

    transport = Tampered(transport_of(blobs(2)), "client-1", tampered)
    with pytest.raises(ClientError, match="client-1"):
        run_audited(path, transport, Subgradient(), **SETTINGS)
    (event,) = [one for one in events(path, "answer") if one["bytes_up"] is None]
    assert (event["client"], event["sha256_up"]) == ("client-1", None)
    (rejected,) = events(path, "rejected")
    assert rejected["client"] == "client-1"
    (failed,) = events(path, "failed")
    assert failed["error"] == "ClientError"


def test_a_quorum_that_was_not_reached_is_there_with_who_was_missing(path):
    transport = Absent(transport_of(blobs(3)), lambda round_, name: round_ == 2 and name[-1] != "0")
    with pytest.raises(QuorumError):
        run_audited(path, transport, Bundle(), quorum=2, **SETTINGS)
    (failed,) = events(path, "failed")
    assert (failed["error"], failed["n_answers"], failed["quorum"]) == ("QuorumError", 1, 2)
    missing = [event for event in events(path, "fault") if event["is_missing"]]
    assert [(event["client"], event["reason"]) for event in missing] == [
        ("client-1", "away"),
        ("client-2", "away"),
    ]


def test_a_log_that_is_not_there_has_no_events(path):
    assert list(read_audit(path)) == []


def test_any_other_error_is_there_by_its_kind(path):
    def fail(record, model):
        raise NumericalError(f"overflow at {SECRET}")

    with pytest.raises(NumericalError):
        run_audited(path, transport_of(blobs(2)), Bundle(), callbacks=[fail], **SETTINGS)
    (failed,) = events(path, "failed")
    assert failed["error"] == "NumericalError"
    assert str(SECRET) not in path.read_text()


def test_a_resumed_run_adds_to_its_log(path, tmp_path):
    clients = blobs(2)
    for max_rounds in (2, 4):
        transport = transport_of(clients)
        keeper = CheckpointFolder(tmp_path / "checkpoints", transport)
        settings = {**SETTINGS, "max_rounds": max_rounds, "resume": keeper.latest()}
        run_audited(path, transport, ADMM(), checkpoint=keeper, **settings)
    starts = events(path, "start")
    assert [event["resumed_after"] for event in starts] == [0, 2]
    assert [event["resumed_run"] for event in starts] == [None, "a-run"]
    assert [event["round"] for event in events(path, "round")] == [1, 2, 3, 4]
    assert all('"admm"' in event["method"] for event in starts)
