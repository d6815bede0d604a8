"""``fdrsvm predict``: every row has a line, and those that cannot be judged a reason."""

import csv
import io
import json

import numpy as np
import pytest

from fdrsvm import Feature, FeatureContract
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, save_model
from tests.cli.cases import (
    CLIENTS,
    FEATURES,
    call,
    error_line,
    rows_of,
    run,
    write_clients,
    write_csv,
)


def answers(out):
    return list(csv.DictReader(io.StringIO(out)))


def test_predict_writes_labels_and_decisions_in_the_order_of_the_rows(home, model, tmp_path):
    done = run("predict", model, home / "plants", "--output", tmp_path / "out.csv")
    assert (done.returncode, done.stderr) == (0, "")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    X = np.concatenate([rows_of(name)[0] for name in CLIENTS])
    loaded = load_model(model)
    assert [row["client"] for row in rows] == list(np.repeat(CLIENTS, 40))
    assert [row["predicted"] for row in rows] == loaded.predict(X).tolist()
    assert [float(row["decision"]) for row in rows] == loaded.decision_function(X).tolist()


def test_predict_goes_by_column_names_and_needs_no_labels(model, tmp_path, capsys):
    X, _ = rows_of("north")
    path = tmp_path / "new.csv"
    order = [2, 0, 1]
    lines = [",".join(["id", *(FEATURES[p] for p in order)])]
    lines += [
        f"row {n}," + ",".join(repr(row[p]) for p in order) for n, row in enumerate(X.tolist())
    ]
    path.write_text("\n".join(lines) + "\n")
    code, out, err = call(capsys, "predict", model, path)
    assert (code, err) == (0, "")
    found = [row["predicted"] for row in csv.DictReader(io.StringIO(out))]
    assert found == load_model(model).predict(X).tolist()


def test_predict_has_a_decision_for_each_of_three_classes(home, capsys):
    three = home / "three-run" / "model.safetensors"
    _, out, _ = call(capsys, "predict", three, home / "three" / "north.csv")
    headings = "client,row,predicted,decision healthy,decision leak,decision worn,reason"
    assert out.splitlines()[0] == headings


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


BROKEN = (
    "time;flow;pressure;temperature;id\n"
    "08:00;30,5;4,1;300,5;007\n"
    "08:01;;4,1;300,5;008\n"
    "\n"
    "08:02;30,5;error;inf;=1+1\n"
    "08:03;30,5;4,1;295;-5\n"
    ";;;;\n"
)


def test_rows_that_cannot_be_judged_are_marked_in_words(model, tmp_path, capsys):
    path = write(tmp_path / "north.csv", BROKEN)
    code, out, err = call(capsys, "predict", model, path, "--keep", "time", "--keep", "id")
    assert code == 0
    (line,) = err.splitlines()
    assert line.startswith("fdrsvm: 2 of 4 rows could not be judged; column 'reason' says why: ")
    assert "train with a contract that fills missing values" in line
    assert out.splitlines()[0] == "client,row,time,id,predicted,decision,reason"
    found = answers(out)
    assert [(one["client"], one["row"], one["time"], one["id"]) for one in found] == [
        ("north", "2", "08:00", "007"),
        ("north", "3", "08:01", "008"),
        ("north", "5", "08:02", "'=1+1"),
        ("north", "6", "08:03", "-5"),
    ]
    assert [one["reason"] for one in found] == [
        "",
        "'flow' is missing",
        "'pressure' is no number; 'temperature' is infinite",
        "",
    ]
    X = np.array([[30.5, 4.1, 300.5], [30.5, 4.1, 295.0]])
    loaded = load_model(model)
    judged = [found[0], found[3]]
    assert [one["predicted"] for one in judged] == loaded.predict(X).tolist()
    assert [float(one["decision"]) for one in judged] == loaded.decision_function(X).tolist()
    assert {one[name] for one in found[1:3] for name in ("predicted", "decision")} == {""}


def test_a_score_that_overflows_is_marked_too(tmp_path, capsys):
    model = LinearModel.checked(
        np.full((3, 2), 1e200) * [[1.0], [2.0], [3.0]],
        np.zeros(3),
        ("a", "b", "c"),
        estimator="FDRSVC",
        feature_names=("u", "v"),
    )
    save_model(model, tmp_path / "m.safetensors")
    path = write(tmp_path / "x.csv", "u,v\n1e200,1\n1,1\n")
    code, out, err = call(capsys, "predict", tmp_path / "m.safetensors", path)
    assert (code, "1 of 2 rows" in err) == (0, True)
    found = answers(out)
    assert found[0]["reason"] == "the score is beyond what a computer's numbers hold"
    assert (found[0]["predicted"], found[0]["decision c"]) == ("", "")
    assert (found[1]["predicted"], found[1]["reason"]) == ("c", "")


def test_if_no_row_can_be_judged_that_is_an_error(model, tmp_path, capsys):
    path = write(tmp_path / "n.csv", "flow;pressure;temperature\n1.234;1;1\n2.345;;1\n")
    line = error_line(capsys, "predict", model, path, "--output", tmp_path / "out.csv")
    assert "must have a row that can be judged; none of 2 can; row 2 of 'n': 'flow' is no" in line
    assert "'flow': its points or commas can part decimals or thousands" in line
    assert not (tmp_path / "out.csv").exists()


def test_columns_to_keep_must_be_there_and_not_be_called_as_the_answer(model, tmp_path, capsys):
    path = write(tmp_path / "n.csv", "flow,pressure,temperature,row\n1,1,1,9\n")
    assert "it lacks 'id'" in error_line(capsys, "predict", model, path, "--keep", "id")
    line = error_line(capsys, "predict", model, path, "--keep", "row")
    assert "--keep: must not name columns called as one of the answer; one is called 'row'" in line


@pytest.fixture(scope="module")
def agreed(tmp_path_factory):
    """A model by a contract that fills one feature, drops by another and clips all."""
    home = tmp_path_factory.mktemp("agreed")
    write_clients(home / "plants")
    lows, highs = (0.0, 2.0, 150.0), (60.0, 6.0, 450.0)
    missing = ({"missing": "fill", "fill": 31.0}, {"missing": "drop"}, {})
    features = tuple(
        Feature(name, low=low, high=high, **more)
        for name, low, high, more in zip(FEATURES, lows, highs, missing, strict=True)
    )
    contract = FeatureContract(features, ("healthy", "leak"))
    write(home / "contract.json", contract.to_json())
    lines = (home / "plants" / "north.csv").read_text().splitlines()
    cells = [line.split(",") for line in lines]
    cells[1][0], cells[2][1], cells[3][2] = "", "", "9999"
    text = "\n".join(",".join(row) for row in cells)
    write(home / "plants" / "north.csv", text.replace("label", "state").replace(",", ";") + "\n")
    for name in ("south", "west"):
        path = home / "plants" / f"{name}.csv"
        write(path, path.read_text().replace("label", "state"))
    options = ("--contract", "contract.json", "--clip", "--set", "epsilon=0.02")
    done = run("fit", "plants", *options, "--label", "state", cwd=home)
    assert done.returncode == 0, done.stderr
    return home


def test_a_model_remembers_columns_and_rules(agreed, capsys):
    data = load_model(agreed / "run" / "model.safetensors").record["data"]
    assert data["columns"] == {"ignored": [], "label": "state"}
    assert data["dropped"] == {"north": 1}
    assert data["rows"] == {"north": 39, "south": 40, "west": 40}
    assert [rule["missing"] for rule in data["rules"]] == ["fill", "drop", "forbid"]
    assert data["clip"] is True
    said = "fdrsvm: 1 of 120 rows lack a value and are left out: north 1\n"
    model, plants = agreed / "run" / "model.safetensors", agreed / "plants"
    code, out, err = call(capsys, "evaluate", model, plants, "--json")
    assert (code, err) == (0, said)
    assert [one["n_rows"] for one in json.loads(out)] == [39, 40, 40, 119]
    code, out, err = call(capsys, "certify", model, plants, "--json")
    assert (code, err) == (0, said)
    assert json.loads(out)["agrees_with_file"] is True  # filled, clipped and dropped as in training
    line = error_line(capsys, "evaluate", model, plants, "--label", "label")
    assert "must have the label column 'label'" in line
    assert "--label names it" in line
    line = error_line(capsys, "evaluate", model, plants, "--missing", "refuse")
    assert "column 'flow': every value must be a finite number; row 2 is missing" in line


def test_predict_fills_and_clips_as_in_training(agreed, tmp_path, capsys):
    model = agreed / "run" / "model.safetensors"
    text = "flow,pressure,temperature\n,4,300\n31,4,300\n31,,300\n31,4,9999\n31,4,450\n31,4,\n"
    code, out, err = call(capsys, "predict", model, write(tmp_path / "n.csv", text))
    assert (code, "2 of 6 rows could not be judged" in err) == (0, True)
    found = answers(out)
    assert [one["reason"] for one in found] == [
        "",
        "",
        "'pressure' is missing",
        "",
        "",
        "'temperature' is missing",
    ]
    assert found[0]["decision"] == found[1]["decision"]
    assert found[3]["decision"] == found[4]["decision"] != found[1]["decision"]


def test_rows_beyond_limits_are_judged_and_counted(agreed, tmp_path, capsys):
    model = load_model(agreed / "run" / "model.safetensors")
    loose = model.with_record(data={**model.record["data"], "clip": False})
    save_model(loose, tmp_path / "m.safetensors")
    path = write(tmp_path / "n.csv", "flow,pressure,temperature\n31,4,9999\n31,4,300\n")
    code, out, err = call(capsys, "predict", tmp_path / "m.safetensors", path)
    assert code == 0
    assert "1 of 2 rows have values beyond the contract's limits and were judged as they are" in err
    X = np.array([[31.0, 4.0, 9999.0], [31.0, 4.0, 300.0]])
    assert [float(one["decision"]) for one in answers(out)] == loose.decision_function(X).tolist()


@pytest.mark.parametrize(
    "data",
    [
        [],
        {"columns": []},
        {"columns": {"label": 3}},
        {"rules": {}},
        {"rules": [3]},
        {"rules": [{"name": "flow", "low": "x"}]},
        {"clip": 1},
    ],
)
def test_a_forged_record_is_refused(model, tmp_path, capsys, data):
    save_model(load_model(model).with_record(data=data), tmp_path / "m.safetensors")
    path = write(tmp_path / "n.csv", "flow,pressure,temperature\n31,4,300\n")
    error_line(capsys, "predict", tmp_path / "m.safetensors", path)


def test_a_remembered_client_column_is_used_where_it_is(home, tmp_path, capsys):
    parts = [rows_of(name) for name in CLIENTS]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    both = write_csv(tmp_path / "all.csv", X, y, plant=np.repeat(CLIENTS, 40))
    fit = ("fit", both, "--client-column", "plant", "--set", "epsilon=0.02")
    assert call(capsys, *fit, "--output", tmp_path / "run")[0] == 0
    model = tmp_path / "run" / "model.safetensors"
    for data in (both, home / "plants"):  # with the column, and one file per client
        code, out, err = call(capsys, "evaluate", model, data, "--json")
        assert (code, err) == (0, "")
        assert [one["client"] for one in json.loads(out)] == [*CLIENTS, "all"]
    alone = write_csv(tmp_path / "east.csv", *parts[0])
    line = error_line(capsys, "evaluate", model, both, alone)
    assert "must have the client column 'plant'" in line
    _, out, _ = call(capsys, "predict", model, f"--client=east={alone}")
    assert {one["client"] for one in answers(out)} == {"east"}


def test_fit_drops_rows_if_asked_to_and_refuses_them_else(tmp_path, capsys):
    write_clients(tmp_path / "plants")
    for name, row in (("north", 3), ("south", 5)):
        path = tmp_path / "plants" / f"{name}.csv"
        lines = path.read_text().splitlines()
        lines[row - 1] = lines[row - 1].replace(lines[row - 1].split(",")[0], "", 1)
        write(path, "\n".join(lines) + "\n")
    fit = ("fit", tmp_path / "plants", "--set", "epsilon=0.02", "--output", tmp_path / "run")
    line = error_line(capsys, *fit)
    assert "column 'flow': every value must be a finite number; row 3 is missing (1 in all)" in line
    assert line.endswith("leave such rows out with --missing drop, or fill them by a contract")
    code, out, _ = call(capsys, *fit, "--missing", "drop")
    assert code == 0
    assert "3 clients, 118 rows" in out
    model = load_model(tmp_path / "run" / "model.safetensors")
    assert model.record["data"]["dropped"] == {"north": 1, "south": 1}
    write(tmp_path / "run.toml", "[data]\nfolder = 'plants'\nmissing = 'drop'\n")
    arguments = ("fit", "--config", tmp_path / "run.toml", "--set", "epsilon=0.02")
    assert call(capsys, *arguments, "--output", tmp_path / "other")[0] == 0
    other = load_model(tmp_path / "other" / "model.safetensors")
    assert other.fingerprint == model.fingerprint
    features = tuple(map(Feature, FEATURES))
    contract = FeatureContract(features, ("healthy", "leak"))
    path = write(tmp_path / "contract.json", contract.to_json())
    line = error_line(capsys, *fit, "--missing", "drop", "--contract", path)
    assert "missing: must not be 'drop' with a contract" in line
    write(tmp_path / "plants" / "east.csv", "flow,pressure,temperature,label\n,1,1,leak\n")
    line = error_line(capsys, *fit, "--missing", "drop")
    assert (
        "every client must have a row that lacks no value; 1 of 1 rows of client 'east' lack"
        in line
    )
