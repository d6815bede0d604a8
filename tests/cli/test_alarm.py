"""``fdrsvm alarm``: a threshold per plant, files for other commands, sentences on bad input."""

import csv
import io
import json

import numpy as np
import pytest

from fdrsvm import AlarmThreshold
from fdrsvm.model.model_file import load_model, save_model
from tests.cli.cases import CLIENTS, FEATURES, OFFSETS, SCALES, call, error_line, run, write_csv
from tests.estimators.structured_text import FunctionBlock


def new_rows(seed, n_rows=200):
    """Readings with their true labels, not those of training."""
    X = np.random.default_rng(100 + seed).normal(size=(n_rows, 3))
    labels = np.where(X @ [1.0, -0.6, 0.2] > 0.0, "leak", "healthy")
    return X * SCALES + OFFSETS, labels


@pytest.fixture
def fault_is_leak(model, tmp_path):
    path = tmp_path / "model.safetensors"
    save_model(load_model(model).with_record(positive="leak"), path)
    return path


def test_one_file_of_healthy_rows_gives_one_model(fault_is_leak, tmp_path, capsys):
    X, y = new_rows(0)
    healthy = X[y == "healthy"]
    path = write_csv(tmp_path / "healthy.csv", healthy)
    done = run("alarm", fault_is_leak, path, "--rate", "0.05")
    assert (done.returncode, done.stderr) == (0, "")
    expected = AlarmThreshold(0.05).fit(load_model(fault_is_leak), healthy)
    assert expected.statement_ in " ".join(done.stdout.split())
    output = tmp_path / "alarm.safetensors"
    assert f"Model: {output}" in done.stdout
    assert f"Next:  fdrsvm predict {output} NEW.csv" in done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines()[1:2]]
    promise = expected.alarms_[None]
    assert row == [
        str(len(healthy)),
        f"{promise.threshold:.4g}",
        f"{1000 * promise.expected_rate:.4g}",
    ]
    made = load_model(output)
    assert made.threshold == expected.model_.threshold
    assert made.record["alarm"] == expected.model_.record["alarm"]
    # The next commands take it.
    code, out, _ = call(capsys, "predict", output, path)
    assert code == 0
    found = [line["predicted"] == "leak" for line in csv.DictReader(io.StringIO(out))]
    assert found == expected.alarms(healthy).tolist()
    code, out, _ = call(capsys, "export", "st", output)
    assert code == 0
    assert [FunctionBlock(out)(x)["ALARM"] for x in healthy[:5]] == found[:5]
    code, _, err = call(capsys, "evaluate", output, write_csv(tmp_path / "all.csv", X, y))
    assert code == 0, err


def test_each_client_has_a_file_and_faults_are_counted(fault_is_leak, tmp_path, capsys):
    parts = {name: new_rows(k + 1) for k, name in enumerate(CLIENTS)}
    (tmp_path / "new").mkdir()
    for name, (X, y) in parts.items():
        write_csv(tmp_path / "new" / f"{name}.csv", X, y)
    output = tmp_path / "made"
    options = ("--rate", "0.1", "--confidence", "0.9", "--trim", "0.02", "--output", output)
    code, out, err = call(capsys, "alarm", fault_is_leak, tmp_path / "new", *options)
    assert (code, err) == (0, "")
    lines = {line.split()[0]: line.split() for line in out.splitlines()[1:4]}
    for name, (X, y) in parts.items():
        alone = AlarmThreshold(0.1, 0.9, 0.02)
        alone.fit(load_model(fault_is_leak), X[y == "healthy"])
        assert load_model(output / f"{name}.safetensors").threshold == alone.model_.threshold
        n_found, n_faults = alone.alarms(X[y == "leak"]).sum(), np.sum(y == "leak")
        assert f"{n_found} of {n_faults} ({n_found / n_faults:.0%})" in " ".join(lines[name])
        assert lines[name][1:3] == [
            str(np.sum(y == "healthy")),
            str(alone.alarms_[None].n_left_out),
        ]
        assert f"a healthy reading of plant {name}" in " ".join(out.split())
    _, out, _ = call(capsys, "alarm", fault_is_leak, tmp_path / "new", *options, "--json")
    content = json.loads(out)
    assert [one["client"] for one in content] == list(CLIENTS)
    assert {one["n_faults"] for one in content} == {
        int(np.sum(y == "leak")) for _, y in parts.values()
    }
    # One file with a column of clients, and the same under names given, give the same.
    X, y = (np.concatenate(each) for each in zip(*parts.values(), strict=True))
    plants = np.repeat(CLIENTS, 200)
    joined = write_csv(tmp_path / "joined.csv", X, y, plant=plants.tolist())
    once_more = tmp_path / "again"
    again = (*options[:-1], once_more)
    assert call(capsys, "alarm", fault_is_leak, joined, "--client-column", "plant", *again)[0] == 0
    for name in CLIENTS:
        one, other = (load_model(folder / f"{name}.safetensors") for folder in (output, once_more))
        assert one.threshold == other.threshold


def test_the_fault_can_be_the_class_that_is_sorted_first(model, tmp_path, capsys):
    X, y = new_rows(5)
    path = write_csv(tmp_path / "rows.csv", X, y)
    output = tmp_path / "out.safetensors"
    options = ("--rate", "0.1", "--fault", "healthy", "--output", output)
    assert call(capsys, "alarm", model, path, *options)[0] == 0
    made = load_model(output)
    assert made.positive == 0
    assert np.mean(made.predict(X[y == "leak"]) == "healthy") <= 0.1


@pytest.mark.parametrize(("options", "said"), [
    (("--rate", "0"), "rate: must be at least 1e-09 and below 1 (0.01 is 1 %); it is 0.0"),
    (("--rate", "1"), "rate: must be at least 1e-09 and below 1 (0.01 is 1 %); it is 1.0"),
    (("--rate", "-0.05"), "(0.01 is 1 %); it is -0.05"),
    (("--confidence", "90"), "confidence: must be above 0 and below 1 (0.9 is 90 %)"),
    (("--trim", "0.5"), "trim: must be at least 0 and below 1/2 (0.05 is 5 %); it is 0.5"),
    (("--rate", "0.001"), "at least 999 healthy rows for a rate of 0.1 %; there are"),
    (("--fault", "crack"), "must be one of the classes ['healthy', 'leak']; it is 'crack'"),
    (("--label", "state"), "must have the label column 'state'"),
])  # fmt: skip
def test_wishes_that_cannot_be_met_are_sentences(options, said, fault_is_leak, tmp_path, capsys):
    X, y = new_rows(0)
    path = write_csv(tmp_path / "rows.csv", X, y)
    assert said in error_line(capsys, "alarm", fault_is_leak, path, *options)
    assert not (tmp_path / "alarm.safetensors").exists()


def test_files_that_will_not_do_are_sentences(home, fault_is_leak, tmp_path, capsys):
    X, y = new_rows(0)
    path = write_csv(tmp_path / "rows.csv", X, y)
    three = home / "three-run" / "model.safetensors"
    line = error_line(capsys, "alarm", three, home / "three" / "north.csv", "--rate", "0.1")
    assert "alarms are for two classes, healthy and fault; the model has 3" in line
    other = tmp_path / "other.csv"
    other.write_text("flow,pressure\n1,2\n")
    line = error_line(capsys, "alarm", fault_is_leak, other)
    assert f"must have the columns {', '.join(map(repr, FEATURES))}; it lacks 'temperature'" in line
    only = write_csv(tmp_path / "only.csv", X[y == "leak"], y[y == "leak"])
    line = error_line(capsys, "alarm", fault_is_leak, only)
    assert "must hold healthy rows of every client; is the fault another class (--fault)?" in line
    bare = write_csv(tmp_path / "bare.csv", X)  # labels in one file, none in the other
    assert "must have the label column 'label'" in error_line(
        capsys, "alarm", fault_is_leak, path, bare
    )
    few = write_csv(tmp_path / "few.csv", X[:7], y[:7])
    line = error_line(capsys, "alarm", fault_is_leak, path, few, "--rate", "0.05")
    n_few = int(np.sum(y[:7] == "healthy"))
    assert (
        f"at least 19 healthy rows of every client for a rate of 5 %; client 'few' has {n_few};"
        in line
    )
    assert "leave these clients out, or ask for a rate of" in line
    line = error_line(capsys, "alarm", fault_is_leak, path, few, "--output", "a.safetensors")
    assert "--output: must be a folder, for the 2 clients; it is a.safetensors" in line


@pytest.mark.parametrize("names", [("a/b", "c"), ("..", "c"), ("A", "a")])
def test_clients_whose_names_no_file_can_have_are_refused(names, fault_is_leak, tmp_path, capsys):
    X, y = new_rows(0)
    path = write_csv(tmp_path / "rows.csv", X, y, plant=[names[k % 2] for k in range(200)])
    options = ("--client-column", "plant", "--rate", "0.1")
    line = error_line(capsys, "alarm", fault_is_leak, path, *options)
    assert "must have names that files can have, all different" in line


def test_mixed_in_faults_and_training_rows_are_warned_of(fault_is_leak, home, tmp_path, capsys):
    X, y = new_rows(0)
    scores = load_model(fault_is_leak).decision_function(X)
    healthy = X[(y == "healthy") & (scores < -0.2)]
    far = np.tile(OFFSETS, (8, 1)) + SCALES * [9.0, -9.0, 0.0]
    far += SCALES * 0.01 * np.random.default_rng(0).normal(size=far.shape)
    path = write_csv(tmp_path / "healthy.csv", np.concatenate([healthy, far]))
    code, _, err = call(capsys, "alarm", fault_is_leak, path, "--rate", "0.05")
    assert code == 0
    assert "the 8 highest fault scores of" in err
    trim = err.split("--trim ")[1].split(")")[0]
    code, _, err = call(capsys, "alarm", fault_is_leak, path, "--rate", "0.05", "--trim", trim)
    assert (code, err) == (0, "")
    assert load_model(tmp_path / "alarm.safetensors").predict(far).tolist() == ["leak"] * 8
    _, _, err = call(capsys, "alarm", fault_is_leak, home / "plants", "--rate", "0.1")
    assert (
        "as many rows here as in training ('north' has 40, 'south' has 40, 'west' has 40): " in err
    )
    assert err.count("give rows that were kept out of training") == 1
