"""What follows from limits on features: never less than the exact worst case, and sharp."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from fdrsvm import InvalidInputError, RiskOracle, worst_case_distribution, worst_case_risk
from fdrsvm.core.losses import LOSSES, Logistic
from fdrsvm.federated.client import coarsened
from fdrsvm.federated.federation import Federation
from fdrsvm.federated.limits import Limits
from fdrsvm.federated.problem import evaluate, make_client
from fdrsvm.federated.screen import Answers, Screen
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap
from tests.federated.cases import NORMS


@pytest.mark.parametrize(
    ("value", "features"),
    [
        ("unit-box", [1.0, 1.0, 1.0]),
        (2, [2.0, 2.0, 2.0]),
        (0.5, [0.5, 0.5, 0.5]),
        ([1.0, 0.0, 7.0], [1.0, 0.0, 7.0]),
        (None, [np.inf, np.inf, np.inf]),
    ],
    ids=str,
)
def test_limits_come_in_several_forms(value, features):
    limits = Limits.checked(value, 3)
    np.testing.assert_array_equal(limits.features, features)
    assert limits.are_finite == (value is not None)
    assert limits.loss.name == "hinge"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"value": "box"}, "limits"),
        ({"value": -1.0}, "limits"),
        ({"value": np.nan}, "limits"),
        ({"value": np.inf}, "limits"),
        ({"value": [1.0, 2.0]}, "limits"),
        ({"value": [1.0, -2.0, 1.0]}, "entry 1"),
        ({"value": [1.0, np.nan, 1.0]}, "limits"),
        ({"value": 1.0, "loss": "square"}, "loss"),
        ({"value": 1.0, "worst_case": "best"}, "worst_case"),
    ],
    ids=str,
)
def test_bad_limits_are_named(arguments, named):
    with pytest.raises(InvalidInputError, match=named):
        Limits.checked(arguments.pop("value"), 3, **arguments)


@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("norm", NORMS)
def test_no_risk_exceeds_the_ceiling(norm, boxed):
    rng = np.random.default_rng(3)
    for _ in range(150):
        n_features, n_samples = rng.integers(1, 5), rng.integers(1, 8)
        features = 10.0 ** rng.uniform(-2, 2, n_features)
        X = rng.uniform(-1.0, 1.0, (n_samples, n_features)) * features
        y = rng.choice([-1.0, 1.0], n_samples)
        loss = "hinge" if boxed else str(rng.choice(list(LOSSES)))
        ball = {
            "epsilon": float(rng.choice([0.0, 0.01, 0.5, 5.0])),
            "kappa": float(rng.choice([0.05, 1.0, np.inf])),
            "norm": norm,
            "support": (-features, features) if boxed else None,
            "loss": loss,
        }
        model = rng.normal(size=n_features + 1) * rng.choice([0.1, 1.0, 100.0])
        risk = worst_case_risk(model[:-1], X, y, intercept=model[-1], **ball).value
        profile = make_client("c", X, y, fit_intercept=True, **ball).profile
        ceiling = Limits.checked(features, n_features, loss=loss).risk_ceiling(profile, model)
        assert 0.0 <= risk <= ceiling * (1.0 + 1e-12)
        assert Limits.checked(None, n_features).risk_ceiling(profile, model) == np.inf


@pytest.mark.parametrize("norm", NORMS)
def test_the_ceiling_is_reached(norm):
    """A sample in the worst corner, on the wrong side: every inequality is an equality."""
    features, w, b = np.array([0.5, 2.0, 3.0]), np.array([1.0, -2.0, 0.5]), 0.25
    X, y = (features * np.sign(w))[None], np.array([-1.0])
    ball = {"epsilon": 0.3, "kappa": np.inf, "norm": norm}
    risk = worst_case_risk(w, X, y, intercept=b, **ball).value
    profile = make_client("c", X, y, fit_intercept=True, **ball).profile
    ceiling = Limits.checked(features, 3).risk_ceiling(profile, np.append(w, b))
    assert ceiling == pytest.approx(risk, rel=1e-14)


def test_scores_are_those_of_the_corners():
    rng = np.random.default_rng(0)
    features, model = rng.random(4), rng.normal(size=5)
    limits = Limits.checked(features, 4)
    corners = np.array(list(itertools.product(*([-r, r] for r in features))))
    largest = np.abs(corners @ model[:-1]).max() + abs(model[-1])
    assert limits.score_ceiling(model) == pytest.approx(largest, rel=1e-14)
    assert limits.score_ceiling(model[:-1]) == pytest.approx(largest - abs(model[-1]), rel=1e-14)


def test_the_loss_of_the_model_zero_is_that_of_a_margin_of_zero():
    assert Limits.checked(1.0, 2).loss_at_zero == 1.0
    assert Limits.checked(1.0, 2, loss="smooth_hinge").loss_at_zero == 0.5
    assert Limits.checked(1.0, 2, loss=Logistic()).loss_at_zero == pytest.approx(np.log(2.0))


def test_rows_outside_are_found_dense_and_sparse():
    X = np.array([[0.0, 1.0], [2.0, 0.0], [0.5, -1.0], [0.0, -1.1]])
    limits = Limits.checked([1.0, 1.0], 2)
    assert limits.outside(X).tolist() == [1, 3]
    assert limits.outside(sparse.csr_array(X)).tolist() == [1, 3]
    assert limits.outside(X[[0, 2]]).size == 0
    assert Limits.checked(None, 2).outside(1e300 * X).size == 0


def judged(problem, limits, points):
    """What the rules find wrong with one honest client's answer."""
    federation = Federation.checked([problem.profile], "equal")
    values = coarsened(evaluate(problem, points), problem.resolution)
    return Screen(limits).judge_answers(federation, points, Answers({0: values}))


@pytest.mark.parametrize("resolution", [0.0, 0.1, 0.2, 0.4, 0.5])
def test_a_coarse_grid_blames_nobody_with_rows_of_one_label(resolution):
    """Rounded down to 0 the constant lacks a mass of 0.3, all of it of one label."""
    X, y = np.append(np.ones(6), -np.ones(14))[:, None], np.ones(20)
    ball = {"epsilon": 0.0, "kappa": np.inf, "fit_intercept": True, "resolution": resolution}
    limits = Limits.checked("unit-box", 1, resolution=resolution)
    points = np.array([[-2.0, 2.5], [-50.0, 60.0]])
    assert judged(make_client("plant", X, y, **ball), limits, points) == {}


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_large_models_on_a_box_blame_nobody(norm, rng):
    for k in range(300):
        n, p = rng.integers(1, 6), rng.integers(1, 5)
        X = rng.random((n, p)).round(3 if k % 2 else 0)
        y = rng.choice([-1.0, 1.0], n) if k % 3 else np.ones(n)
        ball = {"epsilon": (1e-8, 1e-3, 0.1)[k % 3], "kappa": (np.inf, 1.0)[k % 2], "norm": norm}
        problem = make_client("plant", X, y, support="unit-box", fit_intercept=True, **ball)
        points = rng.normal(size=(4, p + 1)) * 10.0 ** rng.uniform(2, 6)
        points[:, -1] = np.abs(points[:, :-1]).sum(axis=1) * rng.uniform(-1.2, 1.2, 4)
        for limits in (Limits.checked("unit-box", p), Limits.checked(None, p)):
            assert judged(problem, limits, points) == {}


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_a_cuts_constant_on_a_box_is_the_mass_inside_the_margin(norm, rng):
    """[mass], against the atoms of the worst distribution."""
    for _ in range(60):
        n, p = rng.integers(1, 12), rng.integers(1, 5)
        X, y = rng.random((n, p)), rng.choice([-1.0, 1.0], n)
        ball = {"epsilon": rng.uniform(0.0, 0.5), "kappa": rng.uniform(0.1, 2.0), "norm": norm}
        w, b = 3.0 * rng.normal(size=p), rng.normal()
        _, cut = RiskOracle(X, y, support="unit-box", **ball).cut(w, b)
        q = worst_case_distribution(w, X, y, support="unit-box", intercept=b, **ball)
        losses = 1.0 - q.labels * (q.points @ w + b)
        surely, perhaps = q.weights[losses > 1e-9].sum(), q.weights[losses > -1e-9].sum()
        assert surely - 1e-12 <= cut.constant <= perhaps + 1e-12


MAPS = [
    AdditiveMap(n_knots=4),
    AdditiveMap(n_knots=3, pairs="all", pair_knots=3, limits=(-0.5, [1.0, 0.25])),
    FourierMap(n_components=12),
]


@pytest.mark.parametrize("chosen", MAPS, ids=lambda one: one.name)
@pytest.mark.parametrize("reach", [0.3, 1.0, [2.0, 0.0]], ids=str)
def test_features_keep_to_what_follows_from_the_limits_of_sensors(chosen, reach, rng):
    """Never more, over a fine grid of all sensors within the limits; and reached, but by waves."""
    features = chosen.over(2)
    sensors = Limits.checked(reach, 2, resolution=0.1)
    mapped = sensors.mapped(features)
    ends = [
        np.append(np.linspace(-r, r, 61), features.low[j]) for j, r in enumerate(sensors.features)
    ]
    grid = np.array(
        list(
            itertools.product(
                *(e[np.abs(e) <= r] for e, r in zip(ends, sensors.features, strict=True))
            )
        )
    )
    largest = np.abs(features.apply(grid)).max(axis=0)
    assert (largest <= mapped.features).all()
    assert mapped.outside(features.apply(grid)).size == 0
    if not isinstance(chosen, FourierMap):
        np.testing.assert_allclose(largest, mapped.features, rtol=1e-12)
    assert (mapped.resolution, mapped.loss) == (0.1, sensors.loss)


def test_pieces_between_the_ends_have_limits_where_sensors_have_none():
    mapped = Limits.checked(None, 1).mapped(AdditiveMap(n_knots=4, limits=(0.0, 2.0)).over(1))
    assert mapped.features.tolist() == [np.inf, 0.5, 0.5, np.inf]
    assert Limits.checked(None, 3).mapped(FourierMap(n_components=8).over(3)).are_finite
