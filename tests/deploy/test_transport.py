"""Messages over Flower's grid: the same bits as in one process, and every wait ends."""

import contextlib
import json
import math
import resource
import shutil
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict

from fdrsvm import (
    FDRSVC,
    ClientError,
    CorruptDataError,
    FDRSVMError,
    Feature,
    FeatureContract,
    FedSVC,
    InvalidInputError,
    QuorumError,
)
from fdrsvm.cli import main
from fdrsvm.cli.commands import setting
from fdrsvm.deploy import runs
from fdrsvm.deploy.client_side import introduce, respond
from fdrsvm.deploy.flower import (
    FlowerTransport,
    from_records,
    to_records,
)
from fdrsvm.deploy.layout import write_app
from fdrsvm.deploy.plant import read_plant
from fdrsvm.deploy.server_side import conduct_run
from fdrsvm.deploy.settings import RunSettings, contract_config
from fdrsvm.federated.audit import read_audit
from fdrsvm.federated.checkpoint import CheckpointFolder
from fdrsvm.federated.joining import (
    Introduction,
    Request,
    Response,
    Task,
    decode_introduction,
    encode_introduction,
)
from tests.deploy.cases import (
    APP_CRASHED,
    APP_RAISED,
    LABELS,
    NO_APP,
    Grid,
    fingerprint,
    in_process,
    plant,
    write_csv,
    write_plants,
)


@pytest.fixture
def files(tmp_path):
    return write_plants(tmp_path / "data")


def nodes_of(files, tmp_path, **config):
    return {
        100 + k: plant(name, path, state=str(tmp_path / "state"), **config)
        for k, (name, path) in enumerate(files.items())
    }


def run(grid, tmp_path, *, output="run", hurry=None, **config):
    settings = RunSettings.from_config(
        {"output": str(tmp_path / output), "deadline": 5.0, "join-deadline": 5.0, **config}
    )

    def connect(audit):
        return FlowerTransport(
            grid,
            task=settings.task(),
            expected=settings.expected,
            n_clients=settings.n_clients,
            join_deadline=settings.join_deadline,
            listener=audit,
            poll=0.001,
            look_around=0.01,
            **(hurry or {}),
        )

    return conduct_run(connect, settings, lambda line: None)


def server(tmp_path):
    """As far as the start of a run needs one."""
    write_app(tmp_path / "app", RunSettings().to_config())
    return SimpleNamespace(app=tmp_path / "app")


def events(tmp_path, output="run"):
    lines = (tmp_path / output / "audit.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("algorithm", ["bundle", "admm", "admm-sc", "subgradient"])
def test_the_model_has_the_bits_of_one_process_whatever_order_answers_arrive_in(
    algorithm, seed, files, tmp_path, recwarn
):
    settings = {"max_rounds": 8, "epsilon": 0.01}
    grid = Grid(nodes_of(files, tmp_path), seed=seed)
    run(grid, tmp_path, algorithm=algorithm, epsilon=0.01, **{"max-rounds": 8})
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    there = in_process(files, algorithm=algorithm, **settings)
    assert fingerprint(model) == fingerprint(there)
    assert model.gap_ == there.gap_
    assert model.worst_case_risk_per_client_ == there.worst_case_risk_per_client_
    assert model.feature_names_in_.tolist() == ["sensor 0", "sensor 1", "sensor 2"]
    recwarn.clear()


def test_several_classes_and_unequal_plants_have_the_bits_of_one_process(tmp_path):
    files = write_plants(tmp_path / "data", labels=("a", "b", "c"))
    run(Grid(nodes_of(files, tmp_path)), tmp_path, **{"client-weights": "samples", "tol": 1e-3})
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    there = in_process(files, client_weights="samples", tol=1e-3)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert fingerprint(model) == fingerprint(there)


def test_a_baseline_ends_in_a_model_file_of_its_own_kind(files, tmp_path):
    run(Grid(nodes_of(files, tmp_path)), tmp_path, algorithm="fedavg", tol=0.0, **{"max-rounds": 4})
    model = FedSVC.load(tmp_path / "run" / "model.safetensors")
    assert model.n_iter_ == 4
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("epsilon", ["auto", 0.02])
def test_a_plant_cannot_set_itself_a_larger_radius_than_the_run_allows(files, tmp_path, epsilon):
    def nodes(radius):
        found = nodes_of(files, tmp_path)
        last = max(found)
        found[last] = plant(
            found[last].client_id, found[last].data, state=str(tmp_path / "state"), epsilon=radius
        )
        return found

    with pytest.raises(ClientError, match=r"radius 1000 exceeds .* largest-epsilon") as caught:
        run(Grid(nodes(1000.0)), tmp_path, epsilon=epsilon)
    assert caught.value.client_id == max(files)
    run(Grid(nodes(1e-4)), tmp_path, output="smaller", epsilon=epsilon)
    settings = {"epsilon": epsilon, "largest-epsilon": 0.5}
    run(Grid(nodes(0.5)), tmp_path, output="allowed", **settings)


def test_certificate_and_audit_log_tell_who_took_part_and_no_value(files, tmp_path):
    result = run(Grid(nodes_of(files, tmp_path)), tmp_path)
    certificate = json.loads((tmp_path / "run" / "certificate.json").read_text())
    assert certificate["clients"] == sorted(files)
    assert certificate["gap"] == result.gap <= 1e-4
    log = events(tmp_path)
    assert [log[0]["event"], log[-1]["event"]] == ["start", "end"]
    answers = [one for one in log if one["event"] == "answer"]
    assert len(answers) == 3 * result.n_rounds
    assert {one["client"] for one in answers} == set(files)
    assert all(len(one["sha256_up"]) == 64 and one["bytes_up"] > 0 for one in answers)
    assert log[-1]["model_sha256"] == certificate["model_sha256"]
    text = (tmp_path / "run" / "audit.jsonl").read_text()
    rows = read_plant(plant("plant-0", files["plant-0"]))
    values = {repr(float(value)) for value in rows.X.ravel()}
    telling = {value for value in values if len(value) > 6}  # a short one may be a round's seconds
    assert len(telling) > 20
    assert not any(value in text for value in telling)


def test_a_message_that_got_lost_is_sent_again_and_changes_no_bit(files, tmp_path):
    lost = {2: 101, 3: 100, 5: 102}

    def trouble(node, request):
        return APP_CRASHED if lost.pop(len(grid.pushed) // 4, None) == node else None

    grid = Grid(nodes_of(files, tmp_path), trouble)
    run(grid, tmp_path)
    assert len(lost) < 3
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(in_process(files))
    assert any(one.get("losses") for one in events(tmp_path))


def test_a_node_that_comes_back_with_its_key_is_asked_again(files, tmp_path):
    state = {"silent": 0}

    def trouble(node, request):
        if node == 101 and request.kind == "round" and state["silent"] == 0:
            state["silent"] = 1
            grid.starts[101] = "second"  # it was killed with the message, and started anew
            return "silent"
        return None

    grid = Grid(nodes_of(files, tmp_path), trouble)
    run(grid, tmp_path)
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(in_process(files))


def test_a_node_that_comes_back_without_a_key_is_known_by_its_name(files, tmp_path):
    def trouble(node, request):
        if node == 101 and request.kind == "round":
            grid.nodes[999] = grid.nodes.pop(101)
            grid.starts[999] = "first"
            return 5
        return None

    grid = Grid(nodes_of(files, tmp_path), trouble)
    run(grid, tmp_path)
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(in_process(files))
    assert [one["event"] for one in events(tmp_path)].count("rejoined") == 1


def test_a_silent_node_stops_the_run_at_its_deadline_and_is_named(files, tmp_path):
    grid = Grid(
        nodes_of(files, tmp_path),
        lambda node, request: "silent" if node == 102 and request.kind == "round" else None,
    )
    start = time.monotonic()
    with pytest.raises(QuorumError, match=r"plant-2: no answer within 0.5 s"):
        run(grid, tmp_path, deadline=0.5)
    assert time.monotonic() - start < 30.0
    last = events(tmp_path)[-1]
    assert last["event"] == "failed"
    assert "plant-2" in last["reason"]


def test_with_a_quorum_the_round_ends_at_its_deadline(files, tmp_path):
    rounds = iter(range(100))

    def trouble(node, request):
        return "silent" if node == 102 and request.kind == "round" and next(rounds) < 2 else None

    result = run(Grid(nodes_of(files, tmp_path), trouble), tmp_path, deadline=0.3, quorum=2)
    assert [record.n_answers for record in result.history[:3]] == [2, 2, 3]
    assert "plant-2" in result.history[0].faults[0]
    assert result.gap <= 1e-4  # of all three: the certificate covers the whole federation


def test_who_is_gone_is_not_waited_for_twice(files, tmp_path):
    def trouble(node, request):
        if node == 102 and request.kind == "round":
            grid.nodes.pop(102)
            return 5
        return None

    grid = Grid(nodes_of(files, tmp_path), trouble)
    start = time.monotonic()
    with pytest.raises(InvalidInputError, match="evaluated by every client"):
        run(grid, tmp_path, deadline=1.0, quorum=2, **{"max-rounds": 6, "tol": 0.0})
    assert time.monotonic() - start < 5.0  # one deadline, not six
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert "end" not in [one["event"] for one in events(tmp_path)]
    with pytest.raises(FDRSVMError, match="evaluated by every client"):  # what the command says
        runs.follow(None, "1", tmp_path / "run", 0, None, lambda line: None)


@pytest.mark.parametrize("code", [APP_RAISED, NO_APP])
def test_an_error_of_the_app_is_a_fault_of_that_client(code, files, tmp_path):
    grid = Grid(
        nodes_of(files, tmp_path),
        lambda node, request: code if node == 101 and request.kind == "round" else None,
    )
    with pytest.raises(ClientError, match="client 'plant-1', round 1"):
        run(grid, tmp_path)


def test_a_client_that_raises_is_named_and_the_policy_applied(files, tmp_path):
    nodes = nodes_of(files, tmp_path)
    honest = nodes[101]
    calls = iter(range(100))

    def moody(request):
        if request.kind == "round" and next(calls) == 1:
            return Response("error", "plant-1", reason="InvalidInputError: out of order")
        return respond(request, honest)

    nodes[101] = moody
    with pytest.raises(ClientError, match=r"client 'plant-1', round 2: .*out of order"):
        run(Grid(nodes), tmp_path)
    calls = iter(range(100))
    result = run(Grid(nodes), tmp_path, output="drop", quorum=2, **{"on-fault": "drop"})
    assert result.history[1].faults == ("plant-1: InvalidInputError: out of order",)
    assert result.gap <= 1e-4


def test_a_run_resumes_at_its_last_round_with_equal_bits(files, tmp_path):
    nodes = nodes_of(files, tmp_path)

    def trouble(node, request):
        return APP_RAISED if len(grid.pushed) > 14 else None

    grid = Grid(nodes, trouble)
    with pytest.raises(ClientError):
        run(grid, tmp_path, algorithm="admm", tol=0.0, **{"max-rounds": 9})
    grid = Grid(nodes)
    run(grid, tmp_path, algorithm="admm", tol=0.0, resume=True, **{"max-rounds": 9})
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    there = in_process(files, algorithm="admm", tol=0.0, max_rounds=9)
    assert fingerprint(model) == fingerprint(there)
    resumed = [one for one in events(tmp_path) if one["event"] == "resumed"]
    assert len(resumed) == 1
    assert resumed[0]["round"] >= 2


def test_a_resume_without_a_checkpoint_starts_anew(files, tmp_path):
    result = run(Grid(nodes_of(files, tmp_path)), tmp_path, resume=True)
    assert result.gap <= 1e-4


def test_a_resume_with_damaged_checkpoints_starts_anew(files, tmp_path):
    """Clients are rounds ahead by then; the run gets another name, which they do not know."""
    nodes, settings = nodes_of(files, tmp_path), {"algorithm": "admm", "tol": 0.0}
    grid = Grid(nodes, lambda node, request: APP_RAISED if len(grid.pushed) > 24 else None)
    with pytest.raises(ClientError):
        run(grid, tmp_path, **settings, **{"max-rounds": 9})
    checkpoints = list((tmp_path / "run" / "checkpoints").glob("round-*"))
    assert max(int(path.stem.partition("-")[2]) for path in checkpoints) > 4
    for path in checkpoints:
        path.write_bytes(path.read_bytes()[:-1])
    before = json.loads((tmp_path / "run" / "run.json").read_text())["run"]
    result = run(Grid(nodes), tmp_path, **settings, resume=True, **{"max-rounds": 9})
    assert result.n_rounds == 9
    assert before != json.loads((tmp_path / "run" / "run.json").read_text())["run"]
    there = in_process(files, **settings, max_rounds=9)
    assert fingerprint(FDRSVC.load(tmp_path / "run" / "model.safetensors")) == fingerprint(there)


def cut_off(files, tmp_path, **config):
    """A run that ended after its first rounds, and a grid to go on with."""
    nodes = nodes_of(files, tmp_path)
    grid = Grid(nodes, lambda node, request: APP_RAISED if len(grid.pushed) > 9 else None)
    with pytest.raises(ClientError):
        run(grid, tmp_path, **config)
    return Grid(nodes)


@pytest.mark.parametrize(
    ("setting", "value"), [("kappa", 0.1), ("loss", "squared-hinge"), ("epsilon", 0.5), ("seed", 1)]
)
def test_a_run_is_not_resumed_with_another_problem(setting, value, files, tmp_path):
    grid = cut_off(files, tmp_path)
    with pytest.raises(FDRSVMError, match=f"{setting}: must be .* as the run began"):
        run(grid, tmp_path, resume=True, **{setting: value})
    assert not grid.pushed
    assert not (tmp_path / "run" / "certificate.json").exists()


def test_a_resumed_run_may_go_on_longer(files, tmp_path):
    grid = cut_off(files, tmp_path, kappa=math.inf)
    result = run(grid, tmp_path, resume=True, kappa=math.inf, tol=1e-6, **{"max-rounds": 100})
    assert result.gap <= 1e-6
    there = in_process(files, kappa=math.inf, tol=1e-6, max_rounds=100)
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(there)


def test_the_command_resumes_with_the_settings_of_the_run(files, tmp_path, monkeypatch):
    cut_off(files, tmp_path, kappa=3.0, clients="plant-0,plant-1,plant-2")
    started = []
    monkeypatch.setattr(runs, "start_run", lambda server, config: started.append(config) or "1")
    monkeypatch.setattr(runs, "follow", lambda *_: {})
    runs.run(server(tmp_path), tmp_path / "run", {"tol": 1e-6}, resume=True, tell=lambda line: None)
    (config,) = started
    assert config["kappa"] == 3.0
    assert config["clients"] == "plant-0,plant-1,plant-2"
    assert (config["tol"], config["resume"]) == (1e-6, True)
    with pytest.raises(InvalidInputError, match=r"kappa: must be 3\.0"):
        runs.run(
            server(tmp_path), tmp_path / "run", {"kappa": 0.5}, resume=True, tell=lambda line: None
        )
    assert len(started) == 1


def test_a_run_whose_settings_are_not_known_is_not_resumed(files, tmp_path):
    grid = cut_off(files, tmp_path)
    (tmp_path / "run" / "run.json").unlink()
    with pytest.raises(InvalidInputError, match=r"no run\.json"):
        run(grid, tmp_path, resume=True)


def test_a_client_answers_for_one_problem_only_in_a_run(files, tmp_path):
    grid = cut_off(files, tmp_path)
    grid.nodes[101] = plant("plant-1", files["plant-1"], state=str(tmp_path / "state"), kappa=9.0)
    with pytest.raises(
        InvalidInputError, match="must have the same clients, with the same profiles"
    ):
        run(grid, tmp_path, resume=True)


@pytest.mark.parametrize("labels", [("a", "b"), ("a", "b", "c")])
def test_a_client_that_lost_its_duals_does_not_go_on_as_if_nothing_were(labels, tmp_path):
    files = write_plants(tmp_path / "data", labels=labels)

    def trouble(node, request):
        if len(grid.pushed) == 12:
            for path in (tmp_path / "state").rglob("*.memory"):
                path.unlink()

    grid = Grid(nodes_of(files, tmp_path), trouble)
    with pytest.raises(ClientError, match=r"memory: must be there.*start a new run"):
        run(grid, tmp_path, algorithm="admm", tol=0.0, **{"max-rounds": 9})


def test_a_client_without_memory_does_not_resume_with_others(files, tmp_path):
    grid = cut_off(files, tmp_path, algorithm="admm", tol=0.0)
    shutil.rmtree(tmp_path / "state")
    with pytest.raises(ClientError, match="memory: must be there"):
        run(grid, tmp_path, algorithm="admm", tol=0.0, resume=True)


def test_a_client_that_missed_the_first_round_may_start_later(files, tmp_path, recwarn):
    rounds = iter(range(100))

    def trouble(node, request):
        return "silent" if node == 102 and request.kind == "round" and next(rounds) < 1 else None

    grid = Grid(nodes_of(files, tmp_path), trouble)
    config = {"max-rounds": 4, "deadline": 0.3, "quorum": 2}
    result = run(grid, tmp_path, algorithm="admm", tol=0.0, **config)
    assert [record.n_answers for record in result.history] == [2, 3, 3, 3]
    recwarn.clear()


def test_a_message_that_comes_late_and_twice_takes_nothing_back(files, tmp_path):
    """Of every message a twin arrives when the client is two rounds further."""
    nodes, seen = nodes_of(files, tmp_path), []

    def trouble(node, request):
        if node == 101 and request.kind == "round":
            if len(seen) >= 2:
                assert respond(seen[-2], nodes[node]).kind == "update"
            seen.append(request)

    run(Grid(nodes, trouble), tmp_path, algorithm="admm", tol=0.0, **{"max-rounds": 9})
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    there = in_process(files, algorithm="admm", tol=0.0, max_rounds=9)
    assert fingerprint(model) == fingerprint(there)


def test_a_new_run_does_not_touch_the_folder_of_another(files, tmp_path):
    nodes = nodes_of(files, tmp_path)
    run(Grid(nodes), tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.*")}
    with pytest.raises(InvalidInputError, match="must have no run in it yet"):
        run(Grid(nodes), tmp_path, kappa=0.5)
    assert before == {path: path.read_bytes() for path in (tmp_path / "run").rglob("*.*")}


def test_two_runs_do_not_write_into_one_folder(files, tmp_path):
    nodes, errors = nodes_of(files, tmp_path), []

    def trouble(node, request):
        if len(grid.pushed) == 5:
            for resume in (False, True):
                with pytest.raises(InvalidInputError, match="a run which goes on") as caught:
                    run(Grid(nodes), tmp_path, resume=resume)
                errors.append(caught.value)
            with pytest.raises(InvalidInputError, match="a run which goes on"):
                runs.run(
                    server(tmp_path), tmp_path / "run", {}, resume=True, tell=lambda line: None
                )

    grid = Grid(nodes, trouble)
    run(grid, tmp_path)
    assert len(errors) == 2
    assert [one["event"] for one in events(tmp_path)].count("start") == 1


def test_checkpoints_of_another_run_are_neither_dropped_nor_resumed(tmp_path):
    files = write_plants(tmp_path / "data")
    run(Grid(nodes_of(files, tmp_path)), tmp_path, output="long")
    shutil.copytree(tmp_path / "long" / "checkpoints", tmp_path / "both")
    old = {path.name for path in (tmp_path / "both").iterdir()}
    run(Grid(nodes_of(files, tmp_path)), tmp_path, output="short", **{"max-rounds": 3, "tol": 0.5})
    snapshot = CheckpointFolder(tmp_path / "short" / "checkpoints").latest()
    both = CheckpointFolder(tmp_path / "both")
    for number in range(1, snapshot.round + 1):
        both(replace(snapshot, round=number))
    assert both.latest(snapshot.run_id).run_id == snapshot.run_id
    assert both.latest().run_id != snapshot.run_id
    names = {path.name for path in (tmp_path / "both").iterdir()}
    assert old <= names
    assert len(names - old) == min(snapshot.round, 2)


def test_two_nodes_with_one_client_id_are_both_named(files, tmp_path):
    nodes = nodes_of(files, tmp_path)
    nodes[555] = nodes[100]
    with pytest.raises(InvalidInputError, match=r"'plant-0'.*nodes 100 and 555.*stop one"):
        run(Grid(nodes), tmp_path)


def test_a_node_cannot_speak_for_another_plant(files, tmp_path):
    grid = Grid(nodes_of(files, tmp_path))
    grid.key_names = {100: "plant-0", 101: "plant-0", 102: "plant-2"}
    with pytest.raises(ClientError, match="'plant-0', round 0: it calls itself 'plant-1'"):
        run(grid, tmp_path)


@pytest.mark.parametrize("expected", ["", "plant-0,plant-1,plant-2"])
def test_a_node_that_cannot_even_load_the_app_is_named_by_its_key(expected, files, tmp_path):
    grid = Grid(nodes_of(files, tmp_path), lambda node, _: NO_APP if node == 101 else None)
    grid.key_names = {100: "plant-0", 101: "plant-1", 102: "plant-2"}
    with pytest.raises(ClientError, match="'plant-1', round 0: its node could not load the app"):
        run(grid, tmp_path, clients=expected)


def test_an_error_under_another_name_is_that_of_the_keys_owner(files, tmp_path):
    nodes = nodes_of(files, tmp_path)
    nodes[101] = lambda request: Response("error", "plant-2", reason="no data today")
    grid = Grid(nodes)
    grid.key_names = {100: "plant-0", 101: "plant-1", 102: "plant-2"}
    with pytest.raises(ClientError, match="'plant-1', round 0: no data today"):
        run(grid, tmp_path)


def test_why_a_node_without_a_name_was_refused_is_told_at_the_deadline(files, tmp_path):
    grid = Grid(nodes_of(files, tmp_path), lambda node, _: NO_APP if node == 101 else None)
    with pytest.raises(QuorumError, match=r"plant-1: not conn.*; node 101: its node could not"):
        run(grid, tmp_path, clients="plant-0,plant-1,plant-2", **{"join-deadline": 0.3})


def test_missing_clients_are_named_at_the_deadline(files, tmp_path):
    grid = Grid(nodes_of(files, tmp_path))
    with pytest.raises(QuorumError, match=r"3 valid answers, 4 are needed \(plant-9: not conn"):
        run(grid, tmp_path, clients="plant-0,plant-1,plant-2,plant-9", **{"join-deadline": 0.3})


def test_too_few_nodes_are_counted_at_the_deadline(files, tmp_path):
    with pytest.raises(QuorumError, match="2 more nodes"):
        run(Grid(nodes_of(files, tmp_path)), tmp_path, **{"join-deadline": 0.3, "n-clients": 5})


def test_without_nodes_the_run_ends_at_the_deadline(tmp_path):
    with pytest.raises(QuorumError, match="0 valid answers, 1 are needed"):
        run(Grid({}), tmp_path, **{"join-deadline": 0.2})


def test_clients_that_nobody_asked_for_are_left_out(files, tmp_path):
    result = run(Grid(nodes_of(files, tmp_path)), tmp_path, clients="plant-0,plant-2")
    assert result.federation.client_ids == ("plant-0", "plant-2")
    refused = [one for one in events(tmp_path) if one["event"] == "refused"]
    assert [one["client"] for one in refused] == ["plant-1"]


def test_a_client_of_another_release_is_named_with_the_remedy(files, tmp_path):
    nodes = nodes_of(files, tmp_path)
    honest = nodes[101]
    nodes[101] = lambda request: respond(
        Request(request.kind, "9.9", request.task, request.payload), honest
    )
    with pytest.raises(ClientError, match=r"'plant-1'.*one release.*the server has 9.9"):
        run(Grid(nodes), tmp_path)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"n_features": 4}, "'plant-1'.*has 4 features and 'plant-0' has 3"),
        ({"names": ["sensor 0", "sensor 2", "sensor 1"]}, "'plant-1'.*column 1 is 'sensor 2'"),
    ],
)
def test_a_client_whose_columns_differ_is_named(change, reason, files, tmp_path):
    names = change.pop("names", None)
    from tests.deploy.cases import plant_rows

    write_csv(files["plant-1"], *plant_rows(1, **change), names=names)
    with pytest.raises(ClientError, match=reason):
        run(Grid(nodes_of(files, tmp_path)), tmp_path)


def test_a_data_file_that_went_missing_is_named(files, tmp_path):
    files["plant-1"].unlink()
    words = r"'plant-1'.*data: must be a file that the node can read; No such file or directory$"
    with pytest.raises(ClientError, match=words) as caught:
        run(Grid(nodes_of(files, tmp_path)), tmp_path)
    assert str(tmp_path / "data") not in str(caught.value)


def test_data_that_change_during_a_run_are_a_fault(files, tmp_path):
    def trouble(node, request):
        if len(grid.pushed) == 10:
            files["plant-2"].write_text(files["plant-2"].read_text().replace("healthy", "worn", 1))
        return

    grid = Grid(nodes_of(files, tmp_path), trouble)
    with pytest.raises(ClientError, match="'plant-2', round 3: data: must not change during a run"):
        run(grid, tmp_path)


def test_records_survive_and_others_are_refused():
    request = Request("round", "1.0", Task().to_json(), b"\x00\xff")
    assert from_records(to_records(request), Request) == request
    response = Response("update", "plant", b"\x01", "")
    assert from_records(to_records(response), Response) == response
    for content in (
        {},
        {"fdrsvm": ConfigRecord({"kind": "round"})},
        {"fdrsvm": ConfigRecord({**vars(request), "kind": "order"})},
        {"fdrsvm": ConfigRecord({**vars(request), "payload": "text"})},
        {"other": ConfigRecord(dict(vars(request)))},
    ):
        with pytest.raises(CorruptDataError, match="request"):
            from_records(RecordDict(content), Request)


def test_introductions_survive_and_wrong_ones_are_refused(files):
    own = plant("plant-0", files["plant-0"])
    introduction = introduce(own, read_plant(own), Task())
    assert decode_introduction(encode_introduction(introduction)) == introduction
    for change in ({"n_rows": 0}, {"labels": ()}, {"labels": (1.5,)}, {"feature_names": ("a",)}):
        wrong = Introduction(**{**vars(introduction), **change})
        with pytest.raises(CorruptDataError, match="introduction"):
            decode_introduction(encode_introduction(wrong))


def test_a_task_of_another_release_is_refused():
    with pytest.raises(CorruptDataError, match="another release"):
        Task.from_json('{"epsilon": 1.0, "shape": "cube"}')


# --- limits, sizes, replies that come twice ---


def test_a_plant_beyond_the_agreed_limit_does_not_join_and_tells_no_value(files, tmp_path):
    X, y = np.full((4, 3), 0.5), ["healthy", "worn", "healthy", "worn"]
    X[2, 1] = 7.3125
    write_csv(files["plant-1"], X, y)
    with pytest.raises(ClientError, match="agreed feature-limit 1 in size") as caught:
        run(Grid(nodes_of(files, tmp_path)), tmp_path, **{"feature-limit": 1.0})
    assert caught.value.client_id == "plant-1"
    assert "column 'sensor 1' may not exceed" in str(caught.value)
    assert "1 of 4 rows break that, the first is row 4" in str(caught.value)
    assert "7.3" not in str(caught.value)


def test_limits_change_no_bit_of_an_honest_run(files, tmp_path):
    run(Grid(nodes_of(files, tmp_path)), tmp_path, **{"feature-limit": 1.0})
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(in_process(files))


def test_the_limit_follows_from_the_unit_box():
    assert RunSettings().limits(2).are_finite is False
    assert RunSettings(support="unit-box").limits(2).features.tolist() == [1.0, 1.0]
    assert RunSettings(support="unit-box", feature_limit=0.5).task().feature_limit == 0.5
    assert RunSettings(feature_limit=3.0).task().feature_limit == 3.0
    baseline = RunSettings(algorithm="fedavg", feature_limit=3.0)
    assert baseline.task().feature_limit == 3.0
    assert baseline.limits(1).features.tolist() == [3.0]
    with pytest.raises(InvalidInputError, match="feature-limit"):
        RunSettings.from_config({"feature-limit": -1.0})


class Changed(Grid):
    """One node's replies in a round are changed, or come twice, on their way."""

    def __init__(self, nodes, change):
        super().__init__(nodes)
        self.change = change

    def pull_messages(self, message_ids):
        return [one for reply in super().pull_messages(message_ids) for one in self.change(reply)]


def test_a_reply_that_comes_twice_counts_once(files, tmp_path):
    run(Changed(nodes_of(files, tmp_path), lambda reply: [reply, reply]), tmp_path)
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(in_process(files))


def answers_changed(change):
    """A change of plant-1's updates from the third on; the rest passes."""
    seen = []

    def changed(reply):
        if reply.has_error():
            return [reply]
        response = from_records(reply.content, Response)
        if response.kind != "update" or response.client_id != "plant-1":
            return [reply]
        seen.append(response.payload)
        if len(seen) == 3:
            payload = change(seen)
            reply.content = to_records(replace(response, payload=payload))
        return [reply]

    return changed


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda seen: seen[-2], "of round 2, not 3"),
        (lambda seen: seen[-1] + bytes(2 << 20), "bytes, at most"),
        (lambda seen: seen[-1][:-3], "update"),
    ],
    ids=["replay", "oversized", "torn"],
)
def test_a_replayed_or_oversized_or_torn_update_is_one_plants_fault(
    change, reason, files, tmp_path
):
    grid = Changed(nodes_of(files, tmp_path), answers_changed(change))
    settings = {"on-fault": "drop", "quorum": 2}
    result = run(grid, tmp_path, **settings)
    assert [record.n_answers for record in result.history[:4]] == [3, 3, 2, 3]
    (fault,) = result.history[2].faults
    assert fault.startswith("plant-1: ")
    assert reason in fault
    # An answer that nobody can read is an answer: too many of them, not only in a row, count.
    assert result.history[2].faulty == ("plant-1",)
    assert result.history[2].absent == ()


# --- limits of the contract ---

SENSORS = FeatureContract(
    features=(
        Feature("sensor 0", low=0.0, high=1.0),
        Feature("sensor 1", low=-4.0, high=3.0),
        Feature("sensor 2", low=0.0, high=25.0),
    ),
    labels=LABELS,
)


@pytest.fixture
def contract(tmp_path):
    path = tmp_path / "contract.json"
    path.write_text(SENSORS.to_json())
    return str(path)


def test_limits_of_the_contract_are_one_per_feature_for_plants_and_server(contract):
    settings = RunSettings.from_config({"feature-limit": "contract", "contract": contract})
    assert settings.task().feature_limit == (1.0, 4.0, 25.0)  # max(|low|, |high|)
    assert settings.limits(3).features.tolist() == [1.0, 4.0, 25.0]
    assert Task.from_json(settings.task().to_json()) == settings.task()
    box = RunSettings(support="contract", contract=contract)
    assert box.task().feature_limit == (1.0, 4.0, 25.0)
    both = RunSettings(support="contract", contract=contract, feature_limit=3.0)
    assert both.task().feature_limit == (1.0, 3.0, 3.0)
    baseline = RunSettings(algorithm="fedavg", feature_limit="contract", contract=contract)
    assert baseline.task().feature_limit == (1.0, 4.0, 25.0)
    unused = RunSettings(contract=contract)
    assert unused.task().feature_limit == 0.0


def test_limits_may_be_numbers_with_commas(contract):
    for text in ("0.5, 2,3", "[0.5, 2.0, 3]"):
        assert RunSettings(feature_limit=text).task().feature_limit == (0.5, 2.0, 3.0)
    settings = RunSettings.from_config(dict([setting("feature-limit=[0.5, 2, 3]")]))
    assert settings.task().feature_limit == (0.5, 2.0, 3.0)
    boxed = RunSettings(feature_limit="0.5,2,3", support="unit-box")
    assert boxed.task().feature_limit == (0.5, 1.0, 1.0)
    with pytest.raises(InvalidInputError, match="2 and 3"):
        RunSettings(feature_limit="1,2", support="contract", contract=contract).task()
    for wrong in ("many", "1,-2", "1,,2", "inf,1", ""):
        with pytest.raises(InvalidInputError, match="feature-limit: must be a number"):
            RunSettings.from_config({"feature-limit": wrong})


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({"support": "contract"}, "since support is its limits; none is named"),
        ({"feature-limit": "contract"}, "since feature-limit is its limits; none is named"),
        ({"feature-limit": "contract", "contract": "nowhere"}, "must be a file that can be read"),
    ],
)
def test_limits_of_a_contract_that_the_server_has_not_are_refused(config, rule, tmp_path):
    with pytest.raises(InvalidInputError, match=rule):
        runs.run(server(tmp_path), tmp_path / "run", config, tell=print)


def test_a_contract_without_all_limits_has_none_to_give(tmp_path):
    open_ended = FeatureContract((Feature("a", low=0.0), Feature("b")), LABELS)
    path = tmp_path / "contract.json"
    path.write_text(open_ended.to_json())
    with pytest.raises(InvalidInputError, match="'a' lacks one"):
        RunSettings(feature_limit="contract", contract=str(path)).task()
    assert contract_config(path) == {"contract": str(path)}


@pytest.mark.parametrize("algorithm", ["bundle", "subgradient"])
def test_a_run_within_the_contract_has_the_bits_of_one_without(
    algorithm, files, tmp_path, contract, recwarn
):
    config = {"contract": contract, "feature-limit": "contract", "algorithm": algorithm}
    nodes = nodes_of(files, tmp_path, contract=contract)
    run(Grid(nodes), tmp_path, **config, **{"max-rounds": 12})
    model = FDRSVC.load(tmp_path / "run" / "model.safetensors")
    there = in_process(files, algorithm=algorithm, max_rounds=12)
    assert fingerprint(model) == fingerprint(there)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert json.loads(record["task"])["feature_limit"] == [1.0, 4.0, 25.0]
    recwarn.clear()


def test_a_limit_holds_for_its_own_feature(files, tmp_path):
    X, y = np.full((4, 3), 0.5), ["healthy", "worn", "healthy", "worn"]
    X[3] = [0.5, 3.5, 20.0]
    write_csv(files["plant-1"], X, y)
    nodes = nodes_of(files, tmp_path)
    run(Grid(nodes), tmp_path, tol=0.1, **{"feature-limit": "1,4,25"})
    with pytest.raises(ClientError, match=r"column 'sensor 1' may not exceed .* 3 in size"):
        run(Grid(nodes), tmp_path, output="narrow", **{"feature-limit": "1,3,25"})
    with pytest.raises(ClientError, match="one for each of the plant's 3 features"):
        run(Grid(nodes), tmp_path, output="short", **{"feature-limit": "1,3"})


def test_plants_must_have_the_servers_contract(files, tmp_path, contract):
    config = {"contract": contract, "feature-limit": "contract"}
    with pytest.raises(ClientError, match=r"'plant-0'.*its data contract is missing"):
        run(Grid(nodes_of(files, tmp_path)), tmp_path, **config)
    other = tmp_path / "other.json"
    other.write_text(SENSORS.to_json().replace("25.0", "26.0"))
    nodes = nodes_of(files, tmp_path, contract=str(other))
    with pytest.raises(ClientError, match=r"'plant-0'.*its data contract is not the server's"):
        run(Grid(nodes), tmp_path, output="other", **config)


# --- what clients say of themselves ---


@pytest.mark.parametrize(
    ("change", "words", "config"),
    [
        ({"floor": 1e6}, "its floor is 1000000.0; from its radius .* follows 0.0025", {}),
        ({"floor": 0.0}, "its floor is 0.0; .* follows 0.0025", {}),
        ({"floor": 0.0025}, "its floor is 0.0025; .* follows 0.0$", {"support": "unit-box"}),
        ({"epsilon": 0.5, "floor": 0.5}, "its radius 0.5 exceeds 0.0025", {}),
        ({"epsilon": 0.5, "floor": 0.5}, "its radius 0.5 exceeds 0.01", {"epsilon": 0.01}),
        (
            {"epsilon": 0.5, "floor": 0.5},
            "its radius 0.5 exceeds 0.01",
            {"algorithm": "fedavg", "penalty": 0.01},
        ),
        ({"norm": "l2"}, "its norm is l2, the run's linf", {}),
        ({"groups": (2, 1)}, "its norm is of groups of features, the run.s is not", {}),
        ({"fit_intercept": False}, "fit-intercept is False there and True in the run", {}),
        ({"n_samples": 41}, "41 samples in 40 rows", {}),
        ({"n_samples": 39}, "39 samples in 40 rows", {"algorithm": "fedavg"}),
    ],
)
def test_a_profile_that_does_not_follow_from_the_task_is_refused_by_name(
    change, words, config, files, tmp_path
):
    nodes = nodes_of(files, tmp_path)
    honest = nodes[101]

    def liar(request):
        response = respond(request, honest)
        if request.kind != "greeting":
            return response
        told = decode_introduction(response.payload)
        changed = replace(told, profile=replace(told.profile, **change))
        return replace(response, payload=encode_introduction(changed))

    with pytest.raises(ClientError, match=words) as caught:
        run(Grid({**nodes, 101: liar}), tmp_path, **config)
    assert caught.value.client_id == "plant-1"
    assert events(tmp_path)[-1]["event"] == "failed"


# --- full disks ---


@contextlib.contextmanager
def files_of_at_most(n_bytes):
    """Longer ones cannot be written, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_plant_that_cannot_write_says_so_without_its_path(files, tmp_path, caplog):
    nodes = nodes_of(files, tmp_path)
    honest, calls = nodes[101], iter(range(100))

    def full(request):
        if request.kind == "greeting" or next(calls) < 2:
            return respond(request, honest)
        with files_of_at_most(64):
            return respond(request, honest)

    words = r"'plant-1', round 3: memory: must be written .*; File too large; make room there"
    with pytest.raises(ClientError, match=words) as caught:
        run(Grid({**nodes, 101: full}), tmp_path)
    assert str(tmp_path) not in str(caught.value)
    assert str(honest.memory_folder) in caplog.text
    result = run(Grid(nodes), tmp_path, resume=True)  # with room again
    assert result.gap <= 1e-4


def test_a_server_that_cannot_write_ends_the_run_with_the_reason(files, tmp_path):
    with contextlib.ExitStack() as stack:

        def trouble(node, request):
            if len(grid.pushed) == 12:  # in round 3
                stack.enter_context(files_of_at_most(4096))

        grid = Grid(nodes_of(files, tmp_path), trouble)
        with pytest.raises(OSError, match="File too large"):
            run(grid, tmp_path)
    assert "failed" not in [one["event"] for one in read_audit(tmp_path / "run" / "audit.jsonl")]
    words = "the server cannot write .*: File too large; make room there, then .* resume"
    with pytest.raises(FDRSVMError, match=words):  # what the command says
        runs.follow(None, "1", tmp_path / "run", 0, None, lambda line: None)
    result = run(Grid(grid.nodes), tmp_path, resume=True)
    assert result.gap <= 1e-4
    assert not (tmp_path / "run" / "failure.txt").exists()


def test_a_disk_that_is_full_at_the_start_is_told_before_anything_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "start_run", lambda *_: pytest.fail("it must not start"))
    made = server(tmp_path)
    with files_of_at_most(64), pytest.raises(OSError, match="File too large") as caught:
        runs.run(made, tmp_path / "run", {}, tell=print)
    assert caught.value.filename == str(tmp_path / "run" / "failure.txt")


# --- exit codes ---


@pytest.mark.parametrize(("rounds", "code"), [(2, 3), (100, 0)])
def test_a_gap_above_tol_has_the_exit_code_of_fit(
    rounds, code, files, tmp_path, monkeypatch, capsys
):
    """The run over Flower is this one: its audit log is what the command follows."""

    def start(server, config):
        run(Grid(nodes_of(files, tmp_path)), tmp_path, output="out", **{"max-rounds": rounds})
        return "1"

    monkeypatch.setattr(runs, "start_run", start)
    write_app(tmp_path / "fed" / "app", RunSettings().to_config())
    (tmp_path / "fed" / "server.toml").write_text('host = ""\nport = 1\naddress = ""\n')
    command = ["federation", "run", str(tmp_path / "fed"), "--output", str(tmp_path / "out")]
    assert main(command) == code
    said = capsys.readouterr()
    assert "certified gap" in said.out
    assert ("above tol = 0.0001; allow more rounds or a larger tol" in said.err) == (code == 3)
