"""Files as plants have them and what new users type: each line of a trial, through the commands.

Whatever is awkward is either taken, and the model finds its faults, or refused in a sentence that
says where it is and what to do.
"""

import csv
import io
import json
import shlex

import numpy as np
import pytest

from fdrsvm.cli import main
from fdrsvm.model.model_file import load_model
from tests.cli.cases import FEATURES, OFFSETS, SCALES, call, error_line
from tests.estimators.imbalanced import make_faults

# Class weight and threshold are tuned.
QUICK = ("--set", "epsilon=0.002", "--set", "kappa=0.5", "--features", "linear")


def plants_of(n_rows=320, share=0.1, labels=("Fault", "ok"), **options):
    """Readings in sensors' units and labels, by plant; rows are easy to tell apart."""
    options = {"shift": 2.5, "n_features": 3, **options}
    X, y, plants = make_faults(n_rows=n_rows, share=share, **options)
    y = np.where(y == "Fault", *labels).astype("<U8")
    X = (X * SCALES + OFFSETS).round(4)
    return {str(name): (X[plants == name], y[plants == name]) for name in np.unique(plants)}


def write(path, X, y=None, *, separator=",", decimal=".", label="label", **columns):
    """A file of one plant, written as its spreadsheet does; columns in order of what is given."""
    names = [*columns.pop("names", FEATURES), *columns, *([] if y is None else [label])]
    numbers = [[str(value).replace(".", decimal) for value in row] for row in X.tolist()]
    others = [list(map(str, column)) for column in (*columns.values(), *([] if y is None else [y]))]
    lines = [names, *([*row, *rest] for row, *rest in zip(numbers, *others, strict=True))]
    path.write_text("".join(separator.join(line) + "\n" for line in lines))
    return path


def write_all(folder, plants, **options):
    folder.mkdir()
    for name, (X, y) in plants.items():
        each = {
            key: value(name, len(y)) if callable(value) else value for key, value in options.items()
        }
        write(folder / f"{name}.csv", X, y, **each)
    return folder


def fit(capsys, tmp_path, *arguments, code=0):
    """Exit code must be that; the model's file, stdout and stderr."""
    found, out, err = call(capsys, "fit", *arguments, "--output", tmp_path / "run")
    assert found == code, err
    return tmp_path / "run" / "model.safetensors", out, err


def scores(capsys, model, *data):
    """By client, as JSON has them, and stderr."""
    code, out, err = call(capsys, "evaluate", model, *data, "--json")
    assert code == 0, err
    return {(one["model"], one["client"]): one for one in json.loads(out)}, err


def labels_of(capsys, model, *data):
    code, out, err = call(capsys, "predict", model, *data)
    assert code == 0, err
    return [row["predicted"] for row in csv.DictReader(io.StringIO(out))]


def typed(out):
    """The command at the end of what ``check`` says."""
    program, *arguments = shlex.split(out.splitlines()[-1])
    assert program == "fdrsvm"
    return arguments


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    """Four plants and a tuned model with probabilities, of which the first class is the fault."""
    home = tmp_path_factory.mktemp("easy")
    folder, run = write_all(home / "plants", plants_of()), home / "run"
    assert main(["fit", str(folder), *QUICK, "--probabilities", "--output", str(run)]) == 0
    return folder, run / "model.safetensors"


# --- how files are written ---


WAYS = [("\t", "."), (";", ","), (";", "."), (",", ".")]


@pytest.mark.parametrize("ways", [*([way] * 4 for way in WAYS), WAYS], ids=str)
def test_any_separator_and_decimal_mark_gives_the_same_model(ways, easy, tmp_path, capsys):
    (tmp_path / "plants").mkdir()
    for (name, (X, y)), (separator, decimal) in zip(plants_of().items(), ways, strict=True):
        write(tmp_path / "plants" / f"{name}.csv", X, y, separator=separator, decimal=decimal)
    code, out, _ = call(capsys, "check", tmp_path / "plants")
    assert code == 0
    assert ("decimal comma" in out) == any(decimal == "," for _, decimal in ways)
    model, _, err = fit(capsys, tmp_path, tmp_path / "plants", *QUICK)
    assert err == ""
    expected = load_model(easy[1])
    assert load_model(model).coef.tolist() == expected.coef.tolist()
    assert load_model(model).threshold == expected.threshold
    assert labels_of(capsys, model, tmp_path / "plants") == labels_of(capsys, model, easy[0])


def test_text_dates_and_ids_are_named_at_once_and_what_is_said_works(tmp_path, capsys):
    folder = write_all(
        tmp_path / "plants",
        plants_of(),
        id=lambda _, n: range(1000, 1000 + n),
        shift=lambda _, n: ["early", "late"] * (n // 2),
        **{"start time": lambda _, n: [f"2026-01-{1 + k % 28:02d} 10:15" for k in range(n)]},
    )
    line = error_line(capsys, "fit", folder, "--output", tmp_path / "run")
    assert "there is text in 'shift', 'start time' (dates or times)" in line
    options = shlex.split(line.partition("leave out what is no reading with ")[2])
    assert options == ["--ignore", "shift", "--ignore", "start time"]
    model, _, err = fit(capsys, tmp_path, folder, *options, *QUICK)
    # The number of a row, which begins again at each plant, is taken; it is said to be odd.
    assert "'id' looks like an identifier" in err
    assert "no two rows of a client share one" in err
    assert err.count("--ignore id") == 1
    code, out, _ = call(capsys, "check", folder)
    assert code == 1
    command = typed(out)
    assert command[2:] == ["--ignore", "id", "--ignore", "shift", "--ignore", "start time"]
    model, _, err = fit(capsys, tmp_path, *command[1:], *QUICK)
    assert err == ""
    found, _ = scores(capsys, model, folder)  # and what was ignored need not be typed again
    assert found["model", "all"]["balanced_accuracy"] > 0.9


def test_an_id_that_is_left_in_is_said_by_fit_evaluate_and_the_certificate(tmp_path, capsys):
    starts = {"east": 0, "north": 80, "south": 160, "west": 240}
    ids = {"UDI": lambda name, n: range(starts[name], starts[name] + n)}
    folder = write_all(tmp_path / "plants", plants_of(), **ids)
    said = "'UDI' looks like an identifier or a clock"
    model, _, err = fit(capsys, tmp_path, folder, *QUICK)
    assert said in err
    assert err.rstrip().endswith("fdrsvm fit ... --ignore UDI")
    assert said in json.loads((model.parent / "certificate.json").read_text())["verdict"]
    assert said in scores(capsys, model, folder)[1]
    for command in (("predict",), ("report", "--output", tmp_path / "page.html")):
        code, _, err = call(capsys, command[0], model, folder, *command[1:])
        assert (code, said in err) == (0, True)


# --- what is missing ---


def test_rows_without_a_client_are_counted_as_a_spreadsheet_counts(tmp_path, capsys):
    parts = plants_of()
    X, y = (np.concatenate(each) for each in zip(*parts.values(), strict=True))
    names = np.repeat(list(parts), 80).astype(object)
    names[[4, 170]] = ""
    path = write(tmp_path / "all.csv", X, y, plant=names)
    line = error_line(capsys, "fit", path, "--client-column", "plant")
    assert "column 'plant': every row must name its client; row 6 does not (2 in all)" in line
    assert "fill in what is missing, or delete these rows" in line
    code, out, _ = call(capsys, "check", path, "--client-column", "plant")
    assert code == 1
    assert "2 of 320 rows (0.62 %) name no client" in out


@pytest.mark.parametrize("options", [(), ("--missing", "drop")])
def test_rows_without_a_label_are_named_with_what_to_do(options, easy, tmp_path, capsys):
    parts = plants_of()
    parts["west"][1][[5, 6]] = ""
    folder = write_all(tmp_path / "plants", parts)
    for command in (("fit", folder), ("evaluate", easy[1], folder)):
        line = error_line(capsys, *command, *options)
        assert "west.csv: column 'label': every label must be text or a whole number" in line
        assert "row 7 is not (2 in all); fill in what is missing, or delete these rows" in line
    assert set(labels_of(capsys, easy[1], folder)) == {"Fault", "ok"}


@pytest.fixture
def gaps(tmp_path):
    """South lacks the pressure in two rows: 4 and 10 of its file."""
    folder = write_all(tmp_path / "plants", plants_of())
    lines = (folder / "south.csv").read_text().splitlines()
    for at in (3, 9):
        flow, _, rest = lines[at].split(",", 2)
        lines[at] = f"{flow},,{rest}"
    (folder / "south.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_missing_readings_are_refused_and_dropped_if_so_asked(gaps, tmp_path, capsys):
    line = error_line(capsys, "fit", gaps)
    assert "column 'pressure': every value must be a finite number; row 4 is missing" in line
    assert "leave such rows out with --missing drop, or fill them by a contract" in line
    code, out, _ = call(capsys, "check", gaps)
    assert code == 1
    command = typed(out)
    assert command == ["fit", str(gaps), "--missing", "drop"]
    model, _, err = fit(capsys, tmp_path, *command[1:], *QUICK)
    left_out = "fdrsvm: 2 of 320 rows lack a value and are left out: south 2\n"
    assert err == left_out
    found, err = scores(capsys, model, gaps)  # the model remembers the rule
    assert (found["model", "south"]["n_rows"], err) == (78, left_out)
    code, out, err = call(capsys, "predict", model, gaps / "south.csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    marked = {row["row"]: row["reason"] for row in rows if not row["predicted"]}
    assert marked == {"4": "'pressure' is missing", "10": "'pressure' is missing"}
    assert (code, len(rows)) == (0, 80)
    assert "2 of 80 rows could not be judged; column 'reason' says why" in err
    assert call(capsys, "check", gaps, "--missing", "drop")[0] == 0


def test_a_contract_fills_what_is_missing_in_training_and_after(gaps, tmp_path, capsys):
    path = tmp_path / "contract.json"
    code, out, _ = call(capsys, "check", gaps, "--write-contract", path)
    assert code == 1
    command = typed(out)
    content = json.loads(path.read_text())
    (pressure,) = [one for one in content["features"] if one["name"] == "pressure"]
    pressure |= {"missing": "fill", "fill": 4.25}
    path.write_text(json.dumps(content))
    model, _, err = fit(capsys, tmp_path, *command[1:], *QUICK)
    assert err == ""
    code, out, err = call(capsys, "predict", model, gaps / "south.csv")
    assert (code, err) == (0, "")
    assert all(row["predicted"] for row in csv.DictReader(io.StringIO(out)))


# --- classes ---


def test_three_percent_faults_are_found_by_the_default_command(tmp_path, capsys):
    folder = write_all(tmp_path / "plants", plants_of(1200, 0.03, shift=1.5))
    model, out, err = fit(capsys, tmp_path, folder)
    assert err == ""
    assert "On held-out rows: " in out
    fresh = write_all(tmp_path / "new", plants_of(1200, 0.03, shift=1.5, seed=1))
    found, err = scores(capsys, model, fresh)
    assert err == ""
    assert found["model", "all"]["balanced_accuracy"] > 0.7
    assert found["model", "all"]["n_found"] > 18  # of 36


@pytest.mark.parametrize(
    "labels", [("Fault", "ok"), ("1", "0"), ("0", "1"), ("True", "False"), ("1", "-1"), ("-1", "1")]
)
def test_the_rarer_class_is_the_fault_however_it_is_called(labels, tmp_path, capsys):
    folder = write_all(tmp_path / "plants", plants_of(labels=labels))
    model, out, err = fit(capsys, tmp_path, folder, *QUICK)
    assert err == ""
    assert f"what is looked for is {labels[0]!r}" in out
    found, _ = scores(capsys, model, folder)
    assert found["model", "all"]["f1_of"] == labels[0]
    assert found["model", "all"]["n_faults"] == 32
    assert found["model", "all"]["balanced_accuracy"] > 0.9
    assert set(labels_of(capsys, model, folder)) == set(labels)
    code, out, _ = call(capsys, "alarm", model, folder, "--rate", "0.05")
    assert code == 0
    assert "faults found" in out
    model, out, _ = fit(capsys, tmp_path, folder, *QUICK, "--fault", labels[1])
    assert f"what is looked for is {labels[1]!r}" in out
    line = error_line(capsys, "fit", folder, "--fault", "leek")
    assert "fault: must be one of the classes" in line


def test_three_classes_have_no_threshold_and_options_for_two_say_so(tmp_path, capsys):
    parts = plants_of(share=0.3)
    for X, y in parts.values():
        y[(y == "Fault") & (X[:, 0] > np.median(X[y == "Fault", 0]))] = "worn"
    folder = write_all(tmp_path / "plants", parts)
    balanced = ("--class-weight", "balanced")
    model, out, err = fit(capsys, tmp_path, folder, *QUICK, *balanced, "--goal", "f1-macro")
    assert err == ""
    assert "threshold of the score" not in out
    found, _ = scores(capsys, model, folder)
    assert found["model", "all"]["balanced_accuracy"] > 0.5
    assert set(labels_of(capsys, model, folder)) == {"Fault", "ok", "worn"}
    assert call(capsys, "report", model, folder, "--output", tmp_path / "page.html")[0] == 0
    assert "alarms are for two classes" in error_line(capsys, "alarm", model, folder)
    for option, said in [
        (("--goal", "f1"), "'f1' is for two classes, 'f1_macro' for more (--goal f1-macro)"),
        (("--goal", "cost=3"), "for two classes"),
        (("--label-noise", "0.1"), "label_noise: is for two classes; there are 3"),
        (("--fault", "worn"), "fault: is for two classes; there are 3"),
    ]:
        assert said in error_line(capsys, "fit", folder, *QUICK, *option)


def test_a_misspelt_label_is_named_by_check_and_by_commands_that_know_the_classes(
    easy, tmp_path, capsys
):
    parts = plants_of()
    wrong = np.flatnonzero(parts["east"][1] == "Fault")[:2]
    parts["east"][1][wrong] = "Fualt"
    folder = write_all(tmp_path / "plants", parts)
    code, out, _ = call(capsys, "check", folder)
    assert code == 0
    assert "'Fualt' (2 rows) may be 'Fault' (30 rows) written in another way" in out
    line = error_line(capsys, "evaluate", easy[1], folder)
    assert f"row {wrong[0] + 2} of client 'east' is 'Fualt'" in line


# --- plants that are unlike ---


def test_a_plant_in_other_units_is_named_by_check(tmp_path, capsys):
    parts = plants_of()
    parts["south"] = (parts["south"][0] - [0.0, 0.0, 273.15], parts["south"][1])
    code, out, _ = call(capsys, "check", write_all(tmp_path / "plants", parts))
    assert code == 0
    (line,) = [line for line in out.splitlines() if line.startswith("warn")]
    assert line.split()[1:3] == ["south", "temperature"]
    assert "looks like °C in south and K in east and 2 more" in line
    assert "add 273.15 in south" in line


def test_a_plant_without_faults_is_trained_and_compared_and_that_is_said(tmp_path, capsys):
    parts = plants_of()
    parts["south"][1][:] = "ok"
    folder = write_all(tmp_path / "plants", parts)
    code, out, _ = call(capsys, "check", folder)
    assert (code, "all its 80 rows are 'ok'" in out) == (0, True)
    model, _, err = fit(capsys, tmp_path, folder, *QUICK)
    assert err == ""
    code, out, err = call(capsys, "evaluate", model, folder, "--compare", folder)
    assert (code, err) == (0, "")
    shows = "they show false alarms, and not whether faults are found."
    said = f"The rows of south have no 'Fault': {shows}"
    assert said in " ".join(out.split())
    assert "No local model for south: its training rows are all 'ok'." in out
    assert call(capsys, "report", model, folder, "--output", tmp_path / "page.html")[0] == 0
    assert said in " ".join((tmp_path / "page.html").read_text().replace("&#39;", "'").split())


def test_plants_of_very_different_size_are_tuned_and_compared(tmp_path, capsys):
    sizes = {"east": 400, "north": 150, "south": 40, "west": 1}
    parts = plants_of(1600)
    cut = {name: (X[: sizes[name]], y[: sizes[name]]) for name, (X, y) in parts.items()}
    folder = write_all(tmp_path / "plants", cut)
    code, out, _ = call(capsys, "check", folder)
    assert code == 0
    assert "has 1 row with a label; below 10 chance decides" in out
    assert "its only row is 'ok'" in out
    assert "west has 1 row that is not 'Fault'" in out
    model, out, err = fit(capsys, tmp_path, folder, "--set", "kappa=0.5")
    assert err == ""
    assert "radius: by client, " in out
    code, out, err = call(capsys, "evaluate", model, folder, "--compare", folder)
    assert (code, err) == (0, "")
    kinds = ("model", "local", "federated", "central", "logistic", "boosting")
    rows = [line.split()[:3] for line in out.splitlines() if line.startswith(kinds)]
    assert [kind for kind, client, _ in rows if client == "east"] == list(kinds)
    assert labels_of(capsys, model, folder / "west.csv") == ["ok"]
    line = error_line(capsys, "alarm", model, folder, "--rate", "0.05")
    assert "client 'west' has 1; record more, leave these clients out, or ask for a rate" in line


def test_two_files_of_one_name_are_refused_and_told_apart_by_client(easy, tmp_path, capsys):
    X, y = plants_of(seed=1)["east"]
    (tmp_path / "b").mkdir()
    other = write(tmp_path / "b" / "east.csv", X, y)
    for command in (("fit", easy[0]), ("evaluate", easy[1], easy[0]), ("predict", *easy[::-1])):
        line = error_line(capsys, *command, other)
        assert "clients must have different names; 'east' is there twice" in line
        assert "--client NAME=FILE gives a file another name" in line
    assert "two files are both of client 'east'" in call(capsys, "check", easy[0], other)[1]
    assert scores(capsys, easy[1], easy[0], "--client", f"east2={other}")[0]["model", "east2"]


# --- columns ---


def test_columns_may_come_in_any_order_and_with_others(easy, tmp_path, capsys):
    X, y = plants_of()["east"]
    expected = labels_of(capsys, easy[1], easy[0] / "east.csv")
    turned = write(tmp_path / "east.csv", X[:, ::-1], y, names=FEATURES[::-1], note=["x"] * len(y))
    assert labels_of(capsys, easy[1], turned) == expected
    found, err = scores(capsys, easy[1], turned)
    assert (found["model", "east"]["n_rows"], err) == (80, "")
    unlabelled = write(tmp_path / "new.csv", X, note=["x"] * len(y))
    assert labels_of(capsys, easy[1], unlabelled) == expected
    line = error_line(capsys, "evaluate", easy[1], unlabelled)
    assert "must have the label column 'label'" in line
    assert "--label names it" in line
    fewer = write(tmp_path / "few.csv", X[:, :2], y, names=FEATURES[:2])
    for command in ("predict", "evaluate", "report", "alarm"):
        assert "it lacks 'temperature'" in error_line(capsys, command, easy[1], fewer)


def test_the_label_column_is_named_once(tmp_path, capsys):
    folder = write_all(tmp_path / "plants", plants_of(), label="Machine state")
    assert "--label names it" in error_line(capsys, "fit", folder)
    code, out, _ = call(capsys, "check", folder)
    assert (code, typed(out)) == (1, ["fit", str(folder), "--label", "Machine state"])
    model, _, _ = fit(capsys, tmp_path, *typed(out)[1:], *QUICK)
    assert scores(capsys, model, folder)[0]["model", "all"]["n_rows"] == 320
    assert call(capsys, "report", model, folder, "--output", tmp_path / "page.html")[0] == 0
    code, out, _ = call(capsys, "alarm", model, folder, "--rate", "0.05")
    assert (code, "faults found" in out) == (0, True)


def test_a_constant_column_does_no_harm_and_check_names_it(easy, tmp_path, capsys):
    folder = write_all(tmp_path / "plants", plants_of(), stuck=lambda _, n: [7] * n)
    code, out, _ = call(capsys, "check", folder)
    assert code == 0
    assert "is the same in all 320 rows" in out
    assert typed(out)[2:] == ["--ignore", "stuck"]
    model, _, err = fit(capsys, tmp_path, folder, *QUICK)
    assert err == ""
    assert load_model(model).coef[0, 3] == 0.0
    assert labels_of(capsys, model, folder) == labels_of(capsys, easy[1], easy[0])


def test_features_of_unlike_size_without_scaling_are_warned_of(tmp_path, capsys):
    parts = {name: (X * [100.0, 0.1, 1.0], y) for name, (X, y) in plants_of().items()}
    folder = write_all(tmp_path / "plants", parts)
    arguments = (folder, *QUICK, "--class-weight", "balanced", "--scaling", "none")
    _, _, err = call(capsys, "fit", *arguments, "--output", tmp_path / "run")
    assert "features are not on one scale ('flow' spreads over" in err
    assert "train again: fdrsvm fit ... --scaling minmax" in err
    assert fit(capsys, tmp_path, folder, *QUICK)[2] == ""


# --- settings ---


@pytest.mark.parametrize("options", [("epsilon=0.5",), ("epsilon=.5",), ("kappa=.0025",)])
def test_a_ball_in_which_every_label_may_flip_is_warned_of(options, easy, tmp_path, capsys):
    typed_ = [part for option in options for part in ("--set", option)]
    _, _, err = fit(capsys, tmp_path, easy[0], "--no-tune", *typed_, code=4)
    assert "from 1/2 on half of every row may have the other label" in err
    assert "--set epsilon=... (a smaller one) or --set kappa=... (a larger one)" in err


@pytest.mark.parametrize(
    ("goal", "words"),
    [
        ("balanced", "balanced accuracy"),
        ("f1", "F1 of 'Fault'"),
        ("f1-macro", "mean F1 over the classes"),
        ("accuracy", "accuracy"),
        ("cost=20", "least cost, where a missed fault costs as much as 20 false alarms"),
        ("false-alarms=1%", "most faults found with at most 1 % false alarms"),
        ("false-alarms=0.5%", "most faults found with at most 0.5 % false alarms"),
    ],
)
def test_a_goal_is_said_back_and_kept(goal, words, easy, tmp_path, capsys):
    model, out, err = fit(capsys, tmp_path, easy[0], *QUICK, "--goal", goal)
    assert err == ""
    assert f"Tuned by 5-fold cross-validation for {words}:" in out
    out = call(capsys, "evaluate", model, easy[0])[1]
    assert f"The threshold was chosen for {words}, by cross-validation" in " ".join(out.split())


@pytest.mark.parametrize(
    "goal",
    [
        *("recall", "F1", "f1=3", "cost", "cost=", "cost=-1", "cost=0", "cost=1%", "cost=inf"),
        *("false-alarms", "false-alarms=%", "false-alarms=100%", "false-alarms=200"),
        *("false-alarms=nan", "false-alarms=.01"),
    ],
)
def test_a_goal_that_is_none_is_refused_with_all_that_there_are(goal, easy, capsys):
    line = error_line(capsys, "fit", easy[0], "--goal", goal)
    rule = "must be balanced, f1, f1-macro, accuracy, cost=RATIO or false-alarms=PERCENT%"
    assert f"goal: {rule}; it is {goal!r}" in line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--label-noise", "0.1"), "must be below the share of the rarer class"),
        (("--label-noise", "0.5"), "must be below the share of the rarer class"),
        (("--label-noise", "-1"), "label_noise: must be a finite number, at least 0"),
        (("--label-noise", "nan"), "label_noise: must be a finite number, at least 0"),
        (("--no-tune", "--goal", "f1"), "goal: must not be given where nothing is tuned; leave"),
        (("--no-tune", "--label-noise", ".05"), "label_noise: must not be given where nothing is"),
        (("--no-tune", "--probabilities"), "probabilities: must not be given where nothing is"),
        (("--estimator", "DRSVC", "--goal", "f1"), "or tune: that is for FDRSVC, and without"),
    ],
)
def test_wishes_that_cannot_be_met_are_sentences(options, said, easy, tmp_path, capsys):
    assert said in error_line(capsys, "fit", easy[0], *options, "--output", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_wrong_labels_that_are_known_are_corrected_for(easy, tmp_path, capsys):
    model, _, err = fit(capsys, tmp_path, easy[0], *QUICK, "--label-noise", "0.05")
    assert err == ""
    out = call(capsys, "evaluate", model, easy[0])[1]
    assert "with 5.0 % of the labels taken to be wrong" in " ".join(out.split())


@pytest.mark.parametrize("options", [("--estimator", "DRSVC"), ("--class-weight", "balanced")])
def test_other_ways_to_train_serve_all_later_commands(options, easy, tmp_path, capsys):
    model, _, err = fit(capsys, tmp_path, easy[0], *QUICK, *options)
    assert err == ""
    found, err = scores(capsys, model, easy[0], "--compare", easy[0])
    assert err == ""
    assert found["model", "all"]["balanced_accuracy"] > 0.9
    assert found["central", "all"]["n_rows"] == 320
    page = tmp_path / "page.html"
    assert call(capsys, "report", model, easy[0], "--output", page)[0] == 0
    assert call(capsys, "alarm", model, easy[0], "--rate", "0.05")[0] == 0


def test_a_model_with_probabilities_serves_all_later_commands(easy, tmp_path, capsys):
    folder, model = easy
    code, out, err = call(capsys, "predict", model, folder)
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    chances = np.array([float(row["probability of Fault"]) for row in rows])
    decisions = np.array([float(row["decision"]) for row in rows])
    assert (np.diff(chances[np.argsort(decisions)]) <= 1e-12).all()  # a low score is a fault
    assert abs(chances.mean() - 0.1) < 0.05
    page, onnx, st = (tmp_path / name for name in ("page.html", "model.onnx", "model.st"))
    for command in (
        ("evaluate", model, folder),
        ("certify", model, folder),
        ("report", model, folder, "--compare", folder, "--output", page),
        ("export", "onnx", model, "--output", onnx),
        ("export", "st", model, "--output", st),
        ("export", "json", model),
        ("alarm", model, folder, "--rate", "0.05", "--output", tmp_path / "alarms"),
        ("predict", tmp_path / "alarms" / "east.safetensors", folder / "east.csv"),
    ):
        code, out, err = call(capsys, *command)
        assert code == 0, err
    assert "probability of Fault" in out.splitlines()[0]


def test_a_file_of_settings_decides(easy, tmp_path, capsys):
    path = tmp_path / "run.toml"
    path.write_text(
        f"[data]\nfolder = {str(easy[0])!r}\nfault = 'Fault'\n"
        "[model]\nepsilon = 0.002\nkappa = 0.5\n"
        "[decision]\ngoal = 'cost=5'\nfolds = 3\nlabel_noise = 0\nprobabilities = 'shared'\n"
    )
    model, out, err = fit(capsys, tmp_path, "--config", path)
    assert err == ""
    assert "Tuned by 3-fold cross-validation for least cost" in out
    assert "probability of Fault" in call(capsys, "predict", model, easy[0])[1]
    for wrong, said in [
        ("goal = 'cost'", "goal: must be balanced"),
        ("folds = 1", "folds: must be a whole number, at least 2"),
        ("label_noise = 'some'", "label_noise: must be of type float"),
        ("probabilities = 'yes'", "probabilities: must be one of"),
        ("tune = false\ngoal = 'f1'", "(tune = false)"),
        ("threshold = 0.1", "keys of [decision]: must be among"),
    ]:
        path.write_text(f"[data]\nfolder = {str(easy[0])!r}\n[decision]\n{wrong}\n")
        assert said in error_line(capsys, "fit", "--config", path)


def test_a_file_may_be_called_all_unless_there_are_others(easy, tmp_path, capsys):
    (X, y), (other, others) = list(plants_of().values())[:2]
    path = write(tmp_path / "all.csv", X, y)
    code, out, err = call(capsys, "evaluate", easy[1], path)
    assert (code, err) == (0, "")
    assert [line.split()[1:3] for line in out.splitlines()[1:2]] == [["all", "80"]]
    write(tmp_path / "b.csv", other, others)
    line = error_line(capsys, "evaluate", easy[1], tmp_path)
    assert "must not be called 'all' beside others" in line
    assert "--client NAME=FILE" in line


# --- what is no data, or no model ---


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "must have a header line and a row"),
        (b"\n\n\n", "must have a header line and a row"),
        (b"flow,pressure,temperature,label\n", "must have a header line and a row"),
        (bytes(range(256)) * 20, "must be a CSV in UTF-8"),
        (b"\x00\x01\x02,\n" * 50, "must be a CSV in UTF-8"),
    ],
    ids=["empty", "blank lines", "header only", "binary", "zeros"],
)
def test_files_without_rows_are_named_by_every_command(content, said, easy, tmp_path, capsys):
    path = tmp_path / "plant.csv"
    path.write_bytes(content)
    commands = [("fit",), *((name, easy[1]) for name in ("predict", "evaluate", "alarm", "report"))]
    for command in commands:
        line = error_line(capsys, *command, path)
        assert said in line
        assert str(path) in line
    code, out, err = call(capsys, "check", path)
    assert (code, err) == (1, "")
    assert said in out
    assert "mend the file, or export it again as CSV in UTF-8" in out


def test_a_folder_without_data_is_named_by_every_command(easy, tmp_path, capsys):
    for command in [("fit",), *((name, easy[1]) for name in ("predict", "evaluate", "alarm"))]:
        assert "must hold .csv, .tsv, .txt or .parquet files; it has none" in error_line(
            capsys, *command, tmp_path
        )
    code, out, _ = call(capsys, "check", tmp_path)
    assert (code, "the folder holds no file that can be read as a table" in out) == (1, True)


@pytest.mark.parametrize("command", ["predict", "evaluate", "report", "alarm", "certify"])
def test_what_is_no_model_is_said_with_what_is_one(command, easy, tmp_path, capsys):
    folder, model = easy
    none = "not a file of this package; give the model.safetensors that fdrsvm fit wrote"
    assert none in error_line(capsys, command, folder / "east.csv", folder)
    assert none in error_line(capsys, command, model.parent / "certificate.json", folder)
    line = error_line(capsys, command, model.parent, folder)
    assert "a folder; give the model.safetensors in it" in line
    assert "No such file" in error_line(capsys, command, tmp_path / "none.safetensors", folder)
    (tmp_path / "half.safetensors").write_bytes(model.read_bytes()[:300])
    assert "it is cut short" in error_line(capsys, command, tmp_path / "half.safetensors", folder)
