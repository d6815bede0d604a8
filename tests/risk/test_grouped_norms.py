"""Worst cases with groups of features, and the ramps that groups are made for: [grouped-norm]."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from fdrsvm import InvalidInputError, RiskOracle, UnsupportedError
from fdrsvm.core.losses import LOSSES
from fdrsvm.core.vectors import NORMS, dual_norm, norm_of
from fdrsvm.risk.ball import Ball
from tests.problems import random_problem
from tests.reference import reference_risk

ROUNDING = 1e-13
GROUPS = {4: (2, 1, 1), 5: (3, 2), 6: (6,)}


def grouped_problem(rng, norm):
    n_features = int(rng.choice(list(GROUPS)))
    problem = random_problem(rng, norm, False, "exact", n_features=n_features)
    ball = {name: each for name, each in problem.arguments.items() if name != "intercept"}
    return problem, GROUPS[n_features], ball


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_risk_is_that_of_the_linear_or_conic_program(norm, rng):
    for _ in range(40):
        problem, groups, ball = grouped_problem(rng, norm)
        ours = RiskOracle(problem.X, problem.y, groups=groups, **ball)(problem.w, problem.intercept)
        theirs = reference_risk(
            problem.w, problem.X, problem.y, groups=groups, **problem.reference_arguments
        )
        assert_allclose(ours.value, theirs, atol=1e-8, rtol=1e-8)
        assert ours.value - ours.proof <= 1e-10 * (1.0 + ours.value)


@pytest.mark.parametrize(
    ("norm", "loss", "is_sparse"), list(itertools.product(NORMS, LOSSES, (False, True)))
)
def test_cuts_touch_the_risk_and_stay_below_it(norm, loss, is_sparse, rng):
    for _ in range(15):
        problem, groups, ball = grouped_problem(rng, norm)
        X = sparse.csr_array(problem.X) if is_sparse else problem.X
        oracle = RiskOracle(X, problem.y, groups=groups, loss=loss, **ball)
        risk, cut = oracle.cut(problem.w, problem.intercept)
        for scale in (0.0, 1e-6, 0.1, 1.0, 30.0):
            u = problem.w + scale * rng.normal(size=problem.w.size)
            b = problem.intercept + scale * rng.normal()
            size = dual_norm(u, norm, groups)
            value = cut.constant + cut.slope[:-1] @ u + cut.slope[-1] * b + cut.norm_weight * size
            room = ROUNDING * (10.0 + np.abs(u).sum() + abs(b) + abs(value))
            there = oracle.value(u, b)
            assert value <= there + room
            tangent = risk.value + risk.subgradient @ (u - problem.w)
            tangent += risk.intercept_subgradient * (b - problem.intercept)
            assert tangent <= there + room
            if scale == 0.0:
                assert value >= there - room


def test_cuts_in_one_call_have_the_bits_of_one_after_the_other(rng):
    X, y = rng.normal(size=(20, 6)), rng.choice([-1.0, 1.0], size=20)
    oracle = RiskOracle(X, y, epsilon=0.1, norm="l2", groups=(4, 2))
    points = rng.normal(size=(5, 7))
    found = oracle.cuts(points)
    for k, point in enumerate(points):
        risk, cut = oracle.cut(np.ascontiguousarray(point[:-1]), point[-1])
        assert (found.risks[k], found.constants[k]) == (risk.value, cut.constant)
        assert found.norm_weights[k] == cut.norm_weight
        assert found.slopes[k].tobytes() == cut.slope.tobytes()


def test_groups_that_change_nothing_are_none():
    settings = {"epsilon": 0.1, "kappa": 1.0}
    assert Ball.checked(3, norm="linf", groups=[1, 1, 1], **settings).groups is None
    assert Ball.checked(3, norm="l1", groups=(2, 1), **settings).groups is None
    assert Ball.checked(3, norm="l2", groups=np.array([2, 1]), **settings).groups == (2, 1)


@pytest.mark.parametrize("groups", [(), (2,), (2, 2), (0, 3), (-1, 4), "21", 3, (1.5, 1.5)])
def test_groups_that_do_not_add_up_are_refused(groups):
    with pytest.raises(InvalidInputError, match="groups"):
        Ball.checked(3, epsilon=0.1, kappa=1.0, norm="linf", groups=groups)


def test_groups_on_a_box_are_refused():
    with pytest.raises(UnsupportedError, match="support=None"):
        Ball.checked(2, epsilon=0.1, kappa=1.0, norm="linf", support="unit-box", groups=(2,))


# ------------------------------------------------------------------------------------------- ramps


def ramps(X, knots):
    """clip(x - t_k, 0, t_(k+1) - t_k); the first and the last go on outside."""
    columns = []
    for x, t in zip(X.T, knots, strict=True):
        for k in range(len(t) - 1):
            low = -np.inf if k == 0 else 0.0
            high = np.inf if k == len(t) - 2 else t[k + 1] - t[k]
            columns.append(np.clip(x - t[k], low, high))
    return np.array(columns).T


def random_ramps(rng):
    knots = [np.sort(rng.random(int(rng.integers(2, 6)))) for _ in range(int(rng.integers(1, 4)))]
    return knots, tuple(len(t) - 1 for t in knots)


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_ramps_keep_all_distances(norm, order, rng):
    for _ in range(20):
        knots, groups = random_ramps(rng)
        X, Z = rng.normal(scale=2.0, size=(2, 10, len(knots)))
        moved = ramps(X, knots) - ramps(Z, knots)
        expected = np.linalg.norm(X - Z, order, axis=1)
        assert_allclose([norm_of(row, norm, groups) for row in moved], expected, rtol=1e-12)


@pytest.mark.parametrize(("norm", "dual"), [("l1", np.inf), ("l2", 2), ("linf", 1)])
def test_the_price_of_weights_is_the_lipschitz_constant_of_their_score(norm, dual, rng):
    """On the cell of one ramp per sensor the score is linear; its steepest cell is the constant."""
    for _ in range(20):
        knots, groups = random_ramps(rng)
        w = rng.normal(size=sum(groups))
        slopes = np.split(w, np.cumsum(groups)[:-1])
        steepest = max(np.linalg.norm(cell, dual) for cell in itertools.product(*slopes))
        assert dual_norm(w, norm, groups) == pytest.approx(steepest, rel=1e-14)
        # The cells' slopes are what they are said to be: differences within one cell.
        cell = [int(rng.integers(n)) for n in groups]
        middle = np.array([(t[k] + t[k + 1]) / 2 for t, k in zip(knots, cell, strict=True)])
        widths = np.array([t[k + 1] - t[k] for t, k in zip(knots, cell, strict=True)])
        move = 0.4 * widths * rng.uniform(-1, 1, size=len(knots))
        change = (ramps((middle + move)[None], knots) - ramps(middle[None], knots))[0] @ w
        here = np.array([part[k] for part, k in zip(slopes, cell, strict=True)])
        assert change == pytest.approx(here @ move, abs=1e-12)
