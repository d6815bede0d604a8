"""Blurred cuts lie below the risk everywhere, and near the touching cut where they were made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdrsvm.errors import InvalidInputError, UnsupportedError
from fdrsvm.federated import Bundle, InProcess, make_client, run_rounds
from fdrsvm.risk.blurred_cuts import blurred_cut, blurred_shares
from fdrsvm.risk.worst_case import RiskOracle
from fdrsvm.solvers import solve_central

ORDER = {"linf": 1, "l2": 2, "l1": np.inf}


def random_oracle(rng):
    n, p = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, p)) * rng.choice([0.1, 1.0, 10.0])
    if rng.random() < 0.3:
        X = X[rng.integers(0, n, size=n)]
    norm = str(rng.choice(list(ORDER)))
    weight = rng.random(n) + 0.01 if rng.random() < 0.4 else None
    epsilon, kappa = rng.choice([0.0, 1e-3, 0.05, 0.5]), rng.choice([0.1, 1.0, np.inf])
    y = rng.choice([-1.0, 1.0], size=n)
    oracle = RiskOracle(X, y, epsilon=epsilon, kappa=kappa, norm=norm, sample_weight=weight)
    return oracle, ORDER[norm]


def value_of(cut, u, b, order):
    return cut.constant + cut.slope @ np.append(u, b) + cut.norm_weight * np.linalg.norm(u, order)


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_a_blurred_cut_is_below_the_risk_everywhere(seed, blur):
    rng = np.random.default_rng(seed)
    oracle, order = random_oracle(rng)
    w, b = rng.normal(size=oracle.X.shape[1]), float(rng.normal())
    cut = blurred_cut(oracle, w, b, blur)
    assert cut.norm_weight >= 0.0
    for scale in (0.0, 0.1, 1.0, 10.0):
        u, c = scale * rng.normal(size=w.size), scale * float(rng.normal())
        risk = oracle.value(u, c)
        assert value_of(cut, u, c, order) <= risk + 1e-12 * (1.0 + risk)


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_it_is_near_the_touching_cut_where_it_was_made(seed, blur):
    rng = np.random.default_rng(seed)
    oracle, order = random_oracle(rng)
    w, b = rng.normal(size=oracle.X.shape[1]), float(rng.normal())
    risk, _ = oracle.cut(w, b)
    slacks = 1.0 - oracle.y * (oracle.X @ w + b)
    shares = blurred_shares(slacks, blur)
    inside = (shares > 0.0) & (shares < 1.0)
    distances = np.unique(np.abs(slacks))
    width = distances[min(blur, distances.size - 1)]
    lost = risk.value - value_of(blurred_cut(oracle, w, b, blur), w, b, order)
    rounding = 1e-12 * (1.0 + risk.value)
    assert -rounding <= lost <= width / 8.0 * oracle.mass[inside].sum() + rounding


def test_so_many_different_rows_count_by_a_fraction(rng):
    slacks = rng.normal(size=50)
    for blur in (1, 3, 10, 49):
        shares = blurred_shares(slacks, blur)
        assert np.count_nonzero((shares > 0.0) & (shares < 1.0)) == blur
        assert (np.diff(shares[np.argsort(slacks)]) >= 0.0).all()
    twice = blurred_shares(np.repeat(slacks, 2), 3)
    assert np.count_nonzero((twice > 0.0) & (twice < 1.0)) == 6
    assert (blurred_shares(np.ones(4), 2) == 1.0).all()  # the zero model: nothing to hide
    assert (blurred_shares(np.zeros(4), 2) == 0.5).all()


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_bundle_on_blurred_cuts_proves_a_true_bound(rng, fit_intercept):
    X, y = rng.random((60, 3)), rng.choice([-1.0, 1.0], size=60)
    clients = [
        make_client(str(g), X[g::3], y[g::3], epsilon=0.01, fit_intercept=fit_intercept, blur=2)
        for g in range(3)
    ]
    method = Bundle(cuts="summed")
    result = run_rounds(InProcess(clients), method, max_rounds=15, tol=0.0)
    # Equal clients with equal radii: the federation's optimum is at most the pooled problem's.
    best = solve_central(X, y, epsilon=0.01, kappa=1.0, fit_intercept=fit_intercept)
    assert result.lower_bound <= min(result.objective, best.objective + 1e-6)
    assert 0.0 < result.gap < 0.3


def test_bad_settings_are_named(rng):
    X, y = rng.random((6, 2)), np.tile([-1.0, 1.0], 3)
    with pytest.raises(InvalidInputError, match="blur"):
        make_client("a", X, y, blur=-1)
    for settings in ({"support": "unit-box"}, {"loss": "logistic"}, {"worst_case": "paper"}):
        with pytest.raises(UnsupportedError, match="blur"):
            make_client("a", X, y, blur=1, **settings)
