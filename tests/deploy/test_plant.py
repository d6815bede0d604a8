"""A plant's own side: settings, tables, contracts, memory. Errors never show a value."""

import fcntl
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from flwr.app import Message
from flwr.supercore.task_identity import TaskIdentity

from fdrsvm import (
    ContractError,
    CorruptDataError,
    FDRSVMError,
    Feature,
    FeatureContract,
    InvalidInputError,
    __version__,
)
from fdrsvm.deploy import client_app
from fdrsvm.deploy.client_side import check_plant, make_problem, respond
from fdrsvm.deploy.flower import from_records, to_records
from fdrsvm.deploy.layout import ClientFolder
from fdrsvm.deploy.memory_file import MemoryFile
from fdrsvm.deploy.plant import plant_from_config, read_plant
from fdrsvm.federated.client_memory import NO_MEMORY, Memory
from fdrsvm.federated.joining import Request, Response, Task, TellableError, decode_introduction
from fdrsvm.federated.messages import Broadcast, encode
from fdrsvm.federated.methods import Bundle
from fdrsvm.federated.methods.method import describe
from tests.deploy.cases import plant, plant_rows, write_csv, write_plants

SECRET = "73.25"
CONTRACT = FeatureContract(
    features=(
        Feature("pressure", "bar", low=0.0, high=25.0),
        Feature("temperature", "degC", low=-20.0, high=90.0, missing="fill", fill=20.0),
    ),
    labels=("healthy", "worn"),
)


def table(tmp_path, text):
    path = tmp_path / "plant.csv"
    path.write_text(text, encoding="utf-8")
    return path


def with_contract(tmp_path, text, **config):
    (tmp_path / "contract.json").write_text(CONTRACT.to_json())
    path = table(tmp_path, text)
    return plant("north", path, contract=str(tmp_path / "contract.json"), **config)


def test_a_table_is_read_by_name_and_labels_are_sorted(tmp_path):
    text = "temperature,label,pressure\n41,worn,12.5\n20,healthy,1e1\n,healthy,3\n"
    rows = read_plant(with_contract(tmp_path, text))
    assert rows.X.tolist() == [[12.5, 41.0], [10.0, 20.0], [3.0, 20.0]]  # one was filled
    assert rows.labels == ("healthy", "worn")
    assert rows.codes.tolist() == [1, 0, 0]
    assert rows.feature_names == ("pressure", "temperature")


def test_without_a_contract_columns_keep_their_order(tmp_path):
    rows = read_plant(plant("a", table(tmp_path, "b,a,label\n1,2,0\n3,4,1\n")))
    assert rows.feature_names == ("b", "a")
    assert rows.labels == (0, 1)
    assert rows.X.dtype == np.float64


@pytest.mark.parametrize(
    ("cells", "labels"),
    [("0\n1\n", (0, 1)), ("-1.0\n1.0\n", (-1, 1)), ("a\nb\n", ("a", "b")), ("1\nx\n", ("1", "x"))],
)
def test_labels_are_whole_numbers_or_text(tmp_path, cells, labels):
    lines = [f"{k}.5,{cell}" for k, cell in enumerate(cells.split())]
    rows = read_plant(plant("a", table(tmp_path, "x,label\n" + "\n".join(lines) + "\n")))
    assert rows.labels == labels


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "a header line and a row"),
        ("x,label\n", "a header line and a row"),
        ("x,x,label\n1,2,a\n", "1 and 2 have the same"),
        ("x,,label\n1,2,a\n", "2 has none"),
        ("x,label\n1,a,9\n", "every row must have 2 cells.*row 2 has 3"),
        ("x,y\n1,a\n", "must have the label column 'label'"),
        (f"x,label\n1,a\n{SECRET}_0,b\n", "'x': must be a finite number; 1 not, first in row 3"),
        (f"x,label\n{SECRET},a\ntext,b\n", "'x': must be a finite number; 1 not, first in row 3"),
        ("x,label\n1,a\ninf,b\n", "must be a finite number"),
        ("x,label\n1,a\n,b\n", "must not be missing, unless a contract fills it.*in row 3"),
        ("x,label\n1,a\n2,\n", "label must be text or a whole number; 1 not, first in row 3"),
        ("x,label\n1,0\n2,1.5\n", "label must be text or a whole number; 1 not, first in row 3"),
        ("label\na\nb\n", "must have a feature"),
    ],
)
def test_a_wrong_table_is_refused_by_rule_and_row(tmp_path, text, rule):
    with pytest.raises(InvalidInputError, match=rule) as caught:
        read_plant(plant("a", table(tmp_path, text)))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "config"),
    [
        (f"{SECRET},1,worn\n2,3,healthy\n", {}),
        (f"{SECRET},1,worn\n2,3,healthy\n", {"label": "worn"}),
        (f"{SECRET},{SECRET},worn\n2,3,healthy\n", {}),
        (f"pressure,{SECRET},label\n2,3,healthy\n", {}),
        (f"x,label\n{SECRET},a\n0.5,b\n", {}),  # outside the box
        (f'x,label\n"{SECRET},a\n', {}),
        (f"x,label\n{SECRET},a\n1,b\n", {"kapa": SECRET}),
    ],
)
@pytest.mark.parametrize("contract", [False, True])
def test_no_value_reaches_the_server(tmp_path, text, config, contract):
    if contract:
        (tmp_path / "contract.json").write_text(CONTRACT.to_json())
        config = {"contract": str(tmp_path / "contract.json"), **config}
    node = {"client-id": "a", "data": str(table(tmp_path, text)), **config}
    response = greeted(node, Task(support="unit-box"))
    assert response.kind == "error"
    assert SECRET not in response.reason
    assert SECRET.encode() not in response.payload


def test_a_column_of_measurements_is_not_taken_for_labels(tmp_path):
    text = "x,label\n" + "".join(f"{k}.5,{k}\n" for k in range(150))
    with pytest.raises(InvalidInputError, match="at most 100 must be different; 150 are"):
        read_plant(plant("a", table(tmp_path, text)))


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "plant.csv"
    path.write_bytes(b"x,label\n\xff\xfe,a\n")
    with pytest.raises(InvalidInputError, match="must be a CSV in UTF-8"):
        read_plant(plant("a", path))


def test_a_contract_violation_names_client_column_and_rule_and_no_value(tmp_path):
    text = f"pressure,temperature,label\n{SECRET},1,worn\n2,{SECRET}e3,healthy\n"
    own = with_contract(tmp_path, text)
    with pytest.raises(ContractError) as caught:
        read_plant(own)
    message = str(caught.value)
    assert "client 'north', column 'pressure': must be at most 25.0 bar" in message
    assert SECRET not in message
    response = respond(Request("greeting", __version__, Task().to_json()), own)
    assert response.kind == "error"
    assert response.reason == message


def test_values_are_clipped_where_the_plant_says_so(tmp_path):
    text = "pressure,temperature,label\n99,1,worn\n2,3,healthy\n"
    assert read_plant(with_contract(tmp_path, text, clip=True)).X[0, 0] == 25.0


def test_the_contract_can_be_the_support(tmp_path):
    own = with_contract(tmp_path, "pressure,temperature,label\n9,1,worn\n2,3,healthy\n")
    problem = make_problem(own, read_plant(own), Task(support="contract"))
    assert problem.exact.ball.box is not None
    without = plant("a", table(tmp_path, "x,label\n1,a\n2,b\n"))
    with pytest.raises(InvalidInputError, match="its limits"):
        make_problem(without, read_plant(without), Task(support="contract"))


def test_a_plant_can_have_a_radius_and_a_price_of_its_own(tmp_path):
    path = write_csv(tmp_path / "a.csv", *plant_rows(0))
    for config, epsilon, kappa in (({}, 0.5, 2.0), ({"epsilon": 0.1, "kappa": 3}, 0.1, 3.0)):
        own = plant("a", path, **config)
        problem = make_problem(own, read_plant(own), Task(epsilon=0.5, kappa=2.0))
        assert problem.exact.ball.epsilon == epsilon
        assert problem.exact.ball.kappa == kappa


def test_auto_is_the_papers_radius_of_all_rows(tmp_path):
    text = "x,label\n" + "1,a\n" * 5 + "2,b\n" * 5
    own = plant("a", table(tmp_path, text))
    problem = make_problem(own, read_plant(own), Task())
    assert problem.profile.n_samples == 2  # equal rows are one
    assert problem.profile.epsilon == 1.0 / 100.0


def test_parquet_has_the_rows_of_a_csv(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = plant_rows(0)
    names = [f"sensor {k}" for k in range(X.shape[1])]
    columns = {**dict(zip(names, X.T, strict=True)), "label": y}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    there = read_plant(plant("a", tmp_path / "a.parquet"))
    here = read_plant(plant("a", write_csv(tmp_path / "a.csv", X, y)))
    np.testing.assert_array_equal(there.X, here.X)
    np.testing.assert_array_equal(there.codes, here.codes)
    assert (there.labels, there.feature_names) == (here.labels, here.feature_names)
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    with pytest.raises(InvalidInputError, match="must be a Parquet file"):
        read_plant(plant("b", tmp_path / "b.parquet"))


def test_parquet_without_its_library_has_its_remedy_named(tmp_path, monkeypatch):
    path = tmp_path / "plant.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InvalidInputError, match=r"Parquet needs pyarrow.*write a CSV"):
        read_plant(plant("a", path))


@pytest.mark.parametrize(
    ("config", "rule"),
    [
        ({}, "must name a data file"),
        ({"data": "a.csv", "dta": "b"}, "it has dta"),
        ({"data": 3}, "data: must be a path"),
        ({"data": "a.csv", "client-id": ""}, "client-id: must be text"),
        ({"data": "a.csv", "epsilon": "big"}, "epsilon: must be a number"),
        ({"data": "a.csv", "kappa": True}, "kappa: must be a number"),
    ],
)
def test_wrong_node_settings_are_refused(config, rule):
    with pytest.raises(InvalidInputError, match=rule):
        plant_from_config(config, {})


def test_a_simulated_node_takes_the_file_of_its_number(tmp_path):
    write_plants(tmp_path / "data", n_plants=2)
    run = {"data": str(tmp_path / "data"), "output": str(tmp_path / "run")}
    own = plant_from_config({"partition-id": 1, "num-partitions": 2}, run)
    assert own.client_id == "plant-1"
    assert own.state == tmp_path / "run" / "clients"
    for node, config, rule in (
        ({"partition-id": 2}, run, "a file for each simulated node"),
        ({"partition-id": 0}, {}, "data must be a folder"),
        ({"partition-id": 0}, {"data": str(tmp_path / "none")}, "it is not there"),
    ):
        with pytest.raises(InvalidInputError, match=rule):
            plant_from_config(node, config)


def test_an_unexpected_error_tells_the_server_its_kind_only(tmp_path, monkeypatch, caplog):
    def broken(*_):
        raise OSError(f"sensor value {SECRET}")

    monkeypatch.setattr("fdrsvm.deploy.plant.read_plant", broken)
    own = plant("a", tmp_path / "a.csv")
    response = respond(Request("greeting", __version__, Task().to_json()), own)
    assert response.kind == "error"
    assert "OSError" in response.reason
    assert SECRET not in response.reason
    assert SECRET in caplog.text  # the plant's own log has it


def greeted(node, task=None, run_config=None):
    """What a node answers to a greeting, as Flower carries it."""
    request = Request("greeting", __version__, (task or Task()).to_json())
    context = SimpleNamespace(node_config=node, run_config=run_config or {}, node_id=1)
    TaskIdentity.task_id = TaskIdentity.run_id = TaskIdentity.node_id = 1
    reply = client_app.train(Message(to_records(request), 1, "train"), context)
    return from_records(reply.content, Response)


GOOD = b"x,label\n1,a\n2,b\n"


@pytest.mark.parametrize(
    ("data", "contract", "words"),
    [
        (None, None, "data: must be a file that the node can read; No such file or directory"),
        ("folder", None, "data: must be a file that the node can read; "),
        (b"x,label\n\xff,a\n", None, "must be a CSV in UTF-8; its table: byte 8 is none"),
        (b"x,label\n", None, "must have a header line and a row; its table has less"),
        (b"x,label\n1,a,3\n", None, "its table: row 2 has 3"),
        (b"x,x,label\n1,2,a\n", None, "columns must have different names; its table: 1 and 2"),
        (b"x,y\n1,a\n", None, "must have the label column 'label'"),
        (b"x,label\ntext,a\n", None, "column 'x': must be a finite number"),
        (GOOD, "missing", "contract: must be a file that the node can read; No such file"),
        (GOOD, b"{}", "CorruptDataError; the log of this client's node has the rest"),
        (GOOD, CONTRACT.to_json().encode(), "column 'pressure': must be there once"),
    ],
)
def test_reasons_hold_no_path_and_the_plants_own_log_does(data, contract, words, tmp_path, caplog):
    path = tmp_path / "customer-4711.csv"
    if data == "folder":
        path.mkdir()
    elif data is not None:
        path.write_bytes(data)
    node = {"client-id": "a", "data": str(path)}
    if contract is not None:
        node["contract"] = str(tmp_path / "contract-4711.json")
    if isinstance(contract, bytes):
        Path(node["contract"]).write_bytes(contract)
    response = greeted(node)
    assert response.kind == "error"
    assert words in response.reason
    assert "4711" not in response.reason
    assert str(tmp_path) not in response.reason
    if "CorruptDataError" not in words:
        assert "4711" in caplog.text


def test_a_plants_own_terminal_names_the_file(tmp_path):
    node = {"client-id": "a", "data": str(tmp_path / "nowhere.csv")}
    own = plant_from_config(ClientFolder(tmp_path, "server:1", 2, node).node_config, {})
    with pytest.raises(FDRSVMError, match=r"No such file or directory \(.*nowhere\.csv\)$"):
        check_plant(own)
    (tmp_path / "nowhere.csv").write_text("x,label\ntext,a\n")
    with pytest.raises(FDRSVMError, match=r"(?s)must be a finite number.*nowhere\.csv\)$"):
        check_plant(own)


def test_whatever_goes_wrong_flower_does_not_send_its_words(tmp_path, monkeypatch, caplog):
    def broken(*_):
        raise PermissionError(13, "Permission denied", f"/secret/{SECRET}")

    monkeypatch.setattr(client_app, "plant_from_config", broken)
    response = greeted({"client-id": "a", "data": "a.csv"})
    assert response.reason.startswith("PermissionError (Permission denied); the log of")
    assert SECRET not in response.reason
    assert SECRET in caplog.text


def test_a_state_folder_that_cannot_be_made_is_told_without_its_path(tmp_path, caplog):
    (tmp_path / "state").write_text("a file")
    own = plant("a", write_csv(tmp_path / "a.csv", *plant_rows(0)), state=str(tmp_path / "state"))
    payload = encode(Broadcast("run", 1, "a", describe(Bundle()), {}))
    response = respond(Request("round", __version__, Task().to_json(), payload), own)
    assert response.reason.startswith("NotADirectoryError (Not a directory); the log of")
    assert str(tmp_path / "state") in caplog.text


def test_memory_survives_in_its_file(tmp_path):
    kept = MemoryFile(tmp_path / "m", "run", "digest")
    assert kept.read() == NO_MEMORY
    memory = Memory("run", {"mu": np.arange(3.0)}, ((1, {}), (2, {"mu": np.ones(3)})))
    kept.write(memory)
    again = MemoryFile(tmp_path / "m", "run", "digest").read()
    assert again.run_id == "run"
    np.testing.assert_array_equal(again.values["mu"], memory.values["mu"])
    assert [round_ for round_, _ in again.past] == [1, 2]
    np.testing.assert_array_equal(again.past[1][1]["mu"], np.ones(3))


def test_a_memory_is_locked_while_an_answer_is_made(tmp_path, monkeypatch):
    def busy(problem, memory, broadcast, **_):
        with (own.memory_folder / "lock").open() as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        raise TellableError("answer", "must be made under lock", "it is")

    monkeypatch.setattr("fdrsvm.deploy.client_side.answer", busy)
    own = plant("a", write_csv(tmp_path / "a.csv", *plant_rows(0)))
    payload = encode(Broadcast("run", 1, "a", describe(Bundle()), {}))
    response = respond(Request("round", __version__, Task().to_json(), payload), own)
    assert response.reason == "answer: must be made under lock; it is"
    with (own.memory_folder / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_memory_of_other_data_or_of_a_torn_file_is_refused(tmp_path):
    kept = MemoryFile(tmp_path, "run", "digest")
    kept.write(Memory("run", {}, ()))
    with pytest.raises(InvalidInputError, match="must not change during a run"):
        MemoryFile(tmp_path, "run", "another").read()
    kept.path.write_bytes(kept.path.read_bytes()[:-3] + b"abc")
    with pytest.raises(CorruptDataError):
        kept.read()


def test_memories_of_old_runs_are_dropped(tmp_path):
    for number in range(6):
        MemoryFile(tmp_path, f"run {number}", "d").write(Memory(f"run {number}", {}, ()))
    assert len(list(tmp_path.iterdir())) == 3
    assert MemoryFile(tmp_path, "run 5", "d").read().run_id == "run 5"


def test_the_clients_path_loads_neither_scikit_learn_nor_drawing():
    import subprocess

    code = "import sys, fdrsvm.deploy.client_app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & {"sklearn", "matplotlib", "pandas", "ray", "onnx"}


def test_the_contracts_box_must_lie_within_the_agreed_limit(tmp_path):
    """All rows are within 10, but the worst case may move them anywhere in the contract's box."""
    own = with_contract(tmp_path, "pressure,temperature,label\n9,1,worn\n2,3,healthy\n")
    rows = read_plant(own)
    make_problem(own, rows, Task(feature_limit=10.0))
    make_problem(own, rows, Task(support="contract", feature_limit=1e6))
    with pytest.raises(TellableError, match="must lie within the agreed feature-limit 10"):
        make_problem(own, rows, Task(support="contract", feature_limit=10.0))


def test_text_is_no_flag(tmp_path):
    """ "false" is true to Python."""
    config = {"client-id": "a", "data": str(tmp_path / "a.csv"), "clip": "false"}
    with pytest.raises(InvalidInputError, match="clip: must be True or False"):
        plant_from_config(config, {})


DROPPING = FeatureContract((Feature("x", missing="drop"), Feature("u", missing="drop")), ("a", "b"))


def test_rows_are_left_out_as_the_contract_says_and_only_the_plant_is_told(tmp_path, caplog):
    (tmp_path / "contract.json").write_text(DROPPING.to_json())
    path = table(tmp_path, f"x;label;u\n1,5;a;{SECRET.replace('.', ',')}\n;b;2\n3;b;4,5\n5;a;\n")
    node = {"client-id": "north", "data": str(path), "contract": str(tmp_path / "contract.json")}
    own = plant("north", path, contract=node["contract"])
    rows = read_plant(own)
    assert rows.X.tolist() == [[1.5, float(SECRET)], [3.0, 4.5]]
    assert rows.codes.tolist() == [0, 1]
    assert (rows.n_dropped, rows.row_numbers.tolist()) == (2, [2, 4])
    assert "client 'north': 2 of 4 rows lack a value and are left out" in caplog.text
    assert check_plant(own) == (
        "north: 2 rows (2 more lack a value and are left out), 2 features, data as agreed"
    )
    response = greeted(node)
    assert response.kind == "introduction"
    assert decode_introduction(response.payload).n_rows == 2
    assert SECRET not in caplog.text
    response = greeted(node, Task(feature_limit=(4.0, 4.0)))
    assert "the first is row 2" in response.reason


def test_plants_files_may_be_written_in_any_way(tmp_path):
    X, y = plant_rows(0)
    here = read_plant(plant("a", write_csv(tmp_path / "a.csv", X, y)))
    lines = (tmp_path / "a.csv").read_text().splitlines()
    cells = [line.replace(".", ",").split(",") for line in lines]
    for name, separator, decimal, encoding in (
        ("b.csv", ";", ",", "utf-8-sig"),
        ("c.tsv", "\t", ".", "utf-8"),
        ("d.txt", "\t", ",", "utf-16"),
    ):
        cells = [line.split(",") for line in lines]
        text = "\n".join(
            separator.join(cell.replace(".", decimal) for cell in row) for row in cells
        )
        (tmp_path / name).write_text(text, encoding=encoding)
        there = read_plant(plant("a", tmp_path / name))
        np.testing.assert_array_equal(there.X, here.X)
        assert (there.labels, there.feature_names) == (here.labels, here.feature_names)


@pytest.mark.parametrize("text", ["1,5;2,5;0\n3,5;4,5;1\n", "1.5;2.5;0\n3.5;4.5;1\n"])
def test_a_first_line_of_numbers_is_not_taken_for_names(tmp_path, text):
    with pytest.raises(InvalidInputError, match="is the first line a header") as caught:
        read_plant(plant("a", table(tmp_path, text), label="0"))
    assert "1,5" not in str(caught.value)


def test_numbers_that_can_be_read_in_two_ways_are_refused_without_their_values(tmp_path):
    for cells, words in ((f"{SECRET}\n73,25", "others a decimal comma"), ("7.325\n9", "which")):
        text = "x;label\n" + "".join(f"{cell};a\n" for cell in cells.split())
        with pytest.raises(InvalidInputError, match=words) as caught:
            read_plant(plant("a", table(tmp_path, text)))
        assert not any(cell in str(caught.value) for cell in ("73", "7.325"))
