"""Units, wild scales, wide data, and what happens when a problem cannot be solved to tol."""

import itertools
import warnings

import numpy as np
import pytest
from scipy import sparse

from fdrsvm.solvers import ConvergenceWarning, Status, solve_central, solve_client_prox
from fdrsvm.solvers import client_prox as engine
from tests.solvers.cases import NORMS, random_data, solve_either


@pytest.mark.parametrize(
    ("norm", "rho", "unit"), list(itertools.product(NORMS, (0.0, 0.01), (1e-9, 1e9, 1e-150, 1e150)))
)
def test_the_unit_of_the_features_does_not_matter(norm, rho, unit, rng):
    """x -> unit x with w -> w/unit: epsilon, kappa scale as x, rho as x^2, the centre as w."""
    X, y = random_data(rng, 100, 6)
    centre = rng.normal(size=6)
    plain = solve_either(X, y, rho=rho, centre=centre, epsilon=0.01, kappa=0.5, norm=norm)
    scaled = solve_either(
        X * unit,
        y,
        rho=rho * unit * unit,
        centre=centre / unit,
        epsilon=0.01 * unit,
        kappa=0.5 * unit,
        norm=norm,
    )
    assert scaled.status is plain.status is Status.SOLVED
    assert abs(scaled.objective - plain.objective) <= max(scaled.gap, plain.gap) + 1e-13


def outcome(solve):
    """The solution, and whether it came with a warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        s = solve()
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught)
    return s, bool(caught)


@pytest.mark.parametrize(("norm", "rho"), list(itertools.product(NORMS, (0.0, 1.0))))
def test_wild_scales_solve_or_say_so(norm, rho, rng):
    X = rng.normal(size=(60, 8)) * 10.0 ** np.linspace(-9, 9, 8)
    y = np.sign(rng.normal(size=60))
    s, warned = outcome(
        lambda: solve_either(X, y, rho=rho, centre=np.zeros(8), epsilon=0.01, norm=norm)
    )
    assert (s.status is Status.SOLVED) == (s.gap <= 1e-9 * max(1.0, s.objective)) == (not warned)
    assert np.isfinite(s.w).all()


@pytest.mark.parametrize(("norm", "unit"), list(itertools.product(NORMS, (1e-9, 1e9))))
def test_features_in_a_foreign_unit_solve_or_say_so(norm, unit, rng):
    """The same with epsilon, rho and the centre left as they were: another, harder problem."""
    X, y = random_data(rng, 60, 5)
    for rho in (0.0, 0.01):
        s, warned = outcome(lambda rho=rho: solve_either(X * unit, y, rho=rho, epsilon=0.01))
        assert (s.status is Status.SOLVED) == (not warned)
        assert s.gap >= -1e-13 * max(1.0, abs(s.objective))


def test_tol_is_relative_to_a_large_objective(rng):
    X, y = random_data(rng, 60, 5)
    s = solve_client_prox(X, y, centre=np.full(5, 1e4), rho=100.0, tau=100.0, epsilon=0.01)
    assert s.status is Status.SOLVED
    assert s.objective > 1e9
    assert -1e-13 * s.objective <= s.gap <= 1e-9 * s.objective


@pytest.mark.parametrize("central", [True, False])
def test_an_unsolved_problem_is_never_silent(central, monkeypatch, rng):
    monkeypatch.setattr(engine, "_MAX_NEWTON", 2)
    monkeypatch.setattr(engine, "is_within_reach", lambda *problem: False)
    X, y = random_data(rng, 100, 6)
    prox = {} if central else {"centre": np.zeros(6), "rho": 0.01}
    solve = solve_central if central else solve_client_prox
    with pytest.warns(ConvergenceWarning, match=r"MAX_ITER, gap \d") as caught:
        s = solve(X, y, epsilon=0.01, **prox)
    assert caught[0].filename == __file__
    assert s.status is Status.MAX_ITER
    assert s.gap > 1e-9


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array])
@pytest.mark.parametrize(("norm", "rho"), list(itertools.product(NORMS, (0.0, 0.01))))
def test_the_conic_fallback_takes_over_when_newton_gives_up(norm, rho, kind, monkeypatch, rng):
    X, y = random_data(rng, 80, 6)
    X = kind(X)
    solved = solve_either(X, y, rho=rho, epsilon=0.01, norm=norm, fit_intercept=True)
    monkeypatch.setattr(engine, "_MAX_NEWTON", 2)
    second = solve_either(X, y, rho=rho, epsilon=0.01, norm=norm, fit_intercept=True, tol=1e-7)
    assert second.status is Status.SOLVED
    assert abs(second.objective - solved.objective) <= 1e-7


@pytest.mark.parametrize("norm", NORMS)
def test_wide_sparse_rows_are_solved_without_forming_newtons_matrix(norm):
    X = sparse.random_array(
        (300, 20_000), density=0.002, format="csr", rng=np.random.default_rng(0)
    )
    y = np.where(np.random.default_rng(1).random(300) < 0.5, 1.0, -1.0)
    s = solve_client_prox(X, y, centre=np.zeros(20_000), rho=0.01, epsilon=1e-3, norm=norm)
    assert s.status is Status.SOLVED


@pytest.mark.parametrize("norm", NORMS)
def test_wide_dense_rows_agree_with_sparse_ones(norm, rng):
    X = rng.normal(size=(40, 900)) * (rng.random((40, 900)) < 0.1)
    y = np.where(rng.random(40) < 0.5, 1.0, -1.0)
    a, b = (
        solve_client_prox(rows, y, centre=np.ones(900), rho=0.01, epsilon=1e-3, norm=norm)
        for rows in (X, sparse.csr_array(X))
    )
    assert a.status is b.status is Status.SOLVED
    assert abs(a.objective - b.objective) <= max(a.gap, b.gap) + 1e-13
