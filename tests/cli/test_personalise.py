"""``fdrsvm personalise``: a plant's own model, its file, what is said, sentences on bad input."""

import json

import numpy as np
import pytest

from fdrsvm import RiskOracle
from fdrsvm.model.model_file import load_model, save_model
from fdrsvm.model.unscaling import Scaling
from tests.cli.cases import CLIENTS, FEATURES, call, error_line, rows_of, write_csv
from tests.estimators.structured_text import FunctionBlock


@pytest.fixture
def shifted(model, tmp_path):
    """The model with a zero that is wrong for everybody."""
    loaded = load_model(model)
    path = tmp_path / "shifted.safetensors"
    moved = {**vars(loaded), "intercept": loaded.intercept + 3.0}
    save_model(type(loaded).checked(**moved).with_record(positive="leak"), path)
    return path


def risk_at(path, name="north"):
    """The worst-case risk of a model file on a plant's rows, computed on scaled features."""
    loaded = load_model(path)
    scaling, (X, y) = Scaling.of(loaded), rows_of(name)
    scaled = scaling.unfold(loaded)
    oracle = RiskOracle(scaling.apply(X), np.where(y == "leak", 1, -1), epsilon=0.02)
    return oracle.value(scaled.coef[0], scaled.intercept[0])


def test_what_is_said_is_what_is_written(shifted, home, capsys):
    plant = home / "plants" / "north.csv"
    code, out, err = call(capsys, "personalise", shifted, plant)
    assert (code, err) == (0, "")
    path = shifted.parent / "personal.safetensors"
    record = load_model(path).record["personal"]
    assert record["choice"] == "retune"
    assert record["risk_before"] == pytest.approx(risk_at(shifted), rel=1e-9)
    assert record["risk_after"] == pytest.approx(risk_at(path), rel=1e-9)
    assert out.startswith("north: shared, retuned (the simplest")
    assert f"Model: {path}" in out
    assert f"Next:  fdrsvm evaluate {path} NEW.csv" in out
    table = out.split("\n\n")[1].splitlines()
    assert table[0].split("  ")[0] == "model"
    assert "'leak' found" in table[0]
    shared = record["folds"]["shared"]["counts"]["array"]
    n_leaks, n_healthy = (int(np.sum(shared[k])) for k in (1, 0))
    assert f"{shared[1][1]:g} of {n_leaks}" in table[1]
    assert f"{shared[0][1]:g} of {n_healthy}" in table[1]
    assert f"{record['risk_before']:.4g}" in table[1]
    assert f"{record['risk_after']:.4g}" in table[2]
    assert f"below {record['lower_bound']:.4g} here" in " ".join(out.split())
    X, y = rows_of("north")
    before, after = (np.mean(load_model(p).predict(X) == y) for p in (shifted, path))
    assert after > before + 0.2


def test_other_commands_take_the_model(shifted, home, tmp_path, capsys):
    plant = home / "plants" / "north.csv"
    own = tmp_path / "own.safetensors"
    command = ("personalise", shifted, plant, "--how", "retune", "--output", own)
    assert call(capsys, *command)[0] == 0
    made = load_model(own)
    assert made.record["data"]["rows"] == {"north": 40}
    code, out, _ = call(capsys, "certify", own, plant)
    assert code == 0
    assert "These are the numbers in the file." in " ".join(out.split())
    for command in ("evaluate", "report"):
        more = ("--output", tmp_path / "page.html") if command == "report" else ()
        assert call(capsys, command, own, plant, *more)[0] == 0
    _, text, _ = call(capsys, "export", "st", own)
    X, _ = rows_of("north")
    assert FunctionBlock(text)(X[0])["SCORE"] == pytest.approx(made.decision_function(X[:1])[0])
    cut = tmp_path / "cut.safetensors"
    save_model(made.cut_at(0.25), cut)
    assert "chosen by the plant" in " ".join(call(capsys, "evaluate", cut, plant)[1].split())
    # And it can be made the plant's own once more, with nothing left to gain.
    code, out, _ = call(capsys, "personalise", own, plant, "--how", "retune", "--json")
    again = json.loads(out)
    assert code == 0
    assert again["risk_after"] == pytest.approx(made.certificate["objective"], rel=2e-6)


def test_a_model_that_stays_is_the_same_to_the_last_bit(model, home, tmp_path, capsys):
    plant = write_csv(tmp_path / "north.csv", *rows_of("north", n_rows=3))
    code, out, _ = call(
        capsys, "personalise", model, plant, "--output", tmp_path / "own.safetensors"
    )
    assert code == 0
    assert out.startswith("north: shared (")
    assert "too few to compare" in out or "all its rows are" in out
    old, new = load_model(model), load_model(tmp_path / "own.safetensors")
    assert (old.coef == new.coef).all()
    assert (old.intercept == new.intercept).all()
    assert new.record["personal"]["choice"] == "shared"


def test_an_alarms_promise_does_not_outlive_its_threshold(model, home, tmp_path, capsys):
    X, y = rows_of("south", n_rows=400)
    healthy = write_csv(tmp_path / "healthy.csv", X[y == "healthy"])
    alarm = tmp_path / "alarm.safetensors"
    assert (
        call(
            capsys, "alarm", model, healthy, "--fault", "leak", "--rate", "0.05", "--output", alarm
        )[0]
        == 0
    )
    assert load_model(alarm).alarm_statement is not None
    plant = home / "plants" / "north.csv"
    own = tmp_path / "own.safetensors"
    assert call(capsys, "personalise", alarm, plant, "--how", "retune", "--output", own)[0] == 0
    made = load_model(own)
    assert made.alarm_statement is None
    assert made.threshold != load_model(alarm).threshold


def test_curves_stay_curves_of_readings(home, tmp_path, capsys):
    command = ("fit", home / "plants", "--no-tune", "--features", "additive", "--fault", "leak")
    assert call(capsys, *command, "--set", "epsilon=0.01", "--output", tmp_path / "run")[0] == 0
    model, own = tmp_path / "run" / "model.safetensors", tmp_path / "own.safetensors"
    plant = home / "plants" / "south.csv"
    code, told, _ = call(capsys, "personalise", model, plant, "--how", "retune", "--output", own)
    assert code == 0
    # The worst case of the sensors may be smaller: no word of "exact", nor of all models.
    assert "worst-case risk at most" in told
    assert "no model of this feature map" in " ".join(told.split())
    assert "exact" not in told
    assert "The goal is balanced accuracy" in " ".join(told.split())
    old, new = load_model(model), load_model(own)
    (scale,) = new.record["personal"]["scale"]["array"]
    np.testing.assert_allclose(new.coef, scale * old.coef, rtol=1e-9)
    X, _ = rows_of("south")
    moved = new.decision_function(X) - scale * old.decision_function(X)
    np.testing.assert_allclose(moved, moved[0], atol=1e-9)


def test_of_several_classes_rows_that_are_right_are_counted(home, tmp_path, capsys):
    model, plant = home / "three-run" / "model.safetensors", home / "three" / "west.csv"
    own = tmp_path / "own.safetensors"
    code, out, _ = call(capsys, "personalise", model, plant, "--how", "retune", "--output", own)
    assert code == 0
    assert "rows right" in out
    assert "mean over classes" in out
    code, out, _ = call(
        capsys, "personalise", model, plant, "--how", "retune", "--json", "--output", own
    )
    said = json.loads(out)
    assert said["file"] == str(own)
    before, after = said["risk_before"]["array"], said["risk_after"]["array"]
    assert len(before) == 3
    assert (np.array(after) <= np.array(before)).all()


def test_a_goal_and_a_choice_can_be_asked_for(shifted, home, capsys):
    plant = home / "plants" / "west.csv"
    code, out, err = call(capsys, "personalise", shifted, plant, "--how", "prox", "--goal", "f1")
    assert (code, err) == (0, "")
    assert out.startswith("west: near the shared one (as asked for")
    assert (
        load_model(shifted.parent / "personal.safetensors").record["personal"]["choice"] == "prox"
    )


def test_bad_input_is_a_sentence(model, home, tmp_path, capsys):
    plants = home / "plants"
    said = error_line(capsys, "personalise", model, plants)
    assert "one plant" in said
    assert "'north', 'south', 'west'" in said
    X, _ = rows_of("north")
    assert "label" in error_line(capsys, "personalise", model, write_csv(tmp_path / "a.csv", X))
    unknown = write_csv(tmp_path / "b.csv", X, ["broken"] * len(X))
    assert "'broken'" in error_line(capsys, "personalise", model, unknown)
    X[3, 1] = np.nan
    holes = write_csv(tmp_path / "c.csv", X, ["leak"] * len(X))
    assert FEATURES[1] in error_line(capsys, "personalise", model, holes)
    error_line(capsys, "personalise", model, plants / "north.csv", "--how", "best", code=2)
    goal = error_line(capsys, "personalise", model, plants / "north.csv", "--goal", "nice")
    assert "goal" in goal
    loaded = load_model(model)
    central = tmp_path / "central.safetensors"
    save_model(type(loaded).checked(**{**vars(loaded), "estimator": "DRSVC"}), central)
    assert "fdrsvm fit" in error_line(capsys, "personalise", central, plants / "north.csv")


def test_a_plant_whose_radius_is_not_known_is_told_which_are(model, home, tmp_path, capsys):
    loaded = load_model(model)
    radii = dict.fromkeys(CLIENTS, 0.02)
    path = tmp_path / "by-client.safetensors"
    save_model(
        type(loaded).checked(**{**vars(loaded), "params": {**loaded.params, "epsilon": radii}}),
        path,
    )
    plant = write_csv(tmp_path / "east.csv", *rows_of("north"))
    said = error_line(capsys, "personalise", path, plant)
    assert all(repr(name) in said for name in CLIENTS)
    assert "--client NAME=FILE" in said
    assert call(capsys, "personalise", path, "--client", f"north={plant}")[0] == 0


def test_rows_that_break_the_contract_are_refused(tmp_path, capsys):
    assert call(capsys, "demo", "--data", tmp_path / "pump")[0] == 0
    train, contract = tmp_path / "pump" / "train", tmp_path / "pump" / "contract.json"
    options = ("--contract", contract, "--scaling", "limits", "--no-tune", "--set", "epsilon=0.01")
    assert call(capsys, "fit", train, *options, "--output", tmp_path / "run")[0] == 0
    model = tmp_path / "run" / "model.safetensors"
    lines = (train / "plant-4.csv").read_text().splitlines()
    cells = lines[5].split(",")
    cells[0] = "1e9"
    broken = tmp_path / "plant-4.csv"
    broken.write_text("\n".join([*lines[:5], ",".join(cells), *lines[6:]]) + "\n")
    said = error_line(capsys, "personalise", model, broken)
    assert "'fPeak': values must keep to the contract" in said
    assert "row 6 does not (1 in all)" in said
    code, out, _ = call(capsys, "personalise", model, train / "plant-4.csv", "--fault", "leak")
    assert code == 0
    assert "'leak' found" in out
