"""Every method against the whole problem written out as one program, and against itself."""

import itertools
from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from fdrsvm import worst_case_risk
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import ADMM, Bundle, Subgradient
from fdrsvm.federated.rounds import Stop
from fdrsvm.solvers import solve_central
from tests.federated.cases import (
    CERTIFYING,
    DUAL_ORDER,
    METHODS,
    NORMS,
    Client,
    Recorded,
    blobs,
    problems,
    random_clients,
    train,
)
from tests.federated.reference import reference_optimum

ROUNDING = 1e-12
TOL = 1e-6
BUNDLES = {"per-client": Bundle(), "summed": Bundle(cuts="summed")}


def true_objective(clients, alphas, model):
    """sum_g alpha_g f_g by the public function, which is checked apart."""
    total = 0.0
    for client, alpha in zip(clients, alphas, strict=True):
        w, b = client.split(model)
        exact = {**client.ball, "worst_case": "exact"}
        total += alpha * worst_case_risk(w, client.X, client.y, intercept=b, **exact).value
    return total


def is_bounded(clients, alphas):
    """Whether the objective grows with ||w||, so that bounds hold for every model."""
    return any(
        c.box is None and c.epsilon > 0.0 and a > 0.0 for c, a in zip(clients, alphas, strict=True)
    )


def truth_of(clients, alphas):
    """The reference optimum, and how far the shortest bound reaches with the optimum within it."""
    optimum = reference_optimum(clients, alphas)
    if is_bounded(clients, alphas):
        return optimum, np.inf, optimum.high
    return optimum, 10.0, reference_optimum(clients, alphas, radius=10.0).high


@lru_cache(maxsize=256)
def drawn(seed, boxed=None):
    """A random federation and its truth, shared by all methods."""
    clients, alphas = random_clients(seed, boxed=boxed)
    return clients, alphas, truth_of(clients, alphas)


def draw_for(method, seed):
    found = drawn(seed)
    is_boxed = found[0][0].box is not None
    return drawn(seed, boxed=False) if is_boxed and method.startswith("admm") else found


def assert_certified(clients, alphas, result, truth=None):
    """lower bound <= true optimum <= objective in every record, and the end is what it says."""
    optimum, reach, highest = truth_of(clients, alphas) if truth is None else truth
    for record in result.history:
        assert record.lower_bound <= highest + ROUNDING * (1.0 + highest), record.round
        assert record.objective >= optimum.low, record.round
        assert record.gap >= 0.0
    assert result.lower_bound <= highest + ROUNDING * (1.0 + highest)
    assert result.bound_radius >= reach
    bounds = [record.lower_bound for record in result.history] + [result.lower_bound]
    objectives = [record.objective for record in result.history] + [result.objective]
    if reach == np.inf:  # a bound that does not reach the best model any more may be taken back
        assert bounds == sorted(bounds)
    assert objectives == sorted(objectives, reverse=True)
    if result.objective == np.inf:
        return
    truth = true_objective(clients, alphas, result.model)
    assert_allclose(result.objective, truth, rtol=ROUNDING, atol=ROUNDING)
    assert_allclose(result.risks @ alphas, result.objective, rtol=ROUNDING, atol=ROUNDING)
    excess = max(result.objective - result.lower_bound, 0.0)
    assert result.gap == (excess / result.objective if result.objective > 1e-12 else 0.0)
    w = result.model[: clients[0].X.shape[1]]
    size = np.linalg.norm(w, DUAL_ORDER[clients[0].norm])
    assert 10.0 * size <= result.bound_radius * (1.0 + ROUNDING)


@pytest.mark.parametrize("method", BUNDLES)
@pytest.mark.parametrize(
    ("norm", "fit_intercept", "boxed"),
    list(itertools.product(NORMS, (False, True), (False, True))),
)
def test_the_bundle_finds_the_reference_optimum_within_its_gap(method, norm, fit_intercept, boxed):
    for seed in range(3):
        clients, alphas = random_clients(
            1000 + seed,
            n_clients=3,
            norm=norm,
            fit_intercept=fit_intercept,
            boxed=boxed,
            kind="plain",
        )
        result = train(clients, BUNDLES[method], alphas=alphas, tol=TOL, max_rounds=400)
        assert result.reason is Stop.TOL
        assert result.gap <= TOL
        assert_certified(clients, alphas, result)
        optimum = reference_optimum(clients, alphas)
        reached = true_objective(clients, alphas, result.model)
        assert optimum.low <= reached <= optimum.high + TOL * reached


@pytest.mark.parametrize("method", CERTIFYING)
@pytest.mark.parametrize("block", range(2))
def test_no_bound_ever_passes_the_optimum(method, block):
    for seed in range(25 * block, 25 * block + 25):
        clients, alphas, truth = draw_for(method, seed)
        result = train(clients, METHODS[method], alphas=alphas, tol=TOL, max_rounds=20)
        assert_certified(clients, alphas, result, truth)


@pytest.mark.slow
@pytest.mark.parametrize("method", CERTIFYING)
@pytest.mark.parametrize("block", range(10))
def test_no_bound_ever_passes_the_optimum_at_length(method, block):
    for seed in range(10_000 + 100 * block, 10_100 + 100 * block):
        clients, alphas, truth = draw_for(method, seed)
        result = train(clients, METHODS[method], alphas=alphas, tol=1e-9, max_rounds=60)
        assert_certified(clients, alphas, result, truth)


@pytest.mark.parametrize("method", ["bundle", "summed", "subgradient"])
def test_training_on_the_papers_worst_case_is_certified_for_the_exact_one(method):
    for seed in range(40):
        clients, alphas = random_clients(500 + seed)
        clients = [client.with_(worst_case="paper") for client in clients]
        result = train(clients, METHODS[method], alphas=alphas, tol=TOL, max_rounds=15)
        assert_certified(clients, alphas, result)


@st.composite
def round_federations(draw):
    """Round numbers, which Hypothesis likes, and therefore ties."""
    n_features = draw(st.integers(1, 3))
    norm = draw(st.sampled_from(NORMS))
    fit_intercept = draw(st.booleans())
    unit = st.integers(0, 4).map(lambda k: k / 4)
    box = (np.zeros(n_features), np.ones(n_features)) if draw(st.booleans()) else None
    clients = []
    for _ in range(draw(st.integers(1, 3))):
        n = draw(st.integers(1, 4))
        rows = st.lists(unit, min_size=n_features, max_size=n_features)
        clients.append(
            Client(
                X=np.array(draw(st.lists(rows, min_size=n, max_size=n))),
                y=np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n))),
                epsilon=draw(st.sampled_from([0.0, 0.125, 0.25, 1.0])),
                kappa=draw(st.sampled_from([0.25, 0.5, 1.0, np.inf])),
                norm=norm,
                fit_intercept=fit_intercept,
                box=box,
            )
        )
    weights = draw(st.lists(st.integers(0, 3), min_size=len(clients), max_size=len(clients)))
    alphas = np.array(weights, dtype=float) if any(weights) else np.ones(len(clients))
    return clients, alphas / alphas.sum()


@settings(max_examples=120)
@given(round_federations(), st.sampled_from(CERTIFYING))
def test_no_bound_passes_the_optimum_where_everything_ties(federation, method):
    clients, alphas = federation
    if method.startswith("admm"):
        clients = [client.with_(box=None) for client in clients]
    result = train(clients, METHODS[method], alphas=alphas, tol=TOL, max_rounds=12)
    assert_certified(clients, alphas, result)


@pytest.mark.parametrize("method", CERTIFYING)
def test_where_nothing_bounds_w_the_bound_reaches_past_the_model(method):
    """Small features and epsilon = 0: good models are long, so early bounds do not reach them."""
    for norm in NORMS:
        rng = np.random.default_rng(5)
        X = 0.02 * rng.normal(size=(20, 2))
        clients = [Client(X, np.sign(X[:, 0]), epsilon=0.0, norm=norm)]
        algorithm = METHODS[method]
        if method == "subgradient":
            algorithm = Subgradient(step_size=2000.0)
        elif method.startswith("admm"):
            algorithm = type(algorithm)(rho=1e-6)
        result = train(clients, algorithm, tol=1e-3, max_rounds=200)
        assert_certified(clients, np.ones(1), result)
        # A gap is a promise about models up to the radius: with the optimum inside, it must hold.
        best = reference_optimum(clients, np.ones(1), radius=result.bound_radius)
        assert result.objective * (1.0 - result.gap) <= best.high


@pytest.mark.parametrize("method", ["bundle", "summed"])
def test_intercept_slopes_of_pure_rounding_lead_nowhere(method):
    """w = 0 is optimal, so cuts balance the classes and their slope in b is some 1e-17.

    Nobody may follow that slope to b = -1e15, and no cut made there may lie above the risk.
    """
    cases = [random_clients(10395)]
    for seed, norm in itertools.product(range(8), NORMS):
        rng = np.random.default_rng(seed)
        ball = {"epsilon": 0.6, "norm": norm, "fit_intercept": True}
        clients = [
            Client(rng.normal(size=(n, 2)), rng.choice([-1.0, 1.0], size=n), **ball)
            for n in (10, 7)
        ]
        cases.append((clients, np.array([0.7, 0.3])))
    for clients, alphas in cases:
        transport = Recorded(InProcess(problems(clients)))
        result = train(
            clients,
            METHODS[method],
            transport=transport,
            alphas=alphas,
            tol=1e-9,
            max_rounds=30,
        )
        assert_certified(clients, alphas, result)
        for broadcasts, _ in transport.rounds:
            assert np.abs(broadcasts[0].values["points"]).max(initial=0.0) < 1e6


@pytest.mark.parametrize("method", ["bundle", "summed"])
def test_feature_slopes_of_pure_rounding_lead_nowhere_either(method):
    """One class on a box: far out the risk is flat, its slopes are some 1e-20.

    The flat cut alone proves the optimum, so a small gap must be reached.
    """
    clients, alphas = random_clients(10904)
    transport = Recorded(InProcess(problems(clients)))
    result = train(
        clients, METHODS[method], transport=transport, alphas=alphas, tol=TOL, max_rounds=60
    )
    assert_certified(clients, alphas, result)
    assert result.reason is Stop.TOL
    for broadcasts, _ in transport.rounds:
        assert np.abs(broadcasts[0].values["points"]).max(initial=0.0) < 1e6


@pytest.mark.parametrize("scale", [1e-4, 1e4])
@pytest.mark.parametrize("method", CERTIFYING)
def test_bounds_hold_whatever_the_unit_of_the_features(method, scale):
    for norm in NORMS:
        plain, alphas = random_clients(3, n_clients=2, norm=norm, boxed=False, kind="plain")
        # The same problem in another unit: the radius and the price of a label go with it.
        clients = [
            c.with_(X=c.X * scale, epsilon=c.epsilon * scale, kappa=c.kappa * scale) for c in plain
        ]
        result = train(clients, METHODS[method], alphas=alphas, tol=TOL, max_rounds=20)
        optimum = reference_optimum(plain, alphas)
        for record in result.history:
            assert record.lower_bound <= optimum.high + ROUNDING
            assert record.objective >= optimum.low


@pytest.mark.parametrize(("norm", "fit_intercept"), list(itertools.product(NORMS, (False, True))))
@pytest.mark.parametrize("method", ["per-client", "summed", "admm"])
def test_one_client_is_the_central_problem(method, norm, fit_intercept):
    (client,) = blobs(1, norm=norm, fit_intercept=fit_intercept, kappa=0.8)
    central = solve_central(client.X, client.y, **client.local)
    algorithm = BUNDLES.get(method, ADMM(rho=0.2))
    tol = 1e-4 if method == "admm" else TOL
    result = train([client], algorithm, tol=tol, max_rounds=600)
    assert result.reason is Stop.TOL
    # Both certify their own gap, so the two objectives differ by no more than the larger one.
    assert result.objective >= central.objective - central.gap - ROUNDING
    assert result.lower_bound <= central.objective + ROUNDING
    assert result.objective <= central.objective / (1.0 - tol) + ROUNDING


@pytest.mark.parametrize("method", ["bundle", "summed", "admm", "admm-sc", "subgradient"])
def test_the_order_of_clients_does_not_matter(method):
    """SM and ADMM: sums of the same numbers in another order. The bundle: within the gaps."""
    for norm in NORMS:
        clients, alphas = random_clients(
            77, n_clients=4, norm=norm, boxed=False, kind="plain", fit_intercept=True
        )
        order = np.array([2, 0, 3, 1])
        limits = {"tol": TOL, "max_rounds": 150 if method in ("bundle", "summed") else 30}
        straight = train(clients, METHODS[method], alphas=alphas, **limits)
        turned = train([clients[g] for g in order], METHODS[method], alphas=alphas[order], **limits)
        for left, right in ((straight, turned), (turned, straight)):
            assert left.lower_bound <= right.objective * (1.0 + ROUNDING)
        if method in ("bundle", "summed"):
            assert straight.reason is turned.reason is Stop.TOL
            assert_allclose(straight.objective, turned.objective, rtol=1.01 * TOL)
            continue
        # Thirty contractive steps of some rounding error each.
        assert_allclose(turned.newest, straight.newest, rtol=1e-8, atol=1e-8)
        assert_allclose(turned.objective, straight.objective, rtol=1e-8)
        assert_allclose(turned.risks, straight.risks[order], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("method", ["bundle", "summed", "admm", "subgradient"])
def test_two_copies_with_half_the_weight_each_are_one_client(method):
    for norm in NORMS:
        clients, alphas = random_clients(
            88, n_clients=2, norm=norm, boxed=False, kind="plain", fit_intercept=False
        )
        doubled, halves = [*clients, clients[0]], np.append(alphas, alphas[0] / 2)
        halves[0] /= 2
        single = train(clients, METHODS[method], alphas=alphas, tol=TOL, max_rounds=60)
        double = train(doubled, METHODS[method], alphas=halves, tol=TOL, max_rounds=60)
        optimum = reference_optimum(clients, alphas)
        for result in (single, double):
            assert result.lower_bound <= optimum.high
            assert result.objective >= optimum.low
        if method in ("bundle", "summed"):
            assert single.reason is double.reason is Stop.TOL
            assert_allclose(double.objective, single.objective, rtol=1.01 * TOL)
        else:  # every round is the same, up to the order of sums
            assert_allclose(double.newest, single.newest, rtol=1e-8, atol=1e-8)
            assert_allclose(double.risks[[0, 1]], single.risks, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("method", ["bundle", "summed", "admm", "subgradient"])
def test_a_client_without_weight_changes_nothing(method):
    clients, alphas = random_clients(99, n_clients=3, norm="linf", boxed=False, kind="plain")
    stranger = clients[0].with_(y=-clients[0].y, epsilon=2.0)
    with_it = train(
        [*clients, stranger], METHODS[method], alphas=np.append(alphas, 0.0), tol=TOL, max_rounds=60
    )
    without = train(clients, METHODS[method], alphas=alphas, tol=TOL, max_rounds=60)
    assert_certified([*clients, stranger], np.append(alphas, 0.0), with_it)
    if method in ("bundle", "summed"):
        assert with_it.reason is without.reason is Stop.TOL
        assert_allclose(with_it.objective, without.objective, rtol=1.01 * TOL)
    else:
        assert_allclose(with_it.newest, without.newest, rtol=1e-8, atol=1e-8)
        assert_allclose(with_it.lower_bound, without.lower_bound, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("method", CERTIFYING)
def test_only_the_ratio_of_weights_counts(method):
    clients = blobs(3)
    weights = np.array([1.0, 2.0, 5.0])
    small = train(clients, METHODS[method], alphas=weights, max_rounds=12)
    for factor in (2.0**40, 2.0**-40):
        large = train(clients, METHODS[method], alphas=factor * weights, max_rounds=12)
        np.testing.assert_array_equal(small.newest, large.newest)
        assert small.objective == large.objective
        assert small.lower_bound == large.lower_bound


def test_weights_decide_the_optimum():
    """Guards the tests above: with other weights the answer is another one."""
    clients = blobs(2)
    near, far = (
        train(clients, Bundle(), alphas=np.array([a, 1.0 - a]), tol=TOL) for a in (0.9, 0.1)
    )
    assert abs(near.objective - far.objective) > 0.01


@pytest.mark.parametrize("rho", [0.02, 0.5])
def test_relaxed_and_balanced_admm_still_find_the_reference_optimum(rho):
    clients, alphas = random_clients(12, n_clients=3, norm="linf", boxed=False, kind="plain")
    optimum = reference_optimum(clients, alphas)
    for algorithm in (
        ADMM(rho=rho),
        ADMM(rho=rho, relaxation=1.7),
        ADMM(rho=rho, relaxation=0.6),
        ADMM(rho=rho, balance=True),
        ADMM(rho=rho, relaxation=1.5, balance=True),
    ):
        result = train(clients, algorithm, alphas=alphas, tol=1e-3, max_rounds=2000)
        assert result.reason is Stop.TOL, algorithm
        assert optimum.low <= result.objective <= optimum.high / (1.0 - 1e-3)


def test_the_subgradient_method_nears_the_reference_optimum():
    clients = blobs(3)
    alphas = np.array([0.5, 0.3, 0.2])
    optimum = reference_optimum(clients, alphas)
    result = train(clients, Subgradient(step_size=0.5), alphas=alphas, tol=0.0, max_rounds=1500)
    assert optimum.low <= result.objective
    assert result.objective - optimum.high <= result.gap * result.objective
    # gamma/sqrt(t) steps: the best of T iterates is within (R^2 + gamma^2 L^2 ln(T)) / (gamma
    # sqrt(T)) of the optimum, R its distance from the start and L the largest subgradient.
    R2, L2 = optimum.w @ optimum.w, max(np.sum(c.X**2, axis=1).max() for c in clients) + 1.0
    bound = (R2 + 0.25 * L2 * (1.0 + np.log(1500))) / (2.0 * 0.5 * (np.sqrt(1501) - 1.0))
    assert result.objective <= optimum.high + bound
