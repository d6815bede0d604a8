"""Bounds on ridge problems from cuts: never above the optimum, and as good as the cuts allow."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fdrsvm.solvers import ridge_bound as module
from fdrsvm.solvers.ridge_bound import RidgeCut, best_mixture, blend, level_pair, ridge_bound


def random_cuts(rng, n_cuts, n_features, *, has_intercept=False):
    slopes = rng.normal(size=(n_cuts, n_features + int(has_intercept)))
    return rng.random(n_cuts), slopes


def model_value(constants, slopes, penalty, n_features, model):
    """The largest cut, or 0, plus the penalty."""
    value = max(0.0, float(np.max(constants + slopes @ model)))
    return value + penalty * float(model[:n_features] @ model[:n_features])


def least_model_value(constants, slopes, penalty, n_features):
    """By a solver of another kind, on the epigraph form."""
    width = slopes.shape[1]
    square = np.append(np.arange(width) < n_features, False)
    found = minimize(
        lambda z: z[-1] + penalty * np.sum(z[square] ** 2),
        np.append(np.zeros(width), max(0.0, constants.max())),
        jac=lambda z: np.append(np.where(square[:-1], 2.0 * penalty * z[:-1], 0.0), 1.0),
        constraints=[
            {
                "type": "ineq",
                "fun": lambda z: z[-1] - np.append(constants + slopes @ z[:-1], 0.0),
                "jac": lambda z: np.c_[
                    -np.vstack([slopes, np.zeros(width)]), np.ones(len(constants) + 1)
                ],
            }
        ],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return model_value(constants, slopes, penalty, n_features, found.x[:-1])


@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_the_best_mixture_proves_what_the_cuts_allow(seed, has_intercept):
    rng = np.random.default_rng(seed)
    n_features, penalty = int(rng.integers(1, 6)), float(rng.choice([0.1, 1.0]))
    constants, slopes = random_cuts(
        rng, int(rng.integers(1, 12)), n_features, has_intercept=has_intercept
    )
    mixture = best_mixture(constants, slopes, n_features, penalty)
    bound = ridge_bound(mixture, n_features, penalty, "l2", 1.0)
    least = least_model_value(constants, slopes, penalty, n_features)
    assert bound.radius == np.inf
    assert bound.value <= least + 1e-9
    assert bound.value == pytest.approx(least, abs=1e-6)
    if has_intercept:
        assert mixture.slope[-1] == 0.0


def test_more_features_than_cuts_give_the_same_bound(rng):
    constants, slopes = random_cuts(rng, 4, 50)
    mixture = best_mixture(constants, slopes, 50, 0.2)
    bound = ridge_bound(mixture, 50, 0.2, "l2", 1.0)
    assert bound.value == pytest.approx(least_model_value(constants, slopes, 0.2, 50), abs=1e-6)


def test_blending_never_proves_less_and_in_the_end_nearly_as_much(rng):
    constants, slopes = random_cuts(rng, 6, 3)
    best, bounds = RidgeCut(0.0, np.zeros(3)), [0.0]
    for k in range(3000):
        best = blend(best, RidgeCut(constants[k % 6], slopes[k % 6]), 0.3)
        bounds.append(ridge_bound(best, 3, 0.3, "l2", 1.0).value)
    assert np.diff(bounds).min() >= -1e-15
    assert bounds[-1] == pytest.approx(least_model_value(constants, slopes, 0.3, 3), abs=1e-2)


def test_a_pair_of_cuts_is_level_in_the_intercept(rng):
    constants, slopes = np.array([0.3, 0.9, 0.5]), rng.normal(size=(3, 4))
    slopes[:, -1] = [-0.5, -2.0, 1.0]
    pair = level_pair(RidgeCut(0.7, np.array([1.0, 0.0, 0.0, 0.5])), constants, slopes)
    assert pair.constant == pytest.approx(0.8 * 0.7 + 0.2 * 0.9)
    np.testing.assert_allclose(pair.slope[:3], 0.8 * np.eye(3)[0] + 0.2 * slopes[1, :3])
    assert pair.slope[3] == 0.0
    assert (
        level_pair(RidgeCut(0.7, np.array([1.0, 0.0, 0.0, 1.0])), constants[2:], slopes[2:]) is None
    )


def test_a_solver_that_fails_leaves_no_bound(monkeypatch):
    monkeypatch.setattr(module, "_solve", lambda constants, columns, tilts: np.array([np.nan]))
    assert best_mixture(np.ones(1), np.ones((1, 2)), 2, 1.0) is None


@pytest.mark.parametrize("n_features", [2, 3])
def test_shares_that_break_every_rule_still_give_a_bound(monkeypatch, n_features):
    rng = np.random.default_rng(7)
    constants, slopes = rng.random(6), rng.normal(size=(6, 3))
    least = least_model_value(constants, slopes, 0.5, n_features)
    for _ in range(20):
        wrong = 3.0 * rng.normal(size=6)
        monkeypatch.setattr(module, "_solve", lambda *_, wrong=wrong: wrong)
        mixture = best_mixture(constants, slopes, n_features, 0.5)
        assert 0.0 <= ridge_bound(mixture, n_features, 0.5, "l2", 1.0).value <= least + 1e-12


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_without_a_penalty_the_bound_holds_up_to_its_radius(norm, rng):
    order = {"l1": np.inf, "l2": 2, "linf": 1}[norm]  # of the dual norm
    cut = RidgeCut(5.0, rng.normal(size=4))
    bound = ridge_bound(cut, 4, 0.0, norm, 2.0)
    assert bound.radius == 2.0
    models = rng.normal(size=(2000, 4))
    models *= 2.0 / np.linalg.norm(models, ord=order, axis=1)[:, None]
    values = cut.constant + models @ cut.slope
    assert values.min() >= bound.value
    assert values.min() <= bound.value + 1.0
