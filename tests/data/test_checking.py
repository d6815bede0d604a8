"""What a check finds: one fault at a time, put into tables in which nothing is wrong."""

import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ks_2samp

from fdrsvm import InvalidInputError
from fdrsvm.data.checking import check_data, round_limits
from fdrsvm.data.classes import distance, leak_words
from fdrsvm.data.contract import Feature, FeatureContract
from fdrsvm.data.rows import DataSettings, read_rows
from fdrsvm.data.tables import read_labels, read_numbers, read_table
from fdrsvm.datasets.pump import make_pump

SHARED = Path(__file__).parents[3] / "shared" / "data"
CLIENTS = ("north", "south", "west")
SENSORS = ("flow", "pressure [bar]", "temp [K]", "wear")
N = 120


def clean_tables(seed, n=N, apart=0.05):
    """Three plants at operating points that are this far apart, whose sensors feel a leak."""
    rng = np.random.default_rng(seed)
    tables = {}
    for client in CLIENTS:
        is_leak = rng.random(n) < 0.3
        noise = rng.normal(size=(4, n))
        point = rng.uniform(1.0 - apart, 1.0 + apart, size=4)
        flow = 30.0 * point[0] + 4.0 * (noise[0] - 1.5 * is_leak)
        pressure = 6.0 * point[1] + 0.5 * (noise[1] - is_leak)
        temp = 300.0 + 20.0 * (point[2] - 1.0) + 3.0 * noise[2]
        wear = 100.0 * point[3] + 10.0 * noise[3]
        columns = [np.round(each, 4).tolist() for each in (flow, pressure, temp, wear)]
        labels = np.where(is_leak, "leak", "healthy").tolist()
        tables[client] = {**dict(zip(SENSORS, columns, strict=True)), "label": labels}
    return tables


def write(folder, tables):
    folder.mkdir(exist_ok=True)
    for client, table in tables.items():
        with (folder / f"{client}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    return DataSettings(paths=(folder,))


def serious(report):
    return [one for one in report.findings if one.severity != "note"]


def is_taken(data):
    """What training needs, found out by reading."""
    try:
        return len(set(read_rows(data).labels.tolist())) > 1
    except (InvalidInputError, ValueError):
        return False


@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_wrong_with_clean_tables(tmp_path, seed):
    data = write(tmp_path / "plants", clean_tables(seed, apart=0.25))
    report = check_data(data)
    assert serious(report) == []
    assert report.can_train
    assert report.ignore == ()
    assert is_taken(data)


# --- one fault at a time ---


def put(column, values, client=None):
    def change(tables):
        for name, table in tables.items():
            if client in (None, name):
                table[column] = values(table, name)

    return change


def cell(client, column, row, value):
    """``row`` as a spreadsheet counts."""

    def change(tables):
        tables[client][column][row - 2] = value

    return change


def rename(client, old, new):
    def change(tables):
        tables[client] = {new if k == old else k: v for k, v in tables[client].items()}

    return change


def drop(client, column):
    def change(tables):
        del tables[client][column]

    return change


def scaled(client, column, factor, offset=0.0):
    return put(column, lambda t, _: [factor * v + offset for v in t[column]], client)


def copy_row(source, line, client, target):
    def change(tables):
        for name, column in tables[client].items():
            column[target - 2] = tables[source][name][line - 2]

    return change


def contradict(tables):
    copy_row("north", 4, "west", 9)(tables)
    tables["west"]["label"][7] = "leak" if tables["north"]["label"][2] == "healthy" else "healthy"


def misspell(tables):
    for row in (5, 7):
        tables["south"]["label"][row] = "laek"


def keep(n, client):
    def change(tables):
        for name, column in tables[client].items():
            tables[client][name] = column[:n]
        tables[client]["label"][0] = "leak"
        tables[client]["label"][1] = "healthy"

    return change


def rare_fault(tables):
    for table in tables.values():
        table["label"] = ["leak" if n % 30 == 0 else "healthy" for n in range(N)]


def few_faults(tables):
    for name, table in tables.items():
        table["label"] = ["leak" if name == "north" and n < 6 else "healthy" for n in range(N)]


def flag(table, _):
    """Set in every third row with a leak, and in no other."""
    leaks = [n for n, label in enumerate(table["label"]) if label == "leak"]
    return [int(n in leaks[::3]) for n in range(N)]


def days(_, __):
    return [f"2024-05-{n % 28 + 1:02d} 12:{n % 60:02d}" for n in range(N)]


FAULTS = {
    "text": (put("shift", lambda *_: ["early", "late"] * (N // 2)), "stop", None, "shift", None),
    "stray text": (cell("south", "flow", 17, "off"), "stop", "south", "flow", 17),
    "date": (put("time", days), "stop", None, "time", None),
    "id": (
        put("part", lambda _, name: [f"{name[0]}{n}" for n in range(N)]),
        "stop",
        None,
        "part",
        None,
    ),
    "serial": (
        put("part", lambda _, name: [1000 * CLIENTS.index(name) + (7 * n) % N for n in range(N)]),
        "warn",
        None,
        "part",
        None,
    ),
    "counter": (
        put("hours", lambda *_: [0.25 * n + 0.01 * (n % 3) for n in range(N)]),
        "warn",
        None,
        "hours",
        None,
    ),
    "constant": (put("flow", lambda *_: [7.5] * N), "warn", None, "flow", None),
    "stuck": (put("flow", lambda *_: [30.0] * N, "west"), "warn", "west", "flow", None),
    "empty": (put("spare", lambda *_: [""] * N), "stop", None, "spare", None),
    "missing": (cell("west", "wear", 33, ""), "stop", "west", "wear", 33),
    "infinite": (cell("north", "temp [K]", 2, "inf"), "stop", "north", "temp [K]", 2),
    "leak flag": (put("TWF", flag), "warn", None, "TWF", None),
    "leak reading": (
        put("repair", lambda t, _: [n + 1000.0 * (x == "leak") for n, x in enumerate(t["label"])]),
        "warn",
        None,
        "repair",
        None,
    ),
    "celsius": (scaled("south", "temp [K]", 1.0, -273.15), "warn", "south", "temp [K]", None),
    "kilopascal": (
        scaled("west", "pressure [bar]", 100.0),
        "warn",
        "west",
        "pressure [bar]",
        None,
    ),
    "ten": (scaled("north", "wear", 10.0), "warn", "north", "wear", None),
    "renamed": (
        rename("south", "pressure [bar]", "Pressure_bar"),
        "stop",
        "south",
        "pressure [bar]",
        None,
    ),
    "column": (drop("west", "wear"), "stop", "west", "wear", None),
    "column more": (
        put("extra", lambda t, _: [2.0 * v for v in t["flow"]], "south"),
        "stop",
        "south",
        "extra",
        None,
    ),
    "label": (rename("north", "label", "Label"), "stop", "north", "label", None),
    "missing label": (cell("south", "label", 50, ""), "stop", "south", "label", 50),
    "misspelt label": (misspell, "warn", None, "label", None),
    "one class": (put("label", lambda *_: ["leak"] * N), "stop", None, "label", None),
    "one class here": (
        put("label", lambda *_: ["healthy"] * N, "west"),
        "warn",
        "west",
        "label",
        None,
    ),
    "imbalance": (rare_fault, "warn", None, "label", None),
    "twice": (copy_row("north", 3, "south", 44), "warn", "south", None, 44),
    "contradiction": (contradict, "warn", "west", None, 9),
    "few rows": (keep(8, "west"), "warn", "west", "label", None),
    "mark": (
        lambda tables: [cell("south", "flow", n, -999)(tables) for n in (12, 30, 31)],
        "warn",
        "south",
        "flow",
        12,
    ),
}
KINDS = {
    "stray text": "text",
    "serial": "id",
    "stuck": "constant",
    "leak flag": "leak",
    "leak reading": "leak",
    "celsius": "units",
    "kilopascal": "units",
    "ten": "units",
    "renamed": "name",
    "column more": "column",
    "one class here": "one class",
}
# A fault that brings others with it.
MORE = {"one class": set()}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", range(3))
def test_a_fault_is_found_where_it_is_and_nothing_else(tmp_path, fault, seed):
    tables = clean_tables(seed)
    change, severity, client, column, row = FAULTS[fault]
    change(tables)
    data = write(tmp_path / "plants", tables)
    report = check_data(data)
    found = serious(report)
    kind = KINDS.get(fault, fault)
    expected = (kind, severity, client, column, row)
    told = [(one.kind, one.severity, one.client, one.column, one.row) for one in found]
    assert expected in told, told
    assert {one.kind for one in found} - {kind} <= MORE.get(fault, set()), told
    assert all(one.remedy for one in found)
    if fault not in MORE:
        assert len(told) == 1, told
    assert report.can_train == is_taken(data)


@pytest.mark.parametrize("fault", FAULTS)
def test_what_it_proposes_can_be_trained_on(tmp_path, fault):
    tables = clean_tables(7)
    FAULTS[fault][0](tables)
    report = check_data(write(tmp_path / "plants", tables))
    if report.to_mend:
        assert not report.can_train
        return
    report.contract.save(tmp_path / "contract.json")
    chosen = replace(report.settings, ignore=report.ignore, contract=tmp_path / "contract.json")
    rows = read_rows(chosen)
    assert rows.feature_names == report.contract.names
    again = check_data(chosen)
    assert again.can_train
    assert again.contract == report.contract


def test_all_faults_are_told_at_once_worst_first(tmp_path):
    tables = clean_tables(1)
    for fault in ("text", "missing", "leak flag", "celsius", "misspelt label"):
        FAULTS[fault][0](tables)
    folder = tmp_path / "plants"
    data = write(folder, tables)
    (folder / "east.csv").write_bytes(b"\xff\xfe\x00not a table")
    (folder / "void.csv").write_text("")
    report = check_data(data)
    kinds = [one.kind for one in serious(report)]
    assert {"unreadable", "text", "missing", "leak", "units", "misspelt label"} <= set(kinds)
    assert kinds.count("unreadable") == 2
    order = [("stop", "warn", "note").index(one.severity) for one in report.findings]
    assert order == sorted(order)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 40,
        b"\xff\xfe",
        b"a,b\n1,2\n3\n",
        b"a,a\n1,2\n",
        b'a,b\n"1,2\n',
        b"\x89PNG\r\n\x1a\n",
    ],
)
def test_a_broken_file_is_one_finding_and_others_are_checked(tmp_path, content):
    data = write(tmp_path / "plants", clean_tables(0))
    (tmp_path / "plants" / "broken.csv").write_bytes(content)
    report = check_data(data)
    assert [(one.kind, one.client) for one in serious(report)] == [("unreadable", "broken")]
    assert {one.client for one in report.findings if one.kind == "read"} == set(CLIENTS)


@settings(max_examples=60)
@given(content=st.text(alphabet='ab,;\t\n" 01.-eé\x00', max_size=60))
def test_no_text_is_too_odd_for_a_check(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("odd") / "a.csv"
    path.write_text(content, encoding="utf-8")
    for name in ("label", "a"):
        data = DataSettings(paths=(path,), label=name)
        assert check_data(data).can_train == is_taken(data)


def test_wrong_options_are_findings(tmp_path):
    data = write(tmp_path / "plants", clean_tables(0))
    for given_data, fault, word in (
        (replace(data, ignore=("nothing",)), None, "'nothing'"),
        (data, "leek", "'leek'"),
        (DataSettings(), None, "no file"),
        (DataSettings(paths=(tmp_path / "none",)), None, "not there"),
        (replace(data, contract=tmp_path / "none.json"), None, "none.json"),
        (replace(data, client_column="plant"), None, "whose rows"),
        (replace(data, paths=(), named={}), None, "no file"),
        (replace(data, client_column="plant", named={"a": tmp_path}), None, "both given"),
        (replace(data, named={"north": tmp_path / "plants" / "west.csv"}), None, "two files"),
    ):
        report = check_data(given_data, fault=fault)
        assert not report.can_train
        assert any(word in one.what for one in serious(report)), word


def test_a_column_can_name_the_clients(tmp_path):
    tables = clean_tables(3)
    scaled("south", "temp [K]", 1.0, -273.15)(tables)
    joined = {
        name: [value for client in CLIENTS for value in tables[client][name]]
        for name in tables["north"]
    }
    joined["plant"] = [client for client in CLIENTS for _ in range(N)]
    write(tmp_path / "one", {"all": joined})
    data = DataSettings(paths=(tmp_path / "one",), client_column="plant")
    told = [(one.kind, one.client, one.row) for one in serious(check_data(data))]
    assert told == [("units", "south", None)]
    joined["plant"][140] = ""
    write(tmp_path / "one", {"all": joined})
    told = [(one.kind, one.client, one.row) for one in serious(check_data(data))]
    assert told == [("client", "all.csv", 142), ("units", "south", None)]


def test_a_label_column_is_proposed_and_the_rest_checked_as_if_it_were_given(tmp_path):
    tables = clean_tables(2)
    for client in CLIENTS:
        rename(client, "label", "machine state")(tables)
    FAULTS["leak flag"][0]({c: {**t, "label": t["machine state"]} for c, t in tables.items()})
    for table in tables.values():
        table["TWF"] = flag({"label": table["machine state"]}, None)
    report = check_data(write(tmp_path / "plants", tables))
    told = {one.kind: one for one in serious(report)}
    assert set(told) == {"label", "leak"}
    assert told["label"].remedy.startswith("--label 'machine state'")
    assert "'TWF'" in told["label"].what
    assert report.to_mend == ()
    assert "--label 'machine state'" in report.command()


def test_a_contract_is_held_against_the_data(tmp_path):
    tables = clean_tables(4)
    tables["west"]["flow"][10] = 400.0
    tables["south"]["wear"][3] = ""
    data = write(tmp_path / "plants", tables)
    features = (
        Feature("flow", high=100.0),
        Feature("pressure [bar]"),
        Feature("temp [K]", "K"),
        Feature("wear", missing="fill", fill=100.0),
    )
    FeatureContract(features, ("healthy", "leak")).save(tmp_path / "contract.json")
    checked = replace(data, contract=tmp_path / "contract.json")
    (finding,) = serious(check_data(checked))
    assert (finding.kind, finding.severity, finding.client) == ("contract", "stop", "west")
    assert (finding.column, finding.row) == ("flow", 12)
    assert check_data(replace(checked, clip=True)).can_train
    assert is_taken(replace(checked, clip=True))
    assert not is_taken(checked)


def test_a_column_under_another_name_and_unit_is_told_once(tmp_path):
    tables = clean_tables(0)
    del tables["west"]
    rename("south", "temp [K]", "Temp (degC)")(tables)
    (finding,) = serious(check_data(write(tmp_path / "plants", tables)))
    assert (finding.kind, finding.severity) == ("name", "stop")
    assert "in °C and not in K" in finding.what or "in K and not in °C" in finding.what
    assert finding.remedy.endswith("and convert it")


@pytest.mark.parametrize("fault", ["renamed", "stray text"])
def test_what_a_file_only_spells_wrongly_is_not_proposed_to_be_left_out(tmp_path, fault):
    tables = clean_tables(0)
    FAULTS[fault][0](tables)
    report = check_data(write(tmp_path / "plants", tables))
    assert report.ignore == ()
    assert [one.kind for one in report.to_mend] == [KINDS[fault]]


def test_many_columns_that_are_not_there_are_one_finding(tmp_path):
    tables = clean_tables(0)
    for k in range(40):
        put(f"band {chr(97 + k % 26)}{k}", lambda t, _: [2.0 * v for v in t["flow"]])(tables)
    for k in range(40):
        drop("south", f"band {chr(97 + k % 26)}{k}")(tables)
    (finding,) = serious(check_data(write(tmp_path / "plants", tables)))
    assert (finding.kind, finding.client, finding.column) == ("column", "south", None)
    assert finding.what.startswith("lacks 40 columns")


def test_what_parquet_holds_is_told_as_training_reads_it(tmp_path, rng):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    n = 40
    columns = {
        "time": np.datetime64("2024-01-01", "s") + 3600 * np.arange(n),
        "flow": rng.normal(size=n),
        "open": [bool(k % 3) for k in range(n)],
        "count": [None if k == 4 else k * 7 % 23 for k in range(n)],
        "lists": [[1.0, 2.0]] * n,
        "label": [bool(k % 2) for k in range(n)],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    data = DataSettings(paths=(tmp_path / "a.parquet",))
    report = check_data(data)
    told = {(one.kind, one.column, one.row) for one in serious(report)}
    assert told == {("date", "time", None), ("missing", "count", 6), ("text", "lists", None)}
    assert not is_taken(data)
    report.contract.save(tmp_path / "c.json")
    assert is_taken(replace(data, ignore=report.ignore, contract=tmp_path / "c.json"))


@pytest.mark.parametrize("fault", ["serial", "counter", "constant", "leak flag"])
def test_a_gap_stops_training_in_a_column_that_is_no_reading_too(tmp_path, fault):
    tables = clean_tables(0)
    before = set(tables["north"])
    FAULTS[fault][0](tables)
    column = next(iter(set(tables["north"]) - before), "flow")
    cell("west", column, 21, "")(tables)
    data = write(tmp_path / "plants", tables)
    report = check_data(data)
    gaps = [(one.client, one.column, one.row) for one in report.findings if one.kind == "missing"]
    assert gaps == [("west", column, 21)]
    assert not report.can_train
    assert not is_taken(data)


# --- proposals ---


@given(
    st.floats(-1e6, 1e6, allow_subnormal=False).map(lambda x: round(x, 6)),
    st.floats(0.0, 1e6).map(lambda x: round(x, 6)),
)
def test_limits_hold_what_was_seen_with_a_tenth_more_and_are_round(low, width):
    high = low + width
    below, above = round_limits(low, high)
    assert below <= low <= high <= above
    extent = high - low or max(abs(low), 1.0)
    step = 10.0 ** math.floor(math.log10(extent / 2.0))
    slack = 1e-9 * max(abs(low), abs(high), 1.0)
    assert above - high <= 0.1 * extent + step + slack
    assert above >= high + 0.1 * extent - slack
    assert low - below <= 0.1 * extent + step + slack
    assert below == 0.0 or below <= low - 0.1 * extent + slack
    assert low < 0.0 or below >= 0.0


def test_a_contract_has_units_limits_and_rules_from_the_data(tmp_path):
    tables = clean_tables(5)
    tables["west"]["wear"][3] = ""
    report = check_data(write(tmp_path / "plants", tables))
    features = {feature.name: feature for feature in report.contract.features}
    assert [features[name].unit for name in SENSORS] == ["", "bar", "K", ""]
    assert features["flow"].missing == "forbid"
    assert features["wear"].missing in ("fill", "drop")
    for name in SENSORS:
        values = [v for t in tables.values() for v in t[name] if v != ""]
        assert features[name].low <= min(values) <= max(values) <= features[name].high
    assert report.contract.labels == ("healthy", "leak")
    report.contract.save(tmp_path / "contract.json")
    assert FeatureContract.load(tmp_path / "contract.json") == report.contract
    assert (tmp_path / "contract.json").read_text().endswith("}\n")


def test_numbers_as_labels_stay_numbers_in_a_contract(tmp_path):
    tables = clean_tables(6)
    for table in tables.values():
        table["label"] = [int(label == "leak") for label in table["label"]]
    data = write(tmp_path / "plants", tables)
    report = check_data(data)
    assert report.contract.labels == (0, 1)
    report.contract.save(tmp_path / "c.json")
    assert read_rows(replace(data, contract=tmp_path / "c.json")).labels.dtype.kind == "i"


# --- formulas ---


def test_a_leaks_balanced_accuracy_is_that_of_the_best_threshold(rng):
    for _ in range(20):
        mask = rng.random(80) < 0.4
        values = np.round(rng.normal(size=80) + mask * rng.uniform(0.0, 4.0), 1)
        order = np.argsort(values, kind="stable")
        found = distance(values[order], mask[order])
        known = ks_2samp(values[mask], values[~mask], method="asymp").statistic
        assert found == pytest.approx(known, abs=1e-12)
        best = max(
            max(a, 1.0 - a)
            for cut in values
            for a in [((values[mask] > cut).mean() + (values[~mask] <= cut).mean()) / 2.0]
        )
        assert (1.0 + found) / 2.0 == pytest.approx(best, abs=1e-12)


def test_of_few_values_any_set_of_them_may_tell_a_class(rng):
    codes = rng.integers(3, size=300).astype(float)
    mask = codes == 1.0  # the one in the middle, which no threshold finds
    order = np.argsort(codes, kind="stable")
    assert distance(codes[order], mask[order]) == pytest.approx(1.0)


def test_a_flag_is_one_if_chance_does_not_make_it(rng):
    mask = np.arange(1000) < 100
    for n_set, is_leak in ((2, False), (5, False), (8, True), (30, True)):
        values = (np.arange(1000) < n_set).astype(float)
        assert (binom.sf(n_set - 1, n_set, 0.1) < 1e-6) == is_leak
        found = leak_words(values, {"fault": mask, "ok": ~mask})
        assert (found is not None) == is_leak
    mixed = (np.arange(1000) % 10 == 0).astype(float)
    assert leak_words(mixed, {"fault": mask, "ok": ~mask}) is None


def test_an_honest_strong_sensor_is_no_leak(rng):
    mask = rng.random(2000) < 0.3
    values = rng.normal(size=2000) + 3.0 * mask  # AUC 0.983
    assert leak_words(values, {"fault": mask, "ok": ~mask}) is None


@pytest.mark.parametrize(("rate", "least"), [(0.05, 19), (0.01, 99)])
def test_an_alarm_needs_as_many_rows_as_the_note_says(rate, least):
    enough = [n for n in range(1, 200) if math.ceil(round((n + 1) * (1.0 - rate), 9)) <= n]
    assert enough[0] == least


def test_readings_of_few_values_repeat_themselves_as_often_as_said(rng):
    n, size = 60, 200
    draws = rng.integers(size, size=(400, n))
    equal = [(np.bincount(row) * (np.bincount(row) - 1) // 2).sum() for row in draws]
    error = 5.0 * np.std(equal) / math.sqrt(len(equal))
    assert np.mean(equal) == pytest.approx(n * (n - 1) / (2.0 * size), abs=error)


@pytest.mark.parametrize(
    ("labels", "is_found"),
    [
        ({"leak": 300, "Leak": 40, "ok": 300}, True),
        ({"very low": 30, "Very_Low": 30, "ok": 30}, True),
        ({"leak": 300, "laek": 3, "ok": 300}, True),
        ({"leak": 300, "leek": 3, "ok": 300}, True),
        ({"leak": 300, "leaks": 3, "ok": 300}, True),
        ({"healthy": 300, "unhealthy": 3, "worn": 300}, False),
        ({"ok": 300, "nok": 3, "worn": 300}, False),
        ({"pump1": 300, "pump2": 3, "pump3": 300}, False),
        ({"leak": 300, "peak": 200, "ok": 300}, False),
    ],
)
def test_labels_that_may_be_one_are_named(tmp_path, labels, is_found, rng):
    names = np.repeat(list(labels), list(labels.values()))
    table = {"x": rng.normal(size=len(names)).tolist(), "label": names.tolist()}
    report = check_data(write(tmp_path / "a", {"north": table}))
    assert ("misspelt label" in {one.kind for one in report.findings}) == is_found


# --- data that other people made ---


def kinds_of(path, **columns):
    report = check_data(DataSettings(paths=(path,), **columns))
    return {(one.kind, one.column) for one in serious(report)}, report


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("banknote", {("twice", None)}),  # 24 rows are there twice
        ("breast_cancer_wdbc", set()),
        ("parkinsons", set()),
        ("rice_cammeo_osmancik", set()),
        ("sonar", set()),
        ("user_knowledge", {("misspelt label", "label")}),  # "very_low" and "Very Low"
        (
            "mammographic_mass",
            {("missing", one) for one in ("BI-RADS", "Age", "Shape", "Margin", "Density")},
        ),
    ],
)
def test_of_uci_sets_only_what_is_wrong_is_told(name, known):
    path = SHARED / "uci" / f"{name}.csv"
    if not path.exists():
        pytest.skip("the UCI sets are not beside this checkout")
    assert kinds_of(path)[0] == known


def test_ai4i_is_told_from_its_leaks_ids_and_text(tmp_path):
    path = SHARED / "ai4i" / "ai4i2020.tsv"
    if not path.exists():
        pytest.skip("AI4I is not beside this checkout")
    copy = tmp_path / "ai4i.csv"
    copy.write_text(path.read_text(encoding="utf-8").replace("\t", ","), encoding="utf-8")
    kinds, report = kinds_of(copy, label="Machine failure")
    assert kinds == {
        ("id", "Product ID"),
        ("text", "Type"),
        ("id", "UDI"),
        ("imbalance", "Machine failure"),
        *(("leak", name) for name in ("TWF", "HDF", "PWF", "OSF", "RNF")),
    }
    assert report.to_mend == ()
    report.contract.save(tmp_path / "c.json")
    chosen = replace(report.settings, ignore=report.ignore, contract=tmp_path / "c.json")
    assert read_rows(chosen).X.shape == (10_000, 5)
    units = [feature.unit for feature in report.contract.features]
    assert units == ["K", "K", "rpm", "Nm", "min"]


def test_the_best_sensor_of_the_uci_sets_is_as_far_from_a_leak_as_the_page_says():
    files = sorted((SHARED / "uci").glob("*.csv"))
    if not files:
        pytest.skip("the UCI sets are not beside this checkout")
    best = 0.0
    for path in files:
        table = read_table(path)
        for name in table.columns[:-1]:
            values, broken = read_numbers(table[name])
            labels = read_labels(table[table.columns[-1]])[0][~broken]
            order = np.argsort(values[~broken], kind="stable")
            for label in np.unique(labels):
                apart = distance(values[~broken][order], (labels == label)[order])
                best = max(best, (1.0 + apart) / 2.0)
    assert f"{best:.2f}" == "0.93"


def test_nothing_is_wrong_with_the_pump(tmp_path):
    pump = make_pump("noisy-labels", random_state=0)
    tables = {
        f"plant-{g}": {
            **{name: X[:, k].tolist() for k, name in enumerate(pump.feature_names)},
            "label": y.astype(int).tolist(),
        }
        for g, (X, y) in enumerate(pump.parts())
    }
    assert serious(check_data(write(tmp_path / "pump", tables))) == []


def test_the_code_of_the_page_runs(tmp_path, capsys):
    page = (Path(__file__).parents[2] / "docs" / "check.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.S)
    tables = clean_tables(0)
    FAULTS["missing"][0](tables)
    write(tmp_path / "plants", tables)
    exec(compile(code, "docs/check.md", "exec"), {"folder": tmp_path / "plants"})
    assert capsys.readouterr().out == "missing west wear 33\nFalse 4\n"
