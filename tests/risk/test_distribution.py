"""worst_case_distribution: the atoms prove the value by themselves."""

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from fdrsvm import UnsupportedError, worst_case_distribution, worst_case_risk
from tests.problems import NORMS, problems, random_problem


def both(problem):
    arguments = (problem.w, problem.X, problem.y)
    settings = problem.arguments
    return worst_case_risk(*arguments, **settings), worst_case_distribution(*arguments, **settings)


def check_atoms(problem, risk, q):
    n_samples = problem.y.size
    mass = np.ones(n_samples) if problem.mass is None else problem.mass
    mass = mass / mass.sum()
    assert ((q.points >= 0.0) & (q.points <= 1.0)).all()
    assert set(q.labels) <= {-1.0, 1.0}
    assert (q.weights > 0.0).all()
    assert (np.diff(q.source_index) >= 0).all()
    counts = np.bincount(q.source_index, minlength=n_samples)
    assert ((counts >= 1) & (counts <= 2)).all()
    assert_allclose(np.bincount(q.source_index, q.weights, n_samples), mass, rtol=1e-14)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[problem.norm]
    moved = np.linalg.norm(q.points - problem.X[q.source_index], ord=order, axis=1)
    flipped = q.labels != problem.y[q.source_index]
    cost = q.weights @ (moved + np.where(flipped, problem.kappa if flipped.any() else 0.0, 0.0))
    assert_allclose(q.transport_cost, cost, rtol=1e-12, atol=1e-15)
    slack = 1e-13 * (1 + problem.epsilon)
    assert cost <= problem.epsilon + slack
    if risk.multiplier > 0.0:
        assert cost >= problem.epsilon - slack
    margins = q.labels * (q.points @ problem.w + problem.intercept)
    hinge = q.weights @ np.maximum(0.0, 1.0 - margins)
    assert_allclose(q.risk, hinge, rtol=1e-12, atol=1e-15)
    if problem.worst_case == "exact":
        assert_allclose(hinge, risk.value, rtol=1e-9, atol=1e-9)
    else:
        assert_allclose(q.weights @ (1.0 - margins), risk.value, rtol=1e-9, atol=1e-9)


@given(problems(boxed=True))
def test_atoms_are_legal_and_attain_the_worst_case(problem):
    check_atoms(problem, *both(problem))


@pytest.mark.parametrize("worst_case", ["exact", "paper"])
@pytest.mark.parametrize("norm", NORMS)
def test_atoms_attain_the_worst_case_with_weights_intercept_and_many_features(
    norm, worst_case, rng
):
    for n_features in (2, 5, 25):
        for _ in range(60):
            problem = random_problem(rng, norm, True, worst_case, n_features=n_features)
            check_atoms(problem, *both(problem))


@pytest.mark.parametrize("norm", NORMS)
def test_the_subgradient_is_the_mean_slope_under_the_worst_distribution(norm, rng):
    compared = 0
    for _ in range(60):
        problem = random_problem(rng, norm, True, "exact")
        risk, q = both(problem)
        margins = q.labels * (q.points @ problem.w + problem.intercept)
        if np.abs(1.0 - margins).min() < 1e-6:
            continue  # on the hinge's kink every slope between the two is right
        active = np.where(margins < 1.0, q.weights * q.labels, 0.0)
        assert_allclose(risk.subgradient, -active @ q.points, atol=1e-10)
        assert_allclose(risk.intercept_subgradient, -active.sum(), atol=1e-10)
        compared += 1
    assert compared > 30


def test_the_boxes_own_bounds_are_respected_to_the_last_bit(rng):
    low, high = rng.normal(size=4) - 2.0, rng.normal(size=4) + 2.0
    X = low + (high - low) * rng.random((50, 4))
    y, w = rng.choice([-1.0, 1.0], size=50), rng.normal(size=4)
    for norm in NORMS:
        q = worst_case_distribution(w, X, y, epsilon=2.0, kappa=1.0, norm=norm, support=(low, high))
        assert (q.points >= low).all()
        assert (q.points <= high).all()


def test_without_a_support_there_may_be_no_worst_distribution():
    with pytest.raises(UnsupportedError, match="compact support"):
        worst_case_distribution([1.0], [[0.5]], [1], epsilon=0.1, support=None)
