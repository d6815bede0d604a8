"""Noise of the right size, nothing beside it, and a budget that an independent formula confirms."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest, norm

from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.federated import ClientError, InProcess, Subgradient, make_client, run_rounds
from fdrsvm.federated.differential import (
    epsilon_spent,
    noise_multiplier_for,
    subgradient_sensitivity,
)
from fdrsvm.federated.methods import PrivateSubgradient, describe, from_description
from fdrsvm.risk.worst_case import RiskOracle
from tests.federated.cases import Absent
from tests.federated.cases import Recorded as InMemory

NORMS = ("linf", "l2", "l1")


def rows(rng, n, p, radius):
    """Rows of at most that length, many of them as long as that."""
    X = rng.normal(size=(n, p))
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / lengths * radius * np.minimum(1.0, 1.5 * rng.random((n, 1)))


def clients(rng, n_clients=3, n=20, p=4, radius=2.0, **settings):
    made = []
    for g in range(n_clients):
        X = rows(rng, n, p, radius)
        y = np.where(X[:, 0] + 0.2 * rng.normal(size=n) > 0.0, 1.0, -1.0)
        made.append(make_client(f"c{g}", X, y, **settings))
    return made


# --- sensitivity ---


def subgradient(X, y, w, b, **ball):
    found = RiskOracle(X, y, **ball)(w, b)
    return np.append(found.subgradient, found.intercept_subgradient)


@given(st.integers(0, 10**6))
def test_no_replaced_row_moves_the_subgradient_farther(seed):
    """[sensitivity] by brute force: every row of a random client, replaced by the worst of many."""
    rng = np.random.default_rng(seed)
    n, p, radius = int(rng.integers(1, 7)), int(rng.integers(1, 4)), 10.0 ** rng.uniform(-1, 1)
    fit_intercept = bool(rng.random() < 0.5)
    ball = {
        "epsilon": float(rng.choice([0.01, 0.1, 0.5, 3.0])) * radius,
        "kappa": float(rng.choice([0.1, 1.0, 10.0, np.inf])),
        "norm": str(rng.choice(NORMS)),
    }
    X, y = rows(rng, n, p, radius), rng.choice([-1.0, 1.0], size=n)
    w = rng.normal(size=p) / radius * 10.0 ** rng.uniform(-1, 0.7)
    b = float(rng.normal()) if fit_intercept else 0.0
    width = p + int(fit_intercept)
    before = subgradient(X, y, w, b, **ball)[:width]
    limit = subgradient_sensitivity(n, radius, n_features=p, fit_intercept=fit_intercept, **ball)
    along = w / np.linalg.norm(w) * radius
    others = [*rows(rng, 4, p, radius), along, -along, np.zeros(p)]
    for k, other, label in itertools.product(range(n), others, (-1.0, 1.0)):
        X_new, y_new = X.copy(), y.copy()
        X_new[k], y_new[k] = other, label
        moved = np.linalg.norm(subgradient(X_new, y_new, w, b, **ball)[:width] - before)
        assert moved <= limit * (1.0 + 1e-9)


def test_without_flips_the_bound_is_reached():
    """One row turned round: 2 R / N, exactly."""
    X, y, w = np.array([[2.0, 0.0], [0.0, 1.0]]), np.ones(2), np.zeros(2)
    ball = {"epsilon": 0.1, "kappa": np.inf, "norm": "l2"}
    moved = subgradient(X, y, w, 0.0, **ball) - subgradient(X, -y * [1, -1], w, 0.0, **ball)
    limit = subgradient_sensitivity(2, 2.0, n_features=2, **ball)
    assert np.linalg.norm(moved[:2]) == limit == 2.0
    with_intercept = subgradient_sensitivity(2, 2.0, n_features=2, fit_intercept=True, **ball)
    assert np.linalg.norm(moved) == pytest.approx(with_intercept, rel=1e-15)
    assert with_intercept == math.sqrt(5.0)


def test_with_flips_more_than_two_radii_are_needed():
    """A flip that passes from one row to another moves both: 2 R / N would be too little noise."""
    w, y = np.array([2.0, 0.0]), np.ones(2)
    ball = {"epsilon": 0.05, "kappa": 0.1, "norm": "linf"}  # N epsilon/kappa = 1: one row flips
    X, X_new = np.array([[[0.3, 0.95], [0.29, -0.95]], [[0.0, 1.0], [0.29, -0.95]]])
    moved = subgradient(X_new, y, w, 0.0, **ball) - subgradient(X, y, w, 0.0, **ball)
    plain = subgradient_sensitivity(2, 1.0, n_features=2, **{**ball, "kappa": np.inf})
    limit = subgradient_sensitivity(2, 1.0, n_features=2, **ball)
    assert plain == 1.0
    assert 1.9 < np.linalg.norm(moved) <= limit == 2.0


# --- the method ---


def test_without_noise_it_is_the_subgradient_method(rng):
    made = clients(rng, fit_intercept=True)
    quiet = PrivateSubgradient(noise_multiplier=0.0, radius=2.0, step_size=0.7)
    left = run_rounds(InProcess(made), quiet, max_rounds=9, tol=0)
    iterates = []

    def keep(record, model):
        iterates.append(model)

    run_rounds(InProcess(made), Subgradient(0.7), max_rounds=9, tol=0, callbacks=[keep])
    weights = np.arange(1, 10) / 45.0  # the t-th iterate counts t times
    np.testing.assert_allclose(left.model, weights @ np.array(iterates), rtol=1e-12, atol=1e-14)


def test_nothing_is_certified_and_nothing_else_leaves(rng):
    inner = InMemory(InProcess(clients(rng)))
    method = PrivateSubgradient(noise_multiplier=1.0, radius=2.0)
    result = run_rounds(inner, method, max_rounds=3, tol=0)
    assert result.objective == result.gap == np.inf
    assert result.lower_bound == 0.0
    assert np.isnan(result.risks).all()
    assert len(inner.rounds) == 3  # no last evaluation
    for _, answers in inner.rounds:
        assert all(set(answer.values) == {"subgradient"} for answer in answers)


@pytest.mark.parametrize("seed", [None, 3])
def test_the_noise_is_normal_and_of_the_stated_size(rng, seed):
    problem = clients(rng, 1, p=6, kappa=np.inf, fit_intercept=True)[0]
    method = PrivateSubgradient(noise_multiplier=1.5, radius=2.0, random_state=seed)
    quiet = PrivateSubgradient(noise_multiplier=0.0, radius=2.0)
    w = rng.normal(size=7)

    def answer(one, t):
        asked = {"points": w[None], "round": np.array(float(t))}
        return one.answer(problem, {}, asked)[1]["subgradient"]

    noise = np.array([answer(method, t) - answer(quiet, t) for t in range(300)]).ravel()
    size = 1.5 * 2.0 * math.sqrt(5.0) / 20
    # By chance this fails once in a million runs where the noise is the system's.
    assert kstest(noise / size, "norm").pvalue > 1e-6


def test_noise_is_drawn_anew_and_only_a_seed_repeats_it(rng):
    made = clients(rng)
    open_, seeded = (
        PrivateSubgradient(noise_multiplier=1.0, radius=2.0, random_state=seed)
        for seed in (None, 5)
    )
    models = [run_rounds(InProcess(made), open_, max_rounds=2, tol=0).model for _ in range(2)]
    assert (models[0] != models[1]).all()
    again = [run_rounds(InProcess(made), seeded, max_rounds=2, tol=0).model for _ in range(2)]
    np.testing.assert_array_equal(*again)
    asked = {"points": np.zeros((1, 4)), "round": np.array(1.0)}
    first, second = (seeded.answer(made[g], {}, asked)[1]["subgradient"] for g in (0, 1))
    quiet = PrivateSubgradient(noise_multiplier=0.0, radius=2.0)
    exact = [quiet.answer(made[g], {}, asked)[1]["subgradient"] for g in (0, 1)]
    assert (first - exact[0] != second - exact[1]).all()  # clients do not share their noise


def test_the_weights_of_the_absent_go_to_the_others(rng):
    made = clients(rng)
    quiet = PrivateSubgradient(noise_multiplier=0.0, radius=2.0)
    away = Absent(InProcess(made), lambda t, name: name == "c2")
    left = run_rounds(away, quiet, max_rounds=5, tol=0, quorum=2)
    right = run_rounds(InProcess(made[:2]), quiet, max_rounds=5, tol=0)
    np.testing.assert_allclose(left.model, right.model, rtol=1e-12)
    nobody = Absent(InProcess(made), lambda t, name: name == "c0")
    result = run_rounds(nobody, quiet, max_rounds=2, tol=0, quorum=2, client_weights=[1, 0, 0])
    assert (result.model == 0.0).all()


def test_longer_rows_are_refused_or_clipped(rng):
    made = clients(rng, radius=2.0)
    short = PrivateSubgradient(noise_multiplier=0.0, radius=1.0)
    with pytest.raises(ClientError, match="no row may be longer than the agreed radius 1"):
        run_rounds(InProcess(made), short, max_rounds=1, tol=0)
    clip = PrivateSubgradient(noise_multiplier=0.0, radius=1.0, outside="clip")
    result = run_rounds(InProcess(made), clip, max_rounds=4, tol=0)
    shrunk = []
    for problem in made:
        X = problem.risk.X
        X = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        shrunk.append(make_client(problem.profile.client_id, X, problem.risk.y))
    expected = run_rounds(InProcess(shrunk), short, max_rounds=4, tol=0)
    np.testing.assert_allclose(result.model, expected.model, rtol=1e-12)


@pytest.mark.parametrize(
    "settings",
    [
        {"support": "unit-box"},
        {"loss": "logistic"},
        {"worst_case": "paper"},
        {"sample_weight": np.arange(1.0, 7.0)},
    ],
)
def test_what_has_no_proved_sensitivity_is_refused(rng, settings):
    problem = make_client("a", rng.random((6, 2)) / 2, np.tile([1.0, -1.0], 3), **settings)
    method = PrivateSubgradient(noise_multiplier=1.0, radius=2.0)
    with pytest.raises(UnsupportedError, match="private-subgradient"):
        method.answer(problem, {}, {"points": np.zeros((1, 2)), "round": np.array(1.0)})


def test_settings_travel_and_are_checked():
    method = PrivateSubgradient(noise_multiplier=2.0, radius=1.5, outside="clip")
    assert from_description(describe(method)) == method
    good = {"noise_multiplier": 1.0, "radius": 1.0}
    for name, wrong in (
        ("noise_multiplier", -1.0),
        ("radius", 0.0),
        ("step_size", 0.0),
        ("step_decay", "1/t^2"),
        ("outside", "ignore"),
        ("random_state", -1),
    ):
        with pytest.raises(InvalidInputError, match=name):
            PrivateSubgradient(**{**good, name: wrong})


# --- accounting ---


def delta_of(epsilon, noise_multiplier, rounds):
    """[composition], Balle and Wang (2018): exact for Gaussian noise."""
    mu = math.sqrt(rounds) / noise_multiplier
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize(
    ("noise_multiplier", "rounds", "delta"),
    [(1.0, 1, 1e-5), (5.0, 10, 1e-5), (20.0, 100, 1e-6), (60.0, 30, 1e-5)],
)
def test_the_budget_spent_is_that_of_the_exact_formula(noise_multiplier, rounds, delta):
    pytest.importorskip("dp_accounting")
    epsilon = epsilon_spent(noise_multiplier, rounds, delta)
    # Never less than the truth, and more only by the accountant's grid of 1e-4.
    assert delta_of(epsilon, noise_multiplier, rounds) <= delta * (1.0 + 1e-6)
    assert delta_of(epsilon - 2e-4, noise_multiplier, rounds) > delta


def test_rounds_compose_as_the_accountant_composes_them():
    accounting = pytest.importorskip("dp_accounting")
    accountant = accounting.pld.PLDAccountant()
    accountant.compose(accounting.GaussianDpEvent(5.0), 10)
    # Ten roundings up of at most 1e-4.
    assert 0.0 <= accountant.get_epsilon(1e-5) - epsilon_spent(5.0, 10, 1e-5) <= 1e-3


@pytest.mark.parametrize(
    ("epsilon", "rounds"),
    [(0.1, 10), (1.0, 30), pytest.param(10.0, 20, marks=pytest.mark.slow)],
)
def test_the_noise_for_a_budget_is_enough_and_not_more(epsilon, rounds):
    pytest.importorskip("dp_accounting")
    noise_multiplier = noise_multiplier_for(epsilon, 1e-5, rounds)
    assert delta_of(epsilon, noise_multiplier, rounds) <= 1e-5 * (1.0 + 1e-6)
    assert epsilon_spent(noise_multiplier, rounds, 1e-5) <= epsilon * (1.0 + 1e-3)
    assert delta_of(epsilon, 0.99 * noise_multiplier, rounds) > 1e-5


def test_bad_budgets_are_named():
    pytest.importorskip("dp_accounting")
    with pytest.raises(InvalidInputError, match="delta"):
        epsilon_spent(1.0, 1, 1.0)
    with pytest.raises(InvalidInputError, match="rounds"):
        noise_multiplier_for(1.0, 1e-5, 0)
    for too_little in (0.0, 0.04, 0.4):
        with pytest.raises(InvalidInputError, match="noise_multiplier"):
            epsilon_spent(too_little, 100, 1e-5)


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dp_accounting", None)
    with pytest.raises(UnsupportedError, match=r"fdr-svm\[privacy\]"):
        epsilon_spent(1.0, 1, 1e-5)
