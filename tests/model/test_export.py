"""An export scores and labels as the model does, whatever the names in it."""

import json
import re
import string
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdrsvm import AdditiveMap, InvalidInputError, UnsupportedError
from fdrsvm.errors import NumericalError
from fdrsvm.model.export import to_json, to_onnx, to_structured_text, write_onnx
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.model_file import load_model, save_model
from fdrsvm.model.sigmoids import Probabilities, Sigmoid, probabilities
from fdrsvm.model.unscaling import Scaling
from fdrsvm.risk.feature_maps import make_features, read_features
from tests.estimators.models import (
    LABELS,
    make_mapped,
    make_model,
    models,
    random_features,
    rows_around,
    same_plain,
    score_tolerance,
    texts,
)
from tests.estimators.structured_text import FunctionBlock, tokens_of, without_comments

CASES = [(kind, k) for kind in LABELS for k in (2, 3, 4) if k <= len(LABELS[kind])]
sizes = {"n_classes": st.integers(2, 5), "n_features": st.integers(1, 6)}


PAGE = (Path(__file__).parents[2] / "docs" / "maps.md").read_text(encoding="utf-8")
ONES = np.ones(3)
MAPS = ("additive", "pairs", "fourier")


def scores_of(outputs):
    return np.array([outputs[name] for name in outputs if name.startswith("SCORE")])


def simple(coef, intercept, classes, **fields):
    return LinearModel.checked(coef, intercept, classes, estimator="FDRSVC", **fields)


@given(**sizes, seed=st.integers(0, 2**32 - 1), log_scale=st.integers(-100, 100))
def test_structured_text_scores_as_the_model_does(n_classes, n_features, seed, log_scale):
    rng = np.random.default_rng(seed)
    model = make_model(rng, classes=range(n_classes), n_features=n_features)
    X = 10.0**log_scale * rng.normal(size=(4, n_features))
    block = FunctionBlock(to_structured_text(model))
    expected = model.decision_function(X)
    for x, score, tolerance in zip(X, expected, score_tolerance(model, X), strict=True):
        found = scores_of(block(x))
        assert (np.abs(found - score) <= tolerance).all()
        clear = abs(score) if n_classes == 2 else np.diff(np.sort(score)[-2:])
        if (clear > 2 * np.max(tolerance)).all():
            assert block(x)["CLASSNUMBER"] == model.predict(x[None])[0] + 1


@given(
    weights=st.lists(st.floats(-1e307, 1e307, allow_subnormal=True), min_size=1, max_size=5),
    at=st.integers(0, 4),
)
def test_structured_text_holds_every_bit_of_the_weights(weights, at):
    block = FunctionBlock(to_structured_text(simple([weights], [0.0], [-1, 1])))
    one = np.eye(len(weights))[at % len(weights)]
    assert block(one)["SCORE"] == weights[at % len(weights)]
    bias = FunctionBlock(to_structured_text(simple([[0.0]], weights[:1], [-1, 1])))
    assert bias([1.0])["SCORE"] == weights[0]


@settings(max_examples=40)
@given(
    kind=st.sampled_from(MAPS),
    n_classes=st.integers(2, 4),
    n_sensors=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_structured_text_with_a_map_scores_as_the_model_does(kind, n_classes, n_sensors, seed):
    rng = np.random.default_rng(seed)
    features = random_features(rng, kind, n_sensors)
    threshold = rng.normal() if n_classes == 2 else 0.0
    model = make_mapped(rng, features, range(n_classes), threshold=threshold)
    block = FunctionBlock(to_structured_text(model))
    X = rows_around(rng, features)
    tolerances, expected = score_tolerance(model, X), model.decision_function(X)
    for x, score, tolerance in zip(X, expected, tolerances, strict=True):
        outputs = block(x)
        assert outputs["VALID"]
        assert (np.abs(scores_of(outputs) - score) <= tolerance).all()
        clear = abs(score - threshold) if n_classes == 2 else np.diff(np.sort(score)[-2:])
        if (clear > 2 * np.max(tolerance)).all():
            assert outputs["CLASSNUMBER"] == model.predict(x[None])[0] + 1


@pytest.mark.parametrize("kind", MAPS)
def test_the_tolerance_of_maps_is_far_below_1e_9(kind, rng):
    """Relative to the sum of absolute terms, of which waves have at most their weight."""
    features = random_features(rng, kind, 5)
    model, X = make_mapped(rng, features), rows_around(rng, features)[:-1]
    phi = np.full(features.n_outputs, features.scale) if kind == "fourier" else None
    sizes = np.abs(features.apply(X) if phi is None else phi) @ np.abs(model.coef[0])
    assert (score_tolerance(model, X) <= 1e-11 * (sizes + abs(model.intercept[0]))).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
def test_a_broken_sensor_in_front_of_a_map_gives_no_class(kind, n_classes, bad, rng):
    features = random_features(rng, kind, 2)
    model = make_mapped(rng, features, range(n_classes))
    model = LinearModel.checked(**{**vars(model), "coef": 1e10 * np.abs(model.coef)})
    block = FunctionBlock(to_structured_text(model))
    x = rows_around(rng, features)[2]
    good = block(x)
    broken = block([bad, x[1]])
    assert (broken["VALID"], broken["CLASSNUMBER"]) == (False, 0)
    assert good["VALID"]
    assert same_plain(block(x), good)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", MAPS)
def test_probabilities_of_a_map_are_those_of_its_scores(kind, n_classes, rng):
    runtime = pytest.importorskip("onnxruntime")
    features = random_features(rng, kind, 3)
    sigmoids = tuple(Sigmoid(1.5, -0.5, 0.2 * k, 2.0, 0.0) for k in range(2 * n_classes - 3))
    model = Probabilities(sigmoids).keep_in(make_mapped(rng, features, range(n_classes)))
    X = rows_around(rng, features)[:-1]
    expected = probabilities(model, X)
    # Odds change by slope / scale = 3/4 of what a score does, and a probability by less.
    atol = score_tolerance(model, X).max() + 1e-15
    found = runtime.InferenceSession(to_onnx(model)).run(["probability"], {"X": X})[0]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=atol)
    block = FunctionBlock(to_structured_text(model))
    names = ["PROBABILITY"] if n_classes == 2 else [f"PROBABILITY_{k}" for k in (1, 2, 3)]
    columns = expected[:, -len(names) :]
    rows = [[block(x)[name] for name in names] for x in X]
    np.testing.assert_allclose(rows, columns, rtol=0.0, atol=atol)


@pytest.mark.parametrize("kind", MAPS)
def test_exports_of_a_model_of_scaled_sensors_take_readings(kind, rng):
    scaled = make_mapped(rng, replace(random_features(rng, kind, 3), low=np.zeros(3), width=ONES))
    scaling = Scaling("minmax", np.array([300.0, -4.0, 1e5]), np.array([2.0, 1e-3, 70.0]))
    folded = scaling.fold(scaled)
    block = FunctionBlock(to_structured_text(folded))
    X = rows_around(rng, folded.features)
    expected, tolerance = scaled.decision_function(scaling.apply(X)), score_tolerance(folded, X)
    found = np.concatenate([scores_of(block(x)) for x in X])
    assert (np.abs(found - expected) <= tolerance).all()


def table_in(text):
    """The lines of comments that have nothing but numbers, and all pairs "a to b" beside code."""
    lines = re.findall(r"^\(\* +([-+.0-9e ]+) \*\)$", text, re.M)
    pieces = re.findall(r"\(\* (\S+) to (\S+) \*\)", text)
    as_numbers = [list(map(float, line.split())) for line in lines]
    return as_numbers, np.array(pieces, dtype=float)


def test_tables_in_comments_are_the_curves_and_the_surface(rng):
    """Read as a person would, they give the scores, up to their six digits."""
    features = AdditiveMap(pairs=[(0, 1)], limits=([2.0, -5.0], [3.0, 15.0])).over(2)
    names = ["pressure", "speed"]
    rules = [{"name": "pressure", "unit": "bar", "low": None, "high": None, "missing": "forbid"}]
    model = make_mapped(rng, features, feature_names=names, record={"data": {"rules": rules}})
    text = to_structured_text(model)
    assert '(* The curve of "pressure" in bar: straight between its knots' in text
    assert 'pressure : LREAL; (* "pressure" in bar *)' in text
    (across, *rows), pieces = table_in(text)
    knots = [[*pieces[at : at + 12 : 2, 0], pieces[at + 10, 1]] for at in (0, 12)]
    values = [[*pieces[at : at + 12 : 2, 0], pieces[at + 10, 1]] for at in (1, 13)]
    X = features.low + features.width * rng.random((50, 2))
    found = model.intercept + sum(np.interp(X[:, j], knots[j], values[j]) for j in range(2))
    for at, (down, second) in enumerate(X):
        line = [np.interp(second, across, row[1:]) for row in rows]
        found[at] += np.interp(down, [row[0] for row in rows], line)
    size = np.abs(values).max() + np.abs(rows).max() + np.abs(model.intercept).max()
    np.testing.assert_allclose(found, model.decision_function(X), atol=1e-4 * size)


@pytest.mark.parametrize("name", ["linear", "additive", "additive-pairs", "fourier"])
def test_the_page_tells_how_long_the_text_is(name, rng):
    features = make_features(name, 5, None)
    model = make_model(rng, n_features=5) if features is None else make_mapped(rng, features)
    lines = to_structured_text(model).splitlines()
    code = [line for line in lines if not line.strip().startswith("(*")]
    assert f'| `"{name}"` | {len(code)} |' in PAGE


def test_weights_beyond_what_a_literal_holds_are_refused_with_a_remedy():
    features = AdditiveMap(n_knots=1, limits=(0.0, 1e10)).over(1)
    model = simple([[1e300]], [0.0], [0, 1], features=features)
    with pytest.raises(NumericalError, match="scale the sensors"):
        to_structured_text(model)


def test_variables_of_a_map_leave_names_of_sensors_to_them(rng):
    names = ["Share_1", "Ramp_2_1", "Phase"]
    for kind in MAPS:
        model = make_mapped(rng, random_features(rng, kind, 3), feature_names=names)
        text = to_structured_text(model)
        x = rows_around(rng, model.features)[2]
        found = scores_of(FunctionBlock(text)(x))
        tolerance = score_tolerance(model, x[None])
        assert (np.abs(found - model.decision_function([x])) <= tolerance).all()
        assert declared(text)[0] == "Share_1_2"


NASTY = [
    "*)", "(*", "(* *)", "*) Score := 1.0; (*", "a*)b", "*\n)", "//", "/* */", "{attribute}", "$N",
    "'", '"', "\\", "\\u002a", "END_VAR", "if", "Score", "score_1", "Score_2", "Best", "Valid",
    "Alarm", "ClassNumber", "FDRSVM_Score", "x0", "X0", "x_0", "1st", "_a", "a_", "a__b", "a b",
    "a_b", "A_B", "a.b", "Öldruck", "Oldruck", "压力", "\u202eabc", "\x7f", "\n", "", "T#1s", "E5",
    "a" * 31 + "_" + "b" * 9, "a" * 31 + "_" + "c" * 9, "b" * 500, "%IX0.0", "LREAL", "abs", "1E5",
]  # fmt: skip
hostile = st.lists(st.sampled_from(NASTY) | texts, min_size=1, max_size=12, unique=True)


def declared(text):
    """Input identifiers as they are spelt."""
    section = text.split("\nVAR_INPUT\n")[1].split("\nEND_VAR\n")[0]
    return re.findall(r"^    (\S+) : LREAL; \(\*", section, re.M)


@settings(max_examples=100)
@given(names=hostile, n_classes=st.sampled_from([2, 3]), label=texts)
def test_no_name_can_break_the_text(names, n_classes, label):
    rng = np.random.default_rng(len(names))
    classes = [label, label + "x", label + "y"][:n_classes]
    features = {"n_features": len(names), "feature_names": names}
    certificate = {name: [name, {name: np.inf}] for name in names}
    model = make_model(rng, classes, **features, certificate=certificate, estimator=label)
    text = to_structured_text(model)
    assert set(text) <= set(string.printable) - set("\t\r\v\f")
    words = declared(text)
    assert len({word.upper() for word in words}) == len(names)
    for word in words:
        assert re.fullmatch(r"[A-Za-z](_?[A-Za-z0-9])*", word)
        assert len(word) <= 32
    x = rng.normal(size=len(names))
    found = scores_of(FunctionBlock(text)(x))
    assert (np.abs(found - model.decision_function([x])) <= score_tolerance(model, x[None])).all()


def test_the_code_does_not_depend_on_what_comments_say():
    weights, names = [[1.0, 2.0]], ["vibration", "pressure"]
    plain = to_structured_text(simple(weights, [0.5], ["a", "b"], feature_names=names))
    other = to_structured_text(
        simple(
            weights,
            [0.5],
            ["*) x := 1; (*", "(*"],
            feature_names=names,
            certificate={"*)": "*)"},
            params={"*)": "*)"},
        )
    )
    strip = [tokens_of(without_comments(text, nested=True)) for text in (plain, other)]
    assert strip[0] == strip[1]


def test_names_become_legal_and_legal_names_stay():
    names = ["a b", "a_b", "A_B", "IF", "Öldruck (bar)", "1st", "score", "压力", "motor.rms_"]
    model = simple(np.ones((1, 9)), [0.0], [0, 1], feature_names=names)
    assert declared(to_structured_text(model)) == [
        "a_b_3", "a_b", "A_B_2", "IF_2", "Oldruck_bar", "x_1st", "score_2", "x7", "motor_rms",
    ]  # fmt: skip
    assert '(* "motor.rms_" *)' in to_structured_text(model)
    assert declared(to_structured_text(simple([[1.0, 2.0]], [0.0], [0, 1]))) == ["x0", "x1"]


RESERVED = "if THEN var_input Real LREAL BOOL sin Abs ton R S end_function_block mod TRUE time OK"


@pytest.mark.parametrize("word", RESERVED.split())
def test_reserved_words_are_no_names(word):
    model = simple([[1.0]], [0.0], [0, 1], feature_names=[word])
    assert declared(to_structured_text(model)) == [f"{word}_2"]
    with pytest.raises(InvalidInputError, match="name: must be a legal identifier"):
        to_structured_text(model, name=word)


@pytest.mark.parametrize("name", ["", "1a", "a__b", "a_", "_a", "a b", "Öl", "a" * 33, "a;", None])
def test_the_block_needs_a_legal_name(name):
    with pytest.raises(InvalidInputError, match="name"):
        to_structured_text(simple([[1.0]], [0.0], [0, 1]), name=name)


def test_the_block_has_the_name_asked_for_and_no_input_shares_it():
    text = to_structured_text(simple([[1.0]], [0.0], [0, 1], feature_names=["Pump"]), name="PUMP")
    assert FunctionBlock(text).name == "PUMP"
    assert declared(text) == ["Pump_2"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("bad", [[np.nan, 0.0], [np.inf, 0.0], [np.inf, np.inf], [1e300, -1e300]])
def test_a_broken_sensor_gives_no_class_and_recovery_is_at_once(n_classes, bad):
    coef = (
        np.array([[1e30, 1.0]]) if n_classes == 2 else 1e30 * np.array([[-1, 1], [1, -1], [0, 0]])
    )
    model = simple(coef, np.zeros(len(coef)), list(range(n_classes)))
    block = FunctionBlock(to_structured_text(model, alarm_on=[1]))
    good = block([1.0, -1.0])
    assert good["VALID"]
    assert good["CLASSNUMBER"] == 2
    assert good["ALARM"]
    broken = block(bad)
    assert not broken["VALID"]
    assert broken["CLASSNUMBER"] == 0
    assert not broken["ALARM"]
    assert same_plain(block([1.0, -1.0]), good)


def test_equal_scores_go_to_the_first_class_everywhere():
    two = FunctionBlock(to_structured_text(simple([[0.0]], [0.0], [0, 1])))
    three = FunctionBlock(to_structured_text(simple(np.zeros((3, 1)), np.zeros(3), [0, 1, 2])))
    assert two([1.0])["CLASSNUMBER"] == three([1.0])["CLASSNUMBER"] == 1


def alarms(model, **options):
    """The classes, by number, that raise an alarm; None if the block has no such output."""
    block = FunctionBlock(to_structured_text(model, **options))
    outputs = [block(x) for x in np.eye(3)]
    return (
        {out["CLASSNUMBER"] for out in outputs if out["ALARM"]} if "ALARM" in outputs[0] else None
    )


def test_the_alarm_is_for_the_classes_asked_for():
    two = [[-1.0, 1.0, 1.0]], [0.0]
    assert alarms(simple(*two, [-1, 1])) == {2}
    assert alarms(simple(*two, [False, True])) == {2}
    # Sorted text: here the second class is the healthy one.
    assert alarms(simple(*two, ["fault", "healthy"])) is None
    assert alarms(simple(*two, ["fault", "healthy"]), alarm_on=["fault"]) == {1}
    assert alarms(simple(*two, [-1, 1]), alarm_on=[]) is None
    three = np.eye(3), np.zeros(3), ["healthy", "leak", "worn"]
    assert alarms(simple(*three)) is None
    assert alarms(simple(*three), alarm_on=["worn", "leak"]) == {2, 3}
    for wrong in (["crack"], "leak"):
        with pytest.raises(InvalidInputError, match="alarm_on"):
            alarms(simple(*three), alarm_on=wrong)


def test_comments_say_where_the_text_comes_from(rng):
    model = make_model(rng, ["healthy", "fault"], certificate={"gap": 1e-7, "objective": 0.25})
    text = to_structured_text(model)
    for line in (
        '(* Class 1: "healthy" *)',
        '(* Class 2: "fault" *)',
        '(* Certificate "gap": 1e-07 *)',
        '(* Certificate "objective": 0.25 *)',
        f"(* SHA-256 of the coefficients: {model.fingerprint} *)",
    ):
        assert line in text.splitlines()


@settings(max_examples=60)
@given(model=models())
def test_a_loaded_model_exports_as_the_saved_one(model, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "export.safetensors"
    save_model(model, path)
    loaded = load_model(path)
    assert to_structured_text(loaded) == to_structured_text(model)
    assert to_json(loaded) == to_json(model)


@given(model=models())
def test_json_holds_everything(model):
    def strict(name):
        raise AssertionError(f"{name} is not JSON")

    content = json.loads(to_json(model), parse_constant=strict)
    assert np.array(content["coef"]).tobytes() == model.coef.tobytes()
    assert np.array(content["intercept"]).tobytes() == model.intercept.tobytes()
    assert same_plain(tuple(content["classes"]), model.classes)
    names = content["feature_names"]
    assert (names if names is None else tuple(names)) == model.feature_names
    assert content["estimator"] == model.estimator
    assert content["fingerprint"] == model.fingerprint
    assert content["params"].keys() == {k.replace("$", "$$", k[:1] == "$") for k in model.params}


def test_json_tags_the_numbers_it_lacks():
    model = simple([[1.0]], [0.0], [0, 1], params={"kappa": np.inf}, certificate={"gap": np.nan})
    content = json.loads(to_json(model))
    assert content["params"] == {"kappa": {"$float": "inf"}}
    assert content["certificate"] == {"gap": {"$float": "nan"}}


@pytest.fixture(scope="module")
def run_onnx():
    """Score and label of an ONNX model, once it has passed the checker."""
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")

    def run(data, X):
        onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1
        session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        return session.run(["score", "label"], {"X": X})

    return run


@pytest.mark.parametrize(("kind", "n_classes"), CASES)
@pytest.mark.parametrize("n_features", [1, 7])
def test_onnx_scores_and_labels_as_the_model_does(kind, n_classes, n_features, run_onnx, rng):
    classes = LABELS[kind][:n_classes]
    model = make_model(rng, classes, n_features)
    X = rng.normal(size=(200, n_features))
    score, label = run_onnx(to_onnx(model), X)
    expected = model.decision_function(X)
    assert score.dtype == np.float64
    assert score.shape == expected.shape
    assert (np.abs(score - expected) <= score_tolerance(model, X)).all()
    assert label.tolist() == model.predict(X).tolist()
    assert {type(one) for one in label.tolist()} == {type(classes[0])}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kind=st.sampled_from(MAPS),
    n_classes=st.integers(2, 4),
    n_sensors=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_onnx_with_a_map_scores_as_the_model_does(kind, n_classes, n_sensors, seed, run_onnx):
    rng = np.random.default_rng(seed)
    features = random_features(rng, kind, n_sensors)
    threshold = rng.normal() if n_classes == 2 else 0.0
    model = make_mapped(rng, features, range(n_classes), threshold=threshold)
    X = rows_around(rng, features, n_rows=30)
    score, label = run_onnx(to_onnx(model), X)
    expected, tolerance = model.decision_function(X), score_tolerance(model, X)
    assert score.shape == expected.shape
    assert (np.abs(score - expected) <= tolerance).all()
    best = expected[:, None] * [0.0, 1.0] + [threshold, 0.0] if n_classes == 2 else expected
    gaps = np.diff(np.sort(best, axis=1)[:, -2:], axis=1)[:, 0]
    clear = gaps > 2.0 * tolerance.reshape(len(X), -1).max(axis=1)
    assert label[clear].tolist() == model.predict(X)[clear].tolist()


@pytest.mark.parametrize("kind", MAPS)
def test_onnx_with_a_map_shows_a_broken_sensor_in_its_score(kind, run_onnx, rng):
    features = random_features(rng, kind, 3)
    X = np.repeat(rows_around(rng, features)[2:3], 4, axis=0)
    X[[0, 1, 2], 1] = [np.nan, np.inf, -np.inf]
    score, _ = run_onnx(to_onnx(make_mapped(rng, features)), X)
    assert np.isfinite(score).tolist() == [False, False, False, True]
    assert len(run_onnx(to_onnx(make_mapped(rng, features)), X[:0])[0]) == 0


@pytest.mark.parametrize("kind", MAPS)
def test_json_holds_the_map(kind, rng):
    model = make_mapped(rng, random_features(rng, kind, 3), ["a", "b", "c"])
    content = json.loads(to_json(model))
    kept = content["features"]
    made = kept.pop("kind")
    arrays = {name: np.array(kept.pop(name)) for name in model.features.arrays()}
    features = read_features(made, kept, arrays)
    X = rows_around(rng, model.features)
    scores = features.apply(X) @ np.array(content["coef"]).T + content["intercept"]
    np.testing.assert_array_equal(scores, model.decision_function(X))
    assert "features" not in json.loads(to_json(make_model(rng)))


def test_onnx_gives_equal_scores_to_the_first_class(run_onnx):
    for n_classes in (2, 3):
        zeros = np.zeros((1 if n_classes == 2 else n_classes, 1))
        model = simple(zeros, zeros[:, 0], list(range(5, 5 + n_classes)))
        assert run_onnx(to_onnx(model), np.ones((2, 1)))[1].tolist() == [5, 5]


def test_onnx_shows_a_broken_sensor_in_its_score(run_onnx, rng):
    score, _ = run_onnx(to_onnx(make_model(rng)), np.array([[np.nan, 0.0, 0.0], [1.0, 1.0, 1.0]]))
    assert np.isfinite(score).tolist() == [False, True]


def test_onnx_says_where_it_comes_from(rng):
    onnx = pytest.importorskip("onnx")
    names = ["vibration", "Öldruck", "*)"]
    model = make_model(
        rng, feature_names=names, certificate={"gap": 1e-7}, params={"kappa": np.inf}
    )
    proto = onnx.load_from_string(to_onnx(model))
    properties = {entry.key: entry.value for entry in proto.metadata_props}
    assert json.loads(properties["feature_names"]) == names
    assert json.loads(properties["classes"]) == [-1, 1]
    assert json.loads(properties["gap"]) == 1e-7
    assert json.loads(properties["params"]) == {"kappa": {"$float": "inf"}}
    assert properties["fingerprint"] == model.fingerprint
    assert properties["estimator"] == "FDRSVC"
    assert [(entry.domain, entry.version) for entry in proto.opset_import] == [("", 17)]


def test_onnx_files_are_the_same_each_time(rng, tmp_path):
    pytest.importorskip("onnx")
    model = make_model(rng, ["a", "b", "c"])
    write_onnx(model, tmp_path / "pump.onnx")
    assert (tmp_path / "pump.onnx").read_bytes() == to_onnx(model)
    assert len(list(tmp_path.iterdir())) == 1


def test_without_onnx_the_error_says_what_to_install(rng, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UnsupportedError, match=r"pip install 'fdr-svm\[onnx\]'"):
        write_onnx(make_model(rng), tmp_path / "pump.onnx")
    assert not list(tmp_path.iterdir())
