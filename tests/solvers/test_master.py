"""The server's two solves agree with references, and its bound holds whatever it is given."""

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import fdrsvm.solvers
from fdrsvm.solvers import master as driver
from fdrsvm.solvers.cut_model import CutModel, distance_bound, model_bound
from fdrsvm.solvers.master import MasterStatus, minimise_model, project_onto_level
from tests.solvers.cases import NORMS
from tests.solvers.masters import dual_size, hinge_model, least_value, model_value, nearest_point

SOLVED = (MasterStatus.SOLVED, MasterStatus.SOLVED_BY_CONIC)
ODD = {
    "one client": {"n_clients": 1},
    "one cut": {"n_clients": 1, "n_cuts": 1},
    "one feature": {"n_features": 1},
    "more features than cuts": {"n_cuts": 3, "n_features": 30},
    "an intercept": {"fit_intercept": True},
    "one feature and an intercept": {"n_features": 1, "fit_intercept": True},
    "no floors": {"epsilon": 0.0},
    "no floors, an intercept": {"epsilon": 0.0, "fit_intercept": True},
    "tiny floors": {"epsilon": 1e-6},
    "large floors": {"epsilon": 3.0},
    "many cuts": {"n_clients": 4, "n_cuts": 50, "n_features": 30},
    "groups": {"n_features": 7, "groups": (3, 1, 2, 1)},
    "one group": {"groups": (5,)},
    "groups, an intercept": {"groups": (2, 3), "fit_intercept": True},
    "groups, no floors": {"groups": (1, 4), "epsilon": 0.0},
    "groups, large floors": {"groups": (1, 4), "epsilon": 3.0},
    "many groups": {"n_clients": 4, "n_cuts": 50, "n_features": 30, "groups": (6,) * 5},
}
# In the order in which Hypothesis should think of them: three features, two groups.
GROUPS = st.sampled_from([None, (2, 1), (1, 2), (3,)])


def check_minimum(model, tol=1e-9):
    solution = minimise_model(model, tol=tol)
    assert solution.status is MasterStatus.SOLVED
    assert solution.value == pytest.approx(model_value(model, solution.w), rel=1e-12)
    assert solution.gap == solution.value - solution.bound.value
    smallest = 1e-3 * model.value(np.zeros(model.width))
    assert -1e-14 <= solution.gap <= tol * max(solution.value, smallest)
    return solution


def level_between(model, lowest, centre, share):
    return lowest + share * (model.value(centre) - lowest)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("case", ODD)
def test_the_minimum_is_the_reference_one(norm, case):
    for seed in range(3):
        model = hinge_model(seed, norm, **ODD[case])
        # Multipliers must be 1/floor times as exact as the bound: 1e-9 is on the edge at 1e-6.
        solution = check_minimum(model, 1e-8 if case == "tiny floors" else 1e-9)
        assert_allclose(solution.value, least_value(model), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("case", ODD)
def test_the_projection_is_the_reference_one(norm, case, rng):
    for seed in range(2):
        model = hinge_model(seed, norm, **ODD[case])
        lowest = minimise_model(model)
        centre = lowest.w + rng.normal(size=model.width)
        level = level_between(model, lowest.value, centre, 0.3)
        solution = project_onto_level(model, centre, level)
        assert solution.status is MasterStatus.SOLVED
        assert solution.value <= level + 1e-9
        distance = np.linalg.norm(solution.w - centre)
        # Strong convexity: ||w - w*||^2 <= 2 gap, plus what the reference itself leaves open.
        apart = np.sqrt(2.0 * max(solution.gap, 0.0)) + 1e-4 * distance
        assert_allclose(solution.w, nearest_point(model, centre, level), atol=apart)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("groups", [None, (4, 1, 5, 2)])
def test_thin_level_sets_are_reached(norm, share, groups, rng):
    for seed in range(5):
        model = hinge_model(seed, norm, n_cuts=40, n_features=12, groups=groups)
        lowest = minimise_model(model)
        centre = lowest.w + 0.1 * rng.normal(size=model.width)
        level = level_between(model, lowest.value, centre, share)
        solution = project_onto_level(model, centre, level)
        assert solution.status in SOLVED
        assert solution.value <= level + 1e-10


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.02])
@pytest.mark.parametrize("groups", [None, (2, 1)])
def test_no_shares_lift_the_bound_above_the_optimum(norm, fit_intercept, epsilon, groups):
    for seed in range(8):
        model = hinge_model(
            seed,
            norm,
            n_cuts=6,
            n_features=3,
            fit_intercept=fit_intercept,
            epsilon=epsilon,
            groups=groups,
        )
        rng, solution = np.random.default_rng(seed), minimise_model(model)
        # Even without floors: up to R the model is bounded by its minimum over the ball.
        radius = 3.0 * dual_size(model, solution.w) + 1.0
        within = least_value(model, radius)
        for size in (0.0, 1e-9, 1e-6, 1e-3, 0.1, 1.0, 1e3):
            for _ in range(4):
                shares = solution.shares + size * rng.normal(size=model.owners.size)
                bound = model_bound(model, shares, radius)
                assert 0.0 <= bound.value <= within + 1e-8
                assert bound.radius == np.inf or (epsilon == 0.0 and bound.radius == radius)


@given(
    seed=st.integers(0, 10_000),
    norm=st.sampled_from(NORMS),
    shares=st.lists(st.floats(width=64), min_size=9, max_size=9),
    fit_intercept=st.booleans(),
    epsilon=st.sampled_from([0.0, 1e-3, 0.1]),
    groups=GROUPS,
)
def test_the_bound_is_below_the_model_at_every_point(
    seed, norm, shares, fit_intercept, epsilon, groups
):
    model = hinge_model(
        seed,
        norm,
        n_cuts=3,
        n_features=3,
        fit_intercept=fit_intercept,
        epsilon=epsilon,
        groups=groups,
    )
    bound = model_bound(model, np.array(shares), radius=5.0)
    rng = np.random.default_rng(seed)
    for size in (0.1, 1.0, 10.0, 1000.0):
        w = size * rng.normal(size=model.width)
        if dual_size(model, w) <= bound.radius:
            assert bound.value <= model_value(model, w) + 1e-12 * (1.0 + size)
    sums = np.bincount(model.owners, weights=bound.shares, minlength=3)
    assert (bound.shares >= 0.0).all()
    assert (sums <= 1.0 + 1e-12).all()
    by_hand = [bound.shares[model.owners == g] @ model.slopes[model.owners == g] for g in range(3)]
    assert_allclose(bound.slope_by_client, by_hand, atol=1e-12)


@given(
    seed=st.integers(0, 10_000),
    norm=st.sampled_from(NORMS),
    fit_intercept=st.booleans(),
    groups=st.sampled_from([None, (2, 3), (1, 3, 1)]),
)
def test_the_model_is_its_definition(seed, norm, fit_intercept, groups):
    model = hinge_model(seed, norm, n_cuts=2, fit_intercept=fit_intercept, groups=groups)
    w = np.random.default_rng(seed).normal(size=model.width)
    assert_allclose(model.value(w), model_value(model, w), rtol=1e-12)
    assert_allclose(model.alphas @ model.client_values(w), model.value(w), rtol=1e-12)


@given(
    seed=st.integers(0, 10_000),
    norm=st.sampled_from(NORMS),
    multiplier=st.sampled_from([0.0, 1e-3, 1.0, 30.0]),
    groups=GROUPS,
)
def test_no_point_within_the_level_is_nearer_than_the_bound(seed, norm, multiplier, groups):
    model = hinge_model(seed, norm, n_cuts=3, n_features=3, groups=groups)
    rng = np.random.default_rng(seed)
    centre = 3.0 * rng.normal(size=3)
    bounds = [
        (w, distance_bound(model, centre, model.value(w), rng.random(9), multiplier))
        for w in 3.0 * rng.normal(size=(20, 3))
    ]
    assert all(low <= 0.5 * np.sum((w - centre) ** 2) + 1e-9 for w, low in bounds)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e6])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_the_unit_of_the_features_does_not_matter(norm, scale, fit_intercept, rng):
    plain = hinge_model(3, norm, fit_intercept=fit_intercept)
    scaled = hinge_model(3, norm, fit_intercept=fit_intercept, scale=scale)
    lowest = check_minimum(scaled)
    assert_allclose(lowest.value, minimise_model(plain).value, rtol=1e-8)
    centre = lowest.w + rng.normal(size=scaled.width) * np.abs(lowest.w).max()
    level = level_between(scaled, lowest.value, centre, 0.3)
    solution = project_onto_level(scaled, centre, level)
    assert solution.status is MasterStatus.SOLVED


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_the_unit_of_the_losses_does_not_matter(norm, unit):
    model = hinge_model(4, norm)
    scaled = replace(
        model,
        constants=unit * model.constants,
        slopes=unit * model.slopes,
        norm_weights=unit * model.norm_weights,
        floors=unit * model.floors,
    )
    assert_allclose(check_minimum(scaled).value, unit * check_minimum(model).value, rtol=1e-8)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("noise", [0.0, 1e-12, 1e-8])
def test_cuts_that_repeat_do_no_harm(norm, noise, rng):
    model = hinge_model(5, norm)
    order = np.repeat(np.arange(model.owners.size), 4)
    doubled = replace(
        model,
        constants=model.constants[order],
        slopes=model.slopes[order] + noise * rng.normal(size=(order.size, model.width)),
        norm_weights=model.norm_weights[order],
        owners=model.owners[order],
    )
    lowest = check_minimum(doubled)
    assert_allclose(lowest.value, minimise_model(model).value, rtol=1e-6)
    centre = lowest.w + rng.normal(size=model.width)
    level = level_between(doubled, lowest.value, centre, 0.1)
    assert project_onto_level(doubled, centre, level).status is MasterStatus.SOLVED


@pytest.mark.parametrize("norm", NORMS)
def test_clients_without_weight_or_cuts_count_for_nothing_or_their_floor(norm, rng):
    model = hinge_model(6, norm, n_clients=2)
    wider = replace(
        model,
        owners=np.where(model.owners == 0, 0, 2),
        alphas=np.array([model.alphas[0], 0.0, model.alphas[1], 0.0]),
        floors=np.append(model.floors, [7.0, 7.0])[[0, 2, 1, 3]],
    )
    assert_allclose(check_minimum(wider).value, check_minimum(model).value, rtol=1e-8)
    centre = rng.normal(size=model.width)
    level = 0.5 * (minimise_model(model).value + model.value(centre))
    ours, theirs = (project_onto_level(m, centre, level) for m in (wider, model))
    assert_allclose(ours.w, theirs.w, atol=1e-5)
    silent = replace(wider, alphas=np.array([0.3, 0.2, 0.3, 0.2]))
    assert_allclose(check_minimum(silent).value, least_value(silent), rtol=1e-7)


@pytest.mark.parametrize("norm", NORMS)
def test_a_thousand_clients(norm, rng):
    model = hinge_model(7, norm, n_clients=1000, n_cuts=3, n_features=14)
    lowest = check_minimum(model)
    centre = lowest.w + 0.1 * rng.normal(size=14)
    level = level_between(model, lowest.value, centre, 0.3)
    assert project_onto_level(model, centre, level).status is MasterStatus.SOLVED


@pytest.mark.parametrize("norm", NORMS)
def test_a_model_without_any_cut_has_its_minimum_at_0(norm):
    empty = np.zeros(0)
    model = CutModel(
        constants=empty,
        slopes=np.zeros((0, 3)),
        norm_weights=empty,
        owners=np.zeros(0, dtype=np.int64),
        alphas=np.array([0.5, 0.5]),
        floors=np.array([0.1, 0.2]),
        n_normed=3,
        norm=norm,
    )
    solution = minimise_model(model)
    assert solution.status is MasterStatus.SOLVED
    assert solution.value == solution.bound.value == 0.0
    nearest = project_onto_level(model, np.array([3.0, -1.0, 0.5]), 0.1)
    assert nearest.status is MasterStatus.SOLVED
    assert nearest.value == pytest.approx(0.1)


def test_a_centre_within_the_level_stays():
    model = hinge_model(8, "l2")
    centre = np.ones(model.width)
    solution = project_onto_level(model, centre, model.value(centre))
    assert solution.status is MasterStatus.SOLVED
    assert solution.level_multiplier == solution.gap == 0.0
    assert (solution.w == centre).all()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("share", [0.5, 0.999, -1.0])
def test_a_level_no_model_reaches_is_proved_to_be_one(norm, share):
    model = hinge_model(9, norm)
    lowest = minimise_model(model)
    solution = project_onto_level(model, 3.0 * lowest.w + 1.0, share * lowest.value)
    assert solution.status is MasterStatus.EMPTY
    assert solution.bound.value > share * lowest.value
    assert solution.value == pytest.approx(lowest.value, rel=1e-6)


@pytest.mark.parametrize("norm", NORMS)
def test_at_the_lowest_level_the_answer_is_finite_and_says_how_good_it_is(norm):
    model = hinge_model(10, norm)
    lowest = minimise_model(model)
    solution = project_onto_level(model, lowest.w + 1.0, lowest.bound.value)
    assert np.isfinite(solution.w).all()
    assert solution.value <= lowest.value * (1 + 1e-6)
    assert solution.bound.value <= lowest.value


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("groups", [None, (3, 2)])
def test_the_conic_solver_steps_in(norm, groups, monkeypatch, rng):
    model = hinge_model(11, norm, fit_intercept=True, groups=groups)
    lowest = minimise_model(model)
    centre = lowest.w + rng.normal(size=model.width)
    level = level_between(model, lowest.value, centre, 0.3)
    nearest = project_onto_level(model, centre, level)
    monkeypatch.setattr(driver, "_MAX_ITER", 0)  # it stays where it begins
    again = minimise_model(model)
    assert again.status is MasterStatus.SOLVED_BY_CONIC
    assert_allclose(again.value, lowest.value, rtol=1e-8)
    again = project_onto_level(model, centre, level)
    assert again.status is MasterStatus.SOLVED_BY_CONIC
    assert_allclose(again.w, nearest.w, atol=1e-3)
    assert_allclose(again.level_multiplier, nearest.level_multiplier, rtol=1e-2)


@pytest.mark.parametrize("norm", NORMS)
def test_without_any_solver_there_is_still_a_point_and_a_bound(norm, monkeypatch, rng):
    model = hinge_model(12, norm)
    lowest, centre = minimise_model(model).value, rng.normal(size=model.width)
    monkeypatch.setattr(driver, "_MAX_ITER", 0)  # it stays where it begins
    monkeypatch.setattr(driver, "conic_master", lambda master: None)
    for solution in (minimise_model(model), project_onto_level(model, centre, 1.1 * lowest)):
        assert solution.status is MasterStatus.INACCURATE
        assert np.isfinite(solution.w).all()
        assert np.isfinite(solution.shares).all()
        assert solution.value == model.value(solution.w)
        assert 0.0 <= solution.bound.value <= lowest


def test_without_floors_the_bound_says_how_far_it_reaches():
    """One cut 1 - w: the model falls to 0, but not below 0.5 within reach of 0.5."""
    model = CutModel(
        constants=np.array([1.0]),
        slopes=np.array([[-1.0]]),
        norm_weights=np.zeros(1),
        owners=np.zeros(1, dtype=np.int64),
        alphas=np.ones(1),
        floors=np.zeros(1),
        n_normed=1,
        norm="l2",
    )
    near, anywhere = (model_bound(model, np.ones(1), radius) for radius in (0.5, np.inf))
    assert (near.value, near.radius) == (0.5, 0.5)
    assert (anywhere.value, anywhere.radius) == (0.0, np.inf)
    assert minimise_model(model).value == pytest.approx(0.0, abs=1e-9)
    assert minimise_model(model, radius=0.5).value == pytest.approx(0.5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("shares", [(1.0, 0.0), (0.9, 0.1), (0.5, 0.5), (0.6, 0.4), (0.0, 1.0)])
def test_an_intercept_is_not_presumed_small(sign, shares):
    """Cuts 1 + b and 0.2 - b (or mirrored): the minimum is 0.6, though 1 + b alone is 1 at 0."""
    model = CutModel(
        constants=np.array([1.0, 0.2]),
        slopes=sign * np.array([[0.0, 1.0], [0.0, -1.0]]),
        norm_weights=np.array([0.1, 0.1]),
        owners=np.zeros(2, dtype=np.int64),
        alphas=np.ones(1),
        floors=np.array([0.1]),
        n_normed=1,
        norm="linf",
    )
    lesser = min(shares)
    assert model_bound(model, np.array(shares)).value == pytest.approx(1.2 * lesser)
    assert minimise_model(model).bound.value == pytest.approx(0.6)


def test_the_bound_shares_no_code_with_the_solver():
    """But for the definition of a cut model, and sums and norms."""
    source = Path(fdrsvm.solvers.__file__).parent / "cut_model.py"
    imported = {
        node.module
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("fdrsvm.solvers")
    }
    assert imported == set()
    folder = Path(__file__).parents[2] / "native" / "master"
    for part in ("bound", "cut_model"):
        text = "".join((folder / f"{part}{end}").read_text() for end in (".hpp", ".cpp"))
        included = {name for name in re.findall(r'#include "(.*)"', text) if "core/" not in name}
        assert included <= {"bound.hpp", "cut_model.hpp"}
