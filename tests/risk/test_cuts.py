"""A cut lies below the worst-case risk of every model, and touches it where it was made."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import sparse

from fdrsvm import NumericalError, RiskOracle, worst_case_distribution, worst_case_risk
from fdrsvm.core.losses import LOSSES
from fdrsvm.solvers import prepare_client, solve_central, solve_client_prox
from tests.problems import NORMS, problems, random_problem
from tests.reference import reference_risk

DUAL_ORDER = {"linf": 1, "l2": 2, "l1": np.inf}
# Values and cuts are sums of some ten products each.
ROUNDING = 1e-13


def value_of(cut, w, b, norm):
    """[cut]: constant + slope.(w, b) + norm_weight ||w||_*."""
    slope = cut.slope[: w.size] @ w + (cut.slope[w.size] * b if cut.slope.size > w.size else 0.0)
    return cut.constant + slope + cut.norm_weight * np.linalg.norm(w, DUAL_ORDER[norm])


def size_of(cut, w, b, norm):
    """The largest term of a cut, which its rounding is relative to."""
    terms = np.abs(cut.slope[: w.size] * w).sum() + abs(cut.slope[-1] * b) + abs(cut.constant)
    return 1.0 + terms + cut.norm_weight * np.linalg.norm(w, DUAL_ORDER[norm])


def other_models(rng, w, b, n=12):
    """Near and far, larger and smaller, with zeros and turned round."""
    for scale in rng.choice([1e-6, 0.1, 1.0, 10.0, 1e3], size=n):
        yield w + scale * rng.normal(size=w.size), b + scale * rng.normal()
    yield np.zeros(w.size), 0.0
    yield -w, -b
    yield 1e3 * w, b


def assert_below(cut, risk, rng, w, b, norm):
    for u, c in other_models(rng, w, b):
        try:
            value = risk(u, c)
        except NumericalError:
            continue
        assert value_of(cut, u, c, norm) <= value + ROUNDING * size_of(cut, u, c, norm)


@pytest.mark.parametrize(("norm", "boxed"), list(itertools.product(NORMS, (False, True))))
def test_cuts_at_several_models_have_the_bits_of_one_after_the_other(norm, boxed, rng):
    for _ in range(20):
        p = random_problem(rng, norm, boxed, "exact")
        arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
        oracle = RiskOracle(p.X, p.y, **arguments)
        models = np.array([np.append(u, b) for u, b in other_models(rng, p.w, p.intercept)])
        for points in (models, np.ascontiguousarray(models[:, :-1])):
            found = oracle.cuts(points)
            for k, point in enumerate(points):
                b = point[p.w.size] if point.size > p.w.size else 0.0
                risk, cut = oracle.cut(np.ascontiguousarray(point[: p.w.size]), b)
                assert (found.risks[k], found.proofs[k]) == (risk.value, risk.proof)
                assert (found.constants[k], found.norm_weights[k]) == (
                    cut.constant,
                    cut.norm_weight,
                )
                assert found.slopes[k].tobytes() == cut.slope[: point.size].tobytes()


def test_cuts_at_several_models_are_for_finite_models_dense_rows_and_the_hinge(rng):
    X, y = rng.normal(size=(5, 2)), np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    assert RiskOracle(X, y, epsilon=0.1).cuts(np.ones((1, 2))) is not None
    assert RiskOracle(X, y, epsilon=0.1).cuts(np.array([[1.0, np.nan]])) is None
    assert RiskOracle(X, y, epsilon=0.1, loss="logistic").cuts(np.ones((1, 2))) is None
    assert RiskOracle(X, y, epsilon=0.1, worst_case="paper").cuts(np.ones((1, 2))) is None
    assert RiskOracle(sparse.csr_array(X), y, epsilon=0.1).cuts(np.ones((1, 2))) is None


@pytest.mark.parametrize(("norm", "boxed"), list(itertools.product(NORMS, (False, True))))
def test_the_oracles_cut_touches_the_risk_and_stays_below_it(norm, boxed, rng):
    for _ in range(60):
        p = random_problem(rng, norm, boxed, "exact")
        arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
        oracle = RiskOracle(p.X, p.y, **arguments)
        risk, cut = oracle.cut(p.w, p.intercept)
        assert_allclose(risk.value, oracle(p.w, p.intercept).value, rtol=0.0, atol=0.0)
        assert cut.slope.shape == (p.w.size + 1,)
        assert cut.norm_weight >= 0.0
        touched = value_of(cut, p.w, p.intercept, norm)
        size = size_of(cut, p.w, p.intercept, norm)
        # The cut is made from the proof, an explicit distribution: never above the value.
        assert_allclose(touched, risk.proof, rtol=0.0, atol=ROUNDING * size)
        assert_allclose(touched, risk.value, rtol=0.0, atol=1e-8 * size)
        assert_below(cut, lambda u, c, o=oracle: o(u, c).value, rng, p.w, p.intercept, norm)


@pytest.mark.parametrize("size", [1e6, 1e12, 1e15])
@pytest.mark.parametrize("boxed", [False, True])
@pytest.mark.parametrize("worst_case", ["exact", "paper"])
def test_a_cut_made_far_away_lies_below_the_risk_nearby(size, boxed, worst_case, rng):
    """value - slope.w loses all digits at |w| = 1e15; the constant must not be made of it."""
    for norm, _ in itertools.product(NORMS, range(15)):
        p = random_problem(rng, norm, boxed, worst_case)
        arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
        oracle = RiskOracle(p.X, p.y, **arguments)
        exact = RiskOracle(p.X, p.y, **{**arguments, "worst_case": "exact"})
        for w, b in ((size * p.w, 0.3), (p.w, size), (p.w, -size), (size * p.w, -size)):
            try:
                _, cut = oracle.cut(w, b)
            except NumericalError:
                continue  # to refuse is as good
            for u, c in ((p.w, 0.0), (0.1 * p.w, 1.0), (-p.w, -1.0), (np.zeros(p.w.size), 0.0)):
                found = exact(u, c).value
                assert value_of(cut, u, c, norm) <= found + ROUNDING * (10.0 + found)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_cut_of_any_loss_made_far_away_lies_below_the_risk_nearby(loss, rng):
    for norm, size in itertools.product(NORMS, (1e6, 1e12, 1e15)):
        p = random_problem(rng, norm, False, "exact")
        arguments = {**p.arguments, "loss": loss}
        arguments.pop("intercept")
        oracle = RiskOracle(p.X, p.y, **arguments)
        for w, b in ((size * p.w, 0.3), (p.w, size), (p.w, -size)):
            try:
                _, cut = oracle.cut(w, b)
            except NumericalError:
                continue
            for u, c in ((p.w, 0.0), (0.1 * p.w, 1.0), (-p.w, -1.0)):
                found = oracle(u, c).value
                assert value_of(cut, u, c, norm) <= found + ROUNDING * (10.0 + found)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("boxed", [False, True])
def test_the_papers_cut_is_one_of_the_exact_risk(norm, boxed, rng):
    """At the model it lies between the two risks, elsewhere below the exact one."""
    for _ in range(30):
        p = random_problem(rng, norm, boxed, "paper")
        arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
        risk, cut = RiskOracle(p.X, p.y, **arguments).cut(p.w, p.intercept)
        exact = RiskOracle(p.X, p.y, **{**arguments, "worst_case": "exact"})
        touched, size = value_of(cut, p.w, p.intercept, norm), size_of(cut, p.w, p.intercept, norm)
        assert risk.value - 1e-8 * size <= touched
        assert touched <= exact(p.w, p.intercept).value + 1e-8 * size
        assert_below(cut, lambda u, c, o=exact: o(u, c).value, rng, p.w, p.intercept, norm)


@pytest.mark.parametrize("norm", NORMS)
def test_the_papers_cut_on_a_box_is_the_hinge_under_its_worst_distribution(norm, rng):
    """[paper], from the atoms themselves."""
    for _ in range(60):
        p = random_problem(rng, norm, True, "paper")
        arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
        _, cut = RiskOracle(p.X, p.y, **arguments).cut(p.w, p.intercept)
        q = worst_case_distribution(p.w, p.X, p.y, **p.arguments)
        margins = q.labels * (q.points @ p.w + p.intercept)
        if np.abs(margins - 1.0).min() < 1e-12:
            continue  # on the kink either side is a subgradient
        active = np.where(margins < 1.0, q.weights * q.labels, 0.0)
        size = size_of(cut, p.w, p.intercept, norm)
        assert_allclose(cut.slope[:-1], -active @ q.points, rtol=0.0, atol=ROUNDING * size)
        assert_allclose(cut.slope[-1], -active.sum(), rtol=0.0, atol=ROUNDING * size)
        assert_allclose(
            value_of(cut, p.w, p.intercept, norm), q.risk, rtol=0.0, atol=ROUNDING * size
        )


@pytest.mark.parametrize("norm", NORMS)
def test_the_papers_cut_without_a_support_flips_the_dearest_margins(norm, rng):
    """A flip gains 2 m in the paper's loss and costs kappa; moving pays ||w||_* a unit."""
    for _ in range(60):
        p = random_problem(rng, norm, False, "paper")
        arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
        epsilon, kappa = arguments["epsilon"], arguments["kappa"]
        oracle = RiskOracle(p.X, p.y, **arguments)
        _, cut = oracle.cut(p.w, p.intercept)
        margins = p.y * (p.X @ p.w + p.intercept)
        length = np.linalg.norm(p.w, DUAL_ORDER[norm])
        if np.diff(np.sort(margins)).min(initial=1.0) < 1e-12:
            continue  # equal margins share the budget, which this loop does not
        left, value, slope = epsilon, 0.0, np.zeros(p.w.size + 1)
        Z = np.column_stack([p.X, np.ones(len(p.y))])
        for n in np.argsort(-margins):
            share = 0.0
            if np.isfinite(kappa) and 2.0 * margins[n] > kappa * length and left > 0.0:
                share = min(1.0, left / (kappa * oracle.mass[n]))
                left -= share * kappa * oracle.mass[n]
            for label, part in ((1.0, 1.0 - share), (-1.0, share)):
                loss = 1.0 - label * margins[n]
                if loss > 0.0:
                    value += oracle.mass[n] * part * loss
                    slope -= oracle.mass[n] * part * label * p.y[n] * Z[n]
        size = size_of(cut, p.w, p.intercept, norm)
        assert_allclose(cut.slope, slope, rtol=0.0, atol=1e-9 * size)
        assert_allclose(cut.norm_weight, max(left, 0.0), rtol=0.0, atol=1e-9 * size)
        assert_allclose(
            value_of(cut, p.w, p.intercept, norm), value + left * length, rtol=0.0, atol=1e-9 * size
        )


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_cuts_of_every_loss_touch_and_stay_below(norm, loss, rng):
    for _ in range(40):
        p = random_problem(rng, norm, False, "exact")
        arguments = {**p.arguments, "loss": loss}
        arguments.pop("intercept")
        oracle = RiskOracle(p.X, p.y, **arguments)
        risk, cut = oracle.cut(p.w, p.intercept)
        size = size_of(cut, p.w, p.intercept, norm)
        assert_allclose(
            value_of(cut, p.w, p.intercept, norm), risk.value, rtol=0.0, atol=1e-8 * size
        )
        assert_below(cut, lambda u, c, o=oracle: o(u, c).value, rng, p.w, p.intercept, norm)


@given(problems(), st.integers(0, 2**32 - 1))
def test_a_cut_lies_below_the_reference_risk(p, seed):
    """Not below our own value only: below the linear or conic program, the exact one for both."""
    arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
    _, cut = RiskOracle(p.X, p.y, **arguments).cut(p.w)
    rng = np.random.default_rng(seed)
    u = rng.normal(size=p.w.size) * rng.choice([0.3, 3.0])
    settings = {**p.reference_arguments, "norm": p.norm, "zero_piece": True}
    found = reference_risk(u, p.X, p.y, **settings)
    assert value_of(cut, u, 0.0, p.norm) <= found + 1e-8 * (1.0 + abs(found))


@pytest.mark.parametrize("norm", NORMS)
def test_without_a_support_the_cut_is_its_formula(norm, rng):
    """[cut]: flips in order of gain while the radius pays for them; what is left moves features.

    constant   sum of p_n over samples with positive loss, kept or flipped
    slope      sum of p_n y_n (x_n, 1), minus for kept labels, plus for flipped ones
    norm       epsilon - kappa (mass flipped)
    """
    for _ in range(50):
        n, p = int(rng.integers(2, 20)), int(rng.integers(1, 5))
        X, y, w = rng.normal(size=(n, p)), rng.choice([-1.0, 1.0], size=n), rng.normal(size=p)
        b, kappa = float(rng.normal()), float(rng.choice([0.05, 0.3, 1.0]))
        epsilon = float(rng.choice([0.01, 0.1, 0.4]))
        _, cut = RiskOracle(X, y, epsilon=epsilon, kappa=kappa, norm=norm).cut(w, b)
        margins = y * (X @ w + b)
        gains = np.maximum(0.0, 1.0 + margins) - np.maximum(0.0, 1.0 - margins)
        flipped, left = np.zeros(n), epsilon
        for k in np.argsort(-gains):
            if gains[k] > kappa * np.linalg.norm(w, DUAL_ORDER[norm]):
                flipped[k] = min(1.0 / n, left / kappa)
                left -= kappa * flipped[k]
        kept = np.where(margins < 1.0, 1.0 / n - flipped, 0.0)
        rows = y[:, None] * np.c_[X, np.ones(n)]
        assert_allclose(cut.constant, (kept + flipped).sum(), atol=1e-12)
        assert_allclose(cut.slope, (flipped - kept) @ rows, atol=1e-12)
        assert_allclose(cut.norm_weight, max(left, 0.0), atol=1e-12)


def test_on_a_box_a_cut_is_the_subgradient(rng):
    for norm in NORMS:
        p = random_problem(rng, norm, True, "exact").with_(intercept=0.4)
        arguments = {name: v for name, v in p.arguments.items() if name != "intercept"}
        risk, cut = RiskOracle(p.X, p.y, **arguments).cut(p.w, 0.4)
        np.testing.assert_array_equal(cut.slope[:-1], risk.subgradient)
        assert cut.slope[-1] == risk.intercept_subgradient
        assert cut.norm_weight == 0.0


def random_client(rng, norm):
    n, p = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, p)) * 10.0 ** rng.uniform(-2, 2)
    settings = {
        "epsilon": float(rng.choice([0.0, 1e-3, 0.05, 0.5])),
        "kappa": float(rng.choice([0.05, 0.5, 2.0, np.inf])),
        "norm": norm,
        "sample_weight": rng.random(n) + 0.01 if rng.random() < 0.5 else None,
    }
    return X, rng.choice([-1.0, 1.0], size=n), settings


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("tol", [1e-2, 1e-10])
def test_what_a_solver_proves_lies_below_the_risk_everywhere(norm, fit_intercept, tol, rng):
    """Also where the solve is rough: the masses behind the cut are made feasible."""
    for _ in range(25):
        X, y, settings = random_client(rng, norm)
        p = X.shape[1]
        scale = 1.0 / np.abs(X).max()
        solution = solve_client_prox(
            X,
            y,
            centre=scale * rng.normal(size=p),
            centre_intercept=float(rng.normal()) if fit_intercept else 0.0,
            rho=float(rng.choice([1e-2, 1.0, 100.0])) / scale**2,
            tau=float(rng.choice([0.0, 0.1])),
            fit_intercept=fit_intercept,
            tol=tol,
            **settings,
        )
        cut = solution.cut
        assert cut.slope.shape == (p + fit_intercept,)
        assert cut.norm_weight >= 0.0
        oracle = RiskOracle(X, y, **settings)

        def risk(u, c, oracle=oracle):
            return oracle(u, c).value

        for u, c in other_models(rng, solution.w, solution.intercept):
            b = c if fit_intercept else 0.0
            found = risk(scale * u, b)
            size = 1.0 + abs(cut.constant) + np.abs(cut.slope[:p] * scale * u).sum() + abs(b)
            assert value_of(cut, scale * u, b, norm) <= found + 1e-12 * size


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_solvers_cut_touches_the_risk_at_its_answer(norm, fit_intercept, rng):
    """risk + prox - (cut + prox) at w is the gap: the cut's own optimum is the dual bound."""
    for _ in range(25):
        X, y, settings = random_client(rng, norm)
        scale = 1.0 / np.abs(X).max()
        rho = 1.0 / scale**2
        centre, centre_b = scale * rng.normal(size=X.shape[1]), 0.3 if fit_intercept else 0.0
        solution = solve_client_prox(
            X,
            y,
            centre=centre,
            centre_intercept=centre_b,
            rho=rho,
            fit_intercept=fit_intercept,
            tol=1e-10,
            **settings,
        )
        w, b = solution.w, solution.intercept
        value = worst_case_risk(w, X, y, intercept=b, **settings).value
        below = value - value_of(solution.cut, w, b, norm)
        # At w the cut is off by at most what the strongly convex terms can hide: twice the gap
        # would do at the cut's own optimum, sqrt(gap) is the distance to it.
        slack = solution.gap + 1e-9
        assert -1e-12 * (1.0 + abs(value)) <= below <= slack * (1.0 + abs(value))


@pytest.mark.parametrize("norm", NORMS)
def test_the_central_cut_proves_the_central_bound(norm, rng):
    X, y = rng.normal(size=(60, 4)), rng.choice([-1.0, 1.0], size=60)
    solution = solve_central(X, y, epsilon=0.05, norm=norm, fit_intercept=True)
    cut = solution.cut
    # Its slope is held by the norm, and nothing pulls the intercept: then the constant is a bound.
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    assert np.linalg.norm(cut.slope[:4], order) <= cut.norm_weight + 1e-8
    assert abs(cut.slope[4]) <= 1e-12
    assert_allclose(cut.constant, solution.objective, atol=10.0 * solution.gap + 1e-9)


@pytest.mark.parametrize("norm", NORMS)
def test_other_penalties_give_what_preparing_anew_gives(norm, rng):
    X, y = 7.0 * rng.normal(size=(40, 3)), rng.choice([-1.0, 1.0], size=40)
    ball = {"epsilon": 0.05, "kappa": 0.5, "norm": norm, "fit_intercept": True}
    client = prepare_client(X, y, rho=1.0, **ball)
    centre = rng.normal(size=3)
    for rho, tau in ((0.01, 0.0), (3.0, 0.2), (1.0, 0.0)):
        changed = client.with_penalties(rho, tau).solve(centre, centre_intercept=0.2)
        anew = prepare_client(X, y, rho=rho, tau=tau, **ball).solve(centre, centre_intercept=0.2)
        np.testing.assert_array_equal(changed.w, anew.w)
        assert changed.objective == anew.objective
        np.testing.assert_array_equal(changed.cut.slope, anew.cut.slope)
    central = client.with_penalties(0.0).solve(np.zeros(3))
    alone = solve_central(X, y, **ball)
    assert_allclose(central.objective, alone.objective, rtol=0.0, atol=alone.gap + central.gap)
    for bad in (-1.0, np.nan, np.inf, "1"):
        with pytest.raises(ValueError, match="rho"):
            client.with_penalties(bad)
        with pytest.raises(ValueError, match="tau"):
            client.with_penalties(1.0, bad)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "smooth_hinge"])
@pytest.mark.parametrize("boxed", [False, True])
def test_a_cut_at_an_enormous_model_does_not_lie_too_high(loss, boxed, rng):
    """Its constant is a difference of numbers as large as the model: rounding must not raise it."""
    if boxed and loss != "hinge":
        return  # not offered
    X, y = rng.random((30, 3)), rng.choice([-1.0, 1.0], size=30)
    for norm in NORMS:
        support = "unit-box" if boxed else None
        oracle = RiskOracle(X, y, epsilon=0.02, kappa=0.5, norm=norm, support=support, loss=loss)
        for size in (1e8, 1e12, 1e15, 1e17):
            _, cut = oracle.cut(size * rng.normal(size=3), size * rng.normal())
            for _ in range(20):
                w, b = rng.normal(size=3), rng.normal()
                value = oracle(w, b).value
                assert value_of(cut, w, b, norm) <= value + 1e-12 * (1.0 + value)
