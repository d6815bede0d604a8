"""Moves of sensors that turn bent models, against linear programs by pieces, and brute force."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from fdrsvm import flipping_perturbation
from fdrsvm.core.vectors import NORMS
from fdrsvm.model.linear_model import LinearModel
from fdrsvm.risk.feature_maps import AdditiveMap, FourierMap

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}
# Moves end by a share of 1e-9 of the score beyond the tie, bisections by as much beside their end.
EXACT = 1e-7
MAPS = {
    "curves": AdditiveMap(n_knots=3),
    "pairs": AdditiveMap(n_knots=3, pairs="all"),
    "waves": FourierMap(n_components=12, gamma=3.0),
}


def make_model(seed, bent, n_classes=2, n_sensors=2):
    """A random model that is not all of one decision on most of the square."""
    rng = np.random.default_rng(seed)
    features = bent.over(n_sensors)
    n_scores = 1 if n_classes == 2 else n_classes
    coef = rng.normal(size=(n_scores, features.n_outputs)) * 3.0
    model = LinearModel.checked(
        coef, np.zeros(n_scores), range(n_classes), estimator="other", features=features
    )
    middle = np.median(model.decision_function(rng.random((99, n_sensors))), axis=0)
    model = LinearModel.checked(**{**vars(model), "intercept": -np.atleast_1d(middle)})
    return model, rng.random((6, n_sensors)) * 1.2 - 0.1


def cheapest_by_pieces(model, x, norm, support):
    """The least move over all cells of straight pieces, each a linear program (l1 and linf)."""
    features, n_sensors = model.features, model.n_features
    knots, values = features.curves(model.coef[0])
    slopes = np.diff(values) / np.diff(knots)
    sign = -np.sign(model.decision_function(x[None])[0] - model.threshold)
    best = np.inf
    for cell in product(range(knots.shape[1] - 1), repeat=n_sensors):
        bounds, w, rest = [], [], model.intercept[0] - model.threshold
        for j, k in enumerate(cell):
            low = -np.inf if k == 0 else knots[j, k]
            high = np.inf if k == knots.shape[1] - 2 else knots[j, k + 1]
            if support is not None:
                low, high = max(low, 0.0), min(high, 1.0)
            bounds.append((low, high))
            w.append(slopes[j, k])
            rest += values[j, k] - slopes[j, k] * knots[j, k]
        # Points z and sizes t of their moves: one for all (linf) or one each (l1).
        n_sizes = 1 if norm == "linf" else n_sensors
        sizes = np.ones((n_sensors, 1)) if norm == "linf" else np.eye(n_sensors)
        eye = np.eye(n_sensors)
        A = np.block(
            [[eye, -sizes], [-eye, -sizes], [-sign * np.array([w]), np.zeros((1, n_sizes))]]
        )
        found = linprog(
            np.r_[np.zeros(n_sensors), np.ones(n_sizes)],
            A_ub=A,
            b_ub=np.r_[x, -x, sign * rest],
            bounds=[*bounds, *[(0, None)] * n_sizes],
        )
        best = min(best, found.fun) if found.status == 0 else best
    return best


def cheapest_on_grid(model, X, norm, low=0.0, high=1.0, n=81):
    """The least move to a point of a fine grid: no less than the truth."""
    ends = np.linspace(low, high, n)
    grid = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)
    there = model.predict(grid)
    best = []
    for x, label in zip(X, model.predict(X), strict=True):
        others = grid[there != label]
        best.append(np.linalg.norm(others - x, ord=ORDERS[norm], axis=1).min(initial=np.inf))
    return np.array(best)


def check_moves(model, X, flip, norm):
    """What is said of moves is so: they turn decisions, at the cost stated, above the bound."""
    found = flip.is_possible
    assert_array_equal(flip.labels, model.predict(X))
    reached = np.where(found[:, None], flip.points, X)
    assert_array_equal(flip.flipped_labels, model.predict(reached))
    assert (flip.flipped_labels[found] != flip.labels[found]).all()
    lengths = np.linalg.norm(flip.points - X, ord=ORDERS[norm], axis=1)
    assert_allclose(lengths[found], flip.cost[found], rtol=1e-9, atol=1e-12)
    assert np.isinf(flip.cost[~found]).all()
    assert (flip.lower_bound <= flip.cost * (1.0 + EXACT) + 1e-9).all()


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1), support=st.sampled_from([None, "unit-box"]))
@pytest.mark.parametrize("norm", ["linf", "l1"])
def test_curves_turn_at_the_least_cost_over_all_pieces(norm, seed, support):
    model, X = make_model(seed, MAPS["curves"])
    X = np.clip(X, 0.0, 1.0)[:2] if support else X[:2]
    flip = flipping_perturbation(model, X, norm=norm, support=support)
    check_moves(model, X, flip, norm)
    for row, x in enumerate(X):
        least = cheapest_by_pieces(model, x, norm, support)
        if np.isinf(least):
            assert np.isinf(flip.cost[row])
            continue
        assert flip.lower_bound[row] <= least * (1.0 + EXACT) + 1e-9
        assert flip.cost[row] >= least * (1.0 - EXACT) - 1e-9
        if norm == "linf":
            assert flip.cost[row] == pytest.approx(least, rel=EXACT, abs=1e-8)


@settings(max_examples=15)
@given(seed=st.integers(0, 2**32 - 1))
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("support", [None, "unit-box"])
def test_straight_curves_turn_where_the_linear_model_does(support, norm, seed):
    rng = np.random.default_rng(seed)
    w, b, X = rng.normal(size=(1, 4)), rng.normal(size=1), rng.random((5, 4))
    straight = LinearModel.checked(w, b, (0, 1), estimator="other", threshold=0.1)
    ramps = {"coef": np.repeat(w, 3, axis=1), "features": AdditiveMap(n_knots=3).over(4)}
    bent = LinearModel.checked(**{**vars(straight), **ramps})
    one, other = (
        flipping_perturbation(model, X, norm=norm, support=support) for model in (straight, bent)
    )
    assert_allclose(other.cost, one.cost, rtol=1e-6, atol=1e-8)
    assert_allclose(other.lower_bound, one.cost, rtol=1e-6, atol=1e-8)
    check_moves(bent, X, other, norm)


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32 - 1), n_classes=st.sampled_from([2, 3]))
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", list(MAPS))
def test_no_point_of_a_fine_grid_is_nearer_than_what_is_proved(name, norm, seed, n_classes):
    model, X = make_model(seed, MAPS[name], n_classes)
    X = np.clip(X, 0.0, 1.0)
    flip = flipping_perturbation(model, X, norm=norm, support="unit-box")
    check_moves(model, X, flip, norm)
    assert ((flip.points >= 0.0) & (flip.points <= 1.0))[flip.is_possible].all()
    on_grid = cheapest_on_grid(model, X, norm)
    assert (flip.lower_bound <= on_grid * (1.0 + EXACT) + 1e-9).all()
    if name == "curves":  # whatever can be turned is
        assert flip.is_possible[np.isfinite(on_grid)].all()
    if name == "curves" and norm == "linf":
        assert (flip.cost <= on_grid * (1.0 + EXACT) + 1e-9).all()


@pytest.mark.parametrize("name", ["pairs", "waves"])
def test_searched_moves_are_near_the_best(name):
    """Half of 60 rows within 5 % of the best point of a grid: as good a search as is claimed."""
    costs, best = [], []
    for seed in range(10):
        model, X = make_model(seed, MAPS[name])
        X = np.clip(X, 0.0, 1.0)
        costs.append(flipping_perturbation(model, X, support="unit-box").cost)
        best.append(cheapest_on_grid(model, X, "linf"))
    costs, best = np.concatenate(costs), np.concatenate(best)
    assert np.isfinite(costs[np.isfinite(best)]).all()
    assert np.median(costs / best) < 1.05


def test_what_the_support_rules_out_is_proved_impossible():
    features = AdditiveMap(n_knots=2).over(1)
    tent = LinearModel.checked([[2.0, -2.0]], [-1.5], (0, 1), estimator="o", features=features)
    flip = flipping_perturbation(tent, [[0.2], [0.9]], support="unit-box")
    assert np.isinf(flip.lower_bound).all()
    assert not flip.is_possible.any()
    assert_array_equal(flip.labels, flip.flipped_labels)
    assert flip.changes(0) == ()


def test_a_turn_lies_beyond_a_valley_if_need_be():
    """Up 1 to the left, but only after a fall; a slope at the row would never find it."""
    features = AdditiveMap(n_knots=4).over(1)
    model = LinearModel.checked(
        [[-8.0, 4.0, 0.5, 0.5]], [0.0], (0, 1), estimator="other", features=features
    )
    flip = flipping_perturbation(model, [[0.4]])
    # Score -2 + .6 = -1.4 at 0.4; 0 only to the left of the valley, at 0: it is -8 x there.
    assert flip.points[0, 0] == pytest.approx(0.0, abs=1e-8)
    assert flip.lower_bound[0] == pytest.approx(0.4, rel=1e-8)
    # A flat rise behind a deep valley: from -1 at 0.5 over -6 at 0.25 to 0 at 0.25 - 6 / 0.1.
    model = LinearModel.checked(
        [[-0.1, 20.0, 0.0, 0.0]], [-5.975], (0, 1), estimator="other", features=features
    )
    assert model.decision_function([[0.5], [0.25]]) == pytest.approx([-1.0, -6.0])
    flip = flipping_perturbation(model, [[0.5]])
    assert flip.points[0, 0] == pytest.approx(0.25 - 60.0)
    assert flip.lower_bound[0] == pytest.approx(60.25)


@pytest.mark.parametrize("norm", NORMS)
def test_no_two_points_are_steeper_than_the_steepest_wave(norm, rng):
    features = FourierMap(n_components=20, limits=([0.0, -5.0, 10.0], [2.0, 5.0, 11.0])).over(3)
    model = LinearModel.checked(
        rng.normal(size=(1, 20)), [0.3], (0, 1), estimator="other", features=features
    )
    X = features.low + features.width * rng.random((2000, 3))
    near = X + 1e-3 * features.width * rng.normal(size=X.shape)
    rises = np.abs(model.decision_function(X) - model.decision_function(near))
    slopes = rises / np.linalg.norm(X - near, ord=ORDERS[norm], axis=1)
    steepest = replace(features, span=features.width).steepness(model.coef[0], norm)
    assert 0.3 * steepest < slopes.max() <= steepest
