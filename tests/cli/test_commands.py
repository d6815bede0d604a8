"""What is done with a model file: evaluate, certify, report, export; and bench."""

import csv
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    balanced_accuracy_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from fdrsvm import RiskOracle, mowb_confidence
from fdrsvm.cli.audit_leak import _outcome
from fdrsvm.federated import InProcess, Subgradient, make_client, run_rounds
from fdrsvm.model.model_file import load_model
from fdrsvm.privacy import Recorded
from tests.cli.cases import (
    CLIENTS,
    OFFSETS,
    SCALES,
    call,
    error_line,
    rows_of,
    run,
    write_csv,
)
from tests.estimators.imbalanced import make_faults


def scores_by(out):
    return {(one["model"], one["client"]): one for one in json.loads(out)}


def test_evaluate_agrees_with_scikit_learn(home, model, capsys):
    code, out, _ = call(capsys, "evaluate", model, home / "plants", "--json")
    assert code == 0
    found = scores_by(out)
    parts = {name: rows_of(name) for name in CLIENTS}
    parts["all"] = tuple(np.concatenate(each) for each in zip(*parts.values(), strict=True))
    rarer = min(("leak", "healthy"), key=lambda label: np.sum(parts["all"][1] == label))
    for name, (X, y) in parts.items():
        guess, one = load_model(model).predict(X), found["model", name]
        assert one["n_rows"] == len(y)
        assert one["accuracy"] == pytest.approx(accuracy_score(y, guess), rel=1e-12)
        assert one["f1"] == pytest.approx(f1_score(y, guess, pos_label=rarer), rel=1e-12)
        assert one["f1_of"] == rarer
        balanced = balanced_accuracy_score(y, guess)
        assert one["balanced_accuracy"] == pytest.approx(balanced, rel=1e-12)
        precision, recall, _, _ = precision_recall_fscore_support(y, guess, labels=[rarer])
        assert one["precision"] == pytest.approx(precision[0], rel=1e-12)
        assert one["recall"] == one["recalls"][rarer] == pytest.approx(recall[0], rel=1e-12)
        scores = load_model(model).decision_function(X) * (1 if rarer == "leak" else -1)
        ranked = average_precision_score(y == rarer, scores)
        assert one["average_precision"] == pytest.approx(ranked, rel=1e-12)
        is_fault = y == rarer
        assert (one["n_faults"], one["n_found"]) == (
            is_fault.sum(),
            (guess[is_fault] == rarer).sum(),
        )
        assert one["n_false_alarms"] == (guess[~is_fault] == rarer).sum()
        assert one["counts"] == confusion_matrix(y, guess).tolist()
    _, out, _ = call(capsys, "evaluate", model, home / "plants", "--json", "--positive", "healthy")
    X, y = parts["all"]
    other = f1_score(y, load_model(model).predict(X), pos_label="healthy")
    assert scores_by(out)["model", "all"]["f1"] == pytest.approx(other, rel=1e-12)


def test_evaluate_compares_with_local_federated_and_central_models(home, model):
    done = run("evaluate", model, home / "plants", "--compare", home / "plants")
    assert (done.returncode, done.stderr) == (0, "")
    table, _, notes = done.stdout.partition("\n\n")
    rows = [line.split() for line in table.splitlines()[1:]]
    kinds = ["model", "local", "federated", "central", "logistic", "boosting"]
    assert [row[:2] for row in rows] == [[k, c] for k in kinds for c in (*CLIENTS, "all")]
    by_kind = {kind: [row[1:] for row in rows if row[0] == kind] for kind in kinds}
    assert by_kind["federated"] == by_kind["model"]  # the same rows, parameters and scaling
    said = " ".join(notes.split())
    assert "Counted as a fault is 'leak'" in said or "Counted as a fault is 'healthy'" in said
    assert "local, federated and central are cut at score 0, as the model is" in said
    assert "logistic and boosting at a probability of 0.5" in said


def test_a_client_with_one_class_has_no_local_model(home, model, tmp_path, capsys):
    X, y = rows_of("north")
    (tmp_path / "train").mkdir()
    write_csv(tmp_path / "train" / "north.csv", X[y == "leak"], y[y == "leak"])
    write_csv(tmp_path / "train" / "south.csv", *rows_of("south"))
    data = [home / "plants" / f"{name}.csv" for name in ("north", "south")]
    _, out, _ = call(capsys, "evaluate", model, *data, "--compare", tmp_path / "train")
    lines = [line.split() for line in out.splitlines()]
    for kind in ("local", "logistic", "boosting"):
        assert [kind, "north", "40", *"-------"] in lines
        assert [kind, "all", "80", *"-------"] in lines
        assert f"No {kind} model for north: its training rows are all 'leak'." in " ".join(
            out.split()
        )
    line = error_line(capsys, "evaluate", model, *data, "--compare", data[0])
    assert "must have training rows of every client that is scored; none of 'south'" in line


def test_certify_recomputes_what_the_file_says(home, model):
    done = run("certify", model, home / "plants")
    assert (done.returncode, done.stderr) == (0, "")
    said = " ".join(done.stdout.split())
    assert "These are the numbers in the file." in said
    assert "Guarded against" in said
    assert "Confidence: not stated" in said
    kept = load_model(model).certificate
    assert f"worst-case risk of {kept['objective']:.6g}" in said
    assert f"Weighted sum: {kept['objective']:.6g}" in said


def test_certify_is_the_risk_oracles_word(home, model, capsys):
    options = ("--epsilon", "0.3", "--kappa", "0.7", "--norm", "l1")
    _, out, _ = call(capsys, "certify", model, home / "plants", "--json", *options)
    found = json.loads(out)
    assert found["agrees_with_file"] is None
    loaded = load_model(model)
    low, span = (np.array(loaded.record["scaling"][name]) for name in ("offset", "scale"))
    w = loaded.coef[0] * span
    b = float(loaded.intercept[0] + loaded.coef[0] @ low)
    for one in found["recomputed"]:
        X, y = rows_of(one["client"])
        signs = np.where(y == "leak", 1.0, -1.0)
        ball = {"epsilon": 0.3, "kappa": 0.7, "norm": "l1"}
        risk = RiskOracle((X - low) / span, signs, **ball).value(w, b)
        assert one["worst_case"] == pytest.approx(risk, rel=1e-9)
    costs = []
    for name in CLIENTS:
        costs += [abs(s) for s in loaded.decision_function(rows_of(name)[0])]
    costs = np.sort(costs) / np.abs(w).max()  # the dual of l1 is linf
    assert found["flips"]["0.25"] == pytest.approx(costs[29], rel=1e-9)
    assert np.mean(costs <= found["flips"]["0.25"] * (1 + 1e-9)) >= 0.25


def test_certify_says_when_data_are_not_those_of_training(model, tmp_path, capsys):
    X, y = rows_of("north")
    write_csv(tmp_path / "north.csv", X + 1.0, y)
    _, out, _ = call(capsys, "certify", model, tmp_path / "north.csv")
    assert "These are not the numbers in the file" in out


def test_certify_says_how_loose_the_bound_of_curves_is(home, tmp_path, capsys):
    options = ("--features", "additive", "--no-tune", "--set", "epsilon=0.02", "--output", tmp_path)
    assert call(capsys, "fit", home / "plants", *options)[0] == 0
    model = tmp_path / "model.safetensors"
    kept = json.loads((tmp_path / "certificate.json").read_text("utf-8"))
    assert kept["objective_is"].startswith("at most")
    _, out, _ = call(capsys, "certify", model, home / "plants")
    said = " ".join(out.split())
    assert f"has a worst-case risk of at most {kept['objective']:.6g}" in said
    assert "at least at most slack" in said
    _, out, _ = call(capsys, "certify", model, home / "plants", "--json")
    found = json.loads(out)
    for one in found["recomputed"]:
        assert one["mean_loss"] < one["at_least"] <= one["at_most"] * (1.0 + 1e-9)
        row = f"{one['client']} {one['at_least']:.6g} {one['at_most']:.6g} "
        slack = max(one["at_most"] / one["at_least"] - 1.0, 0.0)
        assert f"{row}{slack:.2%}" in said
    [[low, high]] = found["weighted_limits"]
    assert f"Weighted sum: {low:.6g} to {high:.6g}" in said
    _, out, _ = call(capsys, "certify", model, home / "plants", "--epsilon", "0.1", "--json")
    assert json.loads(out)["weighted_limits"][0][0] > low


def test_certify_states_the_papers_confidence_if_told_its_constants(model, capsys):
    _, out, _ = call(capsys, "certify", model, "--c1", "2", "--c2", "1e4")
    value = mowb_confidence([0.02] * 3, [40] * 3, 3, c1=2.0, c2=1e4)
    assert 0.0 < value < 1.0
    in_any_case = mowb_confidence([0.02] * 3, [40] * 3, 3, c1=2.0, c2=1e4, independent=False)
    assert (
        f"with probability {value:.4g} at least if clients are independent of each other, "
        f"{in_any_case:.4g} in any case"
    ) in " ".join(out.split())


def test_certify_asks_for_data_where_another_ball_is_asked_about(model, capsys):
    line = error_line(capsys, "certify", model, "--epsilon", "0.1", code=2)
    assert "need data to recompute on" in line


def test_certify_knows_three_classes_and_baselines(home, tmp_path, capsys):
    three = home / "three-run" / "model.safetensors"
    code, out, _ = call(capsys, "certify", three, home / "three")
    assert code == 0
    assert "These are the numbers in the file." in out
    assert " ".join(out.split()).count("against the rest has a worst-case risk") == 3
    options = ("--estimator", "FedSVC", "--set", "max_rounds=3", "--output", tmp_path)
    call(capsys, "fit", home / "plants", *options)
    baseline = tmp_path / "model.safetensors"
    _, out, _ = call(capsys, "certify", baseline)
    assert "guards against nothing" in out
    line = error_line(capsys, "certify", baseline, home / "plants")
    assert "give a radius epsilon" in line
    assert call(capsys, "certify", baseline, home / "plants", "--epsilon", "0.1")[0] == 0


def test_report_is_one_page_that_needs_no_network(home, model, tmp_path):
    path = tmp_path / "page.html"
    done = run("report", model, home / "plants", "--sample", "17", "--output", path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Report: {path}\n"
    assert "Row 17, of client north" in path.read_text(encoding="utf-8")


def test_a_row_that_is_not_there_is_refused(home, model, tmp_path, capsys):
    out = ("--output", tmp_path / "page.html")
    line = error_line(capsys, "report", model, home / "plants", "--sample", "120", *out)
    assert "sample: must be the number of a row, 0 to 119; it is 120" in line
    assert "--sample needs data" in error_line(capsys, "report", model, "--sample", "1", code=2)


@pytest.mark.parametrize("command", ["predict", "report"])
def test_an_output_that_cannot_be_written_is_named(command, home, model, tmp_path, capsys):
    for path, reason in ((tmp_path / "no" / "file", "No such file"), (tmp_path, "Is a directory")):
        line = error_line(capsys, command, model, home / "plants", "--output", path)
        assert line.startswith(f"fdrsvm: {path}: {reason}")


def test_exports_take_readings_as_they_are(home, model, tmp_path):
    done = run("export", "onnx", model, "--output", tmp_path / "leak.onnx")
    assert (done.returncode, done.stderr) == (0, "")
    runtime = pytest.importorskip("onnxruntime")
    X, _ = rows_of("north")
    session = runtime.InferenceSession(str(tmp_path / "leak.onnx"))
    labels, _ = (session.run([name], {"X": X})[0] for name in ("label", "score"))
    assert labels.tolist() == load_model(model).predict(X).tolist()


def test_exports_as_text(model, tmp_path, capsys):
    _, out, _ = call(capsys, "export", "json", model)
    content = json.loads(out)
    assert content["coef"] == load_model(model).coef.tolist()
    assert content["record"]["scaling"]["method"] == "minmax"
    _, out, _ = call(capsys, "export", "st", model, "--name", "LeakScore", "--alarm-on", "leak")
    assert "FUNCTION_BLOCK LeakScore" in out
    assert "Alarm := (ClassNumber = 2);" in out
    assert "alarm_on" in error_line(capsys, "export", "st", model, "--alarm-on", "leek")


@pytest.mark.parametrize("command", ["predict", "evaluate", "certify", "report"])
def test_files_that_do_not_fit_the_model_are_named(command, home, model, tmp_path, capsys):
    none = tmp_path / "none.safetensors"
    line = error_line(capsys, command, none, home / "plants")
    assert line == f"fdrsvm: {none}: No such file or directory"
    assert "a folder; give the model.safetensors in it" in error_line(
        capsys, command, tmp_path, home / "plants"
    )
    other = home / "plants-run" / "certificate.json"
    for wrong in (other, next((home / "plants").iterdir())):
        line = error_line(capsys, command, wrong, home / "plants")
        assert "not a file of this package; give the model.safetensors" in line
        assert "cut short" not in line
    path = tmp_path / "north.csv"
    path.write_text("flow,pressure,label\n1,2,leak\n")
    line = error_line(capsys, command, model, path)
    assert "must have the columns 'flow', 'pressure', 'temperature'; it lacks 'temperature'" in line
    path.write_text("flow,pressure,temperature,label\n1,2,?,leak\n")
    line = error_line(capsys, command, model, path)
    if command == "predict":
        assert "none of 1 can; row 2 of 'north': 'temperature' is missing" in line
    else:
        rule = "column 'temperature': every value must be a finite number; row 2 is missing"
        assert rule in line
        assert "leave such rows out with --missing drop" in line


@pytest.mark.parametrize("command", ["evaluate", "certify", "report"])
def test_labels_that_the_model_does_not_know_are_named(command, model, tmp_path, capsys):
    path = tmp_path / "north.csv"
    path.write_text("flow,pressure,temperature,label\n1,2,3,leak\n1,2,3,leek\n")
    line = error_line(capsys, command, model, path)
    assert (
        "must be among the model's classes ['healthy', 'leak']; row 3 of client 'north' is 'leek'"
        in line
    )


def test_an_unknown_client_is_named_where_the_radius_differs(home, tmp_path, capsys):
    radii = "epsilon={north = 0.01, south = 0.02, west = 0.03}"
    call(capsys, "fit", home / "plants", "--set", radii, "--output", tmp_path)
    path = write_csv(tmp_path / "east.csv", *rows_of("north"))
    line = error_line(capsys, "certify", tmp_path / "model.safetensors", path)
    assert "epsilon: is known for the clients of training, 'north', 'south', 'west'" in line
    assert "'east' is none of them" in line


def test_bench_runs_the_benchmarks_of_a_checkout(tmp_path):
    entry = tmp_path / "benchmarks" / "__main__.py"
    entry.parent.mkdir()
    entry.write_text("import sys; print('measured', *sys.argv[1:]); sys.exit(5)\n")
    (tmp_path / "deep").mkdir()
    done = run("bench", "oracle", "--quick", cwd=tmp_path / "deep")
    assert (done.returncode, done.stdout) == (5, "measured oracle --quick\n")


def test_bench_outside_a_checkout_says_where_to_run_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "run this in a checkout" in error_line(capsys, "bench")


def test_federation_server_and_client_answer_through_a_process(tmp_path):
    for command in (("federation", "status"), ("server",), ("client",)):
        done = run(*command, tmp_path)
        assert done.returncode == 1
        assert "federation init" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_audit_leak_finds_rows_in_messages_and_fewer_in_sums(home):
    options = ("--set", "algorithm=subgradient", "--set", "kappa=inf", "--rounds", "60")
    done = run("audit-leak", home / "plants", *options)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    clients = [line for line in lines if line[:1] and line[0] in CLIENTS]
    assert [line[:2] for line in clients] == [[name, "40"] for name in CLIENTS]
    # client, rows, cuts, claimed, from cuts, recovered, share, %, other half, recovered, share, %
    assert 0 < sum(int(line[4]) for line in clients) <= sum(int(line[5]) for line in clients)
    assert [(line[8], int(line[9]) <= 20) for line in clients] == [("20", True)] * len(CLIENTS)
    (sums,) = [line for line in lines if line[:1] == ["all"]]
    assert int(sums[1]) == 120
    assert int(sums[5]) <= sum(int(line[5]) for line in clients)


def test_audit_leak_shows_what_blur_and_resolution_cost_and_buy(home, capsys):
    options = ("--set", "algorithm=subgradient", "--set", "kappa=inf", "--rounds", "30")
    defences = ("--blur", "3", "--resolution", "1e-3")
    code, out, err = call(capsys, "audit-leak", home / "plants", *options, *defences)
    assert (code, err) == (0, "")
    first = out.splitlines()[0]
    assert first.startswith("30 rounds with blur 3 and resolution 0.001: objective ")
    objective = float(first.split("objective ")[1].split(",")[0])
    gap = float(first.split("certified gap ")[1].split(",")[0])
    part = float(first.split("may be up to ")[1].removesuffix("."))
    # A part of the whole; both are printed with two digits.
    assert part == float(f"{min(0.002 / objective, gap):.2g}")
    (sums,) = [line.split() for line in out.splitlines() if line.startswith("all ")]
    assert sums[5] == "0"
    twice = error_line(capsys, "audit-leak", home / "plants", "--blur", "3", "--set", "blur=3")
    assert "blur: must be given once" in twice


def test_audit_leak_finds_sensors_behind_a_map(home, capsys):
    options = ("--set", "algorithm=subgradient", "--set", "kappa=inf", "--rounds", "40")
    bent = ("--features", "additive")
    code, out, err = call(capsys, "audit-leak", home / "plants", *options, *bent)
    assert (code, err) == (0, "")
    (total,) = [line.split() for line in out.splitlines() if line.startswith("in all")]
    assert int(total[6]) > 0  # recovered
    _, straight, _ = call(capsys, "audit-leak", home / "plants", *options)
    assert straight.splitlines()[0] != out.splitlines()[0]
    both = error_line(capsys, "audit-leak", home / "plants", *bent, "--set", "features=linear")
    assert "features: must be given once" in both
    wrong = error_line(capsys, "audit-leak", home / "plants", "--features", "curves")
    assert "must be one of 'linear', 'additive'" in wrong
    unscaled = error_line(capsys, "audit-leak", home / "plants", *bent, "--scaling", "standard")
    assert "features: needs limits of the sensors; --scaling standard sets none" in unscaled


@pytest.mark.parametrize(
    ("objective", "gap", "end"),
    [
        (0.5, 0.01, "certified gap 0.01, of which the resolution may be up to 0.004."),
        (0.5, 0.00014, "certified gap 0.00014, of which the resolution may be up to 0.00014."),
        (0.0, 0.0, "certified gap 0."),
    ],
)
def test_audit_leak_gives_the_resolution_no_more_than_the_gap(objective, gap, end):
    result = SimpleNamespace(n_rounds=3, objective=objective, gap=gap)
    assert _outcome(result, 0, 1e-3).endswith(end)


def test_audit_leak_takes_a_recording(home, tmp_path, capsys):
    problems = []
    for name in CLIENTS:
        X, y = rows_of(name)
        problems.append(
            make_client(name, X / 100.0, np.where(y == "leak", 1.0, -1.0), kappa=np.inf)
        )
    transport = Recorded(InProcess(problems), tmp_path / "messages")
    run_rounds(transport, Subgradient(1.0), max_rounds=10, tol=0.0)
    code, out, err = call(capsys, "audit-leak", "--recording", tmp_path / "messages")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["client", *CLIENTS, "in"]
    assert "-" in out.splitlines()[1]  # without the true rows nothing is graded
    given = ("--set", "algorithm=subgradient"), ("--features", "additive")
    for option in (("--blur", "0"), ("--rounds", "300"), *given):
        line = error_line(capsys, "audit-leak", "--recording", tmp_path / "messages", *option)
        assert f"{option[0]}: must not be given with --recording" in line
    line = error_line(capsys, "audit-leak", "--recording", tmp_path / "none")
    assert "folder: must hold a recording" in line
    three = error_line(capsys, "audit-leak", home / "three", "--rounds", "5")
    assert "two classes; there are 3" in three


# --- a model that finds nothing ---


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    """Four plants with 3 % faults, and what ``fit`` said of a model on them."""
    home = tmp_path_factory.mktemp("faults")
    X, y, plants = make_faults(n_features=3)
    (home / "plants").mkdir()
    for name in np.unique(plants):
        own = plants == name
        write_csv(home / "plants" / f"{name}.csv", X[own] * SCALES + OFFSETS, y[own])
    return home, run("fit", "plants", "--no-tune", cwd=home)


SAID = "fdrsvm: the model never predicts 'Fault' (36 of 1200 rows are)"


def test_fit_says_that_a_model_finds_nothing_and_the_remedy_it_names_works(faults, capsys):
    home, done = faults
    assert done.returncode == 4
    (line,) = done.stderr.splitlines()
    assert line.startswith(SAID)
    assert "fit ... --class-weight balanced; if that is not enough, --set epsilon=..." in line
    kept = json.loads((home / "run" / "certificate.json").read_text())
    assert kept["verdict"] == line.removeprefix("fdrsvm: ")
    assert kept["positive"] == "Fault"
    out = home / "balanced"
    arguments = ("fit", home / "plants", "--class-weight", "balanced", "--output", out)
    code, _, err = call(capsys, *arguments, "--no-tune")
    assert (code, err) == (0, "")
    assert "verdict" not in json.loads((out / "certificate.json").read_text())
    assert load_model(out / "model.safetensors").params["class_weight"] == "balanced"
    found = call(capsys, "evaluate", out / "model.safetensors", home / "plants", "--json")
    assert (found[0], found[2]) == (0, "")
    assert scores_by(found[1])["model", "all"]["balanced_accuracy"] > 0.65


def test_the_default_command_finds_the_faults_and_says_what_it_chose(faults, capsys):
    home, _ = faults
    code, out, err = call(capsys, "fit", home / "plants", "--output", home / "tuned")
    assert (code, err) == (0, "")
    assert "Tuned by 5-fold cross-validation for balanced accuracy:" in out
    kept = json.loads((home / "tuned" / "certificate.json").read_text())["tuning"]
    model = load_model(home / "tuned" / "model.safetensors")
    assert model.threshold == kept["threshold"]
    counts = np.array(kept["counts"])
    assert counts.sum() == 1200
    assert f"On held-out rows: {counts[0, 0]:g} of 36 'Fault' found, {counts[1, 0]:g} false" in out
    found = call(
        capsys, "evaluate", home / "tuned" / "model.safetensors", home / "plants", "--json"
    )
    assert scores_by(found[1])["model", "all"]["balanced_accuracy"] > 0.65


def test_evaluate_says_it_too_and_names_the_class_that_f1_is_of(faults, capsys):
    home, _ = faults
    model, data = home / "run" / "model.safetensors", home / "plants"
    code, out, err = call(capsys, "evaluate", model, data)
    assert (code, err.startswith(SAID), len(err.splitlines())) == (0, True, 1)
    table, _, notes = out.partition("\n\n")
    heading, *rows = table.splitlines()
    assert "'Fault' found" in heading
    assert "F1 of 'Fault'" in heading
    cells = [re.split(r" {2,}", row.strip()) for row in rows]
    assert cells[-1][3:6] == ["0 of 36", "0 (0.0 %)", "-"]
    assert all(row[3].startswith("0 of ") and row[4:6] == cells[-1][4:6] for row in cells)
    assert [(row[6], row[9]) for row in cells] == [("0.000", "0.000")] * 5
    assert "Counted as a fault is 'Fault' (as the model file says)" in notes
    _, out, _ = call(capsys, "evaluate", model, data, "--fault", "ok")
    assert "F1 of 'ok'" in out
    _, out, _ = call(capsys, "evaluate", model, data, "--json")
    assert {one["f1_of"] for one in json.loads(out)} == {"Fault"}
    line = error_line(capsys, "evaluate", model, data, "--fault", "leak")
    assert "fault: must be one of the classes ['Fault', 'ok']; it is 'leak'" in line


def test_report_says_it_on_the_console_and_on_the_page(faults, capsys):
    home, _ = faults
    model, page = home / "run" / "model.safetensors", home / "report.html"
    for data in ((home / "plants",), ()):
        code, _, err = call(capsys, "report", model, *data, "--output", page)
        assert (code, err.startswith(SAID)) == (0, True)
        assert '<p class="verdict">Warning: the model never predicts' in page.read_text()
    line = error_line(capsys, "report", model, "--fault", "ok", code=2)
    assert "--fault needs data" in line


def test_the_model_file_remembers_the_class_that_was_asked_for(home, tmp_path, capsys):
    arguments = ("fit", home / "plants", "--fault", "healthy", "--set", "epsilon=0.02")
    code, _, err = call(capsys, *arguments, "--output", tmp_path)
    assert (code, err) == (0, "")
    _, out, _ = call(capsys, "evaluate", tmp_path / "model.safetensors", home / "plants")
    assert "F1 of 'healthy'" in out
    (tmp_path / "run.toml").write_text(f"[data]\nfolder = '{home / 'plants'}'\nfault = 'leak'\n")
    call(capsys, "fit", "--config", tmp_path / "run.toml", "--output", tmp_path)
    assert load_model(tmp_path / "model.safetensors").record["positive"] == "leak"
    line = error_line(capsys, *arguments[:2], "--fault", "worn", "--output", tmp_path)
    assert "fault: must be one of the classes ['healthy', 'leak']; it is 'worn'" in line
    line = error_line(capsys, "fit", home / "three", "--fault", "worn", "--output", tmp_path)
    assert "fault: is for two classes; there are 3" in line


def test_of_three_classes_the_mean_is_given(home, capsys):
    three = home / "three-run" / "model.safetensors"
    _, out, _ = call(capsys, "evaluate", three, home / "three")
    assert "mean F1" in out
    assert "recall of 'worn'" in out
    line = error_line(capsys, "evaluate", three, home / "three", "--fault", "worn")
    assert "fault: is for two classes; of more the mean F1 is given" in line


def test_certify_moves_no_row_where_no_feature_matters(faults, capsys):
    home, _ = faults
    _, out, _ = call(capsys, "certify", home / "run" / "model.safetensors", home / "plants")
    assert "No feature matters" in out
    assert "How far rows must move" not in out


def test_certify_predict_and_export_say_what_fit_said(faults, capsys):
    home, done = faults
    model, data = home / "run" / "model.safetensors", home / "plants"
    said = done.stderr.strip().removeprefix("fdrsvm: ")
    _, out, _ = call(capsys, "certify", model)
    assert " ".join(out.split()).startswith(f"Warning: {said}.")
    _, out, _ = call(capsys, "certify", model, "--json")
    assert json.loads(out)["words"][0] == f"Warning: {said}."
    for command in (("predict", model, data), ("export", "json", model), ("export", "st", model)):
        code, out, err = call(capsys, *command)
        assert (code, err) == (0, done.stderr)
        assert said not in out.partition("record")[0]  # stdout is what was asked for


def test_one_row_and_equal_rows_are_no_reason_to_doubt_a_model(home, model, tmp_path, capsys):
    X, y = rows_of("north")
    one = tmp_path / "one.csv"
    for n_rows in (1, 7):
        write_csv(one, np.repeat(X[:1], n_rows, axis=0), np.repeat(y[:1], n_rows))
        code, _, err = call(capsys, "evaluate", model, one)
        assert (code, err) == (0, "")
        _, out, _ = call(capsys, "certify", model, one)
        assert "No feature matters" not in out
        assert "How far rows must move" in out
        page = tmp_path / "page.html"
        assert call(capsys, "report", model, one, "--output", page)[2] == ""
        assert "No feature matters" not in page.read_text()


def test_a_missed_fault_in_a_small_file_is_no_reason_to_train_again(home, model, tmp_path, capsys):
    X, _ = rows_of("north")
    healthy = X[load_model(model).predict(X) == "healthy"]
    path = tmp_path / "north.csv"
    for n_missed in (1, 4, 5):
        y = np.repeat(["leak", "healthy"], [n_missed, len(healthy) - n_missed])
        write_csv(path, healthy, y)
        _, _, err = call(capsys, "evaluate", model, path)
        assert ("never predicts 'leak'" in err) == (n_missed == 5)


def test_few_rows_do_not_silence_what_fit_said(faults, tmp_path, capsys):
    home, done = faults
    lines = min((home / "plants").iterdir()).read_text().splitlines()
    (tmp_path / "few.csv").write_text("\n".join(lines[:3]) + "\n")
    model = home / "run" / "model.safetensors"
    _, _, err = call(capsys, "evaluate", model, tmp_path / "few.csv")
    assert err == done.stderr.replace("fdrsvm: the model", "fdrsvm: in training the model")


@pytest.mark.parametrize("name", ["additive", "additive-pairs", "fourier"])
def test_bent_models_are_judged_certified_and_shown(name, home, tmp_path, capsys):
    plants, out = home / "plants", tmp_path / "run"
    assert call(capsys, "fit", plants, "--no-tune", "--features", name, "--output", out)[0] == 0
    file = out / "model.safetensors"
    code, answer, _ = call(capsys, "predict", file, plants)
    assert code == 0
    model = load_model(file)
    X = np.concatenate([rows_of(client)[0] for client in CLIENTS])
    lines = list(csv.DictReader(answer.splitlines()))
    assert [line["predicted"] for line in lines] == model.predict(X).tolist()

    code, said, _ = call(capsys, "certify", file, plants)
    assert code == 0
    # Curves are exact in linf, the norm of training, and here no surface has a weight.
    assert ("proved: at least" in said) == (name == "fourier")
    assert ("each turns its row" in said) == (name == "fourier")
    content = json.loads(call(capsys, "certify", file, plants, "--json")[1])
    for share, move in content["flips"].items():
        assert content["flips_at_least"][share] <= move * (1.0 + 1e-6)

    page = tmp_path / "page.html"
    assert call(capsys, "report", file, plants, "--output", page)[0] == 0
    assert "How far rows must move" in page.read_text("utf-8")
