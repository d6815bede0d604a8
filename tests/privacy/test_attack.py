"""Rows are recovered from differences of cuts, and the formulas behind that hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from fdrsvm import AdditiveMap
from fdrsvm.federated import ADMM, Bundle, InProcess, make_client
from fdrsvm.federated.methods import FedAvg, Subgradient
from fdrsvm.federated.problem import evaluate
from fdrsvm.privacy.attack import KnownRows, _is_within_moments, recover_rows
from fdrsvm.privacy.leak_trial import run_and_audit
from fdrsvm.privacy.observations import Observations, observe
from fdrsvm.privacy.pieces import common_directions, spans_of
from fdrsvm.risk.feature_maps import make_features
from fdrsvm.risk.worst_case import RiskOracle
from tests.federated.cases import Recorded as InMemory
from tests.federated.cases import blobs, problems, train
from tests.privacy.cases import breast_cancer


def observations(X, y, points, *, fit_intercept=False, **ball):
    """A client's cuts at some models, as a server sees them."""
    ball = {"epsilon": 0.01, "kappa": np.inf, **ball}
    problem = make_client("a", X, y, fit_intercept=fit_intercept, **ball)
    found = evaluate(problem, points)
    return Observations(
        states=np.column_stack([-found["slopes"], found["constants"]]),
        points=points,
        are_whole=np.ones(len(points), dtype=bool),
        masses=np.array([1.0 / len(y)]),
        fit_intercept=fit_intercept,
    )


def found_rows(claims):
    return sorted(tuple(np.round(row, 9)) for row in claims.rows)


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_a_cut_is_a_sum_over_rows_with_shares(seed):
    """[row-difference], by a linear program over the shares."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    X, y = rng.normal(size=(n, p)), rng.choice([-1.0, 1.0], size=n)
    epsilon, kappa = float(rng.choice([0.01, 0.2, 1.0])), float(rng.choice([0.3, 1.0, np.inf]))
    oracle = RiskOracle(X, y, epsilon=epsilon, kappa=kappa)
    w, b = rng.normal(size=p), float(rng.normal())
    _, cut = oracle.cut(w, b)
    signed = y[:, None] * np.column_stack([X, np.ones(n)])
    kept, flipped = np.column_stack([signed, np.ones(n)]), np.column_stack([-signed, np.ones(n)])
    state = np.append(-cut.slope, cut.constant)
    shares = linprog(
        np.zeros(2 * n),
        A_ub=np.hstack([np.eye(n), np.eye(n)]),
        b_ub=np.ones(n),
        A_eq=np.vstack([kept, flipped]).T / n,
        b_eq=state,
        bounds=(0.0, 1.0),
    )
    assert shares.status == 0
    if kappa == np.inf:
        active = (signed @ np.append(w, b) < 1.0).astype(float)
        np.testing.assert_allclose(state, active @ kept / n, atol=1e-14 * (1 + np.abs(X).max()))


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_row_that_tells_two_models_apart_is_found(rng, fit_intercept):
    X, y = rng.random((12, 5)), np.tile([-1.0, 1.0], 6)
    w, b = rng.normal(size=5), 0.3 if fit_intercept else 0.0
    margins = y * (X @ w + b)
    order = np.argsort(margins)[::-1]
    margins, between = margins[order], 1.0
    # Two lengths of the same model, between which the row of the largest margin becomes active.
    lengths = [between / margins[0] * 1.001, (between / margins[0]) * 0.999]
    assert margins[0] > 1.1 * margins[1]
    full = np.append(w, b) if fit_intercept else w
    points = np.array([length * full for length in lengths])
    claims = recover_rows(
        observations(X, y, points, fit_intercept=fit_intercept), (0.0, 1.0)
    ).from_all
    np.testing.assert_allclose(claims.rows, X[order[:1]], atol=1e-12)
    assert claims.labels.tolist() == [y[order[0]]]


def test_without_limits_or_intercept_the_label_stays_open():
    X, y = np.array([[0.2, 0.9], [0.4, 0.1]]), np.array([-1.0, 1.0])
    points = np.array([[0.0, 0.0], [0.0, -2.0]])  # the second leaves row 0 alone inactive
    claims = recover_rows(observations(X, y, points)).from_all
    np.testing.assert_allclose(claims.rows, [-X[0]], atol=1e-12)
    assert claims.labels.tolist() == [0.0]


def test_known_rows_are_peeled_off_to_find_others():
    """Rows 0 and 3 change together in the last two models; row 0 alone in the first two."""
    X, y = np.eye(4), np.ones(4)
    on, off = 0.5, 2.0
    points = np.array(
        [[on, on, off, off], [off, on, off, off], [on, off, on, on], [off, off, on, off]]
    )
    claims = recover_rows(observations(X, y, points), (0.0, 1.0)).from_all
    assert found_rows(claims) == found_rows(claims._replace(rows=X[[3, 0]]))
    assert claims.labels.tolist() == [1.0, 1.0]
    last_two = recover_rows(observations(X, y, points[2:]), (0.0, 1.0)).from_all
    assert len(last_two.rows) == 0


def test_a_row_flipped_in_part_is_found_with_its_fraction(rng):
    """N epsilon/kappa = 0.4 of the best classified row is flipped, [flips]: c is 0.4/N."""
    X, y = rng.random((10, 3)), np.ones(10)
    X[3] = 3.0 * X[3] / X[3].sum()  # its margin is the largest by far
    w = np.full(3, 0.9)  # ||w||_* = 0.9 for l1, below what flipping gains
    ball = {"epsilon": 0.04, "kappa": 1.0, "norm": "l1"}
    assert RiskOracle(X, y, **ball)(w).multiplier > 0.9
    flipped = observations(X, y, w[None], **ball)
    kept = observations(X, y, w[None], epsilon=0.0, kappa=np.inf, norm="l1")
    difference = (flipped.states[0] - kept.states[0]) * 10
    np.testing.assert_allclose(difference, 0.4 * np.append(-X[3], 1.0), atol=1e-14)


def test_one_unchanging_model_gives_nothing(rng):
    X, y = rng.random((8, 3)), np.tile([-1.0, 1.0], 4)
    seen = observations(X, y, np.tile(rng.normal(size=3), (5, 1)))
    assert recover_rows(seen, (0.0, 1.0)).from_all.rows.shape == (0, 3)
    assert recover_rows(observations(X, y, np.ones((1, 3)))).from_all.rows.shape == (0, 3)


@pytest.mark.parametrize("relaxation", [1.0, 1.6])
@pytest.mark.parametrize("balance", [False, True])
def test_the_server_of_admm_knows_every_local_solution(relaxation, balance):
    """From the vectors alone; and rho (centre - w_g) is the subgradient there."""
    clients = blobs(3, norm="l2")
    inner = InMemory(InProcess(problems(clients)))
    method = ADMM(rho=0.05, relaxation=relaxation, balance=balance, solver_tol=1e-12)
    locals_, duals = [], []

    class Watched:
        def join(self):
            return inner.join()

        def exchange(self, broadcasts, deadline):
            answers = inner.exchange(broadcasts, deadline)
            memory = inner.inner.memories["client-1"].values
            locals_.append(memory["local"])
            duals.append(memory["mu"])
            return answers

    train(clients, method, transport=Watched(), max_rounds=6, tol=0)
    pairs = [(asked[1], got[1]) for asked, got in inner.rounds[:-1]]
    profile = inner.join()[1]
    (seen,) = observe(pairs, profile, np.array([1.0 / profile.n_samples]))
    np.testing.assert_allclose(seen.points, locals_[:-1], atol=1e-12)
    for (asked, got), local, dual in zip(pairs, locals_, duals, strict=False):
        rho, centre = float(asked.values["rho"]), asked.values["points"][0] - dual
        of_norm = local / np.linalg.norm(local)
        slope = got.values["slopes"][0] + got.values["norm_weights"][0] * of_norm
        # A gap of 1e-12 (relative, of a value below 10) leaves sqrt(2 gap / rho) in w_g.
        apart = rho * np.sqrt(2e-11 / rho)
        np.testing.assert_allclose(rho * (centre - local), slope, atol=2.0 * apart)


def test_baselines_leak_in_the_same_way(rng):
    X = rng.random((30, 4))
    y = np.where(X @ np.ones(4) + 0.3 * rng.normal(size=30) > 2.0, 1.0, -1.0)
    problem = make_client("client", X, y)
    inner = InMemory(InProcess([problem]))
    train([], FedAvg(random_state=0), transport=inner, max_rounds=60, tol=0)
    pairs = [(asked[0], got[0]) for asked, got in inner.rounds]
    (seen,) = observe(pairs, problem.profile, np.array([1.0 / 30]))
    claims = recover_rows(seen, (0.0, 1.0)).from_all
    nearest = np.abs(claims.rows[:, None] - X).max(axis=2).min(axis=1)
    assert (nearest < 1e-9).sum() >= 3


def test_plain_subgradients_give_a_third_of_the_rows_away():
    """The figure to be reached: 30 to 36 % in 300 rounds."""
    audits = run_and_audit(breast_cancer(4), Subgradient(), rounds=300, limits=(0.0, 1.0))
    assert audits.of_clients.share >= 0.30
    assert audits.of_clients.precision >= 0.95
    assert audits.of_sums.n_recovered > 0  # sums alone are no defence


def test_fractions_hide_no_row_from_spans(rng):
    """Random shares of rows 0, 1, 2 in one stretch of a run and of 2, 3, 4 in the next."""
    X, y = rng.random((40, 8)), rng.choice([-1.0, 1.0], size=40)
    signed = np.column_stack([y[:, None] * X, np.ones(40)])
    shares = np.tile(rng.integers(0, 2, size=40).astype(float), (12, 1))
    shares[:6, :3], shares[6:, 2:5] = rng.random((6, 3)), rng.random((6, 3))
    directions = common_directions(shares @ signed / 40)
    apart = np.abs(directions - signed[2, :-1]).max(axis=1)
    assert (apart < 1e-6).any()
    for other in (0, 1, 3, 4):
        assert np.abs(directions - signed[other, :-1]).max(axis=1).min() > 1e-3


def test_more_blurred_rows_than_numbers_leave_no_span(rng):
    signed = np.column_stack([rng.normal(size=(40, 8)), np.ones(40)])
    for n_blurred, has_spans in ((4, True), (9, False)):
        shares = np.ones((30, 40))
        shares[:, :n_blurred] = rng.random((30, n_blurred))
        assert (len(spans_of(np.diff(shares @ signed / 40, axis=0))) > 0) == has_spans


def test_rows_that_are_known_are_taken_out_to_find_the_others():
    """Rows 0 and 3 change together; whoever has row 0 sees row 3, and claims it alone."""
    X, y = np.eye(4), np.ones(4)
    on, off = 0.5, 2.0
    seen = observations(X, y, np.array([[on, off, on, on], [off, off, on, off]]))
    assert len(recover_rows(seen, (0.0, 1.0)).from_all.rows) == 0
    known = KnownRows(X[:1], np.array([0.25]))
    claims = recover_rows(seen, (0.0, 1.0), known=known).from_all
    np.testing.assert_allclose(claims.rows, X[3:], atol=1e-12)
    assert claims.labels.tolist() == [1.0]


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_grid_on_constants_alone_hides_no_row(rng, fit_intercept):
    """A whole row's mass is told from constants that are off by less than it, and divided by."""
    X, y = rng.random((12, 5)), np.tile([-1.0, 1.0], 6)
    w, b = rng.normal(size=5), 0.3 if fit_intercept else 0.0
    margins = y * (X @ w + b)
    largest = int(np.argmax(margins))
    full = np.append(w, b) if fit_intercept else w
    points = np.array([full / margins[largest] * length for length in (1.001, 0.999)])
    seen = observations(X, y, points, fit_intercept=fit_intercept)
    grid = 0.03  # a row weighs 1/12
    states = seen.states.copy()
    states[:, -1] = np.floor(states[:, -1] / grid) * grid
    assert abs(abs(states[1, -1] - states[0, -1]) - 1.0 / 12.0) > 1e-3
    rounded = replace(seen, states=states, resolution=grid)
    claims = recover_rows(rounded, (0.0, 1.0)).from_cuts
    np.testing.assert_allclose(claims.rows, X[[largest]], atol=1e-12)


# --- second moments ---


@settings(max_examples=50)
@given(st.integers(0, 10**6))
def test_no_row_has_a_larger_part_in_second_moments_than_all_have_together(seed):
    """[moments-row], against the least eigenvalue of what is left without a row."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    Z = rng.normal(size=(n, p)) @ rng.normal(size=(p, p))
    seen = replace(observations(Z, np.ones(n), np.zeros((1, p))), moments=Z.T @ Z / n)
    assert _is_within_moments(Z, seen).all()
    others = Z * rng.uniform(0.1, 3.0, (n, 1)) + rng.normal(size=(n, p))
    for row, fits in zip(others, _is_within_moments(others, seen), strict=True):
        least = np.linalg.eigvalsh(seen.moments - np.outer(row, row) / n)[0]
        size = np.trace(seen.moments)
        if abs(least) > 1e-2 * size:  # nearer to 0 rounding and the slack of a thousandth decide
            assert fits == (least > 0.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("features", ["linear", AdditiveMap(n_knots=2)])
def test_who_knows_all_rows_but_one_has_the_last_from_second_moments(features, fit_intercept, rng):
    """One question and a blurred cut say nothing of it; exact sums of all rows do."""
    X, y = rng.random((40, 3)), rng.choice([-1.0, 1.0], 40)
    placed = make_features(features, 3, None)
    Z = X if placed is None else placed.apply(X)
    problem = make_client("a", Z, y, fit_intercept=fit_intercept, blur=3, moments=True)
    transport = InMemory(InProcess([problem]))
    train([], Bundle(metric="second-moments"), transport=transport, max_rounds=1, tol=0.0)
    exchanges = [pair for each in transport.rounds for pair in zip(*each, strict=True)]
    (seen,) = observe(exchanges, problem.profile, np.array([1.0 / 40]))
    rows = np.column_stack([Z, np.ones(40)]) if fit_intercept else Z
    known = KnownRows((y[:, None] * rows)[1:], np.full(39, 1.0 / 40))
    found = recover_rows(seen, (0.0, 1.0), known=known, features=placed)
    assert len(found.from_cuts.rows) == 0
    np.testing.assert_allclose(np.abs(found.from_all.rows), X[:1], atol=1e-6)
    without = recover_rows(replace(seen, moments=None), (0.0, 1.0), known=known, features=placed)
    assert len(without.from_all.rows) == 0
    all_known = KnownRows(y[:, None] * rows, np.full(40, 1.0 / 40))
    assert len(recover_rows(seen, known=all_known, features=placed).from_all.rows) == 0
