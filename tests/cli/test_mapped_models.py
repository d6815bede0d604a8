"""A model with a map through the commands: predict, alarm and every export."""

import csv
import io
import json

import numpy as np
import pytest

from fdrsvm.cli import main
from fdrsvm.model.model_file import load_model, save_model
from tests.cli.cases import call, rows_of, write_csv
from tests.estimators.models import score_tolerance
from tests.estimators.structured_text import FunctionBlock

MAPS = ("additive", "additive-pairs", "fourier")


@pytest.fixture(scope="module", params=MAPS)
def mapped(request, tmp_path_factory):
    """A model of faults on both sides, trained by the program."""
    folder = tmp_path_factory.mktemp(request.param)
    for client in ("north", "south"):
        X, _ = rows_of(client)
        y = np.where(np.abs(X[:, 0] - 30.0) > 4.0, "leak", "healthy")
        write_csv(folder / f"{client}.csv", X, y)
    options = ("--features", request.param, "--no-tune", "--set", "epsilon=0.0005")
    assert main(["fit", str(folder), *options, "--output", str(folder / "run")]) == 0
    return folder / "run" / "model.safetensors"


def test_predict_and_exports_score_as_the_model_does(mapped, tmp_path, capsys):
    model, (X, _) = load_model(mapped), rows_of("west")
    X[-1] += 1e4  # far outside
    expected, tolerance = model.decision_function(X), score_tolerance(model, X)
    assert (np.abs(expected) > tolerance).all()
    labels = model.predict(X)
    assert set(labels) == {"healthy", "leak"}

    _, out, err = call(capsys, "predict", mapped, write_csv(tmp_path / "west.csv", X))
    trained = np.vstack([rows_of(client)[0] for client in ("north", "south")])
    low, high, margin = trained.min(axis=0), trained.max(axis=0), 0.1 * np.ptp(trained, axis=0)
    n_far = np.any((low - X > margin) | (X - high > margin), axis=1).sum()
    assert f"{n_far} of {len(X)} rows are over a tenth of a sensor's range beyond" in err
    lines = list(csv.DictReader(io.StringIO(out)))
    assert [line["predicted"] for line in lines] == labels.tolist()
    assert np.abs([float(line["decision"]) for line in lines] - expected <= tolerance).all()

    _, text, _ = call(capsys, "export", "st", mapped, "--alarm-on", "leak")
    block = FunctionBlock(text)
    outputs = [block(x) for x in X]
    assert (np.abs([one["SCORE"] for one in outputs] - expected) <= tolerance).all()
    assert [one["ALARM"] for one in outputs] == (labels == "leak").tolist()

    _, out, _ = call(capsys, "export", "json", mapped)
    assert json.loads(out)["features"]["low"] == model.features.low.tolist()

    runtime = pytest.importorskip("onnxruntime")
    assert call(capsys, "export", "onnx", mapped, "--output", tmp_path / "leak.onnx")[0] == 0
    session = runtime.InferenceSession(str(tmp_path / "leak.onnx"))
    score, found = session.run(["score", "label"], {"X": X})
    assert (np.abs(score - expected) <= tolerance).all()
    assert found.tolist() == labels.tolist()


def test_alarms_of_a_map_reach_the_plc(mapped, tmp_path, capsys):
    path, output = tmp_path / "model.safetensors", tmp_path / "alarm.safetensors"
    save_model(load_model(mapped).with_record(positive="leak"), path)
    X, _ = rows_of("west")
    healthy = write_csv(tmp_path / "healthy.csv", X[np.abs(X[:, 0] - 30.0) <= 4.0])
    code, _, _ = call(capsys, "alarm", path, healthy, "--rate", "0.1", "--output", output)
    assert code == 0
    made = load_model(output)
    _, text, _ = call(capsys, "export", "st", output)
    block = FunctionBlock(text)
    new, _ = rows_of("north")  # the row that is the threshold lies within a rounding of it
    clear = np.abs(made.decision_function(X) - made.threshold) > score_tolerance(made, X)
    assert np.count_nonzero(~clear) == 1
    found = [block(x)["ALARM"] for x in new]
    assert found == (made.predict(new) == "leak").tolist()
    assert set(found) == {False, True}
