"""A linear model scores and labels, and takes nothing that would make it lie."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from fdrsvm import InvalidInputError, NumericalError
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap
from tests.estimators.models import LABELS, make_model, models, same_model, score_tolerance


def build(**changes):
    fields = {
        "coef": [[1.0, -2.0]],
        "intercept": [0.5],
        "classes": ["ok", "fault"],
        "estimator": "FDRSVC",
        "feature_names": ["a", "b"],
        "params": {"kappa": np.inf},
        "certificate": {"gap": 1e-7},
    }
    return LinearModel.checked(**{**fields, **changes})


def test_two_classes_have_one_score_and_several_have_one_each(rng):
    X = rng.normal(size=(40, 3))
    two, three = make_model(rng), make_model(rng, classes=["a", "b", "c"])
    for model in (two, three):
        expected = (X[:, None, :] * model.coef).sum(axis=2) + model.intercept
        scores = model.decision_function(X)
        tolerance = score_tolerance(model, X)
        assert (np.abs(scores - expected.reshape(scores.shape)) <= tolerance).all()
    assert two.decision_function(X).shape == (40,)
    assert three.decision_function(X).shape == (40, 3)


def choose(score):
    """The number of the class, plainly."""
    return int(score > 0) if score.ndim == 0 else max(range(score.size), key=score.item)


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_as_they_are(kind, rng):
    X = rng.normal(size=(60, 3))
    for n_classes in {2, len(LABELS[kind])}:
        classes = LABELS[kind][:n_classes]
        model = make_model(rng, classes=classes)
        chosen = [choose(score) for score in model.decision_function(X)]
        labels = model.predict(X)
        assert labels.tolist() == [classes[k] for k in chosen]
        assert {type(label) for label in labels.tolist()} == {type(classes[0])}


def test_a_score_of_nought_and_equal_scores_go_to_the_first_class():
    zero = LinearModel.checked([[0.0]], [0.0], ["ok", "fault"], estimator="x")
    even = LinearModel.checked(np.zeros((3, 1)), np.zeros(3), [7, 8, 9], estimator="x")
    assert zero.predict([[1.0]]).tolist() == ["ok"]
    assert even.predict([[1.0]]).tolist() == [7]


def test_arrays_frames_and_sparse_matrices_score_alike(rng):
    X = rng.normal(size=(20, 3)) * (rng.random((20, 3)) < 0.5)
    model = make_model(rng, feature_names=["a", "b", "c"])
    expected = model.decision_function(X)
    for other in (pd.DataFrame(X, columns=["a", "b", "c"]), sparse.csr_array(X), X.tolist()):
        assert_allclose(
            model.decision_function(other), expected, rtol=0, atol=score_tolerance(model, X).max()
        )


def test_columns_in_another_order_are_refused(rng):
    model = make_model(rng, feature_names=["a", "b", "c"])
    X = pd.DataFrame(np.zeros((2, 3)), columns=["a", "c", "b"])
    with pytest.raises(InvalidInputError, match="column 1 is 'c', not 'b'"):
        model.predict(X)
    model.predict(X.to_numpy())
    model.predict(X.set_axis([0, 1, 2], axis=1))


@pytest.mark.parametrize("X", [[[1.0, 2.0]], [1.0, 2.0, 3.0], [[np.nan, 1.0, 2.0]], [["a"] * 3]])
def test_bad_samples_are_refused(X, rng):
    with pytest.raises(InvalidInputError) as caught:
        make_model(rng).predict(X)
    assert caught.value.argument == "X"


def test_a_score_that_overflows_is_no_label():
    model = LinearModel.checked([[1e200, -1e200]], [0.0], [0, 1], estimator="x")
    for X in ([[1.0, 1.0], [1e200, 0.0]], [[1.0, 1.0], [1e200, 1e200]]):
        with pytest.raises(NumericalError, match="row 1"):
            model.predict(X)


@pytest.mark.parametrize("features", [AdditiveMap(pairs="all"), FourierMap(n_components=8)])
def test_readings_that_overflow_a_map_have_no_label(features):
    made = features.over(2)
    made = made.rescaled(np.zeros(2), np.full(2, 1e-3))
    model = LinearModel.checked(
        np.ones((1, made.n_outputs)), [0.0], [0, 1], estimator="x", features=made
    )
    with pytest.raises(NumericalError, match="row 1"):
        model.predict([[1e-3, 0.0], [1e-3, 1e306]])


def test_the_model_keeps_numbers_of_its_own():
    coef, params = np.array([[1.0, 2.0]]), {"epsilon": [0.1]}
    model = build(coef=coef, params=params)
    coef[0, 0] = 9.0
    params["epsilon"][0] = 9.0
    assert_array_equal(model.coef, [[1.0, 2.0]])
    assert model.params == {"epsilon": [0.1]}
    with pytest.raises(ValueError, match="read-only"):
        model.coef[0, 0] = 9.0


@given(model=models())
def test_what_was_checked_passes_the_check(model):
    again = LinearModel.checked(**vars(model))
    assert same_model(model, again)
    assert model.fingerprint == again.fingerprint


def test_numpy_and_python_values_are_the_same():
    ours = build(
        classes=np.array([1, 2], dtype=np.int16),
        params={"a": np.float64(1.5), "b": np.int8(3), "c": (np.bool_(True), None), "d": np.eye(2)},
        certificate={"gap": np.array(0.5)},
    )
    assert ours.classes == (1, 2)
    assert {type(label) for label in ours.classes} == {int}
    assert ours.params == {"a": 1.5, "b": 3, "c": [True, None], "d": [[1.0, 0.0], [0.0, 1.0]]}
    assert ours.certificate == {"gap": 0.5}
    assert build(coef=sparse.csr_array([[1.0, -2.0]])).coef.tolist() == [[1.0, -2.0]]
    for labels in ([np.float32(0.5), 1.0], [np.str_("a"), "b"], [np.True_, False]):
        made = build(classes=labels).classes
        assert made == tuple(labels)
        assert {type(label) for label in made} <= {float, str, bool}


def test_the_fingerprint_tells_every_bit_of_the_weights():
    one = build()
    assert one.fingerprint == build(estimator="other", params={}).fingerprint
    changed = [
        build(coef=[[1.0, np.nextafter(-2.0, 0)]]),
        build(intercept=[-0.5]),
        build(coef=[[1.0, 2.0]]),
    ]
    assert len({one.fingerprint, *(model.fingerprint for model in changed)}) == 4


def nested(depth):
    value = 0.0
    for _ in range(depth):
        value = [value]
    return value


BAD = {
    "coef not a matrix": {"coef": [1.0, 2.0]},
    "coef of text": {"coef": [["1", "2"]]},
    "coef ragged": {"coef": [[1.0], [1.0, 2.0]]},
    "coef not finite": {"coef": [[1.0, np.inf]]},
    "coef empty": {"coef": np.zeros((1, 0)), "feature_names": None},
    "coef with a row too many": {"coef": np.ones((2, 2))},
    "coef with a row too few": {"classes": [1, 2, 3], "coef": np.ones((2, 2))},
    "intercept too long": {"intercept": [1.0, 2.0]},
    "intercept not finite": {"intercept": [np.nan]},
    "classes of one": {"classes": ["ok"]},
    "classes none": {"classes": None},
    "classes text": {"classes": "ok"},
    "classes twice": {"classes": ["ok", "ok"]},
    "classes equal as numbers": {"classes": [1, 1.0]},
    "classes true and one": {"classes": [True, 1]},
    "classes of two types": {"classes": ["1", 2]},
    "classes zero twice": {"classes": [0.0, -0.0]},
    "classes NaN": {"classes": [np.nan, 1.0]},
    "classes infinite": {"classes": [np.inf, 1.0]},
    "classes too big": {"classes": [2**63, 1]},
    "classes None": {"classes": [None, 1]},
    "classes bytes": {"classes": [b"a", b"b"]},
    "classes that NumPy would cut": {"classes": ["ok", "ok\0"]},
    "classes with half a character": {"classes": ["ok", "\ud800"]},
    "feature_names too few": {"feature_names": ["a"]},
    "feature_names twice": {"feature_names": ["a", "a"]},
    "feature_names of numbers": {"feature_names": [0, 1]},
    "feature_names text": {"feature_names": "ab"},
    "feature_names with half a character": {"feature_names": ["a", "\udfff"]},
    "estimator none": {"estimator": None},
    "params a list": {"params": [1]},
    "params with a number for a key": {"params": {1: 2}},
    "params with an object": {"params": {"a": object()}},
    "params with a set": {"params": {"a": {1}}},
    "params with bytes": {"params": {"a": b"x"}},
    "params with a complex number": {"params": {"a": 1j}},
    "params too big": {"params": {"a": 2**64}},
    "params too deep": {"params": {"a": nested(20)}},
    "certificate with half a character": {"certificate": {"a": "\ud800"}},
    "certificate text": {"certificate": "gap"},
}


@pytest.mark.parametrize("name", BAD)
def test_bad_fields_are_named(name):
    with pytest.raises(InvalidInputError) as caught:
        build(**BAD[name])
    assert caught.value.argument == name.split()[0]


def test_values_may_nest_and_a_loop_is_refused():
    assert build(params={"a": nested(19)}).params == {"a": nested(19)}
    loop = []
    loop.append(loop)
    with pytest.raises(InvalidInputError, match="params: must nest at most 20"):
        build(params={"a": loop})


def test_no_class_is_looked_for_because_it_is_called_none():
    model = build(classes=["None", "Overheat"])
    assert model.positive == 1
    assert model.with_record(positive="None").positive == 0
