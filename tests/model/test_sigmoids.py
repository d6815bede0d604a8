"""Probabilities of a model: by the formula, the same from a file and exported."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from fdrsvm import CorruptDataError, InvalidInputError
from fdrsvm.model.export import to_json, to_onnx, to_structured_text
from fdrsvm.model.linear_model import POSITIVE, LinearModel
from fdrsvm.model.model_file import load_model, save_model
from fdrsvm.model.sigmoids import (
    LARGEST_LOG_ODDS,
    Probabilities,
    Sigmoid,
    at_client,
    probabilities,
    probabilities_of_scores,
)
from tests.estimators.models import make_model
from tests.estimators.structured_text import FunctionBlock

EPS = np.finfo(float).eps
sigmoids = st.builds(
    Sigmoid,
    slope=st.floats(0.0, 50.0),
    intercept=st.floats(-50.0, 50.0),
    centre=st.floats(-1e3, 1e3),
    scale=st.floats(1e-3, 1e3),
    prior=st.floats(-50.0, 50.0),
)


def some_sigmoids(rng, n):
    return tuple(
        Sigmoid(*np.abs(rng.normal(size=2)).tolist(), float(rng.normal()), 0.5 + k, 0.3)
        for k in range(n)
    )


def calibrated(rng, classes, clients=()):
    model = make_model(rng, classes)
    n_scores = len(model.intercept)
    own = {name: some_sigmoids(rng, n_scores) for name in clients}
    return Probabilities(some_sigmoids(rng, n_scores), own, 0.1).keep_in(model)


def by_formula(model, X, chosen):
    """From SciPy's expit, whose only difference is rounding."""
    scores = model.decision_function(X).reshape(len(X), -1)
    odds = [
        s.slope * (scores[:, k] - s.centre) / s.scale + s.intercept for k, s in enumerate(chosen)
    ]
    values = expit(np.column_stack(odds))
    if values.shape[1] == 1:
        return np.hstack([1.0 - values, values])
    return values / values.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("classes", [("Fault", "ok"), (0, 1, 2)])
def test_probabilities_are_those_of_the_formula(classes, rng):
    model = calibrated(rng, classes, clients=["north"])
    known = Probabilities.of(model)
    X = rng.normal(size=(50, 3))
    for client, chosen in ((None, known.shared), ("north", known.clients["north"])):
        found = probabilities(model, X, client)
        np.testing.assert_allclose(found, by_formula(model, X, chosen), rtol=1e-12)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=4 * EPS)
    assert (probabilities(model, X, "elsewhere") == probabilities(model, X)).all()
    assert (probabilities(at_client(model, "north"), X) == probabilities(model, X, "north")).all()
    assert (probabilities(at_client(model, "elsewhere"), X) == probabilities(model, X)).all()


@given(one=sigmoids, scores=st.lists(st.floats(-1.7e308, 1.7e308), min_size=1, max_size=5))
def test_no_score_is_too_large(one, scores):
    model = Probabilities((one,)).keep_in(
        LinearModel.checked([[1.0]], [0.0], [0, 1], estimator="x")
    )
    order = np.sort(scores)
    found = probabilities_of_scores(model, order)
    assert (found > 0.0).all()
    assert (found <= 1.0).all()
    assert (np.diff(found[:, 1]) >= 0.0).all(), "a higher score is never less likely"
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=4 * EPS)


@pytest.mark.parametrize("positive", ["Fault", "ok"])
def test_another_share_of_faults_is_bayes_rule(positive, rng):
    model = calibrated(rng, ["Fault", "ok"]).with_record(**{POSITIVE: positive})
    (one,) = Probabilities.of(model).shared
    X, new = rng.normal(size=(20, 3)), 0.02
    shares = expit([-one.prior, one.prior])
    target = np.array([new, 1.0 - new] if positive == "Fault" else [1.0 - new, new])
    weighed = probabilities(model, X) / shares * target  # likelihood times the new share
    expected = weighed / weighed.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities(model, X, fault_share=new), expected, rtol=1e-12)
    unchanged = shares[model.positive]
    same = probabilities(model, X, fault_share=float(unchanged))
    np.testing.assert_allclose(same, probabilities(model, X), rtol=1e-12)
    for wrong in (0.0, 1.0, -1, np.nan, "0.1"):
        with pytest.raises(InvalidInputError, match="fault_share"):
            probabilities(model, X, fault_share=wrong)
    with pytest.raises(InvalidInputError, match="fault_share: is for two classes"):
        probabilities(calibrated(rng, [0, 1, 2]), X, fault_share=0.1)


@pytest.mark.parametrize("classes", [("Fault", "ok"), (0, 1, 2)])
def test_a_file_brings_every_bit_back(classes, rng, tmp_path):
    model = calibrated(rng, classes, clients=["north", "süd"])
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert Probabilities.of(loaded) == Probabilities.of(model)
    X = rng.normal(size=(20, 3))
    for client in (None, "north", "süd"):
        assert (
            probabilities(loaded, X, client).tobytes() == probabilities(model, X, client).tobytes()
        )
    assert to_json(loaded) == to_json(model)
    assert loaded.fingerprint == make_unlike(model).fingerprint, "scores and labels are the same"


def make_unlike(model):
    return LinearModel.checked(**{**vars(model), "record": {}})


def test_a_model_without_says_how_to_get_some(rng):
    model = make_model(rng)
    assert Probabilities.of(model) is None
    for ask in (lambda: probabilities(model, np.zeros((1, 3))), lambda: at_client(model, "a")):
        with pytest.raises(InvalidInputError, match=r"FederatedCalibrator.*--probabilities"):
            ask()


BROKEN = [
    ("slope", -1.0), ("slope", np.inf), ("slope", "1"), ("slope", None), ("intercept", np.nan),
    ("centre", [1.0]), ("scale", 0.0), ("scale", -1.0), ("prior", np.inf), ("prior", "0"),
    ("more", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), BROKEN)
def test_a_broken_sigmoid_is_refused(name, value, rng):
    model = calibrated(rng, [0, 1])
    kept = dict(model.record["probabilities"])
    kept["shared"] = [{**kept["shared"][0], name: value}]
    with pytest.raises(CorruptDataError, match="the probabilities are broken"):
        Probabilities.of(model.with_record(probabilities=kept))


@pytest.mark.parametrize(
    "change",
    [
        {"shared": []}, {"shared": None}, {"shared": [1, 2]}, {"shared": {}}, {"clients": [1]},
        {"clients": {"a": []}}, {"label_noise": -1}, {"label_noise": 0.5}, {"label_noise": None},
    ],
)  # fmt: skip
def test_a_broken_record_is_refused(change, rng):
    model = calibrated(rng, [0, 1])
    whole = model.record["probabilities"]
    for kept in ({**whole, **change}, {k: v for k, v in whole.items() if k not in change}, [], 3):
        broken = model.with_record(probabilities=kept)
        with pytest.raises(CorruptDataError, match="the probabilities are broken"):
            Probabilities.of(broken)
        with pytest.raises(CorruptDataError):
            to_structured_text(broken)


# --- exports ---


def extreme_rows(rng, model):
    """Rows whose log-odds reach beyond both cuts, and usual ones."""
    sizes = 10.0 ** np.concatenate([np.zeros(20), rng.uniform(-3.0, 200.0, 40)])
    return sizes[:, None] * rng.normal(size=(60, model.n_features))


@pytest.mark.parametrize("classes", [("Fault", "ok"), (0, 1), (0, 1, 2), ("a", "b", "c", "d")])
def test_onnx_gives_the_same_probabilities(classes, rng):
    onnx = pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = calibrated(rng, classes)
    data = to_onnx(model)
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    session = runtime.InferenceSession(data, providers=["CPUExecutionProvider"])
    assert [one.name for one in session.get_outputs()] == ["score", "label", "probability"]
    X = extreme_rows(rng, model)
    score, label, found = session.run(None, {"X": X})
    assert found.shape == (len(X), len(classes))
    assert found.dtype == np.float64
    # From the runtime's own scores, whose rounding is another matter.
    expected = probabilities_of_scores(model, score)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=0.0)
    usual = np.arange(20)
    assert np.abs(found - probabilities(model, X))[usual].max() <= 1e-12
    assert label.tolist() == model.predict(X).tolist()


def test_exports_of_models_without_probabilities_stay_as_they_were(rng):
    model = make_model(rng)
    text = to_structured_text(model)
    assert "Probability" not in text
    assert "EXP" not in text
    onnx = pytest.importorskip("onnx")
    graph = onnx.load_from_string(to_onnx(model)).graph
    assert [one.name for one in graph.output] == ["score", "label"]


@pytest.mark.parametrize("positive", [0, 1])
def test_structured_text_gives_the_probability_of_the_class_looked_for(positive, rng):
    classes = ["Fault", "ok"]
    model = calibrated(rng, classes).with_record(**{POSITIVE: classes[positive]})
    block = FunctionBlock(to_structured_text(model))
    for x in extreme_rows(rng, model):
        outputs = block(x)
        expected = probabilities_of_scores(model, np.array([outputs["SCORE"]]))[0, positive]
        # exp of u is off by u rounding errors of u.
        assert outputs["PROBABILITY"] == pytest.approx(expected, rel=4 * EPS * LARGEST_LOG_ODDS)
    assert f'(* Of class {positive + 1}, "{classes[positive]}"; -1 if not Valid *)' in (
        to_structured_text(model)
    )
    broken = block([np.nan, 0.0, 0.0])
    assert broken["PROBABILITY"] == -1.0
    assert not broken["VALID"]


def test_structured_text_gives_the_probabilities_of_three_classes(rng):
    model = calibrated(rng, ["ok", "leak", "worn"][:3])
    block = FunctionBlock(to_structured_text(model))
    for x in extreme_rows(rng, model):
        outputs = block(x)
        scores = np.array([[outputs[f"SCORE_{k}"] for k in (1, 2, 3)]])
        found = [outputs[f"PROBABILITY_{k}"] for k in (1, 2, 3)]
        expected = probabilities_of_scores(model, scores)[0]
        np.testing.assert_allclose(found, expected, rtol=4 * EPS * LARGEST_LOG_ODDS)
    broken = block([np.inf, 0.0, 0.0])
    assert [broken[f"PROBABILITY_{k}"] for k in (1, 2, 3)] == [-1.0] * 3


@given(one=sigmoids, score=st.floats(-1e308, 1e308))
def test_structured_text_holds_any_sigmoid(one, score):
    plain = LinearModel.checked([[1.0]], [0.0], [0, 1], estimator="x")
    model = Probabilities((one,)).keep_in(plain)
    found = FunctionBlock(to_structured_text(model))([score])["PROBABILITY"]
    expected = probabilities_of_scores(model, np.array([score]))[0, 1]
    assert found == pytest.approx(expected, rel=4 * EPS * LARGEST_LOG_ODDS)


def test_inputs_that_are_called_as_the_new_outputs_get_other_names(rng):
    names = ["Probability", "LogOdds", "Total"]
    model = calibrated(rng, [0, 1])
    named = LinearModel.checked(**{**vars(model), "feature_names": names})
    block = FunctionBlock(to_structured_text(named))
    assert block.sections["VAR_INPUT"] == ["PROBABILITY_2", "LOGODDS_2", "TOTAL"]
    x = rng.normal(size=3)
    assert block(x)["PROBABILITY"] == pytest.approx(probabilities(model, [x])[0, 1], rel=1e-12)
