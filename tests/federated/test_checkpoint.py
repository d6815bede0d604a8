"""A run that is killed and resumed has the bits of one that was not."""

import json
import shutil

import numpy as np
import pytest
import safetensors.numpy

from fdrsvm import InvalidInputError
from fdrsvm.federated.checkpoint import CheckpointFolder, state_from_arrays, state_to_arrays
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.rounds import Stop
from tests.federated.cases import (
    METHODS,
    Absent,
    ThroughBytes,
    assert_same_bits,
    assert_same_values,
    blobs,
    problems,
    random_clients,
    train,
)

N_ROUNDS = 9  # with a settling round among them
SETTINGS = {"tol": 1e-12, "max_rounds": N_ROUNDS}


class Killed(Exception):  # noqa: N818
    pass


def kill_after(round_):
    def callback(record, model):
        if record.round == round_:
            raise Killed

    return callback


def federation(**settings):
    clients, alphas = random_clients(
        31, **{"n_clients": 3, "boxed": False, "kind": "plain", "fit_intercept": True, **settings}
    )
    return clients, alphas


def killed_run(folder, clients, alphas, algorithm, round_, *, wrap=lambda t: t, **settings):
    transport = InProcess(problems(clients))
    with pytest.raises(Killed):
        train(
            clients,
            algorithm,
            transport=wrap(transport),
            alphas=alphas,
            checkpoint=CheckpointFolder(folder, transport),
            callbacks=[kill_after(round_)],
            **{**SETTINGS, **settings},
        )
    return transport


def resumed_run(folder, clients, alphas, algorithm, *, wrap=lambda t: t, **settings):
    transport = InProcess(problems(clients))
    checkpoints = CheckpointFolder(folder, transport)
    result = train(
        clients,
        algorithm,
        transport=wrap(transport),
        alphas=alphas,
        checkpoint=checkpoints,
        resume=checkpoints.latest(),
        **{**SETTINGS, **settings},
    )
    return result, transport


def assert_same_memories(left, right):
    assert set(left) == set(right)
    for name in left:
        assert left[name].run_id == right[name].run_id
        assert_same_values(left[name].values, right[name].values)
        assert [r for r, _ in left[name].past] == [r for r, _ in right[name].past]
        for (_, old), (_, new) in zip(left[name].past, right[name].past, strict=True):
            assert_same_values(old, new)


@pytest.mark.parametrize("method", METHODS)
def test_a_run_killed_after_any_round_goes_on_with_the_same_bits(method, tmp_path):
    clients, alphas = federation()
    unbroken = InProcess(problems(clients))
    whole = train(clients, METHODS[method], transport=unbroken, alphas=alphas, **SETTINGS)
    for k in range(1, N_ROUNDS + 1):
        folder = tmp_path / str(k)
        killed_run(folder, clients, alphas, METHODS[method], k)
        result, transport = resumed_run(folder, clients, alphas, METHODS[method])
        assert_same_bits(whole, result)
        assert_same_memories(unbroken.memories, transport.memories)


@pytest.mark.parametrize("method", ["bundle", "summed", "subgradient"])
def test_a_run_on_a_box_goes_on_with_the_same_bits(method, tmp_path):
    clients, alphas = federation(boxed=True)
    whole = train(clients, METHODS[method], alphas=alphas, **SETTINGS)
    for k in (1, 5):
        folder = tmp_path / str(k)
        killed_run(folder, clients, alphas, METHODS[method], k)
        assert_same_bits(whole, resumed_run(folder, clients, alphas, METHODS[method])[0])


@pytest.mark.parametrize("method", METHODS)
def test_a_run_with_absences_goes_on_with_the_same_bits(method, tmp_path):
    clients, alphas = federation()

    def wrap(transport):
        return Absent(transport, lambda r, name: name == f"client-{r % 3}" and r % 2 == 1)

    settings = {"quorum": 2}
    whole = train(
        clients,
        METHODS[method],
        transport=wrap(InProcess(problems(clients))),
        alphas=alphas,
        **SETTINGS,
        **settings,
    )
    for k in (1, 2, 6):
        folder = tmp_path / str(k)
        killed_run(folder, clients, alphas, METHODS[method], k, wrap=wrap, **settings)
        result, _ = resumed_run(folder, clients, alphas, METHODS[method], wrap=wrap, **settings)
        assert_same_bits(whole, result)
        assert whole.history[0].faults == result.history[0].faults != ()


DAMAGES = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "one byte": lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
    "longer": lambda data: data + b"\0" * 8,
    "noise": lambda data: bytes(range(256)) * 4,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("method", ["bundle", "admm", "subgradient"])
def test_a_damaged_newest_file_costs_a_round_and_no_bit(method, damage, tmp_path):
    clients, alphas = federation()
    whole = train(clients, METHODS[method], alphas=alphas, **SETTINGS)
    killed_run(tmp_path, clients, alphas, METHODS[method], 5)
    newest = max(tmp_path.iterdir())
    newest.write_bytes(DAMAGES[damage](newest.read_bytes()))
    assert CheckpointFolder(tmp_path).latest().round == 4
    assert_same_bits(whole, resumed_run(tmp_path, clients, alphas, METHODS[method])[0])


def test_with_every_file_damaged_the_run_starts_anew(tmp_path):
    clients, alphas = federation()
    killed_run(tmp_path, clients, alphas, Bundle(), 5)
    for path in tmp_path.iterdir():
        path.write_bytes(path.read_bytes()[:-1])
    assert CheckpointFolder(tmp_path).latest() is None
    whole = train(clients, Bundle(), alphas=alphas, **SETTINGS)
    assert_same_bits(whole, resumed_run(tmp_path, clients, alphas, Bundle())[0])


@pytest.mark.parametrize("method", ["bundle", "admm", "subgradient"])
def test_clients_that_know_more_than_the_server_answer_old_rounds_again(method, tmp_path):
    """The server lost files, the clients did not: the last three rounds can be asked again."""
    clients, alphas = federation()
    whole = train(clients, METHODS[method], alphas=alphas, **SETTINGS)
    for lost in (0, 1, 2):
        folder = tmp_path / str(lost)
        transport = InProcess(problems(clients))
        server = CheckpointFolder(folder, keep=5)  # of the server alone
        settings = {"transport": ThroughBytes(transport), "alphas": alphas, **SETTINGS}
        with pytest.raises(Killed):
            train(
                clients,
                METHODS[method],
                checkpoint=server,
                callbacks=[kill_after(6)],
                **settings,
            )
        for path in sorted(folder.iterdir(), reverse=True)[:lost]:
            path.unlink()
        assert server.latest().round == 6 - lost
        result = train(clients, METHODS[method], resume=server.latest(), **settings)
        assert_same_bits(whole, result)


def test_a_finished_run_can_be_given_more_rounds(tmp_path):
    clients, alphas = federation()
    for method in ("bundle", "admm", "subgradient"):
        whole = train(clients, METHODS[method], alphas=alphas, **SETTINGS)
        folder = tmp_path / method
        transport = InProcess(problems(clients))
        checkpoints = CheckpointFolder(folder, transport)
        short = train(
            clients,
            METHODS[method],
            transport=transport,
            alphas=alphas,
            checkpoint=checkpoints,
            **{**SETTINGS, "max_rounds": 5},
        )
        assert short.reason is Stop.MAX_ROUNDS
        assert_same_bits(whole, resumed_run(folder, clients, alphas, METHODS[method])[0])
        # And one that is over stays as it is.
        again, _ = resumed_run(folder, clients, alphas, METHODS[method])
        assert_same_bits(whole, again)


def test_another_method_is_refused(tmp_path):
    clients, alphas = federation()
    killed_run(tmp_path, clients, alphas, Bundle(), 3)
    for other in (ADMM(), Subgradient(), Bundle(level=0.4), Bundle(cuts="summed")):
        with pytest.raises(InvalidInputError, match="resume"):
            resumed_run(tmp_path, clients, alphas, other)


@pytest.mark.parametrize("method", ["bundle", "admm", "subgradient"])
def test_another_federation_is_refused(method, tmp_path):
    """Cuts and duals belong to a client by its place: with others there, every bound is void."""
    clients, alphas = federation()
    killed_run(tmp_path, clients, alphas, METHODS[method], 4)
    fewer, others = clients[:2], alphas[:2] / alphas[:2].sum()
    turned = [clients[k].problem(f"client-{k}") for k in (2, 0, 1)]
    attempts = (
        {"transport": InProcess(problems(fewer)), "alphas": others},
        {"transport": InProcess(turned), "alphas": alphas[[2, 0, 1]]},
        {"transport": InProcess(problems(clients)), "alphas": alphas[::-1].copy()},
    )
    for attempt in attempts:
        with pytest.raises(InvalidInputError, match="resume"):
            train(
                clients,
                METHODS[method],
                resume=CheckpointFolder(tmp_path).latest(),
                **attempt,
                **SETTINGS,
            )


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_the_folder_keeps_the_newest_files(keep, tmp_path):
    clients, alphas = federation()
    (tmp_path / "notes.txt").write_text("mine")
    transport = InProcess(problems(clients))
    train(
        clients,
        Bundle(),
        transport=transport,
        alphas=alphas,
        checkpoint=CheckpointFolder(tmp_path, transport, keep=keep),
        tol=0.0,
        max_rounds=6,
    )
    kept = sorted(path.name for path in tmp_path.iterdir())
    newest = [f"round-{k:06d}.safetensors" for k in range(7 - keep, 7)]
    assert kept == ["notes.txt", *newest]


@pytest.mark.parametrize("keep", [0, -1, 1.5, "2", None])
def test_how_many_to_keep_is_checked(keep, tmp_path):
    with pytest.raises(InvalidInputError, match="keep"):
        CheckpointFolder(tmp_path, keep=keep)


def test_a_checkpoint_is_plain_arrays_and_json(tmp_path):
    """Any safetensors reader opens it; there is nothing in it that could run."""
    clients, alphas = federation()
    killed_run(tmp_path, clients, alphas, ADMM(rho=0.05), 3)
    (path, _) = sorted(tmp_path.iterdir(), reverse=True)
    arrays = safetensors.numpy.load_file(path)
    assert {array.dtype.kind for array in arrays.values()} <= set("fib")
    data = path.read_bytes()
    table = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    header = json.loads(table["__metadata__"]["fdrsvm"])["header"]
    assert header["round"] == 3
    assert header["run_id"] == "a-run"
    assert not any(name.endswith(("/X", "/y")) for name in arrays)


def test_the_servers_file_holds_nothing_of_the_clients_memory(tmp_path):
    clients, alphas = federation()
    transport = InProcess(problems(clients))
    train(
        clients,
        ADMM(rho=0.05),
        transport=transport,
        alphas=alphas,
        checkpoint=CheckpointFolder(tmp_path),
        **SETTINGS,
    )
    arrays = safetensors.numpy.load_file(max(tmp_path.iterdir()))
    assert {name.split("/")[0] for name in arrays} == {"state", "history"}


@pytest.mark.parametrize("method", METHODS)
def test_a_state_comes_back_from_its_arrays(method):
    clients, alphas = federation()
    states = []
    train(
        clients,
        METHODS[method],
        alphas=alphas,
        checkpoint=lambda snapshot: states.append(snapshot.state),
        **SETTINGS,
    )
    for state in states:
        stored = state_to_arrays(state)
        back = state_from_arrays(type(state), stored)
        assert type(back) is type(state)
        assert_same_values(state_to_arrays(back), stored)


def test_a_folder_may_be_copied_and_moved(tmp_path):
    clients, alphas = blobs(2), np.array([0.5, 0.5])
    killed_run(tmp_path / "here", clients, alphas, Bundle(), 3)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    whole = train(clients, Bundle(), alphas=alphas, **SETTINGS)
    assert_same_bits(whole, resumed_run(tmp_path / "there", clients, alphas, Bundle())[0])
