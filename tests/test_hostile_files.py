"""What hostile files and messages may do: be refused, in the package's own words.

The many random ones are in tests/trust/test_trust.py; these are the ones with a reason.
"""

import json
import os
import sys
from dataclasses import asdict

import numpy as np
import pytest

from fdrsvm import CorruptDataError, FDRSVMError, FeatureContract
from fdrsvm.core.codec import pack, unpack
from fdrsvm.deploy.memory_file import MemoryFile
from fdrsvm.deploy.run_folder import RunRecord
from fdrsvm.federated.audit import read_audit
from fdrsvm.federated.checkpoint import (
    CheckpointFolder,
    read_checkpoint,
    state_from_arrays,
    state_to_arrays,
)
from fdrsvm.federated.client_memory import Memory
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.joining import (
    Introduction,
    Task,
    decode_introduction,
    encode_introduction,
)
from fdrsvm.federated.messages import ClientProfile, decode_update, encode_profile
from fdrsvm.federated.methods import ADMM, OneVsRest, OneVsRestProblem
from tests.federated.cases import blobs, problems, train

PROFILE = ClientProfile("north", 5, 2, True, "linf", 0.1, 0.1, 0.1)
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A genuine one, of ADMM, with the clients' memories."""
    folder = tmp_path_factory.mktemp("checkpoints")
    clients = blobs(2, n_samples=8)
    transport = InProcess(problems(clients))
    keeper = CheckpointFolder(folder, transport, keep=1)
    train(clients, ADMM(), transport=transport, checkpoint=keeper, max_rounds=3)
    (path,) = folder.iterdir()
    return path.read_bytes()


def forged(genuine, kind, change):
    """The same container with another header or other arrays, and the right SHA-256."""
    version = {"checkpoint": 2}.get(kind, 1)
    header, arrays = unpack(genuine, kind, version)
    change(header, arrays)
    return pack(kind, version, header, arrays)


CHECKPOINTS = {
    "clients that are a list": lambda header, arrays: header.update(clients=[]),
    "a client that is a number": lambda header, arrays: header.update(clients={"a": 1}),
    "a run without a name": lambda header, arrays: header.pop("run_id"),
    "a name that is a number": lambda header, arrays: header.update(run_id=7),
    "a round that is a truth": lambda header, arrays: header.update(round=True),
    "a round that is text": lambda header, arrays: header.update(round="3"),
    "another round": lambda header, arrays: header.update(round=4),
    "a method nobody knows": lambda header, arrays: header.update(algorithm='{"name":"os"}'),
    "a method of no text": lambda header, arrays: header.update(algorithm=["admm"]),
    "faults of one round more": lambda header, arrays: header["faults"].append([]),
    "faults that are numbers": lambda header, arrays: header["faults"].__setitem__(0, [1]),
    "faults that are text": lambda header, arrays: header["faults"].__setitem__(0, "abc"),
    "a spare field": lambda header, arrays: header.update(more=1),
    "a spare array": lambda header, arrays: arrays.update(spare=np.zeros(3)),
    "no state": lambda header, arrays: arrays.pop("state/w"),
    "a scalar that is a vector": lambda header, arrays: arrays.update({"state/rho": np.ones(2)}),
    "history as scalars": lambda header, arrays: arrays.update({"history/gap": np.array(1.0)}),
    "rounds that are infinite": lambda header, arrays: arrays.update(
        {"history/round": np.full(3, np.inf)}
    ),
    "rounds that are fractions": lambda header, arrays: arrays.update(
        {"history/round": np.array([1.5, 2.5, 3.5])}
    ),
}


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_forged_checkpoint_is_passed_over(name, checkpoint, tmp_path):
    path = tmp_path / "round-000003.safetensors"
    path.write_bytes(forged(checkpoint, "checkpoint", CHECKPOINTS[name]))
    with pytest.raises(CorruptDataError, match=r"^checkpoint: "):
        read_checkpoint(path)
    assert CheckpointFolder(tmp_path).latest() is None
    path.write_bytes(checkpoint)
    assert CheckpointFolder(tmp_path).latest().round == 3


@pytest.mark.skipif(os.name != "posix", reason="about pipes")
def test_folders_and_pipes_among_checkpoints_are_passed_over(checkpoint, tmp_path):
    (tmp_path / "round-000003.safetensors").write_bytes(checkpoint)
    (tmp_path / "round-000008.safetensors").mkdir()
    os.mkfifo(tmp_path / "round-000009.safetensors")
    keeper = CheckpointFolder(tmp_path, keep=1)
    snapshot = keeper.latest()
    assert snapshot.round == 3
    keeper(snapshot)
    assert len(list(tmp_path.iterdir())) == 3


def test_a_damaged_checkpoint_of_an_unknown_run_goes_when_newer_ones_are_there(
    checkpoint, tmp_path
):
    """One that cannot be read could be of this run, so it is not kept for ever."""
    (tmp_path / "round-000001.safetensors").write_bytes(checkpoint[:-9])
    unnamed = forged(checkpoint, "checkpoint", lambda header, arrays: header.pop("run_id"))
    (tmp_path / "round-000002.safetensors").write_bytes(unnamed)
    (tmp_path / "round-000003.safetensors").write_bytes(checkpoint)
    keeper = CheckpointFolder(tmp_path, keep=1)
    keeper(keeper.latest())
    assert [path.name for path in tmp_path.iterdir()] == ["round-000003.safetensors"]


def test_checkpoints_of_other_runs_are_neither_taken_nor_dropped(checkpoint, tmp_path):
    other = forged(checkpoint, "checkpoint", lambda header, arrays: header.update(run_id="b"))
    (tmp_path / "round-000003.safetensors").write_bytes(other)
    (tmp_path / "round-000002.safetensors").write_bytes(other)
    keeper = CheckpointFolder(tmp_path, keep=1)
    assert keeper.latest("a") is None
    assert keeper.latest("b").run_id == "b"


def test_a_state_of_several_models_comes_back_with_as_many():
    clients = blobs(2, n_samples=8)
    several = [OneVsRestProblem((problem, problem, problem)) for problem in problems(clients)]
    states = []
    train(
        clients,
        OneVsRest(ADMM(), 3),
        transport=InProcess(several),
        checkpoint=lambda snapshot: states.append(snapshot.state),
        max_rounds=2,
        tol=0.0,
    )
    stored = state_to_arrays(states[-1])
    back = state_from_arrays(OneVsRest(ADMM(), 3).state_type, stored)
    assert len(back) == 3
    again = state_to_arrays(back)
    assert all(again[name].tobytes() == stored[name].tobytes() for name in stored)


MEMORIES = {
    "no run": lambda header, arrays: header.pop("run_id"),
    "a run that is a number": lambda header, arrays: header.update(run_id=1),
    "no past": lambda header, arrays: header.pop("past"),
    "a past that is a number": lambda header, arrays: header.update(past=3),
    "a past of texts": lambda header, arrays: header.update(past=["1", "2"]),
    "a past of truths": lambda header, arrays: header.update(past=[True]),
    "data that are a number": lambda header, arrays: header.update(data=5),
    "a spare field": lambda header, arrays: header.update(more=1),
    "a spare array": lambda header, arrays: arrays.update(spare=np.zeros(3)),
}


@pytest.mark.parametrize("name", MEMORIES)
def test_a_forged_memory_is_refused(name, tmp_path):
    file = MemoryFile(tmp_path, "run", "digest")
    file.write(Memory("run", {"mu": np.ones(3)}, ((1, {}), (2, {"mu": np.zeros(3)}))))
    assert file.read().run_id == "run"
    file.path.write_bytes(forged(file.path.read_bytes(), "memory", MEMORIES[name]))
    with pytest.raises(CorruptDataError, match=r"^memory: "):
        file.read()


def test_a_memory_that_goes_while_old_ones_are_counted_is_no_error(tmp_path, monkeypatch):
    for number in range(3):
        MemoryFile(tmp_path, f"run {number}", "d").write(Memory("run", {}, ()))
    (tmp_path / "gone.memory").symlink_to(tmp_path / "nowhere")  # listed, and not there
    MemoryFile(tmp_path, "run 3", "d").write(Memory("run 3", {}, ()))
    assert MemoryFile(tmp_path, "run 3", "d").read().run_id == "run 3"
    assert len(list(tmp_path.iterdir())) == 3


def introduction(**changes):
    """The bytes of one with other fields, which its class would never have."""
    header = {
        **asdict(Introduction(PROFILE, 5, ("ok", "worn"), ("a", "b"), "", "1")),
        "profile": encode_profile(PROFILE).hex(),
        **changes,
    }
    return pack("introduction", 1, header, {})


@pytest.mark.parametrize(
    "changes",
    [
        {"feature_names": [[], []]},
        {"feature_names": [{}, "b"]},
        {"feature_names": ["a", "a"]},
        {"feature_names": ["a", ""]},
        {"feature_names": 5},
        {"labels": [[]]},
        {"labels": []},
        {"labels": None},
        {"labels": "ok"},
        {"labels": {"ok": 1, "worn": 2}},
        {"feature_names": "ab"},
        {"n_rows": "5"},
        {"n_rows": 0},
        {"profile": "00"},
        {"profile": 7},
        {"release": None},
        {"more": 1},
    ],
)
def test_a_forged_introduction_is_refused(changes):
    with pytest.raises(CorruptDataError):
        decode_introduction(introduction(**changes))


def test_the_genuine_introduction_is_taken():
    found = decode_introduction(introduction())
    assert encode_introduction(found) == introduction()


@pytest.mark.parametrize("values", [{"round": "1"}, {"round": True}, {"run_id": None}, {"more": 1}])
def test_a_forged_update_is_refused(values):
    header = {"run_id": "a", "round": 1, "client_id": "b", **values}
    with pytest.raises(CorruptDataError, match="its header has the fields"):
        decode_update(pack("update", 1, header, {}))


def test_deep_nesting_is_refused_wherever_json_is_read(tmp_path):
    limit = sys.getrecursionlimit()
    for text in (DEEP, "[" * (limit - 30) + "]" * (limit - 30), '{"a":' * 50_000):
        for read in (Task.from_json, FeatureContract.from_json):
            with pytest.raises(CorruptDataError):
                read(text)
        (tmp_path / "run.json").write_text(text)
        with pytest.raises(CorruptDataError, match=r"run\.json"):
            RunRecord.read(tmp_path)
        log = tmp_path / "audit.jsonl"
        log.write_text(f'{text}\n{{"event": "start"}}\n[]\n')
        assert [event["event"] for event in read_audit(log)] == ["start"]


@pytest.mark.parametrize(
    "change",
    [
        {"missing": []},
        {"low": "x"},
        {"low": [1]},
        {"low": 10**400},
        {"name": None},
        {"name": {}},
        {"unit": 3},
    ],
)
def test_a_hostile_contract_is_refused(change):
    feature = {"name": "pressure", **change}
    content = {
        "kind": "fdrsvm-feature-contract",
        "version": 1,
        "features": [feature],
        "labels": ["a", "b"],
    }
    with pytest.raises(FDRSVMError):
        FeatureContract.from_json(json.dumps(content))
