"""Starts, centres and scales that once broke an answer or its certificate."""

import numpy as np
import pytest

from fdrsvm import ConvergenceWarning, InvalidInputError, NumericalError
from fdrsvm.native import client as kernels
from fdrsvm.solvers import Status, prepare_client, solve_central, solve_client_prox
from fdrsvm.solvers import client_prox as engine
from tests.solvers.cases import NORMS, prepared, random_case, random_data, solve_case


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rho", [1e6, 1e9, 1e12])
def test_a_stiff_pull_keeps_the_bound_below_the_optimum(norm, rho):
    solution = solve_client_prox(
        [[1.0, 0.3]], [1], centre=[700.0, -300.3], rho=rho, epsilon=0.01, kappa=np.inf, norm=norm
    )
    assert solution.status is Status.SOLVED
    assert abs(solution.gap) <= 1e-9 * max(1, solution.objective)


def test_a_warm_start_with_as_many_coefficients_but_no_intercept_is_refused(rng):
    X, y = random_data(rng, 50, 6)
    narrow = prepare_client(X[:, :5], y, rho=0.1, epsilon=0.01, fit_intercept=True)
    start = narrow.solve(np.ones(5)).warm_start
    with pytest.raises(InvalidInputError, match="without intercept"):
        prepare_client(X, y, rho=0.1, epsilon=0.01).solve(np.ones(6), warm_start=start)


def test_an_infinite_objective_is_not_solved(rng):
    X, y = random_data(rng, 30, 4)
    with pytest.warns(ConvergenceWarning):
        solution = solve_client_prox(X, y, centre=np.full(4, 1e160), rho=1.0, epsilon=0.01)
    assert solution.status is not Status.SOLVED


@pytest.mark.parametrize("bad", [np.nan, 1e300])
def test_a_spoilt_warm_start_costs_time_only(bad, rng):
    X, y = random_data(rng, 200, 5)
    client = prepare_client(X, y, rho=0.01, epsilon=0.01)
    good = client.solve(np.ones(5))
    start = good.warm_start
    start.w[:] = bad
    again = client.solve(np.ones(5), warm_start=start)
    assert again.status is Status.SOLVED
    assert again.objective == pytest.approx(good.objective, abs=2e-9)


def test_rows_without_weight_do_not_spoil_the_start_on_a_part_of_the_rows(rng):
    X, y = random_data(rng, 60_000, 3)
    weights = np.ones(60_000)
    weights[::6] = 0.0
    solution = solve_central(X, y, epsilon=0.01, sample_weight=weights)
    without = solve_central(X[weights > 0], y[weights > 0], epsilon=0.01)
    assert solution.status is without.status is Status.SOLVED
    assert solution.objective == pytest.approx(without.objective, abs=2e-9)


@pytest.mark.parametrize("size", [1e-310, 1.5e308])
def test_values_at_the_ends_of_float64_are_refused(size):
    with pytest.raises(NumericalError, match="rescale"):
        solve_central([[size], [-size]], [1, -1], epsilon=0.1)


def test_a_centre_for_an_intercept_that_is_not_there_is_refused(rng):
    X, y = random_data(rng, 10, 2)
    with pytest.raises(InvalidInputError, match="without fit_intercept"):
        solve_client_prox(X, y, centre=[0.0, 0.0], rho=1.0, epsilon=0.1, centre_intercept=1.0)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("rho", [0.0, 0.01])
def test_multipliers_beyond_the_masses_do_not_lift_the_bound(norm, rho, rng):
    """Along the direction in which the dual would rise, were the masses not clipped."""
    X, y = random_data(rng, 40, 5)
    client = prepared(X, y, epsilon=0.05, kappa=np.inf, norm=norm, rho=rho)
    centre = rng.normal(size=5)
    solution = client.solve_quietly(centre, 0.0, None, 1e-9)
    start = solution.warm_start
    rise = np.maximum(0.0, 1.0 - y * (X @ solution.w))
    for t in (1e-4, 1e-3, 1e-2):
        grade = kernels.grade(
            client.kernel,
            centre * client.kernel.feature_scale,
            0.0,
            start.w,
            start.kept + t * rise / 40,
            start.flipped,
        )
        assert grade.objective - grade.gap <= solution.objective + 1e-13


def test_the_bound_at_epsilon_0_reaches_ten_times_as_far_as_w(rng):
    """[repair]: no model in that ball beats it, by brute force along rays."""
    X, y = random_data(rng, 12, 2)
    problem = prepared(X, y, epsilon=0.0, kappa=np.inf, norm="linf", rho=0.0).kernel
    kept = rng.random(12) / 12
    w = rng.normal(size=2)
    grade = kernels.grade(problem, np.zeros(2), 0.0, w, kept, np.zeros(12))
    bound = grade.objective - grade.gap
    reach = 10.0 * max(np.abs(w).sum(), 1.0)
    lowest = np.inf
    for angle in np.linspace(0, 2 * np.pi, 400):
        ray = np.array([np.cos(angle), np.sin(angle)])
        for length in np.linspace(0, reach / np.abs(ray).sum(), 200):
            u = length * ray / problem.feature_scale
            lowest = min(lowest, np.maximum(0, 1 - y * (X @ u)).mean())
    assert bound <= lowest + 1e-12


@pytest.mark.parametrize("seed", range(120))
def test_newton_needs_no_second_try_on_ordinary_problems(seed, monkeypatch):
    """Else the second try would hide a broken first one."""
    monkeypatch.setattr(engine, "is_within_reach", lambda *problem: False)
    assert solve_case(*random_case(seed)).status is Status.SOLVED
