"""The judge of attacks against enumeration on tiny problems, and against real honest runs."""

import itertools

import numpy as np
import pytest
from benchmarks.trust.legal_poison import (
    HonestRows,
    Poisoned,
    judge,
    strongest_rows,
    worst_case_mean,
)
from scipy.optimize import linprog

from fdrsvm.federated.in_process import InProcess
from fdrsvm.federated.methods import Bundle
from fdrsvm.federated.problem import make_client
from fdrsvm.federated.rounds import run_rounds

LP_ERROR = 1e-8  # of two linear programs with numbers of about 1


def tiny(rng, n_features, intercept, kappa=np.inf, weight=0.4):
    limits = np.append(rng.uniform(0.5, 2.0, n_features), np.ones(int(intercept)))
    honest = tuple(
        HonestRows(signed_rows(rng, limits, n_features), share, rng.uniform(0.01, 0.2))
        for share in (0.5 * (1.0 - weight), 0.5 * (1.0 - weight))
    )
    return Poisoned(honest, limits, n_features, kappa, weight, rng.uniform(0.01, 0.2))


def signed_rows(rng, limits, n_features):
    rows = rng.uniform(-1.0, 1.0, (3, limits.size)) * limits
    rows[:, n_features:] = rng.choice([-1.0, 1.0], (3, limits.size - n_features))
    return rows


def atoms(problem, w):
    """All z that can be best: corners of the box, and where w.z = 1 crosses one of its edges."""
    P, found = problem.n_features, []
    for corner in itertools.product(*([-limit, limit] for limit in problem.limits)):
        z = np.array(corner)
        found.append(z)
        for j in range(P):
            if w[j] != 0.0:
                crossing = z.copy()
                crossing[j] = (1.0 - w @ z + w[j] * z[j]) / w[j]
                if abs(crossing[j]) <= problem.limits[j]:
                    found.append(crossing)
    return np.array(found)


def vertices(problem, points):
    """All u where a function with kinks at u.z = 1 and u_j = 0 can be least."""
    rows = np.concatenate([*(client.signed for client in problem.honest), points])
    planes = [(z, 1.0) for z in rows] + [
        (axis, 0.0) for axis in np.eye(problem.limits.size)[: problem.n_features]
    ]
    found = []
    for chosen in itertools.combinations(planes, problem.limits.size):
        matrix = np.array([normal for normal, _ in chosen])
        if abs(np.linalg.det(matrix)) > 1e-6:
            found.append(np.linalg.solve(matrix, [side for _, side in chosen]))
    return np.array(found)


def enumerated(problem, w, risk):
    """max over nu on the atoms, with f_nu(w) <= risk, of min over the vertices: kappa = inf."""
    points = atoms(problem, w)
    tried = vertices(problem, points)
    losses = np.maximum(1.0 - tried @ points.T, 0.0)
    fixed = np.array(
        [problem.honest_risk(u) + problem.weight * problem.epsilon * problem.size(u) for u in tried]
    )
    # Variables: the masses of the atoms, and t.
    above = np.column_stack([-problem.weight * losses, np.ones(len(tried))])
    at_w = np.append(np.maximum(1.0 - points @ w, 0.0), 0.0)
    found = linprog(
        np.append(np.zeros(len(points)), -1.0),
        A_ub=np.vstack([above, at_w]),
        b_ub=np.append(fixed, risk - problem.epsilon * problem.size(w)),
        A_eq=np.append(np.ones(len(points)), 0.0)[None],
        b_eq=[1.0],
        bounds=[(0.0, None)] * len(points) + [(None, None)],
    )
    return -found.fun if found.status == 0 else -np.inf


SHAPES = [(1, False), (1, True), (2, False)]


@pytest.mark.parametrize(("n_features", "intercept"), SHAPES)
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_those_of_the_best_legal_rows_found_by_enumeration(n_features, intercept, seed):
    rng = np.random.default_rng(seed)
    problem = tiny(rng, n_features, intercept)
    for _ in range(3):
        w = rng.normal(size=problem.limits.size)
        low, high = problem.floor(w), problem.ceiling(w)
        for share in (0.01, 0.2, 0.5):
            risk = low + share * (high - low)
            found = problem.largest_bound(w, risk)
            assert found == pytest.approx(enumerated(problem, w, risk), abs=LP_ERROR)
            assert found <= problem.strongest[0] + LP_ERROR
        assert problem.largest_bound(w, high) == pytest.approx(problem.strongest[0], abs=LP_ERROR)
        assert enumerated(problem, w, high) == pytest.approx(problem.strongest[0], abs=LP_ERROR)
        assert problem.largest_bound(w, low - 0.01) == -np.inf


@pytest.mark.parametrize("kappa", [0.3, 1.0, np.inf])
@pytest.mark.parametrize("intercept", [False, True])
def test_floor_and_ceiling_hold_for_legal_rows_and_the_ceiling_is_reached(kappa, intercept):
    rng = np.random.default_rng(3)
    problem = tiny(rng, 2, intercept, kappa)
    for _ in range(50):
        w = rng.normal(size=problem.limits.size) * rng.choice([0.1, 1.0, 5.0])
        margins = signed_rows(rng, problem.limits, 2) @ w
        found = worst_case_mean(margins, problem.epsilon, kappa, problem.size(w))
        assert problem.floor(w) - 1e-12 <= found <= problem.ceiling(w) + 1e-12
        worst = -np.sign(w) * problem.limits @ w
        reached = worst_case_mean(np.array([worst]), problem.epsilon, kappa, problem.size(w))
        assert reached == pytest.approx(problem.ceiling(w), rel=1e-12)
        lowest = worst_case_mean(np.array([-worst]), problem.epsilon, np.inf, problem.size(w))
        assert lowest == pytest.approx(problem.floor(w), rel=1e-12)


@pytest.mark.parametrize("kappa", [0.05, 1.0, np.inf])
def test_the_worst_case_mean_is_the_clients_risk(kappa):
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], 20)
    client = make_client("a", X, y, epsilon=0.3, kappa=kappa, fit_intercept=True)
    for _ in range(20):
        model = rng.normal(size=4)
        margins = y * (X @ model[:3] + model[3])
        found = worst_case_mean(margins, 0.3, kappa, float(np.abs(model[:3]).sum()))
        assert found == pytest.approx(client.risk_of(model), rel=1e-12)


def clients_of(problem, X, y, masses, kappa):
    """The honest clients as real ones, and a liar with legal rows."""
    P = problem.n_features
    intercept = problem.limits.size > P
    settings = {"kappa": kappa, "fit_intercept": intercept}
    honest = []
    for k, client in enumerate(problem.honest):
        labels = client.signed[:, P] if intercept else np.ones(len(client.signed))
        rows = labels[:, None] * client.signed[:, :P]
        honest.append(make_client(f"{k}", rows, labels, epsilon=client.epsilon, **settings))
    liar = make_client("liar", X, y, epsilon=problem.epsilon, sample_weight=masses, **settings)
    weights = [client.weight for client in problem.honest] + [problem.weight]
    return run_rounds(
        InProcess([*honest, liar]), Bundle(), max_rounds=300, tol=1e-7, client_weights=weights
    )


@pytest.mark.parametrize("kappa", [0.5, np.inf])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_certificates_of_legal_rows_are_true_and_bent_ones_are_false(kappa, intercept, seed):
    rng = np.random.default_rng(seed)
    problem = tiny(rng, 2, intercept, kappa)
    signed = signed_rows(rng, problem.limits, 2)
    y = signed[:, 2] if intercept else np.ones(3)
    run = clients_of(problem, y[:, None] * signed[:, :2], y, None, kappa)
    assert judge(problem, run.model, run.objective, run.lower_bound) == ""
    assert judge(problem, run.model, np.inf, run.lower_bound) == ""
    strongest = problem.strongest[0]
    assert judge(problem, run.model, run.objective, strongest * (1.0 + 1e-6)) == "i"
    assert judge(problem, run.model, run.objective + 100.0, run.lower_bound) == "ii"
    least = problem.honest_risk(run.model) + problem.weight * problem.floor(run.model)
    assert judge(problem, run.model, least - 1e-6, 0.0) == "ii"
    limit = problem.largest_bound(run.model, run.risks[-1])
    if limit < strongest - 1e-3:
        assert judge(problem, run.model, run.objective, limit + 1e-4) == "iii"


@pytest.mark.parametrize("kappa", [0.5, np.inf])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_strongest_rows_are_legal_and_reach_the_bound(kappa, intercept, seed):
    problem = tiny(np.random.default_rng(seed), 2, intercept, kappa)
    X, y, masses = strongest_rows(problem)
    assert (np.abs(X) <= problem.limits[:2]).all()
    assert set(y) <= {-1.0, 1.0}
    assert masses.sum() == pytest.approx(1.0, rel=1e-12)
    run = clients_of(problem, X, y, masses, kappa)
    assert run.objective == pytest.approx(problem.strongest[0], rel=1e-6)  # ten times the gap


def test_without_a_liar_the_certificate_is_of_the_honest_clients():
    problem = tiny(np.random.default_rng(0), 1, False, weight=0.0)
    best, _ = problem.strongest
    tried = vertices(problem, np.empty((0, 1)))
    model = min(tried, key=problem.honest_risk)
    assert best == pytest.approx(problem.honest_risk(model), abs=LP_ERROR)
    assert judge(problem, model, problem.honest_risk(model), best) == ""
    assert judge(problem, model, problem.honest_risk(model) + 1e-3, best) == "ii"
    assert judge(problem, model, problem.honest_risk(model), best + 1e-3) == "i"
