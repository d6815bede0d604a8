"""A scaling folded into the weights answers as the model of scaled features does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm import CorruptDataError, Feature, FeatureContract, InvalidInputError
from fdrsvm.data.rows import Rows
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.model.unscaling import Scaling, learn_scaling
from tests.estimators.models import make_model

EPS = np.finfo(float).eps


def some_rows(rng, contract=None):
    X = rng.normal(size=(30, 3)) * [1.0, 50.0, 0.1] + [0.0, 300.0, -2.0]
    clients = np.repeat(["a", "b", "c"], 10)
    return Rows(X, np.repeat([0, 1], 15), clients, ("u", "v", "w"), contract)


@given(seed=st.integers(0, 2**32 - 1), n_classes=st.integers(2, 4))
def test_folded_weights_give_the_scores_of_scaled_features(seed, n_classes):
    rng = np.random.default_rng(seed)
    rows = some_rows(rng)
    scaling = Scaling("minmax", rows.X.min(axis=0), np.ptp(rows.X, axis=0))
    scaled = make_model(rng, classes=tuple(range(n_classes)))
    folded = scaling.fold(scaled)
    left = folded.decision_function(rows.X)
    right = scaled.decision_function(scaling.apply(rows.X))
    # Offsets cancel: each of some ten operations is off by an ulp of the largest term.
    size = np.abs(rows.X).max(axis=0) + np.abs(scaling.offset)
    largest = (np.abs(folded.coef) @ size).max() + np.abs(folded.intercept).max() + 1.0
    np.testing.assert_allclose(left, right, rtol=0.0, atol=20 * EPS * largest)
    back = scaling.unfold(folded)
    np.testing.assert_allclose(back.coef, scaled.coef, rtol=4 * EPS)
    np.testing.assert_allclose(back.intercept, scaled.intercept, rtol=0.0, atol=20 * EPS * largest)


def test_methods_are_the_scalers_own(rng):
    contract = FeatureContract(
        tuple(Feature(n, low=-1000.0, high=1000.0) for n in ("u", "v", "w")), (0, 1)
    )
    rows = some_rows(rng, contract)
    low, high = rows.X.min(axis=0), rows.X.max(axis=0)
    expected = {
        "none": (np.zeros(3), np.ones(3)),
        "minmax": (low, high - low),
        "limits": (np.full(3, -1000.0), np.full(3, 2000.0)),
        "standard": (rows.X.mean(axis=0), rows.X.std(axis=0)),
    }
    for method, (offset, scale) in expected.items():
        scaling, X = learn_scaling(rows, method)
        np.testing.assert_allclose(scaling.offset, offset, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(scaling.scale, scale, rtol=1e-12)
        np.testing.assert_array_equal(X, scaling.apply(rows.X))
        np.testing.assert_allclose(scaling.undo(X), rows.X, rtol=1e-12, atol=1e-12)


def test_limits_without_a_contract_and_unknown_methods_are_refused(rng):
    with pytest.raises(InvalidInputError, match="needs a contract"):
        learn_scaling(some_rows(rng), "limits")
    with pytest.raises(InvalidInputError, match="must be one of"):
        learn_scaling(some_rows(rng), "robust")


@pytest.mark.parametrize(
    "kept",
    [
        {"method": "robust", "offset": [0.0], "scale": [1.0]},
        {"method": "minmax", "offset": [0.0, 1.0], "scale": [1.0]},
        {"method": "minmax", "offset": [0.0], "scale": [0.0]},
        {"method": "minmax", "offset": [np.nan], "scale": [1.0]},
        {"method": "minmax", "offset": "x", "scale": [1.0]},
        {"method": "minmax"},
        7,
    ],
)
def test_a_broken_record_is_refused(kept):
    model = LinearModel.checked([[1.0]], [0.0], (0, 1), estimator="x", record={"scaling": kept})
    with pytest.raises(CorruptDataError, match="scaling is broken"):
        Scaling.of(model)
