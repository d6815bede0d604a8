"""The curve of the worst-case risk is the oracle's, radius by radius."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.svm import LinearSVC

from fdrsvm.core.vectors import NORMS
from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.inspection import risk_curve
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap
from fdrsvm.risk.worst_case import worst_case_risk
from tests.inspection.models import Linear

RADII = [0.0, 0.01, 0.1, 0.05, 1.0]
LABELS = [(-1, 1), (0, 1), (1, 2), ("healthy", "worn"), (False, True), (1.0, 2.0)]


@pytest.fixture
def data(rng):
    X = rng.random((40, 4))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=40) > 0.5, 1.0, -1.0)


@pytest.mark.parametrize("support", [None, "unit-box"])
@pytest.mark.parametrize("norm", NORMS)
def test_every_point_is_the_worst_case_risk_there(norm, support, data, rng):
    X, signs = data
    model = Linear(rng.normal(size=4), 0.3)
    ball = {"kappa": 0.4, "norm": norm, "support": support, "sample_weight": rng.random(40)}
    curve = risk_curve(model, X, (signs + 1) / 2, radii=RADII, **ball)
    assert_array_equal(curve.radii, RADII)
    for radius, risk, multiplier in zip(*curve, strict=True):
        one = worst_case_risk(model.coef_[0], X, signs, epsilon=radius, intercept=0.3, **ball)
        assert (risk, multiplier) == (one.value, one.multiplier)


@pytest.mark.parametrize("labels", LABELS)
def test_any_two_labels_will_do(labels, data):
    X, signs = data
    y = np.where(signs > 0.0, labels[1], labels[0])
    model = LinearSVC(random_state=0).fit(X, y)
    expected = worst_case_risk(
        model.coef_[0], X, signs, epsilon=0.05, intercept=model.intercept_[0]
    )
    for given in (y, y.tolist()):
        assert risk_curve(model, X, given, radii=[0.05]).risk[0] == expected.value


def test_the_curve_rises_and_is_concave(data):
    X, y = data
    model = LinearSVC(random_state=0).fit(X, y)
    for support in (None, "unit-box"):
        curve = risk_curve(model, X, y, radii=np.linspace(0.0, 1.0, 30), support=support)
        steps = np.diff(curve.risk)
        assert (steps >= -1e-12).all()
        assert (np.diff(steps) <= 1e-12).all()


def test_sparse_rows_and_frames_give_the_same_curve(data):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X, y = data
    model = LinearSVC(random_state=0).fit(X, y)
    expected = risk_curve(model, X, y, radii=RADII).risk
    names = list("abcd")
    for given in (sparse.csr_array(X), pd.DataFrame(X, columns=names), pl.DataFrame(X, names)):
        assert_allclose(risk_curve(model, given, y, radii=RADII).risk, expected, rtol=1e-13)
    with pytest.raises(InvalidInputError, match=r"column 2 \('c'\)"):
        risk_curve(
            model, pd.DataFrame(X, columns=names), y, radii=RADII, support=([0, 0, 2, 0], 9.0)
        )


def test_other_losses_are_possible_without_a_support(data):
    X, y = data
    model = LinearSVC(random_state=0).fit(X, y)
    curve = risk_curve(model, X, y, radii=[0.0], loss="logistic")
    margins = y * model.decision_function(X)
    assert_allclose(curve.risk, [np.log1p(np.exp(-margins)).mean()])
    with pytest.raises(UnsupportedError):
        risk_curve(model, X, y, radii=[0.0], loss="logistic", support="unit-box")


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"model": LinearSVC()}, "model"),
        ({"model": Linear(np.ones((3, 4)))}, "model"),
        ({"X": np.ones((40, 3))}, "X"),
        ({"X": np.full((40, 4), np.inf)}, "X"),
        ({"y": np.full(40, 2)}, "y"),
        ({"y": np.full(40, "1")}, "y"),
        ({"y": np.full(40, np.nan)}, "y"),
        ({"y": np.ones(39)}, "y"),
        ({"y": np.ones((40, 1))}, "y"),
        ({"radii": []}, "radii"),
        ({"radii": [-0.1]}, "radii"),
        ({"radii": [np.nan]}, "radii"),
        ({"radii": [[0.1]]}, "radii"),
        ({"radii": "0.1"}, "radii"),
        ({"kappa": 0.0}, "kappa"),
        ({"norm": "l3"}, "norm"),
        ({"support": (0.0, 0.5)}, "X"),
        ({"sample_weight": [1.0]}, "sample_weight"),
    ],
)
def test_bad_input_is_named(change, argument, data):
    X, y = data
    arguments = {"model": Linear(np.ones(4)), "X": X, "y": (y + 1) / 2, "radii": [0.1]} | change
    with pytest.raises(InvalidInputError) as caught:
        risk_curve(**arguments)
    assert caught.value.argument == argument


@pytest.mark.parametrize("bent", [AdditiveMap(), AdditiveMap(pairs="all"), FourierMap()])
@pytest.mark.parametrize("norm", NORMS)
def test_with_a_map_no_shift_of_the_sensors_does_more_harm(norm, bent, data, rng):
    """Every row may go by the radius at once, and mean losses of such rows stay below."""
    X, signs = data
    features = bent.over(4)
    coef = rng.normal(size=(1, features.n_outputs))
    model = LinearModel.checked(coef, [0.1], (-1, 1), estimator="other", features=features)
    curve = risk_curve(model, X, signs, radii=RADII, norm=norm)
    losses = np.maximum(0.0, 1.0 - signs * model.decision_function(X))
    assert curve.risk[0] == pytest.approx(losses.mean(), rel=1e-12)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    for radius, risk in zip(curve.radii, curve.risk, strict=True):
        for _ in range(20):
            shift = rng.normal(size=X.shape) if norm != "linf" else rng.choice([-1.0, 1.0], X.shape)
            shift *= radius / np.linalg.norm(shift, ord=order, axis=1, keepdims=True)
            moved = np.maximum(0.0, 1.0 - signs * model.decision_function(X + shift))
            # In the worst case each row goes the way that does harm, or stays.
            assert np.maximum(losses, moved).mean() <= risk * (1.0 + 1e-9)
    slope = (
        risk_curve(model, X, signs, radii=[0.05 + 1e-6], norm=norm).risk - curve.risk[3]
    ) / 1e-6
    assert slope == pytest.approx(curve.multiplier[3], rel=1e-3)


@pytest.mark.parametrize("bent", [AdditiveMap(), FourierMap()])
def test_radii_of_readings_in_other_units_stay_those_of_training(bent, data, rng):
    X, signs = data
    features = bent.over(4)
    coef = rng.normal(size=(1, features.n_outputs))
    offset, scale = np.array([5.0, -2.0, 0.0, 1.0]), np.array([10.0, 0.5, 2.0, 1e3])
    curves = [
        risk_curve(
            LinearModel.checked(coef, [0.1], (-1, 1), estimator="other", features=made),
            rows,
            signs,
            radii=RADII,
        )
        for made, rows in ((features, X), (features.rescaled(offset, scale), offset + scale * X))
    ]
    assert_allclose(curves[1].risk, curves[0].risk, rtol=1e-9)


def test_rows_outside_the_support_are_named_with_a_map_too(data):
    X, signs = data
    features = AdditiveMap().over(4)
    coef = np.ones((1, features.n_outputs))
    model = LinearModel.checked(coef, [0.0], (-1, 1), estimator="other", features=features)
    with pytest.raises(InvalidInputError, match="inside the support") as caught:
        risk_curve(model, X, signs, radii=[0.1], support=(0.0, 0.5))
    assert caught.value.argument == "X"
