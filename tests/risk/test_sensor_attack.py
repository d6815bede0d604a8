"""Attacks on sensors are distributions in the ball, and the worst one where that is claimed."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fdrsvm import InvalidInputError, RiskOracle, UnsupportedError, worst_case_risk
from fdrsvm.core.losses import LOSSES
from fdrsvm.core.vectors import norm_rows
from fdrsvm.risk.ball import Ball
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap
from fdrsvm.risk.sensor_attack import Target, attack_sensors

NORMS = ["l1", "l2", "linf"]
LIMITS = ([0.0, -1.0], [1.0, 2.0])
MAPS = [
    AdditiveMap(n_knots=4, limits=LIMITS),
    AdditiveMap(n_knots=3, pairs="all", limits=LIMITS),
    FourierMap(n_components=8, limits=LIMITS),
]


def problem(rng, one, norm, box, *, kappa=0.8, loss="hinge", n_rows=8):
    """Rows within the limits, and a model that is wrong about some of them."""
    features = one.over(2)
    X = rng.uniform(*map(np.asarray, LIMITS), (n_rows, 2))
    y = rng.choice([-1.0, 1.0], n_rows)
    w, b = 1.5 * rng.normal(size=features.n_outputs), 0.3 * rng.normal()
    mass = np.arange(1.0, n_rows + 1.0)
    mass[-1] += 64.0 - mass.sum()  # of a power of two: scaled once more they are the same
    mass = rng.permutation(mass) / 64.0
    ball = {"epsilon": 0.1, "kappa": kappa, "norm": norm, "support": box, "loss": loss}
    return Target(features, w, b, X, y, mass, Ball.checked(2, **ball)), ball


def certified(target, ball):
    return worst_case_risk(
        target.w,
        target.X,
        target.y,
        features=target.features,
        intercept=target.intercept,
        sample_weight=target.mass,
        **ball,
    )


@pytest.mark.parametrize(
    ("one", "norm", "box", "kappa"), list(product(MAPS, NORMS, [None, LIMITS], [0.8, np.inf]))
)
def test_an_attack_is_a_distribution_in_the_ball_of_the_sensors(one, norm, box, kappa, rng):
    for _ in range(3):
        target, ball = problem(rng, one, norm, box, kappa=kappa)
        found = attack_sensors(target)
        moved = norm_rows(found.points - target.X[found.source_index], norm)
        is_flipped = found.labels != target.y[found.source_index]
        costs = moved + np.where(is_flipped, kappa if np.isfinite(kappa) else 1e9, 0.0)
        assert found.weights @ costs <= 0.1 * (1.0 + 1e-9)
        np.testing.assert_allclose(
            np.bincount(found.source_index, found.weights, len(target.y)), target.mass, rtol=1e-12
        )
        margins = found.labels * (target.features.apply(found.points) @ target.w + target.intercept)
        assert found.weights @ np.maximum(0.0, 1.0 - margins) == pytest.approx(found.risk, rel=1e-9)
        if box is not None:
            assert (found.points >= box[0]).all()
            assert (found.points <= box[1]).all()
        risk = certified(target, ball)
        # A search ends elsewhere if the last bit of a product differs.
        same = 1e-9 if one is MAPS[0] else 0.01
        assert risk.proof == pytest.approx(found.risk, rel=same)
        assert found.risk <= risk.value * (1.0 + 1e-9)


def best_on_grid(target, axes):
    """The largest loss of a distribution on a grid of sensors, by a linear program."""
    points = np.array(list(product(*axes)))
    scores = target.features.apply(points) @ target.w + target.intercept
    losses, costs = [], []
    for x, y in zip(target.X, target.y, strict=True):
        for label in (-1.0, 1.0):
            losses.append(np.maximum(0.0, 1.0 - label * scores))
            far = norm_rows(points - x, target.ball.norm)
            costs.append(far + target.ball.kappa * (label != y))
    shares = np.kron(np.eye(len(target.y)), np.ones(2 * len(points)))
    found = linprog(
        -np.concatenate(losses),
        A_ub=[np.concatenate(costs)],
        b_ub=[target.ball.epsilon],
        A_eq=shares,
        b_eq=target.mass,
        method="highs",
    )
    return -found.fun


@pytest.mark.parametrize("seed", range(4))
def test_with_l1_an_attack_on_curves_is_the_linear_program_over_all_knots(seed):
    """Rows move to knots, to ends of the support, or stay, sensor by sensor: [attack]."""
    target, _ = problem(np.random.default_rng(seed), MAPS[0], "l1", LIMITS)
    knots, _ = target.features.curves(target.w)
    axes = [np.union1d(knots[j], target.X[:, j]) for j in range(2)]
    assert attack_sensors(target).risk == pytest.approx(best_on_grid(target, axes), rel=1e-9)


EXACT, NEARLY, SEARCHED = 1e-9, 0.01, 0.1  # of what the radius adds: what a grid may have more


@pytest.mark.parametrize(
    ("one", "norm", "short", "seed"),
    [
        *(
            (MAPS[0], norm, short, k)
            for norm, short in (("l2", NEARLY), ("linf", EXACT))
            for k in range(4)
        ),
        *((one, norm, SEARCHED, k) for one in MAPS[1:] for norm in NORMS for k in range(2)),
    ],
)
def test_no_grid_has_a_much_worse_distribution(one, norm, short, seed):
    """On curves the attack is exact with linf; with l2, and where it searches, it may miss some."""
    target, _ = problem(np.random.default_rng(seed), one, norm, LIMITS, n_rows=4)
    axes = [
        np.union1d(np.linspace(low, high, 25), target.X[:, j])
        for j, (low, high) in enumerate(zip(*LIMITS, strict=True))
    ]
    on_grid = best_on_grid(target, axes)
    plain = target.mass @ np.maximum(0.0, 1.0 - target.y * target.scores(target.X))
    assert attack_sensors(target).risk >= on_grid - short * (on_grid - plain)


@pytest.mark.parametrize("norm", NORMS)
def test_a_straight_line_of_curves_is_attacked_to_the_last(norm, rng):
    """One slope per sensor: the worst case is that of the linear model, far away."""
    features = AdditiveMap(n_knots=3).over(2)
    X, y, slopes = rng.random((20, 2)), rng.choice([-1.0, 1.0], 20), rng.normal(size=2)
    ball = {"epsilon": 0.2, "kappa": 5.0, "norm": norm}
    found = worst_case_risk(np.repeat(slopes, 3), X, y, features=features, intercept=0.1, **ball)
    linear = worst_case_risk(slopes, X, y, intercept=0.1, **ball)
    assert found.value == pytest.approx(linear.value, rel=1e-12)
    assert found.multiplier == pytest.approx(linear.multiplier, rel=1e-12)
    assert found.proof == pytest.approx(linear.value, rel=1e-5)  # a million ranges away, [attack]


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from(NORMS), st.sampled_from(list(LOSSES)))
def test_no_attack_exceeds_the_certificate_whatever_the_loss(seed, norm, loss):
    rng = np.random.default_rng(seed)
    for one in MAPS:
        target, ball = problem(rng, one, norm, None, loss=loss)
        risk = certified(target, ball)
        margins = target.y * target.scores(target.X)
        plain = target.mass @ np.asarray(LOSSES[loss].value(margins))
        assert plain * (1.0 - 1e-9) <= risk.proof <= risk.value * (1.0 + 1e-8)


@pytest.mark.parametrize(("one", "norm"), list(product(MAPS, NORMS)))
def test_the_certificate_is_no_larger_than_that_of_the_features(one, norm, rng):
    for _ in range(3):
        target, ball = problem(rng, one, norm, None)
        guarded = target.features.ball(0.1, 0.8, norm, None)
        oracle = RiskOracle(
            target.features.apply(target.X), target.y, sample_weight=target.mass, **guarded
        )
        trained, ours = oracle(target.w, target.intercept), certified(target, ball)
        assert ours.value <= trained.value
        np.testing.assert_array_equal(ours.subgradient, trained.subgradient)
        if one is MAPS[0]:  # nothing is less steep than the norm with groups says
            assert ours.value == pytest.approx(trained.value, rel=1e-12)


def test_maps_have_names_and_linear_is_none(rng):
    X, y, w = rng.random((6, 3)), np.array([1.0, -1.0] * 3), rng.normal(size=3)
    alone, named = (
        worst_case_risk(w, X, y, epsilon=0.1, **one) for one in ({}, {"features": "linear"})
    )
    assert alone.value == named.value
    curves = worst_case_risk(np.repeat(w, 6), X, y, epsilon=0.1, features="additive")
    assert curves.value == pytest.approx(alone.value, rel=1e-12)


def test_what_makes_no_sense_with_a_map_is_refused_in_words(rng):
    X, y, w = rng.random((6, 2)), np.array([1.0, -1.0] * 3), np.ones(12)
    with pytest.raises(UnsupportedError, match="paper"):
        worst_case_risk(w, X, y, epsilon=0.1, features="additive", worst_case="paper")
    in_other_units = MAPS[0].over(2).rescaled(np.zeros(2), np.full(2, 100.0))
    with pytest.raises(InvalidInputError, match="scale X as in training"):
        worst_case_risk(np.ones(8), 100.0 * X, y, epsilon=0.1, features=in_other_units)
    with pytest.raises(InvalidInputError, match="inside the support"):
        worst_case_risk(w, X + 1.0, y, epsilon=0.1, features="additive", support="unit-box")
    with pytest.raises(InvalidInputError, match="12"):
        worst_case_risk(w[:2], X, y, epsilon=0.1, features="additive")
