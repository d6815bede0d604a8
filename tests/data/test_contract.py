"""A contract finds every breach, names it without telling a value, and is the same for everyone."""

import copy
import json
from dataclasses import FrozenInstanceError, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from fdrsvm import CorruptDataError, InvalidInputError
from fdrsvm.data.contract import (
    ContractError,
    Feature,
    FeatureContract,
    Violation,
    check_all_clients,
)
from fdrsvm.data.scaling import FederatedMinMaxScaler
from fdrsvm.data.tables import parse_table

PRESSURE = Feature("pressure", "bar", low=0.0, high=25.0)
FLOW = Feature("flow", "l/min", low=5.0, missing="fill", fill=60.0)
SPEED = Feature("speed")
PUMP = FeatureContract((PRESSURE, FLOW, SPEED), labels=("healthy", "worn"))
GOOD = [[1.0, 50.0, -3.0], [25.0, 5.0, 1e9]]

numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def features(draw, name):
    low, high = draw(st.one_of(st.none(), numbers)), draw(st.one_of(st.none(), numbers))
    if low is not None and high is not None and low > high:
        low, high = high, low
    fill = draw(st.sampled_from([None, low, high]))
    missing = "forbid" if fill is None else "fill"
    return Feature(name, draw(st.text(max_size=5)), low, high, missing, fill)


@st.composite
def contracts(draw):
    names = draw(st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=4, unique=True))
    kind = draw(st.sampled_from([st.text(max_size=4), st.integers(-(10**20), 10**20)]))
    labels = draw(st.lists(kind, min_size=2, max_size=4, unique=True))
    return FeatureContract(tuple(draw(features(name)) for name in names), tuple(labels))


def rules(violations):
    return [(v.column, v.rule, v.count, v.example_row) for v in violations]


# --- data that keep it ---------------------------------------------------------------------------


def test_good_data_come_back_as_numbers_in_order():
    checked = PUMP.check(GOOD, ["worn", "worn"])
    assert checked.X.tolist() == GOOD
    assert checked.X.dtype == np.float64
    assert checked.X.flags.c_contiguous
    assert checked.y.tolist() == ["worn", "worn"]
    assert checked.n_clipped.tolist() == checked.n_filled.tolist() == [0, 0, 0]
    assert PUMP.violations(GOOD, ["healthy", "worn"]) == []
    assert PUMP.check(GOOD).y is None


def test_columns_of_a_frame_are_found_by_name():
    frame = pd.DataFrame(GOOD, columns=PUMP.names)
    shuffled = frame[["speed", "pressure", "flow"]]
    np.testing.assert_array_equal(PUMP.check(shuffled).X, GOOD)
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(PUMP.check(pl.from_pandas(shuffled)).X, GOOD)


def test_data_are_not_changed():
    frame = pd.DataFrame([[99.0, np.nan, 1]], columns=PUMP.names)
    before = frame.copy()
    PUMP.check(frame, clip=True)
    pd.testing.assert_frame_equal(frame, before)
    array = frame.to_numpy()
    PUMP.check(array, clip=True).X[:] = -1.0
    np.testing.assert_array_equal(array, before.to_numpy())


def frame_of(flow):
    return pd.DataFrame({"pressure": [1.0, 2.0], "flow": flow, "speed": [1, 2]})


MISSING = {
    "NaN": lambda: frame_of([7.0, np.nan]),
    "None": lambda: frame_of(pd.Series([7, None], dtype=object)),
    "nullable float": lambda: frame_of(pd.array([7.0, pd.NA], dtype="Float64")),
    "nullable integer": lambda: frame_of(pd.array([7, pd.NA], dtype="Int64")),
    "NA in objects": lambda: frame_of(pd.Series([7, pd.NA], dtype=object)),
    "decimal NaN": lambda: frame_of(pd.Series([Decimal(7), Decimal("sNaN")], dtype=object)),
    "list": lambda: [[1.0, 7.0, 1], [2.0, None, 2]],
    "masked": lambda: np.ma.array([[1, 7, 1], [2, 888, 2]], mask=[[0, 0, 0], [0, 1, 0]]),
}


@pytest.mark.parametrize("make", MISSING.values(), ids=MISSING)
def test_missing_values_of_any_kind_are_filled_and_counted(make):
    checked = PUMP.check(make())
    assert checked.X.tolist() == [[1.0, 7.0, 1.0], [2.0, 60.0, 2.0]]
    assert checked.n_filled.tolist() == [0, 1, 0]
    assert checked.n_clipped.tolist() == [0, 0, 0]


@pytest.mark.parametrize("make", MISSING.values(), ids=MISSING)
def test_missing_values_of_any_kind_are_refused(make):
    strict = FeatureContract((PRESSURE, replace(FLOW, missing="forbid", fill=None), SPEED), (0, 1))
    assert rules(strict.violations(make())) == [("flow", "must not be missing", 1, 1)]


def test_nulls_of_polars_are_missing():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"pressure": [1, 2], "flow": [7, None], "speed": [Decimal("1.5"), None]})
    assert rules(PUMP.violations(frame)) == [("speed", "must not be missing", 1, 1)]
    assert PUMP.check(frame.with_columns(speed=pl.lit(True))).X.tolist() == [[1, 7, 1], [2, 60, 1]]


def test_numbers_of_any_kind_are_numbers():
    contract = FeatureContract((SPEED,), (0, 1))
    items = [1, 1.5, True, Fraction(1, 2), Decimal("0.25"), np.float32(2), np.int8(-1)]
    X = np.array(items, dtype=object)[:, None]
    assert contract.check(X).X[:, 0].tolist() == [1.0, 1.5, 1.0, 0.5, 0.25, 2.0, -1.0]
    assert contract.check(np.array([[True], [False]])).X.tolist() == [[1.0], [0.0]]


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20))
def test_clipping_moves_what_refusing_counts(values):
    contract = FeatureContract((PRESSURE,), (0, 1))
    X = np.array(values)[:, None]
    checked = contract.check(X, clip=True)
    np.testing.assert_array_equal(checked.X, np.clip(X, 0.0, 25.0))
    assert checked.n_clipped[0] == sum(v.count for v in contract.violations(X))
    assert contract.violations(checked.X) == contract.violations(X, clip=True) == []


@pytest.mark.parametrize(
    "y", [["worn", "worn"], np.array(["worn", "healthy"]), pd.Series(["worn"] * 2)]
)
def test_a_client_need_not_have_all_labels(y):
    np.testing.assert_array_equal(PUMP.check(GOOD, y).y, np.asarray(y))


@pytest.mark.parametrize(
    "y",
    [
        [1, -1],
        [1.0, -1.0],
        np.array([1, -1], dtype=np.int8),
        np.array([np.int64(1), -1.0], dtype=object),
    ],
)
def test_labels_are_equal_if_their_numbers_are(y):
    contract = FeatureContract((SPEED,), labels=(-1.0, np.int64(1)))
    assert contract.labels == (-1, 1)
    assert contract.violations([[0.0], [1.0]], y) == []
    assert FeatureContract((SPEED,), labels=(False, np.True_)).violations([[0.0]], [True]) == []


# --- data that break it --------------------------------------------------------------------------


def test_all_violations_are_found_at_once():
    frame = pd.DataFrame(
        {
            "flow": [4.0, 4.5, np.inf, np.nan],
            "speed": [1.0, np.nan, -np.inf, np.nan],
            "pressure": [-1.0, 26.0, 30.0, 3.0],
        }
    )
    found = PUMP.violations(frame, ["worn", "broken", None, "healthy"], client="north")
    assert {violation.client for violation in found} == {"north"}
    assert rules(found) == [
        ("pressure", "must be at least 0.0 bar", 1, 0),
        ("pressure", "must be at most 25.0 bar", 2, 1),
        ("flow", "must be finite", 1, 2),
        ("flow", "must be at least 5.0 l/min", 2, 0),
        ("speed", "must not be missing", 2, 1),
        ("speed", "must be finite", 1, 2),
        ("y", "label must be one of 'healthy', 'worn'", 2, 1),
    ]
    with pytest.raises(ContractError) as caught:
        PUMP.check(frame, ["worn", "broken", None, "healthy"], client="north")
    assert list(caught.value.violations) == found
    assert isinstance(caught.value, InvalidInputError)


@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_break_that_rule_alone_and_are_not_clipped(value, clip):
    found = PUMP.violations([[value, 9.0, 1.0]], clip=clip)
    assert rules(found) == [("pressure", "must be finite", 1, 0)]


def test_columns_missing_twice_or_too_many_are_named_together():
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0]], columns=["flow", "flow", "speed", "date"])
    assert rules(PUMP.violations(frame)) == [
        ("pressure", "must be there once", 0, None),
        ("flow", "must be there once", 2, None),
        ("date", "must not be there, since it is not in the contract", 1, None),
    ]


TABLES = {
    "too wide": (np.ones((2, 4)), "must have 3 columns", 4),
    "a vector": (np.ones(3), "must have two dimensions, rows by columns", 1),
    "ragged": ([[1.0], [1.0, 2.0]], "must have two dimensions, rows by columns", 0),
    "no rows": (np.ones((0, 3)), "must have a row", 0),
}


@pytest.mark.parametrize(("X", "rule", "count"), TABLES.values(), ids=TABLES)
def test_a_table_of_another_shape_is_a_violation(X, rule, count):
    assert rules(PUMP.violations(X)) == [(None, rule, count, None)]


def test_names_that_are_not_text_are_counted_but_not_shown():
    frame = pd.DataFrame([[1.0, 2.0]], columns=[31415, "speed"])
    found = PUMP.violations(frame)
    assert found[0].rule == "must have no columns but those named by text"
    assert "31415" not in str(ContractError(found))


NOT_NUMBERS = {
    "text": (["3.5", "4"], 2),
    "text among numbers": ([5.5, "4"], 1),
    "dates": (pd.to_datetime(["2024-01-01", "2024-01-02"]), 2),
    "spans of time": (np.array([1, 2], dtype="timedelta64[s]"), 2),
    "complex": ([1j, 2j], 2),
    "lists": ([[1], [2]], 2),
}


@pytest.mark.parametrize(("flow", "count"), NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_what_is_no_number_breaks_that_rule_alone(flow, count):
    found = PUMP.violations(frame_of(flow))
    assert rules(found) == [("flow", "must be a number", count, 2 - count)]


def test_numbers_too_large_for_floats_are_infinite():
    X = np.array([[10**400, 9.0, 1.0]], dtype=object)
    assert rules(PUMP.violations(X)) == [("pressure", "must be finite", 1, 0)]


LABELS = {
    "too few": (["worn"], "must have 2 labels, one for each row", 1, None),
    "a table": ([["worn"], ["worn"]], "must be a vector of labels, one for each row", 2, None),
    "ragged": (
        [["worn"], ["worn", "worn"]],
        "must be a vector of labels, one for each row",
        0,
        None,
    ),
    "numbers": ([0, 1], "label must be one of 'healthy', 'worn'", 2, 0),
    "missing": (["worn", np.nan], "label must be one of 'healthy', 'worn'", 1, 1),
    "NA": (pd.array(["worn", pd.NA], dtype=object), "label must be one of 'healthy', 'worn'", 1, 1),
}


@pytest.mark.parametrize(("y", "rule", "count", "row"), LABELS.values(), ids=LABELS)
def test_illegal_labels_are_violations(y, rule, count, row):
    y = np.array(y, dtype=object) if rule.startswith("label") else y
    assert rules(PUMP.violations(GOOD, y)) == [("y", rule, count, row)]


def test_text_is_not_a_whole_number():
    contract = FeatureContract((SPEED,), (0, 1))
    assert contract.violations([[1.0]], ["1"])[0].count == 1


def test_sparse_and_lazy_data_are_refused():
    with pytest.raises(InvalidInputError, match="sparse"):
        PUMP.check(sparse.csr_array(np.ones((2, 3))))
    pl = pytest.importorskip("polars")
    with pytest.raises(InvalidInputError, match="collect it first"):
        PUMP.check(pl.DataFrame(GOOD, schema=PUMP.names, orient="row").lazy())


# --- messages ------------------------------------------------------------------------------------


def test_a_message_names_client_column_rule_and_count():
    with pytest.raises(ContractError) as caught:
        PUMP.check([[26.0, 9.0, 1.0], [27.0, 9.0, np.nan]], client="north")
    assert str(caught.value).splitlines() == [
        "data: must keep the feature contract; rules broken: 2",
        "  client 'north', column 'pressure': must be at most 25.0 bar; 2 not, first in row 0",
        "  client 'north', column 'speed': must not be missing; 1 not, first in row 1",
    ]
    assert (
        str(Violation(None, None, "must have a row", 0, None))
        == "the table: must have a row; found 0"
    )


@given(st.integers(200_000, 900_000), st.integers(200_000, 900_000))
def test_a_message_holds_no_value(reading, label):
    X = [[float(reading), -float(reading), f"{reading}"], [None, f"{reading}", 1j * reading]]
    with pytest.raises(ContractError) as caught:
        PUMP.check(np.array(X, dtype=object), [label, f"{label}"], client="north")
    error = caught.value
    for text in (str(error), repr(error), repr(error.violations)):
        assert str(reading) not in text
        assert str(label) not in text


def test_a_message_has_twenty_violations_and_counts_the_rest():
    contract = FeatureContract([Feature(f"x{j}") for j in range(33)], (0, 1))
    with pytest.raises(ContractError) as caught:
        contract.check(np.full((1, 33), np.nan))
    lines = str(caught.value).splitlines()
    assert len(lines) == 22
    assert lines[-1] == "  and 13 more"
    assert len(caught.value.violations) == 33


def test_an_error_can_be_copied():
    error = ContractError([Violation("north", "flow", "must be finite", 1, 0)])
    twin = copy.copy(error)
    assert twin.violations == error.violations
    assert str(twin) == str(error)
    assert twin.argument == "data"


# --- the contract itself -------------------------------------------------------------------------


def test_a_contract_cannot_be_changed():
    with pytest.raises(FrozenInstanceError):
        PUMP.labels = ()
    with pytest.raises(FrozenInstanceError):
        PRESSURE.low = 3.0


def test_the_box_fits_scalers():
    contract = FeatureContract([PRESSURE, replace(FLOW, high=65)], (0, 1))
    low, high = contract.box
    assert low.tolist() == [0.0, 5.0]
    assert high.tolist() == [25.0, 65.0]
    scaler = FederatedMinMaxScaler(limits=contract.box).fit_summaries(feature_names=contract.names)
    assert scaler.transform(pd.DataFrame([[25.0, 5.0]], columns=contract.names)).tolist() == [
        [1, 0]
    ]
    with pytest.raises(InvalidInputError, match="both limits to make a box; 'flow' lacks one"):
        PUMP.box  # noqa: B018


@given(contracts())
def test_json_gives_back_the_contract(contract):
    again = FeatureContract.from_json(contract.to_json())
    assert again == contract
    assert again.to_json() == contract.to_json()
    assert again.fingerprint == contract.fingerprint


@given(contracts(), contracts())
def test_fingerprints_are_equal_exactly_if_contracts_are(one, other):
    assert (one.fingerprint == other.fingerprint) == (one == other)


def test_the_fingerprint_is_what_it_was_when_this_was_written():
    assert PUMP.fingerprint == "e230effa094604f9ddb37a6542131e90f78da6ae3dc314e4c92c8b73519025d2"


def test_the_fingerprint_does_not_depend_on_how_a_contract_is_written():
    by_hand = """{"labels": ["healthy", "worn"], "version": 1, "features": [
        {"unit": "bar", "high": 25, "low": -0.0, "name": "pressure"},
        {"name": "flow", "unit": "l/min", "low": 5, "missing": "fill", "fill": 6e1},
        {"name": "speed"}], "kind": "fdrsvm-feature-contract"}"""
    assert FeatureContract.from_json(by_hand).fingerprint == PUMP.fingerprint
    assert FeatureContract.from_json(by_hand.encode()) == PUMP
    swapped = FeatureContract((FLOW, PRESSURE, SPEED), PUMP.labels)
    assert swapped.fingerprint != PUMP.fingerprint


def edited(**changes):
    return json.dumps({**json.loads(PUMP.to_json()), **changes})


def with_feature(**entry):
    return edited(features=[entry])


CORRUPT = {
    "cut": (PUMP.to_json()[:-5], "not the JSON"),
    "empty": ("", "not the JSON"),
    "not text": (None, "not the JSON"),
    "not UTF-8": (b"\xff\xfe\xff", "not the JSON"),
    "too deep": ("[" * 100_000, "not the JSON"),
    "a list": ("[]", "kind"),
    "another kind": (edited(kind="recipe"), "kind"),
    "no kind": ("{}", "kind"),
    "later version": (edited(version=2), "version 2, this release reads 1"),
    "true as version": (edited(version=True), "version True"),
    "version as text": (edited(version="1"), "version '1'"),
    "unknown key": (edited(author="me"), "unknown keys 'author'"),
    "unknown key of a feature": (
        with_feature(name="p", max=3),
        "feature 'p' has unknown keys 'max'",
    ),
    "no labels": ('{"kind": "fdrsvm-feature-contract", "version": 1, "features": []}', "lists"),
    "labels one text": (edited(labels="ab"), "lists"),
    "features an object": (edited(features={}), "lists"),
    "feature without a name": (with_feature(unit="bar"), "with a name"),
    "feature a text": (edited(features=["pressure"]), "with a name"),
    "key twice": (PUMP.to_json().replace('"unit"', '"name"'), "given twice"),
    "limit NaN": (PUMP.to_json().replace("25.0", "NaN"), "NaN is not a number of JSON"),
    "limit infinite": (PUMP.to_json().replace("25.0", "-Infinity"), "-Infinity"),
}


@pytest.mark.parametrize(("text", "message"), CORRUPT.values(), ids=CORRUPT)
def test_text_of_another_form_is_refused(text, message):
    with pytest.raises(CorruptDataError, match=message):
        FeatureContract.from_json(text)


BROKEN = {
    "name empty": (lambda: Feature(""), "name"),
    "name a number": (lambda: Feature(3), "name"),
    "unit None": (lambda: Feature("p", None), "unit of 'p'"),
    "low above high": (lambda: Feature("p", low=2, high=1), "low of 'p'"),
    "low NaN": (lambda: Feature("p", low=np.nan), "low of 'p'"),
    "high infinite": (lambda: Feature("p", high=np.inf), "high of 'p'"),
    "high text": (lambda: Feature("p", high="25"), "high of 'p'"),
    "low a flag": (lambda: Feature("p", low=True), "low of 'p'"),
    "missing allowed": (lambda: Feature("p", missing="allow"), "missing of 'p'"),
    "fill without a value": (lambda: Feature("p", missing="fill"), "fill of 'p'"),
    "fill in vain": (lambda: Feature("p", fill=1.0), "fill of 'p'"),
    "fill too low": (lambda: Feature("p", low=2, missing="fill", fill=1.0), "fill of 'p'"),
    "fill too high": (lambda: Feature("p", high=0, missing="fill", fill=1.0), "fill of 'p'"),
    "no features": (lambda: FeatureContract((), (0, 1)), "features"),
    "features by name": (lambda: FeatureContract(("p",), (0, 1)), "features"),
    "name twice": (lambda: FeatureContract((SPEED, FLOW, SPEED), (0, 1)), "features"),
    "features one": (lambda: FeatureContract(SPEED, (0, 1)), "features"),
    "labels one number": (lambda: FeatureContract((SPEED,), 3), "labels"),
    "one label": (lambda: FeatureContract((SPEED,), (0,)), "labels"),
    "label twice": (lambda: FeatureContract((SPEED,), (1, True, 0)), "labels"),
    "labels one text": (lambda: FeatureContract((SPEED,), "ab"), "labels"),
    "labels of two kinds": (lambda: FeatureContract((SPEED,), ("a", 1)), "labels"),
    "label a half": (lambda: FeatureContract((SPEED,), (0.5, 1)), "labels"),
    "label NaN": (lambda: FeatureContract((SPEED,), (np.nan, 1)), "labels"),
    "label None": (lambda: FeatureContract((SPEED,), (None, 1)), "labels"),
    "JSON limit too large": (
        lambda: FeatureContract.from_json(PUMP.to_json().replace("25.0", "1e999")),
        "high of 'pressure'",
    ),
    "JSON name twice": (
        lambda: FeatureContract.from_json(PUMP.to_json().replace("speed", "flow")),
        "features",
    ),
    "JSON low above high": (
        lambda: FeatureContract.from_json(PUMP.to_json().replace("25.0", "-1")),
        "low of 'pressure'",
    ),
    "no clients": (lambda: check_all_clients({}), "labels_by_client"),
    "a client without labels": (lambda: check_all_clients({"a": []}), "labels_by_client"),
    "a table of labels": (lambda: check_all_clients({"a": [[1], [0]]}), "labels_by_client"),
    "label of a client NaN": (lambda: check_all_clients({"a": [1, np.nan]}), "labels_by_client"),
    "label of a client None": (lambda: check_all_clients({"a": [1, None]}), "labels_by_client"),
    "clients of two kinds": (lambda: check_all_clients({"a": [1], "b": ["1"]}), "labels_by_client"),
}


@pytest.mark.parametrize(("call", "argument"), BROKEN.values(), ids=BROKEN)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(InvalidInputError) as caught:
        call()
    assert caught.value.argument == argument


# --- all clients ---------------------------------------------------------------------------------


def test_one_class_in_a_client_is_fine_and_one_over_all_clients_is_not():
    assert check_all_clients({"a": ["worn", "worn"], "b": np.array(["healthy"])}) == (
        "healthy",
        "worn",
    )
    assert check_all_clients({0: pd.Series([1.0, -1.0]), 1: [1]}) == (-1, 1)
    with pytest.raises(InvalidInputError, match="every label of every client is 'worn'"):
        check_all_clients({"a": ["worn", "worn"], "b": ["worn"]})


def test_rows_are_dropped_where_the_contract_says_so():
    features = (
        Feature("a", missing="drop"),
        Feature("b", high=9.0, missing="fill", fill=5.0),
        Feature("c", missing="drop"),
    )
    contract = FeatureContract(features, ("x", "y"))
    nan = np.nan
    X = [[1, nan, 3], [nan, nan, 3], [1, 2, None], [4, 99, 6]]
    checked = contract.check(X, [*"xyxy"], clip=True)
    assert checked.X.tolist() == [[1.0, 5.0, 3.0], [4.0, 9.0, 6.0]]
    assert checked.y.tolist() == ["x", "y"]
    assert checked.is_kept.tolist() == [True, False, False, True]
    assert checked.n_dropped == 2
    assert checked.n_filled.tolist() == [0, 1, 0]  # of the rows kept
    assert checked.n_clipped.tolist() == [0, 1, 0]
    with pytest.raises(ContractError, match="must have a row that lacks no value; all are left"):
        contract.check(X[1:3])
    with pytest.raises(ContractError, match="label must be one of"):  # also of rows left out
        contract.check(X, [*"xzxy"], clip=True)
    again = FeatureContract.from_json(contract.to_json())
    assert again.fingerprint == contract.fingerprint
    with pytest.raises(InvalidInputError, match="must be given with missing='fill', and only then"):
        Feature("a", missing="drop", fill=1.0)


def test_rows_of_files_are_counted_as_a_spreadsheet_does():
    contract = FeatureContract((Feature("a", high=9.0),), ("x", "y"))
    table = parse_table(b"a\n1\n\n99\n", "t.csv")
    assert [one.example_row for one in contract.violations(table)] == [4]
    assert [one.example_row for one in contract.violations([[1.0], [99.0]])] == [1]
    two_ways = parse_table(b"a;\n".replace(b";", b"") + b'"1,5"\n1.5\n', "t.csv")
    (one,) = contract.violations(two_ways)
    assert one.rule.startswith("must be a number (some of its numbers have a decimal point")


def test_columns_called_as_what_a_table_has_are_columns(rng):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"row_numbers": [1.0, 99.0], "notes": [1.0, 2.0]})
    features = (Feature("row_numbers", high=9.0), Feature("notes"))
    (one,) = FeatureContract(features, ("x", "y")).violations(frame)
    assert (one.column, one.example_row) == ("row_numbers", 1)
