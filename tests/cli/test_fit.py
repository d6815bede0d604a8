"""`fdrsvm fit`: what it prints and writes, its configuration, and every wrong input by name."""

import json

import numpy as np
import pytest

from fdrsvm import FDRSVC, Feature, FeatureContract, FederatedMinMaxScaler
from fdrsvm.cli.fit import _tuning_lines
from fdrsvm.errors import InvalidInputError
from fdrsvm.estimators.training import read_configuration
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, model_bytes
from tests.cli.cases import CLIENTS, FEATURES, call, error_line, rows_of, write_clients, write_csv


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    return write_clients(tmp_path_factory.mktemp("pooled") / "plants")


def contract(labels=("healthy", "leak"), high=80.0):
    limits = ((0.0, high), (0.0, 8.0), (0.0, 600.0))
    return FeatureContract(
        tuple(Feature(n, low=a, high=b) for n, (a, b) in zip(FEATURES, limits, strict=True)), labels
    ).to_json()


def test_the_model_is_the_estimators_own_with_the_scaling_folded_in(home, pooled):
    X, y, clients = pooled
    scaled = FederatedMinMaxScaler().fit_transform(X, clients=clients)
    own = FDRSVC(epsilon=0.02).fit(scaled, y, clients=clients)
    model = load_model(home / "plants-run" / "model.safetensors")
    assert model.feature_names == FEATURES
    assert model.classes == ("healthy", "leak")
    assert model.certificate["objective"] == own.objective_
    assert model.certificate["gap"] == own.gap_ <= 1e-4
    np.testing.assert_array_equal(model.predict(X), own.predict(scaled))
    # Each of P + 1 terms is rounded, and they cancel where offsets are large.
    sizes = np.abs(X) @ np.abs(model.coef[0]) + abs(model.intercept[0])
    error = np.abs(model.decision_function(X) - own.decision_function(scaled))
    assert (error <= 16 * np.finfo(float).eps * (sizes + 1.0)).all()


def test_its_tables_hold_the_certificate_and_every_client(home):
    text = (home / "plants.txt").read_text()
    kept = json.loads((home / "plants-run" / "certificate.json").read_text())
    assert f"{kept['objective']:.6g}" in text
    assert f"{kept['gap']:.1e}" in text
    for name in CLIENTS:
        line = next(line for line in text.splitlines() if line.startswith(name))
        assert line.split() == [name, "40", f"{kept['worst_case_risk_per_client'][name]:.6g}"]
    assert "\x1b" not in text  # no colours in a file
    model = load_model(home / "plants-run" / "model.safetensors")
    assert kept["model_sha256"] == model.fingerprint
    assert kept["data"]["rows"] == dict.fromkeys(CLIENTS, 40)
    assert kept["data"]["epsilon"] == dict.fromkeys(CLIENTS, 0.02)
    history = model.record["history"]
    assert len(history["round"]) == model.certificate["n_iter"]
    assert history["gap"][-1] <= 1e-4


def test_all_ways_to_name_clients_give_the_same_file(home, tmp_path, capsys):
    first = load_model(home / "plants-run" / "model.safetensors")
    parts = [rows_of(name) for name in CLIENTS]
    X, y = (np.concatenate(each) for each in zip(*parts, strict=True))
    write_csv(tmp_path / "all.csv", X, y, plant=np.repeat(CLIENTS, 40))
    (tmp_path / "run.toml").write_text(
        f"[data]\nfolder = '{home / 'plants'}'\n[model]\nepsilon = 0.5\ntol = 1e-4\n"
    )
    named = [f"--client={name}={home / 'plants' / name}.csv" for name in CLIENTS]
    for number, arguments in enumerate(
        (
            named,
            [home / "plants" / f"{name}.csv" for name in CLIENTS],
            [tmp_path / "all.csv", "--client-column", "plant"],
            ["--config", tmp_path / "run.toml"],
        )
    ):
        out = tmp_path / str(number)
        code, _, err = call(
            capsys, "fit", *arguments, "--no-tune", "--set", "epsilon=0.02", "--output", out
        )
        assert code == 0, err
        model = load_model(out / "model.safetensors")
        client = {"client": "plant"} if "--client-column" in arguments else {}
        assert model.record["data"].pop("columns") == {"label": "label", "ignored": [], **client}
        model.record["data"]["columns"] = first.record["data"]["columns"]
        assert model_bytes(model) == model_bytes(first)  # only a column's name differs


def test_parquet_gives_the_model_of_the_csv(home, tmp_path, capsys):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for name in CLIENTS:
        X, y = rows_of(name)
        columns = {**dict(zip(FEATURES, X.T, strict=True)), "label": y.tolist()}
        parquet.write_table(pyarrow.table(columns), tmp_path / f"{name}.parquet")
    code, _, err = call(
        capsys, "fit", tmp_path, "--no-tune", "--set", "epsilon=0.02", "--output", tmp_path / "run"
    )
    assert code == 0, err
    first = (home / "plants-run" / "model.safetensors").read_bytes()
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == first


def test_a_configuration_has_every_section(home, tmp_path, capsys):
    (tmp_path / "contract.json").write_text(contract())
    write_clients(tmp_path / "plants")
    (tmp_path / "run.toml").write_text(
        """
[data]
clients = { a = "plants/north.csv", b = "plants/south.csv" }
contract = "contract.json"
[scaling]
method = "limits"
[model]
estimator = "FDRSVC"
epsilon = { a = 0.01, b = 0.02 }
kappa = inf
norm = "l2"
support = "unit-box"
class_weight = { healthy = 1.0, leak = 2.0 }
client_weights = "samples"
"""
    )
    code, out, err = call(
        capsys, "fit", "--config", tmp_path / "run.toml", "--output", tmp_path / "r"
    )
    assert code == 0, err
    assert "scaling limits" in out
    model = load_model(tmp_path / "r" / "model.safetensors")
    assert model.params["kappa"] == np.inf
    assert model.params["class_weight"] == {"healthy": 1.0, "leak": 2.0}
    assert model.record["scaling"]["scale"] == [80.0, 8.0, 600.0]
    assert model.record["data"]["epsilon"] == {"a": 0.01, "b": 0.02}
    assert len(model.record["data"]["contract"]) == 64


@pytest.mark.parametrize("estimator", ["DRSVC", "FedSVC"])
def test_other_estimators_are_trained_too(home, tmp_path, capsys, estimator):
    options = ("--set", "max_rounds=5") if estimator == "FedSVC" else ()
    arguments = ("fit", home / "plants", "--estimator", estimator, "--output", tmp_path, *options)
    code, out, err = call(capsys, *arguments, "--scaling", "standard")
    assert code == 0, err
    assert out.startswith(f"{estimator}: 3 clients, 120 rows")
    first = (tmp_path / "model.safetensors").read_bytes()
    assert load_model(tmp_path / "model.safetensors").estimator == estimator
    call(capsys, *arguments, "--scaling", "standard")
    assert (tmp_path / "model.safetensors").read_bytes() == first  # batches are seeded


def test_a_gap_above_tol_is_said_and_exits_3(home, tmp_path, capsys):
    code, out, err = call(
        capsys, "fit", home / "plants", "--set", "max_rounds=2", "--output", tmp_path
    )
    assert code == 3
    assert "above tol" in err
    assert "Model:" in out
    assert (tmp_path / "model.safetensors").exists()


def test_one_warning_names_all_that_may_help_and_can_be_typed(tmp_path, capsys):
    (tmp_path / "big").mkdir()
    for name in CLIENTS[:2]:
        X, y = rows_of(name)
        write_csv(tmp_path / "big" / f"{name}.csv", 1e6 * X, y)
    options = ("--no-tune", "--scaling", "none", "--set", "max_rounds=2", "--output")
    options = (*options, tmp_path / "run")
    _, _, err = call(capsys, "fit", tmp_path / "big", *options)
    (line,) = [one for one in err.splitlines() if "gap" in one]
    assert "max_rounds is 2" in line
    assert "--scaling minmax" in line


def test_it_says_which_class_is_looked_for(home):
    kept = json.loads((home / "plants-run" / "certificate.json").read_text())
    lines = (home / "plants.txt").read_text().splitlines()
    (said,) = [line for line in lines if line.startswith("what is looked for is ")]
    fault = kept["positive"]
    share = 100.0 * np.mean(np.concatenate([rows_of(name)[1] for name in CLIENTS]) == fault)
    assert said.startswith(f"what is looked for is {fault!r}, {share:.3g} % of the rows; --fault")
    assert "--fault" not in (home / "three.txt").read_text()


def test_three_classes_have_a_certificate_each(home):
    lines = (home / "three.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines[3:6]] == ["healthy", "leak", "worn"]


FINITE = "column 'flow': every value must be a finite number; row 3 is "


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "must have a header line and a row"),
        ("flow,label\n", "must have a header line and a row"),
        ("flow,flow,label\n1,2,a\n", "columns must have different names"),
        ("flow,label\n1,a,9\n", "every row must have 2 cells"),
        (
            "flow,lable\n1,a\n",
            "the label column 'label'; its columns are 'flow', 'lable'",
        ),
        ("flow,label\n1,a\n,b\n", FINITE + "missing"),
        ("flow,label\n1,a\nlow,b\n", FINITE + "no number"),
        ("flow,label\n1,a\ninf,b\n", FINITE + "infinite"),
        (
            "flow,label\n1,a\n2,\n",
            "every label must be text or a whole number; row 3",
        ),
        ("flow,label\n1,a\n2,a\n", "must hold two or more classes"),
        ("label\na\nb\n", "must have a feature"),
    ],
)
def test_a_wrong_file_is_named_with_its_rule(tmp_path, capsys, text, rule):
    path = tmp_path / "plant.csv"
    path.write_text(text)
    line = error_line(capsys, "fit", path, "--output", tmp_path / "run")
    assert rule in line
    assert not (tmp_path / "run").exists()


def test_wrong_kinds_of_files_are_named(tmp_path, capsys):
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    assert "must be a .csv, .tsv, .txt or .parquet file" in error_line(
        capsys, "fit", tmp_path / "a.xlsx"
    )
    (tmp_path / "a.csv").write_bytes(b"x,label\n\xff\xfe,a\n")
    assert "must be a CSV in UTF-8" in error_line(capsys, "fit", tmp_path / "a.csv")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    line = error_line(capsys, "fit", tmp_path / "a.parquet")
    assert f"must be a Parquet file; {tmp_path / 'a.parquet'} is none" in line
    (tmp_path / "empty").mkdir()
    assert "it has none" in error_line(capsys, "fit", tmp_path / "empty")
    line = error_line(capsys, "fit", f"--client=a={tmp_path / 'empty'}")
    assert "must be a file; it is a folder" in line
    assert "No such file" in error_line(capsys, "fit", tmp_path / "none.csv")
    assert "must be one or more files" in error_line(capsys, "fit")
    line = error_line(capsys, "fit", tmp_path / "a.csv", "--output", tmp_path / "a.csv")
    assert "--output: must be a folder" in line


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("--set", "epsilonn=1"), "parameters of FDRSVC: must be among algorithm"),
        (("--set", "epsilon"), "must be NAME=VALUE"),
        (("--set", "epsilon=-1"), "epsilon: must be a finite number, at least 0"),
        (("--set", "norm=l3"), "norm: must be one of"),
        (("--estimator", "SVC"), "estimator: must be one of 'FDRSVC', 'DRSVC', 'FedSVC'"),
        (("--scaling", "robust"), "scaling: must be one of"),
        (("--scaling", "limits"), "'limits' needs a contract"),
        (("--scaling", "none", "--set", "support=unit-box"), "must lie inside the support"),
        (("--client", "north=x.csv"), "clients must have different names; 'north' is there twice"),
        (("--client", "north"), "--client: must be NAME=FILE"),
        (("--client-column", "plant"), "must have the client column 'plant'"),
        (("--config", "none.toml"), "config: must be a file that can be read"),
        (("--contract", "none.json"), "contract: must be a file that can be read"),
        (("--set", "epsilon={east = 1.0}"), "must name every client of this fit"),
        (("--set", "class_weight={leek = 2.0}"), "class_weight: must be for the labels"),
    ],
)
def test_wrong_options_are_named_with_their_rule(home, tmp_path, capsys, arguments, rule):
    line = error_line(capsys, "fit", home / "plants", *arguments, "--output", tmp_path / "run")
    assert rule in line


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("[data", "config: must be TOML"),
        ("[date]\n", "must be among data, scaling, model, decision; unknown: date"),
        ("data = 1\n", "must be a section [data]"),
        ("[data]\nlabels = 'x'\n", "keys of [data]: must be among files"),
        ("[data]\nfiles = 'x.csv'\n", "files: must be of type list"),
        ("[data]\nfiles = [1]\n", "files and columns must be text"),
        ("[scaling]\nkind = 'x'\n", "keys of [scaling]: must be among method, clip; unknown: kind"),
        ("[model]\nepsilonn = 1\n", "unknown: epsilonn"),
    ],
)
def test_a_wrong_configuration_is_named_with_its_rule(home, tmp_path, capsys, text, rule):
    path = tmp_path / "run.toml"
    path.write_text(text)
    assert rule in error_line(capsys, "fit", home / "plants", "--config", path)


def test_clients_must_have_the_same_columns(tmp_path, capsys):
    write_clients(tmp_path / "plants")
    X, y = rows_of("north")
    write_csv(tmp_path / "plants" / "x.csv", X, y, time=range(40))
    line = error_line(capsys, "fit", tmp_path / "plants")
    assert "x.csv: must have the same columns as the files before" in line
    assert "it also has 'time'" in line
    (tmp_path / "plants" / "x.csv").write_text("flow,label\n1,leak\n")
    assert "it lacks 'pressure', 'temperature'" in error_line(capsys, "fit", tmp_path / "plants")


def test_a_column_can_be_ignored(tmp_path, capsys):
    X, y = rows_of("north")
    write_csv(tmp_path / "x.csv", X, y, time=[f"{k}:00" for k in range(40)])
    assert "'time'" in error_line(capsys, "fit", tmp_path / "x.csv")
    code, _, err = call(
        capsys, "fit", tmp_path / "x.csv", "--ignore", "time", "--output", tmp_path / "run"
    )
    assert code == 0, err
    misspelt = error_line(capsys, "fit", tmp_path / "x.csv", "--ignore", "time", "--ignore", "tmie")
    assert "ignore: must name columns that some file has; none has 'tmie'" in misspelt


def test_a_contract_is_checked_first_and_every_breach_is_in_the_line(home, tmp_path, capsys):
    path = tmp_path / "contract.json"
    path.write_text(contract(labels=("healthy", "worn"), high=31.0))
    line = error_line(capsys, "fit", home / "plants", "--contract", path)
    assert "client 'north', column 'flow': must be at most 31.0" in line
    assert "label must be one of 'healthy', 'worn'" in line
    path.write_text(contract(high=31.0))
    code, _, err = call(
        capsys,
        *("fit", home / "plants", "--contract", path, "--clip", "--scaling", "limits"),
        *("--output", tmp_path / "run"),
    )
    assert code == 0, err


def test_a_share_in_a_configuration_may_be_a_whole_number(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("[decision]\nlabel_noise = 0\n")
    assert read_configuration(path).label_noise == 0.0
    path.write_text("[decision]\nlabel_noise = false\n")
    with pytest.raises(InvalidInputError, match="must be of type float; it is False"):
        read_configuration(path)
    path.write_text("[decision]\ntune = 0\n")
    with pytest.raises(InvalidInputError, match="must be of type bool; it is 0"):
        read_configuration(path)


def test_radii_by_client_are_told_from_the_least_to_the_largest():
    # As text "9.5e-05" comes after "0.00095".
    tuning = {
        "goal": "balanced accuracy",
        "n_folds": 5,
        "chosen": {"epsilon": {"north": 0.00095, "south": 9.5e-05, "west": 0.0005}},
        "counts": [[3.0, 1.0], [2.0, 4.0]],
    }
    model = LinearModel.checked(
        [[1.0]], [0.0], ["leak", "ok"], estimator="FDRSVC", record={"tuning": tuning}
    )
    told = [line for line in _tuning_lines(model) if line.startswith("  radius")]
    assert told == ["  radius: by client, 9.5e-05 to 0.00095, in units of the features"]
