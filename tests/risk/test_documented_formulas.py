"""docs/maths.md, formula by formula, in plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import linprog, minimize_scalar

from fdrsvm import FDRSVC, worst_case_risk
from fdrsvm.core.losses import LOSSES
from fdrsvm.core.vectors import dual_norm, dual_norm_subgradient
from tests.problems import NORMS, problems


def best_move(w, room, lam, norm):
    """[moves]: the displacement d of the documentation, cheapest on ties."""
    size = np.abs(w)
    if norm == "l1":
        return np.where(size > lam, room, 0.0)
    if norm == "linf":
        if size.sum() <= lam:
            return np.zeros_like(room)
        delta = min(r for r in room if size[room > r].sum() <= lam)
        return np.where(size > 0, np.minimum(room, delta), 0.0)
    if np.linalg.norm(w) <= lam:
        return np.zeros_like(room)
    stops = np.where(size > 0, room / np.where(size > 0, size, 1.0), np.inf)
    for last in sorted({0.0, *stops[np.isfinite(stops)]}, reverse=True):
        stopped = room[stops <= last]
        free = size[(stops > last) & (size > 0)]
        fall = lam**2 - free @ free
        if free.size == 0 and np.linalg.norm(stopped) >= lam * last:
            return np.where(size > 0, room, 0.0)
        if fall > 0 and np.sqrt(stopped @ stopped / fall) >= last * (1 - 1e-12):
            return np.minimum(room, np.sqrt(stopped @ stopped / fall) * size)
    raise AssertionError("some interval must hold the step")


def gain(w, room, lam, norm):
    """G of [box-dual]."""
    d = best_move(w, room, lam, norm)
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    return np.abs(w) @ d - lam * np.linalg.norm(d, ord=order)


def gain_by_program(w, room, lam, norm):
    """G by its definition: a linear program, or for l2 a search for the best length."""
    size = np.abs(w)
    if norm == "l1":
        result = linprog(lam - size, bounds=[(0, r) for r in room])
        return -result.fun
    if norm == "linf":
        rows = np.hstack([np.eye(room.size), -np.ones((room.size, 1))])
        bounds = [*[(0, r) for r in room], (0, None)]
        result = linprog(np.append(-size, lam), rows, np.zeros(room.size), bounds=bounds)
        return -result.fun
    longest = max((r / s for r, s in zip(room, size, strict=True) if s > 0), default=0.0)

    def loss(t):
        d = np.minimum(room, t * size)
        return lam * np.linalg.norm(d) - size @ d

    ends = [0.0, longest]
    return -min(
        *(loss(t) for t in ends),
        minimize_scalar(loss, bounds=(0, max(longest, 1e-9)), method="bounded").fun,
    )


def box_dual(problem, lam):
    """The objective of [box-dual] at one multiplier."""
    total = lam * problem.epsilon
    for x, y in zip(problem.X, problem.y, strict=True):
        margin = y * (problem.w @ x)
        lower = np.where(y * problem.w > 0, x, 1.0 - x)
        kept = 1 - margin + gain(problem.w, lower, lam, problem.norm)
        pieces = [kept]
        if np.isfinite(problem.kappa):
            flipped = 1 + margin + gain(problem.w, 1.0 - lower, lam, problem.norm)
            pieces.append(flipped - problem.kappa * lam)
        if problem.worst_case == "exact":
            pieces.append(0.0)
        total += max(pieces) / problem.y.size
    return total


@given(problems(boxed=True), st.floats(0, 2))
def test_the_risk_on_a_box_is_the_least_of_the_documented_objective(problem, factor):
    risk = worst_case_risk(problem.w, problem.X, problem.y, **problem.arguments)
    assert_allclose(box_dual(problem, risk.multiplier), risk.value, rtol=1e-9, atol=1e-9)
    for lam in (0.0, factor * risk.multiplier, factor * dual_norm(problem.w, problem.norm)):
        assert box_dual(problem, lam) >= risk.value - 1e-9


@pytest.mark.parametrize("norm", NORMS)
def test_the_documented_moves_are_best(norm, rng):
    for _ in range(100):
        size = int(rng.integers(1, 6))
        w, room = np.round(rng.normal(size=size), 1), np.round(rng.random(size), 1)
        lam = float(rng.random() * 1.2 * dual_norm(w, norm))
        found, expected = gain(w, room, lam, norm), gain_by_program(w, room, lam, norm)
        assert_allclose(found, expected, atol=1e-6 if norm == "l2" else 1e-9)
        assert found >= expected - 1e-9


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@given(problem=problems(boxed=False, worst_case="exact"), factor=st.floats(1, 3))
def test_the_risk_without_support_is_the_least_of_the_documented_objective(loss, problem, factor):
    margins = problem.y * (problem.X @ problem.w)
    gains = loss.value(-margins) - loss.value(margins)

    def objective(lam):
        toll = problem.kappa * lam if np.isfinite(problem.kappa) else np.inf
        worst = loss.value(margins) + np.maximum(0.0, gains - toll)
        return lam * problem.epsilon + worst.mean()

    risk = worst_case_risk(problem.w, problem.X, problem.y, **problem.arguments, loss=loss)
    least = loss.lipschitz * dual_norm(problem.w, problem.norm)
    assert risk.multiplier >= least
    assert_allclose(objective(risk.multiplier), risk.value, rtol=1e-9, atol=1e-9)
    for lam in (least, factor * least, factor * risk.multiplier, max(least, risk.multiplier / 2)):
        assert objective(lam) >= risk.value - 1e-9


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@given(problem=problems(boxed=False, worst_case="exact"))
def test_the_documented_subgradient_is_the_one_returned(loss, problem):
    """[flip-subgradient], with q_n worked out by sorting."""
    margins = problem.y * (problem.X @ problem.w)
    gains = loss.value(-margins) - loss.value(margins)
    risk = worst_case_risk(problem.w, problem.X, problem.y, **problem.arguments, loss=loss)
    least = loss.lipschitz * dual_norm(problem.w, problem.norm)
    q = np.zeros(margins.size)
    if np.isfinite(problem.kappa):
        toll = problem.kappa * least
        above_floor = np.sort(np.unique(gains[gains > toll]))
        spend = [
            t for t in (toll, *above_floor) if (gains > t).mean() * problem.kappa <= problem.epsilon
        ]
        ratio = margins.size * problem.epsilon / problem.kappa
        if abs(ratio - round(ratio)) < 1e-9 * (1 + ratio):
            return  # rounding decides between two equally good multipliers
        toll = min(spend)
        q[gains > toll] = 1.0
        tied = gains == toll
        if toll > problem.kappa * least and tied.any():
            q[tied] = (problem.epsilon / problem.kappa - (gains > toll).mean()) / tied.mean()
    rest = problem.epsilon - problem.kappa * q.mean() if q.any() else problem.epsilon
    slopes = (1 - q) * loss.slope(margins) - q * loss.slope(-margins)
    v = (problem.y * slopes) @ problem.X / margins.size
    v += max(rest, 0.0) * loss.lipschitz * dual_norm_subgradient(problem.w, problem.norm)
    assert_allclose(risk.subgradient, v, atol=1e-12)
    assert_allclose(risk.intercept_subgradient, (problem.y * slopes).mean(), atol=1e-12)


@pytest.mark.parametrize("w", [2.0, 10.0, 1e6])
def test_on_a_box_the_risk_need_not_grow_with_the_model(w):
    """[coercivity]: the paper's lemma fails for kappa = inf, and holds again at a finite one."""
    X, y = np.array([[0.5]]), np.array([1.0])
    for epsilon in (0.1, 0.3, 0.7):
        stuck = worst_case_risk([w], X, y, epsilon=epsilon, kappa=np.inf, support="unit-box")
        assert_allclose(stuck.value, min(1.0, 2 * epsilon), rtol=1e-12)
        kappa = 2.0
        risk = worst_case_risk([w], X, y, epsilon=epsilon, kappa=kappa, support="unit-box")
        delta = min(1.0, epsilon / (kappa + 1.0))
        assert risk.value >= delta / 2 * w / 2  # E |w x| is w/2 for uniform x
    away = worst_case_risk([w], X + 1, y, epsilon=0.3, kappa=np.inf, support=(1.0, 2.0))
    assert away.value == 0.0


@pytest.mark.filterwarnings("ignore::fdrsvm.DegenerateModelWarning")  # labels are at random
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kappa", [0.05, 1.0, np.inf])
def test_clients_of_one_sample_each_are_robust_sample_by_sample(norm, kappa, rng):
    """[one-sample-clients], the paper's Remark 1, in a federation with G = N."""
    X, y = rng.random((12, 3)), np.where(np.arange(12) % 3, 1.0, -1.0)
    own = rng.uniform(0.01, 0.1, size=12)
    model = FDRSVC(epsilon=own, kappa=kappa, norm=norm, client_weights="equal", tol=1e-6)
    model.fit(X, y, clients=np.arange(12))
    objectives = []
    for w, b in [(model.coef_[0], model.intercept_[0]), (rng.normal(size=3), 0.3)]:
        size = np.linalg.norm(w, {"l1": np.inf, "l2": 2, "linf": 1}[norm])
        losses = []
        for x, label, epsilon in zip(X, y, own, strict=True):
            margin = label * (w @ x + b)
            kept, flipped = max(0.0, 1 - margin), max(0.0, 1 + margin)
            share = min(1.0, epsilon / kappa)
            left = epsilon if np.isinf(kappa) else epsilon - share * kappa
            losses.append(
                max(
                    kept + epsilon * size,
                    (1 - share) * kept + share * flipped + left * size,
                )
            )
        risks = [
            worst_case_risk(
                w, X[[n]], y[[n]], epsilon=own[n], kappa=kappa, norm=norm, intercept=b
            ).value
            for n in range(12)
        ]
        assert_allclose(risks, losses, rtol=1e-10)
        objectives.append(np.mean(losses))
    assert_allclose(model.objective_, objectives[0], rtol=1e-10)
    assert objectives[1] >= model.lower_bound_
