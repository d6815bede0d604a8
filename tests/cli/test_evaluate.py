"""``evaluate`` and ``report``: classes are named, plants too, and who waits sees why."""

import json
import re

import numpy as np
import pytest

from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, save_model
from tests.cli.cases import CLIENTS, FEATURES, call, error_line, on_a_terminal, rows_of, write_csv

KEYS = [
    "model",
    "client",
    "n_rows",
    "accuracy",
    "f1",
    "balanced_accuracy",
    "f1_of",
    "n_faults",
    "n_found",
    "n_false_alarms",
    "false_alarm_rate",
    "precision",
    "recall",
    "average_precision",
    "recalls",
    "counts",
    "note",
]


@pytest.mark.parametrize("labels", [("Fault", "ok"), ("1", "0"), ("True", "False"), ("1", "-1")])
@pytest.mark.parametrize("is_named", [True, False])
def test_a_model_that_finds_nothing_cannot_look_good(labels, is_named, tmp_path, capsys):
    fault, healthy = labels
    kinds = {"Fault": str, "1": int, "True": lambda text: text == "True"}[fault]
    classes = sorted(map(kinds, labels))
    place = classes.index(kinds(fault))
    model = LinearModel.checked(
        np.zeros((1, 3)),
        [1.0 if place == 0 else -1.0],
        classes,
        estimator="FDRSVC",
        feature_names=FEATURES,
        record={"positive": kinds(fault)} if is_named else {},
        params={"class_weight": None, "epsilon": 0.1, "kappa": 1.0, "norm": "linf"},
    )
    save_model(model, tmp_path / "m.safetensors")
    X, _ = rows_of("north", n_rows=200)
    path = write_csv(tmp_path / "rows.csv", X, np.where(np.arange(200) < 7, fault, healthy))
    code, out, err = call(capsys, "evaluate", tmp_path / "m.safetensors", path)
    assert code == 0
    assert "the model never predicts" in err
    table = out.partition("\n\n")[0]
    heading, row = (re.split(r" {2,}", line.strip()) for line in table.splitlines())
    named = repr(str(kinds(fault)))
    assert f"{named} found" in heading
    assert f"F1 of {named}" in heading
    assert row[3:] == ["0 of 7", "0 (0.0 %)", "-", "0.000", "0.500", "0.035", "0.000"]
    assert ".98" not in table


def test_json_has_stable_keys(home, model, capsys):
    data = home / "plants"
    _, out, _ = call(capsys, "evaluate", model, data, "--json", "--compare", data)
    content = json.loads(out)
    assert all(list(one) == KEYS for one in content)
    assert len(content) == 6 * 4
    three = home / "three-run" / "model.safetensors"
    _, out, _ = call(capsys, "evaluate", three, home / "three", "--json")
    one = json.loads(out)[-1]
    assert list(one) == KEYS
    assert list(one["recalls"]) == ["healthy", "leak", "worn"]
    assert (one["precision"], one["f1_of"]) == (None, None)


def test_a_plant_with_another_zero_point_is_named_on_stderr(home, model, tmp_path, capsys):
    for name in CLIENTS:
        X, y = rows_of(name, n_rows=300)
        if name == "west":
            X[:, 0] += 60.0
        write_csv(tmp_path / f"{name}.csv", X, y)
    code, _, err = call(capsys, "evaluate", model, tmp_path)
    assert (code, len(err.splitlines())) == (0, 1)
    assert err.startswith("fdrsvm: at 'west' the model does clearly worse than at the other plants")
    assert "fdrsvm alarm" in err
    page = tmp_path / "page.html"
    code, _, again = call(capsys, "report", model, tmp_path, "--output", page)
    assert again == err
    assert "Warning: at &#39;west&#39; the model does clearly worse" in page.read_text()
    _, _, err = call(capsys, "evaluate", model, tmp_path / "north.csv", tmp_path / "south.csv")
    assert err == ""


def test_report_counts_false_alarms_a_week_and_compares(home, model, tmp_path, capsys):
    page, data = tmp_path / "page.html", home / "plants"
    options = ("--row-every", "10 min", "--compare", data, "--output", page)
    code, out, err = call(capsys, "report", model, data, *options)
    assert (code, err, out) == (0, "", f"Report: {page}\n")
    said = " ".join(page.read_text().split())
    assert "At one row every 10 min that is about" in said
    assert "<th>alone</th>" in said
    X, y = (np.concatenate(each) for each in zip(*map(rows_of, CLIENTS), strict=True))
    guess, fault = load_model(model).predict(X), load_model(model).record["positive"]
    n_found, n_faults = ((guess == fault) & (y == fault)).sum(), (y == fault).sum()
    assert f"It finds {n_found} of {n_faults} rows" in said
    assert "These are the rows of training" in said


@pytest.mark.parametrize("option", [("--row-every", "1 min"), ("--compare", "plants")])
def test_what_needs_data_says_so(option, model, capsys):
    assert f"{option[0]} needs data" in error_line(capsys, "report", model, *option, code=2)


def test_a_rate_that_is_none_is_refused(home, model, capsys):
    line = error_line(capsys, "report", model, home / "plants", "--row-every", "often")
    assert "--row-every: must be a number above 0 and a unit (s, min, h, day)" in line
    assert "such as '1 min'; it is 'often'" in line


def test_who_waits_on_a_terminal_sees_what_is_trained(home, model, tmp_path):
    data = home / "plants"
    seen, piped = on_a_terminal("evaluate", model, data, "--compare", data)
    assert "training" in seen
    assert re.search("boosting +west", piped)
    output = ("--output", tmp_path / "page.html")
    seen, _ = on_a_terminal("report", model, data, *output)
    assert "computing the page" in seen


@pytest.mark.parametrize(("columns", "left_out"), [(80, True), (120, False), (400, False)])
def test_on_a_terminal_no_cell_is_broken_or_cut(home, model, columns, left_out):
    wide = {"COLUMNS": str(columns), "NO_COLOR": "1"}
    seen, _ = on_a_terminal("evaluate", model, home / "plants", is_output=True, **wide)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", seen).replace("\r", "")
    rows = [line for line in plain.splitlines() if re.match(r"model  .*\d of \d", line)]
    assert len(rows) == len(CLIENTS) + 1
    assert all(re.search(r"\d+ of \d+ +\d+ \(\d+\.\d %\).* \d\.\d{3} *$", row) for row in rows)
    assert max(map(len, plain.splitlines())) <= columns
    assert ("A wider terminal also shows: precision" in plain) == left_out
