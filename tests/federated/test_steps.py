"""SM and ADMM follow their definitions, step by step, in what really passes the wire."""

import itertools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fdrsvm import ConvergenceWarning, RiskOracle, worst_case_risk
from fdrsvm.core.vectors import dual_norm_subgradient
from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import ADMM, ADMMSC, Bundle, Subgradient
from fdrsvm.federated.methods.admm import smallest_tau
from fdrsvm.federated.rounds import Stop, run_rounds
from fdrsvm.solvers import solve_client_prox
from fdrsvm.solvers.cut_model import CutModel, model_bound
from tests.federated.cases import (
    DUAL_ORDER,
    NORMS,
    Absent,
    Recorded,
    blobs,
    names,
    problems,
    random_clients,
    train,
)

ROUNDING = 1e-12


def recorded_run(clients, algorithm, alphas, **settings):
    transport = Recorded(InProcess(problems(clients)))
    result = train(
        clients, algorithm, transport=transport, alphas=alphas, **{"tol": 0.0, **settings}
    )
    return result, transport.rounds


# --- the subgradient method ---


def papers_direction(client, model):
    """The hinge's subgradient under the paper's worst distribution, [paper]; tests of cuts check
    the oracle's."""
    oracle = RiskOracle(client.X, client.y, **client.ball)
    _, cut = oracle.cut(*model)
    slope = cut.slope.copy()
    slope[:-1] += cut.norm_weight * dual_norm_subgradient(model[0], oracle.ball.norm)
    return slope


@pytest.mark.parametrize("decay", ["1/t", "1/sqrt(t)"])
@pytest.mark.parametrize("worst_case", ["exact", "paper"])
@pytest.mark.parametrize("boxed", [False, True])
def test_the_subgradient_method_is_its_definition(decay, worst_case, boxed):
    for seed, (norm, fit_intercept) in enumerate(itertools.product(NORMS, (False, True))):
        clients, alphas = random_clients(
            seed, n_clients=3, norm=norm, boxed=boxed, fit_intercept=fit_intercept, kind="plain"
        )
        clients = [client.with_(worst_case=worst_case) for client in clients]
        gamma = 0.7
        algorithm = Subgradient(step_size=gamma, step_decay=decay)
        result, rounds = recorded_run(clients, algorithm, alphas, max_rounds=12)
        w = np.zeros(clients[0].X.shape[1] + fit_intercept)
        best = np.inf
        for t, (broadcasts, _) in enumerate(rounds[:12], start=1):
            for broadcast in broadcasts:
                assert_allclose(broadcast.values["points"][0], w, rtol=0.0, atol=1e3 * ROUNDING * t)
            w = broadcasts[0].values["points"][0]  # so that rounding does not add up
            step, value = np.zeros(w.size), 0.0
            for client, alpha in zip(clients, alphas, strict=True):
                model = client.split(w)
                risk = worst_case_risk(
                    model[0], client.X, client.y, intercept=model[1], **client.ball
                )
                exact = {**client.ball, "worst_case": "exact"}
                value += (
                    alpha
                    * worst_case_risk(
                        model[0], client.X, client.y, intercept=model[1], **exact
                    ).value
                )
                v = np.append(risk.subgradient, risk.intercept_subgradient)
                if worst_case == "paper":
                    v = papers_direction(client, model)
                step += alpha * v[: w.size]
            best = min(best, value)
            assert_allclose(result.history[t - 1].objective, best, rtol=ROUNDING)
            assert_allclose(
                result.history[t - 1].residuals["subgradient"], np.linalg.norm(step), rtol=1e-9
            )
            w = w - gamma / (t if decay == "1/t" else np.sqrt(t)) * step
        assert_allclose(result.newest, w, rtol=0.0, atol=1e3 * ROUNDING)


def test_an_absent_clients_last_subgradient_is_used_again():
    clients, alphas = blobs(3), np.array([0.5, 0.3, 0.2])
    away = names(3)[1]
    transport = Recorded(
        Absent(InProcess(problems(clients)), lambda r, name: name == away and r in (1, 4, 5))
    )
    train(
        clients,
        Subgradient(step_size=0.5),
        transport=transport,
        alphas=alphas,
        quorum=2,
        tol=0.0,
        max_rounds=8,
    )
    last = np.zeros((3, 4))
    for t, (broadcasts, _) in enumerate(transport.rounds[:7], start=1):
        w = broadcasts[0].values["points"][0]
        for g, client in enumerate(clients):
            if not (g == 1 and t in (1, 4, 5)):
                last[g] = worst_case_risk(w, client.X, client.y, **client.ball).subgradient
        expected = w - 0.5 / np.sqrt(t) * (alphas @ last)
        assert_allclose(transport.rounds[t][0][0].values["points"][0], expected, atol=1e-11)


# --- ADMM ---


def local_models(rounds, relaxation=1.0):
    """The clients' true w_g and mu_g of every round, from the messages alone (rho fixed)."""
    n_clients, width = len(rounds[0][0]), rounds[0][0][0].values["points"].shape[1]
    mu, relaxed = np.ones((n_clients, width)), None
    found = []
    for broadcasts, answers in rounds:
        w = broadcasts[0].values["points"][0]
        if relaxed is not None:
            mu = mu + relaxed - w
        vectors = np.array([answer.values["vector"] for answer in answers])
        relaxed = vectors - mu
        local = (relaxed - (1.0 - relaxation) * w) / relaxation
        found.append((w, mu, local, vectors))
    return found


@pytest.mark.parametrize("relaxation", [1.0, 1.6])
@pytest.mark.parametrize("method", ["admm", "admm-sc", "admm with tau"])
@pytest.mark.parametrize(("norm", "fit_intercept"), list(itertools.product(NORMS, (False, True))))
def test_admm_is_its_definition(method, norm, fit_intercept, relaxation):
    clients, alphas = random_clients(
        4, n_clients=3, norm=norm, boxed=False, fit_intercept=fit_intercept, kind="plain"
    )
    rho, solver_tol, n_rounds = 0.5, 1e-11, 8
    settings = {"rho": rho, "relaxation": relaxation, "solver_tol": solver_tol}
    if method == "admm-sc":
        algorithm, tau = ADMMSC(**settings), smallest_tau(rho, alphas)
    else:
        tau = 0.3 if method == "admm with tau" else 0.0
        algorithm = ADMM(tau=tau, **settings)
    result, rounds = recorded_run(clients, algorithm, alphas, max_rounds=n_rounds)
    history = local_models(rounds[:n_rounds], relaxation)
    assert not history[0][0].any()  # the paper's start: w = 0 ...
    np.testing.assert_array_equal(history[0][1], np.ones_like(history[0][1]))  # ... and mu = 1
    means = [w for w, *_ in history[1:]] + [result.newest]
    for (w, mu, local, vectors), mean in zip(history, means, strict=True):
        assert_allclose(mean, alphas @ vectors, rtol=1e-13, atol=1e-13)
        for g, client in enumerate(clients):
            centre, centre_b = client.split(w - mu[g])
            truth = solve_client_prox(
                client.X,
                client.y,
                centre=centre,
                centre_intercept=centre_b,
                rho=rho,
                tau=tau,
                tol=1e-11,
                **client.local,
            )
            # Strong convexity: ||w - w*||^2 <= 2 gap / rho, for theirs and for ours.
            allowed = solver_tol * max(1.0, truth.objective)
            radius = np.sqrt(2.0 * max(truth.gap, 0.0) / rho) + np.sqrt(2.0 * allowed / rho)
            expected = np.append(truth.w, truth.intercept) if fit_intercept else truth.w
            assert np.linalg.norm(local[g] - expected) <= radius / relaxation + 1e-10


@pytest.mark.parametrize("relaxation", [1.0, 1.5, 0.7])
def test_residuals_are_those_of_boyd(relaxation):
    """Primal: how far the clients' own w_g are from the mean; dual: rho times its step."""
    clients, alphas = random_clients(5, n_clients=3, norm="linf", boxed=False, kind="plain")
    rho, n_rounds = 0.5, 10
    algorithm = ADMM(rho=rho, relaxation=relaxation)
    result, rounds = recorded_run(clients, algorithm, alphas, max_rounds=n_rounds)
    history = local_models(rounds[:n_rounds], relaxation)
    assert result.history[0].residuals["primal"] == np.inf
    for k in range(n_rounds - 1):
        w, _, local, _ = history[k]
        mean = history[k + 1][0]
        primal = np.sqrt(alphas @ np.sum((local - mean) ** 2, axis=1))
        dual = rho * np.linalg.norm(mean - w)
        found = result.history[k + 1].residuals
        assert_allclose(found["primal"], primal, rtol=1e-9, atol=1e-11)
        assert_allclose(found["dual"], dual, rtol=1e-9, atol=1e-11)
        assert found["rho"] == rho


def test_admm_stops_once_both_residuals_are_below_their_goals():
    clients, alphas = random_clients(5, n_clients=3, norm="linf", boxed=False, kind="plain")
    for residual_tol in (1e-2, 1e-3):
        algorithm = ADMM(rho=0.5, residual_tol=residual_tol)
        result, rounds = recorded_run(clients, algorithm, alphas, max_rounds=3000)
        assert result.reason is Stop.SETTLED
        history = local_models(rounds[: result.n_rounds])
        width = history[0][0].size

        def is_settled(k, history=history, width=width, tol=residual_tol):
            w, _, local, _ = history[k]
            mean, mu, newer, _ = history[k + 1]
            primal = np.sqrt(alphas @ np.sum((local - mean) ** 2, axis=1))
            dual = 0.5 * np.linalg.norm(mean - w)
            # Boyd et al. 2011, section 3.3.1, with the weights of consensus; the clients' newest
            # models stand in for those of the round before, which differ by a residual.
            longest = max(
                np.sqrt(alphas @ np.sum(local**2, axis=1)),
                np.sqrt(alphas @ np.sum(newer**2, axis=1)),
                np.linalg.norm(mean),
            )
            duals = 0.5 * np.sqrt(alphas @ np.sum(mu**2, axis=1))
            absolute = np.sqrt(width) * tol
            return primal <= absolute + tol * longest and dual <= absolute + tol * duals

        assert is_settled(result.n_rounds - 2)
        # It goes on while a residual is above the goal with the smallest of those lengths.
        assert not is_settled(result.n_rounds - 3)


def test_without_a_residual_tolerance_nothing_settles():
    """One client converges to a fixed point with residuals of exactly 0: that is no reason."""
    (client,) = blobs(1, kappa=0.8)
    result = train([client], ADMM(rho=0.2), tol=0.0, max_rounds=120)
    assert result.reason is Stop.MAX_ROUNDS
    assert result.n_rounds == 120


def test_an_absent_client_keeps_admm_from_settling():
    """With a frozen client the others reach a fixed point; it is not the optimum."""
    clients = blobs(2)
    transport = Absent(InProcess(problems(clients)), lambda r, name: name == "client-1" and r > 3)
    result = train(
        clients,
        ADMM(rho=0.5, residual_tol=1e-4),
        transport=transport,
        quorum=1,
        tol=1e-6,
        max_rounds=400,
    )
    assert result.reason is not Stop.SETTLED


def test_balancing_keeps_the_unscaled_dual():
    """rho mu is the dual variable: when rho changes, mu must be scaled to keep it."""
    clients, alphas = random_clients(6, n_clients=3, norm="l2", boxed=False, kind="plain")
    algorithm = ADMM(rho=1e-3, balance=True, solver_tol=1e-10)
    result, rounds = recorded_run(clients, algorithm, alphas, max_rounds=40)
    rhos = [float(broadcasts[0].values["rho"]) for broadcasts, _ in rounds[:40]]
    assert len(set(rhos)) > 1
    mu, local = np.ones((3, clients[0].X.shape[1])), None
    for k, (broadcasts, answers) in enumerate(rounds[:40]):
        w = broadcasts[0].values["points"][0]
        if local is not None:
            mu = (mu + local - w) * (rhos[k - 1] / rhos[k])
        local = np.array([answer.values["vector"] for answer in answers]) - mu
        for g, client in enumerate(clients):
            if client.fit_intercept:
                continue
            truth = solve_client_prox(
                client.X, client.y, centre=w - mu[g], rho=rhos[k], tol=1e-10, **client.local
            )
            radius = 2.0 * np.sqrt(2.0 * 1e-10 * max(1.0, truth.objective) / rhos[k])
            assert np.linalg.norm(local[g] - truth.w) <= radius + 1e-9
    for before, after, record in zip(rhos[:-1], rhos[1:], result.history[:-1], strict=True):
        assert after in (before, 2.0 * before, before / 2.0)
        primal, dual = record.residuals["primal"], record.residuals["dual"]
        if primal < np.inf:
            expected = 2.0 if primal > 10.0 * dual else 0.5 if dual > 10.0 * primal else 1.0
            assert after == expected * before


# --- ADMM-SC ---


def test_the_smallest_tau_of_four_equal_clients_is_18_rho():
    for rho in (1e-3, 0.5, 7.0):
        assert_allclose(smallest_tau(rho, np.full(4, 0.25)), 18.0 * rho, rtol=1e-14)


def satisfies_the_theorem(rho, tau, alphas):
    """For these clients in this order: the paper's inequalities, as printed."""
    G = len(alphas)
    if G == 1:
        return True
    inner = all(rho <= 4.0 * alphas[g - 1] * tau / (g * (2 * G + 1 - g)) for g in range(1, G))
    return inner and rho <= 4.0 * alphas[G - 1] * tau / ((G - 1) * (G + 2))


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_tau_is_the_smallest_over_all_orders(seed):
    rng = np.random.default_rng(seed)
    n_clients, rho = int(rng.integers(1, 6)), float(10.0 ** rng.uniform(-4, 1))
    alphas = rng.random(n_clients) + 0.01
    alphas /= alphas.sum()
    tau = smallest_tau(rho, alphas)
    orders = list(itertools.permutations(alphas))
    assert any(satisfies_the_theorem(rho, tau * (1.0 + 1e-12), order) for order in orders)
    if n_clients > 1:
        assert not any(satisfies_the_theorem(rho, tau * (1.0 - 1e-9), order) for order in orders)
    for order in orders[:10]:
        assert smallest_tau(rho, np.array(order)) == tau
    assert smallest_tau(rho, np.append(alphas, 0.0)) == tau


def test_a_tau_below_the_theorems_warns_and_is_used():
    clients = blobs(4)
    transport = Recorded(InProcess(problems(clients)))
    settings = {"max_rounds": 2, "tol": 0.0}
    with pytest.warns(ConvergenceWarning, match=r"tau = 0\.17 is below 0\.18"):
        run_rounds(transport, ADMMSC(rho=0.01, tau=0.17), **settings)
    assert float(transport.rounds[0][0][0].values["tau"]) == 0.17
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_rounds(InProcess(problems(clients)), ADMMSC(rho=0.01, tau=0.18), **settings)
        run_rounds(InProcess(problems(clients)), ADMM(rho=0.01, tau=0.01), **settings)
        run_rounds(transport, ADMMSC(rho=0.01), **settings)
    assert_allclose(float(transport.rounds[-1][0][0].values.get("tau", 0.18)), 0.18, rtol=1e-14)


# --- what SM and ADMM prove on their way ---


@pytest.mark.parametrize(
    "algorithm", [Subgradient(step_size=0.5), ADMM(rho=0.1), ADMMSC(rho=0.01)], ids=repr
)
def test_the_mixture_of_a_clients_cuts_lies_below_its_risk(algorithm):
    """Also at the iterates, where the newest cuts touch; and with a client away now and then."""
    for seed, norm in enumerate(NORMS):
        clients, alphas = random_clients(
            60 + seed, n_clients=3, norm=norm, boxed=False, kind="plain"
        )
        states = []
        transport = Absent(
            InProcess(problems(clients)), lambda r, name: name == "client-1" and r in (1, 4, 5)
        )
        train(
            clients,
            algorithm,
            transport=transport,
            alphas=alphas,
            quorum=2,
            checkpoint=lambda snapshot, states=states: states.append(snapshot.state),
            tol=1e-9,
            max_rounds=9,
        )
        rng = np.random.default_rng(seed)
        models = [state.w for state in states]
        models += [scale * rng.normal(size=models[0].size) for scale in (0.1, 1.0, 10.0) * 3]
        for state, (g, client) in itertools.product(states, enumerate(clients)):
            found = state.evidence
            for model in models:
                w, b = client.split(model)
                risk = worst_case_risk(w, client.X, client.y, intercept=b, **client.ball).value
                below = (
                    found.mixture.constants[g]
                    + found.mixture.slopes[g] @ model
                    + found.mixture.norm_weights[g] * np.linalg.norm(w, DUAL_ORDER[norm])
                )
                assert below <= risk + 1e-12 * (1.0 + risk + np.abs(model).sum())


def test_the_bound_from_one_cut_and_a_floor_is_exact():
    """max(1 + v.u, floor ||u||_*) is least at ||u||_* = 1 / (||v|| + floor)."""
    order = {"l1": 1, "l2": 2, "linf": np.inf}
    rng = np.random.default_rng(0)
    for norm, share, floor in itertools.product(NORMS, (0.3, 0.7, 1.0), (0.01, 0.2)):
        slope = rng.normal(size=3)
        model = CutModel(
            constants=np.ones(1),
            slopes=slope[None],
            norm_weights=np.zeros(1),
            owners=np.zeros(1, dtype=np.int64),
            alphas=np.ones(1),
            floors=np.array([floor]),
            n_normed=3,
            norm=norm,
        )
        expected = floor / (np.linalg.norm(slope, order[norm]) + floor)
        bound = model_bound(model, np.array([share]))
        assert_allclose(bound.value, expected, rtol=1e-12)
        assert bound.radius == np.inf


# --- the bundle ---


@pytest.mark.parametrize(("norm", "fit_intercept"), list(itertools.product(NORMS, (False, True))))
def test_prices_are_the_clients_slopes_less_their_mean_and_pay(norm, fit_intercept):
    """[bundle]: each client solves at the points, shifted by its own price over prox."""
    clients, alphas = random_clients(
        15, n_clients=3, norm=norm, boxed=False, fit_intercept=fit_intercept, kind="plain"
    )
    _, rounds = recorded_run(clients, Bundle(), alphas, max_rounds=6)
    for broadcasts, answers in rounds[2:6]:
        prices = np.array([broadcast.values["price"] for broadcast in broadcasts])
        assert_allclose(alphas @ prices, 0.0, atol=1e-12)
        for client, broadcast, answer in zip(clients, broadcasts, answers, strict=True):
            points, prox = broadcast.values["points"], float(broadcast.values["prox"])
            assert answer.values["constants"].size == len(points) + 2
            for point, k in zip(points[:2], (-2, -1), strict=True):
                centre, b = client.split(point + broadcast.values["price"] / prox)
                truth = solve_client_prox(
                    client.X, client.y, centre=centre, centre_intercept=b, rho=prox, **client.local
                )
                # The cut touches the risk at the solution, within the gap of a solve to 1e-7.
                model = np.append(truth.w, truth.intercept) if fit_intercept else truth.w
                w, b = client.split(model)
                risk = worst_case_risk(w, client.X, client.y, intercept=b, **client.ball).value
                cut = (
                    answer.values["constants"][k]
                    + answer.values["slopes"][k] @ model
                    + answer.values["norm_weights"][k] * np.linalg.norm(w, DUAL_ORDER[norm])
                )
                # Both solves are rough: a distance of sqrt(2 gap / prox), times the slope there.
                length = np.sqrt(2.0 * 1e-7 * max(1.0, truth.objective) / prox)
                pull = prox * np.linalg.norm(model - np.append(centre, b)[: model.size])
                assert risk - cut <= 1e-6 * max(1.0, truth.objective) + 4.0 * length * pull


def n_cuts(result):
    return [int(record.residuals["n_cuts"]) for record in result.history]


def test_cuts_stay_for_max_age_rounds_and_no_client_has_more_than_max_cuts():
    clients = blobs(3)
    alphas = np.full(3, 1.0 / 3.0)
    hoarder = Bundle(max_age=10**6, max_cuts=10**6)
    everything, rounds = recorded_run(clients, hoarder, alphas, max_rounds=14)
    received = [sum(a.values["constants"].size for a in answers) for _, answers in rounds[:14]]
    assert n_cuts(everything) == np.cumsum(received).tolist()
    young, rounds = recorded_run(clients, Bundle(max_age=3), alphas, max_rounds=14)
    received = [sum(a.values["constants"].size for a in answers) for _, answers in rounds[:14]]
    for k, kept in enumerate(n_cuts(young)):
        assert kept >= sum(received[max(0, k - 2) : k + 1])
    assert n_cuts(young)[-1] < n_cuts(everything)[-1]
    few, _ = recorded_run(clients, Bundle(max_cuts=5), alphas, max_rounds=14)
    assert max(n_cuts(few)) <= 15


# --- what leaves a client ---


@pytest.mark.parametrize(
    "algorithm", [Bundle(), Bundle(cuts="summed"), ADMM(), Subgradient()], ids=repr
)
def test_an_update_is_as_large_however_much_data_a_client_has(algorithm):
    few, many = blobs(2, n_samples=10), blobs(2, n_samples=500)
    sizes = []
    for clients in (few, many):
        result = train(clients, algorithm, max_rounds=3, tol=0.0)
        sizes.append([(record.bytes_down, record.bytes_up) for record in result.history])
    assert sizes[0] == sizes[1]
