"""Secure aggregation over Flower: the settings, and plants that see only their own numbers."""

import json

import numpy as np
import pytest

from fdrsvm import FDRSVC, ClientError, InvalidInputError, QuorumError
from fdrsvm.core.codec import unpack
from fdrsvm.deploy.client_side import respond
from fdrsvm.deploy.settings import RunSettings
from fdrsvm.federated.messages import decode_broadcast
from tests.deploy.cases import Grid, fingerprint, in_process, write_plants
from tests.deploy.live import Live
from tests.deploy.test_transport import events, nodes_of, run

SECURE = {"secure-aggregation": True}


@pytest.fixture
def files(tmp_path):
    return write_plants(tmp_path / "data", n_plants=4)


def fitted(tmp_path, output="run"):
    return FDRSVC.load(tmp_path / output / "model.safetensors")


@pytest.mark.parametrize("algorithm", ["bundle", "admm", "admm-sc", "subgradient"])
def test_the_model_has_the_bits_of_one_process(algorithm, files, tmp_path, recwarn):
    settings = {"algorithm": algorithm, "max_rounds": 5, "epsilon": 0.01}
    config = {name.replace("_", "-"): value for name, value in settings.items()}
    run(Grid(nodes_of(files, tmp_path), seed=1), tmp_path, **SECURE, **config)
    model = fitted(tmp_path)
    there = in_process(files, secure_aggregation=True, **settings)
    assert fingerprint(model) == fingerprint(there)
    assert set(model.worst_case_risk_per_client_) == set(files)
    assert np.isnan(list(model.worst_case_risk_per_client_.values())).all()
    json.loads((tmp_path / "run" / "certificate.json").read_text())
    recwarn.clear()


def test_three_classes_are_trained_on_sums(tmp_path):
    files = write_plants(tmp_path / "data", labels=("a", "b", "c"), n_rows=60)
    run(Grid(nodes_of(files, tmp_path)), tmp_path, **SECURE, tol=1e-3)
    assert fitted(tmp_path).gap_.max() <= 1e-3
    there = in_process(files, secure_aggregation=True, tol=1e-3)
    assert fingerprint(fitted(tmp_path)) == fingerprint(there)


def test_nothing_but_masked_numbers_leaves_a_plant(files, tmp_path, recwarn):
    answers = []

    def listening(plant):
        def answer(request):
            response = respond(request, plant)
            if response.kind == "update":
                answers.append(unpack(response.payload, "update", 1).arrays)
            return response

        return answer

    nodes = {node: listening(plant) for node, plant in nodes_of(files, tmp_path).items()}
    run(Grid(nodes), tmp_path, **SECURE, algorithm="subgradient", **{"max-rounds": 3})
    kinds = {frozenset(name.partition("/")[0] for name in values) for values in answers}
    assert kinds == {
        frozenset({"public"}),
        frozenset({"masked", "n_present", "letters", "seals out", "seals in", "seed"}),
        frozenset({"keys"}),
    }
    assert all(array.dtype == np.int64 for values in answers for array in values.values())
    recwarn.clear()


@pytest.mark.parametrize("algorithm", ["admm", "subgradient"])
def test_a_plant_that_lost_its_memory_goes_on_only_if_it_had_no_duals(
    algorithm, files, tmp_path, recwarn
):
    forgotten = []

    def trouble(node, request):
        if node == 102 and request.kind == "round" and not forgotten:
            broadcast = decode_broadcast(request.payload)
            if broadcast.round == 3 and '"phase":"upload"' in broadcast.algorithm:
                forgotten.extend(grid.nodes[102].memory_folder.glob("*.memory"))
                forgotten[0].unlink()

    grid = Grid(nodes_of(files, tmp_path), trouble)
    settings = {"algorithm": algorithm, "max-rounds": 6, **SECURE}
    if algorithm == "admm":
        with pytest.raises(ClientError, match=r"plant-2.*its file is gone"):
            run(grid, tmp_path, **settings)
    else:
        run(grid, tmp_path, **settings)
        there = in_process(files, algorithm=algorithm, max_rounds=6, secure_aggregation=True)
        assert fingerprint(fitted(tmp_path)) == fingerprint(there)
    assert len(forgotten) == 1
    recwarn.clear()


def test_an_absent_plant_is_in_the_audit_log(files, tmp_path, recwarn):
    away = []

    def trouble(node, request):
        is_away = request.kind == "round" and node == 102 and len(events(tmp_path)) > 20
        away.extend([node] * is_away)
        return "silent" if is_away else None

    run(
        Grid(nodes_of(files, tmp_path), trouble),
        tmp_path,
        **SECURE,
        algorithm="subgradient",
        quorum=3,
        deadline=1.5,
        **{"max-rounds": 3, "feature-limit": 1.0},
    )
    found = [one for one in events(tmp_path) if one["event"] == "absent"]
    assert away
    assert found
    assert all(one["clients"] == ["plant-2"] for one in found)
    recwarn.clear()


def test_a_quorum_without_limits_and_two_plants_are_refused(files, tmp_path):
    with pytest.raises(InvalidInputError, match="limits"):
        run(Grid(nodes_of(files, tmp_path)), tmp_path, **SECURE, quorum=3)
    two = dict(list(files.items())[:2])
    with pytest.raises(InvalidInputError, match="at least 3"):
        run(Grid(nodes_of(two, tmp_path)), tmp_path, output="two", **SECURE)


def test_a_plant_that_fails_is_named(files, tmp_path):
    def broken(request):
        if request.kind == "round":
            request = type(request)("round", request.release, request.task, b"torn")
        return respond(request, nodes_of(files, tmp_path)[101])

    nodes = {**nodes_of(files, tmp_path), 101: broken}
    with pytest.raises((ClientError, QuorumError), match="plant-1"):
        run(Grid(nodes), tmp_path, **SECURE)


def test_a_plant_may_ask_for_sums_over_a_least_number(files, tmp_path, recwarn):
    careful = nodes_of(files, tmp_path, **{"least-in-sum": 4})
    with pytest.raises(ClientError, match=r"plant-0.*leave in masked sums only"):
        run(Grid(careful), tmp_path, output="open")
    settings = {"algorithm": "subgradient", "max-rounds": 2, "feature-limit": 1.0, **SECURE}
    run(Grid(careful), tmp_path, **settings)
    silent = Grid(careful, lambda node, request: "silent" if late(node, request) else None)
    with pytest.raises(ClientError, match="must be over at least 4 plants; this one is over 3"):
        run(silent, tmp_path, output="fewer", quorum=3, deadline=1.5, **settings)
    with pytest.raises(InvalidInputError, match="least-in-sum"):
        nodes_of(files, tmp_path, **{"least-in-sum": "all"})
    recwarn.clear()


def late(node, request):
    """One plant has keys and does not answer after that."""
    if node != 103 or request.kind != "round":
        return False
    return '"members":[]' not in decode_broadcast(request.payload).algorithm


def test_keys_are_the_owner_s(files, tmp_path, recwarn):
    nodes = nodes_of(files, tmp_path)
    run(Grid(nodes), tmp_path, algorithm="subgradient", **{"max-rounds": 1}, **SECURE)
    for plant in nodes.values():
        assert plant.memory_folder.stat().st_mode & 0o077 == 0
    recwarn.clear()


def test_the_setting_is_one_of_the_model_s(tmp_path):
    settings = RunSettings.from_config(SECURE)
    assert settings.estimator().secure_aggregation is True
    assert settings.to_config()["secure-aggregation"] is True
    assert RunSettings().estimator().secure_aggregation is False
    with pytest.raises(InvalidInputError, match="secure-aggregation"):
        RunSettings.from_config({"secure-aggregation": 1})


@pytest.mark.federation
def test_three_plants_as_real_processes_have_the_bits_of_one(tmp_path, recwarn):
    files = write_plants(tmp_path / "data")
    settings = {"max_rounds": 6, "secure_aggregation": True}
    with Live(tmp_path / "fed", files) as live:
        live.run("run", **settings)
    model = FDRSVC.load(live.folder / "run" / "model.safetensors")
    assert fingerprint(model) == fingerprint(in_process(files, **settings))
    recwarn.clear()
