"""Our answers against other solvers, known optima and the risk oracle."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.svm import LinearSVC

from fdrsvm import RiskOracle, worst_case_risk
from fdrsvm.solvers import Status, prepare_client, solve_central, solve_client_prox
from tests.solvers.cases import (
    NORMS,
    breast_cancer,
    degenerate_data,
    random_case,
    random_data,
    solve_case,
    solve_either,
    synthetic,
)
from tests.solvers.reference import conic_reference, objective

EPS = np.finfo(float).eps
TOL = 1e-9


def goal(s, tol=TOL):
    return tol * max(1.0, abs(s.objective))


@pytest.mark.parametrize(
    ("data", "answers"),
    [
        (breast_cancer, (0.200542363, 0.264555688, 0.446179744)),
        (lambda: synthetic(1000), (0.339616153, 0.367141003, 0.463035550)),
        (lambda: synthetic(10000), (0.415451634, 0.446462019, 0.542246968)),
    ],
    ids=["breast cancer", "synthetic 1000", "synthetic 10000"],
)
def test_reaches_the_nine_known_central_optima(data, answers):
    X, y = data()
    for norm, answer in zip(NORMS, answers, strict=True):
        s = solve_central(X, y, epsilon=0.01, kappa=1.0, norm=norm)
        assert s.status is Status.SOLVED
        assert_allclose(s.objective, answer, rtol=0.0, atol=0.5e-9 + TOL)  # printed to 9 digits


@pytest.mark.parametrize("seed", range(120))
def test_agrees_with_the_conic_reference(seed):
    X, y, case = random_case(seed)
    s = solve_case(X, y, case)
    w, b = conic_reference(X, y, **case)
    theirs, ours = objective(X, y, w, b, **case), objective(X, y, s.w, s.intercept, **case)
    assert s.status is Status.SOLVED
    assert s.gap <= goal(s)
    # Each sums len(y) losses 1 - m, and each margin m is a sum of products of its own.
    margins = case["mass"] @ (np.abs(X) @ np.abs(s.w) + abs(s.intercept) + 1.0)
    rounding = (X.shape[1] + 1) * EPS * margins
    assert_allclose(s.objective, ours, rtol=1e-12 * len(y), atol=rounding)
    assert ours <= theirs + 1e-8
    assert s.objective - s.gap <= theirs + 1e-10 * max(1.0, theirs)
    curvature = case["rho"] + 2.0 * case["tau"]
    if curvature > 0.0:  # strong convexity: curvature/2 ||w - w*||^2 <= excess
        gap = max(s.gap, 0.0) + 100 * EPS * ours  # both values are rounded
        excess = max(theirs - ours + gap, 0.0)
        radius = np.sqrt(2.0 * gap / curvature) + np.sqrt(2.0 * excess / curvature)
        assert np.linalg.norm(s.w - w) <= radius + 1e-9


@pytest.mark.parametrize("seed", range(40))
def test_the_objective_is_the_worst_case_risk_plus_the_quadratic_terms(seed):
    X, y, case = random_case(1000 + seed)
    s = solve_case(X, y, case)
    p = X.shape[1]
    risk = worst_case_risk(
        s.w,
        X,
        y,
        epsilon=case["epsilon"],
        kappa=case["kappa"],
        norm=case["norm"],
        sample_weight=case["mass"],
        intercept=s.intercept,
    )
    value = risk.value + case["tau"] * s.w @ s.w
    value += 0.5 * case["rho"] * np.sum((s.w - case["centre"][:p]) ** 2)
    if case["fit_intercept"]:
        value += 0.5 * case["rho"] * (s.intercept - case["centre"][p]) ** 2
    assert_allclose(s.objective, value, rtol=1e-12 * len(y))
    if np.isfinite(case["kappa"]):  # several multipliers may be best: ours must be one of them
        margins = y * (X @ s.w + s.intercept)
        flipped = 1.0 + margins - case["kappa"] * s.multiplier
        losses = np.maximum(np.maximum(0.0, 1.0 - margins), flipped)
        assert_allclose(
            case["epsilon"] * s.multiplier + case["mass"] @ losses, risk.value, rtol=1e-12 * len(y)
        )


@pytest.mark.parametrize(("norm", "tau"), list(itertools.product(NORMS, (0.0, 0.02))))
def test_the_proximal_residual_is_a_subgradient_of_the_risk(norm, tau, rng):
    """f(u) >= f(w) + g.(u - w) - slack for g = rho (centre - w) - 2 tau w.

    F(u) = f(u) + q(u), q the quadratic with q'(w) = -g and curvature theta. Since F(w) <= F* + gap,
    F(u) >= F* + theta/2 ||u - w*||^2 and ||w - w*|| <= r = sqrt(2 gap/theta), expanding q about w
    leaves at most gap + theta r (||u - w|| + r).
    """
    X, y = random_data(rng, 80, 6)
    rho = 0.05
    ball = {"epsilon": 0.01, "kappa": 0.8, "norm": norm}
    oracle = RiskOracle(X, y, **ball)
    for _ in range(5):
        centre = rng.normal(size=6)
        s = solve_client_prox(X, y, centre=centre, rho=rho, tau=tau, **ball)
        theta = rho + 2.0 * tau
        g = rho * (centre - s.w) - 2.0 * tau * s.w
        value, radius = oracle(s.w).value, np.sqrt(2.0 * max(s.gap, EPS) / theta)
        for _ in range(40):
            u = s.w + rng.normal(size=6) * 10.0 ** rng.uniform(-4, 1)
            slack = s.gap + theta * radius * (np.linalg.norm(u - s.w) + radius)
            assert oracle(u).value >= value + g @ (u - s.w) - slack - 1e-13


@pytest.mark.parametrize("penalty", [0.03, 1.0])
def test_agrees_with_the_support_vector_machine_of_scikit_learn(penalty):
    """min C sum hinge + ||w||^2/2 is ours times C N, at epsilon = 0, kappa = inf, centre 0."""
    X, y = synthetic(400)
    rho = 1.0 / (penalty * len(y))
    ours = solve_client_prox(X, y, centre=np.zeros(14), rho=rho, epsilon=0.0, kappa=np.inf)
    theirs = LinearSVC(
        loss="hinge", fit_intercept=False, C=penalty, tol=1e-8, max_iter=10**6, random_state=0
    ).fit(X, y)
    w = theirs.coef_[0]
    value = np.maximum(0.0, 1.0 - y * (X @ w)).mean() + 0.5 * rho * w @ w
    assert ours.objective - ours.gap <= value + 1e-12
    assert value <= ours.objective + 1e-6  # what LinearSVC's stopping rule gives


@pytest.mark.parametrize("name", degenerate_data())
def test_solves_degenerate_data(name):
    X, y = degenerate_data()[name]
    for norm, epsilon, kappa, rho, intercept in itertools.product(
        NORMS, (0.0, 1e-4, 1e-2, 0.5), (0.1, 1.0, np.inf), (0.0, 0.01), (False, True)
    ):
        options = {"epsilon": epsilon, "kappa": kappa, "norm": norm, "fit_intercept": intercept}
        s = solve_either(X, y, rho=rho, **options)
        assert s.status is Status.SOLVED, (options, rho, s.gap)


@settings(max_examples=80)
@given(
    data=st.data(),
    n=st.integers(1, 12),
    p=st.integers(1, 4),
    epsilon=st.sampled_from([0.0, 1e-3, 0.1, 2.0]),
    kappa=st.sampled_from([0.1, 1.0, np.inf]),
    rho=st.sampled_from([0.0, 0.01, 1.0]),
    norm=st.sampled_from(NORMS),
    fit_intercept=st.booleans(),
)
def test_small_integer_data_is_always_solved(data, n, p, epsilon, kappa, rho, norm, fit_intercept):
    row = st.lists(st.integers(-3, 3), min_size=p, max_size=p)
    X = np.array(data.draw(st.lists(row, min_size=n, max_size=n)), dtype=float)
    y = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    s = solve_either(
        X, y, rho=rho, epsilon=epsilon, kappa=kappa, norm=norm, fit_intercept=fit_intercept
    )
    assert s.status is Status.SOLVED
    assert s.gap >= -1e-13 * max(1.0, s.objective)


@pytest.mark.parametrize("norm", NORMS)
def test_warm_and_cold_starts_agree_and_neither_changes_the_start(norm, rng):
    X, y = random_data(rng, 120, 10)
    client = prepare_client(X, y, rho=0.01, epsilon=1e-3, norm=norm)
    s = client.solve(rng.normal(size=10))
    for _ in range(10):
        centre = rng.normal(size=10)
        before = s.warm_start.kept.copy()
        warm, cold = client.solve(centre, warm_start=s.warm_start), client.solve(centre)
        assert np.array_equal(before, s.warm_start.kept)
        assert warm.status is cold.status is Status.SOLVED
        assert abs(warm.objective - cold.objective) <= max(warm.gap, cold.gap) + 1e-14
        radius = sum(np.sqrt(2.0 * max(t.gap, EPS) / 0.01) for t in (warm, cold))
        assert np.linalg.norm(warm.w - cold.w) <= radius
        s = warm


@pytest.mark.parametrize("norm", NORMS)
def test_a_central_solve_can_start_from_its_own_answer(norm):
    X, y = synthetic(300)
    cold = solve_central(X, y, epsilon=0.01, norm=norm, fit_intercept=True)
    warm = solve_central(
        X, y, epsilon=0.01, norm=norm, fit_intercept=True, warm_start=cold.warm_start
    )
    assert warm.status is Status.SOLVED
    assert warm.n_iter <= cold.n_iter
    assert abs(warm.objective - cold.objective) <= max(warm.gap, cold.gap) + 1e-14


@pytest.mark.parametrize(("norm", "fit_intercept"), list(itertools.product(NORMS, (False, True))))
def test_kinds_of_input_agree(norm, fit_intercept, rng):
    dense = rng.normal(size=(150, 40)) * (rng.random((150, 40)) < 0.2)
    y = np.where(rng.random(150) < 0.5, 1, -1)
    kinds = [dense, sparse.csr_array(dense), sparse.csc_matrix(dense), pd.DataFrame(dense)]
    answers = [
        solve_client_prox(
            X,
            y,
            centre=np.ones(40),
            rho=0.01,
            epsilon=1e-3,
            norm=norm,
            fit_intercept=fit_intercept,
        )
        for X in (*kinds, dense.tolist())
    ]
    for s in answers:
        assert s.status is Status.SOLVED
        assert abs(s.objective - answers[0].objective) <= max(s.gap, answers[0].gap) + 1e-14


@pytest.mark.parametrize("norm", NORMS)
def test_weights_act_as_repetitions(norm, rng):
    X, y = random_data(rng, 30, 4)
    times = rng.integers(1, 4, size=30)
    a = solve_central(X, y, epsilon=0.01, norm=norm, sample_weight=times)
    b = solve_central(np.repeat(X, times, axis=0), np.repeat(y, times), epsilon=0.01, norm=norm)
    assert abs(a.objective - b.objective) <= max(a.gap, b.gap) + 1e-14


def test_a_large_client_starts_on_part_of_its_samples_and_still_answers_for_all():
    X, y = synthetic(60_000)
    s = prepare_client(X, y, rho=0.01, epsilon=0.1 / len(y)).solve(-np.ones(14))
    assert s.status is Status.SOLVED
    value = worst_case_risk(s.w, X, y, epsilon=0.1 / len(y)).value
    assert_allclose(s.objective, value + 0.005 * np.sum((s.w + 1.0) ** 2), rtol=1e-12)
